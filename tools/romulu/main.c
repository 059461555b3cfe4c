// SPDX-License-Identifier: LGPL-2.1-or-later
/* romulu: receive a stream from a buffer. See romulu(1). */
#include <argp.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json-out.h"
#include "parse.h"
#include "rashpa.h"
#include "romulu.h"
#include "say.h"
#include "stop.h"

#define HOLD_BYTES	(1u << 30)

const char *argp_program_version = "romulu " RASHPA_VERSION;

enum {
	OPT_CHECK = 256, OPT_NO_CHECK, OPT_WRITE, OPT_FROM_START,
};

static const struct argp_option options[] = {
	{ "check", OPT_CHECK, NULL, 0, "compare every frame with the dataset (default)", 0 },
	{ "no-check", OPT_NO_CHECK, NULL, 0, "touch no pixel, only count", 0 },
	{ "write", OPT_WRITE, "FILE", 0, "append the frames to a file", 0 },
	{ "from-start", OPT_FROM_START, NULL, 0,
	  "begin at the first stack of the stream, also of one that has ended", 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &c->opt;
		break;
	case OPT_CHECK:
		c->engine = &engine_check;
		break;
	case OPT_NO_CHECK:
		c->engine = &engine_count;
		break;
	case OPT_WRITE:
		c->engine = &engine_write;
		c->write = arg;
		break;
	case OPT_FROM_START:
		c->from_start = true;
		break;
	case ARGP_KEY_END:
		if (c->write && c->engine != &engine_write)
			argp_error(state, "--write excludes --check and --no-check");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.children = stream_options_child,
	.doc = "Receive a stream of images from a buffer."
	       "\vExit status: 0 all frames arrived and are right, 1 failed, 2 usage, "
	       "3 no progress in time, 4 frames were lost or are wrong.",
};

static void print_left_out(const struct report *r)
{
	printf("skipped  %" PRIu64, r->skipped);
	if (r->told) {
		printf(": %" PRIu64 " stacks dropped, %" PRIu64 " frames lost by the source",
		       r->dropped, r->source_lost);
		printf(", %" PRIu64 " missed; %" PRIu64 " not accounted for", r->source_missed,
		       r->unaccounted);
	}
	printf("\n");
}

static void print_text(const struct report *r)
{
	const struct samples *l = &r->latency;

	printf("frames   %" PRIu64 " in %" PRIu64 " stacks%s\n", r->frames, r->stacks,
	       r->interrupted ? ", interrupted" : "");
	printf("lost     %" PRIu64 "\n", r->lost);
	printf("corrupt  %" PRIu64 " (%" PRIu64 " duplicate, %" PRIu64 " never written)\n",
	       r->corrupt, r->duplicate, r->unwritten);
	if (r->stream.live || r->stream.policy == RASHPA_STREAM_DROP)
		print_left_out(r);
	if (r->dark)
		printf("dark     %" PRIu64 " of the frames\n", r->dark);
	if (r->incomplete)
		printf("lines    %" PRIu64 " missing, of %" PRIu64 " frames\n", r->missing_lines,
		       r->incomplete);
	printf("bytes    %" PRIu64 "\n", r->bytes);
	if (r->ns)
		printf("time     %.6f s, %.6f GB/s\n", r->ns / 1e9, (double)r->bytes / r->ns);
	if (l->count)
		printf("latency  p50 %.1f us, p99 %.1f us, max %.1f us (%" PRIu64 " samples)\n",
		       percentile(l->value, l->count, 50) / 1e3,
		       percentile(l->value, l->count, 99) / 1e3,
		       l->max / 1e3, l->all);
	printf("waits    %" PRIu64 ", %" PRIu64 " stacks without one\n", r->waits,
	       r->stacks_without_wait);
	printf("group    %" PRIu32 " process%s, %" PRIu64 " events, %" PRIu64 " overruns\n",
	       r->stream.processes, r->stream.processes == 1 ? "" : "es", r->events, r->overruns);
	printf("map      %s, %" PRIu32 " segment%s, iommu %s, fpga%" PRIu32 "\n",
	       rashpa_class_name(r->stream.map_class), r->stream.segments,
	       r->stream.segments == 1 ? "" : "s", r->iommu ? "on" : "off", r->fpga);
}

static struct json_object *latency_json(const struct samples *l)
{
	struct json_object *o = json_object_new_object();

	put_u64(o, "samples", l->all);
	if (l->count) {
		put_u64(o, "p50", percentile(l->value, l->count, 50));
		put_u64(o, "p99", percentile(l->value, l->count, 99));
		put_u64(o, "max", l->max);
	} else {
		put_text(o, "p50", NULL);
		put_text(o, "p99", NULL);
		put_text(o, "max", NULL);
	}
	return o;
}

/* null, if the producer did not say: only of streams that leave frames out */
static void put_told(struct json_object *to, const char *key, const struct report *r,
		     uint64_t value)
{
	if (r->told)
		put_u64(to, key, value);
	else
		put_text(to, key, NULL);
}

static int print_json(const struct config *c, const struct dataset *dataset, const struct report *r)
{
	static const char *const policies[] = { "wait", "overwrite", "drop" };
	struct json_object *o = json_object_new_object();

	put_text(o, "buffer", c->opt.buffer);
	put_int(o, "fpga", r->fpga);
	put_int(o, "vector", r->vector);
	put_text(o, "mode", c->engine->name);
	put_text(o, "source", c->engine == &engine_check ? dataset->source : NULL);
	put_bool(o, "interrupted", r->interrupted);
	put_bool(o, "paced", r->stream.policy != RASHPA_STREAM_OVERWRITE);
	put_u64(o, "frames", r->frames);
	put_u64(o, "stacks", r->stacks);
	put_u64(o, "lost", r->lost);
	put_u64(o, "corrupt", r->corrupt);
	put_u64(o, "duplicate", r->duplicate);
	put_u64(o, "unwritten", r->unwritten);
	put_bool(o, "live", r->stream.live);
	put_text(o, "policy", policies[r->stream.policy]);
	put_u64(o, "skipped", r->skipped);
	put_told(o, "dropped", r, r->dropped);
	put_told(o, "source_lost", r, r->source_lost);
	put_told(o, "source_missed", r, r->source_missed);
	put_told(o, "unaccounted", r, r->unaccounted);
	put_u64(o, "dark", r->dark);
	put_u64(o, "incomplete", r->incomplete);
	put_u64(o, "missing_lines", r->missing_lines);
	put_u64(o, "bytes", r->bytes);
	put_real(o, "seconds", r->ns / 1e9);
	if (r->ns)
		put_real(o, "bytes_per_second", r->bytes * 1e9 / r->ns);
	else
		put_text(o, "bytes_per_second", NULL);
	json_object_object_add(o, "latency_ns", latency_json(&r->latency));
	put_u64(o, "waits", r->waits);
	put_u64(o, "stacks_without_wait", r->stacks_without_wait);
	put_u64(o, "events", r->events);
	put_u64(o, "events_lost", r->events_lost);
	put_u64(o, "overruns", r->overruns);
	put_int(o, "dtps", r->stream.processes);
	put_int(o, "bunch", r->stream.bunch);
	put_int(o, "slots", r->stream.slots);
	put_int(o, "segments", r->stream.segments);
	put_text(o, "class", rashpa_class_name(r->stream.map_class));
	put_bool(o, "iommu", r->iommu);
	return json_finish(o);
}

/* Images that are read before there is a stream, which could not wait for them. */
static uint32_t at_once(const struct dataset *d)
{
	const size_t fit = HOLD_BYTES / dataset_bytes(d);

	return d->images < fit ? d->images : fit;
}

int main(int argc, char **argv)
{
	volatile bool *stop = stop_on_signals();
	struct config config = { .engine = &engine_check };
	struct report report = {};
	struct dataset dataset = {};
	char why[WHY_SIZE];
	int result;

	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &config);

	if (config.engine == &engine_check &&
	    (dataset_open(&dataset, config.opt.dataset, &config.opt.geometry, why) ||
	     (config.opt.darks &&
	      dataset_add_darks(&dataset, config.opt.darks, &config.opt.geometry,
				config.opt.dark_every, why)) ||
	     dataset_hold(&dataset, at_once(&dataset), why)))
		return fail("%s", why);
	result = receive(&config, &dataset, stop, &report);
	samples_sort(&report.latency);
	if (report.attached) {
		if (!config.opt.json)
			print_text(&report);
		else if (print_json(&config, &dataset, &report) && !result)
			result = EXIT_FAILED;
	}
	samples_free(&report.latency);
	dataset_close(&dataset);
	return result;
}
