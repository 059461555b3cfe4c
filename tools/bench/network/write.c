// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network write: messages to sinks, and their cost at the writer. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json-out.h"
#include "link/network-options.h"
#include "bench/network/network.h"
#include "common/options.h"
#include "common/stop.h"

#define CONNECT_NS	UINT64_C(10000000000)	/* time for a sink to start listening */
#define PATTERN		0x5a

enum {
	OPT_TO = OPT_NET_OWN, OPT_TRANSPORT, OPT_SIZE, OPT_PAIRS, OPT_LINKED, OPT_SOLICITED,
	OPT_DESTINATIONS, OPT_SOURCES, OPT_DEPTH, OPT_TIME, OPT_WARM_UP, OPT_MESSAGES, OPT_RATE,
};

static const struct argp_option options[] = {
	{ "to", OPT_TO, "HOST:PORT", 0, "address of a sink (required); repeat for several sinks", 0 },
	{ "transport", OPT_TRANSPORT, "write|udp|zmq", 0,
	  "RDMA WRITE with immediate (default), or sockets for comparison", 0 },
	{ "size", OPT_SIZE, "BYTES", 0, "message size (default: 4K)", 0 },
	{ "pairs", OPT_PAIRS, "N", 0, "queue pairs, or sockets, to each sink (default: 1)", 0 },
	{ "linked", OPT_LINKED, "N", 0, "writes that are posted together (default: 1)", 0 },
	{ "solicited", OPT_SOLICITED, NULL, 0,
	  "only the last one of linked writes asks the sink for an event", 0 },
	{ "destinations", OPT_DESTINATIONS, "N", 0,
	  "places in the memory of the sink, used in turn (default: 1)", 0 },
	{ "sources", OPT_SOURCES, "N", 0,
	  "places in the memory of the writer, used in turn (default: 1)", 0 },
	{ "depth", OPT_DEPTH, "N", 0, "writes of a pair under way (default: 128)", 0 },
	{ "time", OPT_TIME, "SECONDS", 0, "measured time (default: 5)", 0 },
	{ "warm-up", OPT_WARM_UP, "SECONDS", 0, "time before the measurement (default: 1)", 0 },
	{ "messages", OPT_MESSAGES, "N", 0, "messages of each pair, instead of time and warm-up", 0 },
	{ "repeat", 'r', "N", 0, "repetitions, 1 to 1000 (default: 3)", 0 },
	{ "rate", OPT_RATE, "BYTES", 0, "limit for all pairs, bytes a second (default: none)", 0 },
	NETWORK_SETTINGS
	{}
};

static void check(struct argp_state *state, const struct write_config *c)
{
	const struct plan *p = &c->plan;

	if (!c->targets)
		argp_error(state, "--to is required: set HOST:PORT of a sink");
	if (p->way != WAY_WRITE && (c->targets > 1 || p->linked > 1 || p->solicited))
		argp_error(state, "--transport %s excludes several sinks, --linked and --solicited",
			   way_name(p->way));
	if (p->way != WAY_WRITE && p->size < sizeof(uint32_t))
		argp_error(state, "--size: a message by %s has at least 4 bytes, for its number",
			   way_name(p->way));
	if (p->way == WAY_UDP && p->size > 65507)
		argp_error(state, "--size: UDP datagrams have at most 65507 bytes");
	if (p->linked > c->depth)
		argp_error(state, "--linked %u exceeds --depth %u", p->linked, c->depth);
	if (!p->messages && !(c->time > 0))
		argp_error(state, "--time must be more than 0 seconds");
}

#define AT(member)	offsetof(struct write_config, member)

