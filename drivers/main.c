// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: module, /dev/rashpa/memory and the table of all ioctls.
 */
#include <linux/dma-buf.h>
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
	if (!rashpa_window_info(dmabuf, info) && !rashpa_export_info(dmabuf, info)) {
		info->out_kind = RASHPA_KIND_FOREIGN;
		info->out_length = dmabuf->size;
		info->out_node = NUMA_NO_NODE;
	}
	dma_buf_put(dmabuf);
	return 0;
}

static const struct file_operations rashpa_memory_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = rashpa_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static const struct rashpa_op rashpa_ops[] = {
	RASHPA_OP(memory, ALLOC, alloc, memfd, WRITE_FD, rashpa_ioc_alloc,
		  RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE |
		  RASHPA_ALLOC_LOCK),
	RASHPA_OP(memory, PIN, pin, out_segments, WRITE_FD, rashpa_ioc_pin, 0),
	RASHPA_OP(memory, QUERY, query, out_area, ANY, rashpa_ioc_query, RASHPA_QUERY_NODE,
		  RASHPA_OP_ZERO(query)),
	RASHPA_OP(memory, INFO, info, out_page_size, ANY, rashpa_ioc_info, 0),
	RASHPA_OP(memory, LIST, list, out_count, ANY, rashpa_ioc_list, 0),
	RASHPA_OP(memory, LIMIT, limit, out_user_limit, ANY, rashpa_ioc_buffers_limit, 0,
		  RASHPA_OP_ZERO(limit)),
	RASHPA_OP(memory, LOOK, look, out_events, ANY, rashpa_ioc_look, 0),
	RASHPA_OP(memory, CHANNEL_MAKE, channel_make, out_consumer_size, WRITE_FD,
		  rashpa_ioc_channel, 0),
	RASHPA_OP(buffer, INFO, info, out_page_size, ANY, rashpa_ioc_buffer_info, 0),
	RASHPA_OP(buffer, EXPORT, export, __reserved, FD, rashpa_ioc_export, 0,
		  RASHPA_OP_ZERO(export)),
	RASHPA_OP(buffer, REMOVE, remove, head, SILENT, rashpa_ioc_remove, 0),
	RASHPA_OP(buffer, ROLE, role, out_pid, ANY, rashpa_ioc_role, 0),
	RASHPA_OP(fpga, DEVICE_INFO, device_info, out_engine_stops, ANY, rashpa_ioc_device_info, 0),
	RASHPA_OP(fpga, REGION_INFO, region_info, out_length, ANY, rashpa_ioc_region_info, 0),
	RASHPA_OP(fpga, ENGINE_INFO, engine_info, out_failures, ANY, rashpa_ioc_engine_info, 0),
	RASHPA_OP(fpga, LIST, list, out_count, ANY, rashpa_ioc_list, 0),
	RASHPA_OP(fpga, PROFILE_SET, profile_set, __reserved, WRITE_SILENT, rashpa_ioc_profile,
		  RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_NO_RESET, RASHPA_OP_ZERO(profile_set)),
	RASHPA_OP(fpga, WINDOW_MAKE, window_make, __reserved, WRITE_FD, rashpa_ioc_window,
		  RASHPA_WINDOW_BLANK, RASHPA_OP_ZERO(window_make)),
	RASHPA_OP(fpga, MAP_MAKE, map_make, out_flags, WRITE_FD, rashpa_ioc_map,
		  RASHPA_MAP_DEVICE | RASHPA_MAP_PIN),
	RASHPA_OP(fpga, CHANNEL_MAKE, channel_make, out_consumer_size, WRITE_FD,
		  rashpa_ioc_channel, 0),
	RASHPA_OP(fpga, QUIESCE, quiesce, out_time_ns, WRITE, rashpa_ioc_quiesce,
		  RASHPA_QUIESCE_MAP, RASHPA_OP_ZERO(quiesce)),
	RASHPA_OP(fpga, RESET, reset, head, WRITE_SILENT, rashpa_ioc_reset, 0),
	RASHPA_OP(map, PROGRAM, program, out_descriptors, ANY, rashpa_ioc_program,
		  RASHPA_PROGRAM_AGAIN),
	RASHPA_OP(map, RESTORE, restore, out_segments, ANY, rashpa_ioc_restore, 0),
	RASHPA_OP(channel, SOURCE_ADD, source_add, budget, ANY, rashpa_ioc_source_add,
		  RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL | RASHPA_SOURCE_LOOK |
		  RASHPA_SOURCE_ONE_SHOT | RASHPA_SOURCE_COUNTER, RASHPA_OP_ZERO(source_add)),
	RASHPA_OP(channel, SOURCE_DEL, source_del, __reserved, SILENT, rashpa_ioc_source_del, 0,
		  RASHPA_OP_ZERO(source_del)),
	RASHPA_OP(channel, EVENTFD_BIND, eventfd_bind, id, SILENT, rashpa_ioc_eventfd, 0),
	RASHPA_OP(channel, SIGNAL, signal, value, SILENT, rashpa_ioc_signal, 0),
	RASHPA_OP(channel, GROUP_MAKE, group_make, __reserved, ANY, rashpa_ioc_group, 0,
		  RASHPA_OP_ZERO(group_make)),
	RASHPA_OP(channel, ACK, ack, position, SILENT, rashpa_ioc_ack, 0, RASHPA_OP_ZERO(ack)),
	RASHPA_OP(channel, SOURCE_INFO, source_info, out_period_ns, ANY, rashpa_ioc_source_info, 0),
	RASHPA_OP(channel, GROUP_INFO, group_info, out_overruns, ANY, rashpa_ioc_group_info, 0),
	RASHPA_OP(channel, ARM, arm, __reserved, ANY, rashpa_ioc_arm, 0, RASHPA_OP_ZERO(arm)),
};

/* ------------------------------------------------- /dev/rashpa/memory --- */

static struct device *rashpa_memory_dev;
static struct cdev rashpa_memory_cdev;

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

/* ---------------------------------------------------------- module ------ */

static int __init rashpa_init(void)
{
	int err;

	rashpa_call_init(rashpa_ops, ARRAY_SIZE(rashpa_ops));
	err = rashpa_nodes_init();
	if (err)
		return err;
	rashpa_account_init();
	rashpa_contig_check();
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
	rashpa_nodes_exit();
	return err;
}

static void __exit rashpa_exit(void)
{
	rashpa_node_remove(rashpa_memory_dev, &rashpa_memory_cdev);
	put_device(rashpa_memory_dev);
	rashpa_pci_exit();
	rashpa_maps_exit();
	rashpa_buffers_exit();
	rashpa_search_exit();
	rashpa_nodes_exit();
}

module_init(rashpa_init);
module_exit(rashpa_exit);

MODULE_DESCRIPTION("Detector data straight into host, GPU and FPGA memory");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.3.0");
/* not MODULE_IMPORT_NS(): older kernels expect a symbol, newer ones a string */
MODULE_INFO(import_ns, "DMA_BUF");
