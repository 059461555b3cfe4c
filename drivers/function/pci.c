// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: PCI functions: bind, bus mastering, quiesce, reset, removal.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "core/node.h"
#include "function/function.h"

static char *ids;

/* @use each pair of vendor and device in @val. */
static int rashpa_parse_ids(const char *val, int (*use)(unsigned int vendor,
							unsigned int device))
{
	unsigned int vendor, device;
	char *copy, *rest, *text;
	int err = 0;
	char end;

	copy = kstrdup(val, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	while (!err && (text = strsep(&rest, ","))) {
		if (sscanf(text, "%x:%x%c", &vendor, &device, &end) == 2 &&
		    vendor <= 0xffff && device <= 0xffff) {
			err = use(vendor, device);
			continue;
		}
		pr_err("rashpa: ids: \"%s\" is not vendor:device in hexadecimal\n", text);
		err = -EINVAL;
	}
	kfree(copy);
	return err;
}

static int rashpa_only_look(unsigned int vendor, unsigned int device)
{
	return 0;
}

/* A wrong one is refused before any of our code can be in use. */
static int rashpa_ids_set(const char *val, const struct kernel_param *kp)
{
	int err = *val ? rashpa_parse_ids(val, rashpa_only_look) : 0;

	return err ? err : param_set_charp(val, kp);
}

static const struct kernel_param_ops rashpa_ids_ops = {
	.set = rashpa_ids_set,
	.get = param_get_charp,
	.free = param_free_charp,
};

module_param_cb(ids, &rashpa_ids_ops, &ids, 0444);
MODULE_PARM_DESC(ids, "functions to bind at load: vendor:device[,vendor:device...] in hexadecimal");

static DEFINE_IDA(rashpa_ids);

/* ----------------------------------------------------------- helpers ---- */

/**
 * rashpa_pci_translated() - does an IOMMU translate what this function sends
 * @pdev: the function
 *
 * Return: whether it is in a domain that maps pages; not if that passes all through.
 */
bool rashpa_pci_translated(struct pci_dev *pdev)
{
	struct iommu_domain *domain = iommu_get_domain_for_dev(&pdev->dev);

	return domain && (domain->type & __IOMMU_DOMAIN_PAGING);
}

static int rashpa_pci_deaf(struct rashpa_call *call, struct rashpa_device *dev)
{
	return rashpa_fail(call, -EIO,
			   "fpga%d does not answer: its BARs are off, bind it again; or its link is lost, remove it and scan its bus again",
			   dev->id);
}

/**
 * rashpa_device_master() - let the function do DMA (interrupts are DMA as well)
 * @call: the ioctl
 * @dev: the function, locked
 *
 * Bus mastering is off until somebody has a map or a channel: nothing that the
 * previous owner left running can write into this system.
 *
 * Return: 0, -EIO if the function is stuck or gone, -EPERM if nobody said how to stop it.
 */
int rashpa_device_master(struct rashpa_call *call, struct rashpa_device *dev)
{
	int err = 0;

	lockdep_assert_held(&dev->lock);
	/*
	 * Without a sequence it is only cut off, not stopped, and may go on where it was.
	 * Who drives it has to know what it does, and could write its registers anyway.
	 */
	if (!dev->n_steps && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "fpga%d has no quiesce sequence: apply a profile that has one, or use CAP_SYS_RAWIO",
				   dev->id);
	if (!dev->afresh) {
		err = rashpa_device_afresh(call, dev, true);
		if (err)
			return err;
	}
	rashpa_hw_lock(dev);
	if (dev->state == RASHPA_STATE_STUCK) {
		err = rashpa_fail(call, -EIO,
				  "fpga%d did not stop when asked and its bus mastering is off: reset it",
				  dev->id);
	} else if (!dev->master && !rashpa_device_reachable(dev)) {
		err = rashpa_pci_deaf(call, dev);
	} else if (!dev->master) {
		pci_set_master(dev->pdev);
		dev->master = true;
	}
	mutex_unlock(&dev->hw_lock);
	return err;
}

static bool rashpa_device_stuck(struct rashpa_device *dev)
{
	bool stuck;

	mutex_lock(&dev->hw_lock);
	stuck = dev->state == RASHPA_STATE_STUCK;
	mutex_unlock(&dev->hw_lock);
	return stuck;
}

/**
 * rashpa_device_hold() - somebody expects to be served by this function
 * @call: the ioctl
 * @dev: the function, locked
 *
 * Return: 0, and bus mastering is on until rashpa_device_leave(); see rashpa_device_master().
 */
int rashpa_device_hold(struct rashpa_call *call, struct rashpa_device *dev)
{
	int err = rashpa_device_master(call, dev);

	if (!err)
		dev->n_users++;
	return err;
}

/* -------------------------------------------------------------- node ---- */

static int rashpa_fpga_open(struct inode *inode, struct file *file)
{
	struct rashpa_device *dev = container_of(inode->i_cdev,
						 struct rashpa_device, cdev);

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

static long rashpa_fpga_ioctl(struct file *file, unsigned int cmd,
			      unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_FPGA, file, cmd, arg);
}

/* Programs claim a function by flock(): not those that may only look at it. */
static int rashpa_fpga_flock(struct file *file, int cmd, struct file_lock *lock)
{
	return file->f_mode & FMODE_WRITE ? locks_lock_file_wait(file, lock) : -EBADF;
}

static const struct file_operations rashpa_fpga_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_fpga_open,
	.release = rashpa_fpga_release,
	.flock = rashpa_fpga_flock,
	.unlocked_ioctl = rashpa_fpga_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/**
 * rashpa_device_of() - the function behind an open node
 * @file: any file
 *
 * Return: the function, which lives at least as long as the file is open, or NULL if it
 * is not a /dev/rashpa/fpgaN.
 */
struct rashpa_device *rashpa_device_of(struct file *file)
{
	return file->f_op == &rashpa_fpga_fops ? file->private_data : NULL;
}

/* ------------------------------------------------------------ ioctls ---- */

/* Without a lock: whoever asks what it is doing does not wait until it has done it. */
static int rashpa_device_there(struct rashpa_call *call, struct rashpa_device *dev)
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
	info->out_flags = 0;
	if (dev->translated)
		info->out_flags |= RASHPA_DEVICE_IOMMU;
	if (READ_ONCE(dev->have_profile))
		info->out_flags |= RASHPA_DEVICE_PROFILE;
	if (READ_ONCE(dev->disclose))
		info->out_flags |= RASHPA_DEVICE_DISCLOSE;
	if (READ_ONCE(dev->master))
		info->out_flags |= RASHPA_DEVICE_MASTER;
	if (READ_ONCE(dev->fetch.fields))
		info->out_flags |= RASHPA_DEVICE_FETCH;
	info->out_maps = READ_ONCE(dev->n_maps);
	info->out_kept = READ_ONCE(dev->n_kept);
	info->out_windows = READ_ONCE(dev->n_open_windows);
	info->out_state = READ_ONCE(dev->state);
	info->out_quiesces = READ_ONCE(dev->quiesces);
	info->out_interrupts = rashpa_vectors_sum(dev);
	info->__reserved = 0;
	info->out_engines = READ_ONCE(dev->n_engines);
	info->__reserved2 = 0;
	info->out_engine_stops = READ_ONCE(dev->engine_stops);
	return rashpa_device_there(call, dev);
}

