// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A GPU by Vulkan: buffers, shaders, and batches of commands. All shaders have the same buffers,
 * and all batches run one after the other.
 */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "gpu.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "rashpa.h"
#include "say.h"
#include "vulkan-above.spv.h"
#include "vulkan-dark.spv.h"
#include "vulkan-integrate.spv.h"
#include "vulkan-keep.spv.h"
#include "vulkan-pretreat.spv.h"
#include "vulkan-rows.spv.h"
#include "vulkan-scan.spv.h"

#define PATIENCE_NS	60000000000ull	/* of a batch, also where a program computes it slowly */
#define STAGING		(UINT64_C(4) << 20)	/* bytes */
#define LINE		65535u		/* groups side by side: any GPU has that many */

struct buffer {
	VkBuffer buffer;
	VkDeviceMemory memory;
	uint64_t bytes;
	void *base;		/* where it is mapped; NULL: it is not */
	bool cached;		/* we read it as fast as other memory */
};

struct vulkan {
	struct rpu_gpu head;		/* first */
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
	VkPipeline shader[RPU_KERNELS];	/* of stages that have begun */
	struct buffer at[RPU_PLACES], staging;

	bool lost;		/* it does not answer: nothing more is asked of it */
};

static const struct { const uint32_t *code; size_t bytes; } shaders[RPU_KERNELS] = {
	[RPU_KERNEL_PRETREAT] = { vulkan_pretreat, sizeof(vulkan_pretreat) },
	[RPU_KERNEL_DARK] = { vulkan_dark, sizeof(vulkan_dark) },
	[RPU_KERNEL_ABOVE] = { vulkan_above, sizeof(vulkan_above) },
	[RPU_KERNEL_ROWS] = { vulkan_rows, sizeof(vulkan_rows) },
	[RPU_KERNEL_SCAN] = { vulkan_scan, sizeof(vulkan_scan) },
	[RPU_KERNEL_KEEP] = { vulkan_keep, sizeof(vulkan_keep) },
	[RPU_KERNEL_INTEGRATE] = { vulkan_integrate, sizeof(vulkan_integrate) },
};

static struct vulkan *of(struct rpu_gpu *gpu)
{
	return (struct vulkan *)gpu;
}

static int wrong(const struct vulkan *g, const char *what, VkResult result, char *why)
{
	switch (result) {
	case VK_SUCCESS:
		return 0;
	case VK_ERROR_OUT_OF_HOST_MEMORY:
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
		return because(why, -1, "%s: %s: no memory left (it has %" PRIu64 " MiB)",
			       g->head.info.name, what, g->head.info.memory_bytes >> 20);
	case VK_ERROR_DEVICE_LOST:
		return because(why, -1, "%s: %s: the GPU has gone, or was reset", g->head.info.name,
			       what);
	default:
		return because(why, -1, "%s: %s: its driver (%s) said %d", g->head.info.name, what,
			       g->head.info.driver, result);
	}
}

/* --- open --- */

#define F(name) { "vk" #name, offsetof(struct vulkan, name) }
static const struct {
	const char *name;
	size_t at;
} functions[] = {
	F(AllocateCommandBuffers), F(AllocateDescriptorSets), F(AllocateMemory),
	F(BeginCommandBuffer), F(BindBufferMemory), F(CmdBindDescriptorSets), F(CmdBindPipeline),
	F(CmdCopyBuffer), F(CmdDispatch), F(CmdFillBuffer), F(CmdPipelineBarrier),
	F(CmdPushConstants), F(CreateBuffer), F(CreateCommandPool), F(CreateComputePipelines),
	F(CreateDescriptorPool), F(CreateDescriptorSetLayout), F(CreateFence),
	F(CreatePipelineLayout), F(CreateShaderModule), F(DestroyBuffer), F(DestroyCommandPool),
	F(DestroyDescriptorPool), F(DestroyDescriptorSetLayout), F(DestroyFence),
	F(DestroyPipeline), F(DestroyPipelineLayout), F(DestroyShaderModule), F(DeviceWaitIdle),
	F(EndCommandBuffer), F(FreeMemory), F(GetBufferMemoryRequirements), F(MapMemory),
	F(QueueSubmit), F(ResetFences), F(UpdateDescriptorSets), F(WaitForFences),
};

