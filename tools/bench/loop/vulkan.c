// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent shader drives the board. Its memory and the doorbell's page are those of this
 * process, which the GPU takes by their addresses; processors only watch.
 */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "loop/loop.spv.h"
#include "rashpa-gpu.h"
#include "say.h"

#define PLACES		2u	/* memory, doorbell */
#define PAGE		4096u
#define PATIENCE_NS	60000000000ull	/* of a shader that has ended its loop, or was told to */

struct vulkan {
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_info info;
	struct rashpa_gpu_vulkan vk;
	struct rashpa_gpu_memory *memory[PLACES];
	PFN_vkAllocateCommandBuffers AllocateCommandBuffers;
	PFN_vkAllocateDescriptorSets AllocateDescriptorSets;
	PFN_vkBeginCommandBuffer BeginCommandBuffer;
	PFN_vkCmdBindDescriptorSets CmdBindDescriptorSets;
	PFN_vkCmdBindPipeline CmdBindPipeline;
	PFN_vkCmdDispatch CmdDispatch;
	PFN_vkCmdPushConstants CmdPushConstants;
	PFN_vkCreateCommandPool CreateCommandPool;
	PFN_vkCreateComputePipelines CreateComputePipelines;
	PFN_vkCreateDescriptorPool CreateDescriptorPool;
	PFN_vkCreateDescriptorSetLayout CreateDescriptorSetLayout;
	PFN_vkCreateFence CreateFence;
	PFN_vkCreatePipelineLayout CreatePipelineLayout;
	PFN_vkCreateShaderModule CreateShaderModule;
	PFN_vkDestroyCommandPool DestroyCommandPool;
	PFN_vkDestroyDescriptorPool DestroyDescriptorPool;
	PFN_vkDestroyDescriptorSetLayout DestroyDescriptorSetLayout;
	PFN_vkDestroyFence DestroyFence;
	PFN_vkDestroyPipeline DestroyPipeline;
	PFN_vkDestroyPipelineLayout DestroyPipelineLayout;
	PFN_vkDestroyShaderModule DestroyShaderModule;
	PFN_vkEndCommandBuffer EndCommandBuffer;
	PFN_vkQueueSubmit QueueSubmit;
	PFN_vkUpdateDescriptorSets UpdateDescriptorSets;
	PFN_vkWaitForFences WaitForFences;

	VkCommandPool pool;
	VkCommandBuffer commands;
	VkFence fence;
	VkDescriptorSetLayout places;
	VkPipelineLayout layout;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkPipeline shader;
	bool lost;		/* it has not ended: nothing of it is given back */
};

#define F(name) { "vk" #name, offsetof(struct vulkan, name) }

static const struct {
	const char *name;
	size_t at;
} functions[] = {
	F(AllocateCommandBuffers), F(AllocateDescriptorSets), F(BeginCommandBuffer),
	F(CmdBindDescriptorSets), F(CmdBindPipeline), F(CmdDispatch), F(CmdPushConstants),
	F(CreateCommandPool), F(CreateComputePipelines), F(CreateDescriptorPool),
	F(CreateDescriptorSetLayout), F(CreateFence), F(CreatePipelineLayout),
	F(CreateShaderModule), F(DestroyCommandPool), F(DestroyDescriptorPool),
	F(DestroyDescriptorSetLayout), F(DestroyFence), F(DestroyPipeline),
	F(DestroyPipelineLayout), F(DestroyShaderModule), F(EndCommandBuffer), F(QueueSubmit),
	F(UpdateDescriptorSets), F(WaitForFences),
};

#undef F

static int load(struct vulkan *v, char *why)
{
	const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)v->vk.get_instance_proc;
	const PFN_vkGetDeviceProcAddr of_device =
		(PFN_vkGetDeviceProcAddr)get(v->vk.instance, "vkGetDeviceProcAddr");
	PFN_vkVoidFunction f;

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		f = of_device ? of_device(v->vk.device, functions[i].name) : NULL;
		if (!f)
			return because(why, -1, "%s: its driver (%s) lacks %s", v->info.name,
				       v->info.driver, functions[i].name);
		memcpy((char *)v + functions[i].at, &f, sizeof(f));
	}
	return 0;
}

