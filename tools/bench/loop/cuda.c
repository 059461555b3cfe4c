// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent kernel of CUDA drives the board, or the host drives, and launches the same kernel for
 * each datagram, as in vulkan.c. libcuda is loaded at run time.
 */
#include "bench/loop/loop.h"
#include "common/say.h"

#ifdef BENCH_NO_CUDA

int loop_by_cuda(struct loop_drive *self, const char *gpu, bool launches, char *why)
{
	(void)self;
	(void)launches;
	return because(why, -1, "%s: this program was built without %s", gpu, BENCH_NO_CUDA);
}

#else

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "lib/cuda-api.h"
#include "loop-cuda.h"
#include <rashpa.h>

#define PLACES		2u	/* memory, doorbell */
#define PAGE		4096u
#define PATIENCE_NS	60000000000ull	/* for a kernel to end after its loop, or after TOLD_STOP */

/* struct loop_arguments of loop.cu */
struct arguments {
	uint64_t word, bell;
	struct loop_plan plan;
	uint32_t kind;
};

struct cuda {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_cuda by_cuda;
	struct cuda_calls cu;
	struct cuda_module *module;
	struct cuda_function *kernel;
	struct cuda_stream *stream;
	struct rashpa_gpu_memory *registered[PLACES];
	struct loop *loop;
};

static int wrong(const struct cuda *v, const char *what, int result, char *why)
{
	const char *text = NULL;

	if (!result)
		return 0;
	v->cu.error(result, &text);
	return because(why, -1, "%s: %s: its driver (%s) returned %d (%s)", v->info.name, what,
		       v->info.driver, result, text ? text : "no text");
}

static int submit(struct cuda *v, uint32_t kind, const struct loop_plan *plan, uint32_t groups)
{
	const bool its_own = !v->registered[0];
	struct arguments all = {
		.word = rashpa_gpu_address(its_own ? v->loop->memory : v->registered[0]),
		.bell = rashpa_gpu_address(v->registered[1]), .plan = *plan, .kind = kind,
	};
	void *argument = &all;

	return v->cu.launch(v->kernel, groups, 1, 1, 1, 1, 1, 0, v->stream, &argument, NULL);
}

/* Threads other than that of begin() need the context. */
static int wait_for(struct cuda *v)
{
	const uint64_t begin = now_ns();
	int result;

	do {
		result = v->cu.query(v->stream);
	} while (result == CUDA_NOT_READY && now_ns() - begin < PATIENCE_NS);
	return result;
}

static int once(struct cuda *v, const struct loop_plan *plan, uint32_t groups)
{
	struct cuda_context *ours;
	int result = v->cu.push(v->by_cuda.context);

	if (result)
		return result;
	result = submit(v, 2, plan, groups);
	if (!result)
		result = wait_for(v);
	v->cu.pop(&ours);
	return result;
}

static bool launch(struct loop_drive *self, uint32_t data, uint32_t to)
{
	struct cuda *v = self->own;
	struct loop_plan plan = v->loop->plan;
	volatile uint32_t *good = v->loop->word + plan.told + LOOP_GOOD;

	plan.data = data;
	plan.to = to;
	*good = 0;
	return !once(v, &plan, 1) && __atomic_load_n(good, __ATOMIC_ACQUIRE) == 1;
}

/* The stream of the kernel does not wait for the others. */
static void copy(const struct loop *loop, bool to_gpu, uint32_t at, uint32_t words)
{
	const struct cuda *v = loop->drive->own;
	const uint64_t there = rashpa_gpu_address(loop->memory) + 4 * (uint64_t)at;
	void *here = (void *)(uintptr_t)(loop->word + at);
	struct cuda_context *ours;

	if (v->cu.push(v->by_cuda.context))
		return;
	if (to_gpu)
		v->cu.to_gpu_now(there, here, 4ull * words);
	else
		v->cu.to_host_now(here, there, 4ull * words);
	v->cu.pop(&ours);
}

