// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stacks are recorded in folders, straight from their slots. Several writes are under way; a thread
 * takes their completions, and releases stacks in their order.
 */
#include <errno.h>
#include <inttypes.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/say.h"
#include "romulu/romulu.h"

#define DEPTH		64u			/* most writes under way, */
#define BYTES		(UINT64_C(256) << 20)	/* of so many bytes, or two writes */
#define AT_ONCE		(UINT64_C(1) << 30)	/* most bytes of a write, and of a registered buffer */
#define REGISTERED	(1u << 14)		/* most buffers that io_uring registers */
#define LOOK_NS		100000000ull

/* A stack on its way to the disk. */
struct request {
	struct rashpa_stack stack;
	uint8_t *from;
	uint64_t number, offset;	/* in the recording, and bytes in its file */
	uint64_t done;			/* bytes */
	bool copied, safe;		/* safe: copied before the stack could be overwritten */
	bool direct;			/* the last write of it was to be O_DIRECT */
	bool complete;
};

struct recorder {
	struct recording rec;
	uint64_t bytes;			/* of a stack */
	uint32_t slots;
	uint32_t depth, most;		/* stacks; how many are left when a wait for room ends */
	uint64_t first;			/* stacks of the recording before this run, */
	struct recording_image last;	/* and its last image */
	struct request *request;	/* [depth], one after the other */
	uint8_t *_Atomic copies;	/* [depth] of stacks; NULL: straight from the slots */
	bool started, have_ring;
	pthread_t reaper;
	_Atomic uint64_t ended;		/* stacks whose writes have ended */
	_Atomic uint64_t put, kept;	/* stacks */
	_Atomic int failed;		/* exit status */
	int stuck;			/* likewise: no further stack can be kept */
	_Atomic bool waits;		/* for room */
	pthread_mutex_t lock;		/* of submissions and waits */
	pthread_cond_t change;
	struct io_uring ring;
	bool *registered;		/* slots; NULL: none */
};

static int record_open(struct run *r)
{
	const struct config *c = r->config;
	struct recorder *w = calloc(1, sizeof(*w));

	if (!w)
		return fail("no memory to record");
	r->data = w;
	w->rec.index = -1;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->change, NULL);
	/* a limit of the size of files is an error as others are */
	signal(SIGXFSZ, SIG_IGN);
	return recording_open(&w->rec, c->write, c->writes, c->sync);
}

/* --- writes --- */

/* From now on stacks are copied first. */
static bool copy_first(struct recorder *w, const char *why)
{
	void *copies;

	if (w->copies)
		return true;
	copies = mmap(NULL, w->depth * w->bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copies == MAP_FAILED)
		return false;
	w->copies = copies;
	say("%s: stacks are copied before they are written: %s", *w->rec.folder, why);
	return true;
}

static void copy(struct recorder *w, struct request *q)
{
	const struct rashpa_stack *st = &q->stack;

	q->from = w->copies + (q - w->request) * w->bytes;
	q->copied = true;
	memcpy(q->from, st->data, (st->images - 1) * st->image_stride +
	       (st->height - 1) * st->line_stride + (size_t)st->width * st->pixel_bytes);
}

/* Stacks that are written belong to the recording in their order. */
static void keep(struct recorder *w)
{
	uint64_t end = w->kept;

	for (; end < w->put && !w->stuck; end++) {
		const struct request *q = &w->request[end % w->depth];

		if (!q->complete)
			break;
		if (!q->safe && !rashpa_stack_intact(&q->stack))
			w->stuck = fail("%s: stack %" PRIu64 " was overwritten before it was recorded",
					*w->rec.folder, q->stack.number);
		else
			w->stuck = recording_add(&w->rec, &q->stack);
		if (w->stuck)
			break;
	}
	if (end > w->kept && recording_keep(&w->rec)) {
		w->stuck = EXIT_FAILED;
		end = w->kept;
	}
	for (; w->kept < end; w->kept++) {
		const struct rashpa_stack *st = &w->request[w->kept % w->depth].stack;

		rashpa_stream_release(st->stream, st);
	}
	if (w->stuck)
		w->failed = w->stuck;
	if (w->waits && (w->put - w->kept <= w->most || w->failed)) {
		pthread_mutex_lock(&w->lock);
		pthread_cond_signal(&w->change);
		pthread_mutex_unlock(&w->lock);
	}
}

/*
 * A slot is registered when it comes for the second time: that takes as long as to pin it for some
 * writes, and all slots at once would stop the stream.
 */
