// SPDX-License-Identifier: LGPL-2.1-or-later
/* Refused transactions and configurations, and the registers that report them. */
#include "conformance/dtp.h"

#include <string.h>

static void test_fault_entry(void)
{
	const uint64_t left = up(60);
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR, 1 << 20, 0);
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	CHECK_EQ(rd(RFPGA_STATUS), 0);

	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	d.dst_base = (1 << 20) - left;
	d.width = 64;
	d.height = 2;
	d.dst_line = up(256);
	fit_images(&d);
	start(&d);
	check_cut(RFPGA_FAULT_ENTRY);
	/* in the first line, or in the second */
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), (1 << 20) + (left < 128 ? 0 : d.dst_line - left));
}

static void test_fault_master(void)
{
	struct dtp d = plain(0);

	bus_master(false);
	start(&d);
	check_refused(RFPGA_FAULT_MASTER);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR);
	/* an interrupt is a transaction too */
	bus_master(true);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	bus_master(false);
	give_credit(0, 1);
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
}

static void test_fault_source(void)
{
	const uint32_t count = (uint32_t)most(board.count_bits);
	struct dtp d = plain(0);

	if (board.memory < 16ull * board.image)
		skip("needs %u bytes of on-board memory", 16 * board.image);
	d.images_in_set = 16;
	d.src_base = board.memory - board.image + board.align;
	start(&d);
	check_cut(RFPGA_FAULT_SOURCE);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), (d.src_base + (board.image - board.align) /
		 board.line * board.line) & most(board.offset_bits));
	/* the third image is outside memory; the fault occurs in its turn */
	d.src_base = board.memory - 2 * board.image;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_SOURCE));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), board.memory & most(board.offset_bits));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 2);
	CHECK(same_image(&d, 0, 1));
	/* sums that exceed OFFSET bits, or 64 bits */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	memset(host, CANARY, 1 << 20);
	d.src_base = down(most(board.offset_bits));
	d.src_line = down(most(board.stride_bits));
	d.src_image = d.src_line;
	d.src_y = count;
	d.src_x = (uint32_t)down(count);
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d = plain(0);
	program_dtp(&d);
	wr(DTP(0) + RFPGA_DTP_SLOTS, count);
	wr(DTP(0) + RFPGA_DTP_FIRST_SLOT, count - 1);
	wr64(DTP(0) + RFPGA_DTP_DST_SLOT, down(most(board.offset_bits)));
	wr(DTP(0), RFPGA_DTP_START);
	check_refused(RFPGA_FAULT_ENTRY);
	d = plain(0);
	d.src_base = board.memory - 16 * board.image;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
}

/* Register that FAULT_ADDR reports for @reg: the lower word of a pair. */
static uint32_t lowest(uint32_t reg)
{
	static const uint32_t single[] = {
		RFPGA_DTP_VECTOR, RFPGA_DTP_SLOTS, RFPGA_DTP_SRC_X, RFPGA_DTP_WIDTH,
		RFPGA_DTP_DST_X, RFPGA_DTP_DST_COUNT, RFPGA_DTP_LOCK_COUNT,
		RFPGA_DTP_FIRST_INDEX,
	};
	unsigned int i;

	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (reg == single[i])
			return reg;
	return reg & ~4u;
}

/* Feature without which boards ignore the register. */
static uint32_t feature_of(uint32_t reg)
{
	if (reg >= RFPGA_DTP_LOCK_OFFSET && reg <= RFPGA_DTP_LOCK_COUNT)
		return RFPGA_FEATURE_LOCK;
	return reg == RFPGA_DTP_VECTOR ? RFPGA_FEATURE_MSIX : UINT32_MAX;
}