#undef F

static bool load(struct vulkan *g)
{
	const VkInstance instance = g->vk.instance;
	const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)g->vk.get_instance_proc;
	PFN_vkGetPhysicalDeviceMemoryProperties get_memory;
	PFN_vkGetPhysicalDeviceProperties get_about;
	PFN_vkGetDeviceProcAddr get_device;
	VkPhysicalDeviceProperties about;

	get_device = (PFN_vkGetDeviceProcAddr)get(instance, "vkGetDeviceProcAddr");
	get_about = (PFN_vkGetPhysicalDeviceProperties)get(instance,
							   "vkGetPhysicalDeviceProperties");
	get_memory = (PFN_vkGetPhysicalDeviceMemoryProperties)
		get(instance, "vkGetPhysicalDeviceMemoryProperties");
	if (!get_device || !get_about || !get_memory)
		return false;
	g->device = g->vk.device;
	get_about(g->vk.physical, &about);
	g->limits = about.limits;
	get_memory(g->vk.physical, &g->memory);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const PFN_vkVoidFunction f = get_device(g->device, functions[i].name);

		if (!f)
			return false;
		memcpy((char *)g + functions[i].at, &f, sizeof(f));
	}
	return true;
}

static VkResult make_commands(struct vulkan *g)
{
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
		.queueFamilyIndex = g->vk.family,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkCommandBufferAllocateInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1,
	};
	VkResult result = g->CreateCommandPool(g->device, &pool, NULL, &g->pool);

	buffer.commandPool = g->pool;
	if (!result)
		result = g->AllocateCommandBuffers(g->device, &buffer, &g->commands);
	return result ? result : g->CreateFence(g->device, &fence, NULL, &g->fence);
}

static VkResult make_layout(struct vulkan *g)
{
	const VkPushConstantRange push = {
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(struct rpu_push),
	};
	VkDescriptorSetLayoutBinding binding[RPU_PLACES];
	const VkDescriptorSetLayoutCreateInfo places = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = RPU_PLACES, .pBindings = binding,
	};
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
		.pSetLayouts = &g->places, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	VkResult result;

	for (uint32_t i = 0; i < RPU_PLACES; i++)
		binding[i] = (VkDescriptorSetLayoutBinding) {
			.binding = i, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
		};
	result = g->CreateDescriptorSetLayout(g->device, &places, NULL, &g->places);
	return result ? result : g->CreatePipelineLayout(g->device, &layout, NULL, &g->layout);
}

static VkResult make_set(struct vulkan *g)
{
	const VkDescriptorPoolSize size = {
		.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = RPU_PLACES,
	};
	const VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1,
		.poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1, .pSetLayouts = &g->places,
	};
	VkResult result = g->CreateDescriptorPool(g->device, &pool, NULL, &g->sets);

	set.descriptorPool = g->sets;
	return result ? result : g->AllocateDescriptorSets(g->device, &set, &g->set);
}

static int open_all(struct vulkan *g, const char *name, char *why)
{
	VkResult result;

	if (rashpa_gpu_open(name, &g->head.gpu) || rashpa_gpu_as_vulkan(g->head.gpu, &g->vk))
		return because(why, -1, "engine %s: %s", name, rashpa_reason());
	rashpa_gpu_about(g->head.gpu, &g->head.info);
	if (!load(g))
		return because(why, -1, "%s: its driver (%s) lacks functions", g->head.info.name,
			       g->head.info.driver);
	if (g->limits.maxPerStageDescriptorStorageBuffers < RPU_PLACES)
		return because(why, -1, "%s: a shader has %" PRIu32 " buffers there, and needs %u",
			       g->head.info.name, g->limits.maxPerStageDescriptorStorageBuffers,
			       RPU_PLACES);
	result = make_commands(g);
	if (!result)
		result = make_layout(g);
	if (!result)
		result = make_set(g);
	return wrong(g, "to begin", result, why);
}

/* --- memory --- */

