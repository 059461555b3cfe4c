// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: maps: a map makes a memory accessible to a function and ends with its file.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>
#include <linux/uaccess.h>
#include <linux/xarray.h>

#include "core/compat.h"
#include "memory/memory.h"
#include "function/map.h"

/* Map numbers for events: allocated cyclically, so that a number is reused late. */
static DEFINE_XARRAY_ALLOC1(rashpa_map_ids);
static u32 rashpa_map_next;

/* ------------------------------------------------------------ ending ---- */

static void rashpa_map_put(struct kref *ref)
{
	struct rashpa_map *map = container_of(ref, struct rashpa_map, ref);

	xa_erase(&rashpa_map_ids, map->id);
	rashpa_table_free(map->table);
	put_device(&map->dev->dev);
	rashpa_uncharge(&map->charge);
	kfree(map);
}

/* Release the memory of a map that its function does not use any more. */
static void rashpa_map_detach(struct rashpa_map *map)
{
	mutex_lock(&map->lock);
	might_lock(&map->dmabuf->resv->lock.base);
	if (map->attach) {
		dma_resv_lock(map->dmabuf->resv, NULL);
		if (map->sgt)
			rashpa_map_unmap(map);
		if (map->pinned)
			dma_buf_unpin(map->attach);
		dma_resv_unlock(map->dmabuf->resv);
		dma_buf_detach(map->dmabuf, map->attach);
		/* some exporters unmap in detach */
		rashpa_path_flush(map->dev->pdev);
		map->attach = NULL;
	}
	mutex_unlock(&map->lock);
	cancel_delayed_work_sync(&map->restore);
	rashpa_fetch_end(map);
	dma_buf_put(map->dmabuf);
	map->dmabuf = NULL;
	if (atomic_dec_and_test(&map->dev->n_imports))
		wake_up_all(&map->dev->imports_wait);
}

/* Remove a map from its function: stop DMA, clear the table. rashpa_maps_release() must follow. */
static void rashpa_map_end(struct rashpa_map *map, struct list_head *ended)
{
	lockdep_assert_held(&map->dev->lock);
	scoped_guard(mutex, &map->dev->hw_lock)
		list_move_tail(&map->entry, ended);
	map->dev->n_maps--;
	rashpa_map_revoke(map, true);
}

static bool rashpa_map_is_mine(struct rashpa_map *map)
{
	return rashpa_charge_is_mine(&map->charge) || capable(CAP_SYS_ADMIN);
}

/*
 * May the caller stop all DMA of a function? Not while the function may know addresses of another
 * user's map: that would stop the other user's stream. The owner of the node and CAP_SYS_ADMIN are
 * exempt.
 */
static int rashpa_maps_check_stop(struct rashpa_call *call, struct rashpa_device *dev)
{
	struct rashpa_map *map;

	lockdep_assert_held(&dev->lock);
	might_lock(&dev->hw_lock);
	if (rashpa_file_owned(call->file))
		return 0;
	guard(mutex)(&dev->hw_lock);
	list_for_each_entry(map, &dev->maps, entry)
		if ((map->exposed || map->engines) && !rashpa_map_is_mine(map))
			return rashpa_fail(call, -EPERM,
					   "fpga%d has addresses of map %u, which belongs to another user: end only your maps (RASHPA_QUIESCE_MAP), be the owner of the node, or use CAP_SYS_ADMIN",
					   dev->id, map->id);
	return 0;
}

/*
 * End all maps of a stopped function, whose registers are still accessible; rashpa_maps_release()
 * follows.
 */
void rashpa_maps_end(struct rashpa_device *dev, struct list_head *ended)
{
	struct rashpa_map *map, *next;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry_safe(map, next, &dev->maps, entry)
		rashpa_map_end(map, ended);
}

/*
 * End one map for good, even if other processes hold its file; rashpa_maps_release() follows.
 * Return: 0, -ENOENT, -EPERM.
 */
static int rashpa_map_quiesce(struct rashpa_call *call, struct rashpa_device *dev, u32 id,
			      struct list_head *ended)
{
	struct rashpa_map *map;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(map, &dev->maps, entry) {
		if (map->id != id)
			continue;
		if (!rashpa_map_is_mine(map))
			return rashpa_fail(call, -EPERM,
					   "map %u belongs to another user: ending it needs CAP_SYS_ADMIN",
					   id);
		rashpa_map_end(map, ended);
		return 0;
	}
	return rashpa_fail(call, -ENOENT, "fpga%d has no map %u: rashpactl list names them",
			   dev->id, id);
}

