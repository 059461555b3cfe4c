// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: what events come from.
 */
#include <linux/errno.h>
#include <linux/ktime.h>

#include "core/account.h"
#include "core/origin.h"

/**
 * rashpa_origin_init() - nothing has happened, and nobody listens
 * @origin: the origin
 */
void rashpa_origin_init(struct rashpa_origin *origin)
{
	spin_lock_init(&origin->lock);
	INIT_LIST_HEAD(&origin->ears);
}

static void rashpa_origin_rest(struct rashpa_origin *origin, bool rests)
{
	lockdep_assert_held(&origin->lock);
	if (!origin->rest || origin->rests == rests)
		return;
	origin->rests = rests;
	origin->rest(origin, rests);
}

/**
 * rashpa_origin_wake() - somebody who did not wants to hear of it again
 * @origin: the origin, locked
 */
void rashpa_origin_wake(struct rashpa_origin *origin)
{
	rashpa_origin_rest(origin, false);
}

/**
 * rashpa_origin_end() - what it stands for goes: it rests, or not, as it does now
 * @origin: the origin
 */
void rashpa_origin_end(struct rashpa_origin *origin)
{
	spin_lock_irq(&origin->lock);
	origin->rest = NULL;
	spin_unlock_irq(&origin->lock);
}

static void rashpa_origin_add_locked(struct rashpa_origin *origin, struct rashpa_ear *ear)
{
	lockdep_assert_held(&origin->lock);
	origin->n_ears++;
	origin->n_shared += !!ear->user;
	ear->origin = origin;
	list_add_tail(&ear->entry, &origin->ears);
	rashpa_origin_rest(origin, false);
}

/**
 * rashpa_origin_add() - listen, however many there are
 * @origin: to what; it fires in no interrupt
 * @ear: its @hear is set
 */
void rashpa_origin_add(struct rashpa_origin *origin, struct rashpa_ear *ear)
{
	spin_lock_irq(&origin->lock);
	rashpa_origin_add_locked(origin, ear);
	spin_unlock_irq(&origin->lock);
}

/* Nobody takes the places of others: not one user those of all, not all of them root's. */
static int rashpa_origin_check(struct rashpa_call *call, const struct rashpa_origin *origin,
			       const struct rashpa_user *user)
{
	const u32 all = origin->hard ? RASHPA_LISTENERS_VECTOR : RASHPA_LISTENERS_USER;
	const u32 most = rashpa_limit_listeners(origin->hard);
	const struct rashpa_ear *ear;
	u32 n = 0;

	lockdep_assert_held(&origin->lock);
	if (origin->n_ears >= RASHPA_LISTENERS_MAX)
		return rashpa_fail(call, -ENOSPC,
				   "%d sources listen there already, which are the most: end what is not needed (rashpactl list names who holds what)",
				   RASHPA_LISTENERS_MAX);
	if (!user)
		return 0;
	if (origin->n_shared >= all)
		return rashpa_fail(call, -ENOSPC,
				   "%u sources of users listen there already: end what is not needed (rashpactl list names who holds what), or use CAP_SYS_RESOURCE",
				   all);
	list_for_each_entry(ear, &origin->ears, entry)
		n += ear->user == user;
	if (!most || n < most)
		return 0;
	return rashpa_fail(call, -ENOSPC,
			   "%u sources of this user listen there already: end what is not needed (rashpactl list), raise the module parameter user_limit_%s, or use CAP_SYS_RESOURCE",
			   n, origin->hard ? "interrupt" : "listeners");
}

/**
 * rashpa_origin_join() - listen, if there is a place
 * @call: the ioctl, for the reason
 * @origin: to what
 * @ear: its @hear and @user are set
 *
 * Return: 0, -ENOSPC if too many listen already.
 */
int rashpa_origin_join(struct rashpa_call *call, struct rashpa_origin *origin,
		       struct rashpa_ear *ear)
{
	int err;

	spin_lock_irq(&origin->lock);
	err = rashpa_origin_check(call, origin, ear->user);
	if (!err)
		rashpa_origin_add_locked(origin, ear);
	spin_unlock_irq(&origin->lock);
	return err;
}

/**
 * rashpa_origin_leave() - listen no more: @ear is not called after this returns
 * @ear: one that listens, or not
 */
void rashpa_origin_leave(struct rashpa_ear *ear)
{
	struct rashpa_origin *origin = ear->origin;

	if (!origin)
		return;
	spin_lock_irq(&origin->lock);
	list_del(&ear->entry);
	origin->n_ears--;
	origin->n_shared -= !!ear->user;
	/* that there are events is counted also where nobody listens */
	if (!origin->n_ears)
		rashpa_origin_rest(origin, false);
	spin_unlock_irq(&origin->lock);
	ear->origin = NULL;
}

/**
 * rashpa_origin_fire() - something has happened
 * @origin: where
 * @value: for who hears of it
 *
 * Called in hard interrupt context, too: the time is taken before anybody hears of it, in the
 * order of the sequence.
 */
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value)
{
	struct rashpa_ear *ear;
	unsigned long flags;
	bool wanted;
	u64 time;

	spin_lock_irqsave(&origin->lock, flags);
	time = ktime_get_ns();
	origin->sequence++;
	wanted = !origin->n_ears;
	list_for_each_entry(ear, &origin->ears, entry)
		wanted |= ear->hear(ear, origin->sequence, time, value);
	rashpa_origin_rest(origin, !wanted);
	spin_unlock_irqrestore(&origin->lock, flags);
}
