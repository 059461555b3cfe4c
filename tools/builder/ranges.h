/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of events, as ranges: in order, and those that touch are one. */
#ifndef BUILDER_RANGES_H
#define BUILDER_RANGES_H

#include <stdbool.h>
#include <stdint.h>

struct range {
	uint64_t first, last;
};

struct ranges {
	struct range *range;
	uint32_t n, room;
	uint64_t events;
};

/* Of at most so many ranges. 0 or -ENOMEM. */
int ranges_open(struct ranges *ranges, uint32_t most);
void ranges_close(struct ranges *ranges);
/* So many events from the first one on, none of which is there. false: there is no room. */
bool ranges_add(struct ranges *ranges, uint64_t first, uint32_t events);

#endif /* BUILDER_RANGES_H */
