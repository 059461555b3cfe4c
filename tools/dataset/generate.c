// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Images of an imaginary detector: rings, Bragg peaks, noise, three gain stages. Integer arithmetic
 * only, so that every machine makes the same ones.
 */
#include "dataset/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "common/say.h"

#define IMAGES		10
#define IMAGES_MAX	65536
#define SEED		1
#define SIDE		16		/* pixels, at least: a peak and some more */

struct generator {
	uint64_t seed;
	int width, height;		/* pixels */
	uint32_t photons[];
};

/* splitmix64 */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* Photons to a raw pixel: three gain stages as in a charge-integrating detector. */
static uint16_t pixel(uint32_t photons, uint32_t noise)
{
	if (photons < 300)
		return 2600 + photons * 38 + noise;			/* G0 */
	if (photons < 8000)
		return 1u << 14 | (15000 - photons + noise);		/* G1 */
	if (photons > 100000)
		photons = 100000;
	return 3u << 14 | (14500 - photons / 8 + noise);		/* G2 */
}

#define BESIDE		37
#define CENTRE_Y	(-60)		/* the beam passes outside the module */
#define PEAK		6		/* half the side of a peak, pixels */
#define PER_PEAK	4096		/* pixels, about */

static void add_rings(struct generator *g)
{
	const int centre_x = g->width / 2 + BESIDE;

	for (int y = 0; y < g->height; y++) {
		for (int x = 0; x < g->width; x++) {
			uint32_t dx = abs(x - centre_x), dy = y - CENTRE_Y;
			uint32_t square = dx * dx + dy * dy;
			/* rings at equal steps of the squared radius, narrow outwards */
			uint32_t phase = square % 36000;
			uint32_t ring = phase < 2500 ? 14 * (2500 - phase) / 2500 : 0;

			g->photons[(size_t)y * g->width + x] = 1 + ring + 200000 / (square + 8000);
		}
	}
}

static void add_peaks(struct generator *g, uint64_t *state)
{
	const unsigned int most = (uint64_t)g->width * g->height / PER_PEAK;
	unsigned int peaks = next(state) % 60;

	/* 120 to 179 in the usual half a million pixels */
	peaks = most == 128 ? 120 + peaks : most + peaks % (most / 2 + 1);
	while (peaks--) {
		uint64_t r = next(state);
		int cx = PEAK + r % (g->width - 2 * PEAK);
		int cy = PEAK + (r >> 20) % (g->height - 2 * PEAK);
		uint32_t height = 40u << ((r >> 40) % 11);	/* weak ones and very strong ones */

		for (int y = -PEAK; y <= PEAK; y++) {
			uint32_t *line = g->photons + (size_t)(cy + y) * g->width + cx;

			for (int x = -PEAK; x <= PEAK; x++) {
				uint32_t d = x * x + y * y;

				line[x] += height / (1 + d * d);
			}
		}
	}
}

static void generate(struct generator *g, uint16_t *image, uint32_t number)
{
	uint64_t state = g->seed ^ (uint64_t)(number + 1) << 32;
	const size_t pixels = (size_t)g->width * g->height;
	uint64_t noise = 0;

	add_rings(g);
	next(&state);
	add_peaks(g, &state);
	for (size_t i = 0; i < pixels; i++) {
		uint32_t p = g->photons[i];

		if (i % 4 == 0)
			noise = next(&state);
		/* two uniform deviates: a triangle, as wide as shot noise of few photons */
		p += (noise & 1) && p < 100 ? p / 4 : 0;
		image[i] = pixel(p, (noise >> 1 & 0x3f) + (noise >> 7 & 0x3f));
		noise >>= 16;
	}
}

static int open_generated(struct dataset *d, const char *spec, const char *inside, char *why)
{
	const struct geometry geometry = d->geometry;
	char copy[64], is[GEOMETRY_TEXT], *images_text = NULL, *seed_text = NULL;
	uint64_t images = IMAGES, seed = SEED;
	struct generator *g;

	(void)inside;
	if (snprintf(copy, sizeof(copy), "%s", spec) >= (int)sizeof(copy))
		return because(why, -1, "dataset \"%s\" is too long", spec);
	images_text = strchr(copy, ':');
	if (images_text) {
		*images_text++ = '\0';
		seed_text = strchr(images_text, ':');
	}
	if (seed_text)
		*seed_text++ = '\0';
	if ((images_text && (!parse_u64(images_text, IMAGES_MAX, &images) || !images)) ||
	    (seed_text && !parse_u64(seed_text, UINT64_MAX, &seed)))
		return because(why, -1, "dataset \"%s\": write generate[:IMAGES[:SEED]], with 1 to %d images",
			       spec, IMAGES_MAX);
	snprintf(d->source, sizeof(d->source), "generate:%llu:%llu", (unsigned long long)images,
		 (unsigned long long)seed);
	if (geometry.pixel != RASHPA_PIXEL_U16 || geometry.width < SIDE || geometry.height < SIDE)
		return because(why, -1, "dataset %s: generated images are of u16 and have %d pixels a side at least, not %s",
			       spec, SIDE, format_geometry(is, &geometry));
	g = malloc(sizeof(*g) + sizeof(g->photons[0]) * geometry.width * geometry.height);
	if (!g)
		return because(why, -1, "dataset %s: no memory", spec);
	*g = (struct generator) { seed, geometry.width, geometry.height };
	d->file = g;
	return dataset_set(d, images, geometry.width, geometry.height, RASHPA_PIXEL_U16, why);
}

static int read_generated(struct dataset *d, uint32_t number, void *image, char *why)
{
	(void)why;
	generate(d->file, image, number);
	return 0;
}

static void close_generated(struct dataset *d)
{
	free(d->file);
}

const struct dataset_format dataset_generated = {
	.open = open_generated, .read = read_generated, .close = close_generated,
};