static void test_fault_config(void)
{
	const uint32_t o = too_wide(board.offset_bits), s = too_wide(board.stride_bits);
	const uint32_t n = 1u << board.count_bits;
	struct dtp d = plain(0);
	const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_MODE, 0x80 }, { RFPGA_DTP_VECTOR, board.vectors },
		{ RFPGA_DTP_PIXEL_BYTES, 0 }, { RFPGA_DTP_PIXEL_BYTES, 3 },
		{ RFPGA_DTP_PIXEL_BYTES, 16 },
		{ RFPGA_DTP_BUNCH, 0 }, { RFPGA_DTP_SLOTS, 0 }, { RFPGA_DTP_SRC_IMAGES, 0 },
		{ RFPGA_DTP_WIDTH, 0 }, { RFPGA_DTP_HEIGHT, 0 },
		{ RFPGA_DTP_SLOTS, n }, { RFPGA_DTP_SRC_X, n },
		{ RFPGA_DTP_SRC_Y, n }, { RFPGA_DTP_DST_X, n },
		{ RFPGA_DTP_DST_Y, n }, { RFPGA_DTP_WIDTH, n },
		{ RFPGA_DTP_DST_FIRST, board.entries }, { RFPGA_DTP_DST_FIRST, 0xffffffff },
		{ RFPGA_DTP_DST_COUNT, 0 }, { RFPGA_DTP_DST_COUNT, board.entries + 1 },
		{ RFPGA_DTP_LOCK_OFFSET, 32 }, { RFPGA_DTP_LOCK_COUNT, 0 },
		{ RFPGA_DTP_LOCK_FIRST, 0xffffffff },
		{ RFPGA_DTP_SRC_BASE + 4, o }, { RFPGA_DTP_SRC_LINE + 4, s },
		{ RFPGA_DTP_SRC_IMAGE + 4, s }, { RFPGA_DTP_DST_BASE + 4, o },
		{ RFPGA_DTP_DST_LINE + 4, s }, { RFPGA_DTP_DST_IMAGE + 4, s },
		{ RFPGA_DTP_DST_SLOT + 4, o }, { RFPGA_DTP_LOCK_OFFSET + 4, o },
		{ RFPGA_DTP_FIRST_STACK + 4, o }, { RFPGA_DTP_IMAGES + 4, o },
		{ RFPGA_DTP_PERIOD + 4, o }, { RFPGA_DTP_FIRST_SLOT, d.slots },
		{ RFPGA_DTP_FIRST_INDEX, d.images_in_set },
		{ RFPGA_DTP_INDEX_STEP, d.images_in_set },
	};
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (!(board.features & feature_of(bad[i].reg)))
			continue;
		if (lowest(bad[i].reg) != bad[i].reg && !bad[i].value)
			continue;	/* nothing is too wide for 64 bits */
		program_dtp(&d);
		wr(DTP(0) + bad[i].reg, bad[i].value);
		wr(DTP(0), RFPGA_DTP_START);
		if (status(0) != RFPGA_DTP_FAULTED ||
		    rd(RFPGA_FAULT_CAUSE) != RFPGA_FAULT_CONFIG)
			note("register %#x = %#x: status %#x, cause %u", bad[i].reg,
			     bad[i].value, status(0), rd(RFPGA_FAULT_CAUSE));
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + lowest(bad[i].reg));
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR | RFPGA_CONTROL_STOP);
	}
	/* of two bad registers the lower one is reported, in any order of writes */
	program_dtp(&d);
	wr(DTP(0) + RFPGA_DTP_INDEX_STEP, d.images_in_set);
	wr(DTP(0) + RFPGA_DTP_SRC_IMAGES, 0);
	wr(DTP(0) + RFPGA_DTP_SRC_BASE + 4, o);
	wr(DTP(0), RFPGA_DTP_START);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_SRC_BASE);
}

static void test_lock_faults(void)
{
	struct dtp d = plain(0);

	set_entry(1, HOST_ADDR + LOCKS, 4096, 0);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	set_segment(1, HOST_ADDR + LOCKS, 4096, 4096);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 0);
}

