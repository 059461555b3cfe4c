// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Ways to drive GPUs of CUDA beside one image after the other: work that is enqueued when an image
 * is there; work that is enqueued beforehand and waits for the lock itself, in three streams that
 * overlap; a kernel that stays and polls. In each the GPU decides whether an image is accepted, and
 * only what is accepted is copied to the host.
 *
 *	lock >= s+1 --> in(k): to In[k & 1] --> I --> compute(k): pretreat, decide, bank --> C
 *			     ^ C >= k-1			            | accepted: V
 *	host has R results <-- R <-- out(j): of bank[j % credits] <-- V >= j+1
 *
 * All of these words only rise, and all waits are for "at least": nobody misses one by looking
 * late.
 */
#include "pipeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rashpa.h"
#include "say.h"

#ifdef RPU_NO_CUDA

int rashpa_drive_open(struct rashpa_pipeline * const *pipelines, uint32_t count,
		      const struct rashpa_drive_plan *plan, struct rashpa_drive **drive, char *why)
{
	(void)pipelines;
	(void)count;
	(void)plan;
	*drive = NULL;
	return because(why, -EOPNOTSUPP, "this library was built without %s", RPU_NO_CUDA);
}

int rashpa_drive_next(struct rashpa_drive *drive, struct rashpa_driven *result, int timeout_ms,
		      char *why)
{
	(void)drive;
	(void)result;
	(void)timeout_ms;
	return because(why, -EOPNOTSUPP, "this library was built without %s", RPU_NO_CUDA);
}

void rashpa_drive_release(struct rashpa_drive *drive, const struct rashpa_driven *result)
{
	(void)drive;
	(void)result;
}

void rashpa_drive_arrived(struct rashpa_drive *drive, uint32_t arrived)
{
	(void)drive;
	(void)arrived;
}

uint32_t rashpa_drive_taken(const struct rashpa_drive *drive)
{
	(void)drive;
	return 0;
}

void rashpa_drive_status(const struct rashpa_drive *drive, struct rashpa_drive_stat *stat)
{
	(void)drive;
	*stat = (struct rashpa_drive_stat) {};
}

int rashpa_drive_close(struct rashpa_drive *drive, char *why)
{
	(void)drive;
	(void)why;
	return 0;
}

#else

#include "cuda.h"

#define GPUS		16
#define NAP_NS		20000

/* "struct driven" of cuda.cu */
struct driven_arguments {
	struct rpu_arguments all;
	uint64_t lock, control, decision, banks;
	uint32_t least, bank_count, image_number;
	uint32_t lock_first, lock_step, images;
	uint32_t ring_step, ring_slots;
};

_Static_assert(sizeof(struct driven_arguments) == sizeof(struct rpu_arguments) + 64,
	       "cuda.cu has the same");

enum { DECIDE, BANK, PUBLISH, POLL, OWN_KERNELS };

static const char * const own_kernels[OWN_KERNELS] = {
	"rpu_decide", "rpu_bank", "rpu_publish", "rpu_poll",
};

enum { IN, COMPUTE, OUT, STREAMS };

static const char * const streams[STREAMS] = { "in", "compute", "out" };

/* One GPU: it has each count-th image. */
struct wheel {
	struct rpu_cuda *g;
	struct cuda_stream *stream[STREAMS];
	struct cuda_function *own[OWN_KERNELS];
	uint64_t in[2], decision, banks;
	uint32_t *control;		/* pinned: the GPU has it at the same address */
	float *results;			/* [credits], each with its record: likewise */
	uint32_t images;		/* that it will have */
	uint32_t enqueued, outs;	/* images, and copies of results that await the veto */
	uint32_t given, released;	/* results */
};

