// SPDX-License-Identifier: GPL-2.0-only
/* Registers that are the same for all boards, and how they are reached. */
#include "dtp.h"

#include <unistd.h>

static void test_identity(void)
{
	uint32_t b;

	CHECK_EQ(config_read(0), RFPGA_PCI_DEVICE << 16 | RFPGA_PCI_VENDOR);
	CHECK_EQ(config_read(8) >> 8, RFPGA_PCI_CLASS);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_VERSION), RFPGA_VERSION_VALUE);
	CHECK_EQ(RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)), 4);
	CHECK_EQ(RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)), CLIENT_VECTORS);
	CHECK_EQ(RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)), 1024);
	CHECK_EQ(rd64(RFPGA_MEMORY_SIZE), CLIENT_MEMORY);
	CHECK_EQ(rd(RFPGA_TICK_RATE), 1000000000 / RFPGA_TICK_NS);
	CHECK(RFPGA_LIMITS_OFFSET(rd(RFPGA_LIMITS)) >= 40);
	CHECK(rd(RFPGA_STOP_TIME) >= 1000);
	/* the list of blocks says the same as the registers, and ends */
	b = rd(RFPGA_BLOCKS);
	CHECK_EQ(rd(b + RFPGA_BLOCK_TYPE), RFPGA_BLOCK_DTP | 4 << 16);
	CHECK_EQ(rd(b + RFPGA_BLOCK_BASE), RFPGA_DTP(0));
	CHECK_EQ(rd(b + RFPGA_BLOCK_STEP), RFPGA_DTP(1) - RFPGA_DTP(0));
	CHECK_EQ(rd(b + RFPGA_BLOCK_DOORBELL), 0);
	b += RFPGA_BLOCK_STRIDE;
	CHECK_EQ(rd(b + RFPGA_BLOCK_TYPE), RFPGA_BLOCK_TABLE | 1024 << 16);
	CHECK_EQ(rd(b + RFPGA_BLOCK_BASE), RFPGA_TABLE);
	CHECK_EQ(rd(b + RFPGA_BLOCK_STEP), RFPGA_ENTRY_STRIDE);
	CHECK_EQ(rd(b + RFPGA_BLOCK_DOORBELL), UINT32_MAX);
	CHECK_EQ(rd(b + RFPGA_BLOCK_STRIDE), RFPGA_BLOCK_NONE);
	CHECK_EQ(rd(0x0ffc), 0);
	CHECK_EQ(rd(RFPGA_DTP(4)), 0);
	wr(RFPGA_SCRATCH, 0x12345678);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	wr(RFPGA_ID, 0);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	/* BAR sizing */
	config_write(0x10, 0xffffffff, 4);
	CHECK_EQ(config_read(0x10), 0xffff0000);
	config_write(0x20, 0xffffffff, 4);
	CHECK_EQ(config_read(0x20), (uint32_t)~(CLIENT_MEMORY - 1) | 0xc);
}

static void test_clock(void)
{
	/* each read is between two looks at our clock, however far those are apart */
	uint64_t before = now_us(), begin = rd64(RFPGA_TICKS), after = now_us(), least, us;

	usleep(20000);
	least = now_us() - after;
	us = (rd64(RFPGA_TICKS) - begin) * 1000000 / rd(RFPGA_TICK_RATE);
	CHECK(us + 2 >= least && us <= now_us() - before + 2);
}

/* What is no pair has no high word: neither of it nor for it is anything latched. */
static void test_fault_latch(void)
{
	struct dtp d = plain(0);

	d.first = 7;			/* not valid */
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	d.n = 1;
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_DTP), 1);
	/* the two of a pair belong together, also with others between */
	set_entry(7, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_ADDR), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(RFPGA_STOPS), 0);
	CHECK_EQ(rd(0x70), 0);
	CHECK_EQ(rd(RFPGA_FAULT_ADDR + 4), 1 << 8);
}

/* Whoever reads another pair meanwhile, the halves of this one belong together. */
static void test_latches(void)
{
	uint32_t low, high, other;
	uint64_t before;
	struct dtp d = plain(0);

	set_entry(7, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
	d.first = 7;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_ADDR), 0);
	before = rd64(RFPGA_TICKS);
	low = rd(RFPGA_TICKS);
	other = rd(RFPGA_BYTES);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	high = rd(RFPGA_TICKS + 4);
	CHECK_EQ(other, 0);
	CHECK((low | (uint64_t)high << 32) >= before);
	CHECK_EQ(rd(RFPGA_FAULT_ADDR + 4), 1 << 8);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 0);
}

static const struct test tests[] = {
	{ "identity", "identity, capabilities, BAR sizes", test_identity },
	{ "clock", "ticks of 4 ns", test_clock },
	{ "fault-latch", "refused: who and why, latched by nobody else", test_fault_latch },
	{ "latches", "two readers of two pairs", test_latches },
};

const struct suite registers_suite = SUITE("registers", tests);
