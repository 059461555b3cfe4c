/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* QEMU's device edu (docs/specs/edu of QEMU). */
#ifndef EDU_H
#define EDU_H

#include "common.h"

#define EDU_VENDOR	0x1234
#define EDU_DEVICE	0x11e8
#define EDU_ID		0x00
#define EDU_ID_MAGIC	0x010000edU
#define EDU_LIVE	0x04	/* reads back inverted */
#define EDU_IRQ_RAISE	0x60
#define EDU_IRQ_ACK	0x64
#define EDU_DMA_SRC	0x80
#define EDU_DMA_DST	0x88
#define EDU_DMA_COUNT	0x90
#define EDU_DMA_CMD	0x98
#define EDU_DMA_RUN	1U
#define EDU_DMA_FROM	0U	/* host to edu */
#define EDU_DMA_TO	2U	/* edu to host */
#define EDU_DMA_IRQ	4U
#define EDU_BUFFER	0x40000	/* 4 KiB inside edu, as its DMA counts */
#define CHUNK		2048	/* edu aborts QEMU 7.2 with 4096 */

/* edu takes 64-bit registers at once. */
static inline void edu_set(volatile void *regs, uint32_t offset, u64 value)
{
	*(volatile u64 *)((volatile char *)regs + offset) = value;
}

static inline void edu_start(volatile void *regs, u64 src, u64 dst, uint32_t command)
{
	edu_set(regs, EDU_DMA_SRC, src);
	edu_set(regs, EDU_DMA_DST, dst);
	edu_set(regs, EDU_DMA_COUNT, CHUNK);
	edu_set(regs, EDU_DMA_CMD, command | EDU_DMA_RUN);
}

static inline bool edu_runs(volatile void *regs)
{
	return reg32(regs, EDU_DMA_CMD) & EDU_DMA_RUN;
}

#endif /* EDU_H */
