// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pixels are independent, so threads take pieces of an image, and the compiler takes as many at a
 * time as a processor has lanes: which processor it is, is found out when the program starts.
 * A thread has the same pieces of each image, so that their calibration is near its processor.
 */
#include <omp.h>
#include <stdint.h>
#include <string.h>

#include "arithmetic.h"
#include "engine.h"

#if defined(__x86_64__) && defined(__gnu_linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#define PIECE	8192u		/* pixels: 16 KiB of raw ones; their planes stay in the L2 cache */
#define GROUP	64u		/* pixels that are looked at together */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* --- raw pixels --- */

/* Nearly all pixels have the highest gain: where all of a piece have, two planes are not read. */
static CLONES uint16_t codes(const uint16_t *raw, size_t n)
{
	uint16_t all = 0;

	for (size_t i = 0; i < n; i++)
		all |= raw[i];
	return rpu_code(all);
}

static CLONES void convert_highest(const uint16_t *raw, const float *pedestal,
				   const float *per_gain, size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = rpu_convert(raw[i], pedestal[i], per_gain[i]);
}

static CLONES void convert(const uint16_t *raw, float * const *pedestal, float * const *per_gain,
			   size_t from, size_t n, float *result)
{
	const float *p0 = pedestal[0] + from, *p1 = pedestal[1] + from, *p2 = pedestal[2] + from;
	const float *g0 = per_gain[0] + from, *g1 = per_gain[1] + from, *g2 = per_gain[2] + from;

	for (size_t i = 0; i < n; i++) {
		const unsigned int k = rpu_stage(raw[i]);
		const float p = k == 0 ? p0[i] : k == 1 ? p1[i] : p2[i];
		const float g = k == 0 ? g0[i] : k == 1 ? g1[i] : g2[i];
		const float x = rpu_convert(raw[i], p, g);

		result[i] = rpu_valid(raw[i]) ? x : NAN;
	}
}

/* The first of each pair converts, the second moves the pedestal of a dark image. */
#define COUNTING(type)									\
	static CLONES void counting_##type(const type * raw, uint32_t saturated,		\
					   const float *pedestal, const float *per_gain, size_t n, \
					   float *result)					\
	{										\
		for (size_t i = 0; i < n; i++) {					\
			const float x = rpu_scale(raw[i], pedestal[i], per_gain[i]);	\
											\
			result[i] = raw[i] < saturated ? x : NAN;			\
		}									\
	}										\
	static CLONES void counting_dark_##type(const type * raw, uint32_t saturated, float weight,\
						float *pedestal, size_t n)		\
	{										\
		for (size_t i = 0; i < n; i++) {					\
			const float p = rpu_mean_of(pedestal[i], raw[i], weight);	\
											\
			pedestal[i] = raw[i] < saturated ? p : pedestal[i];		\
		}									\
	}

COUNTING(uint8_t)
COUNTING(uint16_t)
COUNTING(uint32_t)

static CLONES void make_whole(size_t n, float *result)
{
	for (size_t i = 0; i < n; i++)
		result[i] = rpu_round(result[i]);
}

static void pretreat_run(const struct rpu_calibration *c, const void *raw, size_t at, size_t n,
			 float *result)
{
	const float *p = c->pedestal[0] + at, *g = c->per_gain[0] + at;

	if (c->jungfrau && codes(raw, n))
		convert(raw, c->pedestal, c->per_gain, at, n, result);
	else if (c->jungfrau)
		convert_highest(raw, p, g, n, result);
	else if (c->pixel == RASHPA_PIXEL_U8)
		counting_uint8_t(raw, c->saturated, p, g, n, result);
	else if (c->pixel == RASHPA_PIXEL_U16)
		counting_uint16_t(raw, c->saturated, p, g, n, result);
	else
		counting_uint32_t(raw, c->saturated, p, g, n, result);
	if (c->whole)
		make_whole(n, result);
}

static CLONES void jungfrau_dark(float *pedestal, const uint16_t *raw, size_t n, float weight)
{
	for (size_t i = 0; i < n; i++)
		pedestal[i] = rpu_dark_mean(pedestal[i], raw[i], weight);
}

static void dark_run(const struct rpu_calibration *c, const void *raw, size_t at, size_t n,
		     float *result)
{
	float *p = c->pedestal[0] + at;

	(void)result;
	if (c->jungfrau)
		jungfrau_dark(p, raw, n, c->dark_weight);
	else if (c->pixel == RASHPA_PIXEL_U8)
		counting_dark_uint8_t(raw, c->saturated, c->dark_weight, p, n);
	else if (c->pixel == RASHPA_PIXEL_U16)
		counting_dark_uint16_t(raw, c->saturated, c->dark_weight, p, n);
	else
		counting_dark_uint32_t(raw, c->saturated, c->dark_weight, p, n);
}

