// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: the path of every ioctl, on whatever node it arrives.
 */
#include <linux/ctype.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "core/call.h"

/* Keep the sentence that explains an error: thing, reason, remedy. Return: @err. */
int rashpa_fail(struct rashpa_call *call, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vscnprintf(call->reason, sizeof(call->reason), fmt, args);
	va_end(args);
	return err;
}

static const struct rashpa_op *rashpa_ops;
static size_t rashpa_n_ops;

void rashpa_call_init(const struct rashpa_op *ops, size_t n)
{
	rashpa_ops = ops;
	rashpa_n_ops = n;
}

static int rashpa_call_run(const struct rashpa_op *op, struct rashpa_call *call,
			   union rashpa_arg *arg, void __user *uarg, u32 usize)
{
	size_t size = min_t(size_t, usize, op->size);
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
	if (arg->head.__reserved || memchr_inv(arg->room + op->reserved, 0, op->n_reserved))
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	if (op->rules & RASHPA_OP_WRITE && !(call->file->f_mode & FMODE_WRITE))
		return rashpa_fail(call, -EPERM,
				   "/dev/%pD2 is open read-only: open it for writing",
				   call->file);

	/* Can the answer be stored? It is too late to ask when things were done. */
	if (copy_to_user(uarg, arg, size))
		return -EFAULT;
	if (op->rules & RASHPA_OP_FD) {
		call->fd = get_unused_fd_flags(O_CLOEXEC);
		if (call->fd < 0)
			return rashpa_fail(call, call->fd,
					   "no file descriptor is free: raise RLIMIT_NOFILE");
	}

	err = op->fn(call, arg);
	if (err || op->rules & RASHPA_OP_SILENT)
		return err;

	/*
	 * The size the caller knows stays in head.size: copy no more than that. Nothing is
	 * undone: the new file is not installed, objects with a name or an id stay.
	 */
	return copy_to_user(uarg, arg, size) ? -EFAULT : 0;
}

static void rashpa_call_explain(struct rashpa_call *call, const struct rashpa_head *head)
{
	const size_t size = min_t(size_t, head->reason_size, strlen(call->reason) + 1);

	if (!head->reason || !size)
		return;
	call->reason[size - 1] = '\0';
	/* The errno matters more than the sentence: a bad pointer is not reported. */
	if (copy_to_user(u64_to_user_ptr(head->reason), call->reason, size))
		return;
}

/* Every ioctl of every kind of file comes through here. */
long rashpa_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	const struct rashpa_op *const end = rashpa_ops + rashpa_n_ops, *op = rashpa_ops;
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

	while (op < end && (op->fops != file->f_op || op->cmd != cmd))
		op++;
	if (op == end)
		return -ENOTTY;
	if (get_user(usize, (u32 __user *)uarg))
		return -EFAULT;
	if (usize > PAGE_SIZE)
		return -E2BIG;
	if (usize < sizeof(head))
		return -EINVAL;
	if (copy_from_user(&head, uarg, sizeof(head)))
		return -EFAULT;

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

/*
 * Check the name in an array of @size bytes from user space. The alphabet keeps out everything that
 * has a meaning in a path. Return: 0, -ENAMETOOLONG without a NUL, -EINVAL.
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

static int rashpa_array_check(struct rashpa_call *call, u32 usize, size_t min)
{
	if (usize < min)
		return rashpa_fail(call, -EINVAL,
				   "elements of %u bytes in an array: they have at least %zu",
				   usize, min);
	if (usize > PAGE_SIZE)
		return rashpa_fail(call, -E2BIG, "elements of %u bytes in an array: at most %lu",
				   usize, PAGE_SIZE);
	return 0;
}

/*
 * Copy @n elements from user space, as structs are. An element has @usize bytes there, @min as
 * first published, @size here. The caller bounds @n. Return: elements for kvfree(), NULL for none,
 * or an error pointer: -EINVAL, -E2BIG, -EFAULT, -ENOMEM.
 */
void *rashpa_copy_array(struct rashpa_call *call, u64 from, u32 n, u32 usize, size_t min,
			size_t size)
{
	const char __user *user = u64_to_user_ptr(from);
	char *array;
	int err;
	u32 i;

	if (!n)
		return NULL;
	err = rashpa_array_check(call, usize, min);
	if (err)
		return ERR_PTR(err);
	array = kvcalloc(n, size, GFP_KERNEL_ACCOUNT);
	if (!array)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < n && !err; i++) {
		err = copy_struct_from_user(array + i * size, size, user + (u64)i * usize, usize);
		cond_resched();
	}
	if (!err)
		return array;
	kvfree(array);
	if (err == -E2BIG)
		rashpa_fail(call, err,
			    "element %u of an array has fields that this driver does not know (%u bytes, %zu known): update the driver",
			    i - 1, usize, size);
	return ERR_PTR(err);
}

/*
 * Copy @n initialised elements to user space, with sizes as above: bytes that are unknown here
 * become zero. Return: 0, -EINVAL, -E2BIG, -EFAULT.
 */
int rashpa_store_array(struct rashpa_call *call, u64 to, u32 n, u32 usize, size_t min,
		       const void *from, size_t size)
{
	const size_t both = min_t(size_t, usize, size);
	char __user *user = u64_to_user_ptr(to);
	int err;
	u32 i;

	err = rashpa_array_check(call, usize, min);
	for (i = 0; i < n && !err; i++, user += usize) {
		if (copy_to_user(user, from + i * size, both) ||
		    clear_user(user + both, usize - both))
			err = -EFAULT;
		cond_resched();
	}
	return err;
}
