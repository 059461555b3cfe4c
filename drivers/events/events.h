/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event channels: structs and locks. core/call.h has the order of the locks.
 *
 *   rashpa_channel.sources_lock	table of sources and groups, their life; process context
 *   rashpa_channel.wake_lock	one wake-up at a time; soft interrupt context
 *   rashpa_channel.lock	queue, counters of sources, words, groups, eventfds; hard
 *				interrupt context. Each holder does a bounded amount of work
 *   rashpa_channel.read_lock	one reader at a time; process context
 *
 * Users decide how many tasks and eventfds wait. So an interrupt only queues records and marks the
 * waiters; a tasklet wakes them with interrupts on, see rashpa_channel_wake_later().
 */
#ifndef RASHPA_EVENTS_H
#define RASHPA_EVENTS_H

#include <linux/eventfd.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/wait.h>

#include "core/compat.h"
#include "core/origin.h"
#include "function/function.h"

/* signals due to one eventfd: a limit for eventfds that are slower than the events */
#define RASHPA_OWED_MAX		65536

struct rashpa_channel;

/* --------------------------------------------- events/notify.c --- */

/**
 * struct rashpa_notifier - an eventfd that is signalled for each event
 * @channel: channel; its lock protects @entry and @owed, the rest never changes
 * @entry: in rashpa_channel.due while signals are due, else in rashpa_channel.notifiers
 * @ctx: eventfd; one reference
 * @owed: number of signals that are due
 */
struct rashpa_notifier {
	struct rashpa_channel *channel;
	struct list_head entry;
	struct eventfd_ctx *ctx;
	u32 owed;
};

void rashpa_notifier_free(struct rashpa_notifier *n);
rashpa_handler rashpa_ioc_eventfd;

/* ---------------------------------------------- events/watch.c --- */

struct rashpa_listener;

/**
 * struct rashpa_watch - word of memory with a condition
 * @dmabuf: memory; one reference
 * @word: address in the kernel's mapping; devices and users write it at any time
 * @bits: 32 or 64
 * @condition: enum rashpa_condition
 * @mask: bits that count
 * @value: next value of the condition
 * @step: see RASHPA_CONDITION_REACHED
 * @counter: the word is a counter of 32 bits, and its position has 64
 * @max: greatest possible position
 * @last: position at the last check
 * @held: EQUAL, REACHED without a step: the condition was true at the last check
 * @ended: REACHED: no next value exists
 * @listener: source
 * @timer: with RASHPA_SOURCE_POLL
 * @period: requested nanoseconds
 * @period_now: nanoseconds, longer than @period where the budget needs it
 * @budget: thousandths of a CPU, 0 if @timer is not in use
 * @cost: moving average of the nanoseconds of a check
 * @looks: number of checks by @timer
 * @look_ns: their time
 * @since: time of creation
 * @charge: charge for the timer
 *
 * The channel's lock protects @value, @last, @held, @ended, @period_now, @cost, @looks, @look_ns
 * and each start of @timer. The rest is set before the source gets its first event.
 */
struct rashpa_watch {
	struct dma_buf *dmabuf;
	const void *word;
	u32 bits;
	u32 condition;
	u64 mask;
	u64 value;
	u64 step;
	bool counter;
	u64 max;
	u64 last;
	bool held;
	bool ended;
	struct rashpa_listener *listener;
	struct hrtimer timer;
	u64 period;
	u64 period_now;
	u32 budget;
	u64 cost;
	u64 looks;
	u64 look_ns;
	u64 since;
	struct rashpa_charge charge;
};

struct rashpa_watch *rashpa_watch_new(struct rashpa_call *call,
				      const struct rashpa_source_add *add, s32 device);
bool rashpa_watch_look(struct rashpa_listener *l, u64 *value);
void rashpa_watch_start(struct rashpa_watch *w);
void rashpa_watch_rearm(struct rashpa_watch *w);
void rashpa_watch_free(struct rashpa_watch *w);
rashpa_handler rashpa_ioc_look;

/* ---------------------------------------------- events/group.c --- */

struct rashpa_group;

/**
 * struct rashpa_membership - source as a member of a group
 * @group: the group
 * @listener: the source
 * @counted: positions up to this one were counted as overruns or cannot become one
 * @overruns: stacks that lapped the consumer
 * @time: time of the last event
 *
 * rashpa_group.least has the position. The channel's lock protects the last three fields.
 */
struct rashpa_membership {
	struct rashpa_group *group;
	struct rashpa_listener *listener;
	u64 counted;
	u64 overruns;
	u64 time;
};

/**
 * struct rashpa_group - group
 * @listener: entry of the channel's table: id, lost records, eventfd
 * @slots: see &struct rashpa_group_make
 * @full: see &struct rashpa_group_make; 0: not checked
 * @position: minimum of the positions of all members (channel lock)
 * @least: tree (channel lock): element i is the minimum of its children 2 i and 2 i + 1, and
 *	the positions of the members begin at @width
 * @width: power of two, at least @n
 * @n: number of members
 * @member: members
 */
