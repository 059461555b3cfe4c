// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=5 run=build/tools/processing-selftest */
/*
 * Tests of processing: TAP. Frames of a real JUNGFRAU are those of $RASHPA_DATA/jungfrau; all
 * engines compute them and made-up ones, and the reference is right.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processing/arithmetic.h"
#include "processing/pipeline.h"
#include "processing/plane.h"
#include <rashpa-processing.h>
#include "common/say.h"
#include "tests/tap.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define FRAMES		10
#define WIDTH		1024u
#define HEIGHT		512u
#define PIXELS		((size_t)WIDTH * HEIGHT)
#define UNKNOWN		32678	/* pixels without a result in the expected frames */
#define CLOSE		0.001	/* photons */

static char folder[PATH_MAX], why[WHY_SIZE];
static const struct rpu_engine * const engines[] = { &rpu_reference, &rpu_cpu };

static void *must(void *memory)
{
	if (!memory) {
		puts("Bail out! no memory");
		exit(1);
	}
	return memory;
}

static float *floats(size_t n)
{
	return must(calloc(n, sizeof(float)));
}

/* Tests want the same numbers each time. */
static uint32_t next_random(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33;
}

static struct rashpa_pipeline *opened(const char *config, const char *engine,
				      const struct rashpa_geometry *g)
{
	struct rashpa_pipeline *p = NULL;

	if (rashpa_pipeline_open(config, engine, &p))
		return NULL;
	if (!rashpa_pipeline_begin(p, g))
		return p;
	rashpa_pipeline_close(p);
	return NULL;
}

/* --- ten frames --- */

static const struct rashpa_geometry module = {
	.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
};

static const char *data_folder(char *path, size_t size)
{
	const char *data = getenv("RASHPA_DATA");

	snprintf(path, size, "%s/jungfrau", data ? data : "../shared/data");
	return access(path, R_OK) ? NULL : path;
}

/* Frame i, raw and as it is expected. */
static bool read_frame(const char *path, unsigned int i, uint16_t *pixel, float *expected)
{
	const struct rpu_shape shape = { 1, HEIGHT, WIDTH };
	float *raw = floats(PIXELS);
	char name[2][PATH_MAX + 32];
	bool good;

	snprintf(name[0], sizeof(name[0]), "%s/raw%u.bin.zst", path, i);
	snprintf(name[1], sizeof(name[1]), "%s/photons%u.bin.zst", path, i);
	good = !rpu_planes_read((const char *[]) { name[0] }, 1, &shape, raw, why) &&
	       !rpu_planes_read((const char *[]) { name[1] }, 1, &shape, expected, why);
	for (size_t j = 0; j < PIXELS; j++)
		pixel[j] = raw[j];
	free(raw);
	return good;
}

static void of_frames(const char *path, const char *config, const char *engine, double unit)
{
	struct rashpa_pipeline *p = opened(config, engine, &module);
	float *expected = floats(PIXELS);
	uint16_t *pixel = must(calloc(PIXELS, sizeof(*pixel)));
	struct rashpa_result *r = p ? rashpa_result_new(p) : NULL;
	size_t invalid = 0, wrong = 0;
	double worst = 0;

	ok(r, "jungfrau-calibration-read: %s: the JUNGFRAU's calibration is read%s%s", engine, r ? "" : ": ", r ? "" : rashpa_reason());
	for (unsigned int i = 0; i < FRAMES && r; i++) {
		wrong += !read_frame(path, i, pixel, expected);
		r->role = RASHPA_IMAGE_SIGNAL;
		wrong += rashpa_pipeline_run(p, pixel, 2 * WIDTH, r) != 1;
		for (size_t j = 0; j < PIXELS && r->image; j++) {
			const bool unknown = expected[j] == UNKNOWN;

			invalid += unknown;
			wrong += unknown != isnan(r->image[j]);
			if (!unknown && !isnan(r->image[j]))
				worst = fmax(worst, fabs(r->image[j] / unit - expected[j]));
		}
	}
	ok(!wrong && invalid == 31 && worst < CLOSE,
	   "ten-frames-photons: %s: ten frames, in photons times %g: worst pixel %.2g off, %zu of 31 invalid, %zu wrong",
	   engine, unit, worst, invalid, wrong);
	rashpa_result_free(r);
	rashpa_pipeline_close(p);
	free(expected);
	free(pixel);
}

static void calibrated(char *config, size_t size, const char *path, const char *more)
{
	static const char calibration[] = "{\"pretreat\": {\"detector\": \"jungfrau\","
		"\"pedestal\": [\"%s/pedestal_g0.bin.zst\", \"%s/pedestal_g1.bin.zst\", \"%s/pedestal_g2.bin.zst\"],"
		"\"gain\": [\"%s/gain_g0.bin.zst\", \"%s/gain_g1.bin.zst\","
		"\"%s/gain_g2.bin.zst\"]%s}}";

	snprintf(config, size, calibration, path, path, path, path, path, path, more);
}

static void test_frames(const char *engine)
{
	char path[PATH_MAX], config[7 * PATH_MAX];

	if (!data_folder(path, sizeof(path))) {
		ok(true, "ten-frames-skip: ten frames # SKIP there is no $RASHPA_DATA/jungfrau");
		return;
	}
	calibrated(config, sizeof(config), path, "");
	of_frames(path, config, engine, 1);
	calibrated(config, sizeof(config), path, ",\"unit\":\"keV\",\"photon_energy_kev\":12.5");
	of_frames(path, config, engine, 12.5);
}

/* --- ten frames, for a GPU that takes them itself --- */

#define ROUNDS	3u

static const char * const drive_ways[] = {
	[RASHPA_DRIVE_LAUNCH] = "a launch", [RASHPA_DRIVE_AHEAD] = "launches ahead",
	[RASHPA_DRIVE_POLL] = "a kernel that stays",
};

static int drives(struct rashpa_pipeline *p, uint32_t way, const uint16_t *ring,
		  struct rashpa_drive **drive)
{
	const struct rashpa_drive_plan plan = {
		.way = way, .images = ROUNDS * FRAMES, .raw = ring, .step = 2 * PIXELS,
		.slots = FRAMES, .credits = ROUNDS * FRAMES, .ahead = 4, .patience_ns = 120000000000,
	};

	return rashpa_drive_open(&p, 1, &plan, drive);
}

/* A drive returns exactly the accepted images, with right pixels. */
static void of_drive(struct rashpa_pipeline *p, const char *engine, uint32_t way,
		     const uint16_t *ring, const float *expected, const bool *accepted)
{
	struct rashpa_drive_stat stat = {};
	struct rashpa_drive *drive = NULL;
	struct rashpa_driven r;
	unsigned int results = 0, right = 0, wrong = 0;
	double worst = 0;
	int got = drives(p, way, ring, &drive);

	for (unsigned int i = 0; i < FRAMES; i++)
		right += ROUNDS * accepted[i];
	if (!got)
		rashpa_drive_arrived(drive, ROUNDS * FRAMES);
	while (drive && (got = rashpa_drive_next(drive, &r, -1)) == 1) {
		const float *e = expected + r.frame % FRAMES * PIXELS;

		results++;
		wrong += !accepted[r.frame % FRAMES];
		for (size_t j = 0; j < PIXELS; j++) {
			wrong += (e[j] == UNKNOWN) != isnan(r.image[j]);
			if (e[j] != UNKNOWN && !isnan(r.image[j]))
				worst = fmax(worst, fabs(r.image[j] - e[j]));
		}
		rashpa_drive_release(drive, &r);
	}
	if (drive)
		rashpa_drive_get_stat(drive, &stat);
	ok(!got && right && results == right && !wrong && worst < CLOSE &&
	   stat.images == ROUNDS * FRAMES && stat.accepted == right && !stat.dropped,
	   "frames-vetoed-worst: %s: %s: %u of %u frames, %llu vetoed, worst pixel %.2g off, %u wrong%s%s", engine,
	   drive_ways[way], results, right, (unsigned long long)stat.vetoed, worst, wrong,
	   got ? ": " : "", got ? rashpa_reason() : "");
	ok(!drive || !rashpa_drive_close(drive), "ends: %s: and it ends", engine);
}

