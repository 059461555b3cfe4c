// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: buffers: names, accounting.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "rashpa.h"
#include "rashpa_compat.h"

static unsigned int limit_mib;
module_param(limit_mib, uint, 0644);
MODULE_PARM_DESC(limit_mib, "limit for all buffers together in MiB, 0 for none");

static atomic64_t rashpa_allocated = ATOMIC64_INIT(0);

/**
 * struct rashpa_named - a name, its node, and the buffer it keeps alive
 * @dev: class device; releases the reference to @buffer with its own last one
 * @cdev: /dev/rashpa/buffer/NAME
 * @buffer: one reference
 * @entry: in rashpa_names
 */
struct rashpa_named {
	struct device dev;
	struct cdev cdev;
	struct rashpa_buffer *buffer;
	struct list_head entry;
};

static LIST_HEAD(rashpa_names);
static DEFINE_MUTEX(rashpa_names_lock);	/* protects rashpa_names */

/* ------------------------------------------------------- accounting ----- */

u64 rashpa_buffers_allocated(void)
{
	return atomic64_read(&rashpa_allocated);
}

u64 rashpa_buffers_limit(void)
{
	return (u64)READ_ONCE(limit_mib) << 20;
}

static int rashpa_charge(struct rashpa_call *call, u64 bytes)
{
	u64 limit = rashpa_buffers_limit();
	u64 now = atomic64_add_return(bytes, &rashpa_allocated);

	if (limit && now > limit) {
		atomic64_sub(bytes, &rashpa_allocated);
		return rashpa_fail(call, -EDQUOT,
				   "%llu MiB would exceed the limit of %llu MiB (%llu in use): raise the module parameter limit_mib",
				   bytes >> 20, limit >> 20, (now - bytes) >> 20);
	}
	return 0;
}

/* ------------------------------------------------------------- life ----- */

static void rashpa_buffer_free(struct kref *ref)
{
	struct rashpa_buffer *buffer = container_of(ref, struct rashpa_buffer, ref);

	rashpa_pages_free(&buffer->pages);
	atomic64_sub(buffer->charged, &rashpa_allocated);
	kfree(buffer);
}

void rashpa_buffer_put(struct rashpa_buffer *buffer)
{
	kref_put(&buffer->ref, rashpa_buffer_free);
}

static struct rashpa_buffer *rashpa_buffer_alloc(struct rashpa_call *call,
						 const struct rashpa_alloc *alloc)
{
	int node = alloc->head.flags & RASHPA_ALLOC_NODE ? alloc->node : NUMA_NO_NODE;
	u64 alignment = max_t(u64, alloc->alignment, PAGE_SIZE);
	struct rashpa_buffer *buffer;
	int err;

	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	kref_init(&buffer->ref);
	buffer->length = PAGE_ALIGN(alloc->length);
	buffer->charged = buffer->length;
	err = rashpa_charge(call, buffer->charged);
	if (err)
		goto out_free;
	err = rashpa_pages_alloc(call, &buffer->pages, buffer->length, alignment,
				 node, alloc->backend);
	if (err)
		goto out_uncharge;
	/* what is held is known only now: whole blocks, or a power of two of pages */
	err = rashpa_charge(call, rashpa_pages_size(&buffer->pages) - buffer->length);
	if (err)
		goto out_pages;
	buffer->charged = rashpa_pages_size(&buffer->pages);
	return buffer;

out_pages:
	rashpa_pages_free(&buffer->pages);
out_uncharge:
	atomic64_sub(buffer->charged, &rashpa_allocated);
out_free:
	kfree(buffer);
	return ERR_PTR(err);
}

/* ------------------------------------------- /dev/rashpa/buffer/NAME ---- */

static int rashpa_buffer_node_open(struct inode *inode, struct file *file)
{
	struct rashpa_named *named = container_of(inode->i_cdev,
						  struct rashpa_named, cdev);

	/* the file holds the cdev, the cdev its device, the device the buffer */
	file->private_data = named->buffer;
	return 0;
}

static int rashpa_buffer_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	return rashpa_buffer_mmap(file->private_data, vma);
}

static long rashpa_buffer_node_ioctl(struct file *file, unsigned int cmd,
				     unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_BUFFER, file, cmd, arg);
}

static loff_t rashpa_buffer_node_llseek(struct file *file, loff_t offset, int whence)
{
	struct rashpa_buffer *buffer = file->private_data;

	/* for programs that find out the size by seeking to the end */
	return fixed_size_llseek(file, offset, whence, buffer->length);
}

static const struct file_operations rashpa_buffer_node_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_buffer_node_open,
	.mmap = rashpa_buffer_node_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.llseek = rashpa_buffer_node_llseek,
	.unlocked_ioctl = rashpa_buffer_node_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* ------------------------------------------------------------- names ---- */

static struct rashpa_named *rashpa_named_find(const char *name)
{
	struct rashpa_named *named;

