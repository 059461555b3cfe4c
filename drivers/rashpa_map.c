// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: maps: the only place where addresses for a function are computed.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "rashpa_compat.h"
#include "rashpa_map.h"
#include "rashpa_memory.h"

/* 1 Mi segments are 4 GiB of single pages; more is a mistake, not a plan */
#define RASHPA_SEGMENTS_MAX	SZ_1M

static struct workqueue_struct *rashpa_map_wq;

/* ----------------------------------------------------------- revoking --- */

/* Readers without a lock see an odd generation before anything changes, ... */
static void rashpa_table_begin(struct rashpa_table *table)
{
	WRITE_ONCE(table->generation, table->generation + 1);
	/* the odd generation before the first change */
	smp_wmb();
}

/* ... and an even one after everything has. */
static void rashpa_table_end(struct rashpa_table *table)
{
	/* the last change before the even generation */
	smp_wmb();
	WRITE_ONCE(table->generation, table->generation + 1);
}

static void rashpa_map_event(struct rashpa_map *map, u32 state)
{
	rashpa_origin_fire(&map->dev->map_events, (u64)map->id << 32 | state);
}

/* The function cannot use the addresses any more: give them back to the exporter. */
static void rashpa_map_unmap(struct rashpa_map *map, struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	rashpa_pieces_put(map->pieces);
	map->pieces = NULL;
	dma_buf_unmap_attachment(attach, map->sgt, map->dir);
	map->sgt = NULL;
}

/**
 * rashpa_maps_clear_stale() - clear what ended while the function was being reset
 * @dev: the function, hw_lock held; its registers are there again
 */
void rashpa_maps_clear_stale(struct rashpa_device *dev)
{
	struct rashpa_map *map, *next;

	lockdep_assert_held(&dev->hw_lock);
	list_for_each_entry_safe(map, next, &dev->stale, stale) {
		list_del_init(&map->stale);
		rashpa_unprogram(map);
	}
}

/* Stop the function, and clear its table. */
static u64 rashpa_map_stop(struct rashpa_map *map)
{
	u64 what, again;

	lockdep_assert_held(&map->dev->hw_lock);
	/* it has been stopped, and cannot start before rashpa_maps_clear_stale() */
	if (map->dev->resetting) {
		if (map->regs && list_empty(&map->stale))
			list_add_tail(&map->stale, &map->dev->stale);
		return 0;
	}
	what = rashpa_device_stop_locked(map->dev);
	rashpa_unprogram(map);
	/*
	 * Whoever has a doorbell may have started the function again while its table still
	 * held these addresses. Now that it does not, the second stop is the last word.
	 */
	again = rashpa_device_stop_locked(map->dev);
	return again == RASHPA_DEVICE_STUCK ? again : what;
}

/*
 * The addresses end: stop the function, clear its table, tell the readers. A dma-buf callback,
 * which has the reservation lock, does not @wait for a reset of the function: it may be this
 * thread's.
 */
static void rashpa_map_end(struct rashpa_map *map, bool wait)
{
	struct rashpa_table *table = map->table;
	bool ended = false;
	u64 what;

	if (wait)
		rashpa_hw_lock(map->dev);
	else
		mutex_lock(&map->dev->hw_lock);
	what = rashpa_map_stop(map);
	map->dev->quiesces += !!what;
	if (table->state == RASHPA_MAP_VALID) {
		rashpa_table_begin(table);
		table->state = RASHPA_MAP_REVOKED;
		table->count = 0;
		rashpa_table_end(table);
		ended = true;
	}
	mutex_unlock(&map->dev->hw_lock);
	wake_up_all(&map->wait);
	if (ended)
		rashpa_map_event(map, RASHPA_MAP_REVOKED);
	if (what)
		rashpa_device_event(map->dev, what);
}

static void rashpa_map_invalidate(struct dma_buf_attachment *attach)
{
	struct rashpa_map *map = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!map->sgt)
		return;
	rashpa_map_end(map, false);
	rashpa_map_unmap(map, attach);
}

