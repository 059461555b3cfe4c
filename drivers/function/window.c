// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: windows: ranges of a PCI BAR (registers, doorbells, on-board memory) as
 * memory: a dma-buf to mmap, and to map for another function (peer-to-peer).
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

/**
 * struct rashpa_window - one window
 * @dev: the function; one reference
 * @dmabuf: the memory; holds this struct
 * @inode: of the dma-buf's file; one reference. Not the file: that may be gone before we are
 *	released, while somebody has its name open (O_PATH)
 * @entry: in rashpa_device.open_windows (its windows_lock)
 * @bar: BAR
 * @offset: in the BAR
 * @length: bytes
 * @phys: CPU address of the first byte
 * @bus: its address on the bus
 * @cache: enum rashpa_cache
 * @combined: x86 knows that the range is write-combined (windows_lock)
 * @revoked: the function is gone: nothing may be mapped any more (its bars_lock)
 * @blank: page of ones that CPUs find in its place then, or NULL: SIGBUS
 * @mappings: CPU mappings
 * @importers: attachments
 * @mapped: that have it mapped
 * @charge: of the window
 */
struct rashpa_window {
	struct rashpa_device *dev;
	struct dma_buf *dmabuf;
	struct inode *inode;
	struct list_head entry;
	u32 bar;
	u64 offset;
	u64 length;
	phys_addr_t phys;
	dma_addr_t bus;
	u32 cache;
	bool combined;
	bool revoked;
	struct page *blank;
	atomic_t mappings;
	atomic_t importers;
	atomic_t mapped;
	struct rashpa_charge charge;
};

/**
 * struct rashpa_window_mapping - a window as one importer has it
 * @sgt: what it was told
 * @mapped: its IOMMU translates these addresses
 */
struct rashpa_window_mapping {
	struct sg_table sgt;
	bool mapped;
};

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
 * The function is being reset, for as long as it likes. The process has other threads, which
 * may stream from other functions: wait without the lock of its address space, where the
 * fault allows that. A fatal signal ends it.
 *
 * Return: 0 with bars_lock held for reading, or what the fault answers with.
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
	/* the mapping can go when nothing is locked, the file keeps the function */
	file = get_file(vmf->vma->vm_file);
	rashpa_fault_unlock(vmf);
	if (!down_read_killable(&dev->bars_lock))
		up_read(&dev->bars_lock);
	fput(file);
	return VM_FAULT_RETRY;
}

/* How much of a window one fault fills: few faults, but never a long time in one. */
#define RASHPA_WINDOW_FILL		SZ_2M

/*
 * Filled when touched: only a mapping that the kernel already knows can be zapped on
 * removal, and at mmap time it does not know it yet.
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
		 * One page in the place of all; its content is never read. Cached as the
		 * kernel has it, or what is in memory would show on some machines, not the ones.
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
	unsigned long total = win->length >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff >= total || vma_pages(vma) > total - vma->vm_pgoff)
		return -EINVAL;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	if (win->cache == RASHPA_CACHE_WC)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	else
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	vma->vm_private_data = win;
	vma->vm_ops = &rashpa_window_vm_ops;
	rashpa_window_vma_open(vma);
	trace_rashpa_window_mmap(win->dev->id, win->bar,
				 win->offset + ((u64)vma->vm_pgoff << PAGE_SHIFT),
				 vma->vm_end - vma->vm_start);
	return 0;
}

/* ------------------------------------------------------ peer-to-peer ---- */

static int rashpa_window_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = dmabuf->priv;
	struct rashpa_call call = {};
	int class;

	/* There are no pages behind it: an importer that wants pages cannot use it. */
	if (!attach->peer2peer || !dev_is_pci(attach->dev))
		return -EOPNOTSUPP;
	/* The board may go, and another one come in its place: who goes on would write there. */
	if (!rashpa_attach_obeys(attach))
		return -EOPNOTSUPP;
	class = rashpa_path_between(&call, to_pci_dev(attach->dev), win->dev->pdev);
	if (class < 0)
		return class;
	atomic_inc(&win->importers);
	return 0;
}

