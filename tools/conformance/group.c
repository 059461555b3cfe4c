// SPDX-License-Identifier: LGPL-2.1-or-later
/* Groups of DTPs: members start at the same instant, and their stacks share events. */
#include "conformance/dtp.h"

#define VECTOR	2
#define WAITS	(RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING)

static struct dtp member(uint32_t n)
{
	struct dtp d = plain(n);

	d.vector = VECTOR;
	d.slots = 4;
	d.dst_base = (2ull << 20) * n;
	return d;
}

static void start_group(const struct dtp *d, unsigned int count)
{
	uint32_t members = 0;
	unsigned int i;

	for (i = 0; i < count; i++) {
		program_dtp(&d[i]);
		members |= 1u << d[i].n;
	}
	wr(RFPGA_GROUP_START, members);
}

/*
 * The DTP has sent @stacks stacks, and then reaches @status, which it did not have while it sent
 * the last one. So its interrupt, if any, has been sent.
 */
static bool comes_to(uint32_t n, uint32_t end, uint64_t stacks)
{
	return EVENTUALLY(counter(n, RFPGA_DTP_C_STACKS) == stacks && status(n) == end);
}

static void group_run(uint64_t stacks)
{
	static const uint32_t members[] = { 0, 1, 3 };
	struct dtp d[3];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < 3; i++) {
		d[i] = member(members[i]);
		d[i].images = stacks * 4;
		d[i].slots = (uint32_t)stacks;
		d[i].dst_base = (2ull << 20) * i;
	}
	d[1].mode |= RFPGA_MODE_FREERUN;
	d[1].period = board.tick_rate / 50000;
	d[2].first_stack = 7;
	start_group(d, 3);
	for (i = 0; i < 3; i++) {
		CHECK(comes_to(members[i], RFPGA_DTP_DONE, stacks));
		sum += counter(members[i], RFPGA_DTP_C_EVENTS);
		CHECK_EQ(lock_record(members[i])[0], d[i].first_stack + stacks);
		CHECK(same_stack(&d[i], d[i].first_stack + stacks - 1));
		CHECK_EQ(counter(members[i], RFPGA_DTP_C_START), counter(0, RFPGA_DTP_C_START));
	}
	CHECK(told(VECTOR, stacks));
	CHECK(silent(VECTOR));
	CHECK_EQ(sum, stacks);
}

static void test_group(void)
{
	group_run(20);
	group_run(20);		/* leftovers of the first run must not count */
	group_run(3);
}

