// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=26 */
/* test: needs=crowd iommu=on seconds=20 */
/*
 * Engines: the end of a map stops the engine that has its addresses, and the others go on. If that
 * is not safe, the whole function stops.
 */
#include "rig.h"

#define ENTRIES		64u	/* per engine */
#define OWN		4u	/* engines with entries */
#define NONE		5u	/* engines without, of which the board need not have all */
#define ENGINES		(OWN + NONE)
#define OUTSIDE		512u	/* an entry that no engine has */
#define DATA		((u64)IMAGES * IMAGE)
#define ENDLESS		0
#define GOES_ON		20u	/* stacks after which a stream is taken to go on */
#define ROUNDS		tap_times(2, 5)

static struct fpga f;
static bool fetches;		/* an entry says where a ring of descriptors is */

/* ----------------------------------------------------------- profile --- */

struct plan {
	struct rashpa_profile_set set;
	struct rashpa_profile_window windows[3];
	struct rashpa_profile_step all[2], steps[ENGINES][2];
	struct { struct rashpa_profile_engine e; u64 more; } engines[ENGINES];
};

static void plan_engine(struct plan *p, unsigned int i, const char *name, unsigned int n,
			uint32_t bounds)
{
	struct rashpa_profile_engine *e = &p->engines[i].e;

	snprintf(e->name, sizeof(e->name), "%s%u", name, n);
	e->bar = RFPGA_BAR_REGS;
	e->first_offset = bounds + n * RFPGA_BOUNDS_STRIDE + RFPGA_BOUNDS_FIRST;
	e->limit_offset = bounds + n * RFPGA_BOUNDS_STRIDE + RFPGA_BOUNDS_LIMIT;
}

/* DTPs 0 to 3 have entries; the others, and the ring, are kept out of the table. */
static struct plan *plan_make(void)
{
	static struct rashpa_profile_table table_of_board;
	static struct plan p;
	unsigned int i;

	memset(&p, 0, sizeof(p));
	table_of_board = fetches ? *rig_chain() : fpga_table;
	p.windows[0] = (struct rashpa_profile_window) {
		.name = "doorbell0", .bar = RFPGA_BAR_DOORBELL, .length = PAGE,
		.flags = RASHPA_PWINDOW_USER };
	p.windows[1] = (struct rashpa_profile_window) {
		.name = "registers", .bar = RFPGA_BAR_REGS, .length = RFPGA_BOUNDS };
	p.windows[2] = (struct rashpa_profile_window) {
		.name = "table", .bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE,
		.length = RFPGA_TABLE_SIZE };
	memcpy(p.all, fpga_stop, sizeof(p.all));
	for (i = 0; i < ENGINES; i++) {
		struct rashpa_profile_engine *e = &p.engines[i].e;

		if (i < ENGINES - 1)
			plan_engine(&p, i, "dtp", i, RFPGA_BOUNDS);
		else	/* behind those of all DTPs that there can be */
			plan_engine(&p, i, "ring", 0,
				    RFPGA_BOUNDS + RFPGA_DTPS_MAX * RFPGA_BOUNDS_STRIDE);
		if (i >= OWN) {
			e->flags = RASHPA_PENGINE_OPTIONAL;
			continue;
		}
		p.steps[i][0] = (struct rashpa_profile_step) {
			.op = RASHPA_STEP_WRITE, .bar = RFPGA_BAR_REGS,
			.offset = RFPGA_DTP(i) + RFPGA_DTP_CONTROL, .value = RFPGA_DTP_STOP,
			.mask = ~0U };
		p.steps[i][1] = (struct rashpa_profile_step) {
			.op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS,
			.offset = RFPGA_DTP(i) + RFPGA_DTP_STATUS, .mask = RFPGA_DTP_RUNNING,
			.timeout_us = 300000 };
		e->first = i * ENTRIES;
		e->count = ENTRIES;
		e->steps = (uintptr_t)p.steps[i];
		e->n_steps = 2;
		e->step_size = sizeof(p.steps[i][0]);
	}
	p.set = (struct rashpa_profile_set) { HEAD(p.set), STEPS(p.all), TABLE(table_of_board),
		ARRAY(window, p.windows, ARRAY_SIZE(p.windows)), .dma_bits = 64,
		.engines = (uintptr_t)p.engines, .n_engines = ENGINES,
		.engine_size = sizeof(p.engines[0].e) };
	/* a reset takes its time, and other tests cover it */
	p.set.head.flags = RASHPA_PROFILE_NO_RESET;
	/* an element is as large as engine_size says */
	for (i = 0; i < ENGINES; i++)
		memmove((char *)p.engines + i * sizeof(p.engines[0].e), &p.engines[i].e,
			sizeof(p.engines[0].e));
	return &p;
}

static struct rashpa_profile_engine *engine_at(struct plan *p, unsigned int i)
{
	return (struct rashpa_profile_engine *)((char *)p->engines + i * p->set.engine_size);
}

