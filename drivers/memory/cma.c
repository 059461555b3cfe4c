// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: contiguous memory from areas of CMA.
 */
#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/mmzone.h>

#include "core/compat.h"
#include "memory/search.h"

/* Is @length from @first on where it is wanted? */
bool rashpa_pages_fit(struct page *first, const struct rashpa_want *want)
{
	return (want->node == NUMA_NO_NODE || page_to_nid(first) == want->node) &&
	       IS_ALIGNED(page_to_phys(first), want->alignment) &&
	       page_to_phys(first) + want->length - 1 <= want->last;
}

/* Is there any CMA area at all? The default one need not be: numa_cma= makes others. */
bool rashpa_cma_present(void)
{
	int nid, z;

	if (rashpa_cma_area(NULL))
		return true;
	if (!IS_ENABLED(CONFIG_DMA_NUMA_CMA))
		return false;
	for_each_online_node(nid)
		for (z = 0; z < MAX_NR_ZONES; z++)
			if (zone_cma_pages(&NODE_DATA(nid)->node_zones[z]))
				return true;
	return false;
}

/*
 * The areas of single nodes (numa_cma=, cma_pernuma=) are not exported. But the DMA core
 * takes memory for a device from the area of its node: be such a device for a moment.
 */
static DEFINE_MUTEX(rashpa_node_dev_lock);	/* rashpa_node_dev's node */
/* not DMA_BIT_MASK(64): before 6.16 clang warns of it in an initializer */
static u64 rashpa_node_dev_mask = U64_MAX;
static struct device rashpa_node_dev = {
	.init_name = "rashpa-node",
	.coherent_dma_mask = U64_MAX,
	.dma_mask = &rashpa_node_dev_mask,
};

/*
 * The DMA core expects of a device what device_initialize() sets. Nothing of that has to be
 * given back, and nobody else ever holds it.
 */
void rashpa_cma_init(void)
{
	device_initialize(&rashpa_node_dev);
}

static void rashpa_node_free(struct page *first, unsigned long count)
{
	dma_free_pages(&rashpa_node_dev, count << PAGE_SHIFT, first, page_to_phys(first),
		       DMA_BIDIRECTIONAL);
}

/*
 * Where no area has room the DMA core goes to the page allocator. That leaves the later pages
 * of what it hands out without references, CMA gives each page one. Of CMA a single page
 * never comes.
 */
static struct page *rashpa_node_alloc(unsigned long count, int node)
{
	dma_addr_t unused;
	struct page *first;

	mutex_lock(&rashpa_node_dev_lock);
	set_dev_node(&rashpa_node_dev, node);
	first = dma_alloc_pages(&rashpa_node_dev, count << PAGE_SHIFT, &unused,
				DMA_BIDIRECTIONAL, GFP_KERNEL | __GFP_NOWARN);
	mutex_unlock(&rashpa_node_dev_lock);
	if (first && (count == 1 || !page_count(first + count - 1))) {
		rashpa_node_free(first, count);
		first = NULL;
	}
	return first;
}

void rashpa_cma_free(struct rashpa_pages *pages)
{
	if (pages->cma)
		cma_release(pages->cma, pages->first, pages->count);
	else
		rashpa_node_free(pages->first, pages->count);
}

/**
 * struct rashpa_gaps - memory of a node that is kept while better aligned memory is looked for
 * @gap: what is kept
 * @count: their number
 */
struct rashpa_gaps {
	struct rashpa_extent gap[32];
	unsigned int count;
};

/* Keep what is between @pfn and the next @align_pages. Return whether anything was left to do. */
static bool rashpa_gaps_fill(struct rashpa_gaps *gaps, unsigned long pfn,
			     unsigned long align_pages, int node)
{
	const unsigned int before = gaps->count;

	while (gaps->count < ARRAY_SIZE(gaps->gap) && !IS_ALIGNED(pfn, align_pages)) {
		struct rashpa_extent *gap = &gaps->gap[gaps->count];

		/* as long as it is aligned: then it goes here, or where it is of no harm */
		gap->count = 1UL << __ffs(pfn);
		gap->first = rashpa_node_alloc(gap->count, node);
		if (!gap->first)
			return false;
		gaps->count++;
		pfn += gap->count;
	}
	return gaps->count > before;
}

