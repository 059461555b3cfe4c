// SPDX-License-Identifier: LGPL-2.1-or-later
/* The control socket, and faults of the whole board. */
#include "fpga/tests/selftest.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

bool control(int fd, const char *command, const char *expected)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char answer[512];
	size_t have = 0;
	ssize_t n;

	if (send(fd, command, strlen(command), MSG_NOSIGNAL) < 0)
		return false;
	do {
		n = poll(&p, 1, 2000) == 1 ? read(fd, answer + have, sizeof(answer) - have) : 0;
		have += n > 0 ? (size_t)n : 0;
	} while (n > 0 && have < sizeof(answer) && answer[have - 1] != '\n');
	return have >= strlen(expected) && !memcmp(answer, expected, strlen(expected));
}

bool obeys(const char *command, const char *expected)
{
	int fd = client_open(c->control);
	char line[64];
	bool ok;

	snprintf(line, sizeof(line), "%s\n", command);
	ok = control(fd, line, expected);
	close(fd);
	return ok;
}

void tell(const char *command)
{
	if (!obeys(command, "ok\n")) {
		note("not obeyed: %s", command);
		failed = true;
	}
}

struct dtp one_stack(uint32_t mode)
{
	struct dtp d = plain(0);

	d.mode |= mode;
	d.images = d.bunch;
	return d;
}

static void test_control(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;
	int fd = client_open(c->control);
	char byte;

	CHECK(control(fd, "nonsense\n", "error"));
	CHECK(control(fd, "status\r\n", "ok connected=1 faults=0 "));
	/* it ignores STOP, and a reset works */
	d.images = 0;
	CHECK(control(fd, "stuck on\n", "ok\n"));
	CHECK(control(fd, "clock hold\n", "ok\n"));
	start(&d);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(control(fd, "clock step 0\n", "ok\n"));
	CHECK(!idle());
	CHECK(control(fd, "clock run\n", "ok\n"));
	CHECK_EQ(rd(RFPGA_STOPS), 0);
	target->reset();
	CHECK(idle());
	/* so does "honest" for the whole board */
	fresh();
	CHECK(control(fd, "stuck on\n", "ok\n"));
	CHECK(control(fd, "honest dtp 0\n", "ok\n"));
	start(&d);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(!idle());
	CHECK(control(fd, "honest\n", "ok\n"));
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	/* an event that comes too early */
	fresh();
	CHECK(control(fd, "early on\n", "ok\n"));
	d.images = 4;
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(EVENTUALLY(idle() && same_stack(&d, 0)));
	CHECK(lock_record(0)[RFPGA_LOCK_TICKS / 8] + 200000 < counter(0, RFPGA_DTP_C_STOP));
	CHECK(control(fd, "early off\n", "ok\n"));
	CHECK(control(fd, "disconnect\n", "ok\n"));
	CHECK_EQ(recv(c->fd, &byte, 1, 0), 0);
	CHECK(control(fd, "status\n", "ok connected=0 "));
	/* a line without end */
	memset(host, 'x', 300);
	send(fd, host, 300, MSG_NOSIGNAL);
	CHECK(recv(fd, &byte, 1, 0) <= 0);
	close(fd);
	client_disconnect(c);
	client_setup(c);
}

/* During a reset only one bit can be read. */
static void test_resetting(void)
{
	tell("clock hold");
	tell("resetting 50000");
	wr(RFPGA_SCRATCH, 5);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK_EQ(rd(RFPGA_STATUS), RFPGA_STATUS_RESETTING);
	CHECK_EQ(rd(RFPGA_ID), 0);
	wr(RFPGA_SCRATCH, 6);
	tell("clock step 12499999");
	CHECK_EQ(rd(RFPGA_STATUS), RFPGA_STATUS_RESETTING);
	tell("clock step 1");
	CHECK_EQ(rd(RFPGA_STATUS), 0);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
	/* a function-level reset is over when it is answered */
	tell("resetting 60000000");
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK_EQ(rd(RFPGA_STATUS), RFPGA_STATUS_RESETTING);
	config_write(0x88, 0x8000, 2);
	CHECK_EQ(rd(RFPGA_STATUS), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	tell("resetting off");
	CHECK_EQ(rd(RFPGA_STATUS), 0);
	tell("clock run");
}

/* Interrupts of the flood, as the board counts them. */
static uint64_t flood_sent(void)
{
	int fd = client_open(c->control);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	const char *found = NULL;
	char answer[512] = "";

	if (send(fd, "status\n", 7, MSG_NOSIGNAL) == 7 && poll(&p, 1, 2000) == 1 &&
	    read(fd, answer, sizeof(answer) - 1) > 0)
		found = strstr(answer, " flood=");
	close(fd);
	CHECK(found);
	return found ? strtoull(found + 7, NULL, 10) : 0;
}

static void test_dead(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	d.mode |= RFPGA_MODE_FREERUN;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 8));
	tell("dead on");
	CHECK_EQ(rd(RFPGA_ID), UINT32_MAX);
	CHECK_EQ(rd64(RFPGA_BYTES), UINT64_MAX);
	CHECK_EQ(config_read(0), 0x52501234);
	/* it does not get the stop, and goes on */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	memset(host, CANARY, 16 * 4096);
	CHECK(EVENTUALLY(same_stack(&d, 0)));
	tell("dead off");
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK(!idle());
	CHECK_EQ(rd(RFPGA_STOPS), 0);
	/* configuration space answered all the time */
	tell("dead on");
	config_write(4, 2, 2);
	CHECK_EQ(config_read(4) & 0xffff, 2);
	tell("dead off");
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
}

