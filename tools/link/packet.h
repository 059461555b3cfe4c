/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Headers of UDP packets, before the pixels; all little-endian on the line. See network.rst. */
#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_BYTES	65507		/* maximum UDP payload */

struct packet {
	uint32_t magic;			/* packet_write() sets it */
	uint32_t token;			/* from the receiver; different in each run */
	uint32_t process;		/* DTP number in the stream of the receiver */
	uint32_t number;		/* message number, modulo 2^32 */
};

/*
 * Header of a packet of a JUNGFRAU detector (slsDetectorPackage, docs/src/udpheader.rst, version
 * 2). After it come 4096 pixels of 16 bits: four lines of a module.
 */
struct jungfrau {
	uint64_t frame;			/* starts at 1 */
	uint32_t exposure;		/* units of 100 ns; 0 here */
	uint32_t packet;		/* number in the frame, 0 to 127 */
	uint64_t bunch;
	uint64_t timestamp;		/* ticks of 10 MHz */
	uint16_t module, row, column;
	uint16_t reserved;
	uint32_t debug;
	uint16_t round_robin;
	uint8_t type, version;		/* jungfrau_write() sets them */
};

#define JUNGFRAU_WIDTH		1024u	/* width of a module, pixels */
#define JUNGFRAU_HEIGHT		512u	/* height of a module, pixels */
#define JUNGFRAU_BYTES		8192u	/* bytes of a packet, after the header */
#define JUNGFRAU_PACKETS	128u	/* packets per frame */

/* Write a header; read that of a packet of so many bytes. false: it is no such packet. */
void packet_write(struct packet packet, void *header);
bool packet_read(struct packet *packet, const void *data, size_t bytes);
void jungfrau_write(struct jungfrau jungfrau, void *header);
bool jungfrau_read(struct jungfrau *jungfrau, const void *data, size_t bytes);

#endif /* PACKET_H */
