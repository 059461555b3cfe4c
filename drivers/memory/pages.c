// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: physically contiguous memory: from where, zeroed, with its cache mode, given back.
 */
#include <linux/bitmap.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "core/compat.h"
#include "memory/search.h"

/* Up to one page block the page allocator has it. */
static int rashpa_small_alloc(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	gfp_t gfp = GFP_KERNEL | __GFP_COMP | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	unsigned int order = get_order(max(want->length, want->alignment));

	if (want->node != NUMA_NO_NODE)
		gfp |= __GFP_THISNODE;
	if (want->last <= U32_MAX)
		gfp |= GFP_DMA32;
	if (!rashpa_node_allows(want->node, 1UL << order))
		return -ENOMEM;
	pages->first = alloc_pages_node(want->node, gfp, order);
	if (!pages->first)
		return -ENOMEM;
	if (!rashpa_pages_fit(pages->first, want)) {
		__free_pages(pages->first, order);
		return -ENOMEM;
	}
	pages->order = order;
	pages->count = 1UL << order;
	return 0;
}

static int rashpa_contig_alloc(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	const unsigned long count = want->length >> PAGE_SHIFT;
	struct rashpa_search search = {
		.task = current,
		.turn = want->turn,
		.blocks = DIV_ROUND_UP(count, RASHPA_BLOCK_PAGES),
		.align_pages = max_t(unsigned long, RASHPA_BLOCK_PAGES,
				     want->alignment >> PAGE_SHIFT),
		.end = want->last == U64_MAX ? ULONG_MAX : (want->last + 1) >> PAGE_SHIFT,
		.node = want->node,
	};
	int err;

	pages->backend = RASHPA_BACKEND_CONTIG;
	pages->given = bitmap_zalloc(search.blocks, GFP_KERNEL);
	if (!pages->given)
		return -ENOMEM;
	if (max(want->length, want->alignment) <= PAGE_SIZE << RASHPA_BLOCK_ORDER &&
	    !rashpa_small_alloc(pages, want))
		return 0;
	search.piece = rashpa_piece_blocks(&search);
	err = RASHPA_CAN_CONTIG ? rashpa_contig_search(&search) : -EOPNOTSUPP;
	pages->longest = (u64)search.longest * RASHPA_BLOCK_PAGES << PAGE_SHIFT;
	if (err) {
		bitmap_free(pages->given);
		return err;
	}
	pages->first = pfn_to_page(search.pfn);
	pages->order = RASHPA_BLOCK_ORDER;
	pages->count = search.blocks * RASHPA_BLOCK_PAGES;
	return 0;
}

/* ------------------------------------------------------------ making ---- */

/* One processor zeroes so much before it looks for a signal. */
#define RASHPA_ZERO_PIECE	((unsigned long)SZ_16M >> PAGE_SHIFT)

/**
 * struct rashpa_zero - zero memory, by several processors
 * @pages: the memory
 * @task: the caller: its signals end it
 * @next: the first page that no processor has begun with
 * @done: pages that are zero
 */
struct rashpa_zero {
	const struct rashpa_pages *pages;
	struct task_struct *task;
	atomic_long_t next;
	atomic_long_t done;
};

static void rashpa_zero_work(void *arg)
{
	struct rashpa_zero *zero = arg;
	const unsigned long count = zero->pages->count;
	unsigned long i, n, at;

	while (!task_sigpending(zero->task)) {
		at = atomic_long_fetch_add(RASHPA_ZERO_PIECE, &zero->next);
		if (at >= count)
			break;
		n = min(count - at, RASHPA_ZERO_PIECE);
		for (i = 0; i < n; i++) {
			clear_highpage(zero->pages->first + at + i);
			if (i % RASHPA_BLOCK_PAGES == 0)
				cond_resched();
		}
		atomic_long_add(n, &zero->done);
	}
}

static int rashpa_pages_zero(const struct rashpa_pages *pages)
{
	struct rashpa_zero zero = {
		.pages = pages,
		.task = current,
	};

	/* then all memory comes zeroed, and twice takes twice as long (Debian: init_on_alloc=1) */
	if (want_init_on_alloc(GFP_KERNEL))
		return 0;
	rashpa_hands(pages->node, DIV_ROUND_UP(pages->count, RASHPA_ZERO_PIECE),
		     rashpa_zero_work, &zero);
	return atomic_long_read(&zero.done) < pages->count ? -EINTR : 0;
}

