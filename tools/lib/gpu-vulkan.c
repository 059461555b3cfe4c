// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: GPUs by Vulkan. Memory is a dma-buf by VK_EXT_external_memory_dma_buf; each has one
 * buffer, which is all of it.
 */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "lib/gpu.h"
#include "lib/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define ADDRESS		VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
#define DMABUF		VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT
#define QUEUES	3	/* a copy in, a kernel and a copy out at the same time */
#define USAGE		(VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | \
			 VK_BUFFER_USAGE_TRANSFER_DST_BIT)

struct vulkan {
	struct rashpa_gpu gpu;		/* first */
	void *library;
	PFN_vkGetInstanceProcAddr get;
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	uint32_t family, queues;
	bool foreign;
	VkPhysicalDeviceMemoryProperties memory;
	PFN_vkCreateDevice CreateDevice;
	PFN_vkDestroyInstance DestroyInstance;
	PFN_vkEnumerateDeviceExtensionProperties EnumerateDeviceExtensionProperties;
	PFN_vkEnumeratePhysicalDevices EnumeratePhysicalDevices;
	PFN_vkGetDeviceProcAddr GetDeviceProcAddr;
	PFN_vkGetPhysicalDeviceExternalBufferProperties GetPhysicalDeviceExternalBufferProperties;
	PFN_vkGetPhysicalDeviceMemoryProperties GetPhysicalDeviceMemoryProperties;
	PFN_vkGetPhysicalDeviceProperties GetPhysicalDeviceProperties;
	PFN_vkGetPhysicalDeviceProperties2 GetPhysicalDeviceProperties2;
	PFN_vkGetPhysicalDeviceQueueFamilyProperties GetPhysicalDeviceQueueFamilyProperties;
	PFN_vkAllocateMemory AllocateMemory;
	PFN_vkBindBufferMemory BindBufferMemory;
	PFN_vkCreateBuffer CreateBuffer;
	PFN_vkDestroyBuffer DestroyBuffer;
	PFN_vkDestroyDevice DestroyDevice;
	PFN_vkFreeMemory FreeMemory;
	PFN_vkGetBufferMemoryRequirements GetBufferMemoryRequirements;
	PFN_vkGetDeviceQueue GetDeviceQueue;
	PFN_vkMapMemory MapMemory;
	/* where memory is shared */
	PFN_vkGetMemoryFdKHR GetMemoryFdKHR;
	PFN_vkGetMemoryFdPropertiesKHR GetMemoryFdPropertiesKHR;
	/* where memory of the host is taken */
	PFN_vkGetMemoryHostPointerPropertiesEXT GetMemoryHostPointerPropertiesEXT;
	bool has_timeline;
};

struct vulkan_memory {
	struct rashpa_gpu_memory memory;	/* first */
	VkDeviceMemory pages;
	VkBuffer buffer;
};

/* Translate results that a user can act on. */
static int vulkan_fail(const struct vulkan *v, const char *what, VkResult result)
{
	const char *name = *v->gpu.info.name ? v->gpu.info.name : "vulkan";

	switch (result) {
	case VK_ERROR_OUT_OF_HOST_MEMORY:
		return fail(ENOMEM, "%s: %s: no memory of the host", name, what);
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
		return fail(ENOMEM, "%s: %s: the GPU has no memory left for it, or its driver cannot share it",
			    name, what);
	case VK_ERROR_INVALID_EXTERNAL_HANDLE:
		return fail(EINVAL, "%s: %s: the driver takes no such dma-buf", name, what);
	case VK_ERROR_DEVICE_LOST:
		return fail(EIO, "%s: %s: the GPU has gone, or was reset", name, what);
	default:
		return fail(EIO, "%s: %s: the driver said %d", name, what, result);
	}
}

/* --- open --- */

/* A function of Vulkan, and where its pointer is. */
struct function {
	const char *name;
	size_t at;
};

#define F(name) { "vk" #name, offsetof(struct vulkan, name) }

