// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Search for runs of page blocks, in memory that a string describes.
 * test: tier=check where=root seconds=1 run=build/selftests/units/search_unit
 */
#include "include/zones.h"
#include "../../drivers/memory/search.c"
#include "../../drivers/memory/cma.c"
#include "../../drivers/memory/pages.c"
#include "unit.h"

/* ------------------------------------------------------------- memory ---- */

/*
 * A letter for each page block of a zone:
 *	.  free			m  in use, can be moved		T  a huge page that can be moved
 *	f  half of it is free	s  single free pages		X  taken by the driver
 * blocks that visibly cannot be taken:
 *	u  one page of the kernel	U  the last one		v  one after free ones
 *	r  reserved			h  a hole
 *	p  pinned			l  locked		w  being written	G  hugetlb
 * blocks that look usable, but cannot be taken:
 *	c  free memory of CMA		C  CMA, in use		b  cannot be moved, for once
 */
static char map[BLOCKS];
static const char can_be_had[] = ".mTfs", looks_usable[] = ".mTfscCb";
static unsigned long spare;		/* free pages of each zone elsewhere */
static int asked[BLOCKS];		/* requests of a block */
static struct { unsigned long pfn, count; } asks[256];
static size_t n_asks;
static void (*on_range)(struct page *head, struct page *last);	/* called with a range that was taken */
static int swap_pages;
static bool whole = true;		/* one range is one compound page */
static struct per_cpu_pages listed[16];

static unsigned long n_blocks;		/* all zones together */
static struct zone *zones[PAGES];	/* by page */

static struct zone *page_zone(const struct page *page)
{
	return zones[page_to_pfn(page)];
}

static void zones_make(void)
{
	unsigned long pfn;
	int nid, z;

	memset(zones, 0, sizeof(zones));
	for (nid = 0; nid < 2; nid++)
		for (z = 0; z < MAX_NR_ZONES; z++) {
			struct zone *zone = &nodes[nid].node_zones[z];

			for (pfn = zone->zone_start_pfn; pfn < zone->end; pfn++)
				zones[pfn] = zone;
		}
}

int page_to_nid(const struct page *page) { return page_zone(page)->node; }
phys_addr_t page_to_phys(const struct page *page) { return page_to_pfn(page) << PAGE_SHIFT; }

static struct page *pfn_to_online_page(unsigned long pfn)
{
	const char kind = pfn < PAGES ? map[pfn / RASHPA_BLOCK_PAGES] : 0;

	return kind && kind != 'h' ? &mem[pfn] : NULL;
}

static unsigned long free_of(char kind)
{
	return kind == '.' || kind == 'c' ? RASHPA_BLOCK_PAGES : strchr("fsv", kind) ?
	       RASHPA_BLOCK_PAGES / 2 : 0;
}

static void buddy(unsigned long pfn, unsigned int order)
{
	mem[pfn].flags = BUDDY;
	mem[pfn].private = order;
}

static void block_make(unsigned long block)
{
	const unsigned long pfn = block * RASHPA_BLOCK_PAGES;
	const char kind = map[block];
	struct page *page = &mem[pfn];
	unsigned long i;

	memset(page, 0, RASHPA_BLOCK_PAGES * sizeof(*page));
	if (free_of(kind) == RASHPA_BLOCK_PAGES) {
		buddy(pfn, RASHPA_BLOCK_ORDER);
		return;
	}
	for (i = 0; i < RASHPA_BLOCK_PAGES; i++) {
		if ((kind == 'f' || kind == 'v') && i < RASHPA_BLOCK_PAGES / 2)
			continue;
		if (kind == 's' && i % 2 == 0) {
			buddy(pfn + i, 0);
			continue;
		}
		page[i].count = 1;
		page[i].flags = LRU;
		if ((kind == 'T' || kind == 'G') && i)
			page[i] = (struct page) { .flags = TAIL, .private = i };
	}
	if (kind == 'f' || kind == 'v')
		buddy(pfn, RASHPA_BLOCK_ORDER - 1);
	page[5].flags |= kind == 'p' ? PINNED : kind == 'l' ? LOCKED : kind == 'w' ? WRITEBACK :
			 kind == 'r' ? RESERVED : 0;
	if (kind == 'u' || kind == 'G')
		page[0].flags = 0;
	if (kind == 'v')
		page[RASHPA_BLOCK_PAGES / 2].flags = 0;
	if (kind == 'U')
		page[RASHPA_BLOCK_PAGES - 1].flags = 0;
}

/* The page allocator merges free blocks of one zone that are adjacent and aligned. */
static void merge(unsigned int order)
{
	const unsigned long n = 1UL << (order - RASHPA_BLOCK_ORDER);
	unsigned long block, i;

	for (block = 0; block + n <= n_blocks; block += n) {
		const unsigned long pfn = block * RASHPA_BLOCK_PAGES;

		for (i = 0; i < n && map[block + i] == '.'; i++)
			;
		if (i < n ||
		    page_zone(&mem[pfn]) != page_zone(&mem[pfn + n * RASHPA_BLOCK_PAGES - 1]))
			continue;
		memset(&mem[pfn], 0, n * RASHPA_BLOCK_PAGES * sizeof(mem[0]));
		buddy(pfn, order);
	}
}

