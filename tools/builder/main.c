// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: event building, and its network traffic. See rashpa-builder(1). */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/builder.h"
#include "common/json-out.h"
#include "common/options.h"
#include "common/parse.h"
#include "common/say.h"
#include "common/stop.h"

const char *argp_program_version = "rashpa-builder " RASHPA_VERSION;

enum {
	OPT_TRANSPORT = 256, OPT_DEVICE, OPT_DEPTH, OPT_POLL, OPT_BUFFERED, OPT_BUFFER, OPT_CPU,
	OPT_SIZE, OPT_JITTER, OPT_BUFFERS, OPT_ONE_BUFFER, OPT_VERIFY, OPT_MESSAGES, OPT_SECONDS,
	OPT_INTERVAL, OPT_READOUTS, OPT_FOLDED, OPT_HOLD, OPT_EVENTS, OPT_RATE, OPT_BLOCK,
	OPT_CREDIT, OPT_POOL, OPT_SOURCES, OPT_FRAGMENT, OPT_FILES, OPT_FAULT,
	OPT_FROM, OPT_ACCEPT, OPT_TO, OPT_GEOMETRY, OPT_ROUNDS, OPT_WAY, OPT_OF,
	OPT_BUILDERS, OPT_NETWORK, OPT_SLOW, OPT_GATHER,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "All commands:", 1 },
	OPTION_JSON,
	{ "timeout", 't', "SECONDS", 0,
	  "give up after SECONDS without progress (default: 30)", 1 },
	{ "gather", OPT_GATHER, "SECONDS", 0,
	  "time limit for processes to come (default: that of --timeout)", 1 },
	{ "transport", OPT_TRANSPORT, "shm|mpi|verbs", 0,
	  "transport between processes (default: shm)", 1 },
	{ "device", OPT_DEVICE, "NAME", 0, "verbs: RDMA device (default: the first usable one)", 1 },
	{ "depth", OPT_DEPTH, "N", 0, "messages of a queue under way, 1 to 64 (default: 8)", 1 },
	{ "poll", OPT_POLL, "test|testsome|testall", 0,
	  "mpi: function that polls for completions (default: testsome)", 1 },
	{ "buffered", OPT_BUFFERED, NULL, 0, "mpi: buffer sent messages; memory may grow", 1 },
	{ "buffer", OPT_BUFFER, "NAME", 0,
	  "rank N uses the named buffer NAMEN (default: ordinary memory)", 1 },
	{ "cpu", OPT_CPU, "N", 0, "processor of the transport's thread", 1 },
	{ "jitter", OPT_JITTER, "PERCENT", 0, "variation of sizes, 0 to 100 (default: 0)", 1 },
	{ NULL, 0, NULL, 0, "nton, nxn:", 2 },
	{ "size", OPT_SIZE, "SIZE", 0,
	  "message size (default: 64K; burst: each power of two from 1K to 1M)", 2 },
	{ "buffers", OPT_BUFFERS, "N", 0, "buffers of each queue (default: twice the depth)", 2 },
	{ "one-buffer", OPT_ONE_BUFFER, NULL, 0, "all messages of a queue use the same memory", 2 },
	{ "verify", OPT_VERIFY, NULL, 0, "check tag, sequence and checksum of each message", 2 },
	{ "messages", OPT_MESSAGES, "N", 0, "messages of each pair (default: no limit)", 2 },
	{ "seconds", OPT_SECONDS, "SECONDS", 0, "send for SECONDS (default: 10)", 2 },
	{ "slow", OPT_SLOW, "MICROSECONDS", 0,
	  "the last rank sleeps for MICROSECONDS after each message", 2 },
	{ "interval", OPT_INTERVAL, "SECONDS", 0,
	  "time between samples; the first and last do not count (default: 1)", 2 },
	{ NULL, 0, NULL, 0, "burst:", 3 },
	{ "rounds", OPT_ROUNDS, "N", 0, "rounds of each size and variant (default: 101)", 3 },
	{ "way", OPT_WAY, "NAME", 0,
	  "compare only this variant with MPI, as \"layer alone\" (default: all)", 3 },
	{ NULL, 0, NULL, 0, "build:", 4 },
	{ "readouts", OPT_READOUTS, "N", 0,
	  "ranks 1 to N are readouts, later ones builders (default: half of them each)", 4 },
	{ "folded", OPT_FOLDED, NULL, 0, "all but rank 0 are readout and builder", 4 },
	{ "events", OPT_EVENTS, "N", 0, "number of events (default: until SIGINT)", 4 },
	{ "rate", OPT_RATE, "HZ", 0, "events a second (default: no limit)", 4 },
	{ "block", OPT_BLOCK, "N", 0, "events that are assigned together (default: 8)", 4 },
	{ "credit", OPT_CREDIT, "N", 0,
	  "blocks that a builder asks for ahead (default: 4); N times builders is at most 496", 4 },
	{ "pool", OPT_POOL, "N", 0, "blocks that a readout has room for (default: 16)", 4 },
	{ "hold", OPT_HOLD, NULL, 0,
	  "readouts hold a block until it is built, so that another builder can take over", 4 },
	{ "sources", OPT_SOURCES, "N", 0, "sources of each readout (default: 4)", 4 },
	{ "fragment", OPT_FRAGMENT, "SIZE", 0, "fragment size (default: 2K)", 4 },
	{ "from", OPT_FROM, "NAME", 0,
	  "readout N reads the stream of buffer NAMEN (default: generated fragments)", 4 },
	OPTION_ACCEPT(OPT_ACCEPT, 4),
	{ "geometry", OPT_GEOMETRY, "WxH[,u8|u16|u32]", 0, "image size; an image is a fragment", 4 },
	{ "to", OPT_TO, "NAME", 0,
	  "builder N streams whole images into buffer NAMEN (default: only count events)", 4 },
	{ "files", OPT_FILES, "DIR", 0, "builders write a file for each block", 4 },
	{ "fault", OPT_FAULT, "KIND:N:EVENT", 0,
	  "inject a missing, duplicate, late or corrupt fragment at readout N, for tests; with --from, "
	  "only missing or corrupt", 4 },
	{ NULL, 0, NULL, 0, "model, with options of the others:", 5 },
	{ "of", OPT_OF, "nton|nxn|build", 0, "command to model (default: build)", 5 },
	{ "builders", OPT_BUILDERS, "N", 0, "number of builders (default: same as --readouts)", 5 },
	{ "network", OPT_NETWORK, "NAME=VALUE[,...]", 0,
	  "parameters of the simulated network, see the manual", 5 },
	{}
};

