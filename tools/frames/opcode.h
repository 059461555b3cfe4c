/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opcodes of InfiniBand packets: names, and the headers after the BTH. */
#ifndef OPCODE_H
#define OPCODE_H

#include <stddef.h>
#include <stdint.h>

enum transport {
	TRANSPORT_RC = 0x00, TRANSPORT_UC = 0x20, TRANSPORT_RD = 0x40, TRANSPORT_UD = 0x60,
};

/* The lower five bits. */
enum operation {
	SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMMEDIATE, SEND_ONLY, SEND_ONLY_IMMEDIATE,
	WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMMEDIATE, WRITE_ONLY,
	WRITE_ONLY_IMMEDIATE,
	READ_REQUEST, READ_RESPONSE_FIRST, READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST,
	READ_RESPONSE_ONLY, ACKNOWLEDGE, ATOMIC_ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD,
	SEND_LAST_INVALIDATE = 0x16, SEND_ONLY_INVALIDATE,
};

#define OPCODE_CNP	0x81	/* a notification of congestion: of no queue pair's sequence */

enum {
	PART_FIRST = 1,		/* a message begins */
	PART_LAST = 2,		/* it ends; also both, or none of them */
	PART_SEND = 4,
	PART_WRITE = 8,
	PART_REQUEST = 16,	/* READ and atomic ones: a message of one packet */
	PART_RESPONSE = 32,	/* has PSNs of the other direction */
	HAS_RETH = 64,
	HAS_IMMEDIATE = 128,
	HAS_AETH = 256,
	HAS_ATOMIC = 512,	/* AtomicETH */
	HAS_OLD_VALUE = 1024,	/* AtomicAckETH */
	HAS_INVALIDATE = 2048,	/* IETH */
	HAS_DETH = 4096,	/* UD's */
};

/* 0: no such opcode, or none of RC, UC and UD. */
unsigned int opcode_parts(uint8_t opcode);

/* Bytes of the headers behind the BTH. */
size_t opcode_header(unsigned int parts);

/* "UC WRITE LAST with immediate"; of an unknown one a number. */
#define OPCODE_TEXT	48
const char *opcode_text(char text[OPCODE_TEXT], uint8_t opcode);

#endif /* OPCODE_H */
