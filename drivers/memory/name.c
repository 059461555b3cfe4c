// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: named buffers: their nodes, and leases of them.
 *
 * The node in devtmpfs says which users may use a named buffer and take its name away: the driver
 * keeps no other owner and no other mode.
 */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/kobject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "core/node.h"
#include "memory/memory.h"

/* A name, its node, and the buffer it keeps alive. */
struct rashpa_named {
	struct device dev;		/* its last reference releases that to @buffer */
	struct cdev cdev;		/* /dev/rashpa/buffer/NAME */
	struct rashpa_buffer *buffer;	/* one reference; NULL while the memory is being made */
	struct rashpa_charge charge;
	char name[RASHPA_NAME_SIZE];
	kuid_t uid;			/* owner and mode that the node is made with */
	kgid_t gid;
	umode_t mode;
	struct list_head entry;		/* from before the node appears until after it is gone */
	bool there;			/* the node was announced, and is not being removed */
};

static LIST_HEAD(rashpa_names);
static DEFINE_MUTEX(rashpa_names_lock);	/* rashpa_names; there of each */

/* An open file keeps its cdev, which keeps the device. */
static struct rashpa_named *rashpa_named_of(struct file *file)
{
	return container_of(file_inode(file)->i_cdev, struct rashpa_named, cdev);
}

/* ------------------------------------------------------------ leases ---- */

/*
 * Open a named buffer; @exclusive: with no other lease before or after. The lease takes its own
 * reference to @buffer. Return: the lease, or an error pointer: -EBUSY, -ENOMEM.
 */
struct rashpa_lease *rashpa_lease_new(struct rashpa_buffer *buffer, bool exclusive)
{
	struct rashpa_lease *lease;

	guard(mutex)(&buffer->lock);
	if (buffer->exclusive || (exclusive && buffer->leases))
		return ERR_PTR(-EBUSY);
	lease = kzalloc(sizeof(*lease), GFP_KERNEL_ACCOUNT);
	if (!lease)
		return ERR_PTR(-ENOMEM);
	kref_init(&lease->ref);
	kref_get(&buffer->ref);
	lease->buffer = buffer;
	lease->uid = current_uid();
	lease->pid = get_pid(task_tgid(current));
	buffer->leases++;
	buffer->exclusive = exclusive ? lease : NULL;
	return lease;
}

static void rashpa_lease_end(struct kref *ref)
{
	struct rashpa_lease *lease = container_of(ref, struct rashpa_lease, ref);
	struct rashpa_buffer *buffer = lease->buffer;

	scoped_guard(mutex, &buffer->lock) {
		buffer->leases--;
		buffer->exclusive = NULL;	/* if there was one, it was ours */
	}
	put_pid(lease->pid);
	kref_put(&buffer->ref, rashpa_buffer_free);
	kfree(lease);
}

/* A new dma-buf of the buffer, which keeps the lease, becomes the new file of @call. */
int rashpa_lease_export(struct rashpa_call *call, struct rashpa_lease *lease, int flags)
{
	return rashpa_export(call, &lease->buffer->memory, &lease->ref, rashpa_lease_end, flags);
}

void rashpa_lease_put(struct rashpa_lease *lease)
{
	kref_put(&lease->ref, rashpa_lease_end);
}

/* Take all roles of @take, or none, and give back those of @drop. @call is unused without @take. */
static int rashpa_roles_change(struct rashpa_call *call, struct rashpa_lease *lease, u32 drop,
			       u32 take)
{
	static const char *const names[RASHPA_ROLES] = { "producer", "consumer" };
	struct rashpa_lease **roles = lease->buffer->roles;
	unsigned int i;

	lockdep_assert_held(&lease->buffer->lock);
	for (i = 0; i < RASHPA_ROLES; i++)
		if (take & BIT(i) && roles[i] && roles[i] != lease)
			return rashpa_fail(call, -EBUSY,
					   "%s has a %s: process %d of user %u; stop it first",
					   lease->buffer->name, names[i], pid_vnr(roles[i]->pid),
					   from_kuid_munged(current_user_ns(), roles[i]->uid));
	for (i = 0; i < RASHPA_ROLES; i++) {
		if (take & BIT(i))
			roles[i] = lease;
		else if (drop & BIT(i) && roles[i] == lease)
			roles[i] = NULL;
	}
	return 0;
}

