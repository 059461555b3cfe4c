// SPDX-License-Identifier: LGPL-2.1-or-later
/* Order of payload, lock record and interrupt, and a board that violates it. */
#include "fpga/tests/selftest.h"

#include <string.h>

static bool last_image_untouched(const struct dtp *d)
{
	return same_image(d, 0, d->bunch - 2) &&
	       untouched((d->bunch - 1) * d->dst_image, d->bunch * d->dst_image);
}

static bool no_record(void)
{
	return untouched(LOCKS, LOCKS + RFPGA_LOCK_SIZE);
}

static void check_released(const struct dtp *d)
{
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	tell("release");
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(d, 0));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	CHECK_EQ(lock_record(0)[0], 1);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
}

static void test_early(void)
{
	struct dtp d = one_stack(RFPGA_MODE_FLUSH);	/* without effect here */
	uint64_t events = 0;

	tell("early lock hold");
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(events_so_far(0), 0);
	check_released(&d);
	CHECK(wait_event(0, &events));

	fresh();
	tell("early interrupt hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d) && no_record());
	check_released(&d);

	fresh();
	tell("early on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(lock_record(0)[0], 1);
	check_released(&d);
	CHECK_EQ(events, 3);
	CHECK_EQ(events_so_far(0), 0);

	/* parts that a stop finds unsent are dropped */
	fresh();
	start(&d);
	CHECK(wait_event(0, &events));
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	tell("honest");
}

/* Data on their way are not written after their memory is gone. */
static void check_late_refused(const struct dtp *d)
{
	start(d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	target->unmap(HOST_ADDR, HOST_SIZE);
	tell("release");
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(last_image_untouched(d));
}

static void test_late(void)
{
	struct dtp d = one_stack(0);
	uint64_t events = 0;

	tell("late on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK(last_image_untouched(&d));
	CHECK_EQ(lock_record(0)[0], 1);
	check_released(&d);

	/* after a time */
	fresh();
	tell("late on 2000");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK(counter(0, RFPGA_DTP_C_START) + 500000 <= counter(0, RFPGA_DTP_C_STOP));

	/* a stop waits for data on their way, and so does a reset */
	fresh();
	tell("late on hold");
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	CHECK(last_image_untouched(&d));
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	fresh();
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	target->reset();
	CHECK(idle());
	CHECK(same_stack(&d, 0));
	fresh();
	check_late_refused(&d);
	/* a reset also ends one that would be on its way for days */
	fresh();
	d.height = INT32_MAX;
	d.src_line = d.dst_line = 0;
	d.bunch = d.images = 1;
	tell("late on 0");
	start(&d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1 && counter(0, RFPGA_DTP_C_BYTES)));
	target->reset();
	CHECK(idle());
	tell("honest");
}

/* The flush pushes data on their way, so that they are not late: the same, with FLUSH. */
static void test_flush(void)
{
	struct dtp d = one_stack(RFPGA_MODE_FLUSH);
	uint64_t events = 0, k;

	tell("late on hold");
	d.images = 0;
	d.slots = 1;
	start(&d);
	for (k = 0; k < 20; k++) {
		CHECK(wait_event(0, &events));
		CHECK_EQ(lock_record(0)[0], k + 1);
		CHECK(same_stack(&d, k));
		give_credit(0, (uint32_t)k + 1);
	}
	tell("honest");
}

static void serve_until(uint32_t wanted)
{
	int i;

	for (i = 0; i < 100 && !(status(0) & wanted); i++)
		client_serve(c, 5);
}

/* The same by messages, to memory without the lock record. */
static void test_flush_messages(void)
{
	struct dtp d = remote_dtp();
	size_t last = 3 * 4096;
	uint64_t events = 0;
	int i;

	tell("late on hold");
	d.images = d.bunch;
	memset(c->remote, CANARY, c->remote_size);
	start(&d);
	serve_until(RFPGA_DTP_DONE);
	CHECK(wait_event(0, &events));
	CHECK(!memcmp(c->remote, dataset, last));
	CHECK_EQ(c->remote[last], (uint8_t)dataset[last]);

	d.mode &= ~RFPGA_MODE_FLUSH;
	memset(c->remote, CANARY, c->remote_size);
	start(&d);
	serve_until(RFPGA_DTP_DONE);
	CHECK(wait_event(0, &events));
	CHECK(!memcmp(c->remote, dataset, last));
	CHECK_EQ(c->remote[last], CANARY);
	tell("release");
	for (i = 0; i < 100 && !idle(); i++)
		client_serve(c, 5);
	CHECK(!memcmp(c->remote, dataset, last + 4096));
	tell("honest");
}

/*
 * @d has late parts while DTP 1 sends all its stacks. DTPs take turns: parts that are due would be
 * sent before DTP 1 is done.
 */
static void check_behind(const struct dtp *d)
{
	struct dtp other = plain(1);

	start(d);
	CHECK(EVENTUALLY(lock_record(0)[0] == 1));
	other.dst_base = 1 << 20;
	other.slots = 4;
	start(&other);
	CHECK(EVENTUALLY(status(1) == RFPGA_DTP_DONE));
	CHECK(same_stack(&other, 3));
	CHECK(last_image_untouched(d));
}

/* A DTP with late parts does not delay the others. */
static void test_one_dtp(void)
{
	struct dtp d = one_stack(0);

	tell("late on hold dtp 0");
	check_behind(&d);
	tell("release dtp 1");
	CHECK(last_image_untouched(&d));
	check_released(&d);
	tell("honest");
}

/* Each misbehaviour has its own delay, the longest counts, and a cancelled one has none. */
static void test_delays(void)
{
	struct dtp d = one_stack(0);

	tell("late on hold dtp 0");
	tell("early off dtp 0");
	tell("twice interrupt 0 dtp 0");
	check_behind(&d);
	check_released(&d);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 2);
	tell("honest");
}

static void test_reorder(void)
{
	struct dtp d = one_stack(0);

	tell("reorder on");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	CHECK_EQ(counter(0, RFPGA_DTP_C_DESCRIPTORS), d.bunch * d.height);
	/* the last line has no place: this is detected before any write */
	fresh();
	set_entry(0, HOST_ADDR + DST, 4096, RFPGA_ENTRY_VALID);
	d.dst_base = 128;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	/* lines longer than a burst */
	fresh();
	d.dst_base = 0;
	d.pixel = 8;
	d.width = 50000;
	d.height = 4;
	d.src_line = d.dst_line = 400000;
	d.src_image = d.dst_image = 0;
	d.images_in_set = d.bunch = 1;
	d.images = 1;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(same_stack(&d, 0));
	tell("honest");
}

/* Only the beginning of the second record is written: a reader gets the first record, or none. */
static void test_torn(void)
{
	struct dtp d = plain(0);
	struct rfpga_lock lock;
	uint64_t events = 0;

	d.slots = 4;
	d.images = 2 * d.bunch;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 2);
	while (events < 2 && wait_event(0, &events))
		;
	tell("torn on hold");
	d.first_stack = 2;
	d.images = d.bunch;
	start(&d);
	/* a reader that uses the first word, as in 1.0, gets an image count of another record */
	CHECK(EVENTUALLY(lock_record(0)[RFPGA_LOCK_BEGUN / 8] == 3));
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_IMAGES / 8], 8);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 2);
	CHECK(!rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(events_so_far(0), 0);
	tell("release");
	CHECK(EVENTUALLY(idle()));
	CHECK(rfpga_lock_read(lock_record(0), &lock));
	CHECK_EQ(lock.stacks, 3);
	CHECK_EQ(lock.images, 4);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 3);
	tell("honest");
}

