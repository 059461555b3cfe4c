// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/compute.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include <rashpa.h>
#include "common/say.h"

#define PLACES_MOST	32
#define CONSTANTS_MOST	8

int compute_wrong(const struct compute *c, const char *what, VkResult result, char *why)
{
	switch (result) {
	case VK_SUCCESS:
		return 0;
	case VK_ERROR_OUT_OF_HOST_MEMORY:
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
		return because(why, -1, "%s: %s: no memory left (it has %" PRIu64 " MiB)",
			       c->info.name, what, c->info.memory_bytes >> 20);
	case VK_ERROR_DEVICE_LOST:
		return because(why, -1, "%s: %s: the GPU has gone, or was reset", c->info.name,
			       what);
	default:
		return because(why, -1, "%s: %s: its driver (%s) failed with %d: update it, or use --engine cpu",
			       c->info.name, what, c->info.driver, result);
	}
}

/* --- open --- */

struct function {
	const char *name;
	size_t at;
};

#define F(name)	{ "vk" #name, offsetof(struct compute, name) },
static const struct function functions[] = { COMPUTE_FUNCTIONS(F) };
static const struct function of_timeline[] = { COMPUTE_TIMELINE(F) };
#undef F

static const char *load(struct compute *c, PFN_vkGetDeviceProcAddr get, const struct function *f,
			size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const PFN_vkVoidFunction pointer = get(c->device, f[i].name);

		if (!pointer)
			return f[i].name;
		memcpy((char *)c + f[i].at, &pointer, sizeof(pointer));
	}
	return NULL;
}

static const char *load_all(struct compute *c)
{
	const PFN_vkGetInstanceProcAddr get = (PFN_vkGetInstanceProcAddr)c->vk.get_instance_proc;
	const VkInstance instance = c->vk.instance;
	PFN_vkGetPhysicalDeviceMemoryProperties get_types;
	PFN_vkGetPhysicalDeviceProperties get_about;
	PFN_vkGetDeviceProcAddr get_device;
	VkPhysicalDeviceProperties about;
	const char *lacks;

	get_device = (PFN_vkGetDeviceProcAddr)get(instance, "vkGetDeviceProcAddr");
	get_about = (PFN_vkGetPhysicalDeviceProperties)get(instance,
							   "vkGetPhysicalDeviceProperties");
	get_types = (PFN_vkGetPhysicalDeviceMemoryProperties)
		get(instance, "vkGetPhysicalDeviceMemoryProperties");
	if (!get_device || !get_about || !get_types)
		return "vkGetPhysicalDeviceProperties";
	c->device = c->vk.device;
	get_about(c->vk.physical, &about);
	c->limits = about.limits;
	get_types(c->vk.physical, &c->types);
	lacks = load(c, get_device, functions, sizeof(functions) / sizeof(functions[0]));
	if (!lacks && c->vk.timeline)
		lacks = load(c, get_device, of_timeline,
			     sizeof(of_timeline) / sizeof(of_timeline[0]));
	return lacks;
}

VkResult compute_commands(struct compute *c, uint32_t count, VkCommandBuffer *commands)
{
	const VkCommandBufferAllocateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = c->pool,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = count,
	};

	return c->AllocateCommandBuffers(c->device, &wanted, commands);
}

static VkResult make_commands(struct compute *c)
{
	const VkCommandPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
		.queueFamilyIndex = c->vk.family,
	};
	const VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkResult result = c->CreateCommandPool(c->device, &pool, NULL, &c->pool);

	if (!result)
		result = compute_commands(c, 1, &c->commands);
	return result ? result : c->CreateFence(c->device, &fence, NULL, &c->fence);
}

static VkResult make_layout(struct compute *c)
{
	const VkPushConstantRange push = {
		.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = c->push_bytes,
	};
	VkDescriptorSetLayoutBinding binding[PLACES_MOST];
	const VkDescriptorSetLayoutCreateInfo places = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
		.bindingCount = c->places, .pBindings = binding,
	};
	const VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1,
		.pSetLayouts = &c->set_layout, .pushConstantRangeCount = 1,
		.pPushConstantRanges = &push,
	};
	VkResult result;

	for (uint32_t i = 0; i < c->places; i++)
		binding[i] = (VkDescriptorSetLayoutBinding) {
			.binding = i, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
			.descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
		};
	result = c->CreateDescriptorSetLayout(c->device, &places, NULL, &c->set_layout);
	return result ? result : c->CreatePipelineLayout(c->device, &layout, NULL, &c->layout);
}

