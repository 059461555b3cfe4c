// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: host memory (buffers, pinned memory) as dma-bufs.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/memory.h"

/**
 * struct rashpa_exported - host memory as one dma-buf
 * @extents: the memory, in order
 * @n_extents: their number
 * @buffer: whose it is, one reference; or NULL
 * @lease: of a named buffer, one reference; or NULL
 * @pinned: whose it is, owned; or NULL
 * @importers: attachments; of a buffer those of all its dma-bufs
 * @own_importers: what @importers points to without a buffer
 */
struct rashpa_exported {
	const struct rashpa_extent *extents;
	u32 n_extents;
	struct rashpa_buffer *buffer;
	struct rashpa_lease *lease;
	struct rashpa_pinned *pinned;
	struct rashpa_importers *importers;
	struct rashpa_importers own_importers;
};

/**
 * struct rashpa_attachment - an importer of it
 * @entry: in rashpa_importers.attachments
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

/**
 * rashpa_importers_init() - nobody yet
 * @importers: zeroed
 */
void rashpa_importers_init(struct rashpa_importers *importers)
{
	mutex_init(&importers->lock);
	INIT_LIST_HEAD(&importers->attachments);
	rashpa_origin_init(&importers->words.origin);
	rashpa_origin_init(&importers->damage);
	mutex_init(&importers->words.lock);
}

static int rashpa_export_attach(struct dma_buf *dmabuf,
				struct dma_buf_attachment *attach)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = export->importers;
	struct rashpa_attachment *a;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	a->dev = attach->dev;
	attach->priv = a;
	mutex_lock(&importers->lock);
	list_add(&a->entry, &importers->attachments);
	mutex_unlock(&importers->lock);
	atomic_inc(&importers->count);
	return 0;
}

static void rashpa_export_detach(struct dma_buf *dmabuf,
				 struct dma_buf_attachment *attach)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = export->importers;
	struct rashpa_attachment *a = attach->priv;

	atomic_dec(&importers->count);
	mutex_lock(&importers->lock);
	list_del(&a->entry);
	mutex_unlock(&importers->lock);
	kfree(a);
}

/*
 * One entry is limited to 2 GiB: sg lengths are 32 bits wide, and an IOMMU refuses
 * pieces near 4 GiB. And to what the importer says that it can take.
 */
static u64 rashpa_export_entry_size(struct device *dev)
{
	return clamp_t(u64, dma_get_max_seg_size(dev) & PAGE_MASK, PAGE_SIZE, SZ_2G);
}

static u64 rashpa_export_entries(struct rashpa_exported *export, u64 most)
{
	u64 entries = 0;
	u32 i;

	for (i = 0; i < export->n_extents; i++) {
		entries += DIV_ROUND_UP_ULL((u64)export->extents[i].count << PAGE_SHIFT,
					    most);
		cond_resched();
	}
	return entries;
}

static struct sg_table *rashpa_export_table(struct rashpa_exported *export,
					    struct device *dev)
{
	const u64 most = rashpa_export_entry_size(dev);
	const u64 entries = rashpa_export_entries(export, most);
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
	for (i = 0; i < export->n_extents; i++) {
		u64 left = (u64)export->extents[i].count << PAGE_SHIFT;
		struct page *page = export->extents[i].first;

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
	mutex_lock(&export->importers->lock);
	a->sgt = sgt;
	a->dir = dir;
	mutex_unlock(&export->importers->lock);
	return sgt;
}

static void rashpa_export_unmap(struct dma_buf_attachment *attach,
				struct sg_table *sgt,
				enum dma_data_direction dir)
{
	struct rashpa_exported *export = attach->dmabuf->priv;
	struct rashpa_attachment *a = attach->priv;

	mutex_lock(&export->importers->lock);
	a->sgt = NULL;
	mutex_unlock(&export->importers->lock);
	dma_unmap_sgtable(attach->dev, sgt, dir, 0);
	sg_free_table(sgt);
	kfree(sgt);
}

static int rashpa_export_begin_cpu(struct dma_buf *dmabuf,
				   enum dma_data_direction dir)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = export->importers;
	struct rashpa_attachment *a;

	mutex_lock(&importers->lock);
	list_for_each_entry(a, &importers->attachments, entry)
		if (a->sgt && a->dir != DMA_TO_DEVICE)
			dma_sync_sgtable_for_cpu(a->dev, a->sgt, a->dir);
	mutex_unlock(&importers->lock);
	return 0;
}

static int rashpa_export_end_cpu(struct dma_buf *dmabuf,
				 enum dma_data_direction dir)
{
	struct rashpa_exported *export = dmabuf->priv;
	struct rashpa_importers *importers = export->importers;
	struct rashpa_attachment *a;

	mutex_lock(&importers->lock);
	list_for_each_entry(a, &importers->attachments, entry)
		if (a->sgt)
			dma_sync_sgtable_for_device(a->dev, a->sgt, a->dir);
	mutex_unlock(&importers->lock);
	return 0;
}

static int rashpa_export_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct rashpa_exported *export = dmabuf->priv;

	/* pinned memory is mapped already where it is; anonymous pages cannot be twice */
	if (!export->buffer)
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
	return rashpa_buffer_mmap(export->buffer, vma);
}

