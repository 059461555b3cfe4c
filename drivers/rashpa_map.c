// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: maps: the only place where addresses for a function are computed.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/poll.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "rashpa.h"
#include "rashpa_compat.h"

/* 1 Mi segments are 4 GiB of single pages; more is a mistake, not a plan */
#define RASHPA_SEGMENTS_MAX	SZ_1M

/**
 * struct rashpa_mapping - one map
 * @dev: the importer; one reference
 * @entry: in rashpa_device.maps (its lock)
 * @dmabuf: the memory; one reference, NULL once the function was removed
 * @attach: attachment, NULL once the function was removed (device lock)
 * @sgt: mapping, NULL once revoked (reservation lock)
 * @dir: direction
 * @table: what user space may mmap; state and generation under hw_lock
 * @table_size: bytes, whole pages
 * @regs: programmed entries, or NULL (hw_lock)
 * @regs_phys: their CPU address
 * @layout: of an entry
 * @entries: programmed
 * @wait: for a new generation
 */
struct rashpa_mapping {
	struct rashpa_device *dev;
	struct list_head entry;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	struct rashpa_table *table;
	size_t table_size;
	void __iomem *regs;
	phys_addr_t regs_phys;
	struct rashpa_layout layout;
	u32 entries;
	wait_queue_head_t wait;
};

/**
 * struct rashpa_map_file - one open file of a map
 * @map: the map, owned by the file
 * @seen: generation that read() returned last
 */
struct rashpa_map_file {
	struct rashpa_mapping *map;
	u64 seen;
};

/* ---------------------------------------------------- address table ----- */

static void rashpa_entry_write(void __iomem *entry, u32 offset, u32 bits, u64 value)
{
	writel(lower_32_bits(value), entry + offset);
	if (bits == 64)
		writel(upper_32_bits(value), entry + offset + sizeof(u32));
}

static void rashpa_entry_set(struct rashpa_mapping *map, u32 i)
{
	const struct rashpa_segment *s = &map->table->segment[i];
	const struct rashpa_layout *l = &map->layout;
	void __iomem *entry = map->regs + (size_t)i * l->stride;

	/* Valid last: the function must never see half an entry. */
	if (l->control_bits)
		writel(l->control_clear, entry + l->control_offset);
	rashpa_entry_write(entry, l->address_offset, l->address_bits, s->address);
	if (l->length_bits)
		rashpa_entry_write(entry, l->length_offset, l->length_bits, s->length);
	if (l->control_bits)
		writel(l->control_set, entry + l->control_offset);
}

static void rashpa_entry_clear(struct rashpa_mapping *map, u32 i)
{
	const struct rashpa_layout *l = &map->layout;
	void __iomem *entry = map->regs + (size_t)i * l->stride;

	if (l->control_bits)
		writel(l->control_clear, entry + l->control_offset);
	if (l->length_bits)
		rashpa_entry_write(entry, l->length_offset, l->length_bits, 0);
	rashpa_entry_write(entry, l->address_offset, l->address_bits, 0);
}

/* Writes are posted: a read makes sure that they have arrived. */
static void rashpa_entries_flush(struct rashpa_mapping *map)
{
	readl(map->regs + map->layout.address_offset);
}

static void rashpa_unprogram(struct rashpa_mapping *map)
{
	u32 i;

	lockdep_assert_held(&map->dev->hw_lock);
	if (!map->regs)
		return;
	if (!map->dev->gone) {
		for (i = 0; i < map->entries; i++)
			rashpa_entry_clear(map, i);
		rashpa_entries_flush(map);
	}
	iounmap(map->regs);
	map->regs = NULL;
	map->entries = 0;
}

/* ----------------------------------------------------------- revoking --- */

/*
 * The addresses end: stop the function, clear its table, tell the readers. May run in
 * a dma-buf callback, with the reservation lock held.
 */
