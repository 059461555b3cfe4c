/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event channels, and what they are made of.
 *
 * Locks, their order in core/call.h:
 *
 *   rashpa_channel.sources_lock	table of its sources and groups, against other ioctls
 *   rashpa_channel.tell_lock	one thing of a channel is told at a time (soft interrupt)
 *   rashpa_channel.lock	queue of one channel, its sources' counters, watched words,
 *			groups and eventfds (hard interrupt). Loops under it are bounded:
 *			what may be long lets others in between
 *   rashpa_channel.read_lock	one reader at a time
 *
 * How many wait, and for how many eventfds, is up to users. An interrupt only queues records and
 * notes which readers to wake. A tasklet wakes them later, with interrupts on, see
 * rashpa_channel_tell_soon().
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

/* signals that an eventfd may be behind: where signalling takes longer than events take to come */
#define RASHPA_OWED_MAX		65536

struct rashpa_channel;

/* --------------------------------------------- events/notify.c --- */

/**
 * struct rashpa_notifier - an eventfd that is signalled for each event
 * @channel: whose lock protects the rest
 * @entry: in rashpa_channel.notifiers or, if it is to be signalled, in rashpa_channel.due
 * @ctx: the eventfd; one reference
 * @owed: signals that are due
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
 * struct rashpa_watch - a word of memory and what it is waited for
 * @dmabuf: the memory; one reference
 * @word: in the kernel's own mapping; hardware and users write it at any time
 * @bits: 32 or 64
 * @condition: enum rashpa_condition
 * @mask: bits that count
 * @value: of the condition
 * @step: see RASHPA_CONDITION_REACHED
 * @counter: 32 bits that wrap, for positions of 64
 * @most: greatest position that there can be
 * @last: position of the word at the last look
 * @held: EQUAL, REACHED without a step: the condition held at the last look
 * @ended: REACHED: there is no next value
 * @listener: whose it is
 * @timer: with RASHPA_SOURCE_POLL
 * @polled: it is looked at by @timer
 * @period: asked for, nanoseconds
 * @period_now: stretched to keep the budget
 * @budget: thousandths of a CPU
 * @cost: of a look, nanoseconds, averaged
 * @looks: so far
 * @look_ns: time they took
 * @since: when it began
 * @charge: of the timer
 *
 * Protected by the channel's lock.
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
	u64 most;
	u64 last;
	bool held;
	bool ended;
	struct rashpa_listener *listener;
	struct hrtimer timer;
	bool polled;
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
void rashpa_watch_again(struct rashpa_watch *w);
void rashpa_watch_free(struct rashpa_watch *w);
rashpa_handler rashpa_ioc_look;

/* ---------------------------------------------- events/group.c --- */

struct rashpa_group;

/**
 * struct rashpa_membership - a source as a member of a group
 * @group: the group
 * @listener: the source
 * @judged: no position up to this one can become an overrun any more
 * @overruns: stacks that lapped the consumer
 * @time: of its last event
 *
 * Its position is in rashpa_group.least. Protected by the channel's lock.
 */
struct rashpa_membership {
	struct rashpa_group *group;
	struct rashpa_listener *listener;
	u64 judged;
	u64 overruns;
	u64 time;
};

/**
 * struct rashpa_group - a group
 * @listener: its place in the channel: id, lost, eventfd
 * @slots: see &struct rashpa_group_make
 * @full: likewise, 0: not looked at
 * @position: that all members have reached
 * @least: a tree: the children of i are at 2 i and 2 i + 1, each is the least of both; the
 *	positions of members begin at @width
 * @width: a power of two, at least @n
 * @n: members
 * @member: the members
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
 * struct rashpa_listener - one source, or one group, of one channel
 * @ear: listens to its origin; not for software, polled words and groups
 * @channel: where records go
 * @dev: function of the source, one reference; or NULL
 * @guest: @dev is not the channel's function, and counts it
 * @id: in records, from 1 on; used again when it is free
 * @kind: enum rashpa_source
 * @index: vector, map
 * @quiet: events make no records, only @notifier is signalled
 * @one_shot: rests after each event until it is armed
 * @rests: it does (channel lock)
 * @missed: its origin has fired meanwhile (channel lock)
 * @condition: is what its origin reports an event of this source? Called with the channel lock
 *	held, and may replace the value. NULL: each is one
 * @watch: of a lock slot, or NULL
 * @group: of a group, or NULL
 * @membership: in a group, or NULL (sources_lock and channel lock)
 * @sequence: of events that no origin counts (channel lock)
 * @time: of the last one (channel lock)
 * @events: since it was added (channel lock)
 * @value: of the last one (channel lock)
 * @lost: records that found no room (channel lock)
 * @notifier: signalled as well, or NULL (channel lock)
 * @charge: of the source
 */
