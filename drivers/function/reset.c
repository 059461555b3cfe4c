// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: turn bus mastering on: first use of a function, resets, bus errors, sleep, shutdown.
 *
 * Order of a reset: block windows, stop DMA, reset, clear entries of revoked maps, queue maps to
 * program again, unblock windows.
 */
#include <linux/capability.h>
#include <linux/pm.h>

#include "function/function.h"

static int rashpa_pci_unresponsive(struct rashpa_call *call, struct rashpa_device *dev)
{
	return rashpa_fail(call, -EIO,
			   "fpga%d does not answer: if its BARs are off, bind it again; if its link is lost, remove it and scan its bus again",
			   dev->id);
}

/*
 * Turn bus mastering on; message interrupts need it as well. It is off until the first map or
 * channel exists, so DMA of a previous owner cannot write into this system.
 *
 * Return: 0, -EIO if the function is stuck or does not answer, -EPERM without a quiesce sequence,
 * or an error of rashpa_device_reinit().
 */
int rashpa_device_master(struct rashpa_call *call, struct rashpa_device *dev)
{
	int err;

	lockdep_assert_held(&dev->lock);
	might_lock(&dev->hw_lock);
	/*
	 * Without a sequence, stopping only turns bus mastering off: DMA may resume later. That
	 * needs the privilege that register accesses need.
	 */
	if (!dev->profile.quiesce.n && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "fpga%d has no quiesce sequence: apply a profile that has one, or use CAP_SYS_RAWIO",
				   dev->id);
	if (!dev->initialized) {
		err = rashpa_device_reinit(call, dev, true);
		if (err)
			return err;
	}
	guard(rashpa_hw)(dev);
	if (dev->state == RASHPA_STATE_STUCK)
		return rashpa_fail(call, -EIO,
				   "fpga%d did not stop when asked and its bus mastering is off: reset it",
				   dev->id);
	if (dev->master)
		return 0;
	if (!rashpa_device_reachable(dev))
		return rashpa_pci_unresponsive(call, dev);
	pci_set_master(dev->pdev);
	dev->master = true;
	return 0;
}

/* Add a user that needs bus mastering, until rashpa_device_leave(). */
int rashpa_device_hold(struct rashpa_call *call, struct rashpa_device *dev)
{
	int err = rashpa_device_master(call, dev);

	if (!err)
		dev->n_users++;
	return err;
}

/* ------------------------------------------------------------ resets ---- */

/*
 * Restore the configuration space of bind time: BARs, command register (without bus mastering),
 * capabilities. The state that the PCI core saved last may be missing: some kernels drop it when
 * they restore it. Not under hw_lock: restoring MSI takes a mutex under which the PCI core
 * allocates memory, and reclaim can take hw_lock through an exporter.
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

/* After a link reset the function answers, but its BARs have lost their addresses. */
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

/* Stop old DMA and clear old addresses before bus mastering is turned on. */
static int rashpa_device_clean(struct rashpa_device *dev)
{
	int err;

	lockdep_assert_held(&dev->hw_lock);
	dev->reset_due = false;
	if (!rashpa_device_reachable(dev))
		return -EIO;
	err = rashpa_sequence_run(&dev->profile.quiesce, rashpa_profile_deadline(dev));
	if (!err)
		err = rashpa_table_clear(dev);
	return err ?: rashpa_engines_bound(dev);
}

/*
 * A bus reset works from the top down, so the bridge above may be closed already. Then nothing
 * passes in either direction, and rashpa_reset_done() checks the function.
 */
static u64 rashpa_reset_stop(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || rashpa_bridges_open(dev->pdev))
		return rashpa_device_stop_locked(dev, rashpa_profile_deadline(dev));
	if (!dev->profile.quiesce.n) {
		rashpa_master_off(dev);
		return RASHPA_DEVICE_EVENT_QUIESCED;
	}
	dev->state = RASHPA_STATE_STUCK;
	return 0;
}

/*
 * Block the BARs: CPUs wait, and maps of windows by other functions are revoked. Until
 * rashpa_reset_done(), in the same thread, neither registers nor the command register are written:
 * a write would be lost, or undone when the PCI core restores the configuration. But hw_lock is
 * released: a bus reset calls this for several functions, and one may revoke a map of another.
 */
static void rashpa_reset_prepare(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	rashpa_windows_suspend(dev);
	/* a link reset came before rashpa_slot_reset(): the PCI core is about to save these BARs */
	if (rashpa_config_lost(dev))
		rashpa_config_restore(dev);
	guard(mutex)(&dev->hw_lock);
	rashpa_device_stopped(dev, rashpa_reset_stop(dev));
	/* the PCI core restores it off: entries may have to be cleared first */
	pci_clear_master(pdev);
	WRITE_ONCE(dev->resetting, true);
}

