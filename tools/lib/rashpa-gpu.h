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
 * - The vendor's library is loaded when a GPU is opened; nothing else needs it.
 * - Errors are as in rashpa.h: a negative errno, and a sentence from rashpa_reason().
 * - A GPU and its memories are for one thread at a time. Only the process that opened the GPU can
 *   use them, not its forks.
 */

#define RASHPA_GPU_NAME	256

/* Capabilities of a GPU. */
/** RASHPA_GPU_EXPORTS - its memory can be a dma-buf */
#define RASHPA_GPU_EXPORTS	(1u << 0)
/** RASHPA_GPU_IMPORTS - it can use a dma-buf of other drivers */
#define RASHPA_GPU_IMPORTS	(1u << 1)
/** RASHPA_GPU_SOFTWARE - it is a program on this machine's processors, with their memory */
#define RASHPA_GPU_SOFTWARE	(1u << 2)
/** RASHPA_GPU_HOST - it can use memory of the host: rashpa_gpu_register() */
#define RASHPA_GPU_HOST		(1u << 3)

/* Kinds of host memory, for rashpa_gpu_register(). */
/**
 * RASHPA_GPU_WINDOW - a window of a board: registers or doorbells instead of memory. Each page is
 * read once, since NVIDIA's driver accepts only pages that the process's page tables contain
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
 * struct rashpa_gpu_info - properties of a GPU
 * @name: name that its driver reports
 * @driver: the driver's name and version
 * @memory_bytes: size of its local memory in bytes
 * @pci: its PCI address, encoded like that of a peer in &struct rashpa_map_make, or
 *	RASHPA_GPU_NOWHERE
 * @flags: RASHPA_GPU_EXPORTS and the following flags
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
void rashpa_gpu_get_info_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_info *info,
			       size_t size);
int rashpa_gpu_map_sized(int device, const struct rashpa_gpu_memory *memory,
			 struct rashpa_map_make *map, size_t size);
int rashpa_gpu_as_vulkan_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_vulkan *vulkan,
			       size_t size);
int rashpa_gpu_as_cuda_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_cuda *cuda,
			     size_t size);

/**
 * rashpa_gpu_open() - open a GPU
 * @name: "vulkan": the best GPU of Vulkan; discrete GPUs come before integrated ones, and these
 *	before software. "vulkan:N": number N in that order, from 0. "cuda" or "cuda:N": GPU of
 *	NVIDIA, as CUDA counts. "rocm" or "rocm:N": GPU of AMD, as ROCm counts
 * @gpu: becomes the handle; rashpa_gpu_close() it
 *
 * CUDA's context is the primary one of the GPU, which other CUDA code of the program shares.
 * The environment variable VK_DRIVER_FILES selects the drivers of Vulkan.
 *
 * Return: 0 or a negative errno: -EINVAL (no such name), -EOPNOTSUPP (the library was built
 * without support, or this machine lacks the vendor's library), -ENODEV (no such GPU), -EIO (the
 * driver failed).
 */
int rashpa_gpu_open(const char *name, struct rashpa_gpu **gpu);

/**
 * rashpa_gpu_close() - close a GPU, after its memories are freed
 * @gpu: the handle, or NULL
 */
void rashpa_gpu_close(struct rashpa_gpu *gpu);

/**
 * rashpa_gpu_get_info() - properties of a GPU
 * @gpu: the handle
 * @info: filled in
 */
static inline void rashpa_gpu_get_info(const struct rashpa_gpu *gpu, struct rashpa_gpu_info *info)
{
	rashpa_gpu_get_info_sized(gpu, info, sizeof(*info));
}

/**
 * rashpa_gpu_alloc() - allocate GPU memory as a dma-buf
 * @gpu: the handle
 * @length: bytes
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * If the GPU distinguishes memory that others can reach through its BAR, this memory is of that
 * kind. It is not cleared.
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (the GPU cannot export), -EINVAL (@length is 0, or
 * larger than a buffer can be), -ENOMEM, -EIO.
 */
