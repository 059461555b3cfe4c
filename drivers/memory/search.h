/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The search for contiguous memory. Only for the files that find memory for a buffer.
 */
#ifndef RASHPA_SEARCH_H
#define RASHPA_SEARCH_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>

#include "memory/memory.h"

/* --------------------------------------------- memory/search.c --- */

/**
 * struct rashpa_search - for a run of page blocks
 * @task: the caller: its signals end the work of all processors
 * @turn: the user's, held for the search
 * @blocks: blocks wanted
 * @piece: blocks that are taken at once, at most
 * @align_pages: alignment in pages
 * @end: page frames from this one on are of no use
 * @node: NUMA node or NUMA_NO_NODE
 * @pfn: found: the first page
 * @longest: blocks of the longest run that was seen and is too short
 * @spent: the zone has no more to give, wherever one looks
 */
struct rashpa_search {
	struct task_struct *task;
	struct mutex *turn;		/* one search of the user; no data */
	unsigned long blocks;
	unsigned long piece;
	unsigned long align_pages;
	unsigned long end;
	int node;
	unsigned long pfn;
	unsigned long longest;
	bool spent;
};

/* Pages of the compound page that begins at @head. The caller has a reference to it. */
static inline unsigned long rashpa_piece_pages(struct page *head)
{
	return 1UL << compound_order(head);
}

void rashpa_hands(int node, unsigned long most, void (*work)(void *job), void *job);
unsigned long rashpa_piece_blocks(const struct rashpa_search *search);
int rashpa_contig_search(struct rashpa_search *search);
bool rashpa_node_allows(int node, unsigned long pages);
int rashpa_query_contig(struct rashpa_query *query, int node);

/* ------------------------------------------------ memory/cma.c --- */

bool rashpa_pages_fit(struct page *first, const struct rashpa_want *want);
bool rashpa_cma_present(void);
int rashpa_cma_alloc(struct rashpa_pages *pages, const struct rashpa_want *want);
void rashpa_cma_free(struct rashpa_pages *pages);
void rashpa_query_cma(struct rashpa_query *query, int node);

#endif /* RASHPA_SEARCH_H */
