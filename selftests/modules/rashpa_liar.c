// SPDX-License-Identifier: GPL-2.0-only
/*
 * Only for tests: an exporter of dma-bufs, a slow importer, and a bus with altered addresses. On
 * request, the exporter gives importers false tables, as real exporters did by mistake. It takes
 * its memory back during use, and demands the same of importers as drivers of GPUs.
 */
#include <linux/capability.h>
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/file.h>
#include <linux/gfp.h>
#include <linux/ioport.h>
#include <linux/memremap.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rashpa_dmabuf.h"
#include "rashpa_liar.h"

/**
 * struct liar - one dma-buf
 * @page: first page of its host memory, one compound page
 * @bar: address of the BAR, and @bar_length bytes of it; 0 for none
 * @bar_length: see @bar
 * @address: address that RASHPA_LIAR_ADDRESS gives to importers
 * @length: bytes
 * @error: negative errno
 * @model: enum rashpa_liar_model
 * @coherent: memory of RASHPA_LIAR_COHERENT, or NULL
 * @kind: enum rashpa_liar_kind (reservation lock)
 * @revoked: mapping fails (reservation lock)
 * @mapped: mappings now (reservation lock)
 * @pinned: pins now (reservation lock)
 */
struct liar {
	struct page *page;
	u64 bar;
	u64 bar_length;
	u64 address;
	u64 length;
	int error;
	u32 model;
	struct dev_pagemap *coherent;
	u32 kind;
	bool revoked;
	u32 mapped;
	u32 pinned;
};

/**
 * struct liar_mapping - mapping for one importer
 * @sgt: table that the importer got
 * @kind: kind of that table, enum rashpa_liar_kind
 * @host: its real mapping of the host memory, or of the coherent one
 */
struct liar_mapping {
	struct sg_table sgt;
	u32 kind;
	dma_addr_t host;
};

/**
 * struct liar_fence - a fence that user space signals
 * @base: the fence
 * @lock: its lock
 */
struct liar_fence {
	struct dma_fence base;
	spinlock_t lock;	/* of @base */
};

/**
 * struct liar_file - one open file
 * @lock: protects all fields
 * @shown: dma-buf that its mmap maps, or NULL
 * @fence: fence of RASHPA_LIAR_FENCE or RASHPA_LIAR_IMPORT, or NULL
 * @attach: attachment of RASHPA_LIAR_IMPORT, or NULL
 * @sgt: mapping of @attach
 */
struct liar_file {
	struct mutex lock;	/* all fields */
	struct dma_buf *shown;
	struct dma_fence *fence;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
};

/* --------------------------------------------------------------- lies --- */

/* The kind of table that importers get now. */
static u32 liar_kind(const struct liar *liar)
{
	return liar->model == RASHPA_LIAR_MIGRATES && liar->pinned ? RASHPA_LIAR_HONEST :
								     liar->kind;
}

static u32 liar_entries(const struct liar *liar, u32 kind)
{
	switch (kind) {
	case RASHPA_LIAR_SCATTERED:
		return liar->length >> PAGE_SHIFT;
	case RASHPA_LIAR_EMPTY:
		return 4;
	case RASHPA_LIAR_MIX:
		return 2;
	default:
		return 1;
	}
}

static bool liar_needs_host(u32 kind)
{
	return kind != RASHPA_LIAR_BAR && kind != RASHPA_LIAR_ADDRESS &&
	       kind != RASHPA_LIAR_COHERENT;
}

static struct scatterlist *liar_tell(struct scatterlist *sg, struct page *page,
				     u64 address, u64 length)
{
	sg_set_page(sg, page, length, 0);
	sg_dma_address(sg) = address;
	sg_dma_len(sg) = length;
	return sg_next(sg);
}

