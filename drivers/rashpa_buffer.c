// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: buffers: memory that this driver allocates.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "rashpa_memory.h"

/* ------------------------------------------------------------- life ----- */

static void rashpa_buffer_free(struct kref *ref)
{
	struct rashpa_buffer *buffer = container_of(ref, struct rashpa_buffer, ref);

	rashpa_pages_free(&buffer->pages);
	rashpa_uncharge(&buffer->charge);
	mutex_destroy(&buffer->lock);
	kfree(buffer);
}

void rashpa_buffer_put(struct rashpa_buffer *buffer)
{
	kref_put(&buffer->ref, rashpa_buffer_free);
}

static struct rashpa_buffer *rashpa_buffer_alloc(struct rashpa_call *call,
						 const struct rashpa_alloc *alloc)
{
	struct rashpa_want want = {
		.length = PAGE_ALIGN(alloc->length),
		.alignment = max_t(u64, alloc->alignment, PAGE_SIZE),
		.node = alloc->head.flags & RASHPA_ALLOC_NODE ? alloc->node : NUMA_NO_NODE,
		.backend = alloc->backend,
		.cache = alloc->cache ?: RASHPA_CACHE_CACHED,
	};
	struct rashpa_buffer *buffer;
	int err;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	kref_init(&buffer->ref);
	mutex_init(&buffer->lock);
	rashpa_importers_init(&buffer->importers);
	buffer->length = want.length;
	err = rashpa_charge(call, &buffer->charge, RASHPA_RESOURCE_MEMORY, RASHPA_NO_DEVICE, 0,
			    buffer->length);
	if (err)
		goto out_free;
	err = rashpa_pages_alloc(call, &buffer->pages, &want);
	if (err)
		goto out_uncharge;
	/* what is held is known only now: whole blocks, or a power of two of pages */
	err = rashpa_charge_more(call, &buffer->charge,
				 rashpa_pages_size(&buffer->pages) - buffer->length);
	if (err)
		goto out_pages;
	buffer->extent.first = buffer->pages.first;
	buffer->extent.count = buffer->length >> PAGE_SHIFT;
	return buffer;

out_pages:
	rashpa_pages_free(&buffer->pages);
out_uncharge:
	rashpa_uncharge(&buffer->charge);
out_free:
	kfree(buffer);
	return ERR_PTR(err);
}

/* ------------------------------------------------------------ ioctls ---- */

static int rashpa_alloc_check_name(struct rashpa_call *call,
				   const struct rashpa_alloc *alloc)
{
	bool named = memchr_inv(alloc->name, 0, sizeof(alloc->name));
	int err;

	if (named) {
		err = rashpa_check_name(call, alloc->name, sizeof(alloc->name));
		if (err)
			return err;
	} else if (alloc->head.flags & (RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE)) {
		return rashpa_fail(call, -EINVAL,
				   "a lease and a mode are for named buffers: nobody else can open this one");
	}
	if (alloc->mode & ~0666)
		return rashpa_fail(call, -EINVAL, "mode 0%o is not 0 to 0666", alloc->mode);
	if (alloc->mode && !(alloc->head.flags & RASHPA_ALLOC_MODE))
		return rashpa_fail(call, -EINVAL,
				   "a mode is given without the flag RASHPA_ALLOC_MODE");
	return 0;
}

static int rashpa_alloc_check(struct rashpa_call *call,
			      const struct rashpa_alloc *alloc)
{
	if (alloc->__reserved || alloc->__reserved2)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (!alloc->length)
		return rashpa_fail(call, -EINVAL, "the length is zero");
	if (alloc->length > LLONG_MAX - PAGE_SIZE)
		return rashpa_fail(call, -EINVAL, "the length 0x%llx is too large",
				   alloc->length);
	if (alloc->alignment && (!is_power_of_2(alloc->alignment) ||
				 alloc->alignment > SZ_1G))
		return rashpa_fail(call, -EINVAL,
				   "the alignment 0x%llx is not a power of two up to 1 GiB",
				   alloc->alignment);
	if (alloc->backend > RASHPA_BACKEND_CONTIG)
		return rashpa_fail(call, -EINVAL, "backend %u is not defined",
				   alloc->backend);
	if (alloc->cache > RASHPA_CACHE_UC)
		return rashpa_fail(call, -EINVAL, "cache mode %u is not defined",
				   alloc->cache);
	if (alloc->head.flags & RASHPA_ALLOC_NODE) {
		if (alloc->node >= MAX_NUMNODES || !node_online(alloc->node))
			return rashpa_fail(call, -EINVAL, "NUMA node %u does not exist",
					   alloc->node);
	} else if (alloc->node) {
		return rashpa_fail(call, -EINVAL,
				   "a node is given without the flag RASHPA_ALLOC_NODE");
	}
	return rashpa_alloc_check_name(call, alloc);
}