struct rashpa_drive {
	struct rashpa_drive_plan plan;
	struct wheel wheel[GPUS];
	uint32_t count, pieces;
	struct rpu_calibration calibration;
	float threshold;
	uint32_t least;
	size_t pixels, image_bytes, piece_bytes;
	bool direct;			/* images are in memory of the one GPU: no copy */
	bool flushes;
	struct rashpa_gpu_memory *lock_page, *ring;	/* the first GPU's; others see them, too */
	uint64_t lock, ring_address;	/* as GPUs have them */
	atomic_uint *lock_here;
	bool lock_is_ours;
	struct rashpa_drive_stat stat;
	uint64_t moved;			/* sum of all words, when one moved last */
	unsigned long long moved_ns;
};

static uint32_t look(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static int refuse(const struct wheel *w, const char *what, int result, char *why)
{
	const char *text = NULL;

	w->g->cu.error(result, &text);
	return because(why, -EIO, "%s: %s: its driver said %d (%s)", w->g->head.info.name,
		       what, result, text ? text : "no text");
}

static bool push(const struct wheel *w)
{
	return !w->g->cu.push(w->g->by_cuda.context);
}

static void pop(const struct wheel *w)
{
	struct cuda_context *ours;

	w->g->cu.pop(&ours);
}

/* --- open --- */

static int check(struct rashpa_pipeline * const *p, uint32_t count,
		 const struct rashpa_drive_plan *plan, char *why)
{
	if (!count || count > GPUS)
		return because(why, -EINVAL, "a drive has 1 to %d GPUs, not %" PRIu32, GPUS, count);
	for (uint32_t i = 0; i < count; i++) {
		if (p[i]->state != RPU_BEGUN || rpu_is_elsewhere(p[i]))
			return rpu_unready(p[i], why);
		if (!p[i]->gpu || p[i]->gpu->by != &rpu_cuda)
			return because(why, -EOPNOTSUPP, "engine %s is not driven: use cuda",
				       *p[i]->gpu_name ? p[i]->gpu_name : p[i]->engine->name);
		if (p[i]->geometry.width != p[0]->geometry.width ||
		    p[i]->geometry.height != p[0]->geometry.height ||
		    p[i]->geometry.pixel != p[0]->geometry.pixel)
			return because(why, -EINVAL, "GPUs of a drive have images of one geometry");
		if (p[i]->width != p[i]->geometry.width || p[i]->used[RPU_CORRECT] ||
		    p[i]->used[RPU_ASSEMBLE] || p[i]->used[RPU_PEAKS])
			return because(why, -EINVAL, "a drive pretreats and has a veto by pixels: leave the other stages out");
	}
	if (plan->way > RASHPA_DRIVE_POLL || !plan->credits || !plan->ahead || !plan->patience_ms ||
	    !plan->images || plan->images > INT32_MAX / 2)
		return because(why, -EINVAL, "a plan has a way, images, credits, and how many are enqueued ahead");
	if (plan->raw && (!plan->slots || plan->step % 4 || (uintptr_t)plan->raw % 4))
		return because(why, -EINVAL, "raw images are in slots, at multiples of 4 bytes");
	return 0;
}

/* A ring of the host's is read where it is; a window is memory of the GPU, in two pieces. */
static int plan_source(struct rashpa_drive *d, const struct rashpa_pipeline *p, char *why)
{
	const uint64_t words = (d->image_bytes + 3) / 4 * 4;

	d->pieces = 1;
	d->piece_bytes = d->image_bytes;
	if (d->plan.raw)
		return d->plan.step >= words ? 0 :
		       because(why, -EINVAL, "images of %zu bytes do not fit into steps of %"
			       PRIu64, d->image_bytes, d->plan.step);
	if (!p->gpu->offered || d->count > 1)
		return because(why, -EINVAL, "where are the raw images? Give a ring of the host, or one GPU with offered memory");
	d->direct = !d->plan.window_bytes || d->plan.window_bytes >= p->gpu->offered_bytes;
	if (d->direct) {
		d->plan.step = p->gpu->ring.step;
		d->plan.slots = p->gpu->ring.slots;
		return d->plan.slots ? 0 : because(why, -EINVAL, "the geometry tells of no ring");
	}
	if (d->plan.way != RASHPA_DRIVE_AHEAD)
		return because(why, -EINVAL, "a window in pieces is for work that is enqueued ahead");
	d->piece_bytes = d->plan.window_bytes / 2 / 4 * 4;
	if (!d->piece_bytes)
		return because(why, -EINVAL, "a window of %" PRIu64 " bytes has no two pieces",
			       d->plan.window_bytes);
	if (d->piece_bytes > d->image_bytes)
		d->piece_bytes = d->image_bytes;
	d->pieces = (d->image_bytes + d->piece_bytes - 1) / d->piece_bytes;
	return 0;
}

static int open_wheel(struct rashpa_drive *d, struct wheel *w, char *why)
{
	const size_t banks = d->plan.credits * (d->pixels + RPU_RECORD) * sizeof(float);
	const struct rpu_cuda_calls *cu = &w->g->cu;
	int result = 0;
	void *base[2] = {};

	if (!push(w))
		return because(why, -EIO, "%s: no context", w->g->head.info.name);
	for (unsigned int i = 0; i < STREAMS && !result; i++)
		result = cu->stream(&w->stream[i], CUDA_NON_BLOCKING);
	for (unsigned int i = 0; i < OWN_KERNELS && !result; i++)
		result = cu->function(&w->own[i], w->g->module, own_kernels[i]);
	for (unsigned int i = 0; i < 2 && !result && !d->direct; i++)
		result = cu->alloc(&w->in[i], (d->image_bytes + 3) / 4 * 4);
	if (!result)
		result = cu->alloc(&w->decision, RPU_DECISIONS * sizeof(uint32_t));
	if (!result)
		result = cu->alloc(&w->banks, banks);
	if (!result)
		result = cu->alloc_host(&base[0], RPU_CONTROLS * sizeof(uint32_t), 0);
	w->control = base[0];
	if (!result)
		result = cu->alloc_host(&base[1], banks, 0);
	w->results = base[1];
	pop(w);
	if (result)
		return refuse(w, "memory of a drive", result, why);
	memset(w->control, 0, RPU_CONTROLS * sizeof(uint32_t));
	return 0;
}

/* The pages that it is in, for the GPU: where the GPU has it. */
static int let_see(struct rashpa_drive *d, const void *from, uint64_t bytes,
		   struct rashpa_gpu_memory **memory, uint64_t *address, char *why)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uintptr_t at = (uintptr_t)from, begin = at / page * page;
	const uint64_t length = (at + bytes - begin + page - 1) / page * page;

	if (rashpa_gpu_register(d->wheel[0].g->head.gpu, (void *)begin, length, 0, memory))
		return because(why, -EIO, "%s", rashpa_reason());
	*address = rashpa_gpu_address(*memory) + (at - begin);
	return 0;
}

