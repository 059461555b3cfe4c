/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internal declarations of the files that create and program maps.
 */
#ifndef RASHPA_MAP_H
#define RASHPA_MAP_H

#include <linux/kref.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/account.h"
#include "function/function.h"

struct rashpa_descriptors;

/**
 * struct rashpa_map - one map
 * @ref: reference count: one for the file, one for the list that holds the map
 * @dev: importing function, with one reference; constant
 * @id: number of the map in events, constant
 * @entry: entry in rashpa_device.maps (written under its lock and hw_lock), later in the list
 *	of the caller that ended the map
 * @lock: held while the exporter attaches, maps or unmaps, which may take long; only
 *	reservation locks and hw_lock nest inside
 * @dmabuf: the memory, with one reference until it is detached (written under @lock)
 * @attach: attachment, or NULL (@lock)
 * @pinned: @attach is pinned (@lock)
 * @sgt: mapping, NULL while revoked (reservation lock)
 * @pieces: merged ranges of @sgt, NULL while revoked (reservation lock)
 * @dir: DMA direction, constant
 * @offset: offset of the first mapped byte in the memory, constant
 * @length: length in bytes, constant
 * @limits: limits of segments, constant
 * @device_only: host memory is refused, constant
 * @pin: the exporter may not move the memory, constant
 * @ended: ended for good (written under @dev->lock and hw_lock)
 * @restore: work that maps the memory again after a revocation; queued under the reservation lock
 *	or hw_lock, cancelled when nothing can queue it any more
 * @restored: jiffies of the last mapping (reservation lock)
 * @give_up: jiffies after which @restore stops trying (reservation lock)
 * @delay: jiffies until the next try of @restore (reservation lock)
 * @table: table that user space may mmap; written under hw_lock, its segments under @lock
 *	while it is not valid
 * @table_size: bytes of @table, whole pages (@lock)
 * @size: charged bytes of @table and of the exporter's mapping (@lock)
 * @room: segments that fit into @table (@lock)
 * @programmed: the function's table may hold entries of this map (hw_lock)
 * @place: number of reserved table entries from @first, 0 for none; a map on @reprogram keeps
 *	them while it is revoked (hw_lock)
 * @entries: number of written entries (hw_lock)
 * @ring: descriptors that the function fetches, or NULL (written under @lock, freed when the map
 *	is detached; holders of @dev->lock may use it until @ended)
 * @reprogram: entry in rashpa_device.reprogram: the kernel programs the map again (hw_lock)
 * @first: first reserved entry (written under @dev->lock and hw_lock)
 * @resets: value of rashpa_device.resets when the map was last programmed (hw_lock)
 * @exposed: any part of the function may know the addresses, because a process has mapped @table
 *	or the map was programmed outside the entries of one engine (hw_lock)
 * @engines: bitmap of the engines in whose entries the map was programmed (written under
 *	@dev->lock and hw_lock)
 * @stale: entry in rashpa_device.stale (hw_lock)
 * @seen: last generation that read() returned; accessed with READ_ONCE() and WRITE_ONCE()
 * @wait: woken up when the generation of @table changes; has its own lock
 * @charge: charge of the map, its table and its ring; see there for its lock
 */
struct rashpa_map {
	struct kref ref;
	struct rashpa_device *dev;
	u32 id;
	struct list_head entry;
	struct mutex lock;		/* attach, map, unmap */
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	bool pinned;
	struct sg_table *sgt;
	struct rashpa_pieces *pieces;
	enum dma_data_direction dir;
	u64 offset;
	u64 length;
	struct rashpa_limits limits;
	bool device_only;
	bool pin;
	bool ended;
	struct delayed_work restore;
	unsigned long restored;
	unsigned long give_up;
	unsigned long delay;
	struct rashpa_table *table;
	size_t table_size;
	u64 size;
	u32 room;
	bool programmed;
	u32 place;
	u32 entries;
	struct rashpa_descriptors *ring;
	struct list_head reprogram;
	u32 first;
	u32 resets;
	bool exposed;
	u64 engines;
	struct list_head stale;
	u64 seen;
	wait_queue_head_t wait;
	struct rashpa_charge charge;
};

/* --------------------------- function/program.c, descriptors.c --- */

int rashpa_map_check_others(struct rashpa_call *call, const struct rashpa_map *map, u64 engine);
int rashpa_unprogram(struct rashpa_map *map);
void rashpa_reprogram(struct rashpa_map *map);
int rashpa_fetch_room(struct rashpa_call *call, struct rashpa_map *map,
		      const struct rashpa_fetching *fetch);
int rashpa_fetch_fits(struct rashpa_call *call, const struct rashpa_map *map, u32 i, u64 sum);
void rashpa_fetch_write(struct rashpa_map *map, u32 i, u64 sum);
void rashpa_fetch_point(struct rashpa_map *map, u32 i, u64 sum);
void rashpa_fetch_clear(struct rashpa_map *map);
void rashpa_fetch_end(struct rashpa_map *map);

/* ----------------------------------------- function/segments.c --- */

void rashpa_map_event(struct rashpa_map *map, u32 state);
void rashpa_table_set(struct rashpa_table *table, u32 state, u32 class, u64 count);
s64 rashpa_segments_split(struct rashpa_call *call, const struct rashpa_limits *limits,
			  const struct rashpa_pieces *pieces, struct rashpa_segment *out);
void rashpa_table_free(struct rashpa_table *table);
int rashpa_map_room(struct rashpa_call *call, struct rashpa_map *map, u64 count,
		    const struct rashpa_pieces *pieces);

/* ------------------------------------------- function/revoke.c --- */

extern struct workqueue_struct *rashpa_map_wq;
extern const struct dma_buf_attach_ops rashpa_attach_ops;

void rashpa_map_unmap(struct rashpa_map *map);
void rashpa_map_revoke(struct rashpa_map *map, bool for_good);

/* ------------------------------------------- function/import.c --- */

int rashpa_map_gone(struct rashpa_call *call, const struct rashpa_map *map);
int rashpa_map_attach(struct rashpa_call *call, struct rashpa_map *map);
int rashpa_map_fill(struct rashpa_call *call, struct rashpa_map *map);
int rashpa_map_restore_now(struct rashpa_call *call, struct rashpa_map *map);
void rashpa_map_restore(struct work_struct *work);

#endif /* RASHPA_MAP_H */
