// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests of ranges of event numbers. */
#include "builder/ranges.h"

#include <stdlib.h>

#include "fabric/tests/selftest.h"

#define BLOCKS	1000u
#define EVENTS	8u

/* Add all blocks of a residue class, shuffled: 389 and 1000 are coprime. */
static bool add(struct ranges *r, uint32_t from, uint32_t every)
{
	bool good = true;

	for (uint32_t i = 0; i < BLOCKS; i++) {
		const uint32_t block = i * 389 % BLOCKS;

		if (block % every == from)
			good &= ranges_add(r, block * EVENTS, EVENTS);
	}
	return good;
}

static bool ordered(const struct ranges *r)
{
	for (uint32_t i = 1; i < r->n; i++) {
		if (r->range[i].first <= r->range[i - 1].last + 1)
			return false;
	}
	return true;
}

void test_ranges(void)
{
	struct ranges r;

	ok(!ranges_open(&r, BLOCKS / 2), "ranges: ranges");
	ok(add(&r, 1, 2) && r.n == BLOCKS / 2 && ordered(&r),
	   "500-ranges-not: 500 ranges that do not touch are kept apart, in order: %u", r.n);
	ok(r.events == BLOCKS / 2 * EVENTS, "all-events: with all their events");
	ok(!ranges_add(&r, BLOCKS * EVENTS * 2, 1) && r.n == BLOCKS / 2, "no-room: a range is refused without room");
	ok(add(&r, 0, 2) && r.n == 1 && !r.range[0].first && r.range[0].last == BLOCKS * EVENTS - 1,
	   "between-one: filling the gaps merges all into one range");
	ranges_close(&r);
}