static void rashpa_export_release(struct dma_buf *dmabuf)
{
	struct rashpa_exported *export = dmabuf->priv;

	if (export->pinned)
		rashpa_pinned_free(export->pinned);
	if (export->buffer)
		rashpa_buffer_put(export->buffer);
	if (export->lease)
		rashpa_lease_put(export->lease);
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

static struct rashpa_exported *rashpa_export_new(void)
{
	struct rashpa_exported *export = kzalloc(sizeof(*export), GFP_KERNEL_ACCOUNT);

	if (!export)
		return NULL;
	rashpa_importers_init(&export->own_importers);
	export->importers = &export->own_importers;
	return export;
}

static struct dma_buf *rashpa_export_dmabuf(struct rashpa_exported *export, u64 size,
					    int flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	info.ops = &rashpa_export_ops;
	info.size = size;
	info.flags = flags;
	info.priv = export;
	return dma_buf_export(&info);
}

/**
 * rashpa_export_buffer() - a new dma-buf for a buffer
 * @buffer: the buffer; the dma-buf takes its own reference
 * @lease: of a named buffer, or NULL; likewise
 * @flags: O_RDWR or O_RDONLY
 *
 * Return: the dma-buf or an error pointer.
 */
struct dma_buf *rashpa_export_buffer(struct rashpa_buffer *buffer,
				     struct rashpa_lease *lease, int flags)
{
	struct rashpa_exported *export = rashpa_export_new();
	struct dma_buf *dmabuf;

	if (!export)
		return ERR_PTR(-ENOMEM);
	export->extents = &buffer->extent;
	export->n_extents = 1;
	export->buffer = buffer;
	export->lease = lease;
	export->importers = &buffer->importers;
	dmabuf = rashpa_export_dmabuf(export, buffer->length, flags);
	if (IS_ERR(dmabuf)) {
		kfree(export);
		return dmabuf;
	}
	kref_get(&buffer->ref);
	if (lease)
		rashpa_lease_hold(lease);
	/* the first one is made while nobody else has the buffer */
	if (!buffer->inode) {
		buffer->inode = file_inode(dmabuf->file);
		ihold(buffer->inode);
		rashpa_damage_watch(buffer);
	}
	/* one address space has all CPU mappings of a buffer, through whatever file */
	dmabuf->file->f_mapping = buffer->inode->i_mapping;
	return dmabuf;
}

/**
 * rashpa_export_pinned() - a dma-buf for pinned memory
 * @pinned: belongs to the dma-buf if this succeeds
 * @length: bytes
 *
 * Return: the dma-buf or an error pointer.
 */
struct dma_buf *rashpa_export_pinned(struct rashpa_pinned *pinned, u64 length)
{
	struct rashpa_exported *export = rashpa_export_new();
	struct dma_buf *dmabuf;

	if (!export)
		return ERR_PTR(-ENOMEM);
	export->extents = rashpa_pinned_extents(pinned, &export->n_extents);
	export->pinned = pinned;
	dmabuf = rashpa_export_dmabuf(export, length, O_RDWR);
	if (IS_ERR(dmabuf))
		kfree(export);
	return dmabuf;
}

/**
 * rashpa_dmabuf_extents() - the host memory behind a dma-buf
 * @dmabuf: any dma-buf
 * @count: number of extents
 *
 * Return: its contiguous pieces in order, or NULL if it is not host memory of ours.
 */
const struct rashpa_extent *rashpa_dmabuf_extents(struct dma_buf *dmabuf, u32 *count)
{
	struct rashpa_exported *export = dmabuf->priv;

	if (dmabuf->ops != &rashpa_export_ops)
		return NULL;
	*count = export->n_extents;
	return export->extents;
}

/**
 * rashpa_dmabuf_words() - who watches the words of a memory
 * @dmabuf: any dma-buf
 *
 * Return: the same for all dma-bufs of the memory, or NULL if it is not host memory of ours.
 */
struct rashpa_words *rashpa_dmabuf_words(struct dma_buf *dmabuf)
{
	struct rashpa_exported *export = dmabuf->priv;

	return dmabuf->ops == &rashpa_export_ops ? &export->importers->words : NULL;
}

/**
 * rashpa_dmabuf_buffer() - the buffer behind a dma-buf
 * @dmabuf: any dma-buf
 *
 * Return: the buffer, which @dmabuf keeps, or NULL if it is none.
 */
struct rashpa_buffer *rashpa_dmabuf_buffer(struct dma_buf *dmabuf)
{
	struct rashpa_exported *export = dmabuf->priv;

	return dmabuf->ops == &rashpa_export_ops ? export->buffer : NULL;
}

/**
 * rashpa_export_info() - what is it
 * @dmabuf: any dma-buf
 * @info: cleared; filled in
 *
 * Return: false if it is not host memory of ours.
 */
bool rashpa_export_info(struct dma_buf *dmabuf, struct rashpa_info *info)
{
	struct rashpa_exported *export = dmabuf->priv;

	if (dmabuf->ops != &rashpa_export_ops)
		return false;
	if (export->buffer) {
		rashpa_buffer_info(export->buffer, info);
		return true;
	}
	info->out_kind = RASHPA_KIND_PINNED;
	info->out_length = dmabuf->size;
	info->out_cache = RASHPA_CACHE_CACHED;
	info->out_node = page_to_nid(export->extents->first);
	info->out_segments = export->n_extents;
	info->out_importers = atomic_read(&export->importers->count);
	return true;
}
