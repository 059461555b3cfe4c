// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Events of a detector of rings, like the RICH of NA62: hits of one ring on an array of
 * photomultipliers, whose distance is 18 mm, and the reference of the fit. Lengths are 0.1 mm.
 */
#include <math.h>
#include <string.h>

#include "bench/loop/loop.h"

#define PITCH		180.0
#define HITS		12u	/* at least */
#define TOLERANCE	1.0	/* 0.1 mm */

/* A number of 0 to 1, the same ones each time. */
static double next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) / 16777216.0;
}

/* The nearest photomultiplier of a hexagonal array. */
static uint32_t hit_at(double x, double y)
{
	const double row = round(y / (PITCH * sqrt(3) / 2)), shift = fmod(fabs(row), 2) * PITCH / 2;
	const int32_t at_x = lround(round((x - shift) / PITCH) * PITCH + shift);
	const int32_t at_y = lround(row * PITCH * sqrt(3) / 2);

	return (uint32_t)at_y << 16 | (at_x & 0xffff);
}

static void fill(volatile uint32_t *word, uint32_t words, uint32_t number)
{
	const uint32_t most = words - 5 < 32 ? words - 5 : 32;
	uint32_t state = number, hits;
	double x, y, r, angle;

	next(&state);
	x = 1000 * (next(&state) - 0.5);
	y = 1000 * (next(&state) - 0.5);
	r = 800 + 1100 * next(&state);
	hits = HITS + (most > HITS ? (uint32_t)(next(&state) * (most - HITS + 1)) : 0);
	if (hits > most)
		hits = most;
	word[4] = hits;
	for (uint32_t i = 0; i < hits; i++) {
		angle = 2 * M_PI * (i + 0.8 * next(&state)) / hits;
		word[5 + i] = hit_at(x + r * cos(angle), y + r * sin(angle));
	}
}

void loop_rings_fill(const struct loop *l)
{
	for (uint32_t i = 0; i < LOOP_RINGS; i++)
		fill(l->word + l->plan.hits + (i << l->plan.slot_log2), l->plan.words, i);
}

static double minor(double a[3][4], int p, int q, int r)
{
	return a[0][p] * (a[1][q] * a[2][r] - a[1][r] * a[2][q]) -
	       a[0][q] * (a[1][p] * a[2][r] - a[1][r] * a[2][p]) +
	       a[0][r] * (a[1][p] * a[2][q] - a[1][q] * a[2][p]);
}

/*
 * The reference, with doubles and another way: x^2 + y^2 = 2 X x + 2 Y y + C in the least squares,
 * of which X and Y are the centre, and R^2 = C + X^2 + Y^2.
 */
static void fit(const volatile uint32_t *word, double ring[3])
{
	double a[3][4] = {}, det;

	for (uint32_t i = 0; i < word[4]; i++) {
		const double x = (int16_t)(word[5 + i] & 0xffff), y = (int16_t)(word[5 + i] >> 16);
		const double row[4] = { x, y, 1, x * x + y * y };

		for (int j = 0; j < 3; j++)
			for (int k = 0; k < 4; k++)
				a[j][k] += row[j] * row[k];
	}
	det = minor(a, 0, 1, 2);
	ring[0] = minor(a, 3, 1, 2) / det / 2;
	ring[1] = -minor(a, 3, 0, 2) / det / 2;
	ring[2] = sqrt(minor(a, 3, 0, 1) / det + ring[0] * ring[0] + ring[1] * ring[1]);
}

uint32_t loop_rings_wrong(const struct loop *l)
{
	const struct loop_plan *p = &l->plan;
	double ring[LOOP_RINGS][3];
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < LOOP_RINGS; i++)
		fit(l->word + p->hits + (i << p->slot_log2), ring[i]);
	for (uint32_t n = 0; n + p->window < p->total; n++) {
		bool good = true;

		for (uint32_t k = 0; k < 3; k++) {
			const uint32_t bits = l->word[p->fits + n * 4 + k];
			float answer;

			memcpy(&answer, &bits, sizeof(answer));
			/* false for a NaN, too */
			good = good && fabs(answer - ring[n % LOOP_RINGS][k]) < TOLERANCE;
		}
		wrong += !good;
	}
	return wrong;
}
