// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: GPUs by Level Zero (libze_loader.so.1). Device memory is allocated with the flag that
 * allows its export as a dma-buf. This file declares the functions that it calls, so the build
 * needs no header of Level Zero.
 */
#include "gpu.h"
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define LIBRARY		"libze_loader.so.1"
#define DRIVERS		16
#define DEVICES		64

enum {
	ZE_GPU_ONLY = 1, ZE_GPU = 1, ZE_EXPORT_DMABUF = 2,
	ZE_DEVICE_PROPERTIES = 3, ZE_MEMORY_PROPERTIES = 7, ZE_CONTEXT_WANTED = 13,
	ZE_DEVICE_MEMORY_WANTED = 21, ZE_ALLOCATION_PROPERTIES = 23, ZE_EXPORT_WANTED = 24,
	ZE_EXPORT_FD = 26, ZE_PCI_PROPERTIES = 0x10008,
	ZE_NO_HOST_MEMORY = 0x70000002, ZE_NO_DEVICE_MEMORY = 0x70000003,
	ZE_UNINITIALIZED = 0x78000001, ZE_UNSUPPORTED = 0x78000003,
};

/* Each struct begins with its type and a pointer to the next one. */
struct ze_wanted {
	uint32_t type;
	const void *next;
	uint32_t flags, ordinal;
};

struct ze_device_properties {
	uint32_t type;
	void *next;
	uint32_t kind, vendor, device, flags, part, clock;
	uint64_t longest;
	uint32_t contexts, priority, threads, width, units, slices, more_slices;
	uint64_t timer;
	uint32_t bits, kernel_bits;
	uint8_t uuid[16];
	char name[256];
};

struct ze_memory_properties {
	uint32_t type;
	void *next;
	uint32_t flags, clock, width;
	uint64_t bytes;
	char name[256];
};

struct ze_pci_properties {
	uint32_t type;
	void *next;
	uint32_t domain, bus, device, function;
	int32_t generation, width;
	int64_t bandwidth;
};

struct ze_allocation_properties {
	uint32_t type;
	void *next;
	uint32_t kind;
	uint64_t id, page;
};

struct ze_export_fd {
	uint32_t type;
	const void *next;
	uint32_t flags;
	int fd;
};

struct level_zero {
	struct rashpa_gpu gpu;		/* first */
	void *driver, *device, *context;
	unsigned int (*init)(uint32_t flags);
	unsigned int (*drivers)(uint32_t *count, void **drivers);
	unsigned int (*devices)(void *driver, uint32_t *count, void **devices);
	unsigned int (*about)(void *device, struct ze_device_properties *properties);
	unsigned int (*about_memory)(void *device, uint32_t *count,
				     struct ze_memory_properties *properties);
	unsigned int (*where)(void *device, struct ze_pci_properties *properties);
	unsigned int (*create)(void *driver, const struct ze_wanted *wanted, void **context);
	unsigned int (*destroy)(void *context);
	unsigned int (*alloc)(void *context, const struct ze_wanted *wanted, size_t bytes,
			      size_t alignment, void *device, void **address);
	unsigned int (*free)(void *context, void *address);
	unsigned int (*tell)(void *context, const void *address,
			     struct ze_allocation_properties *properties, void **device);
};

struct level_zero_memory {
	struct rashpa_gpu_memory memory;	/* first */
	void *address;
};

#define F(member, name) { "ze" name, offsetof(struct level_zero, member) }

static const struct library_function needed[] = {
	F(init, "Init"), F(drivers, "DriverGet"), F(devices, "DeviceGet"),
	F(about, "DeviceGetProperties"), F(about_memory, "DeviceGetMemoryProperties"),
	F(where, "DevicePciGetPropertiesExt"), F(create, "ContextCreate"),
	F(destroy, "ContextDestroy"), F(alloc, "MemAllocDevice"), F(free, "MemFree"),
	F(tell, "MemGetAllocProperties"),
};

#undef F

static int level_zero_fail(const struct level_zero *z, const char *what, unsigned int result)
{
	const char *name = *z->gpu.info.name ? z->gpu.info.name : "level-zero";

	switch (result) {
	case ZE_NO_HOST_MEMORY:
	case ZE_NO_DEVICE_MEMORY:
		return fail(ENOMEM, "%s: %s: no memory left for it", name, what);
	case ZE_UNSUPPORTED:
		return fail(EOPNOTSUPP, "%s: %s: its driver does not do that", name, what);
	default:
		return fail(EIO, "%s: %s: the driver said %#x", name, what, result);
	}
}

/* The number-th GPU of all drivers. */
static int choose(struct level_zero *z, unsigned int number)
{
	struct ze_device_properties about;
	void *driver[DRIVERS], *device[DEVICES];
	uint32_t drivers = DRIVERS, devices;
	unsigned int seen = 0;

	if (z->drivers(&drivers, driver))
		drivers = 0;
	for (uint32_t i = 0; i < drivers; i++) {
		devices = DEVICES;
		if (z->devices(driver[i], &devices, device))
			continue;
		for (uint32_t k = 0; k < devices; k++) {
			about = (struct ze_device_properties) { .type = ZE_DEVICE_PROPERTIES };
			if (z->about(device[k], &about) || about.kind != ZE_GPU ||
			    seen++ != number)
				continue;
			z->driver = driver[i];
			z->device = device[k];
			z->gpu.longest = about.longest;
			snprintf(z->gpu.info.name, sizeof(z->gpu.info.name), "%.255s", about.name);
			return 0;
		}
	}
	return fail(ENODEV, "level-zero:%u: Level Zero has %u GPUs on this machine", number, seen);
}

