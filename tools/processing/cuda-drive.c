// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What drives a GPU of CUDA: streams that wait for words of memory, and write them. Pinned memory
 * has one address for all GPUs and the host, and so have lock and ring that one GPU has registered.
 */
#include "processing/cuda.h"
#include "processing/drive.h"

#include <stdlib.h>
#include <string.h>

#include "common/say.h"

/* "struct driven" of cuda.cu */
struct driven_arguments {
	struct rpu_arguments all;
	uint64_t lock, control, decision, banks, given;
	struct rpu_driven driven;
};

_Static_assert(sizeof(struct driven_arguments) == sizeof(struct rpu_arguments) + 88,
	       "cuda.cu has the same");

enum { TAKE, DECIDE, BANK, PUBLISH, POLL, OWN_KERNELS };

static const char * const own_kernels[OWN_KERNELS] = {
	"rpu_take", "rpu_decide", "rpu_bank", "rpu_publish", "rpu_poll",
};

struct cuda_wheel {
	struct rpu_cuda *g;
	struct cuda_stream *stream[RPU_STREAMS];
	struct cuda_function *kernel[OWN_KERNELS];
	uint64_t in[2], decision, banks;
	struct rashpa_gpu_memory *lock_page, *ring, *given_page;	/* the first GPU has them */
	uint64_t lock, ring_address, given;	/* as GPUs have them */
	const uint8_t *raw;
	bool flushes;
	int failed;			/* first error of enqueueing */
};

static struct cuda_wheel *of(const struct rpu_wheel *w)
{
	return w->own;
}

static int refuse(const struct cuda_wheel *c, const char *what, int result, char *why)
{
	const char *text = NULL;

	c->g->cu.error(result, &text);
	return because(why, -1, "%s: %s: its driver said %d (%s)", c->g->head.info.name,
		       what, result, text ? text : "no text");
}

static int enter(struct rpu_wheel *w)
{
	return of(w)->g->cu.push(of(w)->g->by_cuda.context) ? -1 : 0;
}

static void leave(struct rpu_wheel *w)
{
	struct cuda_context *ours;

	of(w)->g->cu.pop(&ours);
}

/* --- open, close --- */

static int open_memory(const struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	const size_t banks = d->plan.credits * rpu_bank_bytes(d);
	struct cuda_wheel *c = of(w);
	const struct cuda_calls *cu = &c->g->cu;
	void *base[2] = {};
	int result = 0;

	if (enter(w))
		return because(why, -1, "%s: no context", c->g->head.info.name);
	for (unsigned int i = 0; i < RPU_STREAMS && !result; i++) {
		w->queue[i] = i;
		result = cu->stream(&c->stream[i], CUDA_NON_BLOCKING);
	}
	for (unsigned int i = 0; i < OWN_KERNELS && !result; i++)
		result = cu->function(&c->kernel[i], c->g->module, own_kernels[i]);
	for (unsigned int i = 0; i < 2 && !result && !d->direct; i++)
		result = cu->alloc(&c->in[i], (d->image_bytes + 3) / 4 * 4);
	if (!result)
		result = cu->alloc(&c->decision, RPU_DECISIONS * sizeof(uint32_t));
	if (!result)
		result = cu->alloc(&c->banks, banks);
	if (!result)
		result = cu->alloc_host(&base[0], rpu_control_bytes(d), 0);
	w->control = base[0];
	if (!result)
		result = cu->alloc_host(&base[1], banks, 0);
	w->results = base[1];
	leave(w);
	if (result)
		return refuse(c, "memory of a drive", result, why);
	memset(w->control, 0, rpu_control_bytes(d));
	return 0;
}

