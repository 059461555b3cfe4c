// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: event building, and the traffic of it. See rashpa-builder(1). */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "json-out.h"
#include "options.h"
#include "parse.h"
#include "say.h"
#include "stop.h"

const char *argp_program_version = "rashpa-builder " RASHPA_VERSION;

enum {
	OPT_TRANSPORT = 256, OPT_DEVICE, OPT_DEPTH, OPT_POLL, OPT_BUFFERED, OPT_BUFFER, OPT_CPU,
	OPT_SIZE, OPT_JITTER, OPT_BUFFERS, OPT_ONE_BUFFER, OPT_VERIFY, OPT_MESSAGES, OPT_SECONDS,
	OPT_INTERVAL,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "All commands:", 1 },
	OPTION_JSON,
	{ "timeout", 't', "SECONDS", 0, "for processes to come, and without progress (default 30)", 1 },
	{ "transport", OPT_TRANSPORT, "shm|mpi|verbs", 0, "between processes (default shm)", 1 },
	{ "device", OPT_DEVICE, "NAME", 0, "verbs: RDMA device (default: the first that can)", 1 },
	{ "depth", OPT_DEPTH, "N", 0, "messages of a queue under way, 1 to 64 (default 8)", 1 },
	{ "poll", OPT_POLL, "test|testsome|testall", 0, "mpi: how it looks (default testsome)", 1 },
	{ "buffered", OPT_BUFFERED, NULL, 0, "mpi: let it keep messages: memory grows", 1 },
	{ "buffer", OPT_BUFFER, "NAME", 0,
	  "rank N uses the named buffer NAMEN (default: ordinary memory)", 1 },
	{ "cpu", OPT_CPU, "N", 0, "processor of the transport's thread", 1 },
	{ NULL, 0, NULL, 0, "nton, nxn:", 2 },
	{ "size", OPT_SIZE, "SIZE", 0, "of messages (default 64K)", 2 },
	{ "jitter", OPT_JITTER, "PERCENT", 0, "sizes vary by so much, 0 to 100 (default 0)", 2 },
	{ "buffers", OPT_BUFFERS, "N", 0, "of each queue (default: twice the depth)", 2 },
	{ "one-buffer", OPT_ONE_BUFFER, NULL, 0, "all messages of a queue use the same memory", 2 },
	{ "verify", OPT_VERIFY, NULL, 0, "tag, sequence and checksum of each message", 2 },
	{ "messages", OPT_MESSAGES, "N", 0, "of each pair (default: no limit)", 2 },
	{ "seconds", OPT_SECONDS, "SECONDS", 0, "send for so long (default 10)", 2 },
	{ "interval", OPT_INTERVAL, "SECONDS", 0,
	  "of samples, the first and last of which do not count (default 1)", 2 },
	{}
};

static void real(struct argp_state *state, const char *what, const char *arg, double most,
		 double *value)
{
	if (!parse_real(arg, value) || *value < 0.01 || *value > most)
		argp_error(state, "%s: \"%s\" is not 0.01 to %.0f seconds", what, arg, most);
}

static void size(struct argp_state *state, const char *arg, uint32_t *value)
{
	uint64_t bytes;

	if (!parse_size(arg, &bytes) || !bytes || bytes > RASHPA_FABRIC_MESSAGE / 2)
		argp_error(state, "--size: \"%s\" is not a size from 1 to 512M", arg);
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

static error_t parse_traffic(int key, char *arg, struct argp_state *state, struct options *o)
{
	switch (key) {
	case OPT_SIZE:
		size(state, arg, &o->size);
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
		real(state, "--seconds", arg, 86400, &o->seconds);
		break;
	case OPT_INTERVAL:
		real(state, "--interval", arg, 3600, &o->interval);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void parse_command(struct argp_state *state, char *arg, struct options *o)
{
	if (o->command)
		argp_error(state, "\"%s\" is too much", arg);
	if (strcmp(arg, "nton") && strcmp(arg, "nxn"))
		argp_error(state, "unknown command \"%s\": nton or nxn", arg);
	o->command = arg;
}

static void check(struct argp_state *state, struct options *o)
{
	if (!o->command)
		argp_error(state, "do what? rashpa-builder nton|nxn");
	if (o->one_buffer && o->verify)
		argp_error(state, "--verify: messages in one buffer overwrite each other: leave --one-buffer out");
	if (o->fabric.flags & RASHPA_FABRIC_BUFFERED && strcmp(o->fabric.transport, "mpi"))
		argp_error(state, "--buffered is of --transport mpi: others keep nothing");
	if (!o->buffers)
		o->buffers = 2 * o->fabric.depth;
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
		real(state, "--timeout", arg, 86400, &o->timeout);
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
		if (!*arg || !name_possible(arg))
			argp_error(state, "--buffer: \"%s\" cannot be the name of a buffer", arg);
		o->buffer = arg;
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
	.args_doc = "nton|nxn",
	.doc = "Send messages between processes as an event builder does: from the first half of "
	       "them to the second one (nton), or from all to all (nxn). Started by mpirun or srun, "
	       "once a process."
	       "\vExit status: 0 all went well, 1 failed, or a process has gone, 2 usage, 3 no "
	       "progress in time, 4 messages were lost or wrong.",
};

/* --- what commands share --- */

int fail_fabric(const struct rashpa_fabric *f, int error, const char *what)
{
	if (f)
		fail("rank %u: %s%s", rashpa_fabric_rank(f), what, rashpa_fabric_reason());
	else
		fail("%s%s", what, rashpa_fabric_reason());
	return error == -ETIMEDOUT ? EXIT_TIMEOUT : EXIT_FAILED;
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
		.timeout = 30, .size = 65536, .seconds = 10, .interval = 1,
	};
	struct rashpa_fabric *f = NULL;
	int result;

	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	o.fabric.timeout_ms = o.timeout * 1000;
	o.fabric.queue = o.buffers + 1;	/* one for the end */
	result = rashpa_fabric_open(&o.fabric, &f);
	if (result)
		return fail_fabric(NULL, result, "");
	result = traffic(f, &o, stop);
	rashpa_fabric_close(f);
	return result;
}
