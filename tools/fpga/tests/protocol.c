// SPDX-License-Identifier: LGPL-2.1-or-later
/* vfio-user, and its abuse. */
#include "fpga/tests/selftest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_interrupts(void)
{
	struct { uint32_t argsz, flags, index, start, count; uint8_t more[4]; } set = {
		sizeof(set), 0x21, 2, 1, 2, { 0 },	/* NONE | TRIGGER: loop back */
	};
	struct dtp d = plain(0);
	struct reply r;

	client_call(c, 8, &set, 20, NULL, 0, NULL);
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(events_so_far(1), 1);
	CHECK_EQ(events_so_far(2), 1);
	set.start = CLIENT_VECTORS;
	client_call(c, 8, &set, 20, NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);
	/* take vector 3 away: events to it are dropped, and not counted as sent */
	set.start = 3;
	set.count = 1;
	set.flags = 0x24;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
	d.vector = 3;
	d.slots = 4;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK_EQ(events_so_far(3), 0);
	client_call(c, 8, &set, 20, &c->event[3], 1, NULL);
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(events_so_far(3), 4);
	/* without MSI-X Enable the function sends none */
	config_write(0x42, 0, 2);
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK_EQ(events_so_far(3), 0);
	/* the host masks and unmasks */
	set.flags = 0x9;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
	set.flags = 0x11;
	client_call(c, 8, &set, 20, NULL, 0, NULL);
}

/* Answer to SET_IRQS with this listener of vector 1: 0 or an errno. */
static uint32_t set_vector(int fd)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), 0x24, 2, 1, 1,		/* EVENTFD | TRIGGER */
	};
	struct reply r;

	client_call(c, 8, &set, sizeof(set), &fd, 1, &r);
	return r.error;
}

/* Eventfds that would end or block the board are refused; a signal must do neither. */
static void test_listeners(void)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), 0x21, 2, 1, 1,		/* NONE | TRIGGER */
	};
	const uint64_t full = UINT64_MAX - 1;
	int ends[2], terminal = posix_openpt(O_RDWR | O_NOCTTY), event = eventfd(0, 0);

	if (pipe(ends) || event < 0)
		die("pipe, eventfd: %s", strerror(errno));
	close(ends[0]);
	CHECK_EQ(set_vector(ends[1]), EINVAL);
	CHECK_EQ(set_vector(c->fd), EINVAL);
	CHECK_EQ(set_vector(host_fd), EINVAL);
	if (terminal >= 0)
		CHECK_EQ(set_vector(terminal), EINVAL);
	client_call(c, 8, &set, sizeof(set), NULL, 0, NULL);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(events_so_far(1), 1);			/* it was not replaced */
	/* one that blocks, and is full */
	CHECK_EQ(set_vector(event), 0);
	CHECK(write(event, &full, sizeof(full)) == sizeof(full));
	client_call(c, 8, &set, sizeof(set), NULL, 0, NULL);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(set_vector(c->event[1]), 0);
	close(ends[1]);
	close(event);
	close(terminal);
}

/*
 * A blocking listener may become full at any moment. Stop the board, which only signals it, at that
 * moment; nothing else is delayed.
 */
static void test_full_listener(void)
{
	const int event = eventfd(0, EFD_CLOEXEC);
	struct pollfd p = { .fd = event, .events = POLLIN };
	const uint64_t full = UINT64_MAX - 1;
	int i, state;
	uint64_t n;

	if (event < 0)
		die("eventfd: %s", strerror(errno));
	CHECK_EQ(set_vector(event), 0);
	for (i = 0; i < 50 && !failed; i++) {
		tell("flood max 1");
		CHECK(read(event, &n, sizeof(n)) == sizeof(n));
		kill(c->pid, SIGSTOP);
		CHECK(waitpid(c->pid, &state, WUNTRACED) == c->pid && WIFSTOPPED(state));
		if (poll(&p, 1, 0) == 1)
			CHECK(read(event, &n, sizeof(n)) == sizeof(n));
		CHECK(write(event, &full, sizeof(full)) == sizeof(full));
		kill(c->pid, SIGCONT);
		tell("flood off");
		CHECK(read(event, &n, sizeof(n)) == sizeof(n) && n >= full);
	}
	CHECK_EQ(set_vector(c->event[1]), 0);
	close(event);
}

