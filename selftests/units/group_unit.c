// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Positions of groups, members that fill the slots, members that lap the consumer.
 * test: tier=check where=root seconds=2 run=build/selftests/units/group_unit
 */
#include "include/kernel.h"

/* each record passes a tracepoint */
#define RASHPA_TRACE_H
#define trace_rashpa_event(fpga, id, kind, sequence, time, value, lost)	\
	recorded(id, kind, sequence, value)
#define trace_rashpa_wakeup(fpga, head)	((void)0)
static void recorded(u32 id, u32 kind, u64 sequence, u64 value);

#include "../../drivers/events/queue.c"
#include "../../drivers/events/group.c"
#include "unit.h"

/* ------------------------------------------------------------ the rest ---- */

#define IDS	(RASHPA_MEMBERS_MAX + 200)

static struct rashpa_listener *listeners[IDS];
static struct rashpa_event queued[64];
static struct rashpa_channel channel = {
	.listeners = listeners, .n_sources = IDS, .due = LIST_HEAD_INIT(channel.due),
	.records = queued, .mask = ARRAY_SIZE(queued) - 1, .depth = U32_MAX,
};
static struct rashpa_watch watches[IDS];
static struct {
	u32 id;
	u32 kind;
	u64 sequence;
	u64 value;
} records[64], last;			/* records, FULL and OVERRUN included */
static size_t n_records;
static ktime_t now;

ktime_t ktime_get(void) { return ++now; }
void rashpa_uncharge(struct rashpa_charge *charge) { }
void rashpa_origin_direct(struct rashpa_subscriber *s, struct rashpa_direct *direct) { }
void rashpa_listener_direct(struct rashpa_listener *l) { }

int rashpa_charge(struct rashpa_call *c, struct rashpa_charge *charge,
		  enum rashpa_resource resource, s32 device, u64 amount, u64 bytes)
{
	return 0;
}

static void recorded(u32 id, u32 kind, u64 sequence, u64 value)
{
	last.id = id;
	last.kind = kind;
	last.sequence = sequence;
	last.value = value;
	records[n_records++ % ARRAY_SIZE(records)] = last;
}

/* ------------------------------------------------------------ sources ---- */

static void all_end(void)
{
	u32 i;

	/* groups end before their members */
	for (i = IDS; i--;) {
		if (listeners[i] && listeners[i]->group)
			rashpa_group_end(listeners[i]);
		free(listeners[i]);
		listeners[i] = NULL;
	}
	memset(watches, 0, sizeof(watches));
	memset(&last, 0, sizeof(last));
	n_records = 0;
}

/* A word (CHANGED) or a vector, which is counted and has no records; ids begin at 1. */
static struct rashpa_listener *source(bool counts)
{
	struct rashpa_listener *l = calloc(1, sizeof(*l));

	l->channel = &channel;
	l->quiet = true;
	mutex_lock(&channel.sources_lock);
	rashpa_listener_id_get(&call, &channel, l);
	mutex_unlock(&channel.sources_lock);
	l->kind = counts ? RASHPA_SOURCE_VECTOR : RASHPA_SOURCE_LOCK;
	l->watch = counts ? NULL : &watches[l->id];
	watches[l->id].condition = RASHPA_CONDITION_CHANGED;
	return l;
}

static void sources(u32 n)
{
	all_end();
	while (n--)
		source(false);
}

static void event(u32 id, u64 value)
{
	struct rashpa_listener *l = listeners[id - 1];

	spin_lock(&channel.lock);
	rashpa_listener_event(l, RASHPA_SEQUENCE_OWN, 0, value);
	spin_unlock(&channel.lock);
}

static int try_group(struct rashpa_group_make *arg, const struct rashpa_member *members, u32 n)
{
	call.obj = &channel;
	arg->members = (uintptr_t)members;
	arg->n_members = n;
	arg->member_size = sizeof(*members);
	return rashpa_ioc_group(&call, arg);
}

