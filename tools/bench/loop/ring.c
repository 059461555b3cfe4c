// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The board's first ring, in loopback, and its memory:
 *
 *   told | descriptors | events | received payload | payload to send | answers, came
 *
 * Its bounds limit the ring to the entries of this map.
 */
#include <inttypes.h>

#include "bench/loop/loop.h"
#include <rashpa-fpga.h>
#include "common/say.h"

#define PAGE		4096u

static uint32_t reg(const struct loop *l, uint32_t offset)
{
	return fpga_read(&l->fpga, l->ring.base + offset);
}

static void set(struct loop *l, uint32_t offset, uint32_t value)
{
	fpga_write(&l->fpga, l->ring.base + offset, value);
}

uint64_t loop_ring_counter(const struct loop *l, uint32_t which)
{
	return fpga_read64(&l->fpga, l->ring.base + which);
}

static void lay_out(struct loop *l)
{
	struct loop_plan *p = &l->plan;

	p->told = loop_place(l, PAGE);
	p->descriptors = loop_place(l, (uint64_t)RFPGA_TX_SIZE << p->descriptors_log2);
	p->events = loop_place(l, (uint64_t)RFPGA_EVENT_SIZE << p->events_log2);
	p->receive = loop_place(l, UINT64_C(4) << p->slot_log2 << p->events_log2);
	p->source = loop_place(l, UINT64_C(4) << p->slot_log2 << p->descriptors_log2);
	p->answers = loop_place(l, UINT64_C(4) * p->total);
	p->came = loop_place(l, UINT64_C(4) * p->total);
}

/* Limit the ring to the entries of this map. */
static int bound(struct loop *l, char *why)
{
	struct fpga_block bounds;

	if (l->bounded)
		return 0;
	for (unsigned int i = 0; fpga_block_at(&l->fpga, i, &bounds); i++) {
		if (bounds.type != RFPGA_BLOCK_RING_BOUNDS)
			continue;
		if (view_open(&l->bounds, &l->fpga, "bounds", RFPGA_BAR_REGS, RFPGA_BOUNDS,
			      RFPGA_TABLE - RFPGA_BOUNDS, true, why))
			return -1;
		if (bounds.base < RFPGA_BOUNDS ||
		    bounds.base - RFPGA_BOUNDS > l->bounds.length - RFPGA_BOUNDS_STRIDE)
			break;
		bounds.base -= RFPGA_BOUNDS;
		view_write(&l->bounds, bounds.base + RFPGA_BOUNDS_FIRST, 0);
		view_write(&l->bounds, bounds.base + RFPGA_BOUNDS_LIMIT, l->entries);
		return 0;
	}
	return because(why, -1, "fpga%u: its rings have no bounds in the window \"bounds\"",
		       l->fpga.number);
}

static int open_ring(struct loop *l, char *why)
{
	if (!fpga_block_find(&l->fpga, RFPGA_BLOCK_RING, RFPGA_RING_SIZE, &l->ring) ||
	    reg(l, RFPGA_RING_KIND) != RFPGA_RING_WIRE)
		return because(why, -1, "fpga%u has no ring", l->fpga.number);
	if (l->ring.doorbell % PAGE || l->ring.doorbell > l->doorbells.length - PAGE)
		return because(why, -1, "fpga%u: the ring's doorbell is not in BAR %u",
			       l->fpga.number, RFPGA_BAR_DOORBELL);
	l->page = l->doorbells.base + l->ring.doorbell;
	return bound(l, why);
}

static bool faulted(const struct loop *l, char *why)
{
	if (!(reg(l, RFPGA_RING_STATUS) & RFPGA_RING_FAULTED))
		return false;
	because(why, 0, "a fault has stopped the ring: %s, at %#" PRIx64,
		fpga_cause_name(reg(l, RFPGA_RING_FAULT_CAUSE)),
		loop_ring_counter(l, RFPGA_RING_FAULT_ADDR));
	return true;
}

static int start(struct loop *l, char *why)
{
	struct loop_plan *p = &l->plan;
	const uint64_t deadline = (uint64_t)l->deadline_us *
				  fpga_read(&l->fpga, RFPGA_TICK_RATE) / 1000000;
	const struct { uint32_t at, value; } words[] = {
		{ RFPGA_RING_FIRST, l->first }, { RFPGA_RING_COUNT, l->entries },
		{ RFPGA_RING_PAYLOAD_FIRST, l->first }, { RFPGA_RING_PAYLOAD_COUNT, l->entries },
		{ RFPGA_RING_MODE, RFPGA_RING_LOOPBACK | (l->flush ? RFPGA_RING_FLUSH : 0) },
		{ RFPGA_RING_DESCRIPTORS, p->descriptors * 4 }, { RFPGA_RING_DESCRIPTORS + 4, 0 },
		{ RFPGA_RING_EVENTS, p->events * 4 }, { RFPGA_RING_EVENTS + 4, 0 },
		{ RFPGA_RING_RECEIVE, p->receive * 4 }, { RFPGA_RING_RECEIVE + 4, 0 },
		{ RFPGA_RING_DESCRIPTORS_LOG2, p->descriptors_log2 },
		{ RFPGA_RING_EVENTS_LOG2, p->events_log2 },
		{ RFPGA_RING_RECEIVE_LOG2, p->slot_log2 + 2 },
		{ RFPGA_RING_DEADLINE, deadline < UINT32_MAX ? deadline : UINT32_MAX },
	};

	if (reg(l, RFPGA_RING_STATUS) & RFPGA_RING_RUNNING)
		return because(why, -1, "fpga%u: its ring is running: stop it first (rashpactl fpga quiesce fpga%u)",
			       l->fpga.number, l->fpga.number);
	/* a new run number makes leftovers of the previous run invalid */
	p->run = reg(l, RFPGA_RING_RUN) % UINT16_MAX + 1;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		set(l, words[i].at, words[i].value);
	set(l, RFPGA_RING_RUN, p->run);
	set(l, RFPGA_RING_CONTROL, RFPGA_RING_START);
	return faulted(l, why) ? -1 : 0;
}

static void stop(struct loop *l)
{
	set(l, RFPGA_RING_CONTROL, RFPGA_RING_STOP);
	loop_await_stop(l, l->ring.base + RFPGA_RING_STATUS, RFPGA_RING_RUNNING);
}

const struct loop_kind loop_ring = {
	.engine = "ring0", .lay_out = lay_out, .open = open_ring, .start = start, .stop = stop,
	.faulted = faulted,
};
