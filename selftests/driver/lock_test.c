// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=1 */
/* Lock memory, and words of memory as sources of events. */
#include "rig.h"

static struct fpga f;

static int lock_make(u64 slots, struct rashpa_alloc *lock)
{
	return lock_alloc(slots, NULL, lock);
}

static int events(void)
{
	int ch = fpga_events(&f, 0);

	CHECK(ch >= 0, "EVENTS: %s", reason);
	fcntl(ch, F_SETFL, O_NONBLOCK);
	return ch;
}

/* ------------------------------------------------------- lock memory --- */

static void refused_locks(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = 100 };

	a.head.flags = RASHPA_ALLOC_LOCK;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "100 bytes|slots of 64");
	a.length = 128;
	a.backend = RASHPA_BACKEND_CMA;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "CMA");
	a.backend = RASHPA_BACKEND_AUTO;
	a.cache = RASHPA_CACHE_UC;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "cached");
}

TEST(memory, "lock memory is zeroed, small, and can be registered and mapped")
{
	struct rashpa_info info = { HEAD(info) };
	struct rashpa_alloc lock;
	struct rashpa_map_make map;
	char *p;
	int fd;

	ANSWERED(lock_make(0, &lock), EINVAL, "zero");
	ANSWERED(lock_make(65537, &lock), EINVAL, "4194368 bytes|65536 slots");
	ANSWERED(lock_make(UINT_MAX, &lock), EINVAL, "slots");
	CHECK(lock.out_fd == -1, "out_fd was written on failure");
	refused_locks();
	ANSWERED(lock_make(65, &lock), 0, NULL);
	REQUIRE(tap_ok(), "no lock memory");
	CHECK(lock.out_length == 2 * PAGE, "%llu bytes", lock.out_length);
	info.fd = lock.out_fd;
	ANSWERED(call(memory, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_LOCK, "kind %u", info.out_kind);
	CHECK(info.out_flags & RASHPA_INFO_REGISTRABLE, "cannot be registered by address");
	p = map_fd(lock.out_fd, lock.out_length);
	CHECK(all_zero(p, lock.out_length), "it is not zeroed");
	munmap(p, lock.out_length);
	fd = fpga_map(&f, lock.out_fd, RASHPA_BIDIRECTIONAL, &map);
	if (CHECK(fd >= 0, "MAP: %s", reason)) {
		CHECK(map.out_segments == 1, "%u segments", map.out_segments);
		close(fd);
	}
	close(lock.out_fd);
}

static int lock_named(const char *name, struct rashpa_alloc *lock)
{
	return lock_alloc(2, name, lock);
}

/* Other programs find it, write it and make events of it; it goes when it is removed. */
TEST(named, "lock memory with a name is for all programs")
{
	struct rashpa_info info = { HEAD(info), .fd = -1 };
	struct rashpa_export get = { HEAD(get) };
	struct rashpa_alloc lock, other;
	struct rashpa_event e = {};
	struct rashpa_source_add a;
	u64 *p;
	int node, ch;

	ANSWERED(lock_named("a/b", &lock), EINVAL, "0x2f");
	REQUIRE(ANSWERED(lock_named("st-lock", &lock), 0, NULL), "no lock memory");
	ANSWERED(lock_named("st-lock", &other), EEXIST, "st-lock|remove");
	close(lock.out_fd);	/* it stays */

	node = buffer_node("st-lock", O_RDWR);
	REQUIRE(node >= 0, "no node");
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_LOCK && !strcmp(info.out_name, "st-lock"),
	      "kind %u, name %s", info.out_kind, info.out_name);
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), 0, NULL);
	a = word_source(get.out_fd, RASHPA_SOURCE_POLL);
	a.condition = RASHPA_CONDITION_REACHED;
	a.value = 5;
	a.offset = 64;
	a.period_us = RASHPA_PERIOD_MIN;
	a.budget = 50;
	ch = events();
	CHECK(source_make(ch, &a) > 0, "%s", reason);
	p = map_fd(node, PAGE);
	__atomic_store_n(p + 8, 5, __ATOMIC_RELEASE);
	CHECK(wait_fd(ch, POLLIN, 5000) && next_event(ch, &e) && e.value == 5,
	      "no event of the word that another program wrote");
	munmap(p, PAGE);
	close(ch);
	close(get.out_fd);
	buffer_end(node, "st-lock");
}

/* A word and a channel. */
struct slot {
	struct rashpa_alloc lock;
	u64 *p;
	int ch;
};

static struct slot slot;

static bool slot_up(struct slot *s)
{
	s->ch = events();
	if (!ANSWERED(lock_make(1, &s->lock), 0, NULL))
		return false;
	s->p = map_fd(s->lock.out_fd, PAGE);
	return true;
}

static void slot_down(struct slot *s)
{
	unmap_fd(s->p, PAGE, s->lock.out_fd);
	close(s->ch);
}

/* ------------------------------------------------------------ budget --- */

