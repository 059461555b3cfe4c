// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: event building, and its network traffic. See rashpa-builder(1). */
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "builder/builder.h"
#include "common/command.h"
#include "common/json-out.h"
#include "common/options.h"
#include "common/parse.h"
#include "common/say.h"
#include "common/stop.h"

/* Places in the table of commands, and sets of them. */
enum { NTON, NXN, BURST, BUILD, MODEL_NTON, MODEL_NXN, MODEL_BUILD };

#define IN(command)	(1u << (command))
#define TRAFFIC		(IN(NTON) | IN(NXN))
#define RUNS		(TRAFFIC | IN(BUILD))
#define MODELS		(IN(MODEL_NTON) | IN(MODEL_NXN) | IN(MODEL_BUILD))
#define BUILDS		(IN(BUILD) | IN(MODEL_BUILD))
#define ALL		(RUNS | IN(BURST) | MODELS)

static int run(int argc, char **argv);

static const struct command commands[] = {
	[NTON] = { NULL, "nton", "", run,
		   "messages from the first half of the processes to the second half, as fast as possible" },
	[NXN] = { NULL, "nxn", "", run, "messages from all processes to all, as fast as possible" },
	[BURST] = { NULL, "burst", "", run, "cost of the library, compared with MPI alone" },
	[BUILD] = { NULL, "build", "", run, "events from the parts of many readouts, in many builders" },
	[MODEL_NTON] = { "model", "nton", "", run, "throughput of nton in a simulated network, in one process" },
	[MODEL_NXN] = { "model", "nxn", "", run, "throughput of nxn in a simulated network, in one process" },
	[MODEL_BUILD] = { "model", "build", "", run, "throughput of build in a simulated network, in one process" },
	{}
};

enum { OPT_TRANSPORT = 256, OPT_POLL, OPT_BUFFERED, OPT_WAY, OPT_ACCEPT, OPT_GEOMETRY, OPT_FAULT, OPT_NETWORK, OPT_ROW };

#define OF(kind, member, least, most)	{ 0, VALUE_##kind, NULL, offsetof(struct options, member), least, most }
#define NAME_OF(member)			{ 0, VALUE_TEXT, "a buffer", offsetof(struct options, member), 0, 0 }
#define MOST_EVENTS	281474976710656.0

