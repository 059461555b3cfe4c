// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sources of a readout: streams, whose images are fragments, or generated fragments, with faults
 * for tests.
 */
#include "builder/build.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#include "common/say.h"

#define PATTERN	4096	/* number of offsets in the pattern where fragments begin */

struct sources {
	const struct options *o;
	uint32_t readout;
	/* generated fragments */
	uint64_t *step;		/* by source: fragments so far */
	uint8_t *pattern;
	/* a stream: there is one source */
	struct rashpa_stream *stream;
	struct rashpa_stack stack;
	uint32_t image;		/* index of the next image in the stack */
	bool holds, any, ended, drains;
	uint64_t first, have;
	uint8_t *packed;	/* copy of an image without gaps between lines */
};

uint32_t sources_most(const struct options *o)
{
	return (uint64_t)o->fragment * (100 + o->jitter) / 100 + 1;
}

static int open_stream(struct sources *s)
{
	char name[RASHPA_STREAM_NAME];

	snprintf(name, sizeof(name), "%s%u", s->o->from, s->readout);
	s->packed = malloc(s->o->fragment);
	if (!s->packed)
		return fail("no memory");
	if (rashpa_stream_open(name, 0, &s->stream) || accept_names(&s->o->accept, s->stream))
		return fail("readout %u: %s", s->readout, rashpa_reason());
	return 0;
}

static int make_pattern(struct sources *s)
{
	const size_t bytes = sources_most(s->o) + PATTERN;
	uint64_t x = s->readout + 1;

	s->step = calloc(s->o->sources, sizeof(*s->step));
	s->pattern = malloc(bytes);
	if (!s->step || !s->pattern)
		return fail("no memory");
	for (size_t i = 0; i < bytes; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		s->pattern[i] = x >> 56;
	}
	return 0;
}

int sources_open(const struct options *o, uint32_t readout, struct sources **sources)
{
	struct sources *s = calloc(1, sizeof(*s));

	*sources = s;
	if (!s)
		return fail("no memory");
	s->o = o;
	s->readout = readout;
	return o->from ? open_stream(s) : make_pattern(s);
}

void sources_close(struct sources *s)
{
	if (!s)
		return;
	rashpa_stream_close(s->stream);
	free(s->packed);
	free(s->step);
	free(s->pattern);
	free(s);
}

/* --- generated fragments --- */

static bool faulty(const struct sources *s, uint32_t source, const char *fault)
{
	return s->o->fault && !source && s->readout == s->o->fault_readout &&
	       !strcmp(s->o->fault, fault);
}

/* Event number of the n-th fragment. */
static uint64_t event_of(const struct sources *s, uint32_t source, uint64_t n)
{
	const uint64_t at = s->o->fault_event;

	if (faulty(s, source, "missing"))
		return n + (n >= at);
	if (faulty(s, source, "duplicate"))
		return n - (n > at);
	if (faulty(s, source, "late") && (n == at || n == at + 1))
		return n == at ? at + 1 : at;
	return n;
}

static int make(struct sources *s, uint32_t source, struct fragment *f)
{
	const uint64_t event = event_of(s, source, s->step[source]);
	const uint64_t mixed = (event * 131 + source * 17 + s->readout) *
			       UINT64_C(0x9e3779b97f4a7c15);
	const uint32_t spread = (uint64_t)s->o->fragment * s->o->jitter / 100;

	*f = (struct fragment) {
		.event = event,
		.data = s->pattern + (mixed >> 20) % PATTERN,
		.length = s->o->fragment - spread + (mixed >> 34) % (2 * spread + 1),
		.spoilt = faulty(s, source, "corrupt") && event == s->o->fault_event,
	};
	return 1;
}

/* --- streams --- */

static int check(const struct sources *s)
{
	const struct rashpa_stack *st = &s->stack;
	const struct geometry *g = &s->o->geometry;

	if (st->data && st->width == g->width && st->height == g->height && st->pixel == g->pixel)
		return 0;
	fail("readout %u: the stream of %s%u has images of %u x %u pixels of %u bytes%s: set --geometry to this size, the same for all readouts",
	     s->readout, s->o->from, s->readout, st->width, st->height, st->pixel_bytes,
	     st->data ? "" : ", which this machine cannot map");
	return -EINVAL;
}

/* Take the next stack. 1, 0: none yet, or a negative errno. */
static int advance(struct sources *s)
{
	int n;

	while (!s->holds && !s->ended) {
		n = rashpa_stream_next(s->stream, &s->stack, 0);
		if (n == -ETIMEDOUT || n == -EINTR)
			return 0;
		if (n < 0)
			say("readout %u: %s", s->readout, rashpa_reason());
		if (n < 0)
			return n;
		s->ended = !n;
		if (!n)
			break;
		s->holds = true;
		s->image = 0;
		if (!s->any)
			s->first = s->stack.frame;
		s->any = true;
		n = check(s);
		if (n)
			return n;
	}
	return s->holds;
}

static const uint8_t *lines(struct sources *s, const uint8_t *data)
{
	const size_t bytes = (size_t)s->stack.width * s->stack.pixel_bytes;

	if (s->stack.line_stride == bytes)
		return data;
	for (uint32_t y = 0; y < s->stack.height; y++)
		memcpy(s->packed + y * bytes, data + y * s->stack.line_stride, bytes);
	return s->packed;
}

/* Get the next image. 1, 0: none yet, or a negative errno. */
static int next_image(struct sources *s, struct rashpa_image *image)
{
	int n;

	for (;;) {
		n = advance(s);
		if (n <= 0)
			return n;
		n = rashpa_stack_image(&s->stack, s->image, image);
		if (n)
			return n;
		if (!faulty(s, 0, "missing") || image->frame != s->o->fault_event)
			return 1;
		sources_drop(s, 0);
	}
}

static int look(struct sources *s, struct fragment *f)
{
	struct rashpa_image image;
	int n = next_image(s, &image);

	if (n <= 0)
		return n;
	*f = (struct fragment) {
		.event = image.frame,
		.data = lines(s, image.data),
		.length = s->o->fragment,
		.damaged = image.missing_lines || image.wrong,
		.spoilt = faulty(s, 0, "corrupt") && image.frame == s->o->fault_event,
	};
	return 1;
}

int sources_have(struct sources *s, uint64_t *first, uint64_t *behind, bool *ended)
{
	const struct rashpa_stream_header *h;
	struct rashpa_stream_stat stat;
	int n = advance(s);

	if (n > 0) {
		h = rashpa_stream_get_header(s->stream);
		rashpa_stream_get_stat(s->stream, &stat);
		s->have = s->stack.frame + s->stack.images;
		if (h) {
			s->have += stat.behind * h->bunch;
			s->drains = stat.state >= RASHPA_STREAM_DRAINING;
			if (h->images && s->have > h->images)
				s->have = h->images;
		}
	}
	*ended = s->ended || s->drains;
	*first = s->first;
	*behind = s->have;
	return n < 0 ? n : 0;
}

int sources_peek(struct sources *s, uint32_t source, struct fragment *f)
{
	return s->stream ? look(s, f) : make(s, source, f);
}

void sources_drop(struct sources *s, uint32_t source)
{
	if (!s->stream) {
		s->step[source]++;
	} else if (++s->image == s->stack.images) {
		rashpa_stream_release(s->stream, &s->stack);
		s->holds = false;
	}
}
