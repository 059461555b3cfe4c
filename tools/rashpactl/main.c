// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl: the administrator's command. See rashpactl(1). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "rashpactl/rashpactl.h"

static const struct command {
	const char *group, *name;	/* no group: one word */
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ NULL, "doctor", cmd_doctor, "check this machine, print remedies" },
	{ NULL, "report", cmd_report, "report for a request for help, without addresses or data" },
	{ NULL, "list", cmd_list, "bound functions, bindable functions, holders of resources" },
	{ NULL, "limits", cmd_limits, "usage and limits of each resource" },
	{ NULL, "apply", cmd_apply, "create buffers and bind boards configured in /etc/rashpa" },
	{ NULL, "bind", cmd_bind, "give a PCI function to the driver" },
	{ NULL, "unbind", cmd_unbind, "take a function back from the driver" },
	{ NULL, "profile", cmd_profile, "check a device profile" },
	{ "buffer", "create", cmd_buffer_create, "make a named buffer" },
	{ "buffer", "list", cmd_buffer_list, "all named buffers" },
	{ "buffer", "info", cmd_buffer_info, "properties of a named buffer" },
	{ "buffer", "permit", cmd_buffer_permit, "set owner and mode of a named buffer" },
	{ "buffer", "query", cmd_buffer_query, "largest possible buffer, and how to make room" },
	{ "buffer", "remove", cmd_buffer_remove, "remove a named buffer" },
	{ "lock", "create", cmd_lock_create, "make named lock memory" },
	{ "window", "list", cmd_window_list, "windows of a function's profile" },
	{ "window", "info", cmd_window_info, "properties of a window" },
	/* before "map", whose first argument is the name of a memory */
	{ "map", "explain", cmd_map_explain, "location of a memory, and the path to it" },
	{ "map", "list", cmd_map_list, "all maps, and their owners" },
	{ "map", "program", cmd_map_program, "map a memory, program the table, and hold the map" },
	{ "map", "release", cmd_map_end, "end a map of any process" },
	{ "map", "end", cmd_map_end, "same as map release" },
	{ NULL, "map", cmd_map, "map a memory for a function" },
	{ "event", "watch", cmd_event_watch, "print events" },
	{ "event", "stat", cmd_event_stat, "count events, print positions of groups" },
	{ NULL, "top", cmd_top, "streams, live: rate, lag, losses, latency" },
	{ NULL, "quiesce", cmd_quiesce, "stop all DMA of a function" },
	{ NULL, "reset", cmd_reset, "reset a function" },
	{ "fpga", "status", cmd_fpga_status, "registers of the reference interface" },
	{ "reg", "read", cmd_reg_read, "read a register of any board" },
	{ "reg", "write", cmd_reg_write, "write a register of any board" },
	{ "reg", "dump", cmd_reg_dump, "read a range of registers" },
};

#define COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static void help(FILE *to)
{
	fputs("Usage: rashpactl [--json[=FILE]] COMMAND [OPTION...] [ARGUMENT...]\n\n", to);
	for (const struct command *c = commands; c < commands + COMMANDS; c++)
		fprintf(to, "  %-7s%s%-10s %s\n", c->group ? c->group : c->name,
			c->group ? " " : " ", c->group ? c->name : "", c->help);
	fputs("\n\"rashpactl COMMAND --help\" prints more.\n"
	      "Exit status: 0 done, 1 failed (doctor: a problem), 2 usage, 3 time limit exceeded.\n",
	      to);
}

static int usage(const char *what, const char *word)
{
	say("%s \"%s\": see rashpactl --help", what, word);
	return EXIT_USAGE;
}

bool want_json;

static bool is_json(const char *word)
{
	return !strcmp(word, "--json") || !strncmp(word, "--json=", 7) || !strcmp(word, "-j");
}

int main(int argc, char **argv)
{
	const struct command *c;
	bool group = false;
	char name[64];

	tool_begin(argc, argv);
	/* --json may stand before or after the command. */
	if (argc > 1 && is_json(argv[1])) {
		want_json = true;
		json_to(strchr(argv[1], '=') ? strchr(argv[1], '=') + 1 : NULL);
		argc--;
		argv++;
	}
	if (argc < 2) {
		help(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-?") || !strcmp(argv[1], "help")) {
		help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("rashpactl " RASHPA_VERSION);
		return 0;
	}
	for (c = commands; c < commands + COMMANDS; c++) {
		if (!c->group && !strcmp(argv[1], c->name))
			break;
		if (c->group && !strcmp(argv[1], c->group)) {
			group = true;
			if (argc > 2 && !strcmp(argv[2], c->name))
				break;
		}
	}
	if (c == commands + COMMANDS) {
		if (!group)
			return usage("unknown command", argv[1]);
		return usage("no such command of this group", argc > 2 ? argv[2] : argv[1]);
	}

	snprintf(name, sizeof(name), "rashpactl %s%s%s", c->group ? c->group : "",
		 c->group ? " " : "", c->name);
	argc -= c->group ? 2 : 1;
	argv += c->group ? 2 : 1;
	argv[0] = name;
	return c->run(argc, argv);
}

static error_t simple_option(int key, char *arg, struct argp_state *state)
{
	struct simple *s = state->input;

	switch (key) {
	case 'j':
		*s->json = true;
		json_to(arg);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num >= s->n)
			return ARGP_ERR_UNKNOWN;
		s->value[state->arg_num] = arg;
		break;
	case ARGP_KEY_END:
		if (state->arg_num < s->n)
			argp_error(state, "give %s", s->args);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void parse_simple(const struct simple *simple, int argc, char **argv)
{
	static const struct argp_option json[] = {
		OPTION_JSON,
		{}
	};
	const struct argp argp = {
		.options = simple->json ? json : json + 1,
		.parser = simple_option,
		.args_doc = simple->args,
		.doc = simple->doc,
	};
	struct simple copy = *simple;

	if (simple->json)
		*simple->json = want_json;
	argp_parse(&argp, argc, argv, 0, NULL, &copy);
}
