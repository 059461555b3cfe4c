// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge, of integration: one bin after the other. */
#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/engine.h"

static double part_of(const struct rpu_matrix *m, uint32_t i)
{
	return m->part ? m->part[i] : 1;
}

/* Of squared weights times the squared distances from the mean. */
static double spread(const struct rpu_matrix *m, const float *pixel, uint32_t bin, double mean)
{
	double sum = 0;

	for (uint32_t i = m->start[bin]; i < m->start[bin + 1]; i++) {
		const double norm = m->norm[m->pixel[i]], x = pixel[m->pixel[i]];
		const double weight = part_of(m, i) * norm, off = x / norm - mean;

		if (!isnan(x))
			sum += weight * weight * off * off;
	}
	return sum;
}

void rpu_reference_integrate(const struct rpu_matrix *m, const float *pixel, float *intensity,
			     float *sigma)
{
	for (uint32_t b = 0; b < m->bins; b++) {
		double sum = 0, norm = 0, variance = 0;

		for (uint32_t i = m->start[b]; i < m->start[b + 1]; i++) {
			const double x = pixel[m->pixel[i]], part = part_of(m, i);

			if (isnan(x))
				continue;
			sum += part * x;
			norm += part * m->norm[m->pixel[i]];
			variance += part * part * fmax(x, 0);
		}
		intensity[b] = norm ? rpu_weighted_mean(sum, norm) : NAN;
		if (!sigma)
			continue;
		if (m->error == RPU_ERROR_AZIMUTHAL)
			variance = spread(m, pixel, b, rpu_weighted_mean(sum, norm));
		sigma[b] = norm ? rpu_weighted_error(variance, norm) : NAN;
	}
}
