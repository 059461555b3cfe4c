// SPDX-License-Identifier: LGPL-2.1-or-later
/* romulu: receive a stream from a buffer. See romulu(1). */
#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "romulu/driven.h"
#include "common/fpga.h"
#include "common/json-out.h"
#include "daemon/led.h"
#include "link/network-options.h"
#include "common/parse.h"
#include <rashpa.h>
#include "romulu/romulu.h"
#include "common/say.h"
#include "common/shown.h"
#include "common/stop.h"

#define HOLD_BYTES	(1u << 30)

const char *argp_program_version = "romulu " RASHPA_VERSION;

enum {
	OPT_CHECK = 256, OPT_WRITE, OPT_SYNC, OPT_FROM_START, OPT_LISTEN, OPT_SENDERS,
	OPT_THREADS, OPT_RECEIVES, OPT_SLOTS, OPT_CLOSE_AFTER, OPT_STALL, OPT_WAIT, OPT_UNSOLICITED,
	OPT_ONLY, OPT_PAYLOAD, OPT_SETTLE, OPT_TRANSPORT, OPT_MODULES, OPT_BUNCH, OPT_IDLE,
	OPT_CPUS, OPT_XDP, OPT_ENGINE, OPT_PIPELINE, OPT_OFFER, OPT_DRIVE, OPT_TRACE, OPT_PAIRS,
	OPT_DEADLINE,
	OPT_FULL_AT, OPT_ACCEPT, OPT_TUNE, OPT_WORKERS, OPT_SHARE,
};

static struct argp_option options[] = {
	{ "check", OPT_CHECK, NULL, 0,
	  "compare every frame with the dataset (default: count, and touch no pixel)", 0 },
	{ "write", OPT_WRITE, "FILE|DIR", 0,
	  "append the frames to a file; write them as NeXus (FILE.h5, FILE.nxs); or record them in a folder, or in several (repeat it)",
	  0 },
	{ "sync", OPT_SYNC, "end|never|each", 0,
	  "when a recording is on the disk: at its end (default), or each stack before its release",
	  0 },
	{ "pipeline", OPT_PIPELINE, "FILE|{JSON}", 0,
	  "process the frames by a pipeline, see romulu(1)", 0 },
	{ "engine", OPT_ENGINE, "cpu|reference|vulkan[:N]|cuda[:N]|fpgaN", 0,
	  "processing engine (default cpu)", 0 },
	{ "offer", OPT_OFFER, "NAME[:SIZE]", 0,
	  "offer memory of the GPU (default 64M) or of fpgaN for images, for remu --payload NAME",
	  0 },
	{ "drive", OPT_DRIVE, "WAY", 0,
	  "the GPU fetches the images without the CPU: launch, ahead or persistent", 0 },
	{ "trace", OPT_TRACE, "FILE", 0,
	  "with --drive: a timeline of copies and kernels, in Chrome's trace format", 0 },
	{ "full-at", OPT_FULL_AT, "N", OPTION_HIDDEN, NULL, 0 },
	OPTION_ACCEPT(OPT_ACCEPT, 0),
	OPTION_TUNE(OPT_TUNE),
	{ NULL, 0, NULL, 0, "From a network:", 1 },
	{ "transport", OPT_TRANSPORT, NULL, 0, "network transport (default roce)", 1 },
	{ "listen", OPT_LISTEN, "[tls:][ADDRESS:]PORT", 0, "TCP port where senders connect", 1 },
	{ "slots", OPT_SLOTS, "N", 0, "stacks in the buffer (default: as many as fit)", 1 },
	{ "payload", OPT_PAYLOAD, "NAME", 0,
	  "memory for the images: a named buffer or a program's offer (default: the buffer)", 1 },
	NETWORK_DEVICE
	{}
};

