// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: memory of GPUs of all vendors. See rashpa-gpu.h. */
#include "lib/gpu.h"
#include "lib/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef RASHPA_NO_VULKAN
static int no_vulkan(unsigned int number, struct rashpa_gpu **gpu)
{
	(void)number;
	(void)gpu;
	return fail(EOPNOTSUPP, "this library was built without %s (libvulkan-dev)",
		    RASHPA_NO_VULKAN);
}

const struct gpu_way gpu_vulkan = { .name = "vulkan", .open = no_vulkan };

int rashpa_gpu_as_vulkan_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_vulkan *vulkan,
			       size_t size)
{
	(void)gpu;
	(void)vulkan;
	(void)size;
	return no_vulkan(0, NULL);
}

uint64_t rashpa_gpu_vulkan_buffer(const struct rashpa_gpu_memory *memory)
{
	(void)memory;
	return 0;
}
#endif

static const struct gpu_way * const ways[] = { &gpu_vulkan, &gpu_cuda, &gpu_rocm };

/* The number after "name:", 0 without one; -1: another name. */
static int number_of(const char *text, const char *name)
{
	const size_t n = strlen(name);
	unsigned long number;
	char *end;

	if (strncmp(text, name, n))
		return -1;
	if (!text[n])
		return 0;
	if (text[n] != ':' || text[n + 1] < '0' || text[n + 1] > '9')
		return -1;
	number = strtoul(text + n + 1, &end, 10);
	return *end || number > INT16_MAX ? -1 : (int)number;
}

int rashpa_gpu_open(const char *name, struct rashpa_gpu **gpu)
{
	*gpu = NULL;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		const int number = number_of(name, ways[i]->name);

		if (number >= 0)
			return ways[i]->open(number, gpu);
	}
	return fail(EINVAL, "\"%s\" is no GPU: there are vulkan, cuda and rocm, and vulkan:N for number N from 0 on",
		    name);
}

void rashpa_gpu_close(struct rashpa_gpu *gpu)
{
	if (gpu)
		gpu->way->close(gpu);
}

void rashpa_gpu_get_info_sized(const struct rashpa_gpu *gpu, struct rashpa_gpu_info *info,
			       size_t size)
{
	sized_copy(info, size, &gpu->info, sizeof(gpu->info));
}

static int check_length(const struct rashpa_gpu *gpu, uint64_t length)
{
	if (!length || length > gpu->longest)
		return fail(EINVAL, "%s: memory has 1 to %" PRIu64 " bytes, not %" PRIu64,
			    gpu->info.name, gpu->longest, length);
	return 0;
}

static int make(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
		struct rashpa_gpu_memory **memory)
{
	const int error = check_length(gpu, length);

	return error ? error : gpu->way->memory(gpu, dmabuf, length, memory);
}

int rashpa_gpu_alloc(struct rashpa_gpu *gpu, uint64_t length, struct rashpa_gpu_memory **memory)
{
	*memory = NULL;
	if (!(gpu->info.flags & RASHPA_GPU_EXPORTS))
		return fail(EOPNOTSUPP, "%s: its driver (%s) gives no dma-buf of its memory",
			    gpu->info.name, gpu->info.driver);
	return make(gpu, -1, length, memory);
}

int rashpa_gpu_import(struct rashpa_gpu *gpu, int dmabuf, struct rashpa_gpu_memory **memory)
{
	const off_t end = lseek(dmabuf, 0, SEEK_END);

	*memory = NULL;
	if (!(gpu->info.flags & RASHPA_GPU_IMPORTS))
		return fail(EOPNOTSUPP, "%s: its driver (%s) takes no dma-buf of others",
			    gpu->info.name, gpu->info.driver);
	if (end < 0)
		return fail(EINVAL, "descriptor %d is not a dma-buf: %s", dmabuf,
			    strerror(errno));
	return make(gpu, dmabuf, end, memory);
}

/* Fault in its pages: a driver may read this process's page tables once, without waiting. */
static void fault_in(const volatile uint8_t *base, uint64_t length)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);

	for (uint64_t at = 0; at < length; at += page)
		(void)*(const volatile uint32_t *)(base + at);
}

int rashpa_gpu_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			struct rashpa_gpu_memory **memory)
{
	const uint64_t page = sysconf(_SC_PAGESIZE);

	*memory = NULL;
	if (flags & ~(RASHPA_GPU_WINDOW | RASHPA_GPU_READ_ONLY))
		return fail(EINVAL, "%s: flags %#" PRIx32 " of memory of the host",
			    gpu->info.name, flags);
	if (!base || !length || (uintptr_t)base % page || length % page)
		return fail(EINVAL, "%s: memory of the host is whole pages of %" PRIu64
			    " bytes, not %" PRIu64 " bytes at %p", gpu->info.name, page, length,
			    base);
	if (!(gpu->info.flags & RASHPA_GPU_HOST))
		return fail(EOPNOTSUPP, "%s: its driver (%s) takes no memory of the host",
			    gpu->info.name, gpu->info.driver);
	if (flags & RASHPA_GPU_WINDOW)
		fault_in(base, length);
	return gpu->way->register_host(gpu, base, length, flags, memory);
}

void rashpa_gpu_free(struct rashpa_gpu_memory *memory)
{
	if (!memory)
		return;
	if (memory->dmabuf >= 0)
		close(memory->dmabuf);
	memory->gpu->way->free(memory);
}

int rashpa_gpu_dmabuf(const struct rashpa_gpu_memory *memory)
{
	return memory->dmabuf;
}

void *rashpa_gpu_base(const struct rashpa_gpu_memory *memory)
{
	return memory->base;
}

uint64_t rashpa_gpu_address(const struct rashpa_gpu_memory *memory)
{
	return memory->address;
}

int rashpa_gpu_map_sized(int device, const struct rashpa_gpu_memory *memory,
			 struct rashpa_map_make *map, size_t size)
{
	int error;

	if (memory->dmabuf < 0)
		return fail(EINVAL, "%s: memory of the host: map its own dma-buf",
			    memory->gpu->info.name);
	map->fd = memory->dmabuf;
	map->head.flags |= RASHPA_MAP_DEVICE;
	error = rashpa_ioctl(device, RASHPA_IOC_MAP_MAKE, map, size);
	return error ? error : map->out_fd;
}