int rashpa_ioc_region_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_region_info *info = arg;
	unsigned long flags;

	if (info->bar >= RASHPA_BARS)
		return rashpa_fail(call, -EINVAL, "BAR %u does not exist: there are 0 to %d",
				   info->bar, RASHPA_BARS - 1);
	flags = pci_resource_flags(dev->pdev, info->bar);
	info->out_length = pci_resource_len(dev->pdev, info->bar);
	info->out_flags = 0;
	if (info->out_length) {
		if (flags & IORESOURCE_MEM)
			info->out_flags |= RASHPA_REGION_MEMORY;
		if (flags & IORESOURCE_PREFETCH)
			info->out_flags |= RASHPA_REGION_PREFETCH;
		if (flags & IORESOURCE_MEM_64)
			info->out_flags |= RASHPA_REGION_64BIT;
	}
	return rashpa_device_there(call, dev);
}

int rashpa_ioc_device_list(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	int err;

	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	mutex_unlock(&dev->lock);
	/* whatever becomes of it, nobody else has its number while this file is open */
	return rashpa_holdings(call, arg, dev->id);
}

static int rashpa_quiesce_all(struct rashpa_call *call, struct rashpa_device *dev,
			      struct list_head *ended)
{
	int err = rashpa_maps_check_stop(call, dev);

