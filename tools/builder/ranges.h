/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Ranges of event numbers: sorted, and adjacent ones are merged. */
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

/* Allocate room for up to "most" ranges. 0 or -ENOMEM. */
int ranges_open(struct ranges *ranges, uint32_t most);
void ranges_close(struct ranges *ranges);
/* Add events, none of which may be in a range already. false: there is no room. */
bool ranges_add(struct ranges *ranges, uint64_t first, uint32_t events);

#endif /* BUILDER_RANGES_H */
