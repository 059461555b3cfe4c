/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A search for contiguous memory, and turns of those who search. Only for the files that find
 * memory for a buffer.
 */
#ifndef RASHPA_SEARCH_H
#define RASHPA_SEARCH_H

#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched.h>

#include "memory/memory.h"

/* --------------------------------------------- memory/search.c --- */

/**
 * enum rashpa_rank - whose search goes first
 * @RASHPA_RANK_TRY: who only asks makes way for who needs memory
 * @RASHPA_RANK_ALLOC: and that for an administrator (CAP_SYS_RESOURCE)
 * @RASHPA_RANK_ADMIN_TRY: likewise
 * @RASHPA_RANK_ADMIN_ALLOC: likewise
 */
enum rashpa_rank {
	RASHPA_RANK_TRY,
	RASHPA_RANK_ALLOC,
	RASHPA_RANK_ADMIN_TRY,
	RASHPA_RANK_ADMIN_ALLOC,
};

/**
 * struct rashpa_search - for a run of page blocks
 * @entry: while it waits for its turn
 * @task: who asks: its signals end it, whoever works for it
 * @progress: told how far it is
 * @blocks: wanted
 * @piece: of them are asked for at once, at most
 * @least: shorter runs are looked at, but not taken
 * @align_pages: alignment in pages
 * @end: page frames from this one on are of no use
 * @node: NUMA node or NUMA_NO_NODE
 * @rank: enum rashpa_rank
 * @until: when to give up, in jiffies; 0 for never
 * @pfn: found: the first page
 * @longest: blocks of the longest run that could be taken, if only for a moment
 * @spent: the zone has no more to give, wherever one looks
 * @looked: the longest run that was only looked at
 */
struct rashpa_search {
	struct list_head entry;
	struct task_struct *task;
	struct rashpa_progress *progress;
	unsigned long blocks;
	unsigned long piece;
	unsigned long least;
	unsigned long align_pages;
	unsigned long end;
	int node;
	enum rashpa_rank rank;
	unsigned long until;
	unsigned long pfn;
	unsigned long longest;
	bool spent;
	struct {
		struct zone *zone;
		unsigned long pfn;
		unsigned long blocks;
	} looked;
};

/* Pages of the compound page that begins at @head: somebody has a reference to it. */
static inline unsigned long rashpa_piece_pages(struct page *head)
{
	return 1UL << compound_order(head);
}

void rashpa_progress_set(struct rashpa_progress *progress, u32 stage, u64 done, u64 todo);
int rashpa_turn_begin(struct rashpa_search *search);
void rashpa_turn_end(const struct rashpa_search *search);
int rashpa_search_stop(const struct rashpa_search *search);
void rashpa_hands(int node, unsigned long most, void (*work)(void *job), void *job);
unsigned long rashpa_piece_blocks(const struct rashpa_search *search);
int rashpa_contig_search(struct rashpa_search *search);
int rashpa_contig_longest(struct rashpa_search *search, u64 most, u64 *longest);
bool rashpa_node_allows(int node, unsigned long pages);
int rashpa_query_contig(struct rashpa_query *query, int node);

/* ------------------------------------------------ memory/cma.c --- */

bool rashpa_pages_fit(struct page *first, const struct rashpa_want *want);
bool rashpa_cma_present(void);
int rashpa_cma_alloc(struct rashpa_pages *pages, const struct rashpa_want *want);
void rashpa_cma_free(struct rashpa_pages *pages);
void rashpa_query_cma(struct rashpa_query *query, int node);
int rashpa_try_cma(const struct rashpa_search *search, u64 size, u64 *largest);

#endif /* RASHPA_SEARCH_H */
