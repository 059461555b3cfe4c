// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owners of engines: no member of the group stops the stream of another user, whatever map he
 * makes, programs, looks at and closes.
 * test: tier=check iommu=both seconds=10
 */
#include <grp.h>

#include "rig.h"

#define ENTRIES		64u	/* per engine */
#define ENGINES		2u	/* engines of the board */
#define ABSENT		ENGINES	/* an engine that the board does not have */
#define GOES_ON		20u	/* images after which a stream is taken to go on */
#define VICTIM		1000	/* user */

static struct fpga f;
static int shared = -1;		/* memory for all maps */
static bool disclose;

static struct rashpa_profile_engine engine_of(unsigned int i, struct rashpa_profile_step *steps)
{
	/* bounds of a DTP that the board does not have read as zero */
	const uint32_t n = i == ABSENT ? RFPGA_DTPS_MAX - 1 : i;
	const uint32_t bounds = RFPGA_BOUNDS + n * RFPGA_BOUNDS_STRIDE;
	struct rashpa_profile_engine e = {
		.bar = RFPGA_BAR_REGS, .flags = RASHPA_PENGINE_OPTIONAL,
		.first_offset = bounds + RFPGA_BOUNDS_FIRST,
		.limit_offset = bounds + RFPGA_BOUNDS_LIMIT,
		.first = i * ENTRIES, .count = ENTRIES,
		.steps = (uintptr_t)steps, .n_steps = 2, .step_size = sizeof(*steps),
	};

	snprintf(e.name, sizeof(e.name), "dtp%u", n);
	steps[0] = (struct rashpa_profile_step) {
		.op = RASHPA_STEP_WRITE, .bar = RFPGA_BAR_REGS,
		.offset = RFPGA_DTP(n) + RFPGA_DTP_CONTROL, .value = RFPGA_DTP_STOP, .mask = ~0U };
	steps[1] = (struct rashpa_profile_step) {
		.op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS,
		.offset = RFPGA_DTP(n) + RFPGA_DTP_STATUS, .mask = RFPGA_DTP_RUNNING,
		.timeout_us = 1000000 };
	return e;
}

/* With engines, or as a board that has none. */
static int profile(unsigned int engines)
{
	static struct rashpa_profile_step steps[ENGINES + 1][2];
	static struct rashpa_profile_engine e[ENGINES + 1];
	struct rashpa_profile_set p = { HEAD(p), STEPS(fpga_stop), TABLE(fpga_table), .dma_bits = 64 };
	unsigned int i;

	for (i = 0; i < engines; i++)
		e[i] = engine_of(i, steps[i]);
	p.engines = (uintptr_t)e;
	p.n_engines = engines;
	p.engine_size = sizeof(e[0]);
	p.head.flags = RASHPA_PROFILE_NO_RESET | (disclose ? RASHPA_PROFILE_DISCLOSE : 0);
	return call(f.fd, RASHPA_IOC_PROFILE_SET, &p);
}

/* ------------------------------------------------------------- the victim --- */

