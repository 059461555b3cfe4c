// SPDX-License-Identifier: LGPL-2.1-or-later
/* remu over PCIe: an FPGA with the reference interface writes into the buffer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "daemon/led.h"
#include <rashpa.h>
#include <rashpa-board.h>
#include <rashpa-stream.h>
#include "remu/remu.h"
#include "common/say.h"
#include "common/stop.h"

#define TICK_MS		250
#define STOP_NS		1000000000ll
#define PAUSED_NS	5000000ull	/* between checks whether the receiver has taken all */

struct run {
	const struct config *config;
	struct dataset *dataset;
	uint32_t loaded;		/* images of the dataset in on-board memory */
	uint64_t sum;			/* checksum of the loaded images */
	int producer;			/* node of the buffer, ours until the stream is open */
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;	/* header that consumers see */
	struct rashpa_board *board;
	struct rashpa_board_info info;
	struct rashpa_board_view memory;
	int channel;
	struct rashpa_run *dtps;
	bool started;
	uint64_t next;			/* first stack of the board since its last start */
	uint64_t period;		/* in ticks */
	bool paused;
	bool wished;			/* resume when the receiver has taken all */
};

/* --- stream --- */

static int open_stream(struct run *r)
{
	const struct config *c = r->config;
	struct rashpa_stream_process process[RFPGA_DTPS_MAX];
	struct rashpa_stream_plan plan;

	plan_stream(&plan, process, c, r->dataset);
	plan.header.live = c->live;
	plan.header.dataset_images = r->loaded;
	plan.header.dataset_sum = r->sum;
	plan.flags |= r->info.features & RFPGA_FEATURE_META ? RASHPA_PLAN_META : 0;
	for (unsigned int i = 0; i < c->regions; i++) {
		process[i].function = RASHPA_STREAM_FPGA;
		process[i].fpga = c->fpga;
		process[i].vector = c->vector;
		process[i].doorbell_offset = i * RFPGA_DOORBELL_PAGE + RFPGA_DB_TAGGED;
	}
	close(r->producer);
	r->producer = -1;
	if (rashpa_stream_create(c->opt.buffer, &plan, &r->stream))
		return fail("%s", rashpa_reason());
	r->about = rashpa_stream_get_header(r->stream);
	return 0;
}

/* --- FPGA --- */

/* Bits of our DTPs, whose numbers are those of the regions. */
static uint32_t dtps(const struct run *r)
{
	return RASHPA_BOARD_DTP(r->config->regions) - 1;
}

static int check_board(const struct run *r)
{
	const struct config *c = r->config;
	const struct rashpa_board_info *b = &r->info;
	struct rashpa_block source;
	/* Without groups each DTP sends interrupts; receivers cope with that. */
	uint32_t want = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK |
			(c->policy ? RFPGA_FEATURE_FREERUN : 0) |
			(c->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_DROP : 0) |
			(c->live || c->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_META : 0);

	if (c->regions > b->dtps)
		return fail("fpga%u: it has %u DTPs, %u are wanted: use fewer --dtp, or --split",
			    b->number, b->dtps, c->regions);
	if (c->vector >= b->vectors)
		return fail("fpga%u: there is no vector %" PRIu32 ": %u can be used", b->number,
			    c->vector, b->vectors);
	if ((b->features & want) != want)
		return fail("fpga%u: it lacks features for this stream (has %#x, needs %#x)",
			    b->number, b->features, want);
	if (c->live && rashpa_board_find_block(r->board, RFPGA_BLOCK_SOURCE, RFPGA_SOURCE_SIZE,
					       &source))
		return fail("fpga%u: it has no live source: stream from memory (without --live)",
			    b->number);
	return 0;
}

static int open_board(struct run *r)
{
	struct rashpa_role role = { .take = RASHPA_ROLE_PRODUCER };
	char name[16];

	snprintf(name, sizeof(name), "fpga%u", r->config->fpga);
	/* Loading takes long: report a missing buffer or another producer first. */
	r->producer = rashpa_buffer_open(r->config->opt.buffer, O_RDWR);
	if (r->producer < 0 || rashpa_buffer_role(r->producer, &role) ||
	    rashpa_board_open(name, &r->board) || rashpa_board_claim(r->board) ||
	    rashpa_board_window(r->board, "memory", &r->memory) ||
	    rashpa_board_get_info(r->board, &r->info))
		return fail("%s", rashpa_reason());
	return 0;
}