/* ------------------------------------------- /dev/rashpa/buffer/NAME ---- */

static int rashpa_buffer_node_open(struct inode *inode, struct file *file)
{
	struct rashpa_lease *lease;

	/* access mode 3: to ask for it, or to remove it */
	if (!(file->f_mode & (FMODE_READ | FMODE_WRITE)))
		return 0;
	/* a user that may only read must not keep the owner out */
	if (file->f_flags & O_EXCL && !(file->f_mode & FMODE_WRITE))
		return -EACCES;
	lease = rashpa_lease_new(rashpa_named_of(file)->buffer, file->f_flags & O_EXCL);
	if (IS_ERR(lease))
		return PTR_ERR(lease);
	file->private_data = lease;
	return 0;
}

static int rashpa_buffer_node_release(struct inode *inode, struct file *file)
{
	struct rashpa_lease *lease = file->private_data;

	if (!lease)
		return 0;
	/* dma-bufs may keep the lease, but no process is left that has the role */
	scoped_guard(mutex, &lease->buffer->lock)
		rashpa_roles_change(NULL, lease, ~0, 0);
	rashpa_lease_put(lease);
	return 0;
}

static int rashpa_buffer_node_mmap(struct file *file, struct vm_area_struct *vma)
{
	return rashpa_buffer_mmap(&rashpa_named_of(file)->buffer->memory, vma);
}

static unsigned long rashpa_buffer_node_area(struct file *file, unsigned long addr,
					     unsigned long length, unsigned long offset,
					     unsigned long flags)
{
	struct file *memfd = rashpa_named_of(file)->buffer->pages.memfd;

	return memfd ? memfd->f_op->get_unmapped_area(memfd, addr, length, offset, flags) :
		       thp_get_unmapped_area(file, addr, length, offset, flags);
}

static loff_t rashpa_buffer_node_llseek(struct file *file, loff_t offset, int whence)
{
	/* for programs that find out the size by seeking to the end */
	return fixed_size_llseek(file, offset, whence,
				 rashpa_named_of(file)->buffer->memory.length);
}

static void rashpa_buffer_node_fdinfo(struct seq_file *m, struct file *file)
{
	struct rashpa_buffer *buffer = rashpa_named_of(file)->buffer;
	struct rashpa_info info = {};

	rashpa_charge_show(&buffer->charge, "buffer", m);
	rashpa_memory_info(&buffer->memory, &info);
	seq_printf(m, "rashpa-size:\t%llu\nrashpa-node:\t%d\nrashpa-importers:\t%u\n",
		   info.out_length, info.out_node, info.out_importers);
	seq_printf(m, "rashpa-mappings:\t%u\nrashpa-leases:\t%u\n", info.out_mappings,
		   info.out_leases);
}

/* Consumers of a stream lock bytes of the node. Files without write access would block them. */
static int rashpa_buffer_node_lock(struct file *file, int cmd, struct file_lock *lock)
{
	if (cmd == F_GETLK) {
		posix_test_lock(file, lock);
		return 0;
	}
	return file->f_mode & FMODE_WRITE ? posix_lock_file(file, lock, NULL) : -EBADF;
}

