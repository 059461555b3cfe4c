/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What stands before the pixels in a packet of UDP; all little-endian. See network.rst. */
#ifndef PACKET_H
#define PACKET_H

#include <endian.h>
#include <stdint.h>

#define PACKET_MAGIC	0x53555352u	/* "RSUS" */
#define PACKET_BYTES	65507		/* most that UDP carries */

struct packet {
	uint32_t magic;
	uint32_t token;			/* as the receiver said: of no other run */
	uint32_t process;		/* of the receiver's stream */
	uint32_t number;		/* of the message, modulo 2^32 */
};

/*
 * A packet of a JUNGFRAU detector (slsDetectorPackage, docs/src/udpheader.rst, version 2): 4096
 * pixels of 16 bits, that is four lines of a module, follow.
 */
struct jungfrau {
	uint64_t frame;			/* from 1 on */
	uint32_t exposure;		/* 100 ns */
	uint32_t packet;		/* of the frame: 0 to 127 */
	uint64_t bunch;
	uint64_t timestamp;		/* 10 MHz */
	uint16_t module, row, column;
	uint16_t reserved;
	uint32_t debug;
	uint16_t round_robin;
	uint8_t type;			/* 3: JUNGFRAU */
	uint8_t version;		/* 2 */
};

_Static_assert(sizeof(struct jungfrau) == 48, "a header has 48 bytes");

#define JUNGFRAU_WIDTH		1024u	/* of a module, pixels */
#define JUNGFRAU_HEIGHT		512u
#define JUNGFRAU_BYTES		8192u	/* of a packet, behind the header */
#define JUNGFRAU_PACKETS	128u	/* of a frame */
#define JUNGFRAU_TYPE		3
#define JUNGFRAU_VERSION	2

#endif /* PACKET_H */
