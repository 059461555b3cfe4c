// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The event manager assigns events to builders. It keeps each block from its assignment until a
 * builder has handed it on, so it can list the events that were lost with a builder.
 */
#include "builder/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/agree.h"
#include "common/json-out.h"
#include "builder/ranges.h"

struct open_block {
	uint64_t block, first;
	uint32_t events, builder;
	enum { FREE, WAITING, ASSIGNED, COMMITTED } state;	/* WAITING: for another builder */
};

struct manager {
	struct open_block *open;
	uint32_t *credit;	/* by rank: blocks that a builder has asked for */
	bool *left;		/* by rank: has gone */
	uint64_t *told;		/* by rank: events that a readout has */
	struct json_object **said;
	uint32_t turn;		/* first rank to consider for the next block */
	uint32_t results;
	uint64_t next_block, begin, next, total;
	uint64_t built, incomplete, rebuilt;
	struct ranges lost, unknown;
	uint64_t began_ns, ended_ns;
};

int manager_open(struct build *b)
{
	struct manager *m = calloc(1, sizeof(*m));

	if (!m)
		return fail("no memory");
	b->manager = m;
	m->open = calloc(b->most, sizeof(*m->open));
	m->credit = calloc(b->size, sizeof(*m->credit));
	m->left = calloc(b->size, sizeof(*m->left));
	m->told = calloc(b->size, sizeof(*m->told));
	m->said = calloc(b->size, sizeof(struct json_object *));
	/* each block under way can be lost at most once */
	if (!m->open || !m->credit || !m->left || !m->told || !m->said ||
	    ranges_open(&m->lost, b->most) || ranges_open(&m->unknown, b->most))
		return fail("no memory");
	m->total = b->o->events ? b->o->events : UINT64_MAX;
	return 0;
}

void manager_close(struct build *b)
{
	struct manager *m = b->manager;

	if (!m)
		return;
	for (uint32_t i = 0; m->said && i < b->size; i++)
		json_object_put(m->said[i]);
	ranges_close(&m->lost);
	ranges_close(&m->unknown);
	free(m->open);
	free(m->credit);
	free(m->left);
	free(m->told);
	free(m->said);
	free(m);
}

/* --- assignment --- */

static uint64_t available(const struct build *b, const struct manager *m)
{
	uint64_t n = m->total;
	double so_far;

	if (b->o->rate) {
		so_far = (now_ns() - m->began_ns) / 1e9 * b->o->rate;
		n = so_far < n ? so_far : n;
	}
	for (uint32_t i = 1; b->o->from && i < b->size; i++) {
		if (is_readout(b, i) && m->told[i] < n)
			n = m->told[i];
	}
	return n;
}

static struct open_block *find(const struct build *b, uint64_t block)
{
	for (uint32_t i = 0; i < b->most; i++) {
		if (b->manager->open[i].state >= ASSIGNED && b->manager->open[i].block == block)
			return &b->manager->open[i];
	}
	return NULL;
}

static struct open_block *in_state(const struct build *b, unsigned int state)
{
	for (uint32_t i = 0; i < b->most; i++) {
		if (b->manager->open[i].state == state)
			return &b->manager->open[i];
	}
	return NULL;
}

static uint32_t next_builder(const struct build *b, struct manager *m)
{
	for (uint32_t i = 0; i < b->size; i++) {
		const uint32_t rank = (m->turn + i) % b->size;

		if (m->credit[rank] && !m->left[rank]) {
			m->turn = rank + 1;
			return rank;
		}
	}
	return 0;
}

static int tell_readouts(struct build *b, const struct message *what)
{
	int result = 0;

	for (uint32_t i = 1; i < b->size && !result; i++) {
		if (is_readout(b, i))
			result = say_to(b, i, what, NULL);
	}
	return result;
}

