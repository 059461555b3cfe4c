/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * librashpa: memory of a GPU as a destination. See Documentation/gpu.rst.
 */
#ifndef RASHPA_GPU_H
#define RASHPA_GPU_H

#include <stdint.h>

#include "rashpa.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * DOC: GPUs
 *
 * - The GPU's own library is loaded when a GPU is opened: nothing else needs it.
 * - Errors are as in rashpa.h: a negative errno, and a sentence of rashpa_reason().
 * - A GPU and its memories are for one thread at a time. They stay with the process that has
 *   opened the GPU, and are no use in its forks.
 */

#define RASHPA_GPU_NAME	256

/* What a GPU can do. */
/** RASHPA_GPU_EXPORTS - its memory can be a dma-buf */
#define RASHPA_GPU_EXPORTS	(1u << 0)
/** RASHPA_GPU_IMPORTS - it can use a dma-buf of others */
#define RASHPA_GPU_IMPORTS	(1u << 1)
/** RASHPA_GPU_SOFTWARE - it is a program on this machine's processors, with their memory */
#define RASHPA_GPU_SOFTWARE	(1u << 2)
/** RASHPA_GPU_HOST - it can use memory of the host: rashpa_gpu_register() */
#define RASHPA_GPU_HOST		(1u << 3)

/* What memory of the host is, for rashpa_gpu_register(). */
/**
 * RASHPA_GPU_WINDOW - a window of a board, and no memory: registers, doorbells. Each page is read
 * once, since NVIDIA's driver takes what the process's page tables have, and waits for nothing
 */
#define RASHPA_GPU_WINDOW	(1u << 0)
/** RASHPA_GPU_READ_ONLY - the GPU does not write there */
#define RASHPA_GPU_READ_ONLY	(1u << 1)

/** RASHPA_GPU_NOWHERE - the PCI address is not known */
#define RASHPA_GPU_NOWHERE	UINT64_MAX

/** struct rashpa_gpu - an open GPU; opaque */
struct rashpa_gpu;

/** struct rashpa_gpu_memory - memory that a GPU can use; opaque */
struct rashpa_gpu_memory;

/**
 * struct rashpa_gpu_info - what a GPU is
 * @name: as its driver calls it
 * @driver: the driver's name and version
 * @memory_bytes: of its own
 * @pci: its PCI address, as &struct rashpa_map_make has that of a peer, or RASHPA_GPU_NOWHERE
 * @flags: RASHPA_GPU_EXPORTS and its neighbours
 */
struct rashpa_gpu_info {
	char name[RASHPA_GPU_NAME], driver[RASHPA_GPU_NAME];
	uint64_t memory_bytes;
	uint64_t pci;
	uint32_t flags;
};

struct rashpa_gpu_vulkan;
struct rashpa_gpu_cuda;
/* The functions without _sized call these: see "Growth" in rashpa.h. */
void rashpa_gpu_about_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_info *info, size_t size);
int rashpa_gpu_map_sized(int device, const struct rashpa_gpu_memory *memory,
			 struct rashpa_map_make *map, size_t size);
int rashpa_gpu_as_vulkan_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_vulkan *vulkan,
			       size_t size);
int rashpa_gpu_as_cuda_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_cuda *cuda,
			     size_t size);

/**
 * rashpa_gpu_open() - open a GPU
 * @name: "vulkan", the best one that Vulkan has: one of its own before one of the processor, and
 *	one of the processor before a program; or "vulkan:N", number N from 0 on in that order;
 *	"cuda" or "cuda:N": of NVIDIA, as CUDA counts them; "rocm" or "rocm:N": of AMD, as ROCm
 *	does; "level-zero" or "level-zero:N": of Intel, as Level Zero does
 * @gpu: becomes the handle; rashpa_gpu_close() it
 *
 * CUDA's context is the primary one of the GPU, which a program's own CUDA has as well.
 * Vulkan has other settings in the environment: VK_DRIVER_FILES names the drivers that count.
 *
 * Return: 0 or a negative errno: -EINVAL (no such name), -EOPNOTSUPP (the library was built
 * without, or there is none on this machine), -ENODEV (no such GPU), -EIO (the driver failed).
 */
int rashpa_gpu_open(const char *name, struct rashpa_gpu **gpu);

/**
 * rashpa_gpu_close() - let go of a GPU, after its memories
 * @gpu: the handle, or NULL
 */
void rashpa_gpu_close(struct rashpa_gpu *gpu);

/**
 * rashpa_gpu_about() - what a GPU is
 * @gpu: the handle
 * @info: filled in
 */
static inline void rashpa_gpu_about(const struct rashpa_gpu *gpu, struct rashpa_gpu_info *info)
{
	rashpa_gpu_about_sized(gpu, info, sizeof(*info));
}

/**
 * rashpa_gpu_alloc() - have memory of a GPU as a dma-buf
 * @gpu: the handle
 * @length: bytes
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * Of memory that others can reach through the GPU's BAR, where the GPU tells it from other memory.
 * The memory is not cleared.
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (it exports none), -EINVAL (no bytes, or more than one
 * buffer has), -ENOMEM, -EIO.
 */
