// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent shader drives the board. The memory is the GPU's, or accessed by its address in this
 * process, as the doorbell page is. The host only watches.
 */
#include "common/compute.h"
#include "bench/loop/loop.h"
#include "loop.spv.h"
#include "common/say.h"

#include <stdlib.h>

#define PLACES		2u	/* memory, doorbell */
#define PAGE		4096u
#define PATIENCE_NS	60000000000ull	/* for a shader to end after its loop, or after TOLD_STOP */

struct vulkan {
	struct compute c;
	struct rashpa_gpu_memory *registered[PLACES];
	VkPipeline shader;
	bool runs;
};

static VkResult submit(struct vulkan *v, const struct loop_plan *plan)
{
	VkResult result = compute_begin(&v->c, v->c.commands);

	if (result)
		return result;
	compute_load(&v->c, v->c.commands, v->shader, v->c.set, plan);
	compute_run(&v->c, v->c.commands, 1);
	result = v->c.EndCommandBuffer(v->c.commands);
	return result ? result : compute_submit(&v->c, NULL, 0);
}

static int begin(struct loop_drive *self, struct loop *loop, char *why)
{
	struct vulkan *v = self->own;
	const bool its_own = loop->memory && loop->gpu == v->c.gpu;
	const uint32_t judges = loop->plan.judges;

	if ((!its_own && rashpa_gpu_register(v->c.gpu, (void *)(uintptr_t)loop->word, loop->length,
					     0, &v->registered[0])) ||
	    rashpa_gpu_register(v->c.gpu, (void *)(uintptr_t)loop->page, PAGE, RASHPA_GPU_WINDOW,
				&v->registered[1]))
		return because(why, -1, "%s", rashpa_reason());
	for (uint32_t i = 0; i < PLACES; i++)
		compute_bind(&v->c, v->c.set, i, (VkBuffer)rashpa_gpu_vulkan_buffer(
			     i == 0 && its_own ? loop->memory : v->registered[i]));
	if (compute_shader(&v->c, loop_shader, sizeof(loop_shader), &judges, 1, &v->shader, why) ||
	    compute_wrong(&v->c, "to begin", submit(v, &loop->plan), why))
		return -1;
	v->runs = true;
	return 0;
}

static int end(struct loop_drive *self, char *why)
{
	struct vulkan *v = self->own;
	int error = 0;

	if (v->runs)
		error = compute_wrong(&v->c, "the loop", compute_wait(&v->c, PATIENCE_NS), why);
	v->runs = false;
	self->lost = v->c.lost;
	if (v->c.lost)
		return error;
	if (v->shader)
		v->c.DestroyPipeline(v->c.device, v->shader, NULL);
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

int loop_by_vulkan(struct loop_drive *self, const char *gpu, char *why)
{
	struct vulkan *v = calloc(1, sizeof(*v));

	if (!v)
		return because(why, -1, "no memory");
	*self = (struct loop_drive) {
		.name = v->c.info.name, .own = v, .begin = begin, .end = end, .close = close_drive,
	};
	if (!open_drive(v, gpu, why)) {
		self->gpu = v->c.gpu;
		return 0;
	}
	close_drive(self);
	return -1;
}