static void count(void)
{
	unsigned long block;
	int nid, z;

	for (nid = 0; nid < 2; nid++)
		for (z = 0; z < MAX_NR_ZONES; z++) {
			struct zone *zone = &nodes[nid].node_zones[z];

			zone->state[NR_FREE_PAGES] = zone->managed ? spare : 0;
			zone->state[NR_FREE_CMA_PAGES] = 0;
			zone->cma = 0;
		}
	for (block = 0; block < n_blocks; block++) {
		struct zone *zone = page_zone(&mem[block * RASHPA_BLOCK_PAGES + 1]);

		zone->state[NR_FREE_PAGES] += free_of(map[block]);
		zone->state[NR_FREE_CMA_PAGES] += map[block] == 'c' ? RASHPA_BLOCK_PAGES : 0;
		zone->cma += map[block] == 'c' || map[block] == 'C' ? RASHPA_BLOCK_PAGES : 0;
	}
}

static void make(void)
{
	unsigned long block;

	for (block = 0; block < n_blocks; block++)
		if (map[block] != 'X')
			block_make(block);
	merge(RASHPA_BLOCK_ORDER + 1);
	merge(RASHPA_BLOCK_ORDER + 2);
	count();
}

static unsigned long zone_add(int nid, enum zone_type idx, unsigned long block, const char *is)
{
	const unsigned long n = strlen(is ?: "");

	nodes[nid].node_zones[idx] = (struct zone) {
		.zone_start_pfn = block * RASHPA_BLOCK_PAGES,
		.end = (block + n) * RASHPA_BLOCK_PAGES,
		.managed = n * RASHPA_BLOCK_PAGES, .node = nid, .idx = idx,
		.per_cpu_pageset = listed,
	};
	memcpy(&map[block], is ?: "", n);
	return block + n;
}

/* Memory below 4 GiB, above it, and of another node; NULL for none. */
static void memory(const char *dma32, const char *normal, const char *other)
{
	memset(map, 0, sizeof(map));
	memset(asked, 0, sizeof(asked));
	memset(listed, 0, sizeof(listed));
	n_asks = 0;
	spare = 1000000;
	xa_destroy(&rashpa_withheld);
	n_blocks = zone_add(0, ZONE_DMA32, 0, dma32);
	n_blocks = zone_add(0, ZONE_NORMAL, n_blocks, normal);
	n_blocks = zone_add(1, ZONE_NORMAL, n_blocks, other);
	zones_make();
	make();
}

static int rashpa_range_alloc(unsigned long pfn, unsigned long pages)
{
	const unsigned long block = pfn / RASHPA_BLOCK_PAGES, n = pages / RASHPA_BLOCK_PAGES;
	unsigned long i;

	if (pages < RASHPA_BLOCK_PAGES || !is_power_of_2(pages) || !IS_ALIGNED(pfn, pages))
		tap_fail(__func__, __LINE__, "%lu pages at %lu", pages, pfn);
	if (n_asks < ARRAY_SIZE(asks)) {
		asks[n_asks].pfn = pfn;
		asks[n_asks++].count = pages;
	}
	for (i = 0; i < n; i++) {
		/* the kernel would wait for locked pages, or warn */
		CHECK(map[block + i] && strchr(looks_usable, map[block + i]) &&
		      page_zone(&mem[pfn]) == page_zone(&mem[pfn + pages - 1]),
		      "block %lu is asked for, which is '%c'", block + i, map[block + i]);
		asked[block + i]++;
	}
	for (i = 0; i < n; i++)
		if (!map[block + i] || !strchr(can_be_had, map[block + i]))
			return -EBUSY;
	for (i = 0; i < n; i++) {
		/* the kernel moves pages in use to free memory elsewhere */
		spare -= RASHPA_BLOCK_PAGES - free_of(map[block + i]);
		map[block + i] = 'X';
	}
	for (i = 0; i < pages; i++) {
		const unsigned long head = whole ? pfn : ALIGN_DOWN(pfn + i, RASHPA_BLOCK_PAGES);

		mem[pfn + i] = (struct page) { .flags = TAIL, .private = pfn + i - head };
		if (pfn + i == head)
			mem[head] = (struct page) { .count = 1, .order = RASHPA_BLOCK_ORDER +
						    (whole ? ilog2(n) : 0) };
	}
	if (on_range)
		on_range(&mem[pfn], &mem[pfn + pages - 1]);
	make();
	return 0;
}

