// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * LitePCIe (enjoy-digital): the writer of one DMA, addresses of 32 bits. Descriptors are pushed into a
 * table; in loop mode each one that was taken is appended again. As litepcie/frontend/dma.py has it.
 */
#include "fpga/board.h"

#define BASE		0x1800u		/* CSR_PCIE_DMA0_BASE less CSR_BASE: different in each design */
#define ENABLE		(BASE + 0x00)
#define VALUE_HIGH	(BASE + 0x04)	/* length: 24 bits; 24: no interrupt, 25: no end of a packet */
#define VALUE_LOW	(BASE + 0x08)	/* address */
#define WE		(BASE + 0x0c)
#define LOOP		(BASE + 0x10)
#define LOOP_STATUS	(BASE + 0x14)	/* loops << 16 | index of the last descriptor */
#define LEVEL		(BASE + 0x18)
#define FLUSH		(BASE + 0x1c)
#define DEPTH		256u

static uint32_t lite_read(struct board *b, uint32_t offset)
{
	switch (offset) {
	case LEVEL:
		return b->defect ? 0 : b->level;
	case LOOP_STATUS:
		return b->count << 16 | b->index;
	default:
		return b->reg[offset / 4];
	}
}

static void push(struct board *b, uint64_t address, uint32_t length, bool quiet)
{
	const uint32_t at = (b->first + b->level) % DEPTH;

	if (b->level == DEPTH)
		return;
	b->fifo[at].address = address;
	b->fifo[at].length = length;
	b->fifo[at].quiet = quiet;
	b->level++;
}

static void lite_write(struct board *b, uint32_t offset, uint32_t value)
{
	b->reg[offset / 4] = value;
	if (offset == WE && value & 1 && !(b->reg[LOOP / 4] & 1))
		push(b, b->reg[VALUE_LOW / 4], b->reg[VALUE_HIGH / 4] & 0xffffff,
		     b->reg[VALUE_HIGH / 4] >> 24 & 1);
	if (offset == FLUSH && value & 1 && !b->defect)
		b->level = b->index = b->count = 0;
}

static bool lite_next(struct board *b, struct packet *p)
{
	if (!((b->reg[ENABLE / 4] & 1) || b->defect) || !b->level)
		return false;
	p->address = b->fifo[b->first].address;
	p->length = b->fifo[b->first].length;
	p->vector = b->fifo[b->first].quiet ? -1 : 0;
	/* taken, so it is in the table again at once */
	b->level--;
	b->first = (b->first + 1) % DEPTH;
	if (b->reg[LOOP / 4] & 1)
		push(b, p->address, p->length, p->vector < 0);
	return true;
}

static void lite_done(struct board *b, const struct packet *p, bool arrived)
{
	(void)p;
	(void)arrived;
	if (++b->index < b->level)
		return;
	b->index = 0;
	b->count++;
}

const struct model litepcie = {
	.name = "litepcie", .id = 0x5254, .read = lite_read, .write = lite_write,
	.next = lite_next, .done = lite_done,
};