struct rashpa_group {
	struct rashpa_listener *listener;
	u64 slots;
	u64 full;
	u64 position;
	u64 *least;
	u32 width;
	u32 n;
	struct rashpa_membership member[];
};

void rashpa_group_end(struct rashpa_listener *l);
rashpa_handler rashpa_ioc_group, rashpa_ioc_ack, rashpa_ioc_group_info;

/* -------------------------------------------- events/channel.c --- */

/**
 * struct rashpa_listener - source or group of a channel
 * @subscriber: subscription to an origin; not for software, polled words and groups
 * @channel: channel of the records
 * @dev: function of the source, one reference; or NULL
 * @holds_dev: @dev is not the channel's function, and the source holds it
 * @id: id in records, from 1 on; reused after the end
 * @kind: enum rashpa_source
 * @index: vector or map
 * @quiet: events only signal @notifier, and make no records
 * @one_shot: each event disarms the source
 * @disarmed: no event before RASHPA_IOC_ARM (channel lock)
 * @pending: the origin has fired meanwhile (channel lock)
 * @condition: decides whether an event of the origin is one of this source, and may replace its
 *	value; called with the channel's lock held. NULL: each event is one
 * @watch: LOCK: the word; or NULL
 * @group: GROUP: the group; or NULL
 * @membership: membership in a group, or NULL (sources_lock and channel lock)
 * @sequence: number of events, for sources that count their own (channel lock)
 * @time: time of the last event (channel lock)
 * @events: events since creation (channel lock)
 * @value: value of the last event (channel lock)
 * @lost: records that found no room (channel lock)
 * @notifier: eventfd of this source, or NULL (channel lock)
 * @charge: charge for the source
 *
 * Fields without a lock are set before the first event.
 */
struct rashpa_listener {
	struct rashpa_subscriber subscriber;
	struct rashpa_channel *channel;
	struct rashpa_device *dev;
	bool holds_dev;
	u32 id;
	u32 kind;
	u32 index;
	bool quiet;
	bool one_shot;
	bool disarmed;
	bool pending;
	bool (*condition)(struct rashpa_listener *l, u64 *value);
	struct rashpa_watch *watch;
	struct rashpa_group *group;
	struct rashpa_membership *membership;
	u64 sequence;
	u64 time;
	u64 events;
	u64 value;
	u64 lost;
	struct rashpa_notifier *notifier;
	struct rashpa_charge charge;
};

/**
 * struct rashpa_channel - queue of records
 * @dev: function, one reference; NULL: the channel belongs to none, and never ends
 * @end: subscription to the end of @dev
 * @sources_lock: protects @listeners and @software
 * @listeners: sources and groups by id - 1
 * @n_sources: size of @listeners
 * @software: source of kind SOFTWARE, or NULL
 * @read_lock: keeps readers apart, so that read() takes a record after it was copied
 * @wake_lock: keeps wake-ups apart, so that a caller which finds none left knows that all are done
 * @waker: tasklet that wakes readers and signals eventfds
 * @lock: protects the queue from @head to @notifiers, @due, listeners and groups
 * @head: records queued since the channel was made
 * @tail: last known position of the consumer
 * @gone: the function was removed
 * @new_records: readers were not woken for the last records
 * @notifier: eventfd for all sources, or NULL
 * @notifiers: eventfds without due signals
 * @due: eventfds with due signals, in their order
 * @wait: readers
 * @depth: records that the queue holds
 * @mask: number of elements of @records, a power of two, minus one
 * @ring: the queue as users map it read-only
 * @records: in @ring
 * @ring_size: bytes of @ring, whole pages
 * @consumer: position of the consumer; users write it, so it is untrusted
 * @consumer_size: bytes of @consumer, whole pages
 * @charge: charge for the channel and its queue
 */
struct rashpa_channel {
	struct rashpa_device *dev;
	struct rashpa_subscriber end;
	struct mutex sources_lock;	/* listeners, software */
	struct rashpa_listener **listeners;
	u32 n_sources;
	struct rashpa_listener *software;
	struct mutex read_lock;		/* one reader at a time */
	spinlock_t wake_lock;		/* wake-ups; soft interrupt */
	struct tasklet_struct waker;
	spinlock_t lock;		/* the queue; hard interrupt */
	u64 head;
	u64 tail;
	bool gone;
	bool new_records;
	struct rashpa_notifier *notifier;
	struct list_head notifiers;
	struct list_head due;
	wait_queue_head_t wait;
	u32 depth;
	u32 mask;
	struct rashpa_ring *ring;
	struct rashpa_event *records;
	size_t ring_size;
	struct rashpa_consumer *consumer;
	size_t consumer_size;
	struct rashpa_charge charge;
};

rashpa_handler rashpa_ioc_channel, rashpa_ioc_fpga_channel;

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
