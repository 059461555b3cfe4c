// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Three ways to drive GPUs, besides processing image by image: enqueue work when an image arrives;
 * enqueue work beforehand, in three overlapping streams that wait for the lock; or keep a polling
 * kernel on the GPU. The GPU always decides whether an image is accepted, and only accepted images
 * are copied to the host.
 *
 *	lock >= s+1 --> in(k): to In[k & 1] --> I --> compute(k): pretreat, decide, bank --> C
 *			     ^ C >= k-1			            | accepted: V
 *	host has R results <-- R <-- out(j): of bank[j % credits] <-- V >= j+1
 *
 * All of these words only rise, and all waits are for "at least", so a late poll misses nothing.
 * Streams that cannot wait for a word that a kernel writes run out(k) after each compute(k), which
 * copies nothing for a vetoed image. Then an image counts as computed when out(k) has ended.
 */
#include "processing/drive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rashpa.h>
#include "common/say.h"

#define NAP_NS		20000

static const struct rpu_drive_way * const ways[] = {
#ifndef RPU_NO_CUDA
	&rpu_cuda_drive,
#endif
#ifndef RPU_NO_SHADERS
	&rpu_vulkan_drive,
#endif
	NULL
};

static uint32_t look(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* --- open --- */

static const struct rpu_drive_way *way_of(const struct rashpa_pipeline *p)
{
	unsigned int i = 0;

	while (ways[i] && (!p->gpu || p->gpu->by != ways[i]->of))
		i++;
	return ways[i];
}

/* All are computed with the first one's; the image and its counts are the pipeline's. */
static int check_other(struct rashpa_pipeline * const *p, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++) {
		if (p[k] == p[i])
			return rashpa_fail(EINVAL, "each GPU of a drive needs a separate pipeline: numbers %"
					   PRIu32 " and %" PRIu32 " are the same one", k, i);
	}
	if (p[i]->gpu->driven)
		return rashpa_fail(EBUSY, "%s: its pipeline is another drive's: close that first, or open one more pipeline",
				   p[i]->gpu->info.name);
	if (p[i]->veto.threshold != p[0]->veto.threshold ||
	    p[i]->veto.pixels != p[0]->veto.pixels)
		return rashpa_fail(EINVAL, "GPUs of a drive have one veto: that of pipeline %"
				   PRIu32 " is another one", i);
	if (p[i]->pretreat.calibration.saturated != p[0]->pretreat.calibration.saturated)
		return rashpa_fail(EINVAL, "pixels of a drive are saturated from one number on: pipeline %"
				   PRIu32 " has another one", i);
	return 0;
}

static int check(struct rashpa_pipeline * const *p, uint32_t count,
		 const struct rashpa_drive_plan *plan)
{
	int error;

	if (!count || count > RPU_DRIVE_GPUS)
		return rashpa_fail(EINVAL, "a drive has 1 to %d GPUs, not %" PRIu32,
				   RPU_DRIVE_GPUS, count);
	for (uint32_t i = 0; i < count; i++) {
		if (p[i]->state != RPU_BEGUN || rpu_is_elsewhere(p[i]))
			return rpu_unready(p[i]);
		if (!way_of(p[i]))
			return rashpa_fail(EOPNOTSUPP, "engine %s is not driven: use cuda or vulkan",
					   *p[i]->gpu_name ? p[i]->gpu_name : p[i]->engine->name);
		if (way_of(p[i]) != way_of(p[0]))
			return rashpa_fail(EINVAL, "GPUs of a drive have one driver: %s and %s are two",
					   p[0]->gpu_name, p[i]->gpu_name);
		if (p[i]->geometry.width != p[0]->geometry.width ||
		    p[i]->geometry.height != p[0]->geometry.height ||
		    p[i]->geometry.pixel != p[0]->geometry.pixel)
			return rashpa_fail(EINVAL, "GPUs of a drive have images of one geometry");
		for (unsigned int k = 0; k < RPU_STAGES; k++) {
			if (p[i]->used[k] && !rpu_stages[k]->driven)
				return rashpa_fail(EINVAL, "a drive pretreats and has a veto by pixels: leave the stage %s out",
						   rpu_stages[k]->name);
		}
		error = check_other(p, i);
		if (error)
			return error;
	}
	if (plan->way > RASHPA_DRIVE_POLL || !plan->credits || !plan->ahead || !plan->patience_ns ||
	    !plan->images || plan->images > INT32_MAX / 2)
		return rashpa_fail(EINVAL, "the plan of a drive needs way, images, credits, ahead and patience_ns");
	if ((plan->given || plan->lock_images > 1) &&
	    (plan->way != RASHPA_DRIVE_POLL || !plan->lock || count > 1))
		return rashpa_fail(EINVAL, "given and lock_images need way RASHPA_DRIVE_POLL, a lock, and one GPU");
	if (plan->pairs && (count > 1 || plan->given || plan->window_bytes || plan->images % 2))
		return rashpa_fail(EINVAL, "pairs needs one GPU and an even number of images, without given and window_bytes");
	if (plan->lock_images > 1 && plan->images % plan->lock_images)
		return rashpa_fail(EINVAL, "images: %" PRIu32 " are not whole stacks of %" PRIu32, plan->images, plan->lock_images);
	if (plan->raw && (!plan->slots || plan->step % 4 || (uintptr_t)plan->raw % 4))
		return rashpa_fail(EINVAL, "raw images are in slots, at multiples of 4 bytes");
	return 0;
}

