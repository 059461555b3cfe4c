// SPDX-License-Identifier: LGPL-2.1-or-later
/* Live sources with a held clock: exact to the tick and the image. */
#include "fpga/tests/selftest.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define PERIOD	1000u

static uint32_t base;			/* of source 0 */

static void step(uint64_t ticks)
{
	char text[40];

	snprintf(text, sizeof(text), "clock step %llu", (unsigned long long)ticks);
	tell(text);
}

static void source_start(uint64_t period)
{
	wr64(base + RFPGA_SOURCE_PERIOD, period);
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START);
}

/* Hold the clock; this DTP takes all images of source 0. */
static struct dtp live(uint32_t n)
{
	struct dtp d = plain(n);
	uint32_t count;

	tell("clock hold");
	base = block(RFPGA_BLOCK_SOURCE, &count);
	d.source = RFPGA_FROM_LIVE;
	d.mode |= RFPGA_MODE_META;
	d.meta = 1024 * (n + 1);
	d.images = 0;
	return d;
}

static uint64_t frame_in(const struct dtp *d, uint32_t slot, uint32_t image)
{
	return meta64(meta_record(d, slot, image), RFPGA_META_FRAME);
}

static void end(void)
{
	tell("clock run");
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
}

/* An image arrives at the end of its period, and each wait has its cause. */
static void test_ticks(void)
{
	struct dtp d = live(0);
	uint64_t begin;

	begin = rd64(RFPGA_TICKS);
	start(&d);
	step(500);
	source_start(PERIOD);
	step(PERIOD - 1);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_FRAMES), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_SOURCE), 500 + PERIOD - 1);
	step(1);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_FRAMES), 1);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 1);
	CHECK_EQ(meta64(meta_record(&d, 0, 0), RFPGA_META_TICKS), begin + 500);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_TIME) -
		 meta64(meta_record(&d, 0, 0), RFPGA_META_TIME), PERIOD * RFPGA_TICK_NS);
	/* TAI of the host: no other clock, and no other year */
	CHECK(rd64(base + RFPGA_SOURCE_TIME) / 1000000000 - (uint64_t)time(NULL) < 3600);
	/* eight images are sent, then there is no credit */
	step(7 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	/* the engine was busy after the first image */
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_SOURCE), 500 + 2 * PERIOD);
	step(PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_SOURCE), 500 + 3 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL), 0);
	step(300);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL), 300);
	/* a bus that accepts no data */
	tell("patient on");
	config_write(4, 2, 2);
	give_credit(0, 1);
	step(0);
	step(200);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL), 300);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_BUS), 200);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING);
	config_write(4, 6, 2);
	step(0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 9);
	step(100);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_BUS), 200);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STALL_SOURCE), 500 + 3 * PERIOD + 100);
	tell("patient off");
	end();
}

/* Waiting images, lost images, and the next image. */
static void test_fifo(void)
{
	struct dtp d = live(0);
	uint32_t i;

	start(&d);
	source_start(PERIOD);
	step(20 * PERIOD);			/* all of it in one step: the FIFO was empty */
	CHECK_EQ(counter(0, RFPGA_DTP_FIFO_PEAK), 16);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 4);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	step(8 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 4);
	step(1);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 4);
	step(PERIOD - 1);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 5);
	give_credit(0, 1);
	step(0);
	for (i = 0; i < 4; i++) {
		CHECK_EQ(frame_in(&d, 0, i), 8 + i);
		CHECK_EQ(frame_in(&d, 1, i), 4 + i);
	}
	/* 12 to 15, and 20 on: 28 is the one that came last, and was lost */
	give_credit(0, 3);
	step(0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 23);
	step(4 * PERIOD);
	give_credit(0, 5);
	step(0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 7);
	CHECK_EQ(frame_in(&d, 0, 0), 29);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 32);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 5);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES) + counter(0, RFPGA_DTP_C_LOST), 33);
	end();
}

