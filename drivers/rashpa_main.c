// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: module, character devices, the one ioctl table.
 */
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rashpa.h"
#include "rashpa_compat.h"

#define RASHPA_MINORS	1024

static dev_t rashpa_devt;
static DEFINE_IDA(rashpa_minors);

/* ---------------------------------------------------------- ioctls ------ */

/* only on a file that is open for writing */
#define RASHPA_OP_WRITE		BIT(0)
/*
 * The struct has no out_ fields: nothing is stored when it is done, because what cannot be
 * stored must not make a failure of what was done for good.
 */
#define RASHPA_OP_SILENT	BIT(1)

/**
 * struct rashpa_op - one line of the ioctl table
 * @node: where it may be called
 * @cmd: number
 * @min: size of the struct as first published
 * @size: size of the struct now
 * @flags: that head.flags may hold
 * @rules: RASHPA_OP_*
 * @fn: handler; its argument is the kernel's copy of the struct
 */
struct rashpa_op {
	enum rashpa_node node;
	unsigned int cmd;
	size_t min;
	size_t size;
	u32 flags;
	u32 rules;
	int (*fn)(struct rashpa_call *call, void *arg);
};

#define RASHPA_OP(_node, _cmd, _struct, _last, _flags, _rules, _fn) {	\
	.node = RASHPA_NODE_##_node,					\
	.cmd = RASHPA_IOC_##_cmd,					\
	.min = offsetofend(struct _struct, _last),			\
	.size = sizeof(struct _struct),					\
	.flags = (_flags),						\
	.rules = (_rules),						\
	.fn = (_fn),							\
}

static const struct rashpa_op rashpa_ops[] = {
	RASHPA_OP(MEMORY, ALLOC, rashpa_alloc, __reserved,
		  RASHPA_ALLOC_NODE | RASHPA_ALLOC_EXCLUSIVE | RASHPA_ALLOC_MODE,
		  RASHPA_OP_WRITE, rashpa_ioc_alloc),
	RASHPA_OP(MEMORY, OPEN, rashpa_open, __reserved,
		  RASHPA_OPEN_EXCLUSIVE | RASHPA_OPEN_READ, 0, rashpa_ioc_open),
	RASHPA_OP(MEMORY, REMOVE, rashpa_remove, name,
		  0, RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_remove),
	RASHPA_OP(MEMORY, QUERY, rashpa_query, __reserved,
		  RASHPA_QUERY_NODE | RASHPA_QUERY_TRY | RASHPA_QUERY_USAGE,
		  0, rashpa_ioc_query),
	RASHPA_OP(MEMORY, PERMIT, rashpa_permit, __reserved,
		  RASHPA_PERMIT_UID | RASHPA_PERMIT_GID | RASHPA_PERMIT_MODE,
		  RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_permit),
	RASHPA_OP(MEMORY, PIN, rashpa_pin, out_segments,
		  0, RASHPA_OP_WRITE, rashpa_ioc_pin),
	RASHPA_OP(MEMORY, INFO, rashpa_info, out_name,
		  0, 0, rashpa_ioc_info),
	RASHPA_OP(BUFFER, INFO, rashpa_info, out_name,
		  0, 0, rashpa_ioc_buffer_info),
	RASHPA_OP(BUFFER, EXPORT, rashpa_export, __reserved,
		  0, 0, rashpa_ioc_dmabuf),
	RASHPA_OP(FPGA, DEVICE_INFO, rashpa_device_info, out_interrupts,
		  0, 0, rashpa_ioc_device_info),
	RASHPA_OP(FPGA, REGION_INFO, rashpa_region_info, out_length,
		  0, 0, rashpa_ioc_region_info),
	RASHPA_OP(FPGA, PROFILE_SET, rashpa_profile_set, table_layout,
		  RASHPA_PROFILE_DISCLOSE | RASHPA_PROFILE_TABLE,
		  RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_profile),
	RASHPA_OP(FPGA, WINDOW_MAKE, rashpa_window_make, __reserved,
		  0, RASHPA_OP_WRITE, rashpa_ioc_window),
	RASHPA_OP(FPGA, MAP_MAKE, rashpa_map_make, out_table_size,
		  RASHPA_MAP_DEVICE | RASHPA_MAP_KEEP, RASHPA_OP_WRITE, rashpa_ioc_map),
	RASHPA_OP(FPGA, CHANNEL_MAKE, rashpa_channel_make, out_fd,
		  0, RASHPA_OP_WRITE, rashpa_ioc_events),
	RASHPA_OP(FPGA, LOCK, rashpa_lock, out_length,
		  0, RASHPA_OP_WRITE, rashpa_ioc_lock),
	RASHPA_OP(FPGA, QUIESCE, rashpa_quiesce, out_time_ns,
		  0, RASHPA_OP_WRITE, rashpa_ioc_quiesce),
	RASHPA_OP(FPGA, RESET, rashpa_reset, head,
		  0, RASHPA_OP_WRITE | RASHPA_OP_SILENT, rashpa_ioc_reset),
	RASHPA_OP(MAP, PROGRAM, rashpa_program, __reserved,
		  0, 0, rashpa_ioc_program),
	RASHPA_OP(MAP, RESTORE, rashpa_restore, out_segments,
		  0, 0, rashpa_ioc_restore),
	RASHPA_OP(CHANNEL, SOURCE_ADD, rashpa_source_add, __reserved,
		  RASHPA_SOURCE_OF | RASHPA_SOURCE_QUIET | RASHPA_SOURCE_POLL,
		  0, rashpa_ioc_source_add),
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
};

