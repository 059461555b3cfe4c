// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: may a function still write there? The addresses of a map end: the engine or the function
 * is stopped, its table is cleared, and readers see it. The request to have them again is here,
 * too; import.c does it.
 */
#include <linux/dma-resv.h>

#include "core/compat.h"
#include "function/map.h"

struct workqueue_struct *rashpa_map_wq;

/**
 * rashpa_map_event() - tell who listens to the state of a map
 * @map: the map; hw_lock of its function held
 * @state: enum rashpa_map_state
 */
void rashpa_map_event(struct rashpa_map *map, u32 state)
{
	lockdep_assert_held(&map->dev->hw_lock);
	rashpa_origin_fire(&map->dev->map_events, (u64)map->id << 32 | state);
}

/* From here on an IOMMU refuses the addresses, also if the function still sends them. */
void rashpa_map_unmap_sgt(struct rashpa_map *map, struct dma_buf_attachment *attach,
		       struct rashpa_pieces *pieces, struct sg_table *sgt)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	rashpa_pieces_put(pieces);
	dma_buf_unmap_attachment(attach, sgt, map->dir);
	rashpa_path_flush(map->dev->pdev);
}

/* The function cannot use the addresses any more: give them back to the exporter. */
void rashpa_map_unmap(struct rashpa_map *map, struct dma_buf_attachment *attach)
{
	rashpa_map_unmap_sgt(map, attach, map->pieces, map->sgt);
	map->pieces = NULL;
	map->sgt = NULL;
}

/**
 * rashpa_maps_clear_stale() - clear what could not be cleared when it ended
 * @dev: the function, hw_lock held; its registers are there again
 *
 * Return: 0, -EIO if the function does not answer.
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

/**
 * rashpa_maps_reprogram() - the function has forgotten what maps were programmed
 * @dev: the function, hw_lock held
 *
 * Those that ask for it are programmed by a worker: that takes locks which the caller may hold.
 */
void rashpa_maps_reprogram(struct rashpa_device *dev)
{
	struct rashpa_map *map;

	lockdep_assert_held(&dev->hw_lock);
	list_for_each_entry(map, &dev->reprogram, reprogram)
		mod_delayed_work(rashpa_map_wq, &map->restore, 0);
}

static void rashpa_map_stale(struct rashpa_map *map)
{
	if (map->programmed && list_empty(&map->stale))
		list_add_tail(&map->stale, &map->dev->stale);
}

/*
 * Stop the engines that have the addresses, if nothing else can have them. Where one does not stop
 * the function has to.
 */
static bool rashpa_map_stop_engines(struct rashpa_map *map, ktime_t end)
{
	return !map->exposed && !rashpa_engines_stop(map->dev, map->engines, end);
}

/* Stop the function, and clear its table. What cannot be cleared must not be used. */
static u64 rashpa_map_stop(struct rashpa_map *map)
{
	u64 what = 0, second;
	ktime_t end;
	bool alone;
	int err;

	lockdep_assert_held(&map->dev->hw_lock);
	/* nobody could have told it the addresses: what it streams goes elsewhere */
	if (!map->exposed && !map->engines)
		return 0;
	/* it has been stopped, and cannot start before rashpa_maps_clear_stale() */
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
	 * Whoever has a doorbell may have started the function again while its table still
	 * held these addresses. Now that it does not, the second stop is the last word.
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
	/* bounds that were lost: nothing runs that could be in their way */
	if (map->dev->engines_lost)
		map->dev->engines_lost = rashpa_engines_bound(map->dev);
	return what ?: second;
}

/*
 * The addresses end, if there are any: stop the function, clear its table, tell the readers. A
 * dma-buf callback, which has the reservation lock, does not wait for a reset of the function: it
 * may be this thread's. @for_good: it is no callback, and the map cannot come back.
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
	map->dev->quiesces += !!what;
	if (valid) {
		rashpa_table_begin(table);
		table->state = RASHPA_MAP_STATE_REVOKED;
		table->count = 0;
		rashpa_table_end(table);
		rashpa_map_event(map, RASHPA_MAP_STATE_REVOKED);
	}
	if (what)
		rashpa_device_event(map->dev, what);
	mutex_unlock(&map->dev->hw_lock);
	wake_up_all(&map->wait);
}

/* Try to have the addresses again; what moves all the time is followed once a second. */
static void rashpa_map_restore_soon(struct rashpa_map *map)
{
	const unsigned long next = map->restored + HZ;

	dma_resv_assert_held(map->dmabuf->resv);
	map->delay = time_after(jiffies, next) ? 0 : next - jiffies;
	map->give_up = jiffies + RASHPA_FENCE_LIMIT * HZ;
	mod_delayed_work(rashpa_map_wq, &map->restore, map->delay);
}

/*
 * The exporter may be short of memory, and whatever is waiting for memory waits for this: it
 * allocates nothing, and nothing is allocated under the lock that it takes.
 */
static void rashpa_map_invalidate(struct dma_buf_attachment *attach)
{
	struct rashpa_map *map = attach->importer_priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (map->sgt) {
		rashpa_map_revoke(map, false);
		rashpa_map_unmap(map, attach);
	}
	/* also to one that has none: the exporter says that something has changed */
	rashpa_map_restore_soon(map);
}

const struct dma_buf_attach_ops rashpa_attach_ops = {
	.allow_peer2peer = true,
	.RASHPA_ATTACH_INVALIDATE = rashpa_map_invalidate,
};

/**
 * rashpa_maps_restore() - a memory can be mapped again: let its maps know
 * @dmabuf: the memory; its reservation lock is held
 *
 * They do it later: it takes locks of their own.
 */
void rashpa_maps_restore(struct dma_buf *dmabuf)
{
	struct dma_buf_attachment *attach;

	dma_resv_assert_held(dmabuf->resv);
	list_for_each_entry(attach, &dmabuf->attachments, node)
		if (attach->importer_ops == &rashpa_attach_ops)
			rashpa_map_restore_soon(attach->importer_priv);
}
