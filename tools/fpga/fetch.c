// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Fetched addresses: an entry of the table holds the address of a ring of descriptors in memory of
 * the host. A space is one ring; its descriptors in order form the linear space. They are read in
 * a row, some ahead, because streams go forward and wrap at the end.
 */
#include <string.h>

#include "fpga/table.h"

#define LEN_MASK	0xfffffffu	/* length field of a chain descriptor */

static uint32_t word32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t word64(const uint8_t *p)
{
	return word32(p) | (uint64_t)word32(p + 4) << 32;
}

static uint32_t descriptor_size(const struct bus *bus)
{
	return bus->fetch == FETCH_ARRAY ? RFPGA_ARRAY_SIZE :
	       bus->fetch == FETCH_CHAIN ? RFPGA_CHAIN_SIZE : RFPGA_PACKED_SIZE;
}

struct descriptor {
	uint64_t addr, len;
	uint64_t next;		/* bus address */
	bool last;
};

/* @at: bus address; @sum: bytes of all earlier descriptors. False: invalid descriptor. */
static bool decode(const struct bus *bus, const uint8_t *p, uint64_t at, uint64_t sum,
		   struct descriptor *d)
{
	bool valid;

	d->next = at + descriptor_size(bus);
	d->last = false;
	switch (bus->fetch) {
	case FETCH_ARRAY:
		d->addr = word64(p + RFPGA_ARRAY_ADDR);
		d->len = word32(p + RFPGA_ARRAY_LEN);
		d->last = word32(p + RFPGA_ARRAY_FLAGS) & RFPGA_ARRAY_LAST;
		valid = word32(p + RFPGA_ARRAY_FLAGS) & RFPGA_ARRAY_VALID;
		break;
	case FETCH_CHAIN:
		d->addr = word64(p + RFPGA_CHAIN_ADDR);
		d->len = word32(p + RFPGA_CHAIN_LEN) & LEN_MASK;
		d->next = word64(p + RFPGA_CHAIN_NEXT);
		valid = word32(p + RFPGA_CHAIN_CONTROL) >> 16 == RFPGA_CHAIN_MAGIC &&
			word64(p + RFPGA_CHAIN_SUM) == sum;
		break;
	default:
		d->addr = word64(p) & ~(uint64_t)(RFPGA_ENTRY_PAGE - 1);
		d->len = (word64(p) % RFPGA_ENTRY_PAGE / 2 + 1) * RFPGA_ENTRY_PAGE;
		valid = word64(p) & 1;
		break;
	}
	return valid && d->len && (d->addr | d->len) % RFPGA_ENTRY_PAGE == 0;
}

/* Store the reason in the entry's status, which the kernel may read. */
static bool failed(struct bus *bus, uint32_t n, uint32_t status)
{
	bus->ring[n].status = status;
	return false;
}

/* Number of the @left descriptors from @at on to read at once: those in one page. */
static uint32_t ahead(const struct bus *bus, uint64_t at, uint32_t left)
{
	uint32_t n = (uint32_t)(RFPGA_ENTRY_PAGE - at % RFPGA_ENTRY_PAGE) / descriptor_size(bus);

	if (!n)
		n = 1;
	if (n > FETCH_AHEAD)
		n = FETCH_AHEAD;
	return n < left ? n : left;
}

/* Number of descriptors of entry @n; later ones are not fetched. */
static uint32_t descriptors(const struct bus *bus, uint32_t n)
{
	const uint32_t *entry = &bus->table[n * RFPGA_ENTRY_STRIDE / 4];
	const uint32_t count = entry[RFPGA_FETCH_COUNT / 4], tail = entry[RFPGA_FETCH_TAIL / 4];

	return tail < count ? tail : count;
}

/*
 * Load the descriptors from @w->index on, the first one at @w->at, while they are adjacent. An
 * invalid one is a fault when its turn comes.
 */
static bool load(struct bus *bus, struct fetch_window *w, uint32_t n, struct bus_fault *fault)
{
	const uint32_t size = descriptor_size(bus), all = descriptors(bus, n);
	uint8_t data[FETCH_AHEAD * RFPGA_CHAIN_SIZE];
	uint64_t sum = w->sum, refused;
	enum host_answer answer;
	struct descriptor d;
	uint32_t i, most;

	w->count = 0;
	w->next = w->at;
	w->end = w->index >= all;
	if (w->end)
		return true;
	most = ahead(bus, w->at, all - w->index);
	answer = host_access(bus->host, HOST_READ, w->at, data, (size_t)most * size, &refused);
	if (answer != HOST_DONE)
		return failed(bus, n, RFPGA_FETCH_REFUSED) ||
		       bus_understand(answer, refused, fault);
	if (bus->poison)
		return failed(bus, n, RFPGA_FETCH_POISON) ||
		       bus_refuse(fault, RFPGA_FAULT_BUS, w->at);
	/* the entry may have changed while the host answered */
	if (w->generation != bus->ring[n].generation)
		return bus_refuse(fault, RFPGA_FAULT_ENTRY, w->sum);
	for (i = 0; i < most && w->next == w->at + (uint64_t)i * size && !w->end; i++) {
		if (!decode(bus, data + i * size, w->next, sum, &d)) {
			if (i)
				break;
			return failed(bus, n, RFPGA_FETCH_INVALID) ||
			       bus_refuse(fault, RFPGA_FAULT_DESC, w->at);
		}
		w->d[i].addr = d.addr;
		w->d[i].len = d.len;
		w->next = d.next;
		w->end = d.last || w->index + i + 1 >= all;
		sum += d.len;
		w->count++;
	}
	bus->ring[n].fetched += w->count;
	return true;
}

static bool rewind_ring(struct bus *bus, struct bus_space *space, uint64_t offset,
			struct bus_fault *fault)
{
	const uint32_t n = space->first;

	if (space->mark.generation == bus->ring[n].generation && space->mark.count &&
	    space->mark.sum <= offset) {
		space->window = space->mark;
		return true;
	}
	space->window = (struct fetch_window){
		.generation = bus->ring[n].generation, .at = bus_entry(bus, n, RFPGA_FETCH_BASE),
	};
	return load(bus, &space->window, n, fault);
}

bool fetch_find(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t *addr,
		uint64_t *length, uint64_t *sum, struct bus_fault *fault)
{
	struct fetch_window *w = &space->window;
	const uint32_t n = space->first;
	uint32_t i;

	if (n < bus->bounds[space->who].first || n >= bus->bounds[space->who].limit ||
	    !(bus->table[(n * RFPGA_ENTRY_STRIDE + RFPGA_FETCH_CONTROL) / 4] & RFPGA_FETCH_VALID))
		return bus_refuse(fault, RFPGA_FAULT_ENTRY, offset);
	if ((w->generation != bus->ring[n].generation || !w->count || offset < w->sum) &&
	    !rewind_ring(bus, space, offset, fault)) {
		w->count = 0;
		return false;
	}
	for (;;) {
		*sum = w->sum;
		for (i = 0; i < w->count; *sum += w->d[i++].len) {
			if (offset - *sum >= w->d[i].len)
				continue;
			*addr = w->d[i].addr;
			*length = w->d[i].len;
			return true;
		}
		if (w->end)
			return bus_refuse(fault, RFPGA_FAULT_ENTRY, offset);
		w->sum = *sum;
		w->index += w->count;
		w->at = w->next;
		if (!load(bus, w, n, fault)) {
			w->count = 0;
			return false;
		}
	}
}
