// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: PCI functions: bind, removal, nodes and ioctls.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "core/node.h"
#include "function/map.h"

static char *ids;
module_param(ids, charp, 0444);
MODULE_PARM_DESC(ids, "functions to bind at load: vendor:device[,vendor:device...] in hexadecimal");

static DEFINE_IDA(rashpa_ids);

/* -------------------------------------------------------------- node ---- */

static int rashpa_fpga_open(struct inode *inode, struct file *file)
{
	struct rashpa_device *dev = container_of(inode->i_cdev, struct rashpa_device, cdev);

	get_device(&dev->dev);
	file->private_data = dev;
	return 0;
}

static int rashpa_fpga_release(struct inode *inode, struct file *file)
{
	struct rashpa_device *dev = file->private_data;

	put_device(&dev->dev);
	return 0;
}

/* Programs claim a function with flock(); files without write access may not. */
static int rashpa_fpga_flock(struct file *file, int cmd, struct file_lock *lock)
{
	return file->f_mode & FMODE_WRITE ? locks_lock_file_wait(file, lock) : -EBADF;
}

const struct file_operations rashpa_fpga_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_fpga_open,
	.release = rashpa_fpga_release,
	.flock = rashpa_fpga_flock,
	.unlocked_ioctl = rashpa_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* Return: function of an open node, valid while the file is open; NULL for any other file. */
struct rashpa_device *rashpa_device_of(struct file *file)
{
	return file->f_op == &rashpa_fpga_fops ? file->private_data : NULL;
}

/* ------------------------------------------------------------ ioctls ---- */

/* Lockless: queries of the state do not wait for a stop or reset to end. */
static int rashpa_device_check_present(struct rashpa_call *call, struct rashpa_device *dev)
{
	return READ_ONCE(dev->gone) ? rashpa_device_removed(call, dev) : 0;
}

int rashpa_ioc_device_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_device_info *info = arg;
	struct pci_dev *pdev = dev->pdev;

	info->out_vendor = pdev->vendor;
	info->out_device = pdev->device;
	info->out_subvendor = pdev->subsystem_vendor;
	info->out_subdevice = pdev->subsystem_device;
	info->out_domain = pci_domain_nr(pdev->bus);
	info->out_bus = pdev->bus->number;
	info->out_devfn = pdev->devfn;
	info->out_vectors = dev->n_vectors;
	info->out_node = dev_to_node(&pdev->dev);
	info->out_dma_bits = fls64(dma_get_mask(&pdev->dev));
	info->out_flags = (dev->translated ? RASHPA_DEVICE_IOMMU : 0) |
			  (READ_ONCE(dev->have_profile) ? RASHPA_DEVICE_PROFILE : 0) |
			  (READ_ONCE(dev->disclose) ? RASHPA_DEVICE_DISCLOSE : 0) |
			  (READ_ONCE(dev->master) ? RASHPA_DEVICE_MASTER : 0) |
			  (READ_ONCE(dev->profile.fetch.registers) ? RASHPA_DEVICE_FETCH : 0);
	info->out_maps = READ_ONCE(dev->n_maps);
	info->out_windows = READ_ONCE(dev->n_open_windows);
	info->out_state = READ_ONCE(dev->state);
	info->out_quiesces = READ_ONCE(dev->quiesces);
	info->out_interrupts = rashpa_vectors_sum(dev);
	info->__reserved = 0;
	info->out_engines = READ_ONCE(dev->profile.n_engines);
	info->out_engine_stops = READ_ONCE(dev->engine_stops);
	return rashpa_device_check_present(call, dev);
}

int rashpa_ioc_region_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_region_info *info = arg;
	unsigned long flags;

	if (info->bar >= RASHPA_BARS)
		return rashpa_fail(call, -EINVAL, "BAR %u does not exist: must be 0 to %d",
				   info->bar, RASHPA_BARS - 1);
	flags = pci_resource_flags(dev->pdev, info->bar);
	info->out_length = pci_resource_len(dev->pdev, info->bar);
	info->out_flags = 0;
	if (info->out_length)
		info->out_flags = (flags & IORESOURCE_MEM ? RASHPA_REGION_MEMORY : 0) |
				  (flags & IORESOURCE_PREFETCH ? RASHPA_REGION_PREFETCH : 0) |
				  (flags & IORESOURCE_MEM_64 ? RASHPA_REGION_64BIT : 0);
	return rashpa_device_check_present(call, dev);
}