/* Release the memory of ended maps. Their function is not locked: exporters may take long. */
void rashpa_maps_release(struct list_head *ended)
{
	struct rashpa_map *map, *next;

	list_for_each_entry_safe(map, next, ended, entry) {
		rashpa_map_detach(map);
		kref_put(&map->ref, rashpa_map_put);
	}
}

int rashpa_ioc_quiesce(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_quiesce *quiesce = arg;
	const bool one = quiesce->head.flags & RASHPA_QUIESCE_MAP;
	u64 start = ktime_get_ns();
	LIST_HEAD(ended);
	bool stuck;
	int err;

	if (quiesce->map && !one)
		return rashpa_fail(call, -EINVAL,
				   "a map is given without the flag RASHPA_QUIESCE_MAP");
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	if (one)
		err = rashpa_map_quiesce(call, dev, quiesce->map, &ended);
	else
		err = rashpa_maps_check_stop(call, dev);
	stuck = !one && !err && rashpa_device_stop(dev);
	if (!rashpa_device_recover(dev) && stuck)
		err = rashpa_fail(call, -ETIMEDOUT,
				  "fpga%d did not become idle in time, or does not answer: bus mastering is off until it is reset",
				  dev->id);
	quiesce->out_time_ns = ktime_get_ns() - start;
	rashpa_device_idle(dev);
	mutex_unlock(&dev->lock);
	rashpa_maps_release(&ended);
	return err;
}

/* ------------------------------------------------------------- file ----- */

static int rashpa_map_release(struct inode *inode, struct file *file)
{
	struct rashpa_map *map = file->private_data;
	struct rashpa_device *dev = map->dev;
	LIST_HEAD(ended);

	scoped_guard(mutex, &dev->lock)
		if (!map->ended) {
			rashpa_map_end(map, &ended);
			rashpa_device_recover(dev);
			rashpa_device_idle(dev);
		}
	rashpa_maps_release(&ended);
	kref_put(&map->ref, rashpa_map_put);
	return 0;
}

/* May the caller see addresses, or pass limits that reveal them by trial and error? */
static bool rashpa_map_discloses(struct rashpa_device *dev)
{
	return READ_ONCE(dev->disclose) || capable(CAP_SYS_RAWIO);
}

static int rashpa_map_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rashpa_map *map = file->private_data;
	struct rashpa_call call = { };

	if (!rashpa_map_discloses(map->dev))
		return -EPERM;
	if (vma->vm_flags & VM_WRITE)
		return -EACCES;
	vm_flags_clear(vma, VM_MAYWRITE);
	scoped_guard(mutex, &map->dev->hw_lock) {
		/* the addresses of a map that has ended are not in use */
		if (!map->exposed && !map->ended && rashpa_map_check_others(&call, map, 0))
			return -EBUSY;
		map->exposed = true;
		set_bit(RASHPA_CHARGE_TOLD, &map->charge.flags);
	}
	return rashpa_table_mmap(map->table, map->table_size, vma);
}

/*
 * Has the header changed since the last read()? Lockless, so that O_NONBLOCK and poll never wait
 * for a function that is being stopped.
 */
static bool rashpa_map_changed(const struct rashpa_map *map, struct rashpa_table *head)
{
	const struct rashpa_table *table = map->table;

	*head = (struct rashpa_table) { .segment_size = sizeof(table->segment[0]) };
	/* read the generation before the fields */
	head->generation = smp_load_acquire(&table->generation);
	/* odd: a change is in progress, which ends with a wake-up */
	if (head->generation & 1 || head->generation == READ_ONCE(map->seen))
		return false;
	head->state = READ_ONCE(table->state);
	head->map_class = READ_ONCE(table->map_class);
	head->count = READ_ONCE(table->count);
	/* read the fields before the generation again */
	smp_rmb();
	return READ_ONCE(table->generation) == head->generation;
}

