/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * GPUs that compute stages. An image stays in a GPU's memory from stage to stage, until somebody
 * else asks for it. Functions return 0, or -1 with the reason.
 */
#ifndef RPU_GPU_H
#define RPU_GPU_H

#include "engine.h"
#include "rashpa-processing.h"

struct rpu_gpu;

/**
 * struct rpu_gpu_engine - what a GPU does, whoever makes it
 * @name: with which those of GPUs begin, as vulkan:1
 * @open: becomes the GPU
 * @offer: have memory of it for raw images, @length bytes (0: as it likes; becomes what it is), for
 *	somebody else who writes there: the dma-buf, or -1
 * @begin: load what pretreatment needs; @ring as rashpa_pipeline_begin() has it
 * @begin_compress: likewise, of images with so many lines
 * @begin_integrate: likewise, of images with so many pixels
 * @ready: all stages have begun; their images have so many pixels at most
 * @pretreat: a raw image, of what was offered or of the host, becomes the image
 * @dark: a dark image moves the pedestal of the highest gain
 * @above: how many pixels of the image are above the threshold
 * @compress: keep what is above the threshold
 * @integrate: as an engine does
 * @load: the image, from there
 * @store: the image, to there
 * @end: let go of it, also of a part of it
 */
struct rpu_gpu_engine {
	const char *name;
	int (*open)(const char *name, struct rpu_gpu **gpu, char *why);
	int (*offer)(struct rpu_gpu *gpu, const void **base, uint64_t *length, char *why);
	int (*begin)(struct rpu_gpu *gpu, const struct rpu_calibration *c,
		     const struct rashpa_raw_ring *ring, char *why);
	int (*begin_compress)(struct rpu_gpu *gpu, uint32_t height, uint32_t capacity, char *why);
	int (*begin_integrate)(struct rpu_gpu *gpu, const struct rpu_matrix *m, size_t pixels,
			       char *why);
	int (*ready)(struct rpu_gpu *gpu, size_t pixels, char *why);
	int (*pretreat)(struct rpu_gpu *gpu, const struct rpu_calibration *c,
			const struct rpu_raw *raw, char *why);
	int (*dark)(struct rpu_gpu *gpu, const struct rpu_calibration *c, const struct rpu_raw *raw,
		    char *why);
	int (*above)(struct rpu_gpu *gpu, size_t pixels, float threshold, uint64_t *above,
		     char *why);
	int (*compress)(struct rpu_gpu *gpu, uint32_t width, uint32_t height, float threshold,
			struct rpu_csr *csr, char *why);
	int (*integrate)(struct rpu_gpu *gpu, const struct rpu_matrix *m, float *intensity,
			 float *sigma, char *why);
	int (*load)(struct rpu_gpu *gpu, size_t pixels, float *image, char *why);
	int (*store)(struct rpu_gpu *gpu, size_t pixels, const float *image, char *why);
	void (*end)(struct rpu_gpu *gpu);
};

/* One that is open; what its engine knows more is behind it. */
struct rpu_gpu {
	const struct rpu_gpu_engine *by;
	bool here, there;	/* the image is in memory of the host, of the GPU */
};

extern const struct rpu_gpu_engine rpu_vulkan;

#endif /* RPU_GPU_H */