/* Images that the end of a run does not need are not counted as lost. */
static void test_last_images(void)
{
	struct dtp d = live(0);

	d.images = 18;
	start(&d);
	source_start(PERIOD);
	step(8 * PERIOD);
	step(100 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_FIFO_PEAK), 10);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	give_credit(0, 2);
	step(0);
	give_credit(0, 3);
	step(0);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 17);
	end();
}

/* A fast and long run is counted, not simulated image by image. A full FIFO loses the rest. */
static void test_long_step(void)
{
	const uint64_t ticks = 1ull << 40;
	struct dtp d = live(0), e = live(1);

	e.live_sampling = 1000 | 999u << 16;
	e.dst_base = 1 << 20;
	start(&d);
	start(&e);
	source_start(1);
	step(ticks);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_FRAMES), ticks);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_TRIGGERS), ticks);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), ticks - 16);
	CHECK_EQ(counter(1, RFPGA_DTP_C_LOST), ticks / 1000 - 16);
	CHECK_EQ(frame_in(&e, 0, 1), 1999);
	/* the next image continues the sequence */
	give_credit(1, 2);
	step(0);
	step(1000);
	CHECK_EQ(frame_in(&e, 0, 0), 8999);
	step(4000);
	give_credit(1, 4);
	step(0);
	CHECK_EQ(counter(1, RFPGA_DTP_C_IMAGES), 21);
	CHECK(lock_record(1)[RFPGA_LOCK_FRAME / 8] > ticks);
	CHECK_EQ((lock_record(1)[RFPGA_LOCK_FRAME / 8] + 1) % 1000, 0);
	end();
}

/* Three stacks at a time without credit: overwritten, or dropped. */
static void test_policies(void)
{
	struct dtp d = live(0);
	uint32_t i;

	d.mode |= RFPGA_MODE_FREERUN;
	d.images = 22;
	start(&d);
	source_start(PERIOD);
	step(16 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 2);
	step(6 * PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 4);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 21);
	/* credit during a dropped stack is for the next stack */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	d.mode |= RFPGA_MODE_DROP;
	d.images = 22;
	start(&d);
	source_start(PERIOD);
	step(9 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DROPPED), 1);
	give_credit(0, 1);
	step(3 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	step(4 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 12);
	for (i = 0; i < 4; i++)
		CHECK_EQ(frame_in(&d, 0, i), 12 + i);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_DROPPED / 8], 1);
	/* the last two stacks, the second one short */
	step(5 * PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DROPPED), 3);
	step(PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 12);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	end();
}

/* The detector misses images, or lines of them. */
static void test_missing(void)
{
	struct dtp d = live(0);
	const volatile uint32_t *meta;

	tell("miss frames 3");			/* 2, 5, 8 ... */
	tell("miss lines 4 5");			/* 3, 7, 11 ... */
	d.images = 8;
	start(&d);
	source_start(PERIOD);
	step(12 * PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_MISSED), 4);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_LINES_MISSED), 15);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 10);
	CHECK_EQ(frame_in(&d, 0, 1), 1);
	meta = meta_record(&d, 0, 2);
	CHECK_EQ(meta64(meta, RFPGA_META_FRAME), 3);
	CHECK_EQ(meta[RFPGA_META_STATUS / 4], RFPGA_META_LINES | 5 << 16);
	CHECK_EQ(meta[RFPGA_META_LENGTH / 4], 27 * 128);
	CHECK(!memcmp(host + 2 * 4096, dataset + 3 * 4096, 27 * 128));
	CHECK(untouched(2 * 4096 + 27 * 128, 3 * 4096));
	CHECK_EQ(meta_record(&d, 0, 3)[RFPGA_META_STATUS / 4], 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), 8 * 32 - 2 * 5);
	/* images without lines, and 1 of N missed images do not disturb the sequence */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	tell("miss lines 5 1000");		/* 4, 9, 14, 19 */
	d.live_sampling = 2 | 1 << 16;		/* 1, 3, 7, 9, 13, 15, 19, 21 */
	start(&d);
	source_start(PERIOD);
	step(22 * PERIOD);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(frame_in(&d, 0, 2), 7);
	CHECK_EQ(frame_in(&d, 0, 3), 9);
	CHECK_EQ(frame_in(&d, 1, 3), 21);
	meta = meta_record(&d, 0, 3);
	CHECK_EQ(meta[RFPGA_META_STATUS / 4], RFPGA_META_LINES | 32 << 16);
	CHECK_EQ(meta[RFPGA_META_LENGTH / 4], 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 6 * 4096);
	tell("miss frames off");
	tell("miss lines off");
	/* lost and missed at once: each is counted once */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	tell("miss frames 4");
	d.live_sampling = 5;			/* of 120, 30 are missed, and 16 wait */
	d.images = 0;
	start(&d);
	source_start(PERIOD);
	step(600 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 90 - 16);
	tell("miss frames 3");
	/* eight were sent since; of 1200, 400 are missed */
	step(6000 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 74 + 800 - 8);
	/* too many to check one by one; sampling 1 of 6, none or all are missed */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	d.live_sampling = 2;
	start(&d);
	source_start(1);
	step(1000000000000000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 333333333333333 - 16);
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	d.live_sampling = 6 | 2 << 16;
	start(&d);
	source_start(1);
	step(1000000000000000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	tell("miss frames off");
	CHECK(obeys("miss", "error") && obeys("miss frames 0", "error") &&
	      obeys("miss lines 3 0", "error") && obeys("miss lines -1", "error") &&
	      obeys("miss frames 3 1", "error") && obeys("miss frames", "error"));
	end();
}