static void rashpa_map_end(struct rashpa_mapping *map)
{
	struct rashpa_table *table = map->table;
	u64 generation, what;

	mutex_lock(&map->dev->hw_lock);
	what = rashpa_device_stop_locked(map->dev);
	rashpa_unprogram(map);
	/*
	 * Whoever has a doorbell may have started the function again while its table still
	 * held these addresses. Now that it does not, the second stop is the last word.
	 */
	rashpa_device_stop_locked(map->dev);
	if (table->state == RASHPA_MAP_VALID) {
		generation = table->generation;
		WRITE_ONCE(table->generation, generation + 1);
		smp_wmb();	/* readers see odd before anything changes */
		table->state = RASHPA_MAP_REVOKED;
		table->count = 0;
		smp_wmb();	/* and even after everything has */
		WRITE_ONCE(table->generation, generation + 2);
	}
	mutex_unlock(&map->dev->hw_lock);
	wake_up_all(&map->wait);
	if (what)
		rashpa_device_event(map->dev, what);
}

static void rashpa_map_invalidate(struct dma_buf_attachment *attach)
{
	struct rashpa_mapping *map = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!map->sgt)
		return;
	rashpa_map_end(map);
	dma_buf_unmap_attachment(attach, map->sgt, map->dir);
	map->sgt = NULL;
}

static const struct dma_buf_attach_ops rashpa_attach_ops = {
	.allow_peer2peer = true,
	.RASHPA_ATTACH_INVALIDATE = rashpa_map_invalidate,
};

static void rashpa_map_detach(struct rashpa_mapping *map)
{
	if (!map->attach)
		return;
	dma_resv_lock(map->dmabuf->resv, NULL);
	if (map->sgt) {
		dma_buf_unmap_attachment(map->attach, map->sgt, map->dir);
		map->sgt = NULL;
	}
	dma_buf_unpin(map->attach);
	dma_resv_unlock(map->dmabuf->resv);
	dma_buf_detach(map->dmabuf, map->attach);
	map->attach = NULL;
	dma_buf_put(map->dmabuf);
	map->dmabuf = NULL;
}

/**
 * rashpa_maps_revoke() - the function goes: end all its maps
 * @dev: the function, locked, stopped, its registers still there
 */
void rashpa_maps_revoke(struct rashpa_device *dev)
{
	struct rashpa_mapping *map, *next;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry_safe(map, next, &dev->maps, entry) {
		list_del_init(&map->entry);
		dev->n_maps--;
		rashpa_map_end(map);
		rashpa_map_detach(map);
	}
}

/* ------------------------------------------------------------- file ----- */

static int rashpa_map_release(struct inode *inode, struct file *file)
{
	struct rashpa_map_file *mf = file->private_data;
	struct rashpa_mapping *map = mf->map;
	struct rashpa_device *dev = map->dev;

	mutex_lock(&dev->lock);
	if (!list_empty(&map->entry)) {
		list_del(&map->entry);
		dev->n_maps--;
		/* stop, clear the table, and only then let go of the memory */
		rashpa_map_end(map);
		rashpa_map_detach(map);
		rashpa_device_rest(dev);
	}
	mutex_unlock(&dev->lock);
	vfree(map->table);
	kfree(map);
	kfree(mf);
	put_device(&dev->dev);
	return 0;
}

static int rashpa_map_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rashpa_map_file *mf = file->private_data;
	struct rashpa_mapping *map = mf->map;

	if (!READ_ONCE(map->dev->disclose) && !capable(CAP_SYS_RAWIO))
		return -EPERM;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE);
	return remap_vmalloc_range(vma, map->table, vma->vm_pgoff);
}

static ssize_t rashpa_map_read(struct file *file, char __user *buf, size_t size,
			       loff_t *pos)
{
	struct rashpa_map_file *mf = file->private_data;
	struct rashpa_mapping *map = mf->map;
	struct rashpa_table head;
	int err;

	if (size < sizeof(head))
		return -EINVAL;
	while (READ_ONCE(map->table->generation) == READ_ONCE(mf->seen)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = wait_event_interruptible(map->wait,
					       READ_ONCE(map->table->generation) !=
					       READ_ONCE(mf->seen));
		if (err)
			return err;
	}
	mutex_lock(&map->dev->hw_lock);
	memcpy(&head, map->table, sizeof(head));
	mutex_unlock(&map->dev->hw_lock);
	if (copy_to_user(buf, &head, sizeof(head)))
		return -EFAULT;
	WRITE_ONCE(mf->seen, head.generation);
	return sizeof(head);
}

static __poll_t rashpa_map_poll(struct file *file, poll_table *wait)
{
	struct rashpa_map_file *mf = file->private_data;

	poll_wait(file, &mf->map->wait, wait);
	return READ_ONCE(mf->map->table->generation) != READ_ONCE(mf->seen) ?
	       EPOLLIN | EPOLLRDNORM : 0;
}

