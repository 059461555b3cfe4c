// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine for all processors, of rings around the beam and what stands out of them. */
#include <string.h>

#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/cpu.h"

#define RINGS	8	/* rings per turn of a thread */

/* Writes to many rings in turn are nearer to each other than reads of one ring. */
static void sort(const float *restrict pixel, const uint32_t *restrict slot, uint32_t n,
		 float *restrict value)
{
	for (uint32_t i = 0; i < n; i++)
		value[slot[i]] = pixel[i];
}

/* Those between two limits: how many, and their sum: of whole numbers it is exact. */
static CLONES uint32_t sum_of(const float *value, uint32_t n, float low, float high, double *sum)
{
	double all = 0;
	uint32_t found = 0;

	_Pragma("omp simd reduction(+:all, found)")
	for (uint32_t i = 0; i < n; i++) {
		const bool counts = value[i] >= low && value[i] <= high;

		all += counts ? value[i] : 0;
		found += counts;
	}
	*sum = all;
	return found;
}

static CLONES double squares_of(const float *value, uint32_t n, float low, float high, double mean)
{
	double squares = 0;

	_Pragma("omp simd reduction(+:squares)")
	for (uint32_t i = 0; i < n; i++) {
		const double off = value[i] >= low && value[i] <= high ? value[i] - mean : 0;

		squares += off * off;
	}
	return squares;
}

/* The smallest float that is not below a number, and the largest that is not above. */
static float not_below(double x)
{
	return (float)x < x ? nextafterf(x, INFINITY) : (float)x;
}

static float not_above(double x)
{
	return (float)x > x ? nextafterf(x, -INFINITY) : (float)x;
}

/* A cycle that leaves nothing out is the last one: the next would be the same. */
static void find_background(const struct rpu_finder *f, uint32_t ring)
{
	const float *value = f->value + f->start[ring];
	const uint32_t n = f->start[ring + 1] - f->start[ring];
	double mean = NAN, deviation = 0, sum;
	float low = -INFINITY, high = INFINITY;
	uint32_t before = 0;

	f->limit[ring] = INFINITY;
	for (uint32_t cycle = 0; cycle <= f->cycles; cycle++) {
		const uint32_t found = sum_of(value, n, low, high, &sum);
		double far;

		if (!found || found == before)
			break;
		before = found;
		mean = sum / found;
		deviation = sqrt(squares_of(value, n, low, high, mean) / found);
		f->limit[ring] = rpu_limit(mean, deviation, f->clip, f->threshold);
		if (rpu_even(mean, deviation)) {
			deviation = 0;
			break;
		}
		far = rpu_clip(f->clip, found) * deviation;
		if (f->steps == RPU_PEAKFINDER8) {
			high = nextafterf(f->limit[ring], -INFINITY);
		} else {
			low = fmaxf(low, not_below(mean - far));
			high = fminf(high, not_above(mean + far));
		}
	}
	f->mean[ring] = mean;
	f->deviation[ring] = deviation;
}

static float least_of(const float *values, uint32_t low, uint32_t high)
{
	float least = values[low];

	for (uint32_t i = low + 1; i <= high; i++)
		least = fminf(least, values[i]);
	return least;
}

/* Lower bound of picked pixels of a ring, whose background depends on the adjacent rings. */
static void bound(const struct rpu_finder *f)
{
	for (uint32_t b = 0; b < f->rings; b++) {
		const uint32_t low = b ? b - 1 : b, high = least(b + 1, f->rings - 1);
		const double mean = least_of(f->mean, low, high);
		const double deviation = least_of(f->deviation, low, high);
		const double above = f->pick * sqrt(rpu_uncertain(deviation, f->noise));

		/* interpolation rounds */
		f->limit[b] = mean + above - 0.000001 * (fabs(mean) + above);
	}
}

static CLONES uint32_t mark(const float *restrict pixel, const float *restrict place,
			    const float *restrict limit, uint32_t n, uint8_t *restrict mark)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		mark[i] = pixel[i] > limit[(int32_t)place[i]];
		found += mark[i];
	}
	return found;
}

/* Of those that may be picked: which ones are. */
static uint32_t pick(const struct rpu_finder *f, const float *pixel, size_t from)
{
	uint8_t *next = f->mark + from, *end = next + f->width;
	uint32_t found = 0;

	while ((next = memchr(next, 1, end - next))) {
		const size_t i = next - f->mark;
		float mean, deviation;

		rpu_surroundings(f, f->place[i], &mean, &deviation);
		*next = rpu_picked((double)pixel[i] - mean, rpu_uncertain(deviation, f->noise),
				   f->pick);
		found += *next++;
	}
	return found;
}

CLONES uint32_t rpu_cpu_around(const float *restrict pixel, const uint8_t *restrict mark,
			       uint32_t n, double *sum, double *squares, float *largest)
{
	double all = 0, square = 0;
	float most = *largest;
	uint32_t found = 0;

	_Pragma("omp simd reduction(+:all, square, found) reduction(max:most)")
	for (uint32_t i = 0; i < n; i++) {
		const bool counts = !mark[i] && pixel[i] == pixel[i];
		const float x = counts ? pixel[i] : 0, size = counts ? pixel[i] : -INFINITY;

		all += x;
		square += (double)x * x;
		most = size > most ? size : most;
		found += counts;
	}
	*sum += all;
	*squares += square;
	*largest = most;
	return found;
}

void rpu_cpu_look(const struct rpu_finder *f, const float *pixel)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (uint32_t y = 0; y < f->height; y++)
			sort(pixel + (size_t)y * f->width, f->slot + (size_t)y * f->width, f->width,
			     f->value);
#pragma omp for schedule(dynamic, RINGS)
		for (uint32_t b = 0; b < f->rings; b++)
			find_background(f, b);
#pragma omp single
		if (f->steps == RPU_PYFAI) {
			rpu_bridge(f);
			bound(f);
		}
#pragma omp for schedule(static)
		for (uint32_t y = 0; y < f->height; y++) {
			const size_t at = (size_t)y * f->width;

			f->found[y] = mark(pixel + at, f->place + at, f->limit, f->width,
					   f->mark + at);
			if (f->steps == RPU_PYFAI && f->found[y])
				f->found[y] = pick(f, pixel, at);
		}
	}
}
