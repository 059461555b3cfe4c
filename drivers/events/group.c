// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: groups: one event when several sources have reached the same position.
 */
#include <linux/bitmap.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "events/events.h"

/* members that are handled at a time with interrupts off */
#define RASHPA_MEMBERS_BATCH	64

/* --------------------------------------------------------------- life --- */

static int rashpa_group_check(struct rashpa_call *call, const struct rashpa_group_make *arg)
{
	if (!arg->n_members || arg->n_members > RASHPA_MEMBERS_MAX)
		return rashpa_fail(call, -EINVAL, "%u members: must be 1 to %d",
				   arg->n_members, RASHPA_MEMBERS_MAX);
	if (arg->slots && arg->full > arg->slots && arg->full != RASHPA_FULL_NEVER)
		return rashpa_fail(call, -EINVAL, "full at %llu, but there are only %llu slots",
				   arg->full, arg->slots);
	return 0;
}

/* Check and enter member @i. @seen: ids of earlier members. */
static int rashpa_group_member(struct rashpa_call *call, struct rashpa_channel *ch,
			       struct rashpa_group *g, const struct rashpa_member *member,
			       u32 i, unsigned long *seen)
{
	struct rashpa_listener *l = rashpa_source_find(call, ch, member->source);

	if (member->__reserved)
		return rashpa_fail(call, -EINVAL, "member %u: a reserved field is not zero", i);
	if (!l)
		return -ENOENT;
	if (l->one_shot)
		return rashpa_fail(call, -EINVAL,
				   "source %u is one-shot: a group needs each event of its members",
				   l->id);
	if (l->group)
		return rashpa_fail(call, -EINVAL, "source %u is a group: name its members", l->id);
	/* this bounds the work of an event, see the top of queue.c */
	if (l->membership)
		return rashpa_fail(call, -EBUSY, "source %u is a member of group %u already",
				   l->id, l->membership->group->listener->id);
	if (test_and_set_bit(l->id - 1, seen))
		return rashpa_fail(call, -EEXIST, "source %u is in the list twice", l->id);
	g->member[i].group = g;
	g->member[i].listener = l;
	return 0;
}

/*
 * The position that events of @l have reported, so that a late group begins where an early one
 * would be. With CHANGED, the word at creation of the source counts as reported.
 */
static u64 rashpa_group_reached(const struct rashpa_listener *l)
{
	if (!l->watch)
		return 0;
	return l->watch->condition == RASHPA_CONDITION_CHANGED ? l->watch->last : l->value;
}

/* The end of the batch that begins at @i. */
static u32 rashpa_group_batch(const struct rashpa_group *g, u32 i)
{
	return min(i + RASHPA_MEMBERS_BATCH, g->n);
}

/*
 * From here on events count. A word may already be ahead, and its producer may wait for the
 * consumer: so its position is an event now, and may be FULL or OVERRUN. The group cannot
 * have an event before its last member has joined.
 */
static void rashpa_group_join(struct rashpa_channel *ch, struct rashpa_group *g)
{
	u32 i, end;
	u64 time;

	WRITE_ONCE(ch->consumer->ack[g->listener->id - 1], g->position);
	for (i = 0; i < g->n; i++)
		rashpa_origin_direct(&g->member[i].listener->subscriber, NULL);
	for (i = 0; i < g->n;) {
		guard(spinlock_irq)(&ch->lock);
		time = ktime_get_ns();
		for (end = rashpa_group_batch(g, i); i < end; i++) {
			struct rashpa_listener *l = g->member[i].listener;

			l->membership = &g->member[i];
			rashpa_member_advance(&g->member[i], time, rashpa_group_reached(l));
		}
		rashpa_channel_wake_later(ch);
	}
}

static u64 rashpa_group_bytes(u32 n)
{
	const struct rashpa_group *g = NULL;

	/* kernels before 6.5 have no struct_size_t() */
	return struct_size(g, member, n) + 2 * roundup_pow_of_two(n) * sizeof(u64);
}

static struct rashpa_group *rashpa_group_new(const struct rashpa_group_make *arg)
{
	const u32 width = roundup_pow_of_two(arg->n_members);
	struct rashpa_group *g;
	u32 i;

	g = kvzalloc(rashpa_group_bytes(arg->n_members), GFP_KERNEL_ACCOUNT);
	if (!g)
		return NULL;
	g->least = (void *)&g->member[arg->n_members];
	g->n = arg->n_members;
	g->width = width;
	g->slots = arg->slots;
	if (arg->full != RASHPA_FULL_NEVER)
		g->full = arg->full ?: arg->slots;
	g->position = arg->first;
	/* unused leaves never are the minimum */
	for (i = 0; i < width; i++)
		g->least[width + i] = i < g->n ? g->position : U64_MAX;
	for (i = width - 1; i; i--)
		g->least[i] = min(g->least[2 * i], g->least[2 * i + 1]);
	for (i = 0; i < g->n; i++)
		g->member[i].counted = g->position;
	return g;
}