static void liar_fill(const struct liar *liar, struct liar_mapping *m)
{
	const u64 half = (liar->length / 2) & PAGE_MASK;
	const u64 rest = liar->length - half;
	struct scatterlist *sg = m->sgt.sgl;
	u64 at;

	switch (m->kind) {
	case RASHPA_LIAR_SCATTERED:
		for (at = liar->length; at; at -= PAGE_SIZE)
			sg = liar_tell(sg, liar->page + (at >> PAGE_SHIFT) - 1,
				       m->host + at - PAGE_SIZE, PAGE_SIZE);
		break;
	case RASHPA_LIAR_SHORT:
		liar_tell(sg, liar->page, m->host, liar->length - PAGE_SIZE);
		break;
	case RASHPA_LIAR_EMPTY:
		sg = liar_tell(sg, liar->page, m->host, half);
		sg = liar_tell(sg, NULL, 0, 0);
		sg = liar_tell(sg, liar->page + (half >> PAGE_SHIFT), m->host + half, rest);
		liar_tell(sg, NULL, 0, 0);
		break;
	case RASHPA_LIAR_NOTHING:
		liar_tell(sg, liar->page, m->host, 0);
		break;
	case RASHPA_LIAR_BAR:
		liar_tell(sg, NULL, liar->bar, liar->length);
		break;
	case RASHPA_LIAR_MIX:
		sg = liar_tell(sg, liar->page, m->host, half);
		liar_tell(sg, NULL, liar->bar + half, rest);
		break;
	case RASHPA_LIAR_ADDRESS:
		liar_tell(sg, NULL, liar->address, liar->length);
		break;
	case RASHPA_LIAR_COHERENT:
		liar_tell(sg, NULL, m->host, liar->length);
		break;
	default:
		liar_tell(sg, liar->model == RASHPA_LIAR_STATIC ? NULL : liar->page, m->host,
			  liar->length);
		break;
	}
}

/* ----------------------------------------------------------- coherent --- */

/* Its page tables need whole sections: this is one on x86. */
#define LIAR_COHERENT	SZ_128M

#if defined(CONFIG_ZONE_DEVICE) && defined(CONFIG_GET_FREE_REGION)
#ifdef RASHPA_HAVE_FOLIO_FREE
static void liar_coherent_unused(struct folio *folio)
{
}

static const struct dev_pagemap_ops liar_coherent_ops = {
	.folio_free = liar_coherent_unused,
};
#else
static void liar_coherent_unused(struct page *page)
{
}

static const struct dev_pagemap_ops liar_coherent_ops = {
	.page_free = liar_coherent_unused,
};
#endif

static void liar_coherent_free(struct dev_pagemap *map)
{
	if (!map)
		return;
	memunmap_pages(map);
	release_mem_region(map->range.start, LIAR_COHERENT);
	kfree(map);
}

static struct dev_pagemap *liar_coherent_make(void)
{
	struct dev_pagemap *map = kzalloc(sizeof(*map), GFP_KERNEL);
	struct resource *region;
	void *p;

	if (!map)
		return ERR_PTR(-ENOMEM);
	region = request_free_mem_region(&iomem_resource, LIAR_COHERENT, "rashpa-liar");
	if (IS_ERR(region)) {
		kfree(map);
		return ERR_CAST(region);
	}
	map->type = MEMORY_DEVICE_COHERENT;
	map->range.start = region->start;
	map->range.end = region->end;
	map->nr_range = 1;
	map->ops = &liar_coherent_ops;
	map->owner = map;
	p = memremap_pages(map, NUMA_NO_NODE);
	if (IS_ERR(p)) {
		release_mem_region(region->start, LIAR_COHERENT);
		kfree(map);
		return ERR_CAST(p);
	}
	return map;
}
#else
static void liar_coherent_free(struct dev_pagemap *map)
{
}

static struct dev_pagemap *liar_coherent_make(void)
{
	return ERR_PTR(-EOPNOTSUPP);
}
#endif

/* ----------------------------------------------------------- exporter --- */

