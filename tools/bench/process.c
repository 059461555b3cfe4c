// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench process: stages of a pipeline, alternating with STREAM triad as the reference
 * (McCalpin 1995), which is limited by memory bandwidth.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/parse.h"
#include <rashpa-processing.h>
#include "bench/settings.h"

#define IMAGES		4	/* in turn, so that a raw image is not in the smallest caches */
#define STAGES		16
#define PEDESTAL	3000
#define GAIN		40	/* ADU of a photon */
/* one pixel in OTHER_GAIN has another gain, one in SIGNAL a signal, as in JUNGFRAU frames */
#define OTHER_GAIN	1009
#define SIGNAL		499

struct config {
	struct settings settings;
	uint64_t size[SIZES_MAX];
	size_t sizes;
	unsigned int threads;	/* 0: first one, then all */
	char folder[64];	/* folder for the calibration */
};

enum { OPT_THREADS = OPT_OWN };

static const struct argp_option options[] = {
	{ "sizes", 's', "SIZE,...", 0, "pixels of an image (default: 512K,4M,16M)", 0 },
	{ "threads", OPT_THREADS, "N", 0, "OpenMP threads (default: one, and then all)", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 21)", 0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (size < 1 << 16 || size > 1 << 28 || size & (size - 1))
		argp_error(state, "--sizes: \"%s\" is not a power of two from 64K to 256M", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case 's':
		c->sizes = option_sizes(state, arg, c->size, check_size);
		break;
	case OPT_THREADS:
		c->threads = option_number(state, "--threads", arg, 1, 4096);
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure stages of a pipeline compared with STREAM triad on arrays of the same size. "
	       "The rate of a stage is the bytes that it reads and writes, including calibration, "
	       "per time. Results are medians of rounds that alternate all measurements. Needs no "
	       "driver.",
};

/* --- data --- */

struct work {
	uint32_t width, height;
	unsigned int threads;
	float *a, *b, *c;		/* arrays of STREAM */
	uint16_t *raw[IMAGES];
	struct rashpa_pipeline *pipeline;
	struct rashpa_result *result;
};

static size_t pixels(const struct work *w)
{
	return (size_t)w->width * w->height;
}

/* The thread that will use a page writes it first, which decides about its NUMA node. */
static void fill(const struct work *w, float *plane, float value)
{
	const size_t n = pixels(w);

#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++)
		plane[i] = value + i % 8;
}

static void make_raw(const struct work *w, unsigned int k)
{
	const size_t n = pixels(w);

#pragma omp parallel for schedule(static)
	for (size_t i = 0; i < n; i++) {
		w->raw[k][i] = PEDESTAL + (i * 7 + k) % 30;
		if (!((i + k) % SIGNAL))
			w->raw[k][i] += 10 * GAIN;
		if (!((i + 7 * k) % OTHER_GAIN))
			w->raw[k][i] |= 0x4000;
	}
}

int planes_write(const char *folder, const char *name, size_t n, float value)
{
	char path[128];
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	if (!file)
		return fail("%s: %s", path, strerror(errno));
	good = true;
	for (size_t i = 0; i < 3 * n && good; i++)
		good = fwrite(&(float) { i < n ? value : -value }, sizeof(float), 1, file);
	good = !fclose(file) && good;
	return good ? 0 : fail("%s: %s", path, strerror(errno));
}

void folder_remove(const char *folder)
{
	static const char * const names[] = { "/pedestal", "/gain", "/poni", "/nexus", "" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s%s", folder, names[i]);
		remove(path);
	}
}

static int open_pipeline(const struct config *c, struct work *w)
{
	const struct rashpa_geometry geometry = {
		.width = w->width, .height = w->height, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	char json[512];

	snprintf(json, sizeof(json), "{\"pretreat\": {\"detector\": \"jungfrau\","
		 "\"pedestal\": \"%s/pedestal\", \"gain\": \"%s/gain\"},"
		 "\"veto\": {\"threshold\": 5, \"pixels\": 1},"
		 "\"compress\": {\"threshold\": 5}}", c->folder, c->folder);
	if (rashpa_pipeline_open(json, "cpu", &w->pipeline) ||
	    rashpa_pipeline_begin(w->pipeline, &geometry))
		return fail("%s", rashpa_reason());
	w->result = rashpa_result_new(w->pipeline);
	return w->result ? 0 : fail("no memory for a result");
}

static void work_close(struct work *w)
{
	rashpa_result_free(w->result);
	rashpa_pipeline_close(w->pipeline);
	for (unsigned int k = 0; k < IMAGES; k++)
		free(w->raw[k]);
	free(w->a);
	free(w->b);
	free(w->c);
}

static int work_open(const struct config *c, struct work *w)
{
	const size_t n = pixels(w);
	bool good = true;

	w->a = aligned_alloc(64, n * sizeof(float));
	w->b = aligned_alloc(64, n * sizeof(float));
	w->c = aligned_alloc(64, n * sizeof(float));
	for (unsigned int k = 0; k < IMAGES; k++) {
		w->raw[k] = aligned_alloc(64, n * sizeof(uint16_t));
		good = good && w->raw[k];
	}
	if (!w->a || !w->b || !w->c || !good)
		return fail("no memory for images of %zu pixels", n);
	fill(w, w->a, 0);
	fill(w, w->b, 1);
	fill(w, w->c, 2);
	for (unsigned int k = 0; k < IMAGES; k++)
		make_raw(w, k);
	return open_pipeline(c, w);
}

/* --- rounds --- */

static uint64_t triad(const struct work *w)
{
	const unsigned long long begin = now_ns();
	const size_t n = pixels(w);
	float *a = w->a;
	const float *b = w->b, *c = w->c;

#pragma omp parallel for simd schedule(static)
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] + 3 * c[i];
	return now_ns() - begin;
}

/* Bytes moved for an image: those that the stage reports, plus the planes of the highest gain. */
static uint64_t moved(const struct work *w, const struct rashpa_stage_stat *s)
{
	const uint64_t planes = strcmp(s->name, "pretreat") ? 0 : 2 * sizeof(float) * pixels(w);

	return (s->bytes_in + s->bytes_out) / s->images + planes;
}

/* Adds rows that compare each stage with STREAM for the same number of bytes. */
static void rows(struct report *report, const struct work *w, const struct samples *stream,
		 struct samples *ours, struct samples *whole)
{
	struct rashpa_pipeline_stat stat;
	char backend[32];

	snprintf(backend, sizeof(backend), "cpu, %u thread%s", w->threads,
		 w->threads == 1 ? "" : "s");
	rashpa_pipeline_get_stat(w->pipeline, &stat);
	for (uint32_t i = 0; i < stat.stages; i++) {
		struct row row = {
			.name = stat.stage[i].name, .peer = "STREAM triad", .unit = UNIT_GBPS,
			.size = pixels(w) * sizeof(uint16_t),
		};
		struct samples theirs = {};

		if (!stat.stage[i].images)
			continue;
		row.backend = strdup(backend);	/* freed after the report */
		row.accesses = moved(w, &stat.stage[i]);
		for (size_t k = 0; k < stream->count; k++)
			samples_add(&theirs, stream->value[k] * row.accesses /
				    (3 * sizeof(float) * pixels(w)));
		report_row(report, &row, &ours[i], &theirs);
		samples_free(&theirs);
		if (strcmp(stat.stage[i].name, "pretreat"))
			continue;
		row.name = "pretreat, raw bytes";
		row.backend = strdup(backend);
		row.peer = NULL;
		row.accesses = pixels(w) * sizeof(uint16_t);
		report_row(report, &row, &ours[i], NULL);
	}
	report_row(report, &(struct row) {
		.name = "all stages, raw bytes", .backend = strdup(backend), .unit = UNIT_GBPS,
		.size = pixels(w) * sizeof(uint16_t), .accesses = pixels(w) * sizeof(uint16_t),
	}, whole, NULL);
}

static int measure(const struct config *c, struct work *w)
{
	struct report *report = c->settings.report;
	struct samples stream = {}, whole = {}, ours[STAGES] = {};
	int result = work_open(c, w);

	/* the first round does not count */
	for (unsigned int r = 0; r <= report->repeat && !result && going_on(); r++) {
		struct rashpa_pipeline_stat stat;
		uint64_t before[STAGES] = {}, begin, ns = triad(w);

		rashpa_pipeline_get_stat(w->pipeline, &stat);
		for (uint32_t i = 0; i < stat.stages && i < STAGES; i++)
			before[i] = stat.stage[i].ns;
		begin = now_ns();
		rashpa_pipeline_run(w->pipeline, w->raw[r % IMAGES], w->width * sizeof(uint16_t),
				    w->result);
		begin = now_ns() - begin;
		progress_show(&report->progress, "%zu pixels, %u threads: round %u of %u",
			      pixels(w), w->threads, r, report->repeat);
		if (!r)
			continue;
		samples_add(&stream, ns);
		samples_add(&whole, begin);
		for (uint32_t i = 0; i < stat.stages && i < STAGES; i++)
			samples_add(&ours[i], stat.stage[i].ns - before[i]);
	}
	if (!result && going_on())
		rows(report, w, &stream, ours, &whole);
	samples_free(&stream);
	samples_free(&whole);
	for (unsigned int i = 0; i < STAGES; i++)
		samples_free(&ours[i]);
	work_close(w);
	return result;
}

static int measure_size(const struct config *c, uint64_t size)
{
	const unsigned int all = omp_get_num_procs();
	const unsigned int threads[] = { c->threads ? c->threads : 1, all };
	struct work w = { .width = 1 };
	int result;

	/* as square as possible with powers of two, and not higher than wide */
	while ((uint64_t)w.width * w.width < size)
		w.width *= 2;
	w.height = size / w.width;
	result = planes_write(c->folder, "pedestal", size, PEDESTAL);
	if (!result)
		result = planes_write(c->folder, "gain", size, GAIN);
	for (unsigned int i = 0; i < 2 && !result && going_on(); i++) {
		if (i && (c->threads || all == 1))
			break;
		w.threads = threads[i];
		omp_set_num_threads(w.threads);
		result = measure(c, &(struct work) {
			.width = w.width, .height = w.height, .threads = w.threads,
		});
	}
	return result;
}

int cmd_process(int argc, char **argv)
{
	struct report report = { .repeat = 21, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .size = { 512 << 10, 4 << 20, 16 << 20 }, .sizes = 3,
		.folder = "/dev/shm/rashpa-bench-XXXXXX",
	};
	bool bad = false;
	int result = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	if (!mkdtemp(c.folder))
		return fail("%s: %s", c.folder, strerror(errno));
	catch_signals();
	progress_init(&report.progress, true);
	for (size_t i = 0; i < c.sizes && !result && going_on(); i++)
		result = measure_size(&c, c.size[i]);
	progress_end(&report.progress);
	folder_remove(c.folder);
	if (settings_text(&c.settings))
		report_print(&report);
	if (c.settings.json)
		bad |= report_json(&report, "process");
	for (size_t i = 0; i < report.rows; i++)
		free((char *)report.row[i].backend);
	if (!result)
		result = measured(report.rows, bad);
	report_free(&report);
	return result;
}
