// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gpu.h"

#include "bench.h"
#include "rashpa.h"

const char * const gpu_ways[GPU_WAYS] = {
	[GPU_LAUNCH] = "a launch", [GPU_TIMELINE] = "a launch ahead, timeline semaphore",
	[GPU_POLL] = "a shader that polls",
};

#ifdef BENCH_NO_SHADERS

struct gpu_bench *gpu_bench_open(const char *name, struct rashpa_gpu_info *info)
{
	(void)info;
	fail("%s: this program was built without %s", name, BENCH_NO_SHADERS);
	return NULL;
}

void gpu_bench_close(struct gpu_bench *g)
{
	(void)g;
}

uint64_t gpu_bench_latency(struct gpu_bench *g, enum gpu_way_of way)
{
	(void)g;
	(void)way;
	return 0;
}

uint64_t gpu_bench_copy(struct gpu_bench *g, uint64_t bytes)
{
	(void)g;
	(void)bytes;
	return 0;
}

#else

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu-touch.spv.h"

#define POLLS		2000000000u	/* of a shader: it ends, whatever happens */
#define PATIENCE_NS	10000000000ull
#define SETTLE_NS	2000000		/* who waits or polls has begun to, most likely */

enum { FROM, TO, WORDS, BUFFERS };

struct gpu_bench {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_vulkan vk;
	VkDevice device;
	VkBuffer buffer[BUFFERS];
	VkDeviceMemory memory[BUFFERS];
	atomic_uint *word;
	uint32_t value;		/* of the last time */
	uint64_t signalled;
	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
	VkSemaphore timeline;
	VkDescriptorSetLayout places;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkPipelineLayout layout;
	VkPipeline shader;
	VkPhysicalDeviceMemoryProperties types;
	PFN_vkAllocateCommandBuffers AllocateCommandBuffers;
	PFN_vkAllocateDescriptorSets AllocateDescriptorSets;
	PFN_vkAllocateMemory AllocateMemory;
	PFN_vkBeginCommandBuffer BeginCommandBuffer;
	PFN_vkBindBufferMemory BindBufferMemory;
	PFN_vkCmdBindDescriptorSets CmdBindDescriptorSets;
	PFN_vkCmdBindPipeline CmdBindPipeline;
	PFN_vkCmdCopyBuffer CmdCopyBuffer;
	PFN_vkCmdDispatch CmdDispatch;
	PFN_vkCmdPushConstants CmdPushConstants;
	PFN_vkCreateBuffer CreateBuffer;
	PFN_vkCreateCommandPool CreateCommandPool;
	PFN_vkCreateComputePipelines CreateComputePipelines;
	PFN_vkCreateDescriptorPool CreateDescriptorPool;
	PFN_vkCreateDescriptorSetLayout CreateDescriptorSetLayout;
	PFN_vkCreateFence CreateFence;
	PFN_vkCreatePipelineLayout CreatePipelineLayout;
	PFN_vkCreateSemaphore CreateSemaphore;
	PFN_vkCreateShaderModule CreateShaderModule;
	PFN_vkDestroyBuffer DestroyBuffer;
	PFN_vkDestroyCommandPool DestroyCommandPool;
	PFN_vkDestroyDescriptorPool DestroyDescriptorPool;
	PFN_vkDestroyDescriptorSetLayout DestroyDescriptorSetLayout;
	PFN_vkDestroyFence DestroyFence;
	PFN_vkDestroyPipeline DestroyPipeline;
	PFN_vkDestroyPipelineLayout DestroyPipelineLayout;
	PFN_vkDestroySemaphore DestroySemaphore;
	PFN_vkDestroyShaderModule DestroyShaderModule;
	PFN_vkDeviceWaitIdle DeviceWaitIdle;
	PFN_vkEndCommandBuffer EndCommandBuffer;
	PFN_vkFreeMemory FreeMemory;
	PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements;
	PFN_vkMapMemory MapMemory;
	PFN_vkQueueSubmit QueueSubmit;
	PFN_vkResetFences ResetFences;
	PFN_vkSignalSemaphore SignalSemaphore;
	PFN_vkUpdateDescriptorSets UpdateDescriptorSets;
	PFN_vkWaitForFences WaitForFences;
};

