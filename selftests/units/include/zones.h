/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Memory of a machine that memory/search.c searches, with the kernel functions that it calls.
 * A page block is 16 pages, and the page allocator keeps up to 4 blocks in one piece.
 */
#ifndef UNITS_ZONES_H
#define UNITS_ZONES_H

#define RASHPA_BLOCK_ORDER	4
#define RASHPA_BLOCK_PAGES	(1UL << RASHPA_BLOCK_ORDER)
#define MAX_ORDER_NR_PAGES	(4 * RASHPA_BLOCK_PAGES)
#define RASHPA_CAN_CONTIG	true
#define RASHPA_CAN_CMA		true
#define RASHPA_CAN_UNCACHE	false
#define CONFIG_ZONE_DMA32

enum zone_type { ZONE_DMA32, ZONE_NORMAL, ZONE_MOVABLE, MAX_NR_ZONES };
enum {
	NR_FREE_PAGES, NR_FREE_CMA_PAGES, NR_ZONE_ACTIVE_FILE, NR_ZONE_INACTIVE_FILE,
	NR_ZONE_ACTIVE_ANON, NR_ZONE_INACTIVE_ANON, NR_STATES
};

enum {
	BUDDY = 1, RESERVED = 2, LRU = 4, PINNED = 8, LOCKED = 16, WRITEBACK = 32, TAIL = 64,
	BAD = 128
};

struct per_cpu_pages { int count; };
struct zone {
	unsigned long zone_start_pfn, end, managed, cma;
	unsigned long lowmem_reserve[MAX_NR_ZONES];
	unsigned long wmark[3];
	unsigned long state[NR_STATES];
	int node;
	enum zone_type idx;
	struct per_cpu_pages *per_cpu_pageset;
};

struct node { struct zone node_zones[MAX_NR_ZONES]; };
struct folio { struct page page; };
struct cma { int unused; };
struct xarray { unsigned char set[512]; };

#define BLOCKS		512
#define PAGES		(BLOCKS * RASHPA_BLOCK_PAGES)
static struct page mem[PAGES];
static struct node nodes[2];
static bool node_damaged;
static unsigned int cpus = 1;

static struct zone *page_zone(const struct page *page);
static struct page *pfn_to_online_page(unsigned long pfn);
static struct page *alloc_pages_node(int node, gfp_t gfp, unsigned int order);
static void __free_pages(struct page *page, unsigned int order);
static void put_page(struct page *page);
static const void *memchr_inv(const void *p, int c, size_t size);
static void msleep(unsigned int ms);
static int rashpa_range_alloc(unsigned long pfn, unsigned long count);
static int unit_lock_interruptible(struct mutex *m);
#undef mutex_lock_interruptible
#define mutex_lock_interruptible(m)	unit_lock_interruptible(m)
static long get_nr_swap_pages(void);

#define pfn_to_page(pfn)		(&mem[pfn])
#define page_to_pfn(page)		((unsigned long)((page) - mem))
#define page_flag(page, flag)		(!!((page)->flags & (flag)))
#define PageReserved(page)		page_flag(page, RESERVED)
#define PageBuddy(page)			page_flag(page, BUDDY)
#define PageHWPoison(page)		page_flag(page, BAD)
#define PageHuge(page)			false
#define rashpa_node_damaged(nid)	node_damaged
#define page_count(p)			(page_folio(p)->page.count)
#define page_folio(page) \
	((struct folio *)((page)->flags & TAIL ? (page) - (page)->private : (page)))
#define folio_test_lru(folio)		page_flag(&(folio)->page, LRU)
#define folio_maybe_dma_pinned(folio)	page_flag(&(folio)->page, PINNED)
#define folio_test_locked(folio)	page_flag(&(folio)->page, LOCKED)
#define folio_test_writeback(folio)	page_flag(&(folio)->page, WRITEBACK)
#define compound_order(page)		((page)->order)
#define compound_head(p)		(&page_folio(p)->page)
#define PageHead(page)			(!page_flag(page, TAIL) && (page)->order)
#define PageLRU(page)			page_flag(page, LRU)
#define get_page(p)			(page_folio(p)->page.count++)
#define __free_page(page)		__free_pages(page, 0)
#define get_order(size) \
	((unsigned int)ilog2(roundup_pow_of_two(DIV_ROUND_UP(size, PAGE_SIZE))))

#define zone_end_pfn(zone)		((zone)->end)
#define zone_managed_pages(zone)	((zone)->managed)
#define zone_cma_pages(zone)		((zone)->cma)
#define zone_page_state(zone, item)	((zone)->state[item])
#define zone_to_nid(zone)		((zone)->node)
#define zone_idx(zone)			((zone)->idx)
#define populated_zone(zone)		((zone)->managed)
#define min_wmark_pages(zone)		((zone)->wmark[0])
#define low_wmark_pages(zone)		((zone)->wmark[1])
#define high_wmark_pages(zone)		((zone)->wmark[2])
#define NODE_DATA(nid)			(&nodes[nid])
#define for_each_online_node(nid)	for ((nid) = 0; (nid) < 2; (nid)++)
#define for_each_online_cpu(cpu)	for ((cpu) = 0; (cpu) < (int)cpus; (cpu)++)
#define per_cpu_ptr(p, cpu)		(&(p)[cpu])

#define DEFINE_XARRAY(name)		struct xarray name
#define xa_store(xa, i, v, gfp)		((xa)->set[i] = 1)
#define xa_load(xa, i)			((xa)->set[i])
#define xa_destroy(xa)			memset((xa)->set, 0, sizeof((xa)->set))

#define clear_highpage(page)		((void)(page))
#define want_init_on_alloc(gfp)		true
#define totalram_pages()		PAGES
#define rashpa_cma_area()		((struct cma *)NULL)
#define cma_get_name(area)		""
#define cma_alloc(area, n, order, quiet)	((void)(order), (struct page *)NULL)
#define cma_release(...)		((void)0)
#define rashpa_memory_cache(first, n, cache)	0

#endif /* UNITS_ZONES_H */
