// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-builder model: simulates traffic and event building over a network, by the rules of
 * traffic.c, manager.c, readout.c and assembly.c. It sends no message, and runs in simulated time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/build.h"
#include "common/json-out.h"
#include "builder/model.h"
#include "common/say.h"

#define WORD	sizeof(struct message)	/* size of a control message */
#define WARM	4u	/* results leave out the first 1/WARM of the time */

/* Tag of a message: its kind and block. */
#define TAG(kind, block)	((uint64_t)(kind) << 56 | (block))
#define KIND_OF(tag)		((tag) >> 56)
#define BLOCK_OF(tag)		((tag) & ((UINT64_C(1) << 56) - 1))

struct queued {
	uint64_t block;
	uint32_t builder;
};

struct role {
	/* readout: blocks that it has no room for yet, oldest first */
	struct queued *wait;
	uint32_t first, waits, pool;
	/* builder */
	uint32_t credit;
	uint64_t bytes, counted;	/* received; received before counting began */
};

struct block {
	uint64_t number;
	uint32_t parts;		/* received parts; 0: free */
};

struct model {
	const struct options *o;
	struct net *net;
	struct role *role;
	struct block *open;	/* blocks under way: credit entries for each rank */
	uint32_t processes, readouts, builders, most, turn;
	uint64_t block_bytes, blocks, assigned, built, counted_blocks, warm_ns;
	uint64_t seconds_ns;
	uint64_t random;
	bool nton, nxn, failed;
};

/* Varies a size, in the same sequence in each run. */
static uint64_t vary(struct model *m, uint64_t bytes)
{
	const uint64_t spread = bytes * m->o->jitter / 100;

	if (!spread)
		return bytes;
	m->random = m->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return bytes - spread + (m->random >> 33) % (2 * spread + 1);
}

static void send(struct model *m, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag)
{
	if (net_send(m->net, from, to, bytes, tag))
		m->failed = true;
}

/* --- traffic: no queue is ever empty --- */

static void traffic_begins(struct model *m)
{
	const uint32_t n = m->processes;

	for (uint32_t from = 0; from < (m->nton ? n / 2 : n); from++) {
		/* each sender starts with a different receiver, which spreads the load */
		for (uint32_t i = 0; i < (m->nton ? n / 2 : n); i++) {
			const uint32_t to = m->nton ? n / 2 + (from + i) % (n / 2) : (from + i) % n;

			/* messages of a process to itself use no link */
			for (uint32_t j = 0; j < m->o->fabric.depth && from != to; j++)
				send(m, from, to, vary(m, m->o->size), 0);
		}
	}
}

/* --- building --- */

static bool reads(const struct model *m, uint32_t rank)
{
	return rank && (m->o->folded || rank <= m->readouts);
}

static bool builds(const struct model *m, uint32_t rank)
{
	return rank && (m->o->folded || rank > m->readouts);
}

static void assign(struct model *m)
{
	for (uint32_t i = 0; i < m->processes; i++) {
		const uint32_t rank = (m->turn + i) % m->processes;

		if (!builds(m, rank) || !m->role[rank].credit)
			continue;
		m->role[rank].credit--;
		m->turn = rank + 1;
		for (uint32_t j = 1; j < m->processes; j++) {
			if (reads(m, j))
				send(m, 0, j, WORD, TAG(KIND_ASSIGN, m->assigned << 16 | rank));
		}
		m->assigned++;
		return;
	}
}

static void readout(struct model *m, uint32_t rank)
{
	struct role *r = &m->role[rank];

	while (r->waits && r->pool) {
		const struct queued q = r->wait[r->first];

		r->first = (r->first + 1) % m->most;
		r->waits--;
		r->pool--;
		send(m, rank, q.builder, vary(m, m->block_bytes), TAG(KIND_DATA, q.block));
	}
}

static void part(struct model *m, uint32_t rank, uint64_t number)
{
	struct block *of = &m->open[rank * m->o->credit], *b = NULL;

	for (uint32_t i = 0; i < m->o->credit; i++) {
		if (of[i].parts ? of[i].number == number : !b)
			b = &of[i];
		if (of[i].parts && of[i].number == number)
			break;
	}
	if (!b)		/* cannot happen: there is an entry for each block of the credit */
		return;
	b->number = number;
	if (++b->parts < m->readouts)
		return;
	b->parts = 0;
	send(m, rank, 0, WORD, TAG(KIND_BUILT, number));
}

