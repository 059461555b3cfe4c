// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pacing of stacks: credit, periods, dropped stacks. */
#include "conformance/dtp.h"

#include <string.h>

static void test_credit(void)
{
	struct dtp d = plain(0);
	uint64_t k;

	d.slots = 3;
	d.images = 0;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(told(0, 3));
	pass_us(5000);
	CHECK(silent(0));
	for (k = 1; k <= 50; k++) {
		memset(host + (k - 1) % 3 * d.dst_slot, CANARY, d.dst_slot);
		give_credit(0, (uint32_t)k);
		CHECK(told(0, 1));
		CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), k + 3);
		CHECK(same_stack(&d, k + 2));
	}
	/* also by a message, and in steps of more than one */
	wr(DTP(0) + RFPGA_DTP_C_CREDIT, 99);
	CHECK_EQ(counter(0, RFPGA_DTP_C_CREDIT) & UINT32_MAX, 50);
	give_credit(0, 53);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 56));
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	/* credit for stacks not yet sent does not count */
	give_credit(0, 1000);
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 56);
	stop_dtp(0);
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	/* it waited for us nearly all of the time */
	CHECK(counter(0, RFPGA_DTP_C_STALL) >= board.tick_rate / 125);
}

/* Credit of the previous run that arrives during the next run. */
static void test_stale_credit(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	d.run = 7;
	start(&d);
	CHECK_EQ(doorbell_read64(DOORBELL(0) + RFPGA_DB_TAGGED), 7ull << 32);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	doorbell_write64(DOORBELL(0) + RFPGA_DB_TAGGED, 1 | 7ull << 32);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	stop_dtp(0);
	d.run = 8;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	doorbell_write64(DOORBELL(0) + RFPGA_DB_TAGGED, 2 | 7ull << 32);
	give_credit(0, 2);			/* this word does not count either */
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_CREDIT), 0);
	/* in two halves, the lower one first: the write of the upper half counts */
	doorbell_write(DOORBELL(0) + RFPGA_DB_TAGGED, 1);
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	doorbell_write(DOORBELL(0) + RFPGA_DB_TAGGED + 4, 8);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	stop_dtp(0);
}

static void test_credit_wraps(void)
{
	struct dtp d = plain(0);

	d.first_stack = board.offset_bits > 32 ? 0x1fffffffeull : 0xfffffffe;
	d.images = 0;
	start(&d);
	CHECK_EQ(doorbell_read(DOORBELL(0)), 0xfffffffe);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	give_credit(0, 0xffffffff);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 5));
	CHECK_EQ(lock_record(0)[0], d.first_stack + 5);
	CHECK(same_stack(&d, d.first_stack + 4));
}

static void test_freerun(void)
{
	struct dtp d = plain(0);

	d.mode |= RFPGA_MODE_FREERUN;
	d.images = 40;
	d.period = board.tick_rate / 5000;	/* 200 us */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 10);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 8);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_OVERRUNS / 8], 8);
	CHECK(counter(0, RFPGA_DTP_C_STOP) - counter(0, RFPGA_DTP_C_START) >= 39 * d.period);
	/* as fast as possible, with credit all the time */
	d.period = 0;
	d.slots = 10;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	/* a nearly endless period can be stopped */
	d.period = most(board.offset_bits);
	if (d.period / 10 < board.tick_rate)
		skip("PERIOD is at most 10 s: stopping a nearly endless period was not tested");
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) == 1));
	stop_board();
}

static struct dtp dropping(void)
{
	struct dtp d = plain(0);

	d.mode |= RFPGA_MODE_FREERUN | RFPGA_MODE_DROP | RFPGA_MODE_META;
	d.period = board.tick_rate / 10000;	/* 100 us */
	d.meta = 1024;
	return d;
}

