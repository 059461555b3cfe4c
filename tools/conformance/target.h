/* SPDX-License-Identifier: GPL-2.0-only */
/* The board under test, and memory of the host that it may write to. */
#ifndef CONFORMANCE_TARGET_H
#define CONFORMANCE_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../lib/rashpa-fpga.h"
#include "client.h"

#define HOST_SIZE	(64u << 20)
#define HOST_ADDR	0x100000000ull		/* of all host memory, for DMA */
#define CANARY		0xa5

extern struct client *c;
extern uint8_t *host;			/* HOST_SIZE bytes */
extern int host_fd;
extern uint8_t *dataset;		/* what is in on-board memory */

/* registers: BAR 0 */
uint32_t rd(uint32_t offset);
uint64_t rd64(uint32_t offset);
void wr(uint32_t offset, uint32_t value);
void wr64(uint32_t offset, uint64_t value);

/* doorbells: BAR 2 */
uint32_t doorbell_read(uint32_t offset);
void doorbell_write(uint32_t offset, uint32_t value);
uint64_t doorbell_read64(uint32_t offset);
void doorbell_write64(uint32_t offset, uint64_t value);

/* on-board memory: BAR 4 */
void memory_write(uint64_t offset, const void *data, size_t size);
void memory_read(uint64_t offset, void *data, size_t size);

/* configuration space */
uint32_t config_read(uint32_t offset);
void config_write(uint32_t offset, uint32_t value, unsigned int size);

/*
 * Let the board reach host + @offset at this bus address. @flags: 1 it may read, 2 it may write.
 * 0 or an errno.
 */
uint32_t dma_map(uint64_t addr, uint64_t size, uint64_t offset, uint32_t flags);
void dma_unmap(uint64_t addr, uint64_t size);

/* Readable when this MSI-X vector was sent. */
int vector_event(uint32_t vector);

void function_reset(void);

#endif /* CONFORMANCE_TARGET_H */
