// SPDX-License-Identifier: GPL-2.0-only
/*
 * The yardstick for maps: attach, map, unmap and detach a dma-buf for a PCI function as
 * any importer would, and measure nothing else. Also sends the interrupt of a function, so that
 * its drivers can be compared without the time of a board. Only for measurements.
 */
#include <linux/capability.h>
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "rashpa_bare.h"

static const enum dma_data_direction bare_directions[] = {
	DMA_BIDIRECTIONAL, DMA_FROM_DEVICE, DMA_TO_DEVICE,
};

/*
 * The reservation lock is held around mapping and unmapping: newer kernels require that of every
 * importer, older ones only with dynamic exporters, and buffers are dynamic.
 */
static int bare_once(struct rashpa_bare *bare, struct dma_buf *dmabuf, struct device *dev)
{
	const enum dma_data_direction dir = bare_directions[bare->direction];
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	u64 start, mapped;
	int err = 0;

	start = ktime_get_ns();
	attach = dma_buf_attach(dmabuf, dev);
	if (IS_ERR(attach))
		return PTR_ERR(attach);
	dma_resv_lock(dmabuf->resv, NULL);
	sgt = dma_buf_map_attachment(attach, dir);
	dma_resv_unlock(dmabuf->resv);
	mapped = ktime_get_ns();
	if (IS_ERR(sgt)) {
		err = PTR_ERR(sgt);
	} else {
		bare->out_segments = sgt->nents;
		dma_resv_lock(dmabuf->resv, NULL);
		dma_buf_unmap_attachment(attach, sgt, dir);
		dma_resv_unlock(dmabuf->resv);
	}
	dma_buf_detach(dmabuf, attach);
	bare->out_map_ns += mapped - start;
	bare->out_unmap_ns += ktime_get_ns() - mapped;
	return err;
}

static int bare_repeat(struct rashpa_bare *bare, struct dma_buf *dmabuf, struct device *dev)
{
	u32 i;
	int err;

	for (i = 0; i < bare->repeat; i++) {
		if (signal_pending(current))
			return -EINTR;
		err = bare_once(bare, dmabuf, dev);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/* The device lock keeps the driver bound: only a driver sets the DMA mask. */
static int bare_for_function(struct rashpa_bare *bare, struct dma_buf *dmabuf)
{
	struct pci_dev *pdev;
	int err = -ENODEV;

	pdev = pci_get_domain_bus_and_slot(bare->bdf >> 16, (bare->bdf >> 8) & 0xff,
					   bare->bdf & 0xff);
	if (!pdev)
		return -ENODEV;
	device_lock(&pdev->dev);
	if (pdev->dev.driver)
		err = bare_repeat(bare, dmabuf, &pdev->dev);
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return err;
}

static long bare_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct rashpa_bare __user *user = (void __user *)arg;
	struct rashpa_bare bare;
	struct dma_buf *dmabuf;
	int err;

	if (cmd != RASHPA_BARE_MAP && cmd != RASHPA_BARE_FIRE)
		return -ENOTTY;
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (cmd == RASHPA_BARE_FIRE)
		return arg ? irq_inject_interrupt(arg) : 0;
	if (copy_from_user(&bare, user, sizeof(bare)))
		return -EFAULT;
	if (bare.direction >= ARRAY_SIZE(bare_directions) || bare.__reserved ||
	    !bare.repeat || bare.repeat > RASHPA_BARE_REPEAT_MAX)
		return -EINVAL;
	bare.out_map_ns = 0;
	bare.out_unmap_ns = 0;
	bare.out_segments = 0;

	dmabuf = dma_buf_get(bare.fd);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	err = bare_for_function(&bare, dmabuf);
	dma_buf_put(dmabuf);
	if (err)
		return err;
	return copy_to_user(user, &bare, sizeof(bare)) ? -EFAULT : 0;
}

static const struct file_operations bare_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = bare_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice bare_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rashpa-bare",
	.fops = &bare_fops,
	.mode = 0600,
};
module_misc_device(bare_misc);

MODULE_DESCRIPTION("Measures the mapping of a dma-buf without a driver around it");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
/* written out, because the macro takes a symbol on older kernels, a string on newer ones */
MODULE_INFO(import_ns, "DMA_BUF");