#define F(name) { "vk" #name, offsetof(struct gpu_bench, name) }
static const struct { const char *name; size_t at; } functions[] = {
	F(AllocateCommandBuffers), F(AllocateDescriptorSets), F(AllocateMemory),
	F(BeginCommandBuffer), F(BindBufferMemory), F(CmdBindDescriptorSets), F(CmdBindPipeline),
	F(CmdCopyBuffer), F(CmdDispatch), F(CmdPushConstants), F(CreateBuffer),
	F(CreateCommandPool), F(CreateComputePipelines), F(CreateDescriptorPool),
	F(CreateDescriptorSetLayout), F(CreateFence), F(CreatePipelineLayout), F(CreateSemaphore),
	F(CreateShaderModule), F(DestroyBuffer), F(DestroyCommandPool), F(DestroyDescriptorPool),
	F(DestroyDescriptorSetLayout), F(DestroyFence), F(DestroyPipeline),
	F(DestroyPipelineLayout), F(DestroySemaphore), F(DestroyShaderModule), F(DeviceWaitIdle),
	F(EndCommandBuffer), F(FreeMemory), F(GetBufferMemoryRequirements), F(MapMemory),
	F(QueueSubmit), F(ResetFences), F(SignalSemaphore), F(UpdateDescriptorSets),
	F(WaitForFences),
};

#undef F

static bool load(struct gpu_bench *g)
{
	const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)g->vk.get_instance_proc;
	PFN_vkGetPhysicalDeviceMemoryProperties get_memory;
	PFN_vkGetDeviceProcAddr get_device;

	get_memory = (PFN_vkGetPhysicalDeviceMemoryProperties)
		get(g->vk.instance, "vkGetPhysicalDeviceMemoryProperties");
	get_device = (PFN_vkGetDeviceProcAddr)get(g->vk.instance, "vkGetDeviceProcAddr");
	g->device = g->vk.device;
	get_memory(g->vk.physical, &g->types);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		const PFN_vkVoidFunction f = get_device(g->device, functions[i].name);

		if (!f)
			return false;
		memcpy((char *)g + functions[i].at, &f, sizeof(f));
	}
	return true;
}

static VkResult make_buffer(struct gpu_bench *g, unsigned int which, uint64_t bytes)
{
	const VkMemoryPropertyFlags wanted = which == WORDS ?
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT :
		VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
	const VkBufferCreateInfo about = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
			 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
	};
	VkMemoryAllocateInfo memory = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };
	VkResult result = g->CreateBuffer(g->device, &about, NULL, &g->buffer[which]);
	VkMemoryRequirements needs;
	void *base = NULL;

	if (result)
		return result;
	g->GetBufferMemoryRequirements(g->device, g->buffer[which], &needs);
	memory.allocationSize = needs.size;
	while (memory.memoryTypeIndex < g->types.memoryTypeCount &&
	       (!(needs.memoryTypeBits & 1u << memory.memoryTypeIndex) ||
		(g->types.memoryTypes[memory.memoryTypeIndex].propertyFlags & wanted) != wanted))
		memory.memoryTypeIndex++;
	if (memory.memoryTypeIndex == g->types.memoryTypeCount)
		return VK_ERROR_FEATURE_NOT_PRESENT;
	result = g->AllocateMemory(g->device, &memory, NULL, &g->memory[which]);
	if (!result)
		result = g->BindBufferMemory(g->device, g->buffer[which], g->memory[which], 0);
	if (!result && which == WORDS)
		result = g->MapMemory(g->device, g->memory[which], 0, VK_WHOLE_SIZE, 0, &base);
	if (which == WORDS)
		g->word = base;
	return result;
}

