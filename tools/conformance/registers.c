// SPDX-License-Identifier: GPL-2.0-only
/* Registers that are the same for all boards, and how they are reached. */
#include "dtp.h"

#include <linux/pci_regs.h>

static void test_identity(void)
{
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_VERSION) >> 16, RFPGA_VERSION_VALUE >> 16);
	CHECK(RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)) >= 1 && RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)) <= 16);
	CHECK(RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)) >= 1 && RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)) <= 16);
	CHECK(RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)) >= 1 &&
	      RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)) <= 1024);
	CHECK(board.tick_rate);
	CHECK(board.stop_time);
	CHECK(board.offset_bits && board.offset_bits <= 64);
	CHECK(board.stride_bits && board.stride_bits <= board.offset_bits);
	CHECK(board.count_bits && board.count_bits <= 31);
	wr(RFPGA_ID, 0);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
}

static void test_scratch(void)
{
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
	wr(RFPGA_SCRATCH, 0x12345678);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	/* the bytes of a part are read, and not written */
	CHECK_EQ(reg_read(RFPGA_SCRATCH, 1), 0x78);
	CHECK_EQ(reg_read(RFPGA_SCRATCH + 1, 1), 0x56);
	CHECK_EQ(reg_read(RFPGA_SCRATCH + 2, 2), 0x1234);
	reg_write(RFPGA_SCRATCH, 0, 1);
	reg_write(RFPGA_SCRATCH + 3, 0, 1);
	reg_write(RFPGA_SCRATCH + 2, 0, 2);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(RFPGA_CONTROL), 0);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
}

/* The list says the same as CAPS, and its first blocks are where the address map has them. */
static void test_blocks(void)
{
	CHECK_EQ(board.dtps, RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)));
	CHECK_EQ(board.entries, RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)));
	CHECK_EQ(board.dtp, RFPGA_DTP(0));
	CHECK_EQ(board.dtp_step, RFPGA_DTP(1) - RFPGA_DTP(0));
	CHECK_EQ(board.doorbell, 0);
	CHECK_EQ(board.table, RFPGA_TABLE);
	CHECK_EQ(board.table_step, RFPGA_ENTRY_STRIDE);
	CHECK_EQ(board.bounds, RFPGA_BOUNDS);
	CHECK_EQ(board.bounds_step, RFPGA_BOUNDS_STRIDE);
	wr(rd(RFPGA_BLOCKS), 0);
	CHECK(rd(rd(RFPGA_BLOCKS)));
}

/* What is not there reads 0, and takes nothing. */
static void test_absent(void)
{
	const uint32_t absent[] = {
		0x00fc, 0x0ffc, DTP(0) + 0x014, DTP(0) + 0x0b4 + 0x100, DTP(0) + 0x1fc,
		board.dtps < RFPGA_DTPS_MAX ? DTP(board.dtps) + RFPGA_DTP_WIDTH : 0x0ff8,
		board.entries < 1024 ? ENTRY(board.entries) + RFPGA_ENTRY_CONTROL :
				       ENTRY(0) + RFPGA_ENTRY_CONTROL + 4,
	};
	unsigned int i;

	for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		wr(absent[i], UINT32_MAX);
		if (rd(absent[i]))
			wrong(__FILE__, __LINE__, "offset %#x is %#x", absent[i], rd(absent[i]));
	}
	CHECK_EQ(rd(DTP(0) + RFPGA_DTP_CONTROL), 0);
}

static uint32_t bar_size(uint32_t offset)
{
	uint32_t before = config_read(offset), size;

	config_write(offset, UINT32_MAX, 4);
	size = config_read(offset);
	config_write(offset, before, 4);
	return size;
}

static void test_function(void)
{
	uint32_t exp = config_capability(PCI_CAP_ID_EXP), msix = config_capability(PCI_CAP_ID_MSIX);

	CHECK_EQ(config_read(PCI_CACHE_LINE_SIZE) >> 16 & 0x7f, PCI_HEADER_TYPE_NORMAL);
	CHECK(exp);
	CHECK_EQ(config_read(exp) >> 20 & 0xf, PCI_EXP_TYPE_ENDPOINT);
	CHECK(config_read(exp + PCI_EXP_DEVCAP) & PCI_EXP_DEVCAP_FLR);
	CHECK(msix);
	CHECK_EQ((config_read(msix) >> 16 & PCI_MSIX_FLAGS_QSIZE) + 1,
		 RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)));
	CHECK(!config_capability(PCI_CAP_ID_MSI));
	CHECK(config_capability(PCI_CAP_ID_PM));
	/* BARs: 32 bits of 64 KiB; 64 bits of 64 KiB; 64 bits, prefetchable */
	CHECK_EQ(bar_size(PCI_BASE_ADDRESS_0), 0xffff0000);
	CHECK_EQ(bar_size(PCI_BASE_ADDRESS_2), 0xffff0004);
	CHECK_EQ(bar_size(PCI_BASE_ADDRESS_4),
		 (uint32_t)~(target->bar_size(RFPGA_BAR_MEMORY) - 1) | 0xc);
	CHECK(board.shown && target->bar_size(RFPGA_BAR_MEMORY) <= board.memory);
}

static void test_clock(void)
{
	/* each read is between two looks at our clock, however far those are apart */
	uint64_t before = now_us(), begin = rd64(RFPGA_TICKS), after = now_us(), least, us;

	pass_us(20000);
	least = now_us() - after;
	us = (rd64(RFPGA_TICKS) - begin) * 1000000 / board.tick_rate;
	if (board.slowness > 1)
		skip("its clock is %u times as slow as ours: a simulation", board.slowness);
	else	/* two oscillators: 0.1 % apart at most, and 2 us to read */
		CHECK(us + us / 1000 + 2 >= least && us <= (now_us() - before) * 1001 / 1000 + 2);
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
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
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
	{ "identity", "identity and capabilities", test_identity },
	{ "scratch", "words, and parts of them", test_scratch },
	{ "blocks", "the list of blocks and the address map", test_blocks },
	{ "absent", "offsets without a register", test_absent },
	{ "function", "capabilities and BARs of the function", test_function },
	{ "clock", "TICKS at TICK_RATE", test_clock },
	{ "fault-latch", "refused: who and why, latched by nobody else", test_fault_latch,
	  .entries = 8, .dtps = 2 },
	{ "latches", "two readers of two pairs", test_latches,
	  .entries = 8, .dtps = 2 },
};

const struct suite registers_suite = SUITE("registers", tests);