/* @ch's sources_lock is held. */
static int rashpa_group_make(struct rashpa_call *call, struct rashpa_channel *ch,
			     const struct rashpa_member *members, struct rashpa_group_make *arg)
{
	DECLARE_BITMAP(seen, RASHPA_SOURCES_MAX) = {};
	struct rashpa_group *g;
	struct rashpa_listener *l;
	int err = -ENOMEM;
	u32 i;

	g = rashpa_group_new(arg);
	if (!g)
		return -ENOMEM;
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		goto out_group;
	for (i = 0; i < g->n; i++) {
		err = rashpa_group_member(call, ch, g, &members[i], i, seen);
		if (err)
			goto out_listener;
	}
	g->listener = l;
	l->channel = ch;
	l->kind = RASHPA_SOURCE_GROUP;
	l->group = g;
	err = rashpa_charge(call, &l->charge, RASHPA_RESOURCE_SOURCES, rashpa_channel_fpga(ch),
			    1, rashpa_group_bytes(arg->n_members));
	if (err)
		goto out_listener;
	err = rashpa_listener_id_get(call, ch, l);
	if (err)
		goto out_listener;
	rashpa_group_join(ch, g);
	arg->out_id = l->id;
	return 0;

out_listener:
	rashpa_uncharge(&l->charge);
	kfree(l);
out_group:
	kvfree(g);
	return err;
}

int rashpa_ioc_group(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_group_make *group = arg;
	struct rashpa_member *members;
	int err = rashpa_group_check(call, group);

	if (err)
		return err;
	err = rashpa_copy(call, &members, group->members, group->n_members, group->member_size,
			  __reserved);
	if (err)
		return err;
	mutex_lock(&ch->sources_lock);
	/* checked after the copy, which can wait for user memory without a limit */
	err = rashpa_channel_check(call, ch) ?: rashpa_group_make(call, ch, members, group);
	mutex_unlock(&ch->sources_lock);
	kvfree(members);
	return err;
}

/* End a group and its memberships; the channel's sources_lock is held, or the channel is gone. */
void rashpa_group_end(struct rashpa_listener *l)
{
	struct rashpa_group *g = l->group;
	u32 i, end;

	for (i = 0; i < g->n;) {
		guard(spinlock_irq)(&l->channel->lock);
		for (end = rashpa_group_batch(g, i); i < end; i++)
			g->member[i].listener->membership = NULL;
	}
	for (i = 0; i < g->n; i++)
		rashpa_listener_direct(g->member[i].listener);
	kvfree(g);
	l->group = NULL;
}

/* ------------------------------------------------------------- ioctls --- */

/* @ch's sources_lock is held. */
static struct rashpa_group *rashpa_group_find(struct rashpa_call *call,
					      struct rashpa_channel *ch, u32 id)
{
	struct rashpa_listener *l = rashpa_source_find(call, ch, id);

	if (l && l->group)
		return l->group;
	rashpa_fail(call, -ENOENT, "the channel has no group %u", id);
	return NULL;
}

int rashpa_ioc_ack(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_ack *ack = arg;

	guard(mutex)(&ch->sources_lock);
	if (!rashpa_group_find(call, ch, ack->id))
		return -ENOENT;
	/* the consumer has read the acknowledged stacks before */
	smp_store_release(&ch->consumer->ack[ack->id - 1], ack->position);
	return 0;
}

static void rashpa_member_report(const struct rashpa_membership *m, struct rashpa_member_info *to)
{
	to->source = m->listener->id;
	to->position = rashpa_member_position(m);
	to->overruns = m->overruns;
	to->time_ns = m->time;
}

/* The group first, so that no member is behind the reported position of the group. */
static void rashpa_group_report(struct rashpa_group *g, struct rashpa_group_info *info,
				struct rashpa_member_info *to, u32 n)
{
	struct rashpa_channel *ch = g->listener->channel;
	u32 i, end;

	info->out_members = g->n;
	info->out_overruns = 0;
	for (i = 0; i < g->n;) {
		guard(spinlock_irq)(&ch->lock);
		if (!i) {
			info->out_position = g->position;
			info->out_ack = rashpa_group_ack(g);
			info->out_events = g->listener->events;
		}
		for (end = rashpa_group_batch(g, i); i < end; i++) {
			info->out_overruns += g->member[i].overruns;
			if (i < n)
				rashpa_member_report(&g->member[i], &to[i]);
		}
	}
}

int rashpa_ioc_group_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_group_info *info = arg;
	const u32 n = min_t(u32, info->n_members, RASHPA_MEMBERS_MAX);
	struct rashpa_member_info *members;
	struct rashpa_group *g;
	int err = 0;

	if (n && !info->members)
		return rashpa_fail(call, -EINVAL, "room for %u members at address 0",
				   info->n_members);
	members = kvcalloc(n, sizeof(*members), GFP_KERNEL_ACCOUNT);
	if (!members)
		return -ENOMEM;
	mutex_lock(&ch->sources_lock);
	g = rashpa_group_find(call, ch, info->id);
	if (g)
		rashpa_group_report(g, info, members, n);
	else
		err = -ENOENT;
	mutex_unlock(&ch->sources_lock);
	if (!err && n)
		err = rashpa_store_array(call, info->members, min(n, info->out_members),
					 info->member_size,
					 offsetofend(struct rashpa_member_info, time_ns),
					 members, sizeof(*members));
	kvfree(members);
	return err;
}
