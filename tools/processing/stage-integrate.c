// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Azimuthal integration: the mean of all pixels that are as far from the beam. Which pixels are
 * in a bin, and how much of them, is a matrix that is made once.
 */
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/pipeline.h"
#include "processing/poni.h"
#include "common/say.h"
#include "processing/sink.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BINS		(1u << 20)
#define PARTS		(UINT64_C(1) << 31)	/* elements of the matrix, at most */

static const char * const units[] = { "2th_deg", "q_nm^-1", "q_A^-1", "r_mm", NULL };

/* --- the configuration --- */

RPU_READS(u32, read_bins, 1, BINS)

static int read_unit(struct json_place *at, struct json_object *value, void *to)
{
	unsigned int index;

	if (json_read_word(at, value, units, &index))
		return -1;
	*(uint32_t *)to = index;
	return 0;
}

RPU_READS_WORD(bool, read_split, "no", "bbox")
RPU_READS_WORD(uint32_t, read_error, "none", "poisson", "azimuthal")

static int read_range(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	unsigned int n;

	if (json_read_array(at, value, json_read_real, p->integrate.range, sizeof(double), 2, &n))
		return -1;
	p->integrate.has_range = true;
	return n == 2 && p->integrate.range[0] < p->integrate.range[1] ? 0 :
	       json_wrong(at, "must be two numbers, the smaller one first");
}

static int read_polarization(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;

	p->integrate.polarised = true;
	return rpu_read_real(at, value, -1, 1, &p->integrate.polarization);
}

static int integrate_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "poni", true, rpu_read_input, p->integrate.poni },
		{ "bins", true, read_bins, &p->integrate.matrix.bins },
		{ "unit", false, read_unit, &p->integrate.unit },
		{ "range", false, read_range, p },
		{ "split", false, read_split, &p->integrate.bbox },
		{ "solid_angle", false, json_read_bool, &p->integrate.solid_angle },
		{ "polarization", false, read_polarization, p },
		{ "error", false, read_error, &p->integrate.matrix.error },
	};

	p->integrate.unit = RPU_Q_NM;
	p->integrate.bbox = true;
	p->integrate.solid_angle = true;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* --- where pixels are --- */

/* Half of what a pixel covers: from its middle to the farthest corner. */
static double half(const struct rpu_view *g, uint32_t y, uint32_t x, double middle)
{
	double most = 0;

	for (unsigned int corner = 0; corner < 4; corner++)
		most = fmax(most, fabs(rpu_radius(g, y + corner / 2, x + corner % 2) - middle));
	return most;
}

/*
 * Relative sensitivity of a pixel, compared with normal incidence and an unpolarised beam: the
 * product of the cube of the cosine of incidence and
 * (1 + cos^2 2theta - polarization cos 2chi (1 - cos^2 2theta)) / 2.
 */
static double norm_of(const struct rashpa_pipeline *p, const struct rpu_view *g, double y, double x)
{
	const double p1 = y * g->poni.pixel1 - g->poni.poni1;
	const double p2 = x * g->poni.pixel2 - g->poni.poni2;
	const double d = g->poni.distance, cosine = d / sqrt(d * d + p1 * p1 + p2 * p2);
	double norm = p->integrate.solid_angle ? cosine * cosine * cosine : 1;

	if (p->integrate.polarised) {
		const double t1 = rpu_t1(p1, p2, d, g->sin[0], g->cos[0], g->sin[1], g->cos[1],
					 g->sin[2], g->cos[2]);
		const double t2 = rpu_t2(p1, p2, d, g->sin[0], g->cos[0], g->sin[1], g->cos[1],
					 g->sin[2], g->cos[2]);
		const double t3 = rpu_t3(p1, p2, d, g->sin[0], g->cos[0], g->sin[1], g->cos[1]);
		const double tth = atan2(hypot(t1, t2), t3), chi = atan2(t1, t2);
		const double square = cos(tth) * cos(tth);

		norm *= 0.5 * (1 + square -
			       p->integrate.polarization * cos(2 * chi) * (1 - square));
	}
	return norm;
}

/* --- the matrix --- */

struct maker {
	const struct rpu_view *geometry;
	const uint32_t *mask;	/* plane; not 0: the pixel is never valid */
	double *middle, *half;	/* planes, in the unit; half: NULL: a pixel is in one bin */
	double first, width;	/* begin of the first bin, width of a bin */
};

