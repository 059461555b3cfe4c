// SPDX-License-Identifier: GPL-2.0-only
/*
 * Importers of dma-bufs that act as network cards: one that can be stopped at any time, one that
 * cannot, one without move notification. They do no DMA. Only for tests.
 */
#include <linux/capability.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rashpa_dmabuf.h"
#include "rashpa_nic.h"

/**
 * struct nic - one open file, with at most one memory
 * @lock: protects @attach; outside of the reservation lock
 * @attach: the memory, or NULL
 * @how: enum rashpa_nic_how
 * @sgt: its mapping, or NULL (reservation lock)
 * @pinned: the memory is pinned (reservation lock)
 * @told: number of mappings that the exporter ended (reservation lock)
 */
struct nic {
	struct mutex lock;	/* attach */
	struct dma_buf_attachment *attach;
	u32 how;
	struct sg_table *sgt;
	bool pinned;
	u32 told;
};

static void nic_unmap(struct nic *nic, struct dma_buf_attachment *attach)
{
	dma_resv_assert_held(attach->dmabuf->resv);
	if (nic->sgt)
		dma_buf_unmap_attachment(attach, nic->sgt, DMA_BIDIRECTIONAL);
	nic->sgt = NULL;
	if (nic->pinned)
		dma_buf_unpin(attach);
	nic->pinned = false;
}

static void nic_told(struct dma_buf_attachment *attach)
{
	struct nic *nic = attach->importer_priv;

	nic->told++;
	if (nic->how != RASHPA_NIC_LATE)
		nic_unmap(nic, attach);
}

static const struct dma_buf_attach_ops nic_revocable_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = nic_told,
};

/* Older kernels require a callback of dynamic importers; RDMA's does nothing. */
#ifdef RASHPA_HAVE_DMABUF_INVALIDATE
#define nic_deaf	NULL
#else
static void nic_deaf(struct dma_buf_attachment *attach)
{
	WARN(1, "memory that a card has pinned is taken away from it\n");
}
#endif

static const struct dma_buf_attach_ops nic_pinned_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = nic_deaf,
};

static const struct dma_buf_attach_ops * const nic_ops[] = {
	[RASHPA_NIC_REVOCABLE] = &nic_revocable_ops,
	[RASHPA_NIC_PINNED] = &nic_pinned_ops,
	[RASHPA_NIC_REVOKED_ONCE] = &nic_revocable_ops,
	[RASHPA_NIC_STATIC] = NULL,
	[RASHPA_NIC_LATE] = &nic_revocable_ops,
};

static bool nic_pins(const struct nic *nic)
{
	return nic->how == RASHPA_NIC_PINNED || nic->how == RASHPA_NIC_REVOKED_ONCE;
}

static int nic_map(struct nic *nic, struct dma_buf_attachment *attach)
{
	struct sg_table *sgt;
	int err;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (nic->sgt)
		return -EBUSY;
	if (nic_pins(nic)) {
		err = dma_buf_pin(attach);
		if (err)
			return err;
		nic->pinned = true;
	}
	sgt = dma_buf_map_attachment(attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt)) {
		nic_unmap(nic, attach);
		return PTR_ERR(sgt);
	}
	nic->sgt = sgt;
	return 0;
}

static int nic_attach(struct nic *nic, struct dma_buf *dmabuf, struct device *dev)
{
	struct dma_buf_attachment *attach;
	int err;

	attach = dma_buf_dynamic_attach(dmabuf, dev, nic_ops[nic->how], nic);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	dma_resv_lock(dmabuf->resv, NULL);
	err = nic_map(nic, attach);
	dma_resv_unlock(dmabuf->resv);
	if (err) {
		dma_buf_detach(dmabuf, attach);
		return err;
	}
	get_dma_buf(dmabuf);
	nic->attach = attach;
	return 0;
}

/* The function stays bound meanwhile: its driver sets the DMA mask. */
static int nic_attach_for(struct nic *nic, struct dma_buf *dmabuf, u32 bdf)
{
	struct pci_dev *pdev = pci_get_domain_bus_and_slot(bdf >> 16, (bdf >> 8) & 0xff,
							   bdf & 0xff);
	int err = -ENODEV;

	if (!pdev)
		return err;
	device_lock(&pdev->dev);
	if (pdev->dev.driver)
		err = nic_attach(nic, dmabuf, &pdev->dev);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return err;
}

static long nic_ioc_import(struct nic *nic, void __user *user)
{
	struct rashpa_nic_import arg;
	struct dma_buf *dmabuf;
	int err;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	if (arg.how >= RASHPA_NIC_HOWS)
		return -EINVAL;
	if (nic->attach)
		return -EBUSY;
	dmabuf = dma_buf_get(arg.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	nic->how = arg.how;
	err = nic_attach_for(nic, dmabuf, arg.bdf);
	dma_buf_put(dmabuf);
	arg.out_deaf = !nic_pinned_ops.invalidate_mappings;
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : err;
}

static long nic_ioc_state(struct nic *nic, unsigned int cmd, void __user *user)
{
	struct rashpa_nic_state arg = {};
	struct dma_resv *resv;
	int err = 0;

	if (!nic->attach)
		return -EINVAL;
	resv = nic->attach->dmabuf->resv;
	dma_resv_lock(resv, NULL);
	if (cmd == RASHPA_NIC_AGAIN)
		err = nic_map(nic, nic->attach);
	else if (cmd == RASHPA_NIC_LET_GO)
		nic_unmap(nic, nic->attach);
	arg.out_told = nic->told;
	arg.out_mapped = !!nic->sgt;
	if (nic->sgt)
		arg.out_address = sg_dma_address(nic->sgt->sgl);
	dma_resv_unlock(resv);
	if (!err && copy_to_user(user, &arg, sizeof(arg)))
		err = -EFAULT;
	return err;
}

static long nic_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	struct nic *nic = file->private_data;
	long err = -ENOTTY;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	mutex_lock(&nic->lock);
	if (cmd == RASHPA_NIC_IMPORT)
		err = nic_ioc_import(nic, user);
	else if (cmd == RASHPA_NIC_STATE || cmd == RASHPA_NIC_AGAIN ||
		 cmd == RASHPA_NIC_LET_GO)
		err = nic_ioc_state(nic, cmd, user);
	mutex_unlock(&nic->lock);
	return err;
}

static int nic_open(struct inode *inode, struct file *file)
{
	struct nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);

	if (!nic)
		return -ENOMEM;
	mutex_init(&nic->lock);
	file->private_data = nic;
	return 0;
}

static int nic_close(struct inode *inode, struct file *file)
{
	struct nic *nic = file->private_data;
	struct dma_buf *dmabuf;

	if (nic->attach) {
		dmabuf = nic->attach->dmabuf;
		dma_resv_lock(dmabuf->resv, NULL);
		nic_unmap(nic, nic->attach);
		dma_resv_unlock(dmabuf->resv);
		dma_buf_detach(dmabuf, nic->attach);
		dma_buf_put(dmabuf);
	}
	kfree(nic);
	return 0;
}

static const struct file_operations nic_fops = {
	.owner = THIS_MODULE,
	.open = nic_open,
	.release = nic_close,
	.unlocked_ioctl = nic_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice nic_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rashpa-nic",
	.fops = &nic_fops,
	.mode = 0600,
};
module_misc_device(nic_misc);

MODULE_DESCRIPTION("Importers of dma-bufs that act as network cards, to test exporters");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
/* written out, because the macro takes a symbol on older kernels, a string on newer ones */
MODULE_INFO(import_ns, "DMA_BUF");