static void test_no_link(void)
{
	struct dtp d = plain(0);

	/* it goes on with bus mastering */
	tell("patient on");
	d.images = 0;
	d.mode |= RFPGA_MODE_FREERUN;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 8));
	tell("dead link");
	CHECK_EQ(rd(RFPGA_ID), UINT32_MAX);
	CHECK_EQ(config_read(0), UINT32_MAX);
	/* no data leave the board, even with bus mastering on */
	tell("clock hold");
	memset(host, CANARY, 16 * 4096);
	config_write(4, 6, 2);
	tell("clock step 0");
	CHECK(untouched(0, 16 * 4096));
	tell("clock run");
	tell("patient off");
	tell("dead off");
	CHECK_EQ(config_read(0), 0x52501234);
	CHECK_EQ(config_read(4) & 0xffff, 0);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	CHECK(idle());
}

static void test_wild(void)
{
	struct dtp d = one_stack(0);

	tell("wild 0x300000000");
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 0x300000000);
	CHECK(untouched(0, HOST_SIZE));
	/* an address that exists on the bus is not refused */
	fresh();
	tell("wild 0x101000000 dtp 0");
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(untouched(0, 16 << 20));
	CHECK(!memcmp(host + (16 << 20), dataset, d.bunch * d.dst_image));
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	fresh();
	tell("wild off");
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
}

static void test_flood(void)
{
	uint64_t events = 0, i;

	tell("flood max 1");
	CHECK(EVENTUALLY(flood_sent() > 5000));
	CHECK(wait_event(1, &events));
	/* with a rate, to the tick */
	tell("clock hold");
	tell("flood 1000 2");
	tell("clock step 0");
	for (i = 1; i < 50; i++) {
		tell("clock step 249999");
		CHECK_EQ(flood_sent(), i);
		tell("clock step 1");
	}
	CHECK_EQ(flood_sent(), i);
	CHECK_EQ(events_so_far(2), i);
	/* it needs bus mastering */
	config_write(4, 2, 2);
	tell("clock step 250000");
	CHECK_EQ(flood_sent(), i);
	config_write(4, 6, 2);
	tell("clock step 250000");
	CHECK_EQ(flood_sent(), i + 1);
	tell("flood off");
	tell("clock step 250000");
	CHECK_EQ(flood_sent(), i + 1);
	CHECK_EQ(events_so_far(2), 1);
	/* a reset ends it */
	tell("flood 1000 2");
	tell("clock step 0");
	target->reset();
	bus_master(true);
	target->msix(true);
	tell("clock step 250000");
	CHECK_EQ(flood_sent(), 1);
	tell("clock run");
}

/* A flood begins at once, even if the next interrupt of the previous flood was far away. */
static void test_floods(void)
{
	int i;

	for (i = 0; i < 8; i++)
		tell("flood 1 2");
	CHECK(EVENTUALLY(flood_sent() > 0));
	tell("flood off");
}

static void test_bad_words(void)
{
	static const char * const bad[] = {
		"early", "early perhaps", "early on 5x", "early on -1", "early on hold 5",
		"late", "late lock", "late on 99999999999", "reorder", "reorder on 5",
		"early off 5", "late off hold", "twice off 0", "twice", "lose", "lose on",
		"lose on 0", "lose lock hold", "release on",
		"honest dtp", "honest dtp 4", "honest dtp x", "honest dtp 0 1",
		"late on 1 dtp 0 dtp 1 dtp 2 dtp 3",
		"torn", "torn lock", "linger hold", "drop", "drop on 5", "resetting", "resetting on",
		"dead", "dead maybe", "dead on dtp 0", "flood", "flood on", "flood 0 1", "flood 10",
		"flood max", "flood max 4096", "flood 10 1 1", "flood 10000000 1", "wild",
		"wild x", "wild -1", "wild 1 2",
	};
	struct dtp d = one_stack(0);
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!obeys(bad[i], "error")) {
			note("accepted: %s", bad[i]);
			failed = true;
		}
	}
	/* no command had an effect */
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 1);
}

static const struct test tests[] = {
	{ "faults", "faults by the control socket", test_control },
	{ "resetting", "a slow reset", test_resetting },
	{ "dead", "the board answers all ones, and goes on", test_dead },
	{ "no-link", "the board has lost its link", test_no_link },
	{ "wild", "misbehave: a wrong bus address", test_wild },
	{ "flood", "a flood of interrupts", test_flood },
	{ "floods", "a flood after another one", test_floods },
	{ "words", "misbehave: invalid words", test_bad_words },
};

const struct suite control_suite = SUITE("control", tests);