static int liar_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	const struct liar *liar = dmabuf->priv;

	if (liar->kind == RASHPA_LIAR_NO_ATTACH)
		return liar->error;
	if (liar->model == RASHPA_LIAR_STATIC && (!attach->peer2peer || !dev_is_pci(attach->dev)))
		return -EOPNOTSUPP;
	if (liar->model == RASHPA_LIAR_REVOKES &&
	    (!attach->importer_ops || !attach->importer_ops->invalidate_mappings))
		return -EOPNOTSUPP;
	return 0;
}

/* Pinned memory cannot move, but REVOKE can revoke it. */
static int liar_pin(struct dma_buf_attachment *attach)
{
	struct liar *liar = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (liar->kind == RASHPA_LIAR_NO_PIN)
		return liar->error;
	/* the first pin moves the memory, which ends the mappings of importers without a pin */
	if (!liar->pinned++ && liar->model == RASHPA_LIAR_MIGRATES)
		dma_buf_invalidate_mappings(attach->dmabuf);
	return 0;
}

static void liar_unpin(struct dma_buf_attachment *attach)
{
	struct liar *liar = attach->dmabuf->priv;

	dma_resv_assert_held(attach->dmabuf->resv);
	liar->pinned--;
}

static struct sg_table *liar_map(struct dma_buf_attachment *attach,
				 enum dma_data_direction dir)
{
	struct liar *liar = attach->dmabuf->priv;
	struct liar_mapping *m;
	int err;

	/* older kernels hold it only for importers that can pin */
	if (liar->model != RASHPA_LIAR_STATIC)
		dma_resv_assert_held(attach->dmabuf->resv);
	if (liar->revoked || liar->kind == RASHPA_LIAR_NO_MAP)
		return ERR_PTR(liar->error);
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->kind = liar_kind(liar);
	err = sg_alloc_table(&m->sgt, liar_entries(liar, m->kind), GFP_KERNEL);
	if (err)
		goto out_free;
	if (m->kind == RASHPA_LIAR_COHERENT)
		m->host = dma_map_resource(attach->dev, liar->coherent->range.start, liar->length,
					   dir, 0);
	else if (liar_needs_host(m->kind))
		m->host = dma_map_page(attach->dev, liar->page, 0, liar->length, dir);
	err = dma_mapping_error(attach->dev, m->host);
	if (err)
		goto out_table;
	liar_fill(liar, m);
	liar->mapped++;
	return &m->sgt;

out_table:
	sg_free_table(&m->sgt);
out_free:
	kfree(m);
	return ERR_PTR(err);
}

static void liar_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		       enum dma_data_direction dir)
{
	struct liar_mapping *m = container_of(sgt, struct liar_mapping, sgt);
	struct liar *liar = attach->dmabuf->priv;

	if (liar->model != RASHPA_LIAR_STATIC)
		dma_resv_assert_held(attach->dmabuf->resv);
	if (m->kind == RASHPA_LIAR_COHERENT)
		dma_unmap_resource(attach->dev, m->host, liar->length, dir, 0);
	else if (liar_needs_host(m->kind))
		dma_unmap_page(attach->dev, m->host, liar->length, dir);
	sg_free_table(&m->sgt);
	kfree(m);
	liar->mapped--;
}