int rashpa_ioc_list(struct rashpa_call *call, void *arg)
{
	/* NULL on /dev/rashpa/memory: for all */
	struct rashpa_device *dev = call->obj;

	if (!dev)
		return rashpa_holdings(call, arg, RASHPA_NO_DEVICE);
	/* a removal in between does no harm: the number is reserved while this file is open */
	return rashpa_device_check_present(call, dev) ?: rashpa_holdings(call, arg, dev->id);
}

int rashpa_ioc_reset(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	int err;

	if (!capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM, "a function reset needs CAP_SYS_RAWIO");
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	guard(rashpa_locked)(dev);
	/* the PCI core would wait for an answer a minute or longer, with all locks held */
	if (!pci_device_is_present(dev->pdev))
		return rashpa_fail(call, -EIO,
				   "fpga%d does not answer, not even in configuration space: remove it and scan its bus again",
				   dev->id);
	/*
	 * Only try: the reset takes the device lock, which removal holds while it waits for
	 * dev->lock. The reset handlers quiesce the function.
	 */
	err = pci_try_reset_function(dev->pdev);
	/* -ENOTTY: no reset method exists, or all have failed */
	if (err == -ENOTTY && !dev->pdev->reset_methods[0])
		return rashpa_fail(call, -EOPNOTSUPP, "fpga%d has no function reset", dev->id);
	if (err == -ENOTTY)
		return rashpa_fail(call, -EIO,
				   "fpga%d does not come back from its reset: remove it and scan its bus again",
				   dev->id);
	if (err == -EAGAIN)
		return rashpa_fail(call, err,
				   "fpga%d is being reset or removed by another process: try again",
				   dev->id);
	if (err)
		return err;
	rashpa_device_idle(dev);
	if (READ_ONCE(dev->state) == RASHPA_STATE_STUCK)
		return rashpa_fail(call, -EIO,
				   "fpga%d was reset and still does not become idle: bus mastering stays off",
				   dev->id);
	/* existing maps and channels resume */
	return rashpa_device_used(dev) ? rashpa_device_master(call, dev) : 0;
}

int rashpa_ioc_engine_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_engine_info *info = arg;
	const struct rashpa_engine *e;
	const struct rashpa_map *map;
	int err;

	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	guard(rashpa_locked)(dev);
	if (info->index >= dev->profile.n_engines)
		return rashpa_fail(call, -ENOENT, "fpga%d has %u engines: index %u does not exist",
				   dev->id, dev->profile.n_engines, info->index);
	e = &dev->profile.engines[info->index];
	info->out_flags = READ_ONCE(e->absent) ? RASHPA_ENGINE_ABSENT : 0;
	memcpy(info->out_name, e->about.name, sizeof(info->out_name));
	info->out_first = e->about.first;
	info->out_count = e->about.count;
	info->out_maps = 0;
	list_for_each_entry(map, &dev->maps, entry)
		info->out_maps += !!(READ_ONCE(map->engines) & BIT_ULL(info->index));
	info->out_stops = READ_ONCE(e->stops);
	info->out_failures = READ_ONCE(e->failures);
	return 0;
}

/* Put a profile into force. @profile receives the old one. */
static int rashpa_profile_apply(struct rashpa_call *call,
				struct rashpa_device *dev,
				const struct rashpa_profile_set *p,
				struct rashpa_profile *profile)
{
	const u32 bits = p->dma_bits ?: RASHPA_DMA_BITS;
	int err;

	err = rashpa_profile_check(call, dev, profile);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&dev->pdev->dev, DMA_BIT_MASK(bits));
	if (err)
		return rashpa_fail(call, -EOPNOTSUPP,
				   "a DMA mask of %u bits does not work on this machine", bits);
	/* with the old sequence; rashpa_device_reinit() runs the new one */
	rashpa_device_stop(dev);
	scoped_guard(rashpa_hw, dev) {
		swap(dev->profile, *profile);
		dev->engine_stops = 0;
		dev->engines_lost = false;
		WRITE_ONCE(dev->disclose, p->head.flags & RASHPA_PROFILE_DISCLOSE);
		WRITE_ONCE(dev->have_profile, true);
	}
	return rashpa_device_reinit(call, dev, !(p->head.flags & RASHPA_PROFILE_NO_RESET));
}

