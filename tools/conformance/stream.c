// SPDX-License-Identifier: GPL-2.0-only
/* Which bytes arrive where. */
#include "dtp.h"

#include <errno.h>
#include <string.h>

static void test_roi(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0, i;

	d.src_x = 5;
	d.src_y = 3;
	d.width = 20;
	d.height = 7;
	d.dst_x = 2;
	d.dst_y = 1;
	d.dst_line = 64;
	d.dst_image = 1024;
	d.dst_slot = 8192;
	d.dst_base = 4096;
	d.slots = 4;
	start(&d);
	while (events < 4 && wait_event(0, &events))
		;
	CHECK_EQ(events, 4);
	for (i = 0; i < 4; i++)
		CHECK(same_stack(&d, i));
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	/* what is not in the region stays as it was */
	CHECK(untouched(0, 4096 + 64 + 4));
	CHECK(untouched(4096 + 64 + 4 + 40, 4096 + 128 + 4));
	CHECK(untouched(4096 + 8 * 64, 4096 + 1024));
	CHECK(untouched(4096 + 4 * 8192, LOCKS));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 16);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 4);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 16 * 7);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 16 * 7 * 40);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 4);
	CHECK_EQ(rd64(RFPGA_BYTES), 16 * 7 * 40);
	CHECK(counter(0, RFPGA_DTP_C_STOP) >= counter(0, RFPGA_DTP_C_START));
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
}

static void test_pixel_sizes(void)
{
	static const uint32_t sizes[] = { 1, 2, 4, 8 };
	unsigned int i;

	for (i = 0; i < 4; i++) {
		struct dtp d = plain(i);

		d.pixel = sizes[i];
		d.width = 10;
		d.height = 4;
		d.src_x = 3;
		d.dst_x = 1;
		d.slots = 4;
		start(&d);
		CHECK(EVENTUALLY(status(i) == RFPGA_DTP_DONE));
		CHECK(same_stack(&d, 0) && same_stack(&d, 3));
	}
}

static void test_entries(void)
{
	struct dtp d = plain(0);
	uint8_t *first = host + (40 << 20), *second = host + (36 << 20);
	uint64_t i;

	/* the second line begins in entry 2 and ends in entry 4; entry 3 is empty */
	set_entry(2, HOST_ADDR + (40 << 20), 200, RFPGA_ENTRY_VALID);
	set_entry(3, 0, 0, RFPGA_ENTRY_VALID);
	set_entry(4, HOST_ADDR + (36 << 20), 1 << 20, RFPGA_ENTRY_VALID);
	d.first = 2;
	d.count = 3;
	d.src_line = 256;	/* a gap, so that lines are not merged */
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (i = 0; i < 32 * 128; i++)
		if ((i < 200 ? first[i] : second[i - 200]) !=
		    dataset[i / 128 * 256 + i % 128])
			break;
	CHECK_EQ(i, 32 * 128);
	CHECK_EQ(first[200], CANARY);
}

static void test_pieces(void)
{
	struct dtp d = plain(0);
	unsigned int i;

	/* pages of the buffer arrive in any order, and some as one */
	dma_unmap(HOST_ADDR, HOST_SIZE);
	for (i = 1; i < 16; i += 2)
		CHECK_EQ(dma_map(HOST_ADDR + i * 4096, 4096, i * 4096, 3), 0);
	for (i = 0; i < 16; i += 2)
		CHECK_EQ(dma_map(HOST_ADDR + i * 4096, 4096, i * 4096, 3), 0);
	CHECK_EQ(dma_map(HOST_ADDR + LOCKS, 4096, LOCKS, 3), 0);
	CHECK_EQ(dma_map(HOST_ADDR + 0x3000, 4096, 0, 3), EEXIST);
	CHECK_EQ(dma_map(HOST_ADDR - 0x1000, 0x2000, 0, 3), EEXIST);
	d.slots = 4;
	d.dst_base = 100;
	d.images = 12;
	start(&d);
	give_credit(0, 0);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0) && same_stack(&d, 2));
	/* the 9th page goes: all of a burst that needs it is refused */
	dma_unmap(HOST_ADDR + 8 * 4096, 4096);
	memset(host, CANARY, 1 << 20);
	d.images = 4;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	d.first_stack = 1;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR + 8 * 4096);
	CHECK(same_image(&d, 1, 2));
	CHECK(untouched(7 * 4096 + 100, 1 << 20));
}

static void test_big_lines(void)
{
	struct dtp d = plain(0);

	d.pixel = 8;
	d.width = 125000;		/* a line of 1 MB, longer than a burst */
	d.height = 5;
	d.src_line = 1000000;
	d.dst_line = 1 << 20;
	d.src_image = 0;
	d.images_in_set = 1;
	d.bunch = d.slots = 1;
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 5);
	/* 5 MB without a gap, merged to bursts */
	d.dst_line = 1000000;
	d.dst_base = 8 << 20;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0));
}

static void test_last_stack(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;

	d.images = 6;		/* one stack and a half */
	start(&d);
	while (events < 2 && wait_event(0, &events))
		;
	CHECK_EQ(events, 2);
	CHECK(status(0) & RFPGA_DTP_DONE);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_IMAGES / 8], 6);
	CHECK(same_image(&d, 1, 0) && same_image(&d, 1, 1));
	CHECK(untouched(d.dst_slot + 2 * d.dst_image, 2 * d.dst_slot));
}

static void test_sampling(void)
{
	struct dtp d = plain(0);
	uint64_t k;

	d.sampling = 5;
	d.slots = 8;
	d.images = 32;
	d.first_stack = 3;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
	d.sampling = 0xffffffff;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
}

static void test_round_robin(void)
{
	struct dtp d[4];
	uint64_t images[4], least, most;
	unsigned int i;

	for (i = 0; i < 4; i++) {
		d[i] = plain(i);
		d[i].mode = RFPGA_MODE_FREERUN;
		d[i].images = 0;
		d[i].dst_base = (uint64_t)i << 20;
		start(&d[i]);
	}
	for (i = 0; i < 4; i++)
		images[i] = counter(i, RFPGA_DTP_C_IMAGES);
	/* so many that reading the counters one after another does not matter */
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) - images[0] > 20000));
	for (i = 0; i < 4; i++)
		images[i] = counter(i, RFPGA_DTP_C_IMAGES) - images[i];
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	least = most = images[0];
	for (i = 1; i < 4; i++) {
		least = images[i] < least ? images[i] : least;
		most = images[i] > most ? images[i] : most;
	}
	CHECK(least > 0 && most < 2 * least);
}

static const struct test tests[] = {
	{ "region", "region of interest and strides", test_roi },
	{ "pixels", "pixels of 1, 2, 4 and 8 bytes", test_pixel_sizes },
	{ "entries", "a line may cross table entries", test_entries },
	{ "pieces", "memory that was mapped in pieces", test_pieces },
	{ "big-lines", "lines and images longer than a burst", test_big_lines },
	{ "last-stack", "a last stack that is not full", test_last_stack },
	{ "step", "sampling", test_sampling },
	{ "turns", "DTPs take turns", test_round_robin },
};

const struct suite stream_suite = SUITE("stream", tests);