	if (err)
		return err;
	err = rashpa_device_stop(dev);
	if (err)
		err = rashpa_fail(call, err,
				  "fpga%d did not become idle in time, or does not answer: bus mastering is off until it is reset",
				  dev->id);
	rashpa_maps_quiesce(dev, ended);
	return err;
}

int rashpa_ioc_quiesce(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_quiesce *quiesce = arg;
	const bool one = quiesce->head.flags & RASHPA_QUIESCE_MAP;
	u64 start = ktime_get_ns();
	LIST_HEAD(ended);
	int err;

	if (quiesce->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (quiesce->map && !one)
		return rashpa_fail(call, -EINVAL,
				   "a map is given without the flag RASHPA_QUIESCE_MAP");
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	if (one)
		err = rashpa_map_quiesce(call, dev, quiesce->map, &ended);
	else
		err = rashpa_quiesce_all(call, dev, &ended);
	quiesce->out_time_ns = ktime_get_ns() - start;
	rashpa_device_rest(dev);
	mutex_unlock(&dev->lock);
	rashpa_maps_release(&ended);
	return err;
}

int rashpa_ioc_reset(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	LIST_HEAD(ended);
	int err;

	if (!capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM, "a function reset needs CAP_SYS_RAWIO");
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	/* the PCI core would wait for its answer, a minute and longer, with all locks held */
	if (!pci_device_is_present(dev->pdev)) {
		mutex_unlock(&dev->lock);
		return rashpa_fail(call, -EIO,
				   "fpga%d does not answer, not even in configuration space: remove it and scan its bus again",
				   dev->id);
	}
	/*
	 * Only try: the reset takes the lock under which removal calls us, and
	 * removal waits for dev->lock. The handlers below do the rest.
	 */
	err = pci_try_reset_function(dev->pdev);
	if (!err) {
		rashpa_maps_end(dev, false, &ended);
		rashpa_device_rest(dev);
	}
	/* it has one, and it failed, if the PCI core knows a way */
	if (err == -ENOTTY && !dev->pdev->reset_methods[0])
		err = rashpa_fail(call, -EOPNOTSUPP, "fpga%d has no function reset",
				  dev->id);
	else if (err == -ENOTTY)
		err = rashpa_fail(call, -EIO,
				  "fpga%d does not come back from its reset: remove it and scan its bus again",
				  dev->id);
	else if (err == -EAGAIN)
		err = rashpa_fail(call, err,
				  "fpga%d is being reset or removed by somebody else: try again",
				  dev->id);
	else if (!err && rashpa_device_stuck(dev))
		err = rashpa_fail(call, -EIO,
				  "fpga%d was reset and still does not become idle: bus mastering stays off",
				  dev->id);
	/* who has a map or a channel expects to be served again */
	else if (!err && rashpa_device_used(dev))
		err = rashpa_device_master(call, dev);
	mutex_unlock(&dev->lock);
	rashpa_maps_release(&ended);
	return err;
}

/* -------------------------------------------------- reset by anybody ---- */

/*
 * As it was bound: BARs, command register (without bus mastering), capabilities. What the PCI
 * core has saved last may be of no use: some kernels forget it when they restore it. Not with
 * hw_lock: interrupts are restored under a mutex that the PCI core holds where it allocates memory,
 * and an exporter that gives memory back to who allocates comes to us for hw_lock.
 */
static int rashpa_config_restore(struct rashpa_device *dev)
{
	int err;

	lockdep_assert_not_held(&dev->hw_lock);
	err = pci_load_saved_state(dev->pdev, dev->saved);
	if (!err)
		pci_restore_state(dev->pdev);
	return err;
}

/* After a reset of its link a function answers, but its BARs are not where they were. */
static bool rashpa_config_lost(struct rashpa_device *dev)
{
	u32 i, value;

	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		const int at = PCI_BASE_ADDRESS_0 + i * sizeof(u32);

		pci_read_config_dword(dev->pdev, at, &value);
		if (value != dev->pdev->saved_config_space[at / sizeof(u32)])
			return true;
	}
	return false;
}