static int open_lock(struct rashpa_drive *d, char *why)
{
	int flushes = 0;

	d->lock_is_ours = !d->plan.lock;
	if (d->lock_is_ours) {
		d->lock_here = (atomic_uint *)&d->wheel[0].control[RPU_CONTROL_LOCK];
		d->lock = (uintptr_t)d->lock_here;
	} else {
		d->lock_here = (atomic_uint *)d->plan.lock;
		if (let_see(d, d->plan.lock, sizeof(uint32_t), &d->lock_page, &d->lock, why))
			return -EIO;
	}
	d->wheel[0].g->cu.attribute(&flushes, CUDA_FLUSHES, d->wheel[0].g->by_cuda.device);
	d->flushes = flushes;
	return 0;
}

static int open_ring(struct rashpa_drive *d, char *why)
{
	return !d->plan.raw ? 0 : let_see(d, d->plan.raw, d->plan.step * d->plan.slots, &d->ring,
					  &d->ring_address, why);
}

static uint64_t sum_of_words(const struct rashpa_drive *d)
{
	uint64_t sum = atomic_load(d->lock_here);

	for (uint32_t i = 0; i < d->count; i++) {
		for (unsigned int k = 0; k < RPU_CONTROLS; k++)
			sum += look(&d->wheel[i].control[k]);
		sum += d->wheel[i].released;
	}
	return sum;
}

