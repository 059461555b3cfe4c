// SPDX-License-Identifier: LGPL-2.1-or-later
/* Headers as they are sent; all little-endian. */
#include "link/packet.h"

#include <endian.h>
#include <string.h>

#define PACKET_MAGIC		0x53555352u	/* "RSUS" */
#define JUNGFRAU_TYPE		3
#define JUNGFRAU_VERSION	2

struct packet_header {
	uint32_t magic, token, process, number;
};

struct jungfrau_header {
	uint64_t frame;
	uint32_t exposure;		/* units of 100 ns */
	uint32_t packet;
	uint64_t bunch;
	uint64_t timestamp;
	uint16_t module, row, column;
	uint16_t reserved;
	uint32_t debug;
	uint16_t round_robin;
	uint8_t type, version;
};

_Static_assert(sizeof(struct packet_header) == PACKET_HEADER, "a header has 16 bytes");
_Static_assert(sizeof(struct jungfrau_header) == JUNGFRAU_HEADER, "a header has 48 bytes");

void packet_write(const struct packet *p, void *header)
{
	const struct packet_header h = {
		.magic = htole32(PACKET_MAGIC), .token = htole32(p->token),
		.process = htole32(p->process), .number = htole32(p->number),
	};

	memcpy(header, &h, sizeof(h));
}

bool packet_read(struct packet *p, const void *data, size_t bytes)
{
	struct packet_header h;

	if (bytes <= sizeof(h))
		return false;
	memcpy(&h, data, sizeof(h));
	*p = (struct packet) {
		.token = le32toh(h.token), .process = le32toh(h.process), .number = le32toh(h.number),
	};
	return le32toh(h.magic) == PACKET_MAGIC;
}

void jungfrau_write(const struct jungfrau *j, void *header)
{
	const struct jungfrau_header h = {
		.frame = htole64(j->frame), .packet = htole32(j->packet),
		.bunch = htole64(j->frame - 1), .timestamp = htole64(j->timestamp),
		.module = htole16(j->module), .row = htole16(j->row), .column = htole16(j->column),
		.type = JUNGFRAU_TYPE, .version = JUNGFRAU_VERSION,
	};

	memcpy(header, &h, sizeof(h));
}

bool jungfrau_read(struct jungfrau *j, const void *data, size_t bytes)
{
	struct jungfrau_header h;

	if (bytes != sizeof(h) + JUNGFRAU_BYTES)
		return false;
	memcpy(&h, data, sizeof(h));
	*j = (struct jungfrau) {
		.frame = le64toh(h.frame), .timestamp = le64toh(h.timestamp),
		.packet = le32toh(h.packet), .module = le16toh(h.module), .row = le16toh(h.row),
		.column = le16toh(h.column),
	};
	return h.type == JUNGFRAU_TYPE && h.version == JUNGFRAU_VERSION && j->frame &&
	       j->packet < JUNGFRAU_PACKETS;
}
