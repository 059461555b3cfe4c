// SPDX-License-Identifier: LGPL-2.1-or-later
#include "frames/check.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames/opcode.h"

void check_begin(struct check *c, const struct check_options *options,
		 void (*each)(void *arg, const struct finding *finding), void *arg)
{
	*c = (struct check) { .options = *options, .found = each, .arg = arg };
}

static const struct queue_pair *told(const struct check *c, uint32_t qpn)
{
	for (unsigned int i = 0; i < c->options.n_queue_pairs; i++) {
		if (c->options.queue_pairs[i].qpn == qpn)
			return c->options.queue_pairs + i;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;

	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static struct flow *flow_new(struct check *c, const struct flow *like)
{
	const struct queue_pair *pair = told(c, like->key.qpn);
	struct flow *f, **flows;

	if (!(c->n_flows & (c->n_flows - 1))) {
		flows = realloc(c->flows, (c->n_flows ? 2 * c->n_flows : 1) * sizeof(*flows));
		if (!flows)
			return NULL;
		c->flows = flows;
	}
	f = malloc(sizeof(*f));
	if (!f)
		return NULL;
	*f = *like;
	if (!tsearch(f, &c->tree, compare)) {
		free(f);
		return NULL;
	}
	f->psn.mask = PSN_MASK;
	f->immediates.mask = UINT32_MAX;
	f->path_mtu = c->options.path_mtu;
	if (pair && pair->psn_told) {
		f->first_told = f->psn.begun = true;
		f->psn.expected = pair->first_psn;
		f->message = MESSAGE_NONE;
	}
	c->flows[c->n_flows++] = f;
	return f;
}

/* NULL: no memory, or not one more (*full). */
static struct flow *flow_of(struct check *c, const struct frame *frame, bool *full)
{
	struct flow like;
	void *node;

	memset(&like, 0, sizeof(like));
	like.key.ip = frame->ip;
	memcpy(like.key.from, frame->from, sizeof(like.key.from));
	memcpy(like.key.to, frame->to, sizeof(like.key.to));
	like.key.qpn = frame->qpn;
	node = tfind(&like, &c->tree, compare);
	if (node)
		return *(struct flow **)node;
	*full = c->n_flows == CHECK_FLOWS_MAX;
	return *full ? NULL : flow_new(c, &like);
}

/* What one frame alone says: false if its lengths cannot be believed. */
static bool look_at(struct check *c, struct flow *flow, const struct frame *f)
{
	uint64_t n = c->frames;
	bool believed = true;

	if (f->icrc_known && f->icrc != f->icrc_expected)
		found(c, flow, n, FAULT_ICRC, f->icrc_expected, f->icrc,
		      "wrong ICRC: expected 0x%08" PRIx32 ", got 0x%08" PRIx32 "%s%s",
		      f->icrc_expected, f->icrc, f->icrc_hint ? ": " : "",
		      f->icrc_hint ? f->icrc_hint : "");
	if (f->to_port != ROCE_PORT)
		found(c, flow, n, FAULT_PORT, ROCE_PORT, f->to_port,
		      "UDP port: expected %u, got %u", ROCE_PORT, f->to_port);
	if (f->may_fragment)
		found(c, flow, n, FAULT_DF, 1, 0, "DF: expected 1, got 0: a router may fragment it");
	if (f->checksum != f->checksum_right)
		found(c, flow, n, FAULT_CHECKSUM, f->checksum_right, f->checksum,
		      "wrong checksum of the IP header: expected 0x%04x, got 0x%04x",
		      f->checksum_right, f->checksum);
	if (f->udp_checksum != f->udp_checksum_right)
		found(c, flow, n, FAULT_CHECKSUM, f->udp_checksum_right, f->udp_checksum,
		      "wrong checksum of UDP: expected 0 (none) or 0x%04x, got 0x%04x",
		      f->udp_checksum_right, f->udp_checksum);
	if (f->version)
		found(c, flow, n, FAULT_HEADER, 0, f->version,
		      "version of the BTH: expected 0, got %u", f->version);
	if ((f->pkey & 0x7fff) != 0x7fff)
		found(c, flow, n, FAULT_HEADER, 0xffff, f->pkey,
		      "partition key: expected 0xffff, got 0x%04x", f->pkey);
	if (c->options.mtu && f->ip_size > c->options.mtu)
		found(c, flow, n, FAULT_MTU, c->options.mtu, f->ip_size,
		      "IP packet: expected at most %" PRIu32 " bytes, got %zu: larger than the MTU",
		      c->options.mtu, f->ip_size);
	if (f->udp_size != f->udp_there) {
		found(c, flow, n, FAULT_LENGTH, f->udp_there, f->udp_size,
		      "UDP length: expected %zu as IP says, got %zu", f->udp_there, f->udp_size);
		believed = false;
	} else if ((f->payload_size + f->pad) & 3) {
		found(c, flow, n, FAULT_LENGTH, -f->payload_size & 3, f->pad,
		      "payload of %zu bytes and padding of %u: expected a multiple of 4",
		      f->payload_size, f->pad);
		believed = false;
	}
	return believed;
}

static void first_packet(struct check *c, struct flow *flow, const struct frame *f)
{
	const struct queue_pair *pair = told(c, f->qpn);

	flow->opcode = f->opcode;
	flow->first_psn = f->psn;
	if (c->options.n_queue_pairs && !pair)
		found(c, flow, c->frames, FAULT_QUEUE_PAIR, c->options.queue_pairs[0].qpn, f->qpn,
		      "unknown queue pair: expected 0x%06" PRIx32 "%s, got 0x%06" PRIx32,
		      c->options.queue_pairs[0].qpn,
		      c->options.n_queue_pairs > 1 ? " or another given one" : "", f->qpn);
}

static int follow(struct check *c, const struct frame *f)
{
	unsigned int parts = opcode_parts(f->opcode);
	struct packet p = {
		.number = c->frames, .opcode = f->opcode, .psn = f->psn, .length = f->length,
		.immediate = f->immediate, .payload = f->payload_size,
		.icrc_wrong = f->icrc_known && f->icrc != f->icrc_expected,
	};
	struct flow *flow;
	bool full = false;

	if (f->opcode == OPCODE_CNP)
		return 0;
	flow = flow_of(c, f, &full);
	if (full)
		c->not_followed++;
	if (!flow)
		return full ? 0 : -1;
	c->no_icrc += !f->icrc_known;
	p.lengths_wrong = !look_at(c, flow, f);
	if (!parts)
		found(c, flow, c->frames, FAULT_OPCODE, 0, f->opcode, "unknown opcode 0x%02x",
		      f->opcode);
	if (parts & PART_RESPONSE) {
		flow->responses++;
		return 0;
	}
	if (!flow->packets)
		first_packet(c, flow, f);
	flow->packets++;
	flow->bytes += f->payload_size;
	flow->last_psn = f->psn;
	/* datagrams are in no order */
	if ((f->opcode & 0xe0) != TRANSPORT_UD)
		flow_packet(c, flow, &p);
	return 0;
}

int check_frame(struct check *c, const uint8_t *data, size_t captured, size_t wire,
		enum frame_link link)
{
	struct frame f;

	c->frames++;
	switch (frame_decode(&f, data, captured, wire, link)) {
	case FRAME_OTHER:
		c->others++;
		return 0;
	case FRAME_CUT:
		c->roce++;
		c->cut++;
		return 0;
	case FRAME_FRAGMENT:
		c->roce++;
		found(c, NULL, c->frames, FAULT_FRAGMENT, 0, 1,
		      "a fragment of a packet to UDP port %u: expected a whole one; use a smaller path MTU",
		      f.to_port);
		return 0;
	case FRAME_SHORT:
		c->roce++;
		if (f.ip_there < f.ip_size)
			found(c, NULL, c->frames, FAULT_SHORT, f.ip_size, f.ip_there,
			      "short frame: expected an IP packet of %zu bytes, got %zu",
			      f.ip_size, f.ip_there);
		else
			found(c, NULL, c->frames, FAULT_SHORT, f.ip_size, f.ip_there,
			      "short frame: its headers do not fit into an IP packet of %zu bytes",
			      f.ip_size ? f.ip_size : f.ip_there);
		return 0;
	default:
		c->roce++;
		return follow(c, &f);
	}
}

void check_end(struct check *c)
{
	for (unsigned int i = 0; i < c->n_flows; i++)
		flow_end(c, c->flows[i]);
}

void check_free(struct check *c)
{
	for (unsigned int i = 0; i < c->n_flows; i++) {
		tdelete(c->flows[i], &c->tree, compare);
		free(c->flows[i]);
	}
	free(c->flows);
}

uint64_t check_faults(const struct check *c)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < FAULTS; i++)
		n += c->faults[i];
	return n;
}
