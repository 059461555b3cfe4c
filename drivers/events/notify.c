// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: bind and free eventfds.
 */
#include <linux/eventfd.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "events/events.h"

/* @n is NULL or unreachable for events; no lock of the channel is held. */
void rashpa_notifier_free(struct rashpa_notifier *n)
{
	struct rashpa_channel *ch;

	if (!n)
		return;
	ch = n->channel;
	/* no wake-up is in progress under this lock */
	spin_lock_bh(&ch->wake_lock);
	spin_lock_irq(&ch->lock);
	list_del(&n->entry);
	spin_unlock_irq(&ch->lock);
	spin_unlock_bh(&ch->wake_lock);
	/* a waiter gets due signals before the eventfd goes */
	if (n->owed)
		eventfd_signal(n->ctx);
	eventfd_ctx_put(n->ctx);
	kfree(n);
}

static struct rashpa_notifier *rashpa_notifier_new(struct rashpa_call *call,
						   const struct rashpa_eventfd_bind *bind)
{
	struct rashpa_notifier *n;
	struct eventfd_ctx *ctx;

	ctx = eventfd_ctx_fdget(bind->fd);
	if (IS_ERR(ctx)) {
		rashpa_fail(call, PTR_ERR(ctx), "fd %d is not an eventfd", bind->fd);
		return ERR_CAST(ctx);
	}
	n = kzalloc(sizeof(*n), GFP_KERNEL_ACCOUNT);
	if (!n) {
		eventfd_ctx_put(ctx);
		return ERR_PTR(-ENOMEM);
	}
	n->channel = call->obj;
	INIT_LIST_HEAD(&n->entry);
	n->ctx = ctx;
	return n;
}

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_eventfd_bind *bind = arg;
	struct rashpa_notifier **place = &ch->notifier;
	struct rashpa_notifier *n = NULL;
	struct rashpa_listener *l;
	int err;

	if (bind->fd != -1) {
		n = rashpa_notifier_new(call, bind);
		if (IS_ERR(n))
			return PTR_ERR(n);
	}
	mutex_lock(&ch->sources_lock);
	if (bind->id) {
		l = rashpa_source_find(call, ch, bind->id);
		place = l ? &l->notifier : NULL;
	}
	spin_lock_irq(&ch->lock);
	/* the end of the function takes this lock; an eventfd after it is refused */
	err = n ? rashpa_channel_check(call, ch) : 0;
	if (!err && !place)
		err = -ENOENT;
	if (!err) {
		if (n)
			list_add(&n->entry, &ch->notifiers);
		swap(*place, n);
	}
	spin_unlock_irq(&ch->lock);
	mutex_unlock(&ch->sources_lock);
	rashpa_notifier_free(n);
	return err;
}
