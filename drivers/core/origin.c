// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: origins of events.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "core/account.h"
#include "core/compat.h"
#include "core/origin.h"

static unsigned int user_limit_listeners = RASHPA_LISTENERS_USER / 2;
module_param(user_limit_listeners, uint, 0644);
MODULE_PARM_DESC(user_limit_listeners,
		 "sources of one user that LOOK at one memory, or listen to the state of one function or its maps, 0 for no limit but that for all users of 256 (128)");

static unsigned int user_limit_interrupt = RASHPA_LISTENERS_VECTOR / 2;
module_param(user_limit_interrupt, uint, 0644);
MODULE_PARM_DESC(user_limit_interrupt,
		 "sources of one user that listen to one vector, 0 for no limit but that for all users of 64 (32)");

void rashpa_origin_init(struct rashpa_origin *origin)
{
	spin_lock_init(&origin->lock);
	INIT_LIST_HEAD(&origin->subscribers);
}

/* Does no subscriber need the next event? The origin is locked. */
void rashpa_origin_mask(struct rashpa_origin *origin, bool mask)
{
	lockdep_assert_held(&origin->lock);
	if (!origin->mask || origin->masked == mask)
		return;
	origin->masked = mask;
	origin->mask(origin, mask);
}

/* Never mask or unmask again, because the device goes. */
void rashpa_origin_end(struct rashpa_origin *origin)
{
	guard(spinlock_irq)(&origin->lock);
	origin->mask = NULL;
}

/* The subscribers have changed. */
static void rashpa_origin_choose(struct rashpa_origin *origin)
{
	struct rashpa_direct *direct = NULL;

	lockdep_assert_held(&origin->lock);
	if (origin->n_subscribers == 1)
		direct = list_first_entry(&origin->subscribers, struct rashpa_subscriber,
					  entry)->direct;
	rcu_assign_pointer(origin->direct, direct);
}

/* The caller frees the former @direct after an RCU grace period. */
void rashpa_origin_direct(struct rashpa_subscriber *subscriber, struct rashpa_direct *direct)
{
	struct rashpa_origin *origin = subscriber->origin;

	if (!origin)
		return;
	guard(spinlock_irq)(&origin->lock);
	subscriber->direct = direct;
	rashpa_origin_choose(origin);
}

/* One user leaves places to the others, and all users leave places to root. */
static int rashpa_origin_check(struct rashpa_call *call, const struct rashpa_origin *origin,
			       const struct rashpa_user *user)
{
	const u32 all = origin->hard ? RASHPA_LISTENERS_VECTOR : RASHPA_LISTENERS_USER;
	const u32 most = READ_ONCE(*(origin->hard ? &user_limit_interrupt : &user_limit_listeners));
	const struct rashpa_subscriber *subscriber;
	u32 n = 0;

	lockdep_assert_held(&origin->lock);
	if (origin->n_subscribers >= RASHPA_LISTENERS_MAX)
		return rashpa_fail(call, -ENOSPC,
				   "%d sources subscribe already, which is the maximum: end unused ones (rashpactl list shows their users)",
				   RASHPA_LISTENERS_MAX);
	if (!user)
		return 0;
	if (origin->n_shared >= all)
		return rashpa_fail(call, -ENOSPC,
				   "%u sources of users subscribe already: end unused ones (rashpactl list shows their users), or use CAP_SYS_RESOURCE",
				   all);
	list_for_each_entry(subscriber, &origin->subscribers, entry)
		n += subscriber->user == user;
	if (!most || n < most)
		return 0;
	return rashpa_fail(call, -ENOSPC,
			   "%u sources of this user subscribe already: end unused ones (rashpactl list), raise the module parameter user_limit_%s, or use CAP_SYS_RESOURCE",
			   n, origin->hard ? "interrupt" : "listeners");
}

/*
 * Subscribe with @notify and @user set. Without @call there is no limit: for an origin that fires
 * in process context only. Return: 0, or -ENOSPC at a limit.
 */
int rashpa_origin_join(struct rashpa_call *call, struct rashpa_origin *origin,
		       struct rashpa_subscriber *subscriber)
{
	int err;

	guard(spinlock_irq)(&origin->lock);
	err = call ? rashpa_origin_check(call, origin, subscriber->user) : 0;
	if (err)
		return err;
	origin->n_subscribers++;
	origin->n_shared += !!subscriber->user;
	subscriber->origin = origin;
	list_add_tail(&subscriber->entry, &origin->subscribers);
	rashpa_origin_choose(origin);
	rashpa_origin_mask(origin, false);
	return 0;
}

/* End a subscription, if any: no callback runs after this returns. */
void rashpa_origin_leave(struct rashpa_subscriber *subscriber)
{
	struct rashpa_origin *origin = subscriber->origin;

	if (!origin)
		return;
	guard(spinlock_irq)(&origin->lock);
	list_del(&subscriber->entry);
	origin->n_subscribers--;
	rashpa_origin_choose(origin);
	origin->n_shared -= !!subscriber->user;
	/* an origin without subscribers counts its events */
	if (!origin->n_subscribers)
		rashpa_origin_mask(origin, false);
	subscriber->origin = NULL;
}

/*
 * Count an event and notify the subscribers, in any context. The time is taken before the
 * callbacks, in the order of the sequence.
 */
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value)
{
	struct rashpa_subscriber *subscriber;
	bool wanted;
	u64 time;

	guard(spinlock_irqsave)(&origin->lock);
	time = ktime_get_ns();
	origin->sequence++;
	wanted = !origin->n_subscribers;
	list_for_each_entry(subscriber, &origin->subscribers, entry)
		wanted |= subscriber->notify(subscriber, origin->sequence, time, value);
	rashpa_origin_mask(origin, !wanted);
}

/*
 * Deliver an event of a vector, in its interrupt, without a lock and without its time. Return:
 * false if that needs rashpa_origin_fire(): others subscribe, or more than one waits for the
 * eventfd, and each takes time. An epoll is one waiter, however many wait for it.
 */
bool rashpa_origin_signal(struct rashpa_origin *origin)
{
	const struct rashpa_direct *d;

	/* with PREEMPT_RT handlers are threads, which are no RCU readers */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return false;
	d = rcu_dereference_sched(origin->direct);
	if (!d || READ_ONCE(d->waiters->head.next) != READ_ONCE(d->waiters->head.prev))
		return false;
	origin->sequence++;
	++*d->events;
	eventfd_signal(d->ctx);
	return true;
}
