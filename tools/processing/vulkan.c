// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A GPU by Vulkan: buffers, shaders, and batches of commands. All shaders have the same buffers,
 * and all batches run one after the other.
 */
#include "vulkan.h"

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

static const struct { const uint32_t *code; size_t bytes; } shaders[RPU_SHADERS] = {
	[RPU_SHADER_PRETREAT] = { vulkan_pretreat, sizeof(vulkan_pretreat) },
	[RPU_SHADER_DARK] = { vulkan_dark, sizeof(vulkan_dark) },
	[RPU_SHADER_ABOVE] = { vulkan_above, sizeof(vulkan_above) },
	[RPU_SHADER_ROWS] = { vulkan_rows, sizeof(vulkan_rows) },
	[RPU_SHADER_SCAN] = { vulkan_scan, sizeof(vulkan_scan) },
	[RPU_SHADER_KEEP] = { vulkan_keep, sizeof(vulkan_keep) },
	[RPU_SHADER_INTEGRATE] = { vulkan_integrate, sizeof(vulkan_integrate) },
};

static int wrong(const struct rpu_vk *g, const char *what, VkResult result, char *why)
{
	switch (result) {
	case VK_SUCCESS:
		return 0;
	case VK_ERROR_OUT_OF_HOST_MEMORY:
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
		return because(why, -1, "%s: %s: no memory left (it has %" PRIu64 " MiB)",
			       g->info.name, what, g->info.memory_bytes >> 20);
	case VK_ERROR_DEVICE_LOST:
		return because(why, -1, "%s: %s: the GPU has gone, or was reset", g->info.name,
			       what);
	default:
		return because(why, -1, "%s: %s: its driver (%s) said %d", g->info.name, what,
			       g->info.driver, result);
	}
}

/* --- open --- */

#define F(name) { "vk" #name, offsetof(struct rpu_vk, name) }
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

static bool load(struct rpu_vk *g)
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

static VkResult make_commands(struct rpu_vk *g)
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

static VkResult make_layout(struct rpu_vk *g)
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

static VkResult make_set(struct rpu_vk *g)
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

int rpu_vk_open(struct rpu_vk *g, const char *name, char *why)
{
	VkResult result;

	if (rashpa_gpu_open(name, &g->gpu) || rashpa_gpu_as_vulkan(g->gpu, &g->vk))
		return because(why, -1, "engine %s: %s", name, rashpa_reason());
	rashpa_gpu_about(g->gpu, &g->info);
	if (!load(g))
		return because(why, -1, "%s: its driver (%s) lacks functions", g->info.name,
			       g->info.driver);
	if (g->limits.maxPerStageDescriptorStorageBuffers < RPU_PLACES)
		return because(why, -1, "%s: a shader has %" PRIu32 " buffers there, and needs %u",
			       g->info.name, g->limits.maxPerStageDescriptorStorageBuffers,
			       RPU_PLACES);
	result = make_commands(g);
	if (!result)
		result = make_layout(g);
	if (!result)
		result = make_set(g);
	return wrong(g, "to begin", result, why) ||
	       rpu_vk_make(g, &g->staging, STAGING, true, why) ? -1 : 0;
}

/* --- memory --- */

/* The first type that has all of it: drivers have the better ones first. */
static uint32_t find_type(const struct rpu_vk *g, uint32_t possible, VkMemoryPropertyFlags wanted)
{
	for (uint32_t i = 0; i < g->memory.memoryTypeCount; i++) {
		if (possible & 1u << i &&
		    (g->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	}
	return UINT32_MAX;
}

static uint32_t choose_type(const struct rpu_vk *g, uint32_t possible, bool host)
{
	const VkMemoryPropertyFlags mapped = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	uint32_t type = find_type(g, possible, host ? mapped | VK_MEMORY_PROPERTY_HOST_CACHED_BIT :
				  VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);

	return type < UINT32_MAX ? type : find_type(g, possible, host ? mapped : 0);
}

static int take_memory(struct rpu_vk *g, struct rpu_vk_buffer *b, bool host, char *why)
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
		return because(why, -1, "%s: it has no type of memory for a buffer", g->info.name);
	has = g->memory.memoryTypes[wanted.memoryTypeIndex].propertyFlags;
	result = g->AllocateMemory(g->device, &wanted, NULL, &b->memory);
	if (!result)
		result = g->BindBufferMemory(g->device, b->buffer, b->memory, 0);
	if (!result && (has & mapped) == mapped)
		result = g->MapMemory(g->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->base);
	b->cached = b->base && has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
	return wrong(g, "memory", result, why);
}

int rpu_vk_make(struct rpu_vk *g, struct rpu_vk_buffer *b, uint64_t bytes, bool host, char *why)
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
			       g->info.name, g->limits.maxStorageBufferRange, bytes);
	if (wrong(g, "a buffer", g->CreateBuffer(g->device, &wanted, NULL, &b->buffer), why) ||
	    take_memory(g, b, host, why))
		return -1;
	b->bytes = wanted.size;
	return 0;
}