static void put_page(struct page *page)
{
	const unsigned long block = page_to_pfn(compound_head(page)) / RASHPA_BLOCK_PAGES;
	unsigned long i;

	page = compound_head(page);
	CHECK(map[block] == 'X' && page->count > 0 && page->order, "block %lu is not taken", block);
	if (--page->count)
		return;
	for (i = 0; i < (1UL << page->order) / RASHPA_BLOCK_PAGES; i++)
		map[block + i] = '.';
	make();
}

/* ---------------------------------------------- the rest of the kernel ---- */

static bool dirty;			/* memory is not cleared */
static void (*meanwhile)(void);		/* called while the driver waits */

void *page_address(const struct page *page) { return (void *)(uintptr_t)page; }
static const void *memchr_inv(const void *p, int c, size_t size) { return dirty ? p : NULL; }
static void msleep(unsigned int ms)
{
	if (meanwhile)
		meanwhile();
}

struct page *small_page;		/* answer of the page allocator */
static gfp_t small_gfp;
static unsigned int small_order;
static int signals_after = INT_MAX;	/* polls without a signal */

bool task_sigpending(struct task_struct *task) { return --signals_after < 0; }
static long get_nr_swap_pages(void) { return swap_pages; }

/* ----------------------------------------------------- where a run is ---- */

static struct rashpa_pages got;
static struct mutex turn;

/* The first block of the run that was found, or an error. */
static long search(unsigned long blocks, unsigned long align, int node, u64 last)
{
	const struct rashpa_want want = {
		.length = blocks * RASHPA_BLOCK_PAGES * PAGE_SIZE, .last = last, .node = node,
		.alignment = align * RASHPA_BLOCK_PAGES * PAGE_SIZE, .turn = &turn,
	};
	int err;

	memset(&got, 0, sizeof(got));
	err = rashpa_contig_alloc(&got, &want);
	return err ? err : (long)(page_to_pfn(got.first) / RASHPA_BLOCK_PAGES);
}

/* Check that nothing else was taken; give the run back. */
static void gives_back(const char *what, long first, unsigned long blocks)
{
	unsigned long block;

	for (block = 0; block < n_blocks; block++)
		CHECK((map[block] == 'X') == (first >= 0 && block >= (unsigned long)first &&
					      block < first + blocks),
		      "%s: block %lu is %staken", what, block, map[block] == 'X' ? "" : "not ");
	if (first >= 0)
		rashpa_pages_drop(&got);
	CHECK(!memchr(map, 'X', sizeof(map)), "%s: something is left", what);
}

static void finds(const char *dma32, const char *normal, const char *other, unsigned long blocks,
		  unsigned long align, int node, u64 last, long at)
{
	char what[200];
	long is;

	snprintf(what, sizeof(what), "\"%s\", \"%s\", \"%s\", %lu blocks aligned to %lu, node %d",
		 dma32 ?: "", normal ?: "", other ?: "", blocks, align, node);
	memory(dma32, normal, other);
	is = search(blocks, align, node, last);
	CHECK(is == at, "%s: %ld instead of %ld", what, is, at);
	gives_back(what, is, blocks);
}

#define FINDS(is, blocks, at)	finds(NULL, is, NULL, blocks, 1, NUMA_NO_NODE, U64_MAX, at)
#define NOTHING			(-ENOMEM)

TEST(free, "a search finds free runs: exact fit, at the end, none")
{
	FINDS("....", 4, 0);
	FINDS("....", 5, NOTHING);
	FINDS(".", 1, 0);
	FINDS("u....u", 4, 1);
	FINDS("..u...u....", 4, 7);
	FINDS("..u...u....", 3, 3);
	FINDS("..u...u...u", 4, NOTHING);
	FINDS("u.u.u.u.u.u", 2, NOTHING);
	FINDS("uuuuuuuuuuu", 1, NOTHING);
	FINDS("..........................................", 42, 0);
	/* the search prefers free memory to memory that it has to move */
	FINDS("mmmm...u....", 4, 8);
	FINDS("mmmm...u...", 4, 0);
	FINDS("umm...u...", 4, 1);
}

TEST(obstacles, "obstacles of each kind end a run, movable blocks do not")
{
	static const char obstacles[] = "uUvrhplwGcCb";
	char is[7];
	size_t i;

	for (i = 0; obstacles[i]; i++) {
		snprintf(is, sizeof(is), "..%c...", obstacles[i]);
		FINDS(is, 3, 3);
		FINDS(is, 4, NOTHING);
		snprintf(is, sizeof(is), "%c...%c", obstacles[i], obstacles[i]);
		FINDS(is, 3, 1);
		snprintf(is, sizeof(is), "%cmmm%c", obstacles[i], obstacles[i]);
		FINDS(is, 3, 1);
		FINDS(is, 4, NOTHING);
	}
	for (i = 0; can_be_had[i]; i++) {
		snprintf(is, sizeof(is), "u.%c.u", can_be_had[i]);
		FINDS(is, 3, 1);
		snprintf(is, sizeof(is), "%cmm", can_be_had[i]);
		FINDS(is, 3, 0);
	}
}

