// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder build: the loop that receives and sends. */
#include "builder/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/agree.h"
#include "common/json-out.h"
#include "builder/watch.h"

#define LOOK_NS		INT64_C(2000000)	/* between two polls of sources and sinks */
#define EVENTS		32
#define ROOMS		64			/* receives that are posted for each peer */
#define WORDS		4			/* messages about a block, to each rank involved */
#define OTHERS		8			/* messages about the run: its end, signs of life */

/* --- received messages --- */

static int finish(struct build *b)
{
	const struct counts *c = &b->counts;
	struct json_object *o = json_object_new_object();
	const struct message m = { .kind = KIND_RESULT };
	int result;

	put_u64(o, "rank", b->rank);
	put_bool(o, "readout", b->reads);
	put_bool(o, "builder", b->builds);
	put_u64(o, "blocks", c->blocks);
	put_u64(o, "events", c->events);
	put_u64(o, "incomplete", c->incomplete);
	put_u64(o, "fragments", c->fragments);
	put_u64(o, "bytes", c->bytes);
	put_u64(o, "missing", c->missing);
	put_u64(o, "late", c->late);
	put_u64(o, "duplicate", c->duplicate);
	put_u64(o, "corrupt", c->corrupt);
	put_u64(o, "foreign", c->foreign);
	put_u64(o, "resent", c->resent);
	if (b->data_out) {
		struct rashpa_pool_counts p;

		rashpa_pool_count(b->data_out, &p);
		put_u64(o, "pool_low", p.low);
	}
	result = say_to(b, 0, &m, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	return result;
}

static int obey(struct build *b, const struct message *m, const char *text)
{
	switch (m->kind) {
	case KIND_ALIVE:
		return 0;
	case KIND_FAIL:
		fail("rank %u: the event manager ends the run: %.*s", b->rank, (int)m->bytes, text);
		return m->events == EXIT_TIMEOUT ? EXIT_TIMEOUT : EXIT_FAILED;
	case KIND_ASSIGN:
	case KIND_RELEASE:
		return b->reads ? readout_heard(b, m) : 0;
	case KIND_COMMIT:
		return b->builds ? assembly_heard(b, m) : 0;
	case KIND_END:
		if (b->ending)
			break;
		b->ending = true;
		return finish(b);
	case KIND_BYE:
		b->over = true;
		return 0;
	}
	return fail("rank %u: the event manager sent an unknown message (%u)", b->rank, m->kind);
}

static int control(struct build *b, const struct rashpa_fabric_event *e)
{
	const uint32_t peer = e->request.peer;
	const struct message *m = e->request.buffer;
	int result;

	if (e->length < sizeof(*m) || m->bytes != e->length - sizeof(*m) || m->from != peer)
		return end_run(b, EXIT_FAILED, peer, "rank %u sent an invalid message", peer);
	watch_heard(b, m);
	if (b->rank)
		result = obey(b, m, (const char *)(m + 1));
	else
		result = manager_heard(b, m, (const char *)(m + 1), m->bytes);
	if (!result)
		result = listen_to(b, peer, b->control_in, e->request.buffer);
	return result;
}

static int happened(struct build *b, const struct rashpa_fabric_event *e)
{
	if (!e->received)
		b->unsent--;
	if (!e->received && e->request.tag == KIND_TELL)
		b->telling = false;
	if (!e->received && e->request.tag == KIND_ALIVE)
		watch_said(b, e->request.peer);
	b->steps += e->request.tag != KIND_ALIVE;
	if (e->status && e->status != -EPIPE)
		return fail("rank %u: message %s rank %u: %s", b->rank,
			    e->received ? "from" : "to", e->request.peer, strerror(-e->status));
	if (!e->received && e->request.pool == b->data_out && b->data_out)
		return readout_sent(b, e);
	if (!e->received || e->status)
		return rashpa_pool_give(e->request.pool, e->request.buffer) ? EXIT_FAILED : 0;
	if (e->request.pool == b->control_in)
		return control(b, e);
	return assembly_data(b, e);
}

/* --- lost peers --- */

/*
 * The manager decides, and sends the same to all. So no rank leaves because of another one before
 * the manager does, and the rank that is seen to have gone is the one that went first.
 */
static int lost_peer(struct build *b, uint32_t peer)
{
	const struct message m = { .kind = KIND_GONE, .builder = peer };

	if (b->ending || b->over)
		return 0;
	if (watch_slept(b))
		return end_run(b, EXIT_TIMEOUT, 0, "this process did not run for more than %.3g s, and others have left meanwhile",
			       b->o->timeout);
	if (!b->rank)
		return manager_gone(b, peer);
	if (!peer)
		return end_run(b, EXIT_FAILED, 0, "the event manager (rank 0) has gone: the run ends");
	if (!is_readout(b, peer) || b->reported)
		return 0;
	b->reported = true;
	return say_to(b, 0, &m, NULL);
}

/* Handles all peers that had gone before the last events were taken. */
static int look_who(struct build *b, const bool *gone, bool *known)
{
	int result = 0;

	for (uint32_t i = 0; i < b->size && !result; i++) {
		if (!gone[i] || known[i])
			continue;
		known[i] = true;
		b->steps++;
		result = lost_peer(b, i);
	}
	return result;
}

/* --- the loop --- */

static int turn(struct build *b)
{
	int result = 0;

	if (!b->rank)
		return manager_turn(b);
	if (b->reads)
		result = readout_turn(b);
	if (b->builds && !result)
		result = assembly_turn(b);
	return result;
}

static int loop(struct build *b)
{
	struct rashpa_fabric_event e[EVENTS];
	bool *gone = calloc(b->size, sizeof(*gone)), *known = calloc(b->size, sizeof(*known));
	int result = gone && known ? 0 : fail("no memory"), n;

	watch_begin(b);
	if (b->rank && !result)
		result = agree_say(b);
	while (gone && known && !result && (!b->over || b->unsent)) {
		for (uint32_t i = 0; i < b->size; i++)
			gone[i] = rashpa_fabric_gone(b->f, i);
		n = rashpa_fabric_next(b->f, e, EVENTS, LOOK_NS);
		watch_slept(b);
		for (int i = 0; i < n && !result; i++)
			result = happened(b, &e[i]);
		if (!result && n < EVENTS)
			result = look_who(b, gone, known);
		if (!result)
			result = turn(b);
		if (!result)
			result = watch_turn(b);
	}
	free(gone);
	free(known);
	return result;
}

/* Manager: send all ranks the reason why the run ends, and wait until reachable ones have it. */
static void farewell(struct build *b, int code)
{
	const struct message m = { .kind = KIND_FAIL, .events = code, .builder = b->culprit };
	const char *why = *b->reason ? b->reason : "the event manager (rank 0) has failed";
	const uint64_t end = now_ns() + (uint64_t)(b->o->timeout * 1e9);
	struct rashpa_fabric_event e[EVENTS];
	uint32_t left = 0;

	for (uint32_t i = 1; i < b->size; i++) {
		if (rashpa_fabric_gone(b->f, i) || say_to(b, i, &m, why))
			continue;
		left += i != b->culprit;
	}
	while (left && now_ns() < end) {
		const int n = rashpa_fabric_next(b->f, e, EVENTS, LOOK_NS);

		for (int i = 0; i < n; i++)
			left -= !e[i].received && e[i].request.tag == KIND_FAIL &&
				e[i].request.peer != b->culprit;
	}
}

/* --- preparation --- */

static uint64_t data_bytes(const struct build *b)
{
	const struct options *o = b->o;
	const uint64_t fragment = sizeof(struct fragment_head) + padded(sources_most(o));

	return sizeof(struct message) +
	       o->block * (sizeof(struct event_head) + o->sources * fragment);
}

static int listen_all(struct build *b, uint32_t peer, struct rashpa_pool *pool, uint32_t n)
{
	int result = 0;

	while (n-- && !result)
		result = listen_to(b, peer, pool, NULL);
	return result;
}

/* Maximum number of messages that peers have not taken: a few for each block under way. */
static uint32_t words(const struct build *b)
{
	return b->rank ? 4 * b->o->credit + 16 :
			 b->readouts * (WORDS * b->most) + b->builders * WORDS * b->o->credit +
			 OTHERS * b->size;
}

static int open_pools(struct build *b)
{
	const uint32_t hears = (b->rank ? 1 : b->size) * ROOMS, says = words(b);
	struct rashpa_arena *a;
	uint64_t bytes = rashpa_pool_room(CONTROL_BYTES, says) +
			 rashpa_pool_room(CONTROL_BYTES, hears);
	int result, error;

	if (b->reads)
		bytes += rashpa_pool_room(b->data_bytes, b->o->pool);
	if (b->builds)
		bytes += rashpa_pool_room(b->data_bytes, b->o->credit) * b->readouts;
	result = make_arena(b->f, b->o, bytes, &a);
	if (result)
		return result;
	error = rashpa_pool_open(a, CONTROL_BYTES, says, &b->control_out);
	if (!error)
		error = rashpa_pool_open(a, CONTROL_BYTES, hears, &b->control_in);
	if (!error && b->reads)
		error = rashpa_pool_open(a, b->data_bytes, b->o->pool, &b->data_out);
	for (uint32_t i = 0; b->builds && i < b->readouts && !error; i++)
		error = rashpa_pool_open(a, b->data_bytes, b->o->credit, &b->data_in[i]);
	if (error)
		return fail_fabric(b->f, error, "");
	for (uint32_t peer = 0; peer < b->size && !result; peer++) {
		if (b->rank ? !peer : peer)
			result = listen_all(b, peer, b->control_in, ROOMS);
		if (!result && b->builds && is_readout(b, peer))
			result = listen_all(b, peer, b->data_in[readout_index(peer)], b->o->credit);
	}
	return result;
}

static int roles(struct build *b)
{
	const struct options *o = b->o;

	if (b->size < (o->folded ? 2 : 3))
		return fail("an event manager, readouts and builders need at least %d processes, not %u: mpirun -n 5 rashpa-builder build",
			    o->folded ? 2 : 3, b->size);
	b->readouts = o->readouts ? o->readouts : (b->size - 1) / 2;
	if (o->folded)
		b->readouts = b->size - 1;
	else if (b->readouts > b->size - 2)
		return fail("%u readouts of %u processes leave no builder: rank 0 is the event manager",
			    b->readouts, b->size);
	b->builders = o->folded ? b->size - 1 : b->size - 1 - b->readouts;
	b->most = b->builders * o->credit;
	if (b->most * WORDS + ROOMS > BUILD_QUEUE)
		return fail("%u builders with --credit %u would have %u blocks at a time, and the limit is %u: lower --credit",
			    b->builders, o->credit, b->most, (BUILD_QUEUE - ROOMS) / WORDS);
	if (o->fault && o->fault_readout >= b->readouts)
		return fail("--fault: there is no readout %u: they are 0 to %u", o->fault_readout,
			    b->readouts - 1);
	b->reads = is_readout(b, b->rank);
	b->builds = is_builder(b, b->rank);
	if (data_bytes(b) > RASHPA_FABRIC_MESSAGE)
		return fail("a block of %u events would be %" PRIu64 " bytes per readout, and the limit of a message is %u: lower --block",
			    o->block, data_bytes(b), RASHPA_FABRIC_MESSAGE);
	b->data_bytes = data_bytes(b);
	return 0;
}

static int open_roles(struct build *b)
{
	int result = 0;

	b->data_in = calloc(b->readouts, sizeof(struct rashpa_pool *));
	if (!b->data_in)
		return fail("no memory");
	result = watch_open(b);
	if (!b->rank && !result)
		result = manager_open(b);
	if (b->reads && !result)
		result = readout_open(b);
	if (b->builds && !result)
		result = assembly_open(b);
	return result;
}

int build_events(struct rashpa_fabric *f, const struct options *o, const volatile bool *stop)
{
	struct build b = {
		.f = f, .o = o, .stop = stop,
		.rank = rashpa_fabric_rank(f), .size = rashpa_fabric_size(f),
	};
	int result = roles(&b), error;

	if (!result)
		result = open_roles(&b);
	if (!result)
		result = open_pools(&b);
	if (!result) {
		error = rashpa_fabric_connect(f);
		if (!error)
			warn_nodes(f);
		result = error ? fail_fabric(f, error, "") : loop(&b);
		if (result && !error && !b.rank)
			farewell(&b, result);
		if (result)
			rashpa_fabric_blame(f, b.culprit ? b.culprit : b.rank);
	}
	if (!b.rank && b.manager) {
		/* report known results even after a failure */
		const int known = manager_result(&b);

		result = result ? result : known;
	}
	agree_close(&b);
	watch_close(&b);
	manager_close(&b);
	readout_close(&b);
	assembly_close(&b);
	free(b.data_in);
	return result;
}