static void rashpa_reset_done(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	u32 before;

	mutex_lock(&dev->hw_lock);
	before = dev->state;
	/* also called after a failed reset: check the function itself */
	if (rashpa_maps_clear_stale(dev))
		dev->state = RASHPA_STATE_STUCK;
	else if (before == RASHPA_STATE_STUCK && !rashpa_device_clean(dev))
		dev->state = RASHPA_STATE_READY;
	/* the reset has cleared the bounds; bus mastering is still off */
	else if (before != RASHPA_STATE_STUCK && rashpa_engines_bound(dev))
		dev->state = RASHPA_STATE_STUCK;
	/* newly stuck, here or in rashpa_reset_stop() without an event */
	if (dev->state == RASHPA_STATE_STUCK && (dev->master || before != RASHPA_STATE_STUCK)) {
		dev->master = false;
		rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_STUCK);
	}
	/* other code may have changed the bit meanwhile */
	if (dev->master)
		pci_set_master(pdev);
	else
		pci_clear_master(pdev);
	rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_RESET);
	dev->resets++;
	WRITE_ONCE(dev->resetting, false);
	rashpa_maps_reprogram(dev);
	mutex_unlock(&dev->hw_lock);
	wake_up_all(&dev->reset_wait);
	rashpa_windows_resume(dev, rashpa_maps_restore);
}

/*
 * Function-level reset (FLR), if supported, with the same handlers as in the PCI core. Not by the
 * core, which would take the device lock: removal holds it while it waits for dev->lock.
 */
static int rashpa_device_flr(struct rashpa_device *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int err;

	lockdep_assert_held(&dev->lock);
	if (pcie_reset_flr(pdev, PCI_RESET_PROBE))
		return 0;
	/* the PCI core would wait for an answer a minute or longer */
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

/*
 * Stop everything that a previous owner left running, with a function-level reset if @reset and one
 * is supported. The function has no maps. Works with bus mastering off, and leaves it on if the
 * function has users. After an error the function is stuck.
 *
 * Return: 0, -ETIMEDOUT (does not stop), -EIO (does not answer).
 */
int rashpa_device_reinit(struct rashpa_call *call, struct rashpa_device *dev, bool reset)
{
	bool reachable;
	int err;

	lockdep_assert_held(&dev->lock);
	scoped_guard(rashpa_hw, dev)
		rashpa_master_off(dev);
	err = reset ? rashpa_device_flr(dev) : 0;
	rashpa_hw_lock(dev);
	if (!err)
		err = rashpa_device_clean(dev);
	WRITE_ONCE(dev->state, err ? RASHPA_STATE_STUCK : RASHPA_STATE_READY);
	if (err)
		rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_STUCK);
	reachable = rashpa_device_reachable(dev);
	mutex_unlock(&dev->hw_lock);
	dev->initialized = true;
	if (!err)
		return rashpa_device_used(dev) ? rashpa_device_master(call, dev) : 0;
	if (!reachable)
		return rashpa_pci_unresponsive(call, dev);
	if (err == -ETIMEDOUT)
		return rashpa_sequence_fail(call, dev);
	if (err == -ENXIO)
		return rashpa_fail(call, -EIO,
				   "fpga%d does not keep the bounds of its engines (see the kernel log), bus mastering stays off: correct the engines in the profile or remove them",
				   dev->id);
	return rashpa_fail(call, err,
			   "fpga%d does not answer, or did not come back from its reset, bus mastering stays off: reset it",
			   dev->id);
}

/*
 * Reset a function whose stop has failed in a step with RASHPA_STEP_RESET, and let its users go on.
 * Not in the stop itself: its caller may hold a reservation lock, which the reset may need.
 *
 * Return: true if the function has stopped by that.
 */
bool rashpa_device_recover(struct rashpa_device *dev)
{
	struct rashpa_call call = { };
	bool due;

	lockdep_assert_held(&dev->lock);
	scoped_guard(rashpa_hw, dev) {
		due = dev->reset_due && !dev->gone;
		dev->reset_due = false;
	}
	if (!due || rashpa_device_flr(dev) || READ_ONCE(dev->state) != RASHPA_STATE_READY)
		return false;
	if (rashpa_device_used(dev))
		rashpa_device_master(&call, dev);
	return true;
}

/*
 * The PCI core reports an error of the link or the function. Memory is safe, because DMA is limited
 * to maps; the administrator decides whether to reset.
 */
static pci_ers_result_t rashpa_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	/* rashpa_slot_reset() sends the event: no register answers before */
	if (state != pci_channel_io_normal) {
		guard(mutex)(&dev->hw_lock);
		WRITE_ONCE(dev->state, RASHPA_STATE_STUCK);
	}
	rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_ERROR);
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	return state == pci_channel_io_normal ? PCI_ERS_RESULT_CAN_RECOVER :
						PCI_ERS_RESULT_NEED_RESET;
}

/*
 * The link was reset without the reset handlers: the function has lost its state, its BARs and its
 * command register. It stays stuck until an administrator resets it.
 */
static pci_ers_result_t rashpa_slot_reset(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);
	bool back;

	back = !rashpa_config_restore(dev) && rashpa_device_reachable(dev);
	/* some kernels drop the saved state when they restore it */
	if (back)
		pci_save_state(pdev);
	guard(mutex)(&dev->hw_lock);
	rashpa_master_off(dev);
	dev->state = RASHPA_STATE_STUCK;
	rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_STUCK);
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
 * Sleep is like a long reset: the function loses its registers. No process runs that could access
 * a window, so bars_lock is released: resume may run in another thread.
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
 * Stop DMA before another kernel reuses the memory. Programs may still run, and find the function
 * stuck. Without dev->lock, which they may hold for long.
 */
void rashpa_shutdown(struct pci_dev *pdev)
{
	struct rashpa_device *dev = pci_get_drvdata(pdev);

	rashpa_device_stop(dev);
	guard(mutex)(&dev->hw_lock);
	rashpa_master_off(dev);
	dev->state = RASHPA_STATE_STUCK;
}
