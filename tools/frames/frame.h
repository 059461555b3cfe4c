/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Frames of RoCE v2: Ethernet, IP, UDP, BTH and what is behind it, and the ICRC at the end. */
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
#define ADDRESS_TEXT	46	/* of an IP address */

/* Before the payload: Ethernet, IPv4, UDP, BTH, RETH, immediate; behind it padding and ICRC. */
#define FRAME_OVERHEAD	(14 + 20 + 8 + 12 + 16 + 4 + 3 + 4)

struct frame {
	uint8_t to_mac[6], from_mac[6];
	unsigned int ip;		/* 4 or 6 */
	uint8_t from[16], to[16];	/* of IPv4 the first four bytes */
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
	/* what the opcode says is there, else 0 */
	uint64_t address;
	uint32_t rkey, length;
	uint32_t immediate;
	uint8_t syndrome;
	uint32_t msn;
	const uint8_t *payload;
	size_t payload_size;		/* without padding */

	/* of a frame that was decoded */
	size_t ip_size;			/* as IP says */
	size_t ip_there;		/* behind the Ethernet header, of what was on the wire */
	size_t udp_size, udp_there;	/* as UDP says, and as IP says */
	uint16_t checksum, checksum_right;	/* IPv4's */
	uint16_t udp_checksum, udp_checksum_right;	/* the same if not looked at */
	bool icrc_known;		/* all of it was captured */
	uint32_t icrc, icrc_expected;
	const char *icrc_hint;		/* what was done instead, or NULL */
};

enum frame_kind {
	FRAME_OTHER,		/* not RoCE v2 */
	FRAME_ROCE,
	FRAME_SHORT,		/* RoCE v2, and it ends before its headers do, or before its end */
	FRAME_FRAGMENT,		/* a piece of a packet that was fragmented on its way */
	FRAME_CUT,		/* its headers are not in the capture: nothing is known */
};

/* What a captured frame begins with. */
enum frame_link { LINK_ETHERNET, LINK_IP, LINK_COOKED, LINK_COOKED_2 };

/* captured: bytes at data, which may be less than there were on the wire. */
enum frame_kind frame_decode(struct frame *f, const uint8_t *data, size_t captured, size_t wire,
			     enum frame_link link);

/* An IPv4 frame with a right ICRC, of at most FRAME_OVERHEAD bytes and the payload: its size. */
size_t frame_encode(const struct frame *f, uint8_t *data);

/* Of an IP packet whose UDP header is at udp: what its checksum has to be. */
uint16_t frame_udp_checksum(const uint8_t *packet, size_t udp, size_t size);

const char *frame_address(char text[ADDRESS_TEXT], unsigned int ip, const uint8_t *address);

#endif /* FRAME_H */
