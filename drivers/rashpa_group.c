// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: groups: one event when several sources have got equally far.
 *
 * Everything is decided when an event of a member arrives, in the interrupt, with the
 * channel's lock held: members of a group are sources of one channel.
 */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rashpa_channel.h"
#include "rashpa_events.h"

/* ------------------------------------------------------------ advance --- */

static u64 rashpa_group_ack(const struct rashpa_group *g)
{
	const struct rashpa_listener *l = g->listener;

	/* pairs with the consumer's release: it has finished what it acknowledges */
	return smp_load_acquire(&l->channel->consumer->ack[l->id - 1]);
}

/* Positions behind what the consumer has made room for were written over its data. */
static void rashpa_member_overrun(struct rashpa_membership *m, u64 time)
{
	const struct rashpa_group *g = m->group;
	u64 limit;

	if (!g->slots)
		return;
	if (check_add_overflow(rashpa_group_ack(g), (u64)g->slots, &limit))
		limit = U64_MAX;
	limit = max(limit, m->judged);
	if (m->position <= limit)
		return;
	m->overruns += m->position - limit;
	m->judged = m->position;
	rashpa_channel_queue(m->listener, RASHPA_SOURCE_OVERRUN, m->overruns, time,
			     m->position);
}

static void rashpa_group_lag(struct rashpa_group *g, u64 first, u64 time)
{
	u32 i;

	if (!g->lag)
		return;
	for (i = 0; i < g->n; i++) {
		struct rashpa_membership *m = &g->member[i];
		const u64 behind = first - m->position;

		if (behind < g->lag) {
			m->late = false;
		} else if (!m->late) {
			m->late = true;
			rashpa_channel_queue(m->listener, RASHPA_SOURCE_LAG, behind, time,
					     m->position);
		}
	}
}

static void rashpa_group_ends(const struct rashpa_group *g, u64 *first, u64 *last)
{
	u32 i;

	*first = 0;
	*last = U64_MAX;
	for (i = 0; i < g->n; i++) {
		*first = max(*first, g->member[i].position);
		*last = min(*last, g->member[i].position);
	}
}

static void rashpa_member_advance(struct rashpa_membership *m, u64 time, u64 position)
{
	struct rashpa_group *g = m->group;
	u64 first, last;

	m->time = time;
	if (position <= m->position) {
		m->repeats++;
		return;
	}
	m->skips += position - m->position - 1;
	m->position = position;
	rashpa_member_overrun(m, time);
	rashpa_group_ends(g, &first, &last);
	rashpa_group_lag(g, first, time);
	if (last <= g->position)
		return;
	g->position = last;
	rashpa_listener_event(g->listener, ++g->listener->sequence, time, last);
}

/**
 * rashpa_groups_advance() - an event of a source, for the groups that it is a member of
 * @l: the source; its channel's lock held
 * @time: of the event
 * @value: of the event
 */
void rashpa_groups_advance(struct rashpa_listener *l, u64 time, u64 value)
{
	u32 i;

	lockdep_assert_held(&l->channel->lock);
	for (i = 0; i < l->n_memberships; i++) {
		struct rashpa_membership *m = l->memberships[i];

		rashpa_member_advance(m, time, l->kind == RASHPA_SOURCE_LOCK ?
					       value : m->position + 1);
	}
}

/* --------------------------------------------------------------- life --- */

