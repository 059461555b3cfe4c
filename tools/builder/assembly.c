// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A builder. When all readouts have sent their part of a block, the builder checks the block, the
 * manager commits it, and the builder hands it on and asks for another one. A builder checks each
 * field of a message before use.
 */
#include "builder/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/say.h"

#define NAMED	16	/* bad fragments that are reported by number, at most */

struct slot {
	bool used, built, committed;
	struct message block;
	uint32_t parts;
	void **message;		/* by readout */
};

struct assembly {
	struct slot *slot;	/* one for each block of the credit */
	uint64_t *finished;	/* the last blocks: later messages for them are duplicates */
	uint32_t kept, next;
	uint8_t **at;		/* by readout: its next event */
	uint64_t *left;		/* bytes from there on */
	struct sink *sink;
	struct slot *going;	/* block that may have been handed on in part */
	bool asked;
	uint64_t named;		/* bad fragments that were reported by number */
};

int assembly_open(struct build *b)
{
	struct assembly *a = calloc(1, sizeof(*a));

	if (!a)
		return fail("no memory");
	b->assembly = a;
	a->kept = 4 * b->o->credit;
	a->slot = calloc(b->o->credit, sizeof(*a->slot));
	a->finished = malloc(a->kept * sizeof(*a->finished));
	a->at = calloc(b->readouts, sizeof(uint8_t *));
	a->left = calloc(b->readouts, sizeof(*a->left));
	if (!a->slot || !a->finished || !a->at || !a->left)
		return fail("no memory");
	memset(a->finished, 0xff, a->kept * sizeof(*a->finished));
	for (uint32_t i = 0; i < b->o->credit; i++) {
		a->slot[i].message = calloc(b->readouts, sizeof(void *));
		if (!a->slot[i].message)
			return fail("no memory");
	}
	return sink_open(b->o, b->rank, b->rank - 1 - (b->o->folded ? 0 : b->readouts), b->readouts,
			 &a->sink);
}

void assembly_close(struct build *b)
{
	struct assembly *a = b->assembly;

	if (!a)
		return;
	for (uint32_t i = 0; a->slot && i < b->o->credit; i++)
		free(a->slot[i].message);
	sink_close(a->sink);
	free(a->slot);
	free(a->finished);
	free(a->at);
	free(a->left);
	free(a);
}

/* --- checks --- */

/* Reports the first bad fragments by number. */
static void name(struct build *b, uint64_t event, uint32_t readout, uint32_t source,
		 const char *what)
{
	if (b->assembly->named++ < NAMED)
		say("rank %u: event %" PRIu64 ": the fragment of source %u of readout %u %s%s",
		    b->rank, event, source, readout, what,
		    b->assembly->named == NAMED ? "; others are counted only" : "");
}

/* Reads a head of a readout's message, and moves past it; false: the message ends before. */
static bool next_head(struct assembly *a, uint32_t readout, void *head, size_t size)
{
	if (a->left[readout] < size)
		return false;
	memcpy(head, a->at[readout], size);
	a->at[readout] += size;
	a->left[readout] -= size;
	return true;
}

/* Check the fragment after the head that was just read. If damaged, set a flag in the head. */
static bool whole_fragment(struct build *b, uint32_t readout, uint64_t event,
			   struct fragment_head *f)
{
	uint8_t *data = b->assembly->at[readout];

	if (f->flags) {	/* the readout has counted it */
		name(b, event, readout, f->source,
		     f->flags & FRAGMENT_MISSING ? "is missing" : "came in parts");
		return false;
	}
	if (crc32(0, data, f->length) == f->checksum) {
		b->counts.fragments++;
		return true;
	}
	b->counts.corrupt++;
	name(b, event, readout, f->source, "has another checksum than its readout sent");
	f->flags |= FRAGMENT_DAMAGED;
	memcpy(data - sizeof(*f), f, sizeof(*f));
	return false;
}

/* Check the part of a readout; true: complete and undamaged. */
static bool part(struct build *b, struct assembly *a, uint32_t readout, uint64_t event)
{
	struct event_head head;
	struct fragment_head f;
	bool whole = true;

	if (!next_head(a, readout, &head, sizeof(head)) || head.event != event ||
	    head.fragments != b->o->sources || head.bytes > a->left[readout]) {
		a->left[readout] = 0;
		b->counts.foreign++;
		return false;
	}
	for (uint32_t i = 0; i < head.fragments; i++) {
		if (!next_head(a, readout, &f, sizeof(f)) || f.source != i ||
		    padded(f.length) > a->left[readout]) {
			a->left[readout] = 0;
			b->counts.foreign++;
			return false;
		}
		whole &= whole_fragment(b, readout, event, &f);
		a->at[readout] += padded(f.length);
		a->left[readout] -= padded(f.length);
		b->counts.bytes += f.length;
	}
	return whole;
}

static uint32_t count_incomplete(struct build *b, const struct slot *s)
{
	struct assembly *a = b->assembly;
	uint32_t incomplete = 0;

	for (uint32_t i = 0; i < b->readouts; i++) {
		struct message *m = s->message[i];

		a->at[i] = (uint8_t *)(m + 1);
		a->left[i] = m->bytes;
	}
	for (uint32_t e = 0; e < s->block.events; e++) {
		bool whole = true;

		for (uint32_t i = 0; i < b->readouts; i++)
			whole &= part(b, a, i, s->block.first + e);
		incomplete += !whole;
	}
	return incomplete;
}