static VkResult make_commands(struct gpu_bench *g)
{
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
		.queueFamilyIndex = g->vk.family,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	const VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	const VkSemaphoreCreateInfo semaphore = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type,
	};
	VkCommandBufferAllocateInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandBufferCount = 1,
	};
	VkResult result = g->CreateCommandPool(g->device, &pool, NULL, &g->pool);

	buffer.commandPool = g->pool;
	if (!result)
		result = g->AllocateCommandBuffers(g->device, &buffer, &g->commands);
	if (!result)
		result = g->CreateFence(g->device, &fence, NULL, &g->fence);
	if (!result && g->vk.timeline)
		result = g->CreateSemaphore(g->device, &semaphore, NULL, &g->timeline);
	return result;
}

static VkResult make_set(struct gpu_bench *g)
{
	const VkDescriptorSetLayoutBinding place = {
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1,
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
	};
	const VkDescriptorSetLayoutCreateInfo places = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1,
		.pBindings = &place,
	};
	const VkDescriptorPoolSize size = {
		.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1,
	};
	const VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1,
		.poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = 1,
		.pSetLayouts = &g->places,
	};
	const VkDescriptorBufferInfo all = { g->buffer[WORDS], 0, VK_WHOLE_SIZE };
	VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &all,
	};
	VkResult result = g->CreateDescriptorSetLayout(g->device, &places, NULL, &g->places);

	if (!result)
		result = g->CreateDescriptorPool(g->device, &pool, NULL, &g->sets);
	set.descriptorPool = g->sets;
	if (!result)
		result = g->AllocateDescriptorSets(g->device, &set, &g->set);
	write.dstSet = g->set;
	if (!result)
		g->UpdateDescriptorSets(g->device, 1, &write, 0, NULL);
	return result;
}

static VkResult make_shader(struct gpu_bench *g)
{
	const VkPushConstantRange push = { VK_SHADER_STAGE_COMPUTE_BIT, 0, 8 };
	const VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
		.pSetLayouts = &g->places, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	const VkShaderModuleCreateInfo code = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = sizeof(gpu_touch_shader), .pCode = gpu_touch_shader,
	};
	VkComputePipelineCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main",
		},
	};
	VkResult result = g->CreatePipelineLayout(g->device, &layout, NULL, &g->layout);

	if (!result)
		result = g->CreateShaderModule(g->device, &code, NULL, &wanted.stage.module);
	if (result)
		return result;
	wanted.layout = g->layout;
	result = g->CreateComputePipelines(g->device, NULL, 1, &wanted, NULL, &g->shader);
	g->DestroyShaderModule(g->device, wanted.stage.module, NULL);
	return result;
}

struct gpu_bench *gpu_bench_open(const char *name, struct rashpa_gpu_info *info)
{
	struct gpu_bench *g = calloc(1, sizeof(*g));
	VkResult result = VK_ERROR_OUT_OF_HOST_MEMORY;

	if (!g || rashpa_gpu_open(name, &g->gpu) || rashpa_gpu_as_vulkan(g->gpu, &g->vk)) {
		fail("%s", g ? rashpa_reason() : "no memory for a GPU");
		gpu_bench_close(g);
		return NULL;
	}
	rashpa_gpu_about(g->gpu, info);
	result = load(g) ? VK_SUCCESS : VK_ERROR_INCOMPATIBLE_DRIVER;
	for (unsigned int i = 0; i < BUFFERS && !result; i++)
		result = make_buffer(g, i, i == WORDS ? 4096 : GPU_COPY_MOST);
	if (!result)
		result = make_commands(g);
	if (!result)
		result = make_set(g);
	if (!result)
		result = make_shader(g);
	if (result) {
		fail("%s: its driver (%s) said %d", info->name, info->driver, result);
		gpu_bench_close(g);
		return NULL;
	}
	return g;
}