static void heard(struct model *m, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag)
{
	struct role *r = &m->role[to];
	const uint64_t number = BLOCK_OF(tag);

	switch (KIND_OF(tag)) {
	case KIND_ASK:
		m->role[from].credit = m->o->credit;
		for (uint32_t i = 0; i < m->o->credit; i++)
			assign(m);
		break;
	case KIND_ASSIGN:
		r->wait[(r->first + r->waits++) % m->most] = (struct queued) {
			.block = number >> 16, .builder = number & 0xffff,
		};
		readout(m, to);
		break;
	case KIND_DATA:
		r->bytes += bytes;
		part(m, to, number);
		break;
	case KIND_BUILT:
		send(m, 0, from, WORD, TAG(KIND_COMMIT, number));
		break;
	case KIND_COMMIT:
		send(m, to, 0, WORD, TAG(KIND_DONE, number));
		break;
	case KIND_DONE:
		m->built++;
		m->role[from].credit++;
		assign(m);
		break;
	}
}

/* --- events of the network --- */

static void arrived(void *user, uint32_t from, uint32_t to, uint64_t bytes, uint64_t tag)
{
	struct model *m = user;

	if (m->nton || m->nxn)
		m->role[to].bytes += bytes;
	else
		heard(m, from, to, bytes, tag);
}

static void acknowledged(void *user, uint32_t from, uint32_t to, uint64_t tag)
{
	struct model *m = user;

	if (m->nton || m->nxn) {
		send(m, from, to, vary(m, m->o->size), tag);
	} else if (KIND_OF(tag) == KIND_DATA) {
		m->role[from].pool++;
		readout(m, from);
	}
}

static int run(struct model *m)
{
	struct progress progress;
	bool warm = false;

	progress_init_quiet(&progress);
	while (net_step(m->net) && !m->failed && net_now(m->net) < m->seconds_ns) {
		if (!(net_steps(m->net) % 1000000))
			progress_show(&progress, "%.3f of %.3f s of the network",
				      net_now(m->net) / 1e9, m->seconds_ns / 1e9);
		if (warm || net_now(m->net) < m->seconds_ns / WARM)
			continue;
		warm = true;
		m->warm_ns = net_now(m->net);
		m->counted_blocks = m->built;
		for (uint32_t i = 0; i < m->processes; i++)
			m->role[i].counted = m->role[i].bytes;
	}
	progress_end(&progress);
	if (m->failed)
		return fail("no memory");
	return warm ? 0 : fail("nothing happens in %.3g s of this network: raise --seconds",
			       m->seconds_ns / 1e9);
}

/* --- results --- */

static void put_rates(const struct model *m, struct json_object *to, double seconds)
{
	double least = 0, most = 0, sum = 0;
	unsigned int n = 0, machines = 0;
	uint32_t last = UINT32_MAX;

	for (uint32_t i = 0; i < m->processes; i++) {
		const uint32_t machine = i / m->o->model.ranks;
		const bool receives = m->nxn || (m->nton ? i >= m->processes / 2 : builds(m, i));
		const double rate = (m->role[i].bytes - m->role[i].counted) / seconds;

		if (!receives)
			continue;
		least = n && least < rate ? least : rate;
		most = most > rate ? most : rate;
		sum += rate;
		n++;
		machines += machine != last;
		last = machine;
	}
	put_u64(to, "ranks_measured", n);
	put_real(to, "mean_bytes_per_second", n ? sum / n : 0);
	put_real(to, "least_bytes_per_second", least);
	put_real(to, "most_bytes_per_second", most);
	put_real(to, "part_of_link", n ? sum * 8 / (machines * m->o->model.gbps * 1e9) : 0);
}

