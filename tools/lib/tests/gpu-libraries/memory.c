// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of a GPU, as a program has it: memory GPU alloc BYTES | register BYTES | window BYTES |
 * about. What there is, or why not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <rashpa-gpu.h>

static int sorry(int error)
{
	printf("%s: %s\n", strerrorname_np(-error), rashpa_reason());
	return 1;
}

static int about(const struct rashpa_gpu *gpu)
{
	struct rashpa_gpu_info info;

	rashpa_gpu_get_info(gpu, &info);
	printf("%s, %s, %llu MiB, at %04llx:%02llx, flags %x\n", info.name, info.driver,
	       (unsigned long long)info.memory_bytes >> 20,
	       (unsigned long long)info.pci >> 16, (unsigned long long)info.pci >> 8 & 0xff,
	       info.flags);
	return 0;
}

static int alloc(struct rashpa_gpu *gpu, uint64_t bytes)
{
	struct rashpa_gpu_memory *memory;
	struct stat stat;
	const int error = rashpa_gpu_alloc(gpu, bytes, &memory);

	if (error)
		return sorry(error);
	if (fstat(rashpa_gpu_dmabuf(memory), &stat))
		return 1;
	printf("dma-buf of %lld bytes, address %s\n", (long long)stat.st_size,
	       rashpa_gpu_address(memory) ? "yes" : "no");
	rashpa_gpu_free(memory);
	return 0;
}

static int with_host(struct rashpa_gpu *gpu, uint64_t bytes, uint32_t flags)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rashpa_gpu_memory *memory, *again;
	int error;

	if (base == MAP_FAILED)
		return 1;
	error = rashpa_gpu_register(gpu, base, bytes, flags, &memory);
	if (error)
		return sorry(error);
	printf("registered, address %s, dma-buf %d\n", rashpa_gpu_address(memory) ? "yes" : "no",
	       rashpa_gpu_dmabuf(memory));
	error = rashpa_gpu_register(gpu, base, bytes, flags, &again);
	if (error)
		sorry(error);
	rashpa_gpu_free(again);
	rashpa_gpu_free(memory);
	return 0;
}

int main(int argc, char **argv)
{
	const uint64_t bytes = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
	struct rashpa_gpu *gpu;
	int result;

	if (argc < 3)
		return 2;
	result = rashpa_gpu_open(argv[1], &gpu);
	if (result)
		return sorry(result);
	if (!strcmp(argv[2], "alloc"))
		result = alloc(gpu, bytes);
	else if (!strcmp(argv[2], "register"))
		result = with_host(gpu, bytes, 0);
	else if (!strcmp(argv[2], "window"))
		result = with_host(gpu, bytes, RASHPA_GPU_WINDOW);
	else
		result = about(gpu);
	rashpa_gpu_close(gpu);
	return result;
}