/* A write to an unmapped address has no answer: a board may notice or go on, but must not hang. */
static void test_fault_bus(void)
{
	struct dtp d = plain(0);

	d.slots = 4;
	set_entry(0, HOST_ADDR + HOST_SIZE, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(EVENTUALLY(!(status(0) & RFPGA_DTP_RUNNING)));
	if (status(0) & RFPGA_DTP_FAULTED) {
		check_refused(RFPGA_FAULT_BUS);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR + HOST_SIZE);
	} else {
		CHECK_EQ(status(0), RFPGA_DTP_DONE);
		CHECK(untouched(0, 8 << 20));
	}
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	/* all boards detect a wrap of the address space */
	d.dst_base = up(4096);
	set_entry(0, UINT64_MAX - 4095, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), UINT64_MAX - 4095);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
}

/* A DTP with a fault does not delay the others. */
static void test_fault_others(void)
{
	struct dtp d = plain(0), bad = plain(1);

	d.images = 0;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	bad.pixel = 5;
	run_to(&bad, RFPGA_DTP_FAULTED);
	bad.pixel = 2;
	set_entry(2, HOST_ADDR, 1 << 20, 0);
	bad.first = 2;
	run_to(&bad, RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(RFPGA_FAULTS), 2);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK_EQ(counter(0, RFPGA_DTP_C_FAULTS), 0);
	/* and works again */
	bad.first = 0;
	bad.dst_base = 1 << 20;
	run_to(&bad, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK_EQ(counter(1, RFPGA_DTP_C_FAULTS), 0);
	CHECK_EQ(counter(1, RFPGA_DTP_FAULT_CAUSE), 0);
}

/* The read of a flush needs an answer; write-only memory refuses it. */
static void test_fault_flush(void)
{
	struct dtp d = plain(0);

	d.mode |= RFPGA_MODE_FLUSH;
	target->unmap(HOST_ADDR, HOST_SIZE);
	if (target->map(HOST_ADDR, HOST_SIZE, 0, 2))
		skip("the host has no write-only memory");
	start(&d);
	CHECK(EVENTUALLY(status(0) & (RFPGA_DTP_FAULTED | RFPGA_DTP_WAITING)));
	if (!(status(0) & RFPGA_DTP_FAULTED) && !target->refuses_reads)
		skip("this host lets a board read write-only memory");
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(rd64(RFPGA_FAULT_ADDR) - HOST_ADDR < 4ull * board.image);
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK(silent(0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 0);
}

/* Modes of missing features are refused. */
static void test_fault_features(void)
{
	static const struct { uint32_t feature, mode; } modes[] = {
		{ RFPGA_FEATURE_MSIX, RFPGA_MODE_MSIX }, { RFPGA_FEATURE_LOCK, RFPGA_MODE_LOCK },
		{ RFPGA_FEATURE_FREERUN, RFPGA_MODE_FREERUN },
		{ RFPGA_FEATURE_FLUSH, RFPGA_MODE_FLUSH },
		{ RFPGA_FEATURE_META, RFPGA_MODE_META },
		{ RFPGA_FEATURE_VERDICT, RFPGA_MODE_VERDICT },
	};
	struct dtp d = plain(0);
	unsigned int i, lacking = 0;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (board.features & modes[i].feature)
			continue;
		lacking++;
		d.mode = modes[i].mode;
		start(&d);
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_MODE);
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	}
	if (!lacking)
		skip("it has all features");
}

static const struct test tests[] = {
	{ "entries", "refused: entries", test_fault_entry },
	{ "others", "other DTPs go on", test_fault_others, .dtps = 2, .entries = 3 },
	{ "flush", "a flush that is refused", test_fault_flush,
	  .features = RFPGA_FEATURE_FLUSH | RFPGA_FEATURE_MSIX },
	{ "bus", "unmapped bus addresses", test_fault_bus, .entries = 2 },
	{ "master", "refused: bus mastering is off", test_fault_master },
	{ "source", "refused: source", test_fault_source },
	{ "config", "refused: configuration", test_fault_config },
	{ "features", "features that the board lacks", test_fault_features },
	{ "lock", "refused: lock records", test_lock_faults, .entries = 2,
	  .features = RFPGA_FEATURE_LOCK },
};

const struct suite fault_suite = SUITE("fault", tests);
