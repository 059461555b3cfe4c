// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: CPU mappings of buffers.
 *
 * A page fault makes entries: where address and memory are aligned alike a huge one, else all small
 * ones of the page table. So it does after MADV_DONTNEED, and in a child.
 *
 * Contig memory is mapped so that others find its pages and can pin them (RDMA registration, direct
 * I/O): huge entries take no reference, because the mapping's file keeps the buffer. They are
 * allowed because the memory of each is one compound page, so that a pin of any part holds all of
 * it. Entries that count, which the kernel pins without mmap_lock (vmf_insert_folio_pmd()), are no
 * choice. The folio must be exactly as large as the entry: a large buffer would need a search for
 * each 2 MiB. In a mapping with VM_MIXEDMAP the kernel never drops the reference of an entry of
 * which a part is unmapped. Without that flag NUMA balancing would unmap entries all the time. A
 * program that pins often uses huge pages of a memfd.
 *
 * CMA memory is mapped as bare page frames: a long-term pin would try to migrate it for ever, this
 * way it fails at once. hugetlbfs maps huge pages of a memfd, with entries that count.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/memory.h"

static void rashpa_vma_open(struct vm_area_struct *vma)
{
	struct rashpa_buffer *buffer = vma->vm_private_data;

	atomic_inc(&buffer->mappings);
}

static void rashpa_vma_close(struct vm_area_struct *vma)
{
	struct rashpa_buffer *buffer = vma->vm_private_data;

	atomic_dec(&buffer->mappings);
}

static unsigned long rashpa_vma_pfn(struct vm_area_struct *vma, unsigned long addr)
{
	struct rashpa_buffer *buffer = vma->vm_private_data;

	return page_to_pfn(buffer->pages.first) + vma->vm_pgoff +
	       ((addr - vma->vm_start) >> PAGE_SHIFT);
}

/*
 * May @addr be in a huge entry? All of it must be inside the mapping, and a pinnable
 * page must not be a part of something smaller than the entry.
 */
static bool rashpa_vma_huge(struct vm_area_struct *vma, unsigned long addr)
{
	struct rashpa_buffer *buffer = vma->vm_private_data;
	unsigned long start = ALIGN_DOWN(addr, PMD_SIZE);

	if (!IS_ENABLED(CONFIG_TRANSPARENT_HUGEPAGE))
		return false;
	if (start < vma->vm_start || vma->vm_end - start < PMD_SIZE)
		return false;
	if (rashpa_pages_pinnable(&buffer->pages) && buffer->pages.order < PMD_SHIFT - PAGE_SHIFT)
		return false;
	return IS_ALIGNED(rashpa_vma_pfn(vma, start), PTRS_PER_PTE);
}

#define RASHPA_INSERT_TRIES	16

/* Make a small entry, unless there is one. */
static vm_fault_t rashpa_vma_insert(struct vm_area_struct *vma, unsigned long addr)
{
	struct rashpa_buffer *buffer = vma->vm_private_data;
	const unsigned long pfn = rashpa_vma_pfn(vma, addr);
	int tries = RASHPA_INSERT_TRIES;
	int err;

	if (!rashpa_pages_pinnable(&buffer->pages))
		return vmf_insert_pfn(vma, addr, pfn);
	/*
	 * Not through vmf->page: the kernel could make it a huge entry that counts. On newer
	 * kernels madvise() of another thread may take the page table away meanwhile, which
	 * looks like a lack of memory.
	 */
	do
		err = vm_insert_page(vma, addr, pfn_to_page(pfn));
	while (err == -ENOMEM && --tries && !fatal_signal_pending(current));
	/* busy: another thread was faster */
	return err && err != -EBUSY ? vmf_error(err) : VM_FAULT_NOPAGE;
}

static vm_fault_t rashpa_vma_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct rashpa_buffer *buffer = vma->vm_private_data;
	unsigned long addr = vmf->address & PAGE_MASK;
	const unsigned long start = ALIGN_DOWN(addr, PMD_SIZE);
	pmd_t pmd = READ_ONCE(*vmf->pmd);
	vm_fault_t ret;

	if (vmf->pgoff >= buffer->memory.length >> PAGE_SHIFT)
		return VM_FAULT_SIGBUS;
	/*
	 * Whether an address can be in a huge entry changes only with the mapping itself,
	 * under mmap_lock. The kernel has looked before it called us. Since then another
	 * thread may have made the huge entry, which excludes a small one.
	 */
	if (pmd_none(pmd) && rashpa_vma_huge(vma, addr))
		return vmf_insert_pfn_pmd(vmf, rashpa_vma_pfn(vma, start),
					  vmf->flags & FAULT_FLAG_WRITE);
	if (pmd_trans_huge(pmd))
		return VM_FAULT_NOPAGE;
	ret = rashpa_vma_insert(vma, addr);
	if (ret != VM_FAULT_NOPAGE || rashpa_vma_huge(vma, addr))
		return ret;
	/* fill the page table: each of its pages would be one more fault */
	for (addr = max(start, vma->vm_start); addr < vma->vm_end && addr - start < PMD_SIZE;
	     addr += PAGE_SIZE)
		if (rashpa_vma_insert(vma, addr) != VM_FAULT_NOPAGE)
			break;
	return ret;
}