/* Copies are made from anywhere; a kernel that reads the ring itself does not get that far. */
static int check_ring(const struct rashpa_drive *d)
{
	const uint64_t words = (d->image_bytes + 3) / 4 * 4, page = sysconf(_SC_PAGESIZE);

	if (d->plan.step < words)
		return rashpa_fail(EINVAL, "images of %zu bytes do not fit into steps of %"
				   PRIu64, d->image_bytes, d->plan.step);
	if (d->plan.way == RASHPA_DRIVE_POLL &&
	    d->plan.slots > (RPU_RING_BYTES - page) / d->plan.step)
		return rashpa_fail(EINVAL, "a ring of %" PRIu32 " slots of %" PRIu64
				   " bytes is too long for a kernel that stays: have fewer slots (below %"
				   PRIu64 " bytes), or work that is enqueued", d->plan.slots,
				   d->plan.step, RPU_RING_BYTES);
	return 0;
}

/* A ring of the host's is read where it is; a window is memory of the GPU, in two pieces. */
static int plan_source(struct rashpa_drive *d, const struct rashpa_pipeline *p)
{
	uint64_t pieces;

	d->pieces = 1;
	d->piece_bytes = d->image_bytes;
	if (d->plan.raw)
		return check_ring(d);
	if (!p->gpu->offered || d->count > 1)
		return rashpa_fail(EINVAL, "a drive needs raw images: use a ring in host memory, or one GPU with offered memory");
	d->direct = !d->plan.window_bytes || d->plan.window_bytes >= p->gpu->offered_bytes;
	if (d->direct) {
		d->plan.step = p->gpu->ring.step;
		d->plan.slots = p->gpu->ring.slots;
		return d->plan.slots ? 0 : rashpa_fail(EINVAL, "the geometry has no ring of raw images: set ring");
	}
	if (d->plan.way != RASHPA_DRIVE_AHEAD)
		return rashpa_fail(EINVAL, "a window in pieces is for work that is enqueued ahead");
	d->piece_bytes = d->plan.window_bytes / 2 / 4 * 4;
	if (!d->piece_bytes)
		return rashpa_fail(EINVAL, "a window of %" PRIu64 " bytes is too small for two pieces",
				   d->plan.window_bytes);
	if (d->piece_bytes > d->image_bytes)
		d->piece_bytes = d->image_bytes;
	pieces = (d->image_bytes + d->piece_bytes - 1) / d->piece_bytes;
	/* closing moves the lock behind all of them, and a timeline of Vulkan does not go round */
	if (pieces > (INT32_MAX - RPU_DRIVE_GPUS) / d->plan.images)
		return rashpa_fail(EINVAL, "%" PRIu32 " images have %" PRIu64
				   " pieces each, and a lock counts %d: have fewer images, and a new drive then, or a larger window",
				   d->plan.images, pieces, INT32_MAX - RPU_DRIVE_GPUS);
	d->pieces = pieces;
	return 0;
}

