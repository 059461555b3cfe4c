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

/*
 * One map. A lock in brackets protects the field; with W it is held for each write. Fields with
 * none are constant. dev: rashpa_device.lock; resv: the reservation lock of @dmabuf.
 */
struct rashpa_map {
	struct kref ref;		/* one for the file, one for the list that holds the map */
	struct rashpa_device *dev;	/* importing function, with one reference */
	u32 id;				/* number of the map in events */
	/* in rashpa_device.maps (W dev and hw_lock), later in a list of the caller that ended it */
	struct list_head entry;
	/*
	 * Held while the exporter attaches, maps or unmaps, which may take long; only reservation
	 * locks and hw_lock nest inside
	 */
	struct mutex lock;
	struct dma_buf *dmabuf;		/* the memory; a reference until it is detached (W lock) */
	struct dma_buf_attachment *attach;	/* attachment, or NULL (lock) */
	bool pinned;			/* @attach is pinned (lock) */
	struct sg_table *sgt;		/* mapping, NULL while revoked (resv) */
	struct rashpa_pieces *pieces;	/* merged ranges of @sgt, NULL while revoked (resv) */
	enum dma_data_direction dir;	/* DMA direction */
	u64 offset;			/* offset of the first mapped byte in the memory */
	u64 length;			/* in bytes */
	struct rashpa_limits limits;	/* limits of segments */
	bool device_only;		/* host memory is refused */
	bool pin;			/* the exporter may not move the memory */
	bool ended;			/* ended for good (W dev and hw_lock) */
	/*
	 * Work that maps the memory again after a revocation; queued under resv or hw_lock,
	 * cancelled when nothing can queue it any more
	 */
	struct delayed_work restore;
	unsigned long restored;		/* jiffies of the last mapping (resv) */
	unsigned long give_up;		/* jiffies after which @restore stops trying (resv) */
	unsigned long delay;		/* jiffies until the next try of @restore (resv) */
	/*
	 * Table that user space may mmap (W hw_lock); its segments are written under @lock while it
	 * is not valid
	 */
	struct rashpa_table *table;
	size_t table_size;		/* bytes of @table, whole pages (lock) */
	u64 size;			/* charged for @table and the exporter's mapping (lock) */
	u32 room;			/* segments that fit into @table (lock) */
	bool programmed;		/* the function's table may hold entries of it (hw_lock) */
	/*
	 * Number of reserved table entries from @first, 0 for none; a map on @reprogram keeps them
	 * while it is revoked (hw_lock)
	 */
	u32 place;
	u32 entries;			/* number of written entries (hw_lock) */
	/*
	 * Descriptors that the function fetches, or NULL (W lock), freed when the map is detached;
	 * holders of rashpa_device.lock may use it until @ended
	 */
	struct rashpa_descriptors *ring;
	struct list_head reprogram;	/* in rashpa_device.reprogram (hw_lock) */
	u32 first;			/* first reserved entry (W dev and hw_lock) */
	u32 resets;			/* rashpa_device.resets when it was programmed (hw_lock) */
	/*
	 * Any part of the function may know the addresses, because a process has mapped @table or
	 * the map was programmed outside the entries of one engine (hw_lock)
	 */
	bool exposed;
	u64 engines;			/* bits of engines that got entries (W dev and hw_lock) */
	struct list_head stale;		/* in rashpa_device.stale (hw_lock) */
	u64 seen;			/* last generation that read() returned (READ_ONCE) */
	wait_queue_head_t wait;		/* woken up when the generation of @table changes */
	struct rashpa_charge charge;	/* charge of the map, its table and its ring */
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