static unsigned int count_fds(pid_t pid)
{
	unsigned int n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		die("%s: %s", path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

struct frame {
	uint16_t id, command;
	uint32_t size, flags, error;
	uint8_t data[48];
};

/* Invalid commands are refused, and the connection goes on. */
static void test_bad_commands(void)
{
	static const struct { uint16_t command; uint32_t size; unsigned int fds; } bad[] = {
		{ 0, 16, 0 }, { 1, 16 + 4, 0 }, { 2, 16 + 31, 0 }, { 2, 16 + 32, 2 },
		{ 3, 16 + 23, 0 }, { 4, 16 + 16, 1 }, { 5, 16 + 11, 0 }, { 5, 16 + 32, 1 },
		{ 6, 16, 0 }, { 7, 16, 0 }, { 8, 16 + 19, 1 }, { 9, 16 + 15, 0 },
		{ 10, 16 + 15, 0 }, { 10, 16 + 48, 3 }, { 11, 32, 0 }, { 12, 32, 0 },
		{ 13, 16, 1 }, { 14, 32, 0 }, { 99, 16, 16 }, { 0xffff, 64, 0 },
	};
	unsigned int i, j, fds = count_fds(c->pid);
	int fd[16];
	struct reply r;

	for (i = 0; i < 16; i++)
		fd[i] = host_fd;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct frame f = { 7, bad[i].command, bad[i].size, 0, 0, { 0 } };

		for (j = 0; j < sizeof(f.data); j++)
			f.data[j] = (uint8_t)(0xf0 + j);
		client_send(c, &f, f.size, fd, bad[i].fds);
		CHECK(client_receive(c, &r));
		if (!r.error || count_fds(c->pid) != fds)
			note("command %u, %u bytes: error %u, %u descriptors", f.command,
			       f.size, r.error, count_fds(c->pid));
		CHECK(r.error);
		CHECK_EQ(r.size, 0);
	}
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(count_fds(c->pid), fds);
	/* ranges that wrap, memory that the file does not have */
	CHECK_EQ(target->map(UINT64_MAX - 4095, 8192, 0, 3), EINVAL);
	CHECK_EQ(target->map(1ull << 40, HOST_SIZE, 4096, 3), EINVAL);
	CHECK_EQ(target->map(1ull << 40, 4096, UINT64_MAX - 4095, 3), EINVAL);
	CHECK_EQ(target->map(1ull << 40, 0, 0, 3), EINVAL);
	CHECK_EQ(target->map(1ull << 40, 4096, 0, 4), EINVAL);
	CHECK_EQ(count_fds(c->pid), fds);
}

/* After these the stream cannot be trusted: the server hangs up, and accepts a new client. */
static void test_bad_streams(void)
{
	static const char narrow[] =
		"\0\0\0\0{\"capabilities\":{\"max_data_xfer_size\":63}}";
	static const struct frame bad[] = {
		{ 1, 4, 15, 0, 0, { 0 } },		/* shorter than a header */
		{ 1, 4, 0, 0, 0, { 0 } },
		{ 1, 4, 0xffffffff, 0, 0, { 0 } },
		{ 1, 4, 2 << 20, 0, 0, { 0 } },
		{ 1, 4, 16, 7, 0, { 0 } },		/* neither command nor answer */
	};
	unsigned int i, fds;
	struct reply r;
	int fd[40], watch;

	client_disconnect(c);
	watch = client_open(c->control);
	CHECK(COMES_TRUE(control(watch, "status\n", "ok connected=0 ")));
	fds = count_fds(c->pid);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		client_connect(c);
		client_send(c, &bad[i], 64, NULL, 0);
		CHECK(!client_receive(c, &r));
		close(c->fd);
	}
	/* too many descriptors */
	for (i = 0; i < 40; i++)
		fd[i] = host_fd;
	client_connect(c);
	client_send(c, &(struct frame){ 1, 4, 16, 0, 0, { 0 } }, 16, fd, 40);
	CHECK(!client_receive(c, &r));
	close(c->fd);
	/* gone in the middle of a message, with descriptors */
	client_connect(c);
	client_send(c, &(struct frame){ 1, 2, 48, 0, 0, { 0 } }, 20, fd, 2);
	client_disconnect(c);
	CHECK(COMES_TRUE(control(watch, "status\n", "ok connected=0 ")));
	CHECK_EQ(count_fds(c->pid), fds);
	/* a command before the version */
	client_connect(c);
	client_call(c, 4, NULL, 0, NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);
	/* invalid versions */
	client_call(c, 1, "\1\0\0\0", 4, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, "\0\0\0\0{\"capabilities\":", 20, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, "\0\0\0\0[1]", 8, NULL, 0, &r);
	CHECK(r.error);
	client_call(c, 1, narrow, sizeof(narrow), NULL, 0, &r);
	CHECK_EQ(r.error, EINVAL);		/* a lock record does not fit */
	client_call(c, 1, "\0\0\0\0{\"capabilities\":[]}", 24, NULL, 0, &r);
	CHECK(!r.error);
	client_disconnect(c);
	CHECK(COMES_TRUE(control(watch, "status\n", "ok connected=0 ")));
	CHECK_EQ(count_fds(c->pid), fds);
	close(watch);
	client_setup(c);
	fresh();
}

static void test_reconnect(void)
{
	struct dtp d = plain(0);
	unsigned int fds, i;

	memset(dataset, 0x5a, 16 * 4096);
	memory_write(0, dataset, 16 * 4096);
	fds = count_fds(c->pid);
	for (i = 0; i < 5; i++) {
		d.images = 0;
		d.mode = RFPGA_MODE_FREERUN;
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		client_disconnect(c);		/* it runs */
		client_setup(c);
		CHECK(idle());
		CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
		CHECK_EQ(c->memory[0], 0x5a);	/* on-board memory stays */
		/* the memory of the previous client is not accessible */
		memset(host, CANARY, 1 << 20);
		set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
		start(&d);
		CHECK(faulted(0, RFPGA_FAULT_BUS));
		CHECK(untouched(0, 1 << 20));
		fresh();
		CHECK_EQ(count_fds(c->pid), fds);
	}
}

static const struct test tests[] = {
	{ "interrupts", "interrupt vectors", test_interrupts },
	{ "listeners", "invalid listeners", test_listeners },
	{ "full-listener", "a listener that is full", test_full_listener },
	{ "commands", "invalid commands", test_bad_commands },
	{ "streams", "invalid streams", test_bad_streams },
	{ "reconnect", "the client comes back", test_reconnect },
};

const struct suite protocol_suite = SUITE("protocol", tests);