static const struct row {
	unsigned int commands;
	struct argp_option option;	/* without a key: OPT_ROW and its place in the table */
	struct option_value value;	/* without a key; a name: only of buffers */
} rows[] = {
	{ ALL, OPTION_JSON, {} },
	{ RUNS | IN(BURST),
	  { "timeout", 't', "SECONDS", 0, "give up after SECONDS without progress (default: 30)", 0 },
	  OF(REAL, timeout, 0.01, 86400) },
	{ RUNS | IN(BURST),
	  { "gather", 0, "SECONDS", 0, "time limit for processes to come (default: that of --timeout)", 0 },
	  OF(REAL, gather, 0.01, 86400) },
	{ RUNS, { "transport", OPT_TRANSPORT, "shm|mpi|verbs", 0, "transport between processes (default: shm)", 0 }, {} },
	{ RUNS, { "device", 0, "NAME", 0, "verbs: RDMA device (default: the first usable one)", 0 },
	  OF(TEXT, fabric.device, 0, 0) },
	{ RUNS | MODELS, { "depth", 0, "N", 0, "messages of a queue under way, 1 to 64 (default: 8)", 0 },
	  OF(U32, fabric.depth, 1, RASHPA_FABRIC_DEPTH) },
	{ RUNS,
	  { "poll", OPT_POLL, "test|testsome|testall", 0,
	    "mpi: function that polls for completions (default: testsome)", 0 }, {} },
	{ RUNS, { "buffered", OPT_BUFFERED, NULL, 0, "mpi: buffer sent messages; memory may grow", 0 }, {} },
	{ RUNS,
	  { "buffer", 0, "NAME", 0, "rank N uses the named buffer NAMEN (default: ordinary memory)", 0 },
	  NAME_OF(buffer) },
	{ RUNS, { "gpu", 0, "NAME", 0, "verbs: messages are in memory of this GPU, as vulkan", 0 },
	  OF(TEXT, gpu, 0, 0) },
	{ RUNS | IN(BURST), { "cpu", 0, "N", 0, "processor of the transport's thread", 0 },
	  OF(U32, fabric.cpu, 0, 65535) },
	{ RUNS | MODELS, { "jitter", 0, "PERCENT", 0, "variation of sizes, 0 to 100 (default: 0)", 0 },
	  OF(U32, jitter, 0, 100) },
	{ TRAFFIC | IN(MODEL_NTON) | IN(MODEL_NXN), { "size", 0, "SIZE", 0, "message size (default: 64K)", 0 },
	  OF(SIZE32, size, 1, RASHPA_FABRIC_MESSAGE / 2) },
	{ IN(BURST),
	  { "size", 0, "SIZE", 0, "message size (default: each power of two from 1K to 1M)", 0 },
	  OF(SIZE32, size, 1, RASHPA_FABRIC_MESSAGE / 2) },
	{ TRAFFIC, { "buffers", 0, "N", 0, "buffers of each queue (default: twice the depth)", 0 },
	  OF(U32, buffers, 1, 65536) },
	{ TRAFFIC, { "one-buffer", 0, NULL, 0, "all messages of a queue use the same memory", 0 },
	  OF(FLAG, one_buffer, 0, 0) },
	{ TRAFFIC, { "verify", 0, NULL, 0, "check tag, sequence and checksum of each message", 0 },
	  OF(FLAG, verify, 0, 0) },
	{ TRAFFIC, { "messages", 0, "N", 0, "messages of each pair (default: no limit)", 0 },
	  OF(U64, messages, 1, MOST_EVENTS) },
	{ TRAFFIC, { "seconds", 0, "SECONDS", 0, "send for SECONDS (default: 10)", 0 },
	  OF(REAL, seconds, 0.00001, 86400) },
	{ MODELS, { "seconds", 0, "SECONDS", 0, "time of the network (default: 10)", 0 },
	  OF(REAL, seconds, 0.00001, 86400) },
	{ TRAFFIC,
	  { "slow", 0, "MICROSECONDS", 0, "the last rank sleeps for MICROSECONDS after each message", 0 },
	  OF(REAL, slow_us, 0, 1e6) },
	{ TRAFFIC,
	  { "interval", 0, "SECONDS", 0,
	    "time between samples; the first and last do not count (default: 1)", 0 },
	  OF(REAL, interval, 0.01, 3600) },
	{ IN(BURST), { "rounds", 0, "N", 0, "rounds of each size and variant (default: 101)", 0 },
	  OF(U32, rounds, 1, 1000) },
	{ IN(BURST),
	  { "way", OPT_WAY, "NAME", 0,
	    "compare only this variant with MPI, as \"layer alone\" (default: all)", 0 }, {} },
	{ IN(BUILD),
	  { "readouts", 0, "N", 0,
	    "ranks 1 to N are readouts, later ones builders (default: half of them each)", 0 },
	  OF(U32, readouts, 1, RASHPA_FABRIC_PEERS) },
	{ MODELS, { "readouts", 0, "N", 0, "number of readouts, or senders (required)", 0 },
	  OF(U32, readouts, 1, RASHPA_FABRIC_PEERS) },
	{ IN(MODEL_BUILD), { "builders", 0, "N", 0, "number of builders (default: as --readouts)", 0 },
	  OF(U32, builders, 1, RASHPA_FABRIC_PEERS) },
	{ BUILDS, { "folded", 0, NULL, 0, "all but rank 0 are readout and builder", 0 },
	  OF(FLAG, folded, 0, 0) },
	{ IN(BUILD), { "events", 0, "N", 0, "number of events (default: until SIGINT)", 0 },
	  OF(U64, events, 1, MOST_EVENTS) },
	{ IN(BUILD), { "rate", 0, "HZ", 0, "events a second (default: no limit)", 0 },
	  OF(REAL, rate, 0.001, 1e9) },
	{ BUILDS, { "block", 0, "N", 0, "events that are assigned together (default: 8)", 0 },
	  OF(U32, block, 1, 65536) },
	{ BUILDS,
	  { "credit", 0, "N", 0,
	    "blocks that a builder asks for ahead (default: 4); N times builders is at most 496", 0 },
	  OF(U32, credit, 1, 64) },
	{ BUILDS, { "pool", 0, "N", 0, "blocks that a readout has room for (default: 16)", 0 },
	  OF(U32, pool, 1, 65536) },
	{ IN(BUILD),
	  { "hold", 0, NULL, 0,
	    "readouts hold a block until it is built, so that another builder can take over", 0 },
	  OF(FLAG, hold, 0, 0) },
	{ BUILDS, { "sources", 0, "N", 0, "sources of each readout (default: 4)", 0 },
	  OF(U32, sources, 1, 65536) },
	{ BUILDS, { "fragment", 0, "SIZE", 0, "fragment size (default: 2K)", 0 },
	  OF(SIZE32, fragment, 1, RASHPA_FABRIC_MESSAGE / 2) },
	{ IN(BUILD),
	  { "from", 0, "NAME", 0,
	    "readout N reads the stream of buffer NAMEN (default: generated fragments)", 0 },
	  NAME_OF(from) },
	{ IN(BUILD), OPTION_ACCEPT(OPT_ACCEPT, 0), {} },
	{ IN(BUILD),
	  { "geometry", OPT_GEOMETRY, "WxH[,u8|u16|u32]", 0, "image size; an image is a fragment", 0 }, {} },
	{ IN(BUILD),
	  { "to", 0, "NAME", 0,
	    "builder N streams whole images into buffer NAMEN (default: only count events)", 0 },
	  NAME_OF(to) },
	{ IN(BUILD), { "files", 0, "DIR", 0, "builders write a file for each block", 0 },
	  OF(TEXT, files, 0, 0) },
	{ IN(BUILD),
	  { "fault", OPT_FAULT, "KIND:N:EVENT", 0,
	    "inject a missing, duplicate, late or corrupt fragment at readout N, for tests; with --from, "
	    "only missing or corrupt", 0 }, {} },
	{ MODELS,
	  { "network", OPT_NETWORK, "NAME=VALUE[,...]", 0, "parameters of the network, see the manual", 0 }, {} },
};

