/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What events come from, and who hears of them. Who fires knows nothing of who listens.
 */
#ifndef RASHPA_ORIGIN_H
#define RASHPA_ORIGIN_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct rashpa_call;
struct rashpa_user;

/**
 * struct rashpa_origin - something that events come from
 * @lock: protects all fields; hard interrupt context
 * @sequence: events so far
 * @ears: who listens
 * @n_ears: their number, bounded: each costs time in the interrupt
 * @n_shared: those of users
 * @hard: it fires in a hard interrupt: each of them takes time of everybody
 * @rest: called with the lock held when nobody who listens wants to hear of it, with true, and
 *	when somebody does again, with false; or NULL
 * @rests: nobody does
 */
struct rashpa_origin {
	spinlock_t lock;		/* all fields; hard interrupt */
	u64 sequence;
	struct list_head ears;
	u32 n_ears;
	u32 n_shared;
	bool hard;
	void (*rest)(struct rashpa_origin *origin, bool rest);
	bool rests;
};

/**
 * struct rashpa_ear - somebody who listens to an origin
 * @entry: in rashpa_origin.ears (its lock)
 * @origin: what it listens to, NULL for nothing
 * @user: whose it is; NULL with CAP_SYS_RESOURCE
 * @hear: called for each event, with the lock of the origin held and interrupts off. Returns
 *	whether it wants to hear of the next one: if nobody does, there need not be one
 */
struct rashpa_ear {
	struct list_head entry;
	struct rashpa_origin *origin;
	const struct rashpa_user *user;
	bool (*hear)(struct rashpa_ear *ear, u64 sequence, u64 time, u64 value);
};

void rashpa_origin_init(struct rashpa_origin *origin);
void rashpa_origin_add(struct rashpa_origin *origin, struct rashpa_ear *ear);
int rashpa_origin_join(struct rashpa_call *call, struct rashpa_origin *origin,
		       struct rashpa_ear *ear);
void rashpa_origin_leave(struct rashpa_ear *ear);
void rashpa_origin_wake(struct rashpa_origin *origin);
void rashpa_origin_end(struct rashpa_origin *origin);
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value);

#endif /* RASHPA_ORIGIN_H */