int rashpa_drive_open(struct rashpa_pipeline * const *pipelines, uint32_t count,
		      const struct rashpa_drive_plan *plan, struct rashpa_drive **drive, char *why)
{
	struct rashpa_drive *d;
	int error = check(pipelines, count, plan, why);

	*drive = NULL;
	if (error)
		return error;
	d = calloc(1, sizeof(*d));
	if (!d)
		return because(why, -ENOMEM, "no memory for a drive");
	d->plan = *plan;
	d->count = count;
	d->calibration = pipelines[0]->pretreat.calibration;
	d->pixels = (size_t)d->calibration.width * d->calibration.height;
	d->image_bytes = d->pixels << (d->calibration.pixel - RASHPA_PIXEL_U8);
	d->threshold = pipelines[0]->veto.threshold;
	d->least = pipelines[0]->veto.pixels < UINT32_MAX ? pipelines[0]->veto.pixels : UINT32_MAX;
	error = plan_source(d, pipelines[0], why);
	for (uint32_t i = 0; i < count && !error; i++) {
		d->wheel[i].g = (struct rpu_cuda *)pipelines[i]->gpu;
		d->wheel[i].images = (plan->images - i + count - 1) / count;
		error = open_wheel(d, &d->wheel[i], why);
	}
	if (!error)
		error = open_lock(d, why);
	if (!error)
		error = open_ring(d, why);
	if (error) {
		rashpa_drive_close(d, NULL);
		return error;
	}
	d->moved = sum_of_words(d);
	d->moved_ns = now_ns();
	*drive = d;
	return 0;
}

/* --- what is enqueued --- */

struct batch {
	struct rashpa_drive *d;
	struct wheel *w;
	int result;		/* the first one that is none */
};

static void wait_word(struct batch *b, unsigned int stream, uint64_t word, uint32_t value,
		      unsigned int flags)
{
	if (!b->result)
		b->result = b->w->g->cu.wait(b->w->stream[stream], word, value,
					     CUDA_WAIT_GEQ | flags);
}

static void write_word(struct batch *b, unsigned int stream, unsigned int word, uint32_t value)
{
	if (!b->result)
		b->result = b->w->g->cu.write(b->w->stream[stream],
					      (uintptr_t)&b->w->control[word], value, 0);
}

static void wait_control(struct batch *b, unsigned int stream, unsigned int word, uint32_t value)
{
	wait_word(b, stream, (uintptr_t)&b->w->control[word], value, 0);
}

static void launch(struct batch *b, struct cuda_function *f, struct driven_arguments *all,
		   uint64_t groups)
{
	void *argument = all;

	if (!b->result)
		b->result = b->w->g->cu.launch(f, groups, 1, 1, RPU_LANES, 1, 1, 0,
					       b->w->stream[COMPUTE], &argument, NULL);
}

/* The image that is number k of this GPU, among all. */
static uint32_t number_of(const struct rashpa_drive *d, const struct wheel *w, uint32_t k)
{
	return k * d->count + (w - d->wheel);
}

/* What others wrote into the GPU is seen behind the wait, where the GPU can see to it. */
static unsigned int flush_of(const struct rashpa_drive *d)
{
	return !d->plan.raw && d->flushes ? CUDA_WAIT_FLUSH : 0;
}

