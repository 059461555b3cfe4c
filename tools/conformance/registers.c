// SPDX-License-Identifier: LGPL-2.1-or-later
/* Registers common to all boards, and access to them. */
#include "conformance/dtp.h"

#include <linux/pci_regs.h>
#include <string.h>

static void test_identity(void)
{
	const uint32_t limits = rd(RFPGA_LIMITS);

	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_VERSION) >> 16, RFPGA_VERSION_VALUE >> 16);
	CHECK(RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)) >= 1 && RFPGA_CAPS_DTPS(rd(RFPGA_CAPS)) <= 16);
	CHECK(RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)) >= 1 && RFPGA_CAPS_VECTORS(rd(RFPGA_CAPS)) <= 16);
	CHECK(RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)) >= 1 &&
	      RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)) <= 1024);
	CHECK(board.tick_rate);
	CHECK(board.stop_time);
	CHECK(RFPGA_LIMITS_OFFSET(limits) && RFPGA_LIMITS_OFFSET(limits) <= 64);
	CHECK(RFPGA_LIMITS_STRIDE(limits) &&
	      RFPGA_LIMITS_STRIDE(limits) <= RFPGA_LIMITS_OFFSET(limits));
	CHECK(RFPGA_LIMITS_COUNT(limits) && RFPGA_LIMITS_COUNT(limits) <= 31);
	CHECK(RFPGA_LIMITS_ALIGN(limits) < 64);
	wr(RFPGA_ID, 0);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
}

static void test_scratch(void)
{
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
	wr(RFPGA_SCRATCH, 0x12345678);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	/* partial reads work, partial writes do not */
	CHECK_EQ(reg_read(RFPGA_SCRATCH, 1), 0x78);
	CHECK_EQ(reg_read(RFPGA_SCRATCH + 1, 1), 0x56);
	CHECK_EQ(reg_read(RFPGA_SCRATCH + 2, 2), 0x1234);
	reg_write(RFPGA_SCRATCH, 0, 1);
	reg_write(RFPGA_SCRATCH + 3, 0, 1);
	reg_write(RFPGA_SCRATCH + 2, 0, 2);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	/*
	 * Partial writes to the neighbours are ignored, but not the whole words between. If the BAR
	 * is mapped, the machine may split this access.
	 */
	if (!target->bar(RFPGA_BAR_REGS)) {
		reg_write(RFPGA_SCRATCH - 2, 0xffff87654321ffff, 8);
		CHECK_EQ(rd(RFPGA_SCRATCH), 0x87654321);
		wr(RFPGA_SCRATCH, 0x12345678);
	}
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(RFPGA_CONTROL), 0);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
}

/* The list agrees with CAPS, and its first blocks are where the address map places them. */
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

/* Offsets without a register read 0 and ignore writes. */
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

/* A pair in two words, and in one access. */
static void test_pairs(void)
{
	uint64_t before = rd64(RFPGA_TICKS), low, ticks;

	CHECK_EQ(rd(RFPGA_MEMORY_SIZE) | (uint64_t)rd(RFPGA_MEMORY_SIZE + 4) << 32, board.memory);
	low = rd(RFPGA_TICKS);
	ticks = low | (uint64_t)rd(RFPGA_TICKS + 4) << 32;
	CHECK(before <= ticks && ticks <= rd64(RFPGA_TICKS));
	/* repeated reads of the high word match the last read of the low word */
	CHECK_EQ(rd(RFPGA_TICKS + 4), ticks >> 32);
}