/* The range is configured, or that of all pixels. A configured one must contain pixels. */
static int find_range(struct rashpa_pipeline *p, struct maker *k, char *why)
{
	const double *range = p->integrate.range;
	double low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < rpu_pixels(p); i++) {
		const double h = k->half ? k->half[i] : 0;

		if (k->mask[i])
			continue;
		low = fmin(low, k->middle[i] - h);
		high = fmax(high, k->middle[i] + h);
	}
	if (low > high)
		return because(why, -1, "pipeline: integrate: no pixel is ever valid");
	if (p->integrate.has_range && (range[0] > high || range[1] < low))
		return because(why, -1, "pipeline: integrate.range: no pixel is in it: pixels are from %g to %g %s",
			       low, high, units[p->integrate.unit]);
	if (p->integrate.has_range) {
		low = range[0];
		high = range[1];
	} else {
		low = fmax(low, 0);
	}
	/* as in pyFAI, the last pixel is inside the last bin */
	high *= 1 + FLT_EPSILON;
	k->first = low;
	k->width = high > low ? (high - low) / p->integrate.matrix.bins : 1;
	return isnormal(k->width) ? 0 :
	       because(why, -1, "pipeline: integrate.range: %g to %g is too wide or too narrow for %"
		       PRIu32 " bins", low, high, p->integrate.matrix.bins);
}

/* What part of a pixel is in a bin; of one that is in one bin alone, all. */
static double part_of(const struct maker *k, size_t i, uint32_t bin)
{
	const double low = (k->middle[i] - k->half[i] - k->first) / k->width;
	const double high = (k->middle[i] + k->half[i] - k->first) / k->width;
	const double begin = fmax(low, bin), end = fmin(high, bin + 1.);

	return high > low ? fmax(end - begin, 0) / (high - low) : 1;
}

/* The bins that a pixel is in: from the first one to before the second. */
static uint32_t bins_of(const struct maker *k, uint32_t bins, size_t i, uint32_t *end)
{
	const double h = k->half ? k->half[i] : 0;
	const double low = floor((k->middle[i] - h - k->first) / k->width);
	const double high = floor((k->middle[i] + h - k->first) / k->width);

	*end = 0;
	if (k->mask[i] || !(high >= 0) || !(low < bins))
		return 0;
	*end = high < bins - 1. ? high + 1 : bins;
	return low > 0 ? low : 0;
}

/* Counts first, so that all elements of a bin are together; then each pixel in their order. */
static int fill(struct rashpa_pipeline *p, const struct maker *k, char *why)
{
	struct rpu_matrix *m = &p->integrate.matrix;
	uint32_t *next = rpu_memory((size_t)m->bins + 1, sizeof(*next));
	uint64_t total = 0;
	uint32_t end;

	m->start = rpu_memory((size_t)m->bins + 1, sizeof(*m->start));
	if (!next || !m->start)
		goto no_memory;
	for (size_t i = 0; i < rpu_pixels(p); i++) {
		for (uint32_t b = bins_of(k, m->bins, i, &end); b < end; b++, total++)
			next[b]++;
	}
	if (!total) {
		free(next);
		return because(why, -1, "pipeline: integrate.range: no pixel is in one of the bins");
	}
	if (total >= PARTS) {
		free(next);
		return because(why, -1, "pipeline: integrate: %" PRIu32 " bins are too many for %zu pixels",
			       m->bins, rpu_pixels(p));
	}
	m->pixel = rpu_memory(total, sizeof(*m->pixel));
	m->part = k->half ? rpu_memory(total, sizeof(*m->part)) : NULL;
	if (!m->pixel || (k->half && !m->part))
		goto no_memory;
	for (uint32_t b = 0; b < m->bins; b++) {
		m->start[b + 1] = m->start[b] + next[b];
		next[b] = m->start[b];
	}
	for (size_t i = 0; i < rpu_pixels(p); i++) {
		for (uint32_t b = bins_of(k, m->bins, i, &end); b < end; b++) {
			const double part = k->half ? part_of(k, i, b) : 1;

			m->pixel[next[b]] = i;
			if (m->part)
				m->part[next[b]] = part;
			m->sum_norm[b] += (m->part ? m->part[next[b]] : 1) * (double)m->norm[i];
			next[b]++;
		}
	}
	free(next);
	return 0;

no_memory:
	free(next);
	return because(why, -1, "no memory for a matrix of %" PRIu64 " elements", total);
}

static void look_at_pixels(struct rashpa_pipeline *p, struct maker *k)
{
	struct rpu_matrix *m = &p->integrate.matrix;

#pragma omp parallel for schedule(static)
	for (uint32_t y = 0; y < p->height; y++) {
		for (uint32_t x = 0; x < p->width; x++) {
			const size_t i = (size_t)y * p->width + x;

			k->middle[i] = rpu_radius(k->geometry, y + 0.5, x + 0.5);
			if (k->half)
				k->half[i] = half(k->geometry, y, x, k->middle[i]);
			m->norm[i] = norm_of(p, k->geometry, y + 0.5, x + 0.5);
		}
	}
}