int rpu_let_see(struct rpu_gpu *gpu, const void *from, uint64_t bytes, bool window,
		struct rashpa_gpu_memory **memory, uint64_t *at, char *why)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);
	const uintptr_t first = (uintptr_t)from, begin = first / page * page;
	const uint64_t length = (first + bytes - begin + page - 1) / page * page;

	if (rashpa_gpu_register(gpu->gpu, (void *)begin, length, window ? RASHPA_GPU_WINDOW : 0,
				memory))
		return because(why, -EIO, "%s", rashpa_reason());
	*at = first - begin;
	return 0;
}

static void look_again(struct rashpa_drive *d, struct rpu_wheel *w)
{
	if (d->way->look)
		d->way->look(d, w);
	rpu_trace_look(d, w);
}

static uint64_t sum_of_words(const struct rashpa_drive *d)
{
	uint64_t sum = atomic_load(d->lock_here);

	for (uint32_t i = 0; i < d->count; i++) {
		for (unsigned int k = 0; k < RPU_CONTROLS; k++)
			sum += look(&d->wheel[i].control[k]);
	}
	return sum;
}

int rashpa_drive_open_sized(struct rashpa_pipeline * const *pipelines, uint32_t count,
			    const struct rashpa_drive_plan *from, struct rashpa_drive **drive,
			    size_t size)
{
	char why[WHY_SIZE] = "";
	struct rashpa_drive_plan all, *plan = &all;
	struct rashpa_drive *d;
	int error;

	sized_copy(&all, sizeof(all), from, size);
	error = check(pipelines, count, plan);
	*drive = NULL;
	if (error)
		return error;
	d = calloc(1, sizeof(*d));
	if (!d)
		return rashpa_fail(ENOMEM, "no memory for a drive");
	d->plan = *plan;
	d->way = way_of(pipelines[0]);
	d->count = count;
	d->lock_is_ours = !plan->lock;
	d->lock_here = (atomic_uint *)plan->lock;
	d->calibration = pipelines[0]->pretreat.calibration;
	d->pixels = (size_t)d->calibration.width * d->calibration.height;
	d->image_bytes = d->pixels << (d->calibration.pixel - RASHPA_PIXEL_U8);
	d->threshold = pipelines[0]->veto.threshold;
	d->dark_weight = pipelines[0]->pretreat.move ? d->calibration.dark_weight : 0;
	d->least = pipelines[0]->veto.pixels < UINT32_MAX ? pipelines[0]->veto.pixels : UINT32_MAX;
	error = plan_source(d, pipelines[0]);
	for (uint32_t i = 0; i < count && !error; i++) {
		d->wheel[i].gpu = pipelines[i]->gpu;
		d->wheel[i].gpu->driven = true;
		d->wheel[i].images = (plan->images - i + count - 1) / count;
		error = d->way->open(d, &d->wheel[i], why) ? -EIO : 0;
		if (!i && !plan->lock && !error)
			d->lock_here = (atomic_uint *)&d->wheel[0].control[RPU_CONTROL_LOCK];
	}
	if (!error && plan->trace)
		error = rpu_trace_open(d);
	if (error) {
		rashpa_drive_close(d);
		return *why ? rashpa_fail(-error, "%s", why) : error;
	}
	d->moved = sum_of_words(d);
	d->moved_ns = now_ns();
	*drive = d;
	return 0;
}

/* --- what is enqueued --- */

/* The word that rises when In[] may be written again. */
/* A host's image, or a window's pieces, which may be written again as soon as they are copied. */
static void enqueue_in(struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	const struct rpu_drive_way *way = d->way;
	const uint32_t s = rpu_number_of(d, w, k);

	if (k >= 2)
		way->wait(d, w, RPU_IN, rpu_decided(d), k - 1);
	for (uint32_t q = 0; q < d->pieces; q++) {
		const uint32_t piece = s * d->pieces + q;
		const size_t at = q * d->piece_bytes;
		const size_t bytes = d->image_bytes - at < d->piece_bytes ? d->image_bytes - at :
				     d->piece_bytes;

		if (d->plan.way == RASHPA_DRIVE_AHEAD)
			way->wait(d, w, RPU_IN, RPU_CONTROL_LOCK, rpu_arrival(d, piece));
		way->copy_in(d, w, k & 1, at, d->plan.raw ?
			     (s ^ d->plan.pairs) % d->plan.slots * d->plan.step :
			     (piece & 1) * d->piece_bytes, bytes);
		if (!d->plan.raw)
			way->write(w, RPU_IN, RPU_CONTROL_PIECES, piece + 1);
	}
	way->write(w, RPU_IN, RPU_CONTROL_IN, k + 1);
}

