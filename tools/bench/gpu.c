// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rashpa-bench gpu: time from a notification to the first instruction of a shader, in several ways;
 * reads of four bytes; copies inside the GPU, to it, from it and from it to a board; stages of a
 * pipeline, compared with a copy inside the GPU; images that the GPU takes without the host.
 */
#include "bench/gpu.h"

#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include <rashpa-board.h>
#include <rashpa-processing.h>
#include "bench/settings.h"

#define STAGES		16
#define READS		100u	/* reads of four bytes in a round */
#define SIGNAL		499	/* one pixel in SIGNAL has a signal */
#define LEAST_COPY	(UINT64_C(1) << 10)
#define ALIGNED		(UINT64_C(64) << 10)	/* multiple of any page size */
#define SLOTS		8u	/* slots of images that the GPU takes without the host */
#define DRIVEN		8u	/* images in a round */
#define TRACED		24u	/* images of a timeline */

struct config {
	struct settings settings;
	uint64_t size[SIZES_MAX];
	size_t sizes;
	uint64_t copies;		/* the longest copy, bytes */
	const char *engine;
	const char *trace;		/* file of a timeline, or NULL */
	char who[2 * RASHPA_GPU_NAME];	/* name of the GPU */
	uint32_t can;			/* RASHPA_GPU_HOST and other flags */
};

enum { OPT_GPU = OPT_OWN, OPT_COPIES, OPT_TRACE };

static const struct argp_option options[] = {
	OPTION_FPGA("an unused bound function; the GPU also copies to its memory"),
	{ "gpu", OPT_GPU, "vulkan[:N]|cuda[:N]", 0,
	  "the GPU (default: vulkan, the best one)", 0 },
	{ "copies", OPT_COPIES, "SIZE", 0, "longest copy, 1K to 1G bytes (default: 64M)", 0 },
	{ "sizes", 's', "SIZE,...", 0, "pixels of an image (default: 512K,4M)", 0 },
	{ "trace", OPT_TRACE, "FILE", 0,
	  "also write a timeline of images that are copied in, computed and, if accepted, copied out", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 21)", 0 },
	OPTION_JSON,
	{}
};

