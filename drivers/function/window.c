// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: windows: ranges of a PCI BAR (registers, doorbells, on-board memory) as dma-bufs, for
 * mmap and for maps by another function (peer-to-peer).
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core/compat.h"
#include "core/trace.h"
#include "function/function.h"

/* Window of a BAR. */
struct rashpa_window {
	struct rashpa_device *dev;	/* the function, with one reference */
	struct dma_buf *dmabuf;	/* dma-buf that owns this struct */
	/*
	 * inode of the dma-buf's file, with one reference. Not the file: it may be freed before the
	 * release, while its path is open (O_PATH)
	 */
	struct inode *inode;
	struct list_head entry;	/* entry in rashpa_device.open_windows (windows_lock) */
	struct rashpa_profile_window range;	/* range of a BAR, and cache mode; constant */
	/* parts of @range that only the kernel may access; constant: windows keep the profile */
	struct rashpa_bar_range *closed;
	u32 n_closed;	/* number of @closed */
	phys_addr_t phys;	/* CPU address of the first byte, constant */
	bool combined;	/* the range is reserved as write-combined on x86 (windows_lock) */
	bool revoked;	/* the function is gone, no new mappings (written under bars_lock) */
	/* page of ones to map after a revocation, or NULL to raise SIGBUS; constant */
	struct page *blank;
	atomic_t mappings;	/* number of CPU mappings (atomic) */
	atomic_t importers;	/* number of attachments (atomic) */
	atomic_t mapped;	/* number of DMA mappings by attachments (atomic) */
	struct rashpa_charge charge;	/* charge of the window */
};

/* Attachment of a window, in dma_buf_attachment.priv. */
struct rashpa_window_import {
	u64 offset;	/* offset in the window of what is mapped */
	u64 length;	/* its length in bytes */
	long pins;	/* number of pins (reservation lock) */
	bool trusted;	/* may always pin */
};

/* ------------------------------------------------------ closed ranges --- */

/*
 * A process that can write to the MSI-X table can make the function write to any address. Engines
 * are stopped by their bounds.
 */
static void rashpa_window_close(struct rashpa_window *win, u32 bar, u64 offset, u64 length)
{
	if (length && bar == win->range.bar &&
	    rashpa_ranges_overlap(offset, length, win->range.offset, win->range.length))
		win->closed[win->n_closed++] = (struct rashpa_bar_range) { bar, offset, length };
}

/* Refuse a part of a window that only the kernel may access. Return: 0, -EBUSY. */
static int rashpa_window_closed(struct rashpa_call *call, const struct rashpa_window *win,
				u64 offset, u64 length)
{
	const struct rashpa_bar_range *closed;

	for (closed = win->closed; closed < win->closed + win->n_closed; closed++)
		if (rashpa_ranges_overlap(win->range.offset + offset, length,
					  closed->offset, closed->length))
			return rashpa_fail(call, -EBUSY,
					   "the page at 0x%llx of BAR %u holds the MSI-X table or bounds of engines, which only the kernel may access: use the parts before and after it",
					   closed->offset & PAGE_MASK, closed->bar);
	return 0;
}

static int rashpa_window_find_closed(struct rashpa_call *call, struct rashpa_window *win)
{
	const struct rashpa_device *dev = win->dev;
	u64 at = 0;
	u32 i;
	int err;

	win->closed = kcalloc(ARRAY_SIZE(dev->msix) + 2 * dev->profile.n_engines,
			      sizeof(*win->closed), GFP_KERNEL_ACCOUNT);
	if (!win->closed)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(dev->msix); i++)
		rashpa_window_close(win, dev->msix[i].bar, dev->msix[i].offset,
				    dev->msix[i].length);
	for (i = 0; i < dev->profile.n_engines; i++) {
		const struct rashpa_profile_engine *e = &dev->profile.engines[i].about;

		rashpa_window_close(win, e->bar, e->first_offset, sizeof(u32));
		rashpa_window_close(win, e->bar, e->limit_offset, sizeof(u32));
	}
	/* is there a page of use to anyone? */
	do
		err = rashpa_window_closed(call, win, at, PAGE_SIZE);
	while (err && (at += PAGE_SIZE) < win->range.length);
	return err;
}

/* ------------------------------------------------------ CPU mappings ---- */

static void rashpa_window_vma_open(struct vm_area_struct *vma)
{
	struct rashpa_window *win = vma->vm_private_data;

	atomic_inc(&win->mappings);
}