TEST(aligned, "runs are aligned")
{
	finds(NULL, "u.......", NULL, 4, 4, NUMA_NO_NODE, U64_MAX, 4);
	finds(NULL, "u......", NULL, 4, 4, NUMA_NO_NODE, U64_MAX, NOTHING);
	finds(NULL, "u.......", NULL, 3, 2, NUMA_NO_NODE, U64_MAX, 2);
	finds(NULL, "...b.m..", NULL, 3, 4, NUMA_NO_NODE, U64_MAX, 0);
	finds(NULL, "..b..m..", NULL, 3, 4, NUMA_NO_NODE, U64_MAX, 4);
	/* the beginning of the zone is less aligned than that */
	finds("u", "........", NULL, 4, 4, NUMA_NO_NODE, U64_MAX, 4);
}

#define END_OF(block)	((u64)((block) * RASHPA_BLOCK_PAGES) * PAGE_SIZE - 1)

/* Nodes, memory below 4 GiB, highest address that the device reaches. */
TEST(zones, "runs end with their zone, their node and what the device reaches")
{
	finds(NULL, "..", "..", 3, 1, NUMA_NO_NODE, U64_MAX, NOTHING);
	finds(NULL, "..", "..", 2, 1, NUMA_NO_NODE, U64_MAX, 0);
	finds(NULL, "..", "..", 2, 1, 1, U64_MAX, 2);
	finds(NULL, "....", "..", 3, 1, 1, U64_MAX, NOTHING);
	finds("....", "....", NULL, 3, 1, NUMA_NO_NODE, U64_MAX, 4);
	finds("....", "..", "....", 3, 1, NUMA_NO_NODE, U64_MAX, 6);
	finds("....", "..", "...u", 4, 1, NUMA_NO_NODE, U64_MAX, 0);
	finds("..", "..", NULL, 3, 1, NUMA_NO_NODE, U64_MAX, NOTHING);
	finds("....", "mmm", NULL, 3, 1, NUMA_NO_NODE, U64_MAX, 4);
	finds("....", "....", NULL, 3, 1, NUMA_NO_NODE, END_OF(4), 0);
	finds("....", "....", NULL, 3, 1, NUMA_NO_NODE, END_OF(3), 0);
	finds("....", "....", NULL, 3, 1, NUMA_NO_NODE, END_OF(3) - PAGE_SIZE, NOTHING);
	finds("m...", "....", NULL, 3, 1, NUMA_NO_NODE, END_OF(7), 4);
	finds("m...", "....", NULL, 3, 1, NUMA_NO_NODE, END_OF(7) - 1, 1);
	finds("m...", "....", NULL, 4, 1, NUMA_NO_NODE, END_OF(7), 0);
}

/* Zones that begin and end within a block. */
TEST(crooked, "zones that begin or end within a block")
{
	struct zone *zone = &nodes[0].node_zones[ZONE_NORMAL];

	memory(NULL, "....", NULL);
	zone->zone_start_pfn++;
	zone->end--;
	zones_make();
	CHECK(search(3, 1, NUMA_NO_NODE, U64_MAX) == NOTHING, "three");
	CHECK(search(2, 1, NUMA_NO_NODE, U64_MAX) == 1, "two");
	gives_back("two", 1, 2);
	/* some pages of the first block belong to another zone */
	memory("...", "....", NULL);
	zone->zone_start_pfn--;
	nodes[0].node_zones[ZONE_DMA32].end--;
	zones_make();
	make();
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 3, "four");
	gives_back("four", 3, 4);
	CHECK(search(5, 1, NUMA_NO_NODE, U64_MAX) == NOTHING, "five");
	/* a zone within another one, as nodes may be */
	memory(NULL, "........", NULL);
	nodes[1].node_zones[ZONE_NORMAL] = *zone;
	nodes[1].node_zones[ZONE_NORMAL].node = 1;
	nodes[1].node_zones[ZONE_NORMAL].zone_start_pfn += 3 * RASHPA_BLOCK_PAGES;
	nodes[1].node_zones[ZONE_NORMAL].end -= 3 * RASHPA_BLOCK_PAGES;
	zones_make();
	make();
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == NOTHING, "around another zone");
	CHECK(search(2, 1, 1, U64_MAX) == 3, "in it");
	gives_back("in it", 3, 2);
}

/* ------------------------------------------------------ against a model ---- */

static void random_map(char *is, size_t n, const char *kinds)
{
	size_t i, k = strlen(kinds);

	/* runs of one kind, as in real memory */
	for (i = 0; i < n; i++)
		is[i] = i && unit_random() % 2 ? is[i - 1] : kinds[unit_random() % k];
	is[n] = '\0';
}

/* The first aligned run of @blocks whose kinds are all of @kinds. */
static long first_run(const char *is, unsigned long blocks, unsigned long align, const char *kinds)
{
	unsigned long at;

	for (at = 0; at + blocks <= strlen(is); at += align)
		if (strspn(is + at, kinds) >= blocks)
			return at;
	return NOTHING;
}

