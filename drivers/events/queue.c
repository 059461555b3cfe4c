// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: delivery of events: queue a record, advance the group, wake readers, signal eventfds.
 *
 * An event of a member advances its group in the interrupt, with the channel's lock held. Members
 * of a group are sources of the same channel. A source is a member of one group at most, and a
 * group is no member. So an event costs one walk from a leaf of the group's tree to its root, and
 * at most one event of the group.
 */
#include <linux/nospec.h>

#include "core/trace.h"
#include "events/events.h"

/* signals due to one eventfd: a limit for eventfds that are slower than the events */
#define RASHPA_OWED_MAX		65536
/* signals of one run of the tasklet, which then lets other tasklets run */
#define RASHPA_WAKE_BATCH	16
/* signals of one call: enough for each eventfd of the channel */
#define RASHPA_WAKE_MAX	(2 * RASHPA_SOURCES_MAX)

/* --------------------------------------------------------- eventfds --- */

/* The tasklet signals the eventfd, because each of its waiters takes time. */
static void rashpa_notify(struct rashpa_notifier *n)
{
	lockdep_assert_held(&n->channel->lock);
	if (!n->owed)
		list_move_tail(&n->entry, &n->channel->due);
	n->owed += n->owed < RASHPA_OWED_MAX;
}

/* ---------------------------------------------------------- delivery ---- */

/* If there is no room, the new record is lost and counted. */
static void rashpa_channel_queue(struct rashpa_listener *l, u32 kind, u64 sequence, u64 time,
				 u64 value)
{
	struct rashpa_channel *ch = l->channel;

	lockdep_assert_held(&ch->lock);
	if (rashpa_ring_room(ch)) {
		ch->records[ch->head & ch->mask] = (struct rashpa_event) {
			.sequence = sequence,
			.time_ns = time,
			.source = l->id,
			.kind = kind,
			.value = value,
			.lost = l->lost,
		};
		WRITE_ONCE(ch->head, ch->head + 1);
		ch->new_records = true;
		/* a consumer that maps the ring sees the record before the new head */
		smp_store_release(&ch->ring->head, ch->head);
	} else {
		l->lost++;
		WRITE_ONCE(ch->ring->lost, ch->ring->lost + 1);
	}
	trace_rashpa_event(rashpa_channel_fpga(ch), l->id, kind, sequence, time, value, l->lost);
	/* the eventfd of a source does not count OVERRUN and FULL */
	if (l->notifier && kind == l->kind)
		rashpa_notify(l->notifier);
	if (ch->notifier)
		rashpa_notify(ch->notifier);
}

/* ----------------------------------------------------------- groups --- */

u64 rashpa_member_position(const struct rashpa_membership *m)
{
	return m->group->least[m->group->width + (m - m->group->member)];
}

/* The minimum of all positions is at the root. */
static void rashpa_member_move(struct rashpa_membership *m, u64 position)
{
	struct rashpa_group *g = m->group;
	u32 i = g->width + (m - g->member);
	u64 least;

	g->least[i] = position;
	while (i > 1) {
		i /= 2;
		least = min(g->least[2 * i], g->least[2 * i + 1]);
		if (g->least[i] == least)
			break;
		g->least[i] = least;
	}
}

u64 rashpa_group_ack(const struct rashpa_group *g)
{
	const struct rashpa_listener *l = g->listener;

	/* pairs with the consumer's release: it has finished the acknowledged stacks */
	return smp_load_acquire(&l->channel->consumer->ack[l->id - 1]);
}

/* Report FULL if this event fills the free slots. */
static void rashpa_member_full(struct rashpa_membership *m, u64 ack, u64 from, u64 time)
{
	const struct rashpa_group *g = m->group;
	const u64 position = rashpa_member_position(m);
	u64 limit;

	if (!g->full || check_add_overflow(ack, g->full, &limit))
		return;
	if (from < limit && position >= limit)
		rashpa_channel_queue(m->listener, RASHPA_SOURCE_FULL, position - ack, time,
				     position);
}

