// SPDX-License-Identifier: LGPL-2.1-or-later
/* Images of two datasets: the last of every so many is a dark one. */
#include "dataset/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/say.h"

struct darks {
	struct dataset signal, dark;
};

static int read_darks(struct dataset *d, uint32_t number, void *image, char *why)
{
	struct darks *s = d->file;
	const uint32_t group = number / d->dark_every, place = number % d->dark_every;
	const uint64_t signal = (uint64_t)group * (d->dark_every - 1) + place;

	if (place == d->dark_every - 1)
		return dataset_read(&s->dark, group % s->dark.images, image, why);
	return dataset_read(&s->signal, signal % s->signal.images, image, why);
}

static void close_darks(struct dataset *d)
{
	struct darks *s = d->file;

	dataset_close(&s->signal);
	dataset_close(&s->dark);
	free(s);
}

static const struct dataset_format dataset_darks = { .read = read_darks, .close = close_darks };

/* All images of both; those that are fewer come again. */
static int join(struct dataset *d, char *why)
{
	const struct darks *s = d->file;
	const struct geometry *g = &s->signal.geometry, *dark = &s->dark.geometry;
	const uint64_t signals = d->dark_every - 1;
	char one[GEOMETRY_TEXT], other[GEOMETRY_TEXT];
	uint64_t groups = (s->signal.images + signals - 1) / signals;

	snprintf(d->source, sizeof(d->source), "%.120s, darks %.120s", s->signal.source,
		 s->dark.source);
	if (g->width != dark->width || g->height != dark->height || g->pixel != dark->pixel)
		return because(why, -1, "dataset %s: images of %s need dark ones of that size and type, not %s", d->source,
			       format_geometry(one, g), format_geometry(other, dark));
	groups = groups < s->dark.images ? s->dark.images : groups;
	return dataset_set(d, groups * d->dark_every, g->width, g->height, g->pixel, why);
}

int dataset_add_darks(struct dataset *d, const char *spec, const struct geometry *wanted,
		      uint32_t every, char *why)
{
	struct darks *s = malloc(sizeof(*s));

	if (!s || dataset_open(&s->dark, spec, wanted, why)) {
		if (!s)
			because(why, -1, "dataset %s: no memory", spec);
		free(s);
		dataset_close(d);
		return -1;
	}
	s->signal = *d;
	*d = (struct dataset) { .dark_every = every, .format = &dataset_darks, .file = s };
	if (!join(d, why))
		return 0;
	dataset_close(d);
	return -1;
}
