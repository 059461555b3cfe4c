// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/opcode.h"

#include <stdio.h>

static const struct {
	const char *name;
	unsigned int parts;
} operations[32] = {
	[SEND_FIRST] = { "SEND FIRST", PART_SEND | PART_FIRST },
	[SEND_MIDDLE] = { "SEND MIDDLE", PART_SEND },
	[SEND_LAST] = { "SEND LAST", PART_SEND | PART_LAST },
	[SEND_LAST_IMMEDIATE] = { "SEND LAST with immediate",
				  PART_SEND | PART_LAST | HAS_IMMEDIATE },
	[SEND_ONLY] = { "SEND ONLY", PART_SEND | PART_FIRST | PART_LAST },
	[SEND_ONLY_IMMEDIATE] = { "SEND ONLY with immediate",
				  PART_SEND | PART_FIRST | PART_LAST | HAS_IMMEDIATE },
	[WRITE_FIRST] = { "WRITE FIRST", PART_WRITE | PART_FIRST | HAS_RETH },
	[WRITE_MIDDLE] = { "WRITE MIDDLE", PART_WRITE },
	[WRITE_LAST] = { "WRITE LAST", PART_WRITE | PART_LAST },
	[WRITE_LAST_IMMEDIATE] = { "WRITE LAST with immediate",
				   PART_WRITE | PART_LAST | HAS_IMMEDIATE },
	[WRITE_ONLY] = { "WRITE ONLY", PART_WRITE | PART_FIRST | PART_LAST | HAS_RETH },
	[WRITE_ONLY_IMMEDIATE] = { "WRITE ONLY with immediate",
				   PART_WRITE | PART_FIRST | PART_LAST | HAS_RETH | HAS_IMMEDIATE },
	[READ_REQUEST] = { "READ request", PART_REQUEST | PART_FIRST | PART_LAST | HAS_RETH },
	[READ_RESPONSE_FIRST] = { "READ response FIRST", PART_RESPONSE | HAS_AETH },
	[READ_RESPONSE_MIDDLE] = { "READ response MIDDLE", PART_RESPONSE },
	[READ_RESPONSE_LAST] = { "READ response LAST", PART_RESPONSE | HAS_AETH },
	[READ_RESPONSE_ONLY] = { "READ response ONLY", PART_RESPONSE | HAS_AETH },
	[ACKNOWLEDGE] = { "ACKNOWLEDGE", PART_RESPONSE | HAS_AETH },
	[ATOMIC_ACKNOWLEDGE] = { "ATOMIC ACKNOWLEDGE", PART_RESPONSE | HAS_AETH | HAS_OLD_VALUE },
	[COMPARE_SWAP] = { "COMPARE SWAP", PART_REQUEST | PART_FIRST | PART_LAST | HAS_ATOMIC },
	[FETCH_ADD] = { "FETCH ADD", PART_REQUEST | PART_FIRST | PART_LAST | HAS_ATOMIC },
	[SEND_LAST_INVALIDATE] = { "SEND LAST with invalidate",
				   PART_SEND | PART_LAST | HAS_INVALIDATE },
	[SEND_ONLY_INVALIDATE] = { "SEND ONLY with invalidate",
				   PART_SEND | PART_FIRST | PART_LAST | HAS_INVALIDATE },
};

unsigned int opcode_parts(uint8_t opcode)
{
	unsigned int operation = opcode & 0x1f;

	switch (opcode & 0xe0) {
	case TRANSPORT_RC:
		return operations[operation].parts;
	case TRANSPORT_UC:
		return operation <= WRITE_ONLY_IMMEDIATE ? operations[operation].parts : 0;
	case TRANSPORT_UD:
		if (operation == SEND_ONLY || operation == SEND_ONLY_IMMEDIATE)
			return operations[operation].parts | HAS_DETH;
		return 0;
	default:
		return 0;
	}
}

size_t opcode_header(unsigned int parts)
{
	static const struct {
		unsigned int part;
		size_t size;
	} sizes[] = {
		{ HAS_DETH, 8 }, { HAS_RETH, 16 }, { HAS_ATOMIC, 28 }, { HAS_AETH, 4 },
		{ HAS_OLD_VALUE, 8 }, { HAS_IMMEDIATE, 4 }, { HAS_INVALIDATE, 4 },
	};
	size_t size = 0;

	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (parts & sizes[i].part)
			size += sizes[i].size;
	}
	return size;
}

const char *opcode_text(char text[OPCODE_TEXT], uint8_t opcode)
{
	static const char transports[][3] = { "RC", "UC", "RD", "UD" };

	if (opcode_parts(opcode))
		snprintf(text, OPCODE_TEXT, "%s %s", transports[opcode >> 5],
			 operations[opcode & 0x1f].name);
	else
		snprintf(text, OPCODE_TEXT, "0x%02x", opcode);
	return text;
}
