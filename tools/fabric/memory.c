// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory for messages, and pools of buffers in it. */
#include "fabric/internal.h"
#include "lib/sized.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rashpa-gpu.h>

#define LINE	64	/* bytes of a cache line */

static uint64_t round_up(uint64_t bytes, uint64_t to)
{
	return (bytes + to - 1) / to * to;
}

void *fabric_memory(uint64_t elements, size_t size)
{
	uint64_t bytes;
	void *at;

	if (__builtin_mul_overflow(elements, size, &bytes))
		return NULL;
	bytes = (bytes + 63) / 64 * 64;
	at = aligned_alloc(64, bytes);
	return at ? memset(at, 0, bytes) : NULL;
}

/* --- arenas --- */

struct rashpa_arena *arena_of(struct rashpa_fabric *f, const void *at, uint64_t length)
{
	for (uint32_t i = 0; i < f->arenas; i++) {
		if (arena_has(&f->arena[i], at, length))
			return &f->arena[i];
	}
	return NULL;
}

static void release(struct rashpa_arena *a)
{
	if (a->mapped)
		munmap(a->base, a->length);
	rashpa_gpu_free(a->memory);
	rashpa_gpu_close(a->gpu);
	if (a->dmabuf >= 0 && !a->gpu)
		close(a->dmabuf);
	if (a->fd >= 0)
		close(a->fd);
}

static int add(struct rashpa_fabric *f, struct rashpa_arena *new, struct rashpa_arena **arena)
{
	struct rashpa_arena *a = &f->arena[f->arenas];
	int error = 0;

	new->fabric = f;
	*a = *new;
	if (f->connected)
		error = fabric_fail(EISCONN, "it is too late for an arena: add it before rashpa_fabric_connect()");
	else if (f->arenas == ARENAS)
		error = fabric_fail(EMFILE, "a process has %d arenas at most: use fewer", ARENAS);
	else if (f->transport->enrol)
		error = f->transport->enrol(f, a);
	if (error) {
		release(new);
		return error;
	}
	if (!f->arenas)
		f->memory_node = a->node;
	count(&f->registrations, 1);
	f->arenas++;
	*arena = a;
	return 0;
}

/* NUMA node of a page that is present; -1: not known. */
static int32_t node_of(void *page)
{
	int node = -1;

	return syscall(SYS_get_mempolicy, &node, NULL, 0, page, MPOL_F_NODE | MPOL_F_ADDR) ? -1 :
	       node;
}