static int liar_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct liar *liar = dmabuf->priv;

	return remap_pfn_range(vma, vma->vm_start, page_to_pfn(liar->page) + vma->vm_pgoff,
			       vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static void liar_free(struct liar *liar)
{
	liar_coherent_free(liar->coherent);
	__free_pages(liar->page, get_order(liar->length));
	kfree(liar);
}

static void liar_release(struct dma_buf *dmabuf)
{
	struct liar *liar = dmabuf->priv;

	/* the kernel's log shows an importer that leaves a mapping or a pin */
	WARN_ON(liar->mapped || liar->pinned);
	liar_free(liar);
}

static const struct dma_buf_ops liar_ops = {
	.attach = liar_attach,
	.pin = liar_pin,
	.unpin = liar_unpin,
	.map_dma_buf = liar_map,
	.unmap_dma_buf = liar_unmap,
	.mmap = liar_mmap,
	.release = liar_release,
};

/* Its memory never moves. */
static const struct dma_buf_ops liar_static_ops = {
	.attach = liar_attach,
	.map_dma_buf = liar_map,
	.unmap_dma_buf = liar_unmap,
	.mmap = liar_mmap,
	.release = liar_release,
};

static bool liar_is(const struct dma_buf *dmabuf)
{
	return dmabuf->ops == &liar_ops || dmabuf->ops == &liar_static_ops;
}

/* -------------------------------------------------------------- calls --- */

static struct pci_dev *liar_function(u32 bdf)
{
	return pci_get_domain_bus_and_slot(bdf >> 16, (bdf >> 8) & 0xff, bdf & 0xff);
}

static int liar_find_bar(struct rashpa_liar_export *arg)
{
	struct pci_dev *pdev;
	u64 length;

	arg->out_bar_address = 0;
	arg->out_bar_length = 0;
	if (!arg->bdf)
		return arg->bar || arg->offset ? -EINVAL : 0;
	if (arg->bar >= PCI_STD_NUM_BARS || !PAGE_ALIGNED(arg->offset))
		return -EINVAL;
	pdev = liar_function(arg->bdf);
	if (!pdev)
		return -ENODEV;
	length = pci_resource_flags(pdev, arg->bar) & IORESOURCE_MEM ?
		 pci_resource_len(pdev, arg->bar) : 0;
	if (arg->offset < length) {
		arg->out_bar_address = pci_resource_start(pdev, arg->bar) + arg->offset;
		arg->out_bar_length = length - arg->offset;
	}
	pci_dev_put(pdev);
	return arg->out_bar_length ? 0 : -ERANGE;
}

static bool liar_kind_needs_bar(u32 kind)
{
	return kind == RASHPA_LIAR_BAR || kind == RASHPA_LIAR_MIX;
}

static int liar_check(const struct rashpa_liar_export *arg)
{
	if (arg->kind >= RASHPA_LIAR_KINDS || arg->model >= RASHPA_LIAR_MODELS ||
	    !arg->error || arg->error > MAX_ERRNO)
		return -EINVAL;
	if (!PAGE_ALIGNED(arg->length) || arg->length < 2 * PAGE_SIZE ||
	    arg->length > RASHPA_LIAR_LENGTH_MAX)
		return -EINVAL;
	return 0;
}

static struct dma_buf *liar_make(const struct rashpa_liar_export *arg)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;
	struct liar *liar;

	liar = kzalloc(sizeof(*liar), GFP_KERNEL);
	if (!liar)
		return ERR_PTR(-ENOMEM);
	liar->page = alloc_pages(GFP_KERNEL | __GFP_COMP | __GFP_ZERO |
				 (arg->kind == RASHPA_LIAR_LOW ? __GFP_DMA32 : 0),
				 get_order(arg->length));
	if (!liar->page) {
		kfree(liar);
		return ERR_PTR(-ENOMEM);
	}
	liar->model = arg->model;
	liar->kind = arg->kind;
	liar->error = -(int)arg->error;
	liar->length = arg->length;
	liar->address = arg->address;
	liar->bar = arg->out_bar_address;
	liar->bar_length = arg->out_bar_length;
	if (arg->kind == RASHPA_LIAR_COHERENT) {
		struct dev_pagemap *coherent = liar_coherent_make();

		if (IS_ERR(coherent)) {
			liar_free(liar);
			return ERR_CAST(coherent);
		}
		liar->coherent = coherent;
	}
	info.ops = liar->model == RASHPA_LIAR_STATIC ? &liar_static_ops : &liar_ops;
	info.size = liar->length;
	info.flags = O_RDWR;
	info.priv = liar;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		liar_free(liar);
	return dmabuf;
}