int rashpa_ioc_profile(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_profile profile = { };
	struct rashpa_profile_set *p = arg;
	int err;

	if (!capable(CAP_SYS_ADMIN))
		return rashpa_fail(call, -EPERM, "applying a profile needs CAP_SYS_ADMIN");
	err = rashpa_profile_fetch(call, p, &profile);
	if (!err)
		err = rashpa_device_lock(call, dev);
	if (!err) {
		err = rashpa_profile_apply(call, dev, p, &profile);
		mutex_unlock(&dev->lock);
	}
	/* on success this is the old profile */
	rashpa_profile_drop(dev, &profile);
	return err;
}

/* --------------------------------------------------- bind and removal --- */

static void rashpa_device_release(struct device *d)
{
	struct rashpa_device *dev = container_of(d, struct rashpa_device, dev);

	pci_dev_put(dev->pdev);
	ida_free(&rashpa_ids, dev->id);
	lockdep_unregister_key(&dev->bars_key);
	lockdep_unregister_key(&dev->windows_key);
	kfree(dev->vectors);
	kfree(dev->saved);
	kfree(dev);
}

static struct rashpa_device *rashpa_device_create(struct pci_dev *pdev)
{
	struct rashpa_device *dev;
	int err;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->id = ida_alloc(&rashpa_ids, GFP_KERNEL);
	if (dev->id < 0) {
		err = dev->id;
		kfree(dev);
		return ERR_PTR(err);
	}
	dev->pdev = pci_dev_get(pdev);
	mutex_init(&dev->lock);
	mutex_init(&dev->windows_lock);
	lockdep_register_key(&dev->windows_key);
	lockdep_set_class(&dev->windows_lock, &dev->windows_key);
	init_rwsem(&dev->bars_lock);
	lockdep_register_key(&dev->bars_key);
	lockdep_set_class(&dev->bars_lock, &dev->bars_key);
	mutex_init(&dev->hw_lock);
	init_waitqueue_head(&dev->imports_wait);
	init_waitqueue_head(&dev->reset_wait);
	INIT_LIST_HEAD(&dev->stale);
	INIT_LIST_HEAD(&dev->reprogram);
	INIT_LIST_HEAD(&dev->maps);
	INIT_LIST_HEAD(&dev->open_windows);
	rashpa_origin_init(&dev->events);
	rashpa_origin_init(&dev->map_events);
	/* fires once, in process context: any user of the function may listen */
	rashpa_origin_init(&dev->end);
	rashpa_node_init(&dev->dev, &pdev->dev, rashpa_device_release);
	err = dev_set_name(&dev->dev, "fpga%d", dev->id);
	if (err) {
		put_device(&dev->dev);
		return ERR_PTR(err);
	}
	return dev;
}

/* Find the MSI-X table and pending bits: no window may contain them. */
static void rashpa_msix_find(struct rashpa_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	u32 i, n, value;
	u16 control;

	if (!pdev->msix_cap)
		return;
	for (i = 0; i < ARRAY_SIZE(dev->msix); i++) {
		pci_read_config_dword(pdev, pdev->msix_cap + (i ? PCI_MSIX_PBA : PCI_MSIX_TABLE),
				      &value);
		dev->msix[i].bar = value & PCI_MSIX_PBA_BIR;
		dev->msix[i].offset = value & PCI_MSIX_PBA_OFFSET;
	}
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	n = (control & PCI_MSIX_FLAGS_QSIZE) + 1;
	dev->msix[0].length = n * PCI_MSIX_ENTRY_SIZE;
	dev->msix[1].length = DIV_ROUND_UP(n, 64) * sizeof(u64);
}

