// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Live sources: images at a fixed pace, and the account of every image. The detector of the
 * board under test shows its dataset: image F is number F mod SRC_IMAGES.
 */
#include "conformance/dtp.h"

#include <string.h>

#define PERIOD	(board.tick_rate / 10000 + 1)	/* 100 us */

static uint32_t base;			/* of source 0 */

static void source_start(uint64_t period)
{
	wr64(base + RFPGA_SOURCE_PERIOD, period);
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START);
}

static uint64_t frames(void)
{
	return rd64(base + RFPGA_SOURCE_FRAMES);
}

static void find_source(void)
{
	uint32_t count;

	base = block(RFPGA_BLOCK_SOURCE, &count);
	if (!count)
		skip("it has no live source");
}

/* A DTP that takes images from source 0, with metadata. */
static struct dtp live(uint32_t n)
{
	struct dtp d = plain(n);

	d.source = RFPGA_FROM_LIVE;
	d.mode |= RFPGA_MODE_META;
	d.meta = 1024 * (n + 1);
	return d;
}

static bool shows_frame(const struct dtp *d, uint32_t slot, uint32_t image, uint64_t frame)
{
	return meta64(meta_record(d, slot, image), RFPGA_META_FRAME) == frame &&
	       shows(d, slot, image, frame);
}

static void test_registers(void)
{
	uint64_t triggers;

	find_source();
	CHECK(rd(base + RFPGA_SOURCE_FIFO) >= 1);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), 0);
	source_start(0);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), 0);
	if (board.offset_bits < 64)
		source_start(1ull << board.offset_bits);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), 0);
	CHECK_EQ(frames(), 0);
	wr(base + RFPGA_SOURCE_ROLE, 0x12345678);
	CHECK_EQ(rd(base + RFPGA_SOURCE_ROLE), 0x12345678);
	source_start(PERIOD);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), RFPGA_SOURCE_RUNNING);
	CHECK(EVENTUALLY(frames() >= 10));
	/* a running source ignores a period and a start */
	source_start(7);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_PERIOD), PERIOD);
	CHECK(frames() >= 10);
	/* a stop of all DTPs does not stop the source */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), RFPGA_SOURCE_RUNNING);
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START | RFPGA_SOURCE_STOP);
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), 0);
	triggers = rd64(base + RFPGA_SOURCE_TRIGGERS);
	CHECK_EQ(triggers, frames() + 1);
	source_start(most(board.offset_bits));
	CHECK_EQ(frames(), 0);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_TRIGGERS), triggers);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
	CHECK_EQ(rd(base + RFPGA_SOURCE_STATUS), 0);
	CHECK_EQ(rd(base + RFPGA_SOURCE_ROLE), 0);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_PERIOD), 0);
	CHECK_EQ(rd64(base + RFPGA_SOURCE_TRIGGERS), 0);
}

/* Two DTPs started before the source get the same images, with complete metadata. */
static void test_stream(void)
{
	struct dtp d = live(0), e = live(1);
	const volatile uint32_t *meta;
	struct rfpga_lock lock = { 0 };
	uint64_t first = 0;
	uint32_t i;

	find_source();
	d.run = 0xbeef;
	d.slots = 4;
	e.slots = 4;
	e.dst_base = 1 << 20;
	e.first_frame = 1000;			/* ignored */
	start(&d);
	start(&e);
	wr(base + RFPGA_SOURCE_ROLE, 3);
	source_start(PERIOD);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE && status(1) == RFPGA_DTP_DONE));
	for (i = 0; i < 16; i++) {
		CHECK(shows_frame(&d, i / 4, i % 4, i));
		CHECK(shows_frame(&e, i / 4, i % 4, i));
		meta = meta_record(&d, i / 4, i % 4);
		first = first ? first : meta64(meta, RFPGA_META_TICKS);
		CHECK_EQ(meta64(meta, RFPGA_META_TICKS), first + i * PERIOD);
		CHECK_EQ(meta64(meta, RFPGA_META_STACK), i / 4);
		CHECK_EQ(meta[RFPGA_META_LENGTH / 4], board.image);
		CHECK_EQ(meta[RFPGA_META_STATUS / 4], 0);
		CHECK_EQ(meta[RFPGA_META_INDEX / 4], 0);
		CHECK_EQ(meta[RFPGA_META_ROLE / 4], 3);
		CHECK_EQ(meta64(meta, RFPGA_META_TRIGGER), i);
		CHECK_EQ(meta[RFPGA_META_RUN / 4], 0xbeef);
		CHECK_EQ(meta[RFPGA_META_RUN / 4 + 1], 0);
		CHECK_EQ(meta64(meta, RFPGA_META_TIME),
			 meta64(meta_record(&e, i / 4, i % 4), RFPGA_META_TIME));
	}
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.run, 0xbeef);
	CHECK_EQ(lock.frame, 15);
	CHECK_EQ(counter(0, RFPGA_DTP_C_LOST), 0);
	CHECK(counter(0, RFPGA_DTP_C_STALL_SOURCE));
	CHECK(counter(0, RFPGA_DTP_FIFO_PEAK) >= 1);
}

