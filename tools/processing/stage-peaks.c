// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Peaks above what is around them: the steps of pyFAI's finder (its OpenCL kernels csr_sigma_clip4
 * and peakfinder), and those of peakfinder8 (Barty et al., Cheetah, Journal of Applied
 * Crystallography 47, 2014). Documentation/processing.rst says where we differ.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define rpu_real double
#include "processing/arithmetic.h"
#include "processing/cpu.h"
#include "processing/pipeline.h"
#include "processing/poni.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define USED		2	/* mark: the pixel belongs or belonged to a peak */
#define NOTHING_AROUND	0.01	/* deviation of an empty or constant background, as in Cheetah */

/* --- the configuration --- */

RPU_READS_WORD(uint32_t, read_steps, "pyfai", "peakfinder8")

static int read_positive(struct json_place *at, struct json_object *value, void *to)
{
	double number;

	if (rpu_read_real(at, value, 0, 1000000000, &number))
		return -1;
	*(float *)to = number;
	return 0;
}

RPU_READS(u32, read_cycles, 0, 20)

static int read_patch(struct json_place *at, struct json_object *value, void *to)
{
	if (rpu_read_u32(at, value, 3, 15, to))
		return -1;
	return *(uint32_t *)to % 2 ? 0 : json_wrong(at, "must be odd");
}

RPU_READS(u32, read_few, 1, 10000)

/* As many pixels are looked at for each peak as the square of it. */
RPU_READS(u32, read_radius, 1, 100)
RPU_READS(u32, read_many, 1, 1 << 20)
RPU_READS(real, read_place, -1000000, 1000000)

static int read_centre(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	unsigned int n;

	if (json_read_array(at, value, read_place, p->peaks.centre, sizeof(double), 2, &n))
		return -1;
	p->peaks.has_centre = true;
	return n == 2 ? 0 : json_wrong(at, "must be two numbers: x and y, pixels");
}

static int peaks_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	struct rpu_finder *f = &p->peaks.finder;
	const struct json_key keys[] = {
		{ "finder", true, read_steps, &f->steps },
		{ "poni", false, rpu_read_input, p->peaks.poni },
		{ "centre", false, read_centre, p },
		{ "rings", false, read_many, &f->rings },
		{ "cycles", false, read_cycles, &f->cycles },
		{ "clip", false, read_positive, &f->clip },
		{ "pick", false, read_positive, &f->pick },
		{ "noise", false, read_positive, &f->noise },
		{ "patch", false, read_patch, &f->patch },
		{ "connected", false, read_few, &f->connected },
		{ "snr", false, read_positive, &f->clip },
		{ "threshold", false, read_positive, &f->threshold },
		{ "min_pixels", false, read_few, &f->least },
		{ "max_pixels", false, read_few, &f->most },
		{ "radius", false, read_radius, &f->radius },
		{ "capacity", false, read_many, &p->peaks.capacity },
	};
	static const char * const others[2][6] = {
		[RPU_PYFAI] = { "snr", "threshold", "min_pixels", "max_pixels", "radius" },
		[RPU_PEAKFINDER8] = { "clip", "pick", "noise", "patch", "connected" },
	};

	*f = (struct rpu_finder) {
		.cycles = 5, .clip = 5, .pick = 3, .noise = 1, .patch = 5, .connected = 3,
		.least = 2, .most = 200, .radius = 3,
	};
	p->peaks.capacity = 2048;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (f->steps == RPU_PEAKFINDER8 && !json_object_object_get_ex(value, "cycles", NULL))
		f->cycles = 4;	/* of five means, of which the first is that of all pixels */
	for (unsigned int i = 0; others[f->steps][i]; i++) {
		if (json_object_object_get_ex(value, others[f->steps][i], NULL))
			return json_wrong(at, "%s is a key of the other peak finder", others[f->steps][i]);
	}
	if (!*p->peaks.poni == !p->peaks.has_centre)
		return json_wrong(at, "the beam's position is missing: use poni or centre");
	if (f->least > f->most)
		return json_wrong(at, "min_pixels is more than max_pixels");
	return 0;
}

/* --- rings --- */

