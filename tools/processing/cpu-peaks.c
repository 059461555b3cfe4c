// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine for all processors, of rings around the beam and what stands out of them. */
#define rpu_real double
#include "arithmetic.h"
#include "cpu.h"

#define BINS	8	/* that a thread takes at a time */

/* Those between two limits: how many; sums of their distances from a value, and of the squares. */
static CLONES uint32_t moments(const uint32_t *at, uint32_t n, const float *pixel, double low,
			       double high, double from, double *sum, double *squares)
{
	double all = 0, square = 0;
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		const double x = pixel[at[i]];
		const bool counts = x >= low && x <= high;
		const double off = counts ? x - from : 0;

		all += off;
		square += off * off;
		found += counts;
	}
	*sum = all;
	*squares = square;
	return found;
}

/*
 * The distances are from the mean of the cycle before, which is near, so that one pass is enough:
 * nothing is lost when the square of the rest is taken away.
 */
static void ring(const struct rpu_finder *f, const float *pixel, uint32_t bin)
{
	const uint32_t from = f->rings.start[bin], n = f->rings.start[bin + 1] - from;
	const uint32_t *at = f->rings.pixel + from;
	double mean = 0, deviation = 0, low = -INFINITY, high = INFINITY, sum, squares;
	uint32_t all = 0;

	f->limit[bin] = INFINITY;
	for (uint32_t cycle = 0; cycle <= f->cycles; cycle++) {
		uint32_t found = moments(at, n, pixel, low, high, mean, &sum, &squares);

		if (!cycle && found) {	/* from there */
			mean = sum / found;
			found = moments(at, n, pixel, low, high, mean, &sum, &squares);
		}
		if (!found)
			break;
		all += found;
		deviation = sqrt(fmax(squares / found - sum / found * sum / found, 0));
		mean += sum / found;
		f->limit[bin] = rpu_limit(mean, deviation, f->clip, f->threshold);
		if (rpu_even(mean, deviation))
			break;
		if (f->steps == RPU_PYFAI) {
			low = fmax(low, mean - rpu_clip(f->clip, found) * deviation);
			high = fmin(high, mean + rpu_clip(f->clip, found) * deviation);
		} else {
			high = nextafterf(f->limit[bin], -INFINITY);
		}
	}
	f->mean[bin] = all ? mean : NAN;
	f->deviation[bin] = deviation;
}

static CLONES uint32_t mark_fixed(const float *pixel, const float *place, const float *limit,
				  uint32_t n, uint8_t *mark)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		mark[i] = pixel[i] > limit[(uint32_t)place[i]];
		found += mark[i];
	}
	return found;
}

static CLONES uint32_t mark_between(const struct rpu_finder *f, const float *pixel,
				    const float *place, uint32_t n, uint8_t *mark)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		float mean, deviation;

		rpu_surroundings(f, place[i], &mean, &deviation);
		mark[i] = rpu_picked((double)pixel[i] - mean, rpu_uncertain(deviation, f->noise),
				     f->pick);
		found += mark[i];
	}
	return found;
}

void rpu_cpu_look(const struct rpu_finder *f, const float *pixel)
{
#pragma omp parallel
	{
#pragma omp for schedule(dynamic, BINS)
		for (uint32_t b = 0; b < f->rings.bins; b++)
			ring(f, pixel, b);
#pragma omp single
		rpu_bridge(f);
#pragma omp for schedule(static)
		for (uint32_t y = 0; y < f->height; y++) {
			const size_t at = (size_t)y * f->width;

			f->found[y] = f->steps == RPU_PYFAI ?
				mark_between(f, pixel + at, f->place + at, f->width, f->mark + at) :
				mark_fixed(pixel + at, f->place + at, f->limit, f->width,
					   f->mark + at);
		}
	}
}