static const struct option_value values[] = {
	{ OPT_SIZE, VALUE_SIZE32, "--size", AT(plan.size), 1, MESSAGE_MOST },
	{ OPT_PAIRS, VALUE_U32, "--pairs", AT(plan.pairs), 1, PAIRS_MOST },
	{ OPT_LINKED, VALUE_U32, "--linked", AT(plan.linked), 1, 4096 },
	{ OPT_DESTINATIONS, VALUE_U32, "--destinations", AT(plan.destinations), 1, DESTINATIONS_MOST },
	{ OPT_SOURCES, VALUE_U32, "--sources", AT(sources), 1, DESTINATIONS_MOST },
	{ OPT_DEPTH, VALUE_U32, "--depth", AT(depth), 1, 1 << 16 },
	{ OPT_TIME, VALUE_REAL, "--time", AT(time), 0, 86400 },
	{ OPT_WARM_UP, VALUE_REAL, "--warm-up", AT(warm_up), 0, 86400 },
	{ OPT_MESSAGES, VALUE_U64, "--messages", AT(plan.messages), 1, 0x1p40 },
	{ 'r', VALUE_U32, "--repeat", AT(plan.repeats), 1, 1000 },
	{ OPT_RATE, VALUE_SIZE, "--rate", AT(rate), 1, 0x1p46 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct write_config *c = state->input;

	switch (key) {
	case OPT_TO:
		if (c->targets == WRITERS_MOST)
			argp_error(state, "--to: more than %d sinks", WRITERS_MOST);
		c->to[c->targets++] = arg;
		break;
	case OPT_TRANSPORT:
		c->plan.way = option_word(state, "--transport", arg, "write|udp|zmq");
		break;
	case OPT_SOLICITED:
		c->plan.solicited = 1;
		break;
	case ARGP_KEY_END:
		check(state, c);
		break;
	default:
		return option_set(values, key, arg, state) ? network_setting(key, arg, state, &c->common) : 0;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Write messages into the memory of \"rashpa-bench network sink\".",
};

/* --- functions for transports --- */

uint32_t lane_may(const struct lane *l, uint32_t n)
{
	return l->left < n ? l->left : n;
}

void lane_sent(struct lane *l, uint32_t n)
{
	l->number += n;
	l->left -= n;
	atomic_store_explicit(&l->sent, l->number, memory_order_relaxed);
}

bool sender_done(const struct sender *s)
{
	if (atomic_load_explicit(&s->writer->halt, memory_order_relaxed))
		return true;
	for (uint32_t i = 0; i < s->lanes; i++) {
		if (s->lane[i]->left)
			return false;
	}
	return true;
}

void sender_pace(const struct sender *s, uint64_t start, uint64_t bytes)
{
	uint64_t due;

	if (!s->rate)
		return;
	due = start + bytes * 1e9 / s->rate;
	while (now_ns() < due && !s->writer->halt) {
		const struct timespec t = {
			.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000,
		};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
}

/* --- connection --- */

static int find_sink(struct writer *w, struct target *t, char *why)
{
	const struct timespec pause = { .tv_nsec = 50000000 };
	const uint64_t end = now_ns() + CONNECT_NS;
	char refused[WHY_SIZE];

	do {
		if (!link_connect(&t->link, t->to, NULL, refused))
			return 0;
		nanosleep(&pause, NULL);
	} while (!*w->stop && now_ns() < end);
	return because(why, -1, "%s: start rashpa-bench network sink there", refused);
}

static struct sender *sender_of(struct writer *w, const struct target *t, uint32_t pair)
{
	return &w->sender[((t - w->target) * w->plan.pairs + pair) % w->senders];
}

static int agree(struct writer *w, struct target *t, char *why)
{
	struct json_object *hello = plan_write(&w->plan, "hello"), *acceptance;
	struct json_object *ends = json_object_new_array();
	int result = 0;

	json_object_object_add(hello, "ends", ends);
	for (uint32_t i = 0; i < w->plan.pairs && !result; i++) {
		struct sender *s = sender_of(w, t, i);

		s->lane[s->lanes++] = &t->lane[i];
		result = w->way->open_lane(&t->lane[i], s, ends, why);
	}
	if (result) {
		json_object_put(hello);
		return result;
	}
	if (link_send(&t->link, hello, why) ||
	    link_await(&t->link, "accept", false, HANDSHAKE_MS, w->stop, &acceptance, why))
		return -1;
	for (uint32_t i = 0; i < w->plan.pairs && !result; i++)
		result = w->way->connect(&t->lane[i], acceptance, why);
	json_object_put(acceptance);
	return result;
}

static int open_target(struct writer *w, uint32_t i, char *why)
{
	struct target *t = &w->target[i];

	*t = (struct target) {
		.writer = w, .to = w->config->to[i], .link = LINK_NONE,
		.lane = calloc(w->plan.pairs, sizeof(*t->lane)),
	};
	w->targets = i + 1;
	if (!t->lane)
		return because(why, -1, "no memory");
	for (uint32_t p = 0; p < w->plan.pairs; p++) {
		t->lane[p].target = t;
		t->lane[p].index = p;
	}
	return find_sink(w, t, why) ? -1 : agree(w, t, why);
}

static int open_senders(struct writer *w, char *why)
{
	const struct write_config *c = w->config;
	const uint32_t lanes = c->targets * w->plan.pairs;

	w->senders = c->common.threads < lanes ? c->common.threads : lanes;
	for (uint32_t i = 0; i < w->senders; i++) {
		struct sender *s = &w->sender[i];

		s->writer = w;
		s->index = i;
		s->rate = c->rate / w->senders;
		s->lane = calloc((lanes + w->senders - 1) / w->senders, sizeof(struct lane *));
		if (!s->lane)
			return because(why, -1, "no memory");
		if (w->way->open_sender(s, why))
			return -1;
	}
	return 0;
}

static int open_all(struct writer *w, char *why)
{
	static const struct writer_way *const all[WAYS] = {
		[WAY_WRITE] = &writer_write, [WAY_UDP] = &writer_udp, [WAY_ZMQ] = &writer_zmq,
	};
	const struct write_config *c = w->config;

	if (pages_open(&w->memory, c->common.pages, c->common.buffer,
		       (uint64_t)c->sources * w->plan.size, why))
		return -1;
	if (w->memory.length < (uint64_t)c->sources * w->plan.size)
		return because(why, -1, "buffer %s is too small for --sources %u",
			       c->common.buffer, c->sources);
	memset(w->memory.base, PATTERN, (uint64_t)c->sources * w->plan.size);
	w->way = all[w->plan.way];
	if (w->way->open(w, why) || open_senders(w, why))
		return -1;
	for (uint32_t i = 0; i < c->targets; i++) {
		if (open_target(w, i, why))
			return -1;
	}
	return 0;
}

static void close_all(struct writer *w)
{
	for (uint32_t i = 0; i < w->targets; i++) {
		struct target *t = &w->target[i];

		for (uint32_t p = 0; t->lane && p < w->plan.pairs; p++)
			w->way->close_lane(&t->lane[p]);
		free(t->lane);
		link_close(&t->link);
	}
	for (uint32_t i = 0; i < w->senders; i++) {
		w->way->close_sender(&w->sender[i]);
		free(w->sender[i].lane);
	}
	if (w->way)
		w->way->close(w);
	pages_close(&w->memory);
}

/* --- the command --- */

static void print(const struct plan *p, struct json_object *laps)
{
	printf("%" PRIu32 " bytes by %s, %" PRIu32 " pair%s, %" PRIu32 " destination%s\n", p->size,
	       way_name(p->way), p->pairs, p->pairs == 1 ? "" : "s", p->destinations,
	       p->destinations == 1 ? "" : "s");
	for (size_t i = 0; i < json_object_array_length(laps); i++) {
		struct json_object *lap = json_object_array_get_idx(laps, i);
		struct json_object *sinks = json_object_object_get(lap, "sinks");

		for (size_t j = 0; j < json_object_array_length(sinks); j++)
			lap_print(i + 1, json_object_array_get_idx(sinks, j));
	}
}

static int print_json(const struct writer *w, struct json_object *laps)
{
	const struct write_config *c = w->config;
	struct report report = { .repeat = w->plan.repeats, .iommu = -1 };
	struct json_object *o = report_json_head(&report, "network write");
	struct json_object *plan = plan_write(&w->plan, "plan");

	json_object_object_del(plan, "kind");
	put_text(plan, "service", w->plan.service == RASHPA_NET_RC ? "rc" : "uc");
	put_int(plan, "depth", c->depth);
	put_int(plan, "sources", c->sources);
	put_int(plan, "threads", w->senders);
	put_text(plan, "wait", wait_name(c->common.wait));
	put_text(plan, "pages", c->common.buffer ? c->common.buffer : c->common.pages);
	json_object_object_add(o, "plan", plan);
	json_object_object_add(o, "repeats", json_object_get(laps));
	return json_finish(o);
}

int cmd_network_write(int argc, char **argv)
{
	struct write_config c = {
		.common = { .port = NETWORK_DEFAULTS, .threads = 1, .pages = "thp" },
		.plan = { .size = 4096, .pairs = 1, .linked = 1, .destinations = 1, .repeats = 3,
			  .mtu = 4096 },
		.time = 5, .warm_up = 1, .depth = 128, .sources = 1,
	};
	static struct writer w;	/* large */
	struct json_object *laps;
	char why[WHY_SIZE] = "";
	int result;

	w.config = &c;
	w.memory.fd = -1;
	argp_parse(&argp, argc, argv, 0, NULL, &c);
	w.plan = c.plan;
	w.plan.service = c.common.port.service;
	w.stop = stop_on_signals();
	laps = json_object_new_array();
	result = open_all(&w, why);
	for (uint32_t i = 0; i < w.plan.repeats && !result; i++)
		result = writer_lap(&w, laps, why);
	close_all(&w);
	if (result)
		say("%s", why);
	else if (!c.common.json || json_elsewhere())
		print(&w.plan, laps);
	if (!result && c.common.json)
		result = print_json(&w, laps);
	json_object_put(laps);
	return result ? EXIT_FAILED : 0;
}
