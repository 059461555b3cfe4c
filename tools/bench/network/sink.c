// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network sink: received messages, and their cost at the sink. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "link/network-options.h"
#include "bench/network/network.h"
#include "common/options.h"
#include "common/stop.h"

enum {
	OPT_LISTEN = OPT_NET_OWN, OPT_MEMORY, OPT_WRITERS, OPT_RECEIVES, OPT_SETTLE, OPT_STALL,
	OPT_INTERVAL, OPT_UNSOLICITED, OPT_VERIFY, OPT_SERIES, OPT_PRIVATE, OPT_GPU,
};

static const struct argp_option options[] = {
	{ "listen", OPT_LISTEN, "[ADDRESS:]PORT", 0, "address for writers (required)", 0 },
	{ "memory", OPT_MEMORY, "SIZE", 0, "memory for all writers (default: 64M)", 0 },
	{ "gpu", OPT_GPU, "cuda[:N]|vulkan[:N]|rocm[:N]", 0,
	  "the memory is that of this GPU; its load and power are sampled (NVML)", 0 },
	{ "writers", OPT_WRITERS, "N", 0, "number of concurrent writers (default: 1)", 0 },
	{ "receives", OPT_RECEIVES, "N", 0,
	  "receives that the pairs of a thread share (default: 512)", 0 },
	{ "private-receives", OPT_PRIVATE, NULL, 0, "each pair has --receives; the pairs of a thread share none", 0 },
	{ "unsolicited", OPT_UNSOLICITED, NULL, 0,
	  "an event for each message, even if writers ask for fewer", 0 },
	{ "interval", OPT_INTERVAL, "MS", 0, "time between samples (default: 10)", 0 },
	{ "series", OPT_SERIES, NULL, 0, "add goodput and processor time over time to --json", 0 },
	{ "settle", OPT_SETTLE, "MS", 0,
	  "time after the last message until others count as missing (default: 2000)", 0 },
	{ "stall", OPT_STALL, "MS", 0,
	  "reconnect a pair that receives nothing for MS while others do (default: 500)",
	  0 },
	{ "verify", OPT_VERIFY, NULL, 0, "check the content of each destination at the end", 0 },
	NETWORK_SETTINGS
	{}
};

#define AT(member)	offsetof(struct sink_config, member)

