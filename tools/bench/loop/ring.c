// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The board's ring, and its memory:
 *
 *   told | descriptors | events | received payload | payload to send | answers, came
 *
 * The ring may use entries of our map only: its bounds say so.
 */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rashpa-fpga.h"
#include "rashpa.h"
#include "say.h"

#define PAGE		4096u
#define STOP_MS		6000u	/* STOP_TIME of any board, and more */

static uint32_t reg(const struct loop *l, uint32_t offset)
{
	return fpga_read(&l->fpga, l->ring.base + offset);
}

static void set(struct loop *l, uint32_t offset, uint32_t value)
{
	fpga_write(&l->fpga, l->ring.base + offset, value);
}

uint32_t loop_status(const struct loop *l)
{
	return reg(l, RFPGA_RING_STATUS);
}

uint64_t loop_counter(const struct loop *l, uint32_t which)
{
	return fpga_read64(&l->fpga, l->ring.base + which);
}

/* So many bytes at the next multiple of a page: a word's number. */
static uint32_t place(struct loop *l, uint64_t bytes)
{
	const uint32_t at = l->length / 4;

	l->length += (bytes + PAGE - 1) / PAGE * PAGE;
	return at;
}

static void lay_out(struct loop *l)
{
	struct loop_plan *p = &l->plan;

	l->length = 0;
	p->told = place(l, PAGE);
	p->descriptors = place(l, (uint64_t)RFPGA_TX_SIZE << p->descriptors_log2);
	p->events = place(l, (uint64_t)RFPGA_EVENT_SIZE << p->events_log2);
	p->receive = place(l, UINT64_C(4) << p->slot_log2 << p->events_log2);
	p->source = place(l, UINT64_C(4) << p->slot_log2 << p->descriptors_log2);
	p->answers = place(l, UINT64_C(4) * p->total);
	p->came = place(l, UINT64_C(4) * p->total);
}

static int new_buffer(struct loop *l, char *why)
{
	struct rashpa_alloc alloc = { .length = l->length };
	const int node = rashpa_memory_open();

	l->dmabuf = node < 0 ? node : rashpa_memory_alloc(node, &alloc);
	if (node >= 0)
		close(node);
	return l->dmabuf < 0 ? because(why, -1, "%s", rashpa_reason()) : 0;
}

static int named_buffer(struct loop *l, const char *name, char *why)
{
	off_t have;

	l->dmabuf = rashpa_open(name, O_RDWR | O_EXCL);
	if (l->dmabuf < 0)
		return because(why, -1, "%s", rashpa_reason());
	have = lseek(l->dmabuf, 0, SEEK_END);
	if (have < (off_t)l->length)
		return because(why, -1, "buffer %s has %lld bytes, and %" PRIu64 " are needed: have fewer events, or a larger buffer",
			       name, (long long)have, l->length);
	return 0;
}

static int open_memory(struct loop *l, const char *buffer, char *why)
{
	struct rashpa_map_make map = { .direction = RASHPA_BIDIRECTIONAL };
	struct rashpa_program program = { .window = -1 };
	void *base;

	if (buffer ? named_buffer(l, buffer, why) : new_buffer(l, why))
		return -1;
	base = mmap(NULL, l->length, PROT_READ | PROT_WRITE, MAP_SHARED, l->dmabuf, 0);
	if (base == MAP_FAILED)
		return because(why, -1, "mmap of a buffer: %s", strerror(errno));
	l->word = base;
	map.fd = l->dmabuf;
	l->map = rashpa_device_map(l->fpga.device, &map);
	/* the driver writes the table: a ring names entries, and never an address */
	if (l->map < 0 || rashpa_map_program(l->map, &program))
		return because(why, -1, "%s", rashpa_reason());
	l->entries = map.out_segments;
	return 0;
}