static int rashpa_group_check(struct rashpa_call *call, const struct rashpa_group_make *arg)
{
	if (arg->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (!arg->n_members || arg->n_members > RASHPA_MEMBERS_MAX)
		return rashpa_fail(call, -EINVAL, "%u members: must be 1 to %d",
				   arg->n_members, RASHPA_MEMBERS_MAX);
	return 0;
}

/* The listener of member @i, checked. */
static int rashpa_group_member(struct rashpa_call *call, struct rashpa_channel *ch,
			       struct rashpa_group *g,
			       const struct rashpa_member *members, u32 i)
{
	struct rashpa_listener *l = rashpa_source_find(ch, members[i].source);
	u32 j;

	if (members[i].__reserved)
		return rashpa_fail(call, -EINVAL, "member %u: a reserved field is not zero", i);
	if (!l)
		return rashpa_fail(call, -ENOENT, "the channel has no source %u",
				   members[i].source);
	if (l->group)
		return rashpa_fail(call, -EINVAL, "source %u is a group", l->id);
	if (l->n_memberships == RASHPA_MEMBERSHIPS_MAX)
		return rashpa_fail(call, -ENOSPC, "source %u is in %d groups already", l->id,
				   RASHPA_MEMBERSHIPS_MAX);
	for (j = 0; j < i; j++)
		if (g->member[j].listener == l)
			return rashpa_fail(call, -EEXIST, "source %u is in the list twice",
					   l->id);
	g->member[i].group = g;
	g->member[i].listener = l;
	return 0;
}

/*
 * What the events of @l have told so far: a group that is made late is where it would be if it
 * had been there. Of a word that changes, this includes the one that it was added with.
 */
static u64 rashpa_group_reached(const struct rashpa_listener *l)
{
	if (!l->watch)
		return 0;
	return l->watch->condition == RASHPA_CONDITION_CHANGED ? l->watch->last : l->value;
}

/*
 * From here on events count. A word may be ahead already, and its next event may wait for
 * the consumer to acknowledge what this one tells. It may be too far ahead: the consumer
 * begins at @begin.
 */
static void rashpa_group_join(struct rashpa_channel *ch, struct rashpa_group *g,
			      u64 begin)
{
	u64 first, last, before, time;
	u32 i;

	WRITE_ONCE(ch->consumer->ack[g->listener->id - 1], begin);
	spin_lock_irq(&ch->lock);
	time = ktime_get_ns();
	before = ch->head;
	for (i = 0; i < g->n; i++) {
		struct rashpa_membership *m = &g->member[i];

		m->position = max(begin, rashpa_group_reached(m->listener));
		m->judged = begin;
		m->listener->memberships[m->listener->n_memberships++] = m;
		rashpa_member_overrun(m, time);
	}
	rashpa_group_ends(g, &first, &last);
	rashpa_group_lag(g, first, time);
	g->position = last;
	if (last > begin)
		rashpa_listener_event(g->listener, ++g->listener->sequence, time, last);
	spin_unlock_irq(&ch->lock);
	rashpa_channel_wake(ch, before);
}

/* @ch's sources_lock is held. */
static int rashpa_group_make(struct rashpa_call *call, struct rashpa_channel *ch,
			     const struct rashpa_member *members, struct rashpa_group_make *arg)
{
	struct rashpa_group *g;
	struct rashpa_listener *l;
	int err = -ENOMEM;
	u32 i;

	g = kzalloc(struct_size(g, member, arg->n_members), GFP_KERNEL_ACCOUNT);
	if (!g)
		return -ENOMEM;
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		goto out_group;
	g->n = arg->n_members;
	g->slots = arg->slots;
	g->lag = arg->lag;
	g->listener = l;
	for (i = 0; i < g->n; i++) {
		err = rashpa_group_member(call, ch, g, members, i);
		if (err)
			goto out_listener;
	}
	l->channel = ch;
	l->kind = RASHPA_SOURCE_GROUP;
	l->group = g;
	err = rashpa_charge(call, &l->charge, RASHPA_RESOURCE_SOURCES, ch->dev->id, 1, 0);
	if (err)
		goto out_listener;
	err = rashpa_listener_place(call, ch, l);
	if (err)
		goto out_uncharge;
	rashpa_group_join(ch, g, arg->first);
	arg->out_id = l->id;
	return 0;

out_uncharge:
	rashpa_uncharge(&l->charge);
out_listener:
	kfree(l);
out_group:
	kfree(g);
	return err;
}

int rashpa_ioc_group(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_group_make *group = arg;
	struct rashpa_member *members;
	int err;

	err = rashpa_group_check(call, group);
	if (err)
		return err;
	members = memdup_user(u64_to_user_ptr(group->members),
			      array_size(group->n_members, sizeof(*members)));
	if (IS_ERR(members))
		return PTR_ERR(members);
	mutex_lock(&ch->sources_lock);
	/* only now: user memory can make us wait for as long as it likes */
	err = rashpa_channel_check(call, ch);
	if (!err)
		err = rashpa_group_make(call, ch, members, group);
	mutex_unlock(&ch->sources_lock);
	kfree(members);
	return err;
}

/**
 * rashpa_group_leave() - end a group: its members are in it no more
 * @l: its listener; the channel's sources_lock held, or the channel gone
 */
void rashpa_group_leave(struct rashpa_listener *l)
{
	struct rashpa_group *g = l->group;
	u32 i, j;

	spin_lock_irq(&l->channel->lock);
	for (i = 0; i < g->n; i++) {
		struct rashpa_listener *of = g->member[i].listener;

		for (j = 0; of->memberships[j] != &g->member[i]; j++)
			;
		of->memberships[j] = of->memberships[--of->n_memberships];
	}
	spin_unlock_irq(&l->channel->lock);
	kfree(g);
	l->group = NULL;
}

/* ------------------------------------------------------------- ioctls --- */

/* @ch's sources_lock is held. */
static struct rashpa_group *rashpa_group_find(struct rashpa_call *call,
					      struct rashpa_channel *ch, u32 id)
{
	struct rashpa_listener *l = rashpa_source_find(ch, id);

	if (l && l->group)
		return l->group;
	rashpa_fail(call, -ENOENT, "the channel has no group %u", id);
	return NULL;
}

int rashpa_ioc_ack(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_ack *ack = arg;
	bool found;

	if (ack->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	mutex_lock(&ch->sources_lock);
	found = rashpa_group_find(call, ch, ack->id);
	if (found)
		/* after the consumer's last look at the stacks: they may be overwritten now */
		smp_store_release(&ch->consumer->ack[ack->id - 1], ack->position);
	mutex_unlock(&ch->sources_lock);
	return found ? 0 : -ENOENT;
}

/* What is known of all members at one moment. */
static void rashpa_group_tell(const struct rashpa_group *g,
			      struct rashpa_group_info *info, struct rashpa_member_info *to)
{
	u64 first, last;
	u32 i;

	rashpa_group_ends(g, &first, &last);
	info->out_members = g->n;
	info->out_position = g->position;
	info->out_ack = rashpa_group_ack(g);
	info->out_events = g->listener->events;
	info->out_overruns = 0;
	for (i = 0; i < g->n; i++) {
		const struct rashpa_membership *m = &g->member[i];

		info->out_overruns += m->overruns;
		to[i].source = m->listener->id;
		to[i].position = m->position;
		to[i].lag = first - m->position;
		to[i].overruns = m->overruns;
		to[i].repeats = m->repeats;
		to[i].skips = m->skips;
		to[i].time_ns = m->time;
	}
}

int rashpa_ioc_group_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_group_info *info = arg;
	struct rashpa_member_info *members;
	struct rashpa_group *g;
	int err = 0;
	u32 n;

	if (info->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (info->n_members && !info->members)
		return rashpa_fail(call, -EINVAL, "room for %u members at address 0",
				   info->n_members);
	members = kcalloc(RASHPA_MEMBERS_MAX, sizeof(*members), GFP_KERNEL_ACCOUNT);
	if (!members)
		return -ENOMEM;
	mutex_lock(&ch->sources_lock);
	g = rashpa_group_find(call, ch, info->id);
	if (g) {
		spin_lock_irq(&ch->lock);
		rashpa_group_tell(g, info, members);
		spin_unlock_irq(&ch->lock);
	}
	mutex_unlock(&ch->sources_lock);
	if (!g) {
		err = -ENOENT;
		goto out;
	}
	n = min(info->n_members, info->out_members);
	if (n && copy_to_user(u64_to_user_ptr(info->members), members,
			      array_size(n, sizeof(*members))))
		err = -EFAULT;
out:
	kfree(members);
	return err;
}
