/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every difference between kernels, and nothing else. The RASHPA_HAVE_ macros come
 * from the feature probes in Kbuild.
 */
#ifndef RASHPA_COMPAT_H
#define RASHPA_COMPAT_H

#ifdef RASHPA_NO_SYMVERS
#error "Module.symvers of this kernel is missing: build or install its headers completely"
#endif

#include <linux/cma.h>
#include <linux/dma-buf.h>
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/eventfd.h>
#ifdef RASHPA_HAVE_FILELOCK
#include <linux/filelock.h>
#endif
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/pageblock-flags.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/rashpa.h>
#include <linux/sched/mm.h>
#include <linux/swiotlb.h>
#ifdef CONFIG_X86
#include <asm/set_memory.h>
#endif
#ifdef RASHPA_HAVE_PFN_T
#include <linux/pfn_t.h>
#endif

#ifdef RASHPA_HAVE_CONST_DEVNODE
#define RASHPA_DEVNODE_CONST	const
#else
#define RASHPA_DEVNODE_CONST
#endif

#ifndef RASHPA_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

#ifndef RASHPA_HAVE_MNT_IDMAP
#define file_mnt_idmap	file_mnt_user_ns
#endif

/* Is the caller the owner of the inode of @file, or does it have CAP_FOWNER over it? */
static inline bool rashpa_file_owned(struct file *file)
{
	return inode_owner_or_capable(file_mnt_idmap(file), file_inode(file));
}

#ifndef RASHPA_HAVE_FAULT_LOCK
#define release_fault_lock(vmf)	mmap_read_unlock((vmf)->vma->vm_mm)
#endif

#ifndef RASHPA_HAVE_EVENTFD_SIGNAL_1
#define eventfd_signal(ctx)	eventfd_signal(ctx, 1)
#endif

#ifndef RASHPA_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*fn)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = fn;
}
#endif

#ifndef RASHPA_HAVE_DMABUF_INVALIDATE
#define invalidate_mappings		move_notify
#define dma_buf_invalidate_mappings	dma_buf_move_notify
#endif

/*
 * The number of pins of an importer that stops then. Older kernels want the callback from all
 * importers, and it does nothing in those that pin. Where their core knows no memory that moves,
 * it pins for each importer that maps.
 */
#ifdef RASHPA_HAVE_DMABUF_REVOCABLE
#define RASHPA_PINS_MAX		LONG_MAX
#elif defined(CONFIG_DMABUF_MOVE_NOTIFY)
#define RASHPA_PINS_MAX		0L
#else
#define RASHPA_PINS_MAX		1L
#endif

/* Does the importer, which has no IOMMU, use a copy that must be copied back? */
static inline bool rashpa_is_bounced(struct device *dev, struct scatterlist *sg)
{
	const phys_addr_t phys = dma_to_phys(dev, sg_dma_address(sg));

#ifdef CONFIG_SWIOTLB_DYNAMIC
	/* modules cannot call the search for these pools; memory without pages is never copied */
	return sg_page(sg) && sg_phys(sg) != phys;
#elif defined(RASHPA_HAVE_SWIOTLB_POOL)
	return swiotlb_find_pool(dev, phys);
#else
	return is_swiotlb_buffer(dev, phys);
#endif
}

#ifdef RASHPA_HAVE_PFN_T
#define vmf_insert_pfn_pmd(vmf, pfn, write)	\
	vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV), write)
#endif

/* The page cache of hugetlbfs counted huge pages, before it counted pages as others do. */
static inline pgoff_t rashpa_huge_index(unsigned long n, unsigned int order)
{
#ifdef RASHPA_HAVE_HUGE_INDEX
	n <<= order;
#endif
	return n;
}

/*
 * Move a huge page to where it can be pinned for long: out of areas of CMA and ZONE_MOVABLE. It
 * stays if others hold it, or no memory is free there. Before 6.11 modules cannot request that.
 */
static inline void rashpa_huge_settle(struct file *memfd, loff_t at, u64 size)
{
#ifdef RASHPA_HAVE_MEMFD_PIN
	struct folio *folio;
	pgoff_t offset;

	if (memfd_pin_folios(memfd, at, at + size - 1, &folio, 1, &offset) == 1)
		unpin_folio(folio);
#endif
}

