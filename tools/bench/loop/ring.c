// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The board's first ring, in loopback, and its memory:
 *
 *   told | descriptors | events | received payload | payload to send | answers, came | hits, fits
 *
 * Its bounds limit the ring to the entries of this map.
 */
#include <inttypes.h>
#include <unistd.h>

#include "bench/loop/loop.h"
#include "common/say.h"

#define PAGE		4096u
#define VECTOR		0u

static uint32_t reg(const struct loop *l, uint32_t offset)
{
	return rashpa_board_read(l->board, l->ring.base + offset);
}

static void set(struct loop *l, uint32_t offset, uint32_t value)
{
	rashpa_board_write(l->board, l->ring.base + offset, value);
}

uint64_t loop_ring_counter(const struct loop *l, uint32_t which)
{
	return rashpa_board_read64(l->board, l->ring.base + which);
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
	if (!l->rings)
		return;
	p->hits = loop_place(l, (UINT64_C(4) << p->slot_log2) * LOOP_RINGS);
	p->fits = loop_place(l, UINT64_C(16) * p->total);
}

/* Limit the ring to the entries of this map. */
static int bound(struct loop *l, char *why)
{
	struct rashpa_board_view view;
	struct rashpa_block bounds;
	volatile uint32_t *word;

	/* the driver sets the bounds of engines */
	if (l->entries.engine >= 0)
		return 0;
	for (unsigned int i = 0; !rashpa_board_block(l->board, i, &bounds); i++) {
		if (bounds.type != RFPGA_BLOCK_RING_BOUNDS)
			continue;
		if (rashpa_board_window(l->board, "bounds", &view))
			return because(why, -1, "%s", rashpa_reason());
		if (bounds.base < RFPGA_BOUNDS ||
		    bounds.base - RFPGA_BOUNDS > view.length - RFPGA_BOUNDS_STRIDE)
			break;
		word = (volatile uint32_t *)(view.base + bounds.base - RFPGA_BOUNDS);
		word[RFPGA_BOUNDS_FIRST / 4] = 0;
		word[RFPGA_BOUNDS_LIMIT / 4] = l->entries.first + l->entries.entries;
		return 0;
	}
	return because(why, -1, "fpga%u: its rings have no bounds in the window \"bounds\"",
		       l->info.number);
}

/* The interrupts of the ring's vector, of which a ring that is polled has none. */
static int open_channel(struct loop *l, char *why)
{
	struct rashpa_channel_make make = {};
	struct rashpa_source_add source = {
		.kind = RASHPA_SOURCE_VECTOR, .index = VECTOR, .device = -1, .memory = -1,
	};

	if (rashpa_ioctl(rashpa_board_device(l->board), RASHPA_IOC_CHANNEL_MAKE, &make,
			 sizeof(make)))
		return because(why, -1, "%s", rashpa_reason());
	l->channel = make.out_fd;
	if (rashpa_ioctl(l->channel, RASHPA_IOC_SOURCE_ADD, &source, sizeof(source)))
		return because(why, -1, "%s", rashpa_reason());
	l->source = source.out_id;
	return 0;
}

uint64_t loop_ring_interrupts(const struct loop *l)
{
	struct rashpa_source_info info = { .id = l->source };

	return rashpa_ioctl(l->channel, RASHPA_IOC_SOURCE_INFO, &info, sizeof(info)) ? 0 :
	       info.out_events;
}

static int open_ring(struct loop *l, char *why)
{
	if (rashpa_board_find_block(l->board, RFPGA_BLOCK_RING, RFPGA_RING_SIZE, &l->ring) ||
	    reg(l, RFPGA_RING_KIND) != RFPGA_RING_WIRE)
		return because(why, -1, "fpga%u has no ring", l->info.number);
	if (l->ring.doorbell % PAGE || l->ring.doorbell > l->doorbells.length - PAGE)
		return because(why, -1, "fpga%u: the ring's doorbell is not in BAR %u",
			       l->info.number, RFPGA_BAR_DOORBELL);
	l->page = l->doorbells.base + l->ring.doorbell;
	return bound(l, why) || open_channel(l, why) ? -1 : 0;
}

static bool faulted(const struct loop *l, char *why)
{
	if (!(reg(l, RFPGA_RING_STATUS) & RFPGA_RING_FAULTED))
		return false;
	because(why, 0, "a fault has stopped the ring: %s, at %#" PRIx64,
		rashpa_fault_name(reg(l, RFPGA_RING_FAULT_CAUSE)),
		loop_ring_counter(l, RFPGA_RING_FAULT_ADDR));
	return true;
}

static int start(struct loop *l, char *why)
{
	struct loop_plan *p = &l->plan;
	const uint64_t deadline = (uint64_t)l->deadline_us *
				  l->info.tick_rate / 1000000;
	const struct { uint32_t at, value; } words[] = {
		{ RFPGA_RING_FIRST, l->entries.first }, { RFPGA_RING_COUNT, l->entries.entries },
		{ RFPGA_RING_PAYLOAD_FIRST, l->entries.first },
		{ RFPGA_RING_PAYLOAD_COUNT, l->entries.entries },
		{ RFPGA_RING_MODE, RFPGA_RING_LOOPBACK | (l->flush ? RFPGA_RING_FLUSH : 0) |
		  (l->drive->launch ? RFPGA_RING_MSIX : 0) },
		{ RFPGA_RING_VECTOR, VECTOR },
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
			       l->info.number, l->info.number);
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
	/* only the register reports the stop; it stays all ones after a loss of the link */
	for (unsigned int ms = 0; ms < LOOP_STOP_MS &&
	     reg(l, RFPGA_RING_STATUS) & RFPGA_RING_RUNNING; ms++)
		usleep(1000);
}

const struct loop_kind loop_ring = {
	.user = RASHPA_BOARD_RING(0), .lay_out = lay_out, .open = open_ring, .start = start, .stop = stop,
	.faulted = faulted,
};
