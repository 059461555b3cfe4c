// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sleep of one PCI function by the calls of the PCI core: /dev/rashpa-sleep takes "suspend BDF",
 * "resume BDF" and "shutdown BDF". Between the first two the function loses its registers. A
 * guest of the lab cannot sleep as a whole: it would lose the file system of its tests.
 */
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/string.h>
#include <linux/uaccess.h>

static int sleep_suspend(struct pci_dev *pdev, const struct dev_pm_ops *pm)
{
	int err;

	if (!pm || !pm->suspend)
		return -EOPNOTSUPP;
	err = pm->suspend(&pdev->dev);
	if (err)
		return err;
	pci_save_state(pdev);
	return pcie_reset_flr(pdev, false);
}

static int sleep_resume(struct pci_dev *pdev, const struct dev_pm_ops *pm)
{
	if (!pm || !pm->resume)
		return -EOPNOTSUPP;
	pci_restore_state(pdev);
	return pm->resume(&pdev->dev);
}

static int sleep_shutdown(struct pci_dev *pdev)
{
	struct pci_driver *driver = to_pci_driver(pdev->dev.driver);

	if (!driver->shutdown)
		return -EOPNOTSUPP;
	driver->shutdown(pdev);
	return 0;
}

static int sleep_do(struct pci_dev *pdev, const char *what)
{
	int err = -EINVAL;

	device_lock(&pdev->dev);
	if (!pdev->dev.driver)
		err = -ENODEV;
	else if (!strcmp(what, "suspend"))
		err = sleep_suspend(pdev, pdev->dev.driver->pm);
	else if (!strcmp(what, "resume"))
		err = sleep_resume(pdev, pdev->dev.driver->pm);
	else if (!strcmp(what, "shutdown"))
		err = sleep_shutdown(pdev);
	device_unlock(&pdev->dev);
	return err;
}

static ssize_t sleep_write(struct file *file, const char __user *buf, size_t size, loff_t *pos)
{
	unsigned int domain, bus, slot, function;
	struct pci_dev *pdev;
	char text[64], what[16];
	int err;

	if (size >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, buf, size))
		return -EFAULT;
	text[size] = '\0';
	if (sscanf(text, "%15s %x:%x:%x.%x", what, &domain, &bus, &slot, &function) != 5)
		return -EINVAL;
	pdev = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
	if (!pdev)
		return -ENODEV;
	err = sleep_do(pdev, what);
	pci_dev_put(pdev);
	return err ?: size;
}

static const struct file_operations sleep_fops = {
	.owner = THIS_MODULE,
	.write = sleep_write,
	.llseek = noop_llseek,
};

static struct miscdevice sleep_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "rashpa-sleep",
	.fops = &sleep_fops,
};

module_misc_device(sleep_device);
MODULE_DESCRIPTION("Sleep of one PCI function, for tests");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