static int by_count(const void *a, const void *b)
{
	return *(const uint32_t *)a < *(const uint32_t *)b ? -1 :
	       *(const uint32_t *)a > *(const uint32_t *)b;
}

/* A veto for half of the frames: between those that have more pixels above it, and less. */
static uint32_t judge(const char *path, const char *config, uint16_t *ring, float *expected,
		      bool *accepted)
{
	struct rashpa_pipeline *p = opened(config, "reference", &module);
	struct rashpa_result *r = p ? rashpa_result_new(p) : NULL;
	uint32_t above[FRAMES], sorted[FRAMES];

	for (unsigned int i = 0; i < FRAMES && r; i++) {
		r->role = RASHPA_IMAGE_SIGNAL;
		if (!read_frame(path, i, ring + i * PIXELS, expected + i * PIXELS) ||
		    rashpa_pipeline_run(p, ring + i * PIXELS, 2 * WIDTH, r) < 0)
			return 0;
		above[i] = r->above;
	}
	rashpa_result_free(r);
	rashpa_pipeline_close(p);
	if (!r)
		return 0;
	memcpy(sorted, above, sizeof(sorted));
	qsort(sorted, FRAMES, sizeof(*sorted), by_count);
	for (unsigned int i = 0; i < FRAMES; i++)
		accepted[i] = above[i] >= sorted[FRAMES / 2];
	/* in the middle: a pixel at the threshold is above it for one engine only */
	return (sorted[FRAMES / 2] + sorted[FRAMES / 2 - 1] + 1) / 2;
}

static void test_drive(const char *engine)
{
	static const char veto[] = "},\"veto\": {\"threshold\": 1.5, \"pixels\": %u";
	const size_t page = sysconf(_SC_PAGESIZE);
	uint16_t *ring = must(aligned_alloc(page, FRAMES * 2 * PIXELS));
	float *expected = floats(FRAMES * PIXELS);
	char path[PATH_MAX], config[7 * PATH_MAX], more[64];
	struct rashpa_pipeline *p;
	bool accepted[FRAMES];
	uint32_t least;

	if (!data_folder(path, sizeof(path))) {
		ok(true, "ten-frames-driven: ten frames, driven # SKIP there is no $RASHPA_DATA/jungfrau");
		goto out;
	}
	snprintf(more, sizeof(more), veto, 1);
	calibrated(config, sizeof(config), path, more);
	least = judge(path, config, ring, expected, accepted);
	snprintf(more, sizeof(more), veto, least);
	calibrated(config, sizeof(config), path, more);
	p = opened(config, engine, &module);
	ok(p && least > 1, "frames-pixels-accepted: %s: frames with %u pixels are accepted%s%s", engine, least,
	   p ? "" : ": ", p ? "" : rashpa_reason());
	for (uint32_t way = 0; way < ARRAY_SIZE(drive_ways) && p; way++)
		of_drive(p, engine, way, ring, expected, accepted);
	rashpa_pipeline_close(p);
out:
	free(ring);
	free(expected);
}

/* --- arithmetic --- */

/* One of so many floats, of all sizes; of a float this sum is exact in double. */
static void test_round(void)
{
	uint32_t wrong = 0, worst = 0;

	for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 251) {
		const uint32_t word = bits;
		double right;
		float x;

		memcpy(&x, &word, sizeof(x));
		right = floor((double)x + 0.5);
		if (isnan(x) ? !isnan(rpu_round(x)) : rpu_round(x) != (float)right) {
			worst = word;
			wrong++;
		}
	}
	ok(!wrong && rpu_round(8388609) == 8388609 && rpu_round(-8388609) == -8388609 &&
	   !rpu_round(0.49999997f) && !rpu_round(-0.5f) && rpu_round(-0.50000006f) == -1 &&
	   rpu_round(INFINITY) == INFINITY && rpu_round(16777215) == 16777215,
	   "floats-all-sizes: floats of all sizes are rounded as doubles are: %u are not (%#x)", wrong, worst);
}

static void test_arithmetic(void)
{
	ok(rpu_valid(0) && rpu_valid(0x7fff) && rpu_valid(0xc001) && !rpu_valid(0xc000) &&
	   !rpu_valid(0x8000) && !rpu_valid(0xbfff), "raw-words-valid: which raw words are valid");
	ok(rpu_stage(0x3fff) == 0 && rpu_stage(0x4000) == 1 && rpu_stage(0xffff) == 2,
	   "codes-0-1-3: codes 0, 1, 3 are the stages 0, 1, 2");
	ok(rpu_convert(0x4000 | 1000, 5000, -0.01f) == -0.01f * -4000, "gain-negative-stage: gain is negative in stage 1");
	ok(rpu_dark_mean(100, 50, 1) == 50 && rpu_dark_mean(100, 50, 0.25f) == 87.5f &&
	   rpu_dark_mean(100, 0x4032, 1) == 100,
	   "dark-image-replaces: a dark image replaces, or moves the mean, and only at the highest gain");
	ok(rpu_dark_mean(NAN, 50, 1) == 50 && rpu_dark_mean(-INFINITY, 50, 1) == 50 &&
	   rpu_dark_mean(1e30f, 50, 1) == 50 && isnan(rpu_dark_mean(NAN, 50, 0.5f)),
	   "replaces-huge-no: it replaces also what is huge, or no number");
	ok(rpu_round(2.5f) == 3 && rpu_round(-2.5f) == -2 && rpu_round(-0.4f) == 0 &&
	   isnan(rpu_round(NAN)), "halves-rounded-upwards: halves are rounded upwards");
	ok(!rpu_above(1, 1) && !rpu_above(NAN, -INFINITY) && rpu_above(INFINITY, 1),
	   "above-not-equal: above is not equal, and what is no number is not above");
}

/* --- engines against the reference --- */

/* Equal but for the last bits; NaN is NaN. */
static bool same(const float *a, const float *b, size_t n, double relative)
{
	for (size_t i = 0; i < n; i++) {
		if (isnan(a[i]) != isnan(b[i]))
			return false;
		if (!isnan(a[i]) && fabs(a[i] - b[i]) > relative * fmax(1, fabs(b[i])))
			return false;
	}
	return true;
}

struct image {
	uint32_t width, height, pixel;
	size_t gap;			/* bytes after each line */
	struct rpu_calibration calibration;
	struct rpu_raw raw;
	float *planes;
	uint8_t *data;
};

static void make_image(struct image *m, bool jungfrau)
{
	const size_t n = (size_t)m->width * m->height;
	const size_t line = m->width * (1u << (m->pixel - RASHPA_PIXEL_U8)) + m->gap;

	m->planes = floats(6 * n);
	m->data = must(calloc(m->height, line));
	for (size_t i = 0; i < m->height * line; i++)
		m->data[i] = next_random();
	m->raw = (struct rpu_raw) { m->data, line };
	m->calibration = (struct rpu_calibration) {
		.width = m->width, .height = m->height, .pixel = m->pixel, .jungfrau = jungfrau,
		.saturated = 200, .dark_weight = 0.125,
	};
	for (unsigned int k = 0; k < RPU_GAINS; k++) {
		m->calibration.pedestal[k] = m->planes + k * n;
		m->calibration.per_gain[k] = m->planes + (3 + k) * n;
		for (size_t i = 0; i < n; i++) {
			m->calibration.pedestal[k][i] = next_random() % 16384;
			m->calibration.per_gain[k][i] = next_random() % 50 ?
				(k ? -1 : 1) / (1.f + next_random() % 1000) : NAN;
		}
	}
}

static void free_image(struct image *m)
{
	free(m->planes);
	free(m->data);
}