/*
 * The DMA core aligns to 1 MiB at most, and CMA takes the first place that is free: if that
 * is not aligned, fill what is before one that is, and look again.
 */
static struct page *rashpa_node_alloc_aligned(const struct rashpa_want *want, int node)
{
	const unsigned long count = want->length >> PAGE_SHIFT;
	struct rashpa_gaps gaps = {};
	struct page *first;
	unsigned long pfn;

	do {
		first = rashpa_node_alloc(count, node);
		if (!first || rashpa_pages_fit(first, want))
			break;
		pfn = page_to_pfn(first);
		rashpa_node_free(first, count);
		first = NULL;
	} while (rashpa_gaps_fill(&gaps, pfn, want->alignment >> PAGE_SHIFT, node));
	while (gaps.count--)
		rashpa_node_free(gaps.gap[gaps.count].first, gaps.gap[gaps.count].count);
	return first;
}

static int rashpa_cma_alloc_node(struct rashpa_pages *pages, const struct rashpa_want *want,
				 int node)
{
	if (!IS_ENABLED(CONFIG_DMA_NUMA_CMA))
		return -ENOMEM;
	pages->first = rashpa_node_alloc_aligned(want, node);
	if (!pages->first)
		return -ENOMEM;
	pages->dma = true;
	pages->backend = RASHPA_BACKEND_CMA;
	pages->count = want->length >> PAGE_SHIFT;
	return 0;
}

/* Only with the turn: a try of somebody else would hold the memory. */
int rashpa_cma_alloc(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	/* what is as large as a huge entry is aligned like one */
	u64 alignment = want->length < PMD_SIZE ? want->alignment :
						  max_t(u64, want->alignment, PMD_SIZE);
	struct cma *area = rashpa_cma_area(NULL);
	int nid;

	pages->backend = RASHPA_BACKEND_CMA;
	if (area) {
		pages->count = want->length >> PAGE_SHIFT;
		pages->first = cma_alloc(area, pages->count, get_order(alignment), true);
		pages->cma = area;
		if (pages->first && rashpa_pages_fit(pages->first, want))
			return 0;
		if (pages->first)
			rashpa_cma_free(pages);
		pages->cma = NULL;
	}
	for_each_online_node(nid) {
		if (want->node != NUMA_NO_NODE && nid != want->node)
			continue;
		if (!rashpa_cma_alloc_node(pages, want, nid))
			return 0;
	}
	return -ENOMEM;
}

void rashpa_query_cma(struct rashpa_query *query, int node)
{
	struct cma *area = rashpa_cma_area(NULL);
	int nid, z;

	query->out_backend = RASHPA_BACKEND_CMA;
	if (area)
		strscpy(query->out_area, rashpa_cma_name(area), sizeof(query->out_area));
	for_each_online_node(nid) {
		if (node != NUMA_NO_NODE && nid != node)
			continue;
		for (z = 0; z < MAX_NR_ZONES; z++) {
			struct zone *zone = &NODE_DATA(nid)->node_zones[z];

			query->out_total += (u64)zone_cma_pages(zone) << PAGE_SHIFT;
			query->out_free += (u64)zone_page_state(zone, NR_FREE_CMA_PAGES) <<
					   PAGE_SHIFT;
		}
	}
	query->out_free = min(query->out_free, query->out_total);
}

/* Each try is this much smaller: 18 tries from all to one in a hundred. */
#define RASHPA_TRY_STEP(size)	((size) / 4)

/* CMA does not even tell how it looks: allocate less and less until it succeeds. */
int rashpa_try_cma(const struct rashpa_search *search, u64 size, u64 *largest)
{
	const u64 unit = PAGE_SIZE << RASHPA_BLOCK_ORDER;
	struct rashpa_want want = { .alignment = PAGE_SIZE, .node = search->node,
				    .last = U64_MAX };
	struct rashpa_pages pages;
	int err;

	for (size = ALIGN_DOWN(size, unit); size;
	     size = ALIGN_DOWN(size - max(RASHPA_TRY_STEP(size), unit), unit)) {
		err = rashpa_search_stop(search);
		if (err)
			return err;
		want.length = size;
		memset(&pages, 0, sizeof(pages));
		if (!rashpa_cma_alloc(&pages, &want)) {
			rashpa_cma_free(&pages);
			*largest = size;
			break;
		}
	}
	return 0;
}
