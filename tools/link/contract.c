// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/contract.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "link/control-link.h"
#include "common/say.h"

#define SIDE		65536		/* maximum width and height of an image, pixels */
#define BUNCH		(1u << 20)
#define MTU_LEAST	64
#define MTU_MOST	65535

/* --- division of a region into messages --- */

struct cut cut_region(uint32_t width, uint32_t height, uint32_t pixel_bytes, bool adjacent,
		      uint32_t most)
{
	struct cut c = { .line_bytes = width * pixel_bytes, .height = height };

	c.part_bytes = c.line_bytes < most ? c.line_bytes : most / pixel_bytes * pixel_bytes;
	c.parts = (c.line_bytes + c.part_bytes - 1) / c.part_bytes;
	c.lines = c.parts > 1 ? 0 : adjacent ? most / c.line_bytes : 1;
	if (c.lines > height)
		c.lines = height;
	c.messages = c.lines ? (height + c.lines - 1) / c.lines : height * c.parts;
	return c;
}

struct piece cut_piece(const struct cut *c, uint32_t message)
{
	struct piece p = {};
	uint32_t lines;

	if (c->lines) {
		p.y = message * c->lines;
		lines = c->height - p.y < c->lines ? c->height - p.y : c->lines;
		p.bytes = lines * c->line_bytes;
		return p;
	}
	p.y = message / c->parts;
	p.offset = message % c->parts * c->part_bytes;
	p.bytes = c->line_bytes - p.offset < c->part_bytes ? c->line_bytes - p.offset :
							     c->part_bytes;
	return p;
}

struct cut cut_of(const struct hello *h, const struct contract_process *p, uint32_t width)
{
	return cut_region(p->width, p->height, 1u << ((h->pixel - 1) & 3),
			  h->adjacent && p->width == width, h->message);
}

/* --- ends --- */

void address_write(struct json_object *o, const struct rashpa_net_address *a)
{
	char gid[2 * sizeof(a->gid) + 1];

	for (size_t i = 0; i < sizeof(a->gid); i++)
		snprintf(gid + 2 * i, 3, "%02x", a->gid[i]);
	put_text(o, "gid", gid);
	put_int(o, "qpn", a->qpn);
	put_int(o, "psn", a->psn);
}

bool address_read(struct json_object *o, struct rashpa_net_address *a, char *why)
{
	char gid[2 * sizeof(a->gid) + 1];

	if (!link_text(o, "gid", gid, sizeof(gid), why) ||
	    !link_u32(o, "qpn", 0, 0xffffff, &a->qpn, why) ||
	    !link_u32(o, "psn", 0, 0xffffff, &a->psn, why))
		return false;
	if (strlen(gid) != sizeof(gid) - 1 || strspn(gid, "0123456789abcdef") != sizeof(gid) - 1) {
		because(why, -1, "\"gid\" is not an address: 32 hexadecimal digits are needed");
		return false;
	}
	for (size_t i = 0; i < sizeof(a->gid); i++)
		sscanf(gid + 2 * i, "%2" SCNx8, &a->gid[i]);
	return true;
}

/* --- hello --- */

static struct json_object *process_write(const struct hello *h, const struct contract_process *p)
{
	struct json_object *o = json_object_new_object();

	if (h->transport->has & TRANSPORT_RDMA)
		address_write(o, &p->end.address);
	put_int(o, "x", p->x);
	put_int(o, "y", p->y);
	put_int(o, "width", p->width);
	put_int(o, "height", p->height);
	put_int(o, "origin_x", p->origin_x);
	put_int(o, "origin_y", p->origin_y);
	put_int(o, "first", p->first);
	return o;
}

/* Messages of a stack are counted in 32 bits. Checks the maximum, with one line per message. */
static bool few_messages(const struct hello *h, const struct contract_process *p, char *why)
{
	const struct cut cut = cut_region(p->width, p->height, 1u << ((h->pixel - 1) & 3), false,
					  h->message);

	return (uint64_t)cut.messages * h->bunch <= UINT32_MAX / 2 ||
	       !because(why, -1, "\"bunch\": %" PRIu32 " images of %" PRIu32
			" messages are too many for a stack", h->bunch, cut.messages);
}

static bool process_read(const struct hello *h, struct json_object *o, struct contract_process *p,
			 char *why)
{
	if (!json_object_is_type(o, json_type_object))
		return !because(why, -1, "\"processes\" has an element that is not an object");
	return (!(h->transport->has & TRANSPORT_RDMA) || address_read(o, &p->end.address, why)) &&
	       link_u32(o, "x", 0, SIDE - 1, &p->x, why) &&
	       link_u32(o, "y", 0, SIDE - 1, &p->y, why) &&
	       link_u32(o, "width", 1, SIDE - p->x, &p->width, why) &&
	       link_u32(o, "height", 1, SIDE - p->y, &p->height, why) &&
	       link_u32(o, "origin_x", 0, SIDE - 1, &p->origin_x, why) &&
	       link_u32(o, "origin_y", 0, SIDE - 1, &p->origin_y, why) &&
	       link_u32(o, "first", 0, UINT32_MAX, &p->first, why) && few_messages(h, p, why);
}