static void check_size(struct argp_state *state, const char *word, uint64_t size)
{
	if (size < 1 << 12 || size > 1 << 24 || size & (size - 1))
		argp_error(state, "--sizes: \"%s\" is not a power of two from 4K to 16M", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case 's':
		c->sizes = option_sizes(state, arg, c->size, check_size);
		break;
	case OPT_GPU:
		if (strncmp(arg, "vulkan", strlen("vulkan")) &&
		    strncmp(arg, "cuda", strlen("cuda")))
			argp_error(state, "--gpu: \"%s\" is not vulkan, vulkan:N, cuda or cuda:N",
				   arg);
		c->engine = arg;
		break;
	case OPT_TRACE:
		c->trace = arg;
		break;
	case OPT_COPIES:
		if (!parse_size(arg, &c->copies) || c->copies < LEAST_COPY ||
		    c->copies > 1 << 30)
			argp_error(state, "--copies: \"%s\" is not 1K to 1G", arg);
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Measure a GPU: time from a notification until the host sees the first store of a "
	       "shader; reads of four bytes, with percentiles; copies inside the GPU, to it and from "
	       "it, with --fpga also from it to the board, over sizes; stages of a pipeline, compared with a copy inside the GPU; the "
	       "processing of images without the host, from host memory and GPU memory. "
	       "Results are medians of rounds that alternate all measurements. Needs no driver of "
	       "rashpa. Each row names the GPU: lavapipe is a program on processors, not a GPU.",
};

/* --- notifications, copies --- */

static const char * const gpu_ways[GPU_WAYS] = {
	[GPU_LAUNCH] = "a launch", [GPU_AHEAD] = "a launch ahead, flush off",
	[GPU_AHEAD_FLUSH] = "a launch ahead, flush on", [GPU_POLL] = "a shader that polls",
};

static int measure_ways(const struct config *c, struct gpu_bench *g)
{
	struct report *report = c->settings.report;
	struct samples samples[GPU_WAYS] = {};

	/* the first round does not count */
	for (unsigned int r = 0; r <= report->repeat && going_on(); r++) {
		progress_show(&report->progress, "notifications: round %u of %u", r,
			      report->repeat);
		for (size_t i = 0; i < GPU_WAYS; i++) {
			const size_t way = turn(r, i, GPU_WAYS);
			const uint64_t ns = g->by->latency(g, way);

			if (r && ns)
				samples_add(&samples[way], ns);
		}
	}
	for (unsigned int way = 0; way < GPU_WAYS; way++) {
		const struct row row = {
			.name = gpu_ways[way], .backend = c->who, .unit = UNIT_US,
			.size = sizeof(uint32_t),
		};

		if (samples[way].count && going_on())
			report_row(report, &row, &samples[way], NULL);
		else
			report_leave_out(report, gpu_ways[way], "%s does not support it", c->who);
		samples_free(&samples[way]);
	}
	return 0;
}

/* As in figure 4.13 of the thesis: the spread matters. */
static int measure_reads(const struct config *c, struct gpu_bench *g)
{
	const struct row row = {
		.name = "a read of 4 bytes of it, to pinned memory", .backend = c->who,
		.unit = UNIT_US, .size = sizeof(uint32_t), .spread = true,
	};
	struct report *report = c->settings.report;
	struct samples samples = {};
	int result = 0;

	/* the first round does not count */
	for (unsigned int r = 0; r <= report->repeat * READS && going_on() && !result; r++) {
		const uint64_t ns = g->by->copy(g, GPU_FROM_PINNED, sizeof(uint32_t));

		if (!(r % READS))
			progress_show(&report->progress, "reads of 4 bytes: round %u of %u",
				      r / READS, report->repeat);
		if (!ns)
			result = fail("%s: a read of 4 bytes failed", c->who);
		else if (r >= READS)
			samples_add(&samples, ns);
	}
	if (samples.count && !result && going_on())
		report_row(report, &row, &samples, NULL);
	samples_free(&samples);
	return result;
}

static void report_copies(const struct config *c, const char *name, uint64_t bytes,
			  struct samples *ours, struct samples *pageable)
{
	const struct row row = {
		.name = name, .backend = c->who, .peer = pageable ? "pageable" : NULL,
		.unit = UNIT_GBPS, .size = bytes, .accesses = bytes,
	};

	if (ours->count)
		report_row(c->settings.report, &row, ours, pageable);
}

/* Measure all kinds of copies of one length, in turn. */
static int measure_copy(const struct config *c, struct gpu_bench *g, uint64_t bytes,
			struct samples *samples)
{
	struct report *report = c->settings.report;

	/* the first round does not count */
	for (unsigned int r = 0; r <= report->repeat && going_on(); r++) {
		progress_show(&report->progress, "copies of %" PRIu64 " bytes: round %u of %u",
			      bytes, r, report->repeat);
		for (size_t i = 0; i < GPU_COPIES; i++) {
			const size_t copy = turn(r, i, GPU_COPIES);
			const uint64_t ns = g->by->copy(g, copy, bytes);

			if (!ns)
				return fail("%s: a copy of %" PRIu64 " bytes failed, or returned wrong data",
					    c->who, bytes);
			if (r)
				samples_add(&samples[copy], ns);
		}
	}
	return 0;
}

static int measure_copies(const struct config *c, struct gpu_bench *g)
{
	struct samples all[SIZES_MAX][GPU_COPIES] = {};
	uint64_t size[SIZES_MAX];
	int result = 0, n = 0;

	for (uint64_t bytes = LEAST_COPY; bytes <= c->copies && n < SIZES_MAX; bytes *= 4)
		size[n++] = bytes;
	for (int i = 0; i < n && !result && going_on(); i++)
		result = measure_copy(c, g, size[i], all[i]);
	for (int i = 0; i < n && !result; i++)
		report_copies(c, "a copy in it", size[i], &all[i][GPU_INSIDE], NULL);
	for (int i = 0; i < n && !result; i++)
		report_copies(c, "a copy to it, of pinned memory", size[i], &all[i][GPU_TO_PINNED],
			      &all[i][GPU_TO_PAGEABLE]);
	for (int i = 0; i < n && !result; i++)
		report_copies(c, "a copy of it, to pinned memory", size[i],
			      &all[i][GPU_FROM_PINNED], &all[i][GPU_FROM_PAGEABLE]);
	for (int i = 0; i < n * GPU_COPIES; i++)
		samples_free(&all[i / GPU_COPIES][i % GPU_COPIES]);
	return result;
}

/* As clEnqueueCopyBuffer() in the paper about DirectGMA: the GPU is the master of the bus. */
static int copy_to_board(const struct config *c, struct gpu_bench *g, uint64_t room)
{
	struct report *report = c->settings.report;

	for (uint64_t bytes = LEAST_COPY; bytes <= room; bytes *= 4) {
		struct samples samples = {};

		for (unsigned int r = 0; r <= report->repeat && going_on(); r++) {
			const uint64_t ns = g->by->copy(g, GPU_TO_PINNED, bytes) ?
					    g->by->copy(g, GPU_TO_BOARD, bytes) : 0;

			if (!ns)
				return fail("%s: a copy of %" PRIu64 " bytes to the board failed, or wrote wrong data",
					    c->who, bytes);
			if (r)
				samples_add(&samples, ns);
		}
		report_copies(c, "a copy of it, to the board", bytes, &samples, NULL);
		samples_free(&samples);
	}
	return 0;
}

static int measure_board(const struct config *c, struct gpu_bench *g)
{
	static const char what[] = "copies to the board";
	struct rashpa_board_view memory;
	struct rashpa_board *board;
	char why[WHY_SIZE];
	uint64_t room;
	int result = 0;

	if (!c->settings.device)
		return 0;
	if (rashpa_board_open(c->settings.device, &board) || rashpa_board_claim(board) ||
	    rashpa_board_window(board, "memory", &memory)) {
		report_leave_out(c->settings.report, what, "%s", rashpa_reason());
		rashpa_board_close(board);
		return 0;
	}
	room = memory.length < c->copies ? memory.length : c->copies;
	if (g->by->board(g, memory.base, room / 4096 * 4096, why)) {
		report_leave_out(c->settings.report, what, "%s", why);
	} else {
		result = copy_to_board(c, g, room / 4096 * 4096);
		g->by->board(g, NULL, 0, why);
	}
	rashpa_board_close(board);
	return result;
}

/* --- stages --- */

/* The sums of stages in Table 4.1 of the thesis. */
static const struct {
	const char *name, *config;
} pipelines[] = {
	{ "an image: pretreat", "{\"pretreat\": {\"gain\": 40}}" },
	{ "an image: pretreat, peaks",
	  "{\"pretreat\": {\"gain\": 40},"
	  "\"peaks\": {\"finder\": \"pyfai\", \"centre\": [0, 0]}}" },
	{ "an image: pretreat, veto, CSR", "{\"pretreat\": {\"gain\": 40},"
	  "\"veto\": {\"threshold\": 5, \"pixels\": 1}, \"compress\": {\"threshold\": 5}}" },
};

struct work {
	uint32_t width, height;
	uint16_t *raw;
	struct rashpa_pipeline *pipeline;
	struct rashpa_result *result;
};

static size_t pixels(const struct work *w)
{
	return (size_t)w->width * w->height;
}

static int open_work(const struct config *c, struct work *w, const char *config)
{
	const struct rashpa_geometry geometry = {
		.width = w->width, .height = w->height, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
	};

	w->raw = malloc(pixels(w) * sizeof(*w->raw));
	if (!w->raw)
		return fail("no memory for images of %zu pixels", pixels(w));
	for (size_t i = 0; i < pixels(w); i++)
		w->raw[i] = i * 7 % 30 + (i % SIGNAL ? 0 : 400);
	if (rashpa_pipeline_open(config, c->engine, &w->pipeline) ||
	    rashpa_pipeline_begin(w->pipeline, &geometry))
		return fail("%s", rashpa_reason());
	w->result = rashpa_result_new(w->pipeline);
	return w->result ? 0 : fail("no memory for a result");
}

static void close_work(struct work *w)
{
	rashpa_result_free(w->result);
	rashpa_pipeline_close(w->pipeline);
	free(w->raw);
}

/* GPU memory traffic of a stage for an image: bytes that it reports, and its calibration. */
static uint64_t moved(const struct work *w, const struct rashpa_stage_stat *s)
{
	const uint64_t planes = strcmp(s->name, "pretreat") ? 0 : 2 * sizeof(float) * pixels(w);

	return (s->bytes_in + s->bytes_out) / s->images + planes;
}

static bool is_on_gpu(const char *stage)
{
	return !strcmp(stage, "pretreat") || !strcmp(stage, "veto") || !strcmp(stage, "compress");
}

/* Add rows that compare each stage with a copy of the same number of bytes. */
static void add_stages(const struct config *c, const struct work *w, const struct samples *copy,
		       uint64_t copied, struct samples *ours)
{
	struct rashpa_pipeline_stat stat;

	rashpa_pipeline_get_stat(w->pipeline, &stat);
	for (uint32_t i = 0; i < stat.stages && i < STAGES; i++) {
		struct row row = {
			.name = stat.stage[i].name, .backend = c->who, .peer = "a copy in it",
			.unit = UNIT_GBPS, .size = pixels(w) * sizeof(*w->raw),
		};
		struct samples theirs = {};

		if (!stat.stage[i].images || !is_on_gpu(stat.stage[i].name))
			continue;
		row.accesses = moved(w, &stat.stage[i]);
		for (size_t k = 0; k < copy->count; k++)
			samples_add(&theirs, copy->value[k] * row.accesses / (2 * copied));
		report_row(c->settings.report, &row, &ours[i], &theirs);
		samples_free(&theirs);
	}
}

static int measure_pipeline(const struct config *c, struct gpu_bench *g, struct work *w,
			    unsigned int which)
{
	struct report *report = c->settings.report;
	struct samples whole = {}, copy = {}, ours[STAGES] = {};
	const uint64_t copied = pixels(w) * sizeof(float) < c->copies ?
				pixels(w) * sizeof(float) : c->copies;
	int result = open_work(c, w, pipelines[which].config);

	for (unsigned int r = 0; r <= report->repeat && !result && going_on(); r++) {
		const uint64_t copy_ns = g->by->copy(g, GPU_INSIDE, copied);
		struct rashpa_pipeline_stat stat;
		uint64_t before[STAGES] = {}, begin;

		rashpa_pipeline_get_stat(w->pipeline, &stat);
		for (uint32_t i = 0; i < stat.stages && i < STAGES; i++)
			before[i] = stat.stage[i].ns;
		begin = now_ns();
		if (rashpa_pipeline_run(w->pipeline, w->raw, w->width * sizeof(*w->raw),
					w->result) < 0)
			result = fail("%s", rashpa_reason());
		begin = now_ns() - begin;
		progress_show(&report->progress, "%zu pixels, %s: round %u of %u", pixels(w),
			      pipelines[which].name, r, report->repeat);
		if (!r || result)
			continue;
		samples_add(&copy, copy_ns);
		samples_add(&whole, begin);
		for (uint32_t i = 0; i < stat.stages && i < STAGES; i++)
			samples_add(&ours[i], stat.stage[i].ns - before[i]);
	}
	if (whole.count && !result && going_on()) {
		report_row(report, &(struct row) {
			.name = pipelines[which].name, .backend = c->who, .unit = UNIT_US,
			.size = pixels(w) * sizeof(*w->raw),
		}, &whole, NULL);
		/* the last pipeline has all stages of the GPU */
		if (which == sizeof(pipelines) / sizeof(pipelines[0]) - 1)
			add_stages(c, w, &copy, copied, ours);
	}
	samples_free(&whole);
	samples_free(&copy);
	for (unsigned int i = 0; i < STAGES; i++)
		samples_free(&ours[i]);
	close_work(w);
	return result;
}

/* --- images that the GPU takes without the host --- */

static const char * const drives[][2] = {
	[RASHPA_DRIVE_LAUNCH] = {
		"an image, driven by launches", "an image in the GPU, driven by launches",
	},
	[RASHPA_DRIVE_AHEAD] = {
		"an image, driven by launches ahead", "an image in the GPU, driven by launches ahead",
	},
	[RASHPA_DRIVE_POLL] = {
		"an image, driven by a kernel that stays",
		"an image in the GPU, driven by a kernel that stays",
	},
};

/* Time in which the GPU processes and rejects the waiting images, ns; 0 after a message. */
static uint64_t drive(struct rashpa_pipeline *pipeline, const struct rashpa_drive_plan *plan)
{
	struct rashpa_drive *d;
	struct rashpa_driven none;
	unsigned long long from, took;
	int got;

	if (rashpa_drive_open(&pipeline, 1, plan, &d)) {
		fail("%s", rashpa_reason());
		return 0;
	}
	from = now_ns();
	rashpa_drive_arrived(d, plan->images);
	got = rashpa_drive_next(d, &none, -1);
	took = now_ns() - from;
	if (got)
		fail("%s", got == 1 ? "an image was accepted instead of vetoed" : rashpa_reason());
	if (rashpa_drive_close(d)) {
		fail("%s", rashpa_reason());
		return 0;
	}
	return got ? 0 : took;
}

#define WAYS	(sizeof(drives) / sizeof(drives[0]))

/* Measure all ways in turn, with images in host memory or in the GPU. */
static int measure_ways_of(const struct config *c, const struct work *w,
			   struct rashpa_drive_plan *plan, bool in_gpu)
{
	struct report *report = c->settings.report;
	struct samples samples[WAYS] = {};
	int result = 0;

	for (unsigned int r = 0; r <= report->repeat && !result && going_on(); r++) {
		progress_show(&report->progress, "%zu pixels, driven: round %u of %u", pixels(w), r,
			      report->repeat);
		for (size_t i = 0; i < WAYS && !result; i++) {
			const size_t way = turn(r, i, WAYS);
			uint64_t ns;

			plan->way = way;
			ns = drive(w->pipeline, plan);
			result = ns ? 0 : EXIT_FAILED;
			if (r && ns)
				samples_add(&samples[way], ns / DRIVEN);
		}
	}
	for (size_t way = 0; way < WAYS; way++) {
		if (samples[way].count && !result && going_on())
			report_row(report, &(struct row) {
				.name = drives[way][in_gpu], .backend = c->who, .unit = UNIT_US,
				.size = pixels(w) * sizeof(*w->raw),
			}, &samples[way], NULL);
		samples_free(&samples[way]);
	}
	return result;
}

static const char all_vetoed[] =
	"{\"pretreat\": {\"gain\": 40}, \"veto\": {\"threshold\": 1e9, \"pixels\": 1}}";

static struct rashpa_drive_plan plan_of(const struct work *w)
{
	return (struct rashpa_drive_plan) {
		.images = DRIVEN, .step = pixels(w) * sizeof(*w->raw), .slots = SLOTS,
		.credits = 2, .ahead = 4, .patience_ns = 60000000000,
	};
}

static const char every_other[] =
	"{\"pretreat\": {\"gain\": 40}, \"veto\": {\"threshold\": 5, \"pixels\": 1}}";

/* Copies in, kernels and copies out of accepted images: each other one. Frees the images. */
static int write_timeline(const struct config *c, struct work *w, struct rashpa_drive_plan plan,
			  uint8_t *ring)
{
	struct rashpa_drive *d;
	struct rashpa_driven one;
	int result = open_work(c, w, every_other), got = -1;

	plan.way = RASHPA_DRIVE_AHEAD;
	plan.images = TRACED;
	plan.credits = TRACED;
	plan.trace = c->trace;
	plan.raw = ring;
	for (uint32_t i = 1; i < SLOTS; i += 2)
		memset(ring + i * plan.step, 0, plan.step);
	if (!result && rashpa_drive_open(&w->pipeline, 1, &plan, &d))
		result = fail("%s", rashpa_reason());
	if (!result) {
		rashpa_drive_arrived(d, plan.images);
		do {
			got = rashpa_drive_next(d, &one, -1);
			if (got == 1)
				rashpa_drive_release(d, &one);
		} while (got == 1);
		if (got || rashpa_drive_close(d))
			result = fail("%s", rashpa_reason());
	}
	close_work(w);
	return result;
}

/* Images in host memory, which the GPU reads directly, or copies. */
static int measure_drives(const struct config *c, struct work *w)
{
	struct rashpa_drive_plan plan = plan_of(w);
	void *ring;
	int result;

	if (!(c->can & RASHPA_GPU_HOST)) {
		report_leave_out(c->settings.report, "images that the GPU takes without the host",
				 "%s cannot access host memory", c->who);
		return 0;
	}
	ring = aligned_alloc(ALIGNED, (SLOTS * plan.step + ALIGNED - 1) / ALIGNED * ALIGNED);
	if (!ring)
		return fail("no memory for images");
	result = open_work(c, w, all_vetoed);
	for (uint32_t i = 0; i < SLOTS && !result; i++)
		memcpy((uint8_t *)ring + i * plan.step, w->raw, plan.step);
	plan.raw = ring;
	if (!result)
		result = measure_ways_of(c, w, &plan, false);
	close_work(w);
	if (!result && c->trace && going_on())
		result = write_timeline(c, w, plan, ring);
	free(ring);
	return result;
}

/* Images in GPU memory, where a board writes them, so without a copy. */
static int measure_drives_there(const struct config *c, struct work *w)
{
	static const char what[] = "images in the GPU that it takes without the host";
	struct rashpa_geometry geometry = {
		.width = w->width, .height = w->height, .pixel = RASHPA_PIXEL_U16, .bunch = 1,
		.ring = { .step = pixels(w) * sizeof(*w->raw), .slots = SLOTS },
	};
	struct report *report = c->settings.report;
	uint64_t length = SLOTS * geometry.ring.step;
	struct rashpa_drive_plan plan = plan_of(w);
	const void *base;
	int result = 0;

	if (rashpa_pipeline_open(all_vetoed, c->engine, &w->pipeline))
		return fail("%s", rashpa_reason());
	/* the content does not matter, as no image is accepted */
	if (rashpa_pipeline_offer(w->pipeline, &base, &length) < 0)
		report_leave_out(report, what, "%s", rashpa_reason());
	else if (rashpa_pipeline_begin(w->pipeline, &geometry))
		report_leave_out(report, what, "%s", rashpa_reason());
	else
		result = measure_ways_of(c, w, &plan, true);
	rashpa_pipeline_close(w->pipeline);
	return result;
}

static int measure_size(const struct config *c, struct gpu_bench *g, uint64_t size)
{
	uint32_t width = 1;
	int result = 0;

	/* as square as possible with powers of two, and not higher than wide */
	while ((uint64_t)width * width < size)
		width *= 2;
	for (unsigned int i = 0; i < sizeof(pipelines) / sizeof(pipelines[0]) && !result; i++) {
		if (going_on())
			result = measure_pipeline(c, g, &(struct work) {
				.width = width, .height = size / width,
			}, i);
	}
	if (!result && going_on())
		result = measure_drives(c, &(struct work) {
			.width = width, .height = size / width,
		});
	if (!result && going_on())
		result = measure_drives_there(c, &(struct work) {
			.width = width, .height = size / width,
		});
	return result;
}

static int measure(struct config *c, struct gpu_bench *g, const struct rashpa_gpu_info *info)
{
	int result;

	c->can = info->flags;
	snprintf(c->who, sizeof(c->who), "%.200s%s", info->name,
		 info->flags & RASHPA_GPU_SOFTWARE ? ", a program on processors: no GPU" : "");
	result = measure_ways(c, g);
	if (!result)
		result = measure_reads(c, g);
	if (!result)
		result = measure_copies(c, g);
	if (!result)
		result = measure_board(c, g);
	for (size_t i = 0; i < c->sizes && !result && going_on(); i++)
		result = measure_size(c, g, c->size[i]);
	return result;
}

int cmd_gpu(int argc, char **argv)
{
	struct report report = { .repeat = 21, .iommu = -1 };
	struct config c = {
		.settings.report = &report, .size = { 512 << 10, 4 << 20 }, .sizes = 2,
		.engine = "vulkan", .copies = 64 << 20,
	};
	struct rashpa_gpu_info info;
	char why[WHY_SIZE];
	struct gpu_bench *g;
	bool bad = false;
	int result = 0;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	catch_signals();
	progress_init(&report.progress, true);
	g = (c.engine[0] == 'c' ? gpu_by_cuda : gpu_by_vulkan).open(c.engine, c.copies, &info, why);
	if (g)
		result = measure(&c, g, &info);
	else
		report_leave_out(&report, c.engine, "%s", why);
	progress_end(&report.progress);
	if (g)
		g->by->close(g);
	if (settings_text(&c.settings))
		report_print(&report);
	if (c.settings.json)
		bad |= report_json(&report, "gpu");
	if (!result)
		result = measured(report.rows, bad);
	report_free(&report);
	return result;
}
