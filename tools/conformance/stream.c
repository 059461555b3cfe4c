// SPDX-License-Identifier: LGPL-2.1-or-later
/* Payload and its destination. */
#include "conformance/dtp.h"

#include <string.h>

static void test_roi(void)
{
	struct dtp d = plain(0);
	const uint64_t x = up(4), line = x + up(40) + up(8), base = up(4096);
	uint64_t i;

	d.src_x = (uint32_t)up(10) / 2;
	d.src_y = 3;
	d.width = 20;
	d.height = 7;
	d.src_line = up(10) + up(50);
	d.src_image = 11 * d.src_line;
	d.dst_x = (uint32_t)x / 2;
	d.dst_y = 1;
	d.dst_line = line;
	d.dst_image = 8 * line + up(1000);
	d.dst_slot = 4 * d.dst_image + up(100);
	d.dst_base = base;
	d.slots = 4;
	fit_images(&d);
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(told(0, 4));
	for (i = 0; i < 4; i++)
		CHECK(same_stack(&d, i));
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	/* memory outside the region stays unchanged */
	CHECK(untouched(0, base + line + x));
	CHECK(untouched(base + line + x + 40, base + 2 * line + x));
	CHECK(untouched(base + 8 * line, base + d.dst_image));
	CHECK(untouched(base + 4 * d.dst_slot, LOCKS));
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
		d.src_x = (uint32_t)up(3 * d.pixel) / d.pixel;
		d.dst_x = (uint32_t)up(d.pixel) / d.pixel;
		d.src_line = d.dst_line = up(8) + up(128);
		d.src_image = d.dst_image = 4 * d.dst_line;
		d.dst_slot = 4 * d.dst_image;
		d.slots = 4;
		fit_images(&d);
		run_to(&d, RFPGA_DTP_DONE);
		CHECK(same_stack(&d, 0) && same_stack(&d, 3));
	}
}

static void test_entries(void)
{
	struct dtp d = plain(0);
	const uint64_t before = up(200);	/* one line and a part, or several */
	const uint8_t *first = host + (40 << 20) - 4096, *second = host + (36 << 20) - 4096;
	uint64_t at;
	uint32_t i;

	/* the second line begins in entry 2 and ends in 4, or begins in 4; entry 3 is empty */
	set_segment(2, HOST_ADDR + (40 << 20) - 4096, 4096, 0);
	set_segment(3, 0, 0, 4096);
	set_segment(4, HOST_ADDR + (36 << 20), 1 << 20, 4096);
	d.dst_base = 4096 - before;
	d.first = 2;
	d.count = 3;
	d.width = 64;
	d.height = 16;
	d.src_line = 2 * board.line;	/* a gap, so that lines are not merged */
	d.images = 1;
	fit_images(&d);
	run_to(&d, RFPGA_DTP_DONE);
	for (i = 0; i < 16 * 128 && !failed; i++) {
		at = d.dst_base + i / 128 * d.dst_line + i % 128;
		CHECK_EQ((at < 4096 ? first : second)[at],
			 dataset[i / 128 * d.src_line + i % 128]);
	}
	CHECK_EQ(first[4096], CANARY);
}

static void test_big_lines(void)
{
	struct dtp d = plain(0);

	d.pixel = 8;
	d.width = 125000;		/* a line of 1 MB, longer than a burst */
	d.height = 5;
	d.src_line = up(1000000);
	d.dst_line = up(1 << 20);
	d.src_image = 0;
	d.images_in_set = 1;
	d.bunch = d.slots = 1;
	d.images = 1;
	fit_images(&d);
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 5);
	/* 5 MB without a gap, if ALIGN allows that, merged to bursts */
	d.dst_line = d.src_line;
	d.dst_base = 8 << 20;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(same_stack(&d, 0));
}

static void test_last_stack(void)
{
	struct dtp d = plain(0);

	d.images = 6;		/* one stack and a half */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(told(0, 2));
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
	run_to(&d, RFPGA_DTP_DONE);
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
	d.sampling = 0xffffffff;
	run_to(&d, RFPGA_DTP_DONE);
	for (k = 3; k < 11; k++)
		CHECK(same_stack(&d, k));
}

