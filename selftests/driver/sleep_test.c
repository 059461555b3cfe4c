// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sleep, hibernation and shutdown: nothing is written meanwhile, and afterwards maps and events
 * are right. The module rashpa_sleep puts one function to sleep as the PCI core would.
 * test: tier=all kernel=each iommu=both seconds=3
 */
#include "foreign.h"
#include "rig.h"

#define DATA		((uint64_t)IMAGES * IMAGE)
#define GOES_ON		20u	/* images after which a stream is taken to run */

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

static void stream(const struct rig *r)
{
	rig_configure(r, 0, RFPGA_MODE_FREERUN, 0, 1, 0);
	rig_start(r, 0);
	CHECK(rig_wait_bytes(r, 0, GOES_ON * IMAGE), "there is no stream");
}

/* All that the map holds arrives. */
static void streams(const struct rig *r)
{
	memset(r->memory, 0, DATA);
	rig_configure(r, 0, RFPGA_MODE_FREERUN | RFPGA_MODE_FLUSH, 0, 1, IMAGES);
	rig_start(r, 0);
	rig_wait_stopped(r, 0);
	CHECK(reg32(rig_dtp(r, 0), RFPGA_DTP_STATUS) == RFPGA_DTP_DONE, "status 0x%x, cause %u",
	      reg32(rig_dtp(r, 0), RFPGA_DTP_STATUS), reg32(rig_dtp(r, 0), RFPGA_DTP_FAULT_CAUSE));
	CHECK(filled(r->memory, DATA, SEED), "the data differ");
}

/* Records until one of this kind with this value comes. */
static bool heard(const struct rig *r, uint32_t kind, uint32_t value)
{
	struct rashpa_event e;

	while (wait_fd(r->channel, POLLIN, 5000) && read(r->channel, &e, sizeof(e)) == sizeof(e))
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
	stream(&r);
	fall_asleep(&r);
	wake_up(&r);
	CHECK(heard(&r, RASHPA_SOURCE_MAP, RASHPA_MAP_STATE_PROGRAMMED),
	      "the map was not programmed again");
	streams(&r);
	rig_down(&r);
}

TEST(by_hand, "a map without RASHPA_PROGRAM_AGAIN is programmed by its holder after sleep")
{
	struct rashpa_program p = { HEAD(p) };
	struct rig r;

	up(&r, 0);
	stream(&r);
	fall_asleep(&r);
	wake_up(&r);
	CHECK(!reg64(r.regs + RFPGA_TABLE, RFPGA_ENTRY_ADDR),
	      "the board has not forgotten the map");
	ANSWERED(call(r.map, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	streams(&r);
	rig_down(&r);
}

TEST(ends, "a map that ends after sleep leaves nothing")
{
	struct rig r;

	up(&r, RASHPA_PROGRAM_AGAIN);
	stream(&r);
	CHECK(!tell("suspend") && !tell("resume"), "no sleep");
	rig_end_map(&r);
	rig_is_idle(r.regs, 0);
	rig_entries_clear(r.regs, 1);
	rig_down(&r);
}

TEST(shutdown, "nothing is written after a shutdown")
{
	struct rashpa_map_make m = { HEAD(m) };
	struct rig r;
	int err;

	up(&r, 0);
	stream(&r);
	err = tell("shutdown");
	if (CHECK(!err, "the driver does not stop the function: %s", strerror(-err))) {
		fill(r.memory, DATA, 8);
		rig_start(&r, 0);
		m.fd = r.buffer;
		ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &m), EIO, "reset it");
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
