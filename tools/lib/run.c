// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: runs, DTPs of a board that fill a stream. See rashpa-board.h. */
#include <rashpa-board.h>
#include "lib/internal.h"
#include "lib/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* members of struct rashpa_dtp_stat that are added up: those before start */
#define SUMS		(offsetof(struct rashpa_dtp_stat, start) / sizeof(uint64_t))

#define FOR_EACH_DTP(n, r)	for (unsigned int n = 0; n < RFPGA_DTPS_MAX; n++) if ((r)->dtps & 1u << (n))

struct rashpa_run {
	struct rashpa_board *board;
	struct rashpa_board_info info;
	struct rashpa_stream *stream;
	const struct rashpa_stream_header *about;
	struct rashpa_run_plan plan;
	uint32_t dtps;			/* mask */
	uint32_t process[RFPGA_DTPS_MAX];	/* its process, by number of the DTP */
	struct rashpa_target *slots;
	struct rashpa_target *head;	/* the buffer, if it has the header but not the slots */
	struct rashpa_target *locks;	/* lock memory */
	struct rashpa_block source;	/* live source of the board */
	uint64_t missed;		/* images that the source missed before this stream */
	bool started;
	struct rashpa_dtp_stat before;	/* counts before the last start */
};

static int map(struct rashpa_run *r, int dmabuf, const char *kind, const char *name,
	       struct rashpa_target **target)
{
	const int error = rashpa_board_map(r->board, r->dtps, dmabuf, 0, target);

	return error ? librashpa_prefix(error, "%s%s: ", kind, name) : 0;
}

/* The same for a node of a memory. */
static int map_node(struct rashpa_run *r, int node, const char *kind, const char *name,
		    struct rashpa_target **target)
{
	const int dmabuf = rashpa_buffer_dmabuf(node);
	int error;

	if (dmabuf < 0)
		return librashpa_prefix(dmabuf, "%s%s: ", kind, name);
	error = map(r, dmabuf, kind, name, target);
	close(dmabuf);
	return error;
}

/* The memory of the lock records, if separate. */
static int map_locks(struct rashpa_run *r)
{
	const char *name = r->about->lock_name;
	struct rashpa_info info = { .fd = -1 };
	const int node = rashpa_stream_lock_memory(r->stream);
	int error = rashpa_memory_get_info(node, &info);

	if (error)
		return librashpa_prefix(error, "lock memory %s: ", name);
	if (info.out_kind != RASHPA_KIND_LOCK)
		return fail(EINVAL, "%s is not lock memory: create some (rashpactl lock create fpga%u NAME)",
			    name, r->info.number);
	return map_node(r, node, "lock memory ", name, &r->locks);
}

/* A lock record may overtake writes to another function, unless a read flushes them first. */
static int check_order(const struct rashpa_run *r, int payload)
{
	struct rashpa_info info = { .fd = payload };

	if (!rashpa_memory_get_info(rashpa_stream_buffer(r->stream), &info) &&
	    info.out_kind != RASHPA_KIND_WINDOW)
		return 0;
	if (r->info.features & RFPGA_FEATURE_FLUSH)
		return 0;
	return fail(ENOTSUP, "fpga%u: it cannot flush (no FLUSH in its features), so lock records may overtake images on their way to memory %s: stream to a buffer",
		    r->info.number, r->about->payload_name);
}

/* Map the slots, the buffer with the header if that is separate, and lock memory. */
static int map_all(struct rashpa_run *r)
{
	const struct rashpa_stream_header *h = r->about;
	const bool apart = *h->payload_name;
	const int payload = rashpa_stream_payload(r->stream);
	int error = payload < 0 ? payload : apart ? check_order(r, payload) : 0;

	if (!error)
		error = map(r, payload, apart ? "memory " : "the buffer", h->payload_name,
			    &r->slots);
	if (!error && apart && (h->meta_slot || !*h->lock_name))
		error = map_node(r, rashpa_stream_buffer(r->stream), "the buffer", "", &r->head);
	if (!error && *h->lock_name)
		error = map_locks(r);
	return error;
}

