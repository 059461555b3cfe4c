// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: named buffers: nodes, owners, leases.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "rashpa_compat.h"
#include "rashpa_memory.h"
#include "rashpa_node.h"

/**
 * struct rashpa_named - a name, its node, and the buffer it keeps alive
 * @dev: class device; releases the reference to @buffer with its own last one
 * @cdev: /dev/rashpa/buffer/NAME
 * @buffer: one reference
 * @charge: of the name
 * @entry: in rashpa_names
 */
struct rashpa_named {
	struct device dev;
	struct cdev cdev;
	struct rashpa_buffer *buffer;
	struct rashpa_charge charge;
	struct list_head entry;
};

static LIST_HEAD(rashpa_names);
static DEFINE_MUTEX(rashpa_names_lock);	/* protects rashpa_names */

/* ------------------------------------------------------------ leases ---- */

/**
 * rashpa_lease_new() - open a named buffer
 * @call: the ioctl, for the reason; NULL for open(2)
 * @buffer: the buffer; the lease takes its own reference
 * @exclusive: only if nobody else has one, and nobody gets one
 *
 * Return: the lease, or an error pointer: -EBUSY, -ENOMEM.
 */
struct rashpa_lease *rashpa_lease_new(struct rashpa_call *call,
				      struct rashpa_buffer *buffer, bool exclusive)
{
	struct rashpa_lease *lease;
	int err = 0;

	lease = kzalloc(sizeof(*lease), GFP_KERNEL_ACCOUNT);
	if (!lease)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&buffer->lock);
	if (buffer->exclusive || (exclusive && buffer->leases)) {
		err = -EBUSY;
		if (call)
			rashpa_fail(call, err, "%s is %s: %u lease(s)", buffer->name,
				    buffer->exclusive ? "leased exclusively" :
							"in use, it cannot be leased exclusively",
				    buffer->leases);
	} else {
		buffer->leases++;
		buffer->exclusive = exclusive;
	}
	mutex_unlock(&buffer->lock);
	if (err) {
		kfree(lease);
		return ERR_PTR(err);
	}
	kref_init(&lease->ref);
	kref_get(&buffer->ref);
	lease->buffer = buffer;
	lease->exclusive = exclusive;
	return lease;
}

static void rashpa_lease_free(struct kref *ref)
{
	struct rashpa_lease *lease = container_of(ref, struct rashpa_lease, ref);
	struct rashpa_buffer *buffer = lease->buffer;

	mutex_lock(&buffer->lock);
	buffer->leases--;
	if (lease->exclusive)
		buffer->exclusive = false;
	mutex_unlock(&buffer->lock);
	rashpa_buffer_put(buffer);
	kfree(lease);
}

void rashpa_lease_hold(struct rashpa_lease *lease)
{
	kref_get(&lease->ref);
}

void rashpa_lease_put(struct rashpa_lease *lease)
{
	kref_put(&lease->ref, rashpa_lease_free);
}

/* ------------------------------------------------------------ owners ---- */

/* May the caller open @buffer for what @want (MAY_READ, MAY_WRITE) says? */
static bool rashpa_buffer_permits(struct rashpa_buffer *buffer, int want)
{
	umode_t mode;

	mutex_lock(&buffer->lock);
	mode = buffer->mode;
	if (uid_eq(current_fsuid(), buffer->uid))
		mode >>= 6;
	else if (in_group_p(buffer->gid))
		mode >>= 3;
	mutex_unlock(&buffer->lock);
	return !(want & ~mode) || capable(CAP_DAC_OVERRIDE);
}

static bool rashpa_buffer_is_mine(struct rashpa_buffer *buffer, int cap)
{
	lockdep_assert_held(&buffer->lock);
	return uid_eq(current_fsuid(), buffer->uid) || capable(cap);
}

/* ------------------------------------------- /dev/rashpa/buffer/NAME ---- */

static int rashpa_buffer_node_open(struct inode *inode, struct file *file)
{
	struct rashpa_named *named = container_of(inode->i_cdev,
						  struct rashpa_named, cdev);
	struct rashpa_lease *lease;
	int want = 0;

	if (file->f_mode & FMODE_READ)
		want |= MAY_READ;
	if (file->f_mode & FMODE_WRITE)
		want |= MAY_WRITE;
	/* access mode 3: neither, for ioctls; the kernel asks the node's mode for both */
	if (!want)
		want = MAY_READ | MAY_WRITE;
	if (!rashpa_buffer_permits(named->buffer, want))
		return -EACCES;
	lease = rashpa_lease_new(NULL, named->buffer, file->f_flags & O_EXCL);
	if (IS_ERR(lease))
		return PTR_ERR(lease);
	file->private_data = lease;
	return 0;
}