static void test_memory(void)
{
	const uint64_t last = board.shown - 8;
	uint8_t bytes[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, back[8];
	unsigned int i;

	memory_write(0, bytes, 8);
	memory_write(last, bytes, 7);		/* byte by byte */
	memory_write(last + 7, bytes + 7, 1);
	memory_read(0, back, 8);
	CHECK(!memcmp(back, bytes, 8));
	for (i = 0; i < 8; i++) {
		memory_read(last + i, back + i, 1);
		CHECK_EQ(back[i], bytes[i]);
	}
	memory_write(0, dataset, 8);
	if (board.dataset == board.shown)
		memory_write(last, dataset + last, 8);
}

static void test_clear(void)
{
	struct dtp d = plain(0);

	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK_EQ(rd64(RFPGA_BYTES), 8ull * board.image);
	stop_dtp(0);
	d.pixel = 3;
	run_to(&d, RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(RFPGA_FAULTS), 1);
	CHECK_EQ(rd(RFPGA_STATUS), RFPGA_STATUS_FAULT);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd64(RFPGA_BYTES) | rd64(RFPGA_FAULTS) | rd64(RFPGA_FAULT_ADDR), 0);
	CHECK_EQ(rd(RFPGA_STOPS) | rd(RFPGA_FAULT_CAUSE) | rd(RFPGA_FAULT_DTP), 0);
	CHECK_EQ(rd(RFPGA_STATUS), 0);
	/* registers of the DTP stay */
	CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	/* of several bits CLEAR acts last */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP | RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(RFPGA_STOPS), 0);
}

/* Configuration registers of every minor version, and sizes; LOCK and META have their own tests. */
static const struct { uint32_t reg, size; } configuration[] = {
	{ RFPGA_DTP_MODE, 4 }, { RFPGA_DTP_VECTOR, 4 }, { RFPGA_DTP_PIXEL_BYTES, 4 },
	{ RFPGA_DTP_BUNCH, 4 }, { RFPGA_DTP_SLOTS, 4 }, { RFPGA_DTP_SRC_BASE, 8 },
	{ RFPGA_DTP_SRC_IMAGES, 4 }, { RFPGA_DTP_SRC_X, 4 }, { RFPGA_DTP_SRC_Y, 4 },
	{ RFPGA_DTP_WIDTH, 4 }, { RFPGA_DTP_HEIGHT, 4 }, { RFPGA_DTP_DST_X, 4 },
	{ RFPGA_DTP_DST_Y, 4 }, { RFPGA_DTP_SRC_LINE, 8 }, { RFPGA_DTP_SRC_IMAGE, 8 },
	{ RFPGA_DTP_DST_BASE, 8 }, { RFPGA_DTP_DST_LINE, 8 }, { RFPGA_DTP_DST_IMAGE, 8 },
	{ RFPGA_DTP_DST_SLOT, 8 }, { RFPGA_DTP_DST_FIRST, 4 }, { RFPGA_DTP_DST_COUNT, 4 },
	{ RFPGA_DTP_IMAGES, 8 }, { RFPGA_DTP_PERIOD, 8 }, { RFPGA_DTP_FIRST_STACK, 8 },
	{ RFPGA_DTP_FIRST_SLOT, 4 }, { RFPGA_DTP_FIRST_INDEX, 4 }, { RFPGA_DTP_INDEX_STEP, 4 },
	{ RFPGA_DTP_RUN, 4 },
};

#define CONFIGURATION	(sizeof(configuration) / sizeof(configuration[0]))

/* A value that fits into the register, different for each. */
static uint64_t some(uint32_t n, size_t i)
{
	return 1 + i + n * CONFIGURATION;
}

static void test_config(void)
{
	uint32_t n, at;
	size_t i;

	for (n = 0; n < board.dtps; n++)
		for (i = 0; i < CONFIGURATION; i++) {
			at = DTP(n) + configuration[i].reg;
			if (reg_read(at, configuration[i].size))
				wrong(__FILE__, __LINE__, "offset %#x is not 0 after a reset", at);
			reg_write(at, some(n, i), configuration[i].size);
		}
	for (n = 0; n < board.dtps; n++)
		for (i = 0; i < CONFIGURATION; i++) {
			at = DTP(n) + configuration[i].reg;
			if (reg_read(at, configuration[i].size) != some(n, i))
				wrong(__FILE__, __LINE__, "offset %#x does not keep its value", at);
		}
}

