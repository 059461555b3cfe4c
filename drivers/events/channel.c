// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: event channels.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "core/trace.h"
#include "events/events.h"

#define RASHPA_DEPTH_DEFAULT	1024
#define RASHPA_DEPTH_MAX	65536
#define RASHPA_SOURCES_DEFAULT	64
/* records on the stack, copied to user space at a time */
#define RASHPA_READ_BATCH	8

/* -------------------------------------------------------------- file ---- */

/* Return: 0 if a reader has to wait. */
static __poll_t rashpa_channel_ready(struct rashpa_channel *ch)
{
	__poll_t mask = 0;

	guard(spinlock_irq)(&ch->lock);
	if (rashpa_ring_used(ch))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (ch->gone)
		mask |= EPOLLHUP | EPOLLERR;
	return mask;
}

/* Take up to @room records, oldest first. */
static ssize_t rashpa_channel_copy(struct rashpa_channel *ch, char __user *buf, size_t room)
{
	struct rashpa_event batch[RASHPA_READ_BATCH];
	size_t done = 0;
	u32 i, n, want;
	u64 tail, used;

	do {
		want = min_t(size_t, room - done, ARRAY_SIZE(batch));
		spin_lock_irq(&ch->lock);
		used = rashpa_ring_used(ch);
		tail = ch->head - used;
		n = min_t(u64, want, used);
		for (i = 0; i < n; i++)
			batch[i] = ch->records[(tail + i) & ch->mask];
		spin_unlock_irq(&ch->lock);
		if (!n)
			break;
		if (copy_to_user(buf + done * sizeof(*batch), batch, n * sizeof(*batch)))
			return done ? done : -EFAULT;
		/* the records were copied, so that later ones may overwrite them */
		smp_store_release(&ch->consumer->tail, tail + n);
		done += n;
		cond_resched();
	} while (n == want && done < room && !signal_pending(current));
	return done;
}

static ssize_t rashpa_channel_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	struct rashpa_channel *ch = file->private_data;
	/* a limit, because records come and the tail moves during the copy */
	const size_t room = min_t(size_t, size / sizeof(struct rashpa_event), ch->depth);
	const bool wait = !(file->f_flags & O_NONBLOCK);
	ssize_t n;

	if (!room)
		return -EINVAL;
	for (;;) {
		/* read before the queue, so that the last records come before ENODEV */
		bool gone = READ_ONCE(ch->gone);

		/* a reader holds the lock for long if it waits for a page of its memory */
		n = wait ? mutex_lock_interruptible(&ch->read_lock) :
			   mutex_trylock(&ch->read_lock) ? 0 : -EAGAIN;
		if (n)
			return n;
		n = rashpa_channel_copy(ch, buf, room);
		mutex_unlock(&ch->read_lock);
		if (n > 0) {
			trace_rashpa_read(rashpa_channel_fpga(ch), n);
			return n * sizeof(struct rashpa_event);
		}
		if (n)
			return n;
		if (gone)
			return -ENODEV;
		if (!wait)
			return -EAGAIN;
		n = wait_event_interruptible(ch->wait, rashpa_channel_ready(ch));
		if (n)
			return n;
	}
}

static __poll_t rashpa_channel_poll(struct file *file, poll_table *wait)
{
	struct rashpa_channel *ch = file->private_data;

	poll_wait(file, &ch->wait, wait);
	return rashpa_channel_ready(ch);
}

static void rashpa_channel_free(struct rashpa_channel *ch)
{
	if (ch->dev)
		put_device(&ch->dev->dev);
	vfree(ch->ring);
	rashpa_uncharge(&ch->charge);
	kvfree(ch->listeners);
	kfree(ch);
}

static int rashpa_channel_release(struct inode *inode, struct file *file)
{
	struct rashpa_channel *ch = file->private_data;
	u32 i;

	rashpa_origin_leave(&ch->end);
	if (ch->dev)
		rashpa_channel_leave(ch->dev);
	/* groups first: members point to them */
	for (i = 0; i < ch->n_sources; i++)
		if (ch->listeners[i] && ch->listeners[i]->group)
			rashpa_group_end(ch->listeners[i]);
	for (i = 0; i < ch->n_sources; i++)
		if (ch->listeners[i])
			rashpa_listener_free(ch->listeners[i]);
	rashpa_notifier_free(ch->notifier);
	/* nothing can schedule it any more */
	tasklet_kill(&ch->waker);
	rashpa_channel_free(ch);
	return 0;
}