static void real(struct argp_state *state, const char *what, const char *arg, double least,
		 double most, double *value)
{
	if (!parse_real(arg, value) || *value < least || *value > most)
		argp_error(state, "%s: \"%s\" is not %g to %.0f seconds", what, arg, least, most);
}

static void size(struct argp_state *state, const char *what, const char *arg, uint32_t *value)
{
	uint64_t bytes;

	if (!parse_size(arg, &bytes) || !bytes || bytes > RASHPA_FABRIC_MESSAGE / 2)
		argp_error(state, "%s: \"%s\" is not a size from 1 to 512M", what, arg);
	*value = bytes;
}

static void poll_(struct argp_state *state, const char *arg, uint32_t *value)
{
	static const char * const names[] = { "test", "testsome", "testall" };

	for (*value = 0; *value < 3; ++*value) {
		if (!strcmp(arg, names[*value]))
			return;
	}
	argp_error(state, "--poll: \"%s\" is not test, testsome or testall", arg);
}

static void name(struct argp_state *state, const char *what, const char *arg, const char **name)
{
	if (!*arg || !name_possible(arg) || strlen(arg) > 50)
		argp_error(state, "%s: \"%s\" is not a valid buffer name", what, arg);
	*name = arg;
}

static void fault(struct argp_state *state, const char *arg, struct options *o)
{
	static const char * const kinds[] = { "missing", "duplicate", "late", "corrupt" };
	char *kind = strdupa(arg);
	char *readout = strchr(kind, ':'), *event = readout ? strchr(readout + 1, ':') : NULL;

	if (event) {
		*readout++ = 0;
		*event++ = 0;
	}
	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(kind, kinds[i]))
			o->fault = kinds[i];
	}
	if (!event || !o->fault || !parse_u32(readout, &o->fault_readout) ||
	    !parse_u64(event, UINT64_C(1) << 48, &o->fault_event))
		argp_error(state, "--fault: \"%s\" is not missing|duplicate|late|corrupt:READOUT:EVENT",
			   arg);
}

