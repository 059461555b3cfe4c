/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Images become smaller, without loss, in the framings of HDF5's registered filters: readers have
 * them. All processors take part, which the filters themselves do not make use of.
 */
#ifndef RPU_PACK_H
#define RPU_PACK_H

#include <stddef.h>

enum rpu_packing {
	RPU_PACK_NONE,
	RPU_PACK_BITSHUFFLE_LZ4,	/* filter 32008 */
	RPU_PACK_BITSHUFFLE_ZSTD,	/* likewise */
	RPU_PACK_ZSTD,			/* filter 32015 */
	RPU_PACK_LZ4,			/* filter 32004 */
};

struct rpu_packer;

/* For images of so many numbers, of 1, 2 or 4 bytes each. threads: 0: all. NULL: no memory. */
struct rpu_packer *rpu_packer_new(enum rpu_packing packing, size_t number, size_t numbers, int threads);
void rpu_packer_free(struct rpu_packer *p);

/* What became of an image, until the next one comes; NULL: it cannot be packed. */
const void *rpu_pack(struct rpu_packer *p, const void *image, size_t *bytes);

#endif /* RPU_PACK_H */
