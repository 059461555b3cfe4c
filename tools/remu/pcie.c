// SPDX-License-Identifier: GPL-2.0-only
/* remu over PCIe: an FPGA with the reference interface writes into the buffer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "buffer.h"
#include "fpga.h"
#include "locks.h"
#include "rashpa.h"
#include "remu.h"
#include "say.h"
#include "stream.h"

#define TICK_MS		250
#define STOP_MS		1000

struct run {
	const struct config *config;
	const struct dataset *dataset;
	struct fpga fpga;
	struct view memory, table;
	int buffer, dmabuf, map, channel;
	int lock_dmabuf, lock_map;	/* of lock memory, -1: the locks are in the buffer */
	struct locks locks;
	uint64_t length;
	volatile struct rashpa_stream *shared;
	struct rashpa_stream stream;	/* what we publish */
	uint32_t segments, map_class;
	uint32_t lock_first, lock_count;	/* entries of the table for the locks */
	struct fpga_block source;	/* of a live stream */
	uint64_t missed;		/* by its detector, before this stream */
	bool started, published;
};

static const struct rashpa_layout reference_layout = RFPGA_LAYOUT;

/* --- buffer --- */

/* Two producers would write to the same places, and the first to end ends both streams. */
static int claim(const char *what, const char *name, int fd)
{
	char why[WHY_SIZE];

	return buffer_claim(fd, why) ? fail("%s %s: %s", what, name, why) : 0;
}

static int open_buffer(struct run *r)
{
	const char *name = r->config->opt.buffer;
	struct rashpa_info info;
	char why[WHY_SIZE];
	void *base;

	r->buffer = buffer_open(name, &info, &base, why);
	if (r->buffer < 0)
		return fail("%s", why);
	r->length = info.out_length;
	r->shared = base;
	if (claim("buffer", name, r->buffer))
		return EXIT_FAILED;
	r->dmabuf = rashpa_buffer_dmabuf(r->buffer);
	if (r->dmabuf < 0)
		return fail("buffer %s: %s", name, rashpa_reason());
	return 0;
}

/* Where the last run's receiver stopped. */
static int resume(struct run *r)
{
	struct rashpa_stream old;
	char why[WHY_SIZE];

	if (stream_copy(r->shared, r->length, &old, why))
		return fail("buffer %s: there is nothing to resume: %s", r->config->opt.buffer,
			    *why ? why : "no stream was ever here");
	if (old.bunch != r->config->bunch)
		return fail("buffer %s: the last run had %" PRIu32
			    " images per stack: resume with --bunch %" PRIu32,
			    r->config->opt.buffer, old.bunch, old.bunch);
	r->stream.first_stack = old.consumed;
	return 0;
}

/* Where the lock records go, once it is known how many there are. */
static int open_locks(struct run *r)
{
	struct rashpa_info info = { .fd = -1 };
	char why[WHY_SIZE];

	if (locks_open(&r->locks, &r->stream, r->buffer, r->shared, true, why))
		return fail("%s", why);
	if (!r->config->lock)
		return 0;
	if (rashpa_info(r->locks.fd, &info))
		return fail("lock memory %s: %s", r->config->lock, rashpa_reason());
	if (info.out_kind != RASHPA_KIND_LOCK)
		return fail("%s is no lock memory: make some (rashpactl lock create fpga%u NAME)",
			    r->config->lock, r->config->fpga);
	if (claim("lock memory", r->config->lock, r->locks.fd))
		return EXIT_FAILED;
	r->lock_dmabuf = rashpa_buffer_dmabuf(r->locks.fd);
	if (r->lock_dmabuf < 0)
		return fail("lock memory %s: %s", r->config->lock, rashpa_reason());
	return 0;
}

/* None that a receiver of another run could know, whoever began that one; not 0. */
static uint32_t new_run(void)
{
	uint32_t run;

	if (getrandom(&run, sizeof(run), 0) != sizeof(run))
		run = now_ns();
	return run | 1;
}

