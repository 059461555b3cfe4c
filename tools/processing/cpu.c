// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Pixels are independent, so threads take pieces of an image, and the compiler takes as many at a
 * time as a processor has lanes: which processor it is, is found out when the program starts.
 * A thread has the same pieces of each image, so that their calibration is near its processor.
 */
#include <omp.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "processing/arithmetic.h"
#include "processing/cpu.h"

#define GROUP	16u		/* pixels of which hardly one has another gain: one of 1000 has */
#define FEW	2u
#define UNKNOWN	UINT32_MAX
#define AHEAD	32u			/* groups: memory answers in about that time */
#define NEAR	(UINT64_C(1) << 20)	/* pixels whose planes a cache may have */

/* --- raw pixels --- */

/* Not vectors: the other gains' planes are read for these pixels only, since no cache has them. */
static __attribute__((noinline))
void convert_few(const uint16_t *raw, float * const *pedestal, float * const *per_gain, size_t at,
		 size_t n, float *result)
{
	for (size_t i = 0; i < n; i++) {
		const unsigned int k = rpu_stage(raw[i]);

		if (k)
			result[i] = !rpu_valid(raw[i]) ? NAN :
				    rpu_convert(raw[i], pedestal[k][at + i], per_gain[k][at + i]);
	}
}

/* @others: number of pixels with another gain than the highest */
static inline __attribute__((always_inline))
void convert_group(const uint16_t *restrict raw, float * const *pedestal, float * const *per_gain,
		   size_t at, size_t n, unsigned int others, float *restrict result)
{
	const float *p0 = pedestal[0] + at, *p1 = pedestal[1] + at, *p2 = pedestal[2] + at;
	const float *g0 = per_gain[0] + at, *g1 = per_gain[1] + at, *g2 = per_gain[2] + at;

	if (others == UNKNOWN) {
		others = 0;
		for (size_t i = 0; i < n; i++)
			others += raw[i] > RPU_VALUE_MASK;
	}
	if (others <= FEW) {
		for (size_t i = 0; i < n; i++)
			result[i] = rpu_scale(raw[i], p0[i], g0[i]);
		if (others)
			convert_few(raw, pedestal, per_gain, at, n, result);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		const unsigned int k = rpu_stage(raw[i]);
		const float p = k == 0 ? p0[i] : k == 1 ? p1[i] : p2[i];
		const float g = k == 0 ? g0[i] : k == 1 ? g1[i] : g2[i];
		const float x = rpu_convert(raw[i], p, g);

		result[i] = rpu_valid(raw[i]) ? x : NAN;
	}
}

/*
 * Few pixels have another gain than the highest, but there are some in each line: where all of a
 * group have the highest one, the planes of the others are not read.
 */
static CLONES void convert(const uint16_t *raw, float * const *pedestal, float * const *per_gain,
			   size_t from, size_t n, float *result)
{
	size_t i = 0;

	for (; i + GROUP <= n; i += GROUP)
		convert_group(raw + i, pedestal, per_gain, from + i, GROUP,
			      UNKNOWN, result + i);
	convert_group(raw + i, pedestal, per_gain, from + i, n - i, UNKNOWN, result + i);
}

/* What convert_few() will read of planes that no cache has: else it has to wait for memory. */
static __attribute__((noinline))
void fetch_few(const uint16_t *raw, float * const *pedestal, float * const *per_gain, size_t at)
{
	for (size_t i = 0; i < GROUP; i++) {
		const unsigned int k = rpu_stage(raw[i]);

		if (k) {
			__builtin_prefetch(pedestal[k] + at + i);
			__builtin_prefetch(per_gain[k] + at + i);
		}
	}
}

static inline __attribute__((always_inline))
unsigned int look_ahead(const uint16_t *raw, float * const *pedestal, float * const *per_gain,
			size_t at)
{
	unsigned int others = 0;

	for (size_t i = 0; i < GROUP; i++)
		others += raw[i] > RPU_VALUE_MASK;
	if (others && others <= FEW)
		fetch_few(raw, pedestal, per_gain, at);
	return others;
}

