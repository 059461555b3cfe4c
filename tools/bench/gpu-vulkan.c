// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/gpu.h"

#include "bench/bench.h"
#include <rashpa.h>

#ifdef BENCH_NO_SHADERS

static struct gpu_bench *open_none(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				   char *why)
{
	(void)most;
	(void)info;
	because(why, -1, "%s: this program was built without %s", name, BENCH_NO_SHADERS);
	return NULL;
}

const struct gpu_maker gpu_by_vulkan = { .open = open_none };

#else

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/compute.h"
#include "gpu-touch.spv.h"

#define POLLS		2000000000u	/* limit of polls, after which a shader ends */
#define PATIENCE_NS	60000000000ull	/* long, as the first touch allocates pages */
#define STAGING		(UINT64_C(4) << 20)	/* bytes of pageable memory to copy at a time */
#define SETTLE_NS	2000000		/* time for a shader to start waiting or polling */

enum { FROM, TO, PINNED, WORDS, BUFFERS, BOARD = BUFFERS };

struct vulkan_bench {
	struct gpu_bench head;		/* first */
	struct compute c;
	struct compute_buffer buffer[BUFFERS + 1];
	struct rashpa_gpu_memory *board;
	atomic_uint *word;
	uint32_t value;		/* last value of the word */
	uint64_t signalled;
	uint8_t *pageable;
	uint32_t stamp;		/* last word of the last copy to the GPU */
	uint64_t stamped;	/* bytes of that copy */
	VkSemaphore timeline;
	VkPipeline shader;
};

static struct vulkan_bench *of(struct gpu_bench *g)
{
	return (struct vulkan_bench *)g;
}

static int open_all(struct vulkan_bench *g, const char *name, uint64_t most, char *why)
{
	static const unsigned int flags[BUFFERS] = {
		[FROM] = COMPUTE_COPIED, [TO] = COMPUTE_COPIED,
		[PINNED] = COMPUTE_COPIED | COMPUTE_HOST, [WORDS] = COMPUTE_HOST,
	};

	if (compute_open(&g->c, name, 1, 1, 2 * sizeof(uint32_t), why))
		return -1;
	for (unsigned int i = 0; i < BUFFERS; i++) {
		if (compute_buffer(&g->c, &g->buffer[i], i == WORDS ? 4096 : most, flags[i], why))
			return -1;
	}
	g->pageable = malloc(most);
	if (!g->pageable)
		return because(why, -1, "no memory for copies of %llu bytes",
			       (unsigned long long)most);
	/* allocate the pages */
	memset(g->pageable, 1, most);
	memset(g->buffer[PINNED].base, 1, most);
	g->word = g->buffer[WORDS].base;
	compute_bind(&g->c, g->c.set, 0, g->buffer[WORDS].buffer);
	if (g->c.vk.timeline && compute_wrong(&g->c, "a semaphore",
					      compute_semaphore(&g->c, &g->timeline), why))
		return -1;
	return compute_shader(&g->c, gpu_touch_shader, sizeof(gpu_touch_shader), NULL, 0,
			      &g->shader, why);
}

static void close_gpu(struct gpu_bench *of_all)
{
	struct vulkan_bench *g = of(of_all);

	/* if the GPU may still use the memory, leave it until the process exits */
	if (!g->c.lost) {
		for (unsigned int i = 0; i < BUFFERS; i++)
			compute_drop(&g->c, &g->buffer[i]);
		if (g->shader)
			g->c.DestroyPipeline(g->c.device, g->shader, NULL);
		if (g->timeline)
			g->c.DestroySemaphore(g->c.device, g->timeline, NULL);
	}
	compute_close(&g->c);
	free(g->pageable);
	free(g);
}

static struct gpu_bench *open_gpu(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				  char *why)
{
	struct vulkan_bench *g = calloc(1, sizeof(*g));

	if (!g) {
		because(why, -1, "no memory for a GPU");
		return NULL;
	}
	g->head.by = &gpu_by_vulkan;
	if (open_all(g, name, most, why)) {
		close_gpu(&g->head);
		return NULL;
	}
	*info = g->c.info;
	return &g->head;
}

/* --- batches --- */

static VkResult touch(struct vulkan_bench *g, uint32_t polls)
{
	const uint32_t push[] = { ++g->value, polls };
	const VkResult result = compute_begin(&g->c, g->c.commands);

	if (result)
		return result;
	compute_load(&g->c, g->c.commands, g->shader, g->c.set, push);
	compute_run(&g->c, g->c.commands, 1);
	return g->c.EndCommandBuffer(g->c.commands);
}