/* A position beyond the free slots overwrites data of the consumer. */
static void rashpa_member_overrun(struct rashpa_membership *m, u64 ack, u64 time)
{
	const struct rashpa_group *g = m->group;
	const u64 position = rashpa_member_position(m);
	u64 limit;

	if (!g->slots)
		return;
	if (check_add_overflow(ack, g->slots, &limit))
		limit = U64_MAX;
	limit = max(limit, m->counted);
	if (position <= limit)
		return;
	m->overruns += position - limit;
	m->counted = position;
	rashpa_channel_queue(m->listener, RASHPA_SOURCE_OVERRUN, m->overruns, time, position);
}

void rashpa_member_advance(struct rashpa_membership *m, u64 time, u64 position)
{
	struct rashpa_group *g = m->group;
	const u64 from = rashpa_member_position(m);
	u64 ack, least;

	if (position <= from)
		return;
	rashpa_member_move(m, position);
	/* another CPU writes this cache line, so it is read only if needed */
	if (g->full || g->slots) {
		ack = rashpa_group_ack(g);
		rashpa_member_full(m, ack, from, time);
		rashpa_member_overrun(m, ack, time);
	}
	least = g->least[1];
	if (least <= g->position)
		return;
	g->position = least;
	rashpa_listener_event(g->listener, RASHPA_SEQUENCE_OWN, time, least);
}

/*
 * Deliver an event of a source or group. A @time before the last one becomes that one. @sequence:
 * RASHPA_SEQUENCE_OWN for the number of this event among those of @l.
 */
void rashpa_listener_event(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	struct rashpa_membership *m = l->membership;

	lockdep_assert_held(&l->channel->lock);
	time = max(time, l->time);
	l->time = time;
	l->disarmed = l->one_shot;
	l->events++;
	l->value = value;
	if (!l->quiet)
		rashpa_channel_queue(l, l->kind, sequence ?: l->events, time, value);
	else if (l->notifier)
		rashpa_notify(l->notifier);
	if (m) {
		m->time = time;
		/* the position of a source without a word is the number of its events */
		rashpa_member_advance(m, time,
				      l->watch ? value : rashpa_member_position(m) + 1);
	}
}

/*
 * Deliver an event of an origin, if the source takes it. Return: true if this made an event of the
 * source.
 */
bool rashpa_listener_fire(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	guard(spinlock)(&l->channel->lock);
	if (l->disarmed) {
		l->pending = true;
		return false;
	}
	if (l->condition && !l->condition(l, &value))
		return false;
	/* a source that takes only some events of its origin counts them itself */
	rashpa_listener_event(l, l->condition ? RASHPA_SEQUENCE_OWN : sequence, time, value);
	rashpa_channel_wake_later(l->channel);
	return true;
}

/* ----------------------------------------------------------- waking --- */

/* Have the tasklet wake readers and signal eventfds. */
void rashpa_channel_wake_later(struct rashpa_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	/* the barrier in wq_has_sleeper() pairs with that of a reader that goes to sleep */
	if (!list_empty(&ch->due) || (ch->new_records && wq_has_sleeper(&ch->wait)))
		tasklet_schedule(&ch->waker);
}

/* Wake the readers, and signal one eventfd. Return: true if more signals are due. */
static bool rashpa_channel_wake_one(struct rashpa_channel *ch)
{
	struct rashpa_notifier *n;
	bool new_records, more;

	spin_lock_bh(&ch->wake_lock);
	spin_lock_irq(&ch->lock);
	new_records = ch->new_records;
	ch->new_records = false;
	n = list_first_entry_or_null(&ch->due, struct rashpa_notifier, entry);
	if (n) {
		/* the end of the function adds eventfds without due signals */
		n->owed -= !!n->owed;
		list_move_tail(&n->entry, n->owed ? &ch->due : &ch->notifiers);
	}
	more = !list_empty(&ch->due);
	spin_unlock_irq(&ch->lock);
	if (new_records && wq_has_sleeper(&ch->wait)) {
		trace_rashpa_wakeup(rashpa_channel_fpga(ch), READ_ONCE(ch->head));
		if (READ_ONCE(ch->gone))
			wake_up_interruptible_all(&ch->wait);
		else	/* none of those that only poll for the end */
			wake_up_interruptible_poll(&ch->wait, EPOLLIN | EPOLLRDNORM);
	}
	if (n)
		eventfd_signal(n->direct.ctx);
	spin_unlock_bh(&ch->wake_lock);
	return more;
}