void rpu_vk_drop(struct rpu_vk *g, struct rpu_vk_buffer *b)
{
	if (b->buffer)
		g->DestroyBuffer(g->device, b->buffer, NULL);
	if (b->memory)
		g->FreeMemory(g->device, b->memory, NULL);
	*b = (struct rpu_vk_buffer) {};
}

void rpu_vk_bind(struct rpu_vk *g)
{
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

int rpu_vk_shader(struct rpu_vk *g, enum rpu_shader which, const uint32_t constant[4], char *why)
{
	static const VkSpecializationMapEntry entry[] = {
		{ 0, 0, 4 }, { 1, 4, 4 }, { 2, 8, 4 }, { 3, 12, 4 },
	};
	const VkSpecializationInfo constants = {
		.mapEntryCount = 4, .pMapEntries = entry, .dataSize = 16, .pData = constant,
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
static void pass_ownership(struct rpu_vk *g, bool ours)
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

	if (!g->offered || !g->vk.foreign)
		return;
	g->CmdPipelineBarrier(g->commands,
			      ours ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT :
			      VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
			      ours ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT :
			      VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, 0, 0, NULL, 1, &barrier, 0,
			      NULL);
}

void rpu_vk_barrier(struct rpu_vk *g)
{
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

int rpu_vk_begin(struct rpu_vk *g, char *why)
{
	const VkCommandBufferBeginInfo once = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	if (g->lost)
		return because(why, -1, "%s: it has failed before: begin anew", g->info.name);
	if (wrong(g, "commands", g->BeginCommandBuffer(g->commands, &once), why))
		return -1;
	pass_ownership(g, true);
	rpu_vk_barrier(g);
	return 0;
}

void rpu_vk_run(struct rpu_vk *g, enum rpu_shader which, const struct rpu_push *push,
		uint64_t groups)
{
	g->CmdBindPipeline(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->shader[which]);
	g->CmdBindDescriptorSets(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->layout, 0, 1,
				 &g->set, 0, NULL);
	g->CmdPushConstants(g->commands, g->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(*push),
			    push);
	g->CmdDispatch(g->commands, groups < LINE ? groups : LINE, (groups + LINE - 1) / LINE, 1);
}

int rpu_vk_end(struct rpu_vk *g, char *why)
{
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1,
		.pCommandBuffers = &g->commands,
	};
	VkResult result;

	rpu_vk_barrier(g);
	pass_ownership(g, false);
	result = g->EndCommandBuffer(g->commands);
	if (!result)
		result = g->QueueSubmit(g->vk.queue, 1, &batch, g->fence);
	if (!result)
		result = g->WaitForFences(g->device, 1, &g->fence, VK_TRUE, PATIENCE_NS);
	g->lost = result != VK_SUCCESS;
	if (result == VK_TIMEOUT)
		return because(why, -1, "%s: it did not answer for %llu s", g->info.name,
			       PATIENCE_NS / 1000000000);
	if (!result)
		result = g->ResetFences(g->device, 1, &g->fence);
	return wrong(g, "an image", result, why);
}

/* --- between us and the GPU --- */

static int copy(struct rpu_vk *g, const struct rpu_vk_buffer *from, uint64_t from_at,
		const struct rpu_vk_buffer *to, uint64_t to_at, uint64_t bytes, char *why)
{
	const VkBufferCopy part = { .srcOffset = from_at, .dstOffset = to_at, .size = bytes };

	if (rpu_vk_begin(g, why))
		return -1;
	g->CmdCopyBuffer(g->commands, from->buffer, to->buffer, 1, &part);
	return rpu_vk_end(g, why);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

int rpu_vk_store(struct rpu_vk *g, const struct rpu_vk_buffer *b, uint64_t at, const void *from,
		 uint64_t bytes, char *why)
{
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

int rpu_vk_load(struct rpu_vk *g, const struct rpu_vk_buffer *b, uint64_t at, void *to,
		uint64_t bytes, char *why)
{
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

void rpu_vk_end_all(struct rpu_vk *g)
{
	if (g->device && g->DeviceWaitIdle && !g->lost)
		g->DeviceWaitIdle(g->device);
	for (unsigned int i = 0; i < RPU_PLACES; i++) {
		/* what was offered is freed by its own name */
		if (i == RPU_AT_RAW && g->offered)
			continue;
		rpu_vk_drop(g, &g->at[i]);
	}
	rpu_vk_drop(g, &g->staging);
	for (unsigned int i = 0; i < RPU_SHADERS; i++) {
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
	rashpa_gpu_free(g->offered);
	rashpa_gpu_close(g->gpu);
}
