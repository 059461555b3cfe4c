// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Owners of engines: no member of the group stops the stream of another user, whatever map he
 * makes, programs, looks at and closes.
 * test: tier=check iommu=both seconds=10
 */
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

/* A user whose map is programmed at entry 0, or root, until the test kills it. */
static void hold(void *arg)
{
	struct rashpa_map_make m = { HEAD(m), .fd = shared };

	if (!*(bool *)arg)
		become_user(VICTIM);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(fpga_program(m.out_fd, 0, NULL), 0, NULL);
	if (tap_ok())
		tap_fork_hold();
}

/* A stream of the victim's, of which the test has the registers. */
struct stream {
	pid_t victim;
	struct rig r;
	bool runs;
};

static void begin(struct stream *s, bool as_root)
{
	*s = (struct stream) { .r = { .fpga = &f, .map = -1, .buffer = -1, .channel = -1 } };
	s->r.window = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BOUNDS, 0);
	REQUIRE(s->r.window >= 0, "%s", reason);
	s->r.regs = mmap(NULL, RFPGA_BOUNDS, PROT_READ | PROT_WRITE, MAP_SHARED, s->r.window, 0);
	s->victim = tap_fork_held(hold, &as_root);
	s->runs = rig_run(&s->r, 0, 1);
}

static void goes_on(struct stream *s)
{
	const uint64_t bytes = reg64(rig_dtp(&s->r, 0), RFPGA_DTP_C_BYTES);

	CHECK(rig_wait_bytes(&s->r, 0, bytes + GOES_ON * IMAGE), "the victim's stream has ended");
}

static void end(struct stream *s)
{
	if (s->victim)
		tap_fork_kill(s->victim);
	unmap_fd(s->r.regs, RFPGA_BOUNDS, s->r.window);
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
		ANSWERED(fpga_program(m.out_fd, a->first, NULL), a->want, a->says);
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

	/* the map is two segments long */
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(fpga_program(m.out_fd, ENTRIES - 1, NULL), 0, NULL);
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
	struct attack a = { .first = 700, .want = EBUSY, .says = "another user|CAP_SYS_RAWIO" };

	ANSWERED(profile(0), 0, NULL);
	survives(false, a);
	a.want = 0;
	tap_fork(attack, &a);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), 0, NULL);
	ANSWERED(fpga_program(m.out_fd, 600, NULL), 0, NULL);
	a.privileged = true;
	tap_fork(attack, &a);
	close(m.out_fd);
	ANSWERED(profile(ENGINES + 1), 0, NULL);
}

/* With CAP_SYS_RAWIO a user could write the registers himself. */
TEST(privileged, "CAP_SYS_RAWIO lifts that limit")
{
	struct attack a = in_engine;
	pid_t victim;

	a.want = 0;
	a.says = NULL;
	a.privileged = true;
	victim = tap_fork_held(hold, &(bool){ false });
	tap_fork(attack, &a);
	a.first = 1023;
	tap_fork(attack, &a);
	tap_fork_kill(victim);
}

TEST(free_again, "an engine is free when its map has ended")
{
	struct attack a = in_engine;
	pid_t victim;

	victim = tap_fork_held(hold, &(bool){ false });
	tap_fork(attack, &a);
	tap_fork_kill(victim);
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
