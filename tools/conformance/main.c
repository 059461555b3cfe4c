// SPDX-License-Identifier: LGPL-2.1-or-later
/* Does a board, or its simulation, do what fpga-interface.rst says? */
#include <argp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "conformance/dtp.h"
#include "conformance/target.h"
#include "conformance/test.h"

enum { PASSED = 0, FAILED = 1, BROKEN = 2 };

static const struct suite * const suites[] = { INTERFACE_SUITES };

struct options {
	struct run run;
	const char *socket, *card;
	uint32_t seed;
	bool list;
};

static const struct argp_option known[] = {
	{ "socket", 's', "PATH", 0,
	  "Test the board at a vfio-user socket: a simulation, or rashpa-fpga", 0 },
	{ "vfio", 'f', "DDDD:BB:DD.F", 0, "Test a card that is bound to vfio-pci", 0 },
	{ "list", 'l', NULL, 0, "List the tests with their titles", 1 },
	{ "json", 'j', NULL, 0, "Print the results as JSON at the end (default: TAP)", 1 },
	{ "seed", 'S', "N", 0,
	  "Seed of the data in on-board memory and of random settings (1)", 1 },
	{ "patience", 'p', "N", 0, "Wait N times as long as usual for the board (1)", 1 },
	{ NULL, 0, NULL, 0, NULL, 0 },
};

static const struct option_value values[] = {
	{ 's', VALUE_TEXT, "--socket", offsetof(struct options, socket), 0, 0 },
	{ 'f', VALUE_TEXT, "--vfio", offsetof(struct options, card), 0, 0 },
	{ 'l', VALUE_FLAG, "--list", offsetof(struct options, list), 0, 0 },
	{ 'j', VALUE_FLAG, "--json", offsetof(struct options, run.json), 0, 0 },
	{ 'S', VALUE_U32, "--seed", offsetof(struct options, seed), 1, UINT32_MAX },
	{ 'p', VALUE_U32, "--patience", offsetof(struct options, run.patience), 1, UINT32_MAX },
	{}
};

static void check_name(struct argp_state *state, char *name)
{
	char *names[] = { name, NULL };
	const struct run one = { .names = names };
	unsigned int i, j;

	for (i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
		for (j = 0; j < suites[i]->count; j++)
			if (chosen(&one, suites[i], suites[i]->tests + j))
				return;
	argp_error(state, "%s: there is no such test: --list has them", name);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	unsigned int i;

	switch (key) {
	case ARGP_KEY_ARGS:
		o->run.names = state->argv + state->next;
		for (i = 0; o->run.names[i]; i++)
			check_name(state, o->run.names[i]);
		break;
	case ARGP_KEY_END:
		if (!o->list && !o->socket == !o->card)
			argp_error(state, "name the board: --socket PATH or "
				   "--vfio DDDD:BB:DD.F");
		break;
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = known, .parser = parse, .args_doc = "[SUITE | SUITE/TEST]...",
	.doc = "Test whether a board, or its simulation, conforms to fpga-interface.rst.\v"
	       "Exit status: 0 all tests passed or were skipped, 1 a test failed, 2 the board "
	       "cannot be reached, is not supported, or went away, or wrong usage.",
};

static void list_tests(const struct run *run)
{
	unsigned int i, j;
	char name[64];

	for (i = 0; i < run->n_suites; i++)
		for (j = 0; j < suites[i]->count; j++) {
			if (!chosen(run, suites[i], suites[i]->tests + j))
				continue;
			snprintf(name, sizeof(name), "%s/%s", suites[i]->name,
				 suites[i]->tests[j].name);
			printf("%-24s %s\n", name, suites[i]->tests[j].title);
		}
}

int main(int argc, char **argv)
{
	struct options o = {
		.run = {
			.suites = suites, .n_suites = sizeof(suites) / sizeof(suites[0]),
			.patience = 1, .prepare = fresh, .describe = note_dtps,
		},
		.seed = 1,
	};
	const char *bad;

	argp_err_exit_status = BROKEN;
	argp_program_version = "rashpa-fpga-conformance " RASHPA_VERSION;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	if (o.list) {
		list_tests(&o.run);
		return PASSED;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	o.run.target = o.socket ? o.socket : o.card;
	run_begin(&o.run);
	bad = host_alloc();
	if (!bad)
		bad = o.socket ? socket_open(o.socket) : card_open(o.card);
	if (bad)
		give_up(bad);
	bad = board_look();
	if (bad)
		die("%s", bad);
	board_fill(o.seed);
	run_tests();
	return o.run.failed ? FAILED : PASSED;
}
