// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages by RDMA WRITE: the card writes into the buffer, and completions announce them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/json-out.h"
#include "romulu/receiver-internal.h"
#include <rashpa.h>

#define DONE		64		/* completions of a look */

/* A thread, with the pairs of some flows. */
struct worker {
	struct network *network;
	struct rashpa_net_queue *queue;
	pthread_t thread;
	bool running;
	char why[WHY_SIZE];
};

struct roce {
	struct rashpa_net *net;
	struct rashpa_net_memory memory;
	void *base;			/* buffer address, if registered by address */
	uint64_t length;
	uint32_t receives;		/* receives per thread */
	struct worker *worker;
	uint32_t workers;
};

static int open_port(struct network *n)
{
	struct roce *r = calloc(1, sizeof(*r));

	if (!r)
		return fail("no memory");
	n->path = r;
	return rashpa_net_open(&n->config->options, &r->net) ? fail("%s", rashpa_net_reason()) : 0;
}

/* A completion: its message is in the slot. */
static void take(struct worker *w, struct flow *f, uint32_t immediate)
{
	struct place place;

	if (!flow_place(f, immediate, &place, w->why))
		flow_take(f, &place);
}

static void *receive_messages(void *arg)
{
	struct worker *w = arg;
	const struct network_config *c = w->network->config;
	struct rashpa_net_done done[DONE];
	int found;

	while (!w->network->halt && !*w->why) {
		found = rashpa_net_next(w->queue, done, DONE, c->wait, !c->unsolicited, TICK_MS);
		if (found < 0)
			because(w->why, -1, "%s", rashpa_net_reason());
		for (int i = 0; i < found && !*w->why; i++) {
			/* a pair that is made to receive again has errors */
			if (done[i].received && !done[i].error && done[i].pair)
				take(w, done[i].user, done[i].immediate);
		}
	}
	return NULL;
}

/* A buffer of the host is mapped: most have pages. */
static int map_buffer(struct network *n)
{
	const int node = rashpa_stream_buffer(n->stream);
	struct rashpa_info info = { .fd = -1 };
	struct roce *r = n->path;

	if (rashpa_memory_get_info(node, &info))
		return fail("buffer %s: %s", n->buffer, rashpa_reason());
	r->length = info.out_length;
	r->base = mmap(NULL, r->length, PROT_READ | PROT_WRITE, MAP_SHARED, node, 0);
	if (r->base != MAP_FAILED)
		return 0;
	r->base = NULL;
	return fail("buffer %s: cannot map it: %s", n->buffer, strerror(errno));
}

static int open_memory(struct network *n)
{
	struct roce *r = n->path;
	const char *payload = n->config->payload;
	const struct rashpa_stream_header *h = n->about;
	const uint8_t *at;
	struct rashpa_net_device device = {
		.offset = h->data_offset, .length = h->slots * h->slot_stride, .numa_node = -1,
		.host = !payload, .dmabuf = rashpa_stream_payload(n->stream),
	};

	if (payload && device.dmabuf < 0)
		return fail("%s", rashpa_reason());
	if (!payload && map_buffer(n))
		return EXIT_FAILED;
	at = payload ? n->config->there : r->base;
	device.address = at ? (uintptr_t)at + h->data_offset : 0;
	if (rashpa_net_register_device(r->net, &device, true, &r->memory))
		return fail("%s: %s", payload ? payload : n->buffer, rashpa_net_reason());
	return 0;
}

/* Messages of a stack that one thread gets, at most. */
static uint64_t burden(const struct network *n)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < n->config->threads; i++) {
		uint64_t sum = 0;

		for (uint32_t k = i; k < n->in.flows; k += n->config->threads)
			sum += n->in.flow[k].per_stack;
		most = sum > most ? sum : most;
	}
	return most;
}

/*
 * A message that finds no receive is lost, so there is credit for no more than there are receives;
 * and those for as many stacks as may be incomplete at a time.
 */
static void plan_credit(struct network *n)
{
	struct roce *r = n->path;
	const uint64_t stack = burden(n), card = rashpa_net_about(r->net)->receives;
	const uint64_t few = stack * (n->config->close_after + 2);
	const uint64_t want = few < card ? few : card;

	r->receives = n->config->receives < want ? want : n->config->receives;
	if (r->receives / stack < n->in.window)
		n->in.window = r->receives < stack ? 1 : r->receives / stack;
}

/* Without credit no more than can lie unseen. */
static void plan_receives(struct network *n)
{
	struct roce *r = n->path;
	const uint64_t most = intake_unseen(&n->in) / n->config->threads;

	r->receives = n->config->receives < most ? n->config->receives : most;
}