static void rashpa_window_vma_close(struct vm_area_struct *vma)
{
	struct rashpa_window *win = vma->vm_private_data;

	atomic_dec(&win->mappings);
}

/*
 * Wait for the end of a reset, which may take long. If the fault allows it, wait without mmap_lock:
 * other threads of the process may stream from other functions. A fatal signal ends the wait.
 *
 * Return: 0 with bars_lock held for reading, or the result of the fault.
 */
static vm_fault_t rashpa_window_enter(struct vm_fault *vmf, struct rashpa_device *dev)
{
	struct file *file;

	if (down_read_trylock(&dev->bars_lock))
		return 0;
	if (!fault_flag_allow_retry_first(vmf->flags))
		return down_read_killable(&dev->bars_lock) ? VM_FAULT_NOPAGE : 0;
	if (vmf->flags & FAULT_FLAG_RETRY_NOWAIT)
		return VM_FAULT_RETRY;
	/* without the lock the vma may be freed: the file keeps the function alive */
	file = get_file(vmf->vma->vm_file);
	release_fault_lock(vmf);
	if (!down_read_killable(&dev->bars_lock))
		up_read(&dev->bars_lock);
	fput(file);
	return VM_FAULT_RETRY;
}

/* Bytes of a window that one fault maps: few faults, each of them short. */
#define RASHPA_WINDOW_FILL		SZ_2M

/*
 * Map pages on fault: unmap_mapping_range() does not find mappings before mmap() returns, so pages
 * mapped there could survive a removal.
 */
static vm_fault_t rashpa_window_fault(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	struct rashpa_window *win = vma->vm_private_data;
	unsigned long addr = max(vma->vm_start, ALIGN_DOWN(vmf->address, RASHPA_WINDOW_FILL));
	unsigned long end = min(vma->vm_end,
				ALIGN_DOWN(vmf->address, RASHPA_WINDOW_FILL) + RASHPA_WINDOW_FILL);
	unsigned long pfn = PHYS_PFN(win->phys) + vma->vm_pgoff +
			    ((addr - vma->vm_start) >> PAGE_SHIFT);
	vm_fault_t ret;

	ret = rashpa_window_enter(vmf, win->dev);
	if (ret)
		return ret;
	ret = VM_FAULT_NOPAGE;
	if (win->revoked) {
		/*
		 * The same page everywhere: the kernel never reads what processes write. Cached
		 * like the kernel's mapping: on some machines other modes would not show its ones.
		 */
		ret = win->blank ? vmf_insert_pfn_prot(vma, vmf->address & PAGE_MASK,
						       page_to_pfn(win->blank),
						       vm_get_page_prot(vma->vm_flags)) :
				   VM_FAULT_SIGBUS;
		addr = end;
	}
	for (; addr < end && ret == VM_FAULT_NOPAGE; addr += PAGE_SIZE)
		ret = vmf_insert_pfn(vma, addr, pfn++);
	up_read(&win->dev->bars_lock);
	return ret;
}

static const struct vm_operations_struct rashpa_window_vm_ops = {
	.open = rashpa_window_vma_open,
	.close = rashpa_window_vma_close,
	.fault = rashpa_window_fault,
};

static int rashpa_window_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct rashpa_window *win = dmabuf->priv;
	const unsigned long total = win->range.length >> PAGE_SHIFT;
	const u64 length = vma->vm_end - vma->vm_start, offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct rashpa_call call = {};

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff >= total || vma_pages(vma) > total - vma->vm_pgoff)
		return -EINVAL;
	if (rashpa_window_closed(&call, win, offset, length)) {
		dev_notice_ratelimited(&win->dev->pdev->dev, "mmap by process %d refused: %s\n",
				       task_tgid_nr(current), call.reason);
		return -EBUSY;
	}
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	if (win->range.cache == RASHPA_CACHE_WC)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = win;
	vma->vm_ops = &rashpa_window_vm_ops;
	rashpa_window_vma_open(vma);
	trace_rashpa_window_mmap(win->dev->id, win->range.bar, win->range.offset + offset, length);
	return 0;
}

/* ------------------------------------------------------ peer-to-peer ---- */

