// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/frame.h"

#include <arpa/inet.h>
#include <string.h>
#include <zlib.h>

#include "frames/opcode.h"

#define ETHERNET	14
#define IPV4		20
#define IPV4_MAX	60
#define IPV6		40
#define UDP		8
#define BTH		12
#define ICRC		4
#define TYPE_IPV4	0x0800
#define TYPE_IPV6	0x86dd
#define TYPE_VLAN	0x8100
#define TYPE_VLAN_S	0x88a8
#define PROTOCOL_UDP	17
#define DF		0x4000
#define MORE_FRAGMENTS	0x2000

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)get16(p + 1);
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | get24(p + 1);
}

static uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

static uint8_t *put(uint8_t *p, uint64_t value, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes; i++)
		p[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
	return p + bytes;
}

/* Of 64 KiB at most, so that it does not overflow. */
static uint32_t add(uint32_t sum, const uint8_t *p, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sum += i & 1 ? p[i] : (uint32_t)p[i] << 8;
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* sum: the field included, which has got. */
static uint16_t right_checksum(uint32_t sum, uint16_t got)
{
	return fold(sum) == 0xffff ? got : (uint16_t)~fold(sum - got);
}

uint16_t frame_udp_checksum(const uint8_t *packet, size_t udp, size_t size)
{
	uint32_t sum = PROTOCOL_UDP + (uint32_t)(size - udp);
	uint16_t right;

	sum = packet[0] >> 4 == 4 ? add(sum, packet + 12, 8) : add(sum, packet + 8, 32);
	right = right_checksum(add(sum, packet + udp, size - udp), get16(packet + udp + 6));
	/* 0 means no checksum */
	return right ? right : 0xffff;
}

enum icrc_way { ICRC_RIGHT, ICRC_NO_ONES, ICRC_NO_MASK, ICRC_WAYS };

/*
 * ICRC of a packet; size is without the ICRC, and udp is the offset of the UDP header. Fields that
 * routers change count as ones, and so does a virtual local routing header.
 */
static uint32_t icrc(const uint8_t *packet, size_t udp, size_t size, enum icrc_way way)
{
	uint8_t head[8 + IPV4_MAX + UDP + BTH];
	uint8_t *ip = head + 8;
	size_t begin = way == ICRC_NO_ONES ? 8 : 0;
	uLong crc;

	memset(head, 0xff, 8);
	memcpy(ip, packet, udp + UDP + BTH);
	if (way != ICRC_NO_MASK) {
		if (ip[0] >> 4 == 4) {
			ip[1] = 0xff;		/* TOS */
			ip[8] = 0xff;		/* TTL */
			memset(ip + 10, 0xff, 2);
		} else {
			ip[0] |= 0x0f;		/* traffic class and flow label */
			memset(ip + 1, 0xff, 3);
			ip[7] = 0xff;		/* hop limit */
		}
		memset(ip + udp + 6, 0xff, 2);
		ip[udp + UDP + 4] = 0xff;	/* FECN, BECN */
	}
	crc = crc32(0, head + begin, (uInt)(8 + udp + UDP + BTH - begin));
	return (uint32_t)crc32(crc, packet + udp + UDP + BTH, (uInt)(size - udp - UDP - BTH));
}

/* Known mistakes of implementations. */
static const char *icrc_hint(const uint8_t *packet, size_t udp, size_t size, uint32_t got,
			     uint32_t right)
{
	if (!got)
		return "it was not computed";
	if (got == __builtin_bswap32(right))
		return "its bytes are in the wrong order";
	if (got == ~right)
		return "it was not inverted at the end";
	if (got == icrc(packet, udp, size, ICRC_NO_ONES))
		return "eight bytes of ones before the IP header were forgotten";
	if (got == icrc(packet, udp, size, ICRC_NO_MASK))
		return "the fields that count as ones were not masked";
	return NULL;
}

/* Least significant byte first, unlike all else. */
static uint32_t get_icrc(const uint8_t *p)
{
	return __builtin_bswap32(get32(p));
}

static size_t link_header(const uint8_t *data, size_t captured, enum frame_link link,
			  uint16_t *type)
{
	size_t at;

	switch (link) {
	case LINK_IP:
		*type = captured && data[0] >> 4 == 6 ? TYPE_IPV6 : TYPE_IPV4;
		return 0;
	case LINK_COOKED:
		*type = captured >= 16 ? get16(data + 14) : 0;
		return 16;
	case LINK_COOKED_2:
		*type = captured >= 20 ? get16(data) : 0;
		return 20;
	default:
		break;
	}
	for (at = ETHERNET; captured >= at; at += 4) {
		*type = get16(data + at - 2);
		if (*type != TYPE_VLAN && *type != TYPE_VLAN_S)
			return at;
	}
	*type = 0;
	return at;
}

/* Offset of the UDP header, or 0: not UDP. Lengths are checked later. */
static size_t decode_ip(struct frame *f, const uint8_t *ip, size_t captured, uint16_t type,
			bool *fragment)
{
	uint16_t flags;
	size_t header;

	if (type == TYPE_IPV4 && captured >= IPV4 && ip[0] >> 4 == 4 && ip[9] == PROTOCOL_UDP) {
		header = (size_t)(ip[0] & 0xf) * 4;
		flags = get16(ip + 6);
		f->ip = 4;
		f->tos = ip[1];
		f->ip_size = get16(ip + 2);
		f->id = get16(ip + 4);
		f->may_fragment = !(flags & DF);
		f->ttl = ip[8];
		memcpy(f->from, ip + 12, 4);
		memcpy(f->to, ip + 16, 4);
		*fragment = flags & (MORE_FRAGMENTS | 0x1fff);
		/* later fragments have no port */
		if (header < IPV4 || captured < header || flags & 0x1fff)
			return 0;
		f->checksum = get16(ip + 10);
		f->checksum_right = right_checksum(add(0, ip, header), f->checksum);
		return header;
	}
	if (type == TYPE_IPV6 && captured >= IPV6 && ip[0] >> 4 == 6 && ip[6] == PROTOCOL_UDP) {
		f->ip = 6;
		f->tos = (uint8_t)(get16(ip) >> 4);
		f->ip_size = (size_t)get16(ip + 4) + IPV6;
		f->ttl = ip[7];
		memcpy(f->from, ip + 8, 16);
		memcpy(f->to, ip + 24, 16);
		return IPV6;
	}
	return 0;
}

static void decode_bth(struct frame *f, const uint8_t *bth)
{
	f->opcode = bth[0];
	f->solicited = bth[1] & 0x80;
	f->pad = bth[1] >> 4 & 3;
	f->version = bth[1] & 0xf;
	f->pkey = get16(bth + 2);
	f->qpn = get24(bth + 5);
	f->ack_request = bth[8] & 0x80;
	f->psn = get24(bth + 9);
}

/* The headers behind the BTH: as many bytes as the opcode says, which are there. */
static void decode_parts(struct frame *f, const uint8_t *p, unsigned int parts)
{
	if (parts & HAS_DETH)
		p += 8;
	if (parts & HAS_RETH) {
		f->address = get64(p);
		f->rkey = get32(p + 8);
		f->length = get32(p + 12);
		p += 16;
	}
	if (parts & HAS_AETH) {
		f->syndrome = p[0];
		f->msn = get24(p + 1);
		p += 4;
	}
	if (parts & HAS_IMMEDIATE)
		f->immediate = get32(p);
}

/* Would it be RoCE at another port? Only a right ICRC says so. */
static bool roce_elsewhere(const struct frame *f, const uint8_t *packet, size_t udp,
			   size_t captured)
{
	size_t size = f->ip_size;

	return size <= captured && size >= udp + UDP + BTH + ICRC &&
	       opcode_parts(packet[udp + UDP]) &&
	       icrc(packet, udp, size - ICRC, ICRC_RIGHT) == get_icrc(packet + size - ICRC);
}

enum frame_kind frame_decode(struct frame *f, const uint8_t *data, size_t captured, size_t wire,
			     enum frame_link link)
{
	size_t udp, at, end, header;
	bool fragment = false;
	const uint8_t *packet;
	unsigned int parts;
	uint16_t type;

	memset(f, 0, sizeof(*f));
	wire = wire < captured ? captured : wire;
	at = link_header(data, captured, link, &type);
	if (captured < at)
		return FRAME_OTHER;
	if (link == LINK_ETHERNET) {
		memcpy(f->to_mac, data, 6);
		memcpy(f->from_mac, data + 6, 6);
	}
	packet = data + at;
	captured -= at;
	f->ip_there = wire - at;
	if (type == TYPE_IPV4 && f->ip_there < IPV4)
		return FRAME_SHORT;
	udp = decode_ip(f, packet, captured, type, &fragment);
	if (udp && f->ip_there < udp + 4)
		return FRAME_SHORT;
	if (!udp || captured < udp + 4)
		return FRAME_OTHER;
	f->from_port = get16(packet + udp);
	f->to_port = get16(packet + udp + 2);
	if (f->to_port != ROCE_PORT && (fragment || !roce_elsewhere(f, packet, udp, captured)))
		return FRAME_OTHER;
	if (fragment)
		return FRAME_FRAGMENT;

	/* bytes after the IP packet are padding of Ethernet */
	end = f->ip_size < f->ip_there ? f->ip_size : f->ip_there;
	if (end < udp + UDP)
		return FRAME_SHORT;
	if (captured < udp + UDP)
		return FRAME_CUT;
	f->udp_size = get16(packet + udp + 4);
	f->udp_there = f->ip_size - udp;
	if (end < udp + UDP + BTH + ICRC)
		return FRAME_SHORT;
	if (captured < udp + UDP + BTH)
		return FRAME_CUT;
	decode_bth(f, packet + udp + UDP);
	parts = opcode_parts(f->opcode);
	header = udp + UDP + BTH + opcode_header(parts);
	if (f->ip_there < f->ip_size || end < header + f->pad + ICRC)
		return FRAME_SHORT;
	if (captured < header)
		return FRAME_CUT;
	decode_parts(f, packet + udp + UDP + BTH, parts);
	f->payload_size = end - header - f->pad - ICRC;
	if (captured < end)
		return FRAME_ROCE;
	f->payload = packet + header;
	f->udp_checksum = f->udp_checksum_right = get16(packet + udp + 6);
	if (f->udp_checksum && f->udp_size == f->udp_there)
		f->udp_checksum_right = frame_udp_checksum(packet, udp, end);
	f->icrc_known = true;
	f->icrc = get_icrc(packet + end - ICRC);
	f->icrc_expected = icrc(packet, udp, end - ICRC, ICRC_RIGHT);
	if (f->icrc != f->icrc_expected)
		f->icrc_hint = icrc_hint(packet, udp, end - ICRC, f->icrc, f->icrc_expected);
	return FRAME_ROCE;
}

size_t frame_encode(const struct frame *f, uint8_t *data)
{
	unsigned int parts = opcode_parts(f->opcode);
	size_t pad = -f->payload_size & 3;
	size_t udp = UDP + BTH + opcode_header(parts) + f->payload_size + pad + ICRC;
	uint8_t *ip, *p = data;

	memcpy(p, f->to_mac, 6);
	memcpy(p + 6, f->from_mac, 6);
	ip = put(p + 12, TYPE_IPV4, 2);
	p = put(ip, 0x45, 1);
	p = put(p, f->tos, 1);
	p = put(p, IPV4 + udp, 2);
	p = put(p, f->id, 2);
	p = put(p, f->may_fragment ? 0 : DF, 2);
	p = put(p, f->ttl, 1);
	p = put(p, PROTOCOL_UDP, 1);
	p = put(p, 0, 2);
	memcpy(p, f->from, 4);
	memcpy(p + 4, f->to, 4);
	put(ip + 10, right_checksum(add(0, ip, IPV4), 0), 2);

	p = put(p + 8, f->from_port, 2);
	p = put(p, f->to_port, 2);
	p = put(p, udp, 2);
	p = put(p, 0, 2);	/* the ICRC is enough */

	p = put(p, f->opcode, 1);
	p = put(p, (f->solicited ? 0x80 : 0) | 0x40 | pad << 4 | f->version, 1);
	p = put(p, f->pkey, 2);
	p = put(p, f->qpn & QPN_MASK, 4);
	p = put(p, (f->ack_request ? 0x80000000u : 0) | (f->psn & PSN_MASK), 4);
	if (parts & HAS_RETH) {
		p = put(p, f->address, 8);
		p = put(p, f->rkey, 4);
		p = put(p, f->length, 4);
	}
	if (parts & HAS_IMMEDIATE)
		p = put(p, f->immediate, 4);
	if (f->payload_size)
		memcpy(p, f->payload, f->payload_size);
	p += f->payload_size;
	memset(p, 0, pad);
	p += pad;
	p = put(p, __builtin_bswap32(icrc(ip, IPV4, (size_t)(p - ip), ICRC_RIGHT)), ICRC);
	return (size_t)(p - data);
}

const char *frame_address(char text[ADDRESS_TEXT], unsigned int ip, const uint8_t *address)
{
	if (!inet_ntop(ip == 6 ? AF_INET6 : AF_INET, address, text, ADDRESS_TEXT))
		strcpy(text, "?");
	return text;
}