static int rashpa_buffer_node_release(struct inode *inode, struct file *file)
{
	rashpa_lease_put(file->private_data);
	return 0;
}

static int rashpa_buffer_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct rashpa_lease *lease = file->private_data;

	return rashpa_buffer_mmap(lease->buffer, vma);
}

static long rashpa_buffer_node_ioctl(struct file *file, unsigned int cmd,
				     unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_BUFFER, file, cmd, arg);
}

static loff_t rashpa_buffer_node_llseek(struct file *file, loff_t offset, int whence)
{
	struct rashpa_lease *lease = file->private_data;

	/* for programs that find out the size by seeking to the end */
	return fixed_size_llseek(file, offset, whence, lease->buffer->length);
}

static const struct file_operations rashpa_buffer_node_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_buffer_node_open,
	.release = rashpa_buffer_node_release,
	.mmap = rashpa_buffer_node_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.llseek = rashpa_buffer_node_llseek,
	.fsync = noop_fsync, /* msync: numpy.memmap.flush() */
	.unlocked_ioctl = rashpa_buffer_node_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* The node appears with its owner: there is no moment when others could open it. */
static char *rashpa_buffer_devnode(RASHPA_DEVNODE_CONST struct device *dev,
				   umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	RASHPA_DEVNODE_CONST struct rashpa_named *named =
		container_of(dev, struct rashpa_named, dev);

	if (mode)
		*mode = named->buffer->mode;
	if (uid)
		*uid = named->buffer->uid;
	if (gid)
		*gid = named->buffer->gid;
	return kasprintf(GFP_KERNEL, "rashpa/buffer/%s", named->buffer->name);
}

static const struct device_type rashpa_buffer_type = {
	.name = "rashpa_buffer",
	.devnode = rashpa_buffer_devnode,
};

/* ------------------------------------------------------------- names ---- */

static struct rashpa_named *rashpa_named_find(const char *name)
{
	struct rashpa_named *named;

	lockdep_assert_held(&rashpa_names_lock);
	list_for_each_entry(named, &rashpa_names, entry)
		if (!strcmp(named->buffer->name, name))
			return named;
	return NULL;
}

/* The buffer named @name with a reference, or NULL and a reason. */
static struct rashpa_buffer *rashpa_named_get(struct rashpa_call *call, const char *name)
{
	struct rashpa_buffer *buffer = NULL;
	struct rashpa_named *named;

	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(name);
	if (named) {
		buffer = named->buffer;
		kref_get(&buffer->ref);
	} else {
		rashpa_fail(call, -ENOENT, "no buffer is named %s", name);
	}
	mutex_unlock(&rashpa_names_lock);
	return buffer;
}

bool rashpa_name_taken(const char *name)
{
	bool taken;

	mutex_lock(&rashpa_names_lock);
	taken = rashpa_named_find(name);
	mutex_unlock(&rashpa_names_lock);
	return taken;
}

static void rashpa_named_release(struct device *dev)
{
	struct rashpa_named *named = container_of(dev, struct rashpa_named, dev);

	rashpa_buffer_put(named->buffer);
	kfree(named);
}

static int rashpa_named_node(struct rashpa_call *call, struct rashpa_named *named)
{
	int err;

	err = rashpa_charge(call, &named->charge, RASHPA_RESOURCE_NAMES, RASHPA_NO_DEVICE, 1, 0);
	if (err)
		return err;
	rashpa_charge_tell(&named->charge, 0, named->buffer->name);
	err = rashpa_node_add(&named->dev, &named->cdev, &rashpa_buffer_node_fops,
			      RASHPA_MINORS_KEPT);
	if (err)
		rashpa_uncharge(&named->charge);
	if (err == -ENOSPC)
		rashpa_fail(call, err,
			    "there is no node for one more name: remove buffers (rashpactl list names who holds them)");
	return err;
}

/**
 * rashpa_named_add() - make a buffer appear under its name
 * @call: the ioctl, for the reason
 * @buffer: the buffer; the name takes its own reference
 *
 * Return: 0, -EEXIST, or another negative errno.
 */
