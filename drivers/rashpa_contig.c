// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: physically contiguous memory, from CMA or assembled at run time.
 *
 * Most distribution kernels have no CMA, and the page allocator ends at 4 MiB. But
 * alloc_contig_range() can empty a range of movable pages. Asked for a large range at
 * once it fails as soon as one page in it cannot be moved and does not say which;
 * asked for one page block after the other it fails where the obstacle is, and the
 * search goes on behind it.
 */
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/signal.h>

#include "rashpa.h"
#include "rashpa_compat.h"

/* One search at a time: two would take blocks out of each other's runs. */
static DEFINE_MUTEX(rashpa_contig_lock);

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
		if (page_count(page) && !folio_test_lru(page_folio(page)))
			return false;
		pfn++;
	}
	return true;
}

static void rashpa_blocks_free(unsigned long pfn, unsigned long blocks)
{
	unsigned long i;

	for (i = 0; i < blocks; i++)
		put_page(pfn_to_page(pfn + i * RASHPA_BLOCK_PAGES));
}

/*
 * Take @blocks in a row from @pfn on. Return how many were taken before one failed;
 * all of them stay taken only if that is @blocks.
 */
static unsigned long rashpa_run_take(unsigned long pfn, unsigned long blocks)
{
	unsigned long i;

	for (i = 0; i < blocks; i++) {
		if (signal_pending(current) ||
		    rashpa_block_alloc(pfn + i * RASHPA_BLOCK_PAGES))
			break;
		cond_resched();
	}
	if (i < blocks)
		rashpa_blocks_free(pfn, i);
	return i;
}

/* Blocks in a row from @pfn on that look usable, at most @most. */
static unsigned long rashpa_run_length(struct zone *zone, unsigned long pfn,
				       unsigned long end, unsigned long most)
{
	unsigned long n = 0;

	while (n < most && pfn + RASHPA_BLOCK_PAGES <= end &&
	       rashpa_block_usable(pfn, zone)) {
		pfn += RASHPA_BLOCK_PAGES;
		n++;
		cond_resched();
	}
	return n;
}

static int rashpa_contig_zone(struct zone *zone, unsigned long blocks,
			      unsigned long align_pages, unsigned long *found)
{
	const unsigned long end = zone_end_pfn(zone);
	unsigned long pfn = ALIGN(zone->zone_start_pfn, align_pages);

	while (pfn < end && blocks <= (end - pfn) / RASHPA_BLOCK_PAGES) {
		unsigned long n = rashpa_run_length(zone, pfn, end, blocks);

		if (n == blocks)
			n = rashpa_run_take(pfn, blocks);
		if (n == blocks) {
			*found = pfn;
			return 0;
		}
		if (signal_pending(current))
			return -EINTR;
		pfn = ALIGN(pfn + (n + 1) * RASHPA_BLOCK_PAGES, align_pages);
	}
	return -ENOMEM;
}

/* Memory below 4 GiB last: devices with narrow masks have nothing else. */
static const enum zone_type rashpa_zones[] = {
	ZONE_NORMAL,
#ifdef CONFIG_ZONE_DMA32
	ZONE_DMA32,
#endif
};

static int rashpa_contig_search(unsigned long blocks, unsigned long align_pages,
				int node, unsigned long *found)
{
	size_t z;
	int err = -ENOMEM;
	int nid;

	for (z = 0; z < ARRAY_SIZE(rashpa_zones); z++) {
		for_each_online_node(nid) {
			struct zone *zone = &NODE_DATA(nid)->node_zones[rashpa_zones[z]];

			if (node != NUMA_NO_NODE && nid != node)
				continue;
			if (!populated_zone(zone))
				continue;
			err = rashpa_contig_zone(zone, blocks, align_pages, found);
			if (err != -ENOMEM)
				return err;
		}
	}
	return err;
}

