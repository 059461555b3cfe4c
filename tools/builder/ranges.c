// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: ranges of event numbers. */
#include "builder/ranges.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ranges_open(struct ranges *r, uint32_t most)
{
	*r = (struct ranges) { .range = calloc(most, sizeof(*r->range)), .room = most };
	return r->range ? 0 : -ENOMEM;
}

void ranges_close(struct ranges *r)
{
	free(r->range);
	r->range = NULL;
}

/* The first range that does not end before an event. */
static uint32_t behind(const struct ranges *r, uint64_t event)
{
	uint32_t low = 0, high = r->n;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (r->range[middle].last < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void move(struct ranges *r, uint32_t to, uint32_t from)
{
	memmove(&r->range[to], &r->range[from], (r->n - from) * sizeof(*r->range));
	r->n += to - from;
}

bool ranges_add(struct ranges *r, uint64_t first, uint32_t events)
{
	const uint64_t last = first + events - 1;
	const uint32_t i = behind(r, first);
	const bool left = i && r->range[i - 1].last + 1 == first;
	const bool right = i < r->n && r->range[i].first == last + 1;

	if (left && right) {
		r->range[i - 1].last = r->range[i].last;
		move(r, i, i + 1);
	} else if (left) {
		r->range[i - 1].last = last;
	} else if (right) {
		r->range[i].first = first;
	} else {
		if (r->n == r->room)
			return false;
		move(r, i + 1, i);
		r->range[i] = (struct range) { first, last };
	}
	r->events += events;
	return true;
}
