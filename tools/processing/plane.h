/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers for each pixel, as calibrations and masks are kept: HDF5, NumPy, raw, raw in zstd. */
#ifndef RPU_PLANE_H
#define RPU_PLANE_H

#include <stddef.h>
#include <stdint.h>

struct rpu_shape {
	uint32_t planes, height, width;
};

/*
 * Read planes, one after another, from as many files, or from one with all of them. "FILE:/path"
 * names a dataset of an HDF5 file. Arrays have that shape, but for sides of 1, or one side of as
 * many numbers. Raw files are little-endian; their type follows from their size: u8, u16, f32 or
 * f64. 0, or -1 with the reason in why[WHY_SIZE].
 */
int rpu_planes_read(const char * const *path, unsigned int files, const struct rpu_shape *shape,
		    float *to, char *why);

#endif /* RPU_PLANE_H */