static const struct function of_instance[] = {
	F(CreateDevice), F(DestroyInstance), F(EnumerateDeviceExtensionProperties),
	F(EnumeratePhysicalDevices), F(GetDeviceProcAddr),
	F(GetPhysicalDeviceExternalBufferProperties), F(GetPhysicalDeviceMemoryProperties),
	F(GetPhysicalDeviceProperties), F(GetPhysicalDeviceProperties2),
	F(GetPhysicalDeviceQueueFamilyProperties),
};

static const struct function of_device[] = {
	F(AllocateMemory), F(BindBufferMemory), F(CreateBuffer), F(DestroyBuffer),
	F(DestroyDevice), F(FreeMemory), F(GetBufferMemoryRequirements), F(GetDeviceQueue),
	F(MapMemory),
};

static const struct function of_sharing[] = {
	F(GetMemoryFdKHR), F(GetMemoryFdPropertiesKHR),
};

static const struct function of_host[] = {
	F(GetMemoryHostPointerPropertiesEXT),
};

#undef F

static bool keep(struct vulkan *v, const struct function *f, PFN_vkVoidFunction pointer)
{
	memcpy((char *)v + f->at, &pointer, sizeof(pointer));
	return pointer;
}

static bool load(struct vulkan *v)
{
	bool found = true;

	for (size_t i = 0; i < ARRAY_SIZE(of_instance); i++)
		found &= keep(v, &of_instance[i], v->get(v->instance, of_instance[i].name));
	return found;
}

static bool load_some(struct vulkan *v, const struct function *f, size_t n)
{
	bool found = true;

	for (size_t i = 0; i < n; i++)
		found &= keep(v, &f[i], v->GetDeviceProcAddr(v->device, f[i].name));
	return found;
}

static bool load_device(struct vulkan *v)
{
	const uint32_t can = v->gpu.info.flags;

	return load_some(v, of_device, ARRAY_SIZE(of_device)) &&
	       (!(can & (RASHPA_GPU_EXPORTS | RASHPA_GPU_IMPORTS)) ||
		load_some(v, of_sharing, ARRAY_SIZE(of_sharing))) &&
	       (!(can & RASHPA_GPU_HOST) || load_some(v, of_host, ARRAY_SIZE(of_host)));
}

static int make_instance(struct vulkan *v)
{
	const VkApplicationInfo about = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "rashpa",
		.apiVersion = VK_API_VERSION_1_2,
	};
	const VkInstanceCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &about,
	};
	PFN_vkCreateInstance create;
	VkResult result;

	v->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!v->library)
		return fail(EOPNOTSUPP, "there is no Vulkan on this machine (libvulkan1, and a driver as mesa-vulkan-drivers): %s",
			    dlerror());
	v->get = (PFN_vkGetInstanceProcAddr)dlsym(v->library, "vkGetInstanceProcAddr");
	create = v->get ? (PFN_vkCreateInstance)v->get(NULL, "vkCreateInstance") : NULL;
	if (!create)
		return fail(EOPNOTSUPP, "libvulkan.so.1 is not a Vulkan loader: it has no vkCreateInstance");
	result = create(&wanted, NULL, &v->instance);
	if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
		return fail(EOPNOTSUPP, "Vulkan has no driver on this machine: install the GPU's, or mesa-vulkan-drivers");
	if (result)
		return vulkan_fail(v, "an instance", result);
	return load(v) ? 0 : fail(EOPNOTSUPP, "this Vulkan is older than 1.1");
}

/* Small is good. */
static unsigned int rank(const struct vulkan *v, VkPhysicalDevice physical)
{
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
	};
	VkPhysicalDeviceProperties2 all = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver,
	};

	v->GetPhysicalDeviceProperties2(physical, &all);
	if (all.properties.apiVersion < VK_API_VERSION_1_1)
		return 5;
	/* also for a processor on another machine: the driver reports no difference */
	if (driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE ||
	    driver.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
		return 4;
	switch (all.properties.deviceType) {
	case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
		return 0;
	case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
		return 1;
	case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
		return 2;
	default:
		return 3;
	}
}

