/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples that are kept, all or a random choice, and their percentiles. */
#ifndef STATS_H
#define STATS_H

#include <stddef.h>
#include <stdint.h>

struct samples {
	uint64_t *value;
	size_t count, room;
	size_t limit;		/* of count, 0: none; all have the same chance to be kept */
	uint64_t all, max;	/* also of those that were not kept */
	unsigned short random[3];
	uint64_t skipped;	/* for which there was no memory */
};

void samples_add(struct samples *samples, uint64_t value);
void samples_sort(struct samples *samples);
void samples_free(struct samples *samples);

/*
 * Nearest rank: the smallest value that at least p percent of the sorted samples do
 * not exceed. p = 0 is the smallest, p = 100 the largest; 0 without samples.
 */
uint64_t percentile(const uint64_t *sorted, size_t count, double p);

#endif /* STATS_H */
