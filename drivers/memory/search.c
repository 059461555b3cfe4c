// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: physically contiguous memory, assembled at run time.
 *
 * Most distribution kernels have no CMA, and the page allocator ends at 4 MiB. But
 * alloc_contig_range() can empty a range of movable pages. For a large range it fails as soon as
 * one page cannot be moved, and does not say which. For one page block it fails where the obstacle
 * is, and the search goes on after it. But each call empties the lists of all processors. So the
 * search takes large pieces, and halves of a piece that fails.
 */
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/swap.h>
#include <linux/xarray.h>

#include "core/compat.h"
#include "memory/search.h"

/*
 * Not memory that is pinned for DMA: it is on the LRU, and cannot be moved. Nor memory that is
 * being read or written, locked or under writeback: the search would wait, without an end where a
 * server does not answer.
 */
static bool rashpa_folio_movable(struct folio *folio)
{
	return folio_test_lru(folio) && !folio_maybe_dma_pinned(folio) &&
	       !folio_test_locked(folio) && !folio_test_writeback(folio);
}

/*
 * A cheap guess, without locks, whether a block can be emptied. A wrong answer
 * costs a failed attempt or a missed chance, nothing else.
 */
static bool rashpa_block_usable(unsigned long pfn, struct zone *zone)
{
	const unsigned long end = pfn + RASHPA_BLOCK_PAGES;

	while (pfn < end) {
		struct page *page = pfn_to_online_page(pfn);
		unsigned long order;

		if (!page || page_zone(page) != zone || PageReserved(page))
			return false;
		if (PageBuddy(page)) {
			order = READ_ONCE(page->private);
			pfn += order <= RASHPA_BLOCK_ORDER + 1 ? 1UL << order : 1;
			continue;
		}
		if (page_count(page) && !rashpa_folio_movable(page_folio(page)))
			return false;
		pfn++;
	}
	return true;
}

/* Likewise, whether it is a free page of the page allocator, or a part of a larger one. */
static bool rashpa_block_free(unsigned long pfn, struct zone *zone)
{
	unsigned long pages;

	for (pages = RASHPA_BLOCK_PAGES; pages <= MAX_ORDER_NR_PAGES; pages *= 2) {
		struct page *page = pfn_to_online_page(ALIGN_DOWN(pfn, pages));

		if (page && page_zone(page) == zone && PageBuddy(page) &&
		    READ_ONCE(page->private) >= (unsigned long)ilog2(pages))
			return true;
	}
	return false;
}

/*
 * Numbers of blocks that were free and could not be taken: those of areas of CMA, which the kernel
 * does not name. The search for free blocks skips them. The search for movable blocks tries them,
 * and so finds one that was entered by chance. The array has its own lock.
 */
static DEFINE_XARRAY(rashpa_withheld);

static bool rashpa_block_withheld(unsigned long pfn)
{
	return xa_load(&rashpa_withheld, pfn >> RASHPA_BLOCK_ORDER);
}

static void rashpa_blocks_free(unsigned long pfn, unsigned long blocks)
{
	const unsigned long end = pfn + blocks * RASHPA_BLOCK_PAGES;

	while (pfn < end) {
		struct page *head = pfn_to_page(pfn);

		pfn += rashpa_piece_pages(head);
		put_page(head);
		cond_resched();
	}
}

/*
 * Two searches at a time would take blocks out of each other's runs. And they would isolate blocks
 * that adjoin: the kernel merges such free blocks, and then fails to give one of them out.
 */
static DEFINE_MUTEX(rashpa_search_lock);	/* one search; no data */

/* ------------------------------------------------------------ search ---- */

/* Pages that are free, without those of CMA: contig never gets them. */
static unsigned long rashpa_zone_free(struct zone *zone)
{
	unsigned long free = zone_page_state(zone, NR_FREE_PAGES);

	return free - min(free, zone_page_state(zone, NR_FREE_CMA_PAGES));
}

/* Other users keep this part of each zone, at most so much, above its watermarks. */
#define RASHPA_RESERVE_PART	64
#define RASHPA_RESERVE_MAX	((unsigned long)SZ_64M >> PAGE_SHIFT)

