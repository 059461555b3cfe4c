// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: GPUs by ROCm's runtime (libhsa-runtime64.so.1). Memory is of the GPU's coarse-grained
 * pool. This file declares the functions that it calls, so the build needs no header of ROCm.
 */
#include "lib/gpu.h"
#include "lib/internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define LIBRARY		"libhsa-runtime64.so.1"

/* Agents and pools are structs of one number in ROCm, and are passed like that number. */

enum {
	HSA_BREAK = 1, HSA_OUT_OF_RESOURCES = 0x1008,
	HSA_AGENT_DEVICE = 17, HSA_DEVICE_GPU = 1,
	HSA_AGENT_BDF = 0xa006, HSA_AGENT_PRODUCT = 0xa009, HSA_AGENT_DOMAIN = 0xa00f,
	HSA_POOL_SEGMENT = 0, HSA_POOL_FLAGS = 1, HSA_POOL_SIZE = 2, HSA_POOL_ALLOWED = 5,
	HSA_SEGMENT_GLOBAL = 0, HSA_COARSE_GRAINED = 4,
};

struct rocm {
	struct rashpa_gpu gpu;		/* first */
	uint64_t agent;
	uint64_t pool;
	bool begun, found, has_pool;
	unsigned int wanted, seen;
	int (*init)(void);
	int (*shut_down)(void);
	int (*agents)(int (*each)(uint64_t agent, void *data), void *data);
	int (*about)(uint64_t agent, int attribute, void *value);
	int (*pools)(uint64_t agent, int (*each)(uint64_t pool, void *data),
		     void *data);
	int (*about_pool)(uint64_t pool, int attribute, void *value);
	int (*alloc)(uint64_t pool, size_t bytes, uint32_t flags, void **address);
	int (*free)(void *address);
	int (*export)(const void *address, size_t bytes, int *dmabuf, uint64_t *offset);
	int (*lock)(void *base, size_t bytes, uint64_t *agents, int count, void **address);
	int (*unlock)(void *base);
};

struct rocm_memory {
	struct rashpa_gpu_memory memory;	/* first */
	void *address, *locked;
};

#define F(member, name) { "hsa_" name, offsetof(struct rocm, member) }

static const struct library_function needed[] = {
	F(init, "init"), F(shut_down, "shut_down"), F(agents, "iterate_agents"),
	F(about, "agent_get_info"), F(pools, "amd_agent_iterate_memory_pools"),
	F(about_pool, "amd_memory_pool_get_info"), F(alloc, "amd_memory_pool_allocate"),
	F(free, "amd_memory_pool_free"), F(export, "amd_portable_export_dmabuf"),
	F(lock, "amd_memory_lock"), F(unlock, "amd_memory_unlock"),
};

#undef F

static int rocm_fail(const struct rocm *r, const char *what, int result)
{
	const char *name = *r->gpu.info.name ? r->gpu.info.name : "rocm";

	if (result == HSA_OUT_OF_RESOURCES)
		return fail(ENOMEM, "%s: %s: the GPU has no memory left for it", name, what);
	return fail(EIO, "%s: %s: the driver said %#x", name, what, result);
}

static int look_at_agent(uint64_t agent, void *data)
{
	struct rocm *r = data;
	uint32_t type = 0;

	if (r->about(agent, HSA_AGENT_DEVICE, &type) || type != HSA_DEVICE_GPU ||
	    r->seen++ != r->wanted)
		return 0;
	r->agent = agent;
	r->found = true;
	return HSA_BREAK;
}

/* Local memory: kernels that are launched later see the writes of other devices. */
static int look_at_pool(uint64_t pool, void *data)
{
	uint32_t segment = 1, flags = 0;
	bool allowed = false;
	size_t bytes = 0;
	struct rocm *r = data;

	if (r->about_pool(pool, HSA_POOL_SEGMENT, &segment) || segment != HSA_SEGMENT_GLOBAL ||
	    r->about_pool(pool, HSA_POOL_FLAGS, &flags) || !(flags & HSA_COARSE_GRAINED) ||
	    r->about_pool(pool, HSA_POOL_ALLOWED, &allowed) || !allowed ||
	    r->about_pool(pool, HSA_POOL_SIZE, &bytes))
		return 0;
	r->pool = pool;
	r->gpu.info.memory_bytes = bytes;
	r->has_pool = true;
	return HSA_BREAK;
}

static void describe(struct rocm *r)
{
	struct rashpa_gpu_info *info = &r->gpu.info;
	uint32_t bdf = 0, domain = 0;

	/* 64 bytes, of ROCm */
	if (r->about(r->agent, HSA_AGENT_PRODUCT, info->name) || !*info->name)
		strcpy(info->name, "rocm");
	strcpy(info->driver, "ROCm");
	info->pci = RASHPA_GPU_NOWHERE;
	if (!r->about(r->agent, HSA_AGENT_BDF, &bdf) &&
	    !r->about(r->agent, HSA_AGENT_DOMAIN, &domain))
		info->pci = (uint64_t)domain << 16 | (bdf & 0xffff);
	info->flags = RASHPA_GPU_EXPORTS | RASHPA_GPU_HOST;
	r->gpu.longest = info->memory_bytes;
}