/* Room for the largest struct; on the stack, so it has to stay small. */
union rashpa_arg {
	struct rashpa_head head;
	struct rashpa_alloc alloc;
	struct rashpa_query query;
	struct rashpa_info info;
	struct rashpa_device_info device_info;
	struct rashpa_map_make map;
	struct rashpa_window_make window;
	struct rashpa_profile_set profile;
	struct rashpa_program program;
	struct rashpa_source_add source_add;
	struct rashpa_source_info source_info;
	struct rashpa_group_info group_info;
};

/**
 * rashpa_fail() - keep the sentence that explains an error
 * @call: the ioctl
 * @err: negative errno
 * @fmt: sentence without a final newline: thing, reason, remedy
 *
 * Return: @err.
 */
int rashpa_fail(struct rashpa_call *call, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(call->reason, sizeof(call->reason), fmt, args);
	va_end(args);
	return err;
}

/**
 * rashpa_call_reserve_fd() - promise a file descriptor before doing the work
 * @call: the ioctl
 *
 * Return: 0 or a negative errno. The dispatcher releases it on failure.
 */
int rashpa_call_reserve_fd(struct rashpa_call *call)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return rashpa_fail(call, fd, "no file descriptor is free: raise RLIMIT_NOFILE");
	call->fd = fd;
	return 0;
}

static const struct rashpa_op *rashpa_op_find(enum rashpa_node node,
					      unsigned int cmd)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rashpa_ops); i++)
		if (rashpa_ops[i].node == node && rashpa_ops[i].cmd == cmd)
			return &rashpa_ops[i];
	return NULL;
}

static int rashpa_call_run(const struct rashpa_op *op, struct rashpa_call *call,
			   union rashpa_arg *arg, void __user *uarg, u32 usize)
{
	int err;