static int rashpa_window_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = dmabuf->priv;
	struct rashpa_window_import *import;
	struct rashpa_call call = {};
	int class;

	/* a BAR has no struct pages */
	if (!attach->peer2peer || !dev_is_pci(attach->dev))
		return -EOPNOTSUPP;
	/* after a removal another function may get these addresses: the importer must stop then */
	if (!attach->importer_ops || !attach->importer_ops->invalidate_mappings)
		return -EOPNOTSUPP;
	class = rashpa_path_between(&call, to_pci_dev(attach->dev), win->dev->pdev);
	if (class < 0)
		return class;
	import = kzalloc(sizeof(*import), GFP_KERNEL);
	if (!import)
		return -ENOMEM;
	import->length = win->range.length;
	attach->priv = import;
	atomic_inc(&win->importers);
	return 0;
}

static void rashpa_window_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = dmabuf->priv;

	atomic_dec(&win->importers);
	kfree(attach->priv);
}

/* A window never moves. At its end, importers are notified, but those that pin may ignore that. */
static int rashpa_window_pin(struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = attach->dmabuf->priv;
	struct rashpa_window_import *import = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (READ_ONCE(win->revoked))
		return -ENODEV;
	if (!import->trusted && import->pins >= RASHPA_PINS_MAX)
		return -EOPNOTSUPP;
	import->pins++;
	return 0;
}

static void rashpa_window_unpin(struct dma_buf_attachment *attach)
{
	struct rashpa_window_import *import = attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	import->pins--;
}

/*
 * Before the first pin or mapping, by an importer that stops as soon as a window ends: it may pin,
 * and its table has only this range. Other importers map the whole window.
 */
void rashpa_window_trust(struct dma_buf_attachment *attach, u64 offset, u64 length)
{
	struct rashpa_window_import *import = attach->priv;

	if (rashpa_window_of(attach->dmabuf))
		*import = (struct rashpa_window_import) { offset, length, .trusted = true };
}

static struct sg_table *rashpa_window_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	const struct rashpa_window_import *import = attach->priv;
	struct rashpa_window *win = attach->dmabuf->priv;
	dma_addr_t addr = rashpa_window_bus(attach->dmabuf) + import->offset;
	struct scatterlist *sg;
	struct sg_table *sgt;
	struct rashpa_call call = {};
	u64 offset = 0;
	int err, i;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (READ_ONCE(win->revoked))
		return ERR_PTR(-ENODEV);
	if (READ_ONCE(win->dev->suspended))
		return ERR_PTR(-EAGAIN);
	if (rashpa_window_closed(&call, win, import->offset, import->length))
		return ERR_PTR(-EBUSY);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(sgt, DIV_ROUND_UP_ULL(import->length, SZ_2G), GFP_KERNEL);
	if (err)
		goto out_free;
	/* it takes a CPU address: without an IOMMU it would not be the bus address */
	if (rashpa_pci_translated(to_pci_dev(attach->dev)))
		addr = dma_map_resource(attach->dev, win->phys + import->offset, import->length,
					dir, DMA_ATTR_SKIP_CPU_SYNC);
	else if (!rashpa_dma_reaches(attach->dev, addr, import->length))
		addr = DMA_MAPPING_ERROR;
	err = dma_mapping_error(attach->dev, addr);
	if (err)
		goto out_table;
	for_each_sgtable_sg(sgt, sg, i) {
		u64 length = min_t(u64, SZ_2G, import->length - offset);

		sg_set_page(sg, NULL, length, 0);
		sg_dma_address(sg) = addr + offset;
		sg_dma_len(sg) = length;
		offset += length;
	}
	atomic_inc(&win->mapped);
	return sgt;

out_table:
	sg_free_table(sgt);
out_free:
	kfree(sgt);
	return ERR_PTR(err);
}

static void rashpa_window_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt, enum dma_data_direction dir)
{
	const struct rashpa_window_import *import = attach->priv;
	struct rashpa_window *win = attach->dmabuf->priv;

	if (rashpa_pci_translated(to_pci_dev(attach->dev)))
		dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl), import->length, dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(sgt);
	if (atomic_dec_and_test(&win->mapped))
		wake_up_var(&win->mapped);
}

/* Remove a window without CPU mappings: its range may get another cache mode. */
static void rashpa_window_forget(struct rashpa_window *win)
{
	lockdep_assert_held(&win->dev->windows_lock);
	if (win->combined)
		arch_io_free_memtype_wc(win->phys, win->range.length);
	win->combined = false;
	if (list_empty(&win->entry))
		return;
	list_del_init(&win->entry);
	win->dev->n_open_windows--;
}