/* Whose it is, until PERMIT: the maker's, open to those who could have made it. */
static void rashpa_alloc_owner(struct rashpa_call *call, struct rashpa_buffer *buffer,
			       const struct rashpa_alloc *alloc)
{
	const struct inode *inode = file_inode(call->file);

	memcpy(buffer->name, alloc->name, sizeof(buffer->name));
	rashpa_charge_tell(&buffer->charge, 0, buffer->name);
	buffer->uid = current_fsuid();
	buffer->gid = inode->i_gid;
	buffer->mode = alloc->head.flags & RASHPA_ALLOC_MODE ? alloc->mode :
							       inode->i_mode & 0666;
}

/* A name that is not to be had. Asked again when it is given: this spares work in vain. */
static int rashpa_buffer_name_free(struct rashpa_call *call, const char *name)
{
	if (name[0] && rashpa_name_taken(name))
		return rashpa_fail(call, -EEXIST,
				   "a buffer named %s exists: remove it first, or open it", name);
	return 0;
}

/* Others find it from now on, unless the answer to this call cannot be stored. */
static int rashpa_buffer_publish(struct rashpa_call *call, struct rashpa_buffer *buffer)
{
	int err;

	if (!buffer->name[0])
		return 0;
	err = rashpa_named_add(call, buffer);
	if (err)
		return err;
	call->undo = rashpa_named_undo;
	call->undo_data = buffer;
	return 0;
}

/* The dma-buf of a new buffer becomes the new file of @call. */
static int rashpa_alloc_export(struct rashpa_call *call, struct rashpa_buffer *buffer,
			       const struct rashpa_alloc *alloc)
{
	struct rashpa_lease *lease = NULL;
	struct dma_buf *dmabuf;

	if (buffer->name[0]) {
		lease = rashpa_lease_new(call, buffer,
					 alloc->head.flags & RASHPA_ALLOC_EXCLUSIVE);
		if (IS_ERR(lease))
			return PTR_ERR(lease);
	}
	dmabuf = rashpa_export_buffer(buffer, lease, O_RDWR);
	if (lease)
		rashpa_lease_put(lease);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	call->new_file = dmabuf->file;
	return 0;
}

int rashpa_ioc_alloc(struct rashpa_call *call, void *arg)
{
	struct rashpa_alloc *alloc = arg;
	struct rashpa_buffer *buffer;
	int err;

	err = rashpa_alloc_check(call, alloc);
	if (err)
		return err;
	err = rashpa_buffer_name_free(call, alloc->name);
	if (err)
		return err;
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	buffer = rashpa_buffer_alloc(call, alloc);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	rashpa_alloc_owner(call, buffer, alloc);
	err = rashpa_alloc_export(call, buffer, alloc);
	if (err)
		goto out;
	err = rashpa_buffer_publish(call, buffer);
	if (err)
		goto out;
	alloc->out_fd = call->fd;
	alloc->out_length = buffer->length;
	alloc->out_segments = 1;
	alloc->out_backend = buffer->pages.backend;
	alloc->out_node = buffer->pages.node;
out:
	/* the dma-buf has its own reference, and so has the name */
	rashpa_buffer_put(buffer);
	return err;
}

/**
 * rashpa_lock_memory() - memory for lock slots becomes the new file of @call
 * @call: the ioctl on a function; its fd is reserved
 * @lock: what is asked for; out_fd and out_length are set
 * @node: NUMA node, or NUMA_NO_NODE
 *
 * Never from CMA: a GPU runtime registers it by address.
 *
 * Return: 0 or a negative errno.
 */
int rashpa_lock_memory(struct rashpa_call *call, struct rashpa_lock *lock, int node)
{
	struct rashpa_progress progress = {};
	struct rashpa_alloc alloc = {
		.length = (u64)lock->slots * RASHPA_LOCK_SLOT,
		.backend = RASHPA_BACKEND_CONTIG,
	};
	void *device = call->obj;
	struct rashpa_buffer *buffer;
	int err;

	memcpy(alloc.name, lock->name, sizeof(alloc.name));
	err = rashpa_alloc_check_name(call, &alloc);
	if (!err)
		err = rashpa_buffer_name_free(call, alloc.name);
	if (err)
		return err;
	if (node != NUMA_NO_NODE) {
		alloc.head.flags = RASHPA_ALLOC_NODE;
		alloc.node = node;
	}
	call->obj = &progress;
	buffer = rashpa_buffer_alloc(call, &alloc);
	call->obj = device;
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	buffer->lock_memory = true;
	rashpa_alloc_owner(call, buffer, &alloc);
	err = rashpa_alloc_export(call, buffer, &alloc);
	if (!err)
		err = rashpa_buffer_publish(call, buffer);
	if (!err) {
		lock->out_fd = call->fd;
		lock->out_length = buffer->length;
	}
	/* the dma-buf has its own reference, and so has the name */
	rashpa_buffer_put(buffer);
	return err;
}