/* All DTPs stop at once, so that only their starts differ: @first is what DTP 0 has sent by then. */
static void test_round_robin(void)
{
	uint64_t images, first, least, most;
	struct dtp d[4];
	unsigned int i;

	for (i = 0; i < 4; i++) {
		d[i] = plain(i);
		d[i].mode = RFPGA_MODE_FREERUN;
		d[i].images = 0;
		d[i].dst_base = (uint64_t)i << 20;
		start(&d[i]);
	}
	first = counter(0, RFPGA_DTP_C_IMAGES);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 20000 + 4 * first));
	stop_board();
	least = most = counter(0, RFPGA_DTP_C_IMAGES);
	for (i = 1; i < 4; i++) {
		images = counter(i, RFPGA_DTP_C_IMAGES);
		least = images < least ? images : least;
		most = images > most ? images : most;
	}
	CHECK(least > 0 && most < 2 * least);
}

/* Lines begin and end at any byte that ALIGN allows, on both sides. */
static void test_bytes(void)
{
	struct dtp d = plain(0);
	uint32_t from, to, step = board.align, k = 0;
	uint64_t line;

	d.pixel = 1;
	d.width = 64;
	d.height = 2;
	fit_images(&d);
	d.bunch = 1;
	d.slots = 4;
	d.images = 1;
	d.mode = 0;
	for (from = 0; from < 16 && !failed; from += step)
		for (to = 0; to < 16 && !failed; to += step, k++) {
			d.src_x = from;
			d.dst_x = to;
			d.width = 1 + (from * 7 + to * 3) % 40;
			/* a request must not cross a page */
			d.dst_base = k % 2 ? down(4096 - 16) : 0;
			memset(host, CANARY, 16384);
			run_to(&d, RFPGA_DTP_DONE);
			CHECK(same_stack(&d, 0));
			CHECK(untouched(0, d.dst_base + to));
			line = d.dst_base + d.dst_line + to;
			CHECK(untouched(d.dst_base + to + d.width, line));
			CHECK(untouched(line + d.width, 16384));
		}
}

static uint32_t draw(uint32_t least, uint32_t most)
{
	static uint32_t x = 1;

	if (x == 1)
		x = *(uint32_t *)dataset | 1;	/* from the seed */
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return least + x % (most - least + 1);
}

/* Any region, strides and numbers. */
static struct dtp draw_dtp(void)
{
	struct dtp d = plain(draw(0, board.dtps - 1));

	d.mode = 0;
	d.pixel = 1u << draw(0, 3);
	d.width = draw(1, 60);
	d.height = draw(1, 12);
	d.bunch = draw(1, 4);
	d.slots = draw(1, 4);
	d.images_in_set = draw(1, 7);
	d.sampling = draw(0, 9);
	d.images = draw(1, d.bunch * d.slots);
	d.src_x = (uint32_t)down(draw(0, 20));
	d.src_y = draw(0, 5);
	d.dst_x = (uint32_t)down(draw(0, 20));
	d.dst_y = draw(0, 5);
	d.src_base = down(draw(0, 5000));
	d.src_line = down((d.src_x + d.width) * d.pixel + draw(0, 30) + board.align);
	d.src_image = down((d.src_y + d.height) * d.src_line + draw(0, 100) + board.align);
	d.dst_base = down(draw(0, 5000));
	d.dst_line = down((d.dst_x + d.width) * d.pixel + draw(0, 30) + board.align);
	d.dst_image = down((d.dst_y + d.height) * d.dst_line + draw(0, 100) + board.align);
	d.dst_slot = d.bunch * d.dst_image + down(draw(0, 100));
	d.first_stack = draw(0, 9);
	return d;
}

/* The same, limited to the dataset and @size bytes of the host. */
static struct dtp any(size_t size)
{
	unsigned int tries = 100000;
	uint64_t from, to;
	struct dtp d;

	while (tries--) {
		d = draw_dtp();
		from = d.src_base + (d.images_in_set - 1) * d.src_image +
		       (d.src_y + d.height - 1) * d.src_line + (d.src_x + d.width) * d.pixel;
		to = d.dst_base + d.slots * d.dst_slot;
		if (from <= board.dataset && to <= size)
			return d;
	}
	skip("no region fits into %u bytes of on-board memory", board.dataset);
}