static ssize_t rashpa_map_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct rashpa_map *map = file->private_data;
	struct rashpa_table head;
	int err;

	if (size < sizeof(head))
		return -EINVAL;
	if (!rashpa_map_changed(map, &head)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = wait_event_interruptible(map->wait, rashpa_map_changed(map, &head));
		if (err)
			return err;
	}
	if (copy_to_user(buf, &head, sizeof(head)))
		return -EFAULT;
	WRITE_ONCE(map->seen, head.generation);
	return sizeof(head);
}

static __poll_t rashpa_map_poll(struct file *file, poll_table *wait)
{
	struct rashpa_map *map = file->private_data;
	struct rashpa_table head;

	poll_wait(file, &map->wait, wait);
	return rashpa_map_changed(map, &head) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* Lockless, so that it never waits for a function that is being stopped. */
static void rashpa_map_fdinfo(struct seq_file *m, struct file *file)
{
	struct rashpa_map *map = file->private_data;

	rashpa_charge_show(&map->charge, "map", m);
	seq_printf(m, "rashpa-size:\t%llu\nrashpa-state:\t%u\nrashpa-class:\t%u\n", map->length,
		   READ_ONCE(map->table->state), READ_ONCE(map->table->map_class));
	seq_printf(m, "rashpa-segments:\t%u\nrashpa-entries:\t%u\n",
		   READ_ONCE(map->table->count), READ_ONCE(map->entries));
}

const struct file_operations rashpa_map_fops = {
	.owner = THIS_MODULE,
	.release = rashpa_map_release,
	.mmap = rashpa_map_mmap,
	.read = rashpa_map_read,
	.poll = rashpa_map_poll,
	.unlocked_ioctl = rashpa_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
	.show_fdinfo = rashpa_map_fdinfo,
};

/* ------------------------------------------------------------ making ---- */

int rashpa_ioc_restore(struct rashpa_call *call, void *arg)
{
	struct rashpa_map *map = call->obj;
	struct rashpa_restore *restore = arg;
	bool revoked;
	int err;

	err = rashpa_device_lock(call, map->dev);
	if (err)
		return err;
	scoped_guard(mutex, &map->dev->hw_lock)
		revoked = map->table->state != RASHPA_MAP_STATE_VALID;
	/* the caller asks to resume after a stop that may have turned bus mastering off */
	if (map->ended)
		err = rashpa_map_gone(call, map);
	else if (revoked)
		err = rashpa_device_master(call, map->dev);
	mutex_unlock(&map->dev->lock);
	if (!err && revoked)
		err = rashpa_map_restore_now(call, map);
	if (err)
		return err;
	guard(mutex)(&map->dev->hw_lock);
	restore->out_generation = map->table->generation;
	restore->out_class = map->table->map_class;
	restore->out_segments = map->table->count;
	return 0;
}

/* -------------------------------------------------------- operations ---- */

static const enum dma_data_direction rashpa_directions[] = {
	[RASHPA_BIDIRECTIONAL] = DMA_BIDIRECTIONAL,
	[RASHPA_TO_MEMORY] = DMA_FROM_DEVICE,
	[RASHPA_FROM_MEMORY] = DMA_TO_DEVICE,
};

static int rashpa_map_check(struct rashpa_call *call, const struct rashpa_map_make *arg)
{
	if (arg->direction >= ARRAY_SIZE(rashpa_directions))
		return rashpa_fail(call, -EINVAL, "direction %u is not defined", arg->direction);
	if (!PAGE_ALIGNED(arg->offset) || !PAGE_ALIGNED(arg->length))
		return rashpa_fail(call, -EINVAL,
				   "offset 0x%llx and length 0x%llx must be whole pages",
				   arg->offset, arg->length);
	return rashpa_limits_check(call, arg->max_segment, arg->boundary, arg->alignment);
}

/* Can the function address all of the memory without an IOMMU? */
static bool rashpa_memory_reached(struct device *d, struct dma_buf *dmabuf)
{
	const struct rashpa_memory *memory = rashpa_dmabuf_memory(dmabuf);
	u32 i;

	if (rashpa_window_of(dmabuf))
		return rashpa_dma_reaches(d, rashpa_window_bus(dmabuf), dmabuf->size);
	/*
	 * Addresses of another exporter are unknown until rashpa_map_check_bounce(). Without bounce
	 * buffers the DMA core would warn: refuse.
	 */
	if (!memory)
		return !dma_addressing_limited(d) || dma_max_mapping_size(d) != SIZE_MAX;
	for (i = 0; i < memory->n_extents; i++)
		if (!rashpa_dma_reaches(d, phys_to_dma(d, page_to_phys(memory->extents[i].first)),
					(u64)memory->extents[i].count << PAGE_SHIFT))
			return false;
	return true;
}

/*
 * Check before mapping: the DMA core would warn, or use bounce buffers in which writes of the
 * function would be lost.
 */
static int rashpa_map_check_reach(struct rashpa_call *call, struct rashpa_device *dev,
				  struct dma_buf *dmabuf)
{
	struct device *d = &dev->pdev->dev;

	if (rashpa_pci_translated(dev->pdev))
		return 0;
	if ((is_swiotlb_force_bounce(d) && rashpa_dmabuf_memory(dmabuf)) ||
	    !rashpa_memory_reached(d, dmabuf))
		return rashpa_dma_fail(call, dev);
	return 0;
}

/* May the function map the range of @dmabuf that @arg describes? */
static int rashpa_map_check_memory(struct rashpa_call *call,
				   struct rashpa_device *dev,
				   const struct rashpa_map_make *arg,
				   struct dma_buf *dmabuf, u64 *length)
{
	struct rashpa_device *peer = rashpa_window_of(dmabuf);
	struct rashpa_info info = {};
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
				   "the memory is open read-only: open it for writing, or map it FROM_MEMORY");
	if ((arg->boundary || arg->alignment) && !rashpa_map_discloses(dev))
		return rashpa_fail(call, -EPERM,
				   "a boundary or an alignment reveals addresses, which the profile does not disclose: use CAP_SYS_RAWIO, or put it into the profile");
	/* the words are polled through caches that such a function does not update */
	if (!dev_is_dma_coherent(&dev->pdev->dev) && rashpa_export_info(dmabuf, &info) &&
	    info.out_kind == RASHPA_KIND_LOCK)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "lock memory needs DMA that is coherent with the caches, which that of fpga%d is not",
				   dev->id);
	err = rashpa_memory_check(call, rashpa_dmabuf_memory(dmabuf), arg->offset, *length);
	if (err)
		return err;
	/* the path to the function of a window: before anything is mapped */
	if (peer) {
		err = rashpa_path_between(call, dev->pdev, peer->pdev);
		if (err >= 0)
			err = rashpa_window_check_part(call, dmabuf, arg->offset, *length);
		if (err < 0)
			return err;
	}
	return rashpa_map_check_reach(call, dev, dmabuf);
}