/* A free-running source: stacks without a slot are dropped whole; frame numbers show which. */
static void test_drop_stacks(void)
{
	struct dtp d = dropping();
	const volatile uint32_t *meta;
	struct rfpga_lock lock;
	uint64_t frame;
	uint32_t i;

	d.images = 38;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_DROPPED), 8);
	CHECK_EQ(counter(0, RFPGA_DTP_C_OVERRUNS), 0);
	CHECK(told(0, 2));
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK(same_stack(&d, 0) && same_stack(&d, 1));
	for (i = 0; i < 8; i++) {
		meta = meta_record(&d, i / 4, i % 4);
		CHECK_EQ(meta64(meta, RFPGA_META_FRAME), i);
		CHECK_EQ(meta64(meta, RFPGA_META_STACK), i / 4);
		CHECK(meta64(meta, RFPGA_META_TICKS) >=
		      counter(0, RFPGA_DTP_C_START) + i * d.period);
		CHECK_EQ(meta[RFPGA_META_LENGTH / 4], board.image);
		CHECK_EQ(meta[RFPGA_META_STATUS / 4], 0);
		CHECK_EQ(meta[RFPGA_META_INDEX / 4], i % d.images_in_set);
	}
	CHECK(untouched(LOCKS + d.meta + 8 * RFPGA_META_SIZE, LOCKS + 4096));
	/* the next stack uses a released slot: numbers of stacks have no gaps, frames do */
	d.images = 0;
	d.first_frame = 100;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_DROPPED) >= 3));
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	stop_board();
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 3);
	CHECK(lock.dropped >= 3);
	meta = meta_record(&d, 0, 0);
	frame = meta64(meta, RFPGA_META_FRAME);
	CHECK_EQ(meta64(meta, RFPGA_META_STACK), 2);
	CHECK_EQ(frame, 100 + 8 + 4 * lock.dropped);
	CHECK_EQ(meta[RFPGA_META_INDEX / 4], (frame - 100) % d.images_in_set);
	CHECK(shows(&d, 0, 0, frame - 100));
}

/* Invalid settings of a free-running source, and invalid places of metadata. */
static void test_drop_config(void)
{
	const struct { uint32_t reg, value; } bad[] = {
		{ RFPGA_DTP_MODE, RFPGA_MODE_DROP }, { RFPGA_DTP_PERIOD, 0 },
		{ RFPGA_DTP_META_OFFSET, 32 }, { RFPGA_DTP_META_FIRST, board.entries },
		{ RFPGA_DTP_META_COUNT, 0 },
		{ RFPGA_DTP_FIRST_FRAME + 4, too_wide(board.offset_bits) },
	};
	struct dtp d = dropping();
	unsigned int i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (bad[i].reg == RFPGA_DTP_FIRST_FRAME + 4 && !bad[i].value)
			continue;
		program_dtp(&d);
		wr(DTP(0) + bad[i].reg, bad[i].value);
		wr(DTP(0), RFPGA_DTP_START);
		check_refused(RFPGA_FAULT_CONFIG);
		CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
		CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), rd64(RFPGA_FAULT_ADDR));
		if (bad[i].reg != RFPGA_DTP_META_COUNT)
			CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + (bad[i].reg & ~4u));
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	}
	if (board.features & RFPGA_FEATURE_GROUP) {
		program_dtp(&d);
		wr(RFPGA_GROUP_START, 1);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_MODE);
	}
	/* the payload arrives, but its metadata have no place */
	d.meta = 4096;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), 4096);
	CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
	/* another DTP had the board's last fault; the DTP keeps its own */
	d = plain(1);
	d.first = 2;
	start(&d);
	CHECK(EVENTUALLY(status(1) & RFPGA_DTP_FAULTED));
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_ADDR), 4096);
	CHECK_EQ(counter(1, RFPGA_DTP_FAULT_ADDR), 0);
}

static void judge(uint64_t stack, uint32_t verdict, uint32_t run)
{
	doorbell_write64(DOORBELL(0) + RFPGA_DB_VERDICT, RFPGA_VERDICT(stack, verdict, run));
}