	lockdep_assert_held(&rashpa_names_lock);
	list_for_each_entry(named, &rashpa_names, entry)
		if (!strcmp(named->buffer->name, name))
			return named;
	return NULL;
}

static void rashpa_named_release(struct device *dev)
{
	struct rashpa_named *named = container_of(dev, struct rashpa_named, dev);

	rashpa_buffer_put(named->buffer);
	kfree(named);
}

/* Give @buffer a name; the name takes its own reference. */
static int rashpa_named_add(struct rashpa_call *call, struct rashpa_buffer *buffer)
{
	struct rashpa_named *named;
	int err;

	/* A named buffer outlives its maker; the module must outlive the buffer. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	named = kzalloc(sizeof(*named), GFP_KERNEL_ACCOUNT);
	if (!named) {
		err = -ENOMEM;
		goto out_module;
	}
	kref_get(&buffer->ref);
	named->buffer = buffer;
	rashpa_node_init(&named->dev, NULL, rashpa_named_release);
	err = dev_set_name(&named->dev, "buffer!%s", buffer->name);
	if (err)
		goto out_device;

	mutex_lock(&rashpa_names_lock);
	if (rashpa_named_find(buffer->name))
		err = rashpa_fail(call, -EEXIST,
				  "a buffer named %s exists: remove it first, or open it",
				  buffer->name);
	else
		err = rashpa_node_add(&named->dev, &named->cdev,
				      &rashpa_buffer_node_fops);
	if (!err)
		list_add_tail(&named->entry, &rashpa_names);
	mutex_unlock(&rashpa_names_lock);
	if (err)
		goto out_device;
	return 0;

out_device:
	put_device(&named->dev);
out_module:
	module_put(THIS_MODULE);
	return err;
}

static void rashpa_named_del(struct rashpa_named *named)
{
	lockdep_assert_held(&rashpa_names_lock);
	list_del(&named->entry);
	rashpa_node_remove(&named->dev, &named->cdev);
	put_device(&named->dev);
	module_put(THIS_MODULE);
}

/* The answer to ALLOC could not be stored: nobody knows of the name, take it away. */
static void rashpa_named_undo(void *data)
{
	struct rashpa_buffer *buffer = data;
	struct rashpa_named *named;

	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(buffer->name);
	if (named && named->buffer == buffer)
		rashpa_named_del(named);
	mutex_unlock(&rashpa_names_lock);
}

/* ------------------------------------------------------------ ioctls ---- */

static int rashpa_alloc_check(struct rashpa_call *call,
			      const struct rashpa_alloc *alloc)
{
	int err;

	if (alloc->__reserved)
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
	if (alloc->cache > RASHPA_CACHE_CACHED)
		return rashpa_fail(call, -EOPNOTSUPP, "buffers are cached only");
	if (alloc->head.flags & RASHPA_ALLOC_NODE) {
		if (alloc->node >= MAX_NUMNODES || !node_online(alloc->node))
			return rashpa_fail(call, -EINVAL, "NUMA node %u does not exist",
					   alloc->node);
	} else if (alloc->node) {
		return rashpa_fail(call, -EINVAL,
				   "a node is given without the flag RASHPA_ALLOC_NODE");
	}
	if (memchr_inv(alloc->name, 0, sizeof(alloc->name))) {
		err = rashpa_check_name(call, alloc->name, sizeof(alloc->name));
		if (err)
			return err;
	}
	return 0;
}

static bool rashpa_name_taken(const char *name)
{
	bool taken;

	mutex_lock(&rashpa_names_lock);
	taken = rashpa_named_find(name);
	mutex_unlock(&rashpa_names_lock);
	return taken;
}

int rashpa_ioc_alloc(struct rashpa_call *call, void *arg)
{
	struct rashpa_alloc *alloc = arg;
	struct rashpa_buffer *buffer;
	struct dma_buf *dmabuf;
	int err;

	err = rashpa_alloc_check(call, alloc);
	if (err)
		return err;
	/* Asked again below; this only spares an allocation that is in vain. */
	if (alloc->name[0] && rashpa_name_taken(alloc->name))
		return rashpa_fail(call, -EEXIST,
				   "a buffer named %s exists: remove it first, or open it",
				   alloc->name);
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	buffer = rashpa_buffer_alloc(call, alloc);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	memcpy(buffer->name, alloc->name, sizeof(buffer->name));

	dmabuf = rashpa_export_buffer(buffer, O_RDWR);
	if (IS_ERR(dmabuf)) {
		rashpa_buffer_put(buffer);
		return PTR_ERR(dmabuf);
	}
	call->new_file = dmabuf->file;
	if (buffer->name[0]) {
		err = rashpa_named_add(call, buffer);
		if (err)
			goto out;
		call->undo = rashpa_named_undo;
		call->undo_data = buffer;
	}
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

/* Make a dma-buf for @buffer the new file of @call. */
static int rashpa_buffer_reopen(struct rashpa_call *call,
				struct rashpa_buffer *buffer, s32 *out_fd)
{
	int flags = call->file->f_mode & FMODE_WRITE ? O_RDWR : O_RDONLY;
	struct dma_buf *dmabuf;
	int err;

	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	dmabuf = rashpa_export_buffer(buffer, flags);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	call->new_file = dmabuf->file;
	*out_fd = call->fd;
	return 0;
}

int rashpa_ioc_open(struct rashpa_call *call, void *arg)
{
	struct rashpa_open *open = arg;
	struct rashpa_named *named;
	int err;

	if (open->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	err = rashpa_check_name(call, open->name, sizeof(open->name));
	if (err)
		return err;
	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(open->name);
	if (named)
		err = rashpa_buffer_reopen(call, named->buffer, &open->out_fd);
	else
		err = rashpa_fail(call, -ENOENT, "no buffer is named %s", open->name);
	mutex_unlock(&rashpa_names_lock);
	return err;
}

int rashpa_ioc_remove(struct rashpa_call *call, void *arg)
{
	struct rashpa_remove *remove = arg;
	struct rashpa_named *named;
	int importers, mappings;
	int err;

	err = rashpa_check_name(call, remove->name, sizeof(remove->name));
	if (err)
		return err;
	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(remove->name);
	if (!named) {
		err = rashpa_fail(call, -ENOENT, "no buffer is named %s",
				  remove->name);
		goto out;
	}
	importers = atomic_read(&named->buffer->importers);
	mappings = atomic_read(&named->buffer->mappings);
	if (importers || mappings) {
		err = rashpa_fail(call, -EBUSY,
				  "%s is in use: %d device(s) and %d process mapping(s); stop them first",
				  remove->name, importers, mappings);
		goto out;
	}
	rashpa_named_del(named);
out:
	mutex_unlock(&rashpa_names_lock);
	return err;
}

int rashpa_ioc_query(struct rashpa_call *call, void *arg)
{
	struct rashpa_query *query = arg;
	int node = NUMA_NO_NODE;
	int err;

	if (query->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (query->backend > RASHPA_BACKEND_CONTIG)
		return rashpa_fail(call, -EINVAL, "backend %u is not defined",
				   query->backend);
	if (query->head.flags & RASHPA_QUERY_NODE) {
		if (query->node >= MAX_NUMNODES || !node_online(query->node))
			return rashpa_fail(call, -EINVAL, "NUMA node %u does not exist",
					   query->node);
		node = query->node;
	} else if (query->node) {
		return rashpa_fail(call, -EINVAL,
				   "a node is given without the flag RASHPA_QUERY_NODE");
	}
	err = rashpa_pages_query(call, query, node);
	if (err)
		return err;
	query->out_allocated = rashpa_buffers_allocated();
	query->out_limit = rashpa_buffers_limit();
	return 0;
}

static void rashpa_buffer_info(struct rashpa_buffer *buffer,
			       struct rashpa_info *info)
{
	info->out_kind = RASHPA_KIND_BUFFER;
	info->out_length = buffer->length;
	info->out_backend = buffer->pages.backend;
	info->out_cache = RASHPA_CACHE_CACHED;
	info->out_node = buffer->pages.node;
	info->out_segments = 1;
	info->out_importers = atomic_read(&buffer->importers);
	info->out_mappings = atomic_read(&buffer->mappings);
	memcpy(info->out_name, buffer->name, sizeof(info->out_name));
}

/* Outputs are ignored on input: do not send back what came in. */
static void rashpa_info_clear(struct rashpa_info *info)
{
	struct rashpa_head head = info->head;
	s32 fd = info->fd;

	memset(info, 0, sizeof(*info));
	info->head = head;
	info->fd = fd;
}

int rashpa_ioc_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_info *info = arg;
	struct rashpa_buffer *buffer;
	struct dma_buf *dmabuf;

	rashpa_info_clear(info);
	dmabuf = dma_buf_get(info->fd);
	if (IS_ERR(dmabuf))
		return rashpa_fail(call, PTR_ERR(dmabuf), "fd %d is not a dma-buf", info->fd);
	buffer = rashpa_dmabuf_buffer(dmabuf);
	if (buffer) {
		rashpa_buffer_info(buffer, info);
	} else if (rashpa_dmabuf_is_window(dmabuf)) {
		rashpa_window_info(dmabuf, info);
	} else {
		info->out_kind = RASHPA_KIND_FOREIGN;
		info->out_length = dmabuf->size;
		info->out_node = NUMA_NO_NODE;
	}
	dma_buf_put(dmabuf);
	return 0;
}

int rashpa_ioc_buffer_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_info *info = arg;

	if (info->fd != -1)
		return rashpa_fail(call, -EINVAL, "fd must be -1 on a buffer's own node");
	rashpa_info_clear(info);
	rashpa_buffer_info(call->obj, info);
	return 0;
}

int rashpa_ioc_dmabuf(struct rashpa_call *call, void *arg)
{
	struct rashpa_dmabuf *get = arg;

	if (get->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	return rashpa_buffer_reopen(call, call->obj, &get->out_fd);
}
