// SPDX-License-Identifier: LGPL-2.1-or-later
/* The address table, linear spaces, and transactions through them. See table.h. */
#include "fpga/table.h"

#include <string.h>

/* A part of a transaction within one table entry. */
struct piece {
	uint64_t addr;
	uint64_t length;
};

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
static bool entry_find(struct bus *bus, struct bus_space *space, uint64_t offset,
		       uint64_t *addr, uint64_t *length, uint64_t *sum, struct bus_fault *fault)
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

static bool space_find(struct bus *bus, struct bus_space *space, uint64_t offset,
		       struct piece *piece, struct bus_fault *fault)
{
	uint64_t addr, length, sum, left, skip;
	bool found;

	if (space->wild)
		return !__builtin_add_overflow(space->wild_addr, offset, &piece->addr) ||
		       bus_refuse(fault, RFPGA_FAULT_BUS, space->wild_addr);
	if (bus->fetch)
		found = fetch_find(bus, space, offset, &addr, &length, &sum, fault);
	else
		found = entry_find(bus, space, offset, &addr, &length, &sum, fault);
	if (!found)
		return false;
	skip = offset - sum;
	left = length - skip;
	if (__builtin_add_overflow(addr, skip, &piece->addr))
		return bus_refuse(fault, RFPGA_FAULT_BUS, addr);
	if (piece->length > left)
		piece->length = left;
	/* the rest is refused by the next look-up, which begins behind the end of addresses */
	if (piece->length && piece->length - 1 > UINT64_MAX - piece->addr)
		piece->length = UINT64_MAX - piece->addr + 1;
	return true;
}

/* -------------------------------------------------------- transactions --- */

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

static unsigned int how(const struct bus_space *space, unsigned int what)
{
	return space->sent ? what | HOST_LEFT : what;
}

static bool check(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t length,
		  unsigned int what, struct bus_fault *fault)
{
	enum host_answer answer;
	struct piece piece;
	uint64_t at;

	bool first = true;

	for (; length; offset += piece.length, length -= piece.length) {
		piece.length = length;
		if (!space_find(bus, space, offset, &piece, fault))
			return false;
		/* the next transaction begins here */
		if (first && bus->fetch)
			space->mark = space->window;
		first = false;
		answer = host_check(bus->host, how(space, what), piece.addr, piece.length, &at);
		if (!bus_understand(answer, at, fault))
			return false;
	}
	return true;
}

/* A posted write is dropped without a report. */
static bool dropped(const struct bus_space *space, const struct bus_fault *fault)
{
	return space->drop && fault->cause == RFPGA_FAULT_BUS;
}

bool bus_check(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t length,
	       struct bus_fault *fault)
{
	return check(bus, space, offset, length, HOST_WRITE, fault) || dropped(space, fault);
}

/* All of it is looked up before the first byte moves: refused means not executed. */
static bool transfer(struct bus *bus, struct bus_space *space, uint64_t offset,
		     uint8_t *data, size_t length, unsigned int what, struct bus_fault *fault)
{
	struct piece piece = { .length = length };
	enum host_answer answer;
	uint64_t at;

	if (!space_find(bus, space, offset, &piece, fault) ||
	    (piece.length < length && !check(bus, space, offset, length, what, fault)))
		return false;
	for (; length; offset += piece.length, data += piece.length, length -= piece.length) {
		piece.length = length;
		if (!space_find(bus, space, offset, &piece, fault))
			return false;
		answer = host_access(bus->host, how(space, what), piece.addr, data, piece.length,
				     &at);
		if (!bus_understand(answer, at, fault))
			return false;
	}
	return true;
}

bool bus_write(struct bus *bus, struct bus_space *space, uint64_t offset, const void *data,
	       size_t length, struct bus_fault *fault)
{
	return transfer(bus, space, offset, (uint8_t *)data, length, HOST_WRITE, fault) ||
	       dropped(space, fault);
}

bool bus_read(struct bus *bus, struct bus_space *space, uint64_t offset, void *data,
	      size_t length, struct bus_fault *fault)
{
	return transfer(bus, space, offset, data, length, HOST_READ, fault);
}

/* All @size bytes could be written, and @length of them are. */
static bool write_words(struct bus *bus, struct bus_space *space, uint64_t offset,
			const uint64_t *words, size_t size, size_t length,
			struct bus_fault *fault)
{
	const unsigned int what = how(space, HOST_WRITE | HOST_WORDS);
	struct piece piece = { .length = size };
	enum host_answer answer;
	uint64_t at;

	if (!space_find(bus, space, offset, &piece, fault))
		return false;
	answer = host_check(bus->host, what, piece.addr, size, &at);
	if (answer == HOST_DONE)
		answer = host_access(bus->host, what, piece.addr, (void *)words, length, &at);
	return bus_understand(answer, at, fault);
}

bool bus_write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
		      const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
		      struct bus_fault *fault)
{
	return write_words(bus, space, offset, record, RFPGA_LOCK_SIZE, length, fault) ||
	       dropped(space, fault);
}

bool bus_write_words(struct bus *bus, struct bus_space *space, uint64_t offset,
		     const uint64_t *words, size_t length, struct bus_fault *fault)
{
	return write_words(bus, space, offset, words, length, length, fault);
}