/* Where image s begins in memory of the GPU, words. */
static uint32_t first_word(const struct rashpa_drive *d, const struct rpu_wheel *w, uint32_t s)
{
	return (w->gpu->ring.offset + (s ^ d->plan.pairs) % d->plan.slots * d->plan.step) / 4;
}

struct rpu_push rpu_push_of(const struct rashpa_drive *d, const struct rpu_wheel *w, uint32_t k)
{
	const struct rpu_calibration *c = &d->calibration;
	const bool polls = d->plan.way == RASHPA_DRIVE_POLL;

	return (struct rpu_push) {
		.width = c->width, .height = c->height, .pixels = d->pixels,
		.saturated = c->saturated, .number = d->threshold,
		.weight = d->dark_weight,
		.first = !d->direct ? 0 : polls ? w->gpu->ring.offset / 4 :
			 first_word(d, w, rpu_number_of(d, w, k)),
	};
}

/* Images that the lock counts at a time. */
static uint32_t stack_of(const struct rashpa_drive *d)
{
	return d->plan.lock_images ? d->plan.lock_images : 1;
}

struct rpu_driven rpu_driven_of(const struct rashpa_drive *d, const struct rpu_wheel *w, uint32_t k)
{
	return (struct rpu_driven) {
		.least = d->least, .bank_count = d->plan.credits,
		.lock_first = rpu_number_of(d, w, k), .lock_step = d->count,
		.images = w->images - k,
		.ring_step = d->plan.step / 4, .ring_slots = d->plan.slots,
		.lock_images = stack_of(d), .gives = !!d->plan.given,
		.pairs = d->plan.pairs,
	};
}

uint64_t rpu_raw_groups(const struct rashpa_drive *d, const struct rpu_wheel *w)
{
	const uint32_t each = 4 / w->gpu->raw_bytes;

	return (d->pixels - 1) / (each * RPU_LANES) + 1;
}

static void enqueue_compute(struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	const struct rpu_drive_way *way = d->way;

	if (!d->direct)
		way->wait(d, w, RPU_COMPUTE, RPU_CONTROL_IN, k + 1);
	else if (d->plan.way == RASHPA_DRIVE_AHEAD)
		way->wait(d, w, RPU_COMPUTE, RPU_CONTROL_LOCK,
			  rpu_arrival(d, rpu_number_of(d, w, k)));
	/* image k - 2 may still read the decision */
	if (way->by_image && k >= 2)
		way->wait(d, w, RPU_COMPUTE, RPU_CONTROL_COMPUTED, k - 1);
	way->compute(d, w, k);
	way->write(w, RPU_COMPUTE, rpu_decided(d), k + 1);
}

/* One result goes out once it is accepted: the veto's own lock decides. */
static void enqueue_out(struct rashpa_drive *d, struct rpu_wheel *w, uint32_t j)
{
	d->way->wait(d, w, RPU_OUT, RPU_CONTROL_ACCEPTED, j + 1);
	d->way->copy_out(d, w, j % d->plan.credits);
	d->way->write(w, RPU_OUT, RPU_CONTROL_TAKEN, j + 1);
}

static void enqueue_out_of(struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	d->way->wait(d, w, RPU_OUT, RPU_CONTROL_DECIDED, k + 1);
	d->way->copy_out(d, w, k);
	d->way->write(w, RPU_OUT, RPU_CONTROL_COMPUTED, k + 1);
}

/* May image k of this GPU be enqueued now? */
static bool is_due(const struct rashpa_drive *d, const struct rpu_wheel *w)
{
	const uint32_t k = w->enqueued;

	if (k >= w->images || k - look(&w->control[RPU_CONTROL_COMPUTED]) >= d->plan.ahead)
		return false;
	return d->plan.way == RASHPA_DRIVE_AHEAD ||
	       (int32_t)(atomic_load(d->lock_here) -
			 rpu_arrival(d, rpu_number_of(d, w, k)) * d->pieces) >= 0;
}