/* Made-up images of odd sizes: all patterns of gain occur, and pixels that are no pixels. */
static void against_reference(const struct rpu_engine *e)
{
	static const struct {
		uint32_t width, height, pixel;
		size_t gap;
		enum { ONE, THREE, FEW } gains;	/* FEW: three gains, mostly the highest one */
	} tried[] = {
		{ 1, 1, RASHPA_PIXEL_U16, 0, THREE }, { 7, 3, RASHPA_PIXEL_U16, 2, THREE },
		{ 1030, 67, RASHPA_PIXEL_U16, 0, THREE }, { 256, 256, RASHPA_PIXEL_U16, 64, THREE },
		{ 9000, 5, RASHPA_PIXEL_U16, 0, THREE }, { 333, 77, RASHPA_PIXEL_U8, 0, ONE },
		{ 333, 77, RASHPA_PIXEL_U16, 6, ONE }, { 333, 77, RASHPA_PIXEL_U32, 0, ONE },
		{ 1, 5000, RASHPA_PIXEL_U32, 4, ONE },
		{ 1030, 67, RASHPA_PIXEL_U16, 0, FEW },
		/* with planes that no cache has */
		{ 1031, 1025, RASHPA_PIXEL_U16, 0, THREE },
		{ 1031, 1025, RASHPA_PIXEL_U16, 0, FEW },
		{ 1024, 1025, RASHPA_PIXEL_U16, 2, FEW },
		{ 1100000, 1, RASHPA_PIXEL_U16, 0, FEW },
	};

	for (size_t c = 0; c < ARRAY_SIZE(tried); c++) {
		struct image m = {
			.width = tried[c].width, .height = tried[c].height,
			.pixel = tried[c].pixel, .gap = tried[c].gap,
		};
		const size_t n = (size_t)m.width * m.height;
		float *right = floats(n), *got = floats(n), *moved = floats(n);
		bool good = true;

		make_image(&m, tried[c].gains != ONE);
		for (size_t i = 0; i < m.height * m.raw.line_stride && tried[c].gains == FEW;
		     i += 2)
			m.data[i + 1] &= next_random() % 20 ? 0x3f : 0xff;
		for (int whole = 0; whole < 2; whole++) {
			m.calibration.whole = whole;
			rpu_reference.pretreat(&m.calibration, &m.raw, right);
			e->pretreat(&m.calibration, &m.raw, got);
			/* a half may be rounded either way */
			good = good && same(got, right, n, whole ? 1 : 0.00001);
		}
		memcpy(moved, m.calibration.pedestal[0], n * sizeof(*moved));
		rpu_reference.dark(&m.calibration, &m.raw);
		memcpy(right, m.calibration.pedestal[0], n * sizeof(*right));
		memcpy(m.calibration.pedestal[0], moved, n * sizeof(*moved));
		e->dark(&m.calibration, &m.raw);
		good = good && same(m.calibration.pedestal[0], right, n, 0.000001);
		ok(good, "reference-x-bytes: %s: as the reference: %u x %u, %u bytes a pixel, gaps of %zu, %s",
		   e->name, m.width, m.height, 1u << (m.pixel - RASHPA_PIXEL_U8), m.gap,
		   tried[c].gains == FEW ? "few in another gain" :
		   tried[c].gains == THREE ? "three gains" : "one gain");
		free_image(&m);
		free(right);
		free(got);
		free(moved);
	}
}

/* Blocks of whole numbers, whose sum is one that a float can have. */
static void test_bin(const struct rpu_engine *e)
{
	const struct rpu_binning b = { .width = 3, .height = 2, .x = 64, .y = 64 };
	const size_t line = b.width * b.x, n = line * b.height * b.y;
	float *pixel = floats(n), got[6];
	uint64_t right[6] = {};
	bool good = true;

	for (size_t i = 0; i < n; i++) {
		const uint32_t value = next_random() % 9075;

		pixel[i] = value;
		right[i / line / b.y * b.width + i % line / b.x] += value;
	}
	e->bin(&b, pixel, got);
	for (unsigned int i = 0; i < 6; i++)
		good = good && right[i] > 1 << 24 && got[i] == (float)right[i];
	ok(good, "blocks-64-x-64: %s: blocks of 64 x 64 are their sums: %.9g, and not %.9g", e->name, got[0],
	   right[0] * 1.);
	free(pixel);
}

/* --- sparse images --- */

/* Without a veto, all of an image is in what is kept, in order. */
static bool csr_is(const struct rpu_csr *csr, const float *pixel, uint32_t width, uint32_t height,
		   float threshold)
{
	uint32_t n = 0;

	for (uint32_t y = 0; y < height; y++) {
		if (csr->row[y] != n)
			return false;
		for (uint32_t x = 0; x < width; x++) {
			const float v = pixel[(size_t)y * width + x];

			if (!(v > threshold))
				continue;
			if (csr->column[n] != x || csr->value[n] != v)
				return false;
			n++;
		}
	}
	return csr->row[height] == n && csr->count == n;
}

static void test_compress(const struct rpu_engine *e)
{
	static const struct { uint32_t width, height, one_of; } cases[] = {
		{ 1, 1, 1 }, { 1030, 67, 100 }, { 63, 129, 2 }, { 4096, 3, 1 },
		{ 100, 100, 1000000 },
	};

	for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
		const uint32_t width = cases[c].width, height = cases[c].height;
		const size_t n = (size_t)width * height;
		float *pixel = floats(n);
		struct rpu_csr csr = {
			.row = must(calloc(height + 1, sizeof(uint32_t))), .capacity = n,
			.column = must(calloc(n, sizeof(uint32_t))), .value = floats(n),
			.bench = must(rpu_bench_new(width, n)),
		};
		size_t above = 0;

		for (size_t i = 0; i < n; i++) {
			pixel[i] = -1;
			if (!(next_random() % cases[c].one_of))
				pixel[i] = 1 + next_random() % 100;
			if (!(next_random() % 97))
				pixel[i] = NAN;
			above += pixel[i] > 2.5f;
		}
		e->compress(pixel, width, height, 2.5f, &csr);
		ok(csr_is(&csr, pixel, width, height, 2.5f) &&
		   e->above(pixel, n, 2.5f) == above,
		   "x-pixels-kept: %s: of %u x %u pixels %zu are kept, in order", e->name, width, height, above);
		if (above) {
			csr.capacity = above - 1;
			csr.column[above - 1] = csr.row[0] = 7;
			e->compress(pixel, width, height, 2.5f, &csr);
			ok(csr.count == above && csr.column[above - 1] == 7,
			   "one-fits-counted: %s: one more than fits is counted, and written nowhere", e->name);
		}
		free(pixel);
		free(csr.row);
		free(csr.column);
		free(csr.value);
		rpu_bench_free(csr.bench);
	}
}

/* --- whole images --- */

static void test_correct(const struct rpu_engine *e)
{
	static const struct { uint32_t width, height, chip_width, chip_height; } tried[] = {
		{ 1024, 512, 256, 256 }, { 103, 67, 50, 67 }, { 1, 1, 1, 1 }, { 9, 700, 65536, 3 },
	};

	for (size_t t = 0; t < ARRAY_SIZE(tried); t++) {
		const size_t n = (size_t)tried[t].width * tried[t].height;
		float *right = floats(n), *got = floats(n), *blank = floats(n);
		struct rpu_correction c = {
			.width = tried[t].width, .height = tried[t].height,
			.chip_width = tried[t].chip_width, .chip_height = tried[t].chip_height,
			.quiet = 0.5f, .blank = blank, .scale = true,
			.outlier = true, .outlier_above = 20, .outlier_ratio = 4,
			.mark = must(calloc(n, 1)),
			.partial = must(calloc(2 * tried[t].height, sizeof(double))),
		};
		for (size_t i = 0; i < n; i++) {
			blank[i] = next_random() % 61 ? (next_random() % 1000) / 5000.f : NAN;
			right[i] = (next_random() % 1000) / 1500.f - 0.2f;
			if (!(next_random() % 59))
				right[i] = NAN;
			if (!(next_random() % 31))
				right[i] = 1 + next_random() % 100;
		}
		memcpy(got, right, n * sizeof(*got));
		rpu_reference.correct(&c, right);
		e->correct(&c, got);
		ok(same(got, right, n, 0.00001), "x-pixels-corrected: %s: %u x %u pixels are corrected as the reference does",
		   e->name, c.width, c.height);
		free(right);
		free(got);
		free(blank);
		free(c.mark);
		free(c.partial);
	}
}

