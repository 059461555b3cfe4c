// SPDX-License-Identifier: LGPL-2.1-or-later
/* The address table and linear spaces: bus.c sends transactions through them. See table.h. */
#include "fpga/table.h"

#include <string.h>

void bus_init(struct bus *bus, struct host *host, uint32_t entries, enum fetch_format fetch)
{
	memset(bus, 0, sizeof(*bus));
	bus->host = host;
	bus->entries = entries;
	bus->fetch = fetch;
	bus_reset(bus);
}

/* ------------------------------------------ address table and bounds --- */

/* The protocol thread is the only writer and may read without the lock. */
uint32_t bus_table_read(const struct bus *bus, uint32_t offset)
{
	const uint32_t n = offset / RFPGA_ENTRY_STRIDE;

	if (bus->fetch && offset % RFPGA_ENTRY_STRIDE == RFPGA_FETCH_STATUS)
		return bus->ring[n].status;
	if (bus->fetch && offset % RFPGA_ENTRY_STRIDE == RFPGA_FETCH_FETCHED)
		return bus->ring[n].fetched;
	return bus->table[offset / 4];
}

/* The same for an entry that describes a ring. */
static uint32_t ring_mask(uint32_t word)
{
	switch (word) {
	case RFPGA_FETCH_BASE:
		return ~7u;
	case RFPGA_FETCH_CONTROL:
		return RFPGA_FETCH_VALID;
	case RFPGA_FETCH_BASE + 4:
	case RFPGA_FETCH_COUNT:
	case RFPGA_FETCH_TAIL:
		return UINT32_MAX;
	default:
		return 0;
	}
}

/* Implemented bits of a word of an entry. */
static uint32_t entry_mask(uint32_t word)
{
	switch (word) {
	case RFPGA_ENTRY_ADDR:
	case RFPGA_ENTRY_LEN:
	case RFPGA_ENTRY_SUM:
		return ~(RFPGA_ENTRY_PAGE - 1u);
	case RFPGA_ENTRY_CONTROL:
		return RFPGA_ENTRY_VALID;
	case RFPGA_ENTRY_CONTROL + 4:
		return 0;
	default:
		return UINT32_MAX;
	}
}

void bus_table_write(struct bus *bus, uint32_t offset, uint32_t value)
{
	const uint32_t n = offset / RFPGA_ENTRY_STRIDE, word = offset % RFPGA_ENTRY_STRIDE;

	if (n >= bus->entries)
		return;
	host_exclude(bus->host);
	bus->table[offset / 4] = value & (bus->fetch ? ring_mask(word) : entry_mask(word));
	bus->ring[n].generation++;
	if (word == RFPGA_FETCH_CONTROL && (value & RFPGA_FETCH_VALID))
		bus->ring[n].status = bus->ring[n].fetched = 0;
	host_end(bus->host);
}

uint32_t bus_bounds_read(const struct bus *bus, uint32_t offset)
{
	const uint32_t who = offset / RFPGA_BOUNDS_STRIDE;

	switch (offset % RFPGA_BOUNDS_STRIDE) {
	case RFPGA_BOUNDS_FIRST:
		return bus->bounds[who].first;
	case RFPGA_BOUNDS_LIMIT:
		return bus->bounds[who].limit;
	default:
		return 0;
	}
}

void bus_bounds_write(struct bus *bus, uint32_t offset, uint32_t value)
{
	const uint32_t who = offset / RFPGA_BOUNDS_STRIDE;

	host_exclude(bus->host);
	if (offset % RFPGA_BOUNDS_STRIDE == RFPGA_BOUNDS_FIRST)
		bus->bounds[who].first = value & RFPGA_BOUNDS_MASK;
	else if (offset % RFPGA_BOUNDS_STRIDE == RFPGA_BOUNDS_LIMIT)
		bus->bounds[who].limit = value & RFPGA_BOUNDS_MASK;
	host_end(bus->host);
}

void bus_reset(struct bus *bus)
{
	unsigned int n;

	host_exclude(bus->host);
	memset(bus->table, 0, sizeof(bus->table));
	for (n = 0; n < BUS_ENTRIES_MAX; n++) {
		bus->ring[n].generation++;
		bus->ring[n].status = bus->ring[n].fetched = 0;
	}
	for (n = 0; n < sizeof(bus->bounds) / sizeof(bus->bounds[0]); n++) {
		bus->bounds[n].first = 0;
		bus->bounds[n].limit = bus->entries;
	}
	host_end(bus->host);
}

/* -------------------------------------------------------- linear spaces --- */

void bus_space_init(struct bus_space *space, unsigned int who, uint32_t first, uint32_t count)
{
	*space = (struct bus_space){ .who = who, .first = first, .count = count };
}

bool bus_refuse(struct bus_fault *fault, uint32_t cause, uint64_t addr)
{
	fault->cause = cause;
	fault->addr = addr;
	return false;
}

uint64_t bus_entry(const struct bus *bus, uint32_t n, uint32_t offset)
{
	const uint32_t *e = &bus->table[(n * RFPGA_ENTRY_STRIDE + offset) / 4];

	return e[0] | (uint64_t)e[1] << 32;
}

static bool entry_has(const struct bus *bus, uint32_t n, uint64_t offset)
{
	const uint64_t sum = bus_entry(bus, n, RFPGA_ENTRY_SUM);

	return (bus_entry(bus, n, RFPGA_ENTRY_CONTROL) & RFPGA_ENTRY_VALID) && sum <= offset &&
	       offset - sum < bus_entry(bus, n, RFPGA_ENTRY_LEN);
}

/*
 * Binary search: the last entry from @low to before @high with a sum up to the offset, else @low.
 * With sums that do not ascend it returns any of them, so the caller checks that the entry has the
 * offset.
 */
static uint32_t entry_search(const struct bus *bus, uint32_t low, uint32_t high, uint64_t offset)
{
	while (high - low > 1) {
		const uint32_t mid = low + (high - low) / 2;

		if (bus_entry(bus, mid, RFPGA_ENTRY_SUM) <= offset)
			low = mid;
		else
			high = mid;
	}
	return low;
}

/* Find the entry that holds the offset: one of the space's, and within the bounds of its owner. */
bool bus_find(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t *addr,
	      uint64_t *length, uint64_t *sum, struct bus_fault *fault)
{
	const uint32_t low = space->first, high = space->first + space->count;

	if (space->cur < low || space->cur >= high || !entry_has(bus, space->cur, offset))
		space->cur = entry_search(bus, low, high, offset);
	if (space->cur < bus->bounds[space->who].first ||
	    space->cur >= bus->bounds[space->who].limit || !entry_has(bus, space->cur, offset))
		return bus_refuse(fault, RFPGA_FAULT_ENTRY, offset);
	*addr = bus_entry(bus, space->cur, RFPGA_ENTRY_ADDR);
	*sum = bus_entry(bus, space->cur, RFPGA_ENTRY_SUM);
	*length = bus_entry(bus, space->cur, RFPGA_ENTRY_LEN);
	return true;
}

bool bus_understand(enum host_answer answer, uint64_t addr, struct bus_fault *fault)
{
	switch (answer) {
	case HOST_DONE:
		return true;
	case HOST_NO_MASTER:
		return bus_refuse(fault, RFPGA_FAULT_MASTER, addr);
	case HOST_NOTHING:
		return bus_refuse(fault, RFPGA_FAULT_BUS, addr);
	default:
		return bus_refuse(fault, RFPGA_FAULT_NONE, 0);
	}
}
