// SPDX-License-Identifier: GPL-2.0-only
/* Groups of DTPs whose stacks make one event. */
#include "dtp.h"

static void group_run(uint64_t stacks)
{
	static const uint32_t members[] = { 0, 1, 3 };
	struct dtp d[3];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		d[i] = plain(members[i]);
		d[i].group = 0xb;
		d[i].vector = 2;
		d[i].images = stacks * 4;
		d[i].slots = (uint32_t)stacks;
		d[i].dst_base = (2ull << 20) * i;
		d[i].mode |= i == 1 ? RFPGA_MODE_FREERUN : 0;
		d[i].period = i == 1 ? board.tick_rate / 50000 : 0;
		start(&d[i]);
		CHECK(i == 2 || silent(2));
	}
	CHECK(told(2, stacks));
	CHECK(EVENTUALLY(idle()));
	CHECK(silent(2));
	for (i = 0; i < 3; i++) {
		sum += counter(members[i], RFPGA_DTP_C_EVENTS);
		CHECK_EQ(lock_record(members[i])[0], stacks);
		CHECK(same_stack(&d[i], stacks - 1));
	}
	CHECK_EQ(sum, stacks);
}

static void test_group(void)
{
	group_run(20);
	group_run(20);		/* what is left of the first run must not count */
	group_run(3);
}

static struct dtp member(uint32_t n, uint32_t group)
{
	struct dtp d = plain(n);

	d.group = group;
	d.vector = 2;
	d.slots = 4;
	d.dst_base = (2ull << 20) * n;
	return d;
}

/* What DTPs have sent that were no members then. */
static void test_group_strangers(void)
{
	struct dtp d = member(1, 0), other = member(0, 3);

	run_to(&d, RFPGA_DTP_DONE);
	CHECK(told(2, 4));
	d = member(3, 0xa);		/* another group, which has no 1 yet */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(silent(2));
	group_run(20);
	/* 1 is in the group {0, 1, 3}, not in this one */
	run_to(&other, RFPGA_DTP_DONE);
	CHECK(silent(2));
	d = member(1, 3);		/* joins, though it took part elsewhere */
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(told(2, 4));
}

/* Members that left, and others that are done: the next run has an event when all have sent. */
static void test_group_again(void)
{
	struct dtp a = member(0, 3), b = member(1, 3), bad = a, endless = a;
	int how;

	bad.first = 7;			/* not valid */
	endless.images = 0;
	for (how = 0; how < 3; how++) {
		if (how < 2)
			run_to(&b, RFPGA_DTP_DONE);
		run_to(how < 2 ? &bad : &endless, how < 2 ? RFPGA_DTP_FAULTED :
		       RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
		if (how)
			wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
		CHECK(EVENTUALLY(idle()));
		CHECK(silent(2));
		run_to(how < 2 ? &a : &b, RFPGA_DTP_DONE);
		CHECK(silent(2));
		run_to(how < 2 ? &b : &a, RFPGA_DTP_DONE);
		CHECK(told(2, 4));
	}
}

#define NEEDS	.dtps = 4, .vectors = 3, \
		.features = RFPGA_FEATURE_GROUP | RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | \
			    RFPGA_FEATURE_FREERUN

static const struct test tests[] = {
	{ "event", "one event for a group", test_group, NEEDS },
	{ "strangers", "a group does not count strangers", test_group_strangers, NEEDS },
	{ "again", "a group begins anew", test_group_again, NEEDS },
};

const struct suite group_suite = SUITE("group", tests);