static const struct argp_option tunes[] = {
	{ "deadline", OPT_DEADLINE, "US", 0,
	  "count results later than US microseconds after the event of their stack (default 0: none)",
	  0 },
	{ "workers", OPT_WORKERS, "N", 0,
	  "threads of a pipeline that process a stack each (default: all threads share each image)", 0 },
	{ "pairs", OPT_PAIRS, NULL, 0,
	  "a pipeline takes image 2N + 1 of a stack before image 2N, as its dark image", 0 },
	{ "share", OPT_SHARE, "N", 0, "this is one of N receivers, and each stack goes to one of them", 0 },
	{ "from-start", OPT_FROM_START, NULL, 0,
	  "begin at the first stack of the stream, even if the stream has ended", 0 },
	{ "senders", OPT_SENDERS, "N", 0, "senders that fill the buffer together (default 1)", 1 },
	{ "receive-only", OPT_ONLY, NULL, 0, "only receive: another program takes the stacks", 1 },
	{ "threads", OPT_THREADS, "N", 0, "completion threads (default 1)", 1 },
	{ "cpus", OPT_CPUS, "LIST", 0, "processors of the completion threads, one each, in turn", 1 },
	{ "receives", OPT_RECEIVES, "N", 0,
	  "receives that each thread posts (default 8192)", 1 },
	{ "close-after", OPT_CLOSE_AFTER, "N", 0,
	  "give up an incomplete stack when every process is N stacks ahead (default 1)", 1 },
	{ "settle", OPT_SETTLE, "MS", 0,
	  "count outstanding messages as missing MS after the last arrival (default 1000)",
	  1 },
	{ "stall", OPT_STALL, "MS", 0,
	  "set up a pair again that receives nothing for MS while its sender sends (default 500)",
	  1 },
	{ "wait", OPT_WAIT, "event|poll|adaptive", 0, "how to wait for completions (default event)", 1 },
	{ "unsolicited", OPT_UNSOLICITED, NULL, 0,
	  "raise an event for each message, not only for each stack", 1 },
	{ "xdp", OPT_XDP, NULL, 0, "receive UDP packets by AF_XDP, past the kernel", 1 },
	{ "modules", OPT_MODULES, "CxR", 0,
	  "JUNGFRAU layout, columns x rows (default 1x1); module i sends to PORT + i", 1 },
	{ "bunch", OPT_BUNCH, "N", 0, "JUNGFRAU images per stack (default 8)", 1 },
	{ "idle", OPT_IDLE, "SECONDS", 0,
	  "end a JUNGFRAU stream after SECONDS without packets (default 5)", 1 },
	NETWORK_OPTIONS
	{}
};

static void parse_modules(struct argp_state *state, const char *arg, struct network_config *n)
{
	char columns[16] = "";
	const char *x = strchr(arg, 'x');

	if (!x || (size_t)(x - arg) >= sizeof(columns))
		argp_error(state, "modules: \"%s\" is not CxR, as 1x4", arg);
	memcpy(columns, arg, x - arg);
	option_u32(state, "modules: columns", columns, 1, 64, &n->columns);
	option_u32(state, "modules: rows", x + 1, 1, 64 / n->columns, &n->rows);
}

/* vulkan or cuda, or with :N */
static bool is_gpu(const char *text)
{
	static const char * const makers[] = { "vulkan", "cuda" };

	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		const char *rest = text + strlen(makers[i]);

		if (strncmp(text, makers[i], strlen(makers[i])))
			continue;
		return !*rest || (rest[0] == ':' && rest[1] &&
				  strspn(rest + 1, "0123456789") == strlen(rest + 1));
	}
	return false;
}

/* NAME, or NAME:SIZE */
static void parse_offer(struct argp_state *state, char *arg, struct config *c)
{
	char *size = strchr(arg, ':');

	if (size)
		*size++ = '\0';
	if (!*arg || strlen(arg) >= RASHPA_STREAM_NAME)
		argp_error(state, "--offer: \"%s\" is not a name of 1 to %d characters", arg,
			   RASHPA_STREAM_NAME - 1);
	if (size && (!parse_size(size, &c->offer_bytes) || !c->offer_bytes))
		argp_error(state, "--offer: \"%s\" is not a size, as 64M", size);
	c->offer = arg;
}