static int result(const struct model *m)
{
	const double seconds = (net_now(m->net) - m->warm_ns) / 1e9;
	struct json_object *o = json_object_new_object();
	const bool build = !m->nton && !m->nxn;
	uint64_t core, down;

	net_busiest(m->net, &core, &down);
	put_text(o, "command", "model");
	put_text(o, "of", m->o->command);
	put_u64(o, "processes", m->processes);
	put_u64(o, "depth", m->o->fabric.depth);
	put_u64(o, build ? "block_bytes" : "size", build ? m->block_bytes : m->o->size);
	put_real(o, "seconds", seconds);
	put_rates(m, o, seconds);
	put_real(o, "busiest_core_link", core / (double)net_now(m->net));
	put_real(o, "busiest_last_link", down / (double)net_now(m->net));
	if (build)
		put_real(o, "events_per_second", (m->built - m->counted_blocks) * m->o->block / seconds);
	put_u64(o, "fullest_queue_bytes", net_fullest(m->net));
	put_u64(o, "steps", net_steps(m->net));
	if (!m->o->json || json_elsewhere()) {
		printf("%u processes, messages of %" PRIu64 " bytes, depth %u\n", m->processes,
		       build ? m->block_bytes : m->o->size, m->o->fabric.depth);
		printf("%.2f MB/s each (%.2f to %.2f), %.1f %% of a link; the busiest link between switches sent for %.1f %% of the time\n",
		       json_object_get_double(json_object_object_get(o, "mean_bytes_per_second")) / 1e6,
		       json_object_get_double(json_object_object_get(o, "least_bytes_per_second")) / 1e6,
		       json_object_get_double(json_object_object_get(o, "most_bytes_per_second")) / 1e6,
		       json_object_get_double(json_object_object_get(o, "part_of_link")) * 100,
		       core * 100.0 / net_now(m->net));
		if (build)
			printf("%.0f events a second\n",
			       json_object_get_double(json_object_object_get(o, "events_per_second")));
	}
	if (m->o->json)
		return json_finish(o) ? EXIT_FAILED : 0;
	json_object_put(o);
	return 0;
}

static int prepare(struct model *m)
{
	const struct options *o = m->o;

	/* build has a manager, too */
	m->processes = o->readouts + !m->nton - m->nxn;
	if (!m->nxn && !o->folded)
		m->processes += o->builders;
	m->readouts = o->readouts;
	m->builders = o->folded ? o->readouts : o->builders;
	m->most = m->builders * o->credit;
	m->block_bytes = sizeof(struct message) + o->block *
			 (sizeof(struct event_head) + o->sources *
			  (sizeof(struct fragment_head) + padded(o->fragment)));
	if (!m->nton && !m->nxn && m->block_bytes > RASHPA_FABRIC_MESSAGE)
		return fail("a block of %u events would be %" PRIu64 " bytes per readout, and the limit of a message is %u: lower --block, --sources or --fragment",
			    o->block, m->block_bytes, RASHPA_FABRIC_MESSAGE);
	m->seconds_ns = o->seconds * 1e9;
	m->role = calloc(m->processes, sizeof(*m->role));
	m->open = calloc((size_t)m->processes * o->credit, sizeof(*m->open));
	if (!m->role || !m->open)
		return fail("no memory");
	for (uint32_t i = 0; i < m->processes; i++) {
		m->role[i].pool = o->pool;
		m->role[i].wait = reads(m, i) ? calloc(m->most, sizeof(struct queued)) : NULL;
		if (reads(m, i) && !m->role[i].wait)
			return fail("no memory");
	}
	return 0;
}

int model(const struct options *o)
{
	struct model m = {
		.o = o, .nton = !strcmp(o->command, "nton"), .nxn = !strcmp(o->command, "nxn"),
	};
	const struct net_hooks hooks = { arrived, acknowledged, &m };
	int failed = prepare(&m);

	if (!failed) {
		m.net = net_open(&o->model, m.processes, o->fabric.depth, &hooks);
		failed = m.net ? 0 : fail("no memory");
	}
	if (!failed) {
		if (m.nton || m.nxn)
			traffic_begins(&m);
		for (uint32_t i = 1; i < m.processes && !m.nton && !m.nxn; i++) {
			if (builds(&m, i))
				send(&m, i, 0, WORD, TAG(KIND_ASK, 0));
		}
		failed = run(&m);
	}
	if (!failed)
		failed = result(&m);
	net_close(m.net);
	for (uint32_t i = 0; m.role && i < m.processes; i++)
		free(m.role[i].wait);
	free(m.role);
	free(m.open);
	return failed;
}
