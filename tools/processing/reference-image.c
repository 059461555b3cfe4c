// SPDX-License-Identifier: LGPL-2.1-or-later
/* The judge, of what is done with whole images. */
#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/engine.h"

/* Mean of the quiet pixels of a chip; 0 without quiet pixels. */
static double offset_of(const struct rpu_correction *c, const float *pixel, uint32_t x0,
			uint32_t y0)
{
	double sum = 0;
	size_t n = 0;

	for (uint32_t y = y0; y < y0 + c->chip_height && y < c->height; y++) {
		for (uint32_t x = x0; x < x0 + c->chip_width && x < c->width; x++) {
			const float value = pixel[(size_t)y * c->width + x];

			if (!rpu_quiet(value, c->quiet))
				continue;
			sum += value;
			n++;
		}
	}
	return n ? sum / n : 0;
}

static void common_mode(const struct rpu_correction *c, float *pixel)
{
	for (uint32_t y0 = 0; y0 < c->height; y0 += c->chip_height) {
		for (uint32_t x0 = 0; x0 < c->width; x0 += c->chip_width) {
			const double offset = offset_of(c, pixel, x0, y0);

			for (uint32_t y = y0; y < y0 + c->chip_height && y < c->height; y++) {
				for (uint32_t x = x0; x < x0 + c->chip_width && x < c->width; x++)
					pixel[(size_t)y * c->width + x] -= offset;
			}
		}
	}
}

static void background(const struct rpu_correction *c, float *pixel)
{
	const size_t n = (size_t)c->width * c->height;
	double image = 0, blank = 0, times = 1;

	for (size_t i = 0; i < n && c->scale; i++) {
		if (isnan(pixel[i]) || isnan(c->blank[i]))
			continue;
		image += pixel[i];
		blank += c->blank[i];
	}
	if (c->scale && blank)
		times = image / blank;
	for (size_t i = 0; i < n; i++)
		pixel[i] = rpu_without(pixel[i], c->blank[i], times);
}

/* Largest valid neighbour; -1: no neighbour is valid, or all are below -1. */
static float largest_around(const float *pixel, uint32_t width, uint32_t height, uint32_t x,
			    uint32_t y)
{
	float largest = -1;

	for (int dy = -1; dy <= 1; dy++) {
		for (int dx = -1; dx <= 1; dx++) {
			const uint32_t nx = x + dx, ny = y + dy;

			if ((!dx && !dy) || nx >= width || ny >= height)
				continue;
			largest = fmaxf(largest, pixel[(size_t)ny * width + nx]);
		}
	}
	return largest;
}

static void outliers(const struct rpu_correction *c, float *pixel)
{
	const size_t n = (size_t)c->width * c->height;

	for (size_t i = 0; i < n; i++) {
		const float around = largest_around(pixel, c->width, c->height, i % c->width,
						    i / c->width);

		c->mark[i] = rpu_outlier(pixel[i], around, c->outlier_above, c->outlier_ratio);
	}
	for (size_t i = 0; i < n; i++) {
		if (c->mark[i])
			pixel[i] = NAN;
	}
}

void rpu_reference_correct(const struct rpu_correction *c, float *pixel)
{
	if (c->chip_width)
		common_mode(c, pixel);
	if (c->blank)
		background(c, pixel);
	if (c->outlier)
		outliers(c, pixel);
}

void rpu_reference_assemble(const struct rpu_assembly *a, const float *pixel, float *result)
{
	for (size_t i = 0; i < a->pixels; i++) {
		result[i] = a->source[i] == RPU_NOTHING ? NAN : pixel[a->source[i]];
		if (a->weight)
			result[i] *= a->weight[i];
	}
}

void rpu_reference_bin(const struct rpu_binning *b, const float *pixel, float *result)
{
	const size_t line = (size_t)b->width * b->x;

	for (uint32_t y = 0; y < b->height; y++) {
		for (uint32_t x = 0; x < b->width; x++) {
			double sum = 0;

			for (uint32_t dy = 0; dy < b->y; dy++) {
				for (uint32_t dx = 0; dx < b->x; dx++)
					sum += pixel[(y * b->y + dy) * line + x * b->x + dx];
			}
			result[(size_t)y * b->width + x] = sum;
		}
	}
}