static void rashpa_window_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = dmabuf->priv;

	atomic_dec(&win->importers);
}

/*
 * A window moves nowhere; it can only end, and then importers are told. Those that pin may be
 * deaf to it. What is private to us of an attachment is how often it has pinned, counted from
 * LONG_MIN if it is trusted.
 */
static int rashpa_window_pin(struct dma_buf_attachment *attach)
{
	struct rashpa_window *win = attach->dmabuf->priv;
	const long pins = (long)attach->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (READ_ONCE(win->revoked))
		return -ENODEV;
	if (pins >= RASHPA_PINS_MAX)
		return -EOPNOTSUPP;
	attach->priv = (void *)(pins + 1);
	return 0;
}

/**
 * rashpa_window_trust() - an importer that lets go as soon as a window ends may pin it
 * @attach: of any dma-buf, not yet pinned or mapped
 */
void rashpa_window_trust(struct dma_buf_attachment *attach)
{
	if (rashpa_dmabuf_is_window(attach->dmabuf))
		attach->priv = (void *)LONG_MIN;
}

static void rashpa_window_unpin(struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	attach->priv = (void *)((long)attach->priv - 1);
}

/* The DMA core has CPU addresses of registers only: right for an IOMMU, not for the bus. */
static dma_addr_t rashpa_window_address(struct rashpa_window *win, struct device *dev,
					enum dma_data_direction dir, bool *mapped)
{
	*mapped = rashpa_pci_translated(to_pci_dev(dev));
	if (*mapped)
		return dma_map_resource(dev, win->phys, win->length, dir, DMA_ATTR_SKIP_CPU_SYNC);
	return rashpa_dma_reaches(dev, win->bus, win->length) ? win->bus : DMA_MAPPING_ERROR;
}

static struct sg_table *rashpa_window_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct rashpa_window *win = attach->dmabuf->priv;
	struct rashpa_window_mapping *m;
	struct scatterlist *sg;
	u64 offset = 0;
	dma_addr_t addr;
	int err, i;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (READ_ONCE(win->revoked))
		return ERR_PTR(-ENODEV);
	if (READ_ONCE(win->dev->suspended))
		return ERR_PTR(-EAGAIN);
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(&m->sgt, DIV_ROUND_UP_ULL(win->length, SZ_2G), GFP_KERNEL);
	if (err)
		goto out_free;
	addr = rashpa_window_address(win, attach->dev, dir, &m->mapped);
	err = dma_mapping_error(attach->dev, addr);
	if (err)
		goto out_table;
	for_each_sgtable_sg(&m->sgt, sg, i) {
		u64 length = min_t(u64, SZ_2G, win->length - offset);

		sg_set_page(sg, NULL, length, 0);
		sg_dma_address(sg) = addr + offset;
		sg_dma_len(sg) = length;
		offset += length;
	}
	atomic_inc(&win->mapped);
	return &m->sgt;

out_table:
	sg_free_table(&m->sgt);
out_free:
	kfree(m);
	return ERR_PTR(err);
}

