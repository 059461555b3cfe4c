// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent shader drives the board, and the host only watches; or the host drives, and launches
 * the same shader for each datagram. The memory is the GPU's, or accessed by its address in this
 * process, as the doorbell page is.
 */
#include "bench/loop/loop.h"
#include "common/say.h"

#ifdef BENCH_NO_SHADERS

int loop_by_vulkan(struct loop_drive *self, const char *gpu, bool launches, char *why)
{
	(void)self;
	(void)launches;
	return because(why, -1, "%s: this program was built without %s (libvulkan-dev, glslang-tools)",
		       gpu, BENCH_NO_SHADERS);
}

#else

#include <stdio.h>
#include <stdlib.h>

#include "bench/bench.h"
#include "common/compute.h"
#include "loop.spv.h"

#define PLACES		2u	/* memory, doorbell */
#define PAGE		4096u
#define PATIENCE_NS	60000000000ull	/* for a shader to end after its loop, or after TOLD_STOP */

struct vulkan {
	struct compute c;
	struct rashpa_gpu_memory *registered[PLACES];
	VkPipeline shader, one;		/* the loop, and a launch for one datagram */
	struct loop *loop;
	bool runs;
};

static VkResult submit(struct vulkan *v, VkPipeline shader, const struct loop_plan *plan,
		       uint32_t groups)
{
	VkResult result = compute_begin(&v->c, v->c.commands);

	if (result)
		return result;
	compute_load(&v->c, v->c.commands, shader, v->c.set, plan);
	compute_run(&v->c, v->c.commands, groups);
	compute_barrier(&v->c, v->c.commands);
	result = v->c.EndCommandBuffer(v->c.commands);
	return result ? result : compute_submit(&v->c, NULL, 0);
}

/* Process a datagram. The GPU has its payload, and writes the answer next to it. */
static bool launch(struct loop_drive *self, uint32_t data, uint32_t to)
{
	struct vulkan *v = self->own;
	struct loop_plan plan = v->loop->plan;
	volatile uint32_t *good = v->loop->word + plan.told + LOOP_GOOD;

	plan.data = data;
	plan.to = to;
	*good = 0;
	return !submit(v, v->one, &plan, 1) && !compute_wait(&v->c, PATIENCE_NS) &&
	       __atomic_load_n(good, __ATOMIC_ACQUIRE) == 1;
}

static uint64_t trial(void *own, const struct loop_plan *plan, uint32_t groups)
{
	struct vulkan *v = own;
	const uint64_t from = now_ns();

	return submit(v, v->one, plan, groups) || compute_wait(&v->c, PATIENCE_NS) ? 0 :
	       now_ns() - from;
}

static int bind(struct vulkan *v, const struct loop *loop, char *why)
{
	const bool its_own = loop->memory && loop->gpu == v->c.gpu;

	if ((!its_own && rashpa_gpu_register(v->c.gpu, (void *)(uintptr_t)loop->word, loop->length,
					     0, &v->registered[0])) ||
	    rashpa_gpu_register(v->c.gpu, (void *)(uintptr_t)loop->page, PAGE, RASHPA_GPU_WINDOW,
				&v->registered[1]))
		return because(why, -1, "%s", rashpa_reason());
	for (uint32_t i = 0; i < PLACES; i++)
		compute_bind(&v->c, v->c.set, i, (VkBuffer)rashpa_gpu_vulkan_buffer(
			     i == 0 && its_own ? loop->memory : v->registered[i]));
	return 0;
}

static int begin(struct loop_drive *self, struct loop *loop, char *why)
{
	const uint32_t kind = loop->kind == &loop_ring ? 0 : 1, one = 2;
	struct vulkan *v = self->own;

	v->loop = loop;
	if (bind(v, loop, why) ||
	    ((self->launch || loop->compute_us || loop->rings) &&
	     compute_shader(&v->c, loop_shader, sizeof(loop_shader), &one, 1, &v->one, why)))
		return -1;
	loop_calibrate(loop, trial, v);
	if (self->launch)
		return loop_host_begin(self, loop, why);
	if (compute_shader(&v->c, loop_shader, sizeof(loop_shader), &kind, 1, &v->shader, why) ||
	    compute_wrong(&v->c, "to begin", submit(v, v->shader, &loop->plan, 1), why))
		return -1;
	v->runs = true;
	return 0;
}

static int end(struct loop_drive *self, char *why)
{
	struct vulkan *v = self->own;
	int error = 0;

	if (self->launch)
		loop_host_end(self, why);
	if (v->runs)
		error = compute_wrong(&v->c, "the loop", compute_wait(&v->c, PATIENCE_NS), why);
	v->runs = false;
	self->lost = v->c.lost;
	if (v->c.lost)
		return error;
	if (v->shader)
		v->c.DestroyPipeline(v->c.device, v->shader, NULL);
	if (v->one)
		v->c.DestroyPipeline(v->c.device, v->one, NULL);
	for (unsigned int i = 0; i < PLACES; i++)
		rashpa_gpu_free(v->registered[i]);
	return error;
}

static void close_drive(struct loop_drive *self)
{
	struct vulkan *v = self->own;

	compute_close(&v->c);
	free(v);
	self->own = NULL;
}

static int open_drive(struct vulkan *v, const char *gpu, char *why)
{
	if (compute_open(&v->c, gpu, PLACES, PLACES, sizeof(struct loop_plan), why))
		return -1;
	if (!(v->c.info.flags & RASHPA_GPU_HOST))
		return because(why, -1, "%s: its driver (%s) cannot access host memory, so a shader cannot ring a doorbell",
			       v->c.info.name, v->c.info.driver);
	return 0;
}

int loop_by_vulkan(struct loop_drive *self, const char *gpu, bool launches, char *why)
{
	struct vulkan *v = calloc(1, sizeof(*v));

	if (!v)
		return because(why, -1, "no memory");
	*self = (struct loop_drive) {
		.own = v, .begin = begin, .end = end, .close = close_drive,
		.launch = launches ? launch : NULL,
	};
	if (!open_drive(v, gpu, why)) {
		self->gpu = v->c.gpu;
		snprintf(self->name, sizeof(self->name), "%s%s", launches ? "launches, " : "",
			 v->c.info.name);
		return 0;
	}
	close_drive(self);
	return -1;
}

#endif