static void rashpa_window_free(struct rashpa_window *win)
{
	scoped_guard(mutex, &win->dev->windows_lock)
		rashpa_window_forget(win);
	iput(win->inode);
	put_device(&win->dev->dev);
	rashpa_uncharge(&win->charge);
	if (win->blank)
		__free_page(win->blank);
	kfree(win->closed);
	kfree(win);
}

static void rashpa_window_release(struct dma_buf *dmabuf)
{
	rashpa_window_free(dmabuf->priv);
}

static const struct dma_buf_ops rashpa_window_ops = {
	.attach = rashpa_window_attach,
	.detach = rashpa_window_detach,
	.pin = rashpa_window_pin,
	.unpin = rashpa_window_unpin,
	.map_dma_buf = rashpa_window_map,
	.unmap_dma_buf = rashpa_window_unmap,
	.mmap = rashpa_window_mmap,
	.release = rashpa_window_release,
};

/* -------------------------------------------------------- operations ---- */

/* Return: function of a window, or NULL for any other dma-buf. */
struct rashpa_device *rashpa_window_of(struct dma_buf *dmabuf)
{
	struct rashpa_window *win = dmabuf->priv;

	return dmabuf->ops == &rashpa_window_ops ? win->dev : NULL;
}

/* May a function map a part of this window? */
int rashpa_window_check_part(struct rashpa_call *call, struct dma_buf *dmabuf, u64 offset,
			     u64 length)
{
	return rashpa_window_closed(call, dmabuf->priv, offset, length);
}

/* Fill @info, if this is a window. */
bool rashpa_window_info(struct dma_buf *dmabuf, struct rashpa_info *info)
{
	struct rashpa_window *win = dmabuf->priv;

	if (!rashpa_window_of(dmabuf))
		return false;
	info->out_kind = RASHPA_KIND_WINDOW;
	info->out_length = win->range.length;
	info->out_cache = win->range.cache;
	info->out_node = dev_to_node(&win->dev->pdev->dev);
	info->out_segments = 1;
	info->out_importers = atomic_read(&win->importers);
	info->out_mappings = atomic_read(&win->mappings);
	info->out_bar = win->range.bar;
	info->out_bdf = rashpa_bdf(win->dev->pdev);
	if (READ_ONCE(win->revoked) || READ_ONCE(win->dev->suspended))
		info->out_flags |= RASHPA_INFO_REVOKED;
	return true;
}

/* Bus address of the first byte of a window, for importers without an IOMMU. */
dma_addr_t rashpa_window_bus(struct dma_buf *dmabuf)
{
	struct rashpa_window *win = dmabuf->priv;

	return pci_bus_address(win->dev->pdev, win->range.bar) + win->range.offset;
}

/* Wait until all importers have unmapped a window, at most until @end (jiffies). */
static bool rashpa_window_released(struct rashpa_window *win, unsigned long end)
{
	long left = max_t(long, end - jiffies, 0);

	/* check first: any process can add fences, even without a DMA mapping */
	if (!atomic_read(&win->mapped))
		return true;
	if (dma_resv_wait_timeout(win->dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP, false, left) <= 0)
		return false;
	left = max_t(long, end - jiffies, 0);
	return wait_var_event_timeout(&win->mapped, !atomic_read(&win->mapped), left);
}

/*
 * Invalidate all windows and wait for their importers. Importers that cannot stop at once add a
 * fence, and may access the memory until they unmap it. All are notified before the first wait.
 * rashpa_window_release() takes windows_lock, so the dma-bufs of listed windows are valid.
 */
static void rashpa_windows_invalidate(struct rashpa_device *dev)
{
	const unsigned long end = jiffies + RASHPA_FENCE_LIMIT * HZ;
	struct rashpa_window *win;

	lockdep_assert_held(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry) {
		/* CPUs fault from now on */
		unmap_mapping_range(win->inode->i_mapping, 0, 0, 1);
		dma_resv_lock(win->dmabuf->resv, NULL);
		dma_buf_invalidate_mappings(win->dmabuf);
		dma_resv_unlock(win->dmabuf->resv);
	}
	list_for_each_entry(win, &dev->open_windows, entry)
		if (!rashpa_window_released(win, end))
			dev_warn(&dev->pdev->dev,
				 "an importer of BAR %u did not unmap it in %d s\n",
				 win->range.bar, RASHPA_FENCE_LIMIT);
}

