// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=21 run=build/tools/rashpa-fpga-selftest */
/*
 * Test of rashpa-fpga without a virtual machine: properties of this program only. Prints TAP.
 * rashpa-fpga-selftest [--all] [SUITE | SUITE/TEST]...: --all adds the tests of every board.
 */
#include "fpga/tests/selftest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *program;
static void look(void)
{
	const char *bad = board_look();

	if (bad)
		die("%s", bad);
	board_fill(1);
}

void start_program(void)
{
	client_spawn(c, program);
	client_setup(c);
	look();
	fresh();
}

void restart_program_with(const char *option)
{
	client_disconnect(c);
	CHECK_EQ(client_end(c), 0);
	c->option = option;
	start_program();
}

static void prepare(char *folder)
{
	const char *bad;

	if (!mkdtemp(folder))
		die("%s: %s", folder, strerror(errno));
	snprintf(c->path, sizeof(c->path), "%s/socket", folder);
	snprintf(c->control, sizeof(c->control), "%s/control", folder);
	bad = host_alloc();
	if (bad)
		die("%s", bad);
	target = &socket_ops;
	c->remote_addr = REMOTE_ADDR;
	c->remote_size = 4 << 20;
	c->remote = malloc(c->remote_size);
	if (!c->remote)
		die("no memory");
	client_spawn(c, program);
	client_setup(c);
	look();
}

/* Tests of the emulator alone; then the tests that rashpa-fpga-conformance runs on every board. */
#define OWN_SUITES \
	&bus_suite, &protocol_suite, &intx_suite, &control_suite, &clock_suite, &misbehave_suite, \
	&live_suite, &options_suite, &wire_suite, &fetch_suite, &program_suite

int main(int argc, char **argv)
{
	static const struct suite * const own[] = { OWN_SUITES };
	static const struct suite * const all[] = { INTERFACE_SUITES, OWN_SUITES };
	const bool everything = argc > 1 && !strcmp(argv[1], "--all");
	char folder[] = "/tmp/rashpa-fpga-selftest.XXXXXX", beside[4096];
	struct run run = {
		.suites = everything ? all : own,
		.n_suites = (everything ? sizeof(all) : sizeof(own)) / sizeof(own[0]),
		.names = argc > 1 ? argv + 1 + everything : NULL, .patience = 1,
		.target = argv[0], .prepare = fresh, .describe = note_dtps,
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(beside, sizeof(beside), "%.*s", (int)(strlen(argv[0]) - strlen("-selftest")),
		 argv[0]);
	program = beside;
	run_begin(&run);
	prepare(folder);
	run_tests();
	if (c->pid)
		client_end(c);
	rmdir(folder);
	free(c->remote);
	return run.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