/* DTPs of this board among the processes of the stream. */
static int find_dtps(struct rashpa_run *r)
{
	for (uint32_t i = 0; i < r->about->processes; i++) {
		const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, i);

		if (p->function != RASHPA_STREAM_FPGA || p->fpga != r->info.number)
			continue;
		if (p->number >= r->info.dtps)
			return fail(ENOTSUP, "fpga%u: it has %u DTPs, but not DTP %" PRIu32,
				    r->info.number, r->info.dtps, p->number);
		r->process[p->number] = i;
		r->dtps |= RASHPA_BOARD_DTP(p->number);
	}
	if (!r->dtps)
		return fail(EINVAL, "fpga%u: no process of the stream is one of its DTPs",
			    r->info.number);
	if (r->about->live && rashpa_board_find_block(r->board, RFPGA_BLOCK_SOURCE,
						      RFPGA_SOURCE_SIZE, &r->source))
		return fail(ENOTSUP, "fpga%u: it has no live source: stream from memory",
			    r->info.number);
	return 0;
}

int rashpa_run_open_sized(struct rashpa_board *board, struct rashpa_stream *stream,
			  const struct rashpa_run_plan *plan, struct rashpa_run **run, size_t size)
{
	struct rashpa_run *r = calloc(1, sizeof(*r));
	int error;

	*run = NULL;
	if (!r)
		return fail(ENOMEM, "no memory");
	r->board = board;
	r->stream = stream;
	r->about = rashpa_stream_get_header(stream);
	sized_copy(&r->plan, sizeof(r->plan), plan, size);
	error = r->about ? rashpa_board_get_info(board, &r->info) :
			   fail(EINVAL, "the stream is not a producer's");
	if (!error)
		error = find_dtps(r);
	if (!error)
		error = map_all(r);
	if (error)
		rashpa_run_close(r);
	else
		*run = r;
	return error;
}

void rashpa_run_close(struct rashpa_run *r)
{
	if (!r)
		return;
	rashpa_target_close(r->locks);
	rashpa_target_close(r->head);
	rashpa_target_close(r->slots);
	free(r);
}

static struct rashpa_target_info entries(const struct rashpa_target *t, unsigned int n)
{
	struct rashpa_target_info info = {};

	rashpa_target_get_info(t, RASHPA_BOARD_DTP(n), &info);
	return info;
}

/* Configure a DTP for a start with stack @k. */
static void configure(const struct rashpa_run *r, unsigned int n, uint64_t k, uint64_t period)
{
	const struct rashpa_stream_header *s = r->about;
	const struct rashpa_stream_process *p = rashpa_stream_process_at(r->stream, r->process[n]);
	const struct rashpa_target *head = r->head ? r->head : r->slots;
	const struct rashpa_target_info slots = entries(r->slots, n), meta = entries(head, n);
	const struct rashpa_target_info locks = entries(r->locks ? r->locks : head, n);
	const uint32_t dataset = s->dataset_images ? s->dataset_images : 1;
	const uint32_t step = s->sampling % dataset;
	const struct rfpga_dtp dtp = {
		/* In host memory the payload precedes its lock record even without a flush. */
		.mode = RFPGA_MODE_MSIX | RFPGA_MODE_LOCK |
			(r->info.features & RFPGA_FEATURE_FLUSH ? RFPGA_MODE_FLUSH : 0) |
			(s->meta_slot ? RFPGA_MODE_META : 0) |
			(s->policy ? RFPGA_MODE_FREERUN : 0) |
			(s->policy == RASHPA_STREAM_DROP ? RFPGA_MODE_DROP : 0),
		.vector = p->vector,
		.pixel_bytes = stream_pixel_bytes(s->pixel),
		.bunch = s->bunch,
		.slots = s->slots,
		.src_base = r->plan.offset,
		.src_images = dataset,
		.src_x = p->origin_x,
		.src_y = p->origin_y,
		.width = p->width,
		.height = p->height,
		.dst_x = p->x,
		.dst_y = p->y,
		.src_line = r->plan.line_stride,
		.src_image = r->plan.image_stride,
		.dst_base = s->data_offset,
		.dst_line = s->line_stride,
		.dst_image = s->image_stride,
		.dst_slot = s->slot_stride,
		.dst_first = slots.first,
		.dst_count = slots.entries,
		.lock_offset = s->lock_offset + (uint64_t)p->lock * RFPGA_LOCK_SIZE,
		.lock_first = locks.first,
		.lock_count = locks.entries,
		.images = s->images ? s->images - (k - s->first_stack) * s->bunch : 0,
		.period = s->live ? 0 : period,
		.first_stack = k,
		.first_slot = k % s->slots,
		.first_index = (k % dataset * s->bunch % dataset * step + s->phase) % dataset,
		.index_step = step,
		.source = s->live ? RFPGA_FROM_LIVE : RFPGA_FROM_MEMORY,
		.sampling = s->live ? s->sampling | s->phase << 16 : 0,
		.run = s->run,
		.meta_offset = rashpa_stream_meta(r->stream, r->process[n]),
		.meta_first = meta.first,
		.meta_count = meta.entries,
		.first_frame = k * s->bunch,
	};

	rashpa_board_configure(r->board, n, &dtp);
}