/* A running DTP keeps its configuration; others can be changed. */
static void test_config_locked(void)
{
	struct dtp d = plain(0);
	uint64_t before[CONFIGURATION];
	size_t i;

	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	for (i = 0; i < CONFIGURATION; i++) {
		before[i] = reg_read(DTP(0) + configuration[i].reg, configuration[i].size);
		reg_write(DTP(0) + configuration[i].reg, before[i] + 1, configuration[i].size);
	}
	for (i = 0; i < CONFIGURATION; i++)
		if (reg_read(DTP(0) + configuration[i].reg, configuration[i].size) != before[i])
			wrong(__FILE__, __LINE__, "register %#x was written while RUNNING",
			      configuration[i].reg);
	if (board.dtps > 1) {
		wr(DTP(1) + RFPGA_DTP_WIDTH, 77);
		CHECK_EQ(rd(DTP(1) + RFPGA_DTP_WIDTH), 77);
	}
	stop_dtp(0);
	wr(DTP(0) + RFPGA_DTP_WIDTH, 78);
	CHECK_EQ(rd(DTP(0) + RFPGA_DTP_WIDTH), 78);
}

/* Entries are independent. */
static void test_table(void)
{
	uint32_t i;

	for (i = 0; i < board.entries; i++)
		set_entry(i, (i + 1ull) << 33 | 4096, (i + 1ull) << 12,
			  i % 3 ? RFPGA_ENTRY_VALID : 0);
	for (i = 0; i < board.entries; i++)
		if (rd64(ENTRY(i) + RFPGA_ENTRY_ADDR) != ((i + 1ull) << 33 | 4096) ||
		    rd64(ENTRY(i) + RFPGA_ENTRY_LEN) != (i + 1ull) << 12 ||
		    rd(ENTRY(i) + RFPGA_ENTRY_CONTROL) != (i % 3 ? RFPGA_ENTRY_VALID : 0)) {
			wrong(__FILE__, __LINE__, "entry %u does not keep what was written", i);
			return;
		}
	target->reset();
	for (i = 0; i < board.entries; i++)
		if (rd(ENTRY(i) + RFPGA_ENTRY_CONTROL)) {
			wrong(__FILE__, __LINE__, "entry %u is valid after a reset", i);
			return;
		}
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
	/* each read lies between two reads of our clock, at any distance */
	uint64_t before = now_us(), begin = rd64(RFPGA_TICKS), after = now_us(), least, us;

	pass_us(20000);
	least = now_us() - after;
	us = board.tick_rate ? (rd64(RFPGA_TICKS) - begin) * 1000000 / board.tick_rate : 0;
	if (board.slowness > 1)
		skip("its clock is %u times as slow as ours: a simulation", board.slowness);
	/* two oscillators: 0.1 % apart at most, and 2 us to read */
	CHECK(us + us / 1000 + 2 >= least && us <= (now_us() - before) * 1001 / 1000 + 2);
}

/* A single register has no high word: it neither sets nor uses a latch. */
static void test_fault_latch(void)
{
	struct dtp d = plain(0);

	d.first = 2;			/* not valid */
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_CAUSE), RFPGA_FAULT_ENTRY);
	d.n = 1;
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_DTP), 1);
	/* the halves of a pair match, also with other reads between */
	set_entry(2, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(rd(RFPGA_FAULT_ADDR), 0);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd(RFPGA_STOPS), 0);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
	CHECK_EQ(rd(RFPGA_FAULT_ADDR + 4), 1 << 8);
}

/* The halves of a pair match, even if other readers read another pair meanwhile. */
static void test_latches(void)
{
	uint32_t low, high, other;
	uint64_t before;
	struct dtp d = plain(0);

	set_entry(0, 1ull << 40, 1 << 20, RFPGA_ENTRY_VALID);
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
	{ "pairs", "64 bits in two words", test_pairs },
	{ "memory", "on-board memory, by words and by bytes", test_memory },
	{ "clear", "CLEAR, and what it leaves", test_clear },
	{ "config", "configuration of each DTP: 0, then what was written", test_config },
	{ "running", "writes to the configuration of a DTP that runs", test_config_locked },
	{ "table", "entries keep what was written, and a reset clears VALID", test_table },
	{ "clock", "TICKS at TICK_RATE", test_clock },
	{ "fault-latch", "refused: the registers of a fault and their latches", test_fault_latch,
	  .entries = 3, .dtps = 2 },
	{ "latches", "two readers of two pairs", test_latches },
};

const struct suite registers_suite = SUITE("registers", tests);
