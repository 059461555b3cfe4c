// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: physically contiguous memory: from where, zeroed, with its cache mode, given back.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/hugetlb.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>

#include "core/compat.h"
#include "core/trace.h"
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

/* large pages of this kernel are as expected; set when the module is loaded, constant after */
static bool rashpa_contig_works = RASHPA_CAN_CONTIG;

static int rashpa_contig_alloc(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	const unsigned long count = want->length >> PAGE_SHIFT;
	struct rashpa_search search = {
		.want = want,
		.blocks = DIV_ROUND_UP(count, RASHPA_BLOCK_PAGES),
		.align_pages = max_t(unsigned long, RASHPA_BLOCK_PAGES,
				     want->alignment >> PAGE_SHIFT),
		.end = want->last == U64_MAX ? ULONG_MAX : (want->last + 1) >> PAGE_SHIFT,
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
	err = rashpa_contig_works ? rashpa_contig_search(&search) : -EOPNOTSUPP;
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

static int rashpa_pages_zero(const struct rashpa_pages *pages)
{
	unsigned long i;

	/* then the kernel has zeroed it already (Debian: init_on_alloc=1) */
	if (want_init_on_alloc(GFP_KERNEL))
		return 0;
	for (i = 0; i < pages->count; i++) {
		clear_highpage(pages->first + i);
		if (i % RASHPA_BLOCK_PAGES)
			continue;
		cond_resched();
		if (task_sigpending(current))
			return -EINTR;
	}
	return 0;
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
	if (want->backend != RASHPA_BACKEND_CONTIG && rashpa_cma_area())
		err = rashpa_cma_alloc(pages, want);
	if (err && want->backend != RASHPA_BACKEND_CMA)
		err = rashpa_contig_alloc(pages, want);
	trace_rashpa_search(want->length, want->node, pages->backend, err, pages->longest);
	pages->cache = RASHPA_CACHE_CACHED;
	return err;
}

/* The kernel changes so many pages at once: all of a large buffer would take it seconds. */
#define RASHPA_CACHE_PIECE	((unsigned long)SZ_128M >> PAGE_SHIFT)

/* Pages that have this mode already keep it. */
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

/* Zeroed, and with the cache mode that all mappings must have: x86 refuses those that differ. */
static int rashpa_pages_prepare(struct rashpa_pages *pages, u32 cache)
{
	int err = rashpa_pages_zero(pages);

	if (err || cache == RASHPA_CACHE_CACHED)
		return err;
	/* before the change: after an error in the middle, all pages are made cached again */
	pages->cache = cache;
	return rashpa_cache_set(pages, cache);
}

/*
 * Contiguous, zeroed memory. Return: 0, -ENOMEM, -EINTR, -EOPNOTSUPP (no CMA area, no such cache
 * mode), or what the kernel said about the cache mode.
 */
int rashpa_pages_alloc(struct rashpa_call *call, struct rashpa_pages *pages,
		       const struct rashpa_want *want)
{
	int err;

	if (want->backend == RASHPA_BACKEND_CMA && !rashpa_cma_area())
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE, or use contig");
	if (want->cache != RASHPA_CACHE_CACHED && !RASHPA_CAN_UNCACHE)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "buffers are cached only on this architecture");
	if (want->length >> PAGE_SHIFT > totalram_pages())
		return rashpa_fail(call, -ENOMEM, "%llu MiB asked for, the machine has %llu MiB",
				   want->length >> 20, (u64)totalram_pages() << PAGE_SHIFT >> 20);
	if (want->backend == RASHPA_BACKEND_HUGE)
		return rashpa_huge_get(call, pages, want);

	err = rashpa_pages_get(pages, want);
	if (err == -ENOMEM)
		return rashpa_pages_explain(call, want, pages->longest);
	if (err == -EOPNOTSUPP)
		return rashpa_fail(call, err,
				   "how this kernel makes large pages is not known, so a contiguous buffer has %lu KiB at most: boot with cma=SIZE where the kernel has it, or use another kernel (testing.rst lists them)",
				   RASHPA_BLOCK_PAGES << (PAGE_SHIFT - 10));
	if (!err) {
		err = rashpa_pages_prepare(pages, want->cache);
		if (!err)
			return 0;
		rashpa_pages_drop(pages);
	}
	if (err == -EINTR)
		return rashpa_fail(call, err, "interrupted by a signal");
	return rashpa_fail(call, err, "%s memory cannot be made on this machine",
			   want->cache == RASHPA_CACHE_WC ? "write-combined" : "uncached");
}

/*
 * Does a page have a memory error? Machine checks, firmware and tests end in memory_failure(),
 * which marks the page. It cannot replace a page of a buffer. All pages are of one zone.
 */
bool rashpa_pages_damaged(struct page *first, unsigned long count)
{
	unsigned long i;

	if (!rashpa_node_damaged(page_to_nid(first)))
		return false;
	/* the kernel marks only the first page of a huge one */
	if (PageHuge(first) && PageHWPoison(compound_head(first)))
		return true;
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

/*
 * Give back each compound page, but, without @all, none that others hold. Return how many pages
 * stay.
 */
static unsigned long rashpa_pieces_give(struct rashpa_pages *pages, bool all)
{
	unsigned long i, n, held = 0;

	for (i = 0; i < pages->count; i += n) {
		struct page *head = pages->first + i;

		cond_resched();
		n = RASHPA_BLOCK_PAGES;
		if (test_bit(i / RASHPA_BLOCK_PAGES, pages->given))
			continue;
		n = rashpa_piece_pages(head);
		/* it is not mapped any more, so no new references come */
		if (!all && page_count(head) > 1) {
			held += n;
			continue;
		}
		/* from now on the kernel may use these pages in another way */
		bitmap_set(pages->given, i / RASHPA_BLOCK_PAGES,
			   DIV_ROUND_UP(n, RASHPA_BLOCK_PAGES));
		if (!rashpa_pages_keep(head, n))
			put_page(head);
	}
	if (!held) {
		bitmap_free(pages->given);
		pages->given = NULL;
	}
	return held;
}

/*
 * Give memory back. A piece that is pinned (by an RDMA registration, direct I/O) stays until the
 * pin ends. Return how many bytes stay, for another call later.
 */
u64 rashpa_pages_free(struct rashpa_pages *pages)
{
	if (pages->memfd) {
		rashpa_huge_put(pages);
		return 0;
	}
	/* leak the pages if this fails: their next user expects cached memory */
	if (pages->cache != RASHPA_CACHE_CACHED &&
	    WARN_ON(rashpa_cache_set(pages, RASHPA_CACHE_CACHED)))
		return 0;
	pages->cache = RASHPA_CACHE_CACHED;
	if (pages->backend != RASHPA_BACKEND_CMA)
		return (u64)rashpa_pieces_give(pages, false) << PAGE_SHIFT;
	if (!rashpa_pages_keep(pages->first, pages->count))
		rashpa_cma_free(pages);
	return 0;
}

/* Give memory back at once: the last reference of others frees what they hold. */
void rashpa_pages_drop(struct rashpa_pages *pages)
{
	if (rashpa_pages_free(pages))
		rashpa_pieces_give(pages, true);
}

/* -------------------------------------------------- when loaded ---- */

#define RASHPA_CHECK_BLOCKS	2	/* one has the page allocator */
#define RASHPA_CHECK_TRIES	10	/* the kernel may look at a page meanwhile */

/* What of large pages is not as expected, or NULL. */
static const char *rashpa_contig_wrong(const struct rashpa_pages *pages)
{
	struct page *last = pages->first + pages->count - 1, *head = compound_head(last);
	int more;

	if (!PageHead(head) || head + rashpa_piece_pages(head) - 1 != last ||
	    compound_head(pages->first) != pages->first)
		return "they are not one compound page";
	if (PageLRU(head) || PageReserved(head))
		return "their flags are those of other memory";
	if (page_count(head) != 1)
		return "they do not have one reference";
	/* as a pin of the last page */
	get_page(last);
	more = page_count(head);
	put_page(last);
	if (more != 2 || page_count(head) != 1)
		return "a reference to a part does not count";
	if (want_init_on_alloc(GFP_KERNEL) &&
	    memchr_inv(page_address(pages->first), 0, rashpa_pages_size(pages)))
		return "init_on_alloc does not clear them";
	return NULL;
}

/*
 * Take memory as for a large buffer, and give it back. If it is not as expected, buffers are small.
 * That memory is kept: to give it back could do harm. Nothing is checked where memory is short, or
 * page blocks are large (512 MiB with pages of 64 KiB).
 */
void rashpa_contig_check(void)
{
	struct mutex turn;	/* no user has this one */
	const struct rashpa_want want = {
		.length = RASHPA_CHECK_BLOCKS * RASHPA_BLOCK_PAGES << PAGE_SHIFT,
		.alignment = PAGE_SIZE, .last = U64_MAX, .node = NUMA_NO_NODE, .turn = &turn,
	};
	struct rashpa_pages pages = { .cache = RASHPA_CACHE_CACHED };
	const char *wrong;
	int tries = RASHPA_CHECK_TRIES, err;

	if (want.length > SZ_16M)
		return;
	mutex_init(&turn);
	err = rashpa_contig_alloc(&pages, &want);
	mutex_destroy(&turn);
	if (err)
		return;
	while ((wrong = rashpa_contig_wrong(&pages)) && --tries)
		msleep(20);
	if (!wrong) {
		rashpa_pages_drop(&pages);
		return;
	}
	rashpa_contig_works = false;
	bitmap_free(pages.given);
	pr_err("rashpa: large pages of this kernel are not as expected (%s): contiguous buffers have %lu KiB at most; report this kernel\n",
	       wrong, RASHPA_BLOCK_PAGES << (PAGE_SHIFT - 10));
}

/* What would fit: fill in all outputs of @query. Return: 0, -EOPNOTSUPP (no CMA area), -EINTR. */
int rashpa_pages_query(struct rashpa_call *call, struct rashpa_query *query, int node)
{
	bool cma = rashpa_cma_area();
	int err = 0;

	memset_startat(query, 0, out_total);
	if (query->backend == RASHPA_BACKEND_CMA && !cma)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "no CMA area: boot a kernel with CONFIG_DMA_CMA and cma=SIZE");
	if (query->backend != RASHPA_BACKEND_CONTIG && cma)
		rashpa_query_cma(query, node);
	else
		err = rashpa_query_contig(query, node);
	return err ? rashpa_fail(call, err, "interrupted by a signal") : 0;
}