static void rashpa_progress_query(const struct rashpa_progress *progress,
				  struct rashpa_query *query)
{
	query->out_stage = READ_ONCE(progress->stage);
	query->out_done = READ_ONCE(progress->done);
	query->out_todo = READ_ONCE(progress->todo);
}

int rashpa_ioc_query(struct rashpa_call *call, void *arg)
{
	struct rashpa_query *query = arg;
	int node = NUMA_NO_NODE;
	int err;

	if (query->__reserved || query->__reserved2)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (query->backend > RASHPA_BACKEND_CONTIG)
		return rashpa_fail(call, -EINVAL, "backend %u is not defined",
				   query->backend);
	if (query->head.flags & RASHPA_QUERY_TRY && !(call->file->f_mode & FMODE_WRITE))
		return rashpa_fail(call, -EPERM,
				   "to try needs the node to be open for writing: it moves the memory of others");
	if (query->head.flags & RASHPA_QUERY_NODE) {
		if (query->node >= MAX_NUMNODES || !node_online(query->node))
			return rashpa_fail(call, -EINVAL, "NUMA node %u does not exist",
					   query->node);
		node = query->node;
	} else if (query->node) {
		return rashpa_fail(call, -EINVAL,
				   "a node is given without the flag RASHPA_QUERY_NODE");
	}
	if (query->head.flags & RASHPA_QUERY_USAGE &&
	    (query->head.flags != RASHPA_QUERY_USAGE || query->backend))
		return rashpa_fail(call, -EINVAL,
				   "RASHPA_QUERY_USAGE is about all buffers: no other flag, backend AUTO");
	err = rashpa_pages_query(call, query, node);
	if (err)
		return err;
	rashpa_account_query(query);
	rashpa_progress_query(call->obj, query);
	return 0;
}

/**
 * rashpa_buffer_info() - what is it
 * @buffer: the buffer
 * @info: cleared; filled in
 */
void rashpa_buffer_info(struct rashpa_buffer *buffer, struct rashpa_info *info)
{
	info->out_kind = buffer->lock_memory ? RASHPA_KIND_LOCK : RASHPA_KIND_BUFFER;
	info->out_length = buffer->length;
	info->out_backend = buffer->pages.backend;
	info->out_cache = buffer->pages.cache;
	info->out_node = buffer->pages.node;
	info->out_segments = 1;
	info->out_importers = atomic_read(&buffer->importers.count);
	info->out_mappings = atomic_read(&buffer->mappings);
	info->out_page_size = PAGE_SIZE << buffer->pages.order;
	if (rashpa_pages_pinnable(&buffer->pages))
		info->out_flags |= RASHPA_INFO_REGISTRABLE;
	if (!buffer->name[0])
		return;
	memcpy(info->out_name, buffer->name, sizeof(info->out_name));
	mutex_lock(&buffer->lock);
	info->out_uid = from_kuid_munged(current_user_ns(), buffer->uid);
	info->out_gid = from_kgid_munged(current_user_ns(), buffer->gid);
	info->out_mode = buffer->mode;
	info->out_leases = buffer->leases;
	if (buffer->exclusive)
		info->out_flags |= RASHPA_INFO_EXCLUSIVE;
	mutex_unlock(&buffer->lock);
}

/**
 * rashpa_info_clear() - begin an answer
 * @info: outputs are ignored on input: what came in is not sent back
 */
void rashpa_info_clear(struct rashpa_info *info)
{
	struct rashpa_head head = info->head;
	s32 fd = info->fd;

	memset(info, 0, sizeof(*info));
	info->head = head;
	info->fd = fd;
}

int rashpa_ioc_buffer_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_lease *lease = call->obj;
	struct rashpa_info *info = arg;

	if (info->fd != -1)
		return rashpa_fail(call, -EINVAL, "fd must be -1 on a buffer's own node");
	rashpa_info_clear(info);
	rashpa_buffer_info(lease->buffer, info);
	return 0;
}
