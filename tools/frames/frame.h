/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of RoCE v2: Ethernet, IP, UDP, BTH, extended headers, payload and ICRC. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROCE_PORT	4791
#define PSN_MASK	0xffffffu
#define QPN_MASK	0xffffffu
#define PATH_MTU_MIN	256
#define PATH_MTU_MAX	4096
#define ADDRESS_TEXT	46	/* bytes of an IP address as text */

/* Ethernet, IPv4, UDP, BTH, RETH and immediate before the payload; padding and ICRC after it. */
#define FRAME_OVERHEAD	(14 + 20 + 8 + 12 + 16 + 4 + 3 + 4)

struct frame {
	uint8_t to_mac[6], from_mac[6];
	unsigned int ip;		/* 4 or 6 */
	uint8_t from[16], to[16];	/* IPv4 uses the first four bytes */
	uint8_t tos, ttl;
	uint16_t id;			/* IPv4's */
	bool may_fragment;		/* IPv4 without DF */
	uint16_t from_port, to_port;
	/* BTH */
	uint8_t opcode;
	bool solicited, ack_request;
	uint8_t pad, version;
	uint16_t pkey;
	uint32_t qpn, psn;
	/* fields that the opcode implies, else 0 */
	uint64_t address;
	uint32_t rkey, length;
	uint32_t immediate;
	uint8_t syndrome;
	uint32_t msn;
	const uint8_t *payload;
	size_t payload_size;		/* without padding */

	/* set by frame_decode() only: */
	size_t ip_size;			/* length in the IP header */
	size_t ip_there;		/* bytes on the wire after the Ethernet header */
	size_t udp_size, udp_there;	/* length by the UDP header, and by the IP header */
	uint16_t checksum, checksum_right;	/* IPv4's */
	uint16_t udp_checksum, udp_checksum_right;	/* equal if not checked */
	bool icrc_known;		/* the whole frame was captured */
	uint32_t icrc, icrc_expected;
	const char *icrc_hint;		/* probable mistake, or NULL */
};

enum frame_kind {
	FRAME_OTHER,		/* not RoCE v2 */
	FRAME_ROCE,
	FRAME_SHORT,		/* RoCE v2, but shorter than its headers or lengths */
	FRAME_FRAGMENT,		/* fragment of a packet */
	FRAME_CUT,		/* the capture lacks the headers: not checked */
};

/* First header of a captured frame. */
enum frame_link { LINK_ETHERNET, LINK_IP, LINK_COOKED, LINK_COOKED_2 };

/* captured: bytes at data; wire: bytes on the wire, which may be more. */
enum frame_kind frame_decode(struct frame *f, const uint8_t *data, size_t captured, size_t wire,
			     enum frame_link link);

/* Make an IPv4 frame with ICRC. Returns its size: at most FRAME_OVERHEAD and the payload. */
size_t frame_encode(const struct frame *f, uint8_t *data);

/* Right UDP checksum of an IP packet whose UDP header is at udp. */
uint16_t frame_udp_checksum(const uint8_t *packet, size_t udp, size_t size);

const char *frame_address(char text[ADDRESS_TEXT], unsigned int ip, const uint8_t *address);

#endif /* FRAME_H */