static int rashpa_contig_alloc(struct rashpa_call *call,
			       struct rashpa_pages *pages, u64 length,
			       u64 alignment, int node)
{
	const unsigned long count = length >> PAGE_SHIFT;
	unsigned long pfn, blocks;
	int err;

	pages->backend = RASHPA_BACKEND_CONTIG;
	if (max(length, alignment) <= PAGE_SIZE << RASHPA_BLOCK_ORDER) {
		unsigned int order = get_order(max(length, alignment));
		gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN |
			    __GFP_RETRY_MAYFAIL;

		if (node != NUMA_NO_NODE)
			gfp |= __GFP_THISNODE;
		pages->first = alloc_pages_node(node, gfp, order);
		if (!pages->first)
			return -ENOMEM;
		pages->order = order;
		pages->count = 1UL << order;
		return 0;
	}

	blocks = DIV_ROUND_UP(count, RASHPA_BLOCK_PAGES);
	err = mutex_lock_interruptible(&rashpa_contig_lock);
	if (err)
		return err;
	err = rashpa_contig_search(blocks,
				   max_t(unsigned long, RASHPA_BLOCK_PAGES,
					 alignment >> PAGE_SHIFT),
				   node, &pfn);
	mutex_unlock(&rashpa_contig_lock);
	if (err)
		return err;
	pages->first = pfn_to_page(pfn);
	pages->order = RASHPA_BLOCK_ORDER;
	pages->count = blocks * RASHPA_BLOCK_PAGES;
	return 0;
}

static int rashpa_cma_alloc(struct cma *area, struct rashpa_pages *pages,
			    u64 length, u64 alignment, int node)
{
	pages->backend = RASHPA_BACKEND_CMA;
	pages->cma = area;
	pages->order = 0;
	pages->count = length >> PAGE_SHIFT;
	pages->first = cma_alloc(area, pages->count, get_order(alignment), true);
	if (!pages->first)
		return -ENOMEM;
	if (node != NUMA_NO_NODE && page_to_nid(pages->first) != node) {
		cma_release(area, pages->first, pages->count);
		return -ENOMEM;
	}
	return 0;
}