static VkResult make_layout(struct vulkan *v)
{
	const VkPushConstantRange push = {
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = sizeof(struct loop_plan),
	};
	VkDescriptorSetLayoutBinding binding[PLACES];
	const VkDescriptorSetLayoutCreateInfo places = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = PLACES, .pBindings = binding,
	};
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
		.pSetLayouts = &v->places, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	VkResult result;

	for (uint32_t i = 0; i < PLACES; i++)
		binding[i] = (VkDescriptorSetLayoutBinding) {
			.binding = i, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
		};
	result = v->CreateDescriptorSetLayout(v->vk.device, &places, NULL, &v->places);
	return result ? result : v->CreatePipelineLayout(v->vk.device, &layout, NULL, &v->layout);
}

static VkResult make_shader(struct vulkan *v, VkBool32 judges)
{
	static const VkSpecializationMapEntry entry = { 0, 0, sizeof(judges) };
	const VkSpecializationInfo constants = {
		.mapEntryCount = 1, .pMapEntries = &entry, .dataSize = sizeof(judges),
		.pData = &judges,
	};
	const VkShaderModuleCreateInfo code = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
		.codeSize = sizeof(loop_shader), .pCode = loop_shader,
	};
	VkComputePipelineCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main",
			.pSpecializationInfo = &constants,
		},
		.layout = v->layout,
	};
	VkResult result = v->CreateShaderModule(v->vk.device, &code, NULL, &wanted.stage.module);

	if (result)
		return result;
	result = v->CreateComputePipelines(v->vk.device, NULL, 1, &wanted, NULL, &v->shader);
	v->DestroyShaderModule(v->vk.device, wanted.stage.module, NULL);
	return result;
}

static VkResult make_set(struct vulkan *v)
{
	const VkDescriptorPoolSize size = {
		.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = PLACES,
	};
	const VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1,
		.poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo set = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1, .pSetLayouts = &v->places,
	};
	VkResult result = v->CreateDescriptorPool(v->vk.device, &pool, NULL, &v->sets);

	set.descriptorPool = v->sets;
	return result ? result : v->AllocateDescriptorSets(v->vk.device, &set, &v->set);
}

static VkResult make_commands(struct vulkan *v)
{
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.queueFamilyIndex = v->vk.family,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkCommandBufferAllocateInfo buffer = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1,
	};
	VkResult result = v->CreateCommandPool(v->vk.device, &pool, NULL, &v->pool);

	buffer.commandPool = v->pool;
	if (!result)
		result = v->AllocateCommandBuffers(v->vk.device, &buffer, &v->commands);
	return result ? result : v->CreateFence(v->vk.device, &fence, NULL, &v->fence);
}

static int wrong(const struct vulkan *v, const char *what, VkResult result, char *why)
{
	return result ? because(why, -1, "%s: %s: its driver (%s) said %d", v->info.name, what,
				v->info.driver, result) : 0;
}

static void bind(struct vulkan *v)
{
	for (uint32_t i = 0; i < PLACES; i++) {
		const VkDescriptorBufferInfo all = {
			.buffer = (VkBuffer)rashpa_gpu_vulkan_buffer(v->memory[i]),
			.range = VK_WHOLE_SIZE,
		};
		const VkWriteDescriptorSet write = {
			.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = v->set,
			.dstBinding = i, .descriptorCount = 1,
			.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &all,
		};

		v->UpdateDescriptorSets(v->vk.device, 1, &write, 0, NULL);
	}
}

