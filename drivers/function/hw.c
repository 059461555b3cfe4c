// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: access to a function: presence, BARs, locks, bus mastering.
 */
#include <linux/security.h>

#include "function/function.h"

int rashpa_device_removed(struct rashpa_call *call, struct rashpa_device *dev)
{
	return rashpa_fail(call, -ENODEV, "fpga%d was removed: close this file", dev->id);
}

/* Lock a function that is still bound. Return: 0, -ENODEV, -EINTR. */
int rashpa_device_lock(struct rashpa_call *call, struct rashpa_device *dev)
{
	int err = mutex_lock_interruptible(&dev->lock);

	if (err)
		return err;
	if (dev->gone) {
		mutex_unlock(&dev->lock);
		return rashpa_device_removed(call, dev);
	}
	return 0;
}

/* Is a range of @length > 0 bytes inside a memory BAR? */
bool rashpa_bar_range_ok(struct rashpa_device *dev, u32 bar, u64 offset, u64 length)
{
	return bar < RASHPA_BARS && pci_resource_flags(dev->pdev, bar) & IORESOURCE_MEM &&
	       offset <= pci_resource_len(dev->pdev, bar) &&
	       length <= pci_resource_len(dev->pdev, bar) - offset;
}

/* Does the function or bridge answer, and does it decode memory accesses? */
static bool rashpa_pci_open(struct pci_dev *pdev)
{
	u16 command;

	pci_read_config_word(pdev, PCI_COMMAND, &command);
	return !PCI_POSSIBLE_ERROR(command) &&
	       (command & PCI_COMMAND_MEMORY || pdev->no_command_memory);
}

bool rashpa_bridges_open(struct pci_dev *pdev)
{
	while ((pdev = pci_upstream_bridge(pdev)))
		if (!rashpa_pci_open(pdev))
			return false;
	return true;
}

/*
 * Do values of registers come from the function? Not if configuration space reads all ones: the
 * function was unplugged or does not answer. Nor if memory decoding is off in the function or a
 * bridge above. Then the host bridge answers all ones or zero, and zero looks idle.
 */
bool rashpa_device_reachable(struct rashpa_device *dev)
{
	return rashpa_pci_open(dev->pdev) && rashpa_bridges_open(dev->pdev);
}

/* Take hw_lock outside of a reset. The caller holds no reservation lock. */
void rashpa_hw_lock(struct rashpa_device *dev)
{
	mutex_lock(&dev->hw_lock);
	while (dev->resetting) {
		mutex_unlock(&dev->hw_lock);
		wait_event(dev->reset_wait, !READ_ONCE(dev->resetting));
		mutex_lock(&dev->hw_lock);
	}
}

/*
 * A process that controls the registers can access all memory through the function, unless an IOMMU
 * limits it to its maps. A locked-down kernel denies that to root, too. @what: name of the request,
 * for the error sentence.
 */
int rashpa_lockdown_check(struct rashpa_call *call, struct rashpa_device *dev, const char *what)
{
	int err = dev->translated ? 0 : security_locked_down(LOCKDOWN_PCI_ACCESS);

	if (!err)
		return 0;
	return rashpa_fail(call, err,
			   "%s: the kernel is locked down, and no IOMMU limits fpga%d to its maps: enable the IOMMU",
			   what, dev->id);
}

void rashpa_master_off(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->hw_lock);
	pci_clear_master(dev->pdev);
	dev->master = false;
	/* The answer to this wait queues behind the posted writes of the function. */
	if (pci_device_is_present(dev->pdev))
		pci_wait_for_pending_transaction(dev->pdev);
}

/* Does a map or another user need bus mastering? */
bool rashpa_device_used(const struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->lock);
	return dev->n_maps || dev->n_users;
}

/* Turn bus mastering off if the last user is gone. */
void rashpa_device_idle(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->lock);
	might_lock(&dev->hw_lock);
	if (rashpa_device_used(dev))
		return;
	guard(rashpa_hw)(dev);
	if (dev->master && !dev->gone)
		rashpa_master_off(dev);
}

/* Drop a user that rashpa_device_hold() added. */
void rashpa_device_leave(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->lock);
	dev->n_users--;
	rashpa_device_idle(dev);
}
