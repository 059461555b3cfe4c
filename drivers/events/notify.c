// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: bind and free eventfds.
 */
#include <linux/file.h>
#include <linux/slab.h>

#include "events/events.h"

/* @n is NULL or unreachable for events; no spinlock of the channel is held. */
void rashpa_notifier_free(struct rashpa_notifier *n)
{
	struct rashpa_channel *ch;

	if (!n)
		return;
	ch = n->channel;
	/* no wake-up is in progress under this lock */
	spin_lock_bh(&ch->wake_lock);
	scoped_guard(spinlock_irq, &ch->lock)
		list_del(&n->entry);
	spin_unlock_bh(&ch->wake_lock);
	/* an interrupt may be signalling it */
	if (n->direct.events)
		synchronize_rcu_expedited();
	/* a waiter gets due signals before the eventfd goes */
	if (n->owed)
		eventfd_signal(n->direct.ctx);
	eventfd_ctx_put(n->direct.ctx);
	kfree(n);
}

/* poll() of an eventfd reports its waiters. */
static void rashpa_notifier_waiters(struct file *file, wait_queue_head_t *waiters,
				    poll_table *table)
{
	container_of(table, struct rashpa_notifier, poll)->direct.waiters = waiters;
}

static struct rashpa_notifier *rashpa_notifier_new(struct rashpa_call *call,
						   const struct rashpa_eventfd_bind *bind)
{
	struct rashpa_notifier *n = kzalloc(sizeof(*n), GFP_KERNEL_ACCOUNT);
	struct eventfd_ctx *ctx;
	struct file *file;

	if (!n)
		return ERR_PTR(-ENOMEM);
	file = fget(bind->fd);
	ctx = file ? eventfd_ctx_fileget(file) : ERR_PTR(-EBADF);
	if (IS_ERR(ctx)) {
		rashpa_fail(call, PTR_ERR(ctx), "fd %d is not an eventfd", bind->fd);
		kfree(n);
		n = ERR_CAST(ctx);
	} else {
		n->channel = call->obj;
		INIT_LIST_HEAD(&n->entry);
		n->direct.ctx = ctx;
		init_poll_funcptr(&n->poll, rashpa_notifier_waiters);
		vfs_poll(file, &n->poll);
	}
	if (file)
		fput(file);
	return n;
}

/* Let interrupts signal the eventfd, if they do nothing else for the source. */
void rashpa_listener_direct(struct rashpa_listener *l)
{
	struct rashpa_direct *direct = l->notifier ? &l->notifier->direct : NULL;

	if (l->kind != RASHPA_SOURCE_VECTOR || !l->quiet || l->one_shot || l->membership)
		direct = NULL;
	if (direct)
		direct->events = &l->events;
	rashpa_origin_direct(&l->subscriber, direct);
}

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_eventfd_bind *bind = arg;
	struct rashpa_notifier **place = &ch->notifier;
	struct rashpa_notifier *n = NULL;
	struct rashpa_listener *l = NULL;
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
	if (l && !err)
		rashpa_listener_direct(l);
	/* before another thread can free the source, whose events an interrupt may be counting */
	rashpa_notifier_free(n);
	mutex_unlock(&ch->sources_lock);
	return err;
}
