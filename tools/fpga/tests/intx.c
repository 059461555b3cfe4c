// SPDX-License-Identifier: LGPL-2.1-or-later
/* The interrupt pin, if requested. */
#include "fpga/tests/selftest.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Answer to SET_IRQS of INTx: 0 or an errno. */
static uint32_t set_intx(uint32_t flags, uint32_t count, int fd)
{
	struct { uint32_t argsz, flags, index, start, count; } set = {
		sizeof(set), flags, 0, 0, count,
	};
	struct reply r;

	client_call(c, 8, &set, sizeof(set), &fd, fd >= 0, &r);
	return r.error;
}

static bool intx_status(void)
{
	return config_read(4) & 1 << 19;
}

static uint64_t signals(int event)
{
	uint64_t n = 0;

	return read(event, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Send one more stack; returns the number of INTx signals. */
static uint64_t one_intx(struct dtp *d, int event)
{
	start(d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(idle());
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 1);
	return signals(event);
}

/* A level that masks itself, and stays until it is cleared. */
static void check_intx(int event)
{
	struct dtp d = plain(0);

	config_write(0x42, 0, 2);		/* no MSI-X */
	d.images = d.bunch;
	CHECK(!intx_status());
	CHECK_EQ(one_intx(&d, event), 1);
	CHECK(intx_status());
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK_EQ(set_intx(0x11, 1, -1), 0);		/* NONE | UNMASK */
	CHECK_EQ(signals(event), 1);
	wr(RFPGA_INTX, 0);
	CHECK_EQ(rd(RFPGA_INTX), RFPGA_INTX_PENDING);
	wr(RFPGA_INTX, RFPGA_INTX_PENDING);
	CHECK_EQ(rd(RFPGA_INTX), 0);
	CHECK(!intx_status());
	CHECK_EQ(set_intx(0x11, 1, -1), 0);
	CHECK_EQ(signals(event), 0);
	/* disabled in the command register: asserted, but not signalled */
	config_write(4, 0x406, 2);
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(intx_status());
	config_write(4, 0x006, 2);
	CHECK_EQ(signals(event), 1);
	wr(RFPGA_INTX, RFPGA_INTX_PENDING);
	CHECK_EQ(set_intx(0x09, 1, -1), 0);		/* NONE | MASK */
	CHECK_EQ(one_intx(&d, event), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(!intx_status());
	CHECK_EQ(set_intx(0x11, 1, -1), 0);
	CHECK_EQ(signals(event), 0);
}

static void test_intx(void)
{
	struct { uint32_t argsz, flags, index, count; } info = { sizeof(info), 0, 0, 0 };
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct dtp d;
	struct reply r;

	CHECK_EQ(config_read(0x3c) >> 8, 0);
	restart_program_with("--intx");
	CHECK_EQ(config_read(0x3c) >> 8, 1);
	client_call(c, 7, &info, sizeof(info), NULL, 0, &r);
	memcpy(&info, r.data, sizeof(info));
	CHECK_EQ(info.count, 1);
	CHECK_EQ(info.flags, 7);
	CHECK_EQ(set_intx(0x24, 1, host_fd), EINVAL);	/* EVENTFD | TRIGGER */
	CHECK_EQ(set_intx(0x24, 1, event), 0);
	CHECK_EQ(set_intx(0x14, 1, event), EOPNOTSUPP);
	CHECK_EQ(set_intx(0x11, 2, -1), EINVAL);
	check_intx(event);
	/* with MSI-X INTx is silent, and the vector is signalled */
	fresh();
	config_write(0x42, 0x8000, 2);
	d = plain(0);
	d.images = d.bunch;
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(!intx_status());
	CHECK_EQ(events_so_far(d.vector), 1);
	config_write(0x42, 0, 2);
	CHECK_EQ(set_intx(0x21, 0, -1), 0);		/* no listener any more */
	CHECK_EQ(one_intx(&d, event), 0);
	CHECK(intx_status());
	close(event);
	restart_program_with(NULL);
}

static const struct test tests[] = {
	{ "pin", "INTx, if requested", test_intx },
};

const struct suite intx_suite = SUITE("intx", tests);