static void rashpa_window_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt, enum dma_data_direction dir)
{
	struct rashpa_window_mapping *m = container_of(sgt, struct rashpa_window_mapping, sgt);
	struct rashpa_window *win = attach->dmabuf->priv;

	if (m->mapped)
		dma_unmap_resource(attach->dev, sg_dma_address(sgt->sgl), win->length, dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(m);
	if (atomic_dec_and_test(&win->mapped))
		wake_up_var(&win->mapped);
}

static void rashpa_window_uncombine(struct rashpa_window *win)
{
	if (win->combined)
		arch_io_free_memtype_wc(win->phys, win->length);
	win->combined = false;
}

/* No CPU has it mapped: the range is free for a window with another cache mode. */
static void rashpa_window_forget(struct rashpa_window *win)
{
	lockdep_assert_held(&win->dev->windows_lock);
	if (list_empty(&win->entry))
		return;
	rashpa_window_uncombine(win);
	list_del_init(&win->entry);
	win->dev->n_open_windows--;
}

static void rashpa_window_free(struct rashpa_window *win)
{
	rashpa_window_uncombine(win);
	iput(win->inode);
	put_device(&win->dev->dev);
	rashpa_uncharge(&win->charge);
	if (win->blank)
		__free_page(win->blank);
	kfree(win);
}

static void rashpa_window_release(struct dma_buf *dmabuf)
{
	struct rashpa_window *win = dmabuf->priv;

	mutex_lock(&win->dev->windows_lock);
	rashpa_window_forget(win);
	mutex_unlock(&win->dev->windows_lock);
	rashpa_window_free(win);
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

bool rashpa_dmabuf_is_window(struct dma_buf *dmabuf)
{
	return dmabuf->ops == &rashpa_window_ops;
}

void rashpa_window_info(struct dma_buf *dmabuf, struct rashpa_info *info)
{
	struct rashpa_window *win = dmabuf->priv;

	info->out_kind = RASHPA_KIND_WINDOW;
	info->out_length = win->length;
	info->out_cache = win->cache;
	info->out_node = dev_to_node(&win->dev->pdev->dev);
	info->out_segments = 1;
	info->out_importers = atomic_read(&win->importers);
	info->out_mappings = atomic_read(&win->mappings);
	info->out_bar = win->bar;
	info->out_bdf = rashpa_bdf(win->dev->pdev);
	if (READ_ONCE(win->revoked) || READ_ONCE(win->dev->suspended))
		info->out_flags |= RASHPA_INFO_REVOKED;
}

/**
 * rashpa_window_of() - whose window is it
 * @dmabuf: any dma-buf
 *
 * Return: the function, or NULL if it is not a window.
 */
struct rashpa_device *rashpa_window_of(struct dma_buf *dmabuf)
{
	struct rashpa_window *win = dmabuf->priv;

	return rashpa_dmabuf_is_window(dmabuf) ? win->dev : NULL;
}

/**
 * rashpa_window_bus() - address of a window for who sends it without an IOMMU
 * @dmabuf: dma-buf of a window
 *
 * Return: the address on the bus of its function.
 */
dma_addr_t rashpa_window_bus(struct dma_buf *dmabuf)
{
	struct rashpa_window *win = dmabuf->priv;

	return win->bus;
}

/* Nobody may reach this window any more: CPUs fault, and importers are told. */
static void rashpa_window_invalidate(struct rashpa_window *win)
{
	struct dma_resv *resv = win->dmabuf->resv;

	lockdep_assert_held(&win->dev->windows_lock);
	unmap_mapping_range(win->inode->i_mapping, 0, 0, 1);
	dma_resv_lock(resv, NULL);
	rashpa_dmabuf_invalidate(win->dmabuf);
	dma_resv_unlock(resv);
}

/* Has this window been let go of? @end: in jiffies; one look at least. */
static bool rashpa_window_released(struct rashpa_window *win, unsigned long end)
{
	long left = max_t(long, end - jiffies, 0);

	/* fences are for anybody to add, also where nobody has it */
	if (!atomic_read(&win->mapped))
		return true;
	if (dma_resv_wait_timeout(win->dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP, false, left) <= 0)
		return false;
	left = max_t(long, end - jiffies, 0);
	return wait_var_event_timeout(&win->mapped, !atomic_read(&win->mapped), left);
}

/*
 * Nobody reaches any window when this returns. Importers that cannot stop at once say by a fence
 * when they have, and may look at the memory until they have unmapped it. All are told before
 * any of them is waited for. The release waits for windows_lock, so a dma-buf is there as long as
 * its window is in the list.
 */
static void rashpa_windows_invalidate(struct rashpa_device *dev)
{
	const unsigned long end = jiffies + RASHPA_FENCE_LIMIT * HZ;
	struct rashpa_window *win;

	lockdep_assert_held(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry)
		rashpa_window_invalidate(win);
	list_for_each_entry(win, &dev->open_windows, entry)
		if (!rashpa_window_released(win, end))
			dev_warn(&dev->pdev->dev,
				 "an importer of BAR %u did not let go of it in %d s\n",
				 win->bar, RASHPA_FENCE_LIMIT);
}

/**
 * rashpa_windows_revoke() - the function goes: nobody may reach its BARs any more
 * @dev: the function, locked
 */
void rashpa_windows_revoke(struct rashpa_device *dev)
{
	struct rashpa_window *win, *next;

	lockdep_assert_held(&dev->lock);
	down_write(&dev->bars_lock);
	mutex_lock(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry)
		WRITE_ONCE(win->revoked, true);
	mutex_unlock(&dev->windows_lock);
	up_write(&dev->bars_lock);
	/* Touching it from now on is a SIGBUS. No new ones come: that takes dev->lock. */
	mutex_lock(&dev->windows_lock);
	rashpa_windows_invalidate(dev);
	list_for_each_entry_safe(win, next, &dev->open_windows, entry)
		rashpa_window_forget(win);
	mutex_unlock(&dev->windows_lock);
}

/**
 * rashpa_windows_suspend() - the function is about to be reset
 * @dev: the function
 *
 * Until rashpa_windows_resume(), in the same thread, CPUs that touch a window wait,
 * and nobody can map one for DMA. Holds bars_lock for that time.
 */
void rashpa_windows_suspend(struct rashpa_device *dev)
{
	down_write(&dev->bars_lock);
	mutex_lock(&dev->windows_lock);
	WRITE_ONCE(dev->suspended, true);
	rashpa_windows_invalidate(dev);
	mutex_unlock(&dev->windows_lock);
}

/**
 * rashpa_windows_resume() - the reset is over
 * @dev: the function
 * @back: called for each window, with its reservation lock held: it can be mapped again
 */
void rashpa_windows_resume(struct rashpa_device *dev, void (*back)(struct dma_buf *dmabuf))
{
	struct rashpa_window *win;

	WRITE_ONCE(dev->suspended, false);
	up_write(&dev->bars_lock);
	mutex_lock(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry) {
		dma_resv_lock(win->dmabuf->resv, NULL);
		back(win->dmabuf);
		dma_resv_unlock(win->dmabuf->resv);
	}
	mutex_unlock(&dev->windows_lock);
}

/* Whoever can write the MSI-X table can send writes to any address. */
static bool rashpa_range_has_msix(struct rashpa_device *dev, u32 bar, u64 offset, u64 length)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(dev->msix); i++) {
		const struct rashpa_bar_range *r = &dev->msix[i];

		if (r->length && r->bar == bar && offset < r->offset + r->length &&
		    r->offset < offset + length)
			return true;
	}
	return false;
}