static int plan(struct run *r)
{
	const struct config *c = r->config;
	struct rashpa_stream *s = &r->stream;
	char have[SIZE_TEXT], need[SIZE_TEXT];
	uint64_t fit, wanted;

	*s = (struct rashpa_stream) {
		.header_size = sizeof(*s),
		.fpga = c->fpga,
		.vector = c->vector,
		.pixel_bytes = sizeof(uint16_t),
		.bunch = c->bunch,
		.sampling = c->sampling,
		.phase = c->phase,
		.policy = c->policy,
		.live = c->live,
		.dataset_images = r->dataset->images,
		.dataset_sum = r->dataset->sum[r->dataset->images - 1],
		.dtps = c->regions,
		.images = c->opt.images,
		.paced = c->policy != RASHPA_STREAM_OVERWRITE,
		.run = new_run(),
	};
	for (unsigned int i = 0; i < c->regions; i++) {
		const struct region *region = &c->region[i];

		s->dtp[i] = (struct rashpa_stream_dtp) {
			.dtp = i,
			.x = region->to_x, .y = region->to_y,
			.width = region->width, .height = region->height,
			.doorbell_offset = i * RFPGA_DOORBELL_PAGE + RFPGA_DB_TAGGED,
		};
		s->origin[i] = (struct rashpa_stream_origin) { .x = region->x, .y = region->y };
		/* The image is as large as the regions reach. */
		if (s->width < region->to_x + region->width)
			s->width = region->to_x + region->width;
		if (s->height < region->to_y + region->height)
			s->height = region->to_y + region->height;
	}
	if (c->lock)
		strncpy(s->lock_name, c->lock, sizeof(s->lock_name) - 1);
	fit = stream_layout(s, r->length, fpga_read(&r->fpga, RFPGA_FEATURES) & RFPGA_FEATURE_META);
	wanted = c->slots ? c->slots : 2;
	if (fit < wanted)
		return fail("buffer %s: %s, but %" PRIu64 " slots of %" PRIu32 " images need %s: make a larger buffer, or give a smaller --bunch",
			    c->opt.buffer, format_size(have, r->length), wanted, c->bunch,
			    format_size(need, stream_bytes(s, wanted)));
	s->slots = c->slots ? c->slots : fit < UINT32_MAX ? fit : UINT32_MAX;
	stream_place_meta(s);
	if (c->resume && resume(r))
		return EXIT_FAILED;
	s->consumed = s->first_stack;
	return 0;
}

/* Complete stacks, as the lock records tell: the least of all processes. */
static uint64_t stacks_complete(struct run *r)
{
	uint64_t most;

	return locks_stacks(&r->locks, &r->stream, &most);
}

/* All records are those of a run that begins. */
static void prepare_locks(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;

	for (unsigned int i = 0; i < s->dtps; i++) {
		volatile uint64_t *lock = (volatile uint64_t *)(uintptr_t)(r->locks.base +
									   s->dtp[i].lock_offset);

		for (unsigned int word = 0; word < RFPGA_LOCK_SIZE / sizeof(*lock); word++)
			lock[word] = 0;
		lock[RFPGA_LOCK_BEGUN / sizeof(*lock)] = s->first_stack;
		lock[RFPGA_LOCK_STACKS / sizeof(*lock)] = s->first_stack;
	}
}