static int apply(struct plan *p)
{
	return call(f.fd, RASHPA_IOC_PROFILE_SET, &p->set);
}

static void profile(void)
{
	if (apply(plan_make()))
		tap_bail("profile: %s", reason);
}

/* ---------------------------------------------------------- information --- */

struct counts {
	u64 quiesces, stops, engine[OWN], failures[OWN];
	uint32_t state;
};

static void count(struct counts *c)
{
	struct rashpa_engine_info e = { HEAD(e) };
	struct rashpa_device_info info;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	c->quiesces = info.out_quiesces;
	c->stops = info.out_engine_stops;
	c->state = info.out_state;
	for (e.index = 0; e.index < OWN; e.index++) {
		ANSWERED(call(f.fd, RASHPA_IOC_ENGINE_INFO, &e), 0, NULL);
		c->engine[e.index] = e.out_stops;
		c->failures[e.index] = e.out_failures;
	}
}

/* Since @before: engine 0 was stopped @alone times, and the function as a whole @whole times. */
static void stopped(const struct counts *before, u64 alone, u64 whole)
{
	struct counts now;

	count(&now);
	CHECK(now.engine[0] - before->engine[0] == alone, "engine 0 was stopped %llu times",
	      (now.engine[0] - before->engine[0]));
	CHECK(now.stops - before->stops == alone, "engines were stopped %llu times",
	      (now.stops - before->stops));
	CHECK(now.quiesces - before->quiesces == whole, "the function was stopped %llu times",
	      (now.quiesces - before->quiesces));
}

TEST(info, "ENGINE_INFO reports the engines of the profile")
{
	struct rashpa_device_info info;
	unsigned int i;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_engines == ENGINES, "%u engines", info.out_engines);
	for (i = 0; i < ENGINES; i++) {
		struct rashpa_engine_info e = { HEAD(e), .index = i };
		char name[16];

		snprintf(name, sizeof(name), i < ENGINES - 1 ? "dtp%u" : "ring0", i);
		ANSWERED(call(f.fd, RASHPA_IOC_ENGINE_INFO, &e), 0, NULL);
		CHECK(!strcmp(e.out_name, name), "%u is %s", i, e.out_name);
		CHECK(e.out_count == (i < OWN ? ENTRIES : 0) &&
		      e.out_first == (i < OWN ? i * ENTRIES : 0), "%s: %u from %u on", name,
		      e.out_count, e.out_first);
		CHECK(!e.out_flags && !e.out_maps && !e.out_stops && !e.out_failures,
		      "%s: flags %u, %u maps", name, e.out_flags, e.out_maps);
	}
}

TEST(info_none, "ENGINE_INFO refuses an index without an engine")
{
	struct rashpa_engine_info e = { HEAD(e), .index = ENGINES };

	ANSWERED(call(f.fd, RASHPA_IOC_ENGINE_INFO, &e), ENOENT, "9 engines|index 9");
	e.index = ~0U;
	ANSWERED(call(f.fd, RASHPA_IOC_ENGINE_INFO, &e), ENOENT, "4294967295");
}

/* Registers that the board does not have read 0, as those of DTP 12. */
TEST(absent, "engines that the board does not have, or does not bound")
{
	struct plan *p = plan_make();
	struct rashpa_engine_info e = { HEAD(e), .index = OWN };
	struct rashpa_profile_engine *none = engine_at(p, OWN);

	none->first_offset = RFPGA_BOUNDS + 12 * RFPGA_BOUNDS_STRIDE;
	none->limit_offset = none->first_offset + RFPGA_BOUNDS_LIMIT;
	none->first = OUTSIDE;
	none->count = 1;
	none->steps = engine_at(p, 0)->steps;
	none->n_steps = 2;
	none->step_size = engine_at(p, 0)->step_size;
	ANSWERED(apply(p), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_ENGINE_INFO, &e), 0, NULL);
	CHECK(e.out_flags == RASHPA_ENGINE_ABSENT, "flags %u", e.out_flags);
	none->flags = 0;
	ANSWERED(apply(p), EIO, "bounds|correct the engines");
	/* a register with arbitrary values is not one of bounds */
	p = plan_make();
	engine_at(p, 1)->first_offset = RFPGA_TICK_RATE;
	p->windows[1].offset = PAGE;
	p->windows[1].length = PAGE;
	ANSWERED(apply(p), EIO, "bounds|correct the engines");
	profile();
}

/* ------------------------------------------------------- bad profiles --- */

enum part { SET, ENGINE, STEP, WINDOW };

#define P(field)	SET, offsetof(struct rashpa_profile_set, field)
#define E(field)	ENGINE, offsetof(struct rashpa_profile_engine, field)
#define S(field)	STEP, offsetof(struct rashpa_profile_step, field)
#define W(field)	WINDOW, offsetof(struct rashpa_profile_window, field)

