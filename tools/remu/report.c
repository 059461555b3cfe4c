// SPDX-License-Identifier: LGPL-2.1-or-later
/* The report of a stream by a board. */
#include <inttypes.h>
#include <stdio.h>

#include "common/json-out.h"
#include <rashpa.h>
#include <rashpa-fpga.h>
#include "remu/remu.h"

static void print_figures(const struct report *r, double seconds, bool live)
{
	printf("images      %" PRIu64 " in %" PRIu64 " stacks from stack %" PRIu64 "%s\n",
	       r->images, r->stacks, r->first_stack, r->interrupted ? ", interrupted" : "");
	printf("bytes       %" PRIu64 "\n", r->bytes);
	printf("descriptors %" PRIu64 "\n", r->descriptors);
	printf("events      %" PRIu64 "\n", r->events);
	printf("overruns    %" PRIu64 "\n", r->overruns);
	printf("dropped     %" PRIu64 " stacks\n", r->dropped);
	if (live)
		printf("source      %" PRIu64 " lost, %" PRIu64 " missed, FIFO %" PRIu64 "\n",
		       r->lost, r->missed, r->fifo_peak);
	printf("stalls      %" PRIu64 " ticks for credit, %" PRIu64 " for the bus, %" PRIu64 " for the source\n",
	       r->stall, r->stall_bus, r->stall_source);
	printf("faults      %" PRIu64 "\n", r->faults);
	if (seconds > 0)
		printf("time        %.9f s, %.6f GB/s\n", seconds, r->bytes / seconds / 1e9);
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
	put_figure(o, "images", r, r->images);
	put_figure(o, "stacks", r, r->stacks);
	put_figure(o, "bytes", r, r->bytes);
	put_figure(o, "descriptors", r, r->descriptors);
	put_figure(o, "events", r, r->events);
	put_figure(o, "overruns", r, r->overruns);
	put_figure(o, "dropped", r, r->dropped);
	put_figure(o, "source_lost", r, r->lost);
	put_figure(o, "source_missed", r, r->missed);
	put_figure(o, "fifo_peak", r, r->fifo_peak);
	put_figure(o, "stall_ticks", r, r->stall);
	put_figure(o, "stall_bus_ticks", r, r->stall_bus);
	put_figure(o, "stall_source_ticks", r, r->stall_source);
	put_figure(o, "faults", r, r->faults);
	put_figure(o, "start_ticks", r, r->start);
	put_figure(o, "stop_ticks", r, r->stop);
	if (r->counted)
		put_real(o, "seconds", seconds);
	else
		put_text(o, "seconds", NULL);
	if (r->counted && seconds > 0)
		put_real(o, "bytes_per_second", r->bytes / seconds);
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
	const double seconds = r->stop > r->start ?
			       (r->stop - r->start) * (RFPGA_TICK_NS / 1e9) : 0;

	if (c->opt.json)
		return print_json(c, dataset, r, seconds);
	print_text(r, dataset, seconds, c->live);
	return 0;
}