/* A lock of the plan, and a ring of the host's, as the first GPU has them. */
static int see(const struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	struct cuda_wheel *c = of(w);
	const struct cuda_wheel *first = of(&d->wheel[0]);
	uint64_t at;
	int flushes = 0;

	c->raw = d->plan.raw;
	c->lock = first->lock;
	c->ring_address = first->ring_address;
	c->flushes = first->flushes;
	if (c != first)
		return 0;
	c->lock = (uintptr_t)&w->control[RPU_CONTROL_LOCK];
	if (d->plan.lock) {
		if (rpu_let_see(w->gpu, d->plan.lock, sizeof(uint32_t), false, &c->lock_page, &at,
				why))
			return -1;
		c->lock = rashpa_gpu_address(c->lock_page) + at;
	}
	if (d->plan.given) {
		if (rpu_let_see(w->gpu, d->plan.given, sizeof(uint32_t), d->plan.given_is_window,
				&c->given_page, &at, why))
			return -1;
		c->given = rashpa_gpu_address(c->given_page) + at;
	}
	c->g->cu.attribute(&flushes, CUDA_FLUSHES, c->g->by_cuda.device);
	/* what others wrote into the GPU is seen behind the wait, where the GPU can see to it */
	c->flushes = flushes && !d->plan.raw;
	if (d->plan.raw) {
		if (rpu_let_see(w->gpu, d->plan.raw, d->plan.step * d->plan.slots, false, &c->ring,
				&at, why))
			return -1;
		c->ring_address = rashpa_gpu_address(c->ring) + at;
	}
	return 0;
}

static int open_wheel(struct rashpa_drive *d, struct rpu_wheel *w, char *why)
{
	struct cuda_wheel *c = calloc(1, sizeof(*c));

	if (!c)
		return because(why, -1, "no memory for a drive");
	c->g = (struct rpu_cuda *)w->gpu;
	w->own = c;
	return open_memory(d, w, why) || see(d, w, why) ? -1 : 0;
}

static void close_wheel(struct rpu_wheel *w)
{
	struct cuda_wheel *c = of(w);
	const struct cuda_calls *cu = &c->g->cu;

	rashpa_gpu_free(c->ring);
	rashpa_gpu_free(c->lock_page);
	rashpa_gpu_free(c->given_page);
	if (enter(w))
		return;
	for (unsigned int i = 0; i < RPU_STREAMS; i++) {
		if (c->stream[i])
			cu->end_stream(c->stream[i]);
	}
	for (unsigned int i = 0; i < 2; i++) {
		if (c->in[i])
			cu->free(c->in[i]);
	}
	if (c->decision)
		cu->free(c->decision);
	if (c->banks)
		cu->free(c->banks);
	if (w->control)
		cu->free_host(w->control);
	if (w->results)
		cu->free_host(w->results);
	leave(w);
	free(c);
}

static void abandon(struct rpu_wheel *w)
{
	of(w)->g->lost = true;
}

/* --- what is enqueued --- */

static void keep(struct cuda_wheel *c, int result)
{
	if (!c->failed)
		c->failed = result;
}

static void wait_word(const struct rashpa_drive *d, struct rpu_wheel *w, enum rpu_stream stream,
		      unsigned int word, uint32_t value)
{
	struct cuda_wheel *c = of(w);
	const bool is_lock = word == RPU_CONTROL_LOCK;
	const unsigned int flush_too = is_lock && c->flushes ? CUDA_WAIT_FLUSH : 0;

	(void)d;
	if (!c->failed)
		keep(c, c->g->cu.wait(c->stream[stream],
				      is_lock ? c->lock : (uintptr_t)&w->control[word], value,
				      CUDA_WAIT_GEQ | flush_too));
}

static void write_word(struct rpu_wheel *w, enum rpu_stream stream, unsigned int word,
		       uint32_t value)
{
	struct cuda_wheel *c = of(w);

	if (!c->failed)
		keep(c, c->g->cu.write(c->stream[stream], (uintptr_t)&w->control[word], value, 0));
}