static const struct dma_buf_attach_ops rashpa_attach_ops = {
	.allow_peer2peer = true,
	.RASHPA_ATTACH_INVALIDATE = rashpa_map_invalidate,
};

static void rashpa_map_detach(struct rashpa_map *map)
{
	if (!map->attach)
		return;
	dma_resv_lock(map->dmabuf->resv, NULL);
	if (map->sgt)
		rashpa_map_unmap(map, map->attach);
	dma_buf_unpin(map->attach);
	dma_resv_unlock(map->dmabuf->resv);
	dma_buf_detach(map->dmabuf, map->attach);
	map->attach = NULL;
	dma_buf_put(map->dmabuf);
	map->dmabuf = NULL;
	rashpa_uncharge(&map->held);
}

/* Take a map off its function: stop, clear the table, and only then let go of the memory. */
static void rashpa_map_close(struct rashpa_map *map)
{
	lockdep_assert_held(&map->dev->lock);
	list_del_init(&map->entry);
	map->dev->n_maps--;
	if (map->kept)
		map->dev->n_kept--;
	rashpa_map_end(map, true);
	rashpa_map_detach(map);
}

static void rashpa_map_free(struct rashpa_map *map)
{
	/* not under dev->lock, which the work takes */
	cancel_work_sync(&map->restore);
	vfree(map->table);
	put_device(&map->dev->dev);
	rashpa_uncharge(&map->held);
	rashpa_uncharge(&map->charge);
	kfree(map);
}

/**
 * rashpa_maps_close() - end maps of a function
 * @dev: the function, locked; if all are to go: stopped, its registers still there
 * @all: all maps, not only those that no process holds
 * @ended: those that rashpa_maps_free() has to free afterwards are added here
 */
void rashpa_maps_close(struct rashpa_device *dev, bool all, struct list_head *ended)
{
	struct rashpa_map *map, *next;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry_safe(map, next, &dev->maps, entry) {
		if (!all && !map->kept)
			continue;
		rashpa_map_close(map);
		if (map->kept)
			list_add_tail(&map->entry, ended);
	}
}

/**
 * rashpa_maps_free() - free what rashpa_maps_close() ended
 * @ended: list; the function is not locked
 */
void rashpa_maps_free(struct list_head *ended)
{
	struct rashpa_map *map, *next;

	list_for_each_entry_safe(map, next, ended, entry)
		rashpa_map_free(map);
}

/* ------------------------------------------------------------- file ----- */

static int rashpa_map_release(struct inode *inode, struct file *file)
{
	struct rashpa_map_file *mf = file->private_data;
	struct rashpa_map *map = mf->map;
	struct rashpa_device *dev = map->dev;

	kfree(mf);
	mutex_lock(&dev->lock);
	if (!list_empty(&map->entry) && map->keep) {
		map->kept = true;
		dev->n_kept++;
		set_bit(RASHPA_CHARGE_KEPT, &map->charge.flags);
		set_bit(RASHPA_CHARGE_KEPT, &map->held.flags);
		mutex_unlock(&dev->lock);
		return 0;
	}
	if (!list_empty(&map->entry)) {
		rashpa_map_close(map);
		rashpa_device_rest(dev);
	}
	mutex_unlock(&dev->lock);
	rashpa_map_free(map);
	return 0;
}

/* Who may see addresses? Who may not must not find them out by asking either. */
static bool rashpa_map_discloses(struct rashpa_device *dev)
{
	return READ_ONCE(dev->disclose) || capable(CAP_SYS_RAWIO);
}

static int rashpa_map_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rashpa_map_file *mf = file->private_data;
	struct rashpa_map *map = mf->map;

	if (!rashpa_map_discloses(map->dev))
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
	struct rashpa_map *map = mf->map;
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
 * struct rashpa_walk - turns pieces into segments
 * @limits: what a segment may be
 * @out: where to store, NULL to count
 * @count: segments so far
 */
