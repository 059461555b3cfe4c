// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: the calls ALLOC and QUERY.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "memory/memory.h"

static struct rashpa_buffer *rashpa_buffer_alloc(struct rashpa_call *call,
						 const struct rashpa_alloc *alloc)
{
	const bool lock = alloc->head.flags & RASHPA_ALLOC_LOCK;
	struct rashpa_want want = {
		.length = PAGE_ALIGN(alloc->length),
		.alignment = max_t(u64, alloc->alignment, PAGE_SIZE),
		.last = alloc->dma_bits ? DMA_BIT_MASK(alloc->dma_bits) : U64_MAX,
		.node = alloc->head.flags & RASHPA_ALLOC_NODE ? alloc->node : NUMA_NO_NODE,
		/* a GPU runtime registers lock memory by address */
		.backend = lock ? RASHPA_BACKEND_CONTIG : alloc->backend,
		.cache = alloc->cache ?: RASHPA_CACHE_CACHED,
		.memfd = alloc->memfd,
	};
	struct rashpa_buffer *buffer;
	int err;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	kref_init(&buffer->ref);
	mutex_init(&buffer->lock);
	rashpa_memory_setup(&buffer->memory, &rashpa_buffer_ops);
	buffer->memory.length = want.length;
	buffer->lock_memory = lock;
	memcpy(buffer->name, alloc->name, sizeof(buffer->name));
	buffer->memory.name = buffer->name;
	err = rashpa_charge(call, &buffer->charge, RASHPA_RESOURCE_MEMORY, RASHPA_NO_DEVICE, 0,
			    want.length);
	if (err)
		goto out_free;
	rashpa_charge_label(&buffer->charge, 0, buffer->name);
	want.turn = rashpa_charge_turn(&buffer->charge);
	err = rashpa_pages_alloc(call, &buffer->pages, &want);
	if (err)
		goto out_uncharge;
	/* only now is its size known: whole blocks, or a power of two of pages */
	err = rashpa_charge_more(call, &buffer->charge,
				 rashpa_pages_size(&buffer->pages) - want.length);
	if (err)
		goto out_pages;
	buffer->extent = (struct rashpa_extent) { buffer->pages.first, want.length >> PAGE_SHIFT };
	buffer->memory.extents = buffer->pages.extents ?: &buffer->extent;
	buffer->memory.n_extents = buffer->pages.n_extents ?: 1;
	return buffer;

out_pages:
	rashpa_pages_drop(&buffer->pages);
out_uncharge:
	rashpa_uncharge(&buffer->charge);
out_free:
	kfree(buffer);
	return ERR_PTR(err);
}

static int rashpa_alloc_check_name(struct rashpa_call *call, const struct rashpa_alloc *alloc)
{
	bool named = memchr_inv(alloc->name, 0, sizeof(alloc->name));
	int err;

	if (named) {
		err = rashpa_check_name(call, alloc->name, sizeof(alloc->name));
		if (err)
			return err;
	} else if (alloc->head.flags & (RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE)) {
		return rashpa_fail(call, -EINVAL,
				   "a lease and a mode are for named buffers: no other process can open this one");
	}
	if (alloc->mode & ~0666)
		return rashpa_fail(call, -EINVAL, "mode 0%o is not 0 to 0666", alloc->mode);
	if (alloc->mode && !(alloc->head.flags & RASHPA_ALLOC_MODE))
		return rashpa_fail(call, -EINVAL,
				   "a mode is given without the flag RASHPA_ALLOC_MODE");
	return 0;
}

/* Lock memory: slots of words that hardware writes and software waits for. */
static int rashpa_alloc_check_lock(struct rashpa_call *call, const struct rashpa_alloc *alloc)
{
	if (!IS_ALIGNED(alloc->length, RASHPA_LOCK_SLOT) ||
	    alloc->length / RASHPA_LOCK_SLOT > RASHPA_LOCK_SLOTS_MAX)
		return rashpa_fail(call, -EINVAL,
				   "%llu bytes of lock memory: must be 1 to %u slots of %u bytes",
				   alloc->length, RASHPA_LOCK_SLOTS_MAX, RASHPA_LOCK_SLOT);
	if (alloc->backend == RASHPA_BACKEND_CMA || alloc->backend == RASHPA_BACKEND_HUGE)
		return rashpa_fail(call, -EINVAL, "lock memory is never of CMA or huge pages");
	if (alloc->cache > RASHPA_CACHE_CACHED)
		return rashpa_fail(call, -EINVAL, "lock memory is always cached");
	return 0;
}

static int rashpa_check_node(struct rashpa_call *call, bool given, u32 node)
{
	if (given && (node >= MAX_NUMNODES || !node_online(node)))
		return rashpa_fail(call, -EINVAL, "NUMA node %u does not exist", node);
	if (!given && node)
		return rashpa_fail(call, -EINVAL, "a node is given without its flag");
	return 0;
}