static bool is_registered(struct recorder *w, const struct request *q)
{
	const struct iovec slot = { q->from, w->bytes };
	const uint32_t i = q->stack.slot;
	int result;

	if (!w->registered || q->copied || q->number - w->first < w->slots)
		return false;
	if (w->registered[i])
		return true;
	result = io_uring_register_buffers_update_tag(&w->ring, i, &slot, NULL, 1);
	w->registered[i] = result == 1;
	if (result == 1)
		return true;
	say("%s: slots are not registered, and each write pins its own: %s", *w->rec.folder,
	    strerror(-result));
	free(w->registered);
	w->registered = NULL;
	return false;
}

/* Write the rest. -EINPROGRESS, or the result of what was written at once. */
static int submit(struct recorder *w, struct request *q)
{
	const int file = w->rec.file[q->number % w->rec.files];
	const uint64_t left = w->bytes - q->done, offset = q->offset + q->done;
	const unsigned int bytes = left < AT_ONCE ? left : AT_ONCE;
	const uint8_t *from = q->from + q->done;
	struct io_uring_sqe *sqe;
	ssize_t result;

	q->direct = w->rec.direct;
	if (!w->have_ring) {
		result = pwrite(file, from, bytes, offset);
		return result < 0 ? -errno : result;
	}
	pthread_mutex_lock(&w->lock);
	sqe = io_uring_get_sqe(&w->ring);	/* as many as requests */
	if (is_registered(w, q))
		io_uring_prep_write_fixed(sqe, file, from, bytes, offset, q->stack.slot);
	else
		io_uring_prep_write(sqe, file, from, bytes, offset);
	io_uring_sqe_set_data(sqe, q);
	/* it stays in the ring: a second one for the same request would count twice */
	do
		result = io_uring_submit(&w->ring);
	while (result == -EAGAIN || result == -EINTR);
	pthread_mutex_unlock(&w->lock);
	return result < 0 ? result : -EINPROGRESS;
}

/* Does a request go on after this result? */
static bool goes_on(struct recorder *w, struct request *q, int result)
{
	const uint64_t left = w->bytes - q->done;

	if (result == -EINTR || result == -EAGAIN)
		return true;
	if (result == -EFAULT && !q->copied && copy_first(w, "their memory cannot be pinned")) {
		copy(w, q);
		return true;
	}
	/* others that are under way fail likewise */
	if (result == -EINVAL && q->direct) {
		recording_indirect(&w->rec, EINVAL);
		return true;
	}
	/* O_DIRECT goes on at blocks only */
	if (result > 0 && q->direct && (uint64_t)result < left)
		result -= result % RECORDING_BLOCK;
	if (result <= 0 && !w->failed)
		w->failed = fail("%s: cannot write frames: %s",
				 w->rec.folder[q->number % w->rec.files],
				 strerror(result ? -result : ENOSPC));
	if (result <= 0)
		return false;
	q->done += result;
	q->complete = q->done == w->bytes;
	return !q->complete;
}

/* A part of it was written, with this result; -EAGAIN: nothing yet. */
static void advance(struct recorder *w, struct request *q, int result)
{
	while (goes_on(w, q, result)) {
		result = submit(w, q);
		if (result == -EINPROGRESS)
			return;
	}
	w->ended++;
}

static void *reap(void *argument)
{
	struct recorder *w = argument;
	struct io_uring_cqe *cqe;
	bool over = false;

	while (!over || w->ended < w->put) {
		while (io_uring_wait_cqe(&w->ring, &cqe))
			;
		while (!io_uring_peek_cqe(&w->ring, &cqe)) {
			struct request *q = io_uring_cqe_get_data(cqe);
			const int result = cqe->res;

			io_uring_cqe_seen(&w->ring, cqe);
			if (q)
				advance(w, q, result);
			else
				over = true;
		}
		keep(w);
	}
	return NULL;
}

/* --- stacks --- */

static int record_begin(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	struct recorder *w = r->data;
	int result = recording_begin(&w->rec, h);

	if (result)
		return result;
	w->bytes = w->rec.header.pitch;
	w->depth = BYTES / w->bytes < 2 ? 2 : BYTES / w->bytes < DEPTH ? BYTES / w->bytes : DEPTH;
	/* one slot at least is being filled meanwhile */
	if (w->depth >= h->slots)
		w->depth = h->slots > 1 ? h->slots - 1 : 1;
	w->most = w->depth - (w->depth + 3) / 4;
	w->slots = h->slots;
	w->first = w->rec.stacks;
	w->last = w->rec.last;
	w->request = calloc(w->depth, sizeof(*w->request));
	return w->request ? 0 : fail("no memory to record");
}

