/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a map is made of. Only for the files that make maps and program them.
 */
#ifndef RASHPA_MAP_H
#define RASHPA_MAP_H

#include <linux/wait.h>
#include <linux/workqueue.h>

#include "rashpa_account.h"
#include "rashpa_function.h"

/**
 * struct rashpa_limits - what a segment may be
 * @max_segment: bytes, 0 for any
 * @boundary: power of two that it may not cross, 0 for none
 * @alignment: power of two that its address is a multiple of, 0 for any
 */
struct rashpa_limits {
	u64 max_segment;
	u64 boundary;
	u64 alignment;
};

/**
 * struct rashpa_map - one map
 * @dev: the importer; one reference
 * @id: in events
 * @entry: in rashpa_device.maps (its lock)
 * @dmabuf: the memory; one reference, NULL once the function was removed
 * @attach: attachment, NULL once the function was removed (device lock)
 * @sgt: mapping, NULL while revoked (reservation lock)
 * @pieces: of @sgt, NULL while revoked (reservation lock)
 * @dir: direction
 * @offset: first byte of the memory
 * @length: bytes
 * @limits: of the segments
 * @device_only: host memory is refused
 * @keep: stays when the file goes
 * @kept: the file has gone (@dev->lock)
 * @restore: makes it valid again, when the exporter says that it can be
 * @table: what user space may mmap; written under hw_lock
 * @table_size: bytes, whole pages
 * @room: segments that fit into it
 * @regs: programmed entries, or NULL (hw_lock)
 * @regs_phys: their CPU address
 * @layout: of an entry
 * @entries: programmed
 * @stale: in rashpa_device.stale (hw_lock)
 * @wait: for a new generation
 * @charge: of the map and its table
 * @held: of the memory that it keeps, where nobody else is charged with that
 */
struct rashpa_map {
	struct rashpa_device *dev;
	u32 id;
	struct list_head entry;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	struct rashpa_pieces *pieces;
	enum dma_data_direction dir;
	u64 offset;
	u64 length;
	struct rashpa_limits limits;
	bool device_only;
	bool keep;
	bool kept;
	struct work_struct restore;
	struct rashpa_table *table;
	size_t table_size;
	u32 room;
	void __iomem *regs;
	phys_addr_t regs_phys;
	struct rashpa_layout layout;
	u32 entries;
	struct list_head stale;
	wait_queue_head_t wait;
	struct rashpa_charge charge;
	struct rashpa_charge held;
};

/**
 * struct rashpa_map_file - one open file of a map
 * @map: the map, owned by the file
 * @seen: generation that read() returned last
 */
struct rashpa_map_file {
	struct rashpa_map *map;
	u64 seen;
};

void rashpa_unprogram(struct rashpa_map *map);

#endif /* RASHPA_MAP_H */