	if (usize < op->min)
		return rashpa_fail(call, -EINVAL,
				   "size %u is less than the %zu bytes of this struct",
				   usize, op->min);
	err = copy_struct_from_user(arg, op->size, uarg, usize);
	if (err == -E2BIG)
		return rashpa_fail(call, err,
				   "the struct has fields that this driver does not know (%u bytes, %zu known): update the driver",
				   usize, op->size);
	if (err)
		return err;
	if (arg->head.flags & ~op->flags)
		return rashpa_fail(call, -EINVAL, "flags 0x%x are not defined",
				   arg->head.flags & ~op->flags);
	if (arg->head.__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field of the head is not zero");

	if (op->rules & RASHPA_OP_WRITE && !(call->file->f_mode & FMODE_WRITE))
		return rashpa_fail(call, -EPERM,
				   "/dev/%pD2 is open read-only: open it for writing",
				   call->file);

	/* Can the answer be stored? It is too late to ask when things were done. */
	if (copy_to_user(uarg, arg, min_t(size_t, usize, op->size)))
		return -EFAULT;

	err = op->fn(call, arg);
	if (err || op->rules & RASHPA_OP_SILENT)
		return err;

	/* The size the caller knows stays in head.size: copy no more than that. */
	if (copy_to_user(uarg, arg, min_t(size_t, usize, op->size))) {
		if (call->undo)
			call->undo(call);
		return -EFAULT;
	}
	return 0;
}

static void rashpa_call_explain(const struct rashpa_call *call,
				const struct rashpa_head *head)
{
	size_t len = strlen(call->reason) + 1;
	char __user *to = u64_to_user_ptr(head->reason);
	size_t room = head->reason_size;

	if (!head->reason || !room)
		return;
	/* The errno matters more than the sentence: a bad pointer is not reported. */
	if (len <= room) {
		if (copy_to_user(to, call->reason, len))
			return;
	} else if (!copy_to_user(to, call->reason, room - 1)) {
		put_user('\0', to + room - 1);
	}
}

/**
 * rashpa_ioctl() - every ioctl of every node comes through here
 * @node: kind of file
 * @file: the file
 * @cmd: number
 * @arg: user pointer to the struct
 *
 * Return: 0 or a negative errno.
 */
long rashpa_ioctl(enum rashpa_node node, struct file *file, unsigned int cmd,
		  unsigned long arg)
{
	const struct rashpa_op *op = rashpa_op_find(node, cmd);
	void __user *uarg = (void __user *)arg;
	struct rashpa_call call = {
		.file = file,
		.obj = file->private_data,
		.fd = -1,
	};
	struct rashpa_head head = {};
	union rashpa_arg karg = {};
	u32 usize;
	int err;

	BUILD_BUG_ON(sizeof(karg) > 256);

	if (!op)
		return -ENOTTY;
	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	if (usize < sizeof(head))
		return -EINVAL;
	if (copy_from_user(&head, uarg, sizeof(head)))
		return -EFAULT;
	/* Another thread may have changed it since: the first reading counts. */
	head.size = usize;

	err = rashpa_call_run(op, &call, &karg, uarg, usize);
	if (err) {
		if (call.new_file)
			fput(call.new_file);
		if (call.fd >= 0)
			put_unused_fd(call.fd);
		rashpa_call_explain(&call, &head);
		return err;
	}
	if (call.fd >= 0)
		fd_install(call.fd, call.new_file);
	return 0;
}

/**
 * rashpa_check_name() - is this a valid name
 * @call: the ioctl
 * @name: array of @size bytes from user space
 * @size: of the array
 *
 * The alphabet keeps out everything that has a meaning in a path.
 *
 * Return: 0, -ENAMETOOLONG without a NUL, -EINVAL.
 */
int rashpa_check_name(struct rashpa_call *call, const char *name, size_t size)
{
	size_t len = strnlen(name, size);
	size_t i;

	if (len == size)
		return rashpa_fail(call, -ENAMETOOLONG, "the name is longer than %zu bytes",
				   size - 1);
	if (!len)
		return rashpa_fail(call, -EINVAL, "the name is empty");
	if (name[0] == '.')
		return rashpa_fail(call, -EINVAL, "the name begins with a dot");
	for (i = 0; i < len; i++) {
		char c = name[i];

		if (!isascii(c) || !(isalnum(c) || strchr("._-", c)))
			return rashpa_fail(call, -EINVAL,
					   "the name has a byte 0x%02x: use letters, digits and . _ -",
					   (unsigned char)c);
	}
	if (memchr_inv(name + len, 0, size - len))
		return rashpa_fail(call, -EINVAL, "bytes after the end of the name are not zero");
	return 0;
}

/* --------------------------------------------------- character nodes ---- */

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

/**
 * rashpa_node_init() - prepare a class device; its name is still to be set
 * @dev: the device
 * @parent: bus device, or NULL
 * @release: frees the struct around it
 */
void rashpa_node_init(struct device *dev, struct device *parent,
		      void (*release)(struct device *dev))
{
	device_initialize(dev);
	dev->class = &rashpa_class;
	dev->parent = parent;
	dev->release = release;
}

static void rashpa_node_free_minor(struct device *dev)
{
	ida_free(&rashpa_minors, MINOR(dev->devt));
}

/**
 * rashpa_node_add() - make the node appear in /dev/rashpa
 * @dev: from rashpa_node_init(), with a name
 * @cdev: goes with it
 * @fops: of the node
 *
 * Return: 0 or a negative errno.
 */
int rashpa_node_add(struct device *dev, struct cdev *cdev,
		    const struct file_operations *fops)
{
	int minor = ida_alloc_max(&rashpa_minors, RASHPA_MINORS - 1, GFP_KERNEL);
	int err;

	if (minor < 0)
		return minor;
	dev->devt = MKDEV(MAJOR(rashpa_devt), minor);
	cdev_init(cdev, fops);
	cdev->owner = THIS_MODULE;
	err = cdev_device_add(cdev, dev);
	if (err) {
		rashpa_node_free_minor(dev);
		return err;
	}
	return 0;
}

/**
 * rashpa_node_remove() - take the node away; open files stay valid
 * @dev: the device
 * @cdev: goes with it
 */
void rashpa_node_remove(struct device *dev, struct cdev *cdev)
{
	cdev_device_del(cdev, dev);
	rashpa_node_free_minor(dev);
}

/* ------------------------------------------------- /dev/rashpa/memory --- */

static struct device *rashpa_memory_dev;
static struct cdev rashpa_memory_cdev;

static long rashpa_memory_ioctl(struct file *file, unsigned int cmd,
				unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_MEMORY, file, cmd, arg);
}

