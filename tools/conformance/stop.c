// SPDX-License-Identifier: LGPL-2.1-or-later
/* The end of a run, for any reason, and the next run. */
#include "conformance/dtp.h"

#include <string.h>

static void test_stop(void)
{
	struct dtp d = large(1024), e = plain(1);
	uint64_t us, limit = board.stop_time * (uint64_t)board.slowness, worst = 0, bytes;
	const bool two = board.dtps > 1;
	int i;

	d.mode = e.mode = RFPGA_MODE_FREERUN;
	d.images = e.images = 0;
	for (i = 0; i < 20; i++) {
		start(&d);
		if (two)
			start(&e);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		us = now_us();
		stop_board();
		us = now_us() - us;
		worst = us > worst ? us : worst;
		bytes = rd64(RFPGA_BYTES);
		memset(host, CANARY, 4 << 20);
		pass_us(500);
		CHECK_EQ(rd64(RFPGA_BYTES), bytes);
		CHECK(untouched(0, 4 << 20));
		CHECK_EQ(rd(RFPGA_STOPS), i + 1);
		CHECK_EQ(status(0) | (two ? status(1) : 0), 0);
	}
	note("stop to idle: at most %llu us, register access included; STOP_TIME is %llu",
	     (unsigned long long)worst, (unsigned long long)limit);
	wr(DTP(0), RFPGA_DTP_STOP);	/* a stop without a run counts too */
	CHECK_EQ(rd(RFPGA_STOPS), 21);
}

static void clear_entry(void)
{
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, 0);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0);
}

static void validate_entry(void)
{
	wr(ENTRY(0) + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
}

/* After a cleared entry, the first read that is answered ends its use. */
static void test_entry_cleared(void)
{
	struct dtp d = plain(0);

	take_away(&d, clear_entry, validate_entry, RFPGA_FAULT_ENTRY);
}

static void test_restart(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	/* a running DTP keeps its configuration, and its status shows that START is ignored */
	wr(DTP(0) + RFPGA_DTP_WIDTH, 0);
	CHECK_EQ(rd(DTP(0) + RFPGA_DTP_WIDTH), d.width);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	wr(DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, RFPGA_DTP_IGNORED);
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK_EQ(status(0) & RFPGA_DTP_FAULTED, 0);
	wr(DTP(0), RFPGA_DTP_STOP);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_IGNORED));
	d.first_stack = 3;
	start(&d);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	CHECK_EQ(doorbell_read(DOORBELL(0)), 3);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	CHECK_EQ(lock_record(0)[0], 5);
	CHECK(same_stack(&d, 4));
}

/* Of two running DTPs, only the one with STOP stops. */
static void test_stop_one(void)
{
	struct dtp d = plain(0), other = plain(1);

	d.images = 0;
	other.images = 0;
	other.dst_base = 1 << 20;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	run_to(&other, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	wr(DTP(0), RFPGA_DTP_STOP);
	CHECK(EVENTUALLY(!status(0)));
	CHECK_EQ(status(1), RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(!idle());
	give_credit(0, 1);
	give_credit(1, 1);
	CHECK(EVENTUALLY(counter(1, RFPGA_DTP_C_STACKS) == 3));
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	CHECK(same_stack(&other, 2));
	stop_board();
	CHECK_EQ(rd(RFPGA_STOPS), 2);
}

/* START clears the results of the previous run; together with STOP it acts as STOP. */
static void test_states(void)
{
	struct dtp d = plain(0), bad = plain(0);

	d.slots = 4;
	run_to(&d, RFPGA_DTP_DONE);
	bad.width = 0;
	run_to(&bad, RFPGA_DTP_FAULTED);
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_FAULTS), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 4);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	wr(DTP(0), RFPGA_DTP_START | RFPGA_DTP_STOP);
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, 0);
	CHECK_EQ(rd64(RFPGA_BYTES), 0);
	/* no event for an incomplete stack */
	d.mode |= RFPGA_MODE_FREERUN;
	d.period = board.tick_rate / 10;	/* slow enough to be stopped */
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) >= 1));
	events_so_far(0);
	stop_dtp(0);
	if (counter(0, RFPGA_DTP_C_STACKS))
		skip("the stack was complete before the stop came");
	CHECK(silent(0));
}

/* An image that STOP cuts has no metadata record; an image sent whole has one. */
static void test_metadata(void)
{
	enum { RECORDS = 32 };
	struct dtp d = plain(0);
	const volatile uint32_t *meta;
	const uint32_t lines = d.height;
	uint64_t images, m;
	int i;

	d.mode = RFPGA_MODE_FREERUN | RFPGA_MODE_META;
	d.bunch = RECORDS;
	d.slots = 1;
	d.dst_image = 0;
	d.images = 0;
	d.meta = 2048;
	for (i = 0; i < 200 && !failed; i++) {
		/* short images often end, long images are often cut in the middle */
		d.height = i % 2 || lines < 4 ? 1 : 4;
		memset(host + LOCKS + d.meta, CANARY, RECORDS * RFPGA_META_SIZE);
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		stop_dtp(0);
		images = counter(0, RFPGA_DTP_C_IMAGES);
		CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS) / d.height, images);
		for (m = images < RECORDS ? 0 : images - RECORDS; m < images; m++) {
			meta = meta_record(&d, 0, m % RECORDS);
			CHECK_EQ(meta64(meta, RFPGA_META_FRAME), m);
			CHECK_EQ(meta64(meta, RFPGA_META_STACK), m / RECORDS);
			CHECK_EQ(meta[RFPGA_META_LENGTH / 4], d.height * d.width * d.pixel);
			CHECK_EQ(meta[RFPGA_META_STATUS / 4], 0);
		}
		if (images < RECORDS)
			CHECK(untouched(LOCKS + d.meta + images * RFPGA_META_SIZE, LOCKS + 4096));
	}
}

static const struct test tests[] = {
	{ "silence", "stop, and then silence", test_stop,
	  .features = RFPGA_FEATURE_FREERUN },
	{ "entry", "an entry cleared during its use", test_entry_cleared,
	  .features = RFPGA_FEATURE_FREERUN },
	{ "one", "one DTP stops, another one goes on", test_stop_one, .dtps = 2 },
	{ "states", "registers that START clears, and stacks that STOP leaves out", test_states,
	  .features = RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_MSIX },
	{ "metadata", "which images have a record when a stop comes", test_metadata,
	  .features = RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_META },
	{ "restart", "start, stop and resume", test_restart,
	  .features = RFPGA_FEATURE_LOCK },
};

const struct suite stop_suite = SUITE("stop", tests);