/*
 * Members of a group start at the same instant, so they see the same images of a running source at
 * any rate: a run that is no longer than the FIFO loses none.
 */
static void test_group(void)
{
	struct dtp d[2] = { live(0), live(1) };
	uint64_t first, sum, stacks;
	uint32_t i, round, fifo;

	find_source();
	fifo = rd(base + RFPGA_SOURCE_FIFO);
	d[0].images = d[1].images = fifo < 16 ? fifo : 16;
	stacks = (d[0].images + 3) / 4;
	d[0].slots = d[1].slots = 4;
	d[1].dst_base = 1 << 20;
	source_start(board.tick_rate / 1000000 + 1);
	for (round = 0; round < 50 && !failed; round++) {
		program_dtp(&d[0]);
		program_dtp(&d[1]);
		wr(RFPGA_GROUP_START, 3);
		CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE && status(1) == RFPGA_DTP_DONE));
		first = meta64(meta_record(&d[0], 0, 0), RFPGA_META_FRAME);
		for (i = 0; i < d[0].images; i++) {
			CHECK(shows_frame(&d[0], i / 4, i % 4, first + i));
			CHECK(shows_frame(&d[1], i / 4, i % 4, first + i));
		}
		CHECK(told(0, stacks));
		sum = counter(0, RFPGA_DTP_C_EVENTS) + counter(1, RFPGA_DTP_C_EVENTS);
		CHECK_EQ(sum, stacks);
		CHECK_EQ(counter(0, RFPGA_DTP_C_LOST) + counter(1, RFPGA_DTP_C_LOST), 0);
		CHECK_EQ(counter(0, RFPGA_DTP_C_START), counter(1, RFPGA_DTP_C_START));
	}
}

/* One of N: the phase comes first; DTPs started at the same instant get the same images. */
static void test_sampling(void)
{
	struct dtp d = live(0), e = live(1);
	uint32_t i;

	find_source();
	d.slots = e.slots = 4;
	d.live_sampling = 3 | 2 << 16;
	e.live_sampling = 2;
	e.dst_base = 1 << 20;
	start(&d);
	start(&e);
	source_start(PERIOD);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE && status(1) == RFPGA_DTP_DONE));
	for (i = 0; i < 16; i++) {
		CHECK(shows_frame(&d, i / 4, i % 4, 2 + 3 * i));
		CHECK(shows_frame(&e, i / 4, i % 4, 2 * i));
	}
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 47);
	CHECK_EQ(lock_record(1)[RFPGA_LOCK_FRAME / 8], 30);
}

/* A source that does not wait, a DTP that does: images without room are lost, one by one. */
static void test_wait(void)
{
	struct dtp d = live(0);
	uint32_t fifo, i;
	uint64_t last = 0, frame;

	find_source();
	/* the images in the FIFO must not be enough for the rest of the run */
	fifo = rd(base + RFPGA_SOURCE_FIFO);
	if (fifo > 32)
		skip("its FIFO of %u images is longer than the test", fifo);
	d.images = 8 + fifo + 8;
	d.slots = (uint32_t)d.images / 4;
	start(&d);
	give_credit(0, 2 - d.slots);		/* room for two stacks */
	source_start(PERIOD);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_LOST) >= 5 && (status(0) & RFPGA_DTP_WAITING)));
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_FIFO_PEAK), fifo);
	CHECK(counter(0, RFPGA_DTP_C_STALL));
	give_credit(0, 0);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	for (i = 0; i < d.images; i++) {
		frame = meta64(meta_record(&d, i / 4, i % 4), RFPGA_META_FRAME);
		CHECK(shows_frame(&d, i / 4, i % 4, frame));
		CHECK(!i || frame > last);
		last = frame;
	}
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], last);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES) + counter(0, RFPGA_DTP_C_LOST), last + 1);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DROPPED), 0);
}