TEST(random, "4000 random memories agree with a model")
{
	char is[41];
	int i;

	for (i = 0; i < 4000 && tap_ok(); i++) {
		const unsigned long n = unit_random() % 40 + 1, blocks = unit_random() % n % 10 + 1;
		const unsigned long align = 1UL << unit_random() % 3;
		long at;

		random_map(is, n, i % 2 ? "...m.mubc" : ".mTfsuUvrhplwGcCb");
		at = first_run(is, blocks, align, ".");
		if (at < 0)
			at = first_run(is, blocks, align, can_be_had);
		finds(NULL, is, NULL, blocks, align, NUMA_NO_NODE, U64_MAX, at);
	}
}

/* ------------------------------------------------------------- pieces ---- */

TEST(piece_blocks, "pieces grow with the search, up to 1 GiB")
{
	static const struct { unsigned long blocks, align, piece; } rows[] = {
		{ 1, 1, 1 }, { 31, 1, 1 }, { 32, 1, 1 }, { 63, 1, 1 }, { 64, 1, 2 }, { 127, 1, 2 },
		{ 128, 1, 4 }, { 64, 16, 16 }, { 1 << 19, 1, 16384 }, { 1 << 25, 1, 16384 },
		{ 1, 32768, 16384 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct rashpa_search s = {
			.blocks = rows[i].blocks, .align_pages = rows[i].align * RASHPA_BLOCK_PAGES,
		};

		CHECK(rashpa_piece_blocks(&s) == rows[i].piece, "row %zu: %lu", i,
		      rashpa_piece_blocks(&s));
	}
}

static void asks_are(const char *what, const unsigned long (*of)[2], size_t n)
{
	size_t i;

	CHECK(n_asks == n, "%s: %zu calls instead of %zu", what, n_asks, n);
	for (i = 0; i < n && i < n_asks; i++)
		CHECK(asks[i].pfn == of[i][0] * RASHPA_BLOCK_PAGES &&
		      asks[i].count == of[i][1] * RASHPA_BLOCK_PAGES,
		      "%s, call %zu: %lu blocks at %lu", what, i,
		      asks[i].count / RASHPA_BLOCK_PAGES,
		      asks[i].pfn / RASHPA_BLOCK_PAGES);
}

#define ASKS(what, ...) do {						\
	static const unsigned long _of[][2] = { __VA_ARGS__ };		\
	asks_are(what, _of, ARRAY_SIZE(_of));				\
} while (0)

TEST(pieces, "pieces are aligned, and halved where one fails")
{
	int i;

	memory(NULL, "u................................................................", NULL);
	CHECK(search(64, 1, NUMA_NO_NODE, U64_MAX) == 1, "64 blocks");
	/* one more at each end, where two are not aligned */
	CHECK(n_asks == 33 && asks[0].count == RASHPA_BLOCK_PAGES &&
	      asks[32].count == RASHPA_BLOCK_PAGES, "%zu calls", n_asks);
	for (i = 1; i < 32; i++)
		CHECK(asks[i].count == 2 * RASHPA_BLOCK_PAGES, "call %d: %lu pages", i,
		      asks[i].count);
	gives_back("64 blocks", 1, 64);
	/* larger ones, where they are aligned; then halves */
	memory(NULL, "................", NULL);
	CHECK(search(16, 16, NUMA_NO_NODE, U64_MAX) == 0, "16 blocks");
	ASKS("all at once", { 0, 16 });
	gives_back("all at once", 0, 16);
	memory(NULL, ".....b..........", NULL);
	CHECK(search(16, 16, NUMA_NO_NODE, U64_MAX) == NOTHING && got.longest == 5 * 16 * PAGE_SIZE,
	      "%llu bytes", got.longest);
	ASKS("halves", { 0, 16 }, { 0, 8 }, { 0, 4 }, { 4, 4 }, { 4, 2 }, { 4, 1 }, { 5, 1 });
	gives_back("halves", -1, 0);
	whole = false;
	FINDS("u................................................................", 64, 1);
	whole = true;
}

/* A block that can be taken is requested once, and free blocks of CMA are not requested again. */
TEST(asked, "free CMA blocks are tried once")
{
	unsigned long i;

	memory(NULL, "cc...cc....", NULL);
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 7, "the first one");
	for (i = 0; i < 11; i++)
		CHECK(asked[i] <= 1, "block %lu is asked for %d times", i, asked[i]);
	rashpa_pages_drop(&got);
	memset(asked, 0, sizeof(asked));
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 7, "the second one");
	for (i = 0; i < 7; i++)
		CHECK(!asked[i] || map[i] != 'c', "block %lu is asked for again", i);
	rashpa_pages_drop(&got);
	/* the driver withholds only blocks that were free */
	memory(NULL, "mbmm...", NULL);
	CHECK(search(3, 1, NUMA_NO_NODE, U64_MAX) == 4, "free");
	rashpa_pages_drop(&got);
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 2, "moved");
	rashpa_pages_drop(&got);
	for (i = 0; i < 7; i++)
		CHECK(!rashpa_block_withheld(i * RASHPA_BLOCK_PAGES), "block %lu is withheld", i);
}

