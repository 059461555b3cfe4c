// SPDX-License-Identifier: GPL-2.0-only
/*
 * Defects on purpose, one for each class: they show that the kernel notices them and that
 * the lab fails for them. Writing a name to /sys/kernel/debug/rashpa-defect plants one.
 * Reading lists the names, in an order in which each is still noticed. Lockdep stops after its
 * first report, and after the first corruption that another detector finds.
 * Only in guests: without the detectors of their kernels most of these corrupt memory.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/kfence.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

static DEFINE_MUTEX(defect_first);
static DEFINE_MUTEX(defect_second);
static DEFINE_SPINLOCK(defect_spinlock);
static struct platform_device *defect_device;

/* Hide a pointer from the compiler, which would warn, or optimize the defect away. */
static __always_inline void *hidden(void *p)
{
	OPTIMIZER_HIDE_VAR(p);
	return p;
}

static void defect_rcu(void)
{
	static void __rcu *pointer;

	if (rcu_dereference(pointer))
		pr_info("a pointer\n");
}

static void defect_sleep(void)
{
	spin_lock(&defect_spinlock);
	mutex_lock(&defect_first);
	mutex_unlock(&defect_first);
	spin_unlock(&defect_spinlock);
}

static void defect_inversion(void)
{
	mutex_lock(&defect_first);
	mutex_lock(&defect_second);
	mutex_unlock(&defect_second);
	mutex_unlock(&defect_first);

	mutex_lock(&defect_second);
	mutex_lock(&defect_first);
	mutex_unlock(&defect_first);
	mutex_unlock(&defect_second);
}

static void defect_use_after_free(void)
{
	char *p = hidden(kzalloc(64, GFP_KERNEL));

	if (!p)
		return;
	kfree(p);
	WRITE_ONCE(((char *)hidden(p))[8], 1);
}

/* Stock kernels notice such reads only where KFENCE guards the allocation, which is rare. */
static void defect_read_after_free(void)
{
	char *p = NULL;
	int i;

	for (i = 0; i < 20000; i++) {
		p = hidden(kzalloc(64, GFP_KERNEL));
		if (!p || IS_ENABLED(CONFIG_KASAN) || is_kfence_address(p))
			break;
		kfree(p);
		usleep_range(1000, 2000);
	}
	kfree(p);
	if (p)
		READ_ONCE(((char *)hidden(p))[8]);
}

static void defect_page_after_free(void)
{
	unsigned long p = __get_free_page(GFP_KERNEL);
	unsigned long again[64] = {};
	int i;

	if (!p)
		return;
	free_page(p);
	WRITE_ONCE(((char *)hidden((void *)p))[8], 1);
	/* the kernel checks a page when it allocates it: allocate until it is the same page */
	for (i = 0; i < ARRAY_SIZE(again); i++) {
		again[i] = __get_free_page(GFP_KERNEL);
		if (again[i] == p)
			break;
	}
	for (i = 0; i < ARRAY_SIZE(again); i++)
		free_page(again[i]);
}

static void defect_out_of_bounds(void)
{
	char *p = hidden(kzalloc(64, GFP_KERNEL));

	if (!p)
		return;
	WRITE_ONCE(p[64], 1);
	kfree(p);
}

static void defect_double_free(void)
{
	void *p = hidden(kzalloc(64, GFP_KERNEL));

	kfree(p);
	kfree(hidden(p));
}

static void defect_leak(void)
{
	int i;

	/* several: an old copy of an address in a register or on a stack hides a leak */
	for (i = 0; i < 16; i++)
		hidden(kzalloc(200, GFP_KERNEL));
}

static void defect_list(void)
{
	struct list_head head, *entry = kzalloc(sizeof(*entry), GFP_KERNEL);

	if (!entry)
		return;
	INIT_LIST_HEAD(&head);
	list_add(entry, &head);
	list_del(entry);
	list_del(hidden(entry));
	kfree(entry);
}

static void defect_refcount(void)
{
	refcount_t count = REFCOUNT_INIT(0);

	if (refcount_dec_and_test(&count))
		pr_info("zero twice\n");
}

static void defect_shift(void)
{
	int bits = 32, one = 1;

	OPTIMIZER_HIDE_VAR(bits);
	pr_info("shifted: %d\n", one << bits);
}

