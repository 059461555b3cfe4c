// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A GPU by Vulkan: buffers, shaders, and batches of commands. All shaders have the same buffers,
 * and all batches run one after the other.
 */
#include "processing/vulkan.h"

#include <stdlib.h>
#include <string.h>

#include <rashpa.h>
#include "common/say.h"
#include "vulkan-above.spv.h"
#include "vulkan-dark.spv.h"
#include "vulkan-integrate.spv.h"
#include "vulkan-keep.spv.h"
#include "vulkan-pretreat.spv.h"
#include "vulkan-rows.spv.h"
#include "vulkan-scan.spv.h"

#define PATIENCE_NS	60000000000ull	/* longest batch, even on a software GPU */
#define STAGING		(UINT64_C(4) << 20)	/* bytes */

static const struct { const uint32_t *code; size_t bytes; } shaders[RPU_KERNELS] = {
	[RPU_KERNEL_PRETREAT] = { vulkan_pretreat, sizeof(vulkan_pretreat) },
	[RPU_KERNEL_DARK] = { vulkan_dark, sizeof(vulkan_dark) },
	[RPU_KERNEL_ABOVE] = { vulkan_above, sizeof(vulkan_above) },
	[RPU_KERNEL_ROWS] = { vulkan_rows, sizeof(vulkan_rows) },
	[RPU_KERNEL_SCAN] = { vulkan_scan, sizeof(vulkan_scan) },
	[RPU_KERNEL_KEEP] = { vulkan_keep, sizeof(vulkan_keep) },
	[RPU_KERNEL_INTEGRATE] = { vulkan_integrate, sizeof(vulkan_integrate) },
};

static struct rpu_vulkan *of(struct rpu_gpu *gpu)
{
	return (struct rpu_vulkan *)gpu;
}

/* --- begin, and end --- */

static void end(struct rpu_gpu *gpu)
{
	struct rpu_vulkan *g = of(gpu);
	struct compute *c = &g->c;

	if (c->device && c->DeviceWaitIdle && !c->lost)
		c->DeviceWaitIdle(c->device);
	for (unsigned int i = 0; i < RPU_PLACES && !c->lost; i++) {
		/* offered memory is freed separately */
		if (i != RPU_AT_RAW || !g->head.offered)
			compute_drop(c, &g->at[i]);
	}
	for (unsigned int i = 0; i < RPU_KERNELS && !c->lost; i++) {
		if (g->shader[i])
			c->DestroyPipeline(c->device, g->shader[i], NULL);
	}
	if (!c->lost) {
		compute_drop(c, &g->staging);
		rashpa_gpu_free(g->head.offered);
	}
	compute_close(c);
	free(g);
}

static int open_all(struct rpu_vulkan *g, const char *name, char *why)
{
	if (compute_open(&g->c, name, RPU_PLACES, RPU_DRIVEN_PLACES,
			 sizeof(struct rpu_vulkan_push), why))
		return -1;
	g->head.gpu = g->c.gpu;
	g->head.info = g->c.info;
	return compute_buffer(&g->c, &g->staging, STAGING, COMPUTE_HOST, why);
}

static int open_vulkan(const char *name, struct rpu_gpu **gpu, char *why)
{
	struct rpu_vulkan *g = calloc(1, sizeof(*g));

	*gpu = NULL;
	if (!g)
		return because(why, -1, "engine %s: no memory", name);
	g->head.by = &rpu_vulkan;
	if (open_all(g, name, why)) {
		end(&g->head);
		return -1;
	}
	*gpu = &g->head;
	return 0;
}

static int make(struct rpu_gpu *gpu, enum rpu_place at, uint64_t bytes, bool host, char *why)
{
	return compute_buffer(&of(gpu)->c, &of(gpu)->at[at], bytes,
			      host ? COMPUTE_HOST : 0, why);
}

static void use(struct rpu_gpu *gpu, const struct rashpa_gpu_memory *memory, uint64_t bytes)
{
	struct compute_buffer *b = &of(gpu)->at[RPU_AT_RAW];

	b->buffer = (VkBuffer)rashpa_gpu_vulkan_buffer(memory);
	b->bytes = bytes;
}

/* Let shaders see all buffers that were made. */
static void bind_all(struct rpu_gpu *gpu)
{
	struct rpu_vulkan *g = of(gpu);

	for (uint32_t i = 0; i < RPU_PLACES; i++) {
		if (g->at[i].buffer)
			compute_bind(&g->c, g->c.set, i, g->at[i].buffer);
	}
}

static int make_shader(struct rpu_gpu *gpu, enum rpu_kernel which,
		       const struct rpu_constants *constants, char *why)
{
	struct rpu_vulkan *g = of(gpu);

	if (which == RPU_KERNEL_PRETREAT)
		g->constants = *constants;
	return compute_shader(&g->c, shaders[which].code, shaders[which].bytes,
			      (const uint32_t *)constants, sizeof(*constants) / sizeof(uint32_t),
			      &g->shader[which], why);
}

/* --- batches --- */

