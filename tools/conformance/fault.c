// SPDX-License-Identifier: GPL-2.0-only
/* What is refused, and what is told of it. */
#include "dtp.h"

#include <stdio.h>
#include <string.h>

static void test_fault_entry(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR, 1 << 20, 0);
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	CHECK_EQ(rd(RFPGA_STATUS), 0);

	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	d.dst_base = (1 << 20) - 100;
	d.dst_line = 256;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 1 << 20);
}

static void test_fault_bus(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR + HOST_SIZE, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR + HOST_SIZE);
	/* beginning inside, ending outside */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, HOST_ADDR + HOST_SIZE - 100, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK(untouched(HOST_SIZE - 100, HOST_SIZE));
	/* around the end of the address space */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, UINT64_MAX - 50, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	/* mapped, but only for reading */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	dma_unmap(HOST_ADDR, HOST_SIZE);
	CHECK_EQ(dma_map(HOST_ADDR, HOST_SIZE, 0, 1), 0);
	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
}

static void test_fault_master(void)
{
	struct dtp d = plain(0);

	config_write(4, 2, 2);
	start(&d);
	check_refused(RFPGA_FAULT_MASTER);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR);
	/* an interrupt is a transaction too */
	config_write(4, 6, 2);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	config_write(4, 2, 2);
	give_credit(0, 1);
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
}

static void test_fault_source(void)
{
	struct dtp d = plain(0);

	d.src_base = CLIENT_MEMORY - 4096 + 1;
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), CLIENT_MEMORY - 128 + 1);
	/* the third image is the first that is not there: it is found when it is its turn */
	d.src_base = CLIENT_MEMORY - 2 * 4096;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_SOURCE));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), CLIENT_MEMORY);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 2);
	CHECK(same_image(&d, 0, 1));
	/* sums that 48 bits do not hold, and 64 do not either */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	memset(host, CANARY, 1 << 20);
	d.src_base = (1ull << 48) - 1;
	d.src_line = d.src_image = UINT32_MAX;
	d.src_y = d.src_x = INT32_MAX;
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d = plain(0);
	d.slots = INT32_MAX;
	d.first_stack = INT32_MAX - 1;
	d.dst_slot = (1ull << 48) - 1;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	d = plain(0);
	d.src_base = CLIENT_MEMORY - 16 * 4096;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
}

/* The register that is told for this one: of a pair the lower word. */
static uint32_t lowest(uint32_t reg)
{
	static const uint32_t single[] = {
		RFPGA_DTP_VECTOR, RFPGA_DTP_SLOTS, RFPGA_DTP_SRC_X, RFPGA_DTP_WIDTH,
		RFPGA_DTP_DST_X, RFPGA_DTP_GROUP, RFPGA_DTP_DST_COUNT, RFPGA_DTP_LOCK_COUNT,
		RFPGA_DTP_FIRST_INDEX,
	};
	unsigned int i;

	for (i = 0; i < sizeof(single) / sizeof(single[0]); i++)
		if (reg == single[i])
			return reg;
	return reg & ~4u;
}

static void test_fault_config(void)
{
	static const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_MODE, 0x40 }, { RFPGA_DTP_VECTOR, CLIENT_VECTORS },
		{ RFPGA_DTP_PIXEL_BYTES, 0 }, { RFPGA_DTP_PIXEL_BYTES, 3 },
		{ RFPGA_DTP_PIXEL_BYTES, 16 },
		{ RFPGA_DTP_BUNCH, 0 }, { RFPGA_DTP_SLOTS, 0 }, { RFPGA_DTP_SRC_IMAGES, 0 },
		{ RFPGA_DTP_WIDTH, 0 }, { RFPGA_DTP_HEIGHT, 0 },
		{ RFPGA_DTP_SLOTS, 1u << 31 }, { RFPGA_DTP_SRC_X, 1u << 31 },
		{ RFPGA_DTP_SRC_Y, 1u << 31 }, { RFPGA_DTP_DST_X, 1u << 31 },
		{ RFPGA_DTP_DST_Y, 1u << 31 }, { RFPGA_DTP_WIDTH, 1u << 31 },
		{ RFPGA_DTP_GROUP, 0x2 }, { RFPGA_DTP_GROUP, 0x11 },
		{ RFPGA_DTP_DST_FIRST, 1024 }, { RFPGA_DTP_DST_FIRST, 0xffffffff },
		{ RFPGA_DTP_DST_COUNT, 0 }, { RFPGA_DTP_DST_COUNT, 1025 },
		{ RFPGA_DTP_LOCK_OFFSET, 32 }, { RFPGA_DTP_LOCK_COUNT, 0 },
		{ RFPGA_DTP_LOCK_FIRST, 0xffffffff },
		{ RFPGA_DTP_SRC_BASE + 4, 1 << 16 }, { RFPGA_DTP_SRC_LINE + 4, 1 },
		{ RFPGA_DTP_SRC_IMAGE + 4, 1 }, { RFPGA_DTP_DST_BASE + 4, 1 << 16 },
		{ RFPGA_DTP_DST_LINE + 4, 1 }, { RFPGA_DTP_DST_IMAGE + 4, 1 },
		{ RFPGA_DTP_DST_SLOT + 4, 1 << 16 }, { RFPGA_DTP_LOCK_OFFSET + 4, 1 << 16 },
		{ RFPGA_DTP_FIRST_STACK + 4, 1 << 16 }, { RFPGA_DTP_IMAGES + 4, 1 << 16 },
		{ RFPGA_DTP_PERIOD + 4, 1 << 16 }, { RFPGA_DTP_FIRST_SLOT, 3 },
		{ RFPGA_DTP_FIRST_INDEX, 16 }, { RFPGA_DTP_INDEX_STEP, 16 },
	};
	struct dtp d = plain(0);
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d.slots = 3;
		program_dtp(&d);
		wr(RFPGA_DTP(0) + bad[i].reg, bad[i].value);
		wr(RFPGA_DTP(0), RFPGA_DTP_START);
		if (status(0) != RFPGA_DTP_FAULTED ||
		    rd(RFPGA_FAULT_CAUSE) != RFPGA_FAULT_CONFIG)
			printf("# register %#x = %#x: status %#x, cause %u\n", bad[i].reg,
			       bad[i].value, status(0), rd(RFPGA_FAULT_CAUSE));
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), RFPGA_DTP(0) + lowest(bad[i].reg));
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR | RFPGA_CONTROL_STOP);
	}
	/* of two the lower one is told, whichever was written first */
	program_dtp(&d);
	wr(RFPGA_DTP(0) + RFPGA_DTP_INDEX_STEP, 16);
	wr(RFPGA_DTP(0) + RFPGA_DTP_SRC_IMAGES, 0);
	wr(RFPGA_DTP(0) + RFPGA_DTP_SRC_BASE + 4, 1 << 16);
	wr(RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_SRC_BASE);
}

static void test_lock_faults(void)
{
	struct dtp d = plain(0);

	set_entry(1, HOST_ADDR + LOCKS + 8, 4096, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	set_entry(1, HOST_ADDR + LOCKS, 32, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(events_so_far(0), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 0);
}

static const struct test tests[] = {
	{ "entries", "refused: entries", test_fault_entry },
	{ "bus", "refused: bus addresses", test_fault_bus },
	{ "master", "refused: bus mastering is off", test_fault_master },
	{ "source", "refused: source", test_fault_source },
	{ "config", "refused: configuration", test_fault_config },
	{ "lock", "refused: lock records", test_lock_faults },
};

const struct suite fault_suite = SUITE("fault", tests);