struct rashpa_walk {
	const struct rashpa_limits *limits;
	struct rashpa_segment *out;
	u64 count;
};

static int rashpa_walk_emit(struct rashpa_call *call, struct rashpa_walk *w,
			    u64 address, u64 length)
{
	if (w->limits->alignment && !IS_ALIGNED(address, w->limits->alignment))
		return rashpa_fail(call, -EINVAL,
				   "a segment is not aligned to 0x%llx: allocate the buffer with that alignment",
				   w->limits->alignment);
	if (w->count >= RASHPA_SEGMENTS_MAX)
		return rashpa_fail(call, -E2BIG,
				   "more than %u segments: use a contiguous buffer or larger segments",
				   RASHPA_SEGMENTS_MAX);
	if (w->out) {
		w->out[w->count].address = address;
		w->out[w->count].length = length;
	}
	w->count++;
	return 0;
}

static int rashpa_walk_piece(struct rashpa_call *call, struct rashpa_walk *w,
			     const struct rashpa_piece *piece)
{
	const u64 boundary = w->limits->boundary;
	u64 address = piece->address;
	u64 left = piece->length;
	int err;

	while (left) {
		u64 n = left;

		if (w->limits->max_segment)
			n = min(n, w->limits->max_segment);
		if (boundary)
			n = min(n, boundary - (address & (boundary - 1)));
		err = rashpa_walk_emit(call, w, address, n);
		if (err)
			return err;
		address += n;
		left -= n;
	}
	return 0;
}