/* Number of images of the dataset that fit on the board. */
static int choose_images(struct run *r)
{
	const struct dataset *d = r->dataset;
	const uint64_t room = r->memory.length;
	char has[SIZE_TEXT], image[SIZE_TEXT];
	uint64_t fit;

	format_size(has, room);
	fit = room / dataset_bytes(d);
	if (!fit)
		return fail("fpga%u: an image of %s has %s, on-board memory only %s: use smaller images",
			    r->info.number, d->source, format_size(image, dataset_bytes(d)), has);
	r->loaded = d->images;
	if (r->loaded > fit) {
		r->loaded = fit;
		say("fpga%u: note: %" PRIu32 " of the %" PRIu32
		    " images of %s fit into on-board memory of %s: these go round and round",
		    r->info.number, r->loaded, d->images, d->source, has);
	}
	if (r->loaded > r->info.count_most) {
		r->loaded = r->info.count_most;
		say("fpga%u: note: it counts only %" PRIu32 " of the %" PRIu32
		    " images of %s (LIMITS): these go round and round",
		    r->info.number, r->loaded, d->images, d->source);
	}
	/* the last one is dark, too: they go round and round */
	if (d->dark_every && r->loaded % d->dark_every) {
		r->loaded -= r->loaded % d->dark_every;
		if (!r->loaded)
			return fail("fpga%u: on-board memory of %s keeps %" PRIu64
				    " images: too few for a dark one of every %" PRIu32,
				    r->info.number, has, fit, d->dark_every);
	}
	return 0;
}

static int load_images(struct run *r, void *image, const volatile bool *stop)
{
	const size_t bytes = dataset_bytes(r->dataset);
	struct progress progress;
	char why[WHY_SIZE];
	int result = 0;

	progress_init(&progress, r->config->opt.progress);
	for (uint32_t i = 0; i < r->loaded && !result && !*stop; i++) {
		if (dataset_read(r->dataset, i, image, why)) {
			result = fail("%s", why);
			break;
		}
		r->sum = dataset_add(r->dataset, r->sum, image);
		memcpy((char *)(uintptr_t)r->memory.base + i * bytes, image, bytes);
		progress_show(&progress, "loading image %" PRIu32 " of %" PRIu32, i + 1,
			      r->loaded);
	}
	progress_end(&progress);
	return result;
}

static int load(struct run *r, struct report *report, const volatile bool *stop)
{
	uint64_t begin = now_ns();
	void *image;
	int result = choose_images(r);

	if (result)
		return result;
	image = malloc(dataset_bytes(r->dataset));
	if (!image)
		return fail("no memory for an image of %s", r->dataset->source);
	result = load_images(r, image, stop);
	free(image);
	/* The last write is on board when a read has come back. */
	__sync_synchronize();
	rashpa_board_read(r->board, RFPGA_STATUS);
	report->load_ns = now_ns() - begin;
	report->load_bytes = r->loaded * dataset_bytes(r->dataset);
	report->loaded = r->loaded;
	return result;
}

/* Claim again: loading took long, and not all producers claim a board. */
static int open_dtps(struct run *r)
{
	const struct rashpa_run_plan plan = {
		.line_stride = dataset_line_bytes(r->dataset),
		.image_stride = dataset_bytes(r->dataset),
	};

	if (rashpa_board_claim(r->board) ||
	    rashpa_run_open(r->board, r->stream, &plan, &r->dtps))
		return fail("%s", rashpa_reason());
	return 0;
}

static int open_channel(struct run *r)
{
	r->channel = rashpa_channel_open(rashpa_board_device(r->board), 0);
	if (r->channel < 0 ||
	    rashpa_channel_add(r->channel, RASHPA_SOURCE_DEVICE, 0) < 0 ||
	    rashpa_channel_add(r->channel, RASHPA_SOURCE_VECTOR, r->config->vector) < 0)
		return fail("fpga%u: cannot listen to events: %s", r->info.number, rashpa_reason());
	if (fcntl(r->channel, F_SETFL, O_NONBLOCK))
		return fail("fpga%u: event channel: %s", r->info.number, strerror(errno));
	return 0;
}

static int start(struct run *r)
{
	r->next = r->about->first_stack;
	r->period = r->config->period;
	r->started = true;
	return rashpa_run_start(r->dtps, r->next, r->period) ? fail("%s", rashpa_reason()) : 0;
}