static void copy_in(const struct rashpa_drive *d, struct rpu_wheel *w, unsigned int to,
		    uint64_t at, uint64_t from, size_t bytes)
{
	struct cuda_wheel *c = of(w);

	(void)d;
	if (c->failed)
		return;
	if (c->raw)
		keep(c, c->g->cu.to_gpu(c->in[to] + at, c->raw + from, bytes, c->stream[RPU_IN]));
	else
		keep(c, c->g->cu.inside(c->in[to] + at, c->g->at[RPU_AT_RAW].address + from, bytes,
					c->stream[RPU_IN]));
}

static struct driven_arguments arguments_of(const struct rashpa_drive *d, struct rpu_wheel *w,
					    uint32_t k)
{
	const struct cuda_wheel *c = of(w);
	struct driven_arguments all = {
		.all = {
			.push = rpu_push_of(d, w, k),
			.constants = c->g->constants[RPU_KERNEL_PRETREAT],
		},
		.lock = c->lock, .control = (uintptr_t)w->control, .decision = c->decision,
		.banks = c->banks, .given = c->given, .driven = rpu_driven_of(d, w, k),
	};

	for (unsigned int i = 0; i < RPU_PLACES; i++)
		all.all.at[i] = c->g->at[i].address;
	return all;
}

static void launch(struct cuda_wheel *c, struct cuda_function *f, struct driven_arguments *all,
		   uint64_t groups)
{
	void *argument = all;

	if (!c->failed)
		keep(c, c->g->cu.launch(f, groups, 1, 1, RPU_LANES, 1, 1, 0, c->stream[RPU_COMPUTE],
					&argument, NULL));
}

static void compute(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	struct cuda_wheel *c = of(w);
	struct driven_arguments all = arguments_of(d, w, k);

	if (!d->direct)
		all.all.at[RPU_AT_RAW] = c->in[k & 1];
	if (!c->failed)
		keep(c, c->g->cu.fill(all.all.at[RPU_AT_TOLD], 0, RPU_TOLDS,
				      c->stream[RPU_COMPUTE]));
	launch(c, c->kernel[TAKE], &all, rpu_raw_groups(d, w));
	launch(c, c->g->function[RPU_KERNEL_ABOVE], &all, (d->pixels - 1) / RPU_PIECE + 1);
	launch(c, c->kernel[DECIDE], &all, 1);
	launch(c, c->kernel[BANK], &all, (d->pixels - 1) / RPU_LANES + 1);
	launch(c, c->kernel[PUBLISH], &all, 1);
}

static void copy_out(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t slot)
{
	struct cuda_wheel *c = of(w);
	const size_t bytes = rpu_bank_bytes(d);

	if (!c->failed)
		keep(c, c->g->cu.to_host((uint8_t *)w->results + slot * bytes,
					 c->banks + slot * bytes, bytes, c->stream[RPU_OUT]));
}

static void poll_images(const struct rashpa_drive *d, struct rpu_wheel *w, uint32_t k)
{
	struct driven_arguments all = arguments_of(d, w, k);

	if (d->plan.raw)
		all.all.at[RPU_AT_RAW] = of(w)->ring_address;
	launch(of(w), of(w)->kernel[POLL], &all, 1);
}

static int flush(struct rpu_wheel *w, char *why)
{
	struct cuda_wheel *c = of(w);

	for (unsigned int i = 0; i < RPU_STREAMS && !c->failed; i++) {
		const int result = c->g->cu.query(c->stream[i]);

		keep(c, result == CUDA_NOT_READY ? 0 : result);
	}
	return c->failed ? refuse(c, "an image", c->failed, why) : 0;
}

static bool is_idle(struct rpu_wheel *w, enum rpu_stream stream)
{
	return of(w)->g->cu.query(of(w)->stream[stream]) != CUDA_NOT_READY;
}

const struct rpu_drive_way rpu_cuda_drive = {
	.of = &rpu_cuda, .open = open_wheel, .enter = enter, .leave = leave, .wait = wait_word,
	.write = write_word, .copy_in = copy_in, .compute = compute, .copy_out = copy_out,
	.poll = poll_images, .flush = flush, .is_idle = is_idle, .close = close_wheel,
	.abandon = abandon,
};