int rashpa_arena_allocate(struct rashpa_fabric *f, uint64_t length, struct rashpa_arena **arena)
{
	struct rashpa_arena a = { .length = round_up(length, PAGE), .fd = -1, .dmabuf = -1, .mapped = true };
	void *base = MAP_FAILED;

	if (!length || length > INT64_MAX)
		return fabric_fail(EINVAL, "an arena cannot have %llu bytes",
				   (unsigned long long)length);
	a.fd = memfd_create("rashpa-builder", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	/* sealed, as a peer rejects a mapping that could become shorter */
	if (a.fd >= 0 && !fallocate(a.fd, 0, 0, a.length) &&
	    !fcntl(a.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		base = mmap(NULL, a.length, PROT_READ | PROT_WRITE, MAP_SHARED, a.fd, 0);
	if (base == MAP_FAILED) {
		const int error = errno;

		if (a.fd >= 0)
			close(a.fd);
		return fabric_fail(error, "no memory of %llu bytes: %s",
				   (unsigned long long)a.length, strerror(error));
	}
	a.base = base;
	a.node = node_of(base);
	return add(f, &a, arena);
}

int rashpa_arena_buffer(struct rashpa_fabric *f, const char *name, struct rashpa_arena **arena)
{
	struct rashpa_info info = { .fd = -1 };
	struct rashpa_arena a = { .dmabuf = -1, .mapped = true };
	void *base;
	int error;

	a.fd = rashpa_buffer_open(name, O_RDWR);
	if (a.fd < 0)
		return fabric_fail(-a.fd, "%s", rashpa_reason());
	error = rashpa_memory_get_info(a.fd, &info);
	if (!error)
		error = rashpa_mmap(a.fd, 0, info.out_length, PROT_READ | PROT_WRITE, &base);
	if (error) {
		close(a.fd);
		return fabric_fail(-error, "buffer %s: %s", name, rashpa_reason());
	}
	a.base = base;
	a.length = info.out_length;
	a.node = info.out_node;
	a.dmabuf = rashpa_buffer_dmabuf(a.fd);
	return add(f, &a, arena);
}

int rashpa_arena_gpu(struct rashpa_fabric *f, const char *name, uint64_t length,
		     struct rashpa_arena **arena)
{
	struct rashpa_arena a = { .length = round_up(length, PAGE), .fd = -1, .dmabuf = -1, .node = -1 };
	int error = rashpa_gpu_open(name, &a.gpu);

	if (!error)
		error = rashpa_gpu_alloc(a.gpu, a.length, &a.memory);
	if (error) {
		release(&a);
		return fabric_fail(-error, "%s", rashpa_reason());
	}
	a.base = rashpa_gpu_base(a.memory);
	a.dmabuf = rashpa_gpu_dmabuf(a.memory);
	if (!a.base) {
		release(&a);
		return fabric_fail(EOPNOTSUPP, "%s: its driver does not map its memory for processors, which read messages",
				   name);
	}
	return add(f, &a, arena);
}

int rashpa_arena_bring(struct rashpa_fabric *f, void *base, uint64_t length,
		       struct rashpa_arena **arena)
{
	struct rashpa_arena a = { .base = base, .length = length, .fd = -1, .dmabuf = -1, .node = -1 };

	if (!base || !length || length > UINTPTR_MAX - (uintptr_t)base)
		return fabric_fail(EINVAL, "an arena needs an address and a length");
	a.node = node_of(base);
	return add(f, &a, arena);
}

void *rashpa_arena_base(const struct rashpa_arena *a)
{
	return a->base;
}

uint64_t rashpa_arena_length(const struct rashpa_arena *a)
{
	return a->length;
}

/* --- pools --- */

/* Distance between buffers: whole pages for buffers of at least a page. */
static uint64_t stride_of(uint32_t bytes)
{
	return round_up(bytes, bytes >= PAGE ? PAGE : LINE);
}

uint64_t rashpa_pool_room(uint32_t bytes, uint32_t buffers)
{
	return round_up(stride_of(bytes) * buffers, PAGE);
}

static int make(struct rashpa_pool *p)
{
	const struct rashpa_fabric *f = p->arena->fabric;
	int error = ring_open(&p->free, p->buffers, &p->bell);

	atomic_init(&p->bell.over, atomic_load(&f->event_bell.over));
	p->taken = calloc(p->buffers, sizeof(*p->taken));
	if (error || !p->taken)
		return fabric_fail(ENOMEM, "no memory");
	for (uint32_t i = 0; i < p->buffers; i++)
		ring_push(&p->free, i);
	atomic_init(&p->low, p->buffers);
	return 0;
}

static void destroy(struct rashpa_pool *p)
{
	ring_close(&p->free);
	free(p->taken);
	free(p);
}

int rashpa_pool_open(struct rashpa_arena *a, uint32_t bytes, uint32_t buffers,
		     struct rashpa_pool **pool)
{
	const uint64_t room = rashpa_pool_room(bytes, buffers);
	const uint64_t at = a->used + round_up((uintptr_t)a->base + a->used, PAGE) -
			    ((uintptr_t)a->base + a->used);
	struct rashpa_pool *p;
	int error;

	if (!bytes || bytes > RASHPA_FABRIC_MESSAGE || !buffers || buffers > 1u << 24)
		return fabric_fail(EINVAL, "a pool cannot have %u buffers of %u bytes", buffers,
				   bytes);
	if (at > a->length || room > a->length - at)
		return fabric_fail(ENOSPC, "%u buffers of %u bytes need %llu bytes, but the arena has %llu left: %llu buffers fit",
				   buffers, bytes, (unsigned long long)room,
				   at < a->length ? (unsigned long long)(a->length - at) : 0,
				   at < a->length ? (unsigned long long)((a->length - at) /
									 stride_of(bytes)) : 0);
	p = fabric_memory(1, sizeof(*p));
	if (!p)
		return fabric_fail(ENOMEM, "no memory");
	p->arena = a;
	p->base = a->base + at;
	p->bytes = bytes;
	p->stride = stride_of(bytes);
	p->buffers = buffers;
	error = make(p);
	if (error) {
		destroy(p);
		return error;
	}
	a->used = at + room;
	p->next = a->fabric->pools;
	a->fabric->pools = p;
	*pool = p;
	return 0;
}

void *rashpa_pool_take(struct rashpa_pool *p, int64_t timeout_ns)
{
	uint32_t i, left;

	if (!ring_pop(&p->free, &i)) {
		atomic_fetch_add_explicit(&p->empty, 1, memory_order_relaxed);
		atomic_store_explicit(&p->low, 0, memory_order_relaxed);
		if (!timeout_ns || !ring_wait(&p->free, &i, timeout_ns))
			return NULL;
	}
	left = ring_fill(&p->free);
	if (left < atomic_load_explicit(&p->low, memory_order_relaxed))
		atomic_store_explicit(&p->low, left, memory_order_relaxed);
	atomic_store_explicit(&p->taken[i], true, memory_order_relaxed);
	return p->base + (uint64_t)i * p->stride;
}

int rashpa_pool_give(struct rashpa_pool *p, void *buffer)
{
	const uint64_t offset = (uintptr_t)buffer - (uintptr_t)p->base;
	const uint64_t i = offset / p->stride;

	if ((uintptr_t)buffer < (uintptr_t)p->base || i >= p->buffers || offset % p->stride)
		return fabric_fail(EINVAL, "the buffer is not from this pool");
	if (!atomic_exchange(&p->taken[i], false))
		return fabric_fail(EALREADY, "a buffer was given back twice");
	ring_push(&p->free, i);
	return 0;
}

uint32_t rashpa_pool_bytes(const struct rashpa_pool *p)
{
	return p->bytes;
}

void rashpa_pool_count_sized(const struct rashpa_pool *p, struct rashpa_pool_counts *counts,
			     size_t size)
{
	const struct rashpa_pool_counts ours = {
		.buffers = p->buffers,
		.free = ring_fill(&p->free),
		.low = atomic_load_explicit(&p->low, memory_order_relaxed),
		.empty = atomic_load_explicit(&p->empty, memory_order_relaxed),
	};

	sized_copy(counts, size, &ours, sizeof(ours));
}

void arenas_close(struct rashpa_fabric *f)
{
	struct rashpa_pool *next;

	for (struct rashpa_pool *p = f->pools; p; p = next) {
		next = p->next;
		destroy(p);
	}
	for (uint32_t i = 0; i < f->arenas; i++)
		release(&f->arena[i]);
}