/* Expected memory of the host: all of it, not only the destination. */
static void expect(const struct dtp *d, uint8_t *expected, size_t size)
{
	uint64_t frame, index, slot, src, dst;
	uint32_t image, line;

	memset(expected, CANARY, size);
	for (image = 0; image < d->images; image++)
		for (line = 0; line < d->height; line++) {
			frame = d->first_stack * d->bunch + image;
			index = frame * d->sampling % d->images_in_set;
			slot = (d->first_stack + image / d->bunch) % d->slots;
			src = d->src_base + index * d->src_image +
			      (d->src_y + line) * d->src_line + d->src_x * d->pixel;
			dst = d->dst_base + slot * d->dst_slot +
			      image % d->bunch * d->dst_image +
			      (d->dst_y + line) * d->dst_line + d->dst_x * d->pixel;
			memcpy(expected + dst, dataset + src, d->width * d->pixel);
		}
}

static void test_random(void)
{
	static uint8_t expected[1 << 20];
	struct dtp d;
	int i;

	for (i = 0; i < 100 && !failed; i++) {
		d = any(sizeof(expected));
		expect(&d, expected, sizeof(expected));
		memset(host, CANARY, sizeof(expected));
		run_to(&d, RFPGA_DTP_DONE);
		CHECK_EQ(counter(d.n, RFPGA_DTP_C_IMAGES), d.images);
		CHECK_EQ(counter(d.n, RFPGA_DTP_C_BYTES),
			 d.images * d.height * d.width * d.pixel);
		CHECK_EQ(counter(d.n, RFPGA_DTP_C_DESCRIPTORS), d.images * d.height);
		CHECK(!memcmp(host, expected, sizeof(expected)));
		if (failed)
			note("round %d: pixel %u, %ux%u at %u,%u to %u,%u, bunch %u, slots %u, stack %llu",
			     i, d.pixel, d.width, d.height, d.src_x, d.src_y, d.dst_x, d.dst_y,
			     d.bunch, d.slots, (unsigned long long)d.first_stack);
	}
}

/* The table is read when a line is sent, not at START. */
static void test_late_entry(void)
{
	struct dtp d = plain(0);

	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	set_entry(0, HOST_ADDR + (16 << 20), 32 << 20, RFPGA_ENTRY_VALID);
	memset(host, CANARY, 1 << 20);
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK(untouched(0, 1 << 20));
	d.dst_base = 16 << 20;
	CHECK(same_stack(&d, 2));
}

/* Below 4 GiB, across 4 GiB, and above 32 bits. */
static void test_addresses(void)
{
	const uint64_t places[] = { 1ull << 28, (1ull << 32) - 16384, 1ull << 33, 1ull << 37 };
	struct dtp d = plain(0);
	unsigned int i;

	d.slots = 4;
	d.mode = 0;
	target->unmap(HOST_ADDR, HOST_SIZE);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (target->map(places[i], 1 << 20, 0, 3)) {
			note("the host has no bus address %#llx", (unsigned long long)places[i]);
			continue;
		}
		memset(host, CANARY, 1 << 20);
		set_entry(0, places[i], 1 << 20, RFPGA_ENTRY_VALID);
		run_to(&d, RFPGA_DTP_DONE);
		CHECK(same_stack(&d, 0) && same_stack(&d, 3));
		target->unmap(places[i], 1 << 20);
	}
}

static const struct test tests[] = {
	{ "region", "region of interest and strides", test_roi,
	  .features = RFPGA_FEATURE_MSIX },
	{ "pixels", "pixels of 1, 2, 4 and 8 bytes", test_pixel_sizes },
	{ "entries", "a line may cross table entries", test_entries, .entries = 5 },
	{ "big-lines", "lines and images longer than a burst", test_big_lines },
	{ "last-stack", "an incomplete last stack", test_last_stack,
	  .features = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK },
	{ "step", "sampling", test_sampling },
	{ "bytes", "lines that begin and end anywhere", test_bytes },
	{ "random", "regions and strides at random", test_random },
	{ "late-entry", "the table is read when a line is sent", test_late_entry,
	  .entries = 2 },
	{ "addresses", "bus addresses of 32 and of 64 bits", test_addresses },
	{ "turns", "DTPs take turns", test_round_robin, .dtps = 4,
	  .features = RFPGA_FEATURE_FREERUN },
};

const struct suite stream_suite = SUITE("stream", tests);
