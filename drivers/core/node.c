// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: character devices in /dev/rashpa.
 */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/string.h>

#include "core/compat.h"
#include "core/node.h"

#define RASHPA_MINORS	16384

static dev_t rashpa_devt;
static DEFINE_IDA(rashpa_minors);

static char *rashpa_devnode(RASHPA_DEVNODE_CONST struct device *dev, umode_t *mode)
{
	char *path = kasprintf(GFP_KERNEL, "rashpa/%s", dev_name(dev));

	if (mode)
		*mode = 0660;
	/* sysfs has no slashes in names: "buffer!NAME" there is buffer/NAME here */
	if (path)
		strreplace(path, '!', '/');
	return path;
}

static struct class rashpa_class = {
	.name = "rashpa",
	.devnode = rashpa_devnode,
};

/* Prepare a class device, whose name is still to be set. @release frees the struct around it. */
void rashpa_node_init(struct device *dev, struct device *parent,
		      void (*release)(struct device *dev))
{
	device_initialize(dev);
	dev->class = &rashpa_class;
	dev->parent = parent;
	dev->release = release;
}

/*
 * Make the node of a named @dev appear in /dev/rashpa. @first: smallest minor number:
 * RASHPA_MINORS_KEPT for what users make, else 0. Return: 0, -ENOSPC without a minor number, or
 * another negative errno.
 */
int rashpa_node_add(struct device *dev, struct cdev *cdev,
		    const struct file_operations *fops, unsigned int first)
{
	int minor = ida_alloc_range(&rashpa_minors, first, RASHPA_MINORS - 1, GFP_KERNEL);
	int err;

	if (minor < 0)
		return minor;
	dev->devt = MKDEV(MAJOR(rashpa_devt), minor);
	cdev_init(cdev, fops);
	cdev->owner = THIS_MODULE;
	err = cdev_device_add(cdev, dev);
	if (err)
		ida_free(&rashpa_minors, minor);
	return err;
}

/* Take the node away; open files stay valid. */
void rashpa_node_remove(struct device *dev, struct cdev *cdev)
{
	cdev_device_del(cdev, dev);
	ida_free(&rashpa_minors, MINOR(dev->devt));
}

int rashpa_nodes_init(void)
{
	int err = alloc_chrdev_region(&rashpa_devt, 0, RASHPA_MINORS, "rashpa");

	if (err)
		return err;
	err = class_register(&rashpa_class);
	if (err)
		unregister_chrdev_region(rashpa_devt, RASHPA_MINORS);
	return err;
}

void rashpa_nodes_exit(void)
{
	class_unregister(&rashpa_class);
	unregister_chrdev_region(rashpa_devt, RASHPA_MINORS);
}