int rashpa_gpu_alloc(struct rashpa_gpu *gpu, uint64_t length, struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_import() - make a dma-buf usable by a GPU
 * @gpu: the handle
 * @dmabuf: dma-buf of a buffer, or of another driver; stays the caller's
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (the GPU cannot import), -EINVAL (not a dma-buf, or
 * larger than a buffer can be), -ENOMEM (no memory, or the GPU refuses this dma-buf), -EIO.
 */
int rashpa_gpu_import(struct rashpa_gpu *gpu, int dmabuf, struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_register() - make host memory usable by a GPU
 * @gpu: the handle
 * @base: whole pages, mapped; they stay mapped until rashpa_gpu_free()
 * @length: bytes, whole pages
 * @flags: RASHPA_GPU_WINDOW, RASHPA_GPU_READ_ONLY
 * @memory: becomes the handle; rashpa_gpu_free() it
 *
 * For buffers and locks that a GPU reads in place, and for doorbells that it rings. This memory has
 * no dma-buf for other drivers. A GPU goes on using a window whose board was removed, so free the
 * window when rashpa reports the removal.
 *
 * Return: 0 or a negative errno: -EOPNOTSUPP (the GPU takes no host memory, or no windows), -EINVAL
 * (not whole pages), -EPERM (the GPU's driver requires root for windows, see rashpactl doctor),
 * -EBUSY (registered already), -ENOMEM, -EIO.
 */
int rashpa_gpu_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			struct rashpa_gpu_memory **memory);

/**
 * rashpa_gpu_free() - give memory back
 * @memory: the handle, or NULL
 *
 * The pages stay allocated as long as a dma-buf of the memory, or a map of it, exists.
 */
void rashpa_gpu_free(struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_dmabuf() - dma-buf of the memory, for other drivers
 * @memory: the handle
 *
 * Return: the dma-buf fd, which the library owns until rashpa_gpu_free(); -1: memory of the host.
 */
int rashpa_gpu_dmabuf(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_base() - address of the memory, for this program
 * @memory: the handle
 *
 * Return: address of its mapping, valid until rashpa_gpu_free(); NULL: the GPU's driver does not
 * map it for processors (rashpa_mmap() the dma-buf of imported memory).
 */
void *rashpa_gpu_base(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_address() - address of the memory, for GPU kernels
 * @memory: the handle
 *
 * Return: a CUdeviceptr for CUDA, a pointer for ROCm; 0: the GPU has no such
 * addresses (Vulkan).
 */
uint64_t rashpa_gpu_address(const struct rashpa_gpu_memory *memory);

/**
 * rashpa_gpu_map() - map GPU memory for a function
 * @device: from rashpa_device_open()
 * @memory: the handle
 * @map: see &struct rashpa_map_make; this function sets fd and RASHPA_MAP_DEVICE, so memory that a
 *	driver has moved to the host is refused
 *
 * Return: the map's fd (also in @map->out_fd) or a negative errno, as rashpa_device_map().
 */
static inline int rashpa_gpu_map(int device, const struct rashpa_gpu_memory *memory,
				 struct rashpa_map_make *map)
{
	return rashpa_gpu_map_sized(device, memory, map, sizeof(*map));
}

/**
 * struct rashpa_gpu_vulkan - Vulkan objects of a GPU, for programs that run shaders
 * @get_instance_proc: PFN_vkGetInstanceProcAddr
 * @instance: VkInstance
 * @physical: VkPhysicalDevice
 * @device: VkDevice
 * @queue: VkQueue of the compute family
 * @family: index of that family
 * @foreign: VK_EXT_queue_family_foreign is enabled
 * @timeline: timeline semaphores are enabled
 * @queues: number of queues in that family, for vkGetDeviceQueue(); @queue is number 0
 *
 * The library owns all of them until rashpa_gpu_close().
 */
struct rashpa_gpu_vulkan {
	void *get_instance_proc;
	void *instance, *physical, *device, *queue;
	uint32_t family;
	uint32_t foreign, timeline;
	uint32_t queues;
};

/**
 * rashpa_gpu_as_vulkan() - get the Vulkan objects of this GPU
 * @gpu: the handle
 * @vulkan: filled in
 *
 * Return: 0, or -EOPNOTSUPP: the GPU was not opened through Vulkan.
 */
static inline int rashpa_gpu_as_vulkan(const struct rashpa_gpu *gpu,
				       struct rashpa_gpu_vulkan *vulkan)
{
	return rashpa_gpu_as_vulkan_sized(gpu, vulkan, sizeof(*vulkan));
}

/**
 * rashpa_gpu_vulkan_buffer() - VkBuffer that covers a whole memory
 * @memory: the handle; its GPU was opened through Vulkan
 *
 * Usable as storage buffer, and as source and destination of copies.
 *
 * Return: the VkBuffer, which the library owns until rashpa_gpu_free().
 */
uint64_t rashpa_gpu_vulkan_buffer(const struct rashpa_gpu_memory *memory);

/**
 * struct rashpa_gpu_cuda - CUDA objects of a GPU, for programs that run kernels
 * @library: handle from dlopen() of libcuda.so.1
 * @context: CUcontext, the primary one; it is current in no thread
 * @device: CUdevice
 *
 * The library owns all of them until rashpa_gpu_close().
 */
struct rashpa_gpu_cuda {
	void *library;
	void *context;
	int device;
};

/**
 * rashpa_gpu_as_cuda() - get the CUDA objects of this GPU
 * @gpu: the handle
 * @cuda: filled in
 *
 * Return: 0, or -EOPNOTSUPP: the GPU was not opened through CUDA.
 */
static inline int rashpa_gpu_as_cuda(const struct rashpa_gpu *gpu, struct rashpa_gpu_cuda *cuda)
{
	return rashpa_gpu_as_cuda_sized(gpu, cuda, sizeof(*cuda));
}

#ifdef __cplusplus
}
#endif

#endif /* RASHPA_GPU_H */
