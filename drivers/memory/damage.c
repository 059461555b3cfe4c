// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: memory errors in buffers.
 *
 * Whatever tells the kernel of a page that has lost its contents (machine check, firmware, a
 * test), it ends in memory_failure(), which marks the page. It can do nothing else for pages of
 * ours: they are on no list, and nothing can take their place. There is no notifier for modules;
 * but there is a tracepoint at the end of it, to which any module may attach. It comes in the
 * context of a process, preemption off.
 *
 * Then who listens is told, and the page is taken out of all mappings: from then on who touches
 * it gets SIGBUS, and nobody else anything. Devices are left alone: what they write there is lost.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/spinlock.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "core/compat.h"
#include "memory/memory.h"

static LIST_HEAD(rashpa_watched);
static DEFINE_SPINLOCK(rashpa_watched_lock);	/* rashpa_watched */

static struct rashpa_memory *rashpa_damage_memory(struct rashpa_damage *damage)
{
	return container_of(damage, struct rashpa_memory, damage);
}

/**
 * rashpa_damage_in() - has a part of a memory lost its contents?
 * @memory: the memory
 * @first: first page of it
 * @count: pages
 * @at: where to store the first one that has, or NULL
 *
 * Return: whether it has.
 */
bool rashpa_damage_in(struct rashpa_memory *memory, unsigned long first, unsigned long count,
		      unsigned long *at)
{
	unsigned long i;

	if (!atomic_read(&memory->damage.count))
		return false;
	for (i = first; i < first + count; i++) {
		if (i % RASHPA_BLOCK_PAGES == 0)
			cond_resched();
		if (!PageHWPoison(memory->extents->first + i))
			continue;
		if (at)
			*at = i;
		return true;
	}
	return false;
}

/* Take all of the huge entry out that a bad page may be in: the others come back when touched. */
static void rashpa_damage_cut(struct rashpa_memory *memory, unsigned long page)
{
	const loff_t offset = (loff_t)ALIGN_DOWN(page, PTRS_PER_PTE) << PAGE_SHIFT;

	unmap_mapping_range(memory->inode->i_mapping, offset, PMD_SIZE, 1);
}

static void rashpa_damage_work(struct work_struct *work)
{
	struct rashpa_memory *memory =
		rashpa_damage_memory(container_of(work, struct rashpa_damage, work));
	unsigned long count = memory->extents->count, first = 0, page;

	while (rashpa_damage_in(memory, first, count - first, &page)) {
		rashpa_damage_cut(memory, page);
		first = page + 1;
	}
}

/**
 * rashpa_damage_again() - something was mapped while a page of it went bad
 * @memory: the memory
 */
void rashpa_damage_again(struct rashpa_memory *memory)
{
	schedule_work(&memory->damage.work);
}

#ifdef RASHPA_MEMORY_FAILURE
/* Preemption is off: tell, and leave what may sleep to others. */
static void rashpa_damage_heard(void *unused, unsigned long pfn, int type, int result)
{
	struct rashpa_memory *memory;
	struct rashpa_damage *damage;
	unsigned long flags, page;

	if (!pfn_valid(pfn) || !PageHWPoison(pfn_to_page(pfn)))
		return;
	spin_lock_irqsave(&rashpa_watched_lock, flags);
	list_for_each_entry(damage, &rashpa_watched, entry) {
		memory = rashpa_damage_memory(damage);
		page = pfn - page_to_pfn(memory->extents->first);
		if (page >= memory->extents->count)
			continue;
		atomic_inc(&damage->count);
		rashpa_origin_fire(&memory->importers.damage, (u64)page << PAGE_SHIFT);
		schedule_work(&damage->work);
		break;
	}
	spin_unlock_irqrestore(&rashpa_watched_lock, flags);
}

static struct tracepoint *rashpa_failures;

static void rashpa_damage_find(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "memory_failure_event"))
		rashpa_failures = tp;
}

/**
 * rashpa_damage_init() - before there are buffers
 *
 * A kernel that does not tell is no reason to do without buffers.
 */
void rashpa_damage_init(void)
{
	/* the compiler looks whether the kernel calls it so */
	check_trace_callback_type_memory_failure_event(rashpa_damage_heard);
	for_each_kernel_tracepoint(rashpa_damage_find, NULL);
	if (rashpa_failures &&
	    tracepoint_probe_register(rashpa_failures, rashpa_damage_heard, NULL))
		rashpa_failures = NULL;
	if (!rashpa_failures)
		pr_info("rashpa: this kernel does not tell of memory errors\n");
}

/**
 * rashpa_damage_exit() - there are no buffers any more
 */
void rashpa_damage_exit(void)
{
	if (!rashpa_failures)
		return;
	tracepoint_probe_unregister(rashpa_failures, rashpa_damage_heard, NULL);
	tracepoint_synchronize_unregister();
}
#else
void rashpa_damage_init(void)
{
}

void rashpa_damage_exit(void)
{
}
#endif

/**
 * rashpa_damage_watch() - begin to look after a memory
 * @memory: its pages and its inode are there
 */
void rashpa_damage_watch(struct rashpa_memory *memory)
{
	struct rashpa_damage *damage = &memory->damage;

	INIT_WORK(&damage->work, rashpa_damage_work);
	spin_lock_irq(&rashpa_watched_lock);
	list_add(&damage->entry, &rashpa_watched);
	spin_unlock_irq(&rashpa_watched_lock);
}

/**
 * rashpa_damage_forget() - nobody has this memory any more
 * @memory: the memory, whether it was watched or not
 */
void rashpa_damage_forget(struct rashpa_memory *memory)
{
	struct rashpa_damage *damage = &memory->damage;

	if (!damage->entry.next)
		return;
	spin_lock_irq(&rashpa_watched_lock);
	list_del(&damage->entry);
	spin_unlock_irq(&rashpa_watched_lock);
	cancel_work_sync(&damage->work);
}

/**
 * rashpa_damage_check() - may a device be given a part of a memory?
 * @call: the ioctl, for the reason
 * @memory: the memory, NULL: it is not ours
 * @offset: bytes
 * @length: bytes
 *
 * Return: 0, also for memory of others; -EHWPOISON.
 */
int rashpa_damage_check(struct rashpa_call *call, struct rashpa_memory *memory, u64 offset,
			u64 length)
{
	unsigned long at;

	if (!memory || !rashpa_damage_in(memory, offset >> PAGE_SHIFT, length >> PAGE_SHIFT, &at))
		return 0;
	return rashpa_fail(call, -EHWPOISON,
			   "the page at 0x%llx of the buffer has a memory error: map the parts around it, or make another buffer",
			   (u64)at << PAGE_SHIFT);
}
