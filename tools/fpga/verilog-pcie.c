// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * verilog-pcie (Alex Forencich), example_core.v: one write to the host at a time. A write of the tag
 * starts it. A counter shows the writes that are under way.
 */
#include "fpga/board.h"

#define ENABLE		0x000u
#define INTERRUPTS	0x008u		/* 0: reads, 1: writes */
#define ACTIVE_READS	0x020u
#define ACTIVE_WRITES	0x028u
#define ADDRESS		0x200u
#define LENGTH		0x210u
#define TAG		0x214u
#define STATUS		0x218u		/* 15:0 tag, 27:24 error, 31 valid; a read clears 31 */
#define VALID		(1u << 31)

/* A write was asked for, and has not begun. */
static uint32_t *pending(struct board *b)
{
	return &b->index;
}

static uint32_t verilog_read(struct board *b, uint32_t offset)
{
	uint32_t value = b->reg[offset / 4];

	switch (offset) {
	case ACTIVE_READS:
		return 0;
	case ACTIVE_WRITES:
		return b->defect ? 0 : *pending(b) || b->flying;
	case STATUS:
		b->reg[STATUS / 4] &= ~VALID;
		return value;
	default:
		return value;
	}
}

static void verilog_write(struct board *b, uint32_t offset, uint32_t value)
{
	b->reg[offset / 4] = value;
	if (offset == TAG)
		*pending(b) = 1;
	/* a write that is under way goes on */
	if (offset == ENABLE && !(value & 1) && !b->defect)
		*pending(b) = 0;
}

static bool verilog_next(struct board *b, struct packet *p)
{
	if (!((b->reg[ENABLE / 4] & 1) || b->defect) || !*pending(b))
		return false;
	*pending(b) = b->defect;
	p->address = board_reg64(b, ADDRESS);
	p->length = b->reg[LENGTH / 4];
	p->vector = b->reg[INTERRUPTS / 4] & 2 ? 0 : -1;
	return p->length;
}

static void verilog_done(struct board *b, const struct packet *p, bool arrived)
{
	(void)p;
	b->reg[STATUS / 4] = VALID | (arrived ? 0 : 1u << 24) | (b->reg[TAG / 4] & 0xffff);
}

const struct model verilog_pcie = {
	.name = "verilog-pcie", .id = 0x5256, .read = verilog_read, .write = verilog_write,
	.next = verilog_next, .done = verilog_done,
};