/* Stop, by the driver if necessary. */
static int stop_all(struct run *r)
{
	if (!r->started || !rashpa_run_stop(r->dtps, STOP_NS))
		return 0;
	say("%s: the driver stops it", rashpa_reason());
	if (rashpa_device_quiesce(rashpa_board_device(r->board), NULL))
		return fail("fpga%u: %s", r->info.number, rashpa_reason());
	return 0;
}

/* Stacks sent so far. */
static uint64_t stacks_sent(const struct run *r)
{
	return rashpa_stream_complete(r->stream) - r->about->first_stack;
}

/* Empty the channel. 0, or an exit code if the function was stopped. */
static int take_events(struct run *r)
{
	struct rashpa_event event[64];
	ssize_t n;

	while ((n = read(r->channel, event, sizeof(event))) > 0) {
		for (size_t i = 0; i < n / sizeof(event[0]); i++) {
			if (!rashpa_run_ended_by(r->dtps, &event[i]))
				continue;
			return fail("fpga%u: another process stopped it (%s) after %" PRIu64 " stacks",
				    r->info.number, rashpa_device_event_name(event[i].value),
				    stacks_sent(r));
		}
		if ((size_t)n < sizeof(event))
			return 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return fail("fpga%u: event channel: %s", r->info.number,
			    errno == ENODEV ? "the function was removed" : strerror(errno));
	return 0;
}

static void count(const struct run *r, struct report *report)
{
	report->counted = !rashpa_run_get_stat(r->dtps, &report->count);
	report->dtps = r->about->processes;
	report->segments = r->about->segments;
	report->map_class = r->about->map_class;
	report->iommu = r->info.device_flags & RASHPA_DEVICE_IOMMU;
	report->slots = r->about->slots;
	report->first_stack = r->about->first_stack;
}

/* One past the last stack; UINT64_MAX if endless. */
static uint64_t last_stack(const struct rashpa_stream_header *h)
{
	return h->images ? h->first_stack + (h->images + h->bunch - 1) / h->bunch : UINT64_MAX;
}

/* --- commands of the leader --- */

static void tell_leader(const struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	struct json_object *o = json_object_new_object(), *counts = json_object_new_object();
	const uint64_t whole = stacks_sent(r) * h->bunch;
	struct rashpa_dtp_stat c;

	if (!rashpa_run_get_stat(r->dtps, &c)) {
		/* a stack that stops in its middle is never delivered */
		put_u64(counts, "images", c.images < whole ? c.images : whole);
		put_u64(counts, "stacks", c.stacks);
		put_u64(counts, "bytes", c.bytes);
		put_u64(counts, "dropped", c.dropped * h->bunch + c.lost + c.missed);
		put_u64(counts, "waited", c.stall * RFPGA_TICK_NS);
	}
	json_object_object_add(o, "counts", counts);
	led_say("status", o);
}

/* Pause a stream that loses nothing by it. 0, or an exit code. */
static int pause_board(struct run *r)
{
	if (rashpa_run_stop(r->dtps, STOP_NS))
		return fail("%s", rashpa_reason());
	r->paused = true;
	return 0;
}

/* Resume only if the receiver has returned all slots: a board starts with all slots free. */
static int go_on(struct run *r)
{
	if (!r->wished || rashpa_stream_again(r->stream, &r->next))
		return 0;
	r->wished = false;
	/* after the last stack there is nothing to start or count */
	r->paused = r->next >= last_stack(r->about);
	if (!r->paused && rashpa_run_start(r->dtps, r->next, r->period))
		return fail("%s", rashpa_reason());
	return 0;
}

static bool can_pause(const struct run *r)
{
	if (r->about->live)
		led_refuse("a live source does not wait");
	else if (r->about->policy == RASHPA_STREAM_DROP)
		led_refuse("a stream that leaves stacks out is not paused");
	return !r->about->live && r->about->policy != RASHPA_STREAM_DROP;
}

/* 0, or an exit code */
static int take_command(struct run *r)
{
	const struct led_command c = led_take();
	int result = 0;

	switch (c.kind) {
	case LED_PAUSE:
		if (!can_pause(r))
			break;
		r->wished = false;
		result = r->paused ? 0 : pause_board(r);
		led_say("paused", NULL);
		break;
	case LED_RESUME:
		r->wished = r->paused;
		result = go_on(r);
		led_say("resumed", NULL);
		break;
	case LED_RATE:
		if (!r->period)
			led_refuse("this stream has no rate: its receiver sets the pace");
		if (!r->period || !can_pause(r))
			break;
		r->period = 1e9 / RFPGA_TICK_NS / c.rate + 0.5;
		if (!r->paused) {
			result = pause_board(r);
			r->wished = true;
			result = result ? result : go_on(r);
		}
		led_say("rated", NULL);
		break;
	default:
		break;
	}
	return result;
}

static int wait_done(struct run *r, const volatile bool *stop)
{
	uint64_t end = last_stack(r->about), moved = now_ns(), checked = 0, last = 0, now, stacks;
	struct pollfd fds[] = {
		{ .fd = r->channel, .events = POLLIN }, { .fd = led_fd(), .events = POLLIN },
	};
	const uint64_t timeout = r->config->opt.timeout * 1e9;
	struct progress progress;
	uint32_t any, all;
	int result = 0, wait;

	progress_init(&progress, r->config->opt.progress);
	while (!*stop) {
		stacks = rashpa_stream_complete(r->stream);
		now = now_ns();
		if (stacks != last || r->paused)
			moved = now;
		last = stacks;
		result = take_command(r);
		if (!result)
			result = go_on(r);
		if (result)
			break;
		if (led_due())
			tell_leader(r);
		if (r->next >= end)
			break;
		if (r->paused) {
			stop_poll(fds, 2, now + PAUSED_NS);
			continue;
		}
		if (stacks >= end || now - checked >= TICK_MS * 1000000ull) {
			checked = now;
			if (rashpa_board_status(r->board, dtps(r), &any, &all)) {
				result = fail("%s, after %" PRIu64 " stacks", rashpa_reason(),
					      stacks_sent(r));
				break;
			}
			if (all & RFPGA_DTP_DONE)
				break;
			progress_show(&progress, "%" PRIu64 " images sent%s",
				      stacks_sent(r) * r->about->bunch,
				      any & RFPGA_DTP_WAITING ? ", waiting for the receiver" : "");
		}
		if (timeout && now - moved >= timeout) {
			rashpa_board_status(r->board, dtps(r), &any, &all);
			say("no progress for %g s after %" PRIu64 " stacks%s",
			    r->config->opt.timeout, stacks_sent(r), any & RFPGA_DTP_WAITING ?
			    ": is there a receiver (romulu)?" : "");
			result = EXIT_TIMEOUT;
			break;
		}
		wait = stacks >= end ? 1 : TICK_MS;
		if (timeout && timeout - (now - moved) < wait * 1000000ull)
			wait = (timeout - (now - moved)) / 1000000 + 1;
		if (led() && wait > LED_STATUS_MS)
			wait = LED_STATUS_MS;
		if (poll(fds, 2, wait) > 0 && fds[0].revents) {
			result = take_events(r);
			if (result)
				break;
		}
	}
	progress_end(&progress);
	return result;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_all(struct run *r)
{
	close_fd(r->channel);
	rashpa_run_close(r->dtps);
	rashpa_board_close(r->board);
	close_fd(r->producer);
	rashpa_stream_close(r->stream);
}

static int stream(const struct config *config, struct dataset *dataset, volatile bool *stop,
		  struct report *report)
{
	struct run r = {
		.config = config,
		.dataset = dataset,
		.producer = -1, .channel = -1,
	};
	int result;

	result = open_board(&r);
	if (!result)
		result = check_board(&r);
	if (!result)
		result = load(&r, report, stop);
	if (!result && !*stop)
		result = open_stream(&r);
	if (!result && !*stop)
		result = open_dtps(&r);
	if (!result && !*stop)
		result = open_channel(&r);
	if (!result && !*stop) {
		led_say("armed", NULL);
		led_await(LED_START, stop);
	}
	if (!result && !*stop) {
		result = start(&r);
		if (!result)
			result = wait_done(&r, stop);
		if (stop_all(&r))
			result = EXIT_FAILED;
		report->interrupted = *stop;
		count(&r, report);
		if (led())
			tell_leader(&r);
		/* with the counts by which a receiver accounts for missing images */
		rashpa_run_end(r.dtps);
	}
	close_all(&r);
	return result;
}

static int run(const struct config *config, struct dataset *dataset, volatile bool *stop)
{
	struct report report = {};
	const int result = stream(config, dataset, stop, &report);

	if (report.dtps && report_board(config, dataset, &report) && !result)
		return EXIT_FAILED;
	return result;
}

const struct sending sending_pcie = { .run = run };