/* No buffer gets these pages, not even for root: the OOM killer must not hit other processes. */
static unsigned long rashpa_zone_reserve(struct zone *zone)
{
	/* lowmem_reserve is kept from requests for the zones above: they cannot use it */
	return high_wmark_pages(zone) + zone->lowmem_reserve[ZONE_MOVABLE] +
	       min(zone_managed_pages(zone) / RASHPA_RESERVE_PART, RASHPA_RESERVE_MAX);
}

/* Free, or page cache that can go, or pages that fit into swap: as MemAvailable, of one zone. */
static unsigned long rashpa_zone_available(struct zone *zone)
{
	unsigned long cache = zone_page_state(zone, NR_ZONE_ACTIVE_FILE) +
			      zone_page_state(zone, NR_ZONE_INACTIVE_FILE);
	unsigned long anon = zone_page_state(zone, NR_ZONE_ACTIVE_ANON) +
			     zone_page_state(zone, NR_ZONE_INACTIVE_ANON);

	cache -= min(cache / 2, low_wmark_pages(zone));
	return rashpa_zone_free(zone) + cache +
	       min_t(unsigned long, anon, max(get_nr_swap_pages(), 0L));
}

/* Free pages in the lists of processors: since 6.7 up to an eighth of the zone. */
static unsigned long rashpa_zone_listed(struct zone *zone)
{
	unsigned long pages = 0;
	int cpu;

	for_each_online_cpu(cpu)
		pages += READ_ONCE(per_cpu_ptr(zone->per_cpu_pageset, cpu)->count);
	return pages;
}

/* Can @pages be taken, @own of which are taken already, and others still have the reserve? */
static bool rashpa_zone_allows(struct zone *zone, unsigned long pages, unsigned long own)
{
	const unsigned long need = rashpa_zone_reserve(zone) + pages;
	const unsigned long have = rashpa_zone_available(zone) + own;

	return have >= need || have + rashpa_zone_listed(zone) >= need;
}

/*
 * Take single pages from the page allocator, and give them back: it reclaims the missing ones, page
 * cache first. Return whether so many were there, without the OOM killer, and not at the cost
 * of the zones below, where the page allocator looks before it reclaims. Other processes may take
 * memory at the same time: it ends as soon as there is not enough for both.
 */
static bool rashpa_zone_refill(struct zone *zone, unsigned long pages)
{
	/* as long as something is reclaimed; one try may fail while watermarks are boosted */
	gfp_t gfp = GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN | __GFP_THISNODE;
	unsigned long count = high_wmark_pages(zone) - min_wmark_pages(zone) + pages;
	unsigned long own = 0, free;
	struct page *page, *next;
	LIST_HEAD(taken);

	/* fewer calls, where there is enough */
	if (rashpa_zone_allows(zone, pages + 8 * RASHPA_BLOCK_PAGES, 0))
		count += 8 * RASHPA_BLOCK_PAGES;
	if (zone_idx(zone) < ZONE_NORMAL)
		gfp |= GFP_DMA32;
	while (count && !task_sigpending(current) && rashpa_zone_allows(zone, pages, own)) {
		page = alloc_pages_node(zone_to_nid(zone), gfp, 0);
		if (!page)
			break;
		list_add(&page->lru, &taken);
		own += page_zone(page) == zone;
		count--;
		cond_resched();
	}
	free = rashpa_zone_free(zone) + own;
	list_for_each_entry_safe(page, next, &taken, lru) {
		list_del(&page->lru);
		__free_page(page);
		cond_resched();
	}
	return !count && free >= min_wmark_pages(zone) + pages;
}

/*
 * alloc_contig_range() ignores watermarks: without a look at them it would take the pages that
 * the kernel needs to go on at all, and the OOM killer would replace them. A machine whose
 * page cache is full has no more free pages than these.
 */
static bool rashpa_zone_spent(struct zone *zone, unsigned long pages)
{
	if (!rashpa_zone_allows(zone, pages, 0))
		return true;
	return rashpa_zone_free(zone) < low_wmark_pages(zone) + pages &&
	       !rashpa_zone_refill(zone, pages);
}

/* The largest piece of at most @most blocks that begins at @pfn: aligned to its own size. */
static unsigned long rashpa_piece_at(const struct rashpa_search *search, unsigned long pfn,
				     unsigned long most)
{
	const unsigned long number = pfn >> RASHPA_BLOCK_ORDER;

	most = min(most, search->piece);
	if (number)
		most = min(most, 1UL << __ffs(number));
	return rounddown_pow_of_two(most);
}