/* Assign a builder the block of another one that has gone, or the next events. */
static int assign(struct build *b, struct manager *m, struct open_block *o, uint32_t builder)
{
	struct message what = { .kind = KIND_ASSIGN, .builder = builder, .instead = NO_BLOCK };

	if (o->state == WAITING) {
		what.instead = o->block;
		m->rebuilt += o->events;
	} else {
		const uint64_t left = available(b, m) - m->next;

		o->first = m->next;
		o->events = left < b->o->block ? left : b->o->block;
		m->next += o->events;
	}
	if (!manager_owed(b, builder))
		b->moved_ns[builder] = now_ns();
	o->state = ASSIGNED;
	o->block = m->next_block++;
	o->builder = builder;
	m->credit[builder]--;
	what.block = o->block;
	what.first = o->first;
	what.events = o->events;
	return tell_readouts(b, &what);
}

/* Are there enough events for a block? Only the last block may be shorter. */
static bool ready(const struct build *b, const struct manager *m)
{
	const uint64_t n = available(b, m);

	return agree_complete(b) && n > m->next && (n - m->next >= b->o->block || n == m->total);
}

static int say_all(struct build *b, uint32_t kind)
{
	const struct message m = { .kind = kind };
	int result = 0;

	for (uint32_t i = 1; i < b->size && !result; i++) {
		if (!b->manager->left[i])
			result = say_to(b, i, &m, NULL);
	}
	return result;
}

bool manager_owed(const struct build *b, uint32_t rank)
{
	const struct manager *m = b->manager;

	if (b->ending)
		return !m->said[rank];
	for (uint32_t i = 0; i < b->most; i++) {
		if (m->open[i].state >= ASSIGNED && m->open[i].builder == rank)
			return true;
	}
	return false;
}

static bool all_said(const struct build *b, const struct manager *m)
{
	for (uint32_t i = 1; i < b->size; i++) {
		if (!m->said[i] && !m->left[i])
			return false;
	}
	return true;
}

int manager_turn(struct build *b)
{
	struct manager *m = b->manager;
	struct open_block *o;
	uint32_t builder;
	int result = 0;

	if (!m->began_ns)
		m->began_ns = now_ns();
	if (*b->stop && m->total > m->next)
		m->total = m->next;	/* finish blocks under way, and assign no more */
	while (!result && !b->ending) {
		o = in_state(b, WAITING);
		if (!o && ready(b, m))
			o = in_state(b, FREE);
		builder = o ? next_builder(b, m) : 0;
		if (!builder)
			break;
		result = assign(b, m, o, builder);
	}
	if (!result && !b->ending && m->next == m->total && !in_state(b, WAITING) &&
	    !in_state(b, ASSIGNED) && !in_state(b, COMMITTED)) {
		b->ending = true;
		m->ended_ns = now_ns();
		for (uint32_t i = 1; i < b->size; i++)
			b->moved_ns[i] = now_ns();
		result = say_all(b, KIND_END);
	}
	if (!result && b->ending && !b->over && all_said(b, m)) {
		b->over = true;
		result = say_all(b, KIND_BYE);
	}
	return result;
}

/* --- received messages --- */

static int no_sense(struct build *b, const struct message *m, const char *what)
{
	return end_run(b, EXIT_FAILED, m->from, "rank %u sent an invalid message: %s", m->from, what);
}

static int take_result(struct build *b, const struct message *what, const char *text, size_t length)
{
	struct json_tokener *t = json_tokener_new();
	struct manager *m = b->manager;

	if (!t)
		return fail("no memory");
	if (!m->said[what->from])
		m->said[what->from] = json_tokener_parse_ex(t, text, length);
	json_tokener_free(t);
	return m->said[what->from] ? 0 : no_sense(b, what, "no result");
}

static int take_built(struct build *b, const struct message *what)
{
	struct open_block *o = find(b, what->block);
	struct message answer = { .kind = KIND_COMMIT, .block = what->block };
	int result;

	if (!o || o->builder != what->from || o->state != ASSIGNED || what->events > o->events)
		return no_sense(b, what, "a block that it does not have");
	o->state = COMMITTED;
	b->moved_ns[what->from] = now_ns();
	b->manager->incomplete += what->events;
	result = say_to(b, what->from, &answer, NULL);
	answer.kind = KIND_RELEASE;
	return result || !b->o->hold ? result : tell_readouts(b, &answer);
}

static int rank_gone(struct build *b, uint32_t rank)
{
	char who[ROLE_BYTES];

	role_of(b, rank, who);
	if (!agree_complete(b))
		return end_run(b, EXIT_FAILED, rank, "%s has left before all were connected: see its own message",
			       who);
	return end_run(b, EXIT_FAILED, rank, "%s has gone: events cannot be complete without it, and the run ends",
		       who);
}

