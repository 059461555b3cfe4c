/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event channels: structs and locks. core/call.h has the order of the locks.
 *
 *   rashpa_channel.sources_lock	table of sources and groups, their life; process context
 *   rashpa_channel.wake_lock	one wake-up at a time, so that a caller which finds none left
 *				knows that all are done; soft interrupt context
 *   rashpa_channel.lock	queue, counters of sources, words, groups, eventfds; hard
 *				interrupt context. Each holder does a bounded amount of work
 *   rashpa_channel.read_lock	one reader at a time; process context
 *
 * Users decide how many tasks and eventfds wait. So an interrupt only queues records and marks the
 * waiters; a tasklet wakes them with interrupts on, see rashpa_channel_wake_later(). The exception
 * is one waiter of one eventfd, without a record, see rashpa_origin_signal().
 */
#ifndef RASHPA_EVENTS_H
#define RASHPA_EVENTS_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/poll.h>
#include <linux/wait.h>

#include "core/compat.h"
#include "core/origin.h"
#include "function/function.h"

struct rashpa_channel;
struct rashpa_listener;

/* --------------------------------------------- events/notify.c --- */

/* An eventfd that is signalled for each event. The channel's lock protects @entry and @owed. */
struct rashpa_notifier {
	struct rashpa_channel *channel;
	struct list_head entry;		/* in channel->due with due signals, else in ->notifiers */
	struct rashpa_direct direct;	/* eventfd, with one reference */
	poll_table poll;		/* reports the waiters of the eventfd, once */
	u32 owed;			/* number of signals that are due */
};

void rashpa_notifier_free(struct rashpa_notifier *n);
void rashpa_listener_direct(struct rashpa_listener *l);
rashpa_handler rashpa_ioc_eventfd;

/* ---------------------------------------------- events/watch.c --- */

/*
 * Word of memory with a condition. The channel's lock protects each start of @timer and the fields
 * marked (lock). The rest is set before the source gets its first event.
 */
struct rashpa_watch {
	struct dma_buf *dmabuf;		/* memory; one reference */
	const void *word;		/* in the kernel's mapping; devices and users write it */
	struct page *page;		/* page of @word that the kernel marks at a memory error */
	u32 bits;			/* 32 or 64 */
	u32 condition;			/* enum rashpa_condition */
	u64 mask;			/* bits that count */
	u64 value;			/* next value of the condition (lock) */
	u64 step;			/* see RASHPA_CONDITION_REACHED */
	bool counter;			/* its lowest bits count, its position has 64 */
	u64 max;			/* greatest possible position */
	u64 last;			/* position at the last check (lock) */
	bool held;			/* EQUAL, REACHED once: true at the last check (lock) */
	bool ended;			/* REACHED: no next value exists (lock) */
	struct rashpa_listener *listener;	/* source */
	struct hrtimer timer;		/* with RASHPA_SOURCE_POLL */
	u64 period;			/* requested nanoseconds */
	u64 period_now;			/* nanoseconds, longer where the budget needs it (lock) */
	u32 budget;			/* thousandths of a CPU, 0 without @timer */
	u64 cost;			/* moving average of the nanoseconds of a check (lock) */
	u64 looks;			/* number of checks by @timer (lock) */
	u64 look_ns;			/* their time (lock) */
	u64 since;			/* time of creation */
	struct rashpa_charge charge;	/* for the timer */
};

int rashpa_watch_new(struct rashpa_call *call, const struct rashpa_source_add *add, s32 device,
		     struct rashpa_watch **to);
bool rashpa_watch_look(struct rashpa_listener *l, u64 *value);
void rashpa_watch_start(struct rashpa_watch *w);
void rashpa_watch_free(struct rashpa_watch *w);
rashpa_handler rashpa_ioc_look;

/* ---------------------------------------------- events/group.c --- */

struct rashpa_group;

/*
 * Source as a member of a group. rashpa_group.least has the position. The channel's lock protects
 * the last three fields.
 */
struct rashpa_membership {
	struct rashpa_group *group;
	struct rashpa_listener *listener;
	u64 counted;			/* overruns up to here were counted, or cannot be */
	u64 overruns;			/* stacks that lapped the consumer */
	u64 time;			/* time of the last event */
};

/* Group of sources; (lock): the channel's lock protects it. */
struct rashpa_group {
	/* entry in the channel's table: id, lost records, eventfd */
	struct rashpa_listener *listener;
	u64 slots;			/* see &struct rashpa_group_make */
	u64 full;			/* the same; 0: not checked */
	u64 position;			/* minimum of the positions of all members (lock) */
	/*
	 * tree (lock): element i is the minimum of its children 2 i and 2 i + 1; positions of
	 * members begin at @width
	 */
	u64 *least;
	u32 width;			/* power of two, at least @n */
	u32 n;				/* number of members */
	struct rashpa_membership member[];
};

void rashpa_group_end(struct rashpa_listener *l);
rashpa_handler rashpa_ioc_group, rashpa_ioc_ack, rashpa_ioc_group_info;

/* -------------------------------------------- events/channel.c --- */

/*
 * Source or group of a channel. The channel's lock protects the fields marked (lock). The others
 * are set before the first event.
 */
