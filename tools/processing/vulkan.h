/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the engine of Vulkan have in common. */
#ifndef RPU_VULKAN_H
#define RPU_VULKAN_H

#include "compute.h"
#include "gpu.h"

struct rpu_vulkan {
	struct rpu_gpu head;		/* first; of what it has, the GPU is also in c */
	struct compute c;
	VkPipeline shader[RPU_KERNELS];	/* of stages that have begun */
	struct compute_buffer at[RPU_PLACES], staging;
};

#endif /* RPU_VULKAN_H */
