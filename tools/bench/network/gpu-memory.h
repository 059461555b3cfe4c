/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of a GPU for messages, and load of the GPU. */
#ifndef BENCH_NETWORK_GPU_MEMORY_H
#define BENCH_NETWORK_GPU_MEMORY_H

#include <json-c/json.h>
#include <stdint.h>

#include <rashpa-gpu.h>
#include "common/nvml.h"
#include "common/say.h"
#include "verbs/verbs.h"

struct gpu_memory {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_memory *memory;
	struct rashpa_net_device device;
	struct nvml *nvml;		/* NULL: load and power are not known */
	char no_nvml[WHY_SIZE];		/* why not */
	double idle_watt, allocated_watt;	/* before memory was allocated, and then; NAN: not known */
};

/* 0, or -1 and why. */
int gpu_memory_open(struct gpu_memory *g, const char *name, uint64_t length, char *why);
void gpu_memory_close(struct gpu_memory *g);
/* NAN: not known */
void gpu_memory_load(const struct gpu_memory *g, double *percent, double *watt);
struct json_object *gpu_memory_json(const struct gpu_memory *g);

#endif /* BENCH_NETWORK_GPU_MEMORY_H */
