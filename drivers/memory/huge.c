// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: reserved huge pages, of a memfd that a process has made.
 *
 * A buffer has a reference to the file, and one to each page of it, so that the kernel does not
 * move them. They stay in the page cache of the file, through which processes map them: its seals
 * exclude another length, S_IMMUTABLE excludes holes.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/hugetlb.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/search.h"

#define RASHPA_SEALS_NEEDED	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)
#define RASHPA_SEALS_LOOKED_AT	(RASHPA_SEALS_NEEDED | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

static unsigned int rashpa_huge_seals(struct inode *inode)
{
#ifdef CONFIG_HUGETLBFS
	if (inode->i_sb->s_magic == HUGETLBFS_MAGIC)
		return READ_ONCE(HUGETLBFS_I(inode)->seals);
#endif
	return 0;
}

static int rashpa_huge_check(struct rashpa_call *call, struct file *memfd, u64 length)
{
	struct inode *inode = file_inode(memfd);

	/* of other files nothing is known: not even that a device may write them */
	if ((rashpa_huge_seals(inode) & RASHPA_SEALS_LOOKED_AT) != RASHPA_SEALS_NEEDED)
		return rashpa_fail(call, -EINVAL,
				   "the memfd needs huge pages (MFD_HUGETLB) and the seals SHRINK, GROW and SEAL, without WRITE");
	if (!(memfd->f_mode & FMODE_READ) || !(memfd->f_mode & FMODE_WRITE))
		return rashpa_fail(call, -EACCES, "the memfd is not open for reading and writing");
	/* since the seals it has one length; that of fallocate() may end inside a huge page */
	if (!IS_ALIGNED(length, i_blocksize(inode)))
		return rashpa_fail(call, -EINVAL,
				   "0x%llx bytes are not whole huge pages of 0x%x bytes", length,
				   i_blocksize(inode));
	if (i_size_read(inode) != length)
		return rashpa_fail(call, -EINVAL,
				   "the memfd has 0x%llx bytes, the buffer 0x%llx: must be the same",
				   i_size_read(inode), length);
	return 0;
}

/* Make it the memfd of this buffer, or, with @take 0, of none. */
static int rashpa_huge_claim(struct inode *inode, unsigned int take)
{
	int err = -EBUSY;

	inode_lock(inode);
	if (!take || !IS_IMMUTABLE(inode)) {
		inode_set_flags(inode, take, S_IMMUTABLE);
		err = 0;
	}
	inode_unlock(inode);
	return err;
}

/* Add the next page, whose reference is then one of @pages. */
static int rashpa_huge_add(struct rashpa_call *call, struct rashpa_pages *pages,
			   struct folio *folio, const struct rashpa_want *want)
{
	struct rashpa_extent *last = pages->extents + pages->n_extents - 1;
	struct page *first = folio_page(folio, 0);

	if (!rashpa_pages_fit(first, want))
		return rashpa_fail(call, -EINVAL,
				   "a huge page is on node %d, and not as node, alignment or dma_bits want it",
				   page_to_nid(first));
	if (!pages->n_extents || page_to_pfn(last->first) + last->count != page_to_pfn(first) ||
	    page_to_nid(last->first) != page_to_nid(first)) {
		last++;
		last->first = first;
		pages->n_extents++;
	}
	last->count += folio_nr_pages(folio);
	pages->count += folio_nr_pages(folio);
	return 0;
}

/* Page @i, with a reference, moved to where it can be pinned before that; no page in a hole. */
static struct folio *rashpa_huge_page(const struct rashpa_pages *pages, unsigned long i)
{
	const pgoff_t index = rashpa_huge_index(i, pages->order);
	const u64 size = PAGE_SIZE << pages->order;
	struct folio *folio = filemap_get_folio(pages->memfd->f_mapping, index);

	/* a pin would fill the hole, and wait for ever for the move of a page with an error */
	if (IS_ERR_OR_NULL(folio) || folio_test_hwpoison(folio))
		return folio;
	folio_put(folio);
	rashpa_huge_settle(pages->memfd, i * size, size);
	return filemap_get_folio(pages->memfd->f_mapping, index);
}

static int rashpa_huge_fill(struct rashpa_call *call, struct rashpa_pages *pages,
			    const struct rashpa_want *want)
{
	const u64 size = PAGE_SIZE << pages->order;
	struct rashpa_want one = *want;
	unsigned long i;
	int err = 0;

	one.length = size;
	pages->extents = kvcalloc(want->length / size, sizeof(*pages->extents),
				  GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!pages->extents)
		return -ENOMEM;
	for (i = 0; i < want->length / size && !err; i++) {
		struct folio *folio = rashpa_huge_page(pages, i);

		if (IS_ERR_OR_NULL(folio))
			return rashpa_fail(call, -EINVAL,
					   "the memfd has a hole at 0x%llx: fallocate() it",
					   i * size);
		err = rashpa_huge_add(call, pages, folio, &one);
		if (err)
			folio_put(folio);
		else if (task_sigpending(current))
			err = rashpa_fail(call, -EINTR, "interrupted by a signal");
		cond_resched();
	}
	pages->first = pages->extents->first;
	return err;
}

/*
 * The pages of a memfd. Return: 0, -EBADF, -EINVAL (another file, other seals, another length, a
 * hole, a page that is not as wanted), -EACCES, -EBUSY, -ENOMEM, -EINTR.
 */
int rashpa_huge_get(struct rashpa_call *call, struct rashpa_pages *pages,
		    const struct rashpa_want *want)
{
	struct file *memfd = fget(want->memfd);
	int err;

	if (!memfd)
		return rashpa_fail(call, -EBADF, "memfd %d is not open", want->memfd);
	err = rashpa_huge_check(call, memfd, want->length);
	if (!err && rashpa_huge_claim(file_inode(memfd), S_IMMUTABLE))
		err = rashpa_fail(call, -EBUSY, "another buffer has this memfd: make one for each");
	if (err) {
		fput(memfd);
		return err;
	}
	*pages = (struct rashpa_pages) {
		.backend = RASHPA_BACKEND_HUGE,
		.cache = RASHPA_CACHE_CACHED,
		.order = file_inode(memfd)->i_sb->s_blocksize_bits - PAGE_SHIFT,
		.memfd = memfd,
	};
	err = rashpa_huge_fill(call, pages, want);
	if (err)
		rashpa_huge_put(pages);
	return err;
}

/* Give the pages back to their file, and the file to its other users, if it has any. */
void rashpa_huge_put(struct rashpa_pages *pages)
{
	unsigned long at;
	u32 i;

	for (i = 0; i < pages->n_extents; i++) {
		for (at = 0; at < pages->extents[i].count; at += 1UL << pages->order)
			put_page(pages->extents[i].first + at);
		cond_resched();
	}
	kvfree(pages->extents);
	rashpa_huge_claim(file_inode(pages->memfd), 0);
	fput(pages->memfd);
}