/* A host's image, or a window's pieces, which may be written again as soon as they are copied. */
static void enqueue_in(struct batch *b, uint32_t k)
{
	const struct rashpa_drive *d = b->d;
	const uint32_t s = number_of(d, b->w, k);
	const struct rpu_cuda_calls *cu = &b->w->g->cu;
	const uint64_t to = b->w->in[k & 1];

	if (k >= 2)
		wait_control(b, IN, RPU_CONTROL_COMPUTED, k - 1);
	for (uint32_t q = 0; q < d->pieces; q++) {
		const uint32_t piece = s * d->pieces + q;
		const size_t at = q * d->piece_bytes;
		const size_t bytes = d->image_bytes - at < d->piece_bytes ? d->image_bytes - at :
				     d->piece_bytes;

		if (d->plan.way == RASHPA_DRIVE_AHEAD)
			wait_word(b, IN, d->lock, piece + 1, flush_of(d));
		if (b->result)
			return;
		if (d->plan.raw)
			b->result = cu->to_gpu(to, (const uint8_t *)d->plan.raw +
					       s % d->plan.slots * d->plan.step, bytes,
					       b->w->stream[IN]);
		else
			b->result = cu->inside(to + at, b->w->g->at[RPU_AT_RAW].address +
					       (piece & 1) * d->piece_bytes, bytes,
					       b->w->stream[IN]);
		if (!d->plan.raw)
			write_word(b, IN, RPU_CONTROL_PIECES, piece + 1);
	}
	write_word(b, IN, RPU_CONTROL_IN, k + 1);
}

static struct driven_arguments arguments_of(const struct rashpa_drive *d, const struct wheel *w)
{
	const struct rpu_calibration *c = &d->calibration;
	struct driven_arguments all = {
		.all = {
			.push = {
				.width = c->width, .height = c->height, .pixels = d->pixels,
				.saturated = c->saturated, .number = d->threshold,
			},
			.constants = w->g->constants[RPU_KERNEL_PRETREAT],
		},
		.lock = d->lock, .control = (uintptr_t)w->control, .decision = w->decision,
		.banks = w->banks, .least = d->least, .bank_count = d->plan.credits,
	};

	for (unsigned int i = 0; i < RPU_PLACES; i++)
		all.all.at[i] = w->g->at[i].address;
	return all;
}

/* Where image s begins in memory of the GPU, words. */
static uint32_t first_word(const struct rashpa_drive *d, const struct wheel *w, uint32_t s)
{
	return (w->g->head.ring.offset + s % d->plan.slots * d->plan.step) / 4;
}

static void enqueue_compute(struct batch *b, uint32_t k)
{
	const struct rashpa_drive *d = b->d;
	struct wheel *w = b->w;
	const uint32_t s = number_of(d, w, k);
	const uint32_t each = 4 / w->g->head.raw_bytes;
	struct driven_arguments all = arguments_of(d, w);

	all.image_number = s;
	if (d->direct) {
		all.all.push.first = first_word(d, w, s);
		if (d->plan.way == RASHPA_DRIVE_AHEAD)
			wait_word(b, COMPUTE, d->lock, s + 1, flush_of(d));
	} else {
		all.all.at[RPU_AT_RAW] = w->in[k & 1];
		wait_control(b, COMPUTE, RPU_CONTROL_IN, k + 1);
	}
	if (!b->result)
		b->result = w->g->cu.fill(all.all.at[RPU_AT_TOLD], 0, RPU_TOLDS,
					  w->stream[COMPUTE]);
	launch(b, w->g->function[RPU_KERNEL_PRETREAT], &all,
	       (d->pixels - 1) / (each * RPU_LANES) + 1);
	launch(b, w->g->function[RPU_KERNEL_ABOVE], &all, (d->pixels - 1) / RPU_PIECE + 1);
	launch(b, w->own[DECIDE], &all, 1);
	launch(b, w->own[BANK], &all, (d->pixels - 1) / RPU_LANES + 1);
	launch(b, w->own[PUBLISH], &all, 1);
	write_word(b, COMPUTE, RPU_CONTROL_COMPUTED, k + 1);
}