/* The kernel that stays has all images of its GPU, and begins again where it has let go. */
static void pump_poll(struct rashpa_drive *d, struct rpu_wheel *w)
{
	const uint32_t computed = look(&w->control[RPU_CONTROL_COMPUTED]);

	if (!w->enqueued || (d->way->ended && computed != w->images && d->way->ended(w)))
		d->way->poll(d, w, look(&w->control[RPU_CONTROL_COMPUTED]));
	w->enqueued = w->images;
}

static int pump(struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	int error;

	if (d->way->enter(w))
		return because(why, -EIO, "%s: no context", w->gpu->info.name);
	look_again(d, w);
	if (d->plan.way == RASHPA_DRIVE_POLL)
		pump_poll(d, w);
	while (d->plan.way != RASHPA_DRIVE_POLL && is_due(d, w)) {
		if (!d->direct)
			enqueue_in(d, w, w->enqueued);
		enqueue_compute(d, w, w->enqueued);
		if (d->way->by_image)
			enqueue_out_of(d, w, w->enqueued);
		w->enqueued++;
	}
	while (!d->way->by_image && w->outs - w->released < d->plan.credits &&
	       w->outs < w->images)
		enqueue_out(d, w, w->outs++);
	error = d->way->flush(w, why);
	d->way->leave(w);
	return error ? -EIO : 0;
}

/* --- results --- */

/* All images of it went through, and nothing is on its way. */
static bool is_through(const struct rpu_wheel *w)
{
	return look(&w->control[RPU_CONTROL_COMPUTED]) == w->images &&
	       look(&w->control[RPU_CONTROL_ACCEPTED]) == w->given;
}

static bool is_over(const struct rashpa_drive *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		if (!is_through(&d->wheel[i]))
			return false;
	}
	return true;
}

/* The oldest result that was not yet returned, and its record. */
static const float *result_of(const struct rashpa_drive *d, const struct rpu_wheel *w,
			      uint32_t *record)
{
	const float *image = w->results + w->given % d->plan.credits * (d->pixels + RPU_RECORD);

	memcpy(record, image + d->pixels, RPU_RECORD * sizeof(*record));
	return image;
}

/* The one that came first, of all GPUs. */
static struct rpu_wheel *with_result(struct rashpa_drive *d)
{
	struct rpu_wheel *best = NULL;
	uint32_t least = UINT32_MAX, record[RPU_RECORD];