static void rashpa_channel_fdinfo(struct seq_file *m, struct file *file)
{
	struct rashpa_channel *ch = file->private_data;

	rashpa_charge_show(&ch->charge, "channel", m);
	guard(spinlock_irq)(&ch->lock);
	seq_printf(m, "rashpa-depth:\t%u\nrashpa-records:\t%llu\nrashpa-waiting:\t%llu\n",
		   ch->depth, ch->head, rashpa_ring_used(ch));
	seq_printf(m, "rashpa-lost:\t%llu\nrashpa-gone:\t%u\n", ch->ring->lost, ch->gone);
}

const struct file_operations rashpa_channel_fops = {
	.owner = THIS_MODULE,
	.release = rashpa_channel_release,
	.read = rashpa_channel_read,
	.poll = rashpa_channel_poll,
	.mmap = rashpa_ring_mmap,
	.unlocked_ioctl = rashpa_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
	.show_fdinfo = rashpa_channel_fdinfo,
};

/* ------------------------------------------------------------ ioctls ---- */

static struct rashpa_channel *rashpa_channel_alloc(struct rashpa_call *call, s32 device,
						   u32 depth, u32 sources)
{
	struct rashpa_channel *ch;
	int err;

	ch = kzalloc(sizeof(*ch), GFP_KERNEL_ACCOUNT);
	if (!ch)
		return ERR_PTR(-ENOMEM);
	ch->n_sources = sources;
	err = rashpa_charge(call, &ch->charge, RASHPA_RESOURCE_CHANNELS, device, 1,
			    array_size(sources, sizeof(*ch->listeners)));
	if (!err) {
		ch->listeners = kvcalloc(sources, sizeof(*ch->listeners), GFP_KERNEL_ACCOUNT);
		err = ch->listeners ? rashpa_ring_init(call, ch, depth) : -ENOMEM;
	}
	if (err) {
		rashpa_channel_free(ch);
		return ERR_PTR(err);
	}
	mutex_init(&ch->sources_lock);
	mutex_init(&ch->read_lock);
	rashpa_queue_init(ch);
	return ch;
}

/* @dev is NULL, or locked and held; the channel takes over the hold. */
static int rashpa_channel_make(struct rashpa_call *call, struct rashpa_device *dev,
			       struct rashpa_channel_make *make)
{
	struct rashpa_channel *ch;
	struct file *file;

	ch = rashpa_channel_alloc(call, dev ? dev->id : RASHPA_NO_DEVICE,
				  make->depth ?: RASHPA_DEPTH_DEFAULT,
				  make->sources ?: RASHPA_SOURCES_DEFAULT);
	if (IS_ERR(ch))
		return PTR_ERR(ch);
	file = anon_inode_getfile("[rashpa-events]", &rashpa_channel_fops, ch, O_RDWR | O_CLOEXEC);
	if (IS_ERR(file)) {
		rashpa_channel_free(ch);
		return PTR_ERR(file);
	}
	if (dev) {
		ch->dev = dev;
		get_device(&dev->dev);
		/* the function is locked, so that its end comes later */
		rashpa_origin_join(NULL, &dev->end, &ch->end);
	}
	call->new_file = file;
	make->out_fd = call->fd;
	make->out_ring_size = ch->ring_size;
	make->out_consumer = ch->ring_size;
	make->out_consumer_size = ch->consumer_size;
	return 0;
}

static int rashpa_channel_prepare(struct rashpa_call *call, const struct rashpa_channel_make *make)
{
	if (make->record_size && make->record_size != sizeof(struct rashpa_event))
		return rashpa_fail(call, make->record_size < sizeof(struct rashpa_event) ?
				   -EINVAL : -E2BIG, "records of %u bytes: must be %zu",
				   make->record_size, sizeof(struct rashpa_event));
	if (make->depth == 1 || make->depth > RASHPA_DEPTH_MAX)
		return rashpa_fail(call, -EINVAL, "a queue of %u records: must be 2 to %u",
				   make->depth, RASHPA_DEPTH_MAX);
	if (make->sources > RASHPA_SOURCES_MAX)
		return rashpa_fail(call, -EINVAL, "%u sources: must be 1 to %u", make->sources,
				   RASHPA_SOURCES_MAX);
	return 0;
}

int rashpa_ioc_channel(struct rashpa_call *call, void *arg)
{
	/* NULL on /dev/rashpa/memory: a channel without a function */
	struct rashpa_device *dev = call->obj;
	int err = rashpa_channel_prepare(call, arg);

	if (err)
		return err;
	if (!dev)
		return rashpa_channel_make(call, NULL, arg);
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	guard(rashpa_locked)(dev);
	err = rashpa_device_hold(call, dev);
	if (err)
		return err;
	err = rashpa_channel_make(call, dev, arg);
	if (err)
		rashpa_device_leave(dev);
	return err;
}