/* A dataset without --check has no use. A daemon's dataset is for its runs. */
static bool compares_not(const struct config *c)
{
	return c->use == &use_none && !c->only_receive && !is_daemon(&c->daemon) &&
	       (c->opt.dataset || c->opt.darks || c->opt.geometry.width);
}

#define RECEIVING(transport, ...) &receiving_##transport,
static const struct receiving * const receivings[] = { TRANSPORTS(RECEIVING) };

/* A file of NeXus is a pipeline's, which has no stage. */
static void write_nexus(struct config *c)
{
	const char *path = *c->write, *end = strrchr(path, '.');
	struct json_object *file;
	char *text;

	if (c->writes > 1 || !end || (strcmp(end, ".h5") && strcmp(end, ".nxs")))
		return;
	file = json_object_new_object();
	put_text(file, "file", path);
	json_object_object_add(file, "what", json_tokener_parse("[\"raw\"]"));
	text = json_shown(file, JSON_C_TO_STRING_PLAIN);
	if (!text || asprintf(&c->nexus, "{\"sinks\": {\"nexus\": %s}}", text) < 0)
		c->nexus = NULL;
	free(text);
	json_object_put(file);
	c->pipeline = c->nexus;
	c->use = &use_process;
}

/* Combinations that are impossible. */
static void check(struct argp_state *state, struct config *c)
{
	const struct transport *t = c->net.transport;
	struct stat st;

	c->net.receiving = receivings[t - transports];
	c->opt.without_buffer = is_daemon(&c->daemon) || c->daemon.probe;
	if (c->only_receive && !c->net.listen)
		argp_error(state, "--tune receive-only requires --listen");
	if (c->net.receiving != &receiving_roce && !c->net.listen)
		argp_error(state, "--transport %s requires --listen", t->name);
	if (c->net.xdp && !(t->has & TRANSPORT_DATAGRAMS))
		argp_error(state, "--tune xdp requires --transport %s",
			   transport_names(TRANSPORT_DATAGRAMS, ", ", " or "));
	if (c->writes && (c->use != &use_write || c->pipeline))
		argp_error(state, "--write excludes --check and --pipeline");
	if (c->writes && !stat(*c->write, &st) && S_ISDIR(st.st_mode))
		c->use = &use_record;
	else if (c->writes)
		write_nexus(c);
	if (c->use != &use_record && (c->writes > 1 || c->sync))
		argp_error(state, "--sync, or several of --write, require --write DIR");
	if (c->pipeline && c->use != &use_process)
		argp_error(state, "--pipeline excludes --check and --write");
	if (compares_not(c))
		argp_error(state, "--dataset, --geometry and --tune darks require --check");
	if (c->engine && !c->pipeline)
		argp_error(state, "--engine requires --pipeline");
	if (c->offer && (!c->engine || !strcmp(c->engine, "cpu") ||
			 !strcmp(c->engine, "reference")))
		argp_error(state, "--offer requires --engine vulkan, cuda or fpgaN");
	if (c->driven && (!c->engine || !is_gpu(c->engine)))
		argp_error(state, "--drive requires --engine vulkan or cuda");
	if (c->pairs && !c->pipeline)
		argp_error(state, "--tune pairs requires --pipeline");
	if (c->trace && !c->driven)
		argp_error(state, "--trace requires --drive");
	if (c->workers && (!c->pipeline || c->driven ||
			   (c->engine && strcmp(c->engine, "cpu") && strcmp(c->engine, "reference"))))
		argp_error(state, "--tune workers requires --pipeline and engine cpu or reference");
	if (c->deadline_us && c->use != &use_process)
		argp_error(state, "--tune deadline requires --pipeline");
	if (c->offer_bytes && !is_gpu(c->engine))
		argp_error(state, "--offer: a board offers half of its memory: give no size");
}

#define AT(member)	offsetof(struct config, member)

