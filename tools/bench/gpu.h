/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU of Vulkan as the benchmark has it: a batch of commands, words that both see, copies. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa-gpu.h"

struct gpu_bench;

/* NULL after a message: there is none, or this program was built without. @most: bytes of a copy */
struct gpu_bench *gpu_bench_open(const char *name, uint64_t most, struct rashpa_gpu_info *info);
void gpu_bench_close(struct gpu_bench *g);

/* How a shader gets to know that something has come. */
enum gpu_way_of { GPU_LAUNCH, GPU_TIMELINE, GPU_POLL, GPU_WAYS };
extern const char * const gpu_ways[GPU_WAYS];
/* From the notification until the host sees what the shader did first, ns; 0: not this way. */
uint64_t gpu_bench_latency(struct gpu_bench *g, enum gpu_way_of way);

/*
 * Inside of the GPU; between it and memory of the host: what it reaches (pinned), or any
 * (pageable), which a processor copies in pieces to where the GPU reaches them, or from there.
 */
enum gpu_copy_of {
	GPU_INSIDE, GPU_TO_PINNED, GPU_TO_PAGEABLE, GPU_FROM_PINNED, GPU_FROM_PAGEABLE, GPU_COPIES,
};

/* Until the host knows that it is done, ns; 0: it failed, or other bytes came back. */
uint64_t gpu_bench_copy(struct gpu_bench *g, enum gpu_copy_of copy, uint64_t bytes);

#endif /* GPU_BENCH_H */