static int rashpa_pages_zero(struct rashpa_pages *pages)
{
	unsigned long i;

	for (i = 0; i < pages->count; i++) {
		clear_highpage(pages->first + i);
		if (i % RASHPA_BLOCK_PAGES)
			continue;
		if (signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Say why there is nothing, and what would help. */
static int rashpa_pages_explain(struct rashpa_call *call, u64 length, int node,
				u32 backend)
{
	struct rashpa_query query = {
		.backend = backend == RASHPA_BACKEND_CMA ? RASHPA_BACKEND_CMA :
							   RASHPA_BACKEND_CONTIG,
	};

	if (rashpa_pages_query(call, &query, node))
		return -ENOMEM;
	if (query.backend == RASHPA_BACKEND_CMA)
		return rashpa_fail(call, -ENOMEM,
				   "%llu MiB contiguous not available from CMA: %llu of %llu MiB are free; boot with a larger cma=",
				   length >> 20, query.out_free >> 20,
				   query.out_total >> 20);
	return rashpa_fail(call, -ENOMEM,
			   "%llu MiB contiguous not available: largest run is %llu MiB, %llu of %llu MiB are free; allocate soon after boot, or less",
			   length >> 20, query.out_largest >> 20, query.out_free >> 20,
			   query.out_total >> 20);
}

/**
 * rashpa_pages_alloc() - contiguous, zeroed memory
 * @call: the ioctl, for the reason
 * @pages: filled in
 * @length: bytes, a multiple of the page size
 * @alignment: bytes, a power of two, at least a page
 * @node: NUMA node or NUMA_NO_NODE
 * @backend: enum rashpa_backend
 *
 * Return: 0, -ENOMEM, -EINTR, -EOPNOTSUPP (no CMA area).
 */
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       u64 length, u64 alignment, int node, u32 backend)
{
	struct cma *area = rashpa_cma_area(NULL);
	int err = -ENOMEM;

	memset(pages, 0, sizeof(*pages));
	if (backend == RASHPA_BACKEND_CMA && !area)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE, or use contig");
	if (length >> PAGE_SHIFT > totalram_pages())
		return rashpa_fail(call, -ENOMEM, "%llu MiB asked for, the machine has %llu MiB",
				   length >> 20, (u64)totalram_pages() << PAGE_SHIFT >> 20);

	if (backend != RASHPA_BACKEND_CONTIG && area)
		err = rashpa_cma_alloc(area, pages, length, alignment, node);
	if (err && backend != RASHPA_BACKEND_CMA) {
		memset(pages, 0, sizeof(*pages));
		err = rashpa_contig_alloc(call, pages, length, alignment, node);
	}
	if (err == -ENOMEM)
		return rashpa_pages_explain(call, length, node, backend);
	if (err)
		return rashpa_fail(call, -EINTR, "interrupted by a signal");

	pages->node = page_to_nid(pages->first);
	err = rashpa_pages_zero(pages);
	if (err) {
		rashpa_pages_free(pages);
		return rashpa_fail(call, err, "interrupted by a signal");
	}
	return 0;
}

/**
 * rashpa_pages_free() - give memory back
 * @pages: from rashpa_pages_alloc()
 *
 * A block that somebody has pinned (an RDMA registration, direct I/O) stays until
 * they let go of it.
 */
void rashpa_pages_free(struct rashpa_pages *pages)
{
	unsigned long i;

	if (pages->cma) {
		cma_release(pages->cma, pages->first, pages->count);
		return;
	}
	for (i = 0; i < pages->count; i += 1UL << pages->order)
		put_page(pages->first + i);
}

static void rashpa_query_cma(struct rashpa_query *query, int node)
{
	u64 pages = 0;
	int nid, z;

	query->out_backend = RASHPA_BACKEND_CMA;
	for_each_online_node(nid) {
		if (node != NUMA_NO_NODE && nid != node)
			continue;
		for (z = 0; z < MAX_NR_ZONES; z++)
			pages += zone_cma_pages(&NODE_DATA(nid)->node_zones[z]);
	}
	query->out_total = pages << PAGE_SHIFT;
	query->out_free = (u64)global_zone_page_state(NR_FREE_CMA_PAGES) << PAGE_SHIFT;
	query->out_free = min(query->out_free, query->out_total);
}

static void rashpa_query_zone(struct rashpa_query *query, struct zone *zone)
{
	unsigned long pfn = ALIGN(zone->zone_start_pfn, RASHPA_BLOCK_PAGES);
	const unsigned long end = zone_end_pfn(zone);

	query->out_total += (u64)zone_managed_pages(zone) << PAGE_SHIFT;
	query->out_free += (u64)zone_page_state(zone, NR_FREE_PAGES) << PAGE_SHIFT;
	while (pfn + RASHPA_BLOCK_PAGES <= end && !signal_pending(current)) {
		unsigned long n = rashpa_run_length(zone, pfn, end, ULONG_MAX);
		u64 bytes = (u64)n * RASHPA_BLOCK_PAGES << PAGE_SHIFT;

		query->out_largest = max_t(u64, query->out_largest, bytes);
		pfn += (n + 1) * RASHPA_BLOCK_PAGES;
	}
}

/**
 * rashpa_pages_query() - what would fit
 * @call: the ioctl, for the reason
 * @query: backend in, out_total, out_free, out_largest and out_backend filled in
 * @node: NUMA node or NUMA_NO_NODE
 *
 * Return: 0, -EOPNOTSUPP (no CMA area).
 */
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query,
		       int node)
{
	struct cma *area = rashpa_cma_area(NULL);
	size_t z;
	int nid;

	query->out_total = 0;
	query->out_free = 0;
	query->out_largest = 0;
	if (query->backend == RASHPA_BACKEND_CMA && !area)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE");
	if (query->backend != RASHPA_BACKEND_CONTIG && area) {
		rashpa_query_cma(query, node);
		return 0;
	}

	query->out_backend = RASHPA_BACKEND_CONTIG;
	for (z = 0; z < ARRAY_SIZE(rashpa_zones); z++) {
		for_each_online_node(nid) {
			struct zone *zone = &NODE_DATA(nid)->node_zones[rashpa_zones[z]];

			if (populated_zone(zone) &&
			    (node == NUMA_NO_NODE || nid == node))
				rashpa_query_zone(query, zone);
		}
	}
	return 0;
}
