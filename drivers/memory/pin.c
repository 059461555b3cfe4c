// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: memory of a process, pinned where it is, as a dma-buf.
 */
#include <linux/backing-dev.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "memory/memory.h"

/* Pages are pinned in pieces of this many: one page of pointers. */
#define RASHPA_PIN_CHUNK	(PAGE_SIZE / sizeof(struct page *))

/* Pinned memory. */
struct rashpa_pinned {
	struct kref ref;		/* one reference for its dma-buf */
	struct rashpa_memory memory;
	struct mm_struct *mm;		/* address space that is charged with the pages */
	unsigned long charged;		/* pages in its pinned_vm */
	struct rashpa_charge charge;	/* the same as memory */
	unsigned long held;		/* pages that are held by that: larger pages as a whole */
	struct folio *last;		/* the last of these */
	struct rashpa_extent *extents;	/* contiguous pieces in the order of the addresses */
	u32 room;			/* extents that there is room for */
};

static int rashpa_pin_add(struct rashpa_pinned *pinned, struct page *page)
{
	struct rashpa_extent *last = pinned->extents + pinned->memory.n_extents - 1;
	struct rashpa_extent *more;
	u32 room;

	if (pinned->memory.n_extents &&
	    page_to_pfn(last->first) + last->count == page_to_pfn(page)) {
		last->count++;
		return 0;
	}
	if (pinned->memory.n_extents == pinned->room) {
		if (check_mul_overflow(max(pinned->room, 32u), 2u, &room))
			return -E2BIG;
		more = kvmalloc_array(room, sizeof(*more), GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
		if (!more)
			return -ENOMEM;
		if (pinned->memory.n_extents)
			memcpy(more, pinned->extents, pinned->memory.n_extents * sizeof(*more));
		kvfree(pinned->extents);
		pinned->extents = more;
		pinned->room = room;
	}
	pinned->extents[pinned->memory.n_extents].first = page;
	pinned->extents[pinned->memory.n_extents].count = 1;
	pinned->memory.n_extents++;
	return 0;
}

/* Unpin the pages, which are not mapped any more. */
static void rashpa_pinned_free(struct kref *ref)
{
	struct rashpa_pinned *pinned = container_of(ref, struct rashpa_pinned, ref);
	u32 i;

	/* a device or a process may have written them */
	for (i = 0; i < pinned->memory.n_extents; i++) {
		unpin_user_page_range_dirty_lock(pinned->extents[i].first,
						 pinned->extents[i].count, true);
		cond_resched();
	}
	kvfree(pinned->extents);
	rashpa_uncharge(&pinned->charge);
	atomic64_sub(pinned->charged, &pinned->mm->pinned_vm);
	mmdrop(pinned->mm);
	kfree(pinned);
}

static void rashpa_pinned_info(struct rashpa_memory *memory, struct rashpa_info *info)
{
	info->out_kind = RASHPA_KIND_PINNED;
	info->out_cache = RASHPA_CACHE_CACHED;
}

/* It is mapped already where it is; anonymous pages cannot be twice. */
static const struct rashpa_memory_ops rashpa_pinned_ops = {
	.info = rashpa_pinned_info,
};

/*
 * Pinning fails with one errno for everything, and older kernels allow files whose write-back does
 * not expect that a device writes. A mapping that changes after this check makes the reason wrong,
 * and nothing unsafe.
 */
static int rashpa_pin_check_vmas(struct rashpa_call *call, unsigned long start, unsigned long end)
{
	struct vm_area_struct *vma;
	int err = 0;

	mmap_read_lock(current->mm);
	while (start < end && !err) {
		vma = find_vma(current->mm, start);
		if (!vma || vma->vm_start > start)
			err = rashpa_fail(call, -EFAULT, "nothing is mapped at 0x%lx", start);
		else if (vma->vm_flags & (VM_IO | VM_PFNMAP))
			err = rashpa_fail(call, -EFAULT,
					  "at 0x%lx is device memory or a CMA buffer, which cannot be pinned: use its dma-buf",
					  start);
		else if (!(vma->vm_flags & VM_WRITE))
			err = rashpa_fail(call, -EFAULT, "the mapping at 0x%lx is read-only",
					  start);
		else if (vma->vm_file && vma->vm_flags & VM_SHARED &&
			 mapping_can_writeback(vma->vm_file->f_mapping))
			err = rashpa_fail(call, -EFAULT,
					  "at 0x%lx is a file that is written back to a disk: use anonymous, huge or shared memory",
					  start);
		else
			start = vma->vm_end;
	}
	mmap_read_unlock(current->mm);
	return err;
}

/* A pin of a part keeps the larger page as a whole: charge all of it. */
static int rashpa_pin_charge(struct rashpa_call *call, struct rashpa_pinned *pinned,
			     struct page **pages, int n)
{
	unsigned long more;
	int i, err;

	for (i = 0; i < n; i++) {
		struct folio *folio = page_folio(pages[i]);

		if (folio == pinned->last)
			continue;
		pinned->last = folio;
		pinned->held += folio_nr_pages(folio);
	}
	if (pinned->held <= pinned->charged)
		return 0;
	more = pinned->held - pinned->charged;
	err = rashpa_memlock(call, more);
	if (err)
		return rashpa_fail(call, err,
				   "a part of a huge page keeps all of it: %lu KiB would exceed RLIMIT_MEMLOCK: raise it (ulimit -l)",
				   pinned->held << (PAGE_SHIFT - 10));
	pinned->charged = pinned->held;
	return rashpa_charge_more(call, &pinned->charge, (u64)more << PAGE_SHIFT);
}

static int rashpa_pin_pages(struct rashpa_call *call, struct rashpa_pinned *pinned,
			    unsigned long addr, unsigned long count)
{
	unsigned long done = 0;
	struct page **chunk;
	int i, n, err = 0;

	chunk = kmalloc_array(RASHPA_PIN_CHUNK, sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	while (done < count) {
		if (signal_pending(current)) {
			err = rashpa_fail(call, -EINTR, "interrupted by a signal");
			break;
		}
		n = pin_user_pages_fast(addr + (done << PAGE_SHIFT),
					min_t(unsigned long, count - done,
					      RASHPA_PIN_CHUNK),
					FOLL_WRITE | FOLL_LONGTERM, chunk);
		if (n <= 0) {
			err = rashpa_fail(call, n ?: -EFAULT, "the page at 0x%lx cannot be pinned",
					  addr + (done << PAGE_SHIFT));
			break;
		}
		err = rashpa_pin_charge(call, pinned, chunk, n);
		for (i = 0; i < n && !err; i += !err)
			err = rashpa_pin_add(pinned, chunk[i]);
		if (err) {
			unpin_user_pages(chunk + i, n - i);
			break;
		}
		done += n;
		cond_resched();
	}
	kfree(chunk);
	return err;
}

static struct rashpa_pinned *rashpa_pin_make(struct rashpa_call *call, const struct rashpa_pin *pin)
{
	unsigned long count = pin->length >> PAGE_SHIFT;
	struct rashpa_pinned *pinned;
	int err;

	pinned = kzalloc(sizeof(*pinned), GFP_KERNEL_ACCOUNT);
	if (!pinned)
		return ERR_PTR(-ENOMEM);
	kref_init(&pinned->ref);
	rashpa_memory_setup(&pinned->memory, &rashpa_pinned_ops);
	pinned->mm = current->mm;
	mmgrab(pinned->mm);
	err = rashpa_memlock(call, count);
	if (!err)
		pinned->charged = count;
	/*
	 * RLIMIT_MEMLOCK limits one process only: many, which share their files, could pin all
	 * memory.
	 */
	err = err ?: rashpa_charge(call, &pinned->charge, RASHPA_RESOURCE_MEMORY,
				   RASHPA_NO_DEVICE, 0, pin->length);
	if (!err)
		err = rashpa_pin_pages(call, pinned, pin->address, count);
	if (err) {
		kref_put(&pinned->ref, rashpa_pinned_free);
		return ERR_PTR(err);
	}
	pinned->memory.extents = pinned->extents;
	pinned->memory.length = pin->length;
	return pinned;
}

int rashpa_ioc_pin(struct rashpa_call *call, void *arg)
{
	struct rashpa_pin *pin = arg;
	struct rashpa_pinned *pinned;
	u64 end;
	int err;

	if (!pin->length || !PAGE_ALIGNED(pin->address) || !PAGE_ALIGNED(pin->length))
		return rashpa_fail(call, -EINVAL,
				   "address 0x%llx and length 0x%llx must be whole pages, and not none",
				   pin->address, pin->length);
	if (check_add_overflow(pin->address, pin->length, &end) || end > TASK_SIZE)
		return rashpa_fail(call, -EFAULT,
				   "0x%llx + 0x%llx is not in the address space of a process",
				   pin->address, pin->length);
	err = rashpa_pin_check_vmas(call, pin->address, end);
	if (err)
		return err;
	pinned = rashpa_pin_make(call, pin);
	if (IS_ERR(pinned))
		return PTR_ERR(pinned);
	err = rashpa_export(call, &pinned->memory, &pinned->ref, rashpa_pinned_free, O_RDWR);
	pin->out_fd = call->fd;
	pin->out_segments = pinned->memory.n_extents;
	/* the dma-buf has its own reference */
	kref_put(&pinned->ref, rashpa_pinned_free);
	return err;
}