static long liar_ioc_export(void __user *user)
{
	struct rashpa_liar_export arg;
	struct dma_buf *dmabuf;
	int err, fd;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	err = liar_check(&arg);
	if (!err)
		err = liar_find_bar(&arg);
	if (err)
		return err;
	if (liar_kind_needs_bar(arg.kind) && arg.length > arg.out_bar_length)
		return -ERANGE;
	dmabuf = liar_make(&arg);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		err = fd;
		goto out_put;
	}
	arg.out_fd = fd;
	if (copy_to_user(user, &arg, sizeof(arg))) {
		err = -EFAULT;
		goto out_fd;
	}
	fd_install(fd, dmabuf->file);
	return 0;

out_fd:
	put_unused_fd(fd);
out_put:
	dma_buf_put(dmabuf);
	return err;
}

static bool liar_can_be(const struct liar *liar, u32 kind)
{
	if (liar_kind_needs_bar(kind))
		return liar->length <= liar->bar_length;
	if (kind == RASHPA_LIAR_COHERENT)
		return liar->coherent;
	return kind < RASHPA_LIAR_LOW;
}

static int liar_change(struct dma_buf *dmabuf, unsigned int cmd, u32 kind)
{
	const bool ends = cmd == RASHPA_LIAR_REVOKE || cmd == RASHPA_LIAR_MOVE;
	struct liar *liar = dmabuf->priv;

	dma_resv_assert_held(dmabuf->resv);
	if (ends && liar->model == RASHPA_LIAR_STATIC)
		return -EINVAL;
	if (cmd == RASHPA_LIAR_ALLOW || cmd == RASHPA_LIAR_MOVE) {
		if (!liar_can_be(liar, kind))
			return -EINVAL;
		liar->kind = kind;
		liar->revoked = false;
	} else if (kind) {
		return -EINVAL;
	}
	if (cmd == RASHPA_LIAR_REVOKE)
		liar->revoked = true;
	if (ends)
		dma_buf_invalidate_mappings(dmabuf);
	return 0;
}

/*
 * Act as a shrinker: until liar_leave(), lockdep treats all locks as taken within an allocation.
 * It must not wait for a reservation lock, as others allocate while they hold one.
 */
static void liar_enter(struct dma_buf *dmabuf, unsigned int cmd)
{
	if (cmd != RASHPA_LIAR_MOVE) {
		dma_resv_lock(dmabuf->resv, NULL);
		return;
	}
	fs_reclaim_acquire(GFP_KERNEL);
	while (!dma_resv_trylock(dmabuf->resv))
		cond_resched();
}

static void liar_leave(struct dma_buf *dmabuf, unsigned int cmd)
{
	dma_resv_unlock(dmabuf->resv);
	if (cmd == RASHPA_LIAR_MOVE)
		fs_reclaim_release(GFP_KERNEL);
}

