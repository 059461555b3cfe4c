// SPDX-License-Identifier: LGPL-2.1-or-later
/* remu in memory: a program copies the images into the buffer, which may be a file. No board, no driver. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json-out.h"
#include "common/say.h"
#include "common/stop.h"
#include "daemon/led.h"
#include <rashpa.h>
#include <rashpa-stream.h>
#include "remu/remu.h"

#define TICK_NS		100000000ull	/* between looks at the leader and at signals */

struct run {
	const struct config *config;
	struct dataset *dataset;
	volatile bool *stop;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	struct progress progress;
	uint64_t start_ns, end_ns, waited_ns;
	uint64_t images, stacks, dropped;	/* dropped: stacks */
	uint64_t image_bytes;		/* of all regions */
	/* when images are due */
	uint64_t period;		/* ticks; 0: as soon as there is a slot */
	uint64_t base_ns, base_frame;	/* time and number of the image from which others count */
	bool paused;
};

static int open_stream(struct run *r)
{
	const struct config *c = r->config;
	struct rashpa_stream_process process[RFPGA_DTPS_MAX];
	struct rashpa_stream_plan plan;

	plan_stream(&plan, process, c, r->dataset);
	plan.header.dataset_images = r->dataset->held;
	plan.header.dataset_sum = r->dataset->sum[r->dataset->held - 1];
	for (unsigned int i = 0; i < c->regions; i++)
		r->image_bytes += (uint64_t)c->region[i].width * c->region[i].height *
				  pixel_bytes(plan.header.pixel);
	if (rashpa_stream_create(c->opt.buffer, &plan, &r->stream))
		return fail("%s", rashpa_reason());
	r->about = rashpa_stream_get_header(r->stream);
	return 0;
}

static void copy_region(const struct run *r, const struct region *region, uint32_t from, uint8_t *to)
{
	const uint32_t pixel = pixel_bytes(r->dataset->geometry.pixel);
	const size_t bytes = (size_t)region->width * pixel;

	to += region->to_y * r->about->line_stride + (size_t)region->to_x * pixel;
	for (uint32_t y = 0; y < region->height; y++)
		memcpy(to + y * r->about->line_stride,
		       dataset_line(r->dataset, from, region->y + y) + (size_t)region->x * pixel,
		       bytes);
}

static void copy_image(const struct run *r, const struct rashpa_stack *stack, uint32_t image)
{
	const uint64_t n = r->dataset->held;
	const uint32_t from = ((stack->frame + image) % n * (r->config->sampling % n) +
			       r->config->phase) % n;

	for (unsigned int i = 0; i < r->config->regions; i++)
		copy_region(r, &r->config->region[i], from, rashpa_stack_pixels(stack, image));
}

/* --- when --- */

/* The next image is due now. */
static void begin_anew(struct run *r, uint64_t frame)
{
	r->base_ns = now_ns();
	r->base_frame = frame;
}

static struct json_object *counts(const struct run *r)
{
	struct json_object *o = json_object_new_object(), *all = json_object_new_object();

	put_u64(all, "images", r->images);
	put_u64(all, "stacks", r->stacks);
	put_u64(all, "dropped", r->dropped * r->about->bunch);
	put_u64(all, "waited", r->waited_ns);
	json_object_object_add(o, "counts", all);
	return o;
}

/* Take a command of the leader, before image @frame. */
static void obey(struct run *r, uint64_t frame)
{
	const struct led_command c = led_take();

	switch (c.kind) {
	case LED_PAUSE:
		r->paused = true;
		led_say("paused", NULL);
		break;
	case LED_RESUME:
		if (r->paused)
			begin_anew(r, frame);
		r->paused = false;
		led_say("resumed", NULL);
		break;
	case LED_RATE:
		if (!r->period) {
			led_refuse("this stream has no rate: its receiver sets the pace");
			break;
		}
		r->period = 1e9 / RFPGA_TICK_NS / c.rate + 0.5;
		begin_anew(r, frame);
		led_say("rated", NULL);
		break;
	default:
		break;
	}
	if (led_due())
		led_say("status", counts(r));
}

/* Until this image is due. */
static void pace(struct run *r, uint64_t frame)
{
	struct pollfd leader = { .fd = led_fd(), .events = POLLIN };
	uint64_t now, due;

	while (!*r->stop) {
		if (led())
			obey(r, frame);
		now = now_ns();
		due = r->period ? r->base_ns + (frame - r->base_frame) * r->period * RFPGA_TICK_NS : now;
		if (!r->paused && now >= due)
			return;
		if (r->paused || due > now + TICK_NS)
			due = now + TICK_NS;
		stop_poll(&leader, 1, due);
	}
}

/* --- the run --- */