static uint64_t trial(void *own, const struct loop_plan *plan, uint32_t groups)
{
	const uint64_t from = now_ns();

	return once(own, plan, groups) ? 0 : now_ns() - from;
}

static int begin(struct loop_drive *self, struct loop *loop, char *why)
{
	struct cuda *v = self->own;
	struct cuda_context *ours;
	int result;

	v->loop = loop;
	if ((!(loop->memory && loop->gpu == v->gpu) &&
	     rashpa_gpu_register(v->gpu, (void *)(uintptr_t)loop->word, loop->length, 0,
				 &v->registered[0])) ||
	    rashpa_gpu_register(v->gpu, (void *)(uintptr_t)loop->page, PAGE, RASHPA_GPU_WINDOW,
				&v->registered[1]))
		return because(why, -1, "%s", rashpa_reason());
	loop_calibrate(loop, trial, v);
	if (self->launch)
		return loop_host_begin(self, loop, why);
	result = v->cu.push(v->by_cuda.context);
	if (!result)
		result = submit(v, loop->kind == &loop_ring ? 0 : 1, &loop->plan, 1);
	v->cu.pop(&ours);
	return wrong(v, "to begin", result, why);
}

static int end(struct loop_drive *self, char *why)
{
	struct cuda *v = self->own;
	struct cuda_context *ours;
	int result;

	if (self->launch)
		loop_host_end(self, why);
	result = v->cu.push(v->by_cuda.context);
	if (!result)
		result = wait_for(v);
	v->cu.pop(&ours);
	self->lost = result == CUDA_NOT_READY;
	for (unsigned int i = 0; i < PLACES && !self->lost; i++) {
		rashpa_gpu_free(v->registered[i]);
		v->registered[i] = NULL;
	}
	return wrong(v, "the loop", result, why);
}

static void close_drive(struct loop_drive *self)
{
	struct cuda *v = self->own;
	struct cuda_context *ours;

	if (v->cu.push && !v->cu.push(v->by_cuda.context)) {
		if (v->stream)
			v->cu.end_stream(v->stream);
		if (v->module)
			v->cu.unload(v->module);
		v->cu.pop(&ours);
	}
	rashpa_gpu_close(v->gpu);
	free(v);
	self->own = NULL;
}

static int open_drive(struct cuda *v, const char *gpu, char *why)
{
	struct cuda_context *ours;
	const char *lacking;
	int result;

	if (rashpa_gpu_open(gpu, &v->gpu) || rashpa_gpu_as_cuda(v->gpu, &v->by_cuda))
		return because(why, -1, "%s", rashpa_reason());
	rashpa_gpu_get_info(v->gpu, &v->info);
	lacking = cuda_load(&v->cu, v->by_cuda.library);
	if (lacking) {
		v->cu.push = NULL;
		return because(why, -1, "libcuda.so.1 has no %s: install a newer driver", lacking);
	}
	result = v->cu.push(v->by_cuda.context);
	if (!result)
		result = v->cu.load(&v->module, loop_cuda);
	if (!result)
		result = v->cu.function(&v->kernel, v->module, "rpu_loop");
	if (!result)
		result = v->cu.stream(&v->stream, CUDA_NON_BLOCKING);
	v->cu.pop(&ours);
	return wrong(v, "its kernel", result, why);
}

int loop_by_cuda(struct loop_drive *self, const char *gpu, bool launches, char *why)
{
	struct cuda *v = calloc(1, sizeof(*v));

	if (!v)
		return because(why, -1, "no memory");
	*self = (struct loop_drive) {
		.own = v, .begin = begin, .end = end, .close = close_drive,
		.launch = launches ? launch : NULL, .copy = launches ? NULL : copy,
	};
	if (!open_drive(v, gpu, why)) {
		self->gpu = v->gpu;
		snprintf(self->name, sizeof(self->name), "%s%s", launches ? "launches, " : "",
			 v->info.name);
		return 0;
	}
	close_drive(self);
	return -1;
}

#endif
