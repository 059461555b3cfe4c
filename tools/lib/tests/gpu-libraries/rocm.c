// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A stand-in for libhsa-runtime64.so.1, for memory: it writes down what is called (STAND_IN_LOG). A
 * processor and a GPU, which has a fine-grained pool and a coarse-grained one. STAND_IN: full,
 * offset (a dma-buf has it further behind), none.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/tests/gpu-libraries/note.h"

#define CALL(name)	__attribute__((visibility("default"))) int hsa_##name

static int begun;
static char memory[1 << 20] __attribute__((aligned(4096)));
static size_t used;

CALL(init)(void)
{
	note("init");
	return told("none") ? 0x1000 : !++begun;
}

CALL(shut_down)(void)
{
	note(begun-- == 1 && !used ? "shut_down" : "WRONG: shut_down");
	return 0;
}

CALL(iterate_agents)(int (*each)(uint64_t agent, void *data), void *data)
{
	const int result = each(1, data);

	return result ? result : each(2, data);
}

CALL(agent_get_info)(uint64_t agent, int attribute, void *value)
{
	switch (attribute) {
	case 17:
		*(uint32_t *)value = agent == 2;
		return 0;
	case 0xa009:
		strcpy(value, "stand-in for a GPU of ROCm");
		return 0;
	case 0xa006:
		*(uint32_t *)value = 0x8300;
		return 0;
	case 0xa00f:
		*(uint32_t *)value = 1;
		return 0;
	default:
		return 0x1001;
	}
}

CALL(amd_agent_iterate_memory_pools)(uint64_t agent, int (*each)(uint64_t pool, void *data),
				     void *data)
{
	const int result = each(10 * agent, data);

	return result ? result : each(10 * agent + 1, data);
}

CALL(amd_memory_pool_get_info)(uint64_t pool, int attribute, void *value)
{
	switch (attribute) {
	case 0:
		*(uint32_t *)value = 0;
		return 0;
	case 1:
		*(uint32_t *)value = pool == 21 ? 4 : 2;
		return 0;
	case 2:
		*(size_t *)value = sizeof(memory);
		return 0;
	case 5:
		*(bool *)value = true;
		return 0;
	default:
		return 0x1001;
	}
}

CALL(amd_memory_pool_allocate)(uint64_t pool, size_t bytes, uint32_t flags, void **address)
{
	if (told("full"))
		return 0x1008;
	note("allocate pool%d %zu %u", (int)pool, bytes, flags);
	*address = memory;
	used = bytes;
	return 0;
}

CALL(amd_memory_pool_free)(void *address)
{
	note(address == memory && used ? "free" : "WRONG: free");
	used = 0;
	return 0;
}

CALL(amd_portable_export_dmabuf)(const void *address, size_t bytes, int *dmabuf, uint64_t *offset)
{
	note(address == memory && bytes == used ? "export_dmabuf" : "WRONG: export_dmabuf");
	*dmabuf = memfd_create("stand-in GPU memory", MFD_CLOEXEC);
	*offset = told("offset") ? 4096 : 0;
	return ftruncate(*dmabuf, bytes) ? 0x1001 : 0;
}

CALL(amd_memory_lock)(void *base, size_t bytes, uint64_t *agents, int count, void **address)
{
	note("lock %zu agent%d", bytes, count == 1 ? (int)agents[0] : -1);
	*address = base;
	return 0;
}

CALL(amd_memory_unlock)(void *base)
{
	note(base ? "unlock" : "WRONG: unlock");
	return 0;
}