/* Corrections and outliers, calculated by hand. */
static void test_corrections(const char *engine)
{
	static const struct rashpa_geometry g = {
		.width = 4, .height = 3, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	static const uint16_t offset[3][4] = {
		{ 10, 10, 10, 20 }, { 10, 90, 10, 20 }, { 10, 10, 10, 20 },
	};
	static const uint16_t hot[3][4] = {
		{ 1, 1, 1, 90 }, { 1, 50, 1, 80 }, { 1, 1, 1, 1 },
	};
	static const struct {
		const char *config, *name;
		const uint16_t (*image)[4];
		float right[3][4];
	} tried[] = {
		{ "{\"correct\": {\"common_mode\": {\"chip_width\": 3, \"chip_height\": 3, \"below\": 30}}}",
		  "an offset of each chip is taken away", offset,
		  { { 0, 0, 0, 0 }, { 0, 80, 0, 0 }, { 0, 0, 0, 0 } } },
		{ "{\"correct\": {\"outliers\": {\"above\": 20, \"ratio\": 10}}}",
		  "one hot pixel is an outlier, two are none", hot,
		  { { 1, 1, 1, 90 }, { 1, NAN, 1, 80 }, { 1, 1, 1, 1 } } },
	};

	for (size_t t = 0; t < ARRAY_SIZE(tried); t++) {
		struct rashpa_pipeline *p = opened(tried[t].config, engine, &g);
		struct rashpa_result *r = p ? rashpa_result_new(p) : NULL;

		ok(r && rashpa_pipeline_run(p, tried[t].image, 8, r) == 1 &&
		   same(r->image, tried[t].right[0], 12, 0), "corrections: %s: %s", engine, tried[t].name);
		rashpa_result_free(r);
		rashpa_pipeline_close(p);
	}
}

static void test_assemble(const char *engine)
{
	static const struct rashpa_geometry g = {
		.width = 4, .height = 2, .pixel = RASHPA_PIXEL_U8, .bunch = 1,
	};
	static const uint8_t image[2][4] = { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } };
	static const struct {
		const char *config;
		uint32_t width, height;
		float right[16];
	} tried[] = {
		{ "{}", 4, 2, { 1, 2, 3, 4, 5, 6, 7, 8 } },
		{ "{\"flip\": \"x\"}", 4, 2, { 4, 3, 2, 1, 8, 7, 6, 5 } },
		{ "{\"flip\": \"y\"}", 4, 2, { 5, 6, 7, 8, 1, 2, 3, 4 } },
		{ "{\"rotate\": 90}", 2, 4, { 5, 1, 6, 2, 7, 3, 8, 4 } },
		{ "{\"rotate\": 180}", 4, 2, { 8, 7, 6, 5, 4, 3, 2, 1 } },
		{ "{\"rotate\": 270}", 2, 4, { 4, 8, 3, 7, 2, 6, 1, 5 } },
		{ "{\"flip\": \"x\", \"rotate\": 90}", 2, 4, { 8, 4, 7, 3, 6, 2, 5, 1 } },
		{ "{\"bin_x\": 2, \"bin_y\": 2}", 2, 1, { 14, 22 } },
		{ "{\"wide_every_x\": 2}", 6, 2,
		  { 1, 1, 1, 1.5f, 1.5f, 4, 5, 3, 3, 3.5f, 3.5f, 8 } },
		{ "{\"modules\": [{\"x\": 0, \"y\": 0, \"width\": 2, \"height\": 2, \"to_x\": 3, \"to_y\": 0,"
		  "\"rotate\": 180}, {\"x\": 2, \"y\": 0, \"width\": 2, \"height\": 2, \"to_x\": 0, \"to_y\": 0}]}",
		  5, 2, { 3, 4, NAN, 6, 5, 7, 8, NAN, 2, 1 } },
	};

	for (size_t t = 0; t < ARRAY_SIZE(tried); t++) {
		char config[512];
		struct rashpa_pipeline *p;
		struct rashpa_result *r;

		snprintf(config, sizeof(config), "{\"assemble\": %s}", tried[t].config);
		p = opened(config, engine, &g);
		r = p ? rashpa_result_new(p) : NULL;
		ok(r && rashpa_pipeline_run(p, image, 4, r) == 1 && r->width == tried[t].width &&
		   r->height == tried[t].height &&
		   same(r->image, tried[t].right, tried[t].width * tried[t].height, 0),
		   "assemble: %s: assemble %s", engine, tried[t].config);
		rashpa_result_free(r);
		rashpa_pipeline_close(p);
	}
}

static void test_statistics(const struct rpu_engine *e)
{
	enum { N = 1000, IMAGES = 50 };
	struct rpu_statistics s = {
		must(calloc(N, sizeof(double))), must(calloc(N, sizeof(double))),
		must(calloc(N, sizeof(uint32_t))),
	};
	double (*all)[IMAGES] = must(calloc(N, sizeof(*all))), worst = 0;
	bool ok_counts = true;
	float pixel[N];

	for (int k = 0; k < IMAGES; k++) {
		for (int i = 0; i < N; i++) {
			pixel[i] = next_random() % 10 ? 1e4f + next_random() % 100 : NAN;
			all[i][k] = pixel[i];
		}
		e->accumulate(&s, pixel, N);
	}
	for (int i = 0; i < N; i++) {
		double sum = 0, square = 0;
		uint32_t n = 0;

		for (int k = 0; k < IMAGES; k++) {
			if (!isnan(all[i][k])) {
				n++;
				sum += all[i][k];
			}
		}
		for (int k = 0; k < IMAGES; k++) {
			if (!isnan(all[i][k]))
				square += (all[i][k] - sum / n) * (all[i][k] - sum / n);
		}
		ok_counts = ok_counts && n == s.n[i];
		worst = fmax(worst, fabs(s.mean[i] - sum / n) + fabs(s.m2[i] - square));
	}
	ok(ok_counts && worst < 0.000001, "mean-deviation-two: %s: mean and deviation are those of two passes, within %.1g",
	   e->name, worst);
	free(s.mean);
	free(s.m2);
	free(s.n);
	free(all);
}

/* --- pipelines --- */

static void refused(const char *config, const struct rashpa_geometry *g, const char *because)
{
	struct rashpa_pipeline *p = NULL;

	if (!rashpa_pipeline_open(config, NULL, &p) && !rashpa_pipeline_begin(p, g))
		rashpa_fail(0, "nothing is wrong");
	ok(strstr(rashpa_reason(), because), "refused: %s", rashpa_reason());
	rashpa_pipeline_close(p);
}

