// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: split the memory of a map into segments, in a table that user space can read.
 */
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/vmalloc.h>

#include "core/compat.h"
#include "function/map.h"

/* As many as a ring has descriptors: 64 GiB of single pages. */
#define RASHPA_SEGMENTS_MAX	RASHPA_DESCRIPTORS_MAX

/* Change the header: lockless readers see an odd generation meanwhile, then a new, even one. */
void rashpa_table_set(struct rashpa_table *table, u32 state, u32 class, u64 count)
{
	WRITE_ONCE(table->generation, table->generation + 1);
	/* the odd generation before the first change */
	smp_wmb();
	table->state = state;
	table->map_class = class;
	table->count = count;
	/* the last change before the even generation */
	smp_wmb();
	WRITE_ONCE(table->generation, table->generation + 1);
}

/* Notify listeners of a new enum rashpa_map_state. */
void rashpa_map_event(struct rashpa_map *map, u32 state)
{
	lockdep_assert_held(&map->dev->hw_lock);
	rashpa_origin_fire(&map->dev->map_events, (u64)map->id << 32 | state);
}

static int rashpa_segment_check(struct rashpa_call *call, const struct rashpa_limits *limits,
				u64 address, u64 length)
{
	if (limits->segment_size && length != limits->segment_size)
		return rashpa_fail(call, -EINVAL,
				   "entries of the function's table cover 0x%llx bytes and have no length, but a segment would have 0x%llx: map a contiguous buffer in multiples of that size",
				   limits->segment_size, length);
	if (limits->alignment && !IS_ALIGNED(address, limits->alignment))
		return rashpa_fail(call, -EINVAL,
				   "a segment is not aligned to 0x%llx: allocate the buffer with that alignment",
				   limits->alignment);
	return 0;
}

/*
 * Split checked pieces into segments in @out, or count them if it is NULL. Return: number of
 * segments, -EINVAL, -E2BIG.
 */
s64 rashpa_segments_split(struct rashpa_call *call, const struct rashpa_limits *limits,
			  const struct rashpa_pieces *pieces, struct rashpa_segment *out)
{
	const u64 boundary = limits->boundary;
	s64 count = 0;
	u32 i;

	for (i = 0; i < pieces->count; i++) {
		u64 address = pieces->piece[i].address, left = pieces->piece[i].length, n;

		for (; left; address += n, left -= n) {
			int err;

			n = min_not_zero(min_not_zero(left, limits->segment_size),
					 limits->max_segment);
			if (boundary)
				n = min(n, boundary - (address & (boundary - 1)));
			err = rashpa_segment_check(call, limits, address, n);
			if (err)
				return err;
			if (count >= RASHPA_SEGMENTS_MAX)
				return rashpa_fail(call, -E2BIG,
						   "more than %u segments: use a contiguous buffer or larger segments",
						   RASHPA_SEGMENTS_MAX);
			if (out)
				out[count] = (struct rashpa_segment) { address, n };
			count++;
			cond_resched();
		}
	}
	return count;
}

/* Allocate a table for mmap. vmalloc() would take longer than the rest of the call for one page. */
static void *rashpa_table_alloc(size_t size)
{
	if (size == PAGE_SIZE)
		return (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	return __vmalloc(size, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
}

void rashpa_table_free(struct rashpa_table *table)
{
	if (is_vmalloc_addr(table))
		vfree(table);
	else
		free_page((unsigned long)table);
}

/*
 * Map memory of __vmalloc() or one page into user space. Return: 0, -EINVAL if @vma goes beyond
 * @size bytes.
 */
int rashpa_table_mmap(void *table, size_t size, struct vm_area_struct *vma)
{
	const u64 length = vma->vm_end - vma->vm_start, offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	unsigned long at;
	int err = 0;

	if (offset > size || length > size - offset)
		return -EINVAL;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	for (at = 0; at < length && !err; at += PAGE_SIZE) {
		void *p = table + offset + at;

		err = vm_insert_page(vma, vma->vm_start + at,
				     is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p));
	}
	return err;
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
		scoped_guard(mutex, &map->dev->hw_lock)
			map->table = table;
	}
	if (count > map->room)
		return rashpa_fail(call, -E2BIG,
				   "after the revocation the memory needs %llu segments, the table has room for %u: make a new map",
				   count, map->room);
	return 0;
}
