// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench sizing: processors that each stage and sink of a pipeline needs for 1 GB/s of raw images. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/settings.h"
#include "common/json-out.h"
#include <rashpa-processing.h>

#define IMAGES		8	/* in turn, more than caches hold */
#define PEDESTAL	3000
#define GAIN		40

/* A pipeline of which one stage or sink is timed; FOLDER is that of its files. */
struct part {
	const char *name, *timed, *pipeline;
};

#define JUNGFRAU "\"pretreat\": {\"detector\": \"jungfrau\", \"pedestal\": \"FOLDER/pedestal\", \"gain\": \"FOLDER/gain\"}"
#define NEXUS "\"sinks\": {\"nexus\": {\"file\": \"FOLDER/nexus\", \"overwrite\": true, "

static const struct part parts[] = {
	{ "pretreat, counting", "pretreat", "{}" },
	{ "pretreat, JUNGFRAU", "pretreat", "{" JUNGFRAU "}" },
	{ "correct, common mode", "correct",
	  "{" JUNGFRAU ", \"correct\": {\"common_mode\": {\"chip_width\": 256, \"chip_height\": 256, \"below\": 3}}}" },
	{ "correct, outliers", "correct", "{" JUNGFRAU ", \"correct\": {\"outliers\": {\"above\": 100, \"ratio\": 10}}}" },
	{ "assemble, turned", "assemble", "{" JUNGFRAU ", \"assemble\": {\"rotate\": 90}}" },
	{ "assemble, bins of 2 x 2", "assemble", "{" JUNGFRAU ", \"assemble\": {\"bin_x\": 2, \"bin_y\": 2}}" },
	{ "peaks, pyfai", "peaks", "{" JUNGFRAU ", \"peaks\": {\"finder\": \"pyfai\", \"centre\": [300, 300]}}" },
	{ "peaks, peakfinder8", "peaks",
	  "{" JUNGFRAU ", \"peaks\": {\"finder\": \"peakfinder8\", \"centre\": [300, 300]}}" },
	{ "veto", "veto", "{" JUNGFRAU ", \"veto\": {\"threshold\": 5, \"pixels\": 1}}" },
	{ "compress", "compress", "{" JUNGFRAU ", \"compress\": {\"threshold\": 5}}" },
	{ "integrate, 1000 bins", "integrate",
	  "{" JUNGFRAU ", \"integrate\": {\"poni\": \"FOLDER/poni\", \"bins\": 1000}}" },
	{ "accumulate", "accumulate", "{" JUNGFRAU ", \"accumulate\": {\"images\": 1000}}" },
	{ "nexus, raw", "nexus", "{" NEXUS "\"what\": [\"raw\"]}}}" },
	{ "nexus, raw, bitshuffle-lz4", "nexus",
	  "{" NEXUS "\"what\": [\"raw\"], \"compression\": \"bitshuffle-lz4\"}}}" },
	{ "nexus, images, bitshuffle-lz4", "nexus", "{" JUNGFRAU ", " NEXUS "\"compression\": \"bitshuffle-lz4\"}}}" },
};

#define PARTS	(sizeof(parts) / sizeof(*parts))

struct config {
	struct settings settings;
	uint64_t size[SIZES_MAX];
	uint32_t width, height;
	char folder[64];
	uint16_t *raw[IMAGES];
};