struct rashpa_listener {
	struct rashpa_ear ear;
	struct rashpa_channel *channel;
	struct rashpa_device *dev;
	bool guest;
	u32 id;
	u32 kind;
	u32 index;
	bool quiet;
	bool one_shot;
	bool rests;
	bool missed;
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
 * struct rashpa_channel - a queue of records
 * @dev: the function, one reference; or NULL: then it has no end
 * @end: listens to the end of @dev
 * @sources_lock: protects @listeners and @software against concurrent ioctls
 * @listeners: by id - 1
 * @n_sources: how many there can be
 * @software: the one of kind SOFTWARE, or NULL
 * @read_lock: one reader at a time, so that a record is taken only when it has
 *	arrived in user memory
 * @tell_lock: one thing is told at a time: who finds nothing to tell knows that it is told
 * @teller: tells what interrupts have left to it
 * @lock: protects everything below, listeners and groups; hard interrupt context
 * @head: records queued since the channel was made
 * @tail: how far the consumer was when it was last asked
 * @gone: the function was removed
 * @news: there is something that readers were not told of
 * @notifier: for all sources, or NULL
 * @notifiers: this one and those of its sources, but for
 * @due: those to be signalled, the next one first
 * @wait: readers
 * @depth: of the queue
 * @mask: of @records, a power of two minus one
 * @ring: the queue as users see it, read-only for them
 * @records: in @ring
 * @ring_size: bytes of @ring, whole pages
 * @consumer: what users write: untrusted
 * @consumer_size: bytes of @consumer, whole pages
 * @charge: of the channel and its queue
 */
struct rashpa_channel {
	struct rashpa_device *dev;
	struct rashpa_ear end;
	struct mutex sources_lock;	/* listeners, software */
	struct rashpa_listener **listeners;
	u32 n_sources;
	struct rashpa_listener *software;
	struct mutex read_lock;		/* one reader at a time */
	spinlock_t tell_lock;		/* telling; soft interrupt */
	struct tasklet_struct teller;
	spinlock_t lock;		/* the queue; hard interrupt */
	u64 head;
	u64 tail;
	bool gone;
	bool news;
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

/* For traces, and who asks who holds what: N of the channel's function, if it has one. */
static inline s32 rashpa_channel_fpga(const struct rashpa_channel *ch)
{
	return ch->dev ? ch->dev->id : RASHPA_NO_DEVICE;
}

/* ----------------------------------------------- events/ring.c --- */

int rashpa_ring_init(struct rashpa_call *call, struct rashpa_channel *ch, u32 depth);
int rashpa_ring_mmap(struct file *file, struct vm_area_struct *vma);

/**
 * rashpa_ring_used() - records that the consumer has not taken
 * @ch: the channel, its lock held
 *
 * Return: their number, at most the depth, also where the tail is nonsense.
 */
static inline u64 rashpa_ring_used(struct rashpa_channel *ch)
{
	/* pairs with the consumer's release: what it has read may be overwritten */
	u64 used = ch->head - smp_load_acquire(&ch->consumer->tail);

	lockdep_assert_held(&ch->lock);
	return min3(used, (u64)ch->depth, ch->head);
}

/**
 * rashpa_ring_room() - is there room for one more record?
 * @ch: the channel, its lock held
 *
 * The consumer's page is another CPU's: it is read only when what was known of it does not do.
 *
 * Return: whether there is.
 */
static inline bool rashpa_ring_room(struct rashpa_channel *ch)
{
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
void rashpa_channel_tell_soon(struct rashpa_channel *ch);
void rashpa_channel_tell(struct rashpa_channel *ch);
int rashpa_channel_check(struct rashpa_call *call, struct rashpa_channel *ch);
struct rashpa_listener *rashpa_source_find(struct rashpa_channel *ch, u32 id);
int rashpa_listener_place(struct rashpa_call *call, struct rashpa_channel *ch,
			  struct rashpa_listener *l);
void rashpa_listener_displace(struct rashpa_channel *ch, struct rashpa_listener *l);

/* --------------------------------------------- events/source.c --- */

void rashpa_channel_leave(struct rashpa_device *dev);
void rashpa_listener_free(struct rashpa_listener *l);
rashpa_handler rashpa_ioc_source_add, rashpa_ioc_source_del, rashpa_ioc_signal, rashpa_ioc_arm,
	rashpa_ioc_source_info;

#endif /* RASHPA_EVENTS_H */