/* One result goes out once it is accepted: the veto's own lock decides. */
static void enqueue_out(struct batch *b, uint32_t j)
{
	const size_t bank = b->d->pixels + RPU_RECORD;
	const uint32_t slot = j % b->d->plan.credits;

	wait_control(b, OUT, RPU_CONTROL_ACCEPTED, j + 1);
	if (!b->result)
		b->result = b->w->g->cu.to_host(b->w->results + slot * bank,
						b->w->banks + slot * bank * sizeof(float),
						bank * sizeof(float), b->w->stream[OUT]);
	write_word(b, OUT, RPU_CONTROL_TAKEN, j + 1);
}

/* The kernel that stays has all images of its GPU. */
static void enqueue_poll(struct batch *b)
{
	const struct rashpa_drive *d = b->d;
	struct driven_arguments all = arguments_of(d, b->w);

	all.lock_first = b->w - d->wheel;
	all.lock_step = d->count;
	all.images = b->w->images;
	all.ring_step = d->plan.step / 4;
	all.ring_slots = d->plan.slots;
	if (d->plan.raw)
		all.all.at[RPU_AT_RAW] = d->ring_address;
	else
		all.all.push.first = b->w->g->head.ring.offset / 4;
	launch(b, b->w->own[POLL], &all, 1);
	b->w->enqueued = b->w->images;
}

/* May image k of this GPU be enqueued now? */
static bool is_due(const struct rashpa_drive *d, const struct wheel *w)
{
	const uint32_t k = w->enqueued;

	if (k >= w->images || k - look(&w->control[RPU_CONTROL_COMPUTED]) >= d->plan.ahead)
		return false;
	return d->plan.way == RASHPA_DRIVE_AHEAD ||
	       (int32_t)(atomic_load(d->lock_here) - (number_of(d, w, k) + 1) * d->pieces) >= 0;
}

static int pump(struct rashpa_drive *d, struct wheel *w, char *why)
{
	struct batch b = { .d = d, .w = w };

	if (!push(w))
		return because(why, -EIO, "%s: no context", w->g->head.info.name);
	if (d->plan.way == RASHPA_DRIVE_POLL && !w->enqueued)
		enqueue_poll(&b);
	while (d->plan.way != RASHPA_DRIVE_POLL && !b.result && is_due(d, w)) {
		if (!d->direct)
			enqueue_in(&b, w->enqueued);
		enqueue_compute(&b, w->enqueued++);
	}
	while (!b.result && w->outs - w->released < d->plan.credits && w->outs < w->images)
		enqueue_out(&b, w->outs++);
	for (unsigned int i = 0; i < STREAMS && !b.result; i++) {
		b.result = w->g->cu.query(w->stream[i]);
		if (b.result == CUDA_NOT_READY)
			b.result = 0;
	}
	pop(w);
	return b.result ? refuse(w, "an image", b.result, why) : 0;
}

/* --- results --- */

/* All images of it went through, and nothing is on its way. */
static bool is_over(const struct rashpa_drive *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct wheel *w = &d->wheel[i];

		if (look(&w->control[RPU_CONTROL_COMPUTED]) != w->images ||
		    look(&w->control[RPU_CONTROL_ACCEPTED]) != w->given)
			return false;
	}
	return true;
}

/* The oldest result that nobody has got, and its record. */
static const float *result_of(const struct rashpa_drive *d, const struct wheel *w, uint32_t *record)
{
	const float *image = w->results + w->given % d->plan.credits * (d->pixels + RPU_RECORD);

	memcpy(record, image + d->pixels, RPU_RECORD * sizeof(*record));
	return image;
}

/* The one that came first, of all GPUs. */
static struct wheel *with_result(struct rashpa_drive *d)
{
	struct wheel *best = NULL;
	uint32_t least = UINT32_MAX, record[RPU_RECORD];

	for (uint32_t i = 0; i < d->count; i++) {
		struct wheel *w = &d->wheel[i];

		if (look(&w->control[RPU_CONTROL_TAKEN]) == w->given)
			continue;
		result_of(d, w, record);
		if (record[0] <= least) {
			least = record[0];
			best = w;
		}
	}
	return best;
}