/* The same with dropped stacks, and with overwritten slots. */
static void test_drop_overwrite(void)
{
	struct dtp d = live(0);
	struct rfpga_lock lock = { 0 };
	uint64_t first;
	uint32_t i;

	find_source();
	d.images = 0;
	d.mode |= RFPGA_MODE_FREERUN | RFPGA_MODE_DROP;
	start(&d);
	source_start(PERIOD);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_DROPPED) >= 2));
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	stop_dtp(0);
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 3);
	CHECK(lock.dropped >= 2);
	/* on a machine that was too slow, images were lost as well */
	first = 8 + 4 * lock.dropped;
	CHECK(lock.frame >= first + 3);
	CHECK(lock.frame <= first + 3 + counter(0, RFPGA_DTP_C_LOST));
	for (i = 0; i < 4; i++) {
		CHECK(shows_frame(&d, 0, i, meta64(meta_record(&d, 0, i), RFPGA_META_FRAME)));
		CHECK(shows_frame(&d, 1, i, meta64(meta_record(&d, 1, i), RFPGA_META_FRAME)));
	}
	CHECK_EQ(meta64(meta_record(&d, 0, 3), RFPGA_META_FRAME), lock.frame);
	CHECK(meta64(meta_record(&d, 1, 3), RFPGA_META_FRAME) <
	      meta64(meta_record(&d, 0, 0), RFPGA_META_FRAME));
	/* no DTP waits for credit */
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
	d.mode &= ~RFPGA_MODE_DROP;
	d.images = 23;
	start(&d);
	source_start(PERIOD);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 4);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_FRAME / 8], 22 + counter(0, RFPGA_DTP_C_LOST));
}

static void test_config(void)
{
	static const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_SOURCE, 3 }, { RFPGA_DTP_SOURCE, 1 << 16 },
		{ RFPGA_DTP_SOURCE, RFPGA_FROM_LIVE | 0xffffu << 16 },
		{ RFPGA_DTP_SAMPLING, 3 | 3u << 16 }, { RFPGA_DTP_SAMPLING, 1u << 16 },
		{ RFPGA_DTP_PERIOD, 1 },
	};
	struct dtp d = live(0);
	unsigned int i;

	find_source();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		program_dtp(&d);
		wr(DTP(0) + bad[i].reg, bad[i].value);
		wr(DTP(0), RFPGA_DTP_START);
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + bad[i].reg);
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	}
	/* sampling does not apply to images in memory */
	d = plain(0);
	d.live_sampling = 2;
	start(&d);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_SAMPLING);
	/* registers of streams from memory are ignored */
	d = live(0);
	program_dtp(&d);
	wr(DTP(0) + RFPGA_DTP_FIRST_INDEX, UINT32_MAX);
	wr(DTP(0) + RFPGA_DTP_INDEX_STEP, UINT32_MAX);
	wr64(DTP(0) + RFPGA_DTP_FIRST_FRAME, UINT64_MAX);
	wr(DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
}

#define NEEDS	.features = RFPGA_FEATURE_META | RFPGA_FEATURE_LOCK

static const struct test tests[] = {
	{ "registers", "start, stop, what a reset leaves", test_registers },
	{ "stream", "every image with its metadata", test_stream, NEEDS, .dtps = 2 },
	{ "sampling", "one of N, with a phase", test_sampling, NEEDS, .dtps = 2 },
	{ "group", "members of a group see the same images of a running source", test_group,
	  NEEDS | RFPGA_FEATURE_GROUP | RFPGA_FEATURE_MSIX, .dtps = 2 },
	{ "wait", "a waiting DTP loses images and counts them", test_wait, NEEDS },
	{ "drop", "dropped stacks, and overwritten slots", test_drop_overwrite,
	  NEEDS | RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_DROP },
	{ "config", "refused: missing sources, and invalid sampling", test_config, NEEDS },
};

const struct suite source_suite = SUITE("source", tests);