static int rashpa_memory_open(struct inode *inode, struct file *file)
{
	file->private_data = kzalloc(sizeof(struct rashpa_progress), GFP_KERNEL_ACCOUNT);
	return file->private_data ? 0 : -ENOMEM;
}

static int rashpa_memory_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static const struct file_operations rashpa_memory_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_memory_open,
	.release = rashpa_memory_release,
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
				      &rashpa_memory_fops);
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

	err = alloc_chrdev_region(&rashpa_devt, 0, RASHPA_MINORS, "rashpa");
	if (err)
		return err;
	err = class_register(&rashpa_class);
	if (err)
		goto out_chrdev;
	rashpa_contig_init();
	err = rashpa_maps_init();
	if (err)
		goto out_class;
	err = rashpa_pci_init();
	if (err)
		goto out_maps;
	/* last: who opened it would be left with a module that goes */
	err = rashpa_memory_init();
	if (err)
		goto out_pci;
	return 0;

out_pci:
	rashpa_pci_exit();
out_maps:
	rashpa_maps_exit();
out_class:
	class_unregister(&rashpa_class);
out_chrdev:
	unregister_chrdev_region(rashpa_devt, RASHPA_MINORS);
	return err;
}

static void __exit rashpa_exit(void)
{
	rashpa_memory_exit();
	rashpa_pci_exit();
	rashpa_maps_exit();
	class_unregister(&rashpa_class);
	unregister_chrdev_region(rashpa_devt, RASHPA_MINORS);
	ida_destroy(&rashpa_minors);
}

module_init(rashpa_init);
module_exit(rashpa_exit);

MODULE_DESCRIPTION("Detector data straight into host, GPU and FPGA memory");
MODULE_AUTHOR("rashpa authors");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1.0");
/* written out, because the macro wants a symbol on older kernels, a string on newer */
MODULE_INFO(import_ns, "DMA_BUF");