/* Nothing moves, for so long that somebody will not come any more: who waits for what. */
static int lost_patience(const struct rashpa_drive *d, char *why)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct wheel *w = &d->wheel[i];
		const uint32_t computed = look(&w->control[RPU_CONTROL_COMPUTED]);
		const uint32_t lock = atomic_load(d->lock_here);
		const uint32_t wanted = (number_of(d, w, computed) + 1) * d->pieces;

		if (computed == w->images)
			continue;
		if ((int32_t)(lock - wanted) < 0)
			return because(why, -ETIMEDOUT, "%s: nothing came for %" PRIu32
				       " ms: stream %s waits for the lock to be %" PRIu32
				       ", and it is %" PRIu32 ": does its producer live?",
				       w->g->head.info.name, d->plan.patience_ms,
				       streams[d->direct ? COMPUTE : IN], wanted, lock);
		return because(why, -ETIMEDOUT, "%s: it did not answer for %" PRIu32
			       " ms: image %" PRIu32 " is there, %" PRIu32
			       " are copied in and %" PRIu32 " computed", w->g->head.info.name,
			       d->plan.patience_ms, number_of(d, w, computed),
			       look(&w->control[RPU_CONTROL_IN]), computed);
	}
	return because(why, -ETIMEDOUT, "the GPUs did not answer for %" PRIu32
		       " ms: results are accepted, and do not come", d->plan.patience_ms);
}

/* Results that nobody gives back keep all others: that is no failure of a GPU. */
static bool is_held(const struct rashpa_drive *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		if (d->wheel[i].given != d->wheel[i].released)
			return true;
	}
	return false;
}

static int step(struct rashpa_drive *d, struct rashpa_driven *result, char *why)
{
	struct wheel *w;
	uint64_t sum;

	for (uint32_t i = 0; i < d->count; i++) {
		if (pump(d, &d->wheel[i], why))
			return -EIO;
	}
	w = with_result(d);
	if (w) {
		uint32_t record[RPU_RECORD];
		const float *image = result_of(d, w, record);

		*result = (struct rashpa_driven) {
			.frame = record[0], .above = record[1], .gpu = w - d->wheel, .image = image,
		};
		w->given++;
		d->stat.results++;
		return 1;
	}
	if (is_over(d))
		return -ENODATA;
	sum = sum_of_words(d);
	if (sum != d->moved || is_held(d)) {
		d->moved = sum;
		d->moved_ns = now_ns();
	} else if (now_ns() - d->moved_ns > d->plan.patience_ms * 1000000ull) {
		return lost_patience(d, why);
	}
	return 0;
}

int rashpa_drive_next(struct rashpa_drive *d, struct rashpa_driven *result, int timeout_ms,
		      char *why)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const unsigned long long begin = now_ns();
	int found;

	for (;;) {
		found = step(d, result, why);
		if (found == -ENODATA)
			return because(why, -ENODATA, "all images went through");
		if (found)
			return found;
		if (timeout_ms >= 0 && now_ns() - begin >= timeout_ms * 1000000ull)
			return 0;
		if (now_ns() - begin > 10 * NAP_NS)
			nanosleep(&nap, NULL);
	}
}

void rashpa_drive_release(struct rashpa_drive *d, const struct rashpa_driven *result)
{
	d->wheel[result->gpu].released++;
}

void rashpa_drive_arrived(struct rashpa_drive *d, uint32_t arrived)
{
	if (d->lock_is_ours)
		atomic_store(d->lock_here, arrived);
}

