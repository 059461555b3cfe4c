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

#include "common/fpga.h"
#include "common/json-out.h"
#include "daemon/led.h"
#include <rashpa.h>
#include <rashpa-stream.h>
#include "remu/remu.h"
#include "common/say.h"
#include "common/stop.h"

#define TICK_MS		250
#define STOP_MS		1000
#define PAUSED_NS	5000000ull	/* between checks whether the receiver has taken all */

/* Memory that the board writes to, and its entries in the board's address table. */
struct target {
	char what[RASHPA_STREAM_NAME + 16];
	int dmabuf;			/* -1: the stream has no such memory */
	unsigned int maps;
	int map[RFPGA_DTPS_MAX];	/* one map for each range */
	uint32_t first[RFPGA_DTPS_MAX];
	uint32_t segments, class;
	uint32_t entries;	/* entries in the table; 1 for a ring's address */
};

#define TARGET_NONE { .dmabuf = -1 }

struct run {
	const struct config *config;
	struct dataset *dataset;
	uint32_t loaded;		/* images of the dataset in on-board memory */
	uint64_t sum;			/* checksum of the loaded images */
	int producer;			/* node of the buffer, ours until the stream is open */
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;	/* header that consumers see */
	struct fpga fpga;
	struct view memory;
	int channel;
	struct target slots;
	struct target head;	/* the buffer, if it holds the header but not the slots */
	struct target locks;	/* lock memory */
	/* entries of the table: one range for each process if they are engines, else one for all */
	struct fpga_range range[RFPGA_DTPS_MAX];
	unsigned int ranges;
	struct fpga_block source;	/* live source of the board */
	uint64_t missed;		/* images that the source missed before this stream */
	bool started;
	uint64_t next;			/* first stack of the board since its last start */
	uint64_t period;		/* in ticks */
	bool paused;
	bool wished;			/* resume when the receiver has taken all */
	struct report before;		/* counts before the last pause */
};

/* --- stream --- */

static const struct rashpa_stream_process *process(const struct run *r, uint32_t i)
{
	return rashpa_stream_process_at(r->stream, i);
}

static int target(struct target *t, int dmabuf, const char *kind, const char *name)
{
	snprintf(t->what, sizeof(t->what), "%s %s", kind, name);
	t->dmabuf = dmabuf;
	return dmabuf < 0 ? fail("%s: %s", t->what, rashpa_reason()) : 0;
}

/* The memory of the lock records, if separate. */
static int open_locks(struct run *r)
{
	struct rashpa_info info = { .fd = -1 };
	const int node = rashpa_stream_lock_memory(r->stream);

	if (rashpa_memory_get_info(node, &info))
		return fail("lock memory %s: %s", r->config->lock, rashpa_reason());
	if (info.out_kind != RASHPA_KIND_LOCK)
		return fail("%s is not lock memory: create some (rashpactl lock create fpga%u NAME)",
			    r->config->lock, r->config->fpga);
	return target(&r->locks, rashpa_buffer_dmabuf(node), "lock memory", r->config->lock);
}

/* A lock record may overtake writes to another function, unless a read flushes them first. */
static int check_order(struct run *r)
{
	struct rashpa_info info = { .fd = r->slots.dmabuf };

	if (!rashpa_memory_get_info(rashpa_stream_buffer(r->stream), &info) &&
	    info.out_kind != RASHPA_KIND_WINDOW)
		return 0;
	if (fpga_read(&r->fpga, RFPGA_FEATURES) & RFPGA_FEATURE_FLUSH)
		return 0;
	return fail("fpga%u: it cannot flush (no FLUSH in its features), so lock records may overtake images on their way to %s: stream to a buffer",
		    r->fpga.number, r->slots.what);
}

/* Open the slots, the buffer with the header if it is separate, and lock memory. */
static int open_memories(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	const struct config *c = r->config;
	int result;

	if (!c->payload)
		result = target(&r->slots, rashpa_stream_payload(r->stream), "buffer",
				c->opt.buffer);
	else
		result = target(&r->slots, rashpa_stream_payload(r->stream), "memory", c->payload);
	if (!result && c->payload)
		result = check_order(r);
	if (!result && c->payload && (h->meta_slot || !c->lock))
		result = target(&r->head, rashpa_buffer_dmabuf(rashpa_stream_buffer(r->stream)),
				"buffer", c->opt.buffer);
	return !result && c->lock ? open_locks(r) : result;
}

