/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The board under test, and memory of the host that it may write to. */
#ifndef CONFORMANCE_TARGET_H
#define CONFORMANCE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../lib/rashpa-fpga.h"

#define HOST_SIZE	(64u << 20)
#define HOST_ADDR	0x100000000ull		/* of all host memory, for DMA */
#define CANARY		0xa5
#define DATASET_MAX	(16u << 20)
#define MEMORY_MIN	4096u			/* of on-board memory in BAR 4 */
#define VECTORS_MAX	16
#define REGION_CONFIG	7			/* as VFIO counts: behind BARs and ROM */

/* A way to reach a board. What cannot be ends the program. */
struct target_ops {
	/* where a BAR is mapped, or NULL: then by access */
	volatile void *(*bar)(unsigned int region);
	uint64_t (*bar_size)(unsigned int region);
	uint64_t (*read)(unsigned int region, uint64_t offset, unsigned int size);
	void (*write)(unsigned int region, uint64_t offset, uint64_t value, unsigned int size);
	uint32_t (*map)(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags);
	void (*unmap)(uint64_t addr, uint64_t size);
	int (*event)(uint32_t vector);		/* -1: the function has no such vector */
	void (*msix)(bool on);
	void (*reset)(void);
	/* what the board asks of us meanwhile; may be NULL */
	void (*serve)(void);
	/* memory that is only for writing is not read: an IOMMU may allow it */
	bool refuses_reads;
	/* two messages of a vector may be one event */
	bool merges;
	/* a reset leaves the command register as it is after power-on: nobody restores it */
	bool reset_is_bare;
};

/*
 * What the board says that it has. What no board can have is not in here: tests of registers look
 * at the registers themselves.
 */
struct board {
	uint32_t dtps, vectors, entries, features;
	uint32_t offset_bits, stride_bits, count_bits;	/* at most 64, 64, 31 */
	uint32_t dtp, dtp_step, doorbell, table, table_step, bounds, bounds_step;
	uint32_t align;			/* of bytes in on-board memory and in the destination */
	uint32_t image, line;		/* bytes of those that tests use if they can */
	uint32_t tick_rate, stop_time;
	uint64_t memory, shown;		/* on board; in BAR 4 */
	uint32_t dataset;		/* bytes of it that tests use */
	unsigned int slowness;		/* our time for a second of TICKS, in seconds */
};

extern const struct target_ops *target;
extern struct board board;
extern uint8_t *host;			/* HOST_SIZE bytes */
extern int host_fd;
extern uint8_t *dataset;		/* what is in on-board memory from its beginning */

/* Registers of DTP n, its doorbell page, its bounds, entry n of the table: as the board says. */
#define DTP(n)		(board.dtp + (n) * board.dtp_step)
#define ENTRY(n)	(board.table + (n) * board.table_step)
#define BOUNDS(n)	(board.bounds + (n) * board.bounds_step)
#define DOORBELL(n)	(board.doorbell + (n) * RFPGA_DOORBELL_PAGE)

/* Memory of the host. NULL, or what has failed. */
const char *host_alloc(void);
/* Read what the board has; NULL, or why it is none that can be tested. */
const char *board_look(void);
/* Where the first block of this type is, and how many there are; 0: there is none. */
uint32_t block(uint32_t type, uint32_t *count);
/* Of that block: the page of its first doorbell. */
uint32_t block_doorbell(uint32_t type);
/* Fill on-board memory with a pattern, also in "dataset". */
void board_fill(uint32_t seed);

/* registers: BAR 0 */
uint32_t rd(uint32_t offset);
uint64_t rd64(uint32_t offset);
void wr(uint32_t offset, uint32_t value);
void wr64(uint32_t offset, uint64_t value);
/* 1, 2, 4 or 8 bytes in one access */
uint64_t reg_read(uint32_t offset, unsigned int size);
void reg_write(uint32_t offset, uint64_t value, unsigned int size);

/* doorbells: BAR 2 */
uint32_t doorbell_read(uint32_t offset);
void doorbell_write(uint32_t offset, uint32_t value);
uint64_t doorbell_read64(uint32_t offset);
void doorbell_write64(uint32_t offset, uint64_t value);

/* on-board memory: BAR 4 */
void memory_write(uint64_t offset, const void *data, size_t size);
void memory_read(uint64_t offset, void *data, size_t size);

/* configuration space; a capability by its number, 0: there is none */
uint32_t config_read(uint32_t offset);
void config_write(uint32_t offset, uint32_t value, unsigned int size);
uint32_t config_capability(uint8_t id);
void bus_master(bool on);

/*
 * Let the board reach host + @offset at this bus address. @flags: 1 it may read, 2 it may write.
 * 0 or an errno.
 */
uint32_t dma_map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags);
/* All maps in this range; they end when this returns. */
void dma_unmap(uint64_t addr, uint64_t size);

/* Readable when this MSI-X vector was sent. */
int vector_event(uint32_t vector);
void msix_enable(bool on);

void function_reset(void);

/* A vfio-user socket: a simulation, or rashpa-fpga. NULL, or what is wrong. */
const char *socket_open(const char *path);
/* A card that is bound to vfio-pci: DDDD:BB:DD.F. NULL, or what is wrong. */
const char *card_open(const char *name);

#endif /* CONFORMANCE_TARGET_H */