/* Make a group of the sources from @first to @end; returns its id */
static u32 group(u32 first, u32 end, struct rashpa_group_make arg)
{
	static struct rashpa_member members[RASHPA_MEMBERS_MAX];
	u32 i;

	for (i = first; i <= end; i++)
		members[i - first].source = i;
	if (try_group(&arg, members, end - first + 1))
		tap_bail("%s", call.reason);
	return arg.out_id;
}

#define GROUP(first, end, ...)	group(first, end, (struct rashpa_group_make) { __VA_ARGS__ })

static struct rashpa_group *of(u32 id)
{
	return listeners[id - 1]->group;
}

static u64 *ack(u32 id)
{
	return &channel.consumer->ack[id - 1];
}

/* ---------------------------------------------------------- positions ---- */

TEST(least, "the slowest member counts, and no position goes back")
{
	static const struct { u32 id; u64 value, position, records; } rows[] = {
		{ 1, 5, 0, 0 }, { 2, 3, 0, 0 }, { 3, 4, 3, 1 }, { 2, 10, 4, 2 }, { 3, 4, 4, 2 },
		{ 3, 2, 4, 2 }, { 3, 20, 5, 3 }, { 1, 6, 6, 4 }, { 1, 1, 6, 4 }, { 1, 11, 10, 5 },
	};
	size_t i;
	u32 id;

	sources(3);
	id = GROUP(1, 3);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		event(rows[i].id, rows[i].value);
		CHECK(of(id)->position == rows[i].position && n_records == rows[i].records,
		      "row %zu: position %llu, %zu records", i, of(id)->position, n_records);
		CHECK(!n_records || (last.id == id && last.kind == RASHPA_SOURCE_GROUP &&
				     last.value == rows[i].position && last.sequence == n_records),
		      "row %zu: the record is wrong", i);
	}
}

/* Against the smallest of all positions, with members that are written twice and go back. */
static void many(u32 n, int events)
{
	static u64 at[RASHPA_MEMBERS_MAX + 1];
	u64 least = 0, told = 0;
	u32 id, i, j;

	sources(n);
	memset(at, 0, sizeof(at));
	id = GROUP(1, n);
	while (events--) {
		i = unit_random() % n + 1;
		/* the slowest member advances more often */
		if (unit_random() % 2)
			for (j = 1; j <= n; j++)
				i = at[j] < at[i] ? j : i;
		event(i, at[i] + unit_random() % 8 - (at[i] > 2 ? 2 : 0));
		at[i] = max(at[i], listeners[i - 1]->value);
		for (j = 1, least = U64_MAX; j <= n; j++)
			least = min(least, at[j]);
		told += of(id)->position > last.value;
		REQUIRE(of(id)->position == least, "%u members: %llu instead of %llu", n,
			of(id)->position, least);
		REQUIRE(!told && (!least || last.value == least), "%u members: record of %llu", n,
			last.value);
	}
	CHECK(least && of(id)->listener->events == n_records, "%u members: %llu, %llu events", n,
	      least, of(id)->listener->events);
	for (j = 0; j < n; j++)
		CHECK(rashpa_member_position(&of(id)->member[j]) == at[j + 1], "member %u", j);
}

TEST(many, "1 to 1024 members agree with a model")
{
	static const u32 sizes[] = { 1, 2, 3, 5, 8, 63, 64, 65, 127, 600 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		many(sizes[i], 40 * sizes[i] + 200);
	many(RASHPA_MEMBERS_MAX, 8 * RASHPA_MEMBERS_MAX);
	all_end();
}

/* Vectors count their events, whatever the value. */
TEST(counts, "vectors count events")
{
	u32 id;

	all_end();
	source(true);
	source(true);
	id = GROUP(1, 2, .first = 100);
	event(1, 7);
	event(1, 7);
	event(2, 0);
	CHECK(of(id)->position == 101 && n_records == 1, "position %llu", of(id)->position);
	event(2, 1000);
	CHECK(of(id)->position == 102 && last.value == 102, "position %llu", of(id)->position);
	all_end();
}

/* ---------------------------------------------------------- made late ---- */

TEST(late, "a group that is made late begins at its members' positions")
{
	static const struct { u32 condition; u64 word, event, first, position; } rows[] = {
		{ RASHPA_CONDITION_CHANGED, 7, 0, 0, 7 }, { RASHPA_CONDITION_CHANGED, 7, 0, 5, 7 },
		{ RASHPA_CONDITION_CHANGED, 7, 0, 9, 9 }, { RASHPA_CONDITION_REACHED, 7, 6, 0, 6 },
		{ RASHPA_CONDITION_EQUAL, 7, 0, 0, 0 },
	};
	size_t i;
	u32 id, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		sources(2);
		for (j = 0; j < 2; j++) {
			watches[j + 1].condition = rows[i].condition;
			watches[j + 1].last = rows[i].word + j;
			listeners[j]->value = rows[i].event + j;
		}
		id = GROUP(1, 2, .first = rows[i].first);
		CHECK(of(id)->position == rows[i].position, "row %zu: position %llu", i,
		      of(id)->position);
		CHECK(n_records == (rows[i].position > rows[i].first), "row %zu: %zu records", i,
		      n_records);
		CHECK(*ack(id) == rows[i].first, "row %zu: ack %llu", i, *ack(id));
	}
}

