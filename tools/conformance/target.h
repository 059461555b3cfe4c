/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The board under test, and memory of the host for its writes. */
#ifndef CONFORMANCE_TARGET_H
#define CONFORMANCE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rashpa-fpga.h>

#define HOST_SIZE	(64u << 20)
#define HOST_ADDR	0x100000000ull		/* bus address of the host memory */
#define CANARY		0xa5
#define DATASET_MAX	(16u << 20)
#define MEMORY_MIN	4096u			/* least bytes of on-board memory in BAR 4 */
#define VECTORS_MAX	16
#define REGION_CONFIG	7			/* index of VFIO, after BARs and ROM */

/* Access to a board. Impossible requests end the program. */
struct target_ops {
	/* address of a mapped BAR, or NULL: use read and write */
	volatile void *(*bar)(unsigned int region);
	uint64_t (*bar_size)(unsigned int region);
	uint64_t (*read)(unsigned int region, uint64_t offset, unsigned int size);
	void (*write)(unsigned int region, uint64_t offset, uint64_t value, unsigned int size);
	/* let the board reach host + @offset at this bus address; @flags: 1 read, 2 write; 0 or an errno */
	uint32_t (*map)(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags);
	/* remove all maps in this range, before this returns */
	void (*unmap)(uint64_t addr, uint64_t size);
	int (*event)(uint32_t vector);		/* -1: the function has no such vector */
	void (*msix)(bool on);
	void (*reset)(void);
	/* serve requests of the board; may be NULL */
	void (*serve)(void);
	/* write-only memory cannot be read; an IOMMU may allow it */
	bool refuses_reads;
	/* two messages of a vector may be one event */
	bool merges;
	/* a reset sets the command register to its power-on value, not restored */
	bool reset_is_bare;
};

/*
 * Properties that the board reports. Properties common to all boards are not here; tests of
 * registers check the registers themselves.
 */
struct board {
	uint32_t dtps, vectors, entries, features;
	uint32_t offset_bits, stride_bits, count_bits;	/* at most 64, 64, 31 */
	uint32_t dtp, dtp_step, doorbell, table, table_step, bounds, bounds_step;
	uint32_t align;			/* alignment in on-board memory and destination, bytes */
	uint32_t image, line;		/* bytes that tests use, if possible */
	uint32_t tick_rate, stop_time;
	uint64_t memory, shown;		/* bytes on board; bytes visible in BAR 4 */
	uint32_t dataset;		/* bytes of memory that tests use */
	unsigned int slowness;		/* seconds that a second of TICKS takes */
};

extern const struct target_ops *target;
extern struct board board;
extern uint8_t *host;			/* HOST_SIZE bytes */
extern int host_fd;
extern uint8_t *dataset;		/* copy of the start of on-board memory */

/* Registers of DTP n, its doorbell page, its bounds, entry n of the table, as the board reports. */
#define DTP(n)		(board.dtp + (n) * board.dtp_step)
#define ENTRY(n)	(board.table + (n) * board.table_step)
#define BOUNDS(n)	(board.bounds + (n) * board.bounds_step)
#define DOORBELL(n)	(board.doorbell + (n) * RFPGA_DOORBELL_PAGE)

/* Memory of the host. NULL, or an error. */
const char *host_alloc(void);
/* Read the properties of the board; NULL, or the reason why it cannot be tested. */
const char *board_look(void);
/* Offset of the first block of this type, and the number of blocks; 0: none. */
uint32_t block(uint32_t type, uint32_t *count);
/* Page of the first doorbell of that block. */
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

/* configuration space; offset of a capability, 0: none */
uint32_t config_read(uint32_t offset);
void config_write(uint32_t offset, uint32_t value, unsigned int size);
uint32_t config_capability(uint8_t id);
void bus_master(bool on);

/* Becomes readable when this MSI-X vector is sent. */
int vector_event(uint32_t vector);

/* A vfio-user socket: a simulation, or rashpa-fpga. NULL, or an error. */
const char *socket_open(const char *path);
/* A card bound to vfio-pci: DDDD:BB:DD.F. NULL, or an error. */
const char *card_open(const char *name);

#endif /* CONFORMANCE_TARGET_H */
