// SPDX-License-Identifier: GPL-2.0-only
/* The address table, linear spaces, and transactions through them. See table.h. */
#include "table.h"

#include <string.h>

/* A part of a transaction that is in one table entry. */
struct piece {
	uint64_t addr;
	uint64_t length;
};

void bus_init(struct bus *bus, struct host *host, uint32_t entries)
{
	memset(bus, 0, sizeof(*bus));
	bus->host = host;
	bus->entries = entries;
	bus->generation = 1;
}

/* ------------------------------------------------------- address table --- */

/* The protocol thread is the only writer and may read without the lock. */
uint32_t bus_table_read(const struct bus *bus, uint32_t offset)
{
	return bus->table[offset / 4];
}

void bus_table_write(struct bus *bus, uint32_t offset, uint32_t value)
{
	if (offset % RFPGA_ENTRY_STRIDE == RFPGA_ENTRY_CONTROL + 4 ||
	    offset / RFPGA_ENTRY_STRIDE >= bus->entries)
		return;
	if (offset % RFPGA_ENTRY_STRIDE == RFPGA_ENTRY_CONTROL)
		value &= RFPGA_ENTRY_VALID;
	host_exclude(bus->host);
	bus->table[offset / 4] = value;
	bus->generation++;
	host_end(bus->host);
}

void bus_table_clear(struct bus *bus)
{
	host_exclude(bus->host);
	memset(bus->table, 0, sizeof(bus->table));
	bus->generation++;
	host_end(bus->host);
}

void bus_space_init(struct bus_space *space, uint32_t first, uint32_t count)
{
	*space = (struct bus_space){ .first = first, .count = count };
}

static bool refuse(struct bus_fault *fault, uint32_t cause, uint64_t addr)
{
	fault->cause = cause;
	fault->addr = addr;
	return false;
}

/*
 * Find the entry that holds the offset: entries follow one another in a linear space,
 * each as long as its length says. All of them up to the wanted one must be valid.
 */
static bool space_find(const struct bus *bus, struct bus_space *space, uint64_t offset,
		       struct piece *piece, struct bus_fault *fault)
{
	uint32_t end = space->first + space->count;

	if (space->wild)
		return !__builtin_add_overflow(space->wild_addr, offset, &piece->addr) ||
		       refuse(fault, RFPGA_FAULT_BUS, space->wild_addr);
	if (space->generation != bus->generation || offset < space->base) {
		space->generation = bus->generation;
		space->cur = space->first;
		space->base = 0;
	}
	for (; space->cur < end; space->cur++) {
		const uint32_t *e = &bus->table[space->cur * (RFPGA_ENTRY_STRIDE / 4)];
		uint64_t addr = e[0] | (uint64_t)e[1] << 32;
		uint64_t length = e[2] | (uint64_t)e[3] << 32;
		uint64_t skip = offset - space->base;

		if (!(e[RFPGA_ENTRY_CONTROL / 4] & RFPGA_ENTRY_VALID))
			break;
		if (skip < length) {
			if (__builtin_add_overflow(addr, skip, &piece->addr))
				return refuse(fault, RFPGA_FAULT_BUS, addr);
			if (piece->length > length - skip)
				piece->length = length - skip;
			return true;
		}
		/* cannot overflow: length <= skip = offset - base */
		space->base += length;
	}
	space->generation = 0;
	return refuse(fault, RFPGA_FAULT_ENTRY, offset);
}

/* -------------------------------------------------------- transactions --- */

static bool understand(enum host_answer answer, uint64_t addr, struct bus_fault *fault)
{
	switch (answer) {
	case HOST_DONE:
		return true;
	case HOST_NO_MASTER:
		return refuse(fault, RFPGA_FAULT_MASTER, addr);
	case HOST_NOTHING:
		return refuse(fault, RFPGA_FAULT_BUS, addr);
	default:
		return refuse(fault, RFPGA_FAULT_NONE, 0);
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

	for (; length; offset += piece.length, length -= piece.length) {
		piece.length = length;
		if (!space_find(bus, space, offset, &piece, fault))
			return false;
		answer = host_check(bus->host, how(space, what), piece.addr, piece.length, &at);
		if (!understand(answer, at, fault))
			return false;
	}
	return true;
}

/* A posted write: that it was discarded on its way need not be told. */
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
		if (!understand(answer, at, fault))
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

static bool write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
			 const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
			 struct bus_fault *fault)
{
	const unsigned int what = how(space, HOST_WRITE | HOST_WORDS);
	struct piece piece = { .length = RFPGA_LOCK_SIZE };
	enum host_answer answer;
	uint64_t at;

	if (!space_find(bus, space, offset, &piece, fault))
		return false;
	if (piece.length != RFPGA_LOCK_SIZE || piece.addr % RFPGA_LOCK_SIZE)
		return refuse(fault, RFPGA_FAULT_ENTRY, offset);
	answer = host_check(bus->host, what, piece.addr, RFPGA_LOCK_SIZE, &at);
	if (answer == HOST_DONE)
		answer = host_access(bus->host, what, piece.addr, (void *)record, length, &at);
	return understand(answer, at, fault);
}

bool bus_write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
		      const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
		      struct bus_fault *fault)
{
	return write_record(bus, space, offset, record, length, fault) || dropped(space, fault);
}

/* An MSI-X message is a memory write too. */
bool bus_may_interrupt(struct bus *bus, struct bus_fault *fault)
{
	return bus->host->master || refuse(fault, RFPGA_FAULT_MASTER, 0);
}