static const struct option_value values[] = {
	{ OPT_LISTEN, VALUE_TEXT, "--listen", AT(listen), 0, 0 },
	{ OPT_GPU, VALUE_TEXT, "--gpu", AT(gpu), 0, 0 },
	{ OPT_MEMORY, VALUE_SIZE, "--memory", AT(memory), 1, 0x1p60 },
	{ OPT_WRITERS, VALUE_U32, "--writers", AT(writers), 1, WRITERS_MOST },
	{ OPT_RECEIVES, VALUE_U32, "--receives", AT(receives), 16, 1 << 20 },
	{ OPT_UNSOLICITED, VALUE_FLAG, "--unsolicited", AT(unsolicited), 0, 0 },
	{ OPT_INTERVAL, VALUE_U32, "--interval", AT(interval_ms), 1, 10000 },
	{ OPT_SETTLE, VALUE_U32, "--settle", AT(settle_ms), 10, 600000 },
	{ OPT_STALL, VALUE_U32, "--stall", AT(stall_ms), 10, 600000 },
	{ OPT_VERIFY, VALUE_FLAG, "--verify", AT(verify), 0, 0 },
	{ OPT_PRIVATE, VALUE_FLAG, "--private-receives", AT(private), 0, 0 },
	{ OPT_SERIES, VALUE_FLAG, "--series", AT(series), 0, 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct sink_config *c = state->input;

	if (key == ARGP_KEY_END && !c->listen)
		argp_error(state, "--listen is required: set a port");
	if (key == ARGP_KEY_END && c->gpu && c->common.buffer)
		argp_error(state, "--gpu and --buffer exclude each other");
	return option_set(values, key, arg, state) ? network_setting(key, arg, state, &c->common) : 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Provide memory for one run of \"rashpa-bench network write\".",
};

/* --- writers --- */

static int refuse(struct guest *g, char *why)
{
	struct json_object *o = link_message("error");
	char ignored[WHY_SIZE];

	put_text(o, "text", why);
	link_send(&g->link, o, ignored);
	return -1;
}

static int take_memory(struct sink *s, struct guest *g, char *why)
{
	char need[SIZE_TEXT], have[SIZE_TEXT];

	g->bytes = (uint64_t)g->plan.size * g->plan.destinations;
	if (g->bytes > s->memory.length - s->used)
		return because(why, -1, "%" PRIu32 " destinations need %s, but the sink has %s: raise --memory of the sink",
			       g->plan.destinations, format_size(need, g->bytes),
			       format_size(have, s->memory.length - s->used));
	g->offset = s->used;
	/* each writer's part starts at a page */
	s->used += (g->bytes + 4095) & ~UINT64_C(4095);
	if (s->used > s->memory.length)
		s->used = s->memory.length;
	return 0;
}

static int fits(const struct sink *s, const struct guest *g, char *why)
{
	const struct plan *a = &s->guest[0].plan, *b = &g->plan;

	if (a->way != b->way || a->repeats != b->repeats || a->service != b->service ||
	    a->solicited != b->solicited)
		return because(why, -1, "its --transport, --repeat, --service or --solicited differs from that of the first writer");
	if (g != &s->guest[0] && b->way != WAY_WRITE)
		return because(why, -1, "--transport %s allows one writer only",
			       way_name(b->way));
	return 0;
}

static int open_way(struct sink *s, uint32_t way, char *why)
{
	static const struct sink_way *const all[WAYS] = {
		[WAY_WRITE] = &sink_write, [WAY_UDP] = &sink_udp, [WAY_ZMQ] = &sink_zmq,
	};

	if (s->config->gpu && way != WAY_WRITE)
		return because(why, -1, "--transport %s copies messages, and --gpu is for those of the card: use --transport write",
			       way_name(way));
	s->way = all[way];
	return s->way->open(s, why);
}

static int accept_plan(struct sink *s, struct guest *g, struct json_object *hello,
		       struct json_object *acceptance, char *why)
{
	if (plan_read(hello, &g->plan, why) || fits(s, g, why) || take_memory(s, g, why))
		return -1;
	g->sequence = calloc(g->plan.pairs, sizeof(*g->sequence));
	g->pair = calloc(g->plan.pairs, sizeof(*g->pair));
	g->sent = calloc(g->plan.pairs, sizeof(*g->sent));
	if (!g->sequence || !g->pair || !g->sent)
		return because(why, -1, "no memory for %" PRIu32 " pairs", g->plan.pairs);
	if (g == &s->guest[0] && open_way(s, g->plan.way, why))
		return -1;
	return s->way->accept(s, g, hello, acceptance, why);
}

static int welcome(struct sink *s, struct guest *g, char *why)
{
	struct json_object *hello, *acceptance;

	if (link_await(&g->link, "hello", false, HANDSHAKE_MS, s->stop, &hello, why))
		return -1;
	acceptance = link_message("accept");
	put_text(acceptance, "version", RASHPA_VERSION);
	if (accept_plan(s, g, hello, acceptance, why)) {
		json_object_put(hello);
		json_object_put(acceptance);
		return refuse(g, why);
	}
	json_object_put(hello);
	return link_send(&g->link, acceptance, why);
}

static int open_memory(struct sink *s, char *why)
{
	const struct sink_config *c = s->config;

	if (!c->gpu)
		return pages_open(&s->memory, c->common.pages, c->common.buffer, c->memory, why);
	s->memory.length = (c->memory + 4095) & ~UINT64_C(4095);
	if (gpu_memory_open(&s->gpu, c->gpu, s->memory.length, why))
		return -1;
	s->memory.base = rashpa_gpu_base(s->gpu.memory);
	if (c->verify && !s->memory.base)
		return because(why, -1, "%s: its driver does not map its memory for processors: leave out --verify",
			       s->gpu.info.name);
	return 0;
}

static int wait_for_writers(struct sink *s, char *why)
{
	struct wire_listener listener;
	int result = wire_listen_open(s->config->listen, NULL, &listener, why);
	struct pollfd ready = { .fd = listener.fd, .events = POLLIN };

	/* allocating much memory takes a while; connections wait meanwhile */
	if (!result)
		result = open_memory(s, why);
	while (!result && s->guests < s->config->writers) {
		struct guest *g = &s->guest[s->guests];

		if (stop_poll(&ready, 1, UINT64_MAX) <= 0)
			result = because(why, -1, "stopped by a signal");
		if (!result)
			result = link_accept(&listener, &g->link, why);
		if (!result) {
			s->guests++;
			result = welcome(s, g, why);
		}
	}
	wire_unlisten(&listener);
	return result;
}

/* --- the command --- */

static void *receive(void *arg)
{
	struct receiver *r = arg;

	r->sink->way->receive(r);
	return NULL;
}

static int start(struct sink *s, char *why)
{
	for (uint32_t i = 0; i < s->receivers; i++) {
		struct receiver *r = &s->receiver[i];
		int error = pthread_create(&r->thread, NULL, receive, r);

		if (error)
			return because(why, -1, "cannot start a thread: %s", strerror(error));
		r->running = true;
	}
	return 0;
}

/* Number of destinations with the content that all writers send: equal bytes, not zero. */
static uint64_t written(const struct sink *s)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < s->guests; i++) {
		const struct guest *g = &s->guest[i];

		for (uint32_t d = 0; d < g->plan.destinations; d++) {
			const uint8_t *at = (uint8_t *)s->memory.base + g->offset +
					    (uint64_t)d * g->plan.size;
			const uint32_t skip = g->plan.way == WAY_WRITE ? 0 : sizeof(uint32_t);

			/* compare the whole message except its number */
			n += g->plan.size > skip && at[skip] &&
			     !memcmp(at + skip, at + skip + 1, g->plan.size - skip - 1);
		}
	}
	return n;
}