static int find_rings(struct rashpa_pipeline *p, const struct rpu_view *view, char *why)
{
	struct rpu_finder *f = &p->peaks.finder;
	const size_t n = rpu_pixels(p);
	double high = 0;
	uint32_t *next = rpu_memory(f->rings, sizeof(*next));

	if (!next)
		return because(why, -1, "no memory to find peaks");
	for (size_t i = 0; i < n; i++) {
		f->place[i] = rpu_radius(view, i / p->width + 0.5, i % p->width + 0.5);
		high = f->place[i] > high ? f->place[i] : high;
	}
	for (size_t i = 0; i < n; i++) {
		/* the farthest pixel is inside the last ring */
		f->place[i] *= high > 0 ? f->rings / high * 0.999999 : 0;
		f->start[(uint32_t)f->place[i] + 1]++;
	}
	for (uint32_t b = 0; b < f->rings; b++) {
		f->start[b + 1] += f->start[b];
		next[b] = f->start[b];
	}
	for (size_t i = 0; i < n; i++)
		f->slot[i] = next[(uint32_t)f->place[i]]++;
	free(next);
	return 0;
}

static int peaks_begin(struct rashpa_pipeline *p, char *why)
{
	struct rpu_view view = {
		/* radii are pixels then */
		.poni = {
			.pixel1 = 1, .pixel2 = 1, .distance = 1, .poni1 = p->peaks.centre[1],
			.poni2 = p->peaks.centre[0],
		},
		.unit = RPU_R_MM,
	};
	struct rpu_finder *f = &p->peaks.finder;
	const size_t n = rpu_pixels(p);

	if (*p->peaks.poni) {
		view.unit = RPU_TTH_DEG;
		if (rpu_poni_read(p->peaks.poni, &view.poni, why) ||
		    rpu_poni_fits(p->peaks.poni, &view.poni, p->width, p->height, why))
			return -1;
	}
	rpu_view_begin(&view);
	f->width = p->width;
	f->height = p->height;
	if (!f->rings)
		f->rings = ((p->width > p->height ? p->width : p->height) + 1) / 2;
	f->start = rpu_memory((size_t)f->rings + 1, sizeof(*f->start));
	f->slot = rpu_memory(n, sizeof(*f->slot));
	f->place = rpu_memory(n, sizeof(*f->place));
	if (!f->start || !f->slot || !f->place)
		return because(why, -1, "no memory to find peaks");
	return find_rings(p, &view, why);
}

static int peaks_scratch(struct rashpa_pipeline *p, char *why)
{
	struct rpu_finder *f = &p->peaks.finder;
	const size_t n = rpu_pixels(p);

	f->mark = rpu_memory(n, sizeof(*f->mark));
	f->found = rpu_memory(p->height, sizeof(*f->found));
	f->list = rpu_memory(n, sizeof(*f->list));
	f->mean = rpu_memory(f->rings, sizeof(*f->mean));
	f->deviation = rpu_memory(f->rings, sizeof(*f->deviation));
	f->limit = rpu_memory(f->rings, sizeof(*f->limit));
	f->value = rpu_memory(n, sizeof(*f->value));
	return f->mark && f->found && f->list && f->mean && f->deviation && f->limit && f->value ?
	       0 : because(why, -1, "no memory to find peaks");
}

static int peaks_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->peak = rpu_memory(p->peaks.capacity, sizeof(*w->peak));
	return w->peak ? 0 : -1;
}

/* --- pyFAI's steps --- */

/*
 * Is it the farthest above its background of all of its patch, of those that are equal the first,
 * and are enough of the patch picked? Then all of the patch that is above its background is the
 * peak. At the edge of the image, where a patch is not complete, there are no peaks.
 */
static bool pick(const struct rpu_finder *f, const float *pixel, uint32_t x, uint32_t y,
		 struct rashpa_peak *peak)
{
	const uint32_t half = f->patch / 2;
	const size_t centre = (size_t)y * f->width + x;
	double sum = 0, at_x = 0, at_y = 0, variance = 0, highest;
	float background, deviation;
	uint32_t picked = 0, n = 0;