/* An image keeps its initial role; a DTP gets images that begin after its START. */
static void test_begin(void)
{
	struct dtp d = live(0);
	uint32_t i;

	source_start(PERIOD);
	step(2 * PERIOD + PERIOD / 2);
	start(&d);
	step(PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	wr(base + RFPGA_SOURCE_ROLE, 7);
	step(3 * PERIOD);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(frame_in(&d, 0, i), 3 + i);
		CHECK_EQ(meta_record(&d, 0, i)[RFPGA_META_ROLE / 4], i ? 7 : 0);
		CHECK_EQ(meta64(meta_record(&d, 0, i), RFPGA_META_TRIGGER), 3 + i);
	}
	/* after another START of the source, images count from 0, and triggers continue */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	step(10 * PERIOD);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 3);
	source_start(PERIOD);
	step(PERIOD);
	CHECK_EQ(frame_in(&d, 0, 3), 0);
	CHECK_EQ(meta64(meta_record(&d, 0, 3), RFPGA_META_TRIGGER), 7);
	end();
}

/* TAI would wrap in 2554: the clock cannot be stepped that far. */
static void test_clock_end(void)
{
	const uint64_t last = (1ull << 61) - 1;
	uint64_t time_now;
	char text[40];

	live(0);
	time_now = rd64(base + RFPGA_SOURCE_TIME);
	snprintf(text, sizeof(text), "clock step %llu",
		 (unsigned long long)(last + 1 - rd64(RFPGA_TICKS)));
	CHECK(obeys(text, "error: the clock cannot be stepped"));
	step(last - rd64(RFPGA_TICKS));
	CHECK(rd64(base + RFPGA_SOURCE_TIME) > time_now);
	CHECK(obeys("clock step 1", "error: the clock cannot be stepped"));
	tell("clock run");
	CHECK(EVENTUALLY(rd64(RFPGA_TICKS) > last));
	/* restart: other tests need to step the clock */
	restart_program_with(NULL);
}

static const struct test tests[] = {
	{ "ticks", "images at their ticks, and stalls by cause", test_ticks },
	{ "fifo", "waiting and lost images", test_fifo },
	{ "last-images", "images that a run does not need are not lost", test_last_images },
	{ "long-step", "a million millions of images", test_long_step },
	{ "policies", "overwritten or dropped stacks", test_policies },
	{ "missing", "images and lines that the detector misses", test_missing },
	{ "begin", "in the middle of an image", test_begin },
	{ "clock-end", "a clock that is stepped too far", test_clock_end },
};

const struct suite live_suite = SUITE("live", tests);
