// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pixels are independent, so threads take pieces of an image, and the compiler takes as many at a
 * time as a processor has lanes: which processor it is, is found out when the program starts.
 */
#include <stdint.h>

#include "arithmetic.h"
#include "pretreat.h"

#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#define PIECE	8192		/* pixels: 16 KiB of raw ones, and their planes stay in the L2 cache */

/* Nearly all pixels have the highest gain: where all of a piece have, two planes are not read. */
CLONES static uint16_t codes(const uint16_t *raw, size_t n)
{
	uint16_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= raw[i];
	return rpu_code(all);
}

CLONES static void convert_highest(const uint16_t *raw, const float *pedestal,
				   const float *per_gain, size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = rpu_convert(raw[i], pedestal[i], per_gain[i]);
}

CLONES static void convert(const uint16_t *raw, float * const *pedestal, float * const *per_gain,
			   size_t from, size_t n, float *result)
{
	const float *p0 = pedestal[0] + from, *p1 = pedestal[1] + from, *p2 = pedestal[2] + from;
	const float *g0 = per_gain[0] + from, *g1 = per_gain[1] + from, *g2 = per_gain[2] + from;

	for (size_t i = 0; i < n; i++) {
		const unsigned int k = rpu_stage(raw[i]);
		const float p = k == 0 ? p0[i] : k == 1 ? p1[i] : p2[i];
		const float g = k == 0 ? g0[i] : k == 1 ? g1[i] : g2[i];
		const float x = rpu_convert(raw[i], p, g);

		result[i] = rpu_valid(raw[i]) ? x : NAN;
	}
}

CLONES static void apply_mask(const uint8_t *mask, size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = mask[i] ? NAN : result[i];
}

CLONES static void make_whole(size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = rpu_round(result[i]);
}

static void pretreat(const struct rpu_calibration *c, const uint16_t *raw, float *result)
{
#pragma omp parallel for schedule(static)
	for (size_t at = 0; at < c->pixels; at += PIECE) {
		const size_t n = c->pixels - at < PIECE ? c->pixels - at : PIECE;

		if (codes(raw + at, n))
			convert(raw + at, c->pedestal, c->per_gain, at, n, result + at);
		else
			convert_highest(raw + at, c->pedestal[0] + at, c->per_gain[0] + at, n,
					result + at);
		if (c->mask)
			apply_mask(c->mask + at, n, result + at);
		if (c->whole)
			make_whole(n, result + at);
	}
}

CLONES static void move_pedestal(float *pedestal, const uint16_t *raw, size_t n, float weight)
{
	for (size_t i = 0; i < n; i++)
		pedestal[i] = rpu_dark_mean(pedestal[i], raw[i], weight);
}

static void dark(struct rpu_calibration *c, const uint16_t *raw)
{
#pragma omp parallel for schedule(static)
	for (size_t at = 0; at < c->pixels; at += PIECE)
		move_pedestal(c->pedestal[0] + at, raw + at,
			      c->pixels - at < PIECE ? c->pixels - at : PIECE, c->dark_weight);
}

CLONES static size_t count(const float *pixel, size_t n, float threshold)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += rpu_above(pixel[i], threshold);
	return found;
}

static size_t above(const float *pixel, size_t total, float threshold)
{
	size_t n = 0;

#pragma omp parallel for schedule(static) reduction(+ : n)
	for (size_t at = 0; at < total; at += PIECE)
		n += count(pixel + at, total - at < PIECE ? total - at : PIECE, threshold);
	return n;
}

const struct rpu_engine rpu_cpu = {
	.name = "cpu", .pretreat = pretreat, .dark = dark, .above = above,
};
