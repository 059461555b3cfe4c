// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: split the memory of a map into segments, in a table that user space can read.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "core/compat.h"
#include "function/map.h"

/* Begin a change: lockless readers see an odd generation. */
void rashpa_table_begin(struct rashpa_table *table)
{
	WRITE_ONCE(table->generation, table->generation + 1);
	/* the odd generation before the first change */
	smp_wmb();
}

/* End a change: lockless readers see a new, even generation. */
void rashpa_table_end(struct rashpa_table *table)
{
	/* the last change before the even generation */
	smp_wmb();
	WRITE_ONCE(table->generation, table->generation + 1);
}

static int rashpa_walk_emit(struct rashpa_call *call, struct rashpa_walk *w,
			    u64 address, u64 length)
{
	if (w->limits->segment_size && length != w->limits->segment_size)
		return rashpa_fail(call, -EINVAL,
				   "entries of the function's table cover 0x%llx bytes and have no length, but a segment would have 0x%llx: map a contiguous buffer in multiples of that size",
				   w->limits->segment_size, length);
	if (w->limits->alignment && !IS_ALIGNED(address, w->limits->alignment))
		return rashpa_fail(call, -EINVAL,
				   "a segment is not aligned to 0x%llx: allocate the buffer with that alignment",
				   w->limits->alignment);
	if (w->count >= RASHPA_SEGMENTS_MAX)
		return rashpa_segments_fail(call);
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
		u64 n = min_not_zero(left, w->limits->segment_size);

		if (w->limits->max_segment)
			n = min(n, w->limits->max_segment);
		if (boundary)
			n = min(n, boundary - (address & (boundary - 1)));
		err = rashpa_walk_emit(call, w, address, n);
		if (err)
			return err;
		cond_resched();
		address += n;
		left -= n;
	}
	return 0;
}

int rashpa_walk(struct rashpa_call *call, struct rashpa_walk *w, const struct rashpa_pieces *pieces)
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

/*
 * Allocate a table for mmap, charged to the caller. A table of one page needs no vmap(), which
 * would take longer than the rest of the call. After VM_MAP_PUT_PAGES vfree() frees the pages.
 */
static void *rashpa_table_alloc(size_t size)
{
	unsigned int n = size >> PAGE_SHIFT;
	struct page **pages;
	unsigned int i;
	void *table;

	if (n == 1)
		return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
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

void rashpa_table_free(struct rashpa_table *table)
{
	if (is_vmalloc_addr(table))
		vfree(table);
	else
		free_page((unsigned long)table);
}

int rashpa_table_mmap(struct rashpa_table *table, struct vm_area_struct *vma)
{
	if (is_vmalloc_addr(table))
		return remap_vmalloc_range(vma, table, vma->vm_pgoff);
	/* the error of remap_vmalloc_range() for a range beyond the table */
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start > PAGE_SIZE)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(table));
}

/* Provide a table for @count segments. A later, larger count is refused. */
int rashpa_map_room(struct rashpa_call *call, struct rashpa_map *map, u64 count,
		    const struct rashpa_pieces *pieces)
{
	const bool first = !map->table;
	struct rashpa_table *table;
	u64 size;
	int err;

	if (first)
		map->table_size = PAGE_ALIGN(struct_size(table, segment, count));
	/* the charge never shrinks: a revoked map will likely need as much again */
	size = map->table_size + pieces->size;
	if (size > map->size) {
		err = rashpa_charge_more(call, &map->charge, size - map->size);
		if (err)
			return err;
		map->size = size;
	}
	if (first) {
		table = rashpa_table_alloc(map->table_size);
		if (!table)
			return -ENOMEM;
		table->segment_size = sizeof(table->segment[0]);
		map->room = count;
		mutex_lock(&map->dev->hw_lock);
		map->table = table;
		mutex_unlock(&map->dev->hw_lock);
	}
	if (count > map->room)
		return rashpa_fail(call, -E2BIG,
				   "after the revocation the memory needs %llu segments, the table has room for %u: make a new map",
				   count, map->room);
	return 0;
}
