// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: GPUs by CUDA's driver API. Memory is made of pages that others may write to by DMA
 * (VMM), or is plain memory if the GPU has no such pages. Its dma-buf is requested by its address.
 * The context is the primary one, which other CUDA code of the program shares.
 */
#include "lib/cuda-api.h"
#include "lib/gpu.h"
#include "lib/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define LIBRARY		"libcuda.so.1"

struct cuda {
	struct rashpa_gpu gpu;		/* first */
	void *library;
	int device;
	struct cuda_context *context;
	bool of_pages;			/* its memory can be made of pages for others */
	uint64_t granularity;
	int (*init)(unsigned int flags);
	int (*version)(int *version);
	int (*count)(int *count);
	int (*get)(int *device, int number);
	int (*name)(char *name, int size, int device);
	int (*total)(size_t *bytes, int device);
	int (*attribute)(int *value, int attribute, int device);
	int (*retain)(struct cuda_context **context, int device);
	int (*release)(int device);
	int (*push)(struct cuda_context *context);
	int (*pop)(struct cuda_context **context);
	int (*error)(int result, const char **text);
	int (*alloc)(uint64_t *address, size_t bytes);
	int (*free)(uint64_t address);
	int (*set_pointer)(const void *value, int attribute, uint64_t address);
	int (*register_host)(void *base, size_t bytes, unsigned int flags);
	int (*unregister)(void *base);
	int (*device_pointer)(uint64_t *address, void *base, unsigned int flags);
	/* of CUDA 11.7 and later */
	int (*granularity_of)(size_t *bytes, const struct cuda_pages *wanted, int option);
	int (*create)(uint64_t *pages, size_t bytes, const struct cuda_pages *wanted,
		      unsigned long long flags);
	int (*drop)(uint64_t pages);
	int (*reserve)(uint64_t *address, size_t bytes, size_t alignment,
		       uint64_t wanted, unsigned long long flags);
	int (*unreserve)(uint64_t address, size_t bytes);
	int (*map)(uint64_t address, size_t bytes, size_t offset, uint64_t pages,
		   unsigned long long flags);
	int (*unmap)(uint64_t address, size_t bytes);
	int (*set_access)(uint64_t address, size_t bytes,
			  const struct cuda_access *access, size_t count);
	int (*handle)(void *handle, uint64_t address, size_t bytes, int type,
		      unsigned long long flags);
};

struct cuda_memory {
	struct rashpa_gpu_memory memory;	/* first */
	uint64_t plain, reserved;
	uint64_t bytes, pages;
	bool mapped, has_pages;
	void *registered;
};

#define F(member, name) { "cu" name, offsetof(struct cuda, member) }

static const struct library_function needed[] = {
	F(init, "Init"), F(version, "DriverGetVersion"), F(count, "DeviceGetCount"),
	F(get, "DeviceGet"), F(name, "DeviceGetName"), F(total, "DeviceTotalMem_v2"),
	F(attribute, "DeviceGetAttribute"), F(retain, "DevicePrimaryCtxRetain"),
	F(release, "DevicePrimaryCtxRelease_v2"), F(push, "CtxPushCurrent_v2"),
	F(pop, "CtxPopCurrent_v2"), F(error, "GetErrorString"), F(alloc, "MemAlloc_v2"),
	F(free, "MemFree_v2"), F(set_pointer, "PointerSetAttribute"),
	F(register_host, "MemHostRegister_v2"), F(unregister, "MemHostUnregister"),
	F(device_pointer, "MemHostGetDevicePointer_v2"),
};

static const struct library_function of_dmabufs[] = {
	F(granularity_of, "MemGetAllocationGranularity"), F(create, "MemCreate"),
	F(drop, "MemRelease"), F(reserve, "MemAddressReserve"), F(unreserve, "MemAddressFree"),
	F(map, "MemMap"), F(unmap, "MemUnmap"), F(set_access, "MemSetAccess"),
	F(handle, "MemGetHandleForAddressRange"),
};

#undef F

static int cuda_fail(const struct cuda *c, const char *what, int result)
{
	const char *name = *c->gpu.info.name ? c->gpu.info.name : "cuda", *text = NULL;

	switch (result) {
	case CUDA_OUT_OF_MEMORY:
		return fail(ENOMEM, "%s: %s: the GPU has no memory left for it", name, what);
	case CUDA_NO_DEVICE:
		return fail(EOPNOTSUPP, "%s: CUDA has no GPU on this machine: see nvidia-smi",
			    name);
	case CUDA_SYSTEM_MISMATCH:
		return fail(EOPNOTSUPP, "%s: libcuda.so.1 and the kernel's modules have different versions: reboot, or install both again",
			    name);
	case CUDA_NOT_PERMITTED:
		return fail(EPERM, "%s: %s: only root may do that: see the line gpu of rashpactl doctor",
			    name, what);
	case CUDA_NOT_SUPPORTED:
		return fail(EOPNOTSUPP, "%s: %s: its driver does not do that; it takes the open kernel modules (Turing and newer)",
			    name, what);
	default:
		if (c->error)
			c->error(result, &text);
		return fail(EIO, "%s: %s: the driver said %d (%s)", name, what, result,
			    text ? text : "no text");
	}
}

