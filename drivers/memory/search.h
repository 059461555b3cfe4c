/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The search for contiguous memory. Only for the files that find memory for a buffer.
 */
#ifndef RASHPA_SEARCH_H
#define RASHPA_SEARCH_H

#include <linux/mm.h>
#include <linux/mmzone.h>

#include "memory/memory.h"

/* --------------------------------------------- memory/search.c --- */

/* A search for a run of page blocks. */
struct rashpa_search {
	const struct rashpa_want *want;
	unsigned long blocks;		/* wanted */
	unsigned long piece;		/* blocks that are taken at once, at most */
	unsigned long align_pages;
	unsigned long end;		/* page frames from this one on are of no use */
	unsigned long pfn;		/* found: the first page */
	unsigned long longest;		/* blocks of the longest run that is too short */
	bool spent;			/* the zone has no more to give */
};

/* Pages of the compound page that begins at @head. The caller has a reference to it. */
static inline unsigned long rashpa_piece_pages(struct page *head)
{
	return 1UL << compound_order(head);
}

unsigned long rashpa_piece_blocks(const struct rashpa_search *search);
int rashpa_contig_search(struct rashpa_search *search);
bool rashpa_node_allows(int node, unsigned long pages);
int rashpa_query_contig(struct rashpa_query *query, int node);

/* ----------------------------------------------- memory/huge.c --- */

int rashpa_huge_get(struct rashpa_call *call, struct rashpa_pages *pages,
		    const struct rashpa_want *want);
void rashpa_huge_put(struct rashpa_pages *pages);

/* ------------------------------------------------ memory/cma.c --- */

bool rashpa_pages_fit(struct page *first, const struct rashpa_want *want);
int rashpa_cma_alloc(struct rashpa_pages *pages, const struct rashpa_want *want);
void rashpa_cma_free(struct rashpa_pages *pages);
void rashpa_query_cma(struct rashpa_query *query, int node);

#endif /* RASHPA_SEARCH_H */
