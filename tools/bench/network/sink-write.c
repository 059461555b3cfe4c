// SPDX-License-Identifier: LGPL-2.1-or-later
/* A sink of RDMA WRITE: no copies; completions give the message number. */
#include <errno.h>
#include <stdlib.h>

#include "common/json-out.h"
#include "bench/network/network.h"

#define DONE	64		/* completions to take at a time */

struct rdma {
	struct rashpa_net *net;
	struct rashpa_net_memory memory;
	struct rashpa_net_queue *queue[THREADS_MOST];
};

static int sorry(char *why)
{
	return because(why, -1, "%s", rashpa_net_reason());
}

/* Of a thread, if each writer has as many pairs as the first one. */
static uint32_t completions(const struct sink *s)
{
	const struct sink_config *c = s->config;
	const uint32_t pairs = s->guest[0].plan.pairs, threads = c->common.threads;

	return c->writers * ((pairs + threads - 1) / threads) * (c->receives + DONE);
}

/* A receive has memory in name only: a WRITE with immediate writes elsewhere. */
static int receive_again(const struct sink *s, struct rashpa_net_pair *pair, uint32_t n)
{
	const struct rdma *r = s->path;
	const struct rashpa_net_message one = {
		.address = r->memory.address, .length = 1, .local = r->memory.local,
	};
	int error = 0;

	while (n-- && !error)
		error = rashpa_net_receive(pair, &one);
	return error;
}

static int open_pair(struct sink *s, uint32_t i, struct sequence *sequence,
		     struct rashpa_net_pair **pair)
{
	const uint32_t receives = s->config->receives;
	struct rdma *r = s->path;
	struct rashpa_net_queue *queue = r->queue[i % s->receivers];

	if (!s->config->private)
		return rashpa_net_pair_open(queue, 1, sequence, pair);
	/* room for those that are posted again while the pair connects again */
	return rashpa_net_pair_messages(queue, 1, receives + DONE, sequence, pair) ?:
	       receive_again(s, *pair, receives);
}

static int register_memory(struct sink *s, struct rdma *r)
{
	if (s->config->gpu)
		return rashpa_net_register_device(r->net, &s->gpu.device, true, &r->memory);
	return rashpa_net_register(r->net, s->memory.base, s->memory.length, true, &r->memory);
}

static int open_sink(struct sink *s, char *why)
{
	const struct sink_config *c = s->config;
	struct rashpa_net_options port = c->common.port;
	struct rdma *r = calloc(1, sizeof(*r));

	if (!r)
		return because(why, -1, "no memory");
	s->path = r;
	port.service = s->guest[0].plan.service;
	if (rashpa_net_open(&port, &r->net) || register_memory(s, r))
		return sorry(why);
	s->port = rashpa_net_about(r->net);
	for (uint32_t i = 0; i < c->common.threads; i++) {
		/* private receives of all pairs complete here */
		const uint32_t all = c->private ? completions(s) : 1;

		if (rashpa_net_queue_open(r->net, all, c->private ? 0 : c->receives, &r->queue[i]))
			return sorry(why);
		s->receiver[i] = (struct receiver) { .sink = s, .index = i, .path = r->queue[i] };
		s->receivers = i + 1;
	}
	return 0;
}

static int open_pairs(struct sink *s, struct guest *g, struct json_object *ends,
		      struct json_object *mine, char *why)
{
	for (uint32_t i = 0; i < g->plan.pairs; i++) {
		struct rashpa_net_pair *pair;
		struct rashpa_net_address end;

		if (open_pair(s, i, &g->sequence[i], &pair))
			return sorry(why);
		g->pair[i] = pair;
		if (end_read(ends, i, &end, why))
			return -1;
		if (rashpa_net_pair_connect(pair, &end))
			return sorry(why);
		ends_add(mine, pair);
	}
	return 0;
}

static int accept_guest(struct sink *s, struct guest *g, struct json_object *hello,
			struct json_object *acceptance, char *why)
{
	const struct rdma *r = s->path;
	struct json_object *ends, *mine = json_object_new_array();

	json_object_object_add(acceptance, "ends", mine);
	put_u64(acceptance, "address", r->memory.address + g->offset);
	put_int(acceptance, "key", r->memory.remote);
	if (g->plan.mtu > s->port->mtu)
		return because(why, -1, "its packets have %u bytes, but %s takes %u: set --mtu of the writer",
			       g->plan.mtu, s->port->device, s->port->mtu);
	if (!link_array(hello, "ends", g->plan.pairs, g->plan.pairs, &ends, why))
		return -1;
	return open_pairs(s, g, ends, mine, why);
}

static int receive(struct receiver *r)
{
	const struct sink_config *c = r->sink->config;
	const bool solicited = r->sink->guest[0].plan.solicited && !c->unsolicited;
	struct rashpa_net_done done[DONE];

	while (!r->sink->halt) {
		int n = rashpa_net_next(r->path, done, DONE, c->common.wait, solicited, TICK_MS);

		if (n < 0)
			return sorry(r->why);
		for (int i = 0; i < n; i++) {
			/* a reconnected pair completes its old requests with errors */
			if (!done[i].received || done[i].error || !done[i].user)
				continue;
			sequence_take(done[i].user, done[i].immediate);
			if (c->private && receive_again(r->sink, done[i].pair, 1))
				return sorry(r->why);
		}
	}
	return 0;
}

static void arrivals(const struct sink *s, struct arrivals *a)
{
	const struct rdma *r = s->path;

	a->least = UINT64_MAX;
	for (uint32_t i = 0; i < s->receivers; i++) {
		struct rashpa_net_counts c;

		rashpa_net_queue_counts(r->queue[i], &c);
		a->polls += c.polls;
		a->empty += c.empty;
		a->events += c.events;
		a->least = c.low < a->least ? c.low : a->least;
	}
}

static int again(struct sink *s, struct guest *g, uint32_t pair, char *why)
{
	if (g->plan.service != RASHPA_NET_UC)
		return 0;
	if (rashpa_net_pair_again(g->pair[pair]))
		return sorry(why);
	return s->config->private && receive_again(s, g->pair[pair], s->config->receives) ? sorry(why) : 0;
}

static void close_sink(struct sink *s)
{
	struct rdma *r = s->path;

	if (!r)
		return;
	for (uint32_t i = 0; i < s->guests; i++) {
		for (uint32_t p = 0; s->guest[i].pair && p < s->guest[i].plan.pairs; p++)
			rashpa_net_pair_close(s->guest[i].pair[p]);
	}
	for (uint32_t i = 0; i < THREADS_MOST; i++)
		rashpa_net_queue_close(r->queue[i]);
	rashpa_net_unregister(&r->memory);
	rashpa_net_close(r->net);
	free(r);
}

const struct sink_way sink_write = {
	.open = open_sink,
	.accept = accept_guest,
	.receive = receive,
	.arrivals = arrivals,
	.again = again,
	.close = close_sink,
};
