// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: the queue of a channel: a source has an event, a record is queued, groups get farther,
 * readers are woken, eventfds are signalled.
 *
 * Groups are advanced when an event of a member arrives, in the interrupt, with the
 * channel's lock held: members of a group are sources of one channel. A source is in one group
 * at most, and a group in none. So an event costs no more than a walk from a leaf of the group's
 * tree to its root, and one event of the group.
 */
#include <linux/nospec.h>

#include "core/compat.h"
#include "core/trace.h"
#include "events/events.h"

/* signals of a tasklet, then others may run */
#define RASHPA_TELL_BATCH	16
/* and of a call: each eventfd of the channel at least once */
#define RASHPA_TELL_MOST	(2 * RASHPA_SOURCES_MAX)

/* --------------------------------------------------------- eventfds --- */

/*
 * An event for an eventfd; its channel's lock is held. Signalling takes as long as there are many
 * who wait for the eventfd: not here.
 */
static void rashpa_notify(struct rashpa_notifier *n)
{
	lockdep_assert_held(&n->channel->lock);
	if (!n->owed)
		list_move_tail(&n->entry, &n->channel->due);
	n->owed += n->owed < RASHPA_OWED_MAX;
}

/* ---------------------------------------------------------- delivery ---- */

/* The newest record is the one that is lost, and counted, when there is no room. */
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
		ch->news = true;
		/* the record is there before who maps the ring can see that it is */
		smp_store_release(&ch->ring->head, ch->head);
	} else {
		l->lost++;
		WRITE_ONCE(ch->ring->lost, ch->ring->lost + 1);
	}
	trace_rashpa_event(rashpa_channel_fpga(ch), l->id, kind, sequence, time, value, l->lost);
	/* OVERRUN and FULL tell of a group what the source's own eventfd does not count */
	if (l->notifier && kind == l->kind)
		rashpa_notify(l->notifier);
	if (ch->notifier)
		rashpa_notify(ch->notifier);
}

/* ----------------------------------------------------------- groups --- */

static u64 *rashpa_member_place(const struct rashpa_membership *m)
{
	struct rashpa_group *g = m->group;

	return &g->least[g->width + (m - g->member)];
}

u64 rashpa_member_position(const struct rashpa_membership *m)
{
	return *rashpa_member_place(m);
}

/* Everybody's least position is at the root. */
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

	/* pairs with the consumer's release: it has finished what it acknowledges */
	return smp_load_acquire(&l->channel->consumer->ack[l->id - 1]);
}

/* What the consumer has made room for is filled by this event, and was not before it. */
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

/* Positions behind what the consumer has made room for were written over its data. */
static void rashpa_member_overrun(struct rashpa_membership *m, u64 ack, u64 time)
{
	const struct rashpa_group *g = m->group;
	const u64 position = rashpa_member_position(m);
	u64 limit;

	if (!g->slots)
		return;
	if (check_add_overflow(ack, g->slots, &limit))
		limit = U64_MAX;
	limit = max(limit, m->judged);
	if (position <= limit)
		return;
	m->overruns += position - limit;
	m->judged = position;
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
	/* another CPU writes the consumer's line: read it only where it decides */
	if (g->full || g->slots) {
		ack = rashpa_group_ack(g);
		rashpa_member_full(m, ack, from, time);
		rashpa_member_overrun(m, ack, time);
	}
	least = g->least[1];
	if (least <= g->position)
		return;
	g->position = least;
	rashpa_listener_event(g->listener, ++g->listener->sequence, time, least);
}

/**
 * rashpa_listener_event() - a source has something to tell
 * @l: the source; its channel's lock held
 * @sequence: see &struct rashpa_event
 * @time: of the event, as whoever noticed it has taken it: another may have been faster
 * @value: of the event
 */
void rashpa_listener_event(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	struct rashpa_membership *m = l->membership;

	lockdep_assert_held(&l->channel->lock);
	time = max(time, l->time);
	l->time = time;
	l->rests = l->one_shot;
	l->events++;
	l->value = value;
	if (!l->quiet)
		rashpa_channel_queue(l, l->kind, sequence, time, value);
	else if (l->notifier)
		rashpa_notify(l->notifier);
	if (m) {
		m->time = time;
		/* sources without a position count their events */
		rashpa_member_advance(m, time,
				      l->watch ? value : rashpa_member_position(m) + 1);
	}
}

/**
 * rashpa_listener_fire() - the origin of a source has fired
 * @l: the source; its channel's lock held
 * @sequence: of the origin
 * @time: of the event
 * @value: of the event
 *
 * Return: whether that is an event of this source.
 */
bool rashpa_listener_fire(struct rashpa_listener *l, u64 sequence, u64 time, u64 value)
{
	/* what is missed of a word is seen when it is armed */
	if (l->rests) {
		l->missed = true;
		return false;
	}
	if (l->condition && !l->condition(l, &value))
		return false;
	/* who asks for a part of what the origin tells finds no gaps where the rest was */
	rashpa_listener_event(l, l->condition ? ++l->sequence : sequence, time, value);
	return true;
}

/* ----------------------------------------------------------- waking --- */