/**
 * struct rashpa_range - what a WINDOW call asks for, after names are resolved
 * @bar: BAR
 * @cache: enum rashpa_cache
 * @offset: in the BAR
 * @length: bytes
 * @declared: a window of the profile has it
 * @user: the profile opens it to users
 * @blank: CPUs find ones there when the function is gone
 */
struct rashpa_range {
	u32 bar;
	u32 cache;
	u64 offset;
	u64 length;
	bool declared;
	bool user;
	bool blank;
};

/* Users have one mode: who chose another one would keep all others out. */
static int rashpa_window_resolve_cache(struct rashpa_call *call,
				       const struct rashpa_profile_window *p,
				       struct rashpa_range *range)
{
	const u32 cache = p->cache ?: RASHPA_CACHE_UC;

	if ((range->cache ?: RASHPA_CACHE_UC) == cache || capable(CAP_SYS_RAWIO))
		return 0;
	if (range->cache)
		return rashpa_fail(call, -EPERM,
				   "a cache mode other than that of window %s of the profile needs CAP_SYS_RAWIO",
				   p->name);
	range->cache = cache;
	return 0;
}

static int rashpa_window_resolve(struct rashpa_call *call,
				 struct rashpa_device *dev,
				 const struct rashpa_window_make *w,
				 struct rashpa_range *range)
{
	const struct rashpa_profile_window *p;
	int err;

