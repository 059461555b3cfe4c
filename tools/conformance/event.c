// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events at the end of a stack. */
#include "conformance/dtp.h"

#include <string.h>

static void test_lock(void)
{
	struct dtp d = plain(board.dtps - 1);
	uint64_t events = 0, before, k;
	struct rfpga_lock lock = { 0 };

	if (board.features & RFPGA_FEATURE_FLUSH)
		d.mode |= RFPGA_MODE_FLUSH;
	d.slots = 1;
	d.run = 9;
	d.first_frame = 100;
	d.images = 0;
	before = rd64(RFPGA_TICKS);
	start(&d);
	for (k = 1; k <= 20; k++) {
		CHECK(EVENTUALLY(lock_record(d.n)[0] == k));
		CHECK(same_stack(&d, k - 1));
		CHECK(EVENTUALLY(rfpga_lock_read(lock_record(d.n), &lock)));
		CHECK_EQ(lock.stacks, k);
		CHECK_EQ(lock.images, 4 * k);
		CHECK(lock.ticks >= before);
		before = lock.ticks;
		CHECK_EQ(lock.dropped, 0);
		CHECK_EQ(lock.run, 9);
		CHECK_EQ(lock.frame, 99 + 4 * k);
		doorbell_write64(DOORBELL(d.n) + RFPGA_DB_TAGGED, k | 9ull << 32);
	}
	CHECK(wait_event(0, &events));
	CHECK(untouched(LOCKS, LOCKS + d.lock));
	CHECK(untouched(LOCKS + d.lock + RFPGA_LOCK_SIZE, LOCKS + 4096));
}

/*
 * A reader of the lock record or the interrupt finds all of the payload: checked at the moment of
 * arrival, for several stacks.
 */
static void test_order(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0, k;

	d.slots = 1;
	d.images = 0;
	start(&d);
	for (k = 0; k < 50; k++) {
		if (k % 2)
			CHECK(EVENTUALLY(lock_record(0)[RFPGA_LOCK_STACKS / 8] == k + 1));
		else
			CHECK(wait_event(0, &events));
		CHECK(same_stack(&d, k));
		CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], k + 1);
		if (k % 2)	/* do not mistake it for the next record */
			CHECK(wait_event(0, &events));
		if (failed)
			return;
		memset(host, CANARY, d.dst_slot);
		give_credit(0, (uint32_t)k + 1);
	}
}

/*
 * Read records as fast as they arrive: each record that is not being written belongs to one
 * stack.
 */
static void test_record(void)
{
	struct dtp d = plain(0);
	struct rfpga_lock lock;
	uint64_t last = 0, end, late;

	d.mode = RFPGA_MODE_FREERUN | RFPGA_MODE_LOCK;
	d.height = 1;
	d.images = 0;
	d.bunch = 3;
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[RFPGA_LOCK_STACKS / 8] != CANARY * 0x0101010101010101ull));
	end = now_us() + 100000 * (uint64_t)board.slowness;
	/* on a busy machine many reads are torn */
	late = end + patience_us();
	while (!failed && (now_us() < end || (!last && now_us() < late))) {
		if (!rfpga_lock_read(lock_record(0), &lock))
			continue;
		CHECK_EQ(lock.images, 3 * lock.stacks);
		CHECK_EQ(lock.overruns, lock.stacks > 2 ? lock.stacks - 2 : 0);
		CHECK(lock.stacks >= last);
		last = lock.stacks;
	}
	CHECK(last);
}

/* Each vector that MODE names is sent, for each DTP. */
static void test_vectors(void)
{
	uint32_t i, j;

	for (i = 0; i < board.vectors || i < board.dtps; i++) {
		struct dtp d = plain(i % board.dtps);

		d.vector = i % board.vectors;
		d.images = d.bunch;
		run_to(&d, RFPGA_DTP_DONE);
		CHECK_EQ(counter(d.n, RFPGA_DTP_C_EVENTS), 1);
		CHECK(told(d.vector, 1));
		for (j = 0; j < board.vectors; j++)
			CHECK_EQ(events_so_far(j), 0);
	}
}

/* Parts that MODE leaves out are not sent; without MSI-X Enable an event sends nothing. */
static void test_modes(void)
{
	struct dtp d = plain(0);

	d.mode = 0;
	d.slots = 4;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(silent(0));
	CHECK(untouched(LOCKS, LOCKS + 4096));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 4);
	d.mode = RFPGA_MODE_MSIX;
	target->msix(false);
	run_to(&d, RFPGA_DTP_DONE);
	target->msix(true);
	CHECK(silent(0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(told(0, 4));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 4);
}

/* The metadata of all images arrive before their stack, in a stream that waits for credit. */
static void test_meta(void)
{
	struct dtp d = plain(0);
	const volatile uint32_t *meta;
	uint64_t k, ticks = 0;
	uint32_t i;

	d.mode |= RFPGA_MODE_META;
	d.meta = 1024;
	d.images = 0;
	d.slots = 1;
	d.first_frame = board.offset_bits > 33 ? 1ull << 33 : most(board.offset_bits) - 5;
	d.first_stack = 3;
	d.sampling = 3;
	start(&d);
	for (k = 0; k < 20 && !failed; k++) {
		CHECK(EVENTUALLY(lock_record(0)[RFPGA_LOCK_STACKS / 8] == k + 4));
		for (i = 0; i < d.bunch; i++) {
			meta = meta_record(&d, 0, i);
			CHECK_EQ(meta64(meta, RFPGA_META_FRAME), d.first_frame + 4 * k + i);
			CHECK_EQ(meta64(meta, RFPGA_META_STACK), k + 3);
			CHECK_EQ(meta[RFPGA_META_LENGTH / 4], board.image);
			CHECK_EQ(meta[RFPGA_META_STATUS / 4], 0);
			CHECK_EQ(meta[RFPGA_META_INDEX / 4],
				 ((k + 3) * 4 + i) * 3 % d.images_in_set);
			CHECK(meta64(meta, RFPGA_META_TICKS) >= ticks);
			ticks = meta64(meta, RFPGA_META_TICKS);
		}
		CHECK(untouched(LOCKS + RFPGA_LOCK_SIZE, LOCKS + d.meta));
		CHECK(untouched(LOCKS + d.meta + 4 * RFPGA_META_SIZE, LOCKS + 4096));
		give_credit(0, (uint32_t)k + 4);
	}
}

static const struct test tests[] = {
	{ "lock", "lock records", test_lock,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
	{ "order", "payload, then the lock record, then the interrupt", test_order,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
	{ "record", "a lock record is of one stack", test_record,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_FREERUN },
	{ "meta", "metadata of each image", test_meta,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_META },
	{ "vectors", "each interrupt vector", test_vectors, .features = RFPGA_FEATURE_MSIX },
	{ "modes", "only events that MODE and MSI-X Enable select", test_modes,
	  .features = RFPGA_FEATURE_MSIX },
};

const struct suite event_suite = SUITE("event", tests);
