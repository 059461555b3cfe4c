// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The engine for all processors, of integration. Sums are in double: they cost nothing, since the
 * matrix comes from memory.
 */
#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/cpu.h"

#define BINS	8	/* bins per turn of a thread: outer rings have more pixels */

static CLONES double sum_whole(const uint32_t *at, uint32_t n, const float *pixel)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += pixel[at[i]];
	return sum;
}

static CLONES double sum_parts(const uint32_t *at, const float *part, uint32_t n,
			       const float *pixel)
{
	double sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += (double)part[i] * pixel[at[i]];
	return sum;
}

/* With pixels that are invalid in this image. */
static CLONES double sum_valid(const struct rpu_matrix *m, uint32_t bin, const float *pixel,
			       double *norm)
{
	double sum = 0, weight = 0;

	for (uint32_t i = m->start[bin]; i < m->start[bin + 1]; i++) {
		const float x = pixel[m->pixel[i]];
		const double part = m->part ? m->part[i] : 1;

		if (x != x)
			continue;
		sum += part * x;
		weight += part * m->norm[m->pixel[i]];
	}
	*norm = weight;
	return sum;
}

static CLONES double variance(const struct rpu_matrix *m, uint32_t bin, const float *pixel,
			      double mean)
{
	const bool azimuthal = m->error == RPU_ERROR_AZIMUTHAL;
	double sum = 0;

	for (uint32_t i = m->start[bin]; i < m->start[bin + 1]; i++) {
		const double x = pixel[m->pixel[i]], norm = m->norm[m->pixel[i]];
		const double part = m->part ? m->part[i] : 1;
		const double off = x - mean * norm, poisson = x > 0 ? x : 0;

		if (x == x)
			sum += part * part * (azimuthal ? off * off : poisson);
	}
	return sum;
}

void rpu_cpu_integrate(const struct rpu_matrix *m, const float *pixel, float *intensity,
		       float *sigma)
{
#pragma omp parallel for schedule(dynamic, BINS)
	for (uint32_t b = 0; b < m->bins; b++) {
		const uint32_t from = m->start[b], n = m->start[b + 1] - from;
		double norm = m->sum_norm[b], sum;

		sum = m->part ? sum_parts(m->pixel + from, m->part + from, n, pixel) :
		      sum_whole(m->pixel + from, n, pixel);
		if (sum != sum)
			sum = sum_valid(m, b, pixel, &norm);
		intensity[b] = norm ? rpu_weighted_mean(sum, norm) : NAN;
		if (sigma)
			sigma[b] = norm ? rpu_weighted_error(variance(m, b, pixel, sum / norm),
							     norm) : NAN;
	}
}
