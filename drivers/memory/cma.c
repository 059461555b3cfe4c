// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: contiguous memory from the kernel's default area of CMA.
 */
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

void rashpa_cma_free(struct rashpa_pages *pages)
{
	if (RASHPA_CAN_CMA)
		cma_release(rashpa_cma_area(), pages->first, pages->count);
}

int rashpa_cma_alloc(struct rashpa_pages *pages, const struct rashpa_want *want)
{
	/* memory as large as a huge entry is aligned like one */
	u64 alignment = want->length < PMD_SIZE ? want->alignment :
						  max_t(u64, want->alignment, PMD_SIZE);

	pages->backend = RASHPA_BACKEND_CMA;
	pages->count = want->length >> PAGE_SHIFT;
	pages->first = RASHPA_CAN_CMA ? cma_alloc(rashpa_cma_area(), pages->count,
						  get_order(alignment), true) : NULL;
	if (!pages->first)
		return -ENOMEM;
	if (rashpa_pages_fit(pages->first, want))
		return 0;
	rashpa_cma_free(pages);
	return -ENOMEM;
}

void rashpa_query_cma(struct rashpa_query *query, int node)
{
	int nid, z;

	query->out_backend = RASHPA_BACKEND_CMA;
	if (RASHPA_CAN_CMA)
		strscpy(query->out_area, cma_get_name(rashpa_cma_area()), sizeof(query->out_area));
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