int manager_heard(struct build *b, const struct message *what, const char *text, size_t length)
{
	struct manager *m = b->manager;
	struct open_block *o;
	/* until then, a rank with other options may send unexpected messages, and gets an error */
	const bool known = agree_complete(b);

	switch (what->kind) {
	case KIND_ASK:
		if (known && (!is_builder(b, what->from) || what->events > b->o->credit ||
			      m->credit[what->from]))
			return no_sense(b, what, "it asks for more than it may");
		m->credit[what->from] = what->events;
		return 0;
	case KIND_BUILT:
		return take_built(b, what);
	case KIND_DONE:
		o = find(b, what->block);
		if (!o || o->builder != what->from || o->state != COMMITTED)
			return no_sense(b, what, "a block that it does not have");
		o->state = FREE;
		b->moved_ns[what->from] = now_ns();
		m->built += o->events;
		b->counts.blocks++;
		m->credit[what->from]++;
		return 0;
	case KIND_TELL:
		if (known && (!is_readout(b, what->from) || what->first < m->told[what->from]))
			return no_sense(b, what, "events that go back");
		m->told[what->from] = what->first;
		/* no event can be complete before the first event of each readout */
		if (!m->next_block && what->block > m->next)
			m->next = m->begin = what->block;
		if (what->events && what->first < m->total)	/* its sources have ended */
			m->total = what->first > m->next ? what->first : m->next;
		return 0;
	case KIND_ALIVE:
		return 0;
	case KIND_HELLO:
		return agree_heard(b, what->from, text, length);
	case KIND_GONE:
		if (b->ending)
			return 0;
		if (!is_readout(b, what->builder) || what->builder >= b->size)
			return no_sense(b, what, "the rank that has gone is not a readout");
		return rank_gone(b, what->builder);
	case KIND_RESULT:
		return take_result(b, what, text, length);
	}
	return no_sense(b, what, "an unknown message");
}

/* --- lost ranks --- */

static void add(struct ranges *r, const struct open_block *o)
{
	if (!ranges_add(r, o->first, o->events))	/* cannot happen: all blocks fit */
		say("rank 0: events %" PRIu64 " to %" PRIu64 " were lost as well", o->first,
		    o->first + o->events - 1);
}

static int lose(struct build *b, struct open_block *o)
{
	struct manager *m = b->manager;
	const struct message release = { .kind = KIND_RELEASE, .block = o->block };

	if (b->o->hold && o->state == ASSIGNED) {
		o->state = WAITING;
		return 0;
	}
	/* a committed block may have been handed on, so it must not be built again */
	add(o->state == COMMITTED ? &m->unknown : &m->lost, o);
	o->state = FREE;
	return b->o->hold ? 0 : tell_readouts(b, &release);
}

int manager_gone(struct build *b, uint32_t peer)
{
	struct manager *m = b->manager;
	uint32_t left = 0;
	int result = 0;

	m->left[peer] = true;
	if (is_readout(b, peer) || !agree_complete(b))
		return rank_gone(b, peer);
	say("builder of rank %u has gone: %s", peer,
	    b->o->hold ? "other builders take over its events" : "its events are lost");
	m->credit[peer] = 0;
	for (uint32_t i = 0; i < b->most && !result; i++) {
		if (m->open[i].state >= ASSIGNED && m->open[i].builder == peer)
			result = lose(b, &m->open[i]);
	}
	for (uint32_t i = 1; i < b->size; i++)
		left += is_builder(b, i) && !m->left[i];
	return result || left ? result :
		end_run(b, EXIT_FAILED, peer, "no builder is left: the run ends");
}

/* --- results --- */

static struct json_object *list(const struct ranges *r)
{
	struct json_object *all = json_object_new_array();

	for (uint32_t i = 0; i < r->n; i++) {
		struct json_object *range = json_object_new_array();

		json_object_array_add(range, json_object_new_uint64(r->range[i].first));
		json_object_array_add(range, json_object_new_uint64(r->range[i].last));
		json_object_array_add(all, range);
	}
	return all;
}