/**
 * rashpa_channel_tell_soon() - tell who waits, but not here
 * @ch: the channel, its lock held
 */
void rashpa_channel_tell_soon(struct rashpa_channel *ch)
{
	lockdep_assert_held(&ch->lock);
	/* its barrier pairs with that of whoever goes to sleep and looks at the head */
	if (!list_empty(&ch->due) || (ch->news && wq_has_sleeper(&ch->wait)))
		tasklet_schedule(&ch->teller);
}

/* Wake who reads, and give one signal. Return: are there more? */
static bool rashpa_channel_tell_one(struct rashpa_channel *ch)
{
	struct rashpa_notifier *n;
	bool news, more;

	spin_lock_bh(&ch->tell_lock);
	spin_lock_irq(&ch->lock);
	news = ch->news;
	ch->news = false;
	n = list_first_entry_or_null(&ch->due, struct rashpa_notifier, entry);
	if (n) {
		/* of the end of the function, which is no event, none is owed */
		n->owed -= !!n->owed;
		list_move_tail(&n->entry, n->owed ? &ch->due : &ch->notifiers);
	}
	more = !list_empty(&ch->due);
	spin_unlock_irq(&ch->lock);
	if (news && wq_has_sleeper(&ch->wait)) {
		trace_rashpa_wakeup(rashpa_channel_fpga(ch), READ_ONCE(ch->head));
		wake_up_interruptible_all(&ch->wait);
	}
	if (n)
		rashpa_eventfd_signal(n->ctx);
	spin_unlock_bh(&ch->tell_lock);
	return more;
}

static void rashpa_channel_teller(struct tasklet_struct *teller)
{
	struct rashpa_channel *ch = container_of(teller, struct rashpa_channel, teller);
	u32 i;

	for (i = 0; i < RASHPA_TELL_BATCH; i++)
		if (!rashpa_channel_tell_one(ch))
			return;
	tasklet_schedule(teller);
}

/*
 * Tell who waits; nothing is locked. When this returns everybody has been woken for what was queued
 * before, unless the caller is killed. Of signals that it is behind with an eventfd may still get
 * some.
 */
void rashpa_channel_tell(struct rashpa_channel *ch)
{
	u32 left = RASHPA_TELL_MOST;

	while (rashpa_channel_tell_one(ch)) {
		if (!--left || fatal_signal_pending(current)) {
			tasklet_schedule(&ch->teller);
			return;
		}
		cond_resched();
	}
}

/* The function has gone: wake everybody who waits. Interrupts are off, as for all ears. */
static bool rashpa_channel_end(struct rashpa_ear *ear, u64 sequence, u64 time, u64 value)
{
	struct rashpa_channel *ch = container_of(ear, struct rashpa_channel, end);

	/* an eventfd is bound before this, or not any more */
	spin_lock(&ch->lock);
	ch->gone = true;
	WRITE_ONCE(ch->ring->gone, 1);
	/* the events that these wait for may never come */
	list_splice_tail_init(&ch->notifiers, &ch->due);
	ch->news = true;
	rashpa_channel_tell_soon(ch);
	spin_unlock(&ch->lock);
	return true;
}

/**
 * rashpa_queue_init() - nobody waits yet
 * @ch: zeroed, with a ring
 */
void rashpa_queue_init(struct rashpa_channel *ch)
{
	spin_lock_init(&ch->tell_lock);
	tasklet_setup(&ch->teller, rashpa_channel_teller);
	spin_lock_init(&ch->lock);
	INIT_LIST_HEAD(&ch->notifiers);
	INIT_LIST_HEAD(&ch->due);
	init_waitqueue_head(&ch->wait);
	ch->end.hear = rashpa_channel_end;
}

/* ------------------------------------------------- table of sources --- */

int rashpa_channel_check(struct rashpa_call *call, struct rashpa_channel *ch)
{
	if (READ_ONCE(ch->gone))
		return rashpa_fail(call, -ENODEV, "fpga%d was removed: close this file",
				   ch->dev->id);
	return 0;
}

/**
 * rashpa_source_find() - a source or group by its id
 * @ch: the channel, its sources_lock held
 * @id: any number
 *
 * Return: it, or NULL.
 */
struct rashpa_listener *rashpa_source_find(struct rashpa_channel *ch, u32 id)
{
	lockdep_assert_held(&ch->sources_lock);
	if (!id || id > ch->n_sources)
		return NULL;
	return ch->listeners[array_index_nospec(id - 1, ch->n_sources)];
}

/**
 * rashpa_listener_place() - a place and an id in the channel
 * @call: the ioctl
 * @ch: the channel, its sources_lock held
 * @l: the source or group
 *
 * Return: 0 or -ENOSPC.
 */
int rashpa_listener_place(struct rashpa_call *call, struct rashpa_channel *ch,
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

/* Out of its place, which another one may have. */
void rashpa_listener_displace(struct rashpa_channel *ch, struct rashpa_listener *l)
{
	lockdep_assert_held(&ch->sources_lock);
	ch->listeners[l->id - 1] = NULL;
	if (ch->software == l)
		ch->software = NULL;
}