/* A member that is too far ahead when the group is made laps the consumer, or fills its slots. */
TEST(late_told, "a group that is made late reports FULL and OVERRUN at once")
{
	u32 id;

	sources(2);
	watches[1].last = 9;
	watches[2].last = 4;
	id = GROUP(1, 2, .slots = 4);
	CHECK(n_records == 4 && records[0].kind == RASHPA_SOURCE_FULL && records[0].id == 1 &&
	      records[0].sequence == 9 && records[1].kind == RASHPA_SOURCE_OVERRUN &&
	      records[1].sequence == 5 && records[2].kind == RASHPA_SOURCE_FULL &&
	      records[2].id == 2 && records[2].sequence == 4 && records[3].id == id &&
	      records[3].value == 4, "%zu records", n_records);
	/* no member is too far ahead of this first position */
	sources(2);
	watches[1].last = 9;
	watches[2].last = 6;
	id = GROUP(1, 2, .slots = 4, .first = 6);
	CHECK(!n_records && of(id)->position == 6, "%zu records", n_records);
}

/* ---------------------------------------------------- full and overrun ---- */

TEST(full, "FULL is reported once")
{
	static const struct { u64 slots, full, ack, from, to, by; bool told; } rows[] = {
		{ 4, 0, 0, 0, 3, 0, false }, { 4, 0, 0, 0, 4, 4, true }, { 4, 0, 0, 3, 5, 5, true },
		{ 4, 0, 0, 4, 5, 0, false }, { 4, 0, 1, 4, 5, 4, true }, { 4, 3, 0, 0, 3, 3, true },
		{ 4, 3, 0, 3, 4, 0, false }, { 0, 3, 0, 2, 3, 3, true },
		{ 0, 0, 0, 0, 99, 0, false },
		{ 4, RASHPA_FULL_NEVER, 0, 0, 4, 0, false },
		{ 4, 0, U64_MAX - 4, U64_MAX - 2, U64_MAX - 1, 0, false },
		{ 4, 0, U64_MAX - 4, U64_MAX - 2, U64_MAX, 4, true },
		{ 4, 0, U64_MAX - 3, U64_MAX - 2, U64_MAX, 0, false },
	};
	size_t i;
	u32 id;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		sources(2);
		id = GROUP(1, 2, .slots = rows[i].slots, .full = rows[i].full);
		*ack(id) = rows[i].ack;
		/* moves the member without an event */
		spin_lock(&channel.lock);
		rashpa_member_move(&of(id)->member[0], rows[i].from);
		of(id)->member[0].counted = U64_MAX;
		spin_unlock(&channel.lock);
		event(1, rows[i].to);
		CHECK(n_records == rows[i].told, "row %zu: %zu records", i, n_records);
		CHECK(!rows[i].told || (last.kind == RASHPA_SOURCE_FULL && last.id == 1 &&
					last.sequence == rows[i].by && last.value == rows[i].to),
		      "row %zu: full by %llu", i, last.sequence);
	}
}