static void become(uid_t uid)
{
	if (setgroups(0, NULL) || setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		tap_bail("setresuid: %s", strerror(errno));
}

struct victim {
	pid_t pid;
	int go[2], ready[2];
	bool as_root;
};

/* A user whose map is programmed at entry 0, until the test closes the pipe. */
static void hold(void *arg)
{
	const struct victim *v = arg;
	struct rashpa_map_make m = { HEAD(m), .fd = shared };
	struct rashpa_program p = { HEAD(p) };
	char byte = 0;

	if (!v->as_root)
		become(VICTIM);
	close(v->go[1]);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(call(m.out_fd, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	CHECK(write(v->ready[1], &byte, 1) == 1, "write");
	/* until its other end is closed */
	CHECK(!read(v->go[0], &byte, 1), "read");
}

static void victim_begin(struct victim *v, bool as_root)
{
	char byte;

	v->as_root = as_root;
	if (pipe2(v->go, O_CLOEXEC) || pipe2(v->ready, O_CLOEXEC))
		tap_bail("pipe: %s", strerror(errno));
	v->pid = tap_fork_start(hold, v);
	close(v->ready[1]);
	CHECK(read(v->ready[0], &byte, 1) == 1, "the victim has no map");
}

static void victim_end(struct victim *v)
{
	close(v->go[1]);
	tap_fork_end(v->pid);
	close(v->go[0]);
	close(v->ready[0]);
}

/* A stream of the victim's, of which the test has the registers. */
struct stream {
	struct victim v;
	struct rig r;
	bool runs;
};

static void begin(struct stream *s, bool as_root)
{
	*s = (struct stream) { .r = { .fpga = &f, .map = -1, .buffer = -1, .channel = -1 } };
	s->r.window = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BOUNDS, 0);
	REQUIRE(s->r.window >= 0, "%s", reason);
	s->r.regs = mmap(NULL, RFPGA_BOUNDS, PROT_READ | PROT_WRITE, MAP_SHARED, s->r.window, 0);
	victim_begin(&s->v, as_root);
	rig_configure(&s->r, 0, RFPGA_MODE_FREERUN, 0, 1, 0);
	rig_start(&s->r, 0);
	s->runs = rig_wait_bytes(&s->r, 0, GOES_ON * IMAGE);
	CHECK(s->runs, "there is no stream");
}

static void goes_on(struct stream *s)
{
	const uint64_t bytes = reg64(rig_dtp(&s->r, 0), RFPGA_DTP_C_BYTES);

	CHECK(rig_wait_bytes(&s->r, 0, bytes + GOES_ON * IMAGE), "the victim's stream has ended");
}

static void end(struct stream *s)
{
	if (s->v.pid)
		victim_end(&s->v);
	munmap(s->r.regs, RFPGA_BOUNDS);
	close(s->r.window);
}

/* ----------------------------------------------------------- the attacker --- */

struct attack {
	uint32_t first;		/* entry */
	int want;		/* errno of PROGRAM */
	const char *says;
	bool look;		/* mmap of the map, instead of PROGRAM */
	bool privileged;
};

static void attack(void *arg)
{
	const struct attack *a = arg;
	struct rashpa_map_make m = { HEAD(m), .fd = shared, .length = PAGE };
	struct rashpa_program p = { HEAD(p), .first = a->first };
	void *table;

	if (!a->privileged)
		drop_privileges();
	if (!ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL))
		return;
	if (a->look) {
		table = mmap(NULL, m.out_table_size, PROT_READ, MAP_SHARED, m.out_fd, 0);
		CHECK((table == MAP_FAILED ? errno : 0) == a->want, "mmap: %s",
		      table == MAP_FAILED ? strerror(errno) : "is allowed");
	} else {
		ANSWERED(call(m.out_fd, RASHPA_IOC_PROGRAM, &p), a->want, a->says);
	}
	close(m.out_fd);
}

/* The victim's stream outlives it. */
static void survives(bool as_root, struct attack a)
{
	struct stream s;

	begin(&s, as_root);
	if (s.runs) {
		tap_fork(attack, &a);
		goes_on(&s);
	}
	end(&s);
}

static const struct attack in_engine = {
	.first = ENTRIES / 2, .want = EBUSY, .says = "engine|another user|CAP_SYS_RAWIO",
};

TEST(inside, "a map in the engine of another user's stream")
{
	survives(false, in_engine);
}

TEST(inside_root, "a map in the engine of root's stream")
{
	survives(true, in_engine);
}

TEST(outside, "a map in entries of no engine")
{
	survives(false, (struct attack) { .first = 1023, .want = EPERM,
					    .says = "engine|CAP_SYS_RAWIO" });
}

TEST(absent, "a map in entries of an engine that the board does not have")
{
	survives(false, (struct attack) { .first = ABSENT * ENTRIES, .want = EPERM,
					    .says = "engine|CAP_SYS_RAWIO" });
}

TEST(border, "a user with the registers may program across two engines")
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared, .length = 2 * PAGE,
				     .max_segment = PAGE };
	struct rashpa_program p = { HEAD(p), .first = ENTRIES - 1 };

	/* the map is two segments long */
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(call(m.out_fd, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	close(m.out_fd);
}

TEST(beside, "a map in a free engine ends without stopping the stream of another user")
{
	survives(false, (struct attack) { .first = ENTRIES });
}

TEST(looked_at, "a map whose addresses are seen")
{
	disclose = true;
	ANSWERED(profile(ENGINES + 1), 0, NULL);
	survives(false, (struct attack) { .look = true, .want = EBUSY });
	disclose = false;
	ANSWERED(profile(ENGINES + 1), 0, NULL);
}

/* One user may have several maps. */
TEST(no_engines, "a function without engines belongs to one user at a time")
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared, .length = PAGE };
	struct rashpa_program p = { HEAD(p), .first = 600 };
	struct attack a = { .first = 700, .want = EBUSY, .says = "another user|CAP_SYS_RAWIO" };

	ANSWERED(profile(0), 0, NULL);
	survives(false, a);
	a.want = 0;
	tap_fork(attack, &a);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(call(m.out_fd, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	a.privileged = true;
	tap_fork(attack, &a);
	close(m.out_fd);
	ANSWERED(profile(ENGINES + 1), 0, NULL);
}

/* With CAP_SYS_RAWIO a user could write the registers himself. */
TEST(privileged, "CAP_SYS_RAWIO lifts that limit")
{
	struct victim v;
	struct attack a = in_engine;

	a.want = 0;
	a.says = NULL;
	a.privileged = true;
	victim_begin(&v, false);
	tap_fork(attack, &a);
	a.first = 1023;
	tap_fork(attack, &a);
	victim_end(&v);
}

TEST(free_again, "an engine is free when its map has ended")
{
	struct attack a = in_engine;
	struct victim v;

	victim_begin(&v, false);
	tap_fork(attack, &a);
	victim_end(&v);
	a.want = 0;
	a.says = NULL;
	tap_fork(attack, &a);
}

void setup(void)
{
	rig_need(&f);
	if (profile(ENGINES + 1))
		tap_bail("profile: %s", reason);
	shared = buffer_alloc(IMAGES * IMAGE, NULL);
}