static VkResult submit(struct vulkan *v, const struct loop_plan *plan)
{
	const VkCommandBufferBeginInfo once = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1,
		.pCommandBuffers = &v->commands,
	};
	VkResult result = v->BeginCommandBuffer(v->commands, &once);

	if (result)
		return result;
	v->CmdBindPipeline(v->commands, VK_PIPELINE_BIND_POINT_COMPUTE, v->shader);
	v->CmdBindDescriptorSets(v->commands, VK_PIPELINE_BIND_POINT_COMPUTE, v->layout, 0, 1,
				 &v->set, 0, NULL);
	v->CmdPushConstants(v->commands, v->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(*plan),
			    plan);
	v->CmdDispatch(v->commands, 1, 1, 1);
	result = v->EndCommandBuffer(v->commands);
	return result ? result : v->QueueSubmit(v->vk.queue, 1, &batch, v->fence);
}

static int begin(struct loop_drive *self, struct loop *loop, char *why)
{
	struct vulkan *v = self->own;
	VkResult result;

	if (rashpa_gpu_register(v->gpu, (void *)(uintptr_t)loop->word, loop->length, 0,
				&v->memory[0]) ||
	    rashpa_gpu_register(v->gpu, (void *)(uintptr_t)loop->page, PAGE, RASHPA_GPU_WINDOW,
				&v->memory[1]))
		return because(why, -1, "%s", rashpa_reason());
	bind(v);
	result = make_shader(v, loop->plan.judges);
	if (!result)
		result = submit(v, &loop->plan);
	return wrong(v, "to begin", result, why);
}

static int end(struct loop_drive *self, char *why)
{
	struct vulkan *v = self->own;
	const VkResult result = v->WaitForFences(v->vk.device, 1, &v->fence, VK_TRUE, PATIENCE_NS);

	v->lost = result;
	return wrong(v, "the loop", result, why);
}

static void close_drive(struct loop_drive *self)
{
	struct vulkan *v = self->own;

	/* what the GPU still uses goes with the process */
	if (v->lost)
		return;
	if (v->fence)
		v->DestroyFence(v->vk.device, v->fence, NULL);
	if (v->pool)
		v->DestroyCommandPool(v->vk.device, v->pool, NULL);
	if (v->shader)
		v->DestroyPipeline(v->vk.device, v->shader, NULL);
	if (v->sets)
		v->DestroyDescriptorPool(v->vk.device, v->sets, NULL);
	if (v->layout)
		v->DestroyPipelineLayout(v->vk.device, v->layout, NULL);
	if (v->places)
		v->DestroyDescriptorSetLayout(v->vk.device, v->places, NULL);
	for (unsigned int i = 0; i < PLACES; i++)
		rashpa_gpu_free(v->memory[i]);
	rashpa_gpu_close(v->gpu);
	free(v);
	self->own = NULL;
}

static int open_drive(struct vulkan *v, const char *gpu, char *why)
{
	VkResult result;

	if (rashpa_gpu_open(gpu, &v->gpu) || rashpa_gpu_as_vulkan(v->gpu, &v->vk))
		return because(why, -1, "%s", rashpa_reason());
	rashpa_gpu_about(v->gpu, &v->info);
	if (!(v->info.flags & RASHPA_GPU_HOST))
		return because(why, -1, "%s: its driver (%s) takes no memory of the host, so a shader cannot ring a doorbell",
			       v->info.name, v->info.driver);
	if (load(v, why))
		return -1;
	result = make_layout(v);
	if (!result)
		result = make_set(v);
	if (!result)
		result = make_commands(v);
	return wrong(v, "a shader", result, why);
}

int loop_by_vulkan(struct loop_drive *self, const char *gpu, char *why)
{
	struct vulkan *v = calloc(1, sizeof(*v));

	if (!v)
		return because(why, -1, "no memory");
	*self = (struct loop_drive) {
		.name = v->info.name, .own = v, .begin = begin, .end = end, .close = close_drive,
	};
	if (!open_drive(v, gpu, why))
		return 0;
	close_drive(self);
	return -1;
}