static void test_configurations(void)
{
	static const struct rashpa_geometry g = {
		.width = 16, .height = 8, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};

	refused("/nonexistent.json", &g, "No such file");
	refused("{", &g, "pipeline:1: not JSON");
	refused("{\"vetto\": {}}", &g, "vetto: unknown key");
	refused("{\"veto\": {}}", &g, "veto: use threshold and pixels");
	refused("{\"veto\": {\"peaks\": 1}}", &g, "there is no stage peaks");
	refused("{\"veto\": {\"pixels\": 1}}", &g, "belong together");
	refused("{\"veto\": {\"threshold\": \"x\", \"pixels\": 1}}", &g, "veto.threshold: must be a number");
	refused("{\"pretreat\": {\"detector\": \"pilatus\"}}", &g, "not one of counting, jungfrau");
	refused("{\"pretreat\": {\"detector\": \"jungfrau\"}}", &g, "needs pedestal and gain");
	refused("{\"pretreat\": {\"unit\": \"keV\"}}", &g, "photon_energy_kev is missing");
	refused("{\"pretreat\": {\"gain\": 0}}", &g, "a gain of 0");
	refused("{\"pretreat\": {\"pedestal\": \"/nonexistent\"}}", &g, "/nonexistent: No such file");
	refused("{\"pretreat\": {\"mask\": \"/dev/zero\"}}", &g, "/dev/zero: not a file");
	refused("{\"compress\": {\"threshold\": 1, \"capacity\": 0}}", &g, "compress.capacity: 0 is not 1 to");
	refused("{\"assemble\": {\"rotate\": 45}}", &g, "rotate: is not 0, 90, 180 or 270");
	refused("{\"assemble\": {\"bin_x\": 3}}", &g, "16 x 8 pixels are not whole blocks of 3 x 1");
	refused("{\"assemble\": {\"modules\": [{\"x\": 0, \"y\": 0, \"width\": 17, \"height\": 8, \"to_x\": 0,"
		"\"to_y\": 0}]}}", &g, "modules[0]: is not in an image of 16 x 8");
	refused("{\"assemble\": {\"modules\": [{\"x\": 0, \"y\": 0, \"width\": 9, \"height\": 8, \"to_x\": 0,"
		"\"to_y\": 0}, {\"x\": 8, \"y\": 0, \"width\": 8, \"height\": 8, \"to_x\": 8, \"to_y\": 0}]}}",
		&g, "modules[1]: another one is where its pixel");
	refused("{\"correct\": {\"outliers\": {\"above\": -1, \"ratio\": 2}}}", &g, "above: must be more than 0");
	refused("{\"correct\": {\"background\": {\"file\": \"/nonexistent\"}}}", &g, "No such file");
	refused("{}", &(struct rashpa_geometry) { .height = 8, .pixel = RASHPA_PIXEL_U16 }, "images of 0 x 8");
}

