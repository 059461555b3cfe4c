// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * XDMA (Xilinx PG195), AXI memory mapped or AXI4-Stream: channel 0 from card to host, of a design with four
 * channels each way. A rising run bit lets it fetch a chain of descriptors from the host. It writes the number of completed
 * ones to an address in the host, and interrupts as often as its status changes from none to some. With
 * streams a packet fills a descriptor, and its length goes to the descriptor's source.
 */
#include "fpga/board.h"

#define CONTROL		0x1004u		/* CONTROL + 4: set bits, + 8: clear bits; so have the other two */
#define STATUS		0x1040u		/* bits are cleared by a 1; STATUS + 4: by a read */
#define COMPLETED	0x1048u		/* descriptors since run */
#define WRITE_BACK	0x1088u		/* address */
#define INTERRUPTS	0x1090u		/* bits of the status that interrupt */
#define CHANNELS	0x2010u		/* channels that interrupt */
#define VECTORS		0x20a4u		/* a byte for each channel to the host */
#define FIRST		0x5080u		/* address of the first descriptor */
#define MINE		(1u << 4)	/* after four channels to the card */

#define RUN		(1u << 0)	/* CONTROL; STATUS: busy */
#define STOPPED		(1u << 1)	/* CONTROL and STATUS, as the next ones */
#define DONE		(1u << 2)
#define MAGIC		(1u << 4)
#define IDLE		(1u << 6)
#define ERROR		(1u << 19)	/* a descriptor could not be read */
#define COUNT_BACK	(1u << 26)	/* CONTROL: write the number back */
#define NO_LENGTH	(1u << 27)	/* CONTROL, of streams: lengths are not written back */

/* words of a descriptor */
enum { FLAGS, LENGTH, SOURCE, ADDRESS = 4, NEXT = 6 };
#define STOP		(1u << 0)
#define COMPLETE	(1u << 1)

enum { AT_REST, FETCHES, MOVES, WRITES_LENGTH, WRITES_BACK, INTERRUPTS_NOW };

static uint64_t word64(const struct board *b, unsigned int low)
{
	return b->own[low] | (uint64_t)b->own[low + 1] << 32;
}

/* Log what the control register asks for, and interrupt. Then the channel rests, or fetches the next one. */
static void end_turn(struct board *b, uint32_t bits, bool rests)
{
	const uint32_t mask = b->reg[INTERRUPTS / 4], before = b->reg[STATUS / 4] & mask;

	b->reg[STATUS / 4] |= bits & b->reg[CONTROL / 4];
	b->count = rests ? AT_REST : FETCHES;
	b->level = !before && b->reg[STATUS / 4] & mask && b->reg[CHANNELS / 4] & MINE ?
		   INTERRUPTS_NOW : b->count;
}

static uint32_t xdma_read(struct board *b, uint32_t offset)
{
	uint32_t value = b->reg[offset / 4];

	if (offset != STATUS && offset != STATUS + 4)
		return value;
	value = b->reg[STATUS / 4] | (b->level != AT_REST && !b->defect ? RUN : 0);
	if (offset != STATUS)
		b->reg[STATUS / 4] = 0;
	return value;
}

static void xdma_write(struct board *b, uint32_t offset, uint32_t value)
{
	static const uint32_t bits[] = { CONTROL, INTERRUPTS, CHANNELS };
	const uint32_t before = b->reg[CONTROL / 4];

	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		if (offset == bits[i] + 4)
			value |= b->reg[bits[i] / 4];
		else if (offset == bits[i] + 8)
			value = b->reg[bits[i] / 4] & ~value;
		if (offset == bits[i] + 4 || offset == bits[i] + 8)
			offset = bits[i];
	}
	if (offset == STATUS)
		value = b->reg[STATUS / 4] & ~value;
	b->reg[offset / 4] = value;
	if (offset != CONTROL || !(value & ~before & RUN) || b->level != AT_REST)
		return;
	b->reg[STATUS / 4] = b->reg[COMPLETED / 4] = 0;
	b->next = board_reg64(b, FIRST);
	b->level = FETCHES;
}

static bool xdma_next(struct board *b, struct packet *p)
{
	/* a descriptor that has begun is completed */
	if (b->level == FETCHES && !(b->reg[CONTROL / 4] & RUN) && !b->defect)
		end_turn(b, IDLE, true);
	switch (b->level) {
	case FETCHES:
		*p = (struct packet){ .address = b->next, .own = b->own, .length = sizeof(b->own),
				      .fetch = true, .vector = -1 };
		return true;
	case MOVES:
		p->address = word64(b, ADDRESS);
		p->length = b->own[LENGTH] & 0xfffffff;
		return true;
	case WRITES_LENGTH:
		*p = (struct packet){ .address = word64(b, SOURCE), .own = &b->own[FLAGS], .length = 8,
				      .vector = -1 };
		return true;
	case WRITES_BACK:
		*p = (struct packet){ .address = board_reg64(b, WRITE_BACK),
				      .own = &b->reg[COMPLETED / 4], .length = 4, .vector = -1 };
		return true;
	case INTERRUPTS_NOW:
		*p = (struct packet){ .own = b->own, .vector = b->reg[VECTORS / 4] & 0x1f };
		return true;
	default:
		return false;
	}
}

static void xdma_done(struct board *b, const struct packet *p, bool arrived)
{
	const uint32_t flags = b->own[FLAGS], control = b->reg[CONTROL / 4];
	const uint32_t bits = (flags & STOP ? STOPPED : 0) | (flags & COMPLETE ? DONE : 0);
	const bool rests = flags & STOP && !b->defect;

	(void)p;
	if (b->level == INTERRUPTS_NOW) {
		b->level = b->count;
	} else if (!arrived || flags >> 16 != 0xad4b) {
		end_turn(b, arrived ? MAGIC : ERROR, true);
	} else if (b->level == FETCHES) {
		b->next = flags & STOP ? board_reg64(b, FIRST) : word64(b, NEXT);
		b->level = MOVES;
	} else if (b->level == MOVES && b->model == &xilinx_xdma_stream && !(control & NO_LENGTH)) {
		b->level = WRITES_LENGTH;
	} else if (b->level == MOVES || b->level == WRITES_LENGTH) {
		b->reg[COMPLETED / 4]++;
		b->level = WRITES_BACK;
		if (!(flags & COMPLETE && control & COUNT_BACK && control & DONE))
			end_turn(b, bits, rests);
	} else {
		end_turn(b, bits, rests);
	}
}

const struct model xilinx_xdma = {
	.name = "xilinx-xdma", .id = 0x5257, .read = xdma_read, .write = xdma_write,
	.next = xdma_next, .done = xdma_done,
};

const struct model xilinx_xdma_stream = {
	.name = "xilinx-xdma-stream", .id = 0x5258, .read = xdma_read, .write = xdma_write,
	.next = xdma_next, .done = xdma_done,
};