int rashpa_named_add(struct rashpa_call *call, struct rashpa_buffer *buffer)
{
	struct rashpa_named *named;
	int err;

	/* A named buffer outlives its maker; the module must outlive the buffer. */
	if (!try_module_get(THIS_MODULE))
		return -ENODEV;
	named = kzalloc(sizeof(*named), GFP_KERNEL_ACCOUNT);
	if (!named) {
		err = -ENOMEM;
		goto out_module;
	}
	kref_get(&buffer->ref);
	named->buffer = buffer;
	rashpa_node_init(&named->dev, NULL, rashpa_named_release);
	named->dev.type = &rashpa_buffer_type;
	err = dev_set_name(&named->dev, "buffer!%s", buffer->name);
	if (err)
		goto out_device;

	mutex_lock(&rashpa_names_lock);
	if (rashpa_named_find(buffer->name))
		err = rashpa_fail(call, -EEXIST,
				  "a buffer named %s exists: remove it first, or open it",
				  buffer->name);
	else
		err = rashpa_named_node(call, named);
	if (!err)
		list_add_tail(&named->entry, &rashpa_names);
	mutex_unlock(&rashpa_names_lock);
	if (err)
		goto out_device;
	return 0;

out_device:
	put_device(&named->dev);
out_module:
	module_put(THIS_MODULE);
	return err;
}

static void rashpa_named_del(struct rashpa_named *named)
{
	lockdep_assert_held(&rashpa_names_lock);
	list_del(&named->entry);
	rashpa_node_remove(&named->dev, &named->cdev);
	rashpa_uncharge(&named->charge);
}

/* Without the lock of all names: this may give back gigabytes. */
static void rashpa_named_put(struct rashpa_named *named)
{
	put_device(&named->dev);
	module_put(THIS_MODULE);
}

/**
 * rashpa_named_undo() - the answer to ALLOC could not be stored: nobody knows of the name
 * @call: its undo_data is the buffer, which the new file holds
 */
void rashpa_named_undo(struct rashpa_call *call)
{
	struct rashpa_buffer *buffer = call->undo_data;
	struct rashpa_named *named;

	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(buffer->name);
	if (named && named->buffer != buffer)
		named = NULL;
	if (named)
		rashpa_named_del(named);
	mutex_unlock(&rashpa_names_lock);
	if (named)
		rashpa_named_put(named);
}

/* ------------------------------------------------------------ ioctls ---- */

/* Make a dma-buf of @lease the new file of @call. */
static int rashpa_lease_export(struct rashpa_call *call, struct rashpa_lease *lease,
			       bool write, s32 *out_fd)
{
	struct dma_buf *dmabuf = rashpa_export_buffer(lease->buffer, lease,
						      write ? O_RDWR : O_RDONLY);

	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	call->new_file = dmabuf->file;
	*out_fd = call->fd;
	return 0;
}

static int rashpa_buffer_open(struct rashpa_call *call, struct rashpa_buffer *buffer,
			      struct rashpa_open *open)
{
	bool write = call->file->f_mode & FMODE_WRITE &&
		     !(open->head.flags & RASHPA_OPEN_READ);
	struct rashpa_lease *lease;
	int err;

	if (!rashpa_buffer_permits(buffer, write ? MAY_READ | MAY_WRITE : MAY_READ))
		return rashpa_fail(call, -EACCES,
				   "owner, group and mode of %s do not let you open it for %s",
				   buffer->name, write ? "reading and writing" : "reading");
	lease = rashpa_lease_new(call, buffer, open->head.flags & RASHPA_OPEN_EXCLUSIVE);
	if (IS_ERR(lease))
		return PTR_ERR(lease);
	err = rashpa_lease_export(call, lease, write, &open->out_fd);
	rashpa_lease_put(lease);
	return err;
}