static int open_stream(struct run *r)
{
	const struct config *c = r->config;
	const uint32_t features = fpga_read(&r->fpga, RFPGA_FEATURES);
	struct rashpa_stream_process process[RFPGA_DTPS_MAX] = {};
	struct rashpa_stream_plan plan = {
		.header = {
			.pixel = r->dataset->geometry.pixel,
			.bunch = c->bunch,
			.slots = c->slots,
			.policy = c->policy,
			.images = c->images,
			.sampling = c->sampling,
			.phase = c->phase,
			.live = c->live,
			.dataset_images = r->loaded,
			.dark_every = r->dataset->dark_every,
			.dataset_sum = r->sum,
		},
		.process = process,
		.processes = c->regions,
		.flags = (features & RFPGA_FEATURE_META ? RASHPA_PLAN_META : 0) |
			 (c->resume ? RASHPA_PLAN_RESUME : 0),
	};

	for (unsigned int i = 0; i < c->regions; i++) {
		const struct region *region = &c->region[i];

		process[i] = (struct rashpa_stream_process) {
			.function = RASHPA_STREAM_FPGA,
			.fpga = c->fpga,
			.number = i,
			.vector = c->vector,
			.x = region->to_x, .y = region->to_y,
			.width = region->width, .height = region->height,
			.origin_x = region->x, .origin_y = region->y,
			.doorbell_offset = i * RFPGA_DOORBELL_PAGE + RFPGA_DB_TAGGED,
		};
		/* The image is as large as the regions reach. */
		if (plan.header.width < region->to_x + region->width)
			plan.header.width = region->to_x + region->width;
		if (plan.header.height < region->to_y + region->height)
			plan.header.height = region->to_y + region->height;
	}
	snprintf(plan.header.dataset, sizeof(plan.header.dataset), "%.63s", r->dataset->source);
	if (c->lock)
		snprintf(plan.header.lock_name, sizeof(plan.header.lock_name), "%s", c->lock);
	if (c->payload)
		snprintf(plan.header.payload_name, sizeof(plan.header.payload_name), "%s",
			 c->payload);
	close(r->producer);
	r->producer = -1;
	if (rashpa_stream_create(c->opt.buffer, &plan, &r->stream))
		return fail("%s", rashpa_reason());
	r->about = rashpa_stream_get_header(r->stream);
	return open_memories(r);
}

/* --- FPGA --- */

