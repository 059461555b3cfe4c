/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the engine of Vulkan have in common. */
#ifndef RPU_VULKAN_H
#define RPU_VULKAN_H

#include "compute.h"
#include "drive.h"
#include "gpu.h"

/* Buffers of a drive's kernels, behind enum rpu_place; vulkan-drive.glsl has them. */
enum rpu_driven_place {
	RPU_AT_LOCK = RPU_PLACES, RPU_AT_CONTROL, RPU_AT_DECISION, RPU_AT_BANKS, RPU_AT_RESULTS,
	RPU_AT_GIVEN,
	RPU_DRIVEN_PLACES,
};

/* What a shader is told each time: all of it, or the first part, as vulkan.glsl has it. */
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

/* Raw images come from somebody whom Vulkan does not know, and go back to them. */
void rpu_vulkan_own(struct rpu_vulkan *g, VkCommandBuffer commands, bool ours);

#endif /* RPU_VULKAN_H */
