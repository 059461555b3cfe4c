/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Origins of events, and their subscribers. An origin knows only the callbacks of its subscribers.
 */
#ifndef RASHPA_ORIGIN_H
#define RASHPA_ORIGIN_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/wait.h>

/* subscribers without CAP_SYS_RESOURCE: at a vector, at another origin; one user: half of it */
#define RASHPA_LISTENERS_VECTOR	64
#define RASHPA_LISTENERS_USER	256
#define RASHPA_LISTENERS_MAX	2048	/* all subscribers */

struct rashpa_call;
struct rashpa_user;

/* An eventfd that the interrupt of a vector signals itself, and the count of its events. */
struct rashpa_direct {
	struct eventfd_ctx *ctx;
	const wait_queue_head_t *waiters;	/* wait queue of @ctx */
	u64 *events;			/* number of events */
};

/* Origin of events: a vector, a function, the maps of one, a memory. */
struct rashpa_origin {
	spinlock_t lock;		/* all fields but @hard; hard interrupt */
	u64 sequence;			/* events so far; of a vector: its interrupt writes it */
	/* eventfd of the only subscriber, or NULL; interrupts of a vector read it under RCU */
	struct rashpa_direct __rcu *direct;
	struct list_head subscribers;
	u32 n_subscribers;		/* bounded, because each takes time in the interrupt */
	u32 n_shared;			/* subscribers without CAP_SYS_RESOURCE */
	bool hard;			/* events come in hard interrupt context; constant */
	/*
	 * Called with the lock held: true when no subscriber needs the next event, false when one
	 * needs it again; or NULL.
	 */
	void (*mask)(struct rashpa_origin *origin, bool mask);
	bool masked;			/* last argument of @mask */
};

/* Receiver of the events of an origin. */
struct rashpa_subscriber {
	struct list_head entry;		/* in rashpa_origin.subscribers, protected by its lock */
	/* origin that it subscribes to, or NULL; its owner alone joins and leaves */
	struct rashpa_origin *origin;
	/* charged user; NULL with CAP_SYS_RESOURCE; set before it joins, as @notify */
	const struct rashpa_user *user;
	struct rashpa_direct *direct;	/* replaces @notify while no one else subscribes; or NULL */
	/*
	 * Called for each event, with the lock of the origin held and interrupts off. Returns
	 * whether the subscriber needs the next event.
	 */
	bool (*notify)(struct rashpa_subscriber *subscriber, u64 sequence, u64 time, u64 value);
};

void rashpa_origin_init(struct rashpa_origin *origin);
int rashpa_origin_join(struct rashpa_call *call, struct rashpa_origin *origin,
		       struct rashpa_subscriber *subscriber);
void rashpa_origin_leave(struct rashpa_subscriber *subscriber);
void rashpa_origin_direct(struct rashpa_subscriber *subscriber, struct rashpa_direct *direct);
void rashpa_origin_mask(struct rashpa_origin *origin, bool mask);
void rashpa_origin_end(struct rashpa_origin *origin);
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value);
bool rashpa_origin_signal(struct rashpa_origin *origin);

#endif /* RASHPA_ORIGIN_H */