static int rashpa_alloc_check(struct rashpa_call *call, const struct rashpa_alloc *alloc)
{
	int err;

	if (alloc->memfd && alloc->backend != RASHPA_BACKEND_HUGE)
		return rashpa_fail(call, -EINVAL, "memfd is given without RASHPA_BACKEND_HUGE");
	if (!alloc->length)
		return rashpa_fail(call, -EINVAL, "the length is zero");
	if (alloc->length > LLONG_MAX - PAGE_SIZE)
		return rashpa_fail(call, -EINVAL, "the length 0x%llx is too large", alloc->length);
	if (alloc->alignment && (!is_power_of_2(alloc->alignment) ||
				 alloc->alignment > SZ_1G))
		return rashpa_fail(call, -EINVAL,
				   "the alignment 0x%llx is not a power of two up to 1 GiB",
				   alloc->alignment);
	if (alloc->backend > RASHPA_BACKEND_HUGE)
		return rashpa_fail(call, -EINVAL, "backend %u is not defined", alloc->backend);
	if (alloc->cache > RASHPA_CACHE_UC)
		return rashpa_fail(call, -EINVAL, "cache mode %u is not defined", alloc->cache);
	if (alloc->cache > RASHPA_CACHE_CACHED && alloc->backend == RASHPA_BACKEND_HUGE)
		return rashpa_fail(call, -EOPNOTSUPP, "huge pages are always cached");
	err = rashpa_check_node(call, alloc->head.flags & RASHPA_ALLOC_NODE, alloc->node);
	if (err)
		return err;
	if (alloc->dma_bits && (alloc->dma_bits < 24 || alloc->dma_bits > 64))
		return rashpa_fail(call, -EINVAL, "dma_bits %u: must be 24 to 64, or 0 for any",
				   alloc->dma_bits);
	if (alloc->head.flags & RASHPA_ALLOC_LOCK) {
		err = rashpa_alloc_check_lock(call, alloc);
		if (err)
			return err;
	}
	return rashpa_alloc_check_name(call, alloc);
}

/* The dma-buf of a new buffer becomes the new file of @call. */
static int rashpa_alloc_export(struct rashpa_call *call, struct rashpa_buffer *buffer,
			       const struct rashpa_alloc *alloc)
{
	struct rashpa_lease *lease;
	int err;

	if (!buffer->name[0])
		return rashpa_export(call, &buffer->memory, &buffer->ref, rashpa_buffer_free,
				     O_RDWR);
	lease = rashpa_lease_new(buffer, alloc->head.flags & RASHPA_ALLOC_EXCLUSIVE);
	if (IS_ERR(lease))
		return PTR_ERR(lease);
	err = rashpa_lease_export(call, lease, O_RDWR);
	rashpa_lease_put(lease);
	return err;
}

int rashpa_ioc_alloc(struct rashpa_call *call, void *arg)
{
	struct rashpa_alloc *alloc = arg;
	struct rashpa_named *named = NULL;
	struct rashpa_buffer *buffer;
	int err;

	err = rashpa_alloc_check(call, alloc);
	if (err)
		return err;
	rashpa_buffers_sweep();
	/* first, so that a name that is taken costs no search */
	if (alloc->name[0])
		named = rashpa_named_new(call, alloc);
	if (IS_ERR(named))
		return PTR_ERR(named);
	buffer = rashpa_buffer_alloc(call, alloc);
	if (IS_ERR(buffer)) {
		err = PTR_ERR(buffer);
		goto out_name;
	}
	err = rashpa_alloc_export(call, buffer, alloc);
	if (!err && named)
		err = rashpa_named_publish(call, named, buffer);
	if (!err) {
		alloc->out_fd = call->fd;
		alloc->out_length = buffer->memory.length;
		alloc->out_segments = buffer->memory.n_extents;
		alloc->out_backend = buffer->pages.backend;
		alloc->out_node = page_to_nid(buffer->pages.first);
	}
	/* the dma-buf has its own reference, and so has the name */
	kref_put(&buffer->ref, rashpa_buffer_free);
out_name:
	if (err && named)
		rashpa_named_drop(named);
	return err;
}

int rashpa_ioc_buffers_limit(struct rashpa_call *call, void *arg)
{
	rashpa_buffers_sweep();
	return rashpa_ioc_limit(call, arg);
}

int rashpa_ioc_query(struct rashpa_call *call, void *arg)
{
	struct rashpa_query *query = arg;
	const bool given = query->head.flags & RASHPA_QUERY_NODE;
	int err;

	if (query->backend > RASHPA_BACKEND_CONTIG)
		return rashpa_fail(call, -EINVAL,
				   "backend %u is not defined, or is HUGE: /sys/kernel/mm/hugepages has the pools",
				   query->backend);
	err = rashpa_check_node(call, given, query->node);
	return err ?: rashpa_pages_query(call, query, given ? query->node : NUMA_NO_NODE);
}