#define ROWS	(sizeof(rows) / sizeof(rows[0]))

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
	struct option_value value;	/* without a key; a name: only of buffers */
} properties[] = {
	{ "gbps", { 0, VALUE_REAL, NULL, offsetof(struct model_fabric, gbps), 0.000001, 1e6 } },
	{ "latency", { 0, VALUE_REAL, NULL, offsetof(struct model_fabric, latency_us), 0, 1e9 } },
	{ "cost", { 0, VALUE_REAL, NULL, offsetof(struct model_fabric, cost_us), 0, 1e9 } },
	{ "copy", { 0, VALUE_REAL, NULL, offsetof(struct model_fabric, copy_gbps), 0, 1e6 } },
	{ "ranks", { 0, VALUE_U32, NULL, offsetof(struct model_fabric, ranks), 1, RASHPA_FABRIC_PEERS } },
	{ "leaves", { 0, VALUE_U32, NULL, offsetof(struct model_fabric, leaves), 0, RASHPA_FABRIC_PEERS } },
	{ "spines", { 0, VALUE_U32, NULL, offsetof(struct model_fabric, spines), 1, 1024 } },
	{ "cables", { 0, VALUE_U32, NULL, offsetof(struct model_fabric, cables), 1, 1024 } },
	{ "packet", { 0, VALUE_SIZE, NULL, offsetof(struct model_fabric, packet), 1, RASHPA_FABRIC_MESSAGE } },
	{ "head", { 0, VALUE_SIZE, NULL, offsetof(struct model_fabric, head), 0, 65536 } },
	{ "buffer", { 0, VALUE_SIZE, NULL, offsetof(struct model_fabric, buffer), 1, RASHPA_FABRIC_MESSAGE } },
	{ "rendezvous", { 0, VALUE_SIZE, NULL, offsetof(struct model_fabric, rendezvous), 0, RASHPA_FABRIC_MESSAGE } },
};

#define PROPERTIES	(sizeof(properties) / sizeof(properties[0]))

/* Parse the parameters of a network, separated by commas. */
static void network(struct argp_state *state, const char *arg, struct model_fabric *f)
{
	char *names[PROPERTIES + 3] = {}, *list = strdupa(arg), *value;

	for (size_t i = 0; i < PROPERTIES; i++)
		names[i] = (char *)(uintptr_t)properties[i].name;
	names[PROPERTIES] = (char *)(uintptr_t)"mixed";
	names[PROPERTIES + 1] = (char *)(uintptr_t)"credits";
	while (*list) {
		const int i = getsubopt(&list, names, &value);

		if (i == (int)PROPERTIES && !value)
			f->mixed = true;
		else if (i == (int)PROPERTIES + 1 && !value)
			f->credits = true;
		else if (i < 0 || i >= (int)PROPERTIES || !value)
			argp_error(state, "--network: \"%s\" is not gbps, latency, cost, copy, ranks, leaves, spines, cables, packet, head, buffer or rendezvous with =NUMBER, or mixed or credits",
				   arg);
		else if (!value_set(&properties[i].value, f, value))
			argp_error(state, "--network: %s: \"%s\" is not %.12g to %.12g",
				   properties[i].name, value, properties[i].value.least,
				   properties[i].value.most);
	}
	if (f->packet > f->buffer)
		argp_error(state, "--network: packet=%" PRIu64 " is above buffer=%" PRIu64,
			   f->packet, f->buffer);
	if (f->spines * f->cables > 1024)
		argp_error(state, "--network: %u cables to each of %u spines exceed the limit of 1024 links of a leaf",
			   f->cables, f->spines);
}

static void parse_geometry_of(struct argp_state *state, const char *arg, struct geometry *g)
{
	if (!parse_geometry(arg, g) ||
	    (uint64_t)g->width * g->height * pixel_bytes(g->pixel) > RASHPA_FABRIC_MESSAGE / 2)
		argp_error(state, "--geometry: \"%s\" is not WxH[,u8|u16|u32] of 512M at most", arg);
}