static const struct option_value values[] = {
	{ OPT_LISTEN, VALUE_TEXT, "--listen", AT(net.listen), 0, 0 },
	{ OPT_SENDERS, VALUE_U32, "senders", AT(net.senders), 1, 64 },
	{ OPT_THREADS, VALUE_U32, "threads", AT(net.threads), 1, 64 },
	{ OPT_RECEIVES, VALUE_U32, "receives", AT(net.receives), 16, 1 << 20 },
	{ OPT_SLOTS, VALUE_U32, "--slots", AT(net.slots), 2, INT32_MAX },
	{ OPT_CLOSE_AFTER, VALUE_U32, "close-after", AT(net.close_after), 0, 1 << 20 },
	{ OPT_SETTLE, VALUE_U32, "settle", AT(net.settle_ms), 10, 3600000 },
	{ OPT_STALL, VALUE_U32, "stall", AT(net.stall_ms), 10, 3600000 },
	{ OPT_BUNCH, VALUE_U32, "bunch", AT(net.bunch), 1, 1 << 20 },
	{ OPT_IDLE, VALUE_REAL, "idle", AT(net.idle), 0.001, 86400 },
	{ OPT_UNSOLICITED, VALUE_FLAG, "unsolicited", AT(net.unsolicited), 0, 0 },
	{ OPT_XDP, VALUE_FLAG, "xdp", AT(net.xdp), 0, 0 },
	{ OPT_SHARE, VALUE_U32, "share", AT(share), 1, RASHPA_STREAM_WORKERS },
	{ OPT_WORKERS, VALUE_U32, "workers", AT(workers), 1, 4096 },
	{ OPT_DEADLINE, VALUE_U32, "deadline", AT(deadline_us), 0, UINT32_MAX },
	{ OPT_PAIRS, VALUE_FLAG, "pairs", AT(pairs), 0, 0 },
	{ OPT_TRACE, VALUE_TEXT, "--trace", AT(trace), 0, 0 },
	{ OPT_FULL_AT, VALUE_U32, "--full-at", AT(full_at), 1, UINT32_MAX },
	{ OPT_FROM_START, VALUE_FLAG, "from-start", AT(from_start), 0, 0 },
	{ OPT_ONLY, VALUE_FLAG, "receive-only", AT(only_receive), 0, 0 },
	{}
};

/* Options of a network. */
static error_t parse_network(int key, char *arg, struct argp_state *state,
			     struct network_config *n)
{
	switch (key) {
	case OPT_CPUS:
		cpus_option(state, arg, &n->cpus);
		break;
	case OPT_PAYLOAD:
		if (!*arg || strlen(arg) >= RASHPA_STREAM_NAME)
			argp_error(state, "--payload: \"%s\" is not a name of 1 to %d characters",
				   arg, RASHPA_STREAM_NAME - 1);
		n->payload = arg;
		break;
	case OPT_WAIT:
		n->wait = option_word(state, "wait", arg, "event|poll|adaptive");
		break;
	case OPT_TRANSPORT:
		n->transport = transport_named(arg);
		if (!n->transport || !(n->transport->has & TRANSPORT_NETWORK))
			argp_error(state, "--transport: \"%s\" is not %s", arg,
				   transport_names(TRANSPORT_NETWORK, ", ", " or "));
		break;
	case OPT_MODULES:
		parse_modules(state, arg, n);
		break;
	default:
		return network_option(key, arg, state, &n->options);
	}
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;
	unsigned int number;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->opt;
		state->child_inputs[1] = &c->daemon;
		break;
	case OPT_CHECK:
		c->use = &use_check;
		break;
	case OPT_WRITE:
		c->use = &use_write;
		if (c->writes == RECORDING_FOLDERS)
			argp_error(state, "--write: more than %d folders", RECORDING_FOLDERS);
		c->write[c->writes++] = arg;
		break;
	case OPT_SYNC:
		c->sync = option_word(state, "--sync", arg, "end|never|each");
		break;
	case OPT_PIPELINE:
		c->use = &use_process;
		c->pipeline = arg;
		break;
	case OPT_ENGINE:
		if (strcmp(arg, "cpu") && strcmp(arg, "reference") && !is_gpu(arg) &&
		    (strncmp(arg, "fpga", strlen("fpga")) || !parse_fpga(arg, &number)))
			argp_error(state, "--engine: \"%s\" is not cpu, reference, vulkan, vulkan:N, cuda, cuda:N, or fpgaN",
				   arg);
		c->engine = arg;
		break;
	case OPT_OFFER:
		parse_offer(state, arg, c);
		break;
	case OPT_DRIVE:
		c->driven = true;
		if (!driven_way(arg, &c->way))
			argp_error(state, "--drive: \"%s\" is not launch, ahead or persistent",
				   arg);
		break;
	case OPT_ACCEPT:
		option_accept(state, arg, &c->accept);
		break;
	case OPT_TUNE:
		return option_tune(state, arg, c->tunes);
	case ARGP_KEY_END:
		check(state, c);
		break;
	default:
		return option_set(values, key, arg, state) ? parse_network(key, arg, state, &c->net) : 0;
	}
	return 0;
}