/* The first type that has all of it: drivers have the better ones first. */
static uint32_t find_type(const struct vulkan *g, uint32_t possible, VkMemoryPropertyFlags wanted)
{
	for (uint32_t i = 0; i < g->memory.memoryTypeCount; i++) {
		if (possible & 1u << i &&
		    (g->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t choose_type(const struct vulkan *g, uint32_t possible, bool host)
{
	const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	uint32_t type = find_type(g, possible, host ? mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT :
				  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);

	return type < UINT32_MAX ? type : find_type(g, possible, host ? mapped : 0);
}

static int take_memory(struct vulkan *g, struct buffer *b, bool host, char *why)
{
	const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	VkMemoryAllocateInfo wanted = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };
	VkMemoryPropertyFlags has;
	VkMemoryRequirements needs;
	VkResult result;

	g->GetBufferMemoryRequirements(g->device, b->buffer, &needs);
	wanted.allocationSize = needs.size;
	wanted.memoryTypeIndex = choose_type(g, needs.memoryTypeBits, host);
	if (wanted.memoryTypeIndex == UINT32_MAX)
		return because(why, -1, "%s: it has no type of memory for a buffer",
			       g->head.info.name);
	has = g->memory.memoryTypes[wanted.memoryTypeIndex].propertyFlags;
	result = g->AllocateMemory(g->device, &wanted, NULL, &b->memory);
	if (!result)
		result = g->BindBufferMemory(g->device, b->buffer, b->memory, 0);
	if (!result && (has & mapped) == mapped)
		result = g->MapMemory(g->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->base);
	b->cached = b->base && has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
	return wrong(g, "memory", result, why);
}

static int make_buffer(struct vulkan *g, struct buffer *b, uint64_t bytes, bool host, char *why)
{
	const VkBufferCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = (bytes + 3) / 4 * 4,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
			 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
		.sharingMode = VK_SHARING_MODE_EXCLUSIVE,
	};

	if (wanted.size > g->limits.maxStorageBufferRange)
		return because(why, -1, "%s: a buffer has up to %" PRIu32 " bytes there, and %"
			       PRIu64 " are needed: have smaller images, or use --engine cpu",
			       g->head.info.name, g->limits.maxStorageBufferRange, bytes);
	if (wrong(g, "a buffer", g->CreateBuffer(g->device, &wanted, NULL, &b->buffer), why) ||
	    take_memory(g, b, host, why))
		return -1;
	b->bytes = wanted.size;
	return 0;
}

static void drop(struct vulkan *g, struct buffer *b)
{
	if (b->buffer)
		g->DestroyBuffer(g->device, b->buffer, NULL);
	if (b->memory)
		g->FreeMemory(g->device, b->memory, NULL);
	*b = (struct buffer) {};
}

/* Let shaders see all buffers that were made. */
static void bind_all(struct rpu_gpu *gpu)
{
	struct vulkan *g = of(gpu);

	for (uint32_t i = 0; i < RPU_PLACES; i++) {
		const VkDescriptorBufferInfo all = {
			.buffer = g->at[i].buffer, .range = VK_WHOLE_SIZE,
		};
		const VkWriteDescriptorSet write = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = g->set,
			.dstBinding = i, .descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &all,
		};

		if (all.buffer)
			g->UpdateDescriptorSets(g->device, 1, &write, 0, NULL);
	}
}

/* --- shaders --- */

static int make_shader(struct rpu_gpu *gpu, enum rpu_kernel which,
		       const struct rpu_constants *constant, char *why)
{
	static const VkSpecializationMapEntry entry[] = {
		{ 0, 0, 4 }, { 1, 4, 4 }, { 2, 8, 4 }, { 3, 12, 4 },
	};
	struct vulkan *g = of(gpu);
	const VkSpecializationInfo constants = {
		.mapEntryCount = 4, .pMapEntries = entry, .dataSize = sizeof(*constant),
		.pData = constant,
	};
	const VkShaderModuleCreateInfo code = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = shaders[which].bytes, .pCode = shaders[which].code,
	};
	VkComputePipelineCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main",
			.pSpecializationInfo = &constants,
		},
		.layout = g->layout,
	};
	VkResult result = g->CreateShaderModule(g->device, &code, NULL, &wanted.stage.module);

	if (!result) {
		result = g->CreateComputePipelines(g->device, NULL, 1, &wanted, NULL,
						   &g->shader[which]);
		g->DestroyShaderModule(g->device, wanted.stage.module, NULL);
	}
	return wrong(g, "a shader", result, why);
}