/* Revoke all windows for good, before a removal. */
void rashpa_windows_revoke(struct rashpa_device *dev)
{
	struct rashpa_window *win, *next;

	lockdep_assert_held(&dev->lock);
	down_write(&dev->bars_lock);
	mutex_lock(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry)
		WRITE_ONCE(win->revoked, true);
	up_write(&dev->bars_lock);
	/* new faults raise SIGBUS; no new windows, because they need dev->lock */
	rashpa_windows_invalidate(dev);
	list_for_each_entry_safe(win, next, &dev->open_windows, entry)
		rashpa_window_forget(win);
	mutex_unlock(&dev->windows_lock);
}

/*
 * Block all windows before a reset. Until rashpa_windows_resume(), in the same thread, page faults
 * in windows wait with bars_lock held for them, and DMA mappings fail with -EAGAIN.
 */
void rashpa_windows_suspend(struct rashpa_device *dev)
{
	down_write(&dev->bars_lock);
	guard(mutex)(&dev->windows_lock);
	WRITE_ONCE(dev->suspended, true);
	rashpa_windows_invalidate(dev);
}

/*
 * Unblock all windows after a reset, and call @back for each with its reservation lock held, to
 * restore its maps.
 */
void rashpa_windows_resume(struct rashpa_device *dev, void (*back)(struct dma_buf *dmabuf))
{
	struct rashpa_window *win;

	WRITE_ONCE(dev->suspended, false);
	up_write(&dev->bars_lock);
	guard(mutex)(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry) {
		dma_resv_lock(win->dmabuf->resv, NULL);
		back(win->dmabuf);
		dma_resv_unlock(win->dmabuf->resv);
	}
}

/* Set the range of @win, and @p to the window of the profile that contains it, or NULL. */
static int rashpa_window_resolve(struct rashpa_call *call, struct rashpa_window *win,
				 const struct rashpa_window_make *w,
				 const struct rashpa_profile_window **p)
{
	struct rashpa_device *dev = win->dev;
	int err;

	if (!memchr_inv(w->name, 0, sizeof(w->name))) {
		win->range = (struct rashpa_profile_window) {
			.bar = w->bar, .cache = w->cache, .offset = w->offset, .length = w->length,
		};
		*p = rashpa_profile_cover(&dev->profile, &win->range);
		return rashpa_pwindow_check(call, dev, &win->range);
	}
	err = rashpa_check_name(call, w->name, sizeof(w->name));
	if (err)
		return err;
	if (w->bar || w->cache || w->offset || w->length)
		return rashpa_fail(call, -EINVAL, "window %s: give a name or a range, not both",
				   w->name);
	*p = rashpa_profile_find(&dev->profile, w->name);
	if (!*p)
		return rashpa_fail(call, -ENOENT, "the profile of fpga%d has no window %s",
				   dev->id, w->name);
	win->range = **p;
	return 0;
}

/* Unprivileged users get the mode of the profile: another one would exclude other users. */
static int rashpa_window_check_user(struct rashpa_call *call, struct rashpa_window *win,
				    const struct rashpa_profile_window *p)
{
	const u32 mine = win->range.cache, profile = p && p->cache ? p->cache : RASHPA_CACHE_UC;

	win->range.cache = mine ?: RASHPA_CACHE_UC;
	if (capable(CAP_SYS_RAWIO))
		return 0;
	if (!p || !(p->flags & RASHPA_PWINDOW_USER))
		return rashpa_fail(call, -EPERM,
				   "this window needs CAP_SYS_RAWIO: the profile does not open it to users");
	if (mine && mine != profile)
		return rashpa_fail(call, -EPERM,
				   "a cache mode other than that of window %s of the profile needs CAP_SYS_RAWIO",
				   p->name);
	win->range.cache = profile;
	return 0;
}

/*
 * x86 has one cache mode for a range, so windows must not overlap others with a different mode.
 * New windows need dev->lock, so none can appear after this check.
 */
static int rashpa_window_check_cache(struct rashpa_call *call, const struct rashpa_window *win)
{
	const struct rashpa_profile_window *r = &win->range, *other;
	struct rashpa_device *dev = win->dev;

	lockdep_assert_held(&dev->lock);
	if (r->cache == RASHPA_CACHE_WC &&
	    !(pci_resource_flags(dev->pdev, r->bar) & IORESOURCE_PREFETCH))
		return rashpa_fail(call, -EOPNOTSUPP,
				   "BAR %u is not prefetchable: it cannot be write-combined",
				   r->bar);
	guard(mutex)(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry) {
		other = &win->range;
		if (other->bar == r->bar && other->cache != r->cache &&
		    rashpa_ranges_overlap(r->offset, r->length, other->offset, other->length))
			return rashpa_fail(call, -EBUSY,
					   "a window of 0x%llx + 0x%llx in BAR %u is open %s: close it, or request the same cache mode",
					   other->offset, other->length, other->bar,
					   other->cache == RASHPA_CACHE_WC ? "write-combined" :
									     "uncached");
	}
	return 0;
}

