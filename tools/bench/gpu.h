/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU as the benchmark has it: a batch of commands, words that both see, copies. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa-gpu.h"

/* How a shader gets to know that something has come. */
enum gpu_way_of { GPU_LAUNCH, GPU_AHEAD, GPU_AHEAD_FLUSH, GPU_POLL, GPU_WAYS };

/*
 * Inside of the GPU; between it and memory of the host: what it reaches (pinned), or any
 * (pageable), which a processor copies in pieces to where the GPU reaches them, or from there.
 */
enum gpu_copy_of {
	GPU_INSIDE, GPU_TO_PINNED, GPU_TO_PAGEABLE, GPU_FROM_PINNED, GPU_FROM_PAGEABLE, GPU_COPIES,
};

struct gpu_bench {
	const struct gpu_maker *by;
};

/**
 * struct gpu_maker - GPUs of Vulkan, or of CUDA
 * @open: NULL with the reason in why[WHY_SIZE]: there is none, or this program was built without.
 *	@most: bytes of a copy
 * @close: let go of it
 * @latency: from the notification until the host sees what the shader did first, ns; 0: not this
 *	way
 * @copy: until the host knows that it is done, ns; 0: it failed, or other bytes came back
 */
struct gpu_maker {
	struct gpu_bench *(*open)(const char *name, uint64_t most, struct rashpa_gpu_info *info,
				  char *why);
	void (*close)(struct gpu_bench *g);
	uint64_t (*latency)(struct gpu_bench *g, enum gpu_way_of way);
	uint64_t (*copy)(struct gpu_bench *g, enum gpu_copy_of copy, uint64_t bytes);
};

extern const struct gpu_maker gpu_by_vulkan, gpu_by_cuda;

#endif /* GPU_BENCH_H */