/*
 * What ran in it when nobody looked does not go on, and addresses of then are not there any
 * more, when bus mastering comes back.
 */
static int rashpa_device_clean(struct rashpa_device *dev)
{
	int err;

	lockdep_assert_held(&dev->hw_lock);
	if (!rashpa_device_reachable(dev))
		return -EIO;
	err = rashpa_profile_run_steps(dev, rashpa_profile_deadline(dev));
	if (!err)
		err = rashpa_table_clear(dev);
	return err ?: rashpa_engines_bound(dev);
}

/*
 * A reset of a bus further up goes from there down: the bridge above is closed already. Then
 * nothing passes in either direction, and rashpa_reset_done() looks what has become of it.
 */
static u64 rashpa_reset_stop(struct rashpa_device *dev)
{
	if (!dev->master || rashpa_bridges_open(dev->pdev))
		return rashpa_device_stop_locked(dev, rashpa_profile_deadline(dev));
	if (!dev->n_steps) {
		rashpa_master_off(dev);
		return RASHPA_DEVICE_EVENT_QUIESCED;
	}
	dev->state = RASHPA_STATE_STUCK;
	return 0;
}

/*
 * First nobody reaches the BARs any more: CPUs wait, and other functions' maps of windows
 * are revoked. Until rashpa_reset_done(), in the same thread, nobody writes registers or the
 * command register: a write would be dropped, or undone by what the PCI core restores.
 * hw_lock is not held for that time: a reset of the bus goes through here for several
 * functions, one after the other, and what the second one revokes may be a map of the first.
 */
static void rashpa_reset_prepare(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	u64 what;

	rashpa_windows_suspend(dev);
	/* the link was reset, rashpa_slot_reset() is still to come: the PCI core saves this next */
	if (rashpa_config_lost(dev))
		rashpa_config_restore(dev);
	mutex_lock(&dev->hw_lock);
	what = rashpa_reset_stop(dev);
	dev->quiesces += !!what;
	if (what)
		rashpa_device_event(dev, what);
	/* off in what the PCI core restores: entries may have to be cleared before */
	pci_clear_master(pdev);
	WRITE_ONCE(dev->resetting, true);
	mutex_unlock(&dev->hw_lock);
}

static void rashpa_reset_done(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	u32 before;

	mutex_lock(&dev->hw_lock);
	before = dev->state;
	/* Also called after a reset that failed: believe only what the function shows. */
	if (rashpa_maps_clear_stale(dev))
		dev->state = RASHPA_STATE_STUCK;
	else if (before == RASHPA_STATE_STUCK && !rashpa_device_clean(dev))
		dev->state = RASHPA_STATE_READY;
	/* it has forgotten them; bus mastering is still off */
	else if (before != RASHPA_STATE_STUCK && rashpa_engines_bound(dev))
		dev->state = RASHPA_STATE_STUCK;
	/* not known before; see also rashpa_reset_stop() */
	if (dev->state == RASHPA_STATE_STUCK && (dev->master || before != RASHPA_STATE_STUCK)) {
		dev->master = false;
		rashpa_device_event(dev, RASHPA_DEVICE_EVENT_STUCK);
	}
	/* others may have written the bit meanwhile */
	if (dev->master)
		pci_set_master(pdev);
	else
		pci_clear_master(pdev);
	rashpa_device_event(dev, RASHPA_DEVICE_EVENT_RESET);
	dev->resets++;
	WRITE_ONCE(dev->resetting, false);
	rashpa_maps_again(dev);
	mutex_unlock(&dev->hw_lock);
	wake_up_all(&dev->reset_wait);
	rashpa_windows_resume(dev);
}

