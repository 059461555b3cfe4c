// SPDX-License-Identifier: GPL-2.0-only
/* Which bytes arrive where. */
#include "dtp.h"

#include <string.h>

static void test_roi(void)
{
	struct dtp d = plain(0);
	uint64_t i;

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
	CHECK(told(0, 4));
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
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
		struct dtp d = plain(i % board.dtps);

		d.pixel = sizes[i];
		d.width = 10;
		d.height = 4;
		d.src_x = 3;
		d.dst_x = 1;
		d.slots = 4;
		start(&d);
		CHECK(EVENTUALLY(status(d.n) == RFPGA_DTP_DONE));
		CHECK(same_stack(&d, 0) && same_stack(&d, 3));
	}
}

static void test_entries(void)
{
	struct dtp d = plain(0);
	uint8_t *first = host + (40 << 20) - 200, *second = host + (36 << 20);
	uint64_t i;

	/* the second line begins in entry 2 and ends in entry 4; entry 3 is empty */
	set_segment(2, HOST_ADDR + (40 << 20) - 4096, 4096, 0);
	set_segment(3, 0, 0, 4096);
	set_segment(4, HOST_ADDR + (36 << 20), 1 << 20, 4096);
	d.dst_base = 4096 - 200;
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

	d.images = 6;		/* one stack and a half */
	start(&d);
	CHECK(told(0, 2));
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
	{ "region", "region of interest and strides", test_roi,
	  .features = RFPGA_FEATURE_MSIX },
	{ "pixels", "pixels of 1, 2, 4 and 8 bytes", test_pixel_sizes },
	{ "entries", "a line may cross table entries", test_entries, .entries = 5 },
	{ "big-lines", "lines and images longer than a burst", test_big_lines, .memory = 5000000 },
	{ "last-stack", "a last stack that is not full", test_last_stack,
	  .features = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK },
	{ "step", "sampling", test_sampling },
	{ "turns", "DTPs take turns", test_round_robin, .dtps = 4,
	  .features = RFPGA_FEATURE_FREERUN },
};

const struct suite stream_suite = SUITE("stream", tests);
