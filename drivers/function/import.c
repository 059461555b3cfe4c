// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: import the memory of a map: attach, have the exporter map it, verify the addresses and
 * publish the segments. Repeated after the exporter has moved the memory.
 */
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/swiotlb.h>

#include "core/compat.h"
#include "core/trace.h"
#include "memory/memory.h"
#include "function/map.h"

int rashpa_map_gone(struct rashpa_call *call, const struct rashpa_map *map)
{
	return rashpa_fail(call, -ENODEV,
			   "the map was ended for good, because fpga%d was removed or an administrator ended the map: close it",
			   map->dev->id);
}

/* Verify what the exporter has mapped and fill the table. */
static int rashpa_map_build(struct rashpa_call *call, struct rashpa_map *map)
{
	const bool refill = map->table;
	struct rashpa_pieces *pieces;
	s64 count;
	int err;

	/* a window maps only what rashpa_window_trust() requested */
	pieces = rashpa_pieces_get(call, map->dev, map->sgt, map->dir,
				   rashpa_window_of(map->dmabuf) ? 0 : map->offset, map->length);
	if (IS_ERR(pieces))
		return PTR_ERR(pieces);
	map->pieces = pieces;
	err = rashpa_pieces_check(call, map->dev, pieces, rashpa_dmabuf_memory(map->dmabuf),
				  map->device_only);
	if (err)
		return err;
	count = rashpa_segments_split(call, &map->limits, pieces, NULL);
	err = count < 0 ? count : rashpa_map_room(call, map, count, pieces);
	if (err)
		return err;
	/* millions of segments: without hw_lock, because nothing reads a table that is not valid */
	rashpa_segments_split(call, &map->limits, pieces, map->table->segment);	/* cannot fail */
	guard(mutex)(&map->dev->hw_lock);
	if (map->ended)
		return rashpa_map_gone(call, map);
	rashpa_table_set(map->table, RASHPA_MAP_STATE_VALID, pieces->class, count);
	trace_rashpa_map(map->dev->id, map->id, pieces->class, count, map->table->generation);
	if (refill)
		rashpa_map_event(map, RASHPA_MAP_STATE_VALID);
	if (!list_empty(&map->reprogram))
		mod_delayed_work(rashpa_map_wq, &map->restore, 0);
	return 0;
}

/*
 * Other drivers may return any error, even numbers that user space does not know. The driver of
 * NVIDIA returns ENOTSUPP.
 */
static int rashpa_foreign_error(struct rashpa_call *call, struct rashpa_map *map, int err,
				const char *what)
{
	struct rashpa_device *peer = rashpa_window_of(map->dmabuf);
	const char *name = map->dmabuf->exp_name;

	if (peer && err == -ENODEV)
		return rashpa_fail(call, err,
				   "fpga%d, the function of the window, was removed: close the window and this map",
				   peer->id);
	if (peer && err == -EAGAIN)
		return rashpa_fail(call, err,
				   "fpga%d, the function of the window, is being reset: try again after the reset",
				   peer->id);
	switch (err) {
	case -ENOTSUPP:
	case -EOPNOTSUPP:
		return rashpa_fail(call, -EOPNOTSUPP,
				   "the exporter %s cannot %s for fpga%d: it does not support this",
				   name, what, map->dev->id);
	case -EINTR:
	case -ERESTARTSYS:
	case -ERESTARTNOINTR:
	case -ERESTARTNOHAND:
		return rashpa_fail(call, -EINTR, "interrupted by a signal");
	}
	return rashpa_fail(call, err <= -ERESTARTSYS ? -EREMOTEIO : err,
			   "the exporter %s cannot %s for fpga%d: error %d", name, what,
			   map->dev->id, -err);
}

/*
 * Would the function access a bounce buffer? Its writes would be invisible to everyone else. Probe
 * with a mapping for reading: it is never copied back over the memory.
 */
static int rashpa_map_check_bounce(struct rashpa_call *call, struct rashpa_map *map)
{
	struct device *d = &map->dev->pdev->dev;
	bool bounced = false;
	struct scatterlist *sg;
	struct sg_table *sgt;
	int i;

	/* rashpa_map_check_reach() covers this driver's memory */
	if (rashpa_pci_translated(map->dev->pdev) || rashpa_window_of(map->dmabuf) ||
	    rashpa_dmabuf_memory(map->dmabuf) ||
	    (!is_swiotlb_force_bounce(d) && !dma_addressing_limited(d)))
		return 0;
	sgt = dma_buf_map_attachment(map->attach, DMA_TO_DEVICE);
	/* the mapping is too large for a bounce buffer */
	if (sgt == ERR_PTR(-ENOMEM) || sgt == ERR_PTR(-EIO) || sgt == ERR_PTR(-EINVAL))
		return rashpa_dma_fail(call, map->dev);
	if (IS_ERR(sgt))
		return rashpa_foreign_error(call, map, PTR_ERR(sgt), "map this memory");
	for_each_sgtable_dma_sg(sgt, sg, i) {
		bounced |= sg_dma_len(sg) && rashpa_is_bounced(d, sg);
		cond_resched();
	}
	dma_buf_unmap_attachment(map->attach, sgt, DMA_TO_DEVICE);
	return bounced ? rashpa_dma_fail(call, map->dev) : 0;
}

static bool rashpa_map_settled(struct rashpa_map *map)
{
	return dma_resv_test_signaled(map->dmabuf->resv, DMA_RESV_USAGE_KERNEL);
}