const struct file_operations rashpa_buffer_fops = {
	.owner = THIS_MODULE,
	.open = rashpa_buffer_node_open,
	.release = rashpa_buffer_node_release,
	.mmap = rashpa_buffer_node_mmap,
	.lock = rashpa_buffer_node_lock,
	.get_unmapped_area = rashpa_buffer_node_area,
	.llseek = rashpa_buffer_node_llseek,
	.fsync = noop_fsync, /* msync: numpy.memmap.flush() */
	.show_fdinfo = rashpa_buffer_node_fdinfo,
	.unlocked_ioctl = rashpa_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/*
 * The node appears with its owner: there is no moment when others could open it. Later events
 * report no owner: udev would set that owner and mode again, after a chown() or chmod().
 */
static char *rashpa_buffer_devnode(RASHPA_DEVNODE_CONST struct device *dev,
				   umode_t *mode, kuid_t *uid, kgid_t *gid)
{
	RASHPA_DEVNODE_CONST struct rashpa_named *named =
		container_of(dev, struct rashpa_named, dev);
	const bool made = !dev_get_uevent_suppress(dev);

	/* with its type: no mode at all would be taken for 0600 */
	if (mode && !made)
		*mode = named->mode | S_IFCHR;
	if (uid && !made)
		*uid = named->uid;
	if (gid && !made)
		*gid = named->gid;
	return kasprintf(GFP_KERNEL, "rashpa/buffer/%s", named->name);
}

static const struct device_type rashpa_buffer_type = {
	.name = "rashpa_buffer",
	.devnode = rashpa_buffer_devnode,
};

/* ------------------------------------------------------------- names ---- */

static void rashpa_named_release(struct device *dev)
{
	struct rashpa_named *named = container_of(dev, struct rashpa_named, dev);

	if (named->buffer)
		kref_put(&named->buffer->ref, rashpa_buffer_free);
	kfree(named);
}

/* Free a name: its buffer could not be made, or its node is gone. */
void rashpa_named_drop(struct rashpa_named *named)
{
	scoped_guard(mutex, &rashpa_names_lock)
		list_del(&named->entry);
	rashpa_uncharge(&named->charge);
	/* this may give back gigabytes */
	put_device(&named->dev);
	module_put(THIS_MODULE);
}

/* Enter a name, unless another has it. */
static bool rashpa_named_enter(struct rashpa_named *named)
{
	struct rashpa_named *other;

	guard(mutex)(&rashpa_names_lock);
	list_for_each_entry(other, &rashpa_names, entry)
		if (!strcmp(other->name, named->name))
			return false;
	list_add_tail(&named->entry, &rashpa_names);
	return true;
}

/*
 * Take a name, before its buffer is made; name and mode are checked. Return: a name, for
 * rashpa_named_publish() or rashpa_named_drop(), or an error pointer.
 */
struct rashpa_named *rashpa_named_new(struct rashpa_call *call, const struct rashpa_alloc *alloc)
{
	const struct inode *inode = file_inode(call->file);
	struct rashpa_named *named;
	int err = -ENOMEM;

	/* A named buffer outlives its maker; the module must outlive the buffer. */
	if (!try_module_get(THIS_MODULE))
		return ERR_PTR(-ENODEV);
	named = kzalloc(sizeof(*named), GFP_KERNEL_ACCOUNT);
	if (!named)
		goto out_module;
	strscpy(named->name, alloc->name, sizeof(named->name));
	named->uid = current_fsuid();
	named->gid = inode->i_gid;
	named->mode = alloc->head.flags & RASHPA_ALLOC_MODE ? alloc->mode :
							      inode->i_mode & 0666;
	rashpa_node_init(&named->dev, NULL, rashpa_named_release);
	named->dev.type = &rashpa_buffer_type;
	err = dev_set_name(&named->dev, "buffer!%s", named->name);
	if (err)
		goto out_device;
	err = rashpa_charge(call, &named->charge, RASHPA_RESOURCE_NAMES, RASHPA_NO_DEVICE, 1, 0);
	if (err)
		goto out_device;
	rashpa_charge_label(&named->charge, 0, named->name);
	if (rashpa_named_enter(named))
		return named;
	err = rashpa_fail(call, -EEXIST, "a buffer named %s exists: remove it first, or open it",
			  named->name);
	rashpa_uncharge(&named->charge);
out_device:
	put_device(&named->dev);
out_module:
	module_put(THIS_MODULE);
	return ERR_PTR(err);
}

/*
 * Make a buffer appear under its name, which takes its own reference. After success @named is no
 * longer the caller's: another process may remove it.
 */
int rashpa_named_publish(struct rashpa_call *call, struct rashpa_named *named,
			 struct rashpa_buffer *buffer)
{
	int err;

	kref_get(&buffer->ref);
	named->buffer = buffer;
	/* while events are suppressed, rashpa_buffer_devnode() reports the owner */
	dev_set_uevent_suppress(&named->dev, 1);
	err = rashpa_node_add(&named->dev, &named->cdev, &rashpa_buffer_fops,
			      RASHPA_MINORS_KEPT);
	if (err == -ENOSPC)
		rashpa_fail(call, err,
			    "there is no node for one more name: remove buffers (rashpactl list names who holds them)");
	if (err)
		return err;
	dev_set_uevent_suppress(&named->dev, 0);
	kobject_uevent(&named->dev.kobj, KOBJ_ADD);
	guard(mutex)(&rashpa_names_lock);
	named->there = true;
	return 0;
}

/* ------------------------------------------------------------ ioctls ---- */

int rashpa_ioc_buffer_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_memory *memory = &rashpa_named_of(call->file)->buffer->memory;
	struct rashpa_info *info = arg;

	if (info->fd != -1)
		return rashpa_fail(call, -EINVAL, "fd must be -1 on a buffer's own node");
	rashpa_info_clear(info);
	rashpa_memory_info(memory, info);
	return 0;
}