static long liar_ioc_state(unsigned int cmd, void __user *user)
{
	struct rashpa_liar_state arg;
	struct dma_buf *dmabuf;
	struct liar *liar;
	int err = -EINVAL;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	dmabuf = dma_buf_get(arg.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (!liar_is(dmabuf))
		goto out;
	liar = dmabuf->priv;
	liar_enter(dmabuf, cmd);
	err = liar_change(dmabuf, cmd, arg.kind);
	arg.out_mapped = liar->mapped;
	arg.out_pinned = liar->pinned;
	liar_leave(dmabuf, cmd);
	if (!err && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
out:
	dma_buf_put(dmabuf);
	return err;
}

static long liar_ioc_show(struct liar_file *lf, void __user *user)
{
	struct rashpa_liar_show arg;
	struct dma_buf *dmabuf;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.__reserved)
		return -EINVAL;
	dmabuf = dma_buf_get(arg.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	if (cmpxchg(&lf->shown, NULL, dmabuf)) {
		dma_buf_put(dmabuf);
		return -EBUSY;
	}
	return 0;
}

/* ------------------------------------------------------------- fences --- */

static const char *liar_fence_name(struct dma_fence *fence)
{
	return "rashpa-liar";
}

static const struct dma_fence_ops liar_fence_ops = {
	.get_driver_name = liar_fence_name,
	.get_timeline_name = liar_fence_name,
};

static struct dma_fence *liar_fence_new(void)
{
	struct liar_fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &liar_fence_ops, &fence->lock, dma_fence_context_alloc(1), 1);
	return &fence->base;
}

static int liar_fence_add(struct dma_buf *dmabuf, struct dma_fence *fence,
			  enum dma_resv_usage usage)
{
	int err = dma_resv_reserve_fences(dmabuf->resv, 1);

	if (!err)
		dma_resv_add_fence(dmabuf->resv, fence, usage);
	return err;
}

static void liar_import_ends(struct dma_buf_attachment *attach)
{
	struct liar_file *lf = attach->importer_priv;

	WARN_ON(liar_fence_add(attach->dmabuf, lf->fence, DMA_RESV_USAGE_BOOKKEEP));
}

static const struct dma_buf_attach_ops liar_attach_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = liar_import_ends,
};

static int liar_import(struct liar_file *lf, struct dma_buf *dmabuf, struct device *dev)
{
	struct dma_buf_attachment *attach;
	int err;

	attach = dma_buf_dynamic_attach(dmabuf, dev, &liar_attach_ops, lf);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	dma_resv_lock(dmabuf->resv, NULL);
	lf->sgt = dma_buf_map_attachment(attach, DMA_BIDIRECTIONAL);
	err = PTR_ERR_OR_ZERO(lf->sgt);
	dma_resv_unlock(dmabuf->resv);
	if (err) {
		dma_buf_detach(dmabuf, attach);
		return err;
	}
	get_dma_buf(dmabuf);
	lf->attach = attach;
	return 0;
}

static void liar_import_end(struct liar_file *lf)
{
	struct dma_buf *dmabuf = lf->attach->dmabuf;

	dma_resv_lock(dmabuf->resv, NULL);
	dma_buf_unmap_attachment(lf->attach, lf->sgt, DMA_BIDIRECTIONAL);
	dma_resv_unlock(dmabuf->resv);
	dma_buf_detach(dmabuf, lf->attach);
	dma_buf_put(dmabuf);
	lf->attach = NULL;
}

/* The DMA has stopped, or the memory has arrived. */
static void liar_fence_end(struct liar_file *lf)
{
	dma_fence_signal(lf->fence);
	if (lf->attach)
		liar_import_end(lf);
}

/* The function stays bound meanwhile: its driver sets the DMA mask. */
static int liar_import_for(struct liar_file *lf, struct dma_buf *dmabuf, u32 bdf)
{
	struct pci_dev *pdev = liar_function(bdf);
	int err = -ENODEV;

	if (!pdev)
		return err;
	device_lock(&pdev->dev);
	if (pdev->dev.driver)
		err = liar_import(lf, dmabuf, &pdev->dev);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return err;
}

static int liar_fence_move(struct liar_file *lf, struct dma_buf *dmabuf)
{
	int err;

	dma_resv_lock(dmabuf->resv, NULL);
	err = liar_fence_add(dmabuf, lf->fence, DMA_RESV_USAGE_KERNEL);
	dma_resv_unlock(dmabuf->resv);
	return err;
}

