// SPDX-License-Identifier: GPL-2.0-only
/* What is said when a stack is complete. */
#include "dtp.h"

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
 * Who sees the lock record, or has the interrupt, finds all of the payload: looked at in the
 * moment when it is there, for some stacks one after the other.
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
		if (failed)
			return;
		events_so_far(0);
		memset(host, CANARY, d.dst_slot);
		give_credit(0, (uint32_t)k + 1);
	}
}

static const struct test tests[] = {
	{ "lock", "lock records", test_lock,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
	{ "order", "payload, then the lock record, then the interrupt", test_order,
	  .features = RFPGA_FEATURE_LOCK | RFPGA_FEATURE_MSIX },
};

const struct suite event_suite = SUITE("event", tests);
