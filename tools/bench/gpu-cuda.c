// SPDX-License-Identifier: LGPL-2.1-or-later
/* Benchmark functions of a CUDA GPU; libcuda is loaded at run time. */
#include "bench/gpu.h"

#include "bench/bench.h"
#include <rashpa.h>

#ifdef BENCH_NO_CUDA

static struct gpu_bench *open_none(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				   char *why)
{
	(void)most;
	(void)info;
	because(why, -1, "%s: this program was built without %s", name, BENCH_NO_CUDA);
	return NULL;
}

const struct gpu_maker gpu_by_cuda = { .open = open_none };

#else

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/cuda-api.h"
#include "cuda-kernels.h"

#define POLLS		2000000000u	/* limit of polls, after which a kernel ends */
#define PATIENCE_NS	60000000000ull
#define SETTLE_NS	2000000		/* time for a kernel to start waiting or polling */
#define WORDS		4096		/* bytes */

/* "struct touched" of cuda.cu */
struct touched {
	uint64_t word;
	uint32_t value, polls;
};

struct cuda_bench {
	struct gpu_bench head;		/* first */
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_cuda by_cuda;
	struct cuda_calls cu;
	struct cuda_module *module;
	struct cuda_function *touch;
	struct cuda_stream *stream;
	uint64_t from, to;		/* GPU addresses */
	struct rashpa_gpu_memory *board;
	uint8_t *pinned, *pageable;
	atomic_uint *word;
	uint32_t value;			/* last value of the word */
	bool flushes, entered, lost;
	uint32_t stamp;			/* last word of the last copy to the GPU */
	uint64_t stamped;		/* bytes of that copy */
};

static struct cuda_bench *of(struct gpu_bench *g)
{
	return (struct cuda_bench *)g;
}

static int open_all(struct cuda_bench *g, const char *name, uint64_t most,
		    struct rashpa_gpu_info *info, char *why)
{
	const char *text = NULL, *lacking;
	void *base[2] = {};
	int flushes = 0, result;

	if (rashpa_gpu_open(name, &g->gpu) || rashpa_gpu_as_cuda(g->gpu, &g->by_cuda))
		return because(why, -1, "%s", rashpa_reason());
	rashpa_gpu_get_info(g->gpu, info);
	lacking = cuda_load(&g->cu, g->by_cuda.library);
	if (lacking)
		return because(why, -1, "libcuda.so.1 has no %s: install a newer driver", lacking);
	g->pageable = malloc(most);
	if (!g->pageable)
		return because(why, -1, "no memory for copies of %llu bytes",
			       (unsigned long long)most);
	/* allocate the pages */
	memset(g->pageable, 1, most);
	result = g->cu.push(g->by_cuda.context);
	g->entered = !result;
	if (!result)
		result = g->cu.attribute(&flushes, CUDA_FLUSHES, g->by_cuda.device);
	g->flushes = flushes;
	if (!result)
		result = g->cu.load(&g->module, cuda_kernels);
	if (!result)
		result = g->cu.function(&g->touch, g->module, "rpu_touch");
	if (!result)
		result = g->cu.stream(&g->stream, CUDA_NON_BLOCKING);
	if (!result)
		result = g->cu.alloc(&g->from, most);
	if (!result)
		result = g->cu.alloc(&g->to, most);
	if (!result)
		result = g->cu.alloc_host(&base[0], most, 0);
	g->pinned = base[0];
	if (!result)
		result = g->cu.alloc_host(&base[1], WORDS, 0);
	g->word = base[1];
	if (!result) {
		memset(g->pinned, 1, most);
		memset(base[1], 0, WORDS);
		return 0;
	}
	g->cu.error(result, &text);
	return because(why, -1, "%s: its driver (%s) returned %d (%s)", info->name, info->driver,
		       result, text ? text : "no text");
}

static void close_gpu(struct gpu_bench *of_all)
{
	struct cuda_bench *g = of(of_all);
	struct cuda_context *ours;

	/* if the GPU may still use the memory, leave it until the process exits */
	if (g->entered && !g->lost) {
		if (g->stream)
			g->cu.end_stream(g->stream);
		if (g->from)
			g->cu.free(g->from);
		if (g->to)
			g->cu.free(g->to);
		if (g->pinned)
			g->cu.free_host(g->pinned);
		if (g->word)
			g->cu.free_host((void *)g->word);
		if (g->module)
			g->cu.unload(g->module);
	}
	if (g->entered)
		g->cu.pop(&ours);
	if (!g->lost) {
		rashpa_gpu_close(g->gpu);
		free(g->pageable);
	}
	free(g);
}

static struct gpu_bench *open_gpu(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				  char *why)
{
	struct cuda_bench *g = calloc(1, sizeof(*g));

