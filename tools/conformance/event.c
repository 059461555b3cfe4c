// SPDX-License-Identifier: GPL-2.0-only
/* What is said when a stack is complete. */
#include "dtp.h"

static void test_lock(void)
{
	struct dtp d = plain(2);
	uint64_t events = 0, before, k;
	struct rfpga_lock lock = { 0 };
	int i;

	d.mode |= RFPGA_MODE_FLUSH;
	d.slots = 1;
	d.images = 0;
	before = rd64(RFPGA_TICKS);
	start(&d);
	for (k = 1; k <= 20; k++) {
		CHECK(EVENTUALLY(lock_record(2)[0] == k));
		CHECK(same_stack(&d, k - 1));
		CHECK(EVENTUALLY(rfpga_lock_read(lock_record(2), &lock)));
		CHECK_EQ(lock.stacks, k);
		CHECK_EQ(lock.images, 4 * k);
		CHECK(lock.ticks >= before);
		before = lock.ticks;
		for (i = 4; i < 7; i++)
			CHECK_EQ(lock_record(2)[i], 0);
		give_credit(2, (uint32_t)k);
	}
	CHECK(wait_event(0, &events));
	CHECK(untouched(LOCKS, LOCKS + 128));
	CHECK(untouched(LOCKS + 192, LOCKS + 4096));
}

static const struct test tests[] = {
	{ "lock", "lock records", test_lock },
};

const struct suite event_suite = SUITE("event", tests);