	for (uint32_t i = 0; i < d->count; i++) {
		struct rpu_wheel *w = &d->wheel[i];

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

/* No progress for patience_ns: report the wait that blocks. */
static int lost_patience(const struct rashpa_drive *d)
{
	const uint64_t ms = d->plan.patience_ns / 1000000;

	for (uint32_t i = 0; i < d->count; i++) {
		const struct rpu_wheel *w = &d->wheel[i];
		const uint32_t computed = look(&w->control[RPU_CONTROL_COMPUTED]);
		const uint32_t lock = atomic_load(d->lock_here);
		const uint32_t last = rpu_arrival(d, rpu_number_of(d, w, computed)) - 1;
		const uint32_t wanted = (last / stack_of(d) + 1) * d->pieces;

		if (computed == w->images)
			continue;
		if ((int32_t)(lock - wanted) < 0)
			return rashpa_fail(EIO, "%s: nothing came for %" PRIu64
					   " ms: stream %s waits for the lock to be %" PRIu32
					   ", and it is %" PRIu32 ": check its producer",
					   w->gpu->info.name, ms,
					   rpu_streams[d->direct ? RPU_COMPUTE : RPU_IN], wanted, lock);
		return rashpa_fail(EIO, "%s: it did not answer for %" PRIu64
				   " ms: image %" PRIu32 " is there, %" PRIu32
				   " are copied in and %" PRIu32 " computed", w->gpu->info.name,
				   ms, rpu_number_of(d, w, computed),
				   look(&w->control[RPU_CONTROL_IN]), computed);
	}
	return rashpa_fail(EIO, "the GPUs did not answer for %" PRIu64
			   " ms: results are accepted, and do not come", ms);
}

/*
 * Does every unfinished GPU lack credits, since the program holds all results? Then the GPUs may
 * wait for the program. If a credit is left, the producer or a GPU is late.
 */
static bool is_held(const struct rashpa_drive *d)
{
	for (uint32_t i = 0; i < d->count; i++) {
		const struct rpu_wheel *w = &d->wheel[i];

		if (!is_through(w) && w->given - w->released < d->plan.credits)
			return false;
	}
	return true;
}

static int step(struct rashpa_drive *d, struct rashpa_driven *result)
{
	char why[WHY_SIZE];
	struct rpu_wheel *w;
	uint64_t sum;

	for (uint32_t i = 0; i < d->count; i++) {
		if (pump(d, &d->wheel[i], why))
			return rashpa_fail(EIO, "%s", why);
	}
	w = with_result(d);
	if (w) {
		uint32_t record[RPU_RECORD];
		const float *image = result_of(d, w, record);

		rpu_trace_look(d, w);
		*result = (struct rashpa_driven) {
			.frame = record[0], .above = record[1], .gpu = w - d->wheel, .image = image,
		};
		w->given++;
		d->stat.results++;
		return 1;
	}
	if (is_over(d))
		return 0;
	sum = sum_of_words(d);
	if (sum != d->moved || is_held(d)) {
		d->moved = sum;
		d->moved_ns = now_ns();
	} else if (now_ns() - d->moved_ns > d->plan.patience_ns) {
		return lost_patience(d);
	}
	return -ETIMEDOUT;
}

int rashpa_drive_next_sized(struct rashpa_drive *d, struct rashpa_driven *to, int64_t timeout_ns,
			    size_t size)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const unsigned long long begin = now_ns();
	struct rashpa_driven result = {};
	int found;

	for (;;) {
		found = step(d, &result);
		if (found > 0)
			sized_copy(to, size, &result, sizeof(result));
		if (found != -ETIMEDOUT)
			return found;
		if (timeout_ns >= 0 && now_ns() - begin >= (uint64_t)timeout_ns)
			return rashpa_fail(ETIMEDOUT, "no image was accepted in time");
		if (now_ns() - begin > 10 * NAP_NS)
			nanosleep(&nap, NULL);
	}
}

void rashpa_drive_result(const struct rashpa_drive *d, const struct rashpa_driven *from,
			 struct rashpa_result *to)
{
	const struct rpu_work *w = rpu_work_of(to);
	uint32_t record[RPU_RECORD];

	memcpy(record, from->image + d->pixels, sizeof(record));
	memcpy(w->pretreated, from->image, d->pixels * sizeof(float));
	*to = (struct rashpa_result) {
		.frame = to->frame, .role = to->role, .kept = true, .above = from->above,
		.width = d->calibration.width, .height = d->calibration.height,
		.image = w->pretreated, .signal = (from->frame ^ d->plan.pairs) + 1 - record[2],
		.signal_kept = d->stat.results,
	};
}

void rashpa_drive_release(struct rashpa_drive *d, const struct rashpa_driven *result)
{
	struct rpu_wheel *w = &d->wheel[result->gpu];

	__atomic_store_n(&w->control[RPU_CONTROL_FREED], ++w->released, __ATOMIC_RELEASE);
}

int rashpa_drive_role(struct rashpa_drive *d, uint32_t image, uint32_t role)
{
	if (role == RASHPA_IMAGE_DARK && d->count > 1)
		return rashpa_fail(EINVAL, "a drive of %" PRIu32 " GPUs has no dark images: each would move the pedestal of one of them only",
				   d->count);
	/* before the lock rises, which is stored later */
	__atomic_store_n(&d->wheel[0].control[RPU_CONTROLS + image % (d->plan.slots + RPU_ROLES_MORE)],
			 role == RASHPA_IMAGE_DARK, __ATOMIC_RELAXED);
	return 0;
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
		const struct rpu_wheel *w = &d->wheel[i];
		const uint32_t k = look(&w->control[d->direct || d->plan.way == RASHPA_DRIVE_POLL ?
						    RPU_CONTROL_COMPUTED : RPU_CONTROL_IN]);

		/* the first one that it has not taken: those of others before that do not count */
		if (k < w->images && rpu_number_of(d, w, k) < taken)
			taken = rpu_number_of(d, w, k);
	}
	return taken == UINT32_MAX ? d->plan.images : taken - (d->plan.pairs & taken);
}

