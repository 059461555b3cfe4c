// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: what events come from.
 */
#include <linux/errno.h>
#include <linux/ktime.h>

#include "rashpa_origin.h"

/**
 * rashpa_origin_init() - nothing has happened, and nobody listens
 * @origin: the origin
 */
void rashpa_origin_init(struct rashpa_origin *origin)
{
	spin_lock_init(&origin->lock);
	INIT_LIST_HEAD(&origin->ears);
}

/**
 * rashpa_origin_join() - listen
 * @origin: to what
 * @ear: its @hear is set
 * @most: ears that the origin may have then
 *
 * Return: 0, -ENOSPC if too many listen already.
 */
int rashpa_origin_join(struct rashpa_origin *origin, struct rashpa_ear *ear, u32 most)
{
	int err = 0;

	spin_lock_irq(&origin->lock);
	if (origin->n_ears < most) {
		origin->n_ears++;
		ear->origin = origin;
		list_add_tail(&ear->entry, &origin->ears);
	} else {
		err = -ENOSPC;
	}
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
	u64 time;

	spin_lock_irqsave(&origin->lock, flags);
	time = ktime_get_ns();
	origin->sequence++;
	list_for_each_entry(ear, &origin->ears, entry)
		ear->hear(ear, origin->sequence, time, value);
	spin_unlock_irqrestore(&origin->lock, flags);
}
