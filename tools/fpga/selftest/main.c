// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test of rashpa-fpga without a virtual machine: what every board must do, and what only this
 * program does. Prints TAP.
 */
#include "selftest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

const char *program;
bool failed;

static unsigned int test_number, test_failed;

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void fill_dataset(void)
{
	uint32_t i, x = 1;

	for (i = 0; i < CLIENT_MEMORY / 4; i++) {
		x = x * 1664525 + 1013904223;
		((uint32_t *)dataset)[i] = x;
	}
	memory_write(0, dataset, CLIENT_MEMORY);
}

void restart_program_with(const char *option)
{
	client_disconnect(c);
	CHECK_EQ(client_end(c), 0);
	c->option = option;
	client_spawn(c, program);
	client_setup(c);
	fill_dataset();
	fresh();
}

static void prepare(char *folder)
{
	if (!mkdtemp(folder))
		die("%s: %s", folder, strerror(errno));
	snprintf(c->path, sizeof(c->path), "%s/socket", folder);
	snprintf(c->control, sizeof(c->control), "%s/control", folder);
	host_fd = memfd_create("host", MFD_CLOEXEC);
	if (host_fd < 0 || ftruncate(host_fd, HOST_SIZE))
		die("memfd: %s", strerror(errno));
	host = mmap(NULL, HOST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, host_fd, 0);
	if (host == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	dataset = malloc(CLIENT_MEMORY);
	c->remote_addr = REMOTE_ADDR;
	c->remote_size = 4 << 20;
	c->remote = malloc(c->remote_size);
	if (!dataset || !c->remote)
		die("no memory");
	client_spawn(c, program);
	client_setup(c);
	fill_dataset();
}

static const struct suite * const suites[] = {
	&registers_suite, &stream_suite, &pacing_suite, &group_suite, &event_suite, &fault_suite,
	&stop_suite, &reset_suite, &bus_suite, &protocol_suite, &intx_suite, &control_suite,
	&clock_suite, &misbehave_suite, &program_suite,
};

#define SUITES	(sizeof(suites) / sizeof(suites[0]))

static void run(const struct suite *suite)
{
	const struct test *test;

	for (test = suite->tests; test < suite->tests + suite->count; test++) {
		failed = false;
		fresh();
		test->run();
		test_failed += failed;
		printf("%s %u - %s/%s: %s\n", failed ? "not ok" : "ok", ++test_number, suite->name,
		       test->name, test->title);
	}
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/rashpa-fpga-selftest.XXXXXX", beside[4096];
	unsigned int i, count = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(beside, sizeof(beside), "%.*s", (int)(strlen(argv[0]) - strlen("-selftest")),
		 argv[0]);
	program = argc > 1 ? argv[1] : beside;
	for (i = 0; i < SUITES; i++)
		count += suites[i]->count;
	printf("1..%u\n", count);
	prepare(folder);
	for (i = 0; i < SUITES; i++)
		run(suites[i]);
	rmdir(folder);
	free(dataset);
	free(c->remote);
	return test_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