typedef void (*run_t)(const struct rpu_calibration *c, const void *raw, size_t at, size_t n,
		      float *result);

/* Pieces of whole lines; where lines have no gaps a piece is one run. */
static void in_pieces(run_t run, const struct rpu_calibration *c, const struct rpu_raw *raw,
		      float *result)
{
	const size_t line = (size_t)c->width * (1u << (c->pixel - RASHPA_PIXEL_U8));
	const uint32_t lines = c->width < PIECE ? PIECE / c->width : 1;

#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < c->height; y += lines) {
		const uint32_t end = least(y + lines, c->height);
		const uint8_t *from = (const uint8_t *)raw->data + y * raw->line_stride;
		size_t at = (size_t)y * c->width;

		if (raw->line_stride == line) {
			run(c, from, at, (size_t)(end - y) * c->width, result + at);
			continue;
		}
		for (uint32_t i = y; i < end; i++, from += raw->line_stride, at += c->width)
			run(c, from, at, c->width, result + at);
	}
}

static void pretreat(const struct rpu_calibration *c, const struct rpu_raw *raw, float *result)
{
	in_pieces(pretreat_run, c, raw, result);
}

static void dark(struct rpu_calibration *c, const struct rpu_raw *raw)
{
	in_pieces(dark_run, c, raw, c->pedestal[0]);
}

/* --- images of numbers --- */

static CLONES uint32_t count(const float *pixel, size_t n, float threshold)
{
	uint32_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += rpu_above(pixel[i], threshold);
	return found;
}

static size_t above(const float *pixel, size_t total, float threshold)
{
	size_t n = 0;

#pragma omp parallel for schedule(static)
	for (size_t at = 0; at < total; at += PIECE) {
		const size_t found = count(pixel + at, least(PIECE, total - at), threshold);

#pragma omp atomic
		n += found;
	}
	return n;
}

/* Pixels of a line that are kept, behind one another; where there is room for all that may be. */
static uint32_t keep(const float *line, uint32_t width, float threshold, uint32_t *column,
		     float *value)
{
	uint32_t n = 0;

	for (uint32_t x = 0; x < width; x += GROUP) {
		const uint32_t end = least(x + GROUP, width);

		if (!count(line + x, end - x, threshold))
			continue;
		for (uint32_t i = x; i < end; i++) {
			if (!rpu_above(line[i], threshold))
				continue;
			column[n] = i;
			value[n++] = line[i];
		}
	}
	return n;
}

/*
 * Each thread has lines behind one another: it counts theirs, the threads' sums tell where each one
 * begins, and it keeps its pixels there. What it has counted is in its cache, if the image is not
 * larger than all caches.
 */
static void compress(const float *pixel, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr)
{
	uint64_t total = 0;
	uint32_t *row = csr->row;

#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < height; y++)
		row[y + 1] = count(pixel + (size_t)y * width, width, threshold);
	row[0] = 0;
	for (uint32_t y = 0; y < height; y++) {
		total += row[y + 1];
		row[y + 1] = total;
	}
	csr->count = total;
	if (total > csr->capacity)
		return;
#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < height; y++) {
		if (row[y] != row[y + 1])
			keep(pixel + (size_t)y * width, width, threshold, csr->column + row[y],
			     csr->value + row[y]);
	}
}

static CLONES void add(double *mean, double *m2, uint32_t *n, const float *pixel, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const bool valid = pixel[i] == pixel[i];
		const double x = pixel[i], before = mean[i];
		const double after = before + (x - before) / (n[i] + 1u);

		n[i] += valid;
		mean[i] = valid ? after : before;
		m2[i] += valid ? (x - before) * (x - after) : 0;
	}
}

static void accumulate(struct rpu_statistics *s, const float *pixel, size_t total)
{
#pragma omp parallel for schedule(static)
	for (size_t at = 0; at < total; at += PIECE)
		add(s->mean + at, s->m2 + at, s->n + at, pixel + at, least(PIECE, total - at));
}

const struct rpu_engine rpu_cpu = {
	.name = "cpu", .pretreat = pretreat, .dark = dark, .above = above,
	.compress = compress, .accumulate = accumulate,
};