int rashpa_gpu_alloc(struct rashpa_gpu *gpu, uint64_t length, struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_import() - let a GPU use a dma-buf
 * @gpu: the handle
 * @dmabuf: of a buffer, or of another driver; it stays the caller's
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (it imports none), -EINVAL (that is none, or more than
 * one buffer has), -ENOMEM (or the GPU does not take this one), -EIO.
 */
int rashpa_gpu_import(struct rashpa_gpu *gpu, int dmabuf, struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_register() - let a GPU use memory of the host
 * @gpu: the handle
 * @base: whole pages, mapped; they stay mapped until rashpa_gpu_free()
 * @length: bytes, whole pages
 * @flags: RASHPA_GPU_WINDOW, RASHPA_GPU_READ_ONLY
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * For buffers and locks that a GPU reads where they are, and for doorbells that it rings. Nobody
 * else is told where they are: there is no dma-buf of this memory. A GPU goes on using a window
 * whose board was removed: let go of it when rashpa says so.
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (it takes none, or no windows), -EINVAL (not whole
 * pages), -EPERM (a window, and its driver wants root: rashpactl doctor tells), -EBUSY (it has it
 * already), -ENOMEM, -EIO.
 */
int rashpa_gpu_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_free() - give memory back
 * @memory: the handle, or NULL
 *
 * Who has its dma-buf, or a map of that, keeps the pages.
 */
void rashpa_gpu_free(struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_dmabuf() - the memory for other drivers
 * @memory: the handle
 *
 * Return: the dma-buf fd, the library's until rashpa_gpu_free(); -1: it is memory of the host.
 */
int rashpa_gpu_dmabuf(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_base() - the memory for this program
 * @memory: the handle
 *
 * Return: where it is mapped, until rashpa_gpu_free(); NULL: no processor reaches it through the
 * GPU's driver (of memory that was imported, rashpa_mmap() the dma-buf).
 */
void *rashpa_gpu_base(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_address() - the memory for kernels
 * @memory: the handle
 *
 * Return: its address there, as CUdeviceptr has it; a pointer, for ROCm and Level Zero; 0: the GPU
 * has no such addresses (Vulkan).
 */
uint64_t rashpa_gpu_address(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_map() - let a function write into memory of a GPU
 * @device: from rashpa_device_open()
 * @memory: the handle
 * @map: see &struct rashpa_map_make; fd and RASHPA_MAP_DEVICE are set here: memory that a driver
 *	has moved to the host is refused
 *
 * Return: the map's fd (also in @map->out_fd) or a negative errno, as rashpa_device_map().
 */
static inline int rashpa_gpu_map(int device, const struct rashpa_gpu_memory *memory,
				 struct rashpa_map_make *map)
{
	return rashpa_gpu_map_sized(device, memory, map, sizeof(*map));
}

/**
 * struct rashpa_gpu_vulkan - a GPU for programs with shaders of their own
 * @get_instance_proc: PFN_vkGetInstanceProcAddr
 * @instance: VkInstance
 * @physical: VkPhysicalDevice
 * @device: VkDevice
 * @queue: VkQueue, of that family, which computes
 * @family: its index
 * @foreign: VK_EXT_queue_family_foreign is enabled
 * @timeline: timeline semaphores are enabled
 * @queues: of that family, which can be asked for by their number, from 0 on; @queue is the first
 *
 * All are the library's, until rashpa_gpu_close().
 */
struct rashpa_gpu_vulkan {
	void *get_instance_proc;
	void *instance, *physical, *device, *queue;
	uint32_t family;
	uint32_t foreign, timeline;
	uint32_t queues;
};

/**
 * rashpa_gpu_as_vulkan() - what Vulkan calls this GPU
 * @gpu: the handle
 * @vulkan: filled in
 *
 * Return: 0, or -EOPNOTSUPP: it is not Vulkan's.
 */
static inline int rashpa_gpu_as_vulkan(const struct rashpa_gpu *gpu,
				       struct rashpa_gpu_vulkan *vulkan)
{
	return rashpa_gpu_as_vulkan_sized(gpu, vulkan, sizeof(*vulkan));
}

/**
 * rashpa_gpu_vulkan_buffer() - the VkBuffer that is all of a memory
 * @memory: the handle, of a GPU of Vulkan
 *
 * Usable as storage buffer, and as source and destination of copies.
 *
 * Return: the VkBuffer, the library's until rashpa_gpu_free().
 */
uint64_t rashpa_gpu_vulkan_buffer(const struct rashpa_gpu_memory *memory);

/**
 * struct rashpa_gpu_cuda - a GPU for programs with kernels of their own
 * @library: of dlopen(): libcuda.so.1
 * @context: CUcontext, the primary one; it is current in no thread
 * @device: CUdevice
 *
 * All are the library's, until rashpa_gpu_close().
 */
struct rashpa_gpu_cuda {
	void *library;
	void *context;
	int device;
};

/**
 * rashpa_gpu_as_cuda() - what CUDA calls this GPU
 * @gpu: the handle
 * @cuda: filled in
 *
 * Return: 0, or -EOPNOTSUPP: it is not CUDA's.
 */
static inline int rashpa_gpu_as_cuda(const struct rashpa_gpu *gpu, struct rashpa_gpu_cuda *cuda)
{
	return rashpa_gpu_as_cuda_sized(gpu, cuda, sizeof(*cuda));
}

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_GPU_H */