/* 1; 0: all are sent, or stop; or an exit code as a negative number */
static int take_slot(struct run *r, uint64_t *frame, struct rashpa_stack *stack)
{
	const uint64_t timeout = r->config->opt.timeout * 1e9;
	uint64_t begin = 0, asked;
	int result = 0;

	while (!*r->stop) {
		pace(r, *frame);
		if (*r->stop)
			return 0;
		asked = now_ns();
		/* neither a pause nor the time until the image is due counts */
		begin = begin ? begin : asked;
		result = rashpa_stream_slot(r->stream, stack, TICK_NS);
		r->waited_ns += now_ns() - asked;
		if (result == -ENOBUFS) {
			r->dropped++;
			*frame += r->config->bunch;
		} else if (result != -ETIMEDOUT && result != -EINTR) {
			break;
		}
		progress_show(&r->progress, "%" PRIu64 " images sent, waiting for the receiver", r->images);
		if (!timeout || now_ns() - begin < timeout)
			continue;
		say("no progress for %g s after %" PRIu64 " stacks: is there a receiver (romulu)?",
		    r->config->opt.timeout, r->stacks);
		return -EXIT_TIMEOUT;
	}
	if (*r->stop)
		return 0;
	return result < 0 ? -fail("%s", rashpa_reason()) : result;
}

static int stream_all(struct run *r)
{
	uint64_t frame = r->about->first_stack * r->about->bunch;
	struct rashpa_stack stack;
	int result;

	if (rashpa_stream_start(r->stream, 0, 0))
		return fail("%s", rashpa_reason());
	progress_init(&r->progress, r->config->opt.progress);
	r->period = r->config->period;
	r->start_ns = now_ns();
	begin_anew(r, frame);
	while ((result = take_slot(r, &frame, &stack)) > 0) {
		if (!stack.data) {
			result = -fail("memory %s: no program can write there", r->config->payload);
			break;
		}
		for (uint32_t i = 0; i < stack.images && !*r->stop; i++) {
			pace(r, stack.frame + i);
			copy_image(r, &stack, i);
		}
		/* one that a signal ends in its middle is never delivered */
		if (*r->stop)
			break;
		rashpa_stream_publish(r->stream, &stack);
		frame = stack.frame + stack.images;
		r->images += stack.images;
		r->stacks++;
		progress_show(&r->progress, "%" PRIu64 " images sent", r->images);
	}
	r->end_ns = now_ns();
	progress_end(&r->progress);
	rashpa_stream_end(r->stream, NULL);
	if (led())
		led_say("status", counts(r));
	return result < 0 ? -result : 0;
}

static int report(const struct run *r)
{
	const double seconds = (r->end_ns - r->start_ns) / 1e9;
	const uint64_t bytes = r->images * r->image_bytes;
	struct json_object *o;

	if (!r->config->opt.json) {
		printf("images      %" PRIu64 " in %" PRIu64 " stacks from stack %" PRIu64 "%s\n"
		       "bytes       %" PRIu64 "\n"
		       "dropped     %" PRIu64 " stacks\n"
		       "time        %.6f s, %.6f GB/s\n",
		       r->images, r->stacks, r->about->first_stack, *r->stop ? ", interrupted" : "",
		       bytes, r->dropped, seconds, bytes / seconds / 1e9);
		return 0;
	}
	o = json_object_new_object();
	put_text(o, "transport", r->config->net.transport->name);
	put_text(o, "buffer", r->config->opt.buffer);
	put_text(o, "dataset", r->dataset->source);
	put_int(o, "dataset_images", r->dataset->images);
	put_int(o, "processes", r->config->regions);
	put_int(o, "bunch", r->about->bunch);
	put_int(o, "slots", r->about->slots);
	put_text(o, "policy", policies[r->config->policy]);
	put_bool(o, "paced", r->config->policy != RASHPA_STREAM_OVERWRITE);
	put_bool(o, "interrupted", *r->stop);
	put_u64(o, "first_stack", r->about->first_stack);
	put_u64(o, "images", r->images);
	put_u64(o, "stacks", r->stacks);
	put_u64(o, "bytes", bytes);
	put_u64(o, "dropped", r->dropped);
	put_real(o, "credit_wait_seconds", r->waited_ns / 1e9);
	put_real(o, "seconds", seconds);
	put_real(o, "bytes_per_second", bytes / seconds);
	return json_finish(o);
}

static int run(const struct config *config, struct dataset *dataset, volatile bool *stop)
{
	struct run r = { .config = config, .dataset = dataset, .stop = stop };
	char why[WHY_SIZE];
	int result;

	if (config->live) {
		say("--live: a live source is a board's: --transport pcie");
		return EXIT_USAGE;
	}
	if (dataset_hold(dataset, dataset->images, why))
		return fail("%s", why);
	result = open_stream(&r);
	if (!result) {
		led_say("armed", NULL);
		led_await(LED_START, stop);
	}
	if (!result && !*stop)
		result = stream_all(&r);
	if (r.end_ns && report(&r) && !result)
		result = EXIT_FAILED;
	rashpa_stream_close(r.stream);
	return result;
}

const struct sending sending_memory = { .run = run };