static void publish(struct run *r)
{
	const volatile struct rashpa_stream *old = r->shared;
	struct rashpa_stream *s = &r->stream;

	s->generation = old->generation + 1;
	s->segments = r->segments;
	s->map_class = r->map_class;
	s->state = RASHPA_STREAM_RUNNING;
	s->start_ns = now_ns();
	s->magic = 0;

	__atomic_store_n(&r->shared->magic, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	prepare_locks(r);
	memcpy((void *)(uintptr_t)r->shared, s, sizeof(*s));
	__atomic_store_n(&r->shared->magic, RASHPA_STREAM_MAGIC, __ATOMIC_RELEASE);
	r->published = true;
}

/*
 * A producer that was killed leaves RUNNING behind. Once our map exists a receiver would take
 * that old stream for a living one. Nor is it a stream that has ended: what is left of it
 * is about to be overwritten.
 */
static void retire(struct run *r)
{
	if (r->shared->magic == RASHPA_STREAM_MAGIC)
		__atomic_store_n(&r->shared->state, RASHPA_STREAM_IDLE, __ATOMIC_RELEASE);
}

/* --- FPGA --- */

static int check_idle(const struct fpga *f)
{
	if (!fpga_answers(f))
		return fail("fpga%u: it does not answer any more", f->number);
	for (unsigned int i = 0; i < fpga_processes(f); i++) {
		if (fpga_read(f, RFPGA_DTP(i) + RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING)
			return fail("fpga%u: process %u runs already: stop the other producer first (rashpactl quiesce fpga%u)",
				    f->number, i, f->number);
	}
	return 0;
}

static int check_fpga(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	struct fpga *f = &r->fpga;
	uint32_t caps = fpga_read(f, RFPGA_CAPS);
	uint32_t features = fpga_read(f, RFPGA_FEATURES);
	/* Without groups there is an interrupt for each process, which a receiver stands. */
	uint32_t want = RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK |
			(s->policy ? RFPGA_FEATURE_FREERUN : 0) |
			(s->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_DROP : 0) |
			(s->live || s->policy == RASHPA_STREAM_DROP ? RFPGA_FEATURE_META : 0);

	if (f->info.out_state == RASHPA_STATE_STUCK)
		return fail("fpga%u: it is stuck: reset it (rashpactl reset fpga%u)", f->number,
			    f->number);
	if (s->dtps > RFPGA_CAPS_DTPS(caps))
		return fail("fpga%u: it has %u data transfer processes, %" PRIu32 " are wanted: use fewer --dtp, or --split",
			    f->number, RFPGA_CAPS_DTPS(caps), s->dtps);
	if (s->vector >= RFPGA_CAPS_VECTORS(caps) || s->vector >= f->info.out_vectors)
		return fail("fpga%u: there is no vector %" PRIu32 ": it has %u, of which %u can be used",
			    f->number, s->vector, RFPGA_CAPS_VECTORS(caps), f->info.out_vectors);
	if ((features & want) != want)
		return fail("fpga%u: it lacks features for this stream (has %#x, needs %#x)",
			    f->number, features, want);
	if (s->live && !fpga_block_find(f, RFPGA_BLOCK_SOURCE, RFPGA_SOURCE_SIZE, &r->source))
		return fail("fpga%u: it has no live source: stream from memory (without --live)",
			    f->number);
	return check_idle(f);
}

static int open_fpga(struct run *r)
{
	struct fpga *f = &r->fpga;
	char why[WHY_SIZE];

	if (fpga_open(f, r->config->fpga, why) || fpga_claim(f, why) || fpga_registers(f, why) ||
	    view_open(&r->memory, f, "memory", RFPGA_BAR_MEMORY, 0, 0, true, why))
		return fail("%s", why);
	return 0;
}

static int load(struct run *r, struct report *report, const volatile bool *stop)
{
	size_t image = DATASET_IMAGE * sizeof(uint16_t);
	uint64_t room = fpga_read64(&r->fpga, RFPGA_MEMORY_SIZE);
	uint64_t begin = now_ns();
	struct progress progress;

	if (room > r->memory.length)
		room = r->memory.length;
	if (dataset_bytes(r->dataset) > room)
		return fail("fpga%u: the dataset has %" PRIu32
			    " images, on-board memory has room for %" PRIu64
			    ": use fewer (generate:%" PRIu64 ")",
			    r->fpga.number, r->dataset->images, room / image, room / image);
	progress_init(&progress, r->config->opt.progress);
	for (uint32_t i = 0; i < r->dataset->images && !*stop; i++) {
		memcpy((char *)(uintptr_t)r->memory.base + i * image,
		       dataset_line(r->dataset, i, 0), image);
		progress_show(&progress, "loading image %" PRIu32 " of %" PRIu32, i + 1,
			      r->dataset->images);
	}
	progress_end(&progress);
	/* The last write is on board when a read has come back. */
	__sync_synchronize();
	fpga_read(&r->fpga, RFPGA_STATUS);
	report->load_ns = now_ns() - begin;
	report->load_bytes = dataset_bytes(r->dataset);
	return 0;
}

/* The profile's table; without one, that of the reference interface, as root. */
static int program_table(struct run *r, int map, uint32_t first)
{
	struct rashpa_program program = { .window = -1, .first = first };
	char why[WHY_SIZE];
	int error = rashpa_program(map, &program);

	if (error != -ENOENT)
		return error;
	if (r->table.fd < 0 &&
	    view_open(&r->table, &r->fpga, "table", RFPGA_BAR_REGS, RFPGA_TABLE,
		      RFPGA_TABLE_SIZE, false, why))
		return error;
	program.window = r->table.fd;
	program.length = RFPGA_TABLE_SIZE;
	program.layout = (uintptr_t)&reference_layout;
	program.layout_size = sizeof(reference_layout);
	return rashpa_program(map, &program);
}

/* Lock memory has entries of the table for itself, behind those of the buffer. */
static int map_lock(struct run *r)
{
	struct rashpa_map_make map = { .fd = r->lock_dmabuf, .direction = RASHPA_BIDIRECTIONAL };
	uint32_t entries = RFPGA_CAPS_ENTRIES(fpga_read(&r->fpga, RFPGA_CAPS));

	r->lock_map = rashpa_map(r->fpga.device, &map);
	if (r->lock_map < 0)
		return fail("lock memory %s: cannot map it for fpga%u: %s", r->config->lock,
			    r->fpga.number, rashpa_reason());
	if (map.out_segments > entries || r->segments > entries - map.out_segments)
		return fail("lock memory %s: its map and that of the buffer have %" PRIu32
			    " segments, but fpga%u keeps only %" PRIu32 ": make a contiguous buffer",
			    r->config->lock, r->segments + map.out_segments, r->fpga.number,
			    entries);
	if (program_table(r, r->lock_map, r->segments))
		return fail("fpga%u: cannot program the address table: %s", r->fpga.number,
			    rashpa_reason());
	r->lock_first = r->segments;
	r->lock_count = map.out_segments;
	return 0;
}

/* Loading took long, and not all producers claim what they use. */
static int still_alone(struct run *r)
{
	const struct config *c = r->config;
	char why[WHY_SIZE];

	if (claim("buffer", c->opt.buffer, r->buffer) ||
	    (c->lock && claim("lock memory", c->lock, r->locks.fd)))
		return EXIT_FAILED;
	if (fpga_claim(&r->fpga, why))
		return fail("%s", why);
	return check_idle(&r->fpga);
}

static int map_buffer(struct run *r)
{
	struct rashpa_map_make map = {
		.fd = r->dmabuf,
		/* The flush before an event reads back what was written. */
		.direction = RASHPA_BIDIRECTIONAL,
	};
	uint32_t entries = RFPGA_CAPS_ENTRIES(fpga_read(&r->fpga, RFPGA_CAPS));

	if (still_alone(r))
		return EXIT_FAILED;
	retire(r);
	r->map = rashpa_map(r->fpga.device, &map);
	if (r->map < 0)
		return fail("buffer %s: cannot map it for fpga%u: %s", r->config->opt.buffer,
			    r->fpga.number, rashpa_reason());
	if (map.out_segments > entries)
		return fail("buffer %s: its map has %" PRIu32
			    " segments, but fpga%u keeps only %" PRIu32 ": make a contiguous buffer",
			    r->config->opt.buffer, map.out_segments, r->fpga.number, entries);
	if (program_table(r, r->map, 0))
		return fail("fpga%u: cannot program the address table: %s", r->fpga.number,
			    rashpa_reason());
	r->segments = map.out_segments;
	r->map_class = map.out_class;
	r->lock_count = map.out_segments;
	return r->config->lock ? map_lock(r) : 0;
}

static int open_channel(struct run *r)
{
	r->channel = rashpa_events(r->fpga.device, 0);
	if (r->channel < 0 ||
	    rashpa_source_add(r->channel, RASHPA_SOURCE_DEVICE, 0) < 0 ||
	    rashpa_source_add(r->channel, RASHPA_SOURCE_VECTOR, r->config->vector) < 0)
		return fail("fpga%u: cannot listen to events: %s", r->fpga.number, rashpa_reason());
	if (fcntl(r->channel, F_SETFL, O_NONBLOCK))
		return fail("fpga%u: event channel: %s", r->fpga.number, strerror(errno));
	return 0;
}

static void configure(struct run *r, unsigned int i)
{
	const struct rashpa_stream *s = &r->stream;
	const struct rashpa_stream_dtp *d = &s->dtp[i];
	const struct fpga *f = &r->fpga;
	uint32_t features = fpga_read(f, RFPGA_FEATURES);
	uint32_t step = s->sampling % s->dataset_images;
	size_t dtp = RFPGA_DTP(d->dtp);

	/* To host memory the payload goes before its lock record without a flush, too. */
	fpga_write(f, dtp + RFPGA_DTP_MODE, RFPGA_MODE_MSIX | RFPGA_MODE_LOCK |
		   (features & RFPGA_FEATURE_FLUSH ? RFPGA_MODE_FLUSH : 0) |
		   (s->meta_slot ? RFPGA_MODE_META : 0) |
		   (s->policy ? RFPGA_MODE_FREERUN : 0) |
		   (s->policy == RASHPA_STREAM_DROP ? RFPGA_MODE_DROP : 0));
	fpga_write(f, dtp + RFPGA_DTP_VECTOR, s->vector);
	fpga_write(f, dtp + RFPGA_DTP_PIXEL_BYTES, s->pixel_bytes);
	fpga_write(f, dtp + RFPGA_DTP_BUNCH, s->bunch);
	fpga_write(f, dtp + RFPGA_DTP_SLOTS, s->slots);
	fpga_write64(f, dtp + RFPGA_DTP_SRC_BASE, 0);
	fpga_write(f, dtp + RFPGA_DTP_SRC_IMAGES, s->dataset_images);
	fpga_write(f, dtp + RFPGA_DTP_SRC_X, s->origin[i].x);
	fpga_write(f, dtp + RFPGA_DTP_SRC_Y, s->origin[i].y);
	fpga_write(f, dtp + RFPGA_DTP_WIDTH, d->width);
	fpga_write(f, dtp + RFPGA_DTP_HEIGHT, d->height);
	fpga_write(f, dtp + RFPGA_DTP_DST_X, d->x);
	fpga_write(f, dtp + RFPGA_DTP_DST_Y, d->y);
	fpga_write64(f, dtp + RFPGA_DTP_SRC_LINE, DATASET_WIDTH * sizeof(uint16_t));
	fpga_write64(f, dtp + RFPGA_DTP_SRC_IMAGE, DATASET_IMAGE * sizeof(uint16_t));
	fpga_write64(f, dtp + RFPGA_DTP_DST_BASE, s->data_offset);
	fpga_write64(f, dtp + RFPGA_DTP_DST_LINE, s->line_stride);
	fpga_write64(f, dtp + RFPGA_DTP_DST_IMAGE, s->image_stride);
	fpga_write64(f, dtp + RFPGA_DTP_DST_SLOT, s->slot_stride);
	fpga_write(f, dtp + RFPGA_DTP_DST_FIRST, 0);
	fpga_write(f, dtp + RFPGA_DTP_DST_COUNT, r->segments);
	fpga_write64(f, dtp + RFPGA_DTP_LOCK_OFFSET, d->lock_offset);
	fpga_write(f, dtp + RFPGA_DTP_LOCK_FIRST, r->lock_first);
	fpga_write(f, dtp + RFPGA_DTP_LOCK_COUNT, r->lock_count);
	fpga_write64(f, dtp + RFPGA_DTP_IMAGES, s->images);
	fpga_write64(f, dtp + RFPGA_DTP_PERIOD, s->live ? 0 : r->config->period);
	fpga_write64(f, dtp + RFPGA_DTP_FIRST_STACK, s->first_stack);
	fpga_write(f, dtp + RFPGA_DTP_FIRST_SLOT, s->first_stack % s->slots);
	fpga_write(f, dtp + RFPGA_DTP_FIRST_INDEX, (s->first_stack % s->dataset_images *
		   s->bunch % s->dataset_images * step + s->phase) % s->dataset_images);
	fpga_write(f, dtp + RFPGA_DTP_INDEX_STEP, step);
	fpga_write(f, dtp + RFPGA_DTP_SOURCE, s->live ? RFPGA_FROM_LIVE : RFPGA_FROM_MEMORY);
	fpga_write(f, dtp + RFPGA_DTP_SAMPLING, s->live ? s->sampling | s->phase << 16 : 0);
	fpga_write(f, dtp + RFPGA_DTP_RUN, s->run);
	fpga_write64(f, dtp + RFPGA_DTP_META_OFFSET, stream_meta(s, i, 0, 0));
	fpga_write(f, dtp + RFPGA_DTP_META_FIRST, 0);
	fpga_write(f, dtp + RFPGA_DTP_META_COUNT, r->segments);
	fpga_write64(f, dtp + RFPGA_DTP_FIRST_FRAME, s->first_stack * s->bunch);
}

/* Where the board has groups, processes that are several begin at once, and share their events. */
static void stop_source(struct run *r)
{
	fpga_write(&r->fpga, r->source.base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_STOP);
}

/* Counted from the board's reset on. */
static uint64_t missed(const struct run *r)
{
	return fpga_read64(&r->fpga, r->source.base + RFPGA_SOURCE_MISSED) - r->missed;
}

static void start(struct run *r)
{
	const struct rashpa_stream *s = &r->stream;
	const bool group = s->dtps > 1 &&
			   (fpga_read(&r->fpga, RFPGA_FEATURES) & RFPGA_FEATURE_GROUP);
	uint32_t members = 0;

	for (unsigned int i = 0; i < s->dtps; i++) {
		configure(r, i);
		members |= 1u << s->dtp[i].dtp;
	}
	publish(r);
	__sync_synchronize();
	r->started = true;
	if (s->live) {
		stop_source(r);		/* of whoever was here before */
		r->missed = missed(r);
	}
	if (group)
		fpga_write(&r->fpga, RFPGA_GROUP_START, members);
	for (unsigned int i = 0; i < s->dtps && !group; i++)
		fpga_write(&r->fpga, RFPGA_DTP(s->dtp[i].dtp) + RFPGA_DTP_CONTROL, RFPGA_DTP_START);
	if (!s->live)
		return;
	/* behind the processes: so they see its first image, all of them */
	fpga_write64(&r->fpga, r->source.base + RFPGA_SOURCE_PERIOD, r->config->period);
	fpga_write(&r->fpga, r->source.base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START);
}

/* All bits of the processes' status: any of them, and those that all have. */
static uint32_t status(struct run *r, uint32_t *all)
{
	uint32_t any = 0, one;

	*all = UINT32_MAX;
	for (unsigned int i = 0; i < r->stream.dtps; i++) {
		one = fpga_read(&r->fpga, RFPGA_DTP(r->stream.dtp[i].dtp) + RFPGA_DTP_STATUS);
		any |= one;
		*all &= one;
	}
	return any;
}

/* Stop every process of ours, and make sure of it. */
static int stop_all(struct run *r)
{
	uint64_t end = now_ns() + STOP_MS * 1000000ull;
	uint32_t all;

	if (!r->started)
		return 0;
	if (r->stream.live)
		stop_source(r);
	for (unsigned int i = 0; i < r->stream.dtps; i++)
		fpga_write(&r->fpga, RFPGA_DTP(r->stream.dtp[i].dtp) + RFPGA_DTP_CONTROL,
			   RFPGA_DTP_STOP);
	while (status(r, &all) & RFPGA_DTP_RUNNING) {
		if (now_ns() > end) {
			say("fpga%u: it does not stop by itself: the driver stops it",
			    r->fpga.number);
			if (rashpa_quiesce(r->fpga.device, NULL))
				return fail("fpga%u: %s", r->fpga.number, rashpa_reason());
			break;
		}
		poll(NULL, 0, 1);
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
		    stacks_complete(r) - r->stream.first_stack);
}

/* Empty the channel. 0, or an exit code if somebody stopped the function. */
static int take_events(struct run *r)
{
	struct rashpa_event event[64];
	ssize_t n;

	while ((n = read(r->channel, event, sizeof(event))) > 0) {
		for (size_t i = 0; i < n / sizeof(event[0]); i++) {
			if (event[i].kind != RASHPA_SOURCE_DEVICE ||
			    event[i].time_ns < r->stream.start_ns)
				continue;
			return fail("fpga%u: somebody stopped it (%s) after %" PRIu64 " stacks",
				    r->fpga.number, rashpa_device_event_name(event[i].value),
				    stacks_complete(r) - r->stream.first_stack);
		}
		if ((size_t)n < sizeof(event))
			return 0;
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return fail("fpga%u: event channel: %s", r->fpga.number,
			    errno == ENODEV ? "the function was removed" : strerror(errno));
	return 0;
}

static int wait_done(struct run *r, const volatile bool *stop)
{
	uint64_t end = stream_end(&r->stream), moved = now_ns(), checked = 0, last = 0, now, stacks;
	struct pollfd pollfd = { .fd = r->channel, .events = POLLIN };
	struct progress progress;
	uint32_t any, all;
	int result = 0;

	progress_init(&progress, r->config->opt.progress);
	while (!*stop) {
		stacks = stacks_complete(r);
		now = now_ns();
		if (stacks != last)
			moved = now;
		last = stacks;
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
				      (stacks - r->stream.first_stack) * r->stream.bunch,
				      any & RFPGA_DTP_WAITING ? ", waiting for the receiver" : "");
		}
		if (r->config->opt.timeout > 0 && now - moved > r->config->opt.timeout * 1e9) {
			say("no progress for %g s after %" PRIu64 " stacks%s",
			    r->config->opt.timeout, stacks - r->stream.first_stack,
			    status(r, &all) & RFPGA_DTP_WAITING ?
			    ": is there a receiver (romulu)?" : "");
			result = EXIT_TIMEOUT;
			break;
		}
		if (poll(&pollfd, 1, stacks >= end ? 1 : TICK_MS) > 0) {
			result = take_events(r);
			if (result)
				break;
		}
	}
	progress_end(&progress);
	return result;
}

static void count(struct run *r, struct report *report)
{
	const struct fpga *f = &r->fpga;
	uint64_t peak;

	report->dtps = r->stream.dtps;
	report->segments = r->segments;
	report->map_class = r->map_class;
	report->iommu = f->info.out_flags & RASHPA_DEVICE_IOMMU;
	report->slots = r->stream.slots;
	report->first_stack = r->stream.first_stack;
	report->images = report->stacks = report->start = UINT64_MAX;
	for (unsigned int i = 0; i < r->stream.dtps; i++) {
		size_t dtp = RFPGA_DTP(r->stream.dtp[i].dtp);
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
	if (r->stream.live)
		report->missed = missed(r);
	/* A board that is gone reads as all ones, at the latest behind its last counter. */
	report->counted = fpga_answers(f);
}

/* A stream that somebody began over ours is not ours to end. */
static bool still_ours(const struct run *r)
{
	return r->published && r->shared->magic == RASHPA_STREAM_MAGIC &&
	       r->shared->generation == r->stream.generation;
}

/* What a receiver needs to account for what it did not get. */
static void publish_end(struct run *r)
{
	const size_t dtp = RFPGA_DTP(r->stream.dtp[0].dtp);

	if (!still_ours(r))
		return;
	r->shared->sent = fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_IMAGES);
	r->shared->dropped = fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_DROPPED);
	r->shared->lost = fpga_read64(&r->fpga, dtp + RFPGA_DTP_C_LOST);
	r->shared->missed = r->stream.live ? missed(r) : 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_all(struct run *r)
{
	if (still_ours(r))
		__atomic_store_n(&r->shared->state, RASHPA_STREAM_ENDED, __ATOMIC_RELEASE);
	close_fd(r->channel);
	close_fd(r->lock_map);
	close_fd(r->map);
	view_close(&r->table);
	view_close(&r->memory);
	fpga_close(&r->fpga);
	close_fd(r->lock_dmabuf);
	locks_close(&r->locks);
	if (r->shared)
		munmap((void *)(uintptr_t)r->shared, r->length);
	close_fd(r->dmabuf);
	close_fd(r->buffer);
}

int pcie_run(const struct config *config, const struct dataset *dataset, volatile bool *stop,
	     struct report *report)
{
	struct run r = {
		.config = config,
		.dataset = dataset,
		.fpga = FPGA_NONE,
		.memory = VIEW_NONE, .table = VIEW_NONE,
		.buffer = -1, .dmabuf = -1, .map = -1, .channel = -1,
		.lock_dmabuf = -1, .lock_map = -1, .locks = LOCKS_NONE,
	};
	int result;

	result = open_buffer(&r);
	if (!result)
		result = open_fpga(&r);
	if (!result)
		result = plan(&r);
	if (!result)
		result = open_locks(&r);
	if (!result)
		result = check_fpga(&r);
	if (!result)
		result = load(&r, report, stop);
	if (!result)
		result = map_buffer(&r);
	if (!result)
		result = open_channel(&r);
	if (!result && !*stop) {
		start(&r);
		result = wait_done(&r, stop);
		if (stop_all(&r))
			result = EXIT_FAILED;
		report->interrupted = *stop;
		count(&r, report);
		publish_end(&r);
	}
	close_all(&r);
	return result;
}