void rpu_vulkan_own(struct rpu_vulkan *g, VkCommandBuffer commands, bool ours)
{
	const uint32_t family = g->c.vk.family, foreign = VK_QUEUE_FAMILY_FOREIGN_EXT;
	const VkAccessFlags read = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;
	const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
					    VK_PIPELINE_STAGE_TRANSFER_BIT;
	const VkBufferMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
		.srcAccessMask = ours ? 0 : read,
		.dstAccessMask = ours ? read : 0,
		.srcQueueFamilyIndex = ours ? foreign : family,
		.dstQueueFamilyIndex = ours ? family : foreign,
		.buffer = g->at[RPU_AT_RAW].buffer, .size = VK_WHOLE_SIZE,
	};

	if (!g->head.offered || !g->c.vk.foreign)
		return;
	g->c.CmdPipelineBarrier(commands, ours ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : stages,
				ours ? stages : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL,
				1, &barrier, 0, NULL);
}

static void barrier(struct rpu_gpu *gpu)
{
	compute_barrier(&of(gpu)->c, of(gpu)->c.commands);
}

static int begin(struct rpu_gpu *gpu, char *why)
{
	struct rpu_vulkan *g = of(gpu);

	if (g->c.lost)
		return because(why, -1, "%s: it failed before: open the pipeline again", g->head.info.name);
	if (compute_wrong(&g->c, "commands", compute_begin(&g->c, g->c.commands), why))
		return -1;
	rpu_vulkan_own(g, g->c.commands, true);
	barrier(&g->head);
	return 0;
}

static void clear(struct rpu_gpu *gpu, enum rpu_place at)
{
	struct rpu_vulkan *g = of(gpu);

	g->c.CmdFillBuffer(g->c.commands, g->at[at].buffer, 0, VK_WHOLE_SIZE, 0);
}

static void run(struct rpu_gpu *gpu, enum rpu_kernel which, const struct rpu_push *push,
		uint64_t groups)
{
	const struct rpu_vulkan_push all = { .push = *push };
	struct rpu_vulkan *g = of(gpu);

	compute_load(&g->c, g->c.commands, g->shader[which], g->c.set, &all);
	compute_run(&g->c, g->c.commands, groups);
}

static int finish(struct rpu_gpu *gpu, char *why)
{
	struct rpu_vulkan *g = of(gpu);
	VkResult result;

	barrier(&g->head);
	rpu_vulkan_own(g, g->c.commands, false);
	result = g->c.EndCommandBuffer(g->c.commands);
	if (!result)
		result = compute_submit(&g->c, NULL, 0);
	if (!result)
		result = compute_wait(&g->c, PATIENCE_NS);
	g->c.lost = result != VK_SUCCESS;
	if (result == VK_TIMEOUT)
		return because(why, -1, "%s: it did not answer for %llu s", g->head.info.name,
			       PATIENCE_NS / 1000000000);
	return compute_wrong(&g->c, "an image", result, why);
}

/* --- between us and the GPU --- */

static int copy(struct rpu_vulkan *g, const struct compute_buffer *from, uint64_t from_at,
		const struct compute_buffer *to, uint64_t to_at, uint64_t bytes, char *why)
{
	const VkBufferCopy part = { .srcOffset = from_at, .dstOffset = to_at, .size = bytes };

	if (begin(&g->head, why))
		return -1;
	g->c.CmdCopyBuffer(g->c.commands, from->buffer, to->buffer, 1, &part);
	return finish(&g->head, why);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int store(struct rpu_gpu *gpu, enum rpu_place to, uint64_t at, const void *from,
		 uint64_t bytes, char *why)
{
	struct rpu_vulkan *g = of(gpu);
	const struct compute_buffer *b = &g->at[to];

	if (b->base) {
		memcpy((uint8_t *)b->base + at, from, bytes);
		return 0;
	}
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = least(bytes - done, g->staging.bytes);
		memcpy(g->staging.base, (const uint8_t *)from + done, n);
		if (copy(g, &g->staging, 0, b, at + done, n, why))
			return -1;
	}
	return 0;
}

static int load_bytes(struct rpu_gpu *gpu, enum rpu_place from, uint64_t at, void *to,
		      uint64_t bytes, char *why)
{
	struct rpu_vulkan *g = of(gpu);
	const struct compute_buffer *b = &g->at[from];

	if (b->cached) {
		memcpy(to, (const uint8_t *)b->base + at, bytes);
		return 0;
	}
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = least(bytes - done, g->staging.bytes);
		if (copy(g, b, at + done, &g->staging, 0, n, why))
			return -1;
		memcpy((uint8_t *)to + done, g->staging.base, n);
	}
	return 0;
}

const struct rpu_gpu_driver rpu_vulkan = {
	.name = "vulkan", .open = open_vulkan, .make = make, .use = use, .kernel = make_shader,
	.ready = bind_all, .begin = begin, .clear = clear, .run = run, .barrier = barrier,
	.finish = finish, .store = store, .load = load_bytes, .end = end,
};