VkResult compute_set(struct compute *c, VkDescriptorPool *pool, VkDescriptorSet *set)
{
	const VkDescriptorPoolSize size = {
		.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = c->places,
	};
	const VkDescriptorPoolCreateInfo about = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1,
		.poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
		.descriptorSetCount = 1, .pSetLayouts = &c->set_layout,
	};
	const VkResult result = c->CreateDescriptorPool(c->device, &about, NULL, pool);

	wanted.descriptorPool = *pool;
	return result ? result : c->AllocateDescriptorSets(c->device, &wanted, set);
}

int compute_open(struct compute *c, const char *name, uint32_t least, uint32_t places,
		 uint32_t push_bytes, char *why)
{
	const char *lacks;
	uint32_t room;
	VkResult result;

	if (rashpa_gpu_open(name, &c->gpu) || rashpa_gpu_as_vulkan(c->gpu, &c->vk))
		return because(why, -1, "%s", rashpa_reason());
	rashpa_gpu_get_info(c->gpu, &c->info);
	lacks = load_all(c);
	if (lacks)
		return because(why, -1, "%s: its driver (%s) lacks %s", c->info.name,
			       c->info.driver, lacks);
	room = c->limits.maxPerStageDescriptorStorageBuffers;
	if (room < least)
		return because(why, -1, "%s: a shader has %" PRIu32 " buffers there, and needs %"
			       PRIu32, c->info.name, room, least);
	c->places = room < places ? least : places;
	c->push_bytes = push_bytes;
	result = make_commands(c);
	if (!result)
		result = make_layout(c);
	if (!result)
		result = compute_set(c, &c->sets, &c->set);
	return compute_wrong(c, "to begin", result, why);
}

void compute_close(struct compute *c)
{
	if (c->lost)
		return;
	if (c->set_layout)
		c->DestroyDescriptorSetLayout(c->device, c->set_layout, NULL);
	if (c->layout)
		c->DestroyPipelineLayout(c->device, c->layout, NULL);
	if (c->sets)
		c->DestroyDescriptorPool(c->device, c->sets, NULL);
	if (c->fence)
		c->DestroyFence(c->device, c->fence, NULL);
	if (c->pool)
		c->DestroyCommandPool(c->device, c->pool, NULL);
	rashpa_gpu_close(c->gpu);
}

/* --- memory --- */

/* The first type with all wanted properties: drivers list better ones first. */
static uint32_t find_type(const struct compute *c, uint32_t possible, VkMemoryPropertyFlags wanted)
{
	for (uint32_t i = 0; i < c->types.memoryTypeCount; i++) {
		if (possible & 1u << i &&
		    (c->types.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	}
	return UINT32_MAX;
}

#define MAPPED	(VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)

static uint32_t choose_type(const struct compute *c, uint32_t possible, bool host)
{
	const uint32_t type = find_type(c, possible, host ?
					MAPPED | VK_MEMORY_PROPERTY_HOST_CACHED_BIT :
					VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);

	return type < UINT32_MAX ? type : find_type(c, possible, host ? MAPPED : 0);
}

static int take_memory(struct compute *c, struct compute_buffer *b, bool host, char *why)
{
	VkMemoryAllocateInfo wanted = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };
	VkMemoryPropertyFlags has;
	VkMemoryRequirements needs;
	VkResult result;

	c->GetBufferMemoryRequirements(c->device, b->buffer, &needs);
	wanted.allocationSize = needs.size;
	wanted.memoryTypeIndex = choose_type(c, needs.memoryTypeBits, host);
	if (wanted.memoryTypeIndex == UINT32_MAX)
		return because(why, -1, "%s: it has no type of memory for a buffer", c->info.name);
	has = c->types.memoryTypes[wanted.memoryTypeIndex].propertyFlags;
	result = c->AllocateMemory(c->device, &wanted, NULL, &b->memory);
	if (!result)
		result = c->BindBufferMemory(c->device, b->buffer, b->memory, 0);
	if (!result && (has & MAPPED) == MAPPED)
		result = c->MapMemory(c->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->base);
	b->cached = b->base && has & VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
	return compute_wrong(c, "memory", result, why);
}

int compute_buffer(struct compute *c, struct compute_buffer *b, uint64_t bytes, unsigned int flags,
		   char *why)
{
	const bool copied = flags & COMPUTE_COPIED;
	const VkBufferCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = (bytes + 3) / 4 * 4,
		.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
			 (copied ? 0 : VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
				       VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT),
		.sharingMode = VK_SHARING_MODE_EXCLUSIVE,
	};

	if (!copied && wanted.size > c->limits.maxStorageBufferRange)
		return because(why, -1, "%s: a buffer has up to %" PRIu32 " bytes there, and %"
			       PRIu64 " are needed: use smaller images, or --engine cpu",
			       c->info.name, c->limits.maxStorageBufferRange, bytes);
	if (compute_wrong(c, "a buffer", c->CreateBuffer(c->device, &wanted, NULL, &b->buffer),
			  why) || take_memory(c, b, flags & COMPUTE_HOST, why))
		return -1;
	b->bytes = wanted.size;
	return 0;
}