/*
 * A function-level reset, if it has one, between the handlers as the PCI core has it. Not by the
 * core: removal calls us under the lock that it would take, and waits for dev->lock.
 */
static int rashpa_device_flr(struct rashpa_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	lockdep_assert_held(&dev->lock);
	if (pcie_reset_flr(pdev, PCI_RESET_PROBE))
		return 0;
	/* the PCI core would wait for its answer, a minute and longer */
	if (!rashpa_device_reachable(dev))
		return -EIO;
	pci_cfg_access_lock(pdev);
	rashpa_reset_prepare(pdev);
	err = pcie_reset_flr(pdev, PCI_RESET_DO_RESET);
	if (!err)
		err = rashpa_config_restore(dev);
	rashpa_reset_done(pdev);
	pci_cfg_access_unlock(pdev);
	return err ? -EIO : 0;
}

/**
 * rashpa_device_afresh() - what a previous owner left running ends
 * @call: the ioctl
 * @dev: the function, locked, with no maps
 * @reset: by a function-level reset as well, if it has one
 *
 * All of it with bus mastering off. Where it fails the function is stuck.
 *
 * Return: 0, and bus mastering is on if somebody uses it; -ETIMEDOUT (it does not stop), -EIO (it
 * does not answer).
 */
int rashpa_device_afresh(struct rashpa_call *call, struct rashpa_device *dev, bool reset)
{
	bool reachable;
	int err;

	lockdep_assert_held(&dev->lock);
	rashpa_hw_lock(dev);
	rashpa_master_off(dev);
	mutex_unlock(&dev->hw_lock);
	err = reset ? rashpa_device_flr(dev) : 0;
	rashpa_hw_lock(dev);
	if (!err)
		err = rashpa_device_clean(dev);
	WRITE_ONCE(dev->state, err ? RASHPA_STATE_STUCK : RASHPA_STATE_READY);
	if (err)
		rashpa_device_event(dev, RASHPA_DEVICE_EVENT_STUCK);
	reachable = rashpa_device_reachable(dev);
	mutex_unlock(&dev->hw_lock);
	dev->afresh = true;
	if (!err)
		return rashpa_device_used(dev) ? rashpa_device_master(call, dev) : 0;
	if (!reachable)
		return rashpa_pci_deaf(call, dev);
	if (err == -ENXIO)
		return rashpa_fail(call, -EIO,
				   "fpga%d does not keep the bounds of its engines (the kernel log names them): put the profile right, or declare none; bus mastering stays off",
				   dev->id);
	if (err == -ETIMEDOUT)
		return rashpa_fail(call, err,
				   "fpga%d did not become idle, whoever has started it: bus mastering stays off until it is reset",
				   dev->id);
	return rashpa_fail(call, err,
			   "fpga%d does not answer, or did not come back from its reset: bus mastering stays off until it is reset",
			   dev->id);
}

/*
 * What the PCI core found out about the link or the function. The memory is safe behind
 * its maps; whether to reset is the administrator's decision.
 */
static pci_ers_result_t rashpa_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	rashpa_device_event(dev, RASHPA_DEVICE_EVENT_ERROR);
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	return state == pci_channel_io_normal ? PCI_ERS_RESULT_CAN_RECOVER :
						PCI_ERS_RESULT_NEED_RESET;
}