/* Dark images update the pedestal, a veto counts pixels, compression keeps pixels above. */
static void test_pipeline(const char *engine)
{
	static const struct rashpa_geometry g = {
		.width = 16, .height = 8, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	struct rashpa_pipeline *p = opened("{\"pretreat\": {\"dark_images\": 1, \"gain\": 10},"
		"\"veto\": {\"threshold\": 4, \"pixels\": 2},"
		"\"compress\": {\"threshold\": 4, \"capacity\": 3},"
		"\"accumulate\": {\"images\": 2}}", engine, &g);
	struct rashpa_result *r = p ? rashpa_result_new(p) : NULL;
	struct rashpa_pipeline_stat stat;
	uint16_t pixel[8][16];

	if (!r) {
		ok(false, "pipeline-opened: %s: a pipeline is opened: %s", engine, rashpa_reason());
		return;
	}
	memset(pixel, 0, sizeof(pixel));
	for (int i = 0; i < 8 * 16; i++)
		pixel[i / 16][i % 16] = 100;
	r->role = RASHPA_IMAGE_DARK;
	ok(!rashpa_pipeline_run(p, pixel, sizeof(pixel[0]), r) && !r->image,
	   "dark-image-not: %s: a dark image is not kept", engine);
	r->role = RASHPA_IMAGE_SIGNAL;
	pixel[3][5] = 150;
	ok(!rashpa_pipeline_run(p, pixel, sizeof(pixel[0]), r) && r->above == 1 && !r->kept &&
	   (r->image ? r->image[3 * 16 + 5] == 5 :
	    strcmp(engine, "cpu") && strcmp(engine, "reference")),
	   "pixel-5-above: %s: a pixel is 5 above a dark image: too few", engine);
	pixel[7][15] = 200;
	ok(rashpa_pipeline_run(p, pixel, sizeof(pixel[0]), r) == 1 && r->kept && r->elements == 2 &&
	   r->row[4] == 1 && r->row[8] == 2 && r->column[1] == 15 && r->value[1] == 10 &&
	   !r->images,
	   "two-kept: %s: two are kept", engine);
	pixel[0][0] = pixel[0][1] = 1000;
	ok(rashpa_pipeline_run(p, pixel, sizeof(pixel[0]), r) == 1 && r->elements == 4 && !r->row &&
	   r->images == 2 && r->mean[0] == 45 && r->deviation[7 * 16 + 15] == 0,
	   "four-not-fit: %s: four do not fit into three, and the mean of two images is there", engine);
	rashpa_pipeline_get_stat(p, &stat);
	ok(stat.images == 3 && stat.dark == 1 && stat.vetoed == 1 && stat.overflow == 1 &&
	   stat.stage[0].images == 4 && stat.stage[0].bytes_in == 4 * sizeof(pixel),
	   "all-counted: %s: all is counted", engine);
	rashpa_result_free(r);
	rashpa_pipeline_close(p);
}

/* A program that was built with shorter structs than the library's, and one with longer ones. */
static void test_growth(const char *engine)
{
	const struct rashpa_geometry g = {
		.width = 16, .height = 8, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
		.ring.slots = UINT32_MAX,
	};
	struct { struct rashpa_pipeline_stat stat; uint64_t more[8]; } new, old;
	const size_t shorter = offsetof(struct rashpa_pipeline_stat, sink);
	struct rashpa_pipeline *p = NULL;
	struct rashpa_result *r;
	uint16_t pixel[8][16] = {};
	bool behind = true;

	/* the ring came later: an older program has none */
	if (rashpa_pipeline_open("{}", engine, &p) ||
	    rashpa_pipeline_begin_sized(p, &g, offsetof(struct rashpa_geometry, ring))) {
		ok(false, "grown-begun: %s: a pipeline begins with an older geometry: %s", engine, rashpa_reason());
		return;
	}
	memset(&new, 0xa5, sizeof(new));
	memset(&old, 0xa5, sizeof(old));
	rashpa_pipeline_get_stat_sized(p, &new.stat, sizeof(new));
	rashpa_pipeline_get_stat_sized(p, &old.stat, shorter);
	for (size_t i = shorter; i < sizeof(old); i++)
		behind &= ((unsigned char *)&old)[i] == 0xa5;
	ok(behind && old.stat.stages == new.stat.stages && new.stat.sink,
	   "grown-status: %s: an older program gets the members that it has", engine);
	ok(!new.more[0] && !new.more[7], "grown-status-new: %s: a newer one gets 0 in its own", engine);
	/* the sanitizer sees what is not there */
	r = rashpa_result_new_sized(p, sizeof(*r) + 64);
	if (r) {
		behind = !((char *)(r + 1))[0] && !((char *)(r + 1))[63];
		memset(r + 1, 0xa5, 64);
	}
	ok(r && behind && rashpa_pipeline_run(p, pixel, 32, r) == 1 && r->width == 16 &&
	   ((unsigned char *)(r + 1))[63] == 0xa5,
	   "grown-result: %s: a result has room for the members of a newer program", engine);
	rashpa_result_free(r);
	rashpa_pipeline_close(p);
}

/* Calls that come too early, or with a foreign result, are refused. */
static void test_order(const char *engine)
{
	static const struct rashpa_geometry g = {
		.width = 16, .height = 8, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	}, larger = {
		.width = 1600, .height = 800, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	static const char config[] = "{\"veto\": {\"threshold\": 4, \"pixels\": 1}, \"sinks\": {\"raw\":"
		"{\"file\": \"/dev/null\"}}}";
	struct rashpa_pipeline *p = opened(config, engine, &g), *q = opened("{}", engine, &larger);
	struct rashpa_result *r = p ? rashpa_result_new(p) : NULL;
	struct rashpa_result *never = p ? rashpa_result_new(p) : NULL;
	uint16_t pixel[8][16] = {};
	struct rashpa_pipeline *early = NULL, *broken = NULL;

	ok(r && never && q && !rashpa_pipeline_open(config, engine, &early) &&
	   !rashpa_pipeline_open("{\"pretreat\": {\"mask\": \"/nonexistent\"}}", engine, &broken),
	   "pipelines-opened: %s: pipelines are opened", engine);
	if (!r || !never || !q || !early || !broken)
		return;
	ok(rashpa_pipeline_run(early, pixel, 32, r) == -EINVAL &&
	   strstr(rashpa_reason(), "has not begun") &&
	   rashpa_pipeline_run(early, pixel, 32, r) == -EINVAL,
	   "pipeline-not-begun: %s: a pipeline that has not begun runs nothing", engine);
	ok(rashpa_pipeline_begin(broken, &g) == -EINVAL &&
	   rashpa_pipeline_run(broken, pixel, 32, r) == -EINVAL &&
	   rashpa_pipeline_run(broken, pixel, 32, r) == -EINVAL &&
	   !strcmp(rashpa_reason(),
		   "the pipeline could not begin: /nonexistent: No such file or directory"),
	   "one-not: %s: nor does one that could not: %s", engine, rashpa_reason());
	ok(rashpa_pipeline_run(q, pixel, 3200, r) == -EINVAL &&
	   strstr(rashpa_reason(), "another pipeline's"),
	   "result-size-pipeline: %s: a result has the size of its pipeline's images", engine);
	ok(!rashpa_pipeline_run(p, pixel, 32, r) && rashpa_pipeline_put(p, r) == -EINVAL &&
	   rashpa_pipeline_put(p, never) == -EINVAL && strstr(rashpa_reason(), "has kept"),
	   "vetoed-never-run: %s: a vetoed or unused result cannot be put", engine);
	pixel[3][3] = 5;
	ok(rashpa_pipeline_run(p, pixel, 32, r) == 1 && !rashpa_pipeline_put(p, r) &&
	   !rashpa_pipeline_finish(p), "kept: %s: a kept result can be put", engine);
	rashpa_result_free(r);
	rashpa_result_free(never);
	rashpa_pipeline_close(p);
	rashpa_pipeline_close(q);
	rashpa_pipeline_close(early);
	rashpa_pipeline_close(broken);
}

/* --- files --- */

static const char *file_with(const char *name, const void *data, size_t size)
{
	static char path[PATH_MAX + 32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = must(fopen(path, "w"));
	if (fwrite(data, 1, size, file) != size || fclose(file))
		ok(false, "written: %s is written", path);
	return path;
}

/* --- GPUs --- */

/* Numbers as a file of planes. */
static void path_with(char *path, const char *name, const float *numbers, size_t n)
{
	snprintf(path, PATH_MAX, "%s", file_with(name, numbers, n * sizeof(*numbers)));
}

static bool same_result(const struct rashpa_result *a, const struct rashpa_result *b, bool whole)
{
	const size_t n = (size_t)b->width * b->height;

	/* a half may be rounded either way, and a pixel that is one off may be above */
	if (!same(a->image, b->image, n, whole ? 1 : 0.00001) || a->kept != b->kept)
		return false;
	if (whole)
		return true;
	return a->above == b->above && a->elements == b->elements && !a->row == !b->row &&
	       (!b->row || (!memcmp(a->row, b->row, (b->height + 1) * sizeof(*b->row)) &&
			    !memcmp(a->column, b->column, b->elements * sizeof(*b->column)) &&
			    same(a->value, b->value, b->elements, 0.00001)));
}

/* Pixels that a float can have, or what is left of a difference decides. */
static void shuffle(struct image *m)
{
	for (size_t i = 0; i < m->height * m->raw.line_stride; i++)
		m->data[i] = m->pixel == RASHPA_PIXEL_U32 && i % 4 == 3 ? 0 : next_random();
}

/* Images of odd sizes by a whole pipeline, and by that of the reference, also after dark ones. */
static void gpu_against_reference(const char *engine)
{
	static const struct {
		uint32_t width, height, pixel;
		size_t gap;
		bool jungfrau, whole;
		uint32_t capacity;
	} tried[] = {
		{ 1, 1, RASHPA_PIXEL_U16, 0, true, false, 1 },
		{ 7, 3, RASHPA_PIXEL_U16, 2, true, false, 21 },
		{ 1030, 67, RASHPA_PIXEL_U16, 0, true, false, 70000 },
		{ 1030, 67, RASHPA_PIXEL_U16, 0, true, false, 5 },
		{ 256, 256, RASHPA_PIXEL_U16, 64, true, true, 70000 },
		{ 9000, 5, RASHPA_PIXEL_U16, 0, true, false, 45000 },
		{ 333, 77, RASHPA_PIXEL_U8, 1, false, false, 30000 },
		{ 333, 77, RASHPA_PIXEL_U16, 6, false, true, 30000 },
		{ 333, 77, RASHPA_PIXEL_U32, 0, false, false, 30000 },
		{ 1, 5000, RASHPA_PIXEL_U32, 4, false, false, 5000 },
		{ 1031, 1025, RASHPA_PIXEL_U16, 0, true, false, 1060000 },
		/* more lines than groups are side by side */
		{ 2, 70001, RASHPA_PIXEL_U8, 0, false, false, 140002 },
	};
	static const char config[] = "{\"pretreat\": {%s\"pedestal\": \"%s\", \"gain\": \"%s\","
		"\"dark_images\": 8, \"round\": %s}, \"veto\": {\"threshold\": 2.5, \"pixels\": 1},"
		"\"compress\": {\"threshold\": 3.25, \"capacity\": %u}}";

	for (size_t c = 0; c < ARRAY_SIZE(tried); c++) {
		const bool jungfrau = tried[c].jungfrau;
		/* CUDA has no lines of groups; its stand-in is slow */
		const bool short_ones = !strncmp(engine, "cuda", 4) && tried[c].height > 5000;
		struct image m = {
			.width = tried[c].width, .height = short_ones ? 5000 : tried[c].height,
			.pixel = tried[c].pixel, .gap = tried[c].gap,
		};
		const struct rashpa_geometry g = {
			.width = m.width, .height = m.height, .pixel = m.pixel, .bunch = 1,
		};
		const size_t n = (size_t)m.width * m.height, gains = jungfrau ? 3 : 1;
		char text[2 * PATH_MAX + 400], pedestal[PATH_MAX], gain[PATH_MAX];
		struct rashpa_result *r[2] = {};
		struct rashpa_pipeline *p[2];
		bool good = true;

		make_image(&m, jungfrau);
		shuffle(&m);
		for (size_t i = 0; i < gains * n; i++)
			m.planes[3 * n + i] = 1 / m.planes[3 * n + i];
		path_with(pedestal, "a.raw", m.planes, gains * n);
		path_with(gain, "b.raw", m.planes + 3 * n, gains * n);
		snprintf(text, sizeof(text), config, jungfrau ? "\"detector\": \"jungfrau\"," : "",
			 pedestal, gain, tried[c].whole ? "true" : "false", tried[c].capacity);
		for (unsigned int k = 0; k < 2; k++) {
			p[k] = opened(text, k ? "reference" : engine, &g);
			r[k] = p[k] ? rashpa_result_new(p[k]) : NULL;
			good = good && r[k];
		}
		for (unsigned int i = 0; i < 4 && good; i++) {
			for (unsigned int k = 0; k < 2; k++) {
				r[k]->role = i == 1 ? RASHPA_IMAGE_DARK : RASHPA_IMAGE_SIGNAL;
				good = good && rashpa_pipeline_run(p[k], m.data, m.raw.line_stride,
								   r[k]) >= 0;
			}
			good = good && (!r[1]->kept || same_result(r[0], r[1], tried[c].whole));
			shuffle(&m);
		}
		ok(good, "reference-x-bytes-pixel: %s: as the reference: %u x %u, %u bytes a pixel, gaps of %zu, %s, room for %u: %llu kept%s%s",
		   engine, m.width, m.height, 1u << (m.pixel - RASHPA_PIXEL_U8), m.gap,
		   jungfrau ? "three gains" : "one gain", tried[c].capacity,
		   r[1] ? (unsigned long long)r[1]->elements : 0, p[0] ? "" : ": ",
		   p[0] ? "" : rashpa_reason());
		for (unsigned int k = 0; k < 2; k++) {
			rashpa_result_free(r[k]);
			rashpa_pipeline_close(p[k]);
		}
		free_image(&m);
	}
}

/* --- integration --- */

#define PONI	"poni_version: 2.1\nDetector: Detector\n" \
		"Detector_config: {\"pixel1\": 7.5e-05, \"pixel2\": 7.5e-05, \"orientation\": 3}\n" \
		"Distance: 0.1\nPoni1: 0.001\nPoni2: 0.002\nRot1: 0.1\nRot2: 0\nRot3: 0\n"

static void integrated(const char *engine, const char *more)
{
	static const struct rashpa_geometry g = {
		.width = 103, .height = 67, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	uint16_t *image = must(calloc(67, 103 * sizeof(*image)));
	struct rashpa_result *result[2] = {};
	struct rashpa_pipeline *p[2];
	const char *name[2] = { engine, "reference" };
	char config[PATH_MAX + 256];
	bool good = true;

	snprintf(config, sizeof(config), "{\"pretreat\": {\"saturated\": 900}, \"integrate\":"
		 "{\"poni\": \"%s\", \"bins\": 50%s}}",
		 file_with("a.poni", PONI, strlen(PONI)), more);
	for (size_t i = 0; i < 67 * 103; i++)
		image[i] = next_random() % 1000;
	for (unsigned int i = 0; i < 2; i++) {
		p[i] = opened(config, name[i], &g);
		result[i] = p[i] ? rashpa_result_new(p[i]) : NULL;
		good = good && result[i] && rashpa_pipeline_run(p[i], image, 206, result[i]) == 1 &&
		       result[i]->bins == 50;
	}
	ok(good && same(result[0]->intensity, result[1]->intensity, 50, 0.000001) &&
	   (!result[0]->sigma || same(result[0]->sigma, result[1]->sigma, 50, 0.000001)),
	   "integrates-reference: %s: integrates as the reference%s%s%s", engine, more, good ? "" : ": ",
	   good ? "" : rashpa_reason());
	for (unsigned int i = 0; i < 2; i++) {
		rashpa_result_free(result[i]);
		rashpa_pipeline_close(p[i]);
	}
	free(image);
}

static void test_integrate(const char *engine)
{
	integrated(engine, ", \"unit\": \"2th_deg\", \"split\": \"no\", \"error\": \"poisson\"");
	integrated(engine, ", \"unit\": \"r_mm\", \"error\": \"azimuthal\"");
	integrated(engine, ", \"unit\": \"r_mm\", \"range\": [9, 12], \"polarization\": 0.9");
}

/* --- peaks --- */

static void found_peaks(const char *engine, const char *finder, uint32_t width,
			uint32_t height)
{
	const struct rashpa_geometry g = {
		.width = width, .height = height, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	uint16_t *image = must(calloc(height, width * sizeof(*image)));
	struct rashpa_result *result[2] = {};
	struct rashpa_pipeline *p[2];
	const char *name[2] = { engine, "reference" };
	char config[512];
	bool good = true;

	snprintf(config, sizeof(config), "{\"peaks\": {\"finder\": %s, \"centre\": [20, 10],"
		 "\"capacity\": 20}}", finder);
	for (size_t i = 0; i < (size_t)width * height; i++) {
		/* where all is 0, no rounding may stand out */
		image[i] = strstr(finder, "noise") ? 0 : 10 + next_random() % 10;
		if (!(next_random() % 200))
			image[i] = next_random() % 3 ? 65535 : 1000;
		if (i > width && image[i - 1] == 1000)
			image[i] = image[i - width] = 500;
	}
	for (unsigned int i = 0; i < 2; i++) {
		p[i] = opened(config, name[i], &g);
		result[i] = p[i] ? rashpa_result_new(p[i]) : NULL;
		good = good && result[i] &&
		       rashpa_pipeline_run(p[i], image, 2 * width, result[i]) == 1;
	}
	good = good && result[0]->peaks_found == result[1]->peaks_found;
	for (uint32_t i = 0; good && i < result[0]->peaks; i++)
		good = same(&result[0]->peak[i].x, &result[1]->peak[i].x, 5, 0.0001) &&
		       result[0]->peak[i].pixels == result[1]->peak[i].pixels;
	ok(good, "x-pixels-peaks: %s: %u x %u pixels: peaks are those of the reference (%u, room for 20): %s",
	   engine, width, height, result[0] ? result[0]->peaks_found : 0, finder);
	for (unsigned int i = 0; i < 2; i++) {
		rashpa_result_free(result[i]);
		rashpa_pipeline_close(p[i]);
	}
	free(image);
}

static void test_peaks(const char *engine)
{
	static const char * const finders[] = {
		"\"pyfai\", \"patch\": 3, \"connected\": 2", "\"pyfai\", \"patch\": 15, \"connected\": 1",
		"\"pyfai\", \"noise\": 0, \"patch\": 3, \"connected\": 1",
		"\"peakfinder8\", \"radius\": 5", "\"peakfinder8\", \"max_pixels\": 3, \"rings\": 7",
	};

	for (size_t i = 0; i < ARRAY_SIZE(finders); i++) {
		found_peaks(engine, finders[i], 103, 67);
		found_peaks(engine, finders[i], 1, 1);
		found_peaks(engine, finders[i], 300, 3);
	}
}

/* Files of geometry that are none. */
static void test_poni(void)
{
	static const struct rashpa_geometry g = {
		.width = 103, .height = 67, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	static const struct {
		const char *text, *because;
	} tried[] = {
		{ "", "a file of pyFAI" },
		{ "Distance: 1\nPoni1: x\n", "Poni1: \"x\" is not a number" },
		{ "Distance: 1\nPoni1: nan\n", "Poni1: \"nan\" is not a number" },
		{ "Distance: 1\nPoni1: 0\nPoni2: 0\n", "the size of pixels" },
		{ "Distance: -1\nPoni1: 0\nPoni2: 0\nPixelSize1: 1\nPixelSize2: 1\n",
		  "the distance" },
		{ "Distance: 1\nPoni1: 1e9\n", "\"1e9\" is not a number of up to a million" },
		{ "distance: 1\nROT1: x\n", "ROT1: \"x\" is not a number" },
		{ "Detector_config: []\n", "not an object of JSON" },
		{ "Detector_config: {\"pixel1\": \"1\"}\n", "pixel1 is not a number" },
		{ "Detector_config: {\"max_shape\": [67]}\n", "max_shape is not [height, width]" },
		{ "Detector_config: {\"splineFile\": \"a\"}\n", "a spline" },
		{ PONI "Detector_config: {\"pixel1\": Infinity, \"pixel2\": 1}\n",
		  "the size of pixels" },
		{ PONI "Detector: Eiger\nDetector_config: {\"max_shape\": [103, 67]}\nWavelength: 1\n",
		  "of images of 67 x 103 pixels (max_shape), not of 103 x 67" },
		{ PONI "poni_version: 0\n", "poni_version 0: known are 1, 2 and 2.1" },
		{ PONI "Detector_config: {\"pixel1\": 1, \"pixel2\": 1} and more\n",
		  "not an object of JSON" },
		{ PONI "Detector_config: {\"pixel1\": 1} {\"pixel2\": 1}\n",
		  "not an object of JSON" },
		{ PONI "poni_version: 3\n", "poni_version 3: known are 1, 2 and 2.1" },
		{ PONI "Wavelength: 1e-30\n", "wavelength of 1e-30 m" },
		{ "Detector_config: {\"orientation\": 1}\n", "orientation 1" },
		{ "SplineFile: x.spline\n", "a spline" },
		{ PONI, "no wavelength" },
	};
	static const char jungfrau[] = PONI "Detector: Jungfrau\n";
	char config[PATH_MAX + 256];

	for (size_t t = 0; t < ARRAY_SIZE(tried); t++) {
		snprintf(config, sizeof(config), "{\"integrate\": {\"poni\": \"%s\", \"bins\": 10}}",
			 file_with("a.poni", tried[t].text, strlen(tried[t].text)));
		refused(config, &g, tried[t].because);
	}
	snprintf(config, sizeof(config), "{\"integrate\": {\"poni\": \"%s\", \"bins\": 10}}",
		 file_with("a.poni", jungfrau, strlen(jungfrau)));
	refused(config, &module, "wide_every_x");
	refused("{\"integrate\": {\"poni\": \"/nonexistent\", \"bins\": 10}}", &g, "No such file");
	refused("{\"integrate\": {\"poni\": \"x\", \"bins\": 0}}", &g, "bins: 0 is not 1 to");
	refused("{\"integrate\": {\"poni\": \"x\", \"bins\": 1, \"range\": [2, 1]}}", &g,
		"the smaller one first");
}

static void test_planes(void)
{
	static const char npy[] = "\x93NUMPY\1\0\x3c\0"
		"{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n"
		"\1\0\2\0\3\0\4\0\5\0\6";
	static const double raw[6] = { 1, 2, 3, 4, 5, 6 };
	static const struct rpu_shape shape = { 1, 2, 3 }, turned = { 1, 3, 2 }, less = { 1, 1, 5 },
		flat = { 1, 1, 6 }, two = { 2, 1, 3 }, three = { 3, 1, 2 };
	char wrong[sizeof(npy)];
	const char *path;
	float got[6];
	int bad = 0;

	path = file_with("a.npy", npy, sizeof(npy));
	ok(!rpu_planes_read(&path, 1, &shape, got, why) && got[0] == 1 && got[5] == 6,
	   "numbers-numpy: numbers of NumPy");
	ok(rpu_planes_read(&path, 1, &less, got, why) && strstr(why, "it has (2, 3), not 1 x 5"),
	   "planes: %s", why);
	ok(rpu_planes_read(&path, 1, &turned, got, why) && strstr(why, "not 3 x 2") &&
	   rpu_planes_read(&path, 1, &three, got, why) &&
	   !rpu_planes_read(&path, 1, &two, got, why) &&
	   rpu_planes_read(&path, 1, &flat, got, why), "numbers-another-shape: as many numbers in another shape are refused");
	memcpy(wrong, npy, sizeof(npy));
	memcpy(strstr(wrong + 10, "<u2"), "|i1", 3);
	wrong[sizeof(npy) - 11] = -7;
	path = file_with("a.npy", wrong, sizeof(npy));
	ok(!rpu_planes_read(&path, 1, &shape, got, why) && got[1] == -7,
	   "signed-numbers-keep: signed numbers keep their sign: %g", got[1]);
	/* whatever is changed, nothing is read that is not there */
	for (size_t i = 0; i < sizeof(npy); i++) {
		memcpy(wrong, npy, sizeof(npy));
		wrong[i] ^= 0x81;
		path = file_with("a.npy", wrong, sizeof(npy));
		bad += !rpu_planes_read(&path, 1, &shape, got, why);
		path = file_with("a.npy", npy, i);
		bad += !rpu_planes_read(&path, 1, &shape, got, why);
	}
	ok(bad < 40, "files-numpy-wrong: files of NumPy that are wrong or cut off: %d can be read", bad);
	for (int kind = 0; kind < 2; kind++) {
		float f32[6] = { 1, 2, 3, 4, 5, 6 };

		path = kind ? file_with("a.raw", raw, sizeof(raw)) :
		       file_with("a.raw", f32, sizeof(f32));
		memset(got, 0, sizeof(got));
		ok(!rpu_planes_read(&path, 1, &shape, got, why) && got[5] == 6 &&
		   !rpu_planes_read(&path, 1, &two, got, why),
		   "raw-numbers-bytes: raw numbers of %d bytes, also as two planes", kind ? 8 : 4);
	}
	ok(rpu_planes_read((const char *[]) { path, path }, 2, &three, got, why) &&
	   strstr(why, "2 files for 3 planes"), "planes-2: %s", why);
	ok(rpu_planes_read((const char *[]) { "/proc/self/exe:/x" }, 1, &shape, got, why) &&
	   strstr(why, "not HDF5"), "planes-3: %s", why);
}

/* A machine that hwloc makes up, of this one's processors: with a node for each. */
static void test_near(void)
{
	const char * const skipped = "there is no second processor";
	int bound, wrong = 0, threads;
	cpu_set_t mine;

	sched_getaffinity(0, sizeof(mine), &mine);
	if (!CPU_ISSET(0, &mine) || !CPU_ISSET(1, &mine)) {
		ok(true, "threads-memory-skip: threads are where the memory is # SKIP %s", skipped);
		return;
	}
	setenv("HWLOC_SYNTHETIC", "numa:2 pu:1", 1);
	setenv("HWLOC_THISSYSTEM", "1", 1);
	unsetenv("OMP_NUM_THREADS");
	setenv("OMP_PLACES", "threads", 1);
	ok(!rashpa_pipeline_near(1), "threads-omp-places: threads are where OMP_PLACES says");
	unsetenv("OMP_PLACES");
	ok(!rashpa_pipeline_near(-1) && !rashpa_pipeline_near(7),
	   "node-not-known: a node that is not known is no place");
	/* the binding stays; the process ends soon */
	bound = rashpa_pipeline_near(1);
	threads = omp_get_max_threads();
#pragma omp parallel reduction(max : wrong)
	{
		cpu_set_t now;

		sched_getaffinity(0, sizeof(now), &now);
		wrong = CPU_COUNT(&now) != 1 || !CPU_ISSET(1, &now);
	}
	ok(bound == 1 && threads == 1 && !wrong, "threads-memory: threads are where the memory is: %d, %d", bound,
	   threads);
}

/* What any engine does. */
static void test_engine(const char *engine)
{
	test_frames(engine);
	test_corrections(engine);
	test_assemble(engine);
	test_pipeline(engine);
	test_order(engine);
	test_growth(engine);
	test_integrate(engine);
	test_peaks(engine);
}

/* Documentation/processing.rst draws this order. */
static void test_stages(void)
{
	char text[512] = "";

	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		const struct rpu_stage *s = rpu_stages[i];

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s%s%s%s ", s->name,
			 s->on_gpu ? "+gpu" : "", s->changes ? "+changes" : "", s->driven ? "+driven" : "",
			 s->whole ? "+whole" : "", s->valid ? "+valid" : "");
	}
	ok(!strcmp(text, "pretreat+gpu+changes+driven+whole+valid correct+changes+whole+valid "
			 "assemble+changes+whole peaks veto+gpu+driven compress+gpu integrate+gpu accumulate "),
	   "stages-order: stages have their order and properties: %s", text);
}

static void test_all(void)
{
	test_stages();
	test_arithmetic();
	test_round();
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		against_reference(engines[i]);
		test_bin(engines[i]);
		test_compress(engines[i]);
		test_correct(engines[i]);
		test_statistics(engines[i]);
		test_engine(engines[i]->name);
	}
	test_configurations();
	refused("{\"peaks\": {\"finder\": \"pyfai\"}}", &module, "the beam's position");
	refused("{\"peaks\": {\"finder\": \"pyfai\", \"centre\": [1, 2], \"snr\": 3}}", &module,
		"snr is a key of the other");
	refused("{\"peaks\": {\"finder\": \"pyfai\", \"centre\": [1, 2], \"patch\": 4}}", &module, "odd");
	test_poni();
	test_planes();
	test_near();
}

/* [ENGINE]: only what that one does, a GPU */
int main(int argc, char **argv)
{
	static const char * const made[] = { "a.npy", "a.raw", "b.raw", "a.poni" };
	const char *temporary = getenv("TMPDIR");

	setvbuf(stdout, NULL, _IOLBF, 0);
	snprintf(folder, sizeof(folder), "%s/processing-XXXXXX", temporary ? temporary : "/tmp");
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	if (argc > 1) {
		test_engine(argv[1]);
		gpu_against_reference(argv[1]);
		/* CUDA's drive has separate tests, and the stand-in is slow */
		if (strncmp(argv[1], "cuda", 4))
			test_drive(argv[1]);
	} else {
		test_all();
	}
	for (size_t i = 0; i < ARRAY_SIZE(made); i++) {
		char path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/%s", folder, made[i]);
		unlink(path);
	}
	rmdir(folder);
	return tap_end();
}