/* one field of a valid profile is made wrong: of engine 1, of its first step, of "registers" */
static const struct bad_field bad[] = {
	{ "with-too-many-engines", P(n_engines), 4, 65, EINVAL, "65 engines" },
	{ "with-uint_max-engines", P(n_engines), 4, ~0U, EINVAL, "engines" },
	{ "with-engines-nowhere", P(engines), 8, 8, EFAULT, NULL },
	{ "with-engines-that-are-too-short", P(engine_size), 4, 72, EINVAL, "72 bytes" },
	{ "with-engines-and-no-table", P(table), 8, 0, EINVAL, "engines|table" },
	{ "with-engines-and-no-quiesce-sequence", P(n_steps), 4, 0, EINVAL,
	  "engines|quiesce sequence" },
	{ "whose-engine-has-no-name", E(name), 1, 0, EINVAL, "name" },
	{ "whose-engine-has-a-slash-in-its-name", E(name), 1, '/', EINVAL, "name" },
	{ "whose-engines-have-one-name", E(name[3]), 1, '0', EINVAL, "dtp0|twice" },
	{ "whose-engine-has-an-undefined-flag", E(flags), 4, 2, EINVAL, "dtp1|flag" },
	{ "with-bounds-in-bar-3", E(bar), 4, 3, ERANGE, "dtp1|BAR 3" },
	{ "with-bounds-in-bar-uint_max", E(bar), 4, ~0U, ERANGE, "dtp1|BAR" },
	{ "with-bounds-at-an-odd-offset", E(first_offset), 8, 2, EINVAL, "dtp1|multiple of 4" },
	{ "with-bounds-behind-the-bar", E(limit_offset), 8, RFPGA_BAR_REGS_SIZE, ERANGE,
	  "dtp1|outside BAR 0" },
	{ "with-bounds-at-2to64-4", E(limit_offset), 8, -4ULL, ERANGE, "dtp1|outside" },
	{ "with-bounds-in-the-table", E(first_offset), 8, RFPGA_TABLE + 8, EINVAL,
	  "dtp1|in the table" },
	{ "with-bounds-that-are-another-engines", E(first_offset), 8,
	  RFPGA_BOUNDS + RFPGA_BOUNDS_LIMIT, EINVAL, "dtp1|twice" },
	{ "with-one-register-for-both-bounds", E(first_offset), 8,
	  RFPGA_BOUNDS + RFPGA_BOUNDS_STRIDE + RFPGA_BOUNDS_LIMIT, EINVAL, "dtp1|twice" },
	{ "with-bounds-in-a-window", E(first_offset), 8, RFPGA_SCRATCH, EINVAL,
	  "dtp1|registers|bounds" },
	{ "whose-window-holds-bounds", W(length), 8, RFPGA_TABLE, EINVAL, "registers|bounds" },
	{ "whose-window-for-users-has-the-register-of-a-step", W(flags), 4, RASHPA_PWINDOW_USER,
	  EINVAL, "dtp0|step 0|registers|for users" },
	{ "whose-engine-has-entries-behind-the-table", E(first), 4, 1000, ERANGE, "dtp1|1024" },
	{ "whose-engine-begins-at-uint_max", E(first), 4, ~0U, ERANGE, "dtp1|1024" },
	{ "whose-engine-has-uint_max-entries", E(count), 4, ~0U, ERANGE, "dtp1|1024" },
	{ "whose-engine-has-none-from-one-on", E(count), 4, 0, EINVAL, "dtp1|no entries" },
	{ "whose-engines-share-an-entry", E(first), 4, ENTRIES - 1, EINVAL, "dtp1|dtp0" },
	{ "whose-engine-has-another-ones-entries-too", E(count), 4, ENTRIES + 1, EINVAL,
	  "dtp2|dtp1" },
	{ "whose-engine-cannot-be-stopped", E(n_steps), 4, 0, EINVAL, "dtp1|quiesce" },
	{ "whose-engine-has-too-many-steps", E(n_steps), 4, 9, EINVAL, "9 steps" },
	{ "whose-engine-has-uint_max-steps", E(n_steps), 4, ~0U, EINVAL, "steps" },
	{ "whose-engine-only-writes", E(n_steps), 4, 1, EINVAL, "dtp1|step 0|last step" },
	{ "whose-engine-has-steps-nowhere", E(steps), 8, 8, EFAULT, NULL },
	{ "whose-engine-has-steps-that-are-too-short", E(step_size), 4, 28, EINVAL, "28 bytes" },
	{ "whose-engine-has-a-step-in-bar-3", S(bar), 4, 3, ERANGE, "dtp1|step 0|BAR 3" },
};

TEST_EACH(bad, bad, "a profile %s is refused")
{
	struct plan *p = plan_make();
	char *part[] = { (char *)&p->set, (char *)engine_at(p, 1), (char *)p->steps[1],
			 (char *)&p->windows[1] };

	memcpy(part[row->part] + row->at, &row->value, row->size);
	ANSWERED(apply(p), row->err, row->says);
}

/* ------------------------------------------------------------ windows --- */

