// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/packet.h"

#include <endian.h>
#include <string.h>

#define PACKET_MAGIC		0x53555352u	/* "RSUS" */
#define JUNGFRAU_TYPE		3
#define JUNGFRAU_VERSION	2

_Static_assert(sizeof(struct packet) == 16, "a header has 16 bytes");
_Static_assert(sizeof(struct jungfrau) == 48, "a header has 48 bytes");

/* To little-endian, and back. */
static struct packet swap_packet(struct packet p)
{
	return (struct packet) {
		htole32(p.magic), htole32(p.token), htole32(p.process), htole32(p.number),
	};
}

void packet_write(struct packet p, void *header)
{
	p.magic = PACKET_MAGIC;
	p = swap_packet(p);
	memcpy(header, &p, sizeof(p));
}

bool packet_read(struct packet *p, const void *data, size_t bytes)
{
	if (bytes <= sizeof(*p))
		return false;
	memcpy(p, data, sizeof(*p));
	*p = swap_packet(*p);
	return p->magic == PACKET_MAGIC;
}

static struct jungfrau swap_jungfrau(struct jungfrau j)
{
	j.frame = htole64(j.frame);
	j.packet = htole32(j.packet);
	j.bunch = htole64(j.bunch);
	j.timestamp = htole64(j.timestamp);
	j.module = htole16(j.module);
	j.row = htole16(j.row);
	j.column = htole16(j.column);
	return j;
}

void jungfrau_write(struct jungfrau j, void *header)
{
	j.type = JUNGFRAU_TYPE;
	j.version = JUNGFRAU_VERSION;
	j = swap_jungfrau(j);
	memcpy(header, &j, sizeof(j));
}

bool jungfrau_read(struct jungfrau *j, const void *data, size_t bytes)
{
	if (bytes != sizeof(*j) + JUNGFRAU_BYTES)
		return false;
	memcpy(j, data, sizeof(*j));
	*j = swap_jungfrau(*j);
	return j->type == JUNGFRAU_TYPE && j->version == JUNGFRAU_VERSION && j->frame &&
	       j->packet < JUNGFRAU_PACKETS;
}
