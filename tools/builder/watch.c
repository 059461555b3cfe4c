// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder build: detection of ranks that are silent or make no progress. */
#include "builder/watch.h"

#include <stdlib.h>

#include "common/say.h"

#define EVERY_NS	UINT64_C(1000000000)	/* longest time between two signs of life */
#define PART		4			/* and at most 1/PART of the time limit */

struct watch {
	uint64_t *heard_ns;		/* by rank: time of last message */
	uint64_t *steps;		/* by rank: steps in its last sign of life */
	uint32_t *waits;		/* by rank: rank waited for; itself: source or sink */
	bool *saying;			/* by rank: a sign of life is under way */
	uint64_t said_ns, turn_ns;
	bool slept;			/* was stopped for longer than the time limit */
};

int watch_open(struct build *b)
{
	struct watch *w = calloc(1, sizeof(*w));

	b->watch = w;
	if (!w)
		return fail("no memory");
	w->heard_ns = calloc(b->size, sizeof(*w->heard_ns));
	b->moved_ns = calloc(b->size, sizeof(*b->moved_ns));
	w->steps = calloc(b->size, sizeof(*w->steps));
	w->waits = calloc(b->size, sizeof(*w->waits));
	w->saying = calloc(b->size, sizeof(*w->saying));
	return w->heard_ns && b->moved_ns && w->steps && w->waits && w->saying ? 0 :
										  fail("no memory");
}

void watch_close(struct build *b)
{
	struct watch *w = b->watch;

	if (!w)
		return;
	free(w->heard_ns);
	free(b->moved_ns);
	free(w->steps);
	free(w->waits);
	free(w->saying);
	free(w);
}

static uint64_t limit_ns(const struct build *b)
{
	return b->o->timeout * 1e9;
}

void watch_begin(struct build *b)
{
	struct watch *w = b->watch;

	w->turn_ns = now_ns();
	for (uint32_t i = 0; i < b->size; i++) {
		w->heard_ns[i] = w->turn_ns;
		b->moved_ns[i] = w->turn_ns;
	}
}

void watch_heard(struct build *b, const struct message *m)
{
	struct watch *w = b->watch;

	w->heard_ns[m->from] = now_ns();
	if (m->kind != KIND_ALIVE)
		return;
	w->waits[m->from] = m->builder < b->size ? m->builder : WATCH_NOBODY;
	if (m->first != w->steps[m->from])
		b->moved_ns[m->from] = now_ns();
	w->steps[m->from] = m->first;
}

void watch_said(struct build *b, uint32_t peer)
{
	b->watch->saying[peer] = false;
}

/* Time since "then", which may be in the future, as pauses are added. */
static uint64_t since(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

/* The manager watches all ranks that still owe their result; other ranks watch the manager. */
static bool hears(const struct build *b, uint32_t peer)
{
	return !b->rank != !peer && !rashpa_fabric_gone(b->f, peer) &&
	       (b->rank || !b->ending || manager_owed(b, peer));
}

static int say_alive(struct build *b, uint64_t now)
{
	struct message m = { .kind = KIND_ALIVE, .first = b->steps };
	const uint64_t part = limit_ns(b) / PART;
	struct watch *w = b->watch;
	int result = 0;

	/* after its result, a rank may get the order to leave: send no more messages */
	if (b->rank ? b->ending : b->over)
		return 0;
	if (now - w->said_ns < (part < EVERY_NS ? part : EVERY_NS))
		return 0;
	w->said_ns = now;
	if (b->builds)
		m.builder = assembly_waits(b);
	if (b->reads && !m.builder)
		m.builder = readout_waits(b);
	for (uint32_t i = 0; i < b->size && !result; i++) {
		if (!b->rank == !i || w->saying[i] || rashpa_fabric_gone(b->f, i))
			continue;
		w->saying[i] = true;
		result = say_to(b, i, &m, NULL);
	}
	return result;
}

static int silent(struct build *b, uint32_t rank)
{
	char who[ROLE_BYTES];

	return end_run(b, EXIT_TIMEOUT, rank, "%s has sent nothing for %.3g s: it is stopped, or cannot be reached",
		       role_of(b, rank, who), b->o->timeout);
}

/* A builder without any part of a block cannot name a readout: take the least active one. */
static uint32_t slowest_readout(const struct build *b)
{
	const struct watch *w = b->watch;
	uint32_t slowest = WATCH_NOBODY;

	for (uint32_t i = 1; i < b->size; i++) {
		if (is_readout(b, i) && w->waits[i] != WATCH_NOBODY &&
		    (!slowest || b->moved_ns[i] < b->moved_ns[slowest]))
			slowest = i;
	}
	return slowest;
}

/* A builder makes no progress: follow the chain of waiting ranks to its end. */
static int stands(struct build *b, uint32_t builder, uint64_t now)
{
	const struct watch *w = b->watch;
	const uint64_t fresh = limit_ns(b) / 2;
	char waits[ROLE_BYTES], who[ROLE_BYTES];
	uint32_t at = builder, next;

	for (uint32_t i = 0; i < b->size; i++) {
		if (since(now, w->heard_ns[at]) > fresh)
			return silent(b, at);
		next = w->waits[at] || i ? w->waits[at] : slowest_readout(b);
		if (next == WATCH_NOBODY || next == at)
			break;
		at = next;
	}
	/* that rank makes progress, so the builder will get its turn */
	if (since(now, b->moved_ns[at]) <= limit_ns(b)) {
		b->moved_ns[builder] = now_ns();
		return 0;
	}
	role_of(b, builder, waits);
	role_of(b, at, who);
	if (b->ending)
		return end_run(b, EXIT_TIMEOUT, builder, "%s has not sent the result of its events for %.3g s",
			       waits, b->o->timeout);
	if (w->waits[at] == at)
		return end_run(b, EXIT_TIMEOUT, at, "%s has completed no block for %.3g s, as %s has %s",
			       waits, b->o->timeout, who,
			       is_builder(b, at) && at == builder ?
			       "no room for its events: check that its stream is read" :
			       "no events from its source: check that it still sends");
	return end_run(b, EXIT_TIMEOUT, at, "%s has completed no block for %.3g s, as %s makes no progress",
		       waits, b->o->timeout, who);
}

bool watch_slept(struct build *b)
{
	struct watch *w = b->watch;
	const uint64_t now = now_ns(), pause = now - w->turn_ns, limit = limit_ns(b);

	/* while this process was stopped, it received nothing: do not blame others */
	for (uint32_t i = 0; pause > limit / PART && i < b->size; i++) {
		w->heard_ns[i] += pause;
		b->moved_ns[i] += pause;
	}
	w->turn_ns = now;
	w->slept |= pause > limit;
	return w->slept;
}

int watch_turn(struct build *b)
{
	struct watch *w = b->watch;
	const uint64_t now = now_ns(), limit = limit_ns(b);

	if (b->over)
		return since(now, w->said_ns) <= 2 * limit ? 0 :
		       end_run(b, EXIT_TIMEOUT, 0, "some ranks have not received the end of the run for %.3g s",
			       b->o->timeout);
	for (uint32_t i = 0; i < b->size; i++) {
		if (hears(b, i) && since(now, w->heard_ns[i]) > limit)
			return silent(b, i);
	}
	for (uint32_t i = 1; i < b->size && !b->rank; i++) {
		if (hears(b, i) && manager_owed(b, i) && since(now, b->moved_ns[i]) > limit)
			return stands(b, i, now);
	}
	return say_alive(b, now);
}