/* The number-th, the best ones first; among equal ones in the driver's order. */
static int choose(struct vulkan *v, unsigned int number)
{
	VkPhysicalDevice all[64];
	uint32_t n = ARRAY_SIZE(all), left = number;
	VkResult result = v->EnumeratePhysicalDevices(v->instance, &n, all);

	if (result && result != VK_INCOMPLETE)
		return vulkan_fail(v, "the list of GPUs", result);
	for (unsigned int r = 0; r < 5; r++) {
		for (uint32_t i = 0; i < n; i++) {
			if (rank(v, all[i]) != r || left--)
				continue;
			v->physical = all[i];
			return 0;
		}
	}
	return fail(ENODEV, "vulkan:%u: Vulkan has %" PRIu32 " GPUs on this machine", number, n);
}

static bool has(const VkExtensionProperties *all, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(all[i].extensionName, name))
			return true;
	}
	return false;
}

static uint32_t shares(const struct vulkan *v)
{
	const VkPhysicalDeviceExternalBufferInfo info = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
		.usage = USAGE, .handleType = DMABUF,
	};
	VkExternalBufferProperties answer = {
		.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES,
	};
	VkExternalMemoryFeatureFlags can;

	v->GetPhysicalDeviceExternalBufferProperties(v->physical, &info, &answer);
	can = answer.externalMemoryProperties.externalMemoryFeatures;
	return (can & VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT ? RASHPA_GPU_EXPORTS : 0) |
	       (can & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT ? RASHPA_GPU_IMPORTS : 0);
}

static void describe(struct vulkan *v, bool on_pci)
{
	VkPhysicalDevicePCIBusInfoPropertiesEXT pci = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT,
	};
	VkPhysicalDeviceMaintenance3Properties sizes = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
		.pNext = on_pci ? &pci : NULL,
	};
	VkPhysicalDeviceDriverProperties driver = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES, .pNext = &sizes,
	};
	VkPhysicalDeviceProperties2 all = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver,
	};
	struct rashpa_gpu_info *info = &v->gpu.info;

	v->GetPhysicalDeviceProperties2(v->physical, &all);
	v->GetPhysicalDeviceMemoryProperties(v->physical, &v->memory);
	snprintf(info->name, sizeof(info->name), "%s", all.properties.deviceName);
	snprintf(info->driver, sizeof(info->driver), "%.100s %.150s", driver.driverName,
		 driver.driverInfo);
	for (uint32_t i = 0; i < v->memory.memoryHeapCount; i++) {
		const VkMemoryHeap *heap = &v->memory.memoryHeaps[i];

		if (heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT &&
		    heap->size > info->memory_bytes)
			info->memory_bytes = heap->size;
	}
	if (rank(v, v->physical) == 4)
		info->flags |= RASHPA_GPU_SOFTWARE;
	/* part of 1.2, where all have it */
	v->has_timeline = all.properties.apiVersion >= VK_API_VERSION_1_2;
	info->pci = RASHPA_GPU_NOWHERE;
	if (on_pci)
		info->pci = (uint64_t)pci.pciDomain << 16 | pci.pciBus << 8 | pci.pciDevice << 3 |
			    pci.pciFunction;
	v->gpu.longest = all.properties.limits.maxStorageBufferRange;
	if (v->gpu.longest > sizes.maxMemoryAllocationSize)
		v->gpu.longest = sizes.maxMemoryAllocationSize;
}

static int find_queue(struct vulkan *v)
{
	VkQueueFamilyProperties all[32];
	uint32_t n = ARRAY_SIZE(all);

	v->GetPhysicalDeviceQueueFamilyProperties(v->physical, &n, all);
	for (v->family = 0; v->family < n; v->family++) {
		if (!(all[v->family].queueFlags & VK_QUEUE_COMPUTE_BIT))
			continue;
		v->queues = all[v->family].queueCount < QUEUES ? all[v->family].queueCount : QUEUES;
		return 0;
	}
	return fail(EOPNOTSUPP, "%s: it has no queue for compute shaders", v->gpu.info.name);
}