/* --- open --- */

static int attribute_of(const struct cuda *c, int attribute)
{
	int value = 0;

	return c->attribute(&value, attribute, c->device) ? 0 : value;
}

static void describe(struct cuda *c, int version)
{
	struct rashpa_gpu_info *info = &c->gpu.info;
	size_t bytes = 0;

	if (c->name(info->name, sizeof(info->name) - 1, c->device) || !*info->name)
		strcpy(info->name, "cuda");
	c->total(&bytes, c->device);
	snprintf(info->driver, sizeof(info->driver), "CUDA %d.%d", version / 1000,
		 version % 1000 / 10);
	info->memory_bytes = bytes;
	info->flags = RASHPA_GPU_HOST;
	info->pci = (uint64_t)attribute_of(c, CUDA_DOMAIN) << 16 |
		    attribute_of(c, CUDA_BUS) << 8 | attribute_of(c, CUDA_SLOT) << 3;
	c->gpu.longest = info->memory_bytes;
}

/* Whether it gives dma-bufs, and of which memory. */
static void look_at_sharing(struct cuda *c)
{
	const struct cuda_pages wanted = {
		.type = CUDA_PINNED, .handles = CUDA_HANDLE_FD,
		.location = { CUDA_A_DEVICE, c->device }, .flags.direct = 1,
	};
	size_t bytes = 0;

	if (!library_load(c->library, c, of_dmabufs, ARRAY_SIZE(of_dmabufs)) ||
	    !attribute_of(c, CUDA_DMABUF))
		return;
	c->gpu.info.flags |= RASHPA_GPU_EXPORTS;
	c->of_pages = attribute_of(c, CUDA_DIRECT_VMM) && attribute_of(c, CUDA_EXPORTS_FD) &&
		      !c->granularity_of(&bytes, &wanted, CUDA_LEAST_GRANULARITY) && bytes;
	c->granularity = bytes;
}

static int take_device(struct cuda *c, unsigned int number)
{
	int count = 0, version = 0;
	int result = c->init(0);

	if (result)
		return cuda_fail(c, "to begin", result);
	c->version(&version);
	result = c->count(&count);
	if (result)
		return cuda_fail(c, "the list of GPUs", result);
	if (number >= (unsigned int)count)
		return fail(ENODEV, "cuda:%u: CUDA has %d GPUs on this machine", number, count);
	result = c->get(&c->device, number);
	if (result)
		return cuda_fail(c, "a device", result);
	describe(c, version);
	result = c->retain(&c->context, c->device);
	if (result)
		return cuda_fail(c, "a context", result);
	look_at_sharing(c);
	return 0;
}

static void cuda_close(struct rashpa_gpu *gpu)
{
	struct cuda *c = (struct cuda *)gpu;

	if (c->context)
		c->release(c->device);
	/* CUDA runs threads, so unloading is unsafe: it stays loaded */
	free(c);
}

static int cuda_open(unsigned int number, struct rashpa_gpu **gpu)
{
	struct cuda *c = calloc(1, sizeof(*c));
	int error = 0;

	if (!c)
		return fail(ENOMEM, "no memory for a GPU");
	c->gpu.way = &gpu_cuda;
	c->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!c->library)
		error = fail(EOPNOTSUPP, "there is no CUDA on this machine (" LIBRARY ", which NVIDIA's driver has): %s",
			     dlerror());
	else if (!library_load(c->library, c, needed, ARRAY_SIZE(needed)))
		error = fail(EOPNOTSUPP, LIBRARY " lacks functions: install a driver of CUDA 11 or later");
	if (!error)
		error = take_device(c, number);
	if (error)
		cuda_close(&c->gpu);
	else
		*gpu = &c->gpu;
	return error;
}

/* --- memory --- */

static uint64_t up_to(uint64_t bytes, uint64_t multiple)
{
	return (bytes + multiple - 1) / multiple * multiple;
}

/* Map pages that other devices may write to, at a reserved address. */
static int take_pages(struct cuda *c, struct cuda_memory *m)
{
	const struct cuda_pages wanted = {
		.type = CUDA_PINNED, .handles = CUDA_HANDLE_FD,
		.location = { CUDA_A_DEVICE, c->device }, .flags.direct = 1,
	};
	const struct cuda_access access = {
		.location = wanted.location, .flags = CUDA_READ_WRITE,
	};
	int result = c->create(&m->pages, m->bytes, &wanted, 0);

	m->has_pages = !result;
	if (!result)
		result = c->reserve(&m->reserved, m->bytes, c->granularity, 0, 0);
	if (!result)
		result = c->map(m->reserved, m->bytes, 0, m->pages, 0);
	m->mapped = !result;
	m->memory.address = m->reserved;
	return result ? result : c->set_access(m->reserved, m->bytes, &access, 1);
}

