/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU of Vulkan as the benchmark has it: a batch of commands, words that both see, copies. */
#ifndef GPU_BENCH_H
#define GPU_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa-gpu.h"

struct gpu_bench;

/* NULL after a message: there is none, or this program was built without. */
struct gpu_bench *gpu_bench_open(const char *name, struct rashpa_gpu_info *info);
void gpu_bench_close(struct gpu_bench *g);

/* How a shader gets to know that something has come. */
enum gpu_way_of { GPU_LAUNCH, GPU_TIMELINE, GPU_POLL, GPU_WAYS };
extern const char * const gpu_ways[GPU_WAYS];
/* From the notification until the host sees what the shader did first, ns; 0: not this way. */
uint64_t gpu_bench_latency(struct gpu_bench *g, enum gpu_way_of way);

/* Copy inside of the GPU, until the host knows that it is done, ns; 0 after a message. */
uint64_t gpu_bench_copy(struct gpu_bench *g, uint64_t bytes);
#define GPU_COPY_MOST	(UINT64_C(64) << 20)

#endif /* GPU_BENCH_H */