static int make_device(struct vulkan *v)
{
	static const char * const sharing[] = {
		VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
		VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
	};
	const float priority[QUEUES] = { 1, 1, 1 };
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .pQueuePriorities = priority,
	};
	VkDeviceCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
	};
	const char *extension[ARRAY_SIZE(sharing) + 2];
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
		.timelineSemaphore = VK_TRUE,
	};
	VkExtensionProperties *all;
	VkResult result;
	uint32_t n = 0;

	v->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, NULL);
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		return fail(ENOMEM, "no memory for a GPU");
	v->EnumerateDeviceExtensionProperties(v->physical, NULL, &n, all);
	describe(v, has(all, n, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME));
	if (has(all, n, sharing[0]) && has(all, n, sharing[1])) {
		v->gpu.info.flags |= shares(v);
		for (size_t i = 0; i < ARRAY_SIZE(sharing); i++)
			extension[wanted.enabledExtensionCount++] = sharing[i];
	}
	v->foreign = has(all, n, VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME);
	if (v->foreign)
		extension[wanted.enabledExtensionCount++] =
			VK_EXT_QUEUE_FAMILY_FOREIGN_EXTENSION_NAME;
	if (has(all, n, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME)) {
		v->gpu.info.flags |= RASHPA_GPU_HOST;
		extension[wanted.enabledExtensionCount++] =
			VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
	}
	if (v->has_timeline)
		wanted.pNext = &timeline;
	wanted.ppEnabledExtensionNames = extension;
	free(all);
	if (find_queue(v))
		return -EOPNOTSUPP;
	queue.queueFamilyIndex = v->family;
	queue.queueCount = v->queues;
	result = v->CreateDevice(v->physical, &wanted, NULL, &v->device);
	if (result)
		return vulkan_fail(v, "a device", result);
	if (!load_device(v))
		return fail(EIO, "%s: its driver (%s) lacks functions", v->gpu.info.name,
			    v->gpu.info.driver);
	v->GetDeviceQueue(v->device, v->family, 0, &v->queue);
	return 0;
}

static void vulkan_close(struct rashpa_gpu *gpu)
{
	struct vulkan *v = (struct vulkan *)gpu;

	if (v->device && v->DestroyDevice)
		v->DestroyDevice(v->device, NULL);
	if (v->instance && v->DestroyInstance)
		v->DestroyInstance(v->instance, NULL);
	if (v->library)
		dlclose(v->library);
	free(v);
}

static int vulkan_open(unsigned int number, struct rashpa_gpu **gpu)
{
	struct vulkan *v = calloc(1, sizeof(*v));
	int error;

	if (!v)
		return fail(ENOMEM, "no memory for a GPU");
	v->gpu.way = &gpu_vulkan;
	error = make_instance(v);
	if (!error)
		error = choose(v, number);
	if (!error)
		error = make_device(v);
	if (error)
		vulkan_close(&v->gpu);
	else
		*gpu = &v->gpu;
	return error;
}

/* --- memory --- */

/*
 * Prefer memory of the GPU that other devices reach: memory that the processor can map is behind a
 * BAR. Then any memory of the GPU. For imported memory, any possible type.
 */
static uint32_t find_type(const struct vulkan *v, uint32_t possible)
{
	static const VkMemoryPropertyFlags wanted[] = {
		VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
		VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
		VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0,
	};

	for (size_t k = 0; k < ARRAY_SIZE(wanted); k++) {
		for (uint32_t i = 0; i < v->memory.memoryTypeCount; i++) {
			const VkMemoryPropertyFlags has = v->memory.memoryTypes[i].propertyFlags;

			if (possible & 1u << i && (has & wanted[k]) == wanted[k])
				return i;
		}
	}
	return UINT32_MAX;
}

static bool is_mappable(const struct vulkan *v, uint32_t type)
{
	const VkMemoryPropertyFlags needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

	return (v->memory.memoryTypes[type].propertyFlags & needed) == needed;
}

/* Which types of memory the dma-buf can be. */
static int ask_types(const struct vulkan *v, int dmabuf, uint32_t *types)
{
	VkMemoryFdPropertiesKHR answer = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR,
	};
	const VkResult result = v->GetMemoryFdPropertiesKHR(v->device, DMABUF, dmabuf, &answer);

	*types &= answer.memoryTypeBits;
	return result ? vulkan_fail(v, "a dma-buf of others", result) : 0;
}