/* mmap of a part of a window of all registers: 0, or an errno */
static int part(u64 offset, u64 length)
{
	int win = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, win, offset);
	int err = p == MAP_FAILED ? errno : 0;

	CHECK(win >= 0, "%s", reason);
	if (!err)
		munmap(p, length);
	close(win);
	return err;
}

TEST(windows, "bounds cannot be mapped, all other registers can")
{
	int win;

	ANSWERED(fpga_window(&f, RFPGA_BAR_REGS, RFPGA_BOUNDS, PAGE, 0), EBUSY,
		 "bounds|only the kernel|0x7000");
	CHECK(part(0, RFPGA_BAR_REGS_SIZE) == EBUSY, "all of it was mapped");
	CHECK(part(RFPGA_BOUNDS, PAGE) == EBUSY, "they were mapped");
	CHECK(part(RFPGA_BOUNDS - PAGE, 2 * PAGE) == EBUSY, "they were mapped at the end");
	CHECK(part(RFPGA_BOUNDS, 2 * PAGE) == EBUSY, "they were mapped at the beginning");
	CHECK(!part(0, RFPGA_BOUNDS), "before them: %s", strerror(errno));
	CHECK(!part(RFPGA_TABLE, RFPGA_TABLE_SIZE), "behind them: %s", strerror(errno));
	/* as a user in the group */
	if (!fork()) {
		drop_privileges();
		win = fpga_window(&f, RFPGA_BAR_REGS, RFPGA_BOUNDS, PAGE, 0);
		_exit(win >= 0);
	}
	CHECK(wait(&win) > 0 && !win, "a user has the bounds");
}

/* ------------------------------------------------------------ streams --- */

/* BAR 0 without the bounds. */
static char *regs, *table;
static int regs_win, table_win;

static void open_regs(void)
{
	regs_win = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BOUNDS, 0);
	table_win = fpga_window(&f, RFPGA_BAR_REGS, RFPGA_TABLE, RFPGA_TABLE_SIZE, 0);
	regs = map_fd(regs_win, RFPGA_BOUNDS);
	table = map_fd(table_win, RFPGA_TABLE_SIZE);
	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
}

static void close_regs(void)
{
	unmap_fd(regs, RFPGA_BOUNDS, regs_win);
	unmap_fd(table, RFPGA_TABLE_SIZE, table_win);
}

static uint32_t status(unsigned int n)
{
	return reg32(regs, RFPGA_DTP(n) + RFPGA_DTP_STATUS);
}

static void entries_clear(uint32_t first)
{
	rig_entries_clear(table - RFPGA_TABLE + first * RFPGA_ENTRY_STRIDE, ENTRIES);
}

/* DATA of a memory, or all of it, in entries from @first on; a map, or -1 after a failed check. */
static int place_at(int memory_fd, u64 offset, u64 length, uint32_t first,
		    struct rashpa_map_make *made)
{
	*made = (struct rashpa_map_make) { HEAD(*made), .fd = memory_fd, .offset = offset,
					   .length = length,
					   .direction = RASHPA_BIDIRECTIONAL,
					   .max_segment = 64 * KIB };
	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, made), 0, NULL))
		return -1;
	if (ANSWERED(fpga_program(made->out_fd, first, NULL), 0, NULL))
		return made->out_fd;
	close(made->out_fd);
	return -1;
}

static int place(int memory_fd, uint32_t first, struct rashpa_map_make *made)
{
	return place_at(memory_fd, 0, 0, first, made);
}

/* Entries that a map has. */
static uint32_t entries_of(const struct rashpa_map_make *made)
{
	return fetches ? 1 : made->out_segments;
}

/* DTP @n streams into entries from @first on, until it is stopped. */
static void start(unsigned int n, uint32_t first, uint32_t segments)
{
	const struct rig r = { .regs = regs };

	rig_configure(&r, n, RFPGA_MODE_FREERUN | RFPGA_MODE_FLUSH, first, segments, ENDLESS);
	rig_start(&r, n);
}

static bool runs(unsigned int n)
{
	const struct rig r = { .regs = regs };

	return CHECK(rig_wait_bytes(&r, n, 2 * IMAGE), "DTP %u does not run", n);
}

static void wait_faulted(unsigned int n)
{
	u64 end = end_of_wait(5000);

	while (!(status(n) & RFPGA_DTP_FAULTED))
		REQUIRE(now_ns() < end, "DTP %u has no fault", n);
	CHECK(reg32(regs, RFPGA_DTP(n) + RFPGA_DTP_FAULT_CAUSE) == RFPGA_FAULT_ENTRY, "cause %u",
	      reg32(regs, RFPGA_DTP(n) + RFPGA_DTP_FAULT_CAUSE));
	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
}