/*
 * The link was reset without our handlers: what the function had is lost, its BARs and its
 * command register too. If it answers again, it is to be reset by who uses it.
 */
static pci_ers_result_t rashpa_slot_reset(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	bool back;

	back = !rashpa_config_restore(dev) && rashpa_device_reachable(dev);
	/* some kernels have forgotten it by that */
	if (back)
		pci_save_state(pdev);
	mutex_lock(&dev->hw_lock);
	rashpa_master_off(dev);
	dev->state = RASHPA_STATE_STUCK;
	rashpa_device_event(dev, RASHPA_DEVICE_EVENT_STUCK);
	mutex_unlock(&dev->hw_lock);
	return back ? PCI_ERS_RESULT_RECOVERED : PCI_ERS_RESULT_DISCONNECT;
}

static const struct pci_error_handlers rashpa_err_handlers = {
	.error_detected = rashpa_error_detected,
	.slot_reset = rashpa_slot_reset,
	.reset_prepare = rashpa_reset_prepare,
	.reset_done = rashpa_reset_done,
};

/* --------------------------------------------------- sleep, shutdown --- */

/*
 * Sleep is a reset that takes longer: the function loses its registers. No process runs
 * meanwhile that could touch a window, so bars_lock is not held until the end, which may be in
 * another thread.
 */
static int rashpa_suspend(struct device *d)
{
	struct rashpa_device *dev = dev_get_drvdata(d);

	rashpa_reset_prepare(dev->pdev);
	up_write(&dev->bars_lock);
	return 0;
}

static int rashpa_resume(struct device *d)
{
	struct rashpa_device *dev = dev_get_drvdata(d);

	down_write(&dev->bars_lock);
	rashpa_reset_done(dev->pdev);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(rashpa_pm_ops, rashpa_suspend, rashpa_resume);

/*
 * The next kernel knows nothing of what this one has mapped. Programs may go on until then, and
 * find the function stuck. Not with @dev->lock, which they may hold for long.
 */
static void rashpa_shutdown(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	rashpa_device_stop(dev);
	mutex_lock(&dev->hw_lock);
	rashpa_master_off(dev);
	dev->state = RASHPA_STATE_STUCK;
	mutex_unlock(&dev->hw_lock);
}

/* --------------------------------------------------- bind and removal --- */

static void rashpa_device_release(struct device *d)
{
	struct rashpa_device *dev = container_of(d, struct rashpa_device, dev);

	pci_dev_put(dev->pdev);
	ida_free(&rashpa_ids, dev->id);
	lockdep_unregister_key(&dev->bars_key);
	lockdep_unregister_key(&dev->windows_key);
	kvfree(dev->windows);
	rashpa_fetch_free(&dev->fetch);
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
	INIT_LIST_HEAD(&dev->again);
	INIT_LIST_HEAD(&dev->maps);
	INIT_LIST_HEAD(&dev->open_windows);
	rashpa_origin_init(&dev->events);
	rashpa_origin_init(&dev->map_events);
	/* fires once, not in an interrupt: whoever uses the function may listen */
	rashpa_origin_init(&dev->end);
	rashpa_node_init(&dev->dev, &pdev->dev, rashpa_device_release);
	err = dev_set_name(&dev->dev, "fpga%d", dev->id);
	if (err) {
		put_device(&dev->dev);
		return ERR_PTR(err);
	}
	return dev;
}

/* Remember where the MSI-X table and pending bits are: no window may hold them. */
static void rashpa_msix_find(struct rashpa_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	u32 table, pba;
	u16 control;
	u32 n;

	if (!pdev->msix_cap)
		return;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_TABLE, &table);
	pci_read_config_dword(pdev, pdev->msix_cap + PCI_MSIX_PBA, &pba);
	n = (control & PCI_MSIX_FLAGS_QSIZE) + 1;
	dev->msix[0].bar = table & PCI_MSIX_TABLE_BIR;
	dev->msix[0].offset = table & PCI_MSIX_TABLE_OFFSET;
	dev->msix[0].length = n * PCI_MSIX_ENTRY_SIZE;
	dev->msix[1].bar = pba & PCI_MSIX_PBA_BIR;
	dev->msix[1].offset = pba & PCI_MSIX_PBA_OFFSET;
	dev->msix[1].length = DIV_ROUND_UP(n, 64) * sizeof(u64);
}

