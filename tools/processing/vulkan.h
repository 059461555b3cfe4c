/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the engine of Vulkan have in common. */
#ifndef RPU_VULKAN_H
#define RPU_VULKAN_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "gpu.h"
#include "rashpa-gpu.h"

#define RPU_LANES	128u		/* of a group, see vulkan.glsl */

/* Buffers of shaders, as vulkan.glsl has them. */
enum rpu_place {
	RPU_AT_RAW, RPU_AT_PEDESTAL, RPU_AT_GAIN, RPU_AT_IMAGE, RPU_AT_TOLD, RPU_AT_ROW,
	RPU_AT_COLUMN, RPU_AT_VALUE, RPU_AT_START, RPU_AT_ELEMENT, RPU_AT_PART, RPU_AT_NORM,
	RPU_AT_PROFILE, RPU_PLACES,
};

enum rpu_shader {
	RPU_SHADER_PRETREAT, RPU_SHADER_DARK, RPU_SHADER_ABOVE, RPU_SHADER_ROWS, RPU_SHADER_SCAN,
	RPU_SHADER_KEEP, RPU_SHADER_INTEGRATE, RPU_SHADERS,
};

/* What an RPU_AT_TOLD has. */
enum rpu_told { RPU_TOLD_ABOVE, RPU_TOLD_KEPT, RPU_TOLDS };

/* Push constants, as vulkan.glsl has them. */
struct rpu_push {
	uint32_t width, height, pixels;
	uint32_t first;
	uint32_t saturated;
	uint32_t capacity;
	float number;
};

struct rpu_vk_buffer {
	VkBuffer buffer;
	VkDeviceMemory memory;
	uint64_t bytes;
	void *base;		/* where it is mapped; NULL: it is not */
	bool cached;		/* we read it as fast as other memory */
};

struct rpu_vk {
	struct rpu_gpu head;		/* first */
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_vulkan vk;
	VkDevice device;
	VkPhysicalDeviceMemoryProperties memory;
	VkPhysicalDeviceLimits limits;
	/* functions of Vulkan: a table in vulkan.c has their names */
	PFN_vkAllocateCommandBuffers AllocateCommandBuffers;
	PFN_vkAllocateDescriptorSets AllocateDescriptorSets;
	PFN_vkAllocateMemory AllocateMemory;
	PFN_vkBeginCommandBuffer BeginCommandBuffer;
	PFN_vkBindBufferMemory BindBufferMemory;
	PFN_vkCmdBindDescriptorSets CmdBindDescriptorSets;
	PFN_vkCmdBindPipeline CmdBindPipeline;
	PFN_vkCmdCopyBuffer CmdCopyBuffer;
	PFN_vkCmdDispatch CmdDispatch;
	PFN_vkCmdFillBuffer CmdFillBuffer;
	PFN_vkCmdPipelineBarrier CmdPipelineBarrier;
	PFN_vkCmdPushConstants CmdPushConstants;
	PFN_vkCreateBuffer CreateBuffer;
	PFN_vkCreateCommandPool CreateCommandPool;
	PFN_vkCreateComputePipelines CreateComputePipelines;
	PFN_vkCreateDescriptorPool CreateDescriptorPool;
	PFN_vkCreateDescriptorSetLayout CreateDescriptorSetLayout;
	PFN_vkCreateFence CreateFence;
	PFN_vkCreatePipelineLayout CreatePipelineLayout;
	PFN_vkCreateShaderModule CreateShaderModule;
	PFN_vkDestroyBuffer DestroyBuffer;
	PFN_vkDestroyCommandPool DestroyCommandPool;
	PFN_vkDestroyDescriptorPool DestroyDescriptorPool;
	PFN_vkDestroyDescriptorSetLayout DestroyDescriptorSetLayout;
	PFN_vkDestroyFence DestroyFence;
	PFN_vkDestroyPipeline DestroyPipeline;
	PFN_vkDestroyPipelineLayout DestroyPipelineLayout;
	PFN_vkDestroyShaderModule DestroyShaderModule;
	PFN_vkDeviceWaitIdle DeviceWaitIdle;
	PFN_vkEndCommandBuffer EndCommandBuffer;
	PFN_vkFreeMemory FreeMemory;
	PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements;
	PFN_vkMapMemory MapMemory;
	PFN_vkQueueSubmit QueueSubmit;
	PFN_vkResetFences ResetFences;
	PFN_vkUpdateDescriptorSets UpdateDescriptorSets;
	PFN_vkWaitForFences WaitForFences;

	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
	VkDescriptorSetLayout places;
	VkPipelineLayout layout;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkPipeline shader[RPU_SHADERS];	/* of stages that have begun */
	struct rpu_vk_buffer at[RPU_PLACES], staging;

	struct rashpa_gpu_memory *offered;	/* for raw images */
	uint64_t offered_bytes;
	void *addresses;	/* of what is offered, if no processor reaches it */
	struct rashpa_raw_ring ring;
	uint32_t raw_bytes;	/* of a pixel */
	uint32_t width, height;	/* of raw images */
	bool lost;		/* it does not answer: nothing more is asked of it */
};

/* All return 0, or -1 with the reason. */
int rpu_vk_open(struct rpu_vk *g, const char *name, char *why);
/* @host: of this machine, for both; else the GPU's. */
int rpu_vk_make(struct rpu_vk *g, struct rpu_vk_buffer *b, uint64_t bytes, bool host, char *why);
void rpu_vk_drop(struct rpu_vk *g, struct rpu_vk_buffer *b);
/* Its constants: bytes of a raw pixel, jungfrau, whole, parts. */
int rpu_vk_shader(struct rpu_vk *g, enum rpu_shader which, const uint32_t constant[4], char *why);
/* Let shaders see all buffers that were made. */
void rpu_vk_bind(struct rpu_vk *g);

/* One batch of commands, and wait until it is done. */
int rpu_vk_begin(struct rpu_vk *g, char *why);
void rpu_vk_run(struct rpu_vk *g, enum rpu_shader which, const struct rpu_push *push,
		uint64_t groups);
/* What was written before is seen by what follows. */
void rpu_vk_barrier(struct rpu_vk *g);
int rpu_vk_end(struct rpu_vk *g, char *why);

/* Bytes of ours into a buffer, and of a buffer to us. */
int rpu_vk_store(struct rpu_vk *g, const struct rpu_vk_buffer *b, uint64_t at, const void *from,
		 uint64_t bytes, char *why);
int rpu_vk_load(struct rpu_vk *g, const struct rpu_vk_buffer *b, uint64_t at, void *to,
		uint64_t bytes, char *why);

void rpu_vk_end_all(struct rpu_vk *g);

#endif /* RPU_VULKAN_H */
