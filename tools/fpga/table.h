/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The way of the engine to memory of the host: linear spaces, the address table, the bus.
 *
 * host.lock protects the table as well. The engine reads, and holds the lock while it copies, at
 * most BUS_BURST bytes at a time; the protocol thread is the only writer. So when a write to the
 * table has been answered, nothing that was granted before is in flight any more.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rashpa-fpga.h>
#include "fpga/device.h"

#define BUS_BURST		HOST_BURST
#define BUS_RINGS_MAX		4
#define BUS_ENTRIES_MAX		(RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE)

/* Why a transaction was refused; RFPGA_FAULT_NONE: it was cut short by a reset. */
struct bus_fault {
	uint32_t cause;
	uint64_t addr;
};

/* Format of descriptors: none are fetched, or a format of rashpa-fpga.h. */
enum fetch_format { FETCH_NONE, FETCH_ARRAY, FETCH_CHAIN, FETCH_PACKED };

/* Number of descriptors fetched at once. */
#define FETCH_AHEAD	32

/* A row of fetched descriptors; others are reachable only from the first one on. */
struct fetch_window {
	uint32_t generation;	/* generation of the entry at that time */
	uint32_t index, count;	/* number of the first one; number of descriptors */
	uint64_t at;		/* bus address of the first one */
	uint64_t sum;		/* bytes of all descriptors before the first one */
	uint64_t next;		/* bus address after the last one */
	bool end;		/* the last one ends the ring */
	struct { uint64_t addr, len; } d[FETCH_AHEAD];
};

/*
 * Linear space made of consecutive table entries, with the place of the last hit:
 * streams go forward, so most look-ups need no search.
 */
struct bus_space {
	unsigned int who;	/* owner of the bounds: a DTP, or RFPGA_DTPS_MAX + a ring */
	uint32_t first;
	uint32_t count;
	uint32_t cur;		/* entry of the last hit; a hint, the table may have changed */
	bool wild;		/* misbehave: linear from wild_addr on, whatever the table says */
	uint64_t wild_addr;
	bool drop;		/* misbehave: refused writes vanish without a fault */
	bool sent;		/* misbehave: sent while bus mastering was on */
	/* position of the last transaction in the ring, and of the start of the previous one */
	struct fetch_window window, mark;
};

struct bus {
	struct host *host;
	uint32_t entries;		/* entries in the table; fixed */
	enum fetch_format fetch;	/* fixed */
	uint32_t table[RFPGA_TABLE_SIZE / 4];
	/* state of entries that are rings */
	struct {
		_Atomic uint32_t status, fetched;
		uint32_t generation;	/* counts writes to the entry */
	} ring[BUS_ENTRIES_MAX];
	_Atomic bool poison;		/* misbehave: fetched descriptors are poisoned */
	struct { uint32_t first, limit; } bounds[RFPGA_DTPS_MAX + BUS_RINGS_MAX];
};

void bus_init(struct bus *bus, struct host *host, uint32_t entries, enum fetch_format fetch);

/* for the protocol thread; the lock is taken inside */
uint32_t bus_table_read(const struct bus *bus, uint32_t offset);
void bus_table_write(struct bus *bus, uint32_t offset, uint32_t value);
/* @offset: from the bounds of DTP 0 on; all DTPs have some, then all rings */
uint32_t bus_bounds_read(const struct bus *bus, uint32_t offset);
void bus_bounds_write(struct bus *bus, uint32_t offset, uint32_t value);
void bus_reset(struct bus *bus);

/* for the engine and a flood, between host_begin() and host_end() */
void bus_space_init(struct bus_space *space, unsigned int who, uint32_t first, uint32_t count);
bool bus_check(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t length,
	       struct bus_fault *fault);
bool bus_write(struct bus *bus, struct bus_space *space, uint64_t offset, const void *data,
	       size_t length, struct bus_fault *fault);
bool bus_read(struct bus *bus, struct bus_space *space, uint64_t offset, void *data,
	      size_t length, struct bus_fault *fault);
/* Words that become visible first to last, in one entry. */
bool bus_write_words(struct bus *bus, struct bus_space *space, uint64_t offset,
		     const uint64_t *words, size_t length, struct bus_fault *fault);
/* The record, or what of it becomes visible first. */
bool bus_write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
		      const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
		      struct bus_fault *fault);

/* table.c, for fetch.c and bus.c */
bool bus_refuse(struct bus_fault *fault, uint32_t cause, uint64_t addr);
bool bus_understand(enum host_answer answer, uint64_t addr, struct bus_fault *fault);
uint64_t bus_entry(const struct bus *bus, uint32_t n, uint32_t offset);	/* a pair of words */
/* The entry that holds the offset: its address and length, and the offset at which it begins. */
bool bus_find(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t *addr,
	      uint64_t *length, uint64_t *sum, struct bus_fault *fault);

/*
 * fetch.c: the descriptor of a space's ring that has the offset: its address and length, and the
 * offset at which it begins.
 */
bool fetch_find(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t *addr,
		uint64_t *length, uint64_t *sum, struct bus_fault *fault);

#endif /* TABLE_H */
