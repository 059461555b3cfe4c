// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: module, /dev/rashpa/memory and the table of all ioctls.
 */
#include <linux/dma-buf.h>
#include <linux/dma-mapping.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/node.h"
#include "memory/memory.h"
#include "function/function.h"
#include "events/events.h"

/* ---------------------------------------------------------- ioctls ------ */

/* Here, because windows and buffers are in different subdirectories. */
static int rashpa_ioc_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_info *info = arg;
	struct dma_buf *dmabuf;

	rashpa_info_clear(info);
	dmabuf = dma_buf_get(info->fd);
	if (IS_ERR(dmabuf))
		return rashpa_fail(call, PTR_ERR(dmabuf), "fd %d is not a dma-buf", info->fd);
	if (rashpa_dmabuf_is_window(dmabuf)) {
		rashpa_window_info(dmabuf, info);
	} else if (!rashpa_export_info(dmabuf, info)) {
		info->out_kind = RASHPA_KIND_FOREIGN;
		info->out_length = dmabuf->size;
		info->out_node = NUMA_NO_NODE;
	}
	dma_buf_put(dmabuf);
	return 0;
}

static const struct rashpa_op rashpa_ops[] = {
	RASHPA_OP(MEMORY, ALLOC, rashpa_alloc, __reserved,
		  RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE |
		  RASHPA_ALLOC_LOCK,
		  RASHPA_OP_WRITE, rashpa_ioc_alloc),
	RASHPA_OP(MEMORY, PIN, rashpa_pin, out_segments,
		  0, RASHPA_OP_WRITE, rashpa_ioc_pin),
	RASHPA_OP(MEMORY, QUERY, rashpa_query, out_area,
		  RASHPA_QUERY_NODE, 0, rashpa_ioc_query),
	RASHPA_OP(MEMORY, INFO, rashpa_info, out_page_size,
		  0, 0, rashpa_ioc_info),
	RASHPA_OP(MEMORY, LIST, rashpa_list, out_count,
		  0, 0, rashpa_ioc_list),
	RASHPA_OP(MEMORY, LIMIT, rashpa_limit, out_user_limit,
		  0, 0, rashpa_ioc_buffers_limit),
	RASHPA_OP(MEMORY, LOOK, rashpa_look, out_events,
		  0, 0, rashpa_ioc_look),
	RASHPA_OP(MEMORY, CHANNEL_MAKE, rashpa_channel_make, out_consumer_size,
		  0, RASHPA_OP_WRITE, rashpa_ioc_channel),
	RASHPA_OP(BUFFER, INFO, rashpa_info, out_page_size,
		  0, 0, rashpa_ioc_buffer_info),
	RASHPA_OP(BUFFER, EXPORT, rashpa_export, __reserved,
		  0, 0, rashpa_ioc_export),
	RASHPA_OP(BUFFER, REMOVE, rashpa_remove, head,
		  0, RASHPA_OP_SILENT, rashpa_ioc_remove),
	RASHPA_OP(BUFFER, ROLE, rashpa_role, out_pid,
		  0, 0, rashpa_ioc_role),
	RASHPA_OP(FPGA, DEVICE_INFO, rashpa_device_info, out_engine_stops,
		  0, 0, rashpa_ioc_device_info),
	RASHPA_OP(FPGA, REGION_INFO, rashpa_region_info, out_length,
		  0, 0, rashpa_ioc_region_info),
	RASHPA_OP(FPGA, ENGINE_INFO, rashpa_engine_info, out_failures,
		  0, 0, rashpa_ioc_engine_info),
	RASHPA_OP(FPGA, LIST, rashpa_list, out_count,
		  0, 0, rashpa_ioc_device_list),
	RASHPA_OP(FPGA, PROFILE_SET, rashpa_profile_set, __reserved,
		  RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_NO_RESET,
		  RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_profile),
	RASHPA_OP(FPGA, WINDOW_MAKE, rashpa_window_make, __reserved,
		  RASHPA_WINDOW_BLANK, RASHPA_OP_WRITE, rashpa_ioc_window),
	RASHPA_OP(FPGA, MAP_MAKE, rashpa_map_make, out_flags,
		  RASHPA_MAP_DEVICE | RASHPA_MAP_PIN, RASHPA_OP_WRITE, rashpa_ioc_map),
	RASHPA_OP(FPGA, CHANNEL_MAKE, rashpa_channel_make, out_consumer_size,
		  0, RASHPA_OP_WRITE, rashpa_ioc_fpga_channel),
	RASHPA_OP(FPGA, QUIESCE, rashpa_quiesce, out_time_ns,
		  RASHPA_QUIESCE_MAP, RASHPA_OP_WRITE, rashpa_ioc_quiesce),
	RASHPA_OP(FPGA, RESET, rashpa_reset, head,
		  0, RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_reset),
	RASHPA_OP(MAP, PROGRAM, rashpa_program, out_descriptors,
		  RASHPA_PROGRAM_AGAIN, 0, rashpa_ioc_program),
	RASHPA_OP(MAP, RESTORE, rashpa_restore, out_segments,
		  0, 0, rashpa_ioc_restore),
	RASHPA_OP(CHANNEL, SOURCE_ADD, rashpa_source_add, budget,
		  RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL |
		  RASHPA_SOURCE_LOOK | RASHPA_SOURCE_ONE_SHOT, 0, rashpa_ioc_source_add),
	RASHPA_OP(CHANNEL, SOURCE_DEL, rashpa_source_del, __reserved,
		  0, RASHPA_OP_SILENT, rashpa_ioc_source_del),
	RASHPA_OP(CHANNEL, EVENTFD_BIND, rashpa_eventfd_bind, id,
		  0, RASHPA_OP_SILENT, rashpa_ioc_eventfd),
	RASHPA_OP(CHANNEL, SIGNAL, rashpa_signal, value,
		  0, RASHPA_OP_SILENT, rashpa_ioc_signal),
	RASHPA_OP(CHANNEL, GROUP_MAKE, rashpa_group_make, __reserved,
		  0, 0, rashpa_ioc_group),
	RASHPA_OP(CHANNEL, ACK, rashpa_ack, position,
		  0, RASHPA_OP_SILENT, rashpa_ioc_ack),
	RASHPA_OP(CHANNEL, SOURCE_INFO, rashpa_source_info, out_period_ns,
		  0, 0, rashpa_ioc_source_info),
	RASHPA_OP(CHANNEL, GROUP_INFO, rashpa_group_info, out_overruns,
		  0, 0, rashpa_ioc_group_info),
	RASHPA_OP(CHANNEL, ARM, rashpa_arm, __reserved,
		  0, 0, rashpa_ioc_arm),
};

