// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/plan.h"

#include "frames/opcode.h"

uint64_t plan_per_message(const struct plan *p)
{
	return p->size ? (p->size - 1) / p->path_mtu + 1 : 1;
}

uint64_t plan_frames(const struct plan *p)
{
	return p->messages ? p->messages * plan_per_message(p) : UINT64_MAX;
}

uint8_t plan_opcode(const struct plan *p, uint64_t n)
{
	uint64_t packets = plan_per_message(p), i = n % packets;
	enum operation operation;

	if (packets == 1)
		operation = p->has_immediate ? WRITE_ONLY_IMMEDIATE : WRITE_ONLY;
	else if (!i)
		operation = WRITE_FIRST;
	else if (i < packets - 1)
		operation = WRITE_MIDDLE;
	else
		operation = p->has_immediate ? WRITE_LAST_IMMEDIATE : WRITE_LAST;
	return (uint8_t)(p->transport | operation);
}

/* Words of 64 bits, least significant byte first: the message's number above the place in it. */
static uint8_t pattern(uint64_t message, uint32_t at)
{
	uint64_t word = message << 32 | (at & ~7u);

	return (uint8_t)(word >> 8 * (at & 7));
}

void plan_frame(const struct plan *p, uint64_t n, struct frame *f, uint8_t *buf)
{
	uint64_t packets = plan_per_message(p), number = n / packets, begin = 0;
	uint32_t at = (uint32_t)(n % packets) * p->path_mtu, size = p->size - at, i;
	unsigned int parts;

	if (size > p->path_mtu)
		size = p->path_mtu;
	*f = p->like;
	f->id = (uint16_t)n;
	f->opcode = plan_opcode(p, n);
	f->psn = (uint32_t)(p->like.psn + n) & PSN_MASK;
	parts = opcode_parts(f->opcode);
	/* an event at the receiver is asked for by the end of a message */
	f->solicited = p->solicited && parts & PART_LAST;
	f->ack_request = p->transport == TRANSPORT_RC && parts & PART_LAST;
	f->length = p->size;
	f->address = p->address;
	if (p->region)
		f->address += number % (p->region / p->size) * p->size;
	f->immediate = (uint32_t)(p->immediate + number);
	if (p->data)
		begin = (number * p->size + at) % p->data_size;
	for (i = 0; i < size; i++)
		buf[i] = p->data ? p->data[(begin + i) % p->data_size] : pattern(number, at + i);
	f->payload = buf;
	f->payload_size = size;
}