static int rashpa_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct rashpa_device *dev;
	int err;

	dev = rashpa_device_create(pdev);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	err = pci_enable_device_mem(pdev);
	if (err)
		goto out_put;
	err = pci_request_regions(pdev, "rashpa");
	if (err)
		goto out_disable;
	/* what may run there is stopped before it comes back, see rashpa_device_afresh() */
	pci_clear_master(pdev);
	/* INTx is not an event source; without a handler it could block others */
	pci_intx(pdev, 0);
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(RASHPA_DMA_BITS));
	if (err)
		goto out_regions;
	/* what a segment may be is decided per map, not by the DMA core */
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
	if (dev->n_vectors)
		rashpa_vectors_free(dev, dev->n_vectors);
out_regions:
	pci_release_regions(pdev);
out_disable:
	pci_disable_device(pdev);
out_put:
	put_device(&dev->dev);
	return err;
}

/*
 * Open files keep @dev alive but find it gone. Order: take away the registers that users
 * see, stop the DMA, then take away what it could reach, then the interrupts, and tell.
 */
static void rashpa_remove(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	LIST_HEAD(ended);
	u32 vectors;

	rashpa_node_remove(&dev->dev, &dev->cdev);
	mutex_lock(&dev->lock);
	/* first the doorbells: nobody may start it again behind our back */
	rashpa_windows_revoke(dev);
	rashpa_device_stop(dev);
	mutex_lock(&dev->hw_lock);
	rashpa_master_off(dev);
	mutex_unlock(&dev->hw_lock);
	rashpa_maps_end(dev, true, &ended);
	mutex_lock(&dev->hw_lock);
	WRITE_ONCE(dev->gone, true);
	rashpa_profile_free(dev);
	mutex_unlock(&dev->hw_lock);
	/*
	 * Those on their way are told before GONE, which says that no more will come. Ears
	 * stay on the lists of the vectors, so those stay until release.
	 */
	vectors = dev->n_vectors;
	while (vectors--)
		rashpa_vector_free(&dev->vectors[vectors]);
	rashpa_device_event(dev, RASHPA_DEVICE_EVENT_GONE);
	rashpa_origin_fire(&dev->end, 0);
	mutex_unlock(&dev->lock);
	rashpa_maps_release(&ended);
	rashpa_maps_wait(dev);

	pci_free_irq_vectors(pdev);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
	put_device(&dev->dev);
}

static struct pci_driver rashpa_pci_driver = {
	.name = "rashpa",
	/*
	 * Functions are bound by driver_override, new_id, or the parameter ids. An empty table
	 * would not be the same: new_id takes only what is like an entry of it.
	 */
	.id_table = NULL,
	.probe = rashpa_probe,
	.remove = rashpa_remove,
	.shutdown = rashpa_shutdown,
	.err_handler = &rashpa_err_handlers,
	.driver.pm = pm_sleep_ptr(&rashpa_pm_ops),
};

static int rashpa_add_id(unsigned int vendor, unsigned int device)
{
	return pci_add_dynid(&rashpa_pci_driver, vendor, device, PCI_ANY_ID,
			     PCI_ANY_ID, 0, 0, 0);
}

int rashpa_pci_init(void)
{
	int err = pci_register_driver(&rashpa_pci_driver);

	if (err)
		return err;
	if (ids && *ids)
		err = rashpa_parse_ids(ids, rashpa_add_id);
	if (err)
		pci_unregister_driver(&rashpa_pci_driver);
	return err;
}

void rashpa_pci_exit(void)
{
	pci_unregister_driver(&rashpa_pci_driver);
	ida_destroy(&rashpa_ids);
}
