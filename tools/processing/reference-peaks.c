// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge, of rings around the beam and what stands out of them. */
#define rpu_real double
#include "arithmetic.h"
#include "engine.h"

/* Does a pixel still count, after a mean and a deviation were found? */
static bool counts(const struct rpu_finder *f, double x, uint32_t bin, double mean,
		   double deviation)
{
	return f->steps == RPU_PYFAI ? !rpu_clipped(x, mean, deviation, f->clip) :
	       x < f->limit[bin];
}

/* Of the pixels of a ring that still count: false: there is none. */
static bool cycle(const struct rpu_finder *f, const float *pixel, uint32_t bin, bool first,
		  double *mean, double *deviation)
{
	const struct rpu_matrix *m = &f->rings;
	double sum = 0, squares = 0;
	uint32_t n = 0;

	for (uint32_t i = m->start[bin]; i < m->start[bin + 1]; i++) {
		const double x = pixel[m->pixel[i]];

		if (isnan(x) || (!first && !counts(f, x, bin, *mean, *deviation)))
			continue;
		sum += x;
		n++;
	}
	for (uint32_t i = m->start[bin]; i < m->start[bin + 1] && n; i++) {
		const double x = pixel[m->pixel[i]];

		if (isnan(x) || (!first && !counts(f, x, bin, *mean, *deviation)))
			continue;
		squares += (x - sum / n) * (x - sum / n);
	}
	if (!n)
		return false;
	*mean = sum / n;
	*deviation = sqrt(squares / n);
	return true;
}

static void rings(const struct rpu_finder *f, const float *pixel)
{
	for (uint32_t b = 0; b < f->rings.bins; b++) {
		double mean = 0, deviation = 0;

		f->limit[b] = INFINITY;
		for (uint32_t i = 0; i <= f->cycles; i++) {
			if (!cycle(f, pixel, b, !i, &mean, &deviation))
				break;
			f->limit[b] = rpu_limit(mean, deviation, f->clip, f->threshold);
			if (rpu_even(mean, deviation))
				break;
		}
		f->mean[b] = mean;
		f->deviation[b] = deviation;
	}
}

static bool stands_out(const struct rpu_finder *f, const float *pixel, size_t i)
{
	float limit;

	if (f->place[i] < 0)
		return false;
	if (f->steps == RPU_PYFAI) {
		float mean, deviation;

		rpu_surroundings(f, f->place[i], &mean, &deviation);
		limit = rpu_pick(mean, deviation, f->pick, f->noise);
	} else {
		limit = f->limit[(uint32_t)f->place[i]];
	}
	return rpu_above(pixel[i], limit);
}

void rpu_reference_look(const struct rpu_finder *f, const float *pixel)
{
	rings(f, pixel);
	for (uint32_t y = 0; y < f->height; y++) {
		f->found[y] = 0;
		for (uint32_t x = 0; x < f->width; x++) {
			const size_t i = (size_t)y * f->width + x;

			f->mark[i] = stands_out(f, pixel, i);
			f->found[y] += f->mark[i];
		}
	}
}
