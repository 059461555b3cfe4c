/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of the engine for all processors. */
#ifndef RPU_CPU_H
#define RPU_CPU_H

#include "processing/clones.h"
#include "processing/engine.h"

#define PIECE	8192u		/* pixels: 16 KiB of raw ones; their planes stay in the L2 cache */

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/*
 * Of pixels of a line that are valid and have no mark: how many. Their sum and that of their
 * squares are added, the largest is the larger one.
 */
uint32_t rpu_cpu_around(const float *pixel, const uint8_t *mark, uint32_t n, double *sum,
			double *squares, float *largest);

#endif /* RPU_CPU_H */