void gpu_bench_close(struct gpu_bench *g)
{
	if (!g)
		return;
	if (g->DeviceWaitIdle)
		g->DeviceWaitIdle(g->device);
	for (unsigned int i = 0; i < BUFFERS; i++) {
		if (g->buffer[i])
			g->DestroyBuffer(g->device, g->buffer[i], NULL);
		if (g->memory[i])
			g->FreeMemory(g->device, g->memory[i], NULL);
	}
	if (g->shader)
		g->DestroyPipeline(g->device, g->shader, NULL);
	if (g->layout)
		g->DestroyPipelineLayout(g->device, g->layout, NULL);
	if (g->sets)
		g->DestroyDescriptorPool(g->device, g->sets, NULL);
	if (g->places)
		g->DestroyDescriptorSetLayout(g->device, g->places, NULL);
	if (g->timeline)
		g->DestroySemaphore(g->device, g->timeline, NULL);
	if (g->fence)
		g->DestroyFence(g->device, g->fence, NULL);
	if (g->pool)
		g->DestroyCommandPool(g->device, g->pool, NULL);
	rashpa_gpu_close(g->gpu);
	free(g);
}

/* --- batches --- */

static VkResult begin(struct gpu_bench *g)
{
	const VkCommandBufferBeginInfo once = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	return g->BeginCommandBuffer(g->commands, &once);
}

/* wait: of the timeline; 0: at once */
static VkResult submit(struct gpu_bench *g, uint64_t wait)
{
	const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = 1, .pWaitSemaphoreValues = &wait,
	};
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = wait ? &values : NULL,
		.waitSemaphoreCount = !!wait, .pWaitSemaphores = &g->timeline,
		.pWaitDstStageMask = &stage,
		.commandBufferCount = 1, .pCommandBuffers = &g->commands,
	};

	return g->QueueSubmit(g->vk.queue, 1, &batch, g->fence);
}

static VkResult done(struct gpu_bench *g)
{
	VkResult result = g->WaitForFences(g->device, 1, &g->fence, VK_TRUE, PATIENCE_NS);

	return result ? result : g->ResetFences(g->device, 1, &g->fence);
}

static VkResult touch(struct gpu_bench *g, uint32_t polls)
{
	const uint32_t push[] = { ++g->value, polls };
	const VkResult result = begin(g);

	if (result)
		return result;
	g->CmdBindPipeline(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->shader);
	g->CmdBindDescriptorSets(g->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->layout, 0, 1,
				 &g->set, 0, NULL);
	g->CmdPushConstants(g->commands, g->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(push),
			    push);
	g->CmdDispatch(g->commands, 1, 1, 1);
	return g->EndCommandBuffer(g->commands);
}

uint64_t gpu_bench_latency(struct gpu_bench *g, enum gpu_way_of way)
{
	const struct timespec settle = { .tv_nsec = SETTLE_NS };
	VkSemaphoreSignalInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = g->timeline,
	};
	unsigned long long from, now;
	VkResult result;

	if (way == GPU_TIMELINE && !g->vk.timeline)
		return 0;
	result = touch(g, way == GPU_POLL ? POLLS : 0);
	if (!result && way != GPU_LAUNCH) {
		signal.value = way == GPU_TIMELINE ? ++g->signalled : 0;
		result = submit(g, signal.value);
		nanosleep(&settle, NULL);
	}
	from = now_ns();
	if (!result && way == GPU_LAUNCH)
		result = submit(g, 0);
	else if (!result && way == GPU_TIMELINE)
		result = g->SignalSemaphore(g->device, &signal);
	else
		atomic_store(&g->word[0], g->value);
	do
		now = now_ns();
	while (!result && atomic_load(&g->word[1]) != g->value && now - from < PATIENCE_NS);
	if (!result)
		result = done(g);
	return result ? 0 : now - from;
}

uint64_t gpu_bench_copy(struct gpu_bench *g, uint64_t bytes)
{
	const VkBufferCopy part = { .size = bytes };
	unsigned long long from;
	VkResult result = begin(g);

	if (!result) {
		g->CmdCopyBuffer(g->commands, g->buffer[FROM], g->buffer[TO], 1, &part);
		result = g->EndCommandBuffer(g->commands);
	}
	from = now_ns();
	if (!result)
		result = submit(g, 0);
	if (!result)
		result = done(g);
	return result ? 0 : now_ns() - from;
}

#endif