struct json_object *hello_write(const struct hello *h)
{
	struct json_object *o = link_message(CONTRACT_HELLO), *list = json_object_new_array();

	put_int(o, "version", LINK_VERSION);
	put_text(o, "transport", h->transport->name);
	put_int(o, "service", h->service);
	put_int(o, "immediate", h->immediate);
	put_int(o, "mtu", h->mtu);
	put_int(o, "message", h->message);
	put_int(o, "adjacent", h->adjacent);
	put_int(o, "paced", h->paced);
	put_int(o, "pixel", h->pixel);
	put_int(o, "bunch", h->bunch);
	put_u64(o, "images", h->images);
	put_int(o, "sampling", h->sampling);
	put_int(o, "phase", h->phase);
	put_int(o, "unit", h->unit);
	put_int(o, "dark_every", h->dark_every);
	put_int(o, "dataset_images", h->dataset_images);
	put_u64(o, "dataset_sum", h->dataset_sum);
	put_text(o, "dataset", h->dataset);
	for (uint32_t i = 0; i < h->processes; i++)
		json_object_array_add(list, process_write(h, &h->process[i]));
	json_object_object_add(o, "processes", list);
	return o;
}

static bool read_transport(struct json_object *o, const struct transport **transport, char *why)
{
	char text[16], *names;

	if (!link_text(o, "transport", text, sizeof(text), why))
		return false;
	*transport = transport_named(text);
	if (*transport && (*transport)->has & TRANSPORT_CONTRACT)
		return true;
	names = transport_names(TRANSPORT_CONTRACT, ", ", " or ");
	because(why, -1, "\"transport\": %s is not %s", text, names);
	free(names);
	return false;
}

static bool read_hello(struct json_object *o, struct hello *h, struct json_object **list, char *why)
{
	uint32_t version;

	return link_u32(o, "version", LINK_VERSION, LINK_VERSION, &version, why) &&
	       read_transport(o, &h->transport, why) &&
	       link_u32(o, "service", 0, RASHPA_NET_RC, &h->service, why) &&
	       /* a packet carries its message number only */
	       link_u32(o, "immediate", 0, h->transport->has & TRANSPORT_RDMA ? CONTRACT_STACK :
			CONTRACT_EACH, &h->immediate, why) &&
	       link_u32(o, "mtu", MTU_LEAST, MTU_MOST, &h->mtu, why) &&
	       link_u32(o, "message", 64, 1u << 31, &h->message, why) &&
	       link_u32(o, "adjacent", 0, 1, &h->adjacent, why) &&
	       link_u32(o, "paced", 0, 1, &h->paced, why) &&
	       link_u32(o, "pixel", RASHPA_PIXEL_U8, RASHPA_PIXEL_F64, &h->pixel, why) &&
	       link_u32(o, "bunch", 1, BUNCH, &h->bunch, why) &&
	       link_number(o, "images", 0, UINT64_C(1) << 48, &h->images, why) &&
	       link_u32(o, "sampling", 1, UINT32_MAX, &h->sampling, why) &&
	       link_u32(o, "phase", 0, h->sampling - 1, &h->phase, why) &&
	       link_u32(o, "unit", 0, RASHPA_STREAM_STACKS, &h->unit, why) &&
	       link_u32(o, "dark_every", 0, UINT32_MAX, &h->dark_every, why) &&
	       link_u32(o, "dataset_images", 0, UINT32_MAX, &h->dataset_images, why) &&
	       link_number(o, "dataset_sum", 0, UINT64_MAX, &h->dataset_sum, why) &&
	       link_text(o, "dataset", h->dataset, sizeof(h->dataset), why) &&
	       link_array(o, "processes", 1, CONTRACT_PROCESSES, list, why);
}

int hello_read(struct json_object *o, struct hello *h, char *why)
{
	struct json_object *list;

	*h = (struct hello) {};
	if (!read_hello(o, h, &list, why))
		return -1;
	h->processes = json_object_array_length(list);
	h->process = calloc(h->processes, sizeof(*h->process));
	if (!h->process)
		return because(why, -1, "no memory");
	for (uint32_t i = 0; i < h->processes; i++) {
		if (process_read(h, json_object_array_get_idx(list, i), &h->process[i], why))
			continue;
		hello_free(h);
		return -1;
	}
	return 0;
}

void hello_free(struct hello *h)
{
	free(h->process);
	*h = (struct hello) {};
}

/* --- accept --- */

static void port_write(struct json_object *o, const struct contract_end *e)
{
	put_int(o, "port", e->port);
	put_int(o, "process", e->process);
}

struct json_object *accept_write(const struct hello *h, const struct accept *a)
{
	struct json_object *o = link_message(CONTRACT_ACCEPT), *list = json_object_new_array(), *one;