/* A signal, whenever it comes: nothing is left. */
TEST(signals, "a signal at any moment gives all blocks back")
{
	int at, done = 0, ended = 0;
	long is;

	for (at = 0; at < 400; at++) {
		memory(NULL, "..m..b..........................", NULL);
		signals_after = at;
		is = search(12, 1, NUMA_NO_NODE, U64_MAX);
		signals_after = INT_MAX;
		CHECK(is == -EINTR || is == 6, "after %d polls: %ld", at, is);
		done += is >= 0;
		ended += is < 0;
		gives_back("a signal", is, 12);
	}
	CHECK(done && ended, "%d found, %d ended", done, ended);
}

/* ------------------------------------------------------------- query ---- */

TEST(query, "QUERY leaves CMA out")
{
	struct rashpa_query q = { };

	memory("..mmuTfs..", "cC...b..u", "....");
	spare = 0;
	count();
	rashpa_query_contig(&q, 0);
	CHECK(q.out_total == (10 + 7) * 16 * PAGE_SIZE &&
	      q.out_free == (4 + 1 + 5) * 16 * PAGE_SIZE,
	      "%llu of %llu pages", q.out_free / PAGE_SIZE, q.out_total / PAGE_SIZE);
	/* QUERY counts blocks that only look usable */
	CHECK(q.out_largest == 8 * 16 * PAGE_SIZE, "%llu", q.out_largest / PAGE_SIZE);
	q = (struct rashpa_query) { };
	rashpa_query_contig(&q, 1);
	CHECK(q.out_total == 4 * 16 * PAGE_SIZE && q.out_largest == q.out_total, "node 1");
	/* a walk over a part of the memory gives no answer */
	signals_after = 2;
	CHECK(rashpa_query_contig(&q, 0) == -EINTR, "a signal: success");
	signals_after = INT_MAX;
}

/* ------------------------------------------------------------- reserve ---- */

TEST(reserve, "a search leaves the reserve of the zone")
{
	struct zone *zone = &nodes[0].node_zones[ZONE_NORMAL];

	memory(NULL, "........", NULL);
	zone->wmark[0] = 100;
	zone->wmark[1] = 200;
	zone->wmark[2] = 300;
	zone->lowmem_reserve[ZONE_MOVABLE] = 50;
	zone->managed = 64 * 1000;
	CHECK(rashpa_zone_reserve(zone) == 300 + 50 + 1000, "%lu", rashpa_zone_reserve(zone));
	zone->managed = 1UL << 30;
	CHECK(rashpa_zone_reserve(zone) == 300 + 50 + SZ_64M / PAGE_SIZE, "%lu",
	      rashpa_zone_reserve(zone));
	zone->managed = 64 * 1000;
	zone->state[NR_FREE_PAGES] = 1350 + 500;
	CHECK(rashpa_zone_allows(zone, 500, 0) && !rashpa_zone_allows(zone, 501, 0), "free");
	CHECK(rashpa_zone_allows(zone, 510, 10) && !rashpa_zone_allows(zone, 511, 10), "own");
	zone->state[NR_FREE_CMA_PAGES] = 100;
	CHECK(rashpa_zone_allows(zone, 400, 0) && !rashpa_zone_allows(zone, 401, 0), "CMA");
	/* counters are not exact */
	zone->state[NR_FREE_CMA_PAGES] = 5000;
	CHECK(!rashpa_zone_free(zone) && !rashpa_zone_allows(zone, 0, 0), "more CMA than is free");
	zone->state[NR_FREE_CMA_PAGES] = 0;
	/* page cache: half of it, or all but the low watermark */
	zone->state[NR_ZONE_ACTIVE_FILE] = 100;
	zone->state[NR_ZONE_INACTIVE_FILE] = 100;
	CHECK(rashpa_zone_available(zone) == 1850 + 100, "%lu", rashpa_zone_available(zone));
	zone->state[NR_ZONE_INACTIVE_FILE] = 900;
	CHECK(rashpa_zone_available(zone) == 1850 + 800, "%lu", rashpa_zone_available(zone));
	zone->state[NR_ZONE_ACTIVE_FILE] = 0;
	zone->state[NR_ZONE_INACTIVE_FILE] = 0;
	zone->state[NR_ZONE_ACTIVE_ANON] = 70;
	zone->state[NR_ZONE_INACTIVE_ANON] = 30;
	CHECK(rashpa_zone_available(zone) == 1850, "without swap");
	swap_pages = 60;
	CHECK(rashpa_zone_available(zone) == 1910, "swap has room for 60");
	swap_pages = 1000;
	CHECK(rashpa_zone_available(zone) == 1950, "swap has room for all");
	swap_pages = -5;
	CHECK(rashpa_zone_available(zone) == 1850, "swap is full");
	swap_pages = 0;
	cpus = 2;
	listed[0].count = 4;
	listed[1].count = 7;
	CHECK(rashpa_zone_allows(zone, 511, 0) && !rashpa_zone_allows(zone, 512, 0), "lists");
	cpus = 1;
}