/* Parameters of a network, and their ranges. */
static const struct property {
	const char *name;
	enum { REAL, NUMBER, SIZE } kind;
	size_t at;
	double least, most;
} properties[] = {
	{ "gbps", REAL, offsetof(struct model_fabric, gbps), 0.000001, 1e6 },
	{ "latency", REAL, offsetof(struct model_fabric, latency_us), 0, 1e9 },
	{ "cost", REAL, offsetof(struct model_fabric, cost_us), 0, 1e9 },
	{ "copy", REAL, offsetof(struct model_fabric, copy_gbps), 0, 1e6 },
	{ "ranks", NUMBER, offsetof(struct model_fabric, ranks), 1, RASHPA_FABRIC_PEERS },
	{ "leaf", NUMBER, offsetof(struct model_fabric, leaf), 0, 65536 },
	{ "spines", NUMBER, offsetof(struct model_fabric, spines), 1, 1024 },
	{ "cables", NUMBER, offsetof(struct model_fabric, cables), 1, 1024 },
	{ "packet", SIZE, offsetof(struct model_fabric, packet), 1, RASHPA_FABRIC_MESSAGE },
	{ "head", SIZE, offsetof(struct model_fabric, head), 0, 65536 },
	{ "buffer", SIZE, offsetof(struct model_fabric, buffer), 1, RASHPA_FABRIC_MESSAGE },
};

#define PROPERTIES	(sizeof(properties) / sizeof(properties[0]))

/* Store a value; false: it is not a number in the range. */
static bool set_property(const struct property *p, struct model_fabric *f, const char *value)
{
	void *at = (char *)f + p->at;
	uint64_t size = 0;
	uint32_t number = 0;
	double n;
	bool good;

	switch (p->kind) {
	case REAL:
		good = parse_real(value, &n);
		break;
	case NUMBER:
		good = parse_u32(value, &number);
		n = number;
		break;
	default:
		good = parse_size(value, &size);
		n = size;
	}
	if (!good || n < p->least || n > p->most)
		return false;
	if (p->kind == REAL)
		*(double *)at = n;
	else if (p->kind == NUMBER)
		*(uint32_t *)at = number;
	else
		*(uint64_t *)at = size;
	return true;
}

/* Parse the parameters of a network, separated by commas. */
static void network(struct argp_state *state, const char *arg, struct model_fabric *f)
{
	char *names[PROPERTIES + 2] = {}, *list = strdupa(arg), *value;

	for (size_t i = 0; i < PROPERTIES; i++)
		names[i] = (char *)(uintptr_t)properties[i].name;
	names[PROPERTIES] = (char *)(uintptr_t)"mixed";
	while (*list) {
		const int i = getsubopt(&list, names, &value);

		if (i == (int)PROPERTIES && !value)
			f->mixed = true;
		else if (i < 0 || i == (int)PROPERTIES || !value)
			argp_error(state, "--network: \"%s\" is not gbps, latency, cost, copy, ranks, leaf, spines, cables, packet, head or buffer with =NUMBER, or mixed",
				   arg);
		else if (!set_property(&properties[i], f, value))
			argp_error(state, "--network: %s: \"%s\" is not %.12g to %.12g",
				   properties[i].name, value, properties[i].least,
				   properties[i].most);
	}
	if (f->packet > f->buffer)
		argp_error(state, "--network: packet=%" PRIu64 " is above buffer=%" PRIu64,
			   f->packet, f->buffer);
	if (f->spines * f->cables > 1024)
		argp_error(state, "--network: %u cables to each of %u spines exceed the limit of 1024 links of a leaf",
			   f->cables, f->spines);
}