/* A board whose last write is still on its way when it reports idle. */
static struct dtp lingering(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	fresh();
	tell("linger on hold");
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	memset(host, CANARY, 1 << 20);
	return d;
}

static void test_linger(void)
{
	struct dtp d = lingering(), next;

	/* the third stack would have begun in the first slot */
	tell("release");
	CHECK(EVENTUALLY(same_image(&d, 2, 0)));
	CHECK_EQ(status(0), 0);
	/* an address that it may no longer use: refused and counted */
	d = lingering();
	target->unmap(HOST_ADDR, HOST_SIZE);
	tell("release");
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(untouched(0, 1 << 20));
	/* it arrives despite bus mastering off; only a reset of the function helps */
	d = lingering();
	config_write(4, 2, 2);
	tell("release");
	CHECK(EVENTUALLY(same_image(&d, 2, 0)));
	lingering();
	config_write(0x88, 0x8000, 2);
	config_write(4, 6, 2);
	set_entry(0, HOST_ADDR + DST, 32 << 20, RFPGA_ENTRY_VALID);
	set_entry(1, HOST_ADDR + LOCKS, 4096, RFPGA_ENTRY_VALID);
	tell("release");
	next = plain(1);
	next.dst_base = 1 << 20;
	run_to(&next, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(untouched(0, 1 << 20));
	/* a flush pushes it before RUNNING is cleared */
	fresh();
	d = plain(0);
	d.mode |= RFPGA_MODE_FLUSH;
	d.images = 0;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	memset(host, CANARY, 1 << 20);
	tell("release");
	next.dst_base = 2 << 20;
	run_to(&next, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK(untouched(0, 1 << 20));
	/* a reset also ends one that would be on its way for days */
	d = plain(0);
	d.height = INT32_MAX;
	d.src_line = d.dst_line = 0;
	tell("linger on 0");
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_BYTES)));
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	target->reset();
	CHECK(idle());
	tell("honest");
}