static int rashpa_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	/* I/O ports are not used, and may not be available */
	const int bars = pci_select_bars(pdev, IORESOURCE_MEM);
	struct rashpa_device *dev;
	int err;

	dev = rashpa_device_create(pdev);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = pci_enable_device_mem(pdev);
	if (err)
		goto out_put;
	err = pci_request_selected_regions(pdev, bars, "rashpa");
	if (err)
		goto out_disable;
	/* rashpa_device_reinit() stops DMA of a previous owner before bus mastering is turned on */
	pci_clear_master(pdev);
	/* INTx has no handler: a raised line would block devices that share it */
	pci_intx(pdev, 0);
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(RASHPA_DMA_BITS));
	if (err)
		goto out_regions;
	/* maps limit segments, not the DMA core */
	dma_set_max_seg_size(&pdev->dev, SZ_2G);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	dev->translated = rashpa_pci_translated(pdev);
	rashpa_msix_find(dev);
	err = rashpa_vectors_init(dev);
	if (err)
		goto out_regions;
	/* for rashpa_config_restore() */
	pci_save_state(pdev);
	dev->saved = pci_store_saved_state(pdev);
	if (!dev->saved) {
		err = -ENOMEM;
		goto out_vectors;
	}
	pci_set_drvdata(pdev, dev);
	err = rashpa_node_add(&dev->dev, &dev->cdev, &rashpa_fpga_fops, 0);
	if (err)
		goto out_vectors;
	dev_info(&pdev->dev, "bound as fpga%d, %u vectors, %s IOMMU\n", dev->id,
		 dev->n_vectors, dev->translated ? "behind an" : "no");
	return 0;

out_vectors:
	pci_set_drvdata(pdev, NULL);
	rashpa_vectors_free(dev, dev->n_vectors);
out_regions:
	pci_release_selected_regions(pdev, bars);
out_disable:
	pci_disable_device(pdev);
out_put:
	put_device(&dev->dev);
	return err;
}

/*
 * Open files keep @dev alive, but find it gone. Order: revoke the windows, stop DMA, end the maps,
 * free the interrupts, notify listeners.
 */
static void rashpa_remove(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	LIST_HEAD(ended);

	rashpa_node_remove(&dev->dev, &dev->cdev);
	mutex_lock(&dev->lock);
	/* windows first: they contain the doorbells that could restart DMA */
	rashpa_windows_revoke(dev);
	rashpa_device_stop(dev);
	scoped_guard(mutex, &dev->hw_lock)
		rashpa_master_off(dev);
	rashpa_maps_end(dev, &ended);
	scoped_guard(mutex, &dev->hw_lock) {
		WRITE_ONCE(dev->gone, true);
		rashpa_profile_drop(dev, &dev->profile);
	}
	/* pending interrupts are delivered before GONE, the last event */
	rashpa_vectors_free(dev, dev->n_vectors);
	rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_GONE);
	rashpa_origin_fire(&dev->end, 0);
	mutex_unlock(&dev->lock);
	rashpa_maps_release(&ended);
	wait_event(dev->imports_wait, !atomic_read(&dev->n_imports));
	pci_release_selected_regions(pdev, pci_select_bars(pdev, IORESOURCE_MEM));
	pci_disable_device(pdev);
	put_device(&dev->dev);
}

static struct pci_driver rashpa_pci_driver = {
	.name = "rashpa",
	/*
	 * Functions are bound by driver_override, new_id or the parameter ids. Not an empty table:
	 * new_id would accept only ids that match one of its entries.
	 */
	.id_table = NULL,
	.probe = rashpa_probe,
	.remove = rashpa_remove,
	.shutdown = rashpa_shutdown,
	.err_handler = &rashpa_err_handlers,
	.driver.pm = pm_sleep_ptr(&rashpa_pm_ops),
};

/* Add each vendor:device pair of the parameter to the driver, or only check them. */
static int rashpa_ids_parse(bool add)
{
	unsigned int vendor, device;
	char *copy, *rest, *text;
	int err = 0;
	char end;

	if (!ids || !*ids)
		return 0;
	copy = kstrdup(ids, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while (!err && (text = strsep(&rest, ","))) {
		if (sscanf(text, "%x:%x%c", &vendor, &device, &end) != 2 ||
		    vendor > 0xffff || device > 0xffff) {
			pr_err("rashpa: ids: \"%s\" is not vendor:device in hexadecimal\n", text);
			err = -EINVAL;
		} else if (add) {
			err = pci_add_dynid(&rashpa_pci_driver, vendor, device, PCI_ANY_ID,
					    PCI_ANY_ID, 0, 0, 0);
		}
	}
	kfree(copy);
	return err;
}

int rashpa_pci_init(void)
{
	/* check the whole parameter before anything is bound */
	int err = rashpa_ids_parse(false);

	if (!err)
		err = pci_register_driver(&rashpa_pci_driver);
	if (err)
		return err;
	err = rashpa_ids_parse(true);
	if (err)
		pci_unregister_driver(&rashpa_pci_driver);
	return err;
}

void rashpa_pci_exit(void)
{
	pci_unregister_driver(&rashpa_pci_driver);
}