	if (!memchr_inv(w->name, 0, sizeof(w->name))) {
		if (!w->length || !PAGE_ALIGNED(w->offset) || !PAGE_ALIGNED(w->length))
			return rashpa_fail(call, -EINVAL,
					   "a window has whole pages: 0x%llx + 0x%llx",
					   w->offset, w->length);
		if (w->bar >= RASHPA_BARS)
			return rashpa_fail(call, -EINVAL,
					   "BAR %u does not exist: there are 0 to %d",
					   w->bar, RASHPA_BARS - 1);
		if (!rashpa_bar_is_memory(dev, w->bar))
			return rashpa_fail(call, -EOPNOTSUPP,
					   "BAR %u of fpga%d is not a memory BAR",
					   w->bar, dev->id);
		if (!rashpa_bar_range_ok(dev, w->bar, w->offset, w->length))
			return rashpa_fail(call, -ERANGE,
					   "0x%llx + 0x%llx is outside BAR %u of 0x%llx bytes",
					   w->offset, w->length, w->bar,
					   (u64)pci_resource_len(dev->pdev, w->bar));
		range->bar = w->bar;
		range->cache = w->cache;
		range->offset = w->offset;
		range->length = w->length;
		p = rashpa_profile_cover(dev, w->bar, w->offset, w->length, RASHPA_PWINDOW_USER);
		range->user = p;
		range->declared = rashpa_profile_cover(dev, w->bar, w->offset, w->length, 0);
		return p ? rashpa_window_resolve_cache(call, p, range) : 0;
	}
	err = rashpa_check_name(call, w->name, sizeof(w->name));
	if (err)
		return err;
	if (w->bar || w->cache || w->offset || w->length)
		return rashpa_fail(call, -EINVAL,
				   "window %s: a name and a range exclude each other",
				   w->name);
	p = rashpa_profile_find(dev, w->name);
	if (!p)
		return rashpa_fail(call, -ENOENT, "the profile of fpga%d has no window %s",
				   dev->id, w->name);
	range->bar = p->bar;
	range->cache = p->cache;
	range->offset = p->offset;
	range->length = p->length;
	range->declared = true;
	range->user = p->flags & RASHPA_PWINDOW_USER;
	return 0;
}

/*
 * Two modes for the same registers would become one: x86 maps all as the range was reserved.
 * Windows come under dev->lock, so that none can come after this.
 */
static int rashpa_window_check_cache(struct rashpa_call *call, struct rashpa_device *dev,
				     const struct rashpa_range *w)
{
	const u32 cache = w->cache ?: RASHPA_CACHE_UC;
	struct rashpa_window *win;
	int err = 0;

	lockdep_assert_held(&dev->lock);
	mutex_lock(&dev->windows_lock);
	list_for_each_entry(win, &dev->open_windows, entry) {
		if (win->bar != w->bar || win->cache == cache ||
		    w->offset >= win->offset + win->length ||
		    win->offset >= w->offset + w->length)
			continue;
		err = rashpa_fail(call, -EBUSY,
				  "a window of 0x%llx + 0x%llx in BAR %u is open %s: close it or ask for the same cache mode",
				  win->offset, win->length, win->bar,
				  win->cache == RASHPA_CACHE_WC ? "write-combined" : "uncached");
		break;
	}
	mutex_unlock(&dev->windows_lock);
	return err;
}

/*
 * x86 asks what the range was reserved as, not what the mapping wants; and where somebody has it
 * already, it is reserved as that, with no error: quiesce steps, entries of maps, others' mappings.
 */
static int rashpa_window_combine(struct rashpa_call *call, struct rashpa_window *win)
{
	int err = arch_io_reserve_memtype_wc(win->phys, win->length);

	win->combined = !err;
	if (!err && !rashpa_combines(win->phys))
		err = -EBUSY;
	if (!err)
		return 0;
	return rashpa_fail(call, err,
			   "this range of BAR %u cannot be write-combined: registers in it are mapped uncached, by a quiesce step, by a programmed map, or by somebody else",
			   win->bar);
}