static void print_ranges(const char *what, const struct ranges *r)
{
	if (!r->events)
		return;
	printf("%s: %" PRIu64 " events:", what, r->events);
	for (uint32_t i = 0; i < r->n; i++)
		printf("%s %" PRIu64 " to %" PRIu64, i ? "," : "", r->range[i].first,
		       r->range[i].last);
	putchar('\n');
}

/* counters of fragments at ranks; "foreign": invalid messages */
static const char * const fault_names[] = {
	"missing", "late", "duplicate", "corrupt", "foreign",
};

#define FAULTS	(sizeof(fault_names) / sizeof(fault_names[0]))

static uint64_t sum_of(struct json_object *ranks, const char *key)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < json_object_array_length(ranks); i++) {
		struct json_object *rank = json_object_array_get_idx(ranks, i);

		sum += json_object_get_uint64(json_object_object_get(rank, key));
	}
	return sum;
}

static void put_result(const struct build *b, struct json_object *o, struct json_object *ranks)
{
	const struct manager *m = b->manager;
	const double time = ((m->ended_ns ? m->ended_ns : now_ns()) - m->began_ns) / 1e9;

	put_text(o, "command", "build");
	put_text(o, "transport", b->o->fabric.transport);
	put_u64(o, "readouts", b->readouts);
	put_u64(o, "builders", b->builders);
	put_bool(o, "folded", b->o->folded);
	put_u64(o, "events", m->next - m->begin);
	put_u64(o, "built", m->built);
	put_u64(o, "incomplete", m->incomplete);
	put_u64(o, "rebuilt", m->rebuilt);
	put_u64(o, "lost", m->lost.events);
	json_object_object_add(o, "lost_ranges", list(&m->lost));
	put_u64(o, "unknown", m->unknown.events);
	json_object_object_add(o, "unknown_ranges", list(&m->unknown));
	for (size_t i = 0; i < FAULTS; i++)
		put_u64(o, fault_names[i], sum_of(ranks, fault_names[i]));
	put_text(o, "ended", *b->reason ? b->reason : NULL);
	put_real(o, "seconds", time);
	put_real(o, "events_per_second", time > 0 ? m->built / time : 0);
	json_object_object_add(o, "ranks", ranks);
}

static void print_result(const struct manager *m, struct json_object *o, bool faults)
{
	printf("%" PRIu64 " events, %" PRIu64 " built, %.0f a second\n",
	       m->next - m->begin, m->built,
	       json_object_get_double(json_object_object_get(o, "events_per_second")));
	if (m->incomplete)
		printf("incomplete: %" PRIu64 " of them\n", m->incomplete);
	if (m->rebuilt)
		printf("after their first builder had gone: %" PRIu64 " of them\n", m->rebuilt);
	print_ranges("lost", &m->lost);
	print_ranges("not known whether they were handed on", &m->unknown);
	for (size_t i = 0; i < FAULTS && faults; i++)
		printf("%s%s: %" PRIu64 "%s", i ? ", " : "fragments ", fault_names[i],
		       json_object_get_uint64(json_object_object_get(o, fault_names[i])),
		       i + 1 < FAULTS ? "" : "\n");
}

int manager_result(struct build *b)
{
	struct manager *m = b->manager;
	struct json_object *o = json_object_new_object(), *ranks = json_object_new_array();
	uint64_t faults = 0;

	/* after an error: blocks that are not finished */
	for (uint32_t i = 0; i < b->most; i++) {
		if (m->open[i].state != FREE)
			add(m->open[i].state == COMMITTED ? &m->unknown : &m->lost, &m->open[i]);
	}
	for (uint32_t i = 1; i < b->size; i++) {
		if (m->said[i])
			json_object_array_add(ranks, json_object_get(m->said[i]));
	}
	for (size_t i = 0; i < FAULTS; i++)
		faults += sum_of(ranks, fault_names[i]);
	put_result(b, o, ranks);
	if (!b->o->json || json_elsewhere())
		print_result(m, o, faults);
	if (!b->o->json)
		json_object_put(o);
	else if (json_finish(o))
		return EXIT_FAILED;
	return m->lost.events || m->unknown.events || m->incomplete || faults ? EXIT_DATA : 0;
}
