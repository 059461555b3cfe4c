/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Benchmark functions of a GPU: a batch of commands, words that host and GPU share, copies. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <rashpa-gpu.h>

/* Ways to notify a shader. */
enum gpu_way_of { GPU_LAUNCH, GPU_AHEAD, GPU_AHEAD_FLUSH, GPU_POLL, GPU_WAYS };

/*
 * Copies inside the GPU, and between GPU and host. The GPU accesses pinned host memory directly. A
 * processor copies pageable memory in pieces, through memory that the GPU can access.
 */
enum gpu_copy_of {
	GPU_INSIDE, GPU_TO_PINNED, GPU_TO_PAGEABLE, GPU_FROM_PINNED, GPU_FROM_PAGEABLE, GPU_COPIES,
	GPU_TO_BOARD = GPU_COPIES,	/* after a copy to the GPU of the same length */
};

struct gpu_bench {
	const struct gpu_maker *by;
};

/**
 * struct gpu_maker - functions for Vulkan or CUDA
 * @open: open a GPU, for copies of up to @most bytes. NULL with the reason in why[WHY_SIZE]: no
 *	such GPU, or the program was built without support
 * @close: close the GPU
 * @latency: time from the notification until the host sees the first store of the shader, in
 *	nanoseconds; 0: this way is not supported
 * @copy: time until the host sees the end of the copy, in nanoseconds; 0: failed, or wrong data
 * @board: for GPU_TO_BOARD, a window of the board; NULL: the window ends. 0, or -1 with the reason
 */
struct gpu_maker {
	struct gpu_bench *(*open)(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				  char *why);
	void (*close)(struct gpu_bench *g);
	uint64_t (*latency)(struct gpu_bench *g, enum gpu_way_of way);
	uint64_t (*copy)(struct gpu_bench *g, enum gpu_copy_of copy, uint64_t bytes);
	int (*board)(struct gpu_bench *g, volatile void *base, uint64_t bytes, char *why);
};

extern const struct gpu_maker gpu_by_vulkan, gpu_by_cuda;

#endif /* GPU_BENCH_H */