/* --- batches --- */

/* Raw images come from somebody whom Vulkan does not know, and go back to them. */
static void pass_ownership(struct vulkan *g, bool ours)
{
	const uint32_t family = g->vk.family, foreign = VK_QUEUE_FAMILY_FOREIGN_EXT;
	const VkBufferMemoryBarrier barrier = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER,
		.srcAccessMask = ours ? 0 : VK_ACCESS_SHADER_READ_BIT,
		.dstAccessMask = ours ? VK_ACCESS_SHADER_READ_BIT : 0,
		.srcQueueFamilyIndex = ours ? foreign : family,
		.dstQueueFamilyIndex = ours ? family : foreign,
		.buffer = g->at[RPU_AT_RAW].buffer, .size = VK_WHOLE_SIZE,
	};

	if (!g->head.offered || !g->vk.foreign)
		return;
	g->CmdPipelineBarrier(g->commands,
			      ours ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT :
			      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
			      ours ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT :
			      VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL, 1, &barrier, 0,
			      NULL);
}

static void barrier(struct rpu_gpu *gpu)
{
	struct vulkan *g = of(gpu);
	const VkMemoryBarrier all = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
	};
	const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
					    VK_PIPELINE_STAGE_TRANSFER_BIT;

	g->CmdPipelineBarrier(g->commands, stages, stages | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all,
			      0, NULL, 0, NULL);
}

static int begin(struct rpu_gpu *gpu, char *why)
{
	struct vulkan *g = of(gpu);
	const VkCommandBufferBeginInfo once = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	if (g->lost)
		return because(why, -1, "%s: it has failed before: begin anew", g->head.info.name);
	if (wrong(g, "commands", g->BeginCommandBuffer(g->commands, &once), why))
		return -1;
	pass_ownership(g, true);
	barrier(&g->head);
	return 0;
}

static void clear(struct rpu_gpu *gpu, enum rpu_place at)
{
	struct vulkan *g = of(gpu);

	g->CmdFillBuffer(g->commands, g->at[at].buffer, 0, VK_WHOLE_SIZE, 0);
}

static void run(struct rpu_gpu *gpu, enum rpu_kernel which, const struct rpu_push *push,
		uint64_t groups)
{
	struct vulkan *g = of(gpu);

	g->CmdBindPipeline(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->shader[which]);
	g->CmdBindDescriptorSets(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->layout, 0, 1,
				 &g->set, 0, NULL);
	g->CmdPushConstants(g->commands, g->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(*push),
			    push);
	g->CmdDispatch(g->commands, groups < LINE ? groups : LINE, (groups + LINE - 1) / LINE, 1);
}

static int finish(struct rpu_gpu *gpu, char *why)
{
	struct vulkan *g = of(gpu);
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1,
		.pCommandBuffers = &g->commands,
	};
	VkResult result;

	barrier(&g->head);
	pass_ownership(g, false);
	result = g->EndCommandBuffer(g->commands);
	if (!result)
		result = g->QueueSubmit(g->vk.queue, 1, &batch, g->fence);
	if (!result)
		result = g->WaitForFences(g->device, 1, &g->fence, VK_TRUE, PATIENCE_NS);
	g->lost = result != VK_SUCCESS;
	if (result == VK_TIMEOUT)
		return because(why, -1, "%s: it did not answer for %llu s", g->head.info.name,
			       PATIENCE_NS / 1000000000);
	if (!result)
		result = g->ResetFences(g->device, 1, &g->fence);
	return wrong(g, "an image", result, why);
}

/* --- between us and the GPU --- */

