/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Interface of the formats of datasets to dataset.c. */
#ifndef FORMATS_H
#define FORMATS_H

#include <stdbool.h>

#include "dataset/dataset.h"
#include <rashpa-stream-format.h>

/*
 * All return 0, or -1 with the reason in why[WHY_SIZE]. open() gets a dataset that is empty except
 * for the geometry of raw images. It sets source, images and geometry, and need not clean up after
 * a failure: close() is always called. inside is the path after FILE: for HDF5, or NULL.
 */
struct dataset_format {
	int (*open)(struct dataset *d, const char *path, const char *inside, char *why);
	int (*read)(struct dataset *d, uint32_t number, void *image, char *why);
	void (*close)(struct dataset *d);
};

extern const struct dataset_format dataset_generated, dataset_folder, dataset_raw, dataset_hdf5;

bool dataset_is_hdf5(const char *path);

/* Set number and geometry of images, if they are valid. */
int dataset_set(struct dataset *d, uint64_t images, uint64_t width, uint64_t height,
		enum rashpa_pixel pixel, char *why);

#endif /* FORMATS_H */
