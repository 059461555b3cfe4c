// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A GPU by CUDA's driver API: buffers, kernels, and batches of them on one stream. The context is
 * the GPU's primary one, and the calling thread has it only inside of a call.
 */
#include "processing/cuda.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda-kernels.h"
#include <rashpa.h>
#include "common/say.h"

#define PATIENCE_NS	60000000000ull	/* of a batch */
#define SPIN_NS		200000		/* then it is asked every so often */
#define NAP_NS		50000
#define STAGING		(UINT64_C(4) << 20)	/* bytes */

_Static_assert(sizeof(struct rpu_arguments) == 48 + 8 * RPU_PLACES, "cuda.cu has the same");

static const char * const kernels[RPU_KERNELS] = {
	[RPU_KERNEL_PRETREAT] = "rpu_pretreat", [RPU_KERNEL_DARK] = "rpu_dark",
	[RPU_KERNEL_ABOVE] = "rpu_above", [RPU_KERNEL_ROWS] = "rpu_rows",
	[RPU_KERNEL_SCAN] = "rpu_scan", [RPU_KERNEL_KEEP] = "rpu_keep",
	[RPU_KERNEL_INTEGRATE] = "rpu_integrate",
};

static struct rpu_cuda *of(struct rpu_gpu *gpu)
{
	return (struct rpu_cuda *)gpu;
}

static int wrong(const struct rpu_cuda *g, const char *what, int result, char *why)
{
	const char *text = NULL;

	switch (result) {
	case 0:
		return 0;
	case CUDA_OUT_OF_MEMORY:
		return because(why, -1, "%s: %s: no memory left (it has %" PRIu64 " MiB)",
			       g->head.info.name, what, g->head.info.memory_bytes >> 20);
	case CUDA_NO_BINARY:
	case CUDA_UNSUPPORTED_PTX:
		return because(why, -1, "%s: %s: built for other GPUs or for a newer driver (this one: %s): GPUs are those of compute capability 8.0 (Ampere) and newer",
			       g->head.info.name, what, g->head.info.driver);
	default:
		if (g->cu.error)
			g->cu.error(result, &text);
		return because(why, -1, "%s: %s: its driver (%s) said %d (%s)", g->head.info.name,
			       what, g->head.info.driver, result, text ? text : "no text");
	}
}

/* --- the context --- */

static int enter(struct rpu_cuda *g, char *why)
{
	if (g->lost)
		return because(why, -1, "%s: it failed before: open the pipeline again", g->head.info.name);
	return wrong(g, "its context", g->cu.push(g->by_cuda.context), why);
}

static void leave(struct rpu_cuda *g)
{
	struct cuda_context *ours;

	g->cu.pop(&ours);
}

/* Wait for the end of the stream's work. */
static int wait_for(struct rpu_cuda *g, bool *late)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	const unsigned long long begin = now_ns();
	int result;

	*late = false;
	while ((result = g->cu.query(g->stream)) == CUDA_NOT_READY) {
		const unsigned long long waited = now_ns() - begin;

		if (waited > PATIENCE_NS) {
			*late = true;
			break;
		}
		if (waited > SPIN_NS)
			nanosleep(&nap, NULL);
		else
			sched_yield();
	}
	return result;
}

static int end_batch(struct rpu_cuda *g, const char *what, char *why)
{
	bool late;
	int result = wait_for(g, &late);

	/* an error of submission explains all later ones */
	if (g->failed)
		result = g->failed;
	g->failed = 0;
	g->lost = result != 0;
	if (late)
		return because(why, -1, "%s: it did not answer for %llu s", g->head.info.name,
			       PATIENCE_NS / 1000000000);
	return wrong(g, what, result, why);
}

static void keep(struct rpu_cuda *g, int result)
{
	if (!g->failed)
		g->failed = result;
}

/* --- open --- */

static int open_all(struct rpu_cuda *g, const char *name, char *why)
{
	int result;

	if (rashpa_gpu_open(name, &g->head.gpu) || rashpa_gpu_as_cuda(g->head.gpu, &g->by_cuda))
		return because(why, -1, "engine %s: %s", name, rashpa_reason());
	rashpa_gpu_get_info(g->head.gpu, &g->head.info);
	if (cuda_load(&g->cu, g->by_cuda.library))
		return because(why, -1, "%s: its driver (%s) lacks functions: install one of CUDA 12 or later",
			       g->head.info.name, g->head.info.driver);
	if (enter(g, why))
		return -1;
	result = g->cu.load(&g->module, cuda_kernels);
	if (!result)
		result = g->cu.stream(&g->stream, CUDA_NON_BLOCKING);
	if (!result)
		result = g->cu.alloc_host(&g->staging, STAGING, 0);
	leave(g);
	return wrong(g, "to begin", result, why);
}

static void end(struct rpu_gpu *gpu)
{
	struct rpu_cuda *g = of(gpu);
	char why[WHY_SIZE];

	/* a GPU that does not answer writes to what it had for as long as it likes: that stays */
	if (g->by_cuda.context && g->cu.push && !enter(g, why)) {
		for (unsigned int i = 0; i < RPU_PLACES; i++) {
			if (g->at[i].host)
				g->cu.free_host(g->at[i].host);
			else if (g->at[i].address && !g->at[i].foreign)
				g->cu.free(g->at[i].address);
		}
		if (g->staging)
			g->cu.free_host(g->staging);
		if (g->stream)
			g->cu.end_stream(g->stream);
		if (g->module)
			g->cu.unload(g->module);
		leave(g);
	}
	if (!g->lost)
		rashpa_gpu_free(g->head.offered);
	if (!g->lost)
		rashpa_gpu_close(g->head.gpu);
	free(g);
}

