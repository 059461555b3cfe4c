/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Parts that the GPU backends share. */
#ifndef GPU_H
#define GPU_H

#include <stdbool.h>
#include <stddef.h>

#include <rashpa-gpu.h>

/* One way to GPUs; what begins with one of these is its own. */
struct gpu_way {
	const char *name;
	int (*open)(unsigned int number, struct rashpa_gpu **gpu);
	void (*close)(struct rashpa_gpu *gpu);
	/* @dmabuf -1: new memory; the struct is filled in but for what gpu.c does */
	int (*memory)(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
		      struct rashpa_gpu_memory **memory);
	/* memory of the host, for a GPU that has RASHPA_GPU_HOST */
	int (*register_host)(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
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
	int dmabuf;			/* -1: memory of the host */
	void *base;
	uint64_t address;		/* address for the GPU; 0: the GPU has no such addresses */
};

extern const struct gpu_way gpu_vulkan, gpu_cuda, gpu_rocm;

/* A function of a library, and where its pointer is. */
struct library_function {
	const char *name;
	size_t at;
};

/* All of them, from @to on: false if there is one that the library lacks. */
bool library_load(void *library, void *to, const struct library_function *f, size_t count);

#endif /* GPU_H */