static const struct argp_child children[] = {
	{ .argp = &stream_argp }, { .argp = &daemon_argp }, {}
};

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = children,
	.doc = "Receive a stream of images from a buffer."
	       "\vExit status: 0 all frames arrived and those compared are right, 1 failed, 2 usage, "
	       "3 no progress in time, 4 frames were lost or are wrong.",
};

static void print_left_out(const struct report *r)
{
	printf("skipped  %" PRIu64, r->skipped);
	if (r->told) {
		printf(": %" PRIu64 " stacks dropped, %" PRIu64 " frames lost by the source",
		       r->dropped, r->source_lost);
		printf(", %" PRIu64 " missed; %" PRIu64 " not accounted for", r->source_missed,
		       r->unaccounted);
	}
	printf("\n");
}

static void print_processing(const struct json_object *o)
{
	const struct json_object *stages = json_object_object_get(o, "stages");

	printf("images   %" PRIu64 ", %" PRIu64 " vetoed, %" PRIu64 " with more than fits, %" PRIu64
	       " lost by sinks, %" PRIu64 " late\n",
	       json_object_get_uint64(json_object_object_get(o, "images")),
	       json_object_get_uint64(json_object_object_get(o, "vetoed")),
	       json_object_get_uint64(json_object_object_get(o, "overflow")),
	       json_object_get_uint64(json_object_object_get(o, "lost")),
	       json_object_get_uint64(json_object_object_get(o, "late")));
	for (size_t i = 0; i < json_object_array_length(stages); i++) {
		const struct json_object *s = json_object_array_get_idx(stages, i);
		const uint64_t n = json_object_get_uint64(json_object_object_get(s, "images"));

		printf("stage    %s: %" PRIu64 " images, %.3f ms each\n",
		       SHOWN(json_object_get_string(json_object_object_get(s, "name"))), n,
		       json_object_get_double(json_object_object_get(s, "seconds")) * 1e3 / n);
	}
}