/* Takes as many blocks as leave the reserve, and not one more. */
TEST(reserve_search, "a search takes all but the reserve, to the block")
{
	struct zone *zone = &nodes[0].node_zones[ZONE_NORMAL];
	char is[65];

	memset(is, '.', 64);
	is[64] = '\0';
	memory(NULL, is, NULL);
	zone->wmark[2] = 8 * RASHPA_BLOCK_PAGES - 16;
	spare = 0;
	count();
	/* 8 blocks stay: the watermark, and a 64th of 64 */
	CHECK(search(57, 1, NUMA_NO_NODE, U64_MAX) == NOTHING, "57 blocks");
	gives_back("57 blocks", -1, 0);
	CHECK(search(56, 1, NUMA_NO_NODE, U64_MAX) == 0, "56 blocks");
	gives_back("56 blocks", 0, 56);
	/* another zone has enough */
	memory("....", "....", NULL);
	zone->wmark[2] = 10000000;
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 0, "from the other zone");
	gives_back("from the other zone", 0, 4);
}

static struct page pool[300];		/* single pages, of all zones */
static size_t n_pool;

static struct page *alloc_pages_node(int node, gfp_t gfp, unsigned int order)
{
	struct zone *zone = &nodes[0].node_zones[ZONE_NORMAL];

	small_gfp = gfp;
	small_order = order;
	if (order || small_page)
		return small_page;
	if (!zone->state[NR_ZONE_INACTIVE_FILE] || n_pool == ARRAY_SIZE(pool))
		return NULL;
	/* each page is reclaimed first */
	zone->state[NR_ZONE_INACTIVE_FILE]--;
	return n_pool++, &mem[n_pool - 1];
}

static void __free_pages(struct page *page, unsigned int order)
{
	if (page == small_page)
		return;
	n_pool--;
	nodes[0].node_zones[ZONE_NORMAL].state[NR_FREE_PAGES]++;
}

/* The driver reclaims missing pages one by one, then gives them back. */
TEST(refill, "a search reclaims missing pages")
{
	struct zone *zone = &nodes[0].node_zones[ZONE_NORMAL];
	static const struct { unsigned long cache, pages; bool had; } rows[] = {
		{ 1000, 50, true }, { 200, 100, true }, { 1000, 100, true }, { 120, 100, false },
		{ 0, 10, false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		memory(NULL, "mmmmmmmmmmmmmmmmmmmm", NULL);
		zone->wmark[0] = 10;
		zone->wmark[1] = 20;
		zone->wmark[2] = 30;
		zone->state[NR_FREE_PAGES] = 15;
		zone->state[NR_ZONE_INACTIVE_FILE] = rows[i].cache;
		n_pool = 0;
		CHECK(rashpa_zone_spent(zone, rows[i].pages) == !rows[i].had, "row %zu", i);
		CHECK(!n_pool, "row %zu: %zu pages are kept", i, n_pool);
		CHECK(!rows[i].had || zone->state[NR_FREE_PAGES] >= 10 + rows[i].pages,
		      "row %zu: %lu pages are free", i, zone->state[NR_FREE_PAGES]);
	}
	/* nothing is reclaimed if enough pages are free */
	zone->state[NR_FREE_PAGES] = 100000;
	CHECK(!rashpa_zone_spent(zone, 1000) && zone->state[NR_FREE_PAGES] == 100000,
	      "enough");
	CHECK(small_gfp & __GFP_THISNODE && !(small_gfp & GFP_DMA32), "flags 0x%x", small_gfp);
}

/* The page allocator serves up to one block, if its memory is suitable. */
TEST(small, "the page allocator serves up to one block")
{
	memory("....", "....", NULL);
	small_page = &mem[2 * RASHPA_BLOCK_PAGES];
	CHECK(search(1, 1, NUMA_NO_NODE, U64_MAX) == 2 && small_order == RASHPA_BLOCK_ORDER &&
	      !(small_gfp & (__GFP_THISNODE | GFP_DMA32)), "order %u, flags 0x%x", small_order,
	      small_gfp);
	bitmap_free(got.given);
	CHECK(search(1, 1, 0, U32_MAX) == 2 && small_gfp & __GFP_THISNODE && small_gfp & GFP_DMA32,
	      "flags 0x%x", small_gfp);
	bitmap_free(got.given);
	/* too high: a search follows */
	CHECK(search(1, 1, NUMA_NO_NODE, END_OF(2)) == 0, "beyond the reach of the device");
	gives_back("beyond the reach of the device", 0, 1);
	CHECK(search(1, 1, NUMA_NO_NODE, END_OF(3) - 1) == 0, "all but its last byte");
	gives_back("all but its last byte", 0, 1);
	small_page = &mem[RASHPA_BLOCK_PAGES + 1];
	CHECK(search(1, 1, NUMA_NO_NODE, U64_MAX) == 4, "not aligned");
	gives_back("not aligned", 4, 1);
	small_page = NULL;
}

/* ------------------------------------------------------------ one search ---- */

static int lock_result;

static int unit_lock_interruptible(struct mutex *m)
{
	if (!lock_result)
		mutex_lock(m);
	return lock_result;
}

/* The search of another process runs; a signal comes. */
TEST(waits, "a signal ends the wait for another search, and nothing is taken")
{
	memory(NULL, "................", NULL);
	lock_result = -EINTR;
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == -EINTR, "no signal");
	CHECK(!n_asks, "%zu ranges were taken", n_asks);
	gives_back("a signal", -1, 0);
	lock_result = 0;
	CHECK(search(4, 1, NUMA_NO_NODE, U64_MAX) == 0, "the next one");
	gives_back("the next one", 0, 4);
}

