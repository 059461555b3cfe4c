// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/stats.h"

#include <math.h>
#include <stdlib.h>

void samples_add(struct samples *samples, uint64_t value)
{
	samples->all++;
	if (value > samples->max)
		samples->max = value;
	if (samples->limit && samples->count == samples->limit) {
		uint64_t at = erand48(samples->random) * samples->all;

		if (at < samples->limit)
			samples->value[at] = value;
		return;
	}
	if (samples->count == samples->room) {
		size_t room = samples->room ? 2 * samples->room : 4096;
		uint64_t *more = realloc(samples->value, room * sizeof(*more));

		if (!more) {
			samples->skipped++;
			return;
		}
		samples->value = more;
		samples->room = room;
	}
	samples->value[samples->count++] = value;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

void samples_sort(struct samples *samples)
{
	if (samples->count)
		qsort(samples->value, samples->count, sizeof(*samples->value), compare);
}

void samples_free(struct samples *samples)
{
	free(samples->value);
	*samples = (struct samples) {};
}

uint64_t percentile(const uint64_t *sorted, size_t count, double p)
{
	size_t rank;

	if (!count)
		return 0;
	rank = ceil(p / 100 * count);
	if (rank < 1)
		rank = 1;
	return sorted[rank > count ? count - 1 : rank - 1];
}
