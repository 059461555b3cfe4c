/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Shaders on a Vulkan GPU: its functions, buffers, shaders, batches of commands. All shaders have
 * the same number of buffers, and the same words each time. Functions return a VkResult, or 0, or
 * -1 with the reason.
 */
#ifndef COMPUTE_H
#define COMPUTE_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdbool.h>
#include <stdint.h>

#include <rashpa-gpu.h>

#define COMPUTE_FUNCTIONS(f) \
	f(AllocateCommandBuffers) f(AllocateDescriptorSets) f(AllocateMemory) \
	f(BeginCommandBuffer) f(BindBufferMemory) f(CmdBindDescriptorSets) f(CmdBindPipeline) \
	f(CmdCopyBuffer) f(CmdDispatch) f(CmdDispatchIndirect) f(CmdFillBuffer) \
	f(CmdPipelineBarrier) f(CmdPushConstants) f(CreateBuffer) f(CreateCommandPool) \
	f(CreateComputePipelines) f(CreateDescriptorPool) f(CreateDescriptorSetLayout) \
	f(CreateFence) f(CreatePipelineLayout) f(CreateSemaphore) f(CreateShaderModule) \
	f(DestroyBuffer) f(DestroyCommandPool) f(DestroyDescriptorPool) \
	f(DestroyDescriptorSetLayout) f(DestroyFence) f(DestroyPipeline) \
	f(DestroyPipelineLayout) f(DestroySemaphore) f(DestroyShaderModule) f(DeviceWaitIdle) \
	f(EndCommandBuffer) f(FreeCommandBuffers) f(FreeMemory) \
	f(GetBufferMemoryRequirements) f(GetDeviceQueue) f(MapMemory) \
	f(QueueSubmit) f(ResetFences) f(UpdateDescriptorSets) f(WaitForFences)

/* where semaphores have a timeline */
#define COMPUTE_TIMELINE(f) \
	f(GetSemaphoreCounterValue) f(SignalSemaphore)

#define COMPUTE_MEMBER(name)	PFN_vk##name name;

struct compute {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_vulkan vk;
	VkDevice device;
	VkPhysicalDeviceMemoryProperties types;
	VkPhysicalDeviceLimits limits;
	COMPUTE_FUNCTIONS(COMPUTE_MEMBER)
	COMPUTE_TIMELINE(COMPUTE_MEMBER)
	uint32_t places, push_bytes;
	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	bool lost;		/* the GPU does not answer: its resources end with the process */
};

struct compute_buffer {
	VkBuffer buffer;
	VkDeviceMemory memory;
	uint64_t bytes;
	void *base;		/* address of the mapping; NULL: not mapped */
	bool cached;		/* we read it as fast as other memory */
};

/*
 * Shaders have so many buffers, or as many as the GPU allows and @least; and so many bytes each
 * time. What failed is closed by compute_close(), as all else.
 */
int compute_open(struct compute *c, const char *name, uint32_t least, uint32_t places,
		 uint32_t push_bytes, char *why);
void compute_close(struct compute *c);
/* 0, or -1 with what the driver's answer means. */
int compute_wrong(const struct compute *c, const char *what, VkResult result, char *why);

/* Of the host's memory, where both write or read; else the GPU's, mapped where it can be. */
#define COMPUTE_HOST	1u
/* Only copied, and no shader's: it may be longer. */
#define COMPUTE_COPIED	2u
int compute_buffer(struct compute *c, struct compute_buffer *b, uint64_t bytes, unsigned int flags,
		   char *why);
void compute_drop(struct compute *c, struct compute_buffer *b);
/* One more set of buffers, in a separate pool. */
VkResult compute_set(struct compute *c, VkDescriptorPool *pool, VkDescriptorSet *set);
void compute_bind(struct compute *c, VkDescriptorSet set, uint32_t place, VkBuffer buffer);
/* @constants: words of 32 bits, number i is the shader's constant i */
int compute_shader(struct compute *c, const uint32_t *code, size_t bytes,
		   const uint32_t *constants, uint32_t count, VkPipeline *shader, char *why);
VkResult compute_commands(struct compute *c, uint32_t count, VkCommandBuffer *commands);

/* Record: from here on, once. */
VkResult compute_begin(struct compute *c, VkCommandBuffer commands);
/* Later commands see the results so far, and so does the host after the end. */
void compute_barrier(struct compute *c, VkCommandBuffer commands);
/* Load a shader with its buffers and its words (@push). */
void compute_load(struct compute *c, VkCommandBuffer commands, VkPipeline shader,
		  VkDescriptorSet set, const void *push);
/* Run it, in lines of COMPUTE_LINE groups. */
void compute_run(struct compute *c, VkCommandBuffer commands, uint64_t groups);
#define COMPUTE_LINE	65535u	/* any GPU has that many side by side */

/* Have c->commands done, which have ended: when @wait is so far; NULL: at once. */
VkResult compute_submit(struct compute *c, VkSemaphore wait, uint64_t value);
/* They are. */
VkResult compute_wait(struct compute *c, uint64_t patience_ns);
VkResult compute_semaphore(struct compute *c, VkSemaphore *semaphore);

#endif /* COMPUTE_H */