/* ------------------------------------------------- /dev/rashpa/memory --- */

static struct device *rashpa_memory_dev;
static struct cdev rashpa_memory_cdev;

static long rashpa_memory_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_MEMORY, file, cmd, arg);
}

static const struct file_operations rashpa_memory_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = rashpa_memory_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static void rashpa_memory_dev_release(struct device *dev)
{
	kfree(dev);
}

static int rashpa_memory_init(void)
{
	int err;

	rashpa_memory_dev = kzalloc(sizeof(*rashpa_memory_dev), GFP_KERNEL);
	if (!rashpa_memory_dev)
		return -ENOMEM;
	rashpa_node_init(rashpa_memory_dev, NULL, rashpa_memory_dev_release);
	err = dev_set_name(rashpa_memory_dev, "memory");
	if (!err)
		err = rashpa_node_add(rashpa_memory_dev, &rashpa_memory_cdev,
				      &rashpa_memory_fops, 0);
	if (err)
		put_device(rashpa_memory_dev);
	return err;
}

static void rashpa_memory_exit(void)
{
	rashpa_node_remove(rashpa_memory_dev, &rashpa_memory_cdev);
	put_device(rashpa_memory_dev);
}

/* ---------------------------------------------------------- module ------ */

static int __init rashpa_init(void)
{
	int err;

	rashpa_call_init(rashpa_ops, ARRAY_SIZE(rashpa_ops));
	err = rashpa_nodes_init();
	if (err)
		return err;
	rashpa_account_init();
	err = rashpa_search_init();
	if (err)
		goto out_nodes;
	err = rashpa_maps_init();
	if (err)
		goto out_search;
	err = rashpa_pci_init();
	if (err)
		goto out_maps;
	/* last: a process could open the node, and a later failure would unload the module */
	err = rashpa_memory_init();
	if (err)
		goto out_pci;
	return 0;

out_pci:
	rashpa_pci_exit();
out_maps:
	rashpa_maps_exit();
out_search:
	rashpa_search_exit();
out_nodes:
	rashpa_nodes_exit();
	return err;
}

static void __exit rashpa_exit(void)
{
	rashpa_memory_exit();
	rashpa_pci_exit();
	rashpa_maps_exit();
	rashpa_nodes_exit();
	rashpa_buffers_exit();
	rashpa_search_exit();
}

module_init(rashpa_init);
module_exit(rashpa_exit);

MODULE_DESCRIPTION("Detector data straight into host, GPU and FPGA memory");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.2.0");
/* not MODULE_IMPORT_NS(): older kernels expect a symbol, newer ones a string */
MODULE_INFO(import_ns, "DMA_BUF");