/* An engine that is given another engine's entries writes no byte. */
static void foreign_entries(void)
{
	int buffer = buffer_alloc(DATA, NULL), map;
	char *p = map_fd(buffer, DATA);
	struct rashpa_map_make made;

	memset(p, 0, DATA);
	map = place(buffer, 0, &made);
	start(1, 0, made.out_segments);
	wait_faulted(1);
	/* from its own entries into the other's: it stops at the bounds */
	start(1, ENTRIES - 1, 2);
	wait_faulted(1);
	/* and one without any */
	start(OWN, 0, made.out_segments);
	wait_faulted(OWN);
	CHECK(all_zero(p, DATA), "memory of another engine was written");
	/* the engine that has the entries can write */
	start(0, 0, made.out_segments);
	runs(0);
	close(map);
	unmap_fd(p, DATA, buffer);
}

TEST(bounds, "an engine cannot use the entries of another one")
{
	open_regs();
	foreign_entries();
	close_regs();
}

/* A stream that waits for its consumer, which checks each byte. */
struct consumer {
	atomic_ullong stacks;		/* consumed */
	atomic_bool stop;
};

static struct consumer *shared;

struct survivor {
	int map, lock_map, bell_win;
	char *memory, *bell;
	u64 *lock;
};

/* Into DATA of a buffer from @offset on. */
static bool survivor_up(struct survivor *s, unsigned int n, int buffer, u64 offset)
{
	const struct rig r = { .regs = regs };
	const uint32_t first = n * ENTRIES;
	struct rashpa_map_make made, locks;
	char *d = regs + RFPGA_DTP(n);
	struct rashpa_alloc alloc;

	if (lock_alloc(1, NULL, &alloc))
		return CHECK(false, "%s", reason);
	s->memory = map_fd(buffer, offset + DATA);
	s->lock = map_fd(alloc.out_fd, PAGE);
	s->map = place_at(buffer, offset, DATA, first, &made);
	s->lock_map = place(alloc.out_fd, first + ENTRIES - 1, &locks);
	s->bell_win = fpga_window(&f, RFPGA_BAR_DOORBELL, n * RFPGA_DOORBELL_PAGE, PAGE, 0);
	s->bell = map_fd(s->bell_win, PAGE);
	if (s->map < 0 || s->lock_map < 0)
		return false;
	s->memory += offset;
	memset(s->memory, 0, DATA);
	rig_configure(&r, n, RFPGA_MODE_LOCK | RFPGA_MODE_FLUSH, first, entries_of(&made), ENDLESS);
	set64(d, RFPGA_DTP_LOCK_OFFSET, 0);
	set32(d, RFPGA_DTP_LOCK_FIRST, first + ENTRIES - 1);
	set32(d, RFPGA_DTP_LOCK_COUNT, 1);
	rig_start(&r, n);
	return true;
}

/* Stacks come one after the other, without a gap, each with its data. */
static void survive_in(unsigned int n, int buffer, u64 offset)
{
	struct survivor s = { .map = -1 };
	u64 k, end;

	if (!survivor_up(&s, n, buffer, offset))
		return;
	for (k = 0; !atomic_load(&shared->stop) && tap_ok(); k++) {
		char *slot = s.memory + k % IMAGES * IMAGE;

		end = end_of_wait(20000);
		while (__atomic_load_n(&s.lock[RFPGA_LOCK_STACKS / 8], __ATOMIC_ACQUIRE) <= k) {
			REQUIRE(now_ns() < end, "stack %llu does not come, status %#x",
				k, status(n));
			sched_yield();
		}
		CHECK(filled(slot, IMAGE, SEED + k % IMAGES * IMAGE / 8), "stack %llu differs", k);
		memset(slot, 0, IMAGE);
		set32(s.bell, RFPGA_DB_CREDIT, (uint32_t)(k + 1));
		atomic_store(&shared->stacks, k + 1);
	}
	CHECK(status(n) & RFPGA_DTP_RUNNING, "status %#x", status(n));
	CHECK(!reg64(regs, RFPGA_DTP(n) + RFPGA_DTP_C_FAULTS) &&
	      !reg64(regs, RFPGA_DTP(n) + RFPGA_DTP_C_OVERRUNS), "faults, or overruns");
}

static void survive(void *arg)
{
	survive_in(*(unsigned int *)arg, buffer_alloc(DATA, NULL), 0);
}

static bool advances(void)
{
	const u64 to = atomic_load(&shared->stacks) + GOES_ON;
	u64 end = end_of_wait(20000);

	while (atomic_load(&shared->stacks) < to)
		if (!CHECK(now_ns() < end, "the other stream stands still at %llu",
			   atomic_load(&shared->stacks)))
			return false;
	return true;
}

static int victim_buffer;

/* Streams by engine 0, into the memory of the parent. */
static void victim(void *arg)
{
	struct rashpa_map_make made;
	uint32_t first = arg ? *(uint32_t *)arg : 0;

	if (place(victim_buffer, first, &made) < 0)
		return;
	start(0, first, made.out_segments);
	if (runs(0))
		tap_fork_hold();
}

