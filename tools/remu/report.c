// SPDX-License-Identifier: LGPL-2.1-or-later
/* The report of a stream by a board. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include "common/json-out.h"
#include <rashpa.h>
#include <rashpa-fpga.h>
#include "remu/remu.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static void print_figures(const struct report *r, double seconds, bool live)
{
	const struct rashpa_dtp_stat *c = &r->count;

	printf("images      %" PRIu64 " in %" PRIu64 " stacks from stack %" PRIu64 "%s\n",
	       c->images, c->stacks, r->first_stack, r->interrupted ? ", interrupted" : "");
	printf("bytes       %" PRIu64 "\n", c->bytes);
	printf("descriptors %" PRIu64 "\n", c->descriptors);
	printf("events      %" PRIu64 "\n", c->events);
	printf("overruns    %" PRIu64 "\n", c->overruns);
	printf("dropped     %" PRIu64 " stacks\n", c->dropped);
	if (live)
		printf("source      %" PRIu64 " lost, %" PRIu64 " missed, FIFO %" PRIu64 "\n",
		       c->lost, c->missed, c->fifo_peak);
	printf("stalls      %" PRIu64 " ticks for credit, %" PRIu64 " for the bus, %" PRIu64 " for the source\n",
	       c->stall, c->stall_bus, c->stall_source);
	printf("faults      %" PRIu64 "\n", c->faults);
	if (seconds > 0)
		printf("time        %.9f s, %.6f GB/s\n", seconds, c->bytes / seconds / 1e9);
}

static void print_text(const struct report *r, const struct dataset *dataset, double seconds,
		       bool live)
{
	if (r->counted)
		print_figures(r, seconds, live);
	else
		puts("the board does not answer: its counts are not known");
	printf("dataset     %" PRIu32 " of %" PRIu32 " images loaded\n", r->loaded,
	       dataset->images);
	printf("map         %s, %" PRIu32 " segment%s, iommu %s, %" PRIu32 " slots\n",
	       rashpa_class_name(r->map_class), r->segments, r->segments == 1 ? "" : "s",
	       r->iommu ? "on" : "off", r->slots);
}

/* The counts of the board as JSON names them. */
static const struct {
	const char *key;
	size_t at;
} figures[] = {
	{ "images", offsetof(struct rashpa_dtp_stat, images) },
	{ "stacks", offsetof(struct rashpa_dtp_stat, stacks) },
	{ "bytes", offsetof(struct rashpa_dtp_stat, bytes) },
	{ "descriptors", offsetof(struct rashpa_dtp_stat, descriptors) },
	{ "events", offsetof(struct rashpa_dtp_stat, events) },
	{ "overruns", offsetof(struct rashpa_dtp_stat, overruns) },
	{ "dropped", offsetof(struct rashpa_dtp_stat, dropped) },
	{ "source_lost", offsetof(struct rashpa_dtp_stat, lost) },
	{ "source_missed", offsetof(struct rashpa_dtp_stat, missed) },
	{ "fifo_peak", offsetof(struct rashpa_dtp_stat, fifo_peak) },
	{ "stall_ticks", offsetof(struct rashpa_dtp_stat, stall) },
	{ "stall_bus_ticks", offsetof(struct rashpa_dtp_stat, stall_bus) },
	{ "stall_source_ticks", offsetof(struct rashpa_dtp_stat, stall_source) },
	{ "faults", offsetof(struct rashpa_dtp_stat, faults) },
	{ "start_ticks", offsetof(struct rashpa_dtp_stat, start) },
	{ "stop_ticks", offsetof(struct rashpa_dtp_stat, stop) },
};

/* A number from the board; null if the board did not answer. */
static void put_figure(struct json_object *to, const char *key, const struct report *r,
		       uint64_t value)
{
	if (r->counted)
		put_u64(to, key, value);
	else
		put_text(to, key, NULL);
}

static int print_json(const struct config *c, const struct dataset *dataset,
		      const struct report *r, double seconds)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "transport", c->net.transport->name);
	put_text(o, "buffer", c->opt.buffer);
	put_int(o, "fpga", c->fpga);
	put_text(o, "dataset", dataset->source);
	put_int(o, "dataset_images", dataset->images);
	put_int(o, "loaded_images", r->loaded);
	put_int(o, "dtps", r->dtps);
	put_int(o, "bunch", c->bunch);
	put_int(o, "slots", r->slots);
	put_int(o, "sampling", c->sampling);
	put_int(o, "phase", c->phase);
	put_bool(o, "live", c->live);
	put_text(o, "policy", policies[c->policy]);
	put_bool(o, "paced", c->policy != RASHPA_STREAM_OVERWRITE);
	put_bool(o, "interrupted", r->interrupted);
	put_u64(o, "first_stack", r->first_stack);
	for (size_t i = 0; i < ARRAY_SIZE(figures); i++) {
		const void *figure = (const char *)&r->count + figures[i].at;

		put_figure(o, figures[i].key, r, *(const uint64_t *)figure);
	}
	if (r->counted)
		put_real(o, "seconds", seconds);
	else
		put_text(o, "seconds", NULL);
	if (r->counted && seconds > 0)
		put_real(o, "bytes_per_second", r->count.bytes / seconds);
	else
		put_text(o, "bytes_per_second", NULL);
	put_u64(o, "load_bytes", r->load_bytes);
	put_real(o, "load_seconds", r->load_ns / 1e9);
	put_text(o, "class", rashpa_class_name(r->map_class));
	put_int(o, "segments", r->segments);
	put_bool(o, "iommu", r->iommu);
	return json_finish(o);
}

int report_board(const struct config *c, const struct dataset *dataset, const struct report *r)
{
	const double seconds = r->count.stop > r->count.start ?
			       (r->count.stop - r->count.start) * (RFPGA_TICK_NS / 1e9) : 0;

	if (c->opt.json)
		return print_json(c, dataset, r, seconds);
	print_text(r, dataset, seconds, c->live);
	return 0;
}