static void rashpa_channel_waker(struct tasklet_struct *waker)
{
	struct rashpa_channel *ch = container_of(waker, struct rashpa_channel, waker);
	u32 i;

	for (i = 0; i < RASHPA_WAKE_BATCH; i++)
		if (!rashpa_channel_wake_one(ch))
			return;
	tasklet_schedule(waker);
}

/*
 * When this returns, all readers were woken, and each eventfd was signalled once for earlier
 * events. The tasklet does the rest, if too many signals are due or the caller is killed.
 */
void rashpa_channel_wake(struct rashpa_channel *ch)
{
	u32 left = RASHPA_WAKE_MAX;

	while (rashpa_channel_wake_one(ch)) {
		if (!--left || fatal_signal_pending(current)) {
			tasklet_schedule(&ch->waker);
			return;
		}
		cond_resched();
	}
}

/* The function was removed: wake all waiters. */
static bool rashpa_channel_end(struct rashpa_subscriber *subscriber, u64 sequence, u64 time,
			       u64 value)
{
	struct rashpa_channel *ch = container_of(subscriber, struct rashpa_channel, end);

	/* under this lock, an eventfd is bound before the end or refused after it */
	guard(spinlock)(&ch->lock);
	ch->gone = true;
	WRITE_ONCE(ch->ring->gone, 1);
	list_splice_tail_init(&ch->notifiers, &ch->due);
	ch->new_records = true;
	rashpa_channel_wake_later(ch);
	return true;
}

/* Prepare locks and lists of a zeroed channel that has a ring. */
void rashpa_queue_init(struct rashpa_channel *ch)
{
	spin_lock_init(&ch->wake_lock);
	tasklet_setup(&ch->waker, rashpa_channel_waker);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->notifiers);
	INIT_LIST_HEAD(&ch->due);
	init_waitqueue_head(&ch->wait);
	ch->end.notify = rashpa_channel_end;
}

/* ------------------------------------------------- table of sources --- */

int rashpa_channel_check(struct rashpa_call *call, struct rashpa_channel *ch)
{
	return READ_ONCE(ch->gone) ? rashpa_device_removed(call, ch->dev) : 0;
}

/* Find a source or group by its id. Return: NULL if the channel has none, which is -ENOENT. */
struct rashpa_listener *rashpa_source_find(struct rashpa_call *call, struct rashpa_channel *ch,
					   u32 id)
{
	struct rashpa_listener *l = NULL;

	lockdep_assert_held(&ch->sources_lock);
	if (id && id <= ch->n_sources)
		l = ch->listeners[array_index_nospec(id - 1, ch->n_sources)];
	if (!l)
		rashpa_fail(call, -ENOENT, "the channel has no source %u", id);
	return l;
}

/* Enter a source or group into the channel's table. Return: 0 or -ENOSPC. */
int rashpa_listener_id_get(struct rashpa_call *call, struct rashpa_channel *ch,
			   struct rashpa_listener *l)
{
	u32 i;

	lockdep_assert_held(&ch->sources_lock);
	for (i = 0; i < ch->n_sources; i++) {
		if (ch->listeners[i])
			continue;
		l->id = i + 1;
		ch->listeners[i] = l;
		return 0;
	}
	return rashpa_fail(call, -ENOSPC,
			   "the channel has %u sources already: make one with more, up to %d",
			   ch->n_sources, RASHPA_SOURCES_MAX);
}

/* Afterwards another source can get the id. */
void rashpa_listener_id_put(struct rashpa_channel *ch, struct rashpa_listener *l)
{
	lockdep_assert_held(&ch->sources_lock);
	ch->listeners[l->id - 1] = NULL;
	if (ch->software == l)
		ch->software = NULL;
}
