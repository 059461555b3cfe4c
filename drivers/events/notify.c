// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: eventfds, signalled for each event, every so many, or after a time.
 */
#include <linux/eventfd.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "events/events.h"

#define RASHPA_DELAY_MAX_US	10000000U

static enum hrtimer_restart rashpa_notifier_late(struct hrtimer *timer)
{
	struct rashpa_notifier *n = container_of(timer, struct rashpa_notifier, timer);
	unsigned long flags;

	spin_lock_irqsave(&n->channel->lock, flags);
	n->armed = false;
	if (n->pending)
		rashpa_notifier_due(n);
	rashpa_channel_tell_soon(n->channel);
	spin_unlock_irqrestore(&n->channel->lock, flags);
	return HRTIMER_NORESTART;
}

/**
 * rashpa_notifier_free() - stop it
 * @n: unreachable for events, or NULL; no lock of the channel held
 */
void rashpa_notifier_free(struct rashpa_notifier *n)
{
	struct rashpa_channel *ch;

	if (!n)
		return;
	ch = n->channel;
	hrtimer_cancel(&n->timer);
	/* nobody is signalling it either */
	spin_lock_bh(&ch->tell_lock);
	spin_lock_irq(&ch->lock);
	list_del(&n->entry);
	spin_unlock_irq(&ch->lock);
	spin_unlock_bh(&ch->tell_lock);
	/* what was promised is kept: who sleeps does not wait for it in vain */
	if (n->owed || (n->delay && n->pending))
		rashpa_eventfd_signal(n->ctx);
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
	n->every = bind->every ?: !bind->delay_us;
	n->delay = ns_to_ktime((u64)bind->delay_us * NSEC_PER_USEC);
	rashpa_hrtimer_setup(&n->timer, rashpa_notifier_late);
	return n;
}

static int rashpa_eventfd_check(struct rashpa_call *call, const struct rashpa_eventfd_bind *bind)
{
	if (bind->fd < -1)
		return rashpa_fail(call, -EBADF, "fd %d", bind->fd);
	if (bind->fd < 0 && (bind->every || bind->delay_us))
		return rashpa_fail(call, -EINVAL, "every and delay_us are for an eventfd");
	if (bind->delay_us > RASHPA_DELAY_MAX_US)
		return rashpa_fail(call, -EINVAL, "a delay of %u us: at most %u",
				   bind->delay_us, RASHPA_DELAY_MAX_US);
	return 0;
}

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_eventfd_bind *bind = arg;
	struct rashpa_notifier **place = &ch->notifier;
	struct rashpa_notifier *n = NULL;
	struct rashpa_listener *l;
	int err;

	err = rashpa_eventfd_check(call, bind);
	if (err)
		return err;
	if (bind->fd >= 0) {
		n = rashpa_notifier_new(call, bind);
		if (IS_ERR(n))
			return PTR_ERR(n);
	}
	mutex_lock(&ch->sources_lock);
	if (bind->id) {
		l = rashpa_source_find(ch, bind->id);
		place = l ? &l->notifier : NULL;
	}
	spin_lock_irq(&ch->lock);
	/* either the end of the function finds it bound, and signals it, or it is refused */
	err = n ? rashpa_channel_check(call, ch) : 0;
	if (!err && place) {
		if (n)
			list_add(&n->entry, &ch->notifiers);
		swap(*place, n);
	} else if (!err) {
		err = rashpa_fail(call, -ENOENT, "the channel has no source %u", bind->id);
	}
	spin_unlock_irq(&ch->lock);
	mutex_unlock(&ch->sources_lock);
	rashpa_notifier_free(n);
	return err;
}
