// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network: sub-commands, and their common options. */
#include <stdio.h>
#include <string.h>

#include "common/json-out.h"
#include "link/network-options.h"
#include "bench/network/network.h"
#include "common/options.h"

static const char *const waits[] = {
	[RASHPA_NET_EVENT] = "event", [RASHPA_NET_POLL] = "poll",
	[RASHPA_NET_ADAPTIVE] = "adaptive",
};

const char *wait_name(uint32_t wait)
{
	return waits[wait];
}

void option_wait(struct argp_state *state, const char *arg, uint32_t *wait)
{
	for (*wait = 0; *wait < sizeof(waits) / sizeof(waits[0]); ++*wait) {
		if (!strcmp(arg, waits[*wait]))
			return;
	}
	argp_error(state, "--wait: \"%s\" is not event, poll or adaptive", arg);
}

error_t network_setting(int key, char *arg, struct argp_state *state, struct network_settings *s)
{
	switch (key) {
	case 'j':
		s->json = true;
		json_to(arg);
		break;
	case OPT_NET_THREADS:
		option_u32(state, "--threads", arg, 1, THREADS_MOST, &s->threads);
		break;
	case OPT_NET_WAIT:
		option_wait(state, arg, &s->wait);
		break;
	case OPT_NET_PAGES:
		if (!pages_known(arg))
			argp_error(state, "--pages: \"%s\" is not thp, 4K, 2M or 1G", arg);
		s->pages = arg;
		break;
	case OPT_NET_BUFFER:
		s->buffer = arg;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		break;
	default:
		return network_option(key, arg, state, &s->port);
	}
	return 0;
}

static double member(struct json_object *o, const char *key)
{
	return json_object_get_double(json_object_object_get(o, key));
}

void lap_print(size_t number, struct json_object *lap)
{
	printf("%3zu  %8.4f GB/s  received %.0f  missing %.0f", number,
	       member(lap, "goodput_bytes_per_s") / 1e9, member(lap, "received_messages"),
	       member(lap, "missing_messages"));
	printf("  events/GB %.0f  CPU of the sink %.3f s/GB\n", member(lap, "events_per_gb"),
	       member(lap, "cpu_s_per_gb"));
}

static void help(FILE *to)
{
	fputs("Usage: rashpa-bench network COMMAND [OPTION...]\n\n"
	      "  sink       provide memory that a writer writes to (rcwritesink)\n"
	      "  write      send messages to a sink (rcwrite)\n"
	      "  sweep      run both with many settings, and compare with other programs\n"
	      "\nSee also \"rashpa-bench network COMMAND --help\".\n", to);
}

int cmd_network(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(int argc, char **argv);
	} commands[] = {
		{ "sink", network_sink }, { "write", network_write }, { "sweep", network_sweep },
	};
	static char full[64];

	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(argv[1], commands[i].name))
			continue;
		snprintf(full, sizeof(full), "rashpa-bench network %s", argv[1]);
		argv[1] = full;
		return commands[i].run(argc - 1, argv + 1);
	}
	say("unknown command \"%s\": see rashpa-bench network --help", argv[1]);
	return EXIT_USAGE;
}