static void describe(struct level_zero *z)
{
	struct ze_pci_properties pci = { .type = ZE_PCI_PROPERTIES };
	struct ze_memory_properties memory = { .type = ZE_MEMORY_PROPERTIES };
	struct rashpa_gpu_info *info = &z->gpu.info;
	uint32_t one = 1;

	strcpy(info->driver, "Level Zero");
	info->pci = RASHPA_GPU_NOWHERE;
	if (!z->where(z->device, &pci))
		info->pci = (uint64_t)pci.domain << 16 | pci.bus << 8 | pci.device << 3 |
			    pci.function;
	if (!z->about_memory(z->device, &one, &memory) && one)
		info->memory_bytes = memory.bytes;
	info->flags = RASHPA_GPU_EXPORTS;
}

static int take_device(struct level_zero *z, unsigned int number)
{
	const struct ze_wanted wanted = { .type = ZE_CONTEXT_WANTED };
	unsigned int result = z->init(ZE_GPU_ONLY);

	if (result)
		return fail(EOPNOTSUPP, "Level Zero has no GPU here (%#x): install its driver (libze-intel-gpu1), load xe, and be of the group render",
			    result);
	if (choose(z, number))
		return -ENODEV;
	describe(z);
	result = z->create(z->driver, &wanted, &z->context);
	return result ? level_zero_fail(z, "a context", result) : 0;
}

static void level_zero_close(struct rashpa_gpu *gpu)
{
	struct level_zero *z = (struct level_zero *)gpu;

	if (z->context)
		z->destroy(z->context);
	free(z);
}

static int level_zero_open(unsigned int number, struct rashpa_gpu **gpu)
{
	struct level_zero *z = calloc(1, sizeof(*z));
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int error;

	if (!z)
		return fail(ENOMEM, "no memory for a GPU");
	z->gpu.way = &gpu_level_zero;
	if (!library)
		error = fail(EOPNOTSUPP, "there is no Level Zero on this machine (" LIBRARY ", of libze1): %s",
			     dlerror());
	else if (!library_load(library, z, needed, ARRAY_SIZE(needed)))
		error = fail(EOPNOTSUPP, LIBRARY " lacks functions: install Level Zero 1.3 or later");
	else
		error = take_device(z, number);
	if (error)
		level_zero_close(&z->gpu);
	else
		*gpu = &z->gpu;
	return error;
}

static void level_zero_free(struct rashpa_gpu_memory *memory)
{
	struct level_zero_memory *m = (struct level_zero_memory *)memory;
	struct level_zero *z = (struct level_zero *)memory->gpu;

	if (m->address)
		z->free(z->context, m->address);
	free(m);
}

static int fill_in(struct level_zero *z, struct level_zero_memory *m, uint64_t length)
{
	const struct ze_wanted export = { .type = ZE_EXPORT_WANTED, .flags = ZE_EXPORT_DMABUF };
	const struct ze_wanted wanted = { .type = ZE_DEVICE_MEMORY_WANTED, .next = &export };
	struct ze_export_fd fd = {
		.type = ZE_EXPORT_FD, .flags = ZE_EXPORT_DMABUF, .fd = -1,
	};
	struct ze_allocation_properties about = { .type = ZE_ALLOCATION_PROPERTIES, .next = &fd };
	unsigned int result = z->alloc(z->context, &wanted, length, sysconf(_SC_PAGESIZE),
				       z->device, &m->address);

	if (result)
		return level_zero_fail(z, "memory", result);
	m->memory.address = (uintptr_t)m->address;
	result = z->tell(z->context, m->address, &about, NULL);
	if (result)
		return level_zero_fail(z, "a dma-buf", result);
	/* that one is Level Zero's, until the memory goes */
	m->memory.dmabuf = fcntl(fd.fd, F_DUPFD_CLOEXEC, 0);
	return m->memory.dmabuf < 0 ? fail(EOPNOTSUPP, "%s: its driver gives no dma-buf: %s",
					   z->gpu.info.name, strerror(errno)) : 0;
}

static int level_zero_memory(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
			     struct rashpa_gpu_memory **memory)
{
	struct level_zero_memory *m = calloc(1, sizeof(*m));
	const uint64_t page = sysconf(_SC_PAGESIZE);
	int error;

	(void)dmabuf;	/* it imports none */
	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	m->memory = (struct rashpa_gpu_memory) { .gpu = gpu, .dmabuf = -1 };
	error = fill_in((struct level_zero *)gpu, m, (length + page - 1) / page * page);
	if (error)
		rashpa_gpu_free(&m->memory);
	else
		*memory = &m->memory;
	return error;
}

const struct gpu_way gpu_level_zero = {
	.name = "level-zero", .open = level_zero_open, .close = level_zero_close,
	.memory = level_zero_memory, .free = level_zero_free,
};
