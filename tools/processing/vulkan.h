/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of the Vulkan engine. */
#ifndef RPU_VULKAN_H
#define RPU_VULKAN_H

#include "common/compute.h"
#include "processing/drive.h"
#include "processing/gpu.h"

/* Buffers of a drive's kernels, behind enum rpu_place; vulkan-drive.glsl has them. */
enum rpu_driven_place {
	RPU_AT_LOCK = RPU_PLACES, RPU_AT_CONTROL, RPU_AT_DECISION, RPU_AT_BANKS, RPU_AT_RESULTS,
	RPU_AT_GIVEN,
	RPU_DRIVEN_PLACES,
};

/* Push constants of a shader: all, or the first part, as in vulkan.glsl. */
struct rpu_vulkan_push {
	struct rpu_push push;
	struct rpu_driven driven;
	uint32_t lock_at, given_at;
};

struct rpu_vulkan {
	struct rpu_gpu head;		/* first; of what it has, the GPU is also in c */
	struct compute c;
	VkPipeline shader[RPU_KERNELS];	/* of stages that have begun */
	struct rpu_constants constants;	/* of pretreatment */
	struct compute_buffer at[RPU_PLACES], staging;
};

/* Transfer the ownership of raw images from or to a producer outside of Vulkan. */
void rpu_vulkan_own(struct rpu_vulkan *g, VkCommandBuffer commands, bool ours);

#endif /* RPU_VULKAN_H */