static int open_cuda(const char *name, struct rpu_gpu **gpu, char *why)
{
	struct rpu_cuda *g = calloc(1, sizeof(*g));

	*gpu = NULL;
	if (!g)
		return because(why, -1, "engine %s: no memory", name);
	g->head.by = &rpu_cuda;
	if (open_all(g, name, why)) {
		end(&g->head);
		return -1;
	}
	*gpu = &g->head;
	return 0;
}

/* --- buffers --- */

/*
 * A raw image of the host is read there, once: pinned memory, which has the same address for both.
 * All else that both touch is touched more than once by the GPU: it is the GPU's, and copied.
 */
static int make(struct rpu_gpu *gpu, enum rpu_place at, uint64_t bytes, bool host, char *why)
{
	struct rpu_cuda *g = of(gpu);
	const uint64_t whole = (bytes + 3) / 4 * 4;
	int result;

	if (enter(g, why))
		return -1;
	if (host && at == RPU_AT_RAW) {
		result = g->cu.alloc_host(&g->at[at].host, whole, 0);
		g->at[at].address = (uintptr_t)g->at[at].host;
	} else {
		result = g->cu.alloc(&g->at[at].address, whole);
	}
	leave(g);
	g->at[at].bytes = whole;
	return wrong(g, "memory", result, why);
}

static void use(struct rpu_gpu *gpu, const struct rashpa_gpu_memory *memory, uint64_t bytes)
{
	struct rpu_cuda *g = of(gpu);

	g->at[RPU_AT_RAW].address = rashpa_gpu_address(memory);
	g->at[RPU_AT_RAW].bytes = bytes;
	g->at[RPU_AT_RAW].foreign = true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int store(struct rpu_gpu *gpu, enum rpu_place to, uint64_t at, const void *from,
		 uint64_t bytes, char *why)
{
	struct rpu_cuda *g = of(gpu);
	int result = 0;

	if (g->at[to].host) {
		memcpy((uint8_t *)g->at[to].host + at, from, bytes);
		return 0;
	}
	if (enter(g, why))
		return -1;
	for (uint64_t done = 0, n; done < bytes && !result; done += n) {
		n = least(bytes - done, STAGING);
		memcpy(g->staging, (const uint8_t *)from + done, n);
		keep(g, g->cu.to_gpu(g->at[to].address + at + done, g->staging, n, g->stream));
		result = end_batch(g, "a copy to it", why);
	}
	leave(g);
	return result;
}

static int load_bytes(struct rpu_gpu *gpu, enum rpu_place from, uint64_t at, void *to,
		      uint64_t bytes, char *why)
{
	struct rpu_cuda *g = of(gpu);
	int result = 0;

	if (enter(g, why))
		return -1;
	for (uint64_t done = 0, n; done < bytes && !result; done += n) {
		n = least(bytes - done, STAGING);
		keep(g, g->cu.to_host(g->staging, g->at[from].address + at + done, n, g->stream));
		result = end_batch(g, "a copy of it", why);
		if (!result)
			memcpy((uint8_t *)to + done, g->staging, n);
	}
	leave(g);
	return result;
}

/* --- kernels --- */

static int kernel(struct rpu_gpu *gpu, enum rpu_kernel which, const struct rpu_constants *constants,
		  char *why)
{
	struct rpu_cuda *g = of(gpu);
	int result;

	if (enter(g, why))
		return -1;
	result = g->cu.function(&g->function[which], g->module, kernels[which]);
	leave(g);
	g->constants[which] = *constants;
	return wrong(g, kernels[which], result, why);
}

static void ready(struct rpu_gpu *gpu)
{
	(void)gpu;	/* each launch passes its buffers */
}

static int begin(struct rpu_gpu *gpu, char *why)
{
	return enter(of(gpu), why);
}

static void clear(struct rpu_gpu *gpu, enum rpu_place at)
{
	struct rpu_cuda *g = of(gpu);

	keep(g, g->cu.fill(g->at[at].address, 0, g->at[at].bytes / 4, g->stream));
}

static void run(struct rpu_gpu *gpu, enum rpu_kernel which, const struct rpu_push *push,
		uint64_t groups)
{
	struct rpu_cuda *g = of(gpu);
	struct rpu_arguments all = { .push = *push, .constants = g->constants[which] };
	void *argument = &all;

	for (unsigned int i = 0; i < RPU_PLACES; i++)
		all.at[i] = g->at[i].address;
	keep(g, g->cu.launch(g->function[which], groups, 1, 1, RPU_LANES, 1, 1, 0, g->stream,
			     &argument, NULL));
}

static void barrier(struct rpu_gpu *gpu)
{
	(void)gpu;	/* a stream has one after the other */
}

static int finish(struct rpu_gpu *gpu, char *why)
{
	struct rpu_cuda *g = of(gpu);
	const int result = end_batch(g, "an image", why);

	leave(g);
	return result;
}

const struct rpu_gpu_driver rpu_cuda = {
	.name = "cuda", .open = open_cuda, .make = make, .use = use, .kernel = kernel,
	.ready = ready, .begin = begin, .clear = clear, .run = run, .barrier = barrier,
	.finish = finish, .store = store, .load = load_bytes, .end = end,
};