	put_u64(o, "address", a->address);
	put_int(o, "key", a->key);
	put_int(o, "token", a->token);
	put_int(o, "slots", a->slots);
	put_int(o, "width", a->width);
	put_int(o, "mtu", a->mtu);
	put_u64(o, "line_stride", a->line_stride);
	put_u64(o, "image_stride", a->image_stride);
	put_u64(o, "slot_stride", a->slot_stride);
	put_u64(o, "first_stack", a->first_stack);
	for (uint32_t i = 0; i < a->ends; i++) {
		one = json_object_new_object();
		if (h->transport->has & TRANSPORT_RDMA)
			address_write(one, &a->end[i].address);
		if (h->transport->has & TRANSPORT_DATAGRAMS)
			port_write(one, &a->end[i]);
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "ends", list);
	return o;
}

static bool read_accept(struct json_object *o, struct accept *a, uint32_t ends,
			struct json_object **list, char *why)
{
	const uint64_t most = UINT64_C(1) << 56;

	return link_number(o, "address", 0, UINT64_MAX, &a->address, why) &&
	       link_u32(o, "key", 0, UINT32_MAX, &a->key, why) &&
	       link_u32(o, "token", 0, UINT32_MAX, &a->token, why) &&
	       link_u32(o, "slots", 1, INT32_MAX, &a->slots, why) &&
	       link_u32(o, "width", 1, SIDE, &a->width, why) &&
	       link_u32(o, "mtu", MTU_LEAST, MTU_MOST, &a->mtu, why) &&
	       link_number(o, "line_stride", 1, most, &a->line_stride, why) &&
	       link_number(o, "image_stride", 1, most, &a->image_stride, why) &&
	       link_number(o, "slot_stride", 1, most, &a->slot_stride, why) &&
	       link_number(o, "first_stack", 0, UINT64_C(1) << 48, &a->first_stack, why) &&
	       link_array(o, "ends", ends, ends, list, why);
}

static bool end_read(const struct hello *h, struct json_object *o, struct contract_end *e,
		     char *why)
{
	if (!json_object_is_type(o, json_type_object))
		return !because(why, -1, "\"ends\" has an element that is not an object");
	return (!(h->transport->has & TRANSPORT_RDMA) || address_read(o, &e->address, why)) &&
	       (!(h->transport->has & TRANSPORT_DATAGRAMS) ||
		(link_u32(o, "port", 1, 65535, &e->port, why) &&
		 link_u32(o, "process", 0, CONTRACT_PROCESSES - 1, &e->process, why)));
}

int accept_read(struct json_object *o, const struct hello *h, struct accept *a, char *why)
{
	struct json_object *list;

	*a = (struct accept) {};
	if (!read_accept(o, a, h->processes, &list, why))
		return -1;
	a->ends = h->processes;
	a->end = calloc(a->ends, sizeof(*a->end));
	if (!a->end)
		return because(why, -1, "no memory");
	for (uint32_t i = 0; i < a->ends; i++) {
		if (end_read(h, json_object_array_get_idx(list, i), &a->end[i], why))
			continue;
		accept_free(a);
		return -1;
	}
	return 0;
}

void accept_free(struct accept *a)
{
	free(a->end);
	*a = (struct accept) {};
}

/* --- while images flow --- */

struct json_object *sent_write(const char *kind, uint64_t images, struct json_object *sent)
{
	struct json_object *o = link_message(kind);

	put_u64(o, "images", images);
	json_object_object_add(o, "sent", sent);
	return o;
}

int sent_read(struct json_object *o, uint32_t processes, uint64_t least, uint64_t most,
	      uint64_t *images, struct json_object **sent, char *why)
{
	return link_array(o, "sent", processes, processes, sent, why) &&
	       link_number(o, "images", least, most, images, why) ? 0 : -1;
}

int sent_element(struct json_object *sent, uint32_t process, uint64_t least, uint64_t most,
		 uint64_t *messages, char *why)
{
	return link_element(sent, "sent", process, least, most, messages, why) ? 0 : -1;
}

struct json_object *credit_write(const char *kind, uint64_t stacks)
{
	struct json_object *o = link_message(kind);

	put_u64(o, "credit", stacks);
	return o;
}

int credit_read(struct json_object *o, uint64_t *stacks, char *why)
{
	return link_number(o, "credit", 0, UINT64_MAX, stacks, why) ? 0 : -1;
}

struct json_object *bye_write(uint64_t missing, uint64_t incomplete)
{
	struct json_object *o = link_message(CONTRACT_BYE);

	put_u64(o, "missing", missing);
	put_u64(o, "incomplete", incomplete);
	return o;
}

int bye_read(struct json_object *o, uint64_t *missing, uint64_t *incomplete, char *why)
{
	return link_number(o, "missing", 0, UINT64_MAX, missing, why) &&
	       link_number(o, "incomplete", 0, UINT64_MAX, incomplete, why) ? 0 : -1;
}