	if (x < half || y < half || x + half >= f->width || y + half >= f->height)
		return false;
	rpu_surroundings(f, f->place[centre], &background, &deviation);
	highest = (double)pixel[centre] - background;
	for (uint32_t py = y - half; py <= y + half; py++) {
		for (uint32_t px = x - half; px <= x + half; px++) {
			const size_t i = (size_t)py * f->width + px;
			double above;
			float mean;

			rpu_surroundings(f, f->place[i], &mean, &deviation);
			above = (double)pixel[i] - mean;
			if (!(above > 0))
				continue;
			if (above > highest || (above == highest && i < centre))
				return false;
			picked += f->mark[i];
			sum += above;
			at_x += above * px;
			at_y += above * py;
			variance += rpu_uncertain(deviation, f->noise);
			n++;
		}
	}
	if (picked < f->connected)
		return false;
	*peak = (struct rashpa_peak) {
		.x = at_x / sum, .y = at_y / sum, .sum = sum, .background = background,
		.snr = sum / sqrt(variance), .pixels = n,
	};
	return true;
}

/* --- peakfinder8's steps --- */

/* Of pixels that touch each other: the first one, and where they are in the list. */
struct patch {
	uint32_t first;
	size_t from, n;
};

#define PATCHES	256	/* that threads share */
#define WORTH	4096	/* of their squared radii: less is not worth to wake threads */

/* All pixels that stand out and touch each other, behind those that are in the list: how many. */
static size_t spread(const struct rpu_finder *f, uint32_t first, size_t from)
{
	size_t end = from;

	f->list[end++] = first;
	f->mark[first] = USED;
	for (size_t k = from; k < end; k++) {
		const uint32_t x = f->list[k] % f->width, y = f->list[k] / f->width;

		for (int near = 0; near < 9; near++) {
			const uint32_t px = x + near % 3 - 1, py = y + near / 3 - 1;
			const size_t i = (size_t)py * f->width + px;

			if (px >= f->width || py >= f->height || f->mark[i] != 1)
				continue;
			f->mark[i] = USED;
			f->list[end++] = i;
		}
	}
	return end - from;
}

/* Mean and deviation of what is around and does not stand out; and the largest of it. */
static void around(const struct rpu_finder *f, const float *pixel, long x, long y, double *mean,
		   double *deviation, double *largest)
{
	const long ring = 2 * f->radius;
	double sum = 0, squares = 0;
	float most = -INFINITY;
	uint32_t n = 0;

	for (long dy = -ring; dy < ring; dy++) {
		const long half = sqrt(ring * ring - dy * dy);
		/* exclusive end of this line of the disc */
		const long end = x + (half < ring ? half + 1 : half);
		const long left = x > half ? x - half : 0, right = end < f->width ? end : f->width;
		const size_t at = (size_t)(y + dy) * f->width + left;

		if (y + dy >= 0 && y + dy < f->height && right > left)
			n += rpu_cpu_around(pixel + at, f->mark + at, right - left, &sum, &squares,
					    &most);
	}
	*largest = most;
	if (!n)
		return;
	*mean = sum / n;
	if (squares / n > *mean * *mean)
		*deviation = sqrt(squares / n - *mean * *mean);
}

/* Sum and centre of a patch, above a background; NULL: above that of their rings. */
static double weigh(const struct rpu_finder *f, const float *pixel, const struct patch *patch,
		    const double *background, double *x, double *y)
{
	double sum = 0;

	*x = *y = 0;
	for (size_t k = patch->from; k < patch->from + patch->n; k++) {
		const size_t i = f->list[k];
		const double above = pixel[i] -
			(background ? *background : f->mean[(uint32_t)f->place[i]]);

		sum += above;
		*x += above * (i % f->width);
		*y += above * (i / f->width);
	}
	*x /= sum;
	*y /= sum;
	return sum;
}

/* Is it a peak? Marks stay as they are, so that threads do not see what others do. */
static bool is_peak(const struct rpu_finder *f, const float *pixel, const struct patch *patch,
		    struct rashpa_peak *peak)
{
	double mean = f->mean[(uint32_t)f->place[patch->first]], deviation = NOTHING_AROUND;
	double sum, x, y, largest, most = -INFINITY;

