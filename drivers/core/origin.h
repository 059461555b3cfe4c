/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Origins of events, and their subscribers. An origin knows only the callbacks of its subscribers.
 */
#ifndef RASHPA_ORIGIN_H
#define RASHPA_ORIGIN_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct rashpa_call;
struct rashpa_user;

/**
 * struct rashpa_origin - origin of events: a vector, a function, the maps of one, a memory
 * @lock: protects all fields; taken in hard interrupt context
 * @sequence: events so far
 * @subscribers: list of &struct rashpa_subscriber
 * @n_subscribers: their number, bounded because each takes time in the interrupt
 * @n_shared: number of subscribers without CAP_SYS_RESOURCE
 * @hard: events come in hard interrupt context
 * @mask: called with @lock held: true when no subscriber needs the next event, false when one
 *	needs it again; or NULL
 * @masked: last argument of @mask
 */
struct rashpa_origin {
	spinlock_t lock;		/* all fields; hard interrupt */
	u64 sequence;
	struct list_head subscribers;
	u32 n_subscribers;
	u32 n_shared;
	bool hard;
	void (*mask)(struct rashpa_origin *origin, bool mask);
	bool masked;
};

/**
 * struct rashpa_subscriber - receiver of the events of an origin
 * @entry: in rashpa_origin.subscribers, protected by its lock
 * @origin: origin that it subscribes to, or NULL
 * @user: user that is charged; NULL with CAP_SYS_RESOURCE
 * @notify: called for each event, with the lock of the origin held and interrupts off. Returns
 *	whether it needs the next event
 */
struct rashpa_subscriber {
	struct list_head entry;
	struct rashpa_origin *origin;
	const struct rashpa_user *user;
	bool (*notify)(struct rashpa_subscriber *subscriber, u64 sequence, u64 time, u64 value);
};

void rashpa_origin_init(struct rashpa_origin *origin);
void rashpa_origin_add(struct rashpa_origin *origin, struct rashpa_subscriber *subscriber);
int rashpa_origin_join(struct rashpa_call *call, struct rashpa_origin *origin,
		       struct rashpa_subscriber *subscriber);
void rashpa_origin_leave(struct rashpa_subscriber *subscriber);
void rashpa_origin_unmask(struct rashpa_origin *origin);
void rashpa_origin_end(struct rashpa_origin *origin);
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value);

#endif /* RASHPA_ORIGIN_H */