/* Kill a streaming process again and again; the other one loses nothing, and is not stopped. */
static void kill_one(void *p)
{
	unsigned int other = 1, i;
	struct counts before;
	pid_t stays;

	atomic_store(&shared->stacks, 0);
	atomic_store(&shared->stop, false);
	stays = tap_fork_start(survive, &other);
	for (i = 0; i < ROUNDS && tap_ok() && advances(); i++) {
		pid_t goes = tap_fork_held(victim, NULL);

		count(&before);
		tap_fork_kill(goes);
		CHECK(!(status(0) & RFPGA_DTP_RUNNING), "DTP 0 runs");
		entries_clear(0);
		rig_nobody_writes(p);
		stopped(&before, 1, 0);
		advances();
	}
	atomic_store(&shared->stop, true);
	tap_fork_end(stays);
}

TEST(kill_one, "kill -9 of one stream: the other one loses nothing")
{
	void *p;

	open_regs();
	victim_buffer = buffer_alloc(DATA, NULL);
	p = map_fd(victim_buffer, DATA);
	kill_one(p);
	unmap_fd(p, DATA, victim_buffer);
	close_regs();
}

/* With a buffer that the end of the process frees. */
static void victim_alone(void *arg)
{
	victim_buffer = buffer_alloc(DATA, NULL);
	victim(arg);
}

/* As long as the engine runs, its memory is there. */
static void kept_until_stopped(bool disobeys)
{
	const u64 free = bytes_allocated();
	bool waited = false;
	struct counts before;
	pid_t pid;

	pid = tap_fork_held(victim_alone, NULL);
	count(&before);
	if (disobeys)
		CHECK(rig_tell(0, "deaf on dtp 0"), "the board does not know \"deaf\"");
	kill(pid, SIGKILL);
	while (bytes_allocated() - free >= DATA && tap_ok())
		waited |= !!(status(0) & RFPGA_DTP_RUNNING);
	/* after the check of the memory */
	CHECK(!(status(0) & RFPGA_DTP_RUNNING), "the memory is free, and the engine runs");
	CHECK(!disobeys || waited, "the engine was not seen running after the kill");
	CHECK(WIFSIGNALED(tap_fork_wait(pid)), "the child had ended before");
	stopped(&before, !disobeys, disobeys);
	entries_clear(0);
	CHECK(rig_tell(0, "honest"), "not honest");
}

TEST(kept, "memory is kept until its engine has stopped, or the function")
{
	open_regs();
	kept_until_stopped(false);
	kept_until_stopped(true);
	close_regs();
}

/* ---------------------------------------------------- the whole function --- */

static void heard(int channel, u64 value)
{
	struct rashpa_event e = { 0 };

	CHECK(read(channel, &e, sizeof(e)) == sizeof(e) && e.value == value, "value %#llx",
	      e.value);
	CHECK(read(channel, &e, sizeof(e)) < 0, "and %#llx", e.value);
}

/* Close a map while DTP @n streams into it by entries from @first on. */
static void close_running(unsigned int n, uint32_t first, bool shown, u64 alone)
{
	struct rashpa_map_make made;
	int buffer = buffer_alloc(DATA, NULL), map;
	int channel = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);
	void *p = map_fd(buffer, DATA);
	struct counts before;

	map = place(buffer, first, &made);
	if (shown)
		table_seen(&made);
	/* an engine that leaves its bounds stops without the driver */
	start(n, first, made.out_segments);
	count(&before);
	close(map);
	stopped(&before, alone, !alone);
	CHECK(!(status(n) & RFPGA_DTP_RUNNING), "DTP %u runs", n);
	heard(channel, alone ? RASHPA_DEVICE_EVENT_ENGINE : RASHPA_DEVICE_EVENT_QUIESCED);
	rig_nobody_writes(p);
	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	unmap_fd(p, DATA, buffer);
	close(channel);
}

TEST(alone, "a map in one engine's entries stops that one")
{
	open_regs();
	close_running(0, 0, false, 1);
	close_running(0, ENTRIES - DATA / (64 * KIB), false, 1);
	close_regs();
}

TEST(not_alone, "a map elsewhere, or one that was shown, stops the function")
{
	open_regs();
	close_running(0, ENTRIES - 1, false, 0);	/* one more is in the next one's */
	close_running(0, OUTSIDE, false, 0);
	close_running(0, OWN * ENTRIES - 1, false, 0);
	close_running(0, 0, true, 0);
	close_regs();
}

/* The map was in two engines' entries: both stop, and a third one goes on. */
TEST(moved, "a map that was in two engines' entries stops both")
{
	struct rashpa_map_make made;
	int buffer, map;
	struct counts before, after;

	open_regs();
	buffer = buffer_alloc(DATA, NULL);
	map = place(buffer, 0, &made);
	ANSWERED(fpga_program(map, ENTRIES, NULL), 0, NULL);
	start(1, ENTRIES, made.out_segments);
	runs(1);
	count(&before);
	close(map);
	count(&after);
	CHECK(!(status(1) & RFPGA_DTP_RUNNING), "DTP 1 runs");
	CHECK(after.quiesces == before.quiesces && after.stops == before.stops + 2 &&
	      after.engine[0] == before.engine[0] + 1 && after.engine[1] == before.engine[1] + 1,
	      "%llu stops of engines", (after.stops - before.stops));
	close(buffer);
	close_regs();
}