static long rashpa_map_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_MAP, file, cmd, arg);
}

static const struct file_operations rashpa_map_fops = {
	.owner = THIS_MODULE,
	.release = rashpa_map_release,
	.mmap = rashpa_map_mmap,
	.read = rashpa_map_read,
	.poll = rashpa_map_poll,
	.unlocked_ioctl = rashpa_map_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* --------------------------------------------------------- segments ----- */

/**
 * struct rashpa_walk - turns what the exporter mapped into segments
 * @max_segment: limit, 0 for none
 * @boundary: limit, 0 for none
 * @alignment: demanded, 0 for none
 * @mask: of the importer
 * @address: of the piece that is being collected
 * @length: of it
 * @out: where to store, NULL to count
 * @count: segments so far
 * @total: bytes so far
 */
struct rashpa_walk {
	u64 max_segment;
	u64 boundary;
	u64 alignment;
	u64 mask;
	u64 address;
	u64 length;
	struct rashpa_segment *out;
	u64 count;
	u64 total;
};

static int rashpa_walk_emit(struct rashpa_call *call, struct rashpa_walk *w,
			    u64 address, u64 length)
{
	u64 last;

	if (check_add_overflow(address, length - 1, &last) || last > w->mask)
		return rashpa_fail(call, -EOVERFLOW,
				   "the memory is above what the function can address (%d bits): allocate it lower or enable the IOMMU",
				   fls64(w->mask));
	if (w->alignment && !IS_ALIGNED(address, w->alignment))
		return rashpa_fail(call, -EINVAL,
				   "a segment is not aligned to 0x%llx: allocate the buffer with that alignment",
				   w->alignment);
	if (w->count >= RASHPA_SEGMENTS_MAX)
		return rashpa_fail(call, -E2BIG,
				   "more than %u segments: use a contiguous buffer or larger segments",
				   RASHPA_SEGMENTS_MAX);
	if (w->out) {
		w->out[w->count].address = address;
		w->out[w->count].length = length;
	}
	w->count++;
	w->total += length;
	return 0;
}

static int rashpa_walk_flush(struct rashpa_call *call, struct rashpa_walk *w)
{
	int err;

	while (w->length) {
		u64 n = w->length;

		if (w->max_segment)
			n = min(n, w->max_segment);
		if (w->boundary)
			n = min(n, w->boundary - (w->address & (w->boundary - 1)));
		err = rashpa_walk_emit(call, w, w->address, n);
		if (err)
			return err;
		w->address += n;
		w->length -= n;
	}
	return 0;
}

/* All of [@offset, @offset + @length) of @sgt; adjacent pieces become one. */
static int rashpa_walk(struct rashpa_call *call, struct rashpa_walk *w,
		       struct sg_table *sgt, u64 offset, u64 length)
{
	struct scatterlist *sg;
	int err, i;

	w->count = 0;
	w->total = 0;
	w->length = 0;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		u64 address = sg_dma_address(sg);
		u64 n = sg_dma_len(sg);

		if (offset >= n) {
			offset -= n;
			continue;
		}
		address += offset;
		n = min(n - offset, length);
		offset = 0;
		if (w->length && w->address + w->length == address) {
			w->length += n;
		} else {
			err = rashpa_walk_flush(call, w);
			if (err)
				return err;
			w->address = address;
			w->length = n;
		}
		length -= n;
		if (!length)
			break;
	}
	err = rashpa_walk_flush(call, w);
	if (err)
		return err;
	if (length)
		return rashpa_fail(call, -EREMOTEIO,
				   "the exporter's table ends 0x%llx bytes too early",
				   length);
	return 0;
}

/* ------------------------------------------------------------ making ---- */

static u32 rashpa_map_class(struct rashpa_mapping *map)
{
	if (rashpa_dmabuf_is_window(map->dmabuf))
		return RASHPA_CLASS_PEER;
	return rashpa_device_translated(map->dev) ? RASHPA_CLASS_IOVA :
						    RASHPA_CLASS_HOST;
}

