// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages by RDMA WRITE with immediate. */
#include <errno.h>
#include <stdlib.h>

#include "common/json-out.h"
#include "bench/network/network.h"

#define CHAIN		256		/* maximum number of writes per call of the library */
#define SIGNAL		64		/* writes per completion, unless linked */
#define DONE		64

struct rdma {
	struct rashpa_net *net;
	struct rashpa_net_memory memory;
};

static int sorry(char *why)
{
	return because(why, -1, "%s", rashpa_net_reason());
}

/* Writes per completion: a chain, or for single writes so few that the queue never runs empty. */
static uint32_t interval(const struct writer *w)
{
	const uint32_t half = (w->config->depth + 1) / 2;

	if (w->plan.linked > 1)
		return w->plan.linked;
	return half < SIGNAL ? half : SIGNAL;
}

static int open_writer(struct writer *w, char *why)
{
	struct rdma *r = calloc(1, sizeof(*r));

	if (!r)
		return because(why, -1, "no memory");
	w->path = r;
	if (rashpa_net_open(&w->config->common.port, &r->net) ||
	    rashpa_net_register(r->net, w->memory.base, w->memory.length, false, &r->memory))
		return sorry(why);
	w->port = rashpa_net_about(r->net);
	w->plan.mtu = w->port->mtu;
	if (w->plan.size > w->port->message)
		return because(why, -1, "%s: the maximum message size is %u bytes", w->port->device,
			       w->port->message);
	return 0;
}

static int open_sender(struct sender *s, char *why)
{
	const struct writer *w = s->writer;
	const uint32_t all = w->config->targets * w->plan.pairs;
	const uint32_t lanes = (all - s->index + w->senders - 1) / w->senders;
	const struct rdma *r = w->path;
	struct rashpa_net_queue *queue;

	/* cards have few completions: one for each interval under way, not for each write */
	if (rashpa_net_queue_open(r->net, lanes * (w->config->depth / interval(w) + 2), 0, &queue))
		return sorry(why);
	s->path = queue;
	return 0;
}

static int open_lane(struct lane *l, struct sender *s, struct json_object *ends, char *why)
{
	struct rashpa_net_pair *pair;

	if (rashpa_net_pair_open(s->path, s->writer->config->depth, l, &pair))
		return sorry(why);
	l->path = pair;
	ends_add(ends, pair);
	return 0;
}

static int connect_lane(struct lane *l, struct json_object *acceptance, char *why)
{
	struct target *t = l->target;
	const uint32_t pairs = t->writer->plan.pairs;
	struct rashpa_net_address end;
	struct json_object *ends;

	if (!link_number(acceptance, "address", 0, UINT64_MAX, &t->address, why) ||
	    !link_u32(acceptance, "key", 0, UINT32_MAX, &t->key, why) ||
	    !link_array(acceptance, "ends", pairs, pairs, &ends, why) ||
	    end_read(ends, l->index, &end, why))
		return -1;
	return rashpa_net_pair_connect(l->path, &end) ? sorry(why) : 0;
}

static bool signaled(const struct writer *w, uint64_t number)
{
	return w->plan.linked > 1 || number % interval(w) == 0;
}

static struct rashpa_net_write message(const struct lane *l, uint64_t number)
{
	const struct writer *w = l->target->writer;
	const struct rdma *r = w->path;
	const struct plan *p = &w->plan;
	const uint64_t to = (number * p->pairs + l->index) % p->destinations;

	return (struct rashpa_net_write) {
		.from = r->memory.address + number % w->config->sources * p->size,
		.to = l->target->address + to * p->size,
		.length = p->size,
		.local = r->memory.local,
		.remote = l->target->key,
		.immediate = number,
		.id = number + 1,
		.flags = RASHPA_NET_IMMEDIATE,
	};
}

