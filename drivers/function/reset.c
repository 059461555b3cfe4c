// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: bus mastering comes on: the first use of a function, resets, errors of the bus, sleep,
 * shutdown.
 *
 * The order of a reset: no CPU and no other function reaches its windows, and it is stopped. Then
 * it is reset, entries of maps that have ended are cleared, maps that ask for it are programmed
 * again, and its windows are back.
 */
#include <linux/capability.h>
#include <linux/pm.h>

#include "core/compat.h"
#include "function/function.h"

static int rashpa_pci_unresponsive(struct rashpa_call *call, struct rashpa_device *dev)
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
	if (!dev->initialized) {
		err = rashpa_device_reinit(call, dev, true);
		if (err)
			return err;
	}
	rashpa_hw_lock(dev);
	if (dev->state == RASHPA_STATE_STUCK) {
		err = rashpa_fail(call, -EIO,
				  "fpga%d did not stop when asked and its bus mastering is off: reset it",
				  dev->id);
	} else if (!dev->master && !rashpa_device_reachable(dev)) {
		err = rashpa_pci_unresponsive(call, dev);
	} else if (!dev->master) {
		pci_set_master(dev->pdev);
		dev->master = true;
	}
	mutex_unlock(&dev->hw_lock);
	return err;
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
	err = rashpa_steps_run(dev->steps, dev->n_steps, rashpa_profile_deadline(dev));
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
	rashpa_maps_reprogram(dev);
	mutex_unlock(&dev->hw_lock);
	wake_up_all(&dev->reset_wait);
	rashpa_windows_resume(dev, rashpa_maps_restore);
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
 * rashpa_device_reinit() - what a previous owner left running ends
 * @call: the ioctl
 * @dev: the function, locked, with no maps
 * @reset: by a function-level reset as well, if it has one
 *
 * All of it with bus mastering off. Where it fails the function is stuck.
 *
 * Return: 0, and bus mastering is on if somebody uses it; -ETIMEDOUT (it does not stop), -EIO (it
 * does not answer).
 */
int rashpa_device_reinit(struct rashpa_call *call, struct rashpa_device *dev, bool reset)
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
	dev->initialized = true;
	if (!err)
		return rashpa_device_used(dev) ? rashpa_device_master(call, dev) : 0;
	if (!reachable)
		return rashpa_pci_unresponsive(call, dev);
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

	if (state != pci_channel_io_normal) {
		/* the event comes when the link was reset: no register answers before */
		mutex_lock(&dev->hw_lock);
		WRITE_ONCE(dev->state, RASHPA_STATE_STUCK);
		mutex_unlock(&dev->hw_lock);
	}
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

const struct pci_error_handlers rashpa_err_handlers = {
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

DEFINE_SIMPLE_DEV_PM_OPS(rashpa_pm_ops, rashpa_suspend, rashpa_resume);

/*
 * The next kernel knows nothing of what this one has mapped. Programs may go on until then, and
 * find the function stuck. Not with @dev->lock, which they may hold for long.
 */
void rashpa_shutdown(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	rashpa_device_stop(dev);
	mutex_lock(&dev->hw_lock);
	rashpa_master_off(dev);
	dev->state = RASHPA_STATE_STUCK;
	mutex_unlock(&dev->hw_lock);
}