static int rashpa_walk(struct rashpa_call *call, struct rashpa_walk *w,
		       const struct rashpa_pieces *pieces)
{
	u32 i;
	int err;

	w->count = 0;
	for (i = 0; i < pieces->count; i++) {
		err = rashpa_walk_piece(call, w, &pieces->piece[i]);
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------ making ---- */

/*
 * A table to mmap, charged to the caller: a scattered memory has many segments. The pages
 * belong to the mapping and go with vfree().
 */
static void *rashpa_table_alloc(size_t size)
{
	unsigned int n = size >> PAGE_SHIFT;
	struct page **pages;
	unsigned int i;
	void *table;

	pages = kvmalloc_array(n, sizeof(*pages), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages)
		return NULL;
	for (i = 0; i < n; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[i])
			goto out_free;
	}
	table = vmap(pages, n, VM_USERMAP | VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (table)
		return table;
out_free:
	while (i--)
		__free_page(pages[i]);
	kvfree(pages);
	return NULL;
}

static int rashpa_map_room(struct rashpa_call *call, struct rashpa_map *map, u64 count)
{
	int err;

	if (!map->table) {
		map->table_size = PAGE_ALIGN(struct_size(map->table, segment, count));
		err = rashpa_charge_more(call, &map->charge, map->table_size);
		if (err)
			return err;
		map->table = rashpa_table_alloc(map->table_size);
		if (!map->table)
			return -ENOMEM;
		map->room = count;
	}
	if (count > map->room)
		return rashpa_fail(call, -E2BIG,
				   "the memory has come back in %llu segments, there is room for %u: make a new map",
				   count, map->room);
	return 0;
}

/* Fill the table from checked pieces. */
static int rashpa_map_build(struct rashpa_call *call, struct rashpa_map *map,
			    const struct rashpa_pieces *pieces)
{
	struct rashpa_walk w = { .limits = &map->limits };
	struct rashpa_table *table;
	int err;

	err = rashpa_walk(call, &w, pieces);
	if (!err)
		err = rashpa_map_room(call, map, w.count);
	if (err)
		return err;
	table = map->table;
	w.out = table->segment;
	mutex_lock(&map->dev->hw_lock);
	rashpa_table_begin(table);
	rashpa_walk(call, &w, pieces);	/* as above: cannot fail */
	table->state = RASHPA_MAP_VALID;
	table->map_class = pieces->class;
	table->count = w.count;
	rashpa_table_end(table);
	mutex_unlock(&map->dev->hw_lock);
	return 0;
}

/* Why the exporter does not give the memory, now or any more. */
static int rashpa_map_refused(struct rashpa_call *call, struct rashpa_map *map, int err)
{
	struct rashpa_device *peer = rashpa_window_of(map->dmabuf);

	if (peer && err == -ENODEV)
		return rashpa_fail(call, err,
				   "fpga%d, which has the window, was removed: close the window and this map",
				   peer->id);
	if (peer && err == -EAGAIN)
		return rashpa_fail(call, err,
				   "fpga%d, which has the window, is being reset: try again when that is over",
				   peer->id);
	return rashpa_fail(call, err, "the exporter %s cannot map this memory for fpga%d",
			   map->dmabuf->exp_name, map->dev->id);
}

/* The exporter may still be moving the memory to where it has mapped it. */
static int rashpa_map_settle(struct rashpa_call *call, struct rashpa_map *map)
{
	long left = dma_resv_wait_timeout(map->dmabuf->resv, DMA_RESV_USAGE_KERNEL, true,
					  RASHPA_FENCE_LIMIT * HZ);

	if (left > 0)
		return 0;
	if (left < 0)
		return rashpa_fail(call, -EINTR, "interrupted by a signal");
	return rashpa_fail(call, -ETIMEDOUT,
			   "the exporter %s has not finished moving this memory in %d s: try again",
			   map->dmabuf->exp_name, RASHPA_FENCE_LIMIT);
}

/*
 * Let the exporter map the memory, check what it says, and fill the table. All of it before
 * the reservation lock is let go: from then on the exporter may end the mapping, and that needs
 * a table to mark.
 */
static int rashpa_map_fill(struct rashpa_call *call, struct rashpa_map *map,
			   struct dma_buf_attachment *attach)
{
	struct rashpa_pieces *pieces;
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(map->dmabuf->resv);
	sgt = dma_buf_map_attachment(attach, map->dir);
	if (IS_ERR(sgt))
		return rashpa_map_refused(call, map, PTR_ERR(sgt));
	err = rashpa_map_settle(call, map);
	if (err)
		goto out_unmap;
	pieces = rashpa_pieces_get(call, map->dev, sgt, map->dir, map->offset, map->length);
	if (IS_ERR(pieces)) {
		err = PTR_ERR(pieces);
		goto out_unmap;
	}
	err = rashpa_pieces_check(call, map->dev, pieces, map->device_only);
	if (!err)
		err = rashpa_map_build(call, map, pieces);
	if (err)
		goto out_pieces;
	map->pieces = pieces;
	map->sgt = sgt;
	return 0;

out_pieces:
	rashpa_pieces_put(pieces);
out_unmap:
	dma_buf_unmap_attachment(attach, sgt, map->dir);
	return err;
}

static int rashpa_map_attach(struct rashpa_call *call, struct rashpa_map *map)
{
	struct dma_buf_attachment *attach;
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
	err = rashpa_map_fill(call, map, attach);
	if (err)
		goto out_unpin;
	map->attach = attach;
	dma_resv_unlock(map->dmabuf->resv);
	return 0;

out_unpin:
	dma_buf_unpin(attach);
out_detach:
	dma_resv_unlock(map->dmabuf->resv);
	dma_buf_detach(map->dmabuf, attach);
	return err;
}

/* --------------------------------------------------------- restoring ---- */

static int rashpa_map_again(struct rashpa_call *call, struct rashpa_map *map)
{
	bool ended;
	int err = 0;

	lockdep_assert_held(&map->dev->lock);
	dma_resv_lock(map->dmabuf->resv, NULL);
	ended = !map->sgt;
	dma_resv_unlock(map->dmabuf->resv);
	/*
	 * To one that is valid nothing happens: not even that bus mastering comes back. What
	 * has ended stays so: only here, under dev->lock, it can come back.
	 */
	if (ended)
		err = rashpa_device_master(call, map->dev);
	if (ended && !err) {
		dma_resv_lock(map->dmabuf->resv, NULL);
		err = rashpa_map_fill(call, map, map->attach);
		/* before the exporter can end it again: the last record tells what it is */
		if (!err)
			rashpa_map_event(map, RASHPA_MAP_VALID);
		dma_resv_unlock(map->dmabuf->resv);
	}
	wake_up_all(&map->wait);
	return err;
}

static void rashpa_map_restore(struct work_struct *work)
{
	struct rashpa_map *map = container_of(work, struct rashpa_map, restore);
	struct rashpa_call call = {};

	mutex_lock(&map->dev->lock);
	/* not if it was closed meanwhile; whoever needs to know why it failed asks for it */
	if (map->attach)
		rashpa_map_again(&call, map);
	mutex_unlock(&map->dev->lock);
}

/**
 * rashpa_maps_restore() - a memory can be mapped again: let its maps know
 * @dmabuf: the memory; its reservation lock is held
 *
 * They do it later: it takes the locks of their functions.
 */
void rashpa_maps_restore(struct dma_buf *dmabuf)
{
	struct dma_buf_attachment *attach;

	dma_resv_assert_held(dmabuf->resv);
	list_for_each_entry(attach, &dmabuf->attachments, node) {
		struct rashpa_map *map = attach->importer_priv;

		if (attach->importer_ops == &rashpa_attach_ops)
			queue_work(rashpa_map_wq, &map->restore);
	}
}

int rashpa_ioc_restore(struct rashpa_call *call, void *arg)
{
	struct rashpa_map_file *mf = call->obj;
	struct rashpa_map *map = mf->map;
	struct rashpa_restore *restore = arg;
	int err;

	err = rashpa_device_lock(call, map->dev);
	if (err)
		return err;
	err = rashpa_map_again(call, map);
	if (!err) {
		mutex_lock(&map->dev->hw_lock);
		restore->out_generation = map->table->generation;
		restore->out_class = map->table->map_class;
		restore->out_segments = map->table->count;
		mutex_unlock(&map->dev->hw_lock);
	}
	mutex_unlock(&map->dev->lock);
	return err;
}

/* -------------------------------------------------------- operations ---- */

static const enum dma_data_direction rashpa_directions[] = {
	[RASHPA_BIDIRECTIONAL] = DMA_BIDIRECTIONAL,
	[RASHPA_TO_MEMORY] = DMA_FROM_DEVICE,
	[RASHPA_FROM_MEMORY] = DMA_TO_DEVICE,
};

static int rashpa_map_check(struct rashpa_call *call, const struct rashpa_map_make *arg)
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

/* Is all of it where a function without an IOMMU reaches it? */
static bool rashpa_memory_reached(struct device *d, struct dma_buf *dmabuf)
{
	const struct rashpa_extent *extents;
	u32 i, count;

	if (rashpa_window_of(dmabuf))
		return rashpa_dma_reaches(d, rashpa_window_bus(dmabuf), dmabuf->size);
	extents = rashpa_dmabuf_extents(dmabuf, &count);
	/* not ours to look into: with less than all memory in reach, assume the worst */
	if (!extents)
		return !dma_addressing_limited(d);
	for (i = 0; i < count; i++)
		if (!rashpa_dma_reaches(d, phys_to_dma(d, page_to_phys(extents[i].first)),
					(u64)extents[i].count << PAGE_SHIFT))
			return false;
	return true;
}

/*
 * Asked before the memory is mapped: the DMA core would warn, or copy to and from
 * lower memory, and nobody would see what the function writes there.
 */
static int rashpa_map_check_reach(struct rashpa_call *call, struct rashpa_device *dev,
				  struct dma_buf *dmabuf)
{
	struct device *d = &dev->pdev->dev;

	if (rashpa_pci_translated(dev->pdev))
		return 0;
	if (!rashpa_window_of(dmabuf) && is_swiotlb_force_bounce(d))
		return rashpa_fail(call, -EREMOTEIO,
				   "all DMA goes to a bounce buffer here (swiotlb=force, or a confidential guest): enable the IOMMU, or do without");
	if (!rashpa_memory_reached(d, dmabuf))
		return rashpa_fail(call, -EOVERFLOW,
				   "the memory is above what fpga%d can address (%d bits): allocate it lower or enable the IOMMU",
				   dev->id, fls64(rashpa_dma_limit(d)));
	return 0;
}

/* A window of a function is there or not: ask for the path before anything is mapped. */
static int rashpa_map_check_peer(struct rashpa_call *call, struct rashpa_device *dev,
				 struct dma_buf *dmabuf)
{
	struct rashpa_device *peer = rashpa_window_of(dmabuf);
	int class;

	if (!peer)
		return 0;
	if (peer == dev)
		return rashpa_fail(call, -ENXIO,
				   "the window is in fpga%d itself, which reaches it without a map",
				   dev->id);
	class = rashpa_path_between(call, dev->pdev, peer->pdev);
	return min(class, 0);
}

/* @dmabuf is what @arg names: may this function map that part of it? */
static int rashpa_map_check_memory(struct rashpa_call *call,
				   struct rashpa_device *dev,
				   const struct rashpa_map_make *arg,
				   struct dma_buf *dmabuf, u64 *length)
{
	u64 size = dmabuf->size;
	int err;

	if (arg->offset >= size || arg->length > size - arg->offset)
		return rashpa_fail(call, -ERANGE,
				   "0x%llx + 0x%llx is outside the memory of 0x%llx bytes",
				   arg->offset, arg->length, size);
	*length = arg->length ?: size - arg->offset;
	if (!(dmabuf->file->f_mode & FMODE_WRITE) &&
	    arg->direction != RASHPA_FROM_MEMORY)
		return rashpa_fail(call, -EACCES,
				   "the memory is read-only for you: open it for writing, or map it FROM_MEMORY");
	if ((arg->boundary || arg->alignment) && !rashpa_map_discloses(dev))
		return rashpa_fail(call, -EPERM,
				   "a boundary or an alignment of your own tells of addresses, which the profile does not disclose: it needs CAP_SYS_RAWIO, or belongs into the profile");
	err = rashpa_map_check_peer(call, dev, dmabuf);
	return err ?: rashpa_map_check_reach(call, dev, dmabuf);
}

/* For events: 0 is none, and after 4 billion maps the first ones are gone. */
static atomic_t rashpa_map_ids = ATOMIC_INIT(0);

static struct rashpa_map *rashpa_map_new(struct rashpa_device *dev,
					 const struct rashpa_map_make *arg,
					 struct dma_buf *dmabuf, u64 length)
{
	struct rashpa_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	map->id = atomic_inc_return(&rashpa_map_ids);
	map->dev = dev;
	map->dmabuf = dmabuf;
	map->dir = rashpa_directions[arg->direction];
	map->offset = arg->offset;
	map->length = length;
	map->limits.max_segment = arg->max_segment ?: dev->max_segment;
	map->limits.boundary = arg->boundary ?: dev->boundary;
	map->limits.alignment = arg->alignment ?: dev->alignment;
	map->device_only = arg->head.flags & RASHPA_MAP_DEVICE;
	map->keep = arg->head.flags & RASHPA_MAP_KEEP;
	INIT_LIST_HEAD(&map->entry);
	INIT_LIST_HEAD(&map->stale);
	INIT_WORK(&map->restore, rashpa_map_restore);
	init_waitqueue_head(&map->wait);
	return map;
}

/*
 * The maker is charged with the map, and with memory that may live only by it: a buffer has
 * somebody who is charged with it already, a window is none.
 */
static int rashpa_map_charge(struct rashpa_call *call, struct rashpa_map *map)
{
	struct rashpa_info info = {};
	const bool ours = rashpa_export_info(map->dmabuf, &info);
	const char *name = ours ? info.out_name : map->dmabuf->exp_name;
	int err;

	err = rashpa_charge(call, &map->charge, RASHPA_RESOURCE_MAPS, map->dev->id, 1, 0);
	if (err)
		return err;
	rashpa_charge_tell(&map->charge, map->id, name);
	if (!map->keep || rashpa_window_of(map->dmabuf) ||
	    (ours && info.out_kind != RASHPA_KIND_PINNED))
		return 0;
	err = rashpa_charge(call, &map->held, RASHPA_RESOURCE_MEMORY, map->dev->id, 0,
			    map->dmabuf->size);
	if (err)
		rashpa_uncharge(&map->charge);
	else
		rashpa_charge_tell(&map->held, map->id, name);
	return err;
}

static void rashpa_map_answer(const struct rashpa_map *map, struct rashpa_map_make *arg)
{
	arg->out_class = map->table->map_class;
	arg->out_generation = map->table->generation;
	arg->out_segments = map->table->count;
	arg->out_table_size = map->table_size;
	arg->out_id = map->id;
	arg->out_flags = map->pieces && map->pieces->remapped ? RASHPA_MAPPED_REMAPPED : 0;
	arg->out_peer = map->pieces ? map->pieces->peer : 0;
	arg->out_peer_bar = map->pieces ? map->pieces->peer_bar : 0;
}

/*
 * The new file of @call, which frees the map with it, whatever else fails. It comes first,
 * because work that the exporter may queue from then on cannot be waited for under dev->lock.
 */
static int rashpa_map_file(struct rashpa_call *call, struct rashpa_map_file *mf,
			   struct rashpa_map *map)
{
	struct file *file;

	mf->map = map;
	file = anon_inode_getfile("[rashpa-map]", &rashpa_map_fops, mf,
				  O_RDONLY | O_CLOEXEC);
	if (IS_ERR(file))
		return PTR_ERR(file);
	get_device(&map->dev->dev);
	call->new_file = file;
	return 0;
}

/* The answer could not be stored: nobody knows of the map, it must go with its file. */
static void rashpa_map_undo(struct rashpa_call *call)
{
	struct rashpa_map *map = call->undo_data;

	map->keep = false;
}

/* Make the map; it belongs to the new file of @call. */
static int rashpa_map_make(struct rashpa_call *call, struct rashpa_device *dev,
			   struct rashpa_map_make *arg, struct dma_buf *dmabuf)
{
	struct rashpa_map_file *mf;
	struct rashpa_map *map;
	u64 length;
	int err;

	err = rashpa_map_check_memory(call, dev, arg, dmabuf, &length);
	if (err)
		return err;
	err = -ENOMEM;
	map = rashpa_map_new(dev, arg, dmabuf, length);
	mf = kzalloc(sizeof(*mf), GFP_KERNEL_ACCOUNT);
	if (map && mf)
		err = rashpa_map_charge(call, map);
	if (!err)
		err = rashpa_map_file(call, mf, map);
	if (err) {
		if (map) {
			rashpa_uncharge(&map->held);
			rashpa_uncharge(&map->charge);
		}
		kfree(map);
		kfree(mf);
		return err;
	}
	err = rashpa_device_master(call, dev);
	if (!err)
		err = rashpa_map_attach(call, map);
	if (err) {
		rashpa_device_rest(dev);
		return err;
	}
	list_add_tail(&map->entry, &dev->maps);
	dev->n_maps++;
	call->undo = rashpa_map_undo;
	call->undo_data = map;
	arg->out_fd = call->fd;
	dma_resv_lock(dmabuf->resv, NULL);
	rashpa_map_answer(map, arg);
	mf->seen = arg->out_generation;
	dma_resv_unlock(dmabuf->resv);
	return 0;
}

int rashpa_ioc_map(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_map_make *map = arg;
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

/* ------------------------------------------------------------ module ---- */

int rashpa_maps_init(void)
{
	rashpa_map_wq = alloc_workqueue("rashpa", WQ_UNBOUND, 0);
	return rashpa_map_wq ? 0 : -ENOMEM;
}

void rashpa_maps_exit(void)
{
	destroy_workqueue(rashpa_map_wq);
}
