// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sources of a readout: fragments that are made, with the faults that tests want. */
#include "build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

#define PATTERN	4096	/* bytes, from one of which a fragment begins */

struct sources {
	const struct options *o;
	uint32_t readout;
	uint64_t *step;		/* of each source: fragments so far */
	uint8_t *pattern;
};

uint32_t sources_most(const struct options *o)
{
	return (uint64_t)o->fragment * (100 + o->jitter) / 100 + 1;
}

int sources_open(const struct options *o, uint32_t readout, struct sources **sources)
{
	const size_t bytes = sources_most(o) + PATTERN;
	struct sources *s = calloc(1, sizeof(*s));
	uint64_t x = readout + 1;

	*sources = s;
	if (!s)
		return fail("no memory");
	s->o = o;
	s->readout = readout;
	s->step = calloc(o->sources, sizeof(*s->step));
	s->pattern = malloc(bytes);
	if (!s->step || !s->pattern)
		return fail("no memory");
	for (size_t i = 0; i < bytes; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		s->pattern[i] = x >> 56;
	}
	return 0;
}

void sources_close(struct sources *s)
{
	if (!s)
		return;
	free(s->step);
	free(s->pattern);
	free(s);
}

static bool faulty(const struct sources *s, uint32_t source, const char *fault)
{
	return s->o->fault && !source && s->readout == s->o->fault_readout &&
	       !strcmp(s->o->fault, fault);
}

/* Which event comes as number n. */
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

int sources_peek(struct sources *s, uint32_t source, struct fragment *f)
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

void sources_drop(struct sources *s, uint32_t source)
{
	s->step[source]++;
}

uint64_t sources_have(struct sources *s, bool *ended)
{
	*ended = false;
	return s->o->events;
}