/*
 * Have the exporter map the memory, verify the addresses and fill the table. All this happens under
 * the reservation lock: as soon as it is released, the exporter may revoke the mapping and the
 * table.
 *
 * Return: 0, or -EINPROGRESS if the exporter is still moving the memory.
 */
static int rashpa_map_fill_locked(struct rashpa_call *call, struct rashpa_map *map)
{
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(map->dmabuf->resv);
	if (map->sgt)
		return 0;
	if (!rashpa_map_settled(map))
		return -EINPROGRESS;
	err = rashpa_map_check_bounce(call, map);
	if (err)
		return err;
	sgt = dma_buf_map_attachment(map->attach, map->dir);
	if (IS_ERR(sgt))
		return rashpa_foreign_error(call, map, PTR_ERR(sgt), "map this memory");
	map->sgt = sgt;
	err = rashpa_map_settled(map) ? rashpa_map_build(call, map) : -EINPROGRESS;
	if (err) {
		rashpa_map_unmap(map);
		return err;
	}
	map->restored = jiffies;
	wake_up_all(&map->wait);
	return 0;
}

/*
 * Wait until the exporter has moved the memory. The reservation lock is not held: the exporter and
 * other importers may need it.
 */
static int rashpa_map_settle(struct rashpa_call *call, struct rashpa_map *map, unsigned long end)
{
	long left = 0;

	while (!left && time_before(jiffies, end) && !READ_ONCE(map->ended))
		left = dma_resv_wait_timeout(map->dmabuf->resv, DMA_RESV_USAGE_KERNEL, true,
					     HZ / 10);
	if (left > 0)
		return 0;
	if (left < 0)
		return -EINTR;
	return rashpa_fail(call, -ETIMEDOUT,
			   "the exporter %s did not finish moving this memory in %d s: try again",
			   map->dmabuf->exp_name, RASHPA_FENCE_LIMIT);
}

/* Map the memory once it has stopped moving. On success the reservation lock is held. */
int rashpa_map_fill(struct rashpa_call *call, struct rashpa_map *map)
{
	const unsigned long end = jiffies + RASHPA_FENCE_LIMIT * HZ;
	int err;

	lockdep_assert_held(&map->lock);
	for (;;) {
		err = dma_resv_lock_interruptible(map->dmabuf->resv, NULL);
		if (err)
			return err;
		err = rashpa_map_fill_locked(call, map);
		if (!err)
			return 0;
		dma_resv_unlock(map->dmabuf->resv);
		if (err == -EINPROGRESS)
			err = rashpa_map_settle(call, map, end);
		if (err)
			return err;
	}
}

int rashpa_map_attach(struct rashpa_call *call, struct rashpa_map *map)
{
	struct dma_buf_attachment *attach;
	int err;

	lockdep_assert_held(&map->lock);
	might_lock(&map->dmabuf->resv->lock.base);
	attach = dma_buf_dynamic_attach(map->dmabuf, &map->dev->pdev->dev, &rashpa_attach_ops, map);
	if (IS_ERR(attach))
		return rashpa_foreign_error(call, map, PTR_ERR(attach), "attach this memory");
	map->attach = attach;
	rashpa_window_trust(attach, map->offset, map->length);
	if (!map->pin)
		return 0;
	dma_resv_lock(map->dmabuf->resv, NULL);
	err = dma_buf_pin(attach);
	map->pinned = !err;
	dma_resv_unlock(map->dmabuf->resv);
	return err ? rashpa_foreign_error(call, map, err, "pin this memory") : 0;
}

/* --------------------------------------------------------- restoring ---- */

/*
 * Restore a map automatically only while bus mastering is on. It is off after a stop that failed
 * or had no quiesce sequence: turning it on would resume the old DMA.
 */
void rashpa_map_restore(struct work_struct *work)
{
	struct rashpa_map *map = container_of(to_delayed_work(work), struct rashpa_map, restore);
	struct rashpa_call call = {};
	bool may;

	/* a stop of the exporter's call that has failed, see rashpa_map_invalidate() */
	scoped_guard(mutex, &map->dev->lock)
		rashpa_device_recover(map->dev);
	mutex_lock(&map->lock);
	/* NULL after a close */
	if (map->attach) {
		dma_resv_lock(map->dmabuf->resv, NULL);
		scoped_guard(mutex, &map->dev->hw_lock)
			may = map->dev->master && !map->ended;
		/* the reason is lost here: RASHPA_IOC_RESTORE reports it */
		if (may && rashpa_map_fill_locked(&call, map) &&
		    time_before(jiffies, map->give_up)) {
			map->delay = min_t(unsigned long, 2 * map->delay + 1, HZ);
			mod_delayed_work(rashpa_map_wq, &map->restore, map->delay);
		}
		dma_resv_unlock(map->dmabuf->resv);
	}
	mutex_unlock(&map->lock);
	guard(mutex)(&map->dev->lock);
	might_lock(&map->dev->hw_lock);
	rashpa_reprogram(map);
}

/* Restore a map on request; does nothing if it is valid. */
int rashpa_map_restore_now(struct rashpa_call *call, struct rashpa_map *map)
{
	int err;

	if (mutex_lock_interruptible(&map->lock))
		return -EINTR;
	err = map->attach ? rashpa_map_fill(call, map) : rashpa_map_gone(call, map);
	if (!err)
		dma_resv_unlock(map->dmabuf->resv);
	mutex_unlock(&map->lock);
	return err;
}