/* Nothing stops: the driver disables bus mastering, memory is safe, and a reset helps. */
TEST(stuck, "neither engine nor function stops: cut off, and reset")
{
	struct rashpa_map_make made;
	struct counts before, after;
	int buffer, map;
	void *p;

	open_regs();
	buffer = buffer_alloc(DATA, NULL);
	p = map_fd(buffer, DATA);
	map = place(buffer, 0, &made);
	start(0, 0, made.out_segments);
	runs(0);
	count(&before);
	CHECK(rig_tell(0, "stuck on"), "stuck");
	close(map);
	count(&after);
	CHECK(after.state == RASHPA_STATE_STUCK && after.stops == before.stops &&
	      after.failures[0] == before.failures[0] + 1, "state %u", after.state);
	rig_nobody_writes(p);
	ANSWERED(fpga_reset(&f), 0, NULL);
	unmap_fd(p, DATA, buffer);
	/* the board has lost its bounds, and the driver has set them again */
	foreign_entries();
	close_running(0, 0, false, 1);
	close_regs();
}

TEST(reset, "bounds are there again after a reset")
{
	ANSWERED(fpga_reset(&f), 0, NULL);
	open_regs();
	foreign_entries();
	close_regs();
}

/* A process with all registers resets the board: its bounds are open, and prove nothing. */
TEST(lost, "bounds that were lost: the function is stopped, and they come back")
{
	open_regs();
	set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
	close_running(0, 0, false, 0);
	foreign_entries();
	close_running(0, 0, false, 1);
	close_regs();
}

/* -------------------------------------------------------------- crowd --- */

#define CROWD		4u
#define MAPS		30u	/* in a check; RASHPA_MAPS=10000 is the whole test */

static struct fpga boards[2];
static bool second_fetches;
static int crowd_buffers[2];
static struct consumer *crowd;

static void crowd_board(unsigned int i)
{
	f = boards[i];
	fetches = i && second_fetches;
}

/* Two processes a board, by its engines 0 and 1; two a buffer, of both boards. */
static void crowd_stream(void *arg)
{
	const unsigned int i = *(unsigned int *)arg;

	crowd_board(i / 2);
	shared = &crowd[i];
	open_regs();
	survive_in(i % 2, crowd_buffers[i % 2], i / 2 * DATA);
}

static u64 crowd_least(void)
{
	u64 least = ~0ULL;
	unsigned int i;

	for (i = 0; i < CROWD; i++)
		if (atomic_load(&crowd[i].stacks) < least)
			least = atomic_load(&crowd[i].stacks);
	return least;
}

static bool crowd_advances(void)
{
	const u64 to = crowd_least() + 3;
	u64 end = end_of_wait(60000);

	while (crowd_least() < to)
		if (!CHECK(now_ns() < end, "one of them stands still at %llu", crowd_least()))
			return false;
	return true;
}

static unsigned int maps_wanted(void)
{
	const char *text = getenv("RASHPA_MAPS");

	return text ? strtoul(text, NULL, 10) : MAPS;
}

/* Maps of another process come and go in engine 2 of both boards. */
static void crowd_maps(void)
{
	const unsigned int n = maps_wanted(), look = n > 50 * MAPS ? n / 100 : MAPS / 2;
	int buffer = buffer_alloc(DATA, NULL), map;
	struct rashpa_map_make made;
	unsigned int i;

	for (i = 0; i < n && tap_ok(); i++) {
		tap_limit(TAP_SECONDS);
		crowd_board(i % 2);
		map = place(buffer, 2 * ENTRIES, &made);
		close(map);
		if (i % look)
			continue;
		crowd_advances();
		if (n > 50 * MAPS && i % (n / 10) < look)
			tap_note("%u of %u maps", i, n);
	}
	crowd_advances();
	close(buffer);
	tap_note("%u maps came and went, the least of the streams has %llu stacks", i,
		 crowd_least());
}

static void crowd_run(void)
{
	const struct fpga first = f;
	unsigned int n[CROWD], i;
	struct counts before[2], now;
	pid_t pid[CROWD];

	for (i = 0; i < 2; i++) {
		crowd_board(i);
		profile();
		count(&before[i]);
		crowd_buffers[i] = buffer_alloc(2 * DATA, NULL);
	}
	for (i = 0; i < CROWD; i++) {
		n[i] = i;
		atomic_store(&crowd[i].stacks, 0);
		atomic_store(&crowd[i].stop, false);
		pid[i] = tap_fork_start(crowd_stream, &n[i]);
	}
	if (crowd_advances())
		crowd_maps();
	for (i = 0; i < CROWD; i++)
		atomic_store(&crowd[i].stop, true);
	for (i = 0; i < CROWD; i++)
		tap_fork_end(pid[i]);
	for (i = 0; i < 2; i++) {
		crowd_board(i);
		count(&now);
		CHECK(now.quiesces == before[i].quiesces, "board %u was stopped as a whole", i);
		close(crowd_buffers[i]);
	}
	f = first;
	fetches = false;
}