/* A verdict counts once, for a stack that was sent, even after the run; gaps are reported. */
static void test_verdict(void)
{
	struct dtp d = plain(0);
	uint64_t first, before = rd64(RFPGA_TICKS);

	d.mode |= RFPGA_MODE_VERDICT;
	d.run = 0x10007;
	d.slots = 4;
	d.images = 0;
	d.bunch = 1;
	d.first_stack = most(board.offset_bits < 34 ? 8 : 32) - 1;
	first = d.first_stack;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK_EQ(counter(0, RFPGA_DTP_JUDGED), first);
	judge(first, RFPGA_VERDICT_SUCCESS, d.run);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_SUCCESSES) == 1));
	CHECK(counter(0, RFPGA_DTP_SUCCESS_TICKS) > before);
	CHECK_EQ(counter(0, RFPGA_DTP_FAILURE_TICKS), 0);
	/* ignored: repeated, of another run, of a later stack, and invalid ones */
	judge(first, RFPGA_VERDICT_FAILURE, d.run);
	pass_us(3000);
	judge(first + 1, RFPGA_VERDICT_FAILURE, d.run + 1);
	pass_us(3000);
	judge(first + 4, RFPGA_VERDICT_FAILURE, d.run);
	pass_us(3000);
	judge(first + 1, 3, d.run);
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_FAILURES), 0);
	/* the lower half first */
	doorbell_write64(DOORBELL(0) + RFPGA_DB_VERDICT, RFPGA_VERDICT(0, 0, 0));
	pass_us(3000);
	doorbell_write(DOORBELL(0) + RFPGA_DB_VERDICT,
		       (uint32_t)RFPGA_VERDICT(first + 2, RFPGA_VERDICT_FAILURE, 0));
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_FAILURES), 0);
	doorbell_write(DOORBELL(0) + RFPGA_DB_VERDICT + 4, d.run);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_FAILURES) == 1));
	CHECK_EQ(counter(0, RFPGA_DTP_C_UNJUDGED), 1);
	CHECK_EQ(counter(0, RFPGA_DTP_JUDGED), first + 3);
	CHECK(counter(0, RFPGA_DTP_FAILURE_TICKS) >= counter(0, RFPGA_DTP_SUCCESS_TICKS));
	stop_dtp(0);
	/* the upper half is set, so the lower one is enough */
	doorbell_write(DOORBELL(0) + RFPGA_DB_VERDICT,
		       (uint32_t)RFPGA_VERDICT(first + 3, RFPGA_VERDICT_SUCCESS, 0));
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_SUCCESSES) == 2));
	/* the next run starts with none; without the mode none counts */
	d.mode &= ~RFPGA_MODE_VERDICT;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	judge(first, RFPGA_VERDICT_SUCCESS, d.run);
	pass_us(3000);
	CHECK_EQ(counter(0, RFPGA_DTP_C_SUCCESSES) + counter(0, RFPGA_DTP_C_UNJUDGED), 0);
	stop_dtp(0);
}

static const struct test tests[] = {
	{ "credit", "never more than SLOTS ahead of the credit", test_credit,
	  .features = RFPGA_FEATURE_MSIX },
	{ "credit-wraps", "credit wraps at 32 bits", test_credit_wraps,
	  .features = RFPGA_FEATURE_LOCK },
	{ "stale-credit", "credit of the run before", test_stale_credit },
	{ "verdict", "success and failure of stacks are counted once", test_verdict,
	  .features = RFPGA_FEATURE_VERDICT },
	{ "freerun", "free-running: period and overruns", test_freerun,
	  .features = RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_LOCK },
	{ "drop", "free-running: stacks without a slot are dropped", test_drop_stacks,
	  .features = RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_DROP | RFPGA_FEATURE_META |
		      RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
	{ "drop-config", "refused: dropping, metadata", test_drop_config, .dtps = 2, .entries = 3,
	  .features = RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_DROP | RFPGA_FEATURE_META |
		      RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
};

const struct suite pacing_suite = SUITE("pacing", tests);