static int take_agent(struct rocm *r, unsigned int number)
{
	int result = r->init();

	if (result)
		return fail(EOPNOTSUPP, "ROCm does not begin (%#x): load amdgpu, and be of the group render",
			    result);
	r->begun = true;
	r->wanted = number;
	r->agents(look_at_agent, r);
	if (!r->found)
		return fail(ENODEV, "rocm:%u: ROCm has %u GPUs on this machine", number, r->seen);
	r->pools(r->agent, look_at_pool, r);
	describe(r);
	return r->has_pool ? 0 : fail(EOPNOTSUPP, "%s: it has no local memory",
				      r->gpu.info.name);
}

static void rocm_close(struct rashpa_gpu *gpu)
{
	struct rocm *r = (struct rocm *)gpu;

	if (r->begun)
		r->shut_down();
	free(r);
}

static int rocm_open(unsigned int number, struct rashpa_gpu **gpu)
{
	struct rocm *r = calloc(1, sizeof(*r));
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	int error;

	if (!r)
		return fail(ENOMEM, "no memory for a GPU");
	r->gpu.way = &gpu_rocm;
	if (!library)
		error = fail(EOPNOTSUPP, "there is no ROCm on this machine (" LIBRARY ", of libhsa-runtime64-1): %s",
			     dlerror());
	else if (!library_load(library, r, needed, ARRAY_SIZE(needed)))
		error = fail(EOPNOTSUPP, LIBRARY " lacks functions: install ROCm 5.6 or later");
	else
		error = take_agent(r, number);
	if (error)
		rocm_close(&r->gpu);
	else
		*gpu = &r->gpu;
	return error;
}

static void rocm_free(struct rashpa_gpu_memory *memory)
{
	struct rocm_memory *m = (struct rocm_memory *)memory;
	struct rocm *r = (struct rocm *)memory->gpu;

	if (m->locked)
		r->unlock(m->locked);
	if (m->address)
		r->free(m->address);
	free(m);
}

static int fill_in(struct rocm *r, struct rocm_memory *m, uint64_t length)
{
	uint64_t offset = 0;
	int result = r->alloc(r->pool, length, 0, &m->address);

	if (result)
		return rocm_fail(r, "memory", result);
	m->memory.address = (uintptr_t)m->address;
	result = r->export(m->address, length, &m->memory.dmabuf, &offset);
	if (result)
		return rocm_fail(r, "a dma-buf", result);
	return !offset ? 0 : fail(EIO, "%s: its driver puts the memory at byte %" PRIu64
				  " in the dma-buf; other drivers expect it at byte 0",
				  r->gpu.info.name, offset);
}

static struct rocm_memory *new_memory(struct rocm *r)
{
	struct rocm_memory *m = calloc(1, sizeof(*m));

	if (m)
		m->memory = (struct rashpa_gpu_memory) { .gpu = &r->gpu, .dmabuf = -1 };
	return m;
}

static int rocm_memory(struct rashpa_gpu *gpu, int dmabuf, uint64_t length,
		       struct rashpa_gpu_memory **memory)
{
	struct rocm *r = (struct rocm *)gpu;
	struct rocm_memory *m = new_memory(r);
	const uint64_t page = sysconf(_SC_PAGESIZE);
	int error;

	(void)dmabuf;	/* it imports none */
	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	error = fill_in(r, m, (length + page - 1) / page * page);
	if (error)
		rashpa_gpu_free(&m->memory);
	else
		*memory = &m->memory;
	return error;
}

static int rocm_register(struct rashpa_gpu *gpu, void *base, uint64_t length, uint32_t flags,
			 struct rashpa_gpu_memory **memory)
{
	struct rocm *r = (struct rocm *)gpu;
	struct rocm_memory *m;
	void *address = NULL;
	int result;

	if (flags & RASHPA_GPU_WINDOW)
		return fail(EOPNOTSUPP, "%s: ROCm locks memory, and no windows of boards",
			    gpu->info.name);
	m = new_memory(r);
	if (!m)
		return fail(ENOMEM, "no memory for a GPU's memory");
	result = r->lock(base, length, &r->agent, 1, &address);
	if (result) {
		rashpa_gpu_free(&m->memory);
		return rocm_fail(r, "memory of the host", result);
	}
	m->locked = base;
	m->memory.base = base;
	m->memory.address = (uintptr_t)address;
	*memory = &m->memory;
	return 0;
}

const struct gpu_way gpu_rocm = {
	.name = "rocm", .open = rocm_open, .close = rocm_close, .memory = rocm_memory,
	.register_host = rocm_register, .free = rocm_free,
};