	if (!g) {
		because(why, -1, "no memory for a GPU");
		return NULL;
	}
	g->head.by = &gpu_by_cuda;
	if (open_all(g, name, most, info, why)) {
		close_gpu(&g->head);
		return NULL;
	}
	return &g->head;
}

/* Wait until the stream is done. 0 or an error of CUDA. */
static int wait_for(struct cuda_bench *g)
{
	const uint64_t begin = now_ns();
	int result;

	do {
		result = g->cu.query(g->stream);
	} while (result == CUDA_NOT_READY && now_ns() - begin < PATIENCE_NS);
	g->lost = g->lost || result == CUDA_NOT_READY;
	return result;
}

static int touch(struct cuda_bench *g, uint32_t polls)
{
	struct touched all = { .word = (uintptr_t)g->word, .value = g->value, .polls = polls };
	void *argument = &all;

	return g->cu.launch(g->touch, 1, 1, 1, 1, 1, 1, 0, g->stream, &argument, NULL);
}

static uint64_t latency(struct gpu_bench *of_all, enum gpu_way_of way)
{
	const struct timespec settle = { .tv_nsec = SETTLE_NS };
	const bool ahead = way == GPU_AHEAD || way == GPU_AHEAD_FLUSH;
	struct cuda_bench *g = of(of_all);
	uint64_t from, now;
	int result = 0;

	if (g->lost || (way == GPU_AHEAD_FLUSH && !g->flushes))
		return 0;
	g->value++;
	if (ahead)
		result = g->cu.wait(g->stream, (uintptr_t)g->word, g->value, CUDA_WAIT_GEQ |
				    (way == GPU_AHEAD_FLUSH ? CUDA_WAIT_FLUSH : 0));
	if (!result && way != GPU_LAUNCH)
		result = touch(g, way == GPU_POLL ? POLLS : 0);
	if (way != GPU_LAUNCH)
		nanosleep(&settle, NULL);
	from = now_ns();
	if (!result && way == GPU_LAUNCH)
		result = touch(g, 0);
	else
		atomic_store(&g->word[0], g->value);
	do
		now = now_ns();
	while (!result && atomic_load(&g->word[1]) != g->value && now - from < PATIENCE_NS);
	if (!result)
		result = wait_for(g);
	return result ? 0 : now - from;
}

static int copy_now(struct cuda_bench *g, enum gpu_copy_of which, uint64_t bytes)
{
	int result;

	switch (which) {
	case GPU_TO_PAGEABLE:
		return g->cu.to_gpu_now(g->from, g->pageable, bytes);
	case GPU_FROM_PAGEABLE:
		return g->cu.to_host_now(g->pageable, g->from, bytes);
	case GPU_INSIDE:
		result = g->cu.inside(g->to, g->from, bytes, g->stream);
		break;
	case GPU_TO_BOARD:
		result = g->cu.inside(rashpa_gpu_address(g->board), g->from, bytes, g->stream);
		break;
	case GPU_TO_PINNED:
		result = g->cu.to_gpu(g->from, g->pinned, bytes, g->stream);
		break;
	default:
		result = g->cu.to_host(g->pinned, g->from, bytes, g->stream);
	}
	return result ? result : wait_for(g);
}

static uint64_t copy(struct gpu_bench *of_all, enum gpu_copy_of which, uint64_t bytes)
{
	const bool pinned = which == GPU_TO_PINNED || which == GPU_FROM_PINNED;
	const bool to_gpu = which == GPU_TO_PINNED || which == GPU_TO_PAGEABLE;
	struct cuda_bench *g = of(of_all);
	uint32_t *last = (uint32_t *)((pinned ? g->pinned : g->pageable) + bytes) - 1;
	uint64_t from, took;
	int result;

	if (g->lost)
		return 0;
	if (which == GPU_TO_BOARD)
		last = (uint32_t *)((uint8_t *)rashpa_gpu_base(g->board) + bytes) - 1;
	if (to_gpu)
		*last = ++g->stamp;
	from = now_ns();
	result = copy_now(g, which, bytes);
	took = now_ns() - from;
	if (to_gpu)
		g->stamped = bytes;
	else if (which != GPU_INSIDE && g->stamped == bytes && *last != g->stamp)
		return 0;
	return result ? 0 : took;
}

static int board(struct gpu_bench *of_all, volatile void *base, uint64_t bytes, char *why)
{
	struct cuda_bench *g = of(of_all);

	if (!base)
		rashpa_gpu_free(g->board);
	else if (rashpa_gpu_register(g->gpu, (void *)(uintptr_t)base, bytes, RASHPA_GPU_WINDOW, &g->board))
		return because(why, -1, "%s", rashpa_reason());
	return 0;
}

const struct gpu_maker gpu_by_cuda = {
	.open = open_gpu, .close = close_gpu, .latency = latency, .copy = copy, .board = board,
};

#endif