TEST(budget, "polling keeps its budget")
{
	struct rashpa_source_info info = { HEAD(info) };
	struct rashpa_source_add a = word_source(slot.lock.out_fd, RASHPA_SOURCE_POLL);

	a.period_us = RASHPA_PERIOD_MIN;
	a.budget = 5;
	info.id = source_make(slot.ch, &a);
	CHECK((int)info.id > 0, "%s", reason);
	/*
	 * Longer periods pay back a poll that was interrupted by the machine itself:
	 * the budget holds in the long run. Else the test ends by its limit of time.
	 */
	do
		ANSWERED(call(slot.ch, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	while (tap_ok() && (info.out_looks < 500 ||
			    info.out_look_ns * 1000 > info.out_since_ns * a.budget));
	tap_note("%llu polls of %llu ns in %llu us, one every %llu us", info.out_looks,
		 (info.out_look_ns / info.out_looks), (info.out_since_ns / 1000),
		 (info.out_period_ns / 1000));
}

TEST(budget_of_all, "all timers together keep poll_budget")
{
	struct rashpa_source_add a = word_source(slot.lock.out_fd, RASHPA_SOURCE_POLL);

	a.period_us = 1000;
	a.budget = 60;
	CHECK(source_make(slot.ch, &a) == 1, "%s", reason);
	ANSWERED(source_make(slot.ch, &a), EDQUOT, "60 of 100|poll_budget");
	a.budget = 40;
	CHECK(source_make(slot.ch, &a) == 2, "%s", reason);
	a.budget = 0;	/* 10 */
	ANSWERED(source_make(slot.ch, &a), EDQUOT, "100 of 100");
	close(slot.ch);
	/* given back with the channel */
	slot.ch = events();
	a.budget = 100;
	CHECK(source_make(slot.ch, &a) == 1, "%s", reason);
}

/* ----------------------------------------------------------- refused --- */

static void refused(int ch, const struct rashpa_source_add *good, int err, const char *says,
		    void (*spoil)(struct rashpa_source_add *a, u64 v), u64 v)
{
	struct rashpa_source_add a = *good;

	spoil(&a, v);
	ANSWERED(source_make(ch, &a), err, says);
}

#define SPOIL(field) \
	static void bad_##field(struct rashpa_source_add *a, u64 v) { a->field = v; }
SPOIL(memory)
SPOIL(index)
SPOIL(device)

/* units/watch_unit.c has all of the word and the condition. */
TEST(refused, "invalid words and conditions are refused")
{
	struct rashpa_source_add good = word_source(slot.lock.out_fd, 0);
	struct rashpa_info info;
	int window, foreign, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	good.bits = 32;
	window = fpga_window(&f, RFPGA_BAR_REGS, 0, PAGE, 0);
	foreign = foreign_dmabuf(PAGE);
	refused(slot.ch, &good, EXDEV, "host memory of this driver", bad_memory, window);
	if (foreign >= 0)
		refused(slot.ch, &good, EXDEV, "host memory of this driver", bad_memory, foreign);
	else
		tap_note("no udmabuf in this kernel");
	refused(slot.ch, &good, ERANGE, "vector 64", bad_index, 64);
	refused(slot.ch, &good, EINVAL, "fpgaN", bad_device, null);
	refused(slot.ch, &good, EBADF, "fd 999", bad_device, 999);
	refused(slot.ch, &good, EBADF, "fd -2", bad_device, -2);
	good.head.flags = RASHPA_SOURCE_POLL;
	good.period_us = 100;
	refused(slot.ch, &good, EINVAL, "vector 1", bad_index, 1);
	buffer_info(slot.lock.out_fd, &info);
	close(null);
	if (foreign >= 0)
		close(foreign);
	close(window);
}

/* ------------------------------------------- written by the function --- */

#define MODE	(RFPGA_MODE_MSIX | RFPGA_MODE_LOCK | RFPGA_MODE_FREERUN)

/* The FPGA's lock record in separate lock memory, checked in the interrupt. */
TEST(hardware, "a record that the function writes is seen in its interrupt")
{
	struct rashpa_source_add a;
	struct rashpa_source_info info = { HEAD(info) };
	struct rashpa_event e, last = {};
	struct rashpa_alloc lock;
	uint32_t entries = 0;
	struct rashpa_map_make m;
	struct rig r;
	int map = -1;

	rig_up(&r, &f, -1, 0, 0);
	ANSWERED(lock_make(1, &lock), 0, NULL);
	map = fpga_map(&f, lock.out_fd, RASHPA_BIDIRECTIONAL, &m);
	CHECK(map >= 0, "MAP: %s", reason);
	ANSWERED(fpga_program(map, r.made.out_segments, &entries), 0, NULL);
	a = word_source(lock.out_fd, 0);
	a.index = 1;
	a.condition = RASHPA_CONDITION_REACHED;
	a.value = 1;
	a.step = 1;
	info.id = source_make(r.channel, &a);
	CHECK((int)info.id > 0, "%s", reason);
	/* a word of the memory that outlives its fd */
	close(lock.out_fd);
	rig_configure(&r, 0, MODE, 0, r.made.out_segments, 100);
	set64(rig_dtp(&r, 0), RFPGA_DTP_LOCK_OFFSET, 0);
	set32(rig_dtp(&r, 0), RFPGA_DTP_LOCK_FIRST, r.made.out_segments);
	set32(rig_dtp(&r, 0), RFPGA_DTP_LOCK_COUNT, entries);
	rig_start(&r, 0);
	while (tap_ok() && last.value < 100) {
		if (!CHECK(wait_fd(r.channel, POLLIN, 10000), "no event after %llu",
			   last.value) || !next_event(r.channel, &e))
			break;
		if (e.kind != RASHPA_SOURCE_LOCK)
			continue;
		CHECK(e.value > last.value && e.sequence == last.sequence + 1,
		      "value %llu after %llu", e.value, last.value);
		last = e;
	}
	CHECK(last.value == 100, "the last value is %llu", last.value);
	ANSWERED(call(r.channel, RASHPA_IOC_SOURCE_INFO, &info), 0, NULL);
	CHECK(info.out_events == last.sequence && info.out_value == 100 && !info.out_looks &&
	      info.out_kind == RASHPA_SOURCE_LOCK && info.out_index == 1,
	      "%llu events of kind %u", info.out_events, info.out_kind);
	if (map >= 0)
		close(map);
	rig_down(&r);
}

void setup(void)
{
	rig_need(&f);
	REQUIRE(slot_up(&slot), "%s", reason);
}

void teardown(void)
{
	slot_down(&slot);
}
