// SPDX-License-Identifier: GPL-2.0-only
/* rashpa-bench memory: options, the order of things, the result */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "parse.h"

struct config {
	struct bench *bench;
	const char *device, *vfio, *backend, *json, *svg;
};

enum { OPT_VFIO = 256, OPT_JSON, OPT_SVG };

static const struct argp_option options[] = {
	{ "sizes", 's', "SIZE,...", 0,
	  "of the blocks (default: 64K,2M,16M,128M,1G); below 2M only maps are measured", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 5)", 0 },
	{ "device", 'd', "fpgaN", 0, "measure maps for this function, which nobody may use", 0 },
	{ "vfio", OPT_VFIO, "BDF", 0,
	  "compare with VFIO, by a spare function bound to vfio-pci", 0 },
	{ "buffer-backend", 'b', "contig|cma", 0, "only this one (default: all there are)", 0 },
	{ "json", OPT_JSON, "FILE", 0, "write the result as JSON, - is standard output", 0 },
	{ "svg", OPT_SVG, "FILE", 0, "draw the ratios (needs gnuplot)", 0 },
	{}
};

static void parse_sizes(struct argp_state *state, struct bench *bench, char *text)
{
	char *next, *word;

	bench->sizes = 0;
	for (word = strtok_r(text, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		uint64_t size;

		if (bench->sizes == SIZES_MAX)
			argp_error(state, "--sizes: more than %d", SIZES_MAX);
		if (!parse_size(word, &size) || !size || size > UINT64_C(1) << 46)
			argp_error(state, "--sizes: \"%s\" is not a size: give 2M or the like",
				   word);
		if (size % (size < HUGE_PAGE ? 4096 : HUGE_PAGE))
			argp_error(state, "--sizes: %s is not a multiple of %s", word,
				   size < HUGE_PAGE ? "4K" : "2M");
		bench->size[bench->sizes++] = size;
	}
	if (!bench->sizes)
		argp_error(state, "--sizes: none is given");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;
	uint64_t n;

	switch (key) {
	case 's':
		parse_sizes(state, c->bench, arg);
		break;
	case 'r':
		if (!parse_u64(arg, 1000, &n) || !n)
			argp_error(state, "--repeat: \"%s\" is not a number from 1 to 1000", arg);
		c->bench->report->repeat = n;
		break;
	case 'd':
		c->device = arg;
		break;
	case OPT_VFIO:
		c->vfio = arg;
		break;
	case 'b':
		if (strcmp(arg, "contig") && strcmp(arg, "cma"))
			argp_error(state, "--buffer-backend: \"%s\" is neither contig nor cma",
				   arg);
		c->backend = arg;
		break;
	case OPT_JSON:
		c->json = arg;
		break;
	case OPT_SVG:
		c->svg = arg;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "\"%s\" is too much", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure what buffers and maps cost, beside dma-heap, hugetlbfs, a bare dma-buf "
	       "import and VFIO: medians of rounds in which all take their turn. Needs root."
	       "\vExit status: 0 measured (what was not is said with its reason), 1 failed, "
	       "interrupted, or nothing could be measured, 2 usage.",
};

static void measure(struct config *c)
{
	struct bench *bench = c->bench;

	bench->sources = sources_open(bench->source, bench->report, c->backend);
	for (size_t i = 0; i < bench->sizes && going_on(); i++)
		if (bench->size[i] >= HUGE_PAGE)
			bench_alloc(bench, bench->size[i]);
	for (size_t i = 0; i < bench->sizes && going_on(); i++)
		if (bench->size[i] >= HUGE_PAGE)
			bench_access(bench, bench->size[i]);
	if (going_on())
		bench_maps(bench, c->device, c->vfio);
	sources_close(bench->source, bench->sources);
	progress_end(&bench->report->progress);
}

static int result(const struct config *c)
{
	const struct report *report = c->bench->report;
	int bad = 0;

	if (!c->json || strcmp(c->json, "-"))
		report_print(report);
	if (c->json)
		bad |= report_json(report, "memory", c->json);
	if (c->svg)
		bad |= plot_svg(report, c->svg);
	if (!going_on())
		return fail("interrupted: what is shown is not complete");
	if (!report->rows)
		return fail("nothing was measured: the reasons are above");
	return bad ? EXIT_FAILED : 0;
}

int cmd_memory(int argc, char **argv)
{
	static const uint64_t sizes[] = {
		UINT64_C(64) << 10, UINT64_C(2) << 20, UINT64_C(16) << 20, UINT64_C(128) << 20,
		UINT64_C(1) << 30,
	};
	struct report report = { .repeat = 5, .iommu = -1 };
	struct bench bench = { .report = &report, .sizes = sizeof(sizes) / sizeof(sizes[0]) };
	struct config c = { .bench = &bench };
	int status;

	memcpy(bench.size, sizes, sizeof(sizes));
	argp_parse(&argp, argc, argv, 0, NULL, &c);
	if (c.svg && plot_check())
		return EXIT_FAILED;
	catch_signals();
	progress_init(&report.progress, true);
	measure(&c);
	status = result(&c);
	report_free(&report);
	return status;
}