static void defect_bounds(void)
{
	struct {
		int numbers[4], behind[4];
	} array = {};
	int index = 5;

	OPTIMIZER_HIDE_VAR(index);
	array.numbers[index] = 1;
	pr_info("behind: %d\n", array.behind[1]);
}

static void defect_timer_function(struct timer_list *timer)
{
}

static void defect_timer(void)
{
	struct timer_list *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	timer_setup(timer, defect_timer_function, 0);
	mod_timer(timer, jiffies + 3600 * HZ);
	kfree(timer);
}

static void defect_dma_unmap(void)
{
	dma_unmap_single(&defect_device->dev, 0x123456000, 4096, DMA_TO_DEVICE);
}

static void defect_dma_unchecked(void)
{
	struct device *dev = &defect_device->dev;
	void *p = kzalloc(4096, GFP_KERNEL);
	dma_addr_t addr;

	if (!p)
		return;
	addr = dma_map_single(dev, p, 4096, DMA_TO_DEVICE);
	dma_unmap_single(dev, addr, 4096, DMA_TO_DEVICE);
	kfree(p);
}

/*
 * A driver is removed and leaves a mapping that its probe function made. Only PCI drivers
 * are watched: this one takes an unused function that every Q35 machine has.
 */
static int defect_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	void *p = devm_kzalloc(&pdev->dev, 4096, GFP_KERNEL);
	dma_addr_t addr;

	if (!p)
		return -ENOMEM;
	addr = dma_map_single(&pdev->dev, p, 64, DMA_TO_DEVICE);
	return dma_mapping_error(&pdev->dev, addr);
}

static const struct pci_device_id defect_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_INTEL, 0x2930) },	/* the SMBus controller */
	{ }
};

static struct pci_driver defect_driver = {
	.name = "rashpa-defect",
	.id_table = defect_ids,
	.probe = defect_probe,
};

static void defect_dma_leak(void)
{
	if (!pci_register_driver(&defect_driver))
		pci_unregister_driver(&defect_driver);
}

static const struct defect {
	const char *name;
	void (*plant)(void);
} defects[] = {
	{ "rcu", defect_rcu },
	{ "inversion", defect_inversion },
	{ "sleep", defect_sleep },
	{ "refcount", defect_refcount },
	{ "shift", defect_shift },
	{ "bounds", defect_bounds },
	{ "timer", defect_timer },
	{ "dma-unmap", defect_dma_unmap },
	{ "dma-unchecked", defect_dma_unchecked },
	{ "dma-leak", defect_dma_leak },
	{ "list", defect_list },
	{ "leak", defect_leak },
	{ "use-after-free", defect_use_after_free },
	{ "read-after-free", defect_read_after_free },
	{ "page-after-free", defect_page_after_free },
	{ "out-of-bounds", defect_out_of_bounds },
	{ "double-free", defect_double_free },
};

static int defect_show(struct seq_file *file, void *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(defects); i++)
		seq_printf(file, "%s\n", defects[i].name);
	return 0;
}

static int defect_open(struct inode *inode, struct file *file)
{
	return single_open(file, defect_show, NULL);
}

static ssize_t defect_write(struct file *file, const char __user *text, size_t length,
			    loff_t *pos)
{
	char name[32] = {};
	size_t i;

	if (length >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, text, length))
		return -EFAULT;
	strim(name);
	for (i = 0; i < ARRAY_SIZE(defects); i++) {
		if (strcmp(name, defects[i].name))
			continue;
		pr_info("rashpa-defect: planting %s\n", name);
		defects[i].plant();
		pr_info("rashpa-defect: planted %s\n", name);
		return length;
	}
	return -EINVAL;
}

static const struct file_operations defect_fops = {
	.owner = THIS_MODULE,
	.open = defect_open,
	.read = seq_read,
	.write = defect_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static struct dentry *defect_file;

static int __init defect_init(void)
{
	defect_device = platform_device_register_simple("rashpa-defect", PLATFORM_DEVID_NONE,
							NULL, 0);
	if (IS_ERR(defect_device))
		return PTR_ERR(defect_device);
	defect_file = debugfs_create_file("rashpa-defect", 0600, NULL, NULL, &defect_fops);
	return 0;
}
module_init(defect_init);

static void __exit defect_exit(void)
{
	debugfs_remove(defect_file);
	platform_device_unregister(defect_device);
}
module_exit(defect_exit);

MODULE_DESCRIPTION("Defects on purpose, to test what kernels notice");
MODULE_LICENSE("GPL");