static void command_source(const struct rashpa_run *r, uint32_t control)
{
	rashpa_board_write(r->board, r->source.base + RFPGA_SOURCE_CONTROL, control);
}

/* Counted since the reset of the board. */
static uint64_t missed(const struct rashpa_run *r)
{
	return !r->about->live ? 0 : rashpa_board_read64(r->board, r->source.base +
							 RFPGA_SOURCE_MISSED) - r->missed;
}

/* Counts of the whole run: after another start the board counts from 0. */
static int count_run(const struct rashpa_run *r, struct rashpa_dtp_stat *c)
{
	const struct rashpa_dtp_stat *b = &r->before;
	const int error = rashpa_board_get_stat(r->board, r->dtps, c);

	for (size_t i = 0; i < SUMS; i++)
		((uint64_t *)c)[i] += ((const uint64_t *)b)[i];
	c->start = b->start ? b->start : c->start;
	c->fifo_peak = b->fifo_peak > c->fifo_peak ? b->fifo_peak : c->fifo_peak;
	c->missed = missed(r);
	return error;
}

int rashpa_run_get_stat_sized(const struct rashpa_run *r, struct rashpa_dtp_stat *stat, size_t size)
{
	struct rashpa_dtp_stat all;
	const int error = count_run(r, &all);

	sized_copy(stat, size, &all, sizeof(all));
	return error;
}

int rashpa_run_start(struct rashpa_run *r, uint64_t first, uint64_t period)
{
	const struct rashpa_stream_header *s = r->about;
	const struct rashpa_target_info slots = entries(r->slots, __builtin_ctz(r->dtps));
	struct rashpa_dtp_stat so_far;
	int error = 0;

	if (r->started && (s->live || s->policy == RASHPA_STREAM_DROP))
		return fail(ENOTSUP, "fpga%u: a stream that loses images meanwhile does not go on: begin another one",
			    r->info.number);
	if (r->started) {
		error = count_run(r, &so_far);
		r->before = so_far;
		/* incomplete stacks are sent again */
		r->before.stacks = first - s->first_stack;
		r->before.images = r->before.stacks * s->bunch;
		if (s->images && r->before.images > s->images)
			r->before.images = s->images;
	} else if (s->state != RASHPA_STREAM_RUNNING) {
		error = rashpa_stream_start(r->stream, slots.segments, slots.map_class);
	}
	if (error)
		return error;
	if (s->live) {
		command_source(r, RFPGA_SOURCE_STOP);	/* started by an earlier producer */
		r->missed = missed(r);
	}
	r->started = true;
	FOR_EACH_DTP(n, r)
		configure(r, n, first, period);
	error = rashpa_board_start(r->board, r->dtps);
	if (error || !s->live)
		return error;
	/* start the source after the DTPs, so that all of them get its first image */
	rashpa_board_write64(r->board, r->source.base + RFPGA_SOURCE_PERIOD, period);
	command_source(r, RFPGA_SOURCE_START);
	return 0;
}

int rashpa_run_stop(struct rashpa_run *r, int64_t timeout_ns)
{
	if (r->about->live)
		command_source(r, RFPGA_SOURCE_STOP);
	return rashpa_board_stop(r->board, r->dtps, timeout_ns);
}

int rashpa_run_ended_by(const struct rashpa_run *r, const struct rashpa_event *event)
{
	if (event->kind != RASHPA_SOURCE_DEVICE || event->time_ns < r->about->start_ns)
		return 0;
	if ((uint32_t)event->value != RASHPA_DEVICE_EVENT_ENGINE)
		return 1;
	FOR_EACH_DTP(n, r)
		if (entries(r->slots, n).engine == (int)(event->value >> 32))
			return 1;
	return 0;
}

int rashpa_run_end(const struct rashpa_run *r)
{
	const uint32_t dtp = RFPGA_DTP(__builtin_ctz(r->dtps));
	struct rashpa_board_info info;
	const struct rashpa_stream_header count = {
		.sent = r->before.images + rashpa_board_read64(r->board, dtp + RFPGA_DTP_C_IMAGES),
		.dropped = rashpa_board_read64(r->board, dtp + RFPGA_DTP_C_DROPPED),
		.lost = rashpa_board_read64(r->board, dtp + RFPGA_DTP_C_LOST),
		.missed = missed(r),
	};

	return rashpa_stream_end(r->stream, rashpa_board_get_info(r->board, &info) ? NULL : &count);
}