static int rashpa_map_build(struct rashpa_call *call, struct rashpa_mapping *map,
			    const struct rashpa_map *arg, u64 length)
{
	struct rashpa_device *dev = map->dev;
	struct rashpa_walk w = {
		.max_segment = arg->max_segment ?: dev->max_segment,
		.boundary = arg->boundary ?: dev->boundary,
		.alignment = arg->alignment ?: dev->alignment,
		.mask = dma_get_mask(&dev->pdev->dev),
	};
	struct rashpa_table *table;
	int err;

	err = rashpa_walk(call, &w, map->sgt, arg->offset, length);
	if (err)
		return err;
	map->table_size = PAGE_ALIGN(struct_size(table, segment, w.count));
	table = vmalloc_user(map->table_size);
	if (!table)
		return -ENOMEM;
	map->table = table;
	w.out = table->segment;
	err = rashpa_walk(call, &w, map->sgt, arg->offset, length);
	if (err)
		return err;
	table->generation = 2;
	table->state = RASHPA_MAP_VALID;
	table->map_class = rashpa_map_class(map);
	table->count = w.count;
	return 0;
}

/*
 * The table is built before the reservation lock is let go: from then on the exporter
 * may end the mapping, and that needs a table to mark.
 */
static int rashpa_map_attach(struct rashpa_call *call, struct rashpa_mapping *map,
			     const struct rashpa_map *arg, u64 length)
{
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	int err;

	attach = dma_buf_dynamic_attach(map->dmabuf, &map->dev->pdev->dev,
					&rashpa_attach_ops, map);
	if (IS_ERR(attach))
		return rashpa_fail(call, PTR_ERR(attach),
				   "the exporter of this memory does not let fpga%d attach",
				   map->dev->id);
	dma_resv_lock(map->dmabuf->resv, NULL);
	err = dma_buf_pin(attach);
	if (err) {
		rashpa_fail(call, err, "the exporter cannot pin this memory");
		goto out_detach;
	}
	sgt = dma_buf_map_attachment(attach, map->dir);
	if (IS_ERR(sgt)) {
		err = rashpa_fail(call, PTR_ERR(sgt),
				  "the exporter cannot map this memory for fpga%d",
				  map->dev->id);
		goto out_unpin;
	}
	map->sgt = sgt;
	err = rashpa_map_build(call, map, arg, length);
	if (err)
		goto out_unmap;
	map->attach = attach;
	dma_resv_unlock(map->dmabuf->resv);
	return 0;

out_unmap:
	dma_buf_unmap_attachment(attach, sgt, map->dir);
	map->sgt = NULL;
out_unpin:
	dma_buf_unpin(attach);
out_detach:
	dma_resv_unlock(map->dmabuf->resv);
	dma_buf_detach(map->dmabuf, attach);
	return err;
}

static const enum dma_data_direction rashpa_directions[] = {
	[RASHPA_BIDIRECTIONAL] = DMA_BIDIRECTIONAL,
	[RASHPA_TO_MEMORY] = DMA_FROM_DEVICE,
	[RASHPA_FROM_MEMORY] = DMA_TO_DEVICE,
};