static int check_idle(const struct fpga *f)
{
	if (!fpga_answers(f))
		return fail("fpga%u: it does not answer any more", f->number);
	for (unsigned int i = 0; i < fpga_processes(f); i++) {
		if (fpga_read(f, RFPGA_DTP(i) + RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING)
			return fail("fpga%u: process %u runs already: stop the other producer first (rashpactl fpga quiesce fpga%u)",
				    f->number, i, f->number);
	}
	return 0;
}

static int check_fpga(struct run *r)
{
	const struct config *c = r->config;
	struct fpga *f = &r->fpga;
	uint32_t caps = fpga_read(f, RFPGA_CAPS), vector = c->vector;
	uint32_t features = fpga_read(f, RFPGA_FEATURES);
	/* Without groups each process sends interrupts; receivers cope with that. */
	uint32_t want = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK |
			(c->policy ? RFPGA_FEATURE_FREERUN : 0) |
			(c->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_DROP : 0) |
			(c->live || c->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_META : 0);

	if (f->info.out_state == RASHPA_STATE_STUCK)
		return fail("fpga%u: it is stuck: reset it (rashpactl fpga reset fpga%u)", f->number,
			    f->number);
	if (c->regions > RFPGA_CAPS_DTPS(caps))
		return fail("fpga%u: it has %u data transfer processes, %u are wanted: use fewer --dtp, or --split",
			    f->number, RFPGA_CAPS_DTPS(caps), c->regions);
	if (vector >= RFPGA_CAPS_VECTORS(caps) || vector >= f->info.out_vectors)
		return fail("fpga%u: there is no vector %" PRIu32 ": it has %u, of which %u can be used",
			    f->number, vector, RFPGA_CAPS_VECTORS(caps), f->info.out_vectors);
	if ((features & want) != want)
		return fail("fpga%u: it lacks features for this stream (has %#x, needs %#x)",
			    f->number, features, want);
	if (c->live && !fpga_block_find(f, RFPGA_BLOCK_SOURCE, RFPGA_SOURCE_SIZE, &r->source))
		return fail("fpga%u: it has no live source: stream from memory (without --live)",
			    f->number);
	return check_idle(f);
}

static int open_fpga(struct run *r)
{
	struct rashpa_role role = { .take = RASHPA_ROLE_PRODUCER };
	struct fpga *f = &r->fpga;
	char why[WHY_SIZE];

	/* Loading takes long: report a missing buffer or another producer first. */
	r->producer = rashpa_buffer_open(r->config->opt.buffer, O_RDWR);
	if (r->producer < 0 || rashpa_buffer_role(r->producer, &role))
		return fail("%s", rashpa_reason());
	if (fpga_open(f, r->config->fpga, why) || fpga_claim(f, why) || fpga_registers(f, why) ||
	    view_open(&r->memory, f, "memory", RFPGA_BAR_MEMORY, 0, 0, true, why))
		return fail("%s", why);
	return 0;
}

/* Number of images of the dataset that fit on the board. */
static int choose_images(struct run *r)
{
	const struct dataset *d = r->dataset;
	const uint64_t room = fpga_memory(&r->fpga, &r->memory);
	const uint32_t bits = RFPGA_LIMITS_COUNT(fpga_read(&r->fpga, RFPGA_LIMITS));
	const uint32_t most = bits && bits < 32 ? (1u << bits) - 1 : UINT32_MAX;
	char has[SIZE_TEXT], image[SIZE_TEXT];
	uint64_t fit;

	format_size(has, room);
	fit = room / dataset_bytes(d);
	if (!fit)
		return fail("fpga%u: an image of %s has %s, on-board memory only %s: use smaller images",
			    r->fpga.number, d->source, format_size(image, dataset_bytes(d)), has);
	r->loaded = d->images;
	if (r->loaded > fit) {
		r->loaded = fit;
		say("fpga%u: note: %" PRIu32 " of the %" PRIu32
		    " images of %s fit into on-board memory of %s: these go round and round",
		    r->fpga.number, r->loaded, d->images, d->source, has);
	}
	if (r->loaded > most) {
		r->loaded = most;
		say("fpga%u: note: it counts only %" PRIu32 " of the %" PRIu32
		    " images of %s (LIMITS): these go round and round",
		    r->fpga.number, r->loaded, d->images, d->source);
	}
	/* the last one is dark, too: they go round and round */
	if (d->dark_every && r->loaded % d->dark_every) {
		r->loaded -= r->loaded % d->dark_every;
		if (!r->loaded)
			return fail("fpga%u: on-board memory of %s keeps %" PRIu64
				    " images: too few for a dark one of every %" PRIu32,
				    r->fpga.number, has, fit, d->dark_every);
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
	fpga_read(&r->fpga, RFPGA_STATUS);
	report->load_ns = now_ns() - begin;
	report->load_bytes = r->loaded * dataset_bytes(r->dataset);
	report->loaded = r->loaded;
	return result;
}

/* Each target gets its own entries of the range, after those of the previous target. */
static int map_into(struct run *r, struct target *t, struct fpga_range *range)
{
	struct rashpa_map_make map = {
		.fd = t->dmabuf,
		/* The flush before an event reads back what was written. */
		.direction = RASHPA_BIDIRECTIONAL,
	};
	struct rashpa_program program = { .first = range->first };
	const int fd = rashpa_device_map(r->fpga.device, &map);

	if (fd < 0)
		return fail("%s: cannot map it for fpga%u: %s", t->what, r->fpga.number,
			    rashpa_reason());
	t->map[t->maps] = fd;
	t->first[t->maps++] = range->first;
	t->entries = r->fpga.info.out_flags & RASHPA_DEVICE_FETCH ? 1 : map.out_segments;
	if (t->entries > range->count)
		return fail("%s: its map has %" PRIu32 " segments, but fpga%u keeps only %" PRIu32
			    " for it: make a contiguous buffer", t->what, map.out_segments,
			    r->fpga.number, range->count);
	if (rashpa_map_program(fd, &program))
		return fail("fpga%u: cannot program the address table: %s", r->fpga.number,
			    rashpa_reason());
	t->segments = map.out_segments;
	t->class = map.out_class;
	range->first += t->entries;
	range->count -= t->entries;
	return 0;
}

/* An engine reads only its own entries, so each engine gets a map. */
static int map_target(struct run *r, struct target *t)
{
	int result = 0;

	for (unsigned int i = 0; i < r->ranges && t->dmabuf >= 0 && !result; i++)
		result = map_into(r, t, &r->range[i]);
	return result;
}

/* Find the entries of the table that each process may use. */
static int open_ranges(struct run *r)
{
	char name[16], why[WHY_SIZE];

	r->ranges = r->fpga.info.out_engines ? r->config->regions : 1;
	for (unsigned int i = 0; i < r->ranges; i++) {
		snprintf(name, sizeof(name), "dtp%u", i);
		if (fpga_range(&r->fpga, name, &r->range[i], why))
			return fail("%s", why);
	}
	return 0;
}

/* Check again: loading took long, and not all producers claim what they use. */
static int still_alone(struct run *r)
{
	char why[WHY_SIZE];

	return fpga_claim(&r->fpga, why) ? fail("%s", why) : check_idle(&r->fpga);
}

static int map_all(struct run *r)
{
	int result = still_alone(r);

	if (!result)
		result = open_ranges(r);
	if (!result)
		result = map_target(r, &r->slots);
	if (!result)
		result = map_target(r, &r->head);
	return result ? result : map_target(r, &r->locks);
}

static int open_channel(struct run *r)
{
	r->channel = rashpa_channel_open(r->fpga.device, 0);
	if (r->channel < 0 ||
	    rashpa_channel_add(r->channel, RASHPA_SOURCE_DEVICE, 0) < 0 ||
	    rashpa_channel_add(r->channel, RASHPA_SOURCE_VECTOR, r->config->vector) < 0)
		return fail("fpga%u: cannot listen to events: %s", r->fpga.number, rashpa_reason());
	if (fcntl(r->channel, F_SETFL, O_NONBLOCK))
		return fail("fpga%u: event channel: %s", r->fpga.number, strerror(errno));
	return 0;
}

static void configure(struct run *r, unsigned int i)
{
	const struct rashpa_stream_header *s = r->about;
	const struct rashpa_stream_process *d = process(r, i);
	const struct target *head = r->head.maps ? &r->head : &r->slots;
	const struct target *locks = r->locks.maps ? &r->locks : head;
	const unsigned int range = i < r->ranges ? i : 0;
	const struct fpga *f = &r->fpga;
	uint32_t features = fpga_read(f, RFPGA_FEATURES);
	uint32_t step = s->sampling % s->dataset_images;
	const uint64_t k = r->next;
	const struct rfpga_dtp dtp = {
		/* In host memory the payload precedes its lock record even without a flush. */
		.mode = RFPGA_MODE_MSIX | RFPGA_MODE_LOCK |
			(features & RFPGA_FEATURE_FLUSH ? RFPGA_MODE_FLUSH : 0) |
			(s->meta_slot ? RFPGA_MODE_META : 0) |
			(s->policy ? RFPGA_MODE_FREERUN : 0) |
			(s->policy == RASHPA_STREAM_DROP ? RFPGA_MODE_DROP : 0),
		.vector = r->config->vector,
		.pixel_bytes = pixel_bytes(s->pixel),
		.bunch = s->bunch,
		.slots = s->slots,
		.src_images = s->dataset_images,
		.src_x = d->origin_x,
		.src_y = d->origin_y,
		.width = d->width,
		.height = d->height,
		.dst_x = d->x,
		.dst_y = d->y,
		.src_line = dataset_line_bytes(r->dataset),
		.src_image = dataset_bytes(r->dataset),
		.dst_base = s->data_offset,
		.dst_line = s->line_stride,
		.dst_image = s->image_stride,
		.dst_slot = s->slot_stride,
		.dst_first = r->slots.first[range],
		.dst_count = r->slots.entries,
		.lock_offset = s->lock_offset + (uint64_t)d->lock * RFPGA_LOCK_SIZE,
		.lock_first = locks->first[range],
		.lock_count = locks->entries,
		.images = s->images ? s->images - (k - s->first_stack) * s->bunch : 0,
		.period = s->live ? 0 : r->period,
		.first_stack = k,
		.first_slot = k % s->slots,
		.first_index = (k % s->dataset_images * s->bunch % s->dataset_images * step +
				s->phase) % s->dataset_images,
		.index_step = step,
		.source = s->live ? RFPGA_FROM_LIVE : RFPGA_FROM_MEMORY,
		.sampling = s->live ? s->sampling | s->phase << 16 : 0,
		.run = s->run,
		.meta_offset = rashpa_stream_meta(r->stream, i),
		.meta_first = head->first[range],
		.meta_count = head->entries,
		.first_frame = k * s->bunch,
	};

	fpga_configure(f, d->number, &dtp);
}

static void stop_source(struct run *r)
{
	fpga_write(&r->fpga, r->source.base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
}

/* Counted since the reset of the board. */
static uint64_t missed(const struct run *r)
{
	return fpga_read64(&r->fpga, r->source.base + RFPGA_SOURCE_MISSED) - r->missed;
}

/* With groups, all processes of a board start together and share events. */
static void start_processes(struct run *r)
{
	const struct rashpa_stream_header *s = r->about;
	const bool group = s->processes > 1 &&
			   (fpga_read(&r->fpga, RFPGA_FEATURES) & RFPGA_FEATURE_GROUP);
	uint32_t members = 0;

	for (unsigned int i = 0; i < s->processes; i++) {
		configure(r, i);
		members |= 1u << process(r, i)->number;
	}
	if (group)
		fpga_write(&r->fpga, RFPGA_GROUP_START, members);
	for (unsigned int i = 0; i < s->processes && !group; i++)
		fpga_write(&r->fpga, RFPGA_DTP(process(r, i)->number) + RFPGA_DTP_CONTROL,
			   RFPGA_DTP_START);
}

static int start(struct run *r)
{
	const struct rashpa_stream_header *s = r->about;

	r->next = s->first_stack;
	r->period = r->config->period;
	if (rashpa_stream_start(r->stream, r->slots.segments, r->slots.class))
		return fail("%s", rashpa_reason());
	r->started = true;
	if (s->live) {
		stop_source(r);		/* started by an earlier producer */
		r->missed = missed(r);
	}
	start_processes(r);
	if (!s->live)
		return 0;
	/* start the source after the processes, so that all of them get its first image */
	fpga_write64(&r->fpga, r->source.base + RFPGA_SOURCE_PERIOD, r->config->period);
	fpga_write(&r->fpga, r->source.base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START);
	return 0;
}

/* Status bits of the processes: bits set in any, and bits set in all. */
static uint32_t status(struct run *r, uint32_t *all)
{
	uint32_t any = 0, one;

	*all = UINT32_MAX;
	for (unsigned int i = 0; i < r->about->processes; i++) {
		one = fpga_read(&r->fpga, RFPGA_DTP(process(r, i)->number) + RFPGA_DTP_STATUS);
		any |= one;
		*all &= one;
	}
	return any;
}

/* Stop all our processes. False: some did not stop. */
static bool stop_processes(struct run *r)
{
	uint64_t end = now_ns() + STOP_MS * 1000000ull;
	uint32_t all;

	for (unsigned int i = 0; i < r->about->processes; i++)
		fpga_write(&r->fpga, RFPGA_DTP(process(r, i)->number) + RFPGA_DTP_CONTROL,
			   RFPGA_DTP_STOP);
	while (status(r, &all) & RFPGA_DTP_RUNNING) {
		if (now_ns() > end)
			return false;
		poll(NULL, 0, 1);
	}
	return true;
}

/* Stop, by the driver if necessary. */
static int stop_all(struct run *r)
{
	if (!r->started)
		return 0;
	if (r->about->live)
		stop_source(r);
	if (!stop_processes(r)) {
		say("fpga%u: it ignores STOP: the driver stops it", r->fpga.number);
		if (rashpa_device_quiesce(r->fpga.device, NULL))
			return fail("fpga%u: %s", r->fpga.number, rashpa_reason());
	}
	r->started = false;
	return 0;
}

static int explain_fault(struct run *r)
{
	uint32_t cause = fpga_read(&r->fpga, RFPGA_FAULT_CAUSE);

	return fail("fpga%u: process %" PRIu32 " stopped with a fault: %s at address %#" PRIx64
		    ", after %" PRIu64 " stacks",
		    r->fpga.number, fpga_read(&r->fpga, RFPGA_FAULT_DTP), fpga_cause_name(cause),
		    fpga_read64(&r->fpga, RFPGA_FAULT_ADDR),
		    rashpa_stream_complete(r->stream) - r->about->first_stack);
}

/* A stop of an engine that is not ours does not concern us. */
static bool concerns(const struct run *r, const struct rashpa_event *event)
{
	if (event->kind != RASHPA_SOURCE_DEVICE || event->time_ns < r->about->start_ns)
		return false;
	if ((uint32_t)event->value != RASHPA_DEVICE_EVENT_ENGINE)
		return true;
	for (unsigned int i = 0; i < r->ranges; i++)
		if (r->range[i].engine == (int)(event->value >> 32))
			return true;
	return false;
}

/* Empty the channel. 0, or an exit code if the function was stopped. */
static int take_events(struct run *r)
{
	struct rashpa_event event[64];
	ssize_t n;

	while ((n = read(r->channel, event, sizeof(event))) > 0) {
		for (size_t i = 0; i < n / sizeof(event[0]); i++) {
			if (!concerns(r, &event[i]))
				continue;
			return fail("fpga%u: another process stopped it (%s) after %" PRIu64 " stacks",
				    r->fpga.number, rashpa_device_event_name(event[i].value),
				    rashpa_stream_complete(r->stream) - r->about->first_stack);
		}
		if ((size_t)n < sizeof(event))
			return 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return fail("fpga%u: event channel: %s", r->fpga.number,
			    errno == ENODEV ? "the function was removed" : strerror(errno));
	return 0;
}

/* Counts of the board since its last start. */
static void count_registers(const struct run *r, struct report *report)
{
	const struct fpga *f = &r->fpga;
	uint64_t peak;

	report->images = report->stacks = report->start = UINT64_MAX;
	for (unsigned int i = 0; i < r->about->processes; i++) {
		size_t dtp = RFPGA_DTP(process(r, i)->number);
		uint64_t images = fpga_read64(f, dtp + RFPGA_DTP_C_IMAGES);
		uint64_t stacks = fpga_read64(f, dtp + RFPGA_DTP_C_STACKS);
		uint64_t first = fpga_read64(f, dtp + RFPGA_DTP_C_START);
		uint64_t last = fpga_read64(f, dtp + RFPGA_DTP_C_STOP);

		/* An image is complete when all processes have sent it. */
		report->images = images < report->images ? images : report->images;
		report->stacks = stacks < report->stacks ? stacks : report->stacks;
		report->start = first < report->start ? first : report->start;
		report->stop = last > report->stop ? last : report->stop;
		report->bytes += fpga_read64(f, dtp + RFPGA_DTP_C_BYTES);
		report->descriptors += fpga_read64(f, dtp + RFPGA_DTP_C_DESCRIPTORS);
		report->events += fpga_read64(f, dtp + RFPGA_DTP_C_EVENTS);
		report->overruns += fpga_read64(f, dtp + RFPGA_DTP_C_OVERRUNS);
		report->faults += fpga_read64(f, dtp + RFPGA_DTP_C_FAULTS);
		report->stall += fpga_read64(f, dtp + RFPGA_DTP_C_STALL);
		report->stall_bus += fpga_read64(f, dtp + RFPGA_DTP_C_STALL_BUS);
		report->stall_source += fpga_read64(f, dtp + RFPGA_DTP_C_STALL_SOURCE);
		report->dropped += fpga_read64(f, dtp + RFPGA_DTP_C_DROPPED);
		report->lost += fpga_read64(f, dtp + RFPGA_DTP_C_LOST);
		peak = fpga_read64(f, dtp + RFPGA_DTP_FIFO_PEAK);
		report->fifo_peak = peak > report->fifo_peak ? peak : report->fifo_peak;
	}
	if (r->about->live)
		report->missed = missed(r);
}

/* Counts of the whole run: after another start the board counts from 0. */
static void count(const struct run *r, struct report *report)
{
	const struct report *b = &r->before;

	report->dtps = r->about->processes;
	report->segments = r->slots.segments;
	report->map_class = r->slots.class;
	report->iommu = r->fpga.info.out_flags & RASHPA_DEVICE_IOMMU;
	report->slots = r->about->slots;
	report->first_stack = r->about->first_stack;
	if (!r->paused)
		count_registers(r, report);
	report->images += b->images;
	report->stacks += b->stacks;
	report->bytes += b->bytes;
	report->descriptors += b->descriptors;
	report->events += b->events;
	report->overruns += b->overruns;
	report->faults += b->faults;
	report->stall += b->stall;
	report->stall_bus += b->stall_bus;
	report->stall_source += b->stall_source;
	report->start = b->start ? b->start : report->start;
	report->stop = r->paused ? b->stop : report->stop;
	/* A removed board reads as all ones; check after the last counter. */
	report->counted = fpga_answers(&r->fpga);
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
	const uint64_t whole = (rashpa_stream_complete(r->stream) - h->first_stack) * h->bunch;
	struct report report = {};

	count(r, &report);
	if (report.counted) {
		/* a stack that stops in its middle is never delivered */
		put_u64(counts, "images", report.images < whole ? report.images : whole);
		put_u64(counts, "stacks", report.stacks);
		put_u64(counts, "bytes", report.bytes);
		put_u64(counts, "dropped", report.dropped * h->bunch + report.lost + report.missed);
		put_u64(counts, "waited", report.stall * RFPGA_TICK_NS);
	}
	json_object_object_add(o, "counts", counts);
	led_say("status", o);
}

/* Pause a stream that loses nothing by it. 0, or an exit code. */
static int pause_board(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	struct report report = {};

	if (!stop_processes(r))
		return fail("fpga%u: it does not stop", r->fpga.number);
	count(r, &report);
	r->before = report;
	/* incomplete stacks are sent again */
	r->before.stacks = rashpa_stream_complete(r->stream) - h->first_stack;
	r->before.images = r->before.stacks * h->bunch;
	if (h->images && r->before.images > h->images)
		r->before.images = h->images;
	r->paused = true;
	return 0;
}

/* Resume only if the receiver has returned all slots: a board starts with all slots free. */
static void go_on(struct run *r)
{
	if (!r->wished || rashpa_stream_again(r->stream, &r->next))
		return;
	r->wished = false;
	/* after the last stack there is nothing to start or count */
	r->paused = r->next >= last_stack(r->about);
	if (!r->paused)
		start_processes(r);
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
		go_on(r);
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
			go_on(r);
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
		if (result)
			break;
		go_on(r);
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
			any = status(r, &all);
			if (any == UINT32_MAX) {
				result = fail("fpga%u: it does not answer any more",
					      r->fpga.number);
				break;
			}
			if (any & RFPGA_DTP_FAULTED) {
				result = explain_fault(r);
				break;
			}
			if (all & RFPGA_DTP_DONE)
				break;
			progress_show(&progress, "%" PRIu64 " images sent%s",
				      (stacks - r->about->first_stack) * r->about->bunch,
				      any & RFPGA_DTP_WAITING ? ", waiting for the receiver" : "");
		}
		if (timeout && now - moved >= timeout) {
			say("no progress for %g s after %" PRIu64 " stacks%s",
			    r->config->opt.timeout, stacks - r->about->first_stack,
			    status(r, &all) & RFPGA_DTP_WAITING ?
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

/* Write the counts with which a receiver accounts for missing images. */
static void end_stream(struct run *r)
{
	const size_t dtp = RFPGA_DTP(process(r, 0)->number);
	const struct rashpa_stream_header count = {
		.sent = r->before.images +
			(r->paused ? 0 : fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_IMAGES)),
		.dropped = fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_DROPPED),
		.lost = fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_LOST),
		.missed = r->about->live ? missed(r) : 0,
	};

	rashpa_stream_end(r->stream, &count);
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_maps(struct target *t)
{
	while (t->maps)
		close(t->map[--t->maps]);
}

static void close_all(struct run *r)
{
	close_fd(r->channel);
	close_maps(&r->locks);
	close_maps(&r->head);
	close_maps(&r->slots);
	view_close(&r->memory);
	fpga_close(&r->fpga);
	close_fd(r->locks.dmabuf);
	close_fd(r->head.dmabuf);
	close_fd(r->slots.dmabuf);
	close_fd(r->producer);
	rashpa_stream_close(r->stream);
}

static int stream(const struct config *config, struct dataset *dataset, volatile bool *stop,
		  struct report *report)
{
	struct run r = {
		.config = config,
		.dataset = dataset,
		.fpga = FPGA_NONE,
		.memory = VIEW_NONE,
		.producer = -1, .channel = -1,
		.slots = TARGET_NONE, .head = TARGET_NONE, .locks = TARGET_NONE,
	};
	int result;

	result = open_fpga(&r);
	if (!result)
		result = check_fpga(&r);
	if (!result)
		result = load(&r, report, stop);
	if (!result && !*stop)
		result = open_stream(&r);
	if (!result && !*stop)
		result = map_all(&r);
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
		end_stream(&r);
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
