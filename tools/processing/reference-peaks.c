// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge, of rings around the beam and what stands out of them. */
#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/engine.h"

/* Of the pixels of a ring that count: how many, and mean and deviation if there are some. */
static uint32_t moments(const struct rpu_finder *f, uint32_t ring, double low, double high,
			double *mean, double *deviation)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;

	for (uint32_t i = f->start[ring]; i < f->start[ring + 1]; i++) {
		const double x = f->value[i];

		if (x >= low && x <= high) {
			sum += x;
			n++;
		}
	}
	for (uint32_t i = f->start[ring]; i < f->start[ring + 1]; i++) {
		const double x = f->value[i];

		if (x >= low && x <= high)
			squares += (x - sum / n) * (x - sum / n);
	}
	if (n) {
		*mean = sum / n;
		*deviation = sqrt(squares / n);
	}
	return n;
}

static void find_background(const struct rpu_finder *f, uint32_t ring)
{
	double mean = NAN, deviation = 0, low = -INFINITY, high = INFINITY;

	f->limit[ring] = INFINITY;
	for (uint32_t i = 0; i <= f->cycles; i++) {
		const uint32_t n = moments(f, ring, low, high, &mean, &deviation);

		if (!n)
			break;
		f->limit[ring] = rpu_limit(mean, deviation, f->clip, f->threshold);
		if (rpu_even(mean, deviation)) {
			deviation = 0;
			break;
		}
		if (f->steps == RPU_PYFAI) {
			/* the limits only shrink: pixels stay left out */
			low = fmax(low, mean - rpu_clip(f->clip, n) * deviation);
			high = fmin(high, mean + rpu_clip(f->clip, n) * deviation);
		} else {
			high = nextafterf(f->limit[ring], -INFINITY);
		}
	}
	f->mean[ring] = mean;
	f->deviation[ring] = deviation;
}

static bool stands_out(const struct rpu_finder *f, const float *pixel, size_t i)
{
	float mean, deviation;

	if (f->steps == RPU_PEAKFINDER8)
		return rpu_above(pixel[i], f->limit[(uint32_t)f->place[i]]);
	rpu_surroundings(f, f->place[i], &mean, &deviation);
	return rpu_picked((double)pixel[i] - mean, rpu_uncertain(deviation, f->noise), f->pick);
}

void rpu_reference_look(const struct rpu_finder *f, const float *pixel)
{
	for (size_t i = 0; i < (size_t)f->width * f->height; i++)
		f->value[f->slot[i]] = pixel[i];
	for (uint32_t b = 0; b < f->rings; b++)
		find_background(f, b);
	rpu_bridge(f);
	for (uint32_t y = 0; y < f->height; y++) {
		f->found[y] = 0;
		for (uint32_t x = 0; x < f->width; x++) {
			const size_t i = (size_t)y * f->width + x;

			f->mark[i] = stands_out(f, pixel, i);
			f->found[y] += f->mark[i];
		}
	}
}