/* Each position that is more than @slots ahead on arrival laps the consumer once. */
TEST(overrun, "OVERRUN counts each position once")
{
	u64 at = 0, done = 0, lost = 0, before, p;
	u32 id, i, told = 0;

	sources(2);
	id = GROUP(1, 2, .slots = 8, .full = RASHPA_FULL_NEVER);
	for (i = 0; i < 20000; i++) {
		if (unit_random() % 3 == 0) {
			done += unit_random() % 8;
			*ack(id) = done;
		}
		before = lost;
		for (p = at + unit_random() % 6; at < p;)
			lost += ++at > done + 8;
		event(1, at);
		told += lost > before;
		REQUIRE(of(id)->member[0].overruns == lost && n_records == told,
			"event %u: %llu lost instead of %llu, told %zu times", i,
			of(id)->member[0].overruns, lost, n_records);
		REQUIRE(lost == before || (last.kind == RASHPA_SOURCE_OVERRUN &&
					   last.sequence == lost && last.value == at),
			"event %u: the record is wrong", i);
	}
	CHECK(told > 1000 && told < i, "told %u times", told);
	CHECK(!of(id)->member[1].overruns && !of(id)->position, "the other one");
}

TEST(overrun_ends, "limits do not wrap, and do not go back")
{
	u32 id;

	sources(1);
	id = GROUP(1, 1, .slots = 4, .full = RASHPA_FULL_NEVER);
	/* this is the greatest position */
	*ack(id) = U64_MAX - 3;
	event(1, U64_MAX);
	CHECK(!of(id)->member[0].overruns && of(id)->position == U64_MAX, "%llu lost",
	      of(id)->member[0].overruns);
	/* if a consumer goes back, nothing counts twice */
	sources(1);
	id = GROUP(1, 1, .slots = 4, .full = RASHPA_FULL_NEVER);
	event(1, 10);
	*ack(id) = 9;
	event(1, 12);
	*ack(id) = 0;
	event(1, 13);
	CHECK(of(id)->member[0].overruns == 9, "%llu lost", of(id)->member[0].overruns);
	/* positions before the beginning do not count */
	sources(1);
	id = GROUP(1, 1, .slots = 4, .full = RASHPA_FULL_NEVER, .first = 100);
	*ack(id) = 0;
	event(1, 105);
	CHECK(of(id)->member[0].overruns == 5, "%llu lost", of(id)->member[0].overruns);
}

/* ----------------------------------------------------------- members ---- */

TEST(ends, "members stay when a group ends")
{
	u32 id, other, i;

	sources(RASHPA_MEMBERS_MAX + 2);
	id = GROUP(1, RASHPA_MEMBERS_MAX);
	other = GROUP(RASHPA_MEMBERS_MAX + 1, RASHPA_MEMBERS_MAX + 2);
	CHECK(listeners[0]->membership && listeners[RASHPA_MEMBERS_MAX - 1]->membership, "members");
	rashpa_group_end(listeners[id - 1]);
	for (i = 0; i < RASHPA_MEMBERS_MAX + 2; i++)
		CHECK(!listeners[i]->membership == (i < RASHPA_MEMBERS_MAX), "member %u", i);
	event(RASHPA_MEMBERS_MAX + 1, 2);
	event(RASHPA_MEMBERS_MAX + 2, 1);
	CHECK(of(other)->position == 1, "the other group: %llu", of(other)->position);
	id = GROUP(1, RASHPA_MEMBERS_MAX);
	CHECK(listeners[0]->membership->group == of(id), "a free source does not join again");
	all_end();
}

/* ------------------------------------------------------------ refused ---- */