static int make_buffer(struct vulkan *v, struct vulkan_memory *m,
		       VkExternalMemoryHandleTypeFlags from, uint64_t length)
{
	const VkExternalMemoryBufferCreateInfo shared = {
		.sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
		.handleTypes = from,
	};
	const VkBufferCreateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &shared,
		.size = length, .usage = USAGE, .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
	};
	const VkResult result = v->CreateBuffer(v->device, &wanted, NULL, &m->buffer);

	return result ? vulkan_fail(v, "a buffer", result) : 0;
}

/* The driver has the descriptor if it succeeds. */
static int take_pages(struct vulkan *v, struct vulkan_memory *m, int dmabuf, uint64_t length,
		      uint32_t type)
{
	const VkMemoryDedicatedAllocateInfo dedicated = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = m->buffer,
	};
	const VkExportMemoryAllocateInfo export = {
		.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .pNext = &dedicated,
		.handleTypes = DMABUF,
	};
	const VkImportMemoryFdInfoKHR import = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .pNext = &dedicated,
		.handleType = DMABUF,
		.fd = dmabuf < 0 ? -1 : fcntl(dmabuf, F_DUPFD_CLOEXEC, 0),
	};
	const VkMemoryAllocateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.pNext = dmabuf < 0 ? (const void *)&export : (const void *)&import,
		.allocationSize = length, .memoryTypeIndex = type,
	};
	VkResult result;

	if (dmabuf >= 0 && import.fd < 0)
		return fail(errno, "a dma-buf of others: %s", strerror(errno));
	result = v->AllocateMemory(v->device, &wanted, NULL, &m->pages);
	if (result && import.fd >= 0)
		close(import.fd);
	if (result)
		return vulkan_fail(v, "memory", result);
	result = v->BindBufferMemory(v->device, m->buffer, m->pages, 0);
	return result ? vulkan_fail(v, "memory of a buffer", result) : 0;
}

static int give_dmabuf(struct vulkan *v, struct vulkan_memory *m)
{
	const VkMemoryGetFdInfoKHR wanted = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .memory = m->pages,
		.handleType = DMABUF,
	};
	const VkResult result = v->GetMemoryFdKHR(v->device, &wanted, &m->memory.dmabuf);

	return result ? vulkan_fail(v, "a dma-buf", result) : 0;
}

static void vulkan_free(struct rashpa_gpu_memory *memory)
{
	struct vulkan_memory *m = (struct vulkan_memory *)memory;
	struct vulkan *v = (struct vulkan *)memory->gpu;

	if (m->buffer)
		v->DestroyBuffer(v->device, m->buffer, NULL);
	if (m->pages)
		v->FreeMemory(v->device, m->pages, NULL);
	free(m);
}

static int fill_in(struct vulkan *v, struct vulkan_memory *m, int dmabuf, uint64_t length)
{
	VkMemoryRequirements needs;
	uint32_t type;
	int error = make_buffer(v, m, DMABUF, length);

	if (error)
		return error;
	v->GetBufferMemoryRequirements(v->device, m->buffer, &needs);
	if (dmabuf >= 0) {
		error = ask_types(v, dmabuf, &needs.memoryTypeBits);
		/* the dma-buf cannot grow */
		if (!error && needs.size > length)
			error = fail(EINVAL, "%s: a dma-buf of %" PRIu64
				     " bytes is too short: the driver wants %" PRIu64,
				     v->gpu.info.name, length, (uint64_t)needs.size);
	}
	type = find_type(v, needs.memoryTypeBits);
	if (!error && type == UINT32_MAX)
		error = fail(ENOMEM, "%s: it has no type of memory for this", v->gpu.info.name);
	if (!error)
		error = take_pages(v, m, dmabuf, dmabuf < 0 ? needs.size : length, type);
	if (error)
		return error;
	/* imported memory belongs to another driver, and is mapped through its dma-buf */
	if (dmabuf < 0 && is_mappable(v, type) &&
	    v->MapMemory(v->device, m->pages, 0, VK_WHOLE_SIZE, 0, &m->memory.base))
		m->memory.base = NULL;
	if (dmabuf < 0)
		return give_dmabuf(v, m);
	m->memory.dmabuf = fcntl(dmabuf, F_DUPFD_CLOEXEC, 0);
	return m->memory.dmabuf < 0 ? fail(errno, "a dma-buf: %s", strerror(errno)) : 0;
}

