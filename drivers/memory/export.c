// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: host memory (buffers, pinned memory) as dma-bufs.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/memory.h"

/* One dma-buf of a memory. */
struct rashpa_exported {
	struct rashpa_memory *memory;
	struct kref *ref;		/* counter of the object that keeps @memory */
	void (*end)(struct kref *ref);
};

/* An importer of a dma-buf. */
struct rashpa_attachment {
	struct list_head entry;		/* in rashpa_importers.attachments */
	struct device *dev;
	struct sg_table *sgt;		/* its mapping, or NULL */
	enum dma_data_direction dir;
};

/* @memory is zeroed. */
void rashpa_memory_setup(struct rashpa_memory *memory, const struct rashpa_memory_ops *ops)
{
	struct rashpa_importers *importers = &memory->importers;

	memory->ops = ops;
	mutex_init(&importers->lock);
	INIT_LIST_HEAD(&importers->attachments);
	rashpa_origin_init(&importers->words.origin);
	mutex_init(&importers->words.lock);
}

/* Has one of @count pages from page @first on a memory error? */
bool rashpa_memory_damaged(const struct rashpa_memory *memory, unsigned long first,
			   unsigned long count)
{
	unsigned long n;
	u32 i;

	for (i = 0; i < memory->n_extents && count; i++) {
		const struct rashpa_extent *e = &memory->extents[i];

		n = min(e->count - min(e->count, first), count);
		if (n && rashpa_pages_damaged(e->first + first, n))
			return true;
		first -= min(e->count, first);
		count -= n;
	}
	return false;
}

/*
 * May a device be given a part of a memory? @offset and @length are multiples of the page size.
 * Return: 0, also without @memory, which is memory of another driver; -EHWPOISON: a page has a
 * memory error.
 */
int rashpa_memory_check(struct rashpa_call *call, const struct rashpa_memory *memory, u64 offset,
			u64 length)
{
	if (!memory || !rashpa_memory_damaged(memory, offset >> PAGE_SHIFT, length >> PAGE_SHIFT))
		return 0;
	return rashpa_fail(call, -EHWPOISON,
			   "a page of the memory has a memory error: map the parts around it, or make another buffer");
}

static int rashpa_export_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = &export->memory->importers;
	struct rashpa_attachment *a;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->dev = attach->dev;
	attach->priv = a;
	guard(mutex)(&importers->lock);
	list_add(&a->entry, &importers->attachments);
	atomic_inc(&importers->count);
	return 0;
}

static void rashpa_export_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = &export->memory->importers;
	struct rashpa_attachment *a = attach->priv;

	guard(mutex)(&importers->lock);
	atomic_dec(&importers->count);
	list_del(&a->entry);
	kfree(a);
}

static u64 rashpa_export_entries(const struct rashpa_memory *memory, u64 most)
{
	u64 entries = 0;
	u32 i;

	for (i = 0; i < memory->n_extents; i++) {
		entries += DIV_ROUND_UP_ULL((u64)memory->extents[i].count << PAGE_SHIFT, most);
		cond_resched();
	}
	return entries;
}

static struct sg_table *rashpa_export_table(struct rashpa_exported *export, struct device *dev)
{
	/*
	 * One entry is limited to 2 GiB: sg lengths are 32 bits wide, and an IOMMU refuses
	 * pieces near 4 GiB. And to what the importer says that it can take.
	 */
	const u64 most = clamp_t(u64, dma_get_max_seg_size(dev) & PAGE_MASK, PAGE_SIZE, SZ_2G);
	const u64 entries = rashpa_export_entries(export->memory, most);
	struct scatterlist *sg;
	struct sg_table *sgt;
	u32 i;
	int err;

	if (entries > INT_MAX)
		return ERR_PTR(-E2BIG);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	err = sg_alloc_table(sgt, entries, GFP_KERNEL);
	if (err) {
		kfree(sgt);
		return ERR_PTR(err);
	}
	sg = sgt->sgl;
	for (i = 0; i < export->memory->n_extents; i++) {
		u64 left = (u64)export->memory->extents[i].count << PAGE_SHIFT;
		struct page *page = export->memory->extents[i].first;

		while (left) {
			u64 length = min(most, left);

			sg_set_page(sg, page, length, 0);
			sg = sg_next(sg);
			page += length >> PAGE_SHIFT;
			left -= length;
		}
		cond_resched();
	}
	return sgt;
}

/*
 * This memory never moves. These make it a dynamic exporter all the same: for others older
 * kernels map once, at attach, in both directions, whatever direction is asked for.
 */
static int rashpa_export_pin(struct dma_buf_attachment *attach)
{
	return 0;
}

