// SPDX-License-Identifier: LGPL-2.1-or-later
/* Transactions of an engine: an offset of its space becomes addresses, which the host serves. */
#include "fpga/table.h"

/* A part of a transaction within one table entry. */
struct piece {
	uint64_t addr;
	uint64_t length;
};

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
		found = bus_find(bus, space, offset, &addr, &length, &sum, fault);
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