static int start(struct recorder *w, const struct rashpa_stream_header *h, const void *slot)
{
	const bool aligned = !((h->slot_stride | (uintptr_t)slot) % RECORDING_BLOCK) &&
			     w->bytes <= h->slot_stride;
	int error;

	if ((h->policy == RASHPA_STREAM_OVERWRITE && !copy_first(w, "the stream overwrites them")) ||
	    (!aligned && !copy_first(w, "slots are not aligned to 4096 bytes")))
		return fail("no memory for copies of stacks");
	error = io_uring_queue_init(w->depth, &w->ring, 0);
	w->have_ring = !error;
	if (error)
		say("%s: one stack is written at a time, without io_uring: %s", *w->rec.folder,
		    strerror(-error));
	else if (h->slots <= REGISTERED && w->bytes <= AT_ONCE &&
		 !io_uring_register_buffers_sparse(&w->ring, h->slots))
		w->registered = calloc(h->slots, sizeof(*w->registered));
	error = w->have_ring ? pthread_create(&w->reaper, NULL, reap, w) : 0;
	if (error) {
		io_uring_queue_exit(&w->ring);
		w->have_ring = false;
		return fail("cannot make a thread: %s", strerror(error));
	}
	w->started = true;
	return 0;
}

/* Wait until there is room: for several stacks, since each wait takes time. */
static int await_room(struct run *r, struct recorder *w)
{
	const double timeout = r->config->opt.timeout;
	uint64_t kept = w->kept, since, now;
	int result = 0;

	if (w->put - kept < w->depth)
		return w->failed;
	since = now = now_ns();
	pthread_mutex_lock(&w->lock);
	w->waits = true;
	while (w->put - w->kept > w->most && !w->failed && !result) {
		const uint64_t until = now + LOOK_NS;
		const struct timespec at = { until / 1000000000, until % 1000000000 };

		pthread_cond_clockwait(&w->change, &w->lock, CLOCK_MONOTONIC, &at);
		now = now_ns();
		if (w->kept != kept)
			since = now;
		kept = w->kept;
		if (*r->stop)
			result = -EINTR;
		else if (timeout > 0 && now - since >= timeout * 1e9)
			result = EXIT_TIMEOUT;
	}
	w->waits = false;
	pthread_mutex_unlock(&w->lock);
	if (result == EXIT_TIMEOUT)
		say("%s: no stack was written for %g s", *w->rec.folder, timeout);
	return w->failed ? w->failed : result;
}

static int record_look(struct run *r, const struct rashpa_stack *st)
{
	struct recorder *w = r->data;
	struct request *q;
	int result = w->started ? 0 : start(w, r->about, st->data);

	if (!result)
		result = await_room(r, w);
	if (result)
		return result;
	q = &w->request[w->put % w->depth];
	*q = (struct request) { .stack = *st, .from = st->data };
	if (w->copies && st->images) {
		copy(w, q);
		q->safe = true;
	}
	return 0;
}

static int record_stack(struct run *r, const struct rashpa_stack *st)
{
	struct recorder *w = r->data;
	struct request *q = &w->request[w->put % w->depth];

	/* a receiver that was killed had no time to give it back */
	if (!st->images || (w->last.images && w->last.run == st->run &&
			    st->number <= w->last.stack)) {
		rashpa_stream_release(r->stream, st);
		return 0;
	}
	q->number = w->first + w->put;
	q->offset = recording_place(&w->rec, q->number);
	w->put++;
	advance(w, q, -EAGAIN);
	if (!w->have_ring)
		keep(w);
	return 0;
}

/* Stacks that did not come into the recording are the next receiver's. */
static void end_writes(struct run *r, struct recorder *w)
{
	struct io_uring_sqe *sqe;

	if (w->have_ring) {
		pthread_mutex_lock(&w->lock);
		sqe = io_uring_get_sqe(&w->ring);
		io_uring_prep_nop(sqe);
		io_uring_sqe_set_data(sqe, NULL);
		io_uring_submit(&w->ring);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->reaper, NULL);
		io_uring_queue_exit(&w->ring);
	}
	for (uint64_t k = w->kept; k < w->put; k++) {
		const struct rashpa_stack *st = &w->request[k % w->depth].stack;

		r->report->bytes -= r->report->bytes / r->report->frames * st->images;
		r->report->frames -= st->images;
		r->report->stacks--;
	}
}

static int record_close(struct run *r)
{
	struct recorder *w = r->data;
	uint64_t begin;
	int result;

	if (!w)
		return 0;
	begin = now_ns();
	end_writes(r, w);
	result = recording_close(&w->rec);
	if (r->report->ns)
		r->report->ns += now_ns() - begin;
	if (w->failed)
		result = w->failed;
	if (w->copies)
		munmap(w->copies, w->depth * w->bytes);
	free(w->request);
	free(w->registered);
	pthread_cond_destroy(&w->change);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return result;
}

const struct use use_record = {
	.name = "record",
	.open = record_open,
	.begin = record_begin,
	.look = record_look,
	.stack = record_stack,
	.keeps = true,
	.close = record_close,
};