/* Find the range of a new window, and check whether the caller may have it. */
static int rashpa_window_check(struct rashpa_call *call, struct rashpa_window *win,
			       const struct rashpa_window_make *w)
{
	const struct rashpa_profile_window *p;
	int err;

	err = rashpa_window_resolve(call, win, w, &p);
	if (err)
		return err;
	/* profiles are written for 4 KiB; a larger page would give away what is next to it */
	if (!PAGE_ALIGNED(win->range.offset | win->range.length))
		return rashpa_fail(call, -EINVAL,
				   "0x%llx + 0x%llx of BAR %u are not whole pages of this kernel, which have 0x%lx bytes: use a kernel with pages of 4 KiB, or declare a larger window",
				   win->range.offset, win->range.length, win->range.bar,
				   PAGE_SIZE);
	if (!p)
		err = rashpa_lockdown_check(call, win->dev, "a window outside of the profile");
	if (!err)
		err = rashpa_window_check_user(call, win, p);
	if (!err)
		err = rashpa_window_find_closed(call, win);
	return err ?: rashpa_window_check_cache(call, win);
}

/*
 * x86 maps a range as it was reserved, whatever the mapping requests. If it is reserved already (by
 * quiesce steps, table entries or other mappings), the call succeeds but keeps that mode.
 */
static int rashpa_window_combine(struct rashpa_call *call, struct rashpa_window *win)
{
	int err = arch_io_reserve_memtype_wc(win->phys, win->range.length);

	win->combined = !err;
	if (!err && !rashpa_combines(win->phys))
		err = -EBUSY;
	if (!err)
		return 0;
	return rashpa_fail(call, err,
			   "this range of BAR %u cannot be write-combined: registers in it are mapped uncached by a quiesce step, a programmed map or another user",
			   win->range.bar);
}

/* The function is locked. After an error the caller frees @win. */
static int rashpa_window_make(struct rashpa_call *call, struct rashpa_window *win, bool blank)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rashpa_device *dev = win->dev;
	int err;

	err = rashpa_charge(call, &win->charge, RASHPA_RESOURCE_WINDOWS, dev->id, 1, 0);
	if (err)
		return err;
	win->phys = pci_resource_start(dev->pdev, win->range.bar) + win->range.offset;
	if (blank) {
		win->blank = alloc_page(GFP_KERNEL_ACCOUNT);
		if (!win->blank)
			return -ENOMEM;
		/* as reads of a removed function return */
		memset(page_address(win->blank), 0xff, PAGE_SIZE);
	}
	if (win->range.cache == RASHPA_CACHE_WC) {
		err = rashpa_window_combine(call, win);
		if (err)
			return err;
	}
	info.ops = &rashpa_window_ops;
	info.size = win->range.length;
	info.flags = O_RDWR;
	info.priv = win;
	win->dmabuf = dma_buf_export(&info);
	if (IS_ERR(win->dmabuf))
		return PTR_ERR(win->dmabuf);
	win->inode = file_inode(win->dmabuf->file);
	ihold(win->inode);
	call->new_file = win->dmabuf->file;
	guard(mutex)(&dev->windows_lock);
	list_add_tail(&win->entry, &dev->open_windows);
	dev->n_open_windows++;
	return 0;
}

int rashpa_ioc_window(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_window_make *w = arg;
	struct rashpa_window *win;
	int err;

	win = kzalloc(sizeof(*win), GFP_KERNEL_ACCOUNT);
	if (!win)
		return -ENOMEM;
	INIT_LIST_HEAD(&win->entry);
	win->dev = dev;
	get_device(&dev->dev);
	err = rashpa_device_lock(call, dev);
	if (!err) {
		err = rashpa_window_check(call, win, w);
		if (!err)
			err = rashpa_window_make(call, win, w->head.flags & RASHPA_WINDOW_BLANK);
		w->out_length = win->range.length;
		w->out_fd = call->fd;
		mutex_unlock(&dev->lock);
	}
	if (err)
		rashpa_window_free(win);
	return err;
}
