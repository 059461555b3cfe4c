// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: the queue of a channel as memory that user space maps.
 *
 * The kernel writes records and the head, and users map them read-only. The consumer writes the
 * tail in separate pages. The kernel limits the tail to a valid range; a wrong tail harms only the
 * consumer.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/vmalloc.h>

#include "events/events.h"

/* offset of the first record: the second cache line */
#define RASHPA_RING_RECORDS	64

/* Allocate the queue of a charged channel with n_sources set. Return: 0, -ENOMEM, -EDQUOT. */
int rashpa_ring_init(struct rashpa_call *call, struct rashpa_channel *ch, u32 depth)
{
	const u32 slots = roundup_pow_of_two(depth);
	void *p;
	int err;

	BUILD_BUG_ON(sizeof(struct rashpa_ring) > RASHPA_RING_RECORDS);

	ch->ring_size = PAGE_ALIGN(RASHPA_RING_RECORDS + array_size(slots, sizeof(*ch->records)));
	ch->consumer_size = PAGE_ALIGN(struct_size(ch->consumer, ack, ch->n_sources));
	err = rashpa_charge_more(call, &ch->charge, ch->ring_size + ch->consumer_size);
	if (err)
		return err;
	/* zeroed whole pages, because users map them; ENOMEM instead of a warning */
	p = __vmalloc(ch->ring_size + ch->consumer_size,
		      GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	if (!p)
		return -ENOMEM;
	ch->ring = p;
	ch->records = p + RASHPA_RING_RECORDS;
	ch->consumer = p + ch->ring_size;
	ch->depth = depth;
	ch->mask = slots - 1;
	ch->ring->record = RASHPA_RING_RECORDS;
	ch->ring->record_size = sizeof(*ch->records);
	ch->ring->slots = slots;
	ch->ring->depth = depth;
	return 0;
}

/*
 * Map the ring or the consumer's pages, from their beginning. Return: 0, -EINVAL (another range, or
 * private), -EACCES (the ring for writing).
 */
int rashpa_ring_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rashpa_channel *ch = file->private_data;
	const u64 length = vma->vm_end - vma->vm_start;
	const u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (offset != ch->ring_size) {
		if (offset || length > ch->ring_size)
			return -EINVAL;
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	return rashpa_table_mmap(ch->ring, ch->ring_size + ch->consumer_size, vma);
}