static int rashpa_map_check(struct rashpa_call *call, const struct rashpa_map *arg)
{
	if (arg->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (arg->direction >= ARRAY_SIZE(rashpa_directions))
		return rashpa_fail(call, -EINVAL, "direction %u is not defined",
				   arg->direction);
	if (!PAGE_ALIGNED(arg->offset) || !PAGE_ALIGNED(arg->length))
		return rashpa_fail(call, -EINVAL,
				   "offset 0x%llx and length 0x%llx must be whole pages",
				   arg->offset, arg->length);
	if (!PAGE_ALIGNED(arg->max_segment))
		return rashpa_fail(call, -EINVAL, "max_segment must be whole pages");
	if (arg->boundary &&
	    (!is_power_of_2(arg->boundary) || arg->boundary < PAGE_SIZE))
		return rashpa_fail(call, -EINVAL,
				   "boundary must be a power of two, at least a page");
	if (arg->alignment && !is_power_of_2(arg->alignment))
		return rashpa_fail(call, -EINVAL, "alignment must be a power of two");
	return 0;
}

/*
 * Asked before the memory is mapped: the DMA core would warn, or copy to and from
 * lower memory, and nobody would see what the function writes there.
 */
static bool rashpa_memory_too_high(struct rashpa_device *dev, struct dma_buf *dmabuf)
{
	struct rashpa_buffer *buffer = rashpa_dmabuf_buffer(dmabuf);
	struct rashpa_device *peer = rashpa_window_of(dmabuf);
	phys_addr_t phys = 0;

	if (rashpa_device_translated(dev))
		return false;
	if (buffer)
		phys = page_to_phys(buffer->pages.first);
	else if (peer)
		rashpa_window_phys(dmabuf, peer, 0, dmabuf->size, &phys);
	else
		/* not ours to look into: with less than all memory in reach, assume the worst */
		return dma_addressing_limited(&dev->pdev->dev);
	return phys + dmabuf->size - 1 > dma_get_mask(&dev->pdev->dev);
}

/* @dmabuf is what @arg names: may this function map that part of it? */
static int rashpa_map_check_memory(struct rashpa_call *call,
				   struct rashpa_device *dev,
				   const struct rashpa_map *arg,
				   struct dma_buf *dmabuf, u64 *length)
{
	u64 size = dmabuf->size;

	if (arg->offset >= size || arg->length > size - arg->offset)
		return rashpa_fail(call, -ERANGE,
				   "0x%llx + 0x%llx is outside the memory of 0x%llx bytes",
				   arg->offset, arg->length, size);
	*length = arg->length ?: size - arg->offset;
	if (!(dmabuf->file->f_mode & FMODE_WRITE) &&
	    arg->direction != RASHPA_FROM_MEMORY)
		return rashpa_fail(call, -EACCES,
				   "the memory is read-only for you: open it for writing, or map it FROM_MEMORY");
	if (rashpa_memory_too_high(dev, dmabuf))
		return rashpa_fail(call, -EOVERFLOW,
				   "the memory is above what fpga%d can address (%d bits): allocate it lower or enable the IOMMU",
				   dev->id, fls64(dma_get_mask(&dev->pdev->dev)));
	if (rashpa_window_of(dmabuf) == dev)
		return rashpa_fail(call, -ENXIO,
				   "the window is in fpga%d itself, which reaches it without a map",
				   dev->id);
	return 0;
}

/* Make the map; it belongs to the new file of @call. */
static int rashpa_map_make(struct rashpa_call *call, struct rashpa_device *dev,
			   struct rashpa_map *arg, struct dma_buf *dmabuf)
{
	struct rashpa_map_file *mf;
	struct rashpa_mapping *map;
	struct file *file;
	u64 length;
	int err;

	err = rashpa_map_check_memory(call, dev, arg, dmabuf, &length);
	if (err)
		return err;
	err = -ENOMEM;
	map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);
	mf = kzalloc(sizeof(*mf), GFP_KERNEL_ACCOUNT);
	if (!map || !mf)
		goto out_free;
	mf->map = map;
	mf->seen = 2;
	map->dev = dev;
	map->dmabuf = dmabuf;
	map->dir = rashpa_directions[arg->direction];
	init_waitqueue_head(&map->wait);

	err = rashpa_map_attach(call, map, arg, length);
	if (err)
		goto out_free;
	err = rashpa_device_master(call, dev);
	if (err)
		goto out_detach;
	file = anon_inode_getfile("[rashpa-map]", &rashpa_map_fops, mf,
				  O_RDONLY | O_CLOEXEC);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto out_rest;
	}
	get_device(&dev->dev);
	list_add_tail(&map->entry, &dev->maps);
	dev->n_maps++;
	call->new_file = file;
	arg->out_fd = call->fd;
	arg->out_class = map->table->map_class;
	arg->out_generation = map->table->generation;
	arg->out_segments = map->table->count;
	arg->out_table_size = map->table_size;
	return 0;

out_rest:
	rashpa_device_rest(dev);
out_detach:
	get_dma_buf(dmabuf);	/* ours to put is the caller's to put on failure */
	rashpa_map_detach(map);
out_free:
	if (map)
		vfree(map->table);
	kfree(map);
	kfree(mf);
	return err;
}

int rashpa_ioc_map(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_map *map = arg;
	struct dma_buf *dmabuf;
	int err;

	err = rashpa_map_check(call, map);
	if (err)
		return err;
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	dmabuf = dma_buf_get(map->fd);
	if (IS_ERR(dmabuf))
		return rashpa_fail(call, PTR_ERR(dmabuf), "fd %d is not a dma-buf",
				   map->fd);
	err = rashpa_device_lock(call, dev);
	if (!err) {
		err = rashpa_map_make(call, dev, map, dmabuf);
		mutex_unlock(&dev->lock);
	}
	if (err)
		dma_buf_put(dmabuf);
	return err;
}

