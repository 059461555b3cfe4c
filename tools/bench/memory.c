// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench memory: options, sequence of measurements, results */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/settings.h"

struct config {
	struct settings settings;
	struct bench *bench;
	const char *backend;
};

enum { OPT_BACKEND = OPT_OWN };

static const struct argp_option options[] = {
	{ "sizes", 's', "SIZE,...", 0,
	  "block sizes (default: 64K,2M,16M,128M,1G); below 2M only maps are measured", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 5)", 0 },
	OPTION_FPGA("measure maps for this function, which must be unused"),
	{ "vfio", OPT_VFIO, "BDF", 0,
	  "compare with VFIO, by a spare function bound to vfio-pci", 0 },
	{ "backend", OPT_BACKEND, "contig|cma", 0, "measure only this backend (default: all)", 0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (!size || size > UINT64_C(1) << 46)
		argp_error(state, "--sizes: \"%s\" is not a size: give 2M or the like", word);
	if (size % (size < HUGE_PAGE ? 4096 : HUGE_PAGE))
		argp_error(state, "--sizes: %s is not a multiple of %s", word,
			   size < HUGE_PAGE ? "4K" : "2M");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case 's':
		c->bench->sizes = option_sizes(state, arg, c->bench->size, check_size);
		break;
	case OPT_BACKEND:
		option_word(state, "--backend", arg, "contig|cma");
		c->backend = arg;
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure the cost of buffers and maps, compared with dma-heap, hugetlbfs, a bare "
	       "dma-buf import and VFIO. Results are medians of rounds that alternate all "
	       "measurements. Needs root.",
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
		bench_maps(bench, c->settings.device, c->settings.vfio);
	sources_close(bench->source, bench->sources);
	progress_end(&bench->report->progress);
}

static int result(const struct config *c)
{
	const struct report *report = c->bench->report;
	const struct settings *s = &c->settings;
	bool bad = false;

	if (settings_text(s))
		report_print(report);
	if (s->json)
		bad |= report_json(report, "memory");
	return measured(report->rows, bad);
}

int cmd_memory(int argc, char **argv)
{
	static const uint64_t sizes[] = {
		UINT64_C(64) << 10, UINT64_C(2) << 20, UINT64_C(16) << 20, UINT64_C(128) << 20,
		UINT64_C(1) << 30,
	};
	struct report report = { .repeat = 5, .iommu = -1 };
	struct bench bench = { .report = &report, .sizes = sizeof(sizes) / sizeof(sizes[0]) };
	struct config c = { .settings.report = &report, .bench = &bench };
	int status;

	memcpy(bench.size, sizes, sizeof(sizes));
	argp_parse(&argp, argc, argv, 0, NULL, &c);
	catch_signals();
	progress_init(&report.progress, true);
	measure(&c);
	status = result(&c);
	report_free(&report);
	return status;
}
