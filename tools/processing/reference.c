// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge of all other engines: one pixel after the other, in double. */
#define rpu_real double
#include "arithmetic.h"
#include "pretreat.h"

static void pretreat(const struct rpu_calibration *c, const uint16_t *raw, float *result)
{
	for (size_t i = 0; i < c->pixels; i++) {
		const unsigned int k = rpu_stage(raw[i]);
		double x = NAN;

		if (rpu_valid(raw[i]) && !(c->mask && c->mask[i]))
			x = rpu_convert(raw[i], c->pedestal[k][i], c->per_gain[k][i]);
		result[i] = c->whole ? rpu_round(x) : x;
	}
}

static void dark(struct rpu_calibration *c, const uint16_t *raw)
{
	for (size_t i = 0; i < c->pixels; i++)
		c->pedestal[0][i] = rpu_dark_mean(c->pedestal[0][i], raw[i], c->dark_weight);
}

static size_t above(const float *pixel, size_t count, float threshold)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += rpu_above(pixel[i], threshold);
	return n;
}

const struct rpu_engine rpu_reference = {
	.name = "reference", .pretreat = pretreat, .dark = dark, .above = above,
};