static struct rashpa_map *rashpa_map_new(struct rashpa_device *dev,
					 const struct rashpa_map_make *arg,
					 struct dma_buf *dmabuf, u64 length)
{
	const struct rashpa_limits *limits = &dev->profile.limits;
	struct rashpa_map *map = kzalloc(sizeof(*map), GFP_KERNEL_ACCOUNT);

	if (!map)
		return NULL;
	kref_init(&map->ref);
	mutex_init(&map->lock);
	get_device(&dev->dev);
	map->dev = dev;
	map->dmabuf = dmabuf;
	map->dir = rashpa_directions[arg->direction];
	map->offset = arg->offset;
	map->length = length;
	/* callers can narrow the limits of the profile, but not widen them */
	map->limits.max_segment = min_not_zero(arg->max_segment, limits->max_segment);
	map->limits.boundary = min_not_zero(arg->boundary, limits->boundary);
	map->limits.alignment = max(arg->alignment, limits->alignment);
	map->limits.segment_size = limits->segment_size;
	map->device_only = arg->head.flags & RASHPA_MAP_DEVICE;
	map->pin = arg->head.flags & RASHPA_MAP_PIN;
	INIT_LIST_HEAD(&map->stale);
	INIT_LIST_HEAD(&map->reprogram);
	INIT_DELAYED_WORK(&map->restore, rashpa_map_restore);
	init_waitqueue_head(&map->wait);
	map->restored = jiffies - HZ;
	return map;
}