/* Vulkan cannot flush writes of other devices: a board does that, by a read. */
static uint64_t latency(struct gpu_bench *of_all, enum gpu_way_of way)
{
	struct vulkan_bench *g = of(of_all);
	const struct timespec settle = { .tv_nsec = SETTLE_NS };
	VkSemaphoreSignalInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = g->timeline,
	};
	unsigned long long from, now;
	VkResult result;

	if (way == GPU_AHEAD_FLUSH || (way == GPU_AHEAD && !g->c.vk.timeline))
		return 0;
	result = touch(g, way == GPU_POLL ? POLLS : 0);
	if (!result && way != GPU_LAUNCH) {
		signal.value = way == GPU_AHEAD ? ++g->signalled : 0;
		result = compute_submit(&g->c, signal.value ? g->timeline : NULL, signal.value);
		nanosleep(&settle, NULL);
	}
	from = now_ns();
	if (!result && way == GPU_LAUNCH)
		result = compute_submit(&g->c, NULL, 0);
	else if (!result && way == GPU_AHEAD)
		result = g->c.SignalSemaphore(g->c.device, &signal);
	else
		atomic_store(&g->word[0], g->value);
	do
		now = now_ns();
	while (!result && atomic_load(&g->word[1]) != g->value && now - from < PATIENCE_NS);
	if (!result)
		result = compute_wait(&g->c, PATIENCE_NS);
	return result ? 0 : now - from;
}

static VkResult copy_part(struct vulkan_bench *g, unsigned int from, unsigned int to,
			  const VkBufferCopy *part)
{
	struct compute *c = &g->c;
	VkResult result = compute_begin(c, c->commands);

	if (result)
		return result;
	c->CmdCopyBuffer(c->commands, g->buffer[from].buffer, g->buffer[to].buffer, 1, part);
	compute_barrier(c, c->commands);
	result = c->EndCommandBuffer(c->commands);
	if (!result)
		result = compute_submit(c, NULL, 0);
	return result ? result : compute_wait(c, PATIENCE_NS);
}

static VkResult copy_pageable(struct vulkan_bench *g, bool to_gpu, uint64_t bytes)
{
	uint8_t *pinned = g->buffer[PINNED].base;
	VkResult result = VK_SUCCESS;
	VkBufferCopy part = {};

	for (uint64_t done = 0; done < bytes && !result; done += part.size) {
		part.size = bytes - done < STAGING ? bytes - done : STAGING;
		part.srcOffset = to_gpu ? 0 : done;
		part.dstOffset = to_gpu ? done : 0;
		if (to_gpu)
			memcpy(pinned, g->pageable + done, part.size);
		result = copy_part(g, to_gpu ? PINNED : FROM, to_gpu ? FROM : PINNED, &part);
		if (!to_gpu)
			memcpy(g->pageable + done, pinned, part.size);
	}
	return result;
}

static uint64_t copy(struct gpu_bench *of_all, enum gpu_copy_of which, uint64_t bytes)
{
	struct vulkan_bench *g = of(of_all);
	const bool pinned = which == GPU_TO_PINNED || which == GPU_FROM_PINNED;
	const bool to_gpu = which == GPU_TO_PINNED || which == GPU_TO_PAGEABLE;
	const VkBufferCopy all = { .size = bytes };
	uint32_t *last = (uint32_t *)((pinned ? (uint8_t *)g->buffer[PINNED].base : g->pageable) +
				      bytes) - 1;
	unsigned long long from, took;
	VkResult result;

	if (to_gpu)
		*last = ++g->stamp;
	if (which == GPU_TO_BOARD)
		last = (uint32_t *)((uint8_t *)rashpa_gpu_base(g->board) + bytes) - 1;
	from = now_ns();
	if (which == GPU_INSIDE)
		result = copy_part(g, FROM, TO, &all);
	else if (which == GPU_TO_BOARD)
		result = copy_part(g, FROM, BOARD, &all);
	else if (pinned)
		result = copy_part(g, to_gpu ? PINNED : FROM, to_gpu ? FROM : PINNED, &all);
	else
		result = copy_pageable(g, to_gpu, bytes);
	took = now_ns() - from;
	if (to_gpu)
		g->stamped = bytes;
	else if (which != GPU_INSIDE && g->stamped == bytes && *last != g->stamp)
		return 0;
	return result ? 0 : took;
}

static int board(struct gpu_bench *of_all, volatile void *base, uint64_t bytes, char *why)
{
	struct vulkan_bench *g = of(of_all);

	if (!base) {
		rashpa_gpu_free(g->board);
		return 0;
	}
	if (rashpa_gpu_register(g->c.gpu, (void *)(uintptr_t)base, bytes, RASHPA_GPU_WINDOW, &g->board))
		return because(why, -1, "%s", rashpa_reason());
	g->buffer[BOARD].buffer = (VkBuffer)rashpa_gpu_vulkan_buffer(g->board);
	return 0;
}

const struct gpu_maker gpu_by_vulkan = {
	.open = open_gpu, .close = close_gpu, .latency = latency, .copy = copy, .board = board,
};

#endif