static void close_sink(struct sink *s)
{
	s->halt = true;
	for (uint32_t i = 0; i < s->receivers; i++) {
		if (s->receiver[i].running)
			pthread_join(s->receiver[i].thread, NULL);
	}
	if (s->way)
		s->way->close(s);
	for (uint32_t i = 0; i < s->guests; i++) {
		struct guest *g = &s->guest[i];

		link_close(&g->link);
		free(g->sequence);
		free(g->pair);
		free(g->sent);
	}
	if (s->config->gpu)
		gpu_memory_close(&s->gpu);
	else
		pages_close(&s->memory);
}

static int run(struct sink *s, struct json_object *laps, char *why)
{
	if (wait_for_writers(s, why) || start(s, why))
		return -1;
	for (uint32_t i = 0; i < s->guest[0].plan.repeats; i++) {
		if (sink_lap(s, laps, why))
			return -1;
	}
	return 0;
}

static void print(struct json_object *laps)
{
	for (size_t i = 0; i < json_object_array_length(laps); i++)
		lap_print(i + 1, json_object_array_get_idx(laps, i));
}

static int print_json(const struct sink *s, struct json_object *laps)
{
	const struct sink_config *c = s->config;
	struct report report = { .repeat = json_object_array_length(laps), .iommu = -1 };
	struct json_object *o = report_json_head(&report, "network sink");

	put_text(o, "transport", way_name(s->guest[0].plan.way));
	put_int(o, "threads", s->receivers);
	put_int(o, "receives", c->receives);
	put_bool(o, "private_receives", c->private);
	put_text(o, "wait", wait_name(c->common.wait));
	if (c->gpu)
		json_object_object_add(o, "gpu", gpu_memory_json(&s->gpu));
	else
		put_text(o, "pages", c->common.buffer ? c->common.buffer : c->common.pages);
	put_int(o, "writers", s->guests);
	if (c->verify)
		put_u64(o, "destinations_written", written(s));
	json_object_object_add(o, "repeats", json_object_get(laps));
	return json_finish(o);
}

int cmd_network_sink(int argc, char **argv)
{
	struct sink_config c = {
		.common = { .port = NETWORK_DEFAULTS, .threads = 1, .pages = "thp" },
		.memory = UINT64_C(64) << 20, .writers = 1, .receives = 512, .settle_ms = 2000,
		.stall_ms = 500, .interval_ms = 10,
	};
	static struct sink s;	/* large */
	struct json_object *laps;
	char why[WHY_SIZE] = "";
	int result;

	s.config = &c;
	s.memory.fd = -1;
	argp_parse(&argp, argc, argv, 0, NULL, &c);
	s.stop = stop_on_signals();
	laps = json_object_new_array();
	result = run(&s, laps, why);
	if (result)
		say("%s", why);
	else if (!c.common.json || json_elsewhere())
		print(laps);
	if (!result && c.common.json)
		result = print_json(&s, laps);
	json_object_put(laps);
	close_sink(&s);
	return result ? EXIT_FAILED : 0;
}