	if (!(weigh(f, pixel, patch, NULL, &x, &y) > 0))
		return false;
	around(f, pixel, lrint(x), lrint(y), &mean, &deviation, &largest);
	sum = weigh(f, pixel, patch, &mean, &x, &y);
	for (size_t k = patch->from; k < patch->from + patch->n; k++)
		most = fmax(most, pixel[f->list[k]]);
	*peak = (struct rashpa_peak) {
		.x = x, .y = y, .sum = sum, .background = mean, .snr = sum / deviation,
		.pixels = patch->n,
	};
	return sum > 0 && sum >= f->clip * deviation && most >= largest;
}

/* --- images --- */

/* A peak is found: it is kept if there is room. */
static void found(const struct rashpa_pipeline *p, struct rpu_work *w,
		  const struct rashpa_peak *peak)
{
	if (w->result.peaks_found < p->peaks.capacity)
		w->peak[w->result.peaks_found] = *peak;
	w->result.peaks_found++;
}

/* Threads look what is around patches; peaks have the order of their first pixels. */
static void look_around(const struct rashpa_pipeline *p, struct rpu_work *w,
			const struct patch *patch, unsigned int patches)
{
	const struct rpu_finder *f = &p->peaks.finder;
	struct rashpa_peak peak[PATCHES];
	bool good[PATCHES];

#pragma omp parallel for schedule(dynamic) if (patches * f->radius * f->radius > WORTH)
	for (unsigned int i = 0; i < patches; i++)
		good[i] = is_peak(f, w->image, &patch[i], &peak[i]);
	for (unsigned int i = 0; i < patches; i++) {
		if (good[i])
			found(p, w, &peak[i]);
	}
}

/* Can a peak begin here? Not at an edge, whose pixels belong to peaks that begin elsewhere. */
static bool begins(const struct rpu_finder *f, uint32_t x, uint32_t y)
{
	return x && y && x + 1 < f->width && y + 1 < f->height;
}

static int peaks_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_PEAKS];
	const struct rpu_finder *f = &p->peaks.finder;
	struct patch patch[PATCHES];
	unsigned int patches = 0;
	struct rashpa_peak peak;
	size_t listed = 0;

	p->engine->look(f, w->image);
	for (uint32_t y = 0; y < f->height; y++) {
		const uint8_t *line = f->mark + (size_t)y * f->width, *next = line;

		/* marks go while peaks are found, none comes */
		while (f->found[y] && (next = memchr(next, 1, line + f->width - next))) {
			const uint32_t x = next++ - line, first = y * f->width + x;
			size_t n;

			if (f->steps == RPU_PYFAI) {
				if (pick(f, w->image, x, y, &peak))
					found(p, w, &peak);
				continue;
			}
			if (!begins(f, x, y))
				continue;
			n = spread(f, first, listed);
			if (n < f->least || n > f->most)
				continue;
			patch[patches++] = (struct patch) { first, listed, n };
			listed += n;
			if (patches < PATCHES)
				continue;
			look_around(p, w, patch, patches);
			patches = listed = 0;
		}
	}
	look_around(p, w, patch, patches);
	stat->bytes_in += rpu_pixels(p) * sizeof(*w->image);
	w->result.peaks = w->result.peaks_found < p->peaks.capacity ? w->result.peaks_found :
			  p->peaks.capacity;
	p->stat.overflow += w->result.peaks_found > p->peaks.capacity;
	w->result.peak = w->peak;
	stat->bytes_out += w->result.peaks * sizeof(*w->peak);
	return 1;
}

static void peaks_end(struct rashpa_pipeline *p)
{
	struct rpu_finder *f = &p->peaks.finder;

	if (!p->of) {
		free(f->start);
		free(f->slot);
		free(f->place);
	}
	free(f->mean);
	free(f->deviation);
	free(f->limit);
	free(f->value);
	free(f->mark);
	free(f->found);
	free(f->list);
}

const struct rpu_stage rpu_stage_peaks = {
	.name = "peaks", .read = peaks_read, .begin = peaks_begin, .scratch = peaks_scratch,
	.room = peaks_room, .run = peaks_run, .end = peaks_end,
};