struct rashpa_listener {
	struct rashpa_subscriber subscriber;	/* not for software, polled words and groups */
	struct rashpa_channel *channel;
	struct rashpa_device *dev;	/* its function, one reference; or NULL */
	bool holds_dev;			/* @dev is not the channel's, and the source holds it */
	u32 id;				/* in records, from 1 on; reused after the end */
	u32 kind;			/* enum rashpa_source */
	u32 index;			/* vector or map */
	bool quiet;			/* events only signal @notifier, and make no records */
	bool one_shot;			/* each event disarms the source */
	bool disarmed;			/* no event before RASHPA_IOC_ARM (lock) */
	bool pending;			/* the origin has fired meanwhile (lock) */
	/*
	 * With the channel's lock held: is this event of the origin one of the source? It may
	 * replace @value. NULL: each event is one
	 */
	bool (*condition)(struct rashpa_listener *l, u64 *value);
	struct rashpa_watch *watch;	/* LOCK: the word; or NULL */
	struct rashpa_group *group;	/* GROUP: the group; or NULL */
	struct rashpa_membership *membership;	/* or NULL (sources_lock and lock) */
	u64 time;			/* time of the last event (lock) */
	u64 events;			/* events since creation (lock); struct rashpa_direct */
	u64 value;			/* value of the last event (lock) */
	u64 lost;			/* records that found no room (lock) */
	struct rashpa_notifier *notifier;	/* eventfd, or NULL (lock) */
	struct rashpa_charge charge;
};

/* Queue of records. @lock protects the fields from @head to @due, listeners and groups. */
struct rashpa_channel {
	struct rashpa_device *dev;	/* one reference; NULL: belongs to none, never ends */
	struct rashpa_subscriber end;	/* subscription to the end of @dev */
	struct mutex sources_lock;	/* @listeners and @software */
	struct rashpa_listener **listeners;	/* sources and groups by id - 1 */
	u32 n_sources;			/* size of @listeners */
	struct rashpa_listener *software;	/* source of kind SOFTWARE, or NULL */
	struct mutex read_lock;		/* one reader: read() takes a record after it was copied */
	spinlock_t wake_lock;		/* one wake-up at a time; soft interrupt */
	struct tasklet_struct waker;	/* wakes readers and signals eventfds */
	spinlock_t lock;		/* hard interrupt */
	u64 head;			/* records queued since the channel was made */
	u64 tail;			/* last known position of the consumer */
	bool gone;			/* the function was removed */
	bool new_records;		/* readers were not woken for the last records */
	struct rashpa_notifier *notifier;	/* eventfd for all sources, or NULL */
	struct list_head notifiers;	/* eventfds without due signals */
	struct list_head due;		/* eventfds with due signals, in their order */
	wait_queue_head_t wait;		/* readers */
	u32 depth;			/* records that the queue holds */
	u32 mask;			/* elements of @records, a power of two, minus one */
	struct rashpa_ring *ring;	/* the queue as users map it read-only */
	struct rashpa_event *records;	/* in @ring */
	size_t ring_size;		/* bytes of @ring, whole pages */
	struct rashpa_consumer *consumer;	/* untrusted: users write it */
	size_t consumer_size;		/* the same of @consumer */
	struct rashpa_charge charge;
};

extern const struct file_operations rashpa_channel_fops;
rashpa_handler rashpa_ioc_channel;

/* N of the channel's function, for traces and charges. */
static inline s32 rashpa_channel_fpga(const struct rashpa_channel *ch)
{
	return ch->dev ? ch->dev->id : RASHPA_NO_DEVICE;
}

/* ----------------------------------------------- events/ring.c --- */

int rashpa_ring_init(struct rashpa_call *call, struct rashpa_channel *ch, u32 depth);
int rashpa_ring_mmap(struct file *file, struct vm_area_struct *vma);

/* Records that the consumer has not taken: at most the depth, also if the tail is invalid. */
static inline u64 rashpa_ring_used(struct rashpa_channel *ch)
{
	/* pairs with the consumer's release: it has read the records before the tail */
	u64 used = ch->head - smp_load_acquire(&ch->consumer->tail);

	lockdep_assert_held(&ch->lock);
	return min3(used, (u64)ch->depth, ch->head);
}

/*
 * Is there room for one more record? The consumer's page is in another CPU's cache: read it only if
 * the last known tail leaves no room.
 */
static inline bool rashpa_ring_room(struct rashpa_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	if (ch->head - ch->tail >= ch->depth)
		ch->tail = ch->head - rashpa_ring_used(ch);
	return ch->head - ch->tail < ch->depth;
}

/* ---------------------------------------------- events/queue.c --- */

#define RASHPA_SEQUENCE_OWN	0	/* origins begin with 1 */

void rashpa_queue_init(struct rashpa_channel *ch);
u64 rashpa_member_position(const struct rashpa_membership *m);
void rashpa_member_advance(struct rashpa_membership *m, u64 time, u64 position);
u64 rashpa_group_ack(const struct rashpa_group *g);
void rashpa_listener_event(struct rashpa_listener *l, u64 sequence, u64 time, u64 value);
bool rashpa_listener_fire(struct rashpa_listener *l, u64 sequence, u64 time, u64 value);
void rashpa_channel_wake_later(struct rashpa_channel *ch);
void rashpa_channel_wake(struct rashpa_channel *ch);
int rashpa_channel_check(struct rashpa_call *call, struct rashpa_channel *ch);
struct rashpa_listener *rashpa_source_find(struct rashpa_call *call, struct rashpa_channel *ch,
					   u32 id);
int rashpa_listener_id_get(struct rashpa_call *call, struct rashpa_channel *ch,
			   struct rashpa_listener *l);
void rashpa_listener_id_put(struct rashpa_channel *ch, struct rashpa_listener *l);

/* --------------------------------------------- events/source.c --- */

void rashpa_channel_leave(struct rashpa_device *dev);
void rashpa_listener_free(struct rashpa_listener *l);
rashpa_handler rashpa_ioc_source_add, rashpa_ioc_source_del, rashpa_ioc_signal, rashpa_ioc_arm,
	rashpa_ioc_source_info;

#endif /* RASHPA_EVENTS_H */