/* As a function reads that is not there. */
static int rashpa_window_make_blank(struct rashpa_window *win)
{
	win->blank = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!win->blank)
		return -ENOMEM;
	memset(page_address(win->blank), 0xff, PAGE_SIZE);
	return 0;
}

static int rashpa_window_make(struct rashpa_call *call, struct rashpa_device *dev,
			      const struct rashpa_range *w)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rashpa_window *win;
	struct dma_buf *dmabuf;
	int err;

	win = kzalloc(sizeof(*win), GFP_KERNEL_ACCOUNT);
	if (!win)
		return -ENOMEM;
	err = rashpa_charge(call, &win->charge, RASHPA_RESOURCE_WINDOWS, dev->id, 1, 0);
	if (err) {
		kfree(win);
		return err;
	}
	INIT_LIST_HEAD(&win->entry);
	win->bar = w->bar;
	win->offset = w->offset;
	win->length = w->length;
	win->cache = w->cache ?: RASHPA_CACHE_UC;
	win->phys = pci_resource_start(dev->pdev, w->bar) + w->offset;
	win->bus = pci_bus_address(dev->pdev, w->bar) + w->offset;
	win->dev = dev;
	get_device(&dev->dev);
	if (w->blank)
		err = rashpa_window_make_blank(win);
	if (!err && win->cache == RASHPA_CACHE_WC)
		err = rashpa_window_combine(call, win);
	if (err) {
		rashpa_window_free(win);
		return err;
	}

	info.ops = &rashpa_window_ops;
	info.size = win->length;
	info.flags = O_RDWR;
	info.priv = win;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		rashpa_window_free(win);
		return PTR_ERR(dmabuf);
	}
	win->dmabuf = dmabuf;
	win->inode = file_inode(dmabuf->file);
	ihold(win->inode);
	mutex_lock(&dev->windows_lock);
	list_add_tail(&win->entry, &dev->open_windows);
	dev->n_open_windows++;
	mutex_unlock(&dev->windows_lock);
	call->new_file = dmabuf->file;
	return 0;
}

int rashpa_ioc_window(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_window_make *w = arg;
	struct rashpa_range range;
	int err;

	if (w->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (w->cache > RASHPA_CACHE_UC)
		return rashpa_fail(call, -EINVAL, "cache mode %u is not defined", w->cache);
	if (w->cache == RASHPA_CACHE_CACHED)
		return rashpa_fail(call, -EOPNOTSUPP, "a window cannot be cached");
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	err = rashpa_window_resolve(call, dev, w, &range);
	if (err)
		goto out;
	if (!range.declared) {
		err = rashpa_lockdown_check(call, dev, "a window that the profile does not have");
		if (err)
			goto out;
	}
	if (!range.user && !capable(CAP_SYS_RAWIO)) {
		err = rashpa_fail(call, -EPERM,
				  "this window needs CAP_SYS_RAWIO: the profile does not open it to users");
		goto out;
	}
	if (range.cache == RASHPA_CACHE_WC &&
	    !(pci_resource_flags(dev->pdev, range.bar) & IORESOURCE_PREFETCH)) {
		err = rashpa_fail(call, -EOPNOTSUPP,
				  "BAR %u is not prefetchable: it cannot be write-combined",
				  range.bar);
		goto out;
	}
	if (rashpa_range_has_msix(dev, range.bar, range.offset, range.length)) {
		err = rashpa_fail(call, -EBUSY,
				  "this range of BAR %u holds the MSI-X table, which is the kernel's",
				  range.bar);
		goto out;
	}
	if (rashpa_engines_bounds_in(dev, range.bar, range.offset, range.length)) {
		err = rashpa_fail(call, -EBUSY,
				  "this range of BAR %u holds the bounds of engines, which are the kernel's: choose one without",
				  range.bar);
		goto out;
	}
	range.blank = w->head.flags & RASHPA_WINDOW_BLANK;
	err = rashpa_window_check_cache(call, dev, &range);
	if (!err)
		err = rashpa_window_make(call, dev, &range);
	if (err)
		goto out;
	w->out_length = range.length;
	w->out_fd = call->fd;
out:
	mutex_unlock(&dev->lock);
	return err;
}