static int make_matrix(struct rashpa_pipeline *p, const struct rpu_view *g, char *why)
{
	const size_t n = rpu_pixels(p);
	struct rpu_matrix *m = &p->integrate.matrix;
	uint32_t *mask = rpu_memory(n, sizeof(*mask));
	struct maker k = {
		.geometry = g, .mask = mask, .middle = rpu_memory(n, sizeof(double)),
		.half = p->integrate.bbox ? rpu_memory(n, sizeof(double)) : NULL,
	};
	int result = -1;

	m->norm = rpu_memory(n, sizeof(*m->norm));
	m->sum_norm = rpu_memory(m->bins, sizeof(*m->sum_norm));
	p->integrate.axis = rpu_memory(m->bins, sizeof(*p->integrate.axis));
	if (!mask || !k.middle || (p->integrate.bbox && !k.half) || !m->norm || !m->sum_norm ||
	    !p->integrate.axis) {
		because(why, 0, "no memory to integrate images of %zu pixels", n);
	} else if (rpu_mask(p, mask) < 0) {
		because(why, 0, "no memory to integrate images");
	} else {
		look_at_pixels(p, &k);
		result = find_range(p, &k, why);
		for (uint32_t b = 0; b < m->bins; b++)
			p->integrate.axis[b] = k.first + (b + 0.5) * k.width;
		if (!result)
			result = fill(p, &k, why);
	}
	free(mask);
	free(k.middle);
	free(k.half);
	return result;
}

static int integrate_begin(struct rashpa_pipeline *p, char *why)
{
	struct rpu_view g = { .unit = p->integrate.unit };

	if (rpu_poni_read(p->integrate.poni, &g.poni, why) ||
	    rpu_poni_fits(p->integrate.poni, &g.poni, p->width, p->height, why))
		return -1;
	if ((g.unit == RPU_Q_NM || g.unit == RPU_Q_A) && !(g.poni.wavelength > 0))
		return because(why, -1, "%s: no wavelength: add \"Wavelength: 1e-10\", or use the unit 2th_deg or r_mm",
			       p->integrate.poni);
	rpu_view_begin(&g);
	if (make_matrix(p, &g, why))
		return -1;
	return !p->gpu ? 0 : rpu_gpu_begin_integrate(p->gpu, &p->integrate.matrix,
							 rpu_pixels(p), why);
}

/* --- images --- */

static int integrate_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	const struct rpu_matrix *m = &p->integrate.matrix;

	w->intensity = rpu_memory(m->bins, sizeof(*w->intensity));
	if (m->error != RPU_ERROR_NONE)
		w->sigma = rpu_memory(m->bins, sizeof(*w->sigma));
	return w->intensity && (w->sigma || m->error == RPU_ERROR_NONE) ? 0 : -1;
}

static int integrate_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_INTEGRATE];
	const struct rpu_matrix *m = &p->integrate.matrix;

	if (!p->gpu)
		p->engine->integrate(m, w->image, w->intensity, w->sigma);
	else if (rpu_gpu_integrate(p->gpu, m, w->intensity, w->sigma, p->why))
		return -1;
	stat->bytes_in += rpu_pixels(p) * sizeof(*w->image);
	stat->bytes_out += m->bins * (w->sigma ? 2 : 1) * sizeof(*w->intensity);
	w->result.bins = m->bins;
	w->result.intensity = w->intensity;
	w->result.sigma = w->sigma;
	return 1;
}

static void integrate_end(struct rashpa_pipeline *p)
{
	struct rpu_matrix *m = &p->integrate.matrix;

	free(m->start);
	free(m->pixel);
	free(m->part);
	free(m->norm);
	free(m->sum_norm);
	free(p->integrate.axis);
}

const double *rashpa_pipeline_axis(const struct rashpa_pipeline *p, uint32_t *bins,
				   const char **unit)
{
	if (!p->integrate.axis)
		return NULL;
	*bins = p->integrate.matrix.bins;
	*unit = units[p->integrate.unit];
	return p->integrate.axis;
}

const struct rpu_stage rpu_stage_integrate = {
	.name = "integrate", .on_gpu = true, .read = integrate_read, .begin = integrate_begin,
	.room = integrate_room, .run = integrate_run, .end = integrate_end,
};
