/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The bus: everything that decides whether, and where, a transaction of the engine
 * reaches memory of the host. Bus mastering, the DMA regions that the host mapped, and
 * the address table.
 *
 * bus.lock protects all three. The engine reads, and holds it while it copies, at most
 * BUS_BURST bytes at a time; a flood of interrupts (fault.c) reads whether it is a master.
 * The protocol thread is the only writer. So when an unmap, a cleared bus master bit or a
 * write to the address table has been answered, nothing that was granted before is in flight
 * any more.
 *
 * The one exception are regions without a file descriptor (BARs of other devices),
 * which are reached by messages. The lock is dropped while the answer is awaited,
 * because it may need the protocol thread, which may be waiting for the lock; the host
 * looks up the address itself when it serves such a message.
 */
#ifndef BUS_H
#define BUS_H

#include <stdatomic.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../lib/rashpa-fpga.h"

#define BUS_BURST		(256u << 10)	/* bytes copied under one hold of the lock */
#define BUS_ENTRIES_MAX		(RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE)

#define BUS_READ		1u		/* as VFIO_DMA_MAP_FLAG_READ */
#define BUS_WRITE		2u		/* as VFIO_DMA_MAP_FLAG_WRITE */

struct vfu;
struct bus_backing;
struct bus_region;

/* Why a transaction was refused; RFPGA_FAULT_NONE: it was cut short by a reset. */
struct bus_fault {
	uint32_t cause;
	uint64_t addr;
};

/*
 * Linear space made of consecutive table entries, with the place of the last hit:
 * streams go forward, so most look-ups need no walk.
 */
struct bus_space {
	uint32_t first;
	uint32_t count;
	uint32_t cur;		/* entry of the last hit */
	uint64_t base;		/* its offset in the linear space */
	uint64_t generation;	/* of the table, when the two were true */
	bool wild;		/* misbehave: linear from wild_addr on, whatever the table says */
	uint64_t wild_addr;
	bool drop;		/* misbehave: nobody hears of writes that the bus refuses */
	bool sent;		/* misbehave: it left while bus mastering was on */
};

struct bus {
	pthread_rwlock_t lock;
	atomic_bool master;		/* the engine waits for it without the lock */
	struct bus_region *regions;	/* sorted by address, no overlaps */
	size_t count, room;
	size_t last;			/* last hit; the engine's */
	struct bus_backing *backings;
	uint32_t entries;		/* of the table; fixed */
	uint32_t table[RFPGA_TABLE_SIZE / 4];
	uint64_t generation;		/* changes with the table; never 0 */
	struct vfu *vfu;
};

int bus_init(struct bus *bus, struct vfu *vfu, uint32_t entries);
void bus_destroy(struct bus *bus);

/* for the protocol thread; the lock is taken inside */
int bus_map(struct bus *bus, uint64_t addr, uint64_t size, uint64_t offset,
	    uint32_t prot, int fd);
void bus_unmap(struct bus *bus, uint64_t addr, uint64_t size);
void bus_unmap_all(struct bus *bus);
void bus_set_master(struct bus *bus, bool on);
uint32_t bus_table_read(const struct bus *bus, uint32_t offset);
void bus_table_write(struct bus *bus, uint32_t offset, uint32_t value);
void bus_table_clear(struct bus *bus);

/* for the engine and a flood; the caller holds the lock, and may lose it for a while */
void bus_lock(struct bus *bus);
void bus_unlock(struct bus *bus);
void bus_space_init(struct bus_space *space, uint32_t first, uint32_t count);
bool bus_check(struct bus *bus, struct bus_space *space, uint64_t offset, uint64_t length,
	       struct bus_fault *fault);
bool bus_write(struct bus *bus, struct bus_space *space, uint64_t offset, const void *data,
	       size_t length, struct bus_fault *fault);
bool bus_read(struct bus *bus, struct bus_space *space, uint64_t offset, void *data,
	      size_t length, struct bus_fault *fault);
/* The record, or what of it becomes visible first. */
bool bus_write_record(struct bus *bus, struct bus_space *space, uint64_t offset,
		      const uint64_t record[RFPGA_LOCK_SIZE / 8], size_t length,
		      struct bus_fault *fault);
bool bus_may_interrupt(struct bus *bus, struct bus_fault *fault);

#endif /* BUS_H */