/* a kernel without huge pages (PREEMPT_RT) has no such function, and needs no alignment */
#ifndef CONFIG_TRANSPARENT_HUGEPAGE
#undef thp_get_unmapped_area
#if defined(RASHPA_HAVE_MM_AREA)
#define thp_get_unmapped_area(...)		mm_get_unmapped_area(__VA_ARGS__)
#elif defined(RASHPA_HAVE_MM_AREA_OF)
#define thp_get_unmapped_area(...)		mm_get_unmapped_area(current->mm, __VA_ARGS__)
#else
#define thp_get_unmapped_area(file, ...)	((void)(file), get_unmapped_area(NULL, __VA_ARGS__))
#endif
#endif

#ifndef RASHPA_HAVE_VFS_MMAP
#define vfs_mmap	call_mmap
#endif

/* order of the pieces that run-time contiguous memory is made of: 2 MiB on x86 */
#define RASHPA_BLOCK_ORDER	pageblock_order
#define RASHPA_BLOCK_PAGES	BIT(RASHPA_BLOCK_ORDER)

/* memory of the page allocator, not of CMA: a migrate type, later a flag whose numbers differ */
#ifdef RASHPA_HAVE_ACR_FLAGS
#define RASHPA_CONTIG_MOVABLE	ACR_FLAGS_NONE
#else
#define RASHPA_CONTIG_MOVABLE	MIGRATE_MOVABLE
#endif

/* May a page of this node have a memory error? Older kernels do not count them. */
static inline bool rashpa_node_damaged(int node)
{
#if defined(CONFIG_MEMORY_FAILURE) && defined(RASHPA_HAVE_FAILURE_STATS)
	return READ_ONCE(NODE_DATA(node)->mf_stats.total);
#else
	return IS_ENABLED(CONFIG_MEMORY_FAILURE);
#endif
}

#if defined(RASHPA_HAVE_CONTIG_COMP) || defined(RASHPA_HAVE_CONTIG_FROZEN)
#define RASHPA_CAN_CONTIG	true
#elif defined(RASHPA_HAVE_COMPOUND_ORDER) && !defined(RASHPA_HAVE_SUBPAGES_MAPCOUNT)
#define RASHPA_CAN_CONTIG	true
#define RASHPA_JOIN_PAGES

/*
 * 6.1 hands out single pages with one reference each. Make each page block one compound page, as
 * the page allocator does for __GFP_COMP: user mappings and pins of a part must keep the whole
 * alive. Not larger ones: the page allocator has no list for them.
 */
static inline void rashpa_block_compound(struct page *head)
{
	unsigned long i;

	__SetPageHead(head);
	for (i = 1; i < RASHPA_BLOCK_PAGES; i++) {
		struct page *tail = head + i;

		tail->mapping = TAIL_MAPPING;
		set_page_private(tail, 0);
		set_compound_head(tail, head);
	}
	/* after the tails: these are fields of theirs */
	set_compound_page_dtor(head, COMPOUND_PAGE_DTOR);
	set_compound_order(head, RASHPA_BLOCK_ORDER);
	atomic_set(compound_mapcount_ptr(head), -1);
	atomic_set(compound_pincount_ptr(head), 0);
}

/* Who walks memory may hold a page for a moment: then not this range. */
static inline int rashpa_range_compound(struct page *first, unsigned long count)
{
	unsigned long i, pages;

	for (pages = 0; pages < count; pages++) {
		/* the first page of each block keeps its reference, the others have none */
		if (!(pages % RASHPA_BLOCK_PAGES) || page_ref_freeze(first + pages, 1))
			continue;
		while (pages--)
			if (pages % RASHPA_BLOCK_PAGES)
				page_ref_unfreeze(first + pages, 1);
		/* not free_contig_range(), which warns of pages that are still held */
		for (i = 0; i < count; i++)
			__free_page(first + i);
		return -EBUSY;
	}
	for (i = 0; i < count; i += RASHPA_BLOCK_PAGES)
		rashpa_block_compound(first + i);
	return 0;
}
#elif defined(RASHPA_HAVE_CONTIG_SINGLE) || !defined(CONFIG_CONTIG_ALLOC)
/* 6.2 to 6.11 hand out single pages that are not joined here: use CMA, or small buffers */
#define RASHPA_CAN_CONTIG	false
#else
#error "this kernel allocates contiguous ranges in an unknown way: extend Kbuild and compat.h"
#endif