/* The same of planes that no cache has; where one has them it is slower. */
static CLONES void convert_far(const uint16_t *raw, float * const *pedestal,
			       float * const *per_gain, size_t from, size_t n, float *result)
{
	unsigned int others[AHEAD];
	size_t i = 0, seen = 0;

	for (; seen < AHEAD * GROUP && seen + GROUP <= n; seen += GROUP)
		others[seen / GROUP] = look_ahead(raw + seen, pedestal, per_gain, from + seen);
	for (; seen + GROUP <= n; i += GROUP, seen += GROUP) {
		unsigned int *now = &others[i / GROUP % AHEAD];

		convert_group(raw + i, pedestal, per_gain, from + i, GROUP, *now, result + i);
		*now = look_ahead(raw + seen, pedestal, per_gain, from + seen);
	}
	for (; i < seen; i += GROUP)
		convert_group(raw + i, pedestal, per_gain, from + i, GROUP,
			      others[i / GROUP % AHEAD], result + i);
	convert_group(raw + i, pedestal, per_gain, from + i, n - i, UNKNOWN, result + i);
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

	if (c->jungfrau && (uint64_t)c->width * c->height > NEAR)
		convert_far(raw, c->pedestal, c->per_gain, at, n, result);
	else if (c->jungfrau)
		convert(raw, c->pedestal, c->per_gain, at, n, result);
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

/*
 * Keep pixels of a line, packed; up to a group more may be written after them. A branch for each
 * pixel would be unpredictable: each is written, and counts only if it is kept.
 */
static CLONES uint32_t keep_each(const float *line, uint32_t from, uint32_t to, float threshold,
				 uint32_t *column, float *value)
{
	uint32_t n = 0;

	for (uint32_t x = from; x < to; x += GROUP) {
		const uint32_t end = least(x + GROUP, to);

		if (!count(line + x, end - x, threshold))
			continue;
		for (uint32_t i = x; i < end; i++) {
			column[n] = i;
			value[n] = line[i];
			n += rpu_above(line[i], threshold);
		}
	}
	return n;
}

#ifdef __x86_64__
/* The processor packs sixteen pixels at once. */
__attribute__((target("avx512f,popcnt")))
static uint32_t keep_packed(const float *line, uint32_t width, float threshold, uint32_t *column,
			    float *value)
{
	const __m512i sixteen = _mm512_set1_epi32(16);
	const __m512 limit = _mm512_set1_ps(threshold);
	__m512i at = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	uint32_t n = 0, x;

	for (x = 0; x + 16 <= width; x += 16, at = _mm512_add_epi32(at, sixteen)) {
		const __m512 pixel = _mm512_loadu_ps(line + x);
		const __mmask16 above = _mm512_cmp_ps_mask(pixel, limit, _CMP_GT_OQ);

		if (!above)
			continue;
		_mm512_storeu_si512(column + n, _mm512_maskz_compress_epi32(above, at));
		_mm512_storeu_ps(value + n, _mm512_maskz_compress_ps(above, pixel));
		n += _mm_popcnt_u32(above);
	}
	return n + keep_each(line, x, width, threshold, column + n, value + n);
}
#endif

static uint32_t keep(const float *line, uint32_t width, float threshold, uint32_t *column,
		     float *value)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
		return keep_packed(line, width, threshold, column, value);
#endif
	return keep_each(line, 0, width, threshold, column, value);
}

/*
 * Each thread takes consecutive lines, and keeps their pixels in its place of the bench. The sums
 * of all threads give the start of each thread's pixels in the result; then they are copied there.
 */
static void compress(const float *pixel, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr)
{
	struct rpu_bench *bench = csr->bench;
	uint64_t total = 0;

#pragma omp parallel num_threads(bench->places)
	{
		const uint32_t place = omp_get_thread_num(), places = omp_get_num_threads();
		const uint32_t from = (uint64_t)height * place / places;
		const uint32_t to = (uint64_t)height * (place + 1) / places;
		const size_t start = bench->room * place;
		uint32_t *column = bench->column + start, *row = csr->row;
		float *value = bench->value + start;
		uint64_t n = 0, base = 0;

		for (uint32_t y = from; y < to; y++, row[y] = n) {
			const float *line = pixel + (size_t)y * width;

			/* more than fits: they are counted */
			n += n > csr->capacity ? count(line, width, threshold) :
			     keep(line, width, threshold, column + n, value + n);
		}
		bench->sum[place] = n;
#pragma omp barrier
		for (uint32_t i = 0; i < place; i++)
			base += bench->sum[i];
		if (place == places - 1)
			total = base + n;
		if (base + n <= csr->capacity) {
			for (uint32_t y = from; y < to; y++)
				row[y + 1] += base;
			memcpy(csr->column + base, column, n * sizeof(*column));
			memcpy(csr->value + base, value, n * sizeof(*value));
		}
	}
	csr->row[0] = 0;
	csr->count = total;
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
	.correct = rpu_cpu_correct, .assemble = rpu_cpu_assemble,
	.bin = rpu_cpu_bin, .compress = compress,
	.look = rpu_cpu_look, .integrate = rpu_cpu_integrate, .accumulate = accumulate,
};