void rashpa_drive_get_stat_sized(const struct rashpa_drive *d, struct rashpa_drive_stat *to,
				 size_t size)
{
	struct rashpa_drive_stat stat = d->stat;

	for (uint32_t i = 0; i < d->count; i++) {
		const struct rpu_wheel *w = &d->wheel[i];

		stat.images += look(&w->control[RPU_CONTROL_COMPUTED]);
		stat.accepted += look(&w->control[RPU_CONTROL_ACCEPTED]);
		stat.dropped += look(&w->control[RPU_CONTROL_DROPPED]);
		stat.dark += look(&w->control[RPU_CONTROL_DARK]);
		stat.copies_ahead += (d->way->by_image ? look(&w->control[RPU_CONTROL_ACCEPTED]) :
				       w->outs) - look(&w->control[RPU_CONTROL_TAKEN]);
	}
	stat.vetoed = stat.images - stat.accepted - stat.dropped - stat.dark;
	sized_copy(to, size, &stat, sizeof(stat));
}

/* --- the end --- */

/* Wait for the end of a stream's work: false if it does not end. */
static bool becomes_idle(struct rashpa_drive *d, struct rpu_wheel *w, enum rpu_stream stream)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const unsigned long long begin = now_ns();

	for (;;) {
		if (d->way->look)
			d->way->look(d, w);
		if (d->way->is_idle(w, stream))
			return true;
		if (now_ns() - begin > d->plan.patience_ns)
			return false;
		nanosleep(&nap, NULL);
	}
}

/* Satisfy the remaining waits of the streams, so that they end. */
static bool let_end(struct rashpa_drive *d, struct rpu_wheel *w)
{
	bool idle;

	__atomic_store_n(&w->control[RPU_CONTROL_STOP], 1, __ATOMIC_RELEASE);
	idle = becomes_idle(d, w, RPU_IN) && becomes_idle(d, w, RPU_COMPUTE);
	if (idle && w->outs > look(&w->control[RPU_CONTROL_ACCEPTED]))
		__atomic_store_n(&w->control[RPU_CONTROL_ACCEPTED], w->outs, __ATOMIC_RELEASE);
	return idle && becomes_idle(d, w, RPU_OUT);
}

int rashpa_drive_close(struct rashpa_drive *d)
{
	uint32_t had = 0;
	bool idle = true;
	int error;

	if (!d)
		return 0;
	/* later the lock is no longer the producer's */
	for (uint32_t i = 0; i < d->count; i++)
		rpu_trace_look(d, &d->wheel[i]);
	error = rpu_trace_close(d);
	if (d->lock_here) {
		/* a kernel that stays looks whether it is to stop: the lock may be a board's */
		if (d->plan.way != RASHPA_DRIVE_POLL)
			had = atomic_exchange(d->lock_here, d->plan.images * d->pieces + d->count);
		for (uint32_t i = 0; i < d->count; i++) {
			/* one that was not opened to the end has nothing to do */
			if (!d->wheel[i].results || d->way->enter(&d->wheel[i]))
				continue;
			idle = let_end(d, &d->wheel[i]) && idle;
			d->way->leave(&d->wheel[i]);
		}
		if (d->plan.way != RASHPA_DRIVE_POLL)
			atomic_store(d->lock_here, had);
	}
	if (!idle) {
		/* it may still read and write all of this: nothing is freed */
		for (uint32_t i = 0; i < d->count; i++)
			d->way->abandon(&d->wheel[i]);
		return rashpa_fail(EIO, "a GPU does not answer: its memory is released only when this program ends");
	}
	for (uint32_t i = 0; i < d->count; i++) {
		if (d->wheel[i].own)
			d->way->close(&d->wheel[i]);
		if (d->wheel[i].gpu)
			d->wheel[i].gpu->driven = false;
	}
	free(d);
	return error;
}