TEST(refused, "invalid members are refused")
{
	struct rashpa_member members[3] = { { 1 }, { 2 }, { 3 } };
	struct rashpa_group_make arg = { };
	u32 id;

	sources(RASHPA_MEMBERS_MAX);
	ANSWERS(try_group(&arg, members, 0), -EINVAL, "0 members");
	ANSWERS(try_group(&arg, members, RASHPA_MEMBERS_MAX + 1), -EINVAL, "1025 members");
	ANSWERS(try_group(&arg, members, U32_MAX), -EINVAL, "members");
	arg = (struct rashpa_group_make) { .slots = 4, .full = 5 };
	ANSWERS(try_group(&arg, members, 3), -EINVAL, "only 4 slots");
	arg = (struct rashpa_group_make) { };
	members[1].source = 1;
	ANSWERS(try_group(&arg, members, 3), -EEXIST, "source 1");
	members[1].source = 0;
	ANSWERS(try_group(&arg, members, 3), -ENOENT, "source 0");
	members[1].source = RASHPA_MEMBERS_MAX + 1;
	ANSWERS(try_group(&arg, members, 3), -ENOENT, "source 1025");
	members[1] = (struct rashpa_member) { 2, 1 };
	ANSWERS(try_group(&arg, members, 3), -EINVAL, "member 1");
	members[1].__reserved = 0;
	listeners[1]->one_shot = true;
	ANSWERS(try_group(&arg, members, 3), -EINVAL, "one-shot");
	listeners[1]->one_shot = false;
	id = GROUP(2, 2);
	ANSWERS(try_group(&arg, members, 3), -EBUSY, "source 2 is a member");
	CHECK(!listeners[0]->membership && !listeners[2]->membership,
	      "a refused group has a member");
	members[1].source = id;
	ANSWERS(try_group(&arg, members, 2), -EINVAL, "is a group");
	all_end();
}

/* --------------------------------------------------------------- INFO ---- */

TEST(info, "GROUP_INFO lists as many members as fit")
{
	static const u32 sizes[] = { 1, 63, 64, 65, 128, 130 };
	static struct rashpa_member_info to[131];
	struct rashpa_group_info info;
	size_t k;
	u32 id, i;

	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		const u32 n = sizes[k];

		sources(n);
		id = GROUP(1, n, .slots = 2);
		for (i = 1; i <= n; i++)
			event(i, i);
		*ack(id) = 1;
		memset(to, 0xff, sizeof(to));
		info = (struct rashpa_group_info) { .id = id, .members = (uintptr_t)to,
						    .n_members = 131,
						    .member_size = sizeof(to[0]) };
		ANSWERS(rashpa_ioc_group_info(&call, &info), 0, "");
		CHECK(info.out_members == n && info.out_position == 1 && info.out_ack == 1 &&
		      info.out_events == 1, "%u members", info.out_members);
		/* each is lapped by all but two */
		CHECK(info.out_overruns == (n < 3 ? 0 : (u64)(n - 1) * (n - 2) / 2), "%u: %llu", n,
		      info.out_overruns);
		for (i = 0; i < n; i++)
			CHECK(to[i].source == i + 1 && to[i].position == i + 1 &&
			      to[i].overruns == (i < 2 ? 0 : i - 1), "member %u of %u", i, n);
		CHECK(to[n].source == U32_MAX, "one too many");
		info.n_members = 1;
		memset(to, 0xff, sizeof(to));
		ANSWERS(rashpa_ioc_group_info(&call, &info), 0, "");
		CHECK(to[0].source == 1 && to[1].source == U32_MAX && info.out_members == n,
		      "there is room for one");
	}
	info.members = 0;
	ANSWERS(rashpa_ioc_group_info(&call, &info), -EINVAL, "address 0");
	info.n_members = 0;
	info.id = 1;
	ANSWERS(rashpa_ioc_group_info(&call, &info), -ENOENT, "no group 1");
}

TEST(ack, "ACK needs a group")
{
	struct rashpa_ack arg = { .position = 77 };

	sources(1);
	arg.id = GROUP(1, 1);
	ANSWERS(rashpa_ioc_ack(&call, &arg), 0, "");
	CHECK(*ack(arg.id) == 77, "%llu", *ack(arg.id));
	arg.id = 1;
	ANSWERS(rashpa_ioc_ack(&call, &arg), -ENOENT, "no group 1");
}

void setup(void)
{
	channel.consumer = calloc(1, sizeof(*channel.consumer) + IDS * sizeof(u64));
	channel.ring = calloc(1, sizeof(*channel.ring));
}

void teardown(void)
{
	all_end();
	free(channel.consumer);
	free(channel.ring);
}
