/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the makers of GPUs have in common. */
#ifndef GPU_H
#define GPU_H

#include "rashpa-gpu.h"

/* One way to GPUs; what begins with one of these is its own. */
struct gpu_way {
	const char *name;
	int (*open)(unsigned int number, struct rashpa_gpu **gpu);
	void (*close)(struct rashpa_gpu *gpu);
	/* @dmabuf -1: new memory; the struct is filled in but for what gpu.c does */
	int (*memory)(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
		      struct rashpa_gpu_memory **memory);
	int (*host)(struct rashpa_gpu *gpu, void *address, uint64_t length,
		    struct rashpa_gpu_memory **memory);
	void (*free)(struct rashpa_gpu_memory *memory);
};

struct rashpa_gpu {
	const struct gpu_way *way;
	struct rashpa_gpu_info info;
	uint64_t longest;		/* bytes of one memory */
};

struct rashpa_gpu_memory {
	struct rashpa_gpu *gpu;
	int dmabuf;
	void *base;
};

extern const struct gpu_way gpu_vulkan;

#endif /* GPU_H */