int rashpa_ioc_export(struct rashpa_call *call, void *arg)
{
	struct rashpa_lease *lease = call->obj;
	struct rashpa_export *get = arg;

	/* a dma-buf can always be read */
	if (!(call->file->f_mode & FMODE_READ))
		return rashpa_fail(call, -EACCES, "the buffer is not open for reading");
	get->out_fd = call->fd;
	return rashpa_lease_export(call, lease,
				   call->file->f_mode & FMODE_WRITE ? O_RDWR : O_RDONLY);
}

/* May the caller remove it? Only the first one succeeds. */
static int rashpa_named_end(struct rashpa_call *call, struct rashpa_named *named)
{
	struct rashpa_buffer *buffer = named->buffer;
	int importers = atomic_read(&buffer->memory.importers.count);
	int mappings = atomic_read(&buffer->mappings);

	guard(mutex)(&rashpa_names_lock);
	if (!named->there)
		return rashpa_fail(call, -ENOENT, "%s was removed: close this file", named->name);
	if (!rashpa_file_owned(call->file))
		return rashpa_fail(call, -EPERM,
				   "%s is not yours: the owner of its node or root can remove it",
				   named->name);
	if (importers || mappings)
		return rashpa_fail(call, -EBUSY,
				   "%s is in use: %d device(s) and %d process mapping(s); stop them first",
				   named->name, importers, mappings);
	named->there = false;
	return 0;
}

int rashpa_ioc_remove(struct rashpa_call *call, void *arg)
{
	struct rashpa_named *named = rashpa_named_of(call->file);
	int err = rashpa_named_end(call, named);

	if (err)
		return err;
	rashpa_node_remove(&named->dev, &named->cdev);
	rashpa_named_drop(named);
	return 0;
}

int rashpa_ioc_role(struct rashpa_call *call, void *arg)
{
	struct rashpa_buffer *buffer = rashpa_named_of(call->file)->buffer;
	struct rashpa_lease *lease = call->obj;
	struct rashpa_role *role = arg;
	unsigned int i;
	int err = 0;

	if ((role->take | role->drop) >> RASHPA_ROLES)
		return rashpa_fail(call, -EINVAL, "a role 0x%x is not defined",
				   role->take | role->drop);
	if (role->take && !(call->file->f_mode & FMODE_WRITE))
		return rashpa_fail(call, -EACCES,
				   "%s is not open for writing, as a role needs",
				   buffer->name);
	guard(mutex)(&buffer->lock);
	/* a file without a lease has no role, and takes none: it is not open for writing */
	if (lease)
		err = rashpa_roles_change(call, lease, role->drop, role->take);
	memset_startat(role, 0, out_mine);
	for (i = 0; i < RASHPA_ROLES; i++) {
		struct rashpa_lease *who = buffer->roles[i];

		if (!who)
			continue;
		role->out_mine |= who == lease ? BIT(i) : 0;
		role->out_held |= BIT(i);
		role->out_uid[i] = from_kuid_munged(current_user_ns(), who->uid);
		role->out_pid[i] = pid_vnr(who->pid);
	}
	return err;
}
