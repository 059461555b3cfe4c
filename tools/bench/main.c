// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench: measurements, compared with other drivers. See rashpa-bench(1). */
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "bench/bench.h"
#include "common/options.h"
#include "common/stop.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "memory", cmd_memory, "allocation, maps, mmap, reading and writing" },
	{ "event", cmd_event, "cost of an event for the processor, without a board" },
	{ "latency", cmd_latency, "time from an event to the program, on all paths" },
	{ "roundtrip", cmd_roundtrip,
	  "start, DMA, notification and acknowledgement, by the clock of the FPGA" },
	{ "loop", cmd_loop, "drive the board by a ring, and check each event" },
	{ "process", cmd_process, "stages of a pipeline, compared with STREAM" },
	{ "gpu", cmd_gpu, "GPU notifications, copies, stages of a pipeline" },
	{ "network", cmd_network, "messages from a writer to a sink, by RDMA and other transports" },
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static volatile bool *stop;	/* NULL: signals end the program */

bool going_on(void)
{
	return !stop || !*stop;
}

void catch_signals(void)
{
	stop = stop_on_signals();
}

static void help(FILE *to)
{
	fputs("Usage: rashpa-bench COMMAND [OPTION...]\n\n", to);
	for (const struct command *c = commands; c < commands + COMMANDS; c++)
		fprintf(to, "  %-10s %s\n", c->name, c->help);
	fputs("\nSee also \"rashpa-bench COMMAND --help\".\n"
	      "Exit status: 0 success, 1 failure or no result, 2 usage error.\n", to);
}

int main(int argc, char **argv)
{
	char name[64];

	tool_begin(argc, argv);
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("rashpa-bench " RASHPA_VERSION);
		return 0;
	}
	for (const struct command *c = commands; c < commands + COMMANDS; c++) {
		if (strcmp(argv[1], c->name))
			continue;
		snprintf(name, sizeof(name), "rashpa-bench %s", c->name);
		argv[1] = name;
		return c->run(argc - 1, argv + 1);
	}
	say("unknown command \"%s\": see rashpa-bench --help", argv[1]);
	return EXIT_USAGE;
}
