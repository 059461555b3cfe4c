/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a map is made of. Only for the files that make maps and program them.
 */
#ifndef RASHPA_MAP_H
#define RASHPA_MAP_H

#include <linux/kref.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/account.h"
#include "function/function.h"

/**
 * struct rashpa_limits - what a segment may be
 * @max_segment: bytes, 0 for any
 * @boundary: power of two that it may not cross, 0 for none
 * @alignment: power of two that its address is a multiple of, 0 for any
 * @segment_size: exactly so many bytes, 0 for any
 */
struct rashpa_limits {
	u64 max_segment;
	u64 boundary;
	u64 alignment;
	u64 segment_size;
};

struct rashpa_descriptors;

/**
 * struct rashpa_map - one map
 * @ref: one for the file, one for the list that it is in
 * @dev: the importer; one reference
 * @id: in events
 * @entry: in rashpa_device.maps (written under its lock and hw_lock), then in the list of who has
 *	ended it
 * @lock: held while the exporter attaches, maps or lets go, which may take it long; only
 *	reservation locks and hw_lock inside
 * @dmabuf: the memory; one reference, until it is detached
 * @attach: attachment, or NULL (@lock)
 * @pinned: it is (@lock)
 * @sgt: mapping, NULL while revoked (reservation lock)
 * @pieces: of @sgt, NULL while revoked (reservation lock)
 * @dir: direction
 * @offset: first byte of the memory
 * @length: bytes
 * @limits: of the segments
 * @device_only: host memory is refused
 * @pin: the exporter may not move it
 * @ended: for good (@dev->lock and hw_lock)
 * @restore: makes it valid again, when the exporter lets it
 * @restored: jiffies when that happened last (reservation lock)
 * @give_up: jiffies when it is tried no more (reservation lock)
 * @delay: jiffies between the tries (reservation lock)
 * @table: what user space may mmap; written under hw_lock, its segments with @lock while it is not
 *	valid
 * @table_size: bytes, whole pages
 * @size: bytes that the map is charged with, for its table and what the exporter says
 * @room: segments that fit into it
 * @programmed: some of its entries may be in the function's table (hw_lock)
 * @place: entries of the table from @first on that are this map's, 0 for none; a map that the
 *	kernel programs again keeps them while it is revoked (hw_lock)
 * @entries: number of entries that were written (hw_lock)
 * @ring: descriptors that the function fetches, or NULL (written under @lock, freed when the map
 *	is detached; who has @dev->lock, and sees that the map has not ended, may use it)
 * @again: in rashpa_device.again: the kernel programs it by itself (hw_lock)
 * @first: first entry of its place (written under @dev->lock and hw_lock)
 * @resets: of its function, when it was programmed last (hw_lock)
 * @told: shown to a process once, or programmed where not one engine alone reads: whatever is in
 *	the function may have the addresses (hw_lock)
 * @engines: a bit for each engine that may have them, as it was programmed in its entries
 *	(written under @dev->lock and hw_lock)
 * @stale: in rashpa_device.stale (hw_lock)
 * @wait: for a new generation
 * @charge: of the map and its table
 */
struct rashpa_map {
	struct kref ref;
	struct rashpa_device *dev;
	u32 id;
	struct list_head entry;
	struct mutex lock;		/* attaching, mapping, letting go */
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
	struct list_head again;
	u32 first;
	u32 resets;
	bool told;
	u64 engines;
	struct list_head stale;
	wait_queue_head_t wait;
	struct rashpa_charge charge;
};

/**
 * struct rashpa_map_file - one open file of a map
 * @map: the map, one reference
 * @seen: generation that read() returned last
 */
struct rashpa_map_file {
	struct rashpa_map *map;
	u64 seen;
};

/* --------------------------- function/program.c, descriptors.c --- */

int rashpa_map_check_others(struct rashpa_call *call, const struct rashpa_map *map, u64 engine);
int rashpa_unprogram(struct rashpa_map *map);
u32 rashpa_program_again(struct rashpa_map *map);
int rashpa_fetch_room(struct rashpa_call *call, struct rashpa_map *map,
		      const struct rashpa_fetching *fetch);
int rashpa_fetch_fits(struct rashpa_call *call, const struct rashpa_map *map, u32 from, u32 end,
		      u64 *sum);
int rashpa_fetch_fits_registers(struct rashpa_call *call, const struct rashpa_map *map);
bool rashpa_fetch_more(struct rashpa_map *map, u32 most, u64 *sum);
void rashpa_fetch_point(struct rashpa_map *map, void __iomem *regs);
void rashpa_fetch_clear(struct rashpa_map *map);
void rashpa_fetch_end(struct rashpa_map *map);

/* ----------------------------------------- function/segments.c --- */

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

void rashpa_table_begin(struct rashpa_table *table);
void rashpa_table_end(struct rashpa_table *table);
int rashpa_walk(struct rashpa_call *call, struct rashpa_walk *w,
		const struct rashpa_pieces *pieces);
void rashpa_table_free(struct rashpa_table *table);
int rashpa_table_mmap(struct rashpa_table *table, struct vm_area_struct *vma);
int rashpa_map_room(struct rashpa_call *call, struct rashpa_map *map, u64 count,
		    const struct rashpa_pieces *pieces);

/* ------------------------------------------- function/revoke.c --- */

extern struct workqueue_struct *rashpa_map_wq;
extern const struct dma_buf_attach_ops rashpa_attach_ops;

void rashpa_map_event(struct rashpa_map *map, u32 state);
void rashpa_map_refuse(struct rashpa_map *map, struct dma_buf_attachment *attach,
		       struct rashpa_pieces *pieces, struct sg_table *sgt);
void rashpa_map_unmap(struct rashpa_map *map, struct dma_buf_attachment *attach);
void rashpa_map_revoke(struct rashpa_map *map, bool for_good);

/* ------------------------------------------- function/import.c --- */

int rashpa_map_gone(struct rashpa_call *call, const struct rashpa_map *map);
int rashpa_map_bounced(struct rashpa_call *call, struct rashpa_device *dev);
int rashpa_map_attach(struct rashpa_call *call, struct rashpa_map *map);
int rashpa_map_fill(struct rashpa_call *call, struct rashpa_map *map);
int rashpa_map_again(struct rashpa_call *call, struct rashpa_map *map);
void rashpa_map_restore(struct work_struct *work);

#endif /* RASHPA_MAP_H */
