// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: buffers as dma-bufs.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "rashpa.h"
#include "rashpa_compat.h"

/**
 * struct rashpa_export - a buffer as one dma-buf
 * @buffer: one reference
 * @lock: protects @attachments and what is in them
 * @attachments: that have the buffer mapped
 */
struct rashpa_export {
	struct rashpa_buffer *buffer;
	struct mutex lock;		/* attachments */
	struct list_head attachments;
};

/**
 * struct rashpa_attachment - an importer of it
 * @entry: in rashpa_export.attachments
 * @dev: importer
 * @sgt: what it has mapped, or NULL
 * @dir: direction
 */
struct rashpa_attachment {
	struct list_head entry;
	struct device *dev;
	struct sg_table *sgt;
	enum dma_data_direction dir;
};

static int rashpa_export_attach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attach)
{
	struct rashpa_export *export = dmabuf->priv;
	struct rashpa_attachment *a;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->dev = attach->dev;
	attach->priv = a;
	mutex_lock(&export->lock);
	list_add(&a->entry, &export->attachments);
	mutex_unlock(&export->lock);
	atomic_inc(&export->buffer->importers);
	return 0;
}

static void rashpa_export_detach(struct dma_buf *dmabuf,
				 struct dma_buf_attachment *attach)
{
	struct rashpa_export *export = dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;

	atomic_dec(&export->buffer->importers);
	mutex_lock(&export->lock);
	list_del(&a->entry);
	mutex_unlock(&export->lock);
	kfree(a);
}

/*
 * One entry is limited to 2 GiB: sg lengths are 32 bits wide, and an IOMMU refuses
 * pieces near 4 GiB. And to what the importer says that it can take.
 */
static struct sg_table *rashpa_export_table(struct rashpa_buffer *buffer,
					    struct device *dev)
{
	const u64 most = clamp_t(u64, dma_get_max_seg_size(dev) & PAGE_MASK,
				 PAGE_SIZE, SZ_2G);
	const u64 entries = DIV_ROUND_UP_ULL(buffer->length, most);
	struct scatterlist *sg;
	struct sg_table *sgt;
	u64 offset = 0;
	int err, i;

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
	for_each_sgtable_sg(sgt, sg, i) {
		u64 length = min_t(u64, most, buffer->length - offset);

		sg_set_page(sg, buffer->pages.first + (offset >> PAGE_SHIFT),
			    length, 0);
		offset += length;
	}
	return sgt;
}

/*
 * A buffer never moves. These make it a dynamic exporter all the same: for others older
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
	struct rashpa_export *export = attach->dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;
	struct sg_table *sgt;
	int err;

	sgt = rashpa_export_table(export->buffer, attach->dev);
	if (IS_ERR(sgt))
		return sgt;
	err = dma_map_sgtable(attach->dev, sgt, dir, 0);
	if (err) {
		sg_free_table(sgt);
		kfree(sgt);
		return ERR_PTR(err);
	}
	mutex_lock(&export->lock);
	a->sgt = sgt;
	a->dir = dir;
	mutex_unlock(&export->lock);
	return sgt;
}

static void rashpa_export_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct rashpa_export *export = attach->dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;

	mutex_lock(&export->lock);
	a->sgt = NULL;
	mutex_unlock(&export->lock);
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int rashpa_export_begin_cpu(struct dma_buf *dmabuf,
				   enum dma_data_direction dir)
{
	struct rashpa_export *export = dmabuf->priv;
	struct rashpa_attachment *a;

	mutex_lock(&export->lock);
	list_for_each_entry(a, &export->attachments, entry)
		if (a->sgt && a->dir != DMA_TO_DEVICE)
			dma_sync_sgtable_for_cpu(a->dev, a->sgt, a->dir);
	mutex_unlock(&export->lock);
	return 0;
}

static int rashpa_export_end_cpu(struct dma_buf *dmabuf,
				 enum dma_data_direction dir)
{
	struct rashpa_export *export = dmabuf->priv;
	struct rashpa_attachment *a;

	mutex_lock(&export->lock);
	list_for_each_entry(a, &export->attachments, entry)
		if (a->sgt)
			dma_sync_sgtable_for_device(a->dev, a->sgt, a->dir);
	mutex_unlock(&export->lock);
	return 0;
}

static int rashpa_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct rashpa_export *export = dmabuf->priv;

	return rashpa_buffer_mmap(export->buffer, vma);
}

static void rashpa_export_release(struct dma_buf *dmabuf)
{
	struct rashpa_export *export = dmabuf->priv;

	rashpa_buffer_put(export->buffer);
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

/**
 * rashpa_export_buffer() - a new dma-buf for a buffer
 * @buffer: the buffer; the dma-buf takes its own reference
 * @flags: O_RDWR or O_RDONLY
 *
 * Return: the dma-buf or an error pointer.
 */
struct dma_buf *rashpa_export_buffer(struct rashpa_buffer *buffer, int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct rashpa_export *export;
	struct dma_buf *dmabuf;

	export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);
	if (!export)
		return ERR_PTR(-ENOMEM);
	mutex_init(&export->lock);
	INIT_LIST_HEAD(&export->attachments);
	export->buffer = buffer;

	info.ops = &rashpa_export_ops;
	info.size = buffer->length;
	info.flags = flags;
	info.priv = export;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		kfree(export);
		return dmabuf;
	}
	kref_get(&buffer->ref);
	return dmabuf;
}

/**
 * rashpa_dmabuf_buffer() - the buffer behind a dma-buf
 * @dmabuf: any dma-buf
 *
 * Return: the buffer, or NULL if it is not one of ours.
 */
struct rashpa_buffer *rashpa_dmabuf_buffer(struct dma_buf *dmabuf)
{
	struct rashpa_export *export = dmabuf->priv;

	return dmabuf->ops == &rashpa_export_ops ? export->buffer : NULL;
}