static void print_text(const struct config *c, const struct report *r)
{
	const struct samples *l = &r->latency;

	printf("frames   %" PRIu64 " in %" PRIu64 " stacks%s\n", r->frames, r->stacks,
	       r->interrupted ? ", interrupted" : "");
	printf("lost     %" PRIu64 "\n", r->lost);
	if (c->use == &use_check)
		printf("corrupt  %" PRIu64 " (%" PRIu64 " duplicate, %" PRIu64 " never written)\n",
		       r->corrupt, r->duplicate, r->unwritten);
	else if (r->corrupt)
		printf("corrupt  %" PRIu64 " by their metadata\n", r->corrupt);
	if (r->stream.live || r->stream.policy == RASHPA_STREAM_DROP)
		print_left_out(r);
	if (r->dark)
		printf("dark     %" PRIu64 " of the frames\n", r->dark);
	if (r->incomplete)
		printf("lines    %" PRIu64 " missing, of %" PRIu64 " frames\n", r->missing_lines,
		       r->incomplete);
	printf("bytes    %" PRIu64 "\n", r->bytes);
	if (r->ns)
		printf("time     %.6f s, %.6f GB/s\n", r->ns / 1e9, (double)r->bytes / r->ns);
	if (l->count)
		printf("latency  p50 %.1f us, p99 %.1f us, max %.1f us (%" PRIu64 " samples)\n",
		       percentile(l->value, l->count, 50) / 1e3,
		       percentile(l->value, l->count, 99) / 1e3,
		       l->max / 1e3, l->all);
	if (r->processing)
		print_processing(r->processing);
	printf("waits    %" PRIu64 ", %" PRIu64 " stacks without one\n", r->waits,
	       r->stacks_without_wait);
	printf("group    %" PRIu32 " process%s, %" PRIu64 " events, %" PRIu64 " overruns\n",
	       r->stream.processes, r->stream.processes == 1 ? "" : "es", r->events, r->overruns);
	if (!r->board) {
		printf("map      none: a program fills the slots\n");
		return;
	}
	printf("map      %s, %" PRIu32 " segment%s, iommu %s, fpga%" PRIu32 "\n",
	       rashpa_class_name(r->stream.map_class), r->stream.segments,
	       r->stream.segments == 1 ? "" : "s", r->iommu ? "on" : "off", r->fpga);
}

/* null: a program fills the slots */
static void put_board(struct json_object *o, const char *key, const struct report *r, uint32_t value)
{
	if (r->board)
		put_int(o, key, value);
	else
		put_text(o, key, NULL);
}

static struct json_object *latency_json(const struct samples *l)
{
	struct json_object *o = json_object_new_object();

	put_u64(o, "samples", l->all);
	if (l->count) {
		put_u64(o, "p50", percentile(l->value, l->count, 50));
		put_u64(o, "p99", percentile(l->value, l->count, 99));
		put_u64(o, "max", l->max);
	} else {
		put_text(o, "p50", NULL);
		put_text(o, "p99", NULL);
		put_text(o, "max", NULL);
	}
	return o;
}

/* null if it was not counted */
static void put_counted(struct json_object *to, const char *key, bool counted, uint64_t value)
{
	if (counted)
		put_u64(to, key, value);
	else
		put_text(to, key, NULL);
}

static int print_json(const struct config *c, const struct dataset *dataset, const struct report *r)
{
	static const char *const policies[] = { "wait", "overwrite", "drop" };
	const bool compared = c->use == &use_check;
	struct json_object *o = json_object_new_object();

	put_text(o, "buffer", c->opt.buffer);
	put_board(o, "fpga", r, r->fpga);
	put_board(o, "vector", r, r->vector);
	put_text(o, "mode", c->use->name);
	put_text(o, "source", compared ? dataset->source : NULL);
	put_bool(o, "interrupted", r->interrupted);
	put_bool(o, "paced", r->stream.policy != RASHPA_STREAM_OVERWRITE);
	put_u64(o, "frames", r->frames);
	put_u64(o, "stacks", r->stacks);
	put_u64(o, "lost", r->lost);
	put_counted(o, "corrupt", compared || r->corrupt, r->corrupt);
	put_counted(o, "duplicate", compared, r->duplicate);
	put_counted(o, "unwritten", compared, r->unwritten);
	put_bool(o, "live", r->stream.live);
	put_text(o, "policy", policies[r->stream.policy]);
	put_u64(o, "skipped", r->skipped);
	put_counted(o, "dropped", r->told, r->dropped);
	put_counted(o, "source_lost", r->told, r->source_lost);
	put_counted(o, "source_missed", r->told, r->source_missed);
	put_counted(o, "unaccounted", r->told, r->unaccounted);
	put_u64(o, "dark", r->dark);
	put_u64(o, "incomplete", r->incomplete);
	put_u64(o, "missing_lines", r->missing_lines);
	put_u64(o, "bytes", r->bytes);
	put_real(o, "seconds", r->ns / 1e9);
	if (r->ns)
		put_real(o, "bytes_per_second", r->bytes * 1e9 / r->ns);
	else
		put_text(o, "bytes_per_second", NULL);
	json_object_object_add(o, "latency_ns", latency_json(&r->latency));
	put_u64(o, "waits", r->waits);
	put_u64(o, "stacks_without_wait", r->stacks_without_wait);
	put_u64(o, "events", r->events);
	put_u64(o, "events_lost", r->events_lost);
	put_u64(o, "overruns", r->overruns);
	put_int(o, "dtps", r->stream.processes);
	put_int(o, "bunch", r->stream.bunch);
	put_int(o, "slots", r->stream.slots);
	put_board(o, "segments", r, r->stream.segments);
	put_text(o, "class", r->board ? rashpa_class_name(r->stream.map_class) : NULL);
	if (r->board)
		put_bool(o, "iommu", r->iommu);
	else
		put_text(o, "iommu", NULL);
	if (r->network)
		json_object_object_add(o, "network", json_object_get(r->network));
	if (r->processing)
		json_object_object_add(o, "processing", json_object_get(r->processing));
	return json_finish(o);
}