/* Look at each block once more: since the first look seconds may have passed. */
static bool rashpa_piece_take(struct zone *zone, unsigned long pfn, unsigned long blocks)
{
	unsigned long i;

	for (i = 0; i < blocks; i++) {
		if (!rashpa_block_usable(pfn + i * RASHPA_BLOCK_PAGES, zone))
			return false;
		cond_resched();
	}
	if (!rashpa_range_alloc(pfn, blocks * RASHPA_BLOCK_PAGES))
		return true;
	/* without memory for it, it is tried again */
	if (blocks == 1 && rashpa_block_free(pfn, zone))
		xa_store(&rashpa_withheld, pfn >> RASHPA_BLOCK_ORDER, xa_mk_value(1),
			 GFP_KERNEL | __GFP_NOWARN);
	return false;
}

/*
 * Take a run from @pfn on, all or nothing: in large pieces, halves of a piece that fails, down to
 * the one block that cannot be taken. Return how many blocks were taken before that.
 */
static unsigned long rashpa_run_take(struct rashpa_search *search, struct zone *zone,
				     unsigned long pfn)
{
	unsigned long at = 0, most = search->blocks;

	while (at < search->blocks && !task_sigpending(current)) {
		const unsigned long next = pfn + at * RASHPA_BLOCK_PAGES;
		unsigned long n = rashpa_piece_at(search, next, min(search->blocks - at, most));

		while (n && rashpa_zone_spent(zone, n * RASHPA_BLOCK_PAGES))
			n /= 2;
		search->spent = !n;
		most = search->blocks;
		if (n && rashpa_piece_take(zone, next, n))
			at += n;
		else if (n > 1)
			most = n / 2;
		else
			break;
	}
	if (at < search->blocks)
		rashpa_blocks_free(pfn, at);
	return at;
}

/* The end of the run that begins at @pfn or before and looks usable, or free; @end at most. */
static unsigned long rashpa_run_end(const struct rashpa_search *search, struct zone *zone,
				    bool idle, unsigned long pfn, unsigned long end)
{
	while (pfn + RASHPA_BLOCK_PAGES <= end && !task_sigpending(current) &&
	       (idle ? rashpa_block_free(pfn, zone) && !rashpa_block_withheld(pfn) :
		       rashpa_block_usable(pfn, zone))) {
		pfn += RASHPA_BLOCK_PAGES;
		cond_resched();
	}
	return pfn;
}

/*
 * One pass: each block is looked at once and taken at most once, also where all look usable
 * and cannot be taken, as in the areas of CMA. With @idle only free blocks count. Return
 * -ENOMEM: not found; -ENOSPC: another pass would not find it, either.
 */
static int rashpa_contig_zone(struct zone *zone, bool idle, struct rashpa_search *search)
{
	const unsigned long end = min(zone_end_pfn(zone), search->end);
	unsigned long pfn = ALIGN(zone->zone_start_pfn, search->align_pages);
	unsigned long seen = pfn; /* all blocks from pfn to here look usable */

	search->spent = false;
	while (pfn < end) {
		unsigned long most = min(search->blocks, (end - pfn) / RASHPA_BLOCK_PAGES);
		unsigned long n;

		seen = rashpa_run_end(search, zone, idle, max(seen, pfn),
				      pfn + most * RASHPA_BLOCK_PAGES);
		n = (seen - pfn) / RASHPA_BLOCK_PAGES;
		if (n == search->blocks)
			n = rashpa_run_take(search, zone, pfn);
		if (n == search->blocks) {
			search->pfn = pfn;
			return 0;
		}
		search->longest = max(search->longest, n);
		if (task_sigpending(current))
			return -EINTR;
		if (search->spent)
			return -ENOSPC;
		cond_resched();
		pfn = ALIGN(pfn + (n + 1) * RASHPA_BLOCK_PAGES, search->align_pages);
	}
	return -ENOMEM;
}

