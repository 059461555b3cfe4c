/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Images that the emulator sends and the receiver expects. */
#ifndef DATASET_H
#define DATASET_H

#include <stddef.h>
#include <stdint.h>

#define DATASET_WIDTH		1024
#define DATASET_HEIGHT		512
#define DATASET_IMAGE		(DATASET_WIDTH * DATASET_HEIGHT)	/* pixels */
#define DATASET_IMAGES_MAX	65536

/* Bits 15 and 14 of a pixel: the gain stage. */
#define DATASET_GAIN(pixel)	((pixel) >> 14)

struct dataset {
	uint32_t images;
	uint16_t *pixels;	/* images x DATASET_IMAGE, row by row */
	uint64_t *sum;		/* [n]: of the images up to n; others have another sum, never 0 */
	char source[256];	/* what it is, for reports */
};

/*
 * spec: a directory with raw*.bin or raw*.bin.zst (little-endian u16, in the order of their
 * numbers), "generate[:N[:SEED]]", or NULL: $RASHPA_DATA/jungfrau if that is there, else
 * generate. 0, or -1 with the reason in why[WHY_SIZE].
 */
int dataset_load(struct dataset *dataset, const char *spec, char *why);
void dataset_free(struct dataset *dataset);

/* One generated image: rings, Bragg peaks, noise, three gain stages. */
void dataset_generate(uint16_t *image, uint32_t number, uint64_t seed);

static inline size_t dataset_bytes(const struct dataset *dataset)
{
	return (size_t)dataset->images * DATASET_IMAGE * sizeof(uint16_t);
}

static inline const uint16_t *dataset_line(const struct dataset *dataset, uint32_t image,
					   uint32_t y)
{
	return dataset->pixels + (size_t)image * DATASET_IMAGE + (size_t)y * DATASET_WIDTH;
}

#endif /* DATASET_H */