static error_t parse_model(int key, char *arg, struct argp_state *state, struct options *o)
{
	switch (key) {
	case OPT_OF:
		if (strcmp(arg, "nton") && strcmp(arg, "nxn") && strcmp(arg, "build"))
			argp_error(state, "--of: \"%s\" is not nton, nxn or build", arg);
		o->of = arg;
		break;
	case OPT_BUILDERS:
		option_u32(state, "--builders", arg, 1, RASHPA_FABRIC_PEERS, &o->builders);
		break;
	case OPT_NETWORK:
		network(state, arg, &o->model);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_build(int key, char *arg, struct argp_state *state, struct options *o)
{
	switch (key) {
	case OPT_READOUTS:
		option_u32(state, "--readouts", arg, 1, RASHPA_FABRIC_PEERS, &o->readouts);
		break;
	case OPT_FOLDED:
		o->folded = true;
		break;
	case OPT_HOLD:
		o->hold = true;
		break;
	case OPT_EVENTS:
		if (!parse_u64(arg, UINT64_C(1) << 48, &o->events) || !o->events)
			argp_error(state, "--events: \"%s\" is not a number from 1", arg);
		break;
	case OPT_RATE:
		if (!parse_real(arg, &o->rate) || o->rate < 0.001 || o->rate > 1e9)
			argp_error(state, "--rate: \"%s\" is not 0.001 to 1000000000 events a second",
				   arg);
		break;
	case OPT_BLOCK:
		option_u32(state, "--block", arg, 1, 65536, &o->block);
		break;
	case OPT_CREDIT:
		option_u32(state, "--credit", arg, 1, 64, &o->credit);
		break;
	case OPT_POOL:
		option_u32(state, "--pool", arg, 1, 65536, &o->pool);
		break;
	case OPT_SOURCES:
		option_u32(state, "--sources", arg, 1, 65536, &o->sources);
		break;
	case OPT_FRAGMENT:
		size(state, "--fragment", arg, &o->fragment);
		break;
	case OPT_FILES:
		o->files = arg;
		break;
	case OPT_FROM:
		name(state, "--from", arg, &o->from);
		break;
	case OPT_ACCEPT:
		option_accept(state, arg, &o->accept);
		break;
	case OPT_TO:
		name(state, "--to", arg, &o->to);
		break;
	case OPT_GEOMETRY:
		if (!parse_geometry(arg, &o->geometry) || (uint64_t)o->geometry.width *
		    o->geometry.height * pixel_bytes(o->geometry.pixel) > RASHPA_FABRIC_MESSAGE / 2)
			argp_error(state, "--geometry: \"%s\" is not WxH[,u8|u16|u32] of 512M at most",
				   arg);
		break;
	case OPT_FAULT:
		fault(state, arg, o);
		break;
	default:
		return parse_model(key, arg, state, o);
	}
	return 0;
}

static error_t parse_traffic(int key, char *arg, struct argp_state *state, struct options *o)
{
	switch (key) {
	case OPT_SIZE:
		size(state, "--size", arg, &o->size);
		o->one_size = true;
		break;
	case OPT_JITTER:
		option_u32(state, "--jitter", arg, 0, 100, &o->jitter);
		break;
	case OPT_BUFFERS:
		option_u32(state, "--buffers", arg, 1, 65536, &o->buffers);
		break;
	case OPT_ONE_BUFFER:
		o->one_buffer = true;
		break;
	case OPT_VERIFY:
		o->verify = true;
		break;
	case OPT_MESSAGES:
		if (!parse_u64(arg, UINT64_C(1) << 48, &o->messages) || !o->messages)
			argp_error(state, "--messages: \"%s\" is not a number from 1", arg);
		break;
	case OPT_SECONDS:
		real(state, "--seconds", arg, 0.00001, 86400, &o->seconds);
		break;
	case OPT_SLOW:
		if (!parse_real(arg, &o->slow_us) || o->slow_us < 0 || o->slow_us > 1e6)
			argp_error(state, "--slow: \"%s\" is not 0 to 1000000 microseconds", arg);
		break;
	case OPT_ROUNDS:
		option_u32(state, "--rounds", arg, 1, 1000, &o->rounds);
		break;
	case OPT_WAY:
		if (!burst_way(arg))
			argp_error(state, "--way: unknown variant \"%s\": burst without --way prints all", arg);
		o->way = arg;
		break;
	case OPT_INTERVAL:
		real(state, "--interval", arg, 0.01, 3600, &o->interval);
		break;
	default:
		return parse_build(key, arg, state, o);
	}
	return 0;
}

static void parse_command(struct argp_state *state, char *arg, struct options *o)
{
	if (o->command)
		argp_error(state, "unexpected argument \"%s\"", arg);
	if (strcmp(arg, "nton") && strcmp(arg, "nxn") && strcmp(arg, "build") &&
	    strcmp(arg, "burst") && strcmp(arg, "model"))
		argp_error(state, "unknown command \"%s\": nton, nxn, build, burst or model", arg);
	o->command = arg;
}

static void check(struct argp_state *state, struct options *o)
{
	const char *command = o->command ? o->command : "";

	if (!*command)
		argp_error(state, "a command is missing: nton, nxn, build, burst or model");
	if (!strcmp(command, "burst") && rashpa_fabric_has("mpi"))
		argp_error(state, "burst needs MPI: %s", rashpa_fabric_has("mpi"));
	if (o->one_buffer && o->verify)
		argp_error(state, "--verify: messages in one buffer overwrite each other: leave --one-buffer out");
	if (o->fabric.flags & RASHPA_FABRIC_BUFFERED && strcmp(o->fabric.transport, "mpi"))
		argp_error(state, "--buffered requires --transport mpi");
	if ((o->from || o->to) && !o->geometry.width)
		argp_error(state, "--from and --to require --geometry: they handle images");
	if (o->from && o->fault && strcmp(o->fault, "missing") && strcmp(o->fault, "corrupt"))
		argp_error(state, "--fault: with --from, a fragment can be missing or corrupt, but not %s",
			   o->fault);
	if (!o->from && o->fault && o->events && o->fault_event >= o->events)
		argp_error(state, "--fault: there is no event %" PRIu64 " with --events %" PRIu64,
			   o->fault_event, o->events);
	if (o->to && o->files)
		argp_error(state, "--to and --files exclude each other");
	if (o->geometry.width) {
		o->fragment = o->geometry.width * o->geometry.height *
			      pixel_bytes(o->geometry.pixel);
		o->jitter = 0;
		o->sources = 1;
	}
	if (!strcmp(command, "model") && (!o->readouts || (o->folded && o->builders)))
		argp_error(state, "model requires --readouts; --builders does not go with --folded");
	if (!o->builders)
		o->builders = o->readouts;
	if (!o->buffers)
		o->buffers = 2 * o->fabric.depth;
}

/* Maximum number of requests of a queue. */
static uint32_t queue(const struct options *o)
{
	/* one more for the last message */
	return strcmp(o->command, "build") ? o->buffers + 1 : BUILD_QUEUE;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	const char *missing;

	switch (key) {
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case 't':
		real(state, "--timeout", arg, 0.01, 86400, &o->timeout);
		break;
	case OPT_GATHER:
		real(state, "--gather", arg, 0.01, 86400, &o->gather);
		break;
	case OPT_TRANSPORT:
		missing = rashpa_fabric_has(arg);
		if (missing)
			argp_error(state, "--transport: %s", missing);
		o->fabric.transport = arg;
		break;
	case OPT_DEVICE:
		o->fabric.device = arg;
		break;
	case OPT_DEPTH:
		option_u32(state, "--depth", arg, 1, RASHPA_FABRIC_DEPTH, &o->fabric.depth);
		break;
	case OPT_POLL:
		poll_(state, arg, &o->fabric.poll);
		break;
	case OPT_BUFFERED:
		o->fabric.flags |= RASHPA_FABRIC_BUFFERED;
		break;
	case OPT_BUFFER:
		name(state, "--buffer", arg, &o->buffer);
		break;
	case OPT_CPU:
		option_u32(state, "--cpu", arg, 0, 65535, (uint32_t *)&o->fabric.cpu);
		break;
	case ARGP_KEY_ARG:
		parse_command(state, arg, o);
		break;
	case ARGP_KEY_END:
		check(state, o);
		break;
	default:
		return parse_traffic(key, arg, state, o);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "nton|nxn|build|burst|model",
	.doc = "Build events from the parts of many readouts, in many builders (build); or send "
	       "messages as fast as possible, from the first half of the processes to the second "
	       "half (nton), or from all to all (nxn); or measure the cost of the library compared "
	       "with MPI alone (burst). mpirun or srun starts all processes. Or simulate the "
	       "throughput of a network (model), in a single process."
	       "\vExit status: 0 success, 1 failure, or a process has gone, 2 usage error, 3 no "
	       "progress in time, 4 messages or events were lost, wrong or "
	       "incomplete.",
};

/* --- functions that commands share --- */

int fail_fabric(const struct rashpa_fabric *f, int error, const char *what)
{
	if (f)
		fail("rank %u: %s%s", rashpa_fabric_rank(f), what, rashpa_fabric_reason());
	else
		fail("%s%s", what, rashpa_fabric_reason());
	return error == -ETIMEDOUT ? EXIT_TIMEOUT : EXIT_FAILED;
}

void warn_nodes(const struct rashpa_fabric *f)
{
	struct rashpa_fabric_nodes nodes;
	const char *apart;

	rashpa_fabric_nodes(f, &nodes);
	apart = rashpa_fabric_apart(&nodes);
	if (apart)
		say("rank %u: %s", rashpa_fabric_rank(f), apart);
}

int make_arena(struct rashpa_fabric *f, const struct options *o, uint64_t bytes,
	       struct rashpa_arena **arena)
{
	char name[128];
	int error;

	if (o->buffer) {
		snprintf(name, sizeof(name), "%s%u", o->buffer, rashpa_fabric_rank(f));
		error = rashpa_arena_buffer(f, name, arena);
	} else {
		error = rashpa_arena_allocate(f, bytes, arena);
	}
	return error ? fail_fabric(f, error, "") : 0;
}

int main(int argc, char **argv)
{
	const volatile bool *stop = stop_on_signals();
	struct options o = {
		.fabric = { .transport = "shm", .depth = 8, .poll = RASHPA_FABRIC_TESTSOME,
			    .cpu = -1 },
		.timeout = 30, .size = 65536, .seconds = 10, .interval = 1, .rounds = 101, .of = "build",
		.model = { .gbps = 100, .latency_us = 1, .cost_us = 0.5, .ranks = 1, .packet = 4096,
			   .head = 82, .buffer = 65536, .spines = 1, .cables = 1 },
		.block = 8, .credit = 4, .pool = 16, .sources = 4, .fragment = 2048,
	};
	struct rashpa_fabric *f = NULL;
	int result;

	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (!strcmp(o.command, "model"))
		return model(&o);
	o.fabric.timeout_ms = (o.gather > 0 ? o.gather : o.timeout) * 1000;
	if (!strcmp(o.command, "burst"))
		return burst(&o, stop);
	o.fabric.queue = queue(&o);
	result = rashpa_fabric_open(&o.fabric, &f);
	if (result)
		return fail_fabric(NULL, result, "");
	result = strcmp(o.command, "build") ? traffic(f, &o, stop) : build(f, &o, stop);
	rashpa_fabric_close(f);
	return result;
}