/* Memory below 4 GiB last: devices with narrow masks have nothing else. */
static const enum zone_type rashpa_zones[] = {
	ZONE_NORMAL,
#ifdef CONFIG_ZONE_DMA32
	ZONE_DMA32,
#endif
#if defined(CONFIG_ZONE_DMA) && !defined(CONFIG_X86)
	ZONE_DMA,	/* all of these 4 GiB on most arm64 machines; on x86 only 16 MiB */
#endif
};

/* The zones of @node, or of all nodes, that memory may be taken from. */
#define rashpa_for_each_zone(z, nid, zone, node)					\
	for ((z) = 0; (z) < ARRAY_SIZE(rashpa_zones); (z)++)				\
		for_each_online_node(nid)						\
			if ((zone) = &NODE_DATA(nid)->node_zones[rashpa_zones[z]],	\
			    populated_zone(zone) &&					\
			    ((node) == NUMA_NO_NODE || (nid) == (node)))

/* A pin, or a broken page, holds this part of a buffer at most. */
#define RASHPA_PIECE_PART	32

/*
 * Large buffers have pieces of 1 GiB. Smaller ones need as few calls with smaller pieces, unless
 * their alignment is larger.
 */
unsigned long rashpa_piece_blocks(const struct rashpa_search *search)
{
	const unsigned long most = SZ_1G >> PAGE_SHIFT >> RASHPA_BLOCK_ORDER;
	const unsigned long align = search->align_pages >> RASHPA_BLOCK_ORDER;
	const unsigned long part = search->blocks / RASHPA_PIECE_PART;
	unsigned long blocks = part ? rounddown_pow_of_two(part) : 1;

	blocks = max(blocks, align);
	return min(blocks, most);
}

static int rashpa_contig_zones(struct rashpa_search *search)
{
	struct zone *zone;
	int err, nid;
	size_t z;

	rashpa_for_each_zone(z, nid, zone, search->want->node) {
		/* moving pages in use takes several times as long */
		err = rashpa_contig_zone(zone, true, search);
		if (err == -ENOMEM)
			err = rashpa_contig_zone(zone, false, search);
		if (err != -ENOMEM && err != -ENOSPC)
			return err;
	}
	return -ENOMEM;
}

/* Only one process of a user waits for the search lock: so no user delays others with many. */
int rashpa_contig_search(struct rashpa_search *search)
{
	int err;

	if (mutex_lock_interruptible(search->want->turn))
		return -EINTR;
	err = mutex_lock_interruptible(&rashpa_search_lock);
	if (!err) {
		err = rashpa_contig_zones(search);
		mutex_unlock(&rashpa_search_lock);
	}
	mutex_unlock(search->want->turn);
	return err;
}

/* The page allocator gives down to the lowest watermark, which repeated requests must not reach. */
bool rashpa_node_allows(int node, unsigned long pages)
{
	struct zone *zone;
	size_t z;
	int nid;

	rashpa_for_each_zone(z, nid, zone, node)
		if (rashpa_zone_allows(zone, pages, 0))
			return true;
	return false;
}

static void rashpa_query_zone(struct rashpa_query *query, struct zone *zone)
{
	unsigned long pfn = ALIGN(zone->zone_start_pfn, RASHPA_BLOCK_PAGES);
	const unsigned long end = zone_end_pfn(zone);
	u64 run = 0;

	query->out_total += (u64)(zone_managed_pages(zone) - zone_cma_pages(zone)) << PAGE_SHIFT;
	query->out_free += (u64)rashpa_zone_free(zone) << PAGE_SHIFT;
	for (; pfn + RASHPA_BLOCK_PAGES <= end && !task_sigpending(current);
	     pfn += RASHPA_BLOCK_PAGES) {
		run = rashpa_block_usable(pfn, zone) ? run + (PAGE_SIZE << RASHPA_BLOCK_ORDER) : 0;
		query->out_largest = max(query->out_largest, run);
		cond_resched();
	}
}

/* A signal ends it without an answer: a part of the memory does not describe the rest. */
int rashpa_query_contig(struct rashpa_query *query, int node)
{
	struct zone *zone;
	size_t z;
	int nid;

	query->out_backend = RASHPA_BACKEND_CONTIG;
	rashpa_for_each_zone(z, nid, zone, node)
		rashpa_query_zone(query, zone);
	return task_sigpending(current) ? -EINTR : 0;
}

void rashpa_search_exit(void)
{
	xa_destroy(&rashpa_withheld);
}