/* Post the next chain, in pieces of at most CHAIN writes. */
static int post(struct lane *l, uint32_t n, char *why)
{
	const struct writer *w = l->target->writer;
	const struct plan *plan = &w->plan;
	struct rashpa_net_write chain[CHAIN];

	for (uint32_t done = 0; done < n;) {
		const uint32_t some = n - done < CHAIN ? n - done : CHAIN;

		for (uint32_t i = 0; i < some; i++)
			chain[i] = message(l, l->number + i);
		done += some;
		if (done == n && plan->solicited)
			chain[some - 1].flags |= RASHPA_NET_SOLICITED;
		if (done == n && (l->left == some || signaled(w, l->number + some)))
			chain[some - 1].flags |= RASHPA_NET_SIGNALED;
		if (rashpa_net_write(l->path, chain, some))
			return sorry(why);
		lane_sent(l, some);
	}
	return 0;
}

static int complete(struct sender *s, bool wait)
{
	struct rashpa_net_done done[DONE];
	const uint32_t how = wait ? s->writer->config->common.wait : RASHPA_NET_POLL;
	int n = rashpa_net_next(s->path, done, DONE, how, false, wait ? TICK_MS : 0);

	if (n < 0)
		return sorry(s->why);
	for (int i = 0; i < n; i++) {
		struct lane *l = done[i].user;

		if (!l)
			continue;
		if (done[i].error)
			return because(s->why, -1, "%s: a write failed: check that the sink is running",
				       l->target->link.peer);
		atomic_store_explicit(&l->completed, done[i].id, memory_order_relaxed);
	}
	return n;
}

/* Number of writes that may be posted now: a chain or 0. At the end: stop after a completion. */
static uint32_t room(const struct lane *l, bool halt)
{
	const struct writer *w = l->target->writer;
	const uint32_t n = lane_may(l, w->plan.linked);

	if (halt && signaled(w, l->number))
		return 0;
	return l->number - l->completed + n <= w->config->depth ? n : 0;
}

static bool under_way(const struct sender *s)
{
	for (uint32_t i = 0; i < s->lanes; i++) {
		if (s->lane[i]->completed < s->lane[i]->number)
			return true;
	}
	return false;
}

static int send_all(struct sender *s)
{
	const struct writer *w = s->writer;
	const uint64_t start = now_ns();
	uint64_t bytes = 0;
	int found = 0;

	while (found >= 0 && (!sender_done(s) || under_way(s))) {
		uint32_t any = 0;

		for (uint32_t i = 0; i < s->lanes; i++) {
			const uint32_t n = room(s->lane[i], w->halt);

			if (n && post(s->lane[i], n, s->why))
				return -1;
			any += n;
			bytes += (uint64_t)n * w->plan.size;
			sender_pace(s, start, bytes);
		}
		s->full += !any;
		/* do not wait while writes can be posted; at the end, wait for completions */
		found = complete(s, !any);
	}
	return found < 0 ? -1 : 0;
}

static void arrivals(const struct writer *w, struct arrivals *a)
{
	for (uint32_t i = 0; i < w->senders; i++) {
		struct rashpa_net_counts c;

		rashpa_net_queue_counts(w->sender[i].path, &c);
		a->polls += c.polls;
		a->events += c.events;
	}
}

static void close_lane(struct lane *l)
{
	rashpa_net_pair_close(l->path);
}

static void close_sender(struct sender *s)
{
	rashpa_net_queue_close(s->path);
}

static void close_writer(struct writer *w)
{
	struct rdma *r = w->path;

	if (!r)
		return;
	rashpa_net_unregister(&r->memory);
	rashpa_net_close(r->net);
	free(r);
}

const struct writer_way writer_write = {
	.open = open_writer,
	.open_sender = open_sender,
	.open_lane = open_lane,
	.connect = connect_lane,
	.send = send_all,
	.arrivals = arrivals,
	.close_lane = close_lane,
	.close_sender = close_sender,
	.close = close_writer,
};