/* Say why there is nothing, and what would help. */
static int rashpa_pages_explain(struct rashpa_call *call, const struct rashpa_want *want,
				u64 longest)
{
	const bool cma = want->backend == RASHPA_BACKEND_CMA;
	struct rashpa_query query = {
		.backend = cma ? RASHPA_BACKEND_CMA : RASHPA_BACKEND_CONTIG,
	};
	char where[56] = "";
	int err;

	if (want->last != U64_MAX)
		snprintf(where, sizeof(where), " below %llu MiB",
			 (want->last >> 20) + 1);
	else if (want->node != NUMA_NO_NODE)
		snprintf(where, sizeof(where), " on node %d", want->node);
	err = rashpa_pages_query(call, &query, want->node);
	if (err)
		return err;
	if (cma)
		return rashpa_fail(call, -ENOMEM,
				   "%llu MiB contiguous not available from CMA%s: %llu of %llu MiB are free, in pieces; boot with a larger cma=, or use contig",
				   want->length >> 20, where, query.out_free >> 20,
				   query.out_total >> 20);
	return rashpa_fail(call, -ENOMEM,
			   "%llu MiB contiguous not available%s: the largest run is at most %llu MiB, %llu of %llu MiB are free; allocate soon after boot, or less%s",
			   want->length >> 20, where, longest >> 20, query.out_free >> 20,
			   query.out_total >> 20,
			   RASHPA_CAN_CMA ? ", or boot with cma=" : "");
}

static int rashpa_pages_get(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	int err = -ENOMEM;

	memset(pages, 0, sizeof(*pages));
	if (want->backend != RASHPA_BACKEND_CONTIG && rashpa_cma_present())
		err = rashpa_cma_alloc(pages, want);
	if (err && want->backend != RASHPA_BACKEND_CMA) {
		memset(pages, 0, sizeof(*pages));
		err = rashpa_contig_alloc(pages, want);
	}
	if (err)
		return err;
	pages->cache = RASHPA_CACHE_CACHED;
	pages->node = page_to_nid(pages->first);
	return 0;
}

/* The kernel changes so many pages at once: all of a large buffer would take it seconds. */
#define RASHPA_CACHE_PIECE	((unsigned long)SZ_128M >> PAGE_SHIFT)

/* Also from half-way back: then some are what they are to be. */
static int rashpa_cache_set(struct rashpa_pages *pages, u32 cache)
{
	unsigned long i, n;
	int err = 0;

	for (i = 0; i < pages->count && !err; i += n) {
		n = min(pages->count - i, RASHPA_CACHE_PIECE);
		if (cache != RASHPA_CACHE_CACHED && task_sigpending(current))
			err = -EINTR;
		else
			err = rashpa_memory_cache(pages->first + i, n, cache);
		cond_resched();
	}
	return err;
}

/* The kernel's own mapping and those of user space must agree, or x86 refuses them. */
static int rashpa_pages_cache(struct rashpa_call *call, struct rashpa_pages *pages, u32 cache)
{
	int err;

	if (cache == RASHPA_CACHE_CACHED)
		return 0;
	/* set first: what fails half-way has changed one half, which is to be made cached again */
	pages->cache = cache;
	err = rashpa_cache_set(pages, cache);
	if (err == -EINTR)
		return rashpa_fail(call, err, "interrupted by a signal");
	if (err)
		return rashpa_fail(call, err, "%s memory cannot be made on this machine",
				   cache == RASHPA_CACHE_WC ? "write-combined" : "uncached");
	return 0;
}

/**
 * rashpa_pages_alloc() - contiguous, zeroed memory
 * @call: the ioctl, for the reason
 * @pages: filled in
 * @want: the request
 *
 * Return: 0, -ENOMEM, -EINTR, -EOPNOTSUPP (no CMA area, no such cache mode).
 */
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       const struct rashpa_want *want)
{
	int err;

	if (want->backend == RASHPA_BACKEND_CMA && !rashpa_cma_present())
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE, or use contig");
	if (want->cache != RASHPA_CACHE_CACHED && !RASHPA_CAN_UNCACHE)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "buffers are cached only on this architecture");
	if (want->length >> PAGE_SHIFT > totalram_pages())
		return rashpa_fail(call, -ENOMEM, "%llu MiB asked for, the machine has %llu MiB",
				   want->length >> 20, (u64)totalram_pages() << PAGE_SHIFT >> 20);

	err = rashpa_pages_get(pages, want);
	if (err == -ENOMEM)
		err = rashpa_pages_explain(call, want, pages->longest);
	else if (err == -EOPNOTSUPP)
		rashpa_fail(call, err,
			    "how this kernel makes large pages is not known, so a contiguous buffer has %lu KiB at most: boot with cma=SIZE where the kernel has it, or use another kernel (testing.rst lists them)",
			    RASHPA_BLOCK_PAGES << (PAGE_SHIFT - 10));
	else if (err)
		rashpa_fail(call, err = -EINTR, "interrupted by a signal");
	if (err)
		return err;
	err = rashpa_pages_zero(pages);
	if (err)
		rashpa_fail(call, err, "interrupted by a signal");
	else
		err = rashpa_pages_cache(call, pages, want->cache);
	if (err)
		rashpa_pages_drop(pages);
	return err;
}

