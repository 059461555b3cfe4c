// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The arithmetic of pixels as a CUDA kernel: each function, so that each is compiled. Compilers
 * without the toolkit's headers use cuda-clang.cuh.
 */
#ifndef __NVCC__
#include "cuda-clang.cuh"
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#else
#define THREAD threadIdx.x
#endif

#include "arithmetic.h"

__global__ void arithmetic(const unsigned int *raw, float *plane, const float *g)
{
	const unsigned int i = THREAD, word = raw[i];
	float x = plane[i];

	if (!rpu_valid(word) || rpu_code(word) == 2u || rpu_stage(word) > 2u)
		return;
	x = rpu_dark_mean(x, word, 0.5f) + rpu_mean_of(x, rpu_value(word), 0.5f);
	x += rpu_convert(word, x, 2) + rpu_scale(word, x, 2);
	x = rpu_without(rpu_round(x), 1, 2);
	if (rpu_above(x, 1) && !rpu_quiet(x, 2) && !rpu_outlier(x, 3, 4, 5))
		x += rpu_t1(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]) +
		     rpu_t2(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]) +
		     rpu_t3(g[0], g[1], g[2], g[3], g[4], g[5], g[6]);
	if (!rpu_even(x, 1) && rpu_picked(x, rpu_uncertain(1, 2), rpu_clip(3, word)))
		x = rpu_limit(x, 1, 2, 3);
	x += rpu_weighted_mean(x, 2) + rpu_weighted_error(x, 2);
	plane[i] = rpu_m2(x, rpu_mean(x, 1, word), 1);
}