/* The ring uses the entries of our map and no other one. */
static int bound(struct loop *l, char *why)
{
	struct fpga_block bounds;

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

static int open_ring(struct loop *l, const char *device, const char *buffer, char *why)
{
	unsigned int number;

	if (!parse_fpga(device, &number))
		return because(why, -1, "\"%s\" is not fpgaN: see rashpactl list", device);
	if (fpga_open(&l->fpga, number, why) || fpga_claim(&l->fpga, why) ||
	    fpga_registers(&l->fpga, why))
		return -1;
	if (!fpga_block_find(&l->fpga, RFPGA_BLOCK_RING, RFPGA_RING_SIZE, &l->ring) ||
	    reg(l, RFPGA_RING_KIND) != RFPGA_RING_WIRE)
		return because(why, -1, "fpga%u has no ring", number);
	if (view_open(&l->doorbells, &l->fpga, "doorbells", RFPGA_BAR_DOORBELL, 0, 0, true, why))
		return -1;
	if (l->ring.doorbell % PAGE || l->ring.doorbell > l->doorbells.length - PAGE)
		return because(why, -1, "fpga%u: the ring's doorbell is not in BAR %u", number,
			       RFPGA_BAR_DOORBELL);
	l->page = l->doorbells.base + l->ring.doorbell;
	return open_memory(l, buffer, why) || bound(l, why) ? -1 : 0;
}

int loop_open(struct loop *l, const char *device, const char *buffer, char *why)
{
	lay_out(l);
	if (!open_ring(l, device, buffer, why))
		return 0;
	loop_close(l);
	return -1;
}

void loop_close(struct loop *l)
{
	/* the map ends all DMA: so it goes before the memory */
	if (l->map >= 0)
		close(l->map);
	if (l->word)
		munmap((void *)(uintptr_t)l->word, l->length);
	if (l->dmabuf >= 0)
		close(l->dmabuf);
	view_close(&l->bounds);
	view_close(&l->doorbells);
	fpga_close(&l->fpga);
	*l = (struct loop)LOOP_NONE;
}

int loop_start(struct loop *l, uint32_t deadline_us, char *why)
{
	struct loop_plan *p = &l->plan;
	const uint64_t deadline = (uint64_t)deadline_us * fpga_read(&l->fpga, RFPGA_TICK_RATE) /
				  1000000;
	const struct { uint32_t at, value; } words[] = {
		{ RFPGA_RING_FIRST, 0 }, { RFPGA_RING_COUNT, l->entries },
		{ RFPGA_RING_PAYLOAD_FIRST, 0 }, { RFPGA_RING_PAYLOAD_COUNT, l->entries },
		{ RFPGA_RING_MODE, RFPGA_RING_LOOPBACK },
		{ RFPGA_RING_DESCRIPTORS, p->descriptors * 4 }, { RFPGA_RING_DESCRIPTORS + 4, 0 },
		{ RFPGA_RING_EVENTS, p->events * 4 }, { RFPGA_RING_EVENTS + 4, 0 },
		{ RFPGA_RING_RECEIVE, p->receive * 4 }, { RFPGA_RING_RECEIVE + 4, 0 },
		{ RFPGA_RING_DESCRIPTORS_LOG2, p->descriptors_log2 },
		{ RFPGA_RING_EVENTS_LOG2, p->events_log2 },
		{ RFPGA_RING_RECEIVE_LOG2, p->slot_log2 + 2 },
		{ RFPGA_RING_DEADLINE, deadline < UINT32_MAX ? deadline : UINT32_MAX },
	};

	if (loop_status(l) & RFPGA_RING_RUNNING)
		return because(why, -1, "fpga%u: its ring runs: stop it first (rashpactl quiesce fpga%u)",
			       l->fpga.number, l->fpga.number);
	/* what is left of a run before has another number, and counts for nobody */
	p->run = reg(l, RFPGA_RING_RUN) % UINT16_MAX + 1;
	memset((void *)(uintptr_t)l->word, 0, l->length);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		set(l, words[i].at, words[i].value);
	set(l, RFPGA_RING_RUN, p->run);
	set(l, RFPGA_RING_CONTROL, RFPGA_RING_START);
	if (!(loop_status(l) & RFPGA_RING_FAULTED))
		return 0;
	return because(why, -1, "fpga%u: the ring does not start: %s, at %#" PRIx64,
		       l->fpga.number, fpga_cause_name(reg(l, RFPGA_RING_FAULT_CAUSE)),
		       loop_counter(l, RFPGA_RING_FAULT_ADDR));
}

void loop_stop(struct loop *l)
{
	set(l, RFPGA_RING_CONTROL, RFPGA_RING_STOP);
	/* nothing tells of it but the register; one that is all ones never will */
	for (unsigned int ms = 0; ms < STOP_MS && loop_status(l) & RFPGA_RING_RUNNING; ms++)
		usleep(1000);
}