/* Copies that are enqueued later wait for the writes of other devices, and see them. */
static int take_plain(struct cuda *c, struct cuda_memory *m)
{
	const unsigned int yes = 1;
	int result = c->alloc(&m->plain, m->bytes);

	m->memory.address = m->plain;
	return result ? result : c->set_pointer(&yes, CUDA_SYNC_MEMOPS, m->plain);
}

static void give_back(struct cuda *c, struct cuda_memory *m)
{
	if (m->registered)
		c->unregister(m->registered);
	if (m->mapped)
		c->unmap(m->reserved, m->bytes);
	if (m->reserved)
		c->unreserve(m->reserved, m->bytes);
	if (m->has_pages)
		c->drop(m->pages);
	if (m->plain)
		c->free(m->plain);
}

/* The context is ours for one call: the thread may have another one. */
static int enter(struct cuda *c)
{
	const int result = c->push(c->context);

	return result ? cuda_fail(c, "its context", result) : 0;
}

static void leave(struct cuda *c)
{
	struct cuda_context *ours;

	c->pop(&ours);
}

static void cuda_free(struct rashpa_gpu_memory *memory)
{
	struct cuda_memory *m = (struct cuda_memory *)memory;
	struct cuda *c = (struct cuda *)memory->gpu;

	if (!enter(c)) {
		give_back(c, m);
		leave(c);
	}
	free(m);
}

static int fill_in(struct cuda *c, struct cuda_memory *m)
{
	int result = c->of_pages ? take_pages(c, m) : take_plain(c, m);

	if (result)
		return cuda_fail(c, "memory", result);
	result = c->handle(&m->memory.dmabuf, m->memory.address, m->bytes, CUDA_RANGE_DMABUF, 0);
	return result ? cuda_fail(c, "a dma-buf", result) : 0;
}

static struct cuda_memory *new_memory(struct cuda *c, uint64_t bytes)
{
	struct cuda_memory *m = calloc(1, sizeof(*m));

	if (m) {
		m->memory = (struct rashpa_gpu_memory) { .gpu = &c->gpu, .dmabuf = -1 };
		m->bytes = bytes;
	}
	return m;
}

/* Ready for its user, or taken apart. */
static int finish(struct cuda_memory *m, int error, struct rashpa_gpu_memory **memory)
{
	if (error)
		rashpa_gpu_free(&m->memory);
	else
		*memory = &m->memory;
	return error;
}

static int cuda_memory(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
		       struct rashpa_gpu_memory **memory)
{
	struct cuda *c = (struct cuda *)gpu;
	const uint64_t page = sysconf(_SC_PAGESIZE);
	struct cuda_memory *m = new_memory(c, up_to(length, c->of_pages ? c->granularity : page));
	int error;

	(void)dmabuf;	/* it imports none */
	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	error = enter(c);
	if (!error) {
		error = fill_in(c, m);
		leave(c);
	}
	return finish(m, error, memory);
}

static int cuda_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			 struct rashpa_gpu_memory **memory)
{
	const unsigned int how = CUDA_REGISTER_PORTABLE | CUDA_REGISTER_MAP |
		(flags & RASHPA_GPU_WINDOW ? CUDA_REGISTER_IOMEM : 0) |
		(flags & RASHPA_GPU_READ_ONLY ? CUDA_REGISTER_READ_ONLY : 0);
	struct cuda *c = (struct cuda *)gpu;
	struct cuda_memory *m = new_memory(c, length);
	int result;
	int error;

	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	error = enter(c);
	if (!error) {
		result = c->register_host(base, length, how);
		if (!result) {
			m->registered = base;
			m->memory.base = base;
			result = c->device_pointer(&m->memory.address, base, 0);
		}
		if (result == CUDA_ALREADY_REGISTERED)
			error = fail(EBUSY, "%s: memory of the host: it is registered already",
				     gpu->info.name);
		else if (result)
			error = cuda_fail(c, "memory of the host", result);
		leave(c);
	}
	return finish(m, error, memory);
}

const struct gpu_way gpu_cuda = {
	.name = "cuda", .open = cuda_open, .close = cuda_close, .memory = cuda_memory,
	.register_host = cuda_register, .free = cuda_free,
};

/* --- for programs with kernels --- */

int rashpa_gpu_as_cuda_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_cuda *cuda,
			     size_t size)
{
	const struct cuda *c = (const struct cuda *)gpu;
	struct rashpa_gpu_cuda all;

	if (gpu->way != &gpu_cuda)
		return fail(EOPNOTSUPP, "%s: it was not opened by CUDA", gpu->info.name);
	all = (struct rashpa_gpu_cuda) {
		.library = c->library, .context = c->context, .device = c->device,
	};
	sized_copy(cuda, size, &all, sizeof(all));
	return 0;
}
