// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge of all other engines: one pixel after the other, in double. */
#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/engine.h"

static double jungfrau(const struct rpu_calibration *c, uint32_t raw, size_t i)
{
	const unsigned int k = rpu_stage(raw);

	return rpu_valid(raw) ? rpu_convert(raw, c->pedestal[k][i], c->per_gain[k][i]) : NAN;
}

static double counting(const struct rpu_calibration *c, uint32_t raw, size_t i)
{
	return raw < c->saturated ? rpu_scale(raw, c->pedestal[0][i], c->per_gain[0][i]) : NAN;
}

static void pretreat(const struct rpu_calibration *c, const struct rpu_raw *raw, float *result)
{
	const uint8_t *line = raw->data;
	size_t i = 0;

	for (uint32_t y = 0; y < c->height; y++, line += raw->line_stride) {
		for (uint32_t x = 0; x < c->width; x++, i++) {
			const uint32_t value = rpu_pixel(line, c->pixel, x);
			const double r = c->jungfrau ? jungfrau(c, value, i) :
					 counting(c, value, i);

			result[i] = c->whole ? rpu_round(r) : r;
		}
	}
}

static void dark(struct rpu_calibration *c, const struct rpu_raw *raw)
{
	const uint8_t *line = raw->data;
	float *p = c->pedestal[0];

	for (uint32_t y = 0; y < c->height; y++, line += raw->line_stride) {
		for (uint32_t x = 0; x < c->width; x++, p++) {
			const uint32_t value = rpu_pixel(line, c->pixel, x);

			*p = c->jungfrau ? rpu_dark_mean(*p, value, c->dark_weight) :
			     value < c->saturated ? rpu_mean_of(*p, value, c->dark_weight) : *p;
		}
	}
}

static size_t above(const float *pixel, size_t count, float threshold)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		n += rpu_above(pixel[i], threshold);
	return n;
}

static void compress(const float *pixel, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr)
{
	csr->count = above(pixel, (size_t)width * height, threshold);
	if (csr->count > csr->capacity)
		return;
	csr->row[0] = 0;
	for (uint32_t y = 0; y < height; y++) {
		uint32_t n = csr->row[y];

		for (uint32_t x = 0; x < width; x++, pixel++) {
			if (!rpu_above(*pixel, threshold))
				continue;
			csr->column[n] = x;
			csr->value[n++] = *pixel;
		}
		csr->row[y + 1] = n;
	}
}

static void accumulate(struct rpu_statistics *s, const float *pixel, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		double before = s->mean[i];

		if (isnan(pixel[i]))
			continue;
		s->n[i]++;
		s->mean[i] = rpu_mean(before, pixel[i], s->n[i]);
		s->m2[i] += rpu_m2(before, rpu_mean(before, pixel[i], s->n[i]), pixel[i]);
	}
}

const struct rpu_engine rpu_reference = {
	.name = "reference", .pretreat = pretreat, .dark = dark, .above = above,
	.correct = rpu_reference_correct, .assemble = rpu_reference_assemble,
	.bin = rpu_reference_bin, .compress = compress,
	.look = rpu_reference_look, .integrate = rpu_reference_integrate, .accumulate = accumulate,
};
