/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs that compute stages. An image stays in a GPU's memory from stage to stage, until somebody
 * else asks for it. gpu-stages.c has the stages; a driver of each maker's has buffers and batches
 * of kernels. Functions return 0, or -1 with the reason.
 */
#ifndef RPU_GPU_H
#define RPU_GPU_H

#include "engine.h"
#include "kernel.h"
#include "rashpa-gpu.h"
#include "rashpa-processing.h"

#define RPU_RING_BYTES	(UINT64_C(16) << 30)	/* kernels count words of a ring in 32 bits */

/* Buffers of kernels, as vulkan.glsl and cuda.cu have them. */
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
 * struct rpu_push - what a kernel is told, each time; vulkan.glsl and cuda.cu have it
 * @width: pixels; or bins
 * @height: pixels
 * @pixels: of an image
 * @first: word of the raw image
 * @saturated: raw values from here on are invalid
 * @capacity: elements; or what error there is to be
 * @number: the threshold; or the weight of a dark image
 */
struct rpu_push {
	uint32_t width, height, pixels;
	uint32_t first;
	uint32_t saturated;
	uint32_t capacity;
	float number;
};

/** struct rpu_constants - what a kernel is told once */
struct rpu_constants {
	uint32_t pixel_bytes, jungfrau, whole, parts;
};

struct rpu_gpu;

/**
 * struct rpu_gpu_driver - what a GPU does, whoever makes it
 * @name: with which those of GPUs begin, as vulkan:1
 * @open: becomes the GPU
 * @make: have a buffer, @bytes long; @host: of the host's memory, where both write or read
 * @use: memory that was offered is the buffer of raw images
 * @kernel: a kernel will be launched, with these constants
 * @ready: all buffers are there
 * @begin: a batch of what follows
 * @clear: a buffer becomes zero
 * @run: launch a kernel, in so many groups
 * @barrier: what follows sees what was done so far
 * @finish: the batch begins, and has ended when this returns
 * @store: bytes into a buffer, outside of batches
 * @load: bytes of a buffer, likewise
 * @end: let go of it, also of a part of it
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
 * struct rpu_gpu - one that is open; what its driver knows more is behind it
 * @by: its driver
 * @here: the image is in memory of the host
 * @there: the image is in memory of the GPU
 * @driven: a drive has it
 * @gpu: of librashpa
 * @info: likewise
 * @offered: for raw images; NULL: none was asked for
 * @offered_bytes: of it
 * @addresses: of what is offered, if no processor reaches it
 * @ring: where raw images are in what is offered
 * @raw_bytes: of a raw pixel
 * @width: of raw images
 * @height: likewise
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

/* Have memory of it for raw images, as rashpa_pipeline_offer(): the dma-buf, or -1. */
int rpu_gpu_offer(struct rpu_gpu *g, const void **base, uint64_t *length, char *why);
/* Load what stages need; @ring as rashpa_pipeline_begin() has it. */
int rpu_gpu_begin(struct rpu_gpu *g, const struct rpu_calibration *c,
		  const struct rashpa_raw_ring *ring, char *why);
int rpu_gpu_begin_compress(struct rpu_gpu *g, uint32_t height, uint32_t capacity, char *why);
int rpu_gpu_begin_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, size_t pixels,
			    char *why);
/* All stages have begun; their images have so many pixels at most. */
int rpu_gpu_ready(struct rpu_gpu *g, size_t pixels, char *why);
/* A raw image, of what was offered or of the host, becomes the image, or moves the pedestal. */
int rpu_gpu_pretreat(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		     char *why);
int rpu_gpu_dark(struct rpu_gpu *g, const struct rpu_calibration *c, const struct rpu_raw *raw,
		 char *why);
/* As an engine does. */
int rpu_gpu_above(struct rpu_gpu *g, size_t pixels, float threshold, uint64_t *above, char *why);
int rpu_gpu_compress(struct rpu_gpu *g, uint32_t width, uint32_t height, float threshold,
		     struct rpu_csr *csr, char *why);
int rpu_gpu_integrate(struct rpu_gpu *g, const struct rpu_matrix *m, float *intensity,
		      float *sigma, char *why);
/* The image, from there and to there. */
int rpu_gpu_load(struct rpu_gpu *g, size_t pixels, float *image, char *why);
int rpu_gpu_store(struct rpu_gpu *g, size_t pixels, const float *image, char *why);
/* NULL: there is none. */
void rpu_gpu_end(struct rpu_gpu *g);

#endif /* RPU_GPU_H */