static int liar_fence_begin(struct liar_file *lf, unsigned int cmd,
			    const struct rashpa_liar_fence *arg)
{
	struct dma_buf *dmabuf;
	int err;

	if (lf->fence)
		return -EBUSY;
	dmabuf = dma_buf_get(arg->fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	lf->fence = liar_fence_new();
	if (!lf->fence)
		err = -ENOMEM;
	else if (cmd == RASHPA_LIAR_IMPORT)
		err = liar_import_for(lf, dmabuf, arg->bdf);
	else
		err = liar_fence_move(lf, dmabuf);
	if (err) {
		dma_fence_put(lf->fence);
		lf->fence = NULL;
	}
	dma_buf_put(dmabuf);
	return err;
}

static long liar_ioc_fence(struct liar_file *lf, unsigned int cmd, void __user *user)
{
	struct rashpa_liar_fence arg;
	int err = 0;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.bdf && cmd != RASHPA_LIAR_IMPORT)
		return -EINVAL;
	mutex_lock(&lf->lock);
	if (cmd != RASHPA_LIAR_SIGNAL)
		err = liar_fence_begin(lf, cmd, &arg);
	else if (lf->fence)
		liar_fence_end(lf);
	else
		err = -EINVAL;
	mutex_unlock(&lf->lock);
	return err;
}

static long liar_ioc_bus(void __user *user)
{
	struct resource_entry *window;
	struct rashpa_liar_bus arg;
	struct pci_dev *pdev;
	int err = -ENODEV;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.bar >= PCI_STD_NUM_BARS)
		return -EINVAL;
	pdev = liar_function(arg.bdf);
	if (!pdev)
		return err;
	resource_list_for_each_entry(window, &pci_find_host_bridge(pdev->bus)->windows) {
		if (!resource_contains(window->res, &pdev->resource[arg.bar]))
			continue;
		window->offset = arg.offset;
		pdev->dev.bus_dma_limit = arg.limit;
		err = 0;
	}
	pci_dev_put(pdev);
	return err;
}

static int liar_open(struct inode *inode, struct file *file)
{
	struct liar_file *lf = kzalloc(sizeof(*lf), GFP_KERNEL);

	if (!lf)
		return -ENOMEM;
	mutex_init(&lf->lock);
	file->private_data = lf;
	return 0;
}

static int liar_close(struct inode *inode, struct file *file)
{
	struct liar_file *lf = file->private_data;

	if (lf->fence)
		liar_fence_end(lf);
	dma_fence_put(lf->fence);
	if (lf->shown)
		dma_buf_put(lf->shown);
	kfree(lf);
	return 0;
}

/* As drivers of GPUs do: the kernel checked the mode of this file, not of the dma-buf. */
static int liar_show(struct file *file, struct vm_area_struct *vma)
{
	struct liar_file *lf = file->private_data;
	struct dma_buf *dmabuf = READ_ONCE(lf->shown);

	return dmabuf ? dma_buf_mmap(dmabuf, vma, vma->vm_pgoff) : -ENXIO;
}

static long liar_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (cmd) {
	case RASHPA_LIAR_EXPORT:
		return liar_ioc_export(user);
	case RASHPA_LIAR_REVOKE:
	case RASHPA_LIAR_ALLOW:
	case RASHPA_LIAR_MOVE:
	case RASHPA_LIAR_COUNT:
		return liar_ioc_state(cmd, user);
	case RASHPA_LIAR_SHOW:
		return liar_ioc_show(file->private_data, user);
	case RASHPA_LIAR_FENCE:
	case RASHPA_LIAR_IMPORT:
	case RASHPA_LIAR_SIGNAL:
		return liar_ioc_fence(file->private_data, cmd, user);
	case RASHPA_LIAR_BUS:
		return liar_ioc_bus(user);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations liar_fops = {
	.owner = THIS_MODULE,
	.open = liar_open,
	.release = liar_close,
	.mmap = liar_show,
	.unlocked_ioctl = liar_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice liar_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rashpa-liar",
	.fops = &liar_fops,
	.mode = 0600,
};
module_misc_device(liar_misc);

MODULE_DESCRIPTION("Exporter of dma-bufs with false tables, to test importers");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
/* written out, because the macro takes a symbol on older kernels, a string on newer ones */
MODULE_INFO(import_ns, "DMA_BUF");
