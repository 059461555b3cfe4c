// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A readout matches the fragments of its sources by event, and sends a block of events in one
 * message. It packs blocks in the order of assignment, which is the order of events in the sources.
 */
#include "builder/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/say.h"

/* A buffer under way, or held until its block is built. */
struct held {
	void *buffer;		/* NULL: free */
	uint64_t block;
	bool sending, again, released;
};

struct readout {
	struct sources *sources;
	struct message *queue;	/* ring of assignments, with room for build.most */
	uint32_t first, n;
	struct held *held;	/* one for each buffer */
	uint8_t *packing;	/* partial message of the first assignment, or NULL */
	uint64_t at;		/* bytes packed so far */
	uint32_t event, source;	/* next ones to pack */
	uint64_t head;		/* offset of the head of the event */
	uint64_t *next;		/* by source: number of the last packed event, plus one */
	uint64_t told;
	bool told_end;
};

int readout_open(struct build *b)
{
	struct readout *r = calloc(1, sizeof(*r));

	if (!r)
		return fail("no memory");
	b->readout = r;
	r->queue = calloc(b->most, sizeof(*r->queue));
	r->held = calloc(b->o->pool, sizeof(*r->held));
	r->next = calloc(b->o->sources, sizeof(*r->next));
	if (!r->queue || !r->held || !r->next)
		return fail("no memory");
	return sources_open(b->o, readout_index(b->rank), &r->sources);
}

void readout_close(struct build *b)
{
	struct readout *r = b->readout;

	if (!r)
		return;
	sources_close(r->sources);
	free(r->queue);
	free(r->held);
	free(r->next);
	free(r);
}

/* --- sending --- */

static struct held *of_buffer(const struct build *b, const void *buffer)
{
	for (uint32_t i = 0; i < b->o->pool; i++) {
		if (b->readout->held[i].buffer == buffer)
			return &b->readout->held[i];
	}
	return NULL;
}

static struct held *of_block(const struct build *b, uint64_t block)
{
	for (uint32_t i = 0; i < b->o->pool; i++) {
		struct held *h = &b->readout->held[i];

		if (h->buffer && h->block == block)
			return h;
	}
	return NULL;
}

static int forget(struct build *b, struct held *h)
{
	const int error = rashpa_pool_give(b->data_out, h->buffer);

	h->buffer = NULL;
	return error ? fail_fabric(b->f, error, "") : 0;
}

static int send_held(struct build *b, struct held *h)
{
	const struct message *m = h->buffer;
	const struct rashpa_fabric_request r = {
		.buffer = h->buffer, .pool = b->data_out, .peer = m->builder, .tag = KIND_DATA,
		.length = sizeof(*m) + m->bytes,
	};
	const int error = rashpa_fabric_send(b->f, &r);

	h->sending = !error;
	h->again = false;
	b->unsent += !error;
	if (!error)
		return 0;
	if (error != -EPIPE)
		return fail_fabric(b->f, error, "");
	/* its builder has gone: the manager decides about the block */
	return b->o->hold && !h->released ? 0 : forget(b, h);
}

int readout_sent(struct build *b, const struct rashpa_fabric_event *e)
{
	struct held *h = of_buffer(b, e->request.buffer);

	if (!h)
		return fail("rank %u: a completion belongs to no message", b->rank);
	h->sending = false;
	if (h->again)
		return send_held(b, h);
	return b->o->hold && !h->released ? 0 : forget(b, h);
}

/* --- messages of the manager --- */

static int assigned(struct build *b, struct readout *r, const struct message *m)
{
	if (r->n == b->most || !m->events || m->events > b->o->block || !is_builder(b, m->builder))
		return fail("rank %u: the manager sent an invalid assignment of %u events to rank %u", b->rank,
			    m->events, m->builder);
	r->queue[(r->first + r->n++) % b->most] = *m;
	return 0;
}

/* Reassign a block to another builder. If it is packed already, send it again. */
static int assigned_again(struct build *b, struct readout *r, const struct message *m)
{
	struct message *packed;
	struct held *h;

	if (!is_builder(b, m->builder))
		return fail("rank %u: rank %u is not a builder", b->rank, m->builder);
	for (uint32_t i = 0; i < r->n; i++) {
		struct message *t = &r->queue[(r->first + i) % b->most];

		if (t->block != m->instead)
			continue;
		t->block = m->block;
		t->builder = m->builder;
		return 0;
	}
	h = of_block(b, m->instead);
	if (!h)
		return fail("rank %u: block %" PRIu64 " cannot be sent again, as it is not held",
			    b->rank, m->instead);
	packed = h->buffer;
	h->block = m->block;
	packed->block = m->block;
	packed->builder = m->builder;
	b->counts.resent++;
	h->again = h->sending;
	return h->sending ? 0 : send_held(b, h);
}

static int released(struct build *b, const struct message *m)
{
	struct held *h = of_block(b, m->block);

	if (!b->o->hold || !h)
		return 0;
	h->released = true;
	return h->sending ? 0 : forget(b, h);
}