/* ------------------------------------------------------- given back ---- */

TEST(held, "pinned blocks are kept until the pin ends")
{
	const u64 block = RASHPA_BLOCK_PAGES * PAGE_SIZE;

	memory(NULL, "................", NULL);
	REQUIRE(search(16, 4, NUMA_NO_NODE, U64_MAX) == 0, "16 blocks");
	mem[4 * RASHPA_BLOCK_PAGES].count++;
	CHECK(rashpa_pages_free(&got) == 4 * block, "pinned memory was given back");
	CHECK(!strncmp(map, "....XXXX........", 16), "%.16s", map);
	CHECK(rashpa_pages_free(&got) == 4 * block, "pinned memory was given back later");
	put_page(&mem[4 * RASHPA_BLOCK_PAGES]);
	CHECK(!rashpa_pages_free(&got) && !got.given, "it is kept");
	gives_back("later", -1, 0);
	/* rashpa_pages_drop() leaves pinned memory to the last reference */
	REQUIRE(search(16, 4, NUMA_NO_NODE, U64_MAX) == 0, "16 blocks");
	mem[8 * RASHPA_BLOCK_PAGES].count++;
	rashpa_pages_drop(&got);
	CHECK(!strncmp(map, "........XXXX....", 16), "%.16s", map);
	put_page(&mem[8 * RASHPA_BLOCK_PAGES]);
	gives_back("dropped", -1, 0);
}

TEST(damaged, "damaged blocks are kept for good")
{
	memory(NULL, "................", NULL);
	node_damaged = true;
	REQUIRE(search(16, 4, NUMA_NO_NODE, U64_MAX) == 0, "16 blocks");
	mem[12 * RASHPA_BLOCK_PAGES - 1].flags |= BAD;
	CHECK(!rashpa_pages_free(&got), "it is kept for later");
	CHECK(!strncmp(map, "........XXXX....", 16), "%.16s", map);
	node_damaged = false;
}

/* ------------------------------------------------- when it is loaded ---- */

/* A kernel whose large pages differ: what becomes of a new range. */
static const struct {
	const char *key;
	int count;		/* references */
	u8 head, tail;		/* flags */
	bool dirty, settles, works;
} kernels[] = {
	{ "as-expected", 1, 0, TAIL, false, false, true },
	{ "looked-at-meanwhile", 2, 0, TAIL, false, true, true },
	{ "without-reference", 0, 0, TAIL, false, false, false },
	{ "with-another-reference", 2, 0, TAIL, false, false, false },
	{ "of-single-pages", 1, 0, 0, false, false, false },
	{ "on-a-list", 1, LRU, TAIL, false, false, false },
	{ "reserved", 1, RESERVED, TAIL, false, false, false },
	{ "not-cleared", 1, 0, TAIL, true, false, false },
};

static const typeof(kernels[0]) *kernel;

static void made(struct page *head, struct page *last)
{
	head->count = kernel->count;
	head->flags |= kernel->head;
	last->flags = kernel->tail;
	dirty = kernel->dirty;
}

static void settle(void)
{
	if (kernel->settles)
		mem[0].count = mem[RASHPA_BLOCK_PAGES].count = 1;
}

TEST_EACH(loaded, kernels, "large pages %s: buffers are large only if they are as expected")
{
	memory(NULL, "....", NULL);
	kernel = row;
	on_range = made;
	meanwhile = settle;
	rashpa_contig_works = true;
	rashpa_contig_check();
	on_range = NULL;
	meanwhile = NULL;
	dirty = false;
	CHECK(rashpa_contig_works == row->works, "contiguous buffers are %s",
	      rashpa_contig_works ? "on" : "off");
	CHECK(!strcmp(map, row->works ? "...." : "XX.."), "%s", map);
	CHECK(row->works || search(2, 1, NUMA_NO_NODE, U64_MAX) == -EOPNOTSUPP, "it is tried");
	rashpa_contig_works = true;
}
