// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-builder burst: cost of the library compared with MPI alone. Two processes alternate
 * between MPI, with 64 messages at a time as network benchmarks do, and the same number of messages
 * through each variant of the library. A ratio compares times of one round, as absolute times vary.
 */
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/builder.h"
#include "common/json-out.h"
#include "common/parse.h"
#include "common/say.h"
#include "common/shown.h"
#include "common/stats.h"

#define WINDOW		64u	/* messages that MPI alone waits for together */
#define THREAD_TIMES	8u	/* more messages with a thread, which starts anew each round */
#define LEAST_NS	5000000u	/* shortest round of MPI alone: hides its start and end */
#define LEAST_SIZE	1024u
#define MOST_SIZE	(1u << 20)
#define PEERS_NAME	"MPI, 64 and MPI_Waitall"

/*
 * The variants; the first one of a direction is the reference for the others. All but two run
 * without a thread of the library: with fewer processors than threads, the measurement would show
 * only the scheduling of threads.
 */
static const struct way {
	const char *name;
	bool both, alone, thread;
	uint32_t poll, depth, buffers, flags;
} ways[] = {
	{ "MPI alone", false, true, false, 0, WINDOW, 1, 0 },
	{ "layer alone", false, false, false, RASHPA_FABRIC_WAITALL, WINDOW, 1,
	  RASHPA_FABRIC_BUFFERED },
	{ "synchronous", false, false, false, RASHPA_FABRIC_WAITALL, WINDOW, 1, 0 },
	{ "waitsome", false, false, false, RASHPA_FABRIC_WAITSOME, 8, 1, 0 },
	{ "test", false, false, false, RASHPA_FABRIC_TEST, 8, 1, 0 },
	{ "testsome", false, false, false, RASHPA_FABRIC_TESTSOME, 8, 1, 0 },
	{ "testall", false, false, false, RASHPA_FABRIC_TESTALL, 8, 1, 0 },
	{ "many buffers", false, false, false, RASHPA_FABRIC_TESTSOME, 8, 16, 0 },
	{ "depth 1", false, false, false, RASHPA_FABRIC_TESTSOME, 1, 1, 0 },
	{ "depth 2", false, false, false, RASHPA_FABRIC_TESTSOME, 2, 1, 0 },
	{ "depth 16", false, false, false, RASHPA_FABRIC_TESTSOME, 16, 1, 0 },
	{ "depth 64", false, false, false, RASHPA_FABRIC_TESTSOME, 64, 1, 0 },
	{ "thread", false, false, true, RASHPA_FABRIC_WAITALL, WINDOW, 1, RASHPA_FABRIC_BUFFERED },
	{ "thread, testsome", false, false, true, RASHPA_FABRIC_TESTSOME, 8, 1, 0 },
	{ "both: MPI alone", true, true, false, 0, WINDOW, 1, 0 },
	{ "both: test", true, false, false, RASHPA_FABRIC_TEST, 8, 1, 0 },
	{ "both: testsome", true, false, false, RASHPA_FABRIC_TESTSOME, 8, 1, 0 },
	{ "both: testall", true, false, false, RASHPA_FABRIC_TESTALL, 8, 1, 0 },
	{ "both: many buffers", true, false, false, RASHPA_FABRIC_TESTSOME, 8, 16, 0 },
	{ "both: depth 1", true, false, false, RASHPA_FABRIC_TESTSOME, 1, 1, 0 },
	{ "both: depth 64", true, false, false, RASHPA_FABRIC_TESTSOME, 64, 1, 0 },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

struct flow {
	struct rashpa_pool *pool;
	void *buffer;			/* the only one, or NULL */
	uint64_t left, posted, done;	/* messages to be posted, posted, completed */
	uint32_t length;
};

struct layer {
	struct rashpa_fabric *f;
	struct flow flow[2];		/* sent messages, received messages */
};

struct bench {
	const struct options *o;
	int rank;
	uint8_t *out, *in;		/* memory of MPI alone */
	struct layer layer[WAYS];	/* without a thread, kept for all rounds of a size */
	struct progress progress;
	struct json_object *rows;
};

/* --- MPI alone --- */

/* Posts 64 messages for each direction, and waits for them; one way, the receiver confirms them. */
static uint64_t alone(const struct bench *b, const struct way *w, uint32_t size, uint64_t messages)
{
	MPI_Request request[2 * WINDOW];
	MPI_Status status[2 * WINDOW];	/* unused; network benchmarks ask for it, too */
	const uint64_t began = now_ns();

	for (uint64_t sent = 0; sent < messages; sent += WINDOW) {
		int n = 0;

		for (unsigned int i = 0; i < WINDOW && (b->rank || w->both); i++)
			MPI_Irecv(b->in, size, MPI_BYTE, !b->rank, 1, MPI_COMM_WORLD,
				  &request[n++]);
		for (unsigned int i = 0; i < WINDOW && (!b->rank || w->both); i++)
			MPI_Isend(b->out, size, MPI_BYTE, !b->rank, 1, MPI_COMM_WORLD,
				  &request[n++]);
		MPI_Waitall(n, request, status);
		if (w->both)
			continue;
		if (b->rank)
			MPI_Send(b->out, 4, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
		else
			MPI_Recv(b->in, 4, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	return now_ns() - began;
}

/* --- through the library --- */

static int open_flow(struct rashpa_arena *a, const struct way *w, struct flow *flow, uint32_t size)
{
	const int error = rashpa_pool_open(a, size, w->buffers, &flow->pool);

	if (error)
		return error;
	flow->length = size;
	if (w->buffers == 1)
		flow->buffer = rashpa_pool_take(flow->pool, 0);
	return 0;
}

/* Posts as many messages as there is room for. */
static int post(struct rashpa_fabric *f, struct flow *flow, uint32_t peer, bool receive)
{
	struct rashpa_fabric_request r = {
		.buffer = flow->buffer, .pool = flow->buffer ? NULL : flow->pool,
		.length = flow->length, .peer = peer, .tag = 1,
	};
	uint64_t room = 2 * WINDOW - (flow->posted - flow->done);
	int error = 0;

	for (room = room < flow->left ? room : flow->left; room && !error; room--) {
		if (!flow->buffer)
			r.buffer = rashpa_pool_take(flow->pool, 0);
		if (!r.buffer)
			break;
		error = receive ? rashpa_fabric_receive(f, &r) : rashpa_fabric_send(f, &r);
		if (!error) {
			flow->posted++;
			flow->left--;
		}
	}
	return error;
}

static int take(struct rashpa_fabric *f, struct flow *flow, uint32_t peer)
{
	struct rashpa_fabric_event e[WINDOW];
	const int n = rashpa_fabric_next(f, e, WINDOW, INT64_C(1000000000));
	bool moved[2] = { false, false };
	int error = 0;

	for (int i = 0; i < n && !error; i++) {
		struct flow *of = &flow[e[i].received];

		error = e[i].status;
		of->done++;
		moved[e[i].received] = true;
		if (!of->buffer)
			rashpa_pool_give(of->pool, e[i].request.buffer);
	}
	for (int i = 0; i < 2 && !error; i++) {
		if (moved[i])
			error = post(f, &flow[i], peer, i);
	}
	return error;
}

static bool over(const struct flow *flow)
{
	return !flow->left && flow->posted == flow->done;
}

static int go(struct layer *l, uint32_t peer, double timeout)
{
	uint64_t moved = now_ns(), all;
	int error = post(l->f, &l->flow[1], peer, true);

	if (!error)
		error = post(l->f, &l->flow[0], peer, false);
	while (!error && !(over(&l->flow[0]) && over(&l->flow[1]))) {
		all = l->flow[0].done + l->flow[1].done;
		error = take(l->f, l->flow, peer);
		if (l->flow[0].done + l->flow[1].done != all)
			moved = now_ns();
		else if (!error && (now_ns() - moved) / 1e9 > timeout)
			error = -ETIMEDOUT;
	}
	return error;
}

static int open_layer(const struct bench *b, const struct way *w, uint32_t size, struct layer *l)
{
	const struct rashpa_fabric_options options = {
		.transport = "mpi", .depth = w->depth, .queue = 2 * WINDOW, .poll = w->poll,
		.flags = w->flags | (w->thread ? 0 : RASHPA_FABRIC_DRIVEN),
		.cpu = b->o->fabric.cpu, .timeout_ms = b->o->fabric.timeout_ms,
	};
	const uint64_t room = rashpa_pool_room(size, w->buffers);
	struct rashpa_arena *a;
	int error = rashpa_fabric_open(&options, &l->f);

	for (int i = 0; i < 2 && !error; i++) {
		/* same buffer as MPI alone: the place of its pages matters more than the library */
		error = w->buffers == 1 ? rashpa_arena_bring(l->f, i ? b->in : b->out, room, &a) :
					  rashpa_arena_allocate(l->f, room, &a);
		if (!error)
			error = open_flow(a, w, &l->flow[i], size);
	}
	return error ? error : rashpa_fabric_connect(l->f);
}

static void close_layer(struct layer *l)
{
	rashpa_fabric_close(l->f);
	*l = (struct layer) {};
}

/* The peer may be blocked in MPI, and nothing can interrupt it: a failure ends both processes. */
static void failed(const struct bench *b, const struct way *w, uint32_t size, int error)
{
	if (error == -ETIMEDOUT)
		fail("rank %d: %s, %u bytes: no progress for %.3g s", b->rank, w->name, size,
		     b->o->timeout);
	else
		fail_fabric(NULL, error, "");
	MPI_Abort(MPI_COMM_WORLD, error == -ETIMEDOUT ? EXIT_TIMEOUT : EXIT_FAILED);
}

static uint64_t through(struct bench *b, const struct way *w, struct layer *l, uint64_t messages)
{
	const uint64_t began = now_ns();
	int error;

	l->flow[0].left = w->both || !b->rank ? messages : 0;
	l->flow[1].left = w->both || b->rank ? messages : 0;
	error = go(l, !b->rank, b->o->timeout);
	if (error)
		failed(b, w, l->flow[0].length, error);
	return now_ns() - began;
}

/* --- rounds --- */

static bool wanted(const struct bench *b, size_t way)
{
	return ways[way].alone || !b->o->way || !strcmp(ways[way].name, b->o->way);
}

bool burst_way(const char *name)
{
	for (size_t i = 0; i < WAYS; i++) {
		if (!ways[i].alone && !strcmp(ways[i].name, name))
			return true;
	}
	return false;
}

/* Time of the slower process, in nanoseconds. */
static uint64_t measure(struct bench *b, size_t way, uint32_t size, uint64_t messages)
{
	const struct way *w = &ways[way];
	struct layer *l = &b->layer[way];
	const uint32_t times = w->thread ? THREAD_TIMES : 1;
	uint64_t mine, slower = 0;
	int error = 0;

	if (!w->alone && !l->f)
		error = open_layer(b, w, size, l);
	if (error)
		failed(b, w, size, error);
	/* only the library's thread may call MPI while it runs; connecting is its barrier */
	if (!w->thread)
		MPI_Barrier(MPI_COMM_WORLD);
	mine = w->alone ? alone(b, w, size, messages) : through(b, w, l, messages * times) / times;
	if (w->thread)
		close_layer(l);
	MPI_Allreduce(&mine, &slower, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
	return slower;
}

static void row(struct bench *b, const struct way *w, uint32_t size, uint64_t messages,
		struct samples *ours, struct samples *theirs, struct samples *ratio)
{
	const double bytes = (double)size * messages * (1 + w->both);
	struct json_object *o = json_object_new_object();

	samples_sort(ours);
	samples_sort(theirs);
	samples_sort(ratio);
	put_text(o, "name", w->name);
	put_text(o, "backend", "mpi");
	put_text(o, "peer", PEERS_NAME);
	put_u64(o, "size_bytes", size);
	put_real(o, "ours", bytes / percentile(ours->value, ours->count, 50));
	put_real(o, "theirs", bytes / percentile(theirs->value, theirs->count, 50));
	put_real(o, "ratio", percentile(ratio->value, ratio->count, 50) / 1e6);
	put_real(o, "ratio_first_quartile", percentile(ratio->value, ratio->count, 25) / 1e6);
	put_real(o, "ratio_third_quartile", percentile(ratio->value, ratio->count, 75) / 1e6);
	put_text(o, "unit", "GB/s");
	put_text(o, "better", "higher");
	json_object_array_add(b->rows, o);
}

static void rows(struct bench *b, uint32_t size, uint64_t messages, const uint64_t *ns)
{
	size_t beside = 0;

	for (size_t i = 0; i < WAYS; i++) {
		struct samples ours = {}, theirs = {}, ratio = {};

		if (ways[i].alone) {
			beside = i;
			continue;
		}
		if (!wanted(b, i))
			continue;
		for (uint32_t j = 0; j < b->o->rounds; j++) {
			const uint64_t our = ns[j * WAYS + i], their = ns[j * WAYS + beside];

			samples_add(&ours, our);
			samples_add(&theirs, their);
			samples_add(&ratio, their * 1e6 / our);	/* parts of a million */
		}
		row(b, &ways[i], size, messages, &ours, &theirs, &ratio);
		samples_free(&ours);
		samples_free(&theirs);
		samples_free(&ratio);
	}
}

/* Number of messages for which a round of MPI alone takes at least LEAST_NS. */
static uint64_t enough(struct bench *b, uint32_t size)
{
	uint64_t messages = WINDOW;

	while (measure(b, 0, size, messages) < LEAST_NS)
		messages *= 2;
	return messages;
}

static int sizes(struct bench *b, const volatile bool *stop)
{
	const uint32_t first = b->o->one_size ? b->o->size : LEAST_SIZE;
	const uint32_t last = b->o->one_size ? b->o->size : MOST_SIZE;
	uint64_t *ns = calloc((size_t)b->o->rounds * WAYS, sizeof(*ns));
	int stopped = 0;

	if (!ns)
		return fail("no memory");
	for (uint64_t size = first; size <= last && !stopped; size *= 2) {
		const uint64_t messages = enough(b, size);

		for (uint32_t i = 0; i < b->o->rounds && !stopped; i++) {
			char text[SIZE_TEXT];

			if (!b->rank)
				progress_show(&b->progress, "messages of %s: round %u of %u",
					      format_size(text, size), i + 1, b->o->rounds);
			/* alternate the order, so that no variant always runs after the same one */
			for (size_t j = 0; j < WAYS; j++) {
				const size_t k = (i + (i % 2 ? WAYS - j : j)) % WAYS;

				if (wanted(b, k))
					ns[i * WAYS + k] = measure(b, k, size, messages);
			}
			stopped = *stop;
			MPI_Allreduce(MPI_IN_PLACE, &stopped, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
		}
		if (!stopped)
			rows(b, size, messages, ns);
		for (size_t i = 0; i < WAYS; i++)
			close_layer(&b->layer[i]);
	}
	free(ns);
	return stopped ? fail("rank %d: interrupted before the end", b->rank) : 0;
}

/* --- results --- */

static double real(struct json_object *of, const char *key)
{
	return json_object_get_double(json_object_object_get(of, key));
}

static void text(struct json_object *list)
{
	printf("%10s  %-20s %9s %9s %7s  %s\n", "bytes", "way", "GB/s", "MPI", "ratio",
	       "quartiles");
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *o = json_object_array_get_idx(list, i);

		printf("%10u  %-20s %9.3f %9.3f %7.3f  %.3f to %.3f\n",
		       (unsigned int)real(o, "size_bytes"),
		       SHOWN(json_object_get_string(json_object_object_get(o, "name"))), real(o, "ours"),
		       real(o, "theirs"), real(o, "ratio"), real(o, "ratio_first_quartile"),
		       real(o, "ratio_third_quartile"));
	}
}

static int report(const struct bench *b)
{
	struct json_object *all = json_object_new_object();

	put_text(all, "bench", "builder");
	put_text(all, "version", RASHPA_VERSION);
	put_u64(all, "repetitions", b->o->rounds);
	if (!b->o->json || json_elsewhere())
		text(b->rows);
	json_object_object_add(all, "rows", json_object_get(b->rows));
	if (b->o->json)
		return json_finish(all) ? EXIT_FAILED : 0;
	json_object_put(all);
	return 0;
}

int burst(const struct options *o, const volatile bool *stop)
{
	const size_t bytes = o->one_size ? (o->size + 4095u) / 4096 * 4096 : MOST_SIZE;
	struct bench b = { .o = o, .rows = json_object_new_array() };
	int level, size, result = 0;

	setenv(RASHPA_FABRIC_OPENMPI, 0);
	MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &b.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	progress_init_quiet(&b.progress);
	b.out = aligned_alloc(4096, bytes);
	b.in = aligned_alloc(4096, bytes);
	if (level < MPI_THREAD_SERIALIZED) {
		result = fail("this MPI allows one thread only: burst needs MPI_THREAD_SERIALIZED");
	} else if (size != 2) {
		result = fail("burst needs two processes, not %d: mpirun -n 2 rashpa-builder burst",
			      size);
	} else if (!b.out || !b.in) {
		result = fail("no memory");
	} else {
		/* unwritten memory maps one page of zeros, which always hits the cache */
		memset(b.out, 1, bytes);
		memset(b.in, 1, bytes);
		result = sizes(&b, stop);
	}
	progress_end(&b.progress);
	if (!result && !b.rank)
		result = report(&b);
	MPI_Finalize();
	json_object_put(b.rows);
	free(b.out);
	free(b.in);
	return result;
}