/* A DTP that cannot be stopped alone stops with all. */
static void test_deaf(void)
{
	struct dtp d = plain(0), e = plain(1);

	d.images = e.images = 0;
	fresh();
	tell("deaf on dtp 0");
	start(&d);
	start(&e);
	wr(RFPGA_DTP(0) + RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	wr(RFPGA_DTP(1) + RFPGA_DTP_CONTROL, RFPGA_DTP_STOP);
	CHECK(EVENTUALLY(!(status(1) & RFPGA_DTP_RUNNING)));
	CHECK_EQ(status(0) & (RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING), RFPGA_DTP_RUNNING);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(EVENTUALLY(idle()));
	tell("honest");
}

/* Half of the memory is unmapped, and the board gets no report of its writes there. */
static void test_drop(void)
{
	struct dtp d = plain(0);
	uint64_t events = 0;

	tell("drop on");
	d.slots = 4;
	target->unmap(HOST_ADDR + 2 * d.dst_slot, 2 * d.dst_slot);
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(status(0), RFPGA_DTP_DONE);
	while (events < 4 && wait_event(0, &events))
		;
	CHECK_EQ(events, 4);
	CHECK_EQ(rd64(RFPGA_FAULTS), 0);
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 4);
	CHECK(same_stack(&d, 1));
	CHECK(untouched(2 * d.dst_slot, 4 * d.dst_slot));
	/* after a dropped lock record the previous one stays */
	target->unmap(HOST_ADDR + LOCKS, 4096);
	d.first_stack = 4;
	d.images = d.bunch;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[RFPGA_LOCK_STACKS / 8], 4);
	tell("drop off");
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	tell("honest");
}

static void test_twice(void)
{
	struct dtp d = one_stack(0);
	uint64_t events = 0;

	tell("twice on hold");
	start(&d);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 1);
	CHECK(same_stack(&d, 0));
	/* as a consumer that clears the word would */
	memset(host + LOCKS, 0, RFPGA_LOCK_SIZE);
	check_released(&d);
	CHECK(wait_event(0, &events));
	CHECK_EQ(events, 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 2);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 1);

	fresh();
	tell("twice lock 0");
	d.images = 16;
	d.slots = 4;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 4);
	CHECK_EQ(lock_record(0)[0], 4);
	CHECK(same_stack(&d, 3));
	tell("honest");
}

static void test_lose(void)
{
	struct dtp d = plain(0);

	tell("lose interrupt 3");
	d.images = 0;
	d.slots = 9;
	d.dst_slot = d.bunch * d.dst_image;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 6);
	CHECK_EQ(events_so_far(0), 6);
	CHECK_EQ(lock_record(0)[0], 9);

	fresh();
	tell("lose lock 2");
	d.images = 6 * d.bunch;
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[0], 5);
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 6);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 6);

	fresh();
	tell("lose on 1");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK(no_record());
	CHECK_EQ(counter(0, RFPGA_DTP_C_EVENTS), 0);
	CHECK(same_stack(&d, 5));
	tell("lose off");
	start(&d);
	CHECK(EVENTUALLY(idle()));
	CHECK_EQ(lock_record(0)[0], 6);
	tell("honest");
}

static const struct test tests[] = {
	{ "early", "misbehave: an event before its image", test_early },
	{ "late", "misbehave: an image after its event", test_late },
	{ "flush", "misbehave: a flush pushes the image", test_flush },
	{ "flush-messages", "misbehave: a flush pushes messages", test_flush_messages },
	{ "one-dtp", "misbehave: one of several DTPs", test_one_dtp },
	{ "delays", "misbehave: one delay does not change another", test_delays },
	{ "reorder", "misbehave: lines in another order", test_reorder },
	{ "torn", "misbehave: a torn lock record", test_torn },
	{ "linger", "misbehave: a write after \"idle\"", test_linger },
	{ "deaf", "misbehave: a process that ignores its own STOP", test_deaf },
	{ "drop", "misbehave: posted writes that vanish", test_drop },
	{ "twice", "misbehave: events twice", test_twice },
	{ "lose", "misbehave: lost events", test_lose },
};

const struct suite misbehave_suite = SUITE("misbehave", tests);