void compute_drop(struct compute *c, struct compute_buffer *b)
{
	if (b->buffer)
		c->DestroyBuffer(c->device, b->buffer, NULL);
	if (b->memory)
		c->FreeMemory(c->device, b->memory, NULL);
	*b = (struct compute_buffer) {};
}

void compute_bind(struct compute *c, VkDescriptorSet set, uint32_t place, VkBuffer buffer)
{
	const VkDescriptorBufferInfo all = { .buffer = buffer, .range = VK_WHOLE_SIZE };
	const VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .dstSet = set,
		.dstBinding = place, .descriptorCount = 1,
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .pBufferInfo = &all,
	};

	c->UpdateDescriptorSets(c->device, 1, &write, 0, NULL);
}

/* --- shaders --- */

int compute_shader(struct compute *c, const uint32_t *code, size_t bytes,
		   const uint32_t *constants, uint32_t count, VkPipeline *shader, char *why)
{
	VkSpecializationMapEntry entry[CONSTANTS_MOST];
	const VkSpecializationInfo told = {
		.mapEntryCount = count, .pMapEntries = entry,
		.dataSize = count * sizeof(*constants), .pData = constants,
	};
	const VkShaderModuleCreateInfo text = {
		.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
		.pCode = code,
	};
	VkComputePipelineCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
			.stage = VK_SHADER_STAGE_COMPUTE_BIT, .pName = "main",
			.pSpecializationInfo = count ? &told : NULL,
		},
		.layout = c->layout,
	};
	VkResult result = c->CreateShaderModule(c->device, &text, NULL, &wanted.stage.module);

	for (uint32_t i = 0; i < count; i++)
		entry[i] = (VkSpecializationMapEntry) {
			.constantID = i, .offset = i * sizeof(*constants),
			.size = sizeof(*constants),
		};
	if (!result) {
		result = c->CreateComputePipelines(c->device, NULL, 1, &wanted, NULL, shader);
		c->DestroyShaderModule(c->device, wanted.stage.module, NULL);
	}
	return compute_wrong(c, "a shader", result, why);
}

/* --- commands --- */

VkResult compute_begin(struct compute *c, VkCommandBuffer commands)
{
	const VkCommandBufferBeginInfo once = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
		.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	return c->BeginCommandBuffer(commands, &once);
}

void compute_barrier(struct compute *c, VkCommandBuffer commands)
{
	const VkMemoryBarrier all = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
		.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
	};
	const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
					    VK_PIPELINE_STAGE_TRANSFER_BIT;

	c->CmdPipelineBarrier(commands, stages, stages | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT |
			      VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &all, 0, NULL, 0, NULL);
}

void compute_load(struct compute *c, VkCommandBuffer commands, VkPipeline shader,
		  VkDescriptorSet set, const void *push)
{
	c->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, shader);
	c->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, c->layout, 0, 1, &set,
				 0, NULL);
	c->CmdPushConstants(commands, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, c->push_bytes,
			    push);
}

void compute_run(struct compute *c, VkCommandBuffer commands, uint64_t groups)
{
	c->CmdDispatch(commands, groups < COMPUTE_LINE ? groups : COMPUTE_LINE,
		       (groups + COMPUTE_LINE - 1) / COMPUTE_LINE, 1);
}

VkResult compute_submit(struct compute *c, VkSemaphore wait, uint64_t value)
{
	const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
	const VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
		.waitSemaphoreValueCount = 1, .pWaitSemaphoreValues = &value,
	};
	const VkSubmitInfo batch = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = wait ? &values : NULL,
		.waitSemaphoreCount = !!wait, .pWaitSemaphores = &wait,
		.pWaitDstStageMask = &stage,
		.commandBufferCount = 1, .pCommandBuffers = &c->commands,
	};

	return c->QueueSubmit(c->vk.queue, 1, &batch, c->fence);
}

VkResult compute_wait(struct compute *c, uint64_t patience_ns)
{
	const VkResult result = c->WaitForFences(c->device, 1, &c->fence, VK_TRUE, patience_ns);

	c->lost = result;
	return result ? result : c->ResetFences(c->device, 1, &c->fence);
}

VkResult compute_semaphore(struct compute *c, VkSemaphore *semaphore)
{
	const VkSemaphoreTypeCreateInfo type = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
		.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
	};
	const VkSemaphoreCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type,
	};

	return c->CreateSemaphore(c->device, &wanted, NULL, semaphore);
}