/* A member that cannot start keeps all others from starting; they stay unchanged. */
static void test_group_none(void)
{
	struct dtp d[3] = { member(0), member(1), member(2) };

	run_to(&d[0], RFPGA_DTP_DONE);
	CHECK(told(VECTOR, 4));
	program_dtp(&d[1]);
	wr(RFPGA_GROUP_START, 3 | 1u << board.dtps);	/* one that does not exist */
	wr(RFPGA_GROUP_START, 0);
	CHECK_EQ(rd(RFPGA_GROUP_START), 0);
	CHECK_EQ(status(1), 0);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);

	d[1].width = 0;
	d[2].mode = RFPGA_MODE_FREERUN | RFPGA_MODE_DROP;
	d[2].period = board.tick_rate / 100000;
	start_group(d, 3);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 4);
	CHECK_EQ(status(1) | status(2), RFPGA_DTP_FAULTED);
	CHECK_EQ(counter(1, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	CHECK_EQ(counter(1, RFPGA_DTP_FAULT_ADDR), DTP(1) + RFPGA_DTP_WIDTH);
	CHECK_EQ(counter(2, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_CONFIG);
	CHECK_EQ(counter(2, RFPGA_DTP_FAULT_ADDR), DTP(2) + RFPGA_DTP_MODE);
	CHECK_EQ(rd64(RFPGA_FAULTS), 2);
	/* alone it may drop */
	d[2].images = 0;
	start(&d[2]);
	CHECK_EQ(status(2) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	wr(DTP(2), RFPGA_DTP_STOP);

	d[1] = member(1);
	d[1].images = 0;
	run_to(&d[1], WAITS);
	CHECK(told(VECTOR, 4));
	start_group(d, 2);
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(status(1), WAITS | RFPGA_DTP_IGNORED);
	/* it goes on alone */
	give_credit(1, 1);
	CHECK(comes_to(1, WAITS | RFPGA_DTP_IGNORED, 5));
	CHECK(told(VECTOR, 1));
}

/* A member several stacks ahead has sent them without events: the others catch up. */
static void test_group_ahead(void)
{
	struct dtp d[2] = { member(0), member(1) };
	uint32_t k;

	d[1].slots = 1;
	d[1].images = 0;
	start_group(d, 2);
	CHECK(comes_to(0, RFPGA_DTP_DONE, 4));
	for (k = 1; k <= 4; k++) {
		CHECK(comes_to(1, WAITS, k));
		CHECK(told(VECTOR, 1));
		give_credit(1, k);
	}
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS) + counter(1, RFPGA_DTP_C_EVENTS), 4);
	/* no stack of the first member is open */
	CHECK(comes_to(1, WAITS, 5));
	CHECK(silent(VECTOR));
	/* it restarts alone: that is another run, and the group has ended */
	run_to(&d[0], RFPGA_DTP_DONE);
	CHECK(told(VECTOR, 4));
	give_credit(1, 5);
	CHECK(comes_to(1, WAITS, 6));
	CHECK(silent(VECTOR));
	/* and a group of other members does not count it */
	d[1] = member(2);
	start_group(d, 2);
	CHECK(comes_to(0, RFPGA_DTP_DONE, 4) && comes_to(2, RFPGA_DTP_DONE, 4));
	CHECK(told(VECTOR, 4));
}

/*
 * After a member stops or faults, the others go on without events, even for stacks that it had
 * completed early.
 */
static void test_group_left(void)
{
	struct dtp d[2] = { member(0), member(1) };
	int fault;

	d[0].first = 2;
	d[1].slots = 1;
	d[0].images = d[1].images = 0;
	for (fault = 0; fault < 2; fault++) {
		set_entry(2, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
		start_group(d, 2);
		CHECK(comes_to(0, WAITS, 4) && comes_to(1, WAITS, 1));
		CHECK(told(VECTOR, 1));
		if (fault)
			set_entry(2, 0, 0, 0);
		else
			wr(DTP(0), RFPGA_DTP_STOP);
		give_credit(0, 1);
		CHECK(EVENTUALLY(status(0) == (fault ? RFPGA_DTP_FAULTED : 0)));
		give_credit(1, 1);
		CHECK(comes_to(1, WAITS, 2));
		CHECK_EQ(lock_record(1)[0], 2);
		CHECK(silent(VECTOR));
		stop_dtp(1);
	}
	/* those stacks do not count for the next group */
	set_entry(2, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
	d[0].images = 4;
	d[1].slots = 4;
	start_group(d, 2);
	CHECK(comes_to(0, RFPGA_DTP_DONE, 1) && comes_to(1, WAITS, 4));
	CHECK(told(VECTOR, 1));
	stop_board();
	/* alone it sends events again */
	run_to(&d[1], WAITS);
	CHECK(told(VECTOR, 4));
}

#define NEEDS	.dtps = 4, .vectors = 3, \
		.features = RFPGA_FEATURE_GROUP | RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | \
			    RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_DROP

static const struct test tests[] = {
	{ "event", "a group starts as one, and has one event", test_group, NEEDS },
	{ "none", "one that cannot start keeps its group from starting", test_group_none, NEEDS },
	{ "ahead", "members are ahead of others by several stacks", test_group_ahead, NEEDS },
	{ "left", "a member that leaves ends the events of a group", test_group_left, NEEDS,
	  .entries = 3 },
};

const struct suite group_suite = SUITE("group", tests);