static void rashpa_export_unpin(struct dma_buf_attachment *attach)
{
}

static struct sg_table *rashpa_export_map(struct dma_buf_attachment *attach,
					  enum dma_data_direction dir)
{
	struct rashpa_exported *export = attach->dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;
	struct sg_table *sgt;
	int err;

	sgt = rashpa_export_table(export, attach->dev);
	if (IS_ERR(sgt))
		return sgt;
	err = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (err) {
		sg_free_table(sgt);
		kfree(sgt);
		return ERR_PTR(err);
	}
	guard(mutex)(&export->memory->importers.lock);
	a->sgt = sgt;
	a->dir = dir;
	return sgt;
}

static void rashpa_export_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct rashpa_exported *export = attach->dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;

	scoped_guard(mutex, &export->memory->importers.lock)
		a->sgt = NULL;
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int rashpa_export_sync(struct dma_buf *dmabuf, bool for_cpu)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = &export->memory->importers;
	struct rashpa_attachment *a;

	guard(mutex)(&importers->lock);
	list_for_each_entry(a, &importers->attachments, entry) {
		if (a->sgt && !for_cpu)
			dma_sync_sgtable_for_device(a->dev, a->sgt, a->dir);
		else if (a->sgt && a->dir != DMA_TO_DEVICE)
			dma_sync_sgtable_for_cpu(a->dev, a->sgt, a->dir);
	}
	return 0;
}

static int rashpa_export_begin_cpu(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	return rashpa_export_sync(dmabuf, true);
}

static int rashpa_export_end_cpu(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	return rashpa_export_sync(dmabuf, false);
}

static int rashpa_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct rashpa_exported *export = dmabuf->priv;

	if (!export->memory->ops->mmap)
		return -EOPNOTSUPP;
	/*
	 * The kernel has looked at the mode of the file that is mapped. That is another one
	 * where a driver that imported us maps its own object.
	 */
	if (!(dmabuf->file->f_mode & FMODE_WRITE)) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	return export->memory->ops->mmap(export->memory, vma);
}

static void rashpa_export_release(struct dma_buf *dmabuf)
{
	struct rashpa_exported *export = dmabuf->priv;

	kref_put(export->ref, export->end);
	kfree(export);
}

static const struct dma_buf_ops rashpa_export_ops = {
	.attach = rashpa_export_attach,
	.detach = rashpa_export_detach,
	.pin = rashpa_export_pin,
	.unpin = rashpa_export_unpin,
	.map_dma_buf = rashpa_export_map,
	.unmap_dma_buf = rashpa_export_unmap,
	.begin_cpu_access = rashpa_export_begin_cpu,
	.end_cpu_access = rashpa_export_end_cpu,
	.mmap = rashpa_export_mmap,
	.release = rashpa_export_release,
};

/*
 * A new dma-buf, with @flags O_RDWR or O_RDONLY, becomes the new file of @call. It takes a
 * reference to @ref, the counter of the object that keeps @memory; @end is called with the last
 * one.
 */
int rashpa_export(struct rashpa_call *call, struct rashpa_memory *memory, struct kref *ref,
		  void (*end)(struct kref *ref), int flags)
{
	struct rashpa_exported *export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;

	if (!export)
		return -ENOMEM;
	export->memory = memory;
	export->ref = ref;
	export->end = end;
	info.ops = &rashpa_export_ops;
	info.size = memory->length;
	info.flags = flags;
	info.priv = export;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(export);
		return PTR_ERR(dmabuf);
	}
	kref_get(ref);
	call->new_file = dmabuf->file;
	return 0;
}

/* The memory behind any dma-buf, which keeps it; NULL if it is not host memory of this driver. */
struct rashpa_memory *rashpa_dmabuf_memory(struct dma_buf *dmabuf)
{
	struct rashpa_exported *export = dmabuf->priv;

	return dmabuf->ops == &rashpa_export_ops ? export->memory : NULL;
}

/* @info is cleared. */
void rashpa_memory_info(struct rashpa_memory *memory, struct rashpa_info *info)
{
	info->out_length = memory->length;
	info->out_node = page_to_nid(memory->extents->first);
	info->out_segments = memory->n_extents;
	info->out_importers = atomic_read(&memory->importers.count);
	memory->ops->info(memory, info);
}

/* Likewise, if @dmabuf is host memory of this driver. Return whether it is. */
bool rashpa_export_info(struct dma_buf *dmabuf, struct rashpa_info *info)
{
	struct rashpa_memory *memory = rashpa_dmabuf_memory(dmabuf);

	if (memory)
		rashpa_memory_info(memory, info);
	return memory;
}
