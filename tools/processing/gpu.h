/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs that compute stages. An image stays in GPU memory from stage to stage, until a stage of
 * the host reads it. gpu-stages.c defines the stages; the driver of each API provides buffers and
 * batches of kernels. Functions return 0, or -1 with the reason.
 */
#ifndef RPU_GPU_H
#define RPU_GPU_H

#include "processing/engine.h"
#include "processing/kernel.h"
#include <rashpa-gpu.h>
#include <rashpa-processing.h>

#define RPU_RING_BYTES	(UINT64_C(16) << 30)	/* kernels count words of a ring in 32 bits */

/* Buffers of kernels, as in vulkan.glsl and cuda.cu. */
enum rpu_place {
	RPU_AT_RAW, RPU_AT_PEDESTAL, RPU_AT_GAIN, RPU_AT_IMAGE, RPU_AT_TOLD, RPU_AT_ROW,
	RPU_AT_COLUMN, RPU_AT_VALUE, RPU_AT_START, RPU_AT_ELEMENT, RPU_AT_PART, RPU_AT_NORM,
	RPU_AT_PROFILE, RPU_PLACES,
};

enum rpu_kernel {
	RPU_KERNEL_PRETREAT, RPU_KERNEL_DARK, RPU_KERNEL_ABOVE, RPU_KERNEL_ROWS, RPU_KERNEL_SCAN,
	RPU_KERNEL_KEEP, RPU_KERNEL_INTEGRATE, RPU_KERNELS,
};

/**
 * struct rpu_push - arguments of each launch of a kernel, as in vulkan.glsl and cuda.cu
 * @width: pixels, or bins
 * @height: pixels
 * @pixels: pixels of an image
 * @first: first word of the raw image
 * @saturated: raw values from here on are invalid
 * @capacity: elements, or the error model (enum rpu_error)
 * @number: threshold
 * @weight: weight of a dark image; 0: it changes nothing
 */
struct rpu_push {
	uint32_t width, height, pixels;
	uint32_t first;
	uint32_t saturated;
	uint32_t capacity;
	float number;
	float weight;
};

/** struct rpu_constants - arguments of a kernel that are set once */
struct rpu_constants {
	uint32_t pixel_bytes, jungfrau, whole, parts;
};

struct rpu_gpu;

/**
 * struct rpu_gpu_driver - operations of a GPU, for each API
 * @name: prefix of the names of GPUs, as "vulkan" in vulkan:1
 * @open: open the GPU
 * @make: allocate a buffer of @bytes; @host: in host memory that GPU and host access
 * @use: use offered memory as the buffer of raw images
 * @kernel: prepare a kernel with these constants
 * @ready: called after all buffers were allocated
 * @begin: begin a batch of operations
 * @clear: set a buffer to zero
 * @run: launch a kernel with this number of groups
 * @barrier: make the results so far visible to the following operations
 * @finish: run the batch and wait for its end
 * @store: copy bytes into a buffer, outside of batches
 * @load: copy bytes from a buffer, outside of batches
 * @end: release everything, even after a failed open
 */
struct rpu_gpu_driver {
	const char *name;
	int (*open)(const char *name, struct rpu_gpu **gpu, char *why);
	int (*make)(struct rpu_gpu *gpu, enum rpu_place at, uint64_t bytes, bool host, char *why);
	void (*use)(struct rpu_gpu *gpu, const struct rashpa_gpu_memory *memory, uint64_t bytes);
	int (*kernel)(struct rpu_gpu *gpu, enum rpu_kernel which,
		      const struct rpu_constants *constants, char *why);
	void (*ready)(struct rpu_gpu *gpu);
	int (*begin)(struct rpu_gpu *gpu, char *why);
	void (*clear)(struct rpu_gpu *gpu, enum rpu_place at);
	void (*run)(struct rpu_gpu *gpu, enum rpu_kernel which, const struct rpu_push *push,
		    uint64_t groups);
	void (*barrier)(struct rpu_gpu *gpu);
	int (*finish)(struct rpu_gpu *gpu, char *why);
	int (*store)(struct rpu_gpu *gpu, enum rpu_place to, uint64_t at, const void *from,
		     uint64_t bytes, char *why);
	int (*load)(struct rpu_gpu *gpu, enum rpu_place from, uint64_t at, void *to,
		    uint64_t bytes, char *why);
	void (*end)(struct rpu_gpu *gpu);
};

/**
 * struct rpu_gpu - an open GPU; data of its driver follow
 * @by: driver
 * @here: the image is in host memory
 * @there: the image is in GPU memory
 * @driven: a drive uses the GPU
 * @gpu: handle of librashpa
 * @info: description from librashpa
 * @offered: memory offered for raw images; NULL: not requested
 * @offered_bytes: size of the offered memory
 * @addresses: address range of the offered memory, if neither CPU nor CUDA has one
 * @ring: location of raw images in the offered memory
 * @raw_bytes: bytes of a raw pixel
 * @width: width of raw images, pixels
 * @height: height of raw images, pixels
 */
struct rpu_gpu {
	const struct rpu_gpu_driver *by;
	bool here, there, driven;
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_memory *offered;
	uint64_t offered_bytes;
	void *addresses;
	struct rashpa_raw_ring ring;
	uint32_t raw_bytes;
	uint32_t width, height;
};

extern const struct rpu_gpu_driver rpu_vulkan, rpu_cuda;

/* Allocate GPU memory for raw images, see rashpa_pipeline_offer(). Returns the dma-buf, or -1. */
int rpu_gpu_offer(struct rpu_gpu *g, const void **base, uint64_t *length, char *why);
/* Load the data of the stages; @ring as in rashpa_pipeline_begin(). */
int rpu_gpu_begin(struct rpu_gpu *g, const struct rpu_calibration *c,
		  const struct rashpa_raw_ring *ring, char *why);
int rpu_gpu_begin_compress(struct rpu_gpu *g, uint32_t height, uint32_t capacity, char *why);
int rpu_gpu_begin_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, size_t pixels,
			    char *why);
/* Call after the begin of all stages. @pixels: most pixels of their images. */
int rpu_gpu_ready(struct rpu_gpu *g, size_t pixels, char *why);
/* Convert a raw image from offered or host memory, or update the pedestal by a dark image. */
int rpu_gpu_pretreat(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		     char *why);
int rpu_gpu_dark(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		 char *why);
/* As the functions of struct rpu_engine. */
int rpu_gpu_above(struct rpu_gpu *g, size_t pixels, float threshold, uint64_t *above, char *why);
int rpu_gpu_compress(struct rpu_gpu *g, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr, char *why);
int rpu_gpu_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, float *intensity,
		      float *sigma, char *why);
/* Copy the image from or to GPU memory. */
int rpu_gpu_load(struct rpu_gpu *g, size_t pixels, float *image, char *why);
int rpu_gpu_store(struct rpu_gpu *g, size_t pixels, const float *image, char *why);
/* NULL is allowed. */
void rpu_gpu_end(struct rpu_gpu *g);

#endif /* RPU_GPU_H */
