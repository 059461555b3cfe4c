// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: revoke maps: stop the engines or the function, clear the entries, mark the table and
 * request a new mapping, which import.c does.
 */
#include <linux/dma-resv.h>

#include "core/compat.h"
#include "core/trace.h"
#include "function/map.h"

struct workqueue_struct *rashpa_map_wq;

/*
 * Return the mapping to the exporter; the function must not use its addresses any more. After the
 * flush an IOMMU blocks them, even if the function sends them.
 */
void rashpa_map_unmap(struct rashpa_map *map)
{
	dma_resv_assert_held(map->dmabuf->resv);
	rashpa_pieces_put(map->pieces);
	dma_buf_unmap_attachment(map->attach, map->sgt, map->dir);
	rashpa_path_flush(map->dev->pdev);
	map->pieces = NULL;
	map->sgt = NULL;
}

/*
 * Clear entries of maps that were revoked during a reset. Return: 0, or -EIO if the function does
 * not answer.
 */
int rashpa_maps_clear_stale(struct rashpa_device *dev)
{
	struct rashpa_map *map, *next;
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	list_for_each_entry_safe(map, next, &dev->stale, stale)
		err = rashpa_unprogram(map) ?: err;
	return err;
}

/* Queue the maps to program again after a reset. A worker takes locks that the caller may hold. */
void rashpa_maps_reprogram(struct rashpa_device *dev)
{
	struct rashpa_map *map;

	lockdep_assert_held(&dev->hw_lock);
	list_for_each_entry(map, &dev->reprogram, reprogram)
		mod_delayed_work(rashpa_map_wq, &map->restore, 0);
}

static void rashpa_map_stale(struct rashpa_map *map)
{
	lockdep_assert_held(&map->dev->hw_lock);
	if (map->programmed && list_empty(&map->stale))
		list_add_tail(&map->stale, &map->dev->stale);
}

/* Stop only the engines that know the addresses. If that fails, stop the whole function. */
static bool rashpa_map_stop_engines(struct rashpa_map *map, ktime_t end)
{
	return !map->exposed && !rashpa_engines_stop(map->dev, map->engines, end);
}

/* Stop DMA and clear the entries of a map. If clearing fails, the function is stuck. */
static u64 rashpa_map_stop(struct rashpa_map *map)
{
	u64 what = 0, second;
	ktime_t end;
	bool alone;
	int err;

	lockdep_assert_held(&map->dev->hw_lock);
	/* the function cannot know the addresses: its DMA goes elsewhere */
	if (!map->exposed && !map->engines)
		return 0;
	/* stopped already, and cannot restart before rashpa_maps_clear_stale() */
	if (map->dev->resetting) {
		rashpa_map_stale(map);
		return 0;
	}
	end = rashpa_profile_deadline(map->dev);
	alone = rashpa_map_stop_engines(map, end);
	if (!alone) {
		end = rashpa_profile_deadline(map->dev);
		what = rashpa_device_stop_locked(map->dev, end);
	}
	err = rashpa_unprogram(map);
	if (err) {
		rashpa_map_stale(map);
		return rashpa_device_set_stuck(map->dev, err) ?: what;
	}
	/*
	 * A process with a doorbell may have restarted DMA while the table still held these
	 * addresses. They are cleared now: a second stop is final.
	 */
	if (alone && rashpa_map_stop_engines(map, end)) {
		rashpa_engines_stopped(map->dev, map->engines);
		return 0;
	}
	if (alone)
		end = rashpa_profile_deadline(map->dev);
	second = rashpa_device_stop_locked(map->dev, end);
	if (second == RASHPA_DEVICE_EVENT_STUCK)
		return second;
	/* all engines are stopped: write lost bounds again */
	if (map->dev->engines_lost)
		map->dev->engines_lost = rashpa_engines_bound(map->dev);
	return what ?: second;
}

/*
 * Revoke a map: stop DMA, clear the entries, mark the table, notify listeners. @for_good ends the
 * map and may wait for a reset. Otherwise the caller is a dma-buf callback that holds the
 * reservation lock and must not wait: this thread may run the reset.
 */
void rashpa_map_revoke(struct rashpa_map *map, bool for_good)
{
	struct rashpa_table *table;
	bool valid;
	u64 what = 0;

	if (for_good)
		rashpa_hw_lock(map->dev);
	else
		mutex_lock(&map->dev->hw_lock);
	map->ended |= for_good;
	if (for_good)
		list_del_init(&map->reprogram);
	table = map->table;
	valid = table && table->state == RASHPA_MAP_STATE_VALID;
	if (valid || map->programmed)
		what = rashpa_map_stop(map);
	trace_rashpa_revoke(map->dev->id, map->id, for_good, what);
	if (valid) {
		rashpa_table_set(table, RASHPA_MAP_STATE_REVOKED, table->map_class, 0);
		rashpa_map_event(map, RASHPA_MAP_STATE_REVOKED);
	}
	rashpa_device_stopped(map->dev, what);
	mutex_unlock(&map->dev->hw_lock);
	wake_up_all(&map->wait);
}

/* Queue a new mapping; memory that keeps moving is mapped at most once a second. */
static void rashpa_map_restore_soon(struct rashpa_map *map)
{
	const unsigned long next = map->restored + HZ;

	dma_resv_assert_held(map->dmabuf->resv);
	map->delay = time_after(jiffies, next) ? 0 : next - jiffies;
	map->give_up = jiffies + RASHPA_FENCE_LIMIT * HZ;
	mod_delayed_work(rashpa_map_wq, &map->restore, map->delay);
}

/*
 * May run during memory reclaim: it must not allocate, and no holder of hw_lock may wait for an
 * allocation.
 */
static void rashpa_map_invalidate(struct dma_buf_attachment *attach)
{
	struct rashpa_map *map = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (map->sgt) {
		rashpa_map_revoke(map, false);
		rashpa_map_unmap(map);
	}
	/* a revoked map, too: the exporter signals that something has changed */
	rashpa_map_restore_soon(map);
}

const struct dma_buf_attach_ops rashpa_attach_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = rashpa_map_invalidate,
};

/* Queue new mappings of a memory that is accessible again. A worker takes the locks of each map. */
void rashpa_maps_restore(struct dma_buf *dmabuf)
{
	struct dma_buf_attachment *attach;

	dma_resv_assert_held(dmabuf->resv);
	list_for_each_entry(attach, &dmabuf->attachments, node)
		if (attach->importer_ops == &rashpa_attach_ops)
			rashpa_map_restore_soon(attach->importer_priv);
}