/* ----------------------------------------------------------- program ---- */

struct rashpa_field {
	u32 offset;
	u32 bits;
};

/**
 * rashpa_layout_check() - does the layout of a table entry make sense
 * @call: the ioctl
 * @l: from user space
 */
int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l)
{
	const struct rashpa_field f[] = {
		{ l->address_offset, l->address_bits },
		{ l->length_offset, l->length_bits },
		{ l->control_offset, l->control_bits },
	};
	size_t i, j;

	if (l->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field of the layout is not zero");
	if (!l->stride || l->stride > SZ_4K || !IS_ALIGNED(l->stride, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a stride of %u: must be a multiple of 4 up to 4096",
				   l->stride);
	if (l->address_bits != 32 && l->address_bits != 64)
		return rashpa_fail(call, -EINVAL, "address field of %u bits: must be 32 or 64",
				   l->address_bits);
	if (l->length_bits && l->length_bits != 32 && l->length_bits != 64)
		return rashpa_fail(call, -EINVAL, "length field of %u bits: must be 0, 32 or 64",
				   l->length_bits);
	if (l->control_bits && l->control_bits != 32)
		return rashpa_fail(call, -EINVAL, "control field of %u bits: must be 0 or 32",
				   l->control_bits);
	if (l->control_bits && l->control_set == l->control_clear)
		return rashpa_fail(call, -EINVAL,
				   "control_set and control_clear are both 0x%x: an entry could not be made invalid",
				   l->control_set);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (!f[i].bits && f[i].offset)
			return rashpa_fail(call, -EINVAL, "a field without bits has an offset");
		if (!IS_ALIGNED(f[i].offset, sizeof(u32)) ||
		    f[i].offset > l->stride || f[i].bits / 8 > l->stride - f[i].offset)
			return rashpa_fail(call, -EINVAL,
					   "a field at %u of %u bits is not inside the stride of %u",
					   f[i].offset, f[i].bits, l->stride);
		for (j = 0; j < i; j++)
			if (f[i].bits && f[j].bits &&
			    f[i].offset < f[j].offset + f[j].bits / 8 &&
			    f[j].offset < f[i].offset + f[i].bits / 8)
				return rashpa_fail(call, -EINVAL,
						   "two fields of the layout overlap");
	}
	return 0;
}

static int rashpa_program_fits(struct rashpa_call *call,
			       const struct rashpa_mapping *map,
			       const struct rashpa_layout *l)
{
	u32 i;

	for (i = 0; i < map->table->count; i++) {
		const struct rashpa_segment *s = &map->table->segment[i];

		if (l->address_bits == 32 && s->address + s->length - 1 > U32_MAX)
			return rashpa_fail(call, -EOVERFLOW,
					   "segment %u is above 4 GiB, the address field has 32 bits: set dma_bits to 32 in the profile",
					   i);
		if (l->length_bits == 32 && s->length > U32_MAX)
			return rashpa_fail(call, -EOVERFLOW,
					   "segment %u is 4 GiB or longer, the length field has 32 bits: set max_segment",
					   i);
	}
	return 0;
}

/* Two maps in one place: the end of the first would clear the second. */
static int rashpa_program_free(struct rashpa_call *call, struct rashpa_mapping *map,
			       phys_addr_t phys, u64 length)
{
	struct rashpa_mapping *other;

	list_for_each_entry(other, &map->dev->maps, entry) {
		u64 size = (u64)other->entries * other->layout.stride;

		if (other != map && other->regs && phys < other->regs_phys + size &&
		    other->regs_phys < phys + length)
			return rashpa_fail(call, -EBUSY,
					   "another map is programmed in these entries: choose others or close it");
	}
	return 0;
}

/**
 * struct rashpa_place - where a map is to be programmed
 * @phys: CPU address of entry 0
 * @length: of the whole table, bytes
 * @layout: of an entry
 */
struct rashpa_place {
	phys_addr_t phys;
	u64 length;
	struct rashpa_layout layout;
};

static int rashpa_program_write(struct rashpa_call *call,
				struct rashpa_mapping *map,
				const struct rashpa_layout *layout, phys_addr_t phys,
				u64 length)
{
	void __iomem *regs;
	u32 i;
	int err;

	lockdep_assert_held(&map->dev->hw_lock);
	if (map->table->state != RASHPA_MAP_VALID)
		return rashpa_fail(call, -ESTALE, "the map is revoked: make a new one");
	err = rashpa_program_fits(call, map, layout);
	if (err)
		return err;
	err = rashpa_program_free(call, map, phys, length);
	if (err)
		return err;
	regs = ioremap(phys, length);
	if (!regs)
		return -ENOMEM;
	rashpa_unprogram(map);
	map->regs = regs;
	map->regs_phys = phys;
	map->layout = *layout;
	map->entries = map->table->count;
	for (i = 0; i < map->entries; i++)
		rashpa_entry_set(map, i);
	rashpa_entries_flush(map);
	return 0;
}

static int rashpa_program_at(struct rashpa_call *call, struct rashpa_mapping *map,
			     struct rashpa_program *p, const struct rashpa_place *at)
{
	const u64 stride = at->layout.stride;
	const u64 start = p->first * stride;
	int err;

	mutex_lock(&map->dev->hw_lock);
	if (start > at->length || map->table->count * stride > at->length - start)
		err = rashpa_fail(call, -ERANGE,
				  "%u segments from entry %u on do not fit into the %llu entries of the table",
				  map->table->count, p->first,
				  div64_u64(at->length, stride));
	else
		err = rashpa_program_write(call, map, &at->layout, at->phys + start,
					   map->table->count * stride);
	p->out_entries = map->entries;
	mutex_unlock(&map->dev->hw_lock);
	return err;
}

/* The table that the profile describes: anybody's, because the kernel alone writes it. */
static int rashpa_program_profile(struct rashpa_call *call,
				  struct rashpa_mapping *map,
				  struct rashpa_program *p)
{
	struct rashpa_device *dev = map->dev;
	struct rashpa_place at;

	if (p->offset || p->length || memchr_inv(&p->layout, 0, sizeof(p->layout)))
		return rashpa_fail(call, -EINVAL,
				   "the profile's table, and a place of your own, exclude each other");
	if (!dev->table.length)
		return rashpa_fail(call, -ENOENT,
				   "the profile of fpga%d describes no address table", dev->id);
	at.phys = pci_resource_start(dev->pdev, dev->table.bar) + dev->table.offset;
	at.length = dev->table.length;
	at.layout = dev->table_layout;
	return rashpa_program_at(call, map, p, &at);
}

static int rashpa_program_window(struct rashpa_call *call,
				 struct rashpa_mapping *map,
				 struct rashpa_program *p)
{
	struct rashpa_place at = { .length = p->length, .layout = p->layout };
	struct dma_buf *window;
	int err;

	if (!IS_ALIGNED(p->offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL, "offset 0x%llx is not a multiple of 4",
				   p->offset);
	err = rashpa_layout_check(call, &p->layout);
	if (err)
		return err;
	/* The caller chooses what is written where: the same as writing it himself. */
	if (!capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "a place of your own needs CAP_SYS_RAWIO: describe the table in the profile");
	window = dma_buf_get(p->window);
	if (IS_ERR(window))
		return rashpa_fail(call, PTR_ERR(window), "fd %d is not a window",
				   p->window);
	err = rashpa_window_phys(window, map->dev, p->offset, p->length, &at.phys);
	switch (err) {
	case -EINVAL:
		rashpa_fail(call, err, "fd %d is not a window", p->window);
		break;
	case -EXDEV:
		rashpa_fail(call, err, "the window is of another function than fpga%d",
			    map->dev->id);
		break;
	case -ERANGE:
		rashpa_fail(call, err,
			    "the table at 0x%llx of 0x%llx bytes is outside the window of 0x%llx bytes",
			    p->offset, p->length, (u64)window->size);
		break;
	case 0:
		err = rashpa_program_at(call, map, p, &at);
		break;
	}
	dma_buf_put(window);
	return err;
}

int rashpa_ioc_program(struct rashpa_call *call, void *arg)
{
	struct rashpa_map_file *mf = call->obj;
	struct rashpa_program *p = arg;
	int err;

	if (p->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	err = rashpa_device_lock(call, mf->map->dev);
	if (err)
		return err;
	if (p->window == -1)
		err = rashpa_program_profile(call, mf->map, p);
	else
		err = rashpa_program_window(call, mf->map, p);
	mutex_unlock(&mf->map->dev->lock);
	return err;
}
