// SPDX-License-Identifier: LGPL-2.1-or-later
/* The plan of a writer, as a control message. */
#include <string.h>

#include "link/contract.h"
#include "common/json-out.h"
#include "bench/network/network.h"

static const char *const ways[WAYS] = {
	[WAY_WRITE] = "write", [WAY_UDP] = "udp", [WAY_ZMQ] = "zmq",
};

const char *way_name(uint32_t way)
{
	return ways[way];
}

static bool way_find(const char *name, uint32_t *way)
{
	for (*way = 0; *way < WAYS; ++*way) {
		if (!strcmp(name, ways[*way]))
			return true;
	}
	return false;
}

/* Ethernet (with FCS), preamble and gap, IP, UDP, BTH, ICRC; RETH and immediate follow */
#define FRAME	(14 + 4 + 20 + 20 + 8 + 12 + 4)
#define RETH	16
#define IMMEDIATE	4

uint64_t wire_bytes(const struct plan *p)
{
	const uint64_t packets = (p->size + p->mtu - 1) / p->mtu;

	return p->size + packets * FRAME + RETH + IMMEDIATE;
}

struct json_object *plan_write(const struct plan *p, const char *kind)
{
	struct json_object *o = link_message(kind);

	put_text(o, "bench", "network");
	put_int(o, "version", LINK_VERSION);
	put_text(o, "way", way_name(p->way));
	put_int(o, "service", p->service);
	put_int(o, "size", p->size);
	put_int(o, "pairs", p->pairs);
	put_int(o, "linked", p->linked);
	put_int(o, "solicited", p->solicited);
	put_int(o, "destinations", p->destinations);
	put_int(o, "repeats", p->repeats);
	put_int(o, "mtu", p->mtu);
	put_u64(o, "messages", p->messages);
	return o;
}

int plan_read(struct json_object *o, struct plan *p, char *why)
{
	char bench[16], way[16];
	uint32_t version;

	*p = (struct plan) {};
	if (!link_text(o, "bench", bench, sizeof(bench), why) || strcmp(bench, "network"))
		return because(why, -1, "the peer is not rashpa-bench network write");
	if (!link_u32(o, "version", LINK_VERSION, LINK_VERSION, &version, why) ||
	    !link_text(o, "way", way, sizeof(way), why))
		return -1;
	if (!way_find(way, &p->way))
		return because(why, -1, "\"way\": %s is not write, udp or zmq", way);
	/* a message of sockets begins with its number */
	return link_u32(o, "size", p->way == WAY_WRITE ? 1 : sizeof(uint32_t), MESSAGE_MOST, &p->size,
			why) &&
	       link_u32(o, "service", 0, RASHPA_NET_RC, &p->service, why) &&
	       link_u32(o, "pairs", 1, PAIRS_MOST, &p->pairs, why) &&
	       link_u32(o, "linked", 1, 1 << 20, &p->linked, why) &&
	       link_u32(o, "solicited", 0, 1, &p->solicited, why) &&
	       link_u32(o, "destinations", 1, DESTINATIONS_MOST, &p->destinations, why) &&
	       link_u32(o, "repeats", 1, 1000, &p->repeats, why) &&
	       link_u32(o, "mtu", 64, 65535, &p->mtu, why) &&
	       link_number(o, "messages", 0, UINT64_C(1) << 48, &p->messages, why) ? 0 : -1;
}

void ends_add(struct json_object *array, const struct rashpa_net_pair *pair)
{
	struct json_object *o = json_object_new_object();
	struct rashpa_net_address end;

	rashpa_net_pair_address(pair, &end);
	address_write(o, &end);
	json_object_array_add(array, o);
}

int end_read(struct json_object *array, uint32_t index, struct rashpa_net_address *end, char *why)
{
	struct json_object *o = json_object_array_get_idx(array, index);

	return json_object_is_type(o, json_type_object) && address_read(o, end, why) ? 0 :
	       because(why, -1, "\"ends\" has an invalid element");
}