static const struct argp_option options[] = {
	{ "sizes", 's', "SIZE", 0, "pixels of an image (default: 4M)", 0 },
	{ "repeat", 'r', "N", 0, "images, 1 to 1000 (default: 21)", 0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (size < 1 << 18 || size > 1 << 28 || size & (size - 1))
		argp_error(state, "--sizes: \"%s\" is not a power of two from 256K to 256M", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	if (key != 's')
		return settings_parse(&c->settings, key, arg, state);
	if (option_sizes(state, arg, c->size, check_size) > 1)
		argp_error(state, "--sizes: give one size");
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure each stage and sink of a pipeline on one processor, and print the processors that it "
	       "needs for 1 GB/s of raw images (u16), by the fastest of all images. Add up the parts of a pipeline, and use romulu --tune "
	       "workers with that number. Files are in /dev/shm. Needs no driver.",
};

/* --- files and images --- */

static int write_poni(const struct config *c)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/poni", c->folder);
	file = fopen(path, "w");
	if (!file)
		return fail("%s: %s", path, strerror(errno));
	fputs("poni_version: 2\nDetector: Detector\nDetector_config: {\"pixel1\": 75e-6, \"pixel2\": 75e-6}\n"
	      "Distance: 0.1\nPoni1: 0.0225\nPoni2: 0.0225\nWavelength: 1e-10\n", file);
	return fclose(file) ? fail("%s: %s", path, strerror(errno)) : 0;
}

static int prepare(struct config *c)
{
	const size_t n = (size_t)c->width * c->height;

	for (unsigned int k = 0; k < IMAGES; k++) {
		c->raw[k] = malloc(n * sizeof(**c->raw));
		if (!c->raw[k])
			return fail("no memory for images of %zu pixels", n);
		for (size_t i = 0; i < n; i++) {
			/* noise of 12, one of 500 pixels with a signal, one of 1000 in another gain */
			const uint32_t random = (i + k * 7919) * 2654435761u;

			c->raw[k][i] = PEDESTAL + (random >> 8) % 24 + (random % 499 ? 0 : 10 * GAIN);
			c->raw[k][i] |= (random >> 7) % 1009 ? 0 : 0x4000;
		}
	}
	if (planes_write(c->folder, "pedestal", n, PEDESTAL) || planes_write(c->folder, "gain", n, GAIN))
		return EXIT_FAILED;
	return write_poni(c);
}

/* --- measurements --- */

static char *with_folder(const char *pipeline, const char *folder)
{
	char *text = NULL, *part;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *at = pipeline;

	while (out && (part = strstr(at, "FOLDER"))) {
		fprintf(out, "%.*s%s", (int)(part - at), at, folder);
		at = part + strlen("FOLDER");
	}
	if (out) {
		fputs(at, out);
		fclose(out);
	}
	return text;
}

static uint64_t spent(const struct rashpa_pipeline *pipeline, const char *name)
{
	struct rashpa_pipeline_stat stat;
	uint64_t ns = 0;

	rashpa_pipeline_get_stat(pipeline, &stat);
	for (uint32_t i = 0; i < stat.stages; i++)
		ns += !strcmp(stat.stage[i].name, name) ? stat.stage[i].ns : 0;
	for (uint32_t i = 0; i < stat.sinks; i++)
		ns += stat.sink[i].name && !strcmp(stat.sink[i].name, name) ? stat.sink[i].ns : 0;
	return ns;
}

static int measure(struct config *c, const struct part *part, struct samples *ns)
{
	const struct rashpa_geometry geometry = {
		.width = c->width, .height = c->height, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};
	struct report *report = c->settings.report;
	struct rashpa_pipeline *pipeline = NULL;
	struct rashpa_result *result = NULL;
	char *json = with_folder(part->pipeline, c->folder);
	int status = 0;

	if (!json || rashpa_pipeline_open(json, "cpu", &pipeline) ||
	    rashpa_pipeline_begin(pipeline, &geometry) || !(result = rashpa_result_new(pipeline)))
		status = fail("%s: %s", part->name, rashpa_reason());
	/* the first ones do not count */
	for (unsigned int r = 0; !status && r < report->repeat + IMAGES && going_on(); r++) {
		const uint64_t before = spent(pipeline, part->timed);
		int kept = rashpa_pipeline_run(pipeline, c->raw[r % IMAGES], c->width * sizeof(**c->raw), result);

		if (kept > 0)
			kept = rashpa_pipeline_put(pipeline, result);
		if (kept < 0)
			status = fail("%s: %s", part->name, rashpa_reason());
		if (r >= IMAGES)
			samples_add(ns, spent(pipeline, part->timed) - before);
	}
	rashpa_result_free(result);
	rashpa_pipeline_close(pipeline);
	free(json);
	samples_sort(ns);
	return status;
}

static struct json_object *part_json(const struct part *part, double ns_per_byte)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "part", part->name);
	put_real(o, "ns_per_pixel", ns_per_byte * sizeof(uint16_t));
	put_real(o, "gbyte_per_s_of_a_processor", 1 / ns_per_byte);
	put_real(o, "processors_for_1_gbyte_per_s", ns_per_byte);
	return o;
}

int cmd_sizing(int argc, char **argv)
{
	struct report report = { .repeat = 21, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .size = { 4 << 20 }, .width = 1,
		.folder = "/dev/shm/rashpa-bench-XXXXXX",
	};
	struct json_object *o, *list = json_object_new_array();
	int result;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	while ((uint64_t)c.width * c.width < *c.size)
		c.width *= 2;
	c.height = *c.size / c.width;
	if (!mkdtemp(c.folder))
		return fail("%s: %s", c.folder, strerror(errno));
	catch_signals();
	omp_set_num_threads(1);
	progress_init(&report.progress, true);
	result = prepare(&c);
	if (settings_text(&c.settings) && !result)
		printf("%-30s %10s %18s %16s\n", "", "ns a pixel", "GB/s of one", "for 1 GB/s");
	for (size_t i = 0; i < PARTS && !result && going_on(); i++) {
		struct samples ns = {};
		double each;

		progress_show(&report.progress, "%s", parts[i].name);
		result = measure(&c, &parts[i], &ns);
		/* the fastest one: others had to share the processor */
		each = (double)percentile(ns.value, ns.count, 0) / (*c.size * sizeof(**c.raw));
		samples_free(&ns);
		if (result || !(each > 0))
			continue;
		progress_end(&report.progress);
		if (settings_text(&c.settings))
			printf("%-30s %10.3f %12.2f GB/s %11.2f CPUs\n", parts[i].name, each * sizeof(uint16_t), 1 / each, each);
		json_object_array_add(list, part_json(&parts[i], each));
	}
	progress_end(&report.progress);
	folder_remove(c.folder);
	for (unsigned int k = 0; k < IMAGES; k++)
		free(c.raw[k]);
	o = report_json_head(&report, "sizing");
	json_object_object_add(o, "parts", list);
	if (!c.settings.json)
		json_object_put(o);
	else if (json_finish(o) && !result)
		result = EXIT_FAILED;
	report_free(&report);
	return result;
}