static const struct vm_operations_struct rashpa_vm_ops = {
	.open = rashpa_vma_open,
	.close = rashpa_vma_close,
	.fault = rashpa_vma_fault,
};

/* A mapping of a memfd, or several that fork() and munmap() made of one: they share its file. */
struct rashpa_huge_mapping {
	struct rashpa_buffer *buffer;
	struct file *file;		/* the file that was mapped; it keeps @buffer */
};

static int rashpa_huge_release(struct inode *inode, struct file *file)
{
	struct rashpa_huge_mapping *mapping = file->private_data;

	atomic_dec(&mapping->buffer->mappings);
	fput(mapping->file);
	kfree(mapping);
	return 0;
}

static const struct file_operations rashpa_huge_fops = {
	.owner = THIS_MODULE,
	.release = rashpa_huge_release,
};

/*
 * hugetlbfs maps its pages, for a file of ours with its inode, as in System V shared memory. In the
 * mapping of another kind of file it would not look whether addresses are of whole huge pages.
 */
static int rashpa_huge_mmap(struct rashpa_buffer *buffer, struct vm_area_struct *vma)
{
	const unsigned long size = PAGE_SIZE << buffer->pages.order;
	struct file *memfd = buffer->pages.memfd, *file;
	struct rashpa_huge_mapping *mapping;

	if (!IS_ALIGNED(vma->vm_start | vma->vm_end | vma->vm_pgoff << PAGE_SHIFT, size))
		return -EINVAL;
	mapping = kmalloc(sizeof(*mapping), GFP_KERNEL_ACCOUNT);
	if (!mapping)
		return -ENOMEM;
	file = dentry_open(&memfd->f_path, O_RDWR, current_cred());
	if (IS_ERR(file)) {
		kfree(mapping);
		return PTR_ERR(file);
	}
	mapping->buffer = buffer;
	mapping->file = get_file(vma->vm_file);
	file->private_data = mapping;
	__module_get(THIS_MODULE);
	replace_fops(file, &rashpa_huge_fops);
	atomic_inc(&buffer->mappings);
	vma_set_file(vma, file);
	fput(file);
	vm_flags_set(vma, VM_DONTDUMP);
	return vfs_mmap(memfd, vma);
}

/*
 * Each small entry takes a reference on the whole piece of its page, and a piece may have
 * 1 GiB: more mappings could make its count wrap. Mappings that fork() adds count as well.
 */
#define RASHPA_MAPPINGS_MAX	4096

/*
 * Map a buffer; the file that is mapped keeps it, and mmap_lock is held for writing. Return: 0,
 * -EINVAL (private, or outside the buffer), -EHWPOISON (a page has a memory error), -ENOMEM (also:
 * mapped too often).
 */
int rashpa_buffer_mmap(struct rashpa_memory *memory, struct vm_area_struct *vma)
{
	struct rashpa_buffer *buffer = container_of(memory, struct rashpa_buffer, memory);
	unsigned long total = buffer->memory.length >> PAGE_SHIFT;

	/* not VM_SHARED, which a shared mapping of a read-only file does not have */
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff >= total || vma_pages(vma) > total - vma->vm_pgoff)
		return -EINVAL;
	if (rashpa_memory_damaged(memory, vma->vm_pgoff, vma_pages(vma)))
		return -EHWPOISON;
	if (buffer->pages.memfd)
		return rashpa_huge_mmap(buffer, vma);
	if (atomic_read(&buffer->mappings) >= RASHPA_MAPPINGS_MAX)
		return -ENOMEM;
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP |
			  (rashpa_pages_pinnable(&buffer->pages) ? VM_MIXEDMAP : VM_PFNMAP));
	if (buffer->pages.cache == RASHPA_CACHE_WC)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else if (buffer->pages.cache == RASHPA_CACHE_UC)
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = buffer;
	vma->vm_ops = &rashpa_vm_ops;
	rashpa_vma_open(vma);
	return 0;
}