static int copy(struct vulkan *g, const struct buffer *from, uint64_t from_at,
		const struct buffer *to, uint64_t to_at, uint64_t bytes, char *why)
{
	const VkBufferCopy part = { .srcOffset = from_at, .dstOffset = to_at, .size = bytes };

	if (begin(&g->head, why))
		return -1;
	g->CmdCopyBuffer(g->commands, from->buffer, to->buffer, 1, &part);
	return finish(&g->head, why);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int store(struct rpu_gpu *gpu, enum rpu_place to, uint64_t at, const void *from,
		 uint64_t bytes, char *why)
{
	struct vulkan *g = of(gpu);
	const struct buffer *b = &g->at[to];

	if (b->base) {
		memcpy((uint8_t *)b->base + at, from, bytes);
		return 0;
	}
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = least(bytes - done, g->staging.bytes);
		memcpy(g->staging.base, (const uint8_t *)from + done, n);
		if (copy(g, &g->staging, 0, b, at + done, n, why))
			return -1;
	}
	return 0;
}

static int load_bytes(struct rpu_gpu *gpu, enum rpu_place from, uint64_t at, void *to,
		      uint64_t bytes, char *why)
{
	struct vulkan *g = of(gpu);
	const struct buffer *b = &g->at[from];

	if (b->cached) {
		memcpy(to, (const uint8_t *)b->base + at, bytes);
		return 0;
	}
	for (uint64_t done = 0, n; done < bytes; done += n) {
		n = least(bytes - done, g->staging.bytes);
		if (copy(g, b, at + done, &g->staging, 0, n, why))
			return -1;
		memcpy((uint8_t *)to + done, g->staging.base, n);
	}
	return 0;
}

/* --- end --- */

static void end(struct rpu_gpu *gpu)
{
	struct vulkan *g = of(gpu);

	if (g->device && g->DeviceWaitIdle && !g->lost)
		g->DeviceWaitIdle(g->device);
	for (unsigned int i = 0; i < RPU_PLACES; i++) {
		/* what was offered is freed by its own name */
		if (i == RPU_AT_RAW && g->head.offered)
			continue;
		drop(g, &g->at[i]);
	}
	drop(g, &g->staging);
	for (unsigned int i = 0; i < RPU_KERNELS; i++) {
		if (g->shader[i])
			g->DestroyPipeline(g->device, g->shader[i], NULL);
	}
	if (g->sets)
		g->DestroyDescriptorPool(g->device, g->sets, NULL);
	if (g->layout)
		g->DestroyPipelineLayout(g->device, g->layout, NULL);
	if (g->places)
		g->DestroyDescriptorSetLayout(g->device, g->places, NULL);
	if (g->fence)
		g->DestroyFence(g->device, g->fence, NULL);
	if (g->pool)
		g->DestroyCommandPool(g->device, g->pool, NULL);
	rashpa_gpu_free(g->head.offered);
	rashpa_gpu_close(g->head.gpu);
	free(g);
}

static int open_vulkan(const char *name, struct rpu_gpu **gpu, char *why)
{
	struct vulkan *g = calloc(1, sizeof(*g));

	*gpu = NULL;
	if (!g)
		return because(why, -1, "engine %s: no memory", name);
	g->head.by = &rpu_vulkan;
	if (open_all(g, name, why) || make_buffer(g, &g->staging, STAGING, true, why)) {
		end(&g->head);
		return -1;
	}
	*gpu = &g->head;
	return 0;
}

/* --- for the stages --- */

static int make(struct rpu_gpu *gpu, enum rpu_place at, uint64_t bytes, bool host, char *why)
{
	return make_buffer(of(gpu), &of(gpu)->at[at], bytes, host, why);
}

static void use(struct rpu_gpu *gpu, const struct rashpa_gpu_memory *memory, uint64_t bytes)
{
	struct buffer *b = &of(gpu)->at[RPU_AT_RAW];

	b->buffer = (VkBuffer)rashpa_gpu_vulkan_buffer(memory);
	b->bytes = bytes;
}

const struct rpu_gpu_driver rpu_vulkan = {
	.name = "vulkan", .open = open_vulkan, .make = make, .use = use, .kernel = make_shader,
	.ready = bind_all, .begin = begin, .clear = clear, .run = run, .barrier = barrier,
	.finish = finish, .store = store, .load = load_bytes, .end = end,
};