int readout_heard(struct build *b, const struct message *m)
{
	if (m->kind == KIND_RELEASE)
		return released(b, m);
	if (m->instead != NO_BLOCK)
		return assigned_again(b, b->readout, m);
	return assigned(b, b->readout, m);
}

/* --- packing --- */

/* Fragment of a source for an event. 1; without data: missing; 0: not yet; or a negative errno. */
static int match(struct build *b, uint32_t source, uint64_t wanted, struct fragment *f)
{
	struct readout *r = b->readout;
	int n;

	for (;;) {
		n = sources_peek(r->sources, source, f);
		if (n <= 0)
			return n;
		if (f->event >= wanted)
			break;
		/* a duplicate, or later than an event that was packed without it */
		if (f->event + 1 == r->next[source])
			b->counts.duplicate++;
		else
			b->counts.late++;
		sources_drop(r->sources, source);
	}
	if (f->event > wanted)
		f->data = NULL;
	return 1;
}

static void put(struct readout *r, const void *data, uint64_t bytes)
{
	memcpy(r->packing + r->at, data, bytes);
	r->at += bytes;
}

static void put_fragment(struct build *b, uint32_t source, const struct fragment *f)
{
	static const uint8_t zeros[8];
	struct readout *r = b->readout;
	struct fragment_head head = { .source = source };

	if (!f->data) {
		head.flags = FRAGMENT_MISSING;
		b->counts.missing++;
		put(r, &head, sizeof(head));
		return;
	}
	head.length = f->length;
	head.checksum = crc32(0, f->data, f->length);
	if (f->damaged)
		head.flags = FRAGMENT_DAMAGED;
	put(r, &head, sizeof(head));
	put(r, f->data, f->length);
	/* the last byte, which belongs to the checksum if the fragment is empty */
	r->packing[r->at - 1] ^= f->spoilt;
	put(r, zeros, padded(f->length) - f->length);
	r->next[source] = f->event + 1;
	b->counts.fragments++;
	b->steps++;
	sources_drop(r->sources, source);
}

static int begin(struct build *b, struct readout *r)
{
	r->packing = rashpa_pool_take(b->data_out, 0);
	if (!r->packing)
		return 0;
	r->at = sizeof(struct message);
	r->event = 0;
	r->source = 0;
	return 1;
}

/* Pack the rest of the message. 1; 0: a fragment may still come; or a negative exit code. */
static int pack(struct build *b, struct readout *r, const struct message *m)
{
	const uint32_t sources = b->o->sources;
	struct fragment f;
	int n;

	for (; r->event < m->events; r->event++) {
		struct event_head head = { .event = m->first + r->event, .fragments = sources };

		if (!r->source) {
			r->head = r->at;
			r->at += sizeof(head);
		}
		for (; r->source < sources; r->source++) {
			n = match(b, r->source, head.event, &f);
			if (n < 0)
				return -EXIT_FAILED;	/* already reported */
			if (!n)
				return 0;
			put_fragment(b, r->source, &f);
		}
		head.bytes = r->at - r->head - sizeof(head);
		memcpy(r->packing + r->head, &head, sizeof(head));
		r->source = 0;
	}
	return 1;
}

static int send_packed(struct build *b, struct readout *r)
{
	struct message *m = (struct message *)r->packing;
	struct held *h = of_buffer(b, NULL);

	*m = r->queue[r->first];
	m->kind = KIND_DATA;
	m->from = b->rank;
	m->bytes = r->at - sizeof(*m);
	b->counts.blocks++;
	b->counts.events += m->events;
	b->counts.bytes += m->bytes;
	r->first = (r->first + 1) % b->most;
	r->n--;
	*h = (struct held) { .buffer = m, .block = m->block };
	r->packing = NULL;
	return send_held(b, h);
}

/* Report the range of events of the stream. One message at a time: the next one has more. */
static int tell(struct build *b, struct readout *r)
{
	struct message m = { .kind = KIND_TELL };
	bool ended;

	if (!b->o->from || b->ending || b->telling || r->told_end)
		return 0;
	if (sources_have(r->sources, &m.block, &m.first, &ended))
		return EXIT_FAILED;	/* already reported */
	if (m.first == r->told && !ended)
		return 0;
	m.events = ended;
	r->told = m.first;
	r->told_end = ended;
	b->telling = true;
	return say_to(b, 0, &m, NULL);
}

int readout_turn(struct build *b)
{
	struct readout *r = b->readout;
	int result = tell(b, r), n;

	while (!result && r->n) {
		if (!r->packing && !begin(b, r))
			break;
		n = pack(b, r, &r->queue[r->first]);
		if (n <= 0)
			return -n;
		result = send_packed(b, r);
	}
	return result;
}

uint32_t readout_waits(const struct build *b)
{
	const struct readout *r = b->readout;
	const struct held *oldest = NULL;

	if (!r->n)
		return 0;
	if (r->packing)
		return b->rank;
	for (uint32_t i = 0; i < b->o->pool; i++) {
		if (r->held[i].buffer && (!oldest || r->held[i].block < oldest->block))
			oldest = &r->held[i];
	}
	return oldest ? ((const struct message *)oldest->buffer)->builder : 0;
}