static int vulkan_memory(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
			 struct rashpa_gpu_memory **memory)
{
	struct vulkan_memory *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	m->memory = (struct rashpa_gpu_memory) { .gpu = gpu, .dmabuf = -1 };
	error = fill_in((struct vulkan *)gpu, m, dmabuf, length);
	if (error)
		vulkan_free(&m->memory);
	else
		*memory = &m->memory;
	return error;
}

static int take_address(struct vulkan *v, struct vulkan_memory *m, void *address, uint64_t length)
{
	VkMemoryHostPointerPropertiesEXT possible = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT,
	};
	const VkImportMemoryHostPointerInfoEXT import = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
		.handleType = ADDRESS, .pHostPointer = address,
	};
	VkMemoryAllocateInfo wanted = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &import,
		.allocationSize = length,
	};
	VkMemoryRequirements needs;
	VkResult result;
	int error;

	if (length > v->gpu.longest)
		return fail(EINVAL, "%s: memory has 1 to %" PRIu64 " bytes, not %" PRIu64,
			    v->gpu.info.name, v->gpu.longest, length);
	error = make_buffer(v, m, ADDRESS, length);
	if (error)
		return error;
	result = v->GetMemoryHostPointerPropertiesEXT(v->device, ADDRESS, address, &possible);
	if (result)
		return vulkan_fail(v, "memory of the host", result);
	v->GetBufferMemoryRequirements(v->device, m->buffer, &needs);
	wanted.memoryTypeIndex = find_type(v, needs.memoryTypeBits & possible.memoryTypeBits);
	if (wanted.memoryTypeIndex == UINT32_MAX || needs.size > length)
		return fail(EINVAL, "%s: its driver does not take this memory of the host",
			    v->gpu.info.name);
	result = v->AllocateMemory(v->device, &wanted, NULL, &m->pages);
	if (!result)
		result = v->BindBufferMemory(v->device, m->buffer, m->pages, 0);
	return result ? vulkan_fail(v, "memory of the host", result) : 0;
}

static int vulkan_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			   struct rashpa_gpu_memory **memory)
{
	struct vulkan_memory *m = calloc(1, sizeof(*m));
	int error;

	(void)flags;	/* windows as well, where the driver looks at nothing but addresses */
	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	m->memory = (struct rashpa_gpu_memory) { .gpu = gpu, .dmabuf = -1, .base = base };
	error = take_address((struct vulkan *)gpu, m, base, length);
	if (error)
		vulkan_free(&m->memory);
	else
		*memory = &m->memory;
	return error;
}

const struct gpu_way gpu_vulkan = {
	.name = "vulkan", .open = vulkan_open, .close = vulkan_close, .memory = vulkan_memory,
	.register_host = vulkan_register, .free = vulkan_free,
};

/* --- for programs with shaders --- */

int rashpa_gpu_as_vulkan_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_vulkan *vulkan,
			       size_t size)
{
	const struct vulkan *v = (const struct vulkan *)gpu;
	struct rashpa_gpu_vulkan all;

	if (gpu->way != &gpu_vulkan)
		return fail(EOPNOTSUPP, "%s: it was not opened by Vulkan", gpu->info.name);
	all = (struct rashpa_gpu_vulkan) {
		.get_instance_proc = (void *)v->get, .instance = v->instance,
		.physical = v->physical, .device = v->device, .queue = v->queue,
		.family = v->family, .queues = v->queues, .foreign = v->foreign,
		.timeline = v->has_timeline,
	};
	sized_copy(vulkan, size, &all, sizeof(all));
	return 0;
}

uint64_t rashpa_gpu_vulkan_buffer(const struct rashpa_gpu_memory *memory)
{
	return (uint64_t)((const struct vulkan_memory *)memory)->buffer;
}
