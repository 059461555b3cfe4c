// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Wupper (NIKHEF, FELIX), register map 1.0: eight descriptors in registers, from a start to an end
 * address. Its bit of DMA_DESC_ENABLE starts a descriptor, and is cleared when it was handled.
 */
#include "fpga/board.h"

#define DESCRIPTORS	8u
#define START(n)	((n) * 0x20u)
#define END(n)		(START(n) + 0x08)
#define CONTROL(n)	(START(n) + 0x10)	/* 10:0 words of a TLP, 11 from the host, 12 wrap around */
#define STATUS(n)	(0x200 + (n) * 0x10u)	/* current address; 64: done */
#define ENABLE		0x400u
#define DONE		1u

static uint32_t wupper_read(struct board *b, uint32_t offset)
{
	return b->reg[offset / 4];
}

static void wupper_write(struct board *b, uint32_t offset, uint32_t value)
{
	if (offset >= STATUS(0) && offset < STATUS(DESCRIPTORS))
		return;
	if (offset == ENABLE && b->defect)
		value |= b->reg[ENABLE / 4];
	b->reg[offset / 4] = value;
}

static bool wupper_next(struct board *b, struct packet *p)
{
	for (uint32_t n = 0; n < DESCRIPTORS; n++) {
		const uint64_t start = board_reg64(b, START(n)), end = board_reg64(b, END(n));

		if (!(b->reg[ENABLE / 4] >> n & 1) || b->reg[CONTROL(n) / 4] >> 11 & 1)
			continue;
		/* without words of a TLP, or backwards, it does nothing */
		if (!(b->reg[CONTROL(n) / 4] & 0x7ff) || end <= start || end - start > UINT32_MAX)
			continue;
		p->address = start;
		p->length = (uint32_t)(end - start);
		p->vector = 0;
		b->index = n;
		b->reg[STATUS(n) / 4 + 2] &= ~DONE;
		return true;
	}
	return false;
}

static void wupper_done(struct board *b, const struct packet *p, bool arrived)
{
	const uint32_t n = b->index;

	(void)arrived;
	b->reg[STATUS(n) / 4] = (uint32_t)(p->address + p->length);
	b->reg[STATUS(n) / 4 + 1] = (uint32_t)((p->address + p->length) >> 32);
	b->reg[STATUS(n) / 4 + 2] |= DONE;
	if (!(b->reg[CONTROL(n) / 4] >> 12 & 1) && !b->defect)
		b->reg[ENABLE / 4] &= ~(1u << n);
}

const struct model wupper = {
	.name = "wupper", .id = 0x5255, .read = wupper_read, .write = wupper_write,
	.next = wupper_next, .done = wupper_done,
};
