// SPDX-License-Identifier: LGPL-2.1-or-later
/* The engine for all processors, of what is done with whole images. */
#include "processing/arithmetic.h"
#include "processing/cpu.h"

/* --- offsets that all pixels of a chip have --- */

static CLONES uint32_t quiet(const float *pixel, uint32_t n, float below, float *sum)
{
	uint32_t found = 0;
	float all = 0;

	for (uint32_t i = 0; i < n; i++) {
		const bool counts = rpu_quiet(pixel[i], below);

		all += counts ? pixel[i] : 0;
		found += counts;
	}
	*sum = all;
	return found;
}

static CLONES void subtract(float *pixel, uint32_t n, float offset)
{
	for (uint32_t i = 0; i < n; i++)
		pixel[i] -= offset;
}

static void common_mode(const struct rpu_correction *c, float *pixel)
{
	const uint32_t columns = (c->width - 1) / c->chip_width + 1;
	const uint32_t rows = (c->height - 1) / c->chip_height + 1;

#pragma omp parallel for schedule(static)
	for (uint32_t chip = 0; chip < columns * rows; chip++) {
		const uint32_t x = chip % columns * c->chip_width;
		const uint32_t y = chip / columns * c->chip_height;
		const uint32_t width = least(c->chip_width, c->width - x);
		const uint32_t end = least(y + c->chip_height, c->height);
		double sum = 0;
		size_t n = 0;
		float part;

		for (uint32_t i = y; i < end; i++, sum += part)
			n += quiet(pixel + (size_t)i * c->width + x, width, c->quiet, &part);
		for (uint32_t i = y; i < end && n; i++)
			subtract(pixel + (size_t)i * c->width + x, width, sum / n);
	}
}

/* --- a blank --- */

static CLONES void sums(const float *pixel, const float *blank, uint32_t n, double *sum)
{
	double image = 0, empty = 0;

	for (uint32_t i = 0; i < n; i++) {
		const bool both = pixel[i] == pixel[i] && blank[i] == blank[i];

		image += both ? pixel[i] : 0;
		empty += both ? blank[i] : 0;
	}
	sum[0] = image;
	sum[1] = empty;
}

static CLONES void take_away(float *pixel, const float *blank, uint32_t n, float times)
{
	for (uint32_t i = 0; i < n; i++)
		pixel[i] = rpu_without(pixel[i], blank[i], times);
}

/* Sums of lines are added in the order of lines, so that all runs agree exactly. */
static void background(const struct rpu_correction *c, float *pixel)
{
	double image = 0, blank = 0, times = 1;

	if (c->scale) {
#pragma omp parallel for schedule(static)
		for (uint32_t y = 0; y < c->height; y++)
			sums(pixel + (size_t)y * c->width, c->blank + (size_t)y * c->width,
			     c->width, c->partial + 2 * (size_t)y);
		for (uint32_t y = 0; y < c->height; y++) {
			image += c->partial[2 * (size_t)y];
			blank += c->partial[2 * (size_t)y + 1];
		}
		if (blank)
			times = image / blank;
	}
#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < c->height; y++)
		take_away(pixel + (size_t)y * c->width, c->blank + (size_t)y * c->width, c->width,
			  times);
}

/* --- outliers --- */

static CLONES uint32_t above(const float *pixel, uint32_t n, float threshold)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += rpu_above(pixel[i], threshold);
	return found;
}

static float largest_around(const struct rpu_correction *c, const float *pixel, uint32_t x,
			    uint32_t y)
{
	const uint32_t bottom = y ? y - 1 : 0, top = y + 1 < c->height ? y + 1 : y;
	const uint32_t left = x ? x - 1 : 0, right = x + 1 < c->width ? x + 1 : x;
	float largest = -1;

	for (uint32_t i = bottom; i <= top; i++) {
		for (uint32_t k = left; k <= right; k++) {
			const float value = pixel[(size_t)i * c->width + k];

			if ((i != y || k != x) && value > largest)
				largest = value;
		}
	}
	return largest;
}

/* Few are large at all: a line without such ones is left at once. */
static void outliers(const struct rpu_correction *c, float *pixel)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (uint32_t y = 0; y < c->height; y++) {
			const float *line = pixel + (size_t)y * c->width;
			uint8_t *mark = c->mark + (size_t)y * c->width;

			c->partial[y] = above(line, c->width, c->outlier_above);
			for (uint32_t x = 0; x < c->width && c->partial[y]; x++)
				mark[x] = line[x] > c->outlier_above &&
					  rpu_outlier(line[x], largest_around(c, pixel, x, y),
						      c->outlier_above, c->outlier_ratio);
		}
#pragma omp for schedule(static)
		for (uint32_t y = 0; y < c->height; y++) {
			for (uint32_t x = 0; x < c->width && c->partial[y]; x++) {
				if (c->mark[(size_t)y * c->width + x])
					pixel[(size_t)y * c->width + x] = NAN;
			}
		}
	}
}

void rpu_cpu_correct(const struct rpu_correction *c, float *pixel)
{
	if (c->chip_width)
		common_mode(c, pixel);
	if (c->blank)
		background(c, pixel);
	if (c->outlier)
		outliers(c, pixel);
}

/* --- where pixels are --- */

static CLONES void gather(const float *pixel, const uint32_t *source, size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = source[i] == RPU_NOTHING ? NAN : pixel[source[i]];
}

static CLONES void weigh(const float *weight, size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] *= weight[i];
}

void rpu_cpu_assemble(const struct rpu_assembly *a, const float *pixel, float *result)
{
#pragma omp parallel for schedule(static)
	for (size_t at = 0; at < a->pixels; at += PIECE) {
		const size_t n = least(PIECE, a->pixels - at);

		gather(pixel, a->source + at, n, result + at);
		if (a->weight)
			weigh(a->weight + at, n, result + at);
	}
}

/* In double: a block has up to 4096 pixels, whose sum is whole if they are. */
static CLONES void bin_line(const struct rpu_binning *b, const float *from, float *to)
{
	const size_t line = (size_t)b->width * b->x;

	for (uint32_t x = 0; x < b->width; x++) {
		double sum = 0;

		for (uint32_t dy = 0; dy < b->y; dy++) {
			for (uint32_t dx = 0; dx < b->x; dx++)
				sum += from[dy * line + x * b->x + dx];
		}
		to[x] = sum;
	}
}

void rpu_cpu_bin(const struct rpu_binning *b, const float *pixel, float *result)
{
	const size_t block_line = (size_t)b->width * b->x * b->y;

#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < b->height; y++)
		bin_line(b, pixel + y * block_line, result + (size_t)y * b->width);
}
