/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Character devices in /dev/rashpa.
 */
#ifndef RASHPA_NODE_H
#define RASHPA_NODE_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>

/* nodes that names cannot take away: of functions, and the driver's own */
#define RASHPA_MINORS_KEPT	256

int rashpa_nodes_init(void);
void rashpa_nodes_exit(void);
void rashpa_node_init(struct device *dev, struct device *parent,
		      void (*release)(struct device *dev));
int rashpa_node_add(struct device *dev, struct cdev *cdev,
		    const struct file_operations *fops, unsigned int first);
void rashpa_node_remove(struct device *dev, struct cdev *cdev);

#endif /* RASHPA_NODE_H */