/* Images that are read before there is a stream, which could not wait for them. */
static uint32_t at_once(const struct dataset *d)
{
	const size_t fit = HOLD_BYTES / dataset_bytes(d);

	return d->images < fit ? d->images : fit;
}

int main(int argc, char **argv)
{
	volatile bool *stop = stop_on_signals();
	struct config config = {
		.use = &use_none,
		.net = {
			.transport = transport_named("roce"), .senders = 1, .threads = 1,
			.receives = 8192, .close_after = 1,
			.settle_ms = 1000, .stall_ms = 500, .options = NETWORK_DEFAULTS,
			.columns = 1, .rows = 1, .bunch = 8, .idle = 5,
		},
	};
	struct report report = {};
	struct dataset dataset = {};
	char why[WHY_SIZE];
	int result;

	const struct tune tune[] = {
		{ tunes, parse, &config }, { stream_tunes, stream_argp.parser, &config.opt }, {}
	};

	config.tunes = tune;
	tool_begin(argc, argv);
	transport_option(options, OPT_TRANSPORT, TRANSPORT_NETWORK);
	argp_parse(&argp, argc, argv, 0, NULL, &config);

	if (is_daemon(&config.daemon))
		return daemon_run(&config.daemon, false, argv, tune, stop);
	if (config.daemon.led && led_open(config.daemon.led, why))
		return fail("%s", why);
	if (config.daemon.probe) {
		tell_able();
		return 0;
	}
	fpga_catch_removal();
	if (config.use == &use_check && !config.only_receive &&
	    (dataset_open(&dataset, config.opt.dataset, &config.opt.geometry, why) ||
	     (config.opt.darks &&
	      dataset_add_darks(&dataset, config.opt.darks, &config.opt.geometry,
				config.opt.dark_every, why)) ||
	     dataset_hold(&dataset, at_once(&dataset), why)))
		return fail("%s", why);
	led_say("configured", NULL);
	if (!led_await(LED_ARM, stop)) {
		dataset_close(&dataset);
		return 0;
	}
	if (config.daemon.files.certificate &&
	    wire_tls_open(&config.daemon.files, &config.net.tls, why)) {
		dataset_close(&dataset);
		return fail("%s", why);
	}
	result = receive(&config, &dataset, stop, &report);
	samples_sort(&report.latency);
	if (report.attached) {
		if (!config.opt.json)
			print_text(&config, &report);
		else if (print_json(&config, &dataset, &report) && !result)
			result = EXIT_FAILED;
	}
	json_object_put(report.network);
	json_object_put(report.processing);
	samples_free(&report.latency);
	wire_tls_close(config.net.tls);
	dataset_close(&dataset);
	free(config.nexus);
	return result;
}