static int prepare(struct network *n)
{
	struct roce *r = n->path;
	int result = open_memory(n);

	(intake_paced(&n->in) ? plan_credit : plan_receives)(n);
	if (!r->receives)
		return fail("buffer %s: too few slots for %" PRIu32 " threads: use a larger buffer",
			    n->buffer, n->config->threads);
	r->worker = calloc(n->config->threads, sizeof(*r->worker));
	if (!r->worker)
		return fail("no memory");
	for (uint32_t i = 0; i < n->config->threads && !result; i++) {
		r->worker[i].network = n;
		if (rashpa_net_queue_open(r->net, 1, r->receives, &r->worker[i].queue))
			return fail("%s", rashpa_net_reason());
		r->workers++;
	}
	for (uint32_t i = 0; i < n->in.flows && !result; i++) {
		struct flow *f = &n->in.flow[i];
		struct rashpa_net_pair *pair;

		if (rashpa_net_pair_open(r->worker[i % r->workers].queue, 1, f, &pair))
			return fail("%s", rashpa_net_reason());
		f->path = pair;
	}
	return result;
}

static int accept_sender(struct network *n, struct sender *s, struct accept *a, char *why)
{
	const struct roce *r = n->path;

	if (s->hello.service != n->config->options.service)
		return because(why, -1, "the services differ: use the same service on both sides");
	a->address = r->memory.address;
	a->key = r->memory.remote;
	a->mtu = rashpa_net_about(r->net)->mtu;
	for (uint32_t i = 0; i < s->hello.processes; i++) {
		struct rashpa_net_pair *pair = n->in.flow[s->first_flow + i].path;

		rashpa_net_pair_address(pair, &a->end[i].address);
		if (rashpa_net_pair_connect(pair, &s->hello.process[i].end.address))
			return because(why, -1, "%s", rashpa_net_reason());
	}
	return 0;
}

static int start(struct network *n)
{
	struct roce *r = n->path;

	for (uint32_t i = 0; i < r->workers; i++) {
		if (cpus_thread(&r->worker[i].thread, receive_messages, &r->worker[i],
				n->config->cpus, i))
			return EXIT_FAILED;
		r->worker[i].running = true;
	}
	return 0;
}

/* Each one uses a receive. */
static uint64_t messages(const struct network *n)
{
	const struct roce *r = n->path;

	return (uint64_t)r->receives * r->workers;
}

static int again(struct flow *f)
{
	return rashpa_net_pair_again(f->path) ? fail("%s", rashpa_net_reason()) : 0;
}

static const char *failed(const struct network *n)
{
	const struct roce *r = n->path;

	for (uint32_t i = 0; i < r->workers; i++) {
		if (*r->worker[i].why)
			return r->worker[i].why;
	}
	return NULL;
}

static void join(struct network *n)
{
	struct roce *r = n->path;

	for (uint32_t i = 0; i < r->workers; i++) {
		rashpa_net_wake(r->worker[i].queue);
		if (r->worker[i].running)
			pthread_join(r->worker[i].thread, NULL);
		r->worker[i].running = false;
	}
}

static void report(const struct network *n, struct json_object *o)
{
	const struct roce *r = n->path;
	struct rashpa_net_counts sum = { .low = UINT64_MAX }, one;

	for (uint32_t i = 0; i < r->workers; i++) {
		rashpa_net_queue_counts(r->worker[i].queue, &one);
		sum.polls += one.polls;
		sum.empty += one.empty;
		sum.events += one.events;
		sum.completions += one.completions;
		sum.low = one.low < sum.low ? one.low : sum.low;
	}
	put_text(o, "device", rashpa_net_about(r->net)->device);
	put_int(o, "mtu_bytes", rashpa_net_about(r->net)->mtu);
	put_u64(o, "polls", sum.polls);
	put_u64(o, "empty_polls", sum.empty);
	put_u64(o, "events", sum.events);
	put_u64(o, "completions", sum.completions);
	put_u64(o, "least_receives", sum.low);
}

static void close_all(struct network *n)
{
	struct roce *r = n->path;

	for (uint32_t i = 0; n->in.flow && i < n->in.flows; i++)
		rashpa_net_pair_close(n->in.flow[i].path);
	for (uint32_t i = 0; i < r->workers; i++)
		rashpa_net_queue_close(r->worker[i].queue);
	rashpa_net_unregister(&r->memory);
	if (r->base)
		munmap(r->base, r->length);
	rashpa_net_close(r->net);
	free(r->worker);
	free(r);
}

const struct receiving receiving_roce = {
	.direct = true,
	.open = open_port,
	.prepare = prepare,
	.accept = accept_sender,
	.start = start,
	.messages = messages,
	.again = again,
	.failed = failed,
	.join = join,
	.report = report,
	.close = close_all,
};