static void check(struct argp_state *state, struct options *o)
{
	if (o->set & IN(BURST) && rashpa_fabric_has("mpi"))
		argp_error(state, "burst needs MPI: %s", rashpa_fabric_has("mpi"));
	if (o->one_buffer && o->verify)
		argp_error(state, "--verify: messages in one buffer overwrite each other: leave --one-buffer out");
	if (o->gpu && (o->buffer || strcmp(o->fabric.transport, "verbs")))
		argp_error(state, "--gpu requires --transport verbs, and excludes --buffer");
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
	if (o->set & MODELS && !o->readouts)
		argp_error(state, "--readouts is missing");
	if (o->folded && o->builders)
		argp_error(state, "--builders and --folded exclude each other");
	o->one_size = o->size;
	if (!o->size)
		o->size = 65536;
	if (!o->builders)
		o->builders = o->readouts;
	if (!o->buffers)
		o->buffers = 2 * o->fabric.depth;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	const struct row *row = rows;
	const char *missing;

	switch (key) {
	case 'j':
		o->json = true;
		json_to(arg);
		return 0;
	case OPT_TRANSPORT:
		missing = rashpa_fabric_has(arg);
		if (missing)
			argp_error(state, "--transport: %s", missing);
		o->fabric.transport = arg;
		return 0;
	case OPT_POLL:
		o->fabric.poll = option_word(state, "--poll", arg, "test|testsome|testall");
		return 0;
	case OPT_BUFFERED:
		o->fabric.flags |= RASHPA_FABRIC_BUFFERED;
		return 0;
	case OPT_WAY:
		if (!burst_way(arg))
			argp_error(state, "--way: unknown variant \"%s\": burst without --way prints all", arg);
		o->way = arg;
		return 0;
	case OPT_ACCEPT:
		option_accept(state, arg, &o->accept);
		return 0;
	case OPT_GEOMETRY:
		parse_geometry_of(state, arg, &o->geometry);
		return 0;
	case OPT_FAULT:
		fault(state, arg, o);
		return 0;
	case OPT_NETWORK:
		network(state, arg, &o->model);
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		return 0;
	case ARGP_KEY_END:
		check(state, o);
		return 0;
	}
	while (row < rows + ROWS && key != (row->option.key ? row->option.key : OPT_ROW + (int)(row - rows)))
		row++;
	if (row == rows + ROWS)
		return ARGP_ERR_UNKNOWN;
	if (row->value.name && (!*arg || !name_possible(arg) || strlen(arg) > 50))
		argp_error(state, "--%s: \"%s\" is not a valid buffer name", row->option.name, arg);
	if (!value_set(&row->value, o, arg))
		argp_error(state, "--%s: \"%s\" is not %.15g to %.15g", row->option.name, arg,
			   row->value.least, row->value.most);
	return 0;
}

static int run(int argc, char **argv)
{
	struct options o = {
		.set = IN(command_running - commands), .command = command_running->name,
		.fabric = { .transport = "shm", .depth = 8, .poll = RASHPA_FABRIC_TESTSOME,
			    .flags = RASHPA_FABRIC_ONLY_USED, .cpu = -1 },
		.timeout = 30, .seconds = 10, .interval = 1, .rounds = 101,
		.model = { .gbps = 100, .latency_us = 1, .cost_us = 0.5, .ranks = 1, .packet = 4096,
			   .head = 82, .buffer = 65536, .spines = 1, .cables = 1 },
		.block = 8, .credit = 4, .pool = 16, .sources = 4, .fragment = 2048,
	};
	const volatile bool *stop = stop_on_signals();
	struct argp_option options[ROWS + 1] = {};
	const struct argp argp = { .options = options, .parser = parse };
	struct rashpa_fabric *f = NULL;
	int result, n = 0;

	for (size_t i = 0; i < ROWS; i++) {
		if (rows[i].commands & o.set) {
			options[n] = rows[i].option;
			options[n].key = options[n].key ? options[n].key : OPT_ROW + (int)i;
			n++;
		}
	}
	command_parse(&argp, argc, argv, &o);
	if (o.set & MODELS)
		return model(&o);
	o.fabric.timeout_ms = (o.gather > 0 ? o.gather : o.timeout) * 1000;
	if (o.set & IN(BURST))
		return burst(&o, stop);
	/* one more for the last message */
	o.fabric.queue = o.set & IN(BUILD) ? BUILD_QUEUE : o.buffers + 1;
	result = rashpa_fabric_open(&o.fabric, &f);
	if (result)
		return fail_fabric(NULL, result, "");
	result = o.set & IN(BUILD) ? build_events(f, &o, stop) : traffic(f, &o, stop);
	rashpa_fabric_close(f);
	return result;
}

int main(int argc, char **argv)
{
	return command_run("rashpa-builder", commands, argc, argv);
}