/* If the memory moves after this, the generation changes. */
static void rashpa_map_answer(const struct rashpa_map *map, struct rashpa_map_make *arg)
{
	const struct rashpa_pieces *pieces = map->pieces;

	dma_resv_assert_held(map->dmabuf->resv);
	arg->out_class = map->table->map_class;
	arg->out_generation = map->table->generation;
	arg->out_segments = map->table->count;
	arg->out_table_size = map->table_size;
	arg->out_id = map->id;
	arg->out_flags = (pieces->remapped ? RASHPA_MAPPED_REMAPPED : 0) |
			 (pieces->coherent ? RASHPA_MAPPED_COHERENT : 0);
	arg->out_peer = pieces->peer ? rashpa_bdf(pieces->peer) : 0;
	arg->out_peer_bar = pieces->peer ? (s32)pieces->peer_bar : -1;
}

/*
 * First part of MAP_MAKE, with the function locked: add a new map to its function and create its
 * file, whose release ends the map from now on. Return: a map that owns @dmabuf, with its lock
 * held: a removal of the function has to wait for it.
 */
static struct rashpa_map *rashpa_map_begin(struct rashpa_call *call, struct rashpa_device *dev,
					   const struct rashpa_map_make *arg,
					   struct dma_buf *dmabuf)
{
	const struct rashpa_memory *memory = rashpa_dmabuf_memory(dmabuf);
	struct rashpa_map *map;
	struct file *file;
	u64 length;
	int err;

	lockdep_assert_held(&dev->lock);
	err = rashpa_map_check_memory(call, dev, arg, dmabuf, &length) ?:
	      rashpa_device_master(call, dev);
	if (err)
		return ERR_PTR(err);
	map = rashpa_map_new(dev, arg, dmabuf, length);
	err = -ENOMEM;
	if (map && xa_alloc_cyclic(&rashpa_map_ids, &map->id, map, XA_LIMIT(1, INT_MAX),
				   &rashpa_map_next, GFP_KERNEL) >= 0)
		err = rashpa_charge(call, &map->charge, RASHPA_RESOURCE_MAPS, dev->id, 1, 0);
	if (err)
		goto out;
	rashpa_charge_label(&map->charge, map->id, memory ? memory->name : dmabuf->exp_name);
	file = anon_inode_getfile("[rashpa-map]", &rashpa_map_fops, map, O_RDONLY | O_CLOEXEC);
	err = PTR_ERR_OR_ZERO(file);
	if (err)
		goto out;
	call->new_file = file;
	mutex_lock(&map->lock);
	kref_get(&map->ref);
	scoped_guard(mutex, &dev->hw_lock)
		list_add_tail(&map->entry, &dev->maps);
	dev->n_maps++;
	atomic_inc(&dev->n_imports);
	return map;

out:
	if (map)
		kref_put(&map->ref, rashpa_map_put);
	rashpa_device_idle(dev);
	return ERR_PTR(err);
}

/* Second part of MAP_MAKE, with the map locked only: the exporter may take long. */
static int rashpa_map_import(struct rashpa_call *call, struct rashpa_map *map,
			     struct rashpa_map_make *arg)
{
	int err;

	err = rashpa_map_attach(call, map);
	if (!err)
		err = rashpa_map_fill(call, map);
	if (!err) {
		rashpa_map_answer(map, arg);
		dma_resv_unlock(map->dmabuf->resv);
		map->seen = arg->out_generation;
		arg->out_fd = call->fd;
	}
	mutex_unlock(&map->lock);
	return err;
}

int rashpa_ioc_map(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_map_make *make = arg;
	struct rashpa_map *map;
	struct dma_buf *dmabuf;
	int err = rashpa_map_check(call, make);

	if (err)
		return err;
	dmabuf = dma_buf_get(make->fd);
	if (IS_ERR(dmabuf))
		return rashpa_fail(call, PTR_ERR(dmabuf), "fd %d is not a dma-buf", make->fd);
	err = rashpa_device_lock(call, dev);
	if (err) {
		dma_buf_put(dmabuf);
		return err;
	}
	map = rashpa_map_begin(call, dev, make, dmabuf);
	mutex_unlock(&dev->lock);
	if (!IS_ERR(map))
		return rashpa_map_import(call, map, make);
	dma_buf_put(dmabuf);
	return PTR_ERR(map);
}

int rashpa_maps_init(void)
{
	rashpa_map_wq = alloc_workqueue("rashpa", WQ_UNBOUND, 0);
	return rashpa_map_wq ? 0 : -ENOMEM;
}

void rashpa_maps_exit(void)
{
	destroy_workqueue(rashpa_map_wq);
}