/*
 * The second board is one that fetches a chain, where there is one; else it has a table, too.
 * RASHPA_CROWD=N: the Nth with a table, from 0 on, instead of 1.
 */
TEST(crowd, "four streams of two boards lose nothing while maps come and go")
{
	const char *text = getenv("RASHPA_CROWD");
	const unsigned int second = text ? strtoul(text, NULL, 10) : 1;

	boards[0] = f;
	second_fetches = !text && function_open(&boards[1], RFPGA_PCI_VENDOR,
						RFPGA_PCI_FETCH_CHAIN, 0);
	if (second_fetches) {
		crowd_board(1);
		profile();
		rig_load(&f);
		crowd_board(0);
	} else {
		SKIP_IF(!rig_try(&boards[1], second),
			"there is one software FPGA only (lab run --fpga 2)");
	}
	tap_note("the second board %s", second_fetches ? "fetches a chain" : "has a table");
	crowd = shared + 1;
	crowd_run();
	fpga_profile(&boards[1], 0, NULL, 0);
	fpga_close(&boards[1]);
	profile();
}

/* -------------------------------------------------------------- races --- */

static void churn(void *arg)
{
	const unsigned int n = *(unsigned int *)arg;
	int buffer = buffer_alloc(DATA, NULL);

	while (!atomic_load(&shared->stop)) {
		struct rashpa_map_make made = { HEAD(made), .fd = buffer,
						.direction = RASHPA_BIDIRECTIONAL };

		/* may be refused while the function is gone or stuck */
		if (call(f.fd, RASHPA_IOC_MAP_MAKE, &made))
			continue;
		if (!fpga_program(made.out_fd, n * ENTRIES, NULL))
			start(n, n * ENTRIES, 1);
		close(made.out_fd);
		atomic_fetch_add(&shared->stacks, 1);
	}
}

TEST(races, "engines are stopped during quiesce, reset and loss of the function")
{
	struct rashpa_device_info info;
	unsigned int n[2] = { 0, 1 }, i;
	pid_t pid[2];
	int err;

	open_regs();
	atomic_store(&shared->stacks, 0);
	atomic_store(&shared->stop, false);
	for (i = 0; i < 2; i++)
		pid[i] = tap_fork_start(churn, &n[i]);
	for (i = 0; i < 24 && tap_ok(); i++) {
		const u64 to = atomic_load(&shared->stacks) + 3;
		u64 end = end_of_wait(20000), look = end_of_wait(1000);

		while (atomic_load(&shared->stacks) < to) {
			/* they start it all the time: where it did not stop, a reset helps */
			if (now_ns() > look) {
				look = end_of_wait(1000);
				ANSWERED(fpga_info(&f, &info), 0, NULL);
				if (info.out_state == RASHPA_STATE_STUCK)
					ANSWERED(fpga_reset(&f), 0, NULL);
			}
			if (!CHECK(now_ns() < end, "nothing goes on"))
				break;
		}
		if (i % 3 == 0) {
			err = fpga_quiesce(&f);
			CHECK(!err || err == -ETIMEDOUT, "QUIESCE: %s", reason);
		} else if (i % 3 == 1) {
			ANSWERED(fpga_reset(&f), 0, NULL);
		} else {
			set32(regs, RFPGA_CONTROL, RFPGA_CONTROL_RESET);
		}
	}
	atomic_store(&shared->stop, true);
	for (i = 0; i < 2; i++)
		tap_fork_end(pid[i]);
	CHECK(!(status(0) & RFPGA_DTP_RUNNING) && !(status(1) & RFPGA_DTP_RUNNING), "it runs");
	for (i = 0; i < OWN; i++)
		entries_clear(i * ENTRIES);
	close_regs();
	/* the last loss may not have been noticed */
	profile();
}

TEST(unbind, "unbind stops an engine that runs")
{
	struct rashpa_map_make made;
	int buffer, map, err;
	void *p;

	open_regs();
	buffer = buffer_alloc(DATA, NULL);
	p = map_fd(buffer, DATA);
	map = place(buffer, 0, &made);
	start(0, 0, made.out_segments);
	runs(0);
	err = fpga_unbind(&f);
	CHECK(!err, "unbind: %s", strerror(-err));
	rig_nobody_writes(p);
	close(map);
	close_regs();
	unmap_fd(p, DATA, buffer);
	fpga_close(&f);
	if (fpga_bind(&f) || !fpga_open(&f, 0))
		tap_bail("bind: %s", reason);
	profile();
}

void setup(void)
{
	rig_need(&f);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		tap_bail("mmap");
	profile();
}