uint32_t rashpa_drive_taken(const struct rashpa_drive *d)
{
	uint32_t taken = UINT32_MAX;

	if (!d->plan.raw && !d->direct)
		return look(&d->wheel[0].control[RPU_CONTROL_PIECES]);
	for (uint32_t i = 0; i < d->count; i++) {
		const struct wheel *w = &d->wheel[i];
		const uint32_t k = look(&w->control[d->direct || d->plan.way == RASHPA_DRIVE_POLL ?
						    RPU_CONTROL_COMPUTED : RPU_CONTROL_IN]);

		/* the first one that it has not taken: those of others before that do not count */
		if (k < w->images && number_of(d, w, k) < taken)
			taken = number_of(d, w, k);
	}
	return taken == UINT32_MAX ? d->plan.images : taken;
}

void rashpa_drive_status(const struct rashpa_drive *d, struct rashpa_drive_stat *stat)
{
	*stat = d->stat;
	for (uint32_t i = 0; i < d->count; i++) {
		const struct wheel *w = &d->wheel[i];

		stat->images += look(&w->control[RPU_CONTROL_COMPUTED]);
		stat->accepted += look(&w->control[RPU_CONTROL_ACCEPTED]);
		stat->dropped += look(&w->control[RPU_CONTROL_DROPPED]);
		stat->copies_ahead += w->outs - look(&w->control[RPU_CONTROL_TAKEN]);
	}
	stat->vetoed = stat->images - stat->accepted - stat->dropped;
}

/* --- the end --- */

/* What a stream was given has ended: false if it does not. */
static bool is_idle(const struct rashpa_drive *d, const struct wheel *w, unsigned int stream)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const unsigned long long begin = now_ns();

	while (w->g->cu.query(w->stream[stream]) == CUDA_NOT_READY) {
		if (now_ns() - begin > d->plan.patience_ms * 1000000ull)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* Waits that are left get what they wait for. */
static bool let_end(struct rashpa_drive *d, struct wheel *w)
{
	bool idle;

	__atomic_store_n(&w->control[RPU_CONTROL_STOP], 1, __ATOMIC_RELEASE);
	idle = is_idle(d, w, IN) && is_idle(d, w, COMPUTE);
	if (idle && w->outs > look(&w->control[RPU_CONTROL_ACCEPTED]))
		__atomic_store_n(&w->control[RPU_CONTROL_ACCEPTED], w->outs, __ATOMIC_RELEASE);
	return idle && is_idle(d, w, OUT);
}

static void close_wheel(struct wheel *w)
{
	const struct rpu_cuda_calls *cu = &w->g->cu;

	for (unsigned int i = 0; i < STREAMS; i++) {
		if (w->stream[i])
			cu->end_stream(w->stream[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (w->in[i])
			cu->free(w->in[i]);
	}
	if (w->decision)
		cu->free(w->decision);
	if (w->banks)
		cu->free(w->banks);
	if (w->control)
		cu->free_host(w->control);
	if (w->results)
		cu->free_host(w->results);
}

int rashpa_drive_close(struct rashpa_drive *d, char *why)
{
	uint32_t had = 0;
	bool idle = true;

	if (!d)
		return 0;
	if (d->lock_here) {
		had = atomic_exchange(d->lock_here, d->plan.images * d->pieces + d->count);
		for (uint32_t i = 0; i < d->count; i++) {
			if (!push(&d->wheel[i]))
				continue;
			idle = let_end(d, &d->wheel[i]) && idle;
			pop(&d->wheel[i]);
		}
		atomic_store(d->lock_here, had);
	}
	if (!idle) {
		/* it may still read and write all of this: nothing is freed */
		for (uint32_t i = 0; i < d->count; i++)
			d->wheel[i].g->lost = true;
		return !why ? -EIO : because(why, -EIO, "a GPU does not answer: what it has is not given back before this program ends");
	}
	rashpa_gpu_free(d->ring);
	rashpa_gpu_free(d->lock_page);
	for (uint32_t i = 0; i < d->count; i++) {
		if (!d->wheel[i].g || !push(&d->wheel[i]))
			continue;
		close_wheel(&d->wheel[i]);
		pop(&d->wheel[i]);
	}
	free(d);
	return 0;
}

#endif
