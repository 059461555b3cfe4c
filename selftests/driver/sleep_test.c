// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sleep, hibernation and shutdown: nothing is written meanwhile, and afterwards maps and events
 * are right. The module rashpa_sleep puts one function to sleep as the PCI core would.
 * test: tier=all kernel=each iommu=both seconds=3
 */
#include "foreign.h"
#include "rig.h"

#define DATA		((uint64_t)IMAGES * IMAGE)

static struct fpga f;
static int node = -1;		/* the module's node */

static int tell(const char *what)
{
	char text[64];
	const int n = snprintf(text, sizeof(text), "%s %s", what, f.bdf);

	return write(node, text, n) == n ? 0 : -errno;
}

/* A rig whose map is programmed with @flags; the test ends where it fails. */
static void up(struct rig *r, uint32_t flags)
{
	struct rashpa_program p = { HEAD(p) };

	p.head.flags = flags;
	rig_map(r, &f, -1, 0, 0);
	CHECK(source_add(r->channel, RASHPA_SOURCE_DEVICE, 0) > 0 &&
	      source_add(r->channel, RASHPA_SOURCE_MAP, 0) > 0, "%s", reason);
	if (call(r->map, RASHPA_IOC_PROGRAM, &p))
		tap_bail("PROGRAM: %s", reason);
}

/* Records until one of this kind with this value comes. */
static bool heard(const struct rig *r, uint32_t kind, uint32_t value)
{
	struct rashpa_event e;

	while (wait_fd(r->channel, POLLIN, 5000) && next_event(r->channel, &e))
		if (e.kind == kind && (uint32_t)e.value == value)
			return true;
	return false;
}

static void fall_asleep(const struct rig *r)
{
	if (tell("suspend"))
		tap_bail("the driver does not stop the function");
	CHECK(heard(r, RASHPA_SOURCE_DEVICE, RASHPA_DEVICE_EVENT_QUIESCED), "it was not stopped");
	/* late writes have arrived by now */
	fill(r->memory, DATA, 7);
}

static void wake_up(const struct rig *r)
{
	struct rashpa_device_info info;
	int err;

	CHECK(filled(r->memory, DATA, 7), "it has written while it was asleep");
	err = tell("resume");
	CHECK(!err, "resume: %s", strerror(-err));
	CHECK(heard(r, RASHPA_SOURCE_DEVICE, RASHPA_DEVICE_EVENT_RESET), "no event of the reset");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY && info.out_flags & RASHPA_DEVICE_MASTER,
	      "state %u, flags 0x%x", info.out_state, info.out_flags);
}

TEST(again, "a map is programmed again after sleep")
{
	struct rig r;

	up(&r, RASHPA_PROGRAM_AGAIN);
	rig_run(&r, 0, 1);
	fall_asleep(&r);
	wake_up(&r);
	CHECK(heard(&r, RASHPA_SOURCE_MAP, RASHPA_MAP_STATE_PROGRAMMED),
	      "the map was not programmed again");
	rig_streams(&r, 0, 1);
	rig_down(&r);
}

TEST(by_hand, "a map without RASHPA_PROGRAM_AGAIN is programmed by its holder after sleep")
{
	struct rig r;

	up(&r, 0);
	rig_run(&r, 0, 1);
	fall_asleep(&r);
	wake_up(&r);
	CHECK(!reg64(r.regs + RFPGA_TABLE, RFPGA_ENTRY_ADDR),
	      "the board has not forgotten the map");
	ANSWERED(fpga_program(r.map, 0, NULL), 0, NULL);
	rig_streams(&r, 0, 1);
	rig_down(&r);
}

TEST(ends, "a map that ends after sleep leaves nothing")
{
	struct rig r;

	up(&r, RASHPA_PROGRAM_AGAIN);
	rig_run(&r, 0, 1);
	CHECK(!tell("suspend") && !tell("resume"), "no sleep");
	rig_end_map(&r);
	rig_is_idle(r.regs, 0);
	rig_entries_clear(r.regs, 1);
	rig_down(&r);
}

TEST(shutdown, "nothing is written after a shutdown")
{
	struct rashpa_map_make m;
	struct rig r;
	int err;

	up(&r, 0);
	rig_run(&r, 0, 1);
	err = tell("shutdown");
	if (CHECK(!err, "the driver does not stop the function: %s", strerror(-err))) {
		fill(r.memory, DATA, 8);
		rig_start(&r, 0);
		ANSWERED(fpga_map(&f, r.buffer, RASHPA_BIDIRECTIONAL, &m), EIO, "reset it");
		CHECK(filled(r.memory, DATA, 8), "it has written after the shutdown");
		ANSWERED(fpga_reset(&f), 0, NULL);
	}
	rig_down(&r);
}

void setup(void)
{
	const char *why;

	rig_need(&f);
	why = module_load("sleep", &node);
	if (why)
		tap_skip_all("%s", why);
}

void teardown_all(void)
{
	module_unload("sleep");
}