/* --- blocks --- */

static struct slot *find(const struct build *b, uint64_t block)
{
	for (uint32_t i = 0; i < b->o->credit; i++) {
		if (b->assembly->slot[i].used && b->assembly->slot[i].block.block == block)
			return &b->assembly->slot[i];
	}
	return NULL;
}

static bool was_finished(const struct assembly *a, uint64_t block)
{
	for (uint32_t i = 0; i < a->kept; i++) {
		if (a->finished[i] == block)
			return true;
	}
	return false;
}

static struct slot *begin(const struct build *b, const struct message *m)
{
	for (uint32_t i = 0; i < b->o->credit; i++) {
		struct slot *s = &b->assembly->slot[i];

		if (s->used)
			continue;
		s->used = true;
		s->built = false;
		s->committed = false;
		s->parts = 0;
		s->block = *m;
		memset(s->message, 0, b->readouts * sizeof(void *));
		return s;
	}
	return NULL;
}

/* The block that a message belongs to; NULL: none, and the message is counted. */
static struct slot *place(struct build *b, const struct rashpa_fabric_event *e)
{
	const struct message *m = e->request.buffer;
	const uint32_t readout = readout_index(e->request.peer);
	struct slot *s;

	if (e->length < sizeof(*m) || m->kind != KIND_DATA || m->from != e->request.peer ||
	    m->bytes != e->length - sizeof(*m) || m->builder != b->rank || !m->events ||
	    m->events > b->o->block) {
		b->counts.foreign++;
		return NULL;
	}
	s = find(b, m->block);
	if (s ? !!s->message[readout] : was_finished(b->assembly, m->block)) {
		b->counts.duplicate++;
		return NULL;
	}
	s = s ? s : begin(b, m);
	if (!s || s->block.first != m->first || s->block.events != m->events) {
		b->counts.foreign++;
		return NULL;
	}
	return s;
}

int assembly_data(struct build *b, const struct rashpa_fabric_event *e)
{
	struct slot *s = place(b, e);
	struct message built = { .kind = KIND_BUILT };

	if (!s)
		return listen_to(b, e->request.peer, e->request.pool, e->request.buffer);
	s->message[readout_index(e->request.peer)] = e->request.buffer;
	if (++s->parts < b->readouts)
		return 0;
	built.block = s->block.block;
	built.events = count_incomplete(b, s);
	b->counts.incomplete += built.events;
	s->built = true;
	return say_to(b, 0, &built, NULL);
}

/* Hand a block on, and ask for another one. */
static int hand_on(struct build *b, struct slot *s)
{
	struct assembly *a = b->assembly;
	const struct message done = { .kind = KIND_DONE, .block = s->block.block };
	const uint64_t last = s->block.first + s->block.events - 1;
	const int error = sink_take(a->sink, &s->block, s->message, b->readouts);
	int result = 0;

	if (error == -EAGAIN)
		return 0;
	if (error)
		return fail("rank %u: events %" PRIu64 " to %" PRIu64 " %s: %s", b->rank,
			    s->block.first, last,
			    error == -EEXIST ? "were handed on before" : "cannot be handed on",
			    strerror(-error));
	b->counts.blocks++;
	b->counts.events += s->block.events;
	for (uint32_t i = 0; i < b->readouts && !result; i++)
		result = listen_to(b, i + 1, b->data_in[i], s->message[i]);
	a->finished[a->next++ % a->kept] = s->block.block;
	s->used = false;
	return result ? result : say_to(b, 0, &done, NULL);
}

/* The manager has committed a block: this builder may hand it on. */
int assembly_heard(struct build *b, const struct message *m)
{
	struct slot *s = find(b, m->block);

	if (!s || !s->built || s->committed)
		return fail("rank %u: block %" PRIu64 " cannot be handed on: this builder does not have it",
			    b->rank, m->block);
	s->committed = true;
	return 0;
}

/* The oldest committed block: streams get their events in order, as far as possible. */
static struct slot *next_committed(const struct build *b)
{
	struct slot *oldest = NULL;

	for (uint32_t i = 0; i < b->o->credit; i++) {
		struct slot *s = &b->assembly->slot[i];

		if (s->used && s->committed &&
		    (!oldest || s->block.block < oldest->block.block))
			oldest = s;
	}
	return oldest;
}

int assembly_turn(struct build *b)
{
	const struct message ask = { .kind = KIND_ASK, .events = b->o->credit };
	struct slot *s;
	int result;

	if (!b->assembly->asked) {
		b->assembly->asked = true;
		return say_to(b, 0, &ask, NULL);
	}
	for (;;) {
		s = b->assembly->going ? b->assembly->going : next_committed(b);
		b->assembly->going = s;
		if (!s)
			return 0;
		result = hand_on(b, s);
		if (result || s->used)
			return result;
		b->assembly->going = NULL;
	}
}

uint32_t assembly_waits(const struct build *b)
{
	const struct slot *oldest = NULL;

	if (b->assembly->going)
		return b->rank;
	for (uint32_t i = 0; i < b->o->credit; i++) {
		const struct slot *s = &b->assembly->slot[i];

		if (s->used && !s->built && (!oldest || s->block.block < oldest->block.block))
			oldest = s;
	}
	for (uint32_t i = 0; oldest && i < b->readouts; i++) {
		if (!oldest->message[i])
			return i + 1;
	}
	return 0;
}