int rashpa_ioc_open(struct rashpa_call *call, void *arg)
{
	struct rashpa_open *open = arg;
	struct rashpa_buffer *buffer;
	int err;

	if (open->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	err = rashpa_check_name(call, open->name, sizeof(open->name));
	if (err)
		return err;
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	buffer = rashpa_named_get(call, open->name);
	if (!buffer)
		return -ENOENT;
	err = rashpa_buffer_open(call, buffer, open);
	rashpa_buffer_put(buffer);
	return err;
}

int rashpa_ioc_dmabuf(struct rashpa_call *call, void *arg)
{
	struct rashpa_export *get = arg;
	int err;

	if (get->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	/* a dma-buf can always be read */
	if (!(call->file->f_mode & FMODE_READ))
		return rashpa_fail(call, -EACCES, "the buffer is open only for writing");
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	return rashpa_lease_export(call, call->obj, call->file->f_mode & FMODE_WRITE,
				   &get->out_fd);
}

static int rashpa_named_remove(struct rashpa_call *call, struct rashpa_named *named)
{
	struct rashpa_buffer *buffer = named->buffer;
	int importers = atomic_read(&buffer->importers.count);
	int mappings = atomic_read(&buffer->mappings);
	bool mine;

	mutex_lock(&buffer->lock);
	mine = rashpa_buffer_is_mine(buffer, CAP_SYS_ADMIN);
	mutex_unlock(&buffer->lock);
	if (!mine)
		return rashpa_fail(call, -EPERM, "%s is not yours: its owner or root can remove it",
				   buffer->name);
	if (importers || mappings)
		return rashpa_fail(call, -EBUSY,
				   "%s is in use: %d device(s) and %d process mapping(s); stop them first",
				   buffer->name, importers, mappings);
	rashpa_named_del(named);
	return 0;
}

int rashpa_ioc_remove(struct rashpa_call *call, void *arg)
{
	struct rashpa_remove *remove = arg;
	struct rashpa_named *named;
	int err;

	err = rashpa_check_name(call, remove->name, sizeof(remove->name));
	if (err)
		return err;
	mutex_lock(&rashpa_names_lock);
	named = rashpa_named_find(remove->name);
	if (named)
		err = rashpa_named_remove(call, named);
	else
		err = rashpa_fail(call, -ENOENT, "no buffer is named %s",
				  remove->name);
	mutex_unlock(&rashpa_names_lock);
	if (!err)
		rashpa_named_put(named);
	return err;
}

static int rashpa_permit_check(struct rashpa_call *call, const struct rashpa_permit *permit)
{
	u32 flags = permit->head.flags;

	if (permit->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if ((permit->uid && !(flags & RASHPA_PERMIT_UID)) ||
	    (permit->gid && !(flags & RASHPA_PERMIT_GID)) ||
	    (permit->mode && !(flags & RASHPA_PERMIT_MODE)))
		return rashpa_fail(call, -EINVAL, "a value is given without its flag");
	if (permit->mode & ~0666)
		return rashpa_fail(call, -EINVAL, "mode 0%o is not 0 to 0666", permit->mode);
	return rashpa_check_name(call, permit->name, sizeof(permit->name));
}

static int rashpa_permit_may(struct rashpa_call *call, struct rashpa_buffer *buffer,
			     const struct rashpa_permit *permit, kuid_t uid, kgid_t gid)
{
	u32 flags = permit->head.flags;

	if (!rashpa_buffer_is_mine(buffer, CAP_FOWNER))
		return rashpa_fail(call, -EPERM, "%s is not yours", buffer->name);
	if (flags & RASHPA_PERMIT_UID && !uid_eq(uid, buffer->uid) && !capable(CAP_CHOWN))
		return rashpa_fail(call, -EPERM, "%s: only root can give a buffer away",
				   buffer->name);
	if (flags & RASHPA_PERMIT_GID && !in_group_p(gid) && !capable(CAP_CHOWN))
		return rashpa_fail(call, -EPERM, "%s: you are not in group %u", buffer->name,
				   permit->gid);
	return 0;
}

static int rashpa_buffer_permit(struct rashpa_call *call, struct rashpa_buffer *buffer,
				const struct rashpa_permit *permit)
{
	kuid_t uid = make_kuid(current_user_ns(), permit->uid);
	kgid_t gid = make_kgid(current_user_ns(), permit->gid);
	u32 flags = permit->head.flags;
	int err;

	if ((flags & RASHPA_PERMIT_UID && !uid_valid(uid)) ||
	    (flags & RASHPA_PERMIT_GID && !gid_valid(gid)))
		return rashpa_fail(call, -EINVAL, "the user or group id does not exist here");
	/* whose it is must not change between the question and the answer */
	mutex_lock(&buffer->lock);
	err = rashpa_permit_may(call, buffer, permit, uid, gid);
	if (!err) {
		if (flags & RASHPA_PERMIT_UID)
			buffer->uid = uid;
		if (flags & RASHPA_PERMIT_GID)
			buffer->gid = gid;
		if (flags & RASHPA_PERMIT_MODE)
			buffer->mode = permit->mode;
	}
	mutex_unlock(&buffer->lock);
	return err;
}

int rashpa_ioc_permit(struct rashpa_call *call, void *arg)
{
	struct rashpa_permit *permit = arg;
	struct rashpa_buffer *buffer;
	int err;

	err = rashpa_permit_check(call, permit);
	if (err)
		return err;
	buffer = rashpa_named_get(call, permit->name);
	if (!buffer)
		return -ENOENT;
	err = rashpa_buffer_permit(call, buffer, permit);
	rashpa_buffer_put(buffer);
	return err;
}
