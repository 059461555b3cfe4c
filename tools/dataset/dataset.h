/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images that the emulator sends and the receiver expects, of any number: read one by one. */
#ifndef DATASET_H
#define DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "common/geometry.h"

/* Bits 15 and 14 of a pixel that was generated: the gain stage. */
#define DATASET_GAIN(pixel)	((pixel) >> 14)

struct dataset_format;

struct dataset {
	uint32_t images;
	struct geometry geometry;	/* geometry of each image; pixels are little-endian */
	char source[256];		/* description for reports */
	uint32_t dark_every;		/* each dark_every-th image is dark; 0: none */

	/* dataset_hold(): the first images are in memory, one after another, line by line */
	uint32_t held;
	uint8_t *pixels;
	uint64_t *sum;			/* [n]: sum of the images up to n, dataset_add() */

	const struct dataset_format *format;
	void *file;			/* private data of the format */
};

/*
 * spec: NULL: $RASHPA_DATA/jungfrau if that is there, else generate; or "generate[:N[:SEED]]";
 * or a folder with raw*.bin or raw*.bin.zst, in the order of their numbers; or a file, whose
 * content decides: HDF5 ("FILE:/path" selects a dataset in it), else consecutive raw images.
 *
 * wanted: the geometry of raw and generated images, 0 x 0: 1024 x 512 u16. Other formats store
 * their geometry, and must match wanted. 0, or -1 with the reason in why[WHY_SIZE].
 */
int dataset_open(struct dataset *d, const char *spec, const struct geometry *wanted, char *why);
void dataset_close(struct dataset *d);

/*
 * Insert dark images of another dataset into an open one: each every-th image (2 or more) is dark.
 * 0, or -1 with the reason, and then d is closed.
 */
int dataset_add_darks(struct dataset *d, const char *spec, const struct geometry *wanted,
		      uint32_t every, char *why);

/* Read one image of dataset_bytes(d). */
int dataset_read(struct dataset *d, uint32_t number, void *image, char *why);

/* Load the first images into memory. */
int dataset_hold(struct dataset *d, uint32_t images, char *why);

/* Checksum of images, never 0: extend sum (0 without images before) by the next image. */
uint64_t dataset_add(const struct dataset *d, uint64_t sum, const void *image);

static inline size_t dataset_line_bytes(const struct dataset *d)
{
	return (size_t)d->geometry.width * pixel_bytes(d->geometry.pixel);
}

static inline size_t dataset_bytes(const struct dataset *d)
{
	return d->geometry.height * dataset_line_bytes(d);
}

/* Line y of an image in memory. */
static inline const uint8_t *dataset_line(const struct dataset *d, uint32_t image, uint32_t y)
{
	return d->pixels + image * dataset_bytes(d) + y * dataset_line_bytes(d);
}

#endif /* DATASET_H */