/**
 * rashpa_range_alloc() - take page blocks out of the page allocator, all at once
 * @pfn: the first page, a multiple of their number
 * @count: pages, a power of two, of one page block to 1 GiB
 *
 * To make room for a range the kernel empties the lists of all processors: once for each call,
 * however long the range is.
 *
 * Return: 0, and the range is one compound page, on older kernels one for each page block, each
 * with one reference, given back by put_page(); or -EBUSY if something in it cannot be moved.
 */
static inline int rashpa_range_alloc(unsigned long pfn, unsigned long count)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_NOWARN;
#ifdef RASHPA_HAVE_CONTIG_FROZEN
	int err;

	err = alloc_contig_frozen_range(pfn, pfn + count, RASHPA_CONTIG_MOVABLE,
					gfp | __GFP_COMP);
	if (!err)
		init_page_count(pfn_to_page(pfn));
	return err;
#elif defined(RASHPA_HAVE_CONTIG_COMP)
	return alloc_contig_range(pfn, pfn + count, RASHPA_CONTIG_MOVABLE, gfp | __GFP_COMP);
#elif defined(RASHPA_JOIN_PAGES) && defined(CONFIG_CONTIG_ALLOC)
	int err = alloc_contig_range(pfn, pfn + count, RASHPA_CONTIG_MOVABLE, gfp);

	return err ?: rashpa_range_compound(pfn_to_page(pfn), count);
#else
	return -EOPNOTSUPP;
#endif
}

/*
 * Does the kernel know that the host bridge routes between them? Without CONFIG_PCI_P2PDMA it knows
 * none: many platforms drop such writes, or deliver them late.
 */
static inline bool rashpa_p2p_known(struct pci_dev *importer, struct pci_dev *peer)
{
	struct device *client = &importer->dev;

	return pci_p2pdma_distance_many(peer, &client, 1, false) >= 0;
}

/*
 * Would a mapping of @phys that asks for write-combining get it? x86 gives a range the mode that
 * it has already, reserved or mapped by whomever, and says nothing: look at what comes.
 */
static inline bool rashpa_combines(phys_addr_t phys)
{
#ifdef CONFIG_X86
	const pgprotval_t wc = pgprot_val(pgprot_writecombine(__pgprot(0))) & _PAGE_CACHE_MASK;
	void __iomem *p = ioremap_wc(phys, PAGE_SIZE);
	unsigned int level;
	bool same = false;
	pte_t *pte;

	if (!p)
		return false;
	pte = lookup_address((unsigned long)p, &level);
	if (pte && level == PG_LEVEL_4K)
		same = (pte_val(*pte) & _PAGE_CACHE_MASK) == wc;
	iounmap(p);
	return same;
#else
	return true;
#endif
}

#define RASHPA_CAN_UNCACHE	IS_ENABLED(CONFIG_X86)

/* Set how the kernel's own mapping of memory is cached; only x86 can change it. */
static inline int rashpa_memory_cache(struct page *first, unsigned long count, u32 cache)
{
#ifdef CONFIG_X86
	unsigned long addr = (unsigned long)page_address(first);

	if (cache == RASHPA_CACHE_WC)
		return set_memory_wc(addr, count);
	return cache == RASHPA_CACHE_UC ? set_memory_uc(addr, count) : set_memory_wb(addr, count);
#else
	return -EOPNOTSUPP;
#endif
}

/* Is CMA exported? If not, the compiler must find no call of it. */
#define RASHPA_CAN_CMA		__is_defined(RASHPA_HAVE_CMA)

/*
 * Modules get only the default area (cma=). Those of single nodes (numa_cma=) are not exported;
 * memory of a node comes from contig.
 */
static inline struct cma *rashpa_cma_area(void)
{
	return RASHPA_CAN_CMA ? dev_get_cma_area(NULL) : NULL;
}

#endif /* RASHPA_COMPAT_H */