/* Pages of the compound page that begins there, 0 if it was given back. */
static unsigned long rashpa_piece_left(const struct rashpa_pages *pages, unsigned long i)
{
	return test_bit(i / RASHPA_BLOCK_PAGES, pages->given) ?
	       0 : rashpa_piece_pages(pages->first + i);
}

/**
 * rashpa_pages_damaged() - has memory lost its contents to an error?
 * @first: first page, of a zone that has all of them
 * @count: pages
 *
 * What reports such an error to the kernel (machine check, firmware, a test) ends in
 * memory_failure(), which marks the page. It cannot replace a page of a buffer.
 *
 * Return: whether a page has such a mark.
 */
bool rashpa_pages_damaged(struct page *first, unsigned long count)
{
	unsigned long i;

	if (!rashpa_node_damaged(page_to_nid(first)))
		return false;
	for (i = 0; i < count && !PageHWPoison(first + i); i++)
		if (i % RASHPA_BLOCK_PAGES == 0)
			cond_resched();
	return i < count;
}

/*
 * The page allocator keeps back single pages that have an error, not those that are a part of
 * something larger: such a piece stays until the machine is booted.
 */
static bool rashpa_pages_keep(struct page *first, unsigned long count)
{
	if (!rashpa_pages_damaged(first, count))
		return false;
	pr_warn("rashpa: %lu KiB are kept back until the machine is booted: they have a memory error\n",
		count << (PAGE_SHIFT - 10));
	return true;
}

/* The kernel may use its pages otherwise from now on: remember that they are gone. */
static void rashpa_piece_give(struct rashpa_pages *pages, unsigned long i, unsigned long n)
{
	bitmap_set(pages->given, i / RASHPA_BLOCK_PAGES, DIV_ROUND_UP(n, RASHPA_BLOCK_PAGES));
	if (!rashpa_pages_keep(pages->first + i, n))
		put_page(pages->first + i);
}

/**
 * rashpa_pages_free() - give memory back
 * @pages: from rashpa_pages_alloc()
 *
 * A block that is pinned (by an RDMA registration, direct I/O) stays until the pin ends.
 *
 * Return: bytes that stay, to be given back by another call, later.
 */
u64 rashpa_pages_free(struct rashpa_pages *pages)
{
	unsigned long i, n, held = 0;

	/* rather lost than given away: the next user expects it to be cached */
	if (pages->cache != RASHPA_CACHE_CACHED &&
	    WARN_ON(rashpa_cache_set(pages, RASHPA_CACHE_CACHED)))
		return 0;
	pages->cache = RASHPA_CACHE_CACHED;
	if (pages->backend == RASHPA_BACKEND_CMA) {
		if (!rashpa_pages_keep(pages->first, pages->count))
			rashpa_cma_free(pages);
		return 0;
	}
	for (i = 0; i < pages->count; i += n) {
		cond_resched();
		n = rashpa_piece_left(pages, i);
		if (!n) {
			n = RASHPA_BLOCK_PAGES;
			continue;
		}
		/* it is not mapped any more, so no new references come */
		if (page_count(pages->first + i) > 1)
			held += n;
		else
			rashpa_piece_give(pages, i, n);
	}
	if (!held) {
		bitmap_free(pages->given);
		pages->given = NULL;
	}
	return (u64)held << PAGE_SHIFT;
}

/**
 * rashpa_pages_drop() - give memory back at once
 * @pages: from rashpa_pages_alloc(); what others hold goes with their last reference
 */
void rashpa_pages_drop(struct rashpa_pages *pages)
{
	unsigned long i, n;

	if (!rashpa_pages_free(pages))
		return;
	for (i = 0; i < pages->count; i += n ?: RASHPA_BLOCK_PAGES) {
		n = rashpa_piece_left(pages, i);
		if (n)
			rashpa_piece_give(pages, i, n);
		cond_resched();
	}
	bitmap_free(pages->given);
}

/* ------------------------------------------------------ what would fit -- */

/**
 * rashpa_pages_query() - what would fit
 * @call: the ioctl, for the reason
 * @query: backend in; out_backend, out_total, out_free, out_largest and out_area filled in
 * @node: NUMA node or NUMA_NO_NODE
 *
 * Return: 0, -EOPNOTSUPP (no CMA area), -EINTR.
 */
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query, int node)
{
	bool cma = rashpa_cma_present();
	int err = 0;

	query->out_total = 0;
	query->out_free = 0;
	query->out_largest = 0;
	query->out_backend = 0;
	memset(query->out_area, 0, sizeof(query->out_area));
	if (query->backend == RASHPA_BACKEND_CMA && !cma)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE");
	if (query->backend != RASHPA_BACKEND_CONTIG && cma)
		rashpa_query_cma(query, node);
	else
		err = rashpa_query_contig(query, node);
	return err ? rashpa_fail(call, err, "interrupted by a signal") : 0;
}
