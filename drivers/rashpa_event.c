// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: event channels.
 */
#include <linux/anon_inodes.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "rashpa.h"
#include "rashpa_compat.h"

#define RASHPA_SOURCES_MAX	64
/* every listener is served in the interrupt handler */
#define RASHPA_LISTENERS_MAX	64
#define RASHPA_DEPTH_DEFAULT	1024
#define RASHPA_DEPTH_MAX	65536
/* records copied to user space at a time; on the stack */
#define RASHPA_READ_BATCH	8

struct rashpa_channel;

/**
 * struct rashpa_listener - one source of one channel
 * @entry: in rashpa_origin.listeners (its lock)
 * @origin: what it listens to; NULL for RASHPA_SOURCE_SOFTWARE
 * @channel: where records go
 * @id: in records, from 1 on
 * @kind: enum rashpa_source
 * @index: vector
 * @sequence: of software events (channel lock)
 * @lost: records that found no room (channel lock)
 * @eventfd: signalled as well, or NULL (channel lock)
 */
struct rashpa_listener {
	struct list_head entry;
	struct rashpa_origin *origin;
	struct rashpa_channel *channel;
	u32 id;
	u32 kind;
	u32 index;
	u64 sequence;
	u64 lost;
	struct eventfd_ctx *eventfd;
};

/**
 * struct rashpa_channel - a queue of records
 * @dev: the function; one reference
 * @entry: in rashpa_device.channels (its lock)
 * @sources_lock: protects @listeners against concurrent ioctls
 * @listeners: by id - 1
 * @read_lock: one reader at a time, so that a record is taken only when it has
 *	arrived in user memory
 * @lock: protects everything below; hard interrupt context
 * @head: records queued since the channel was made
 * @tail: records read since then
 * @gone: the function was removed
 * @eventfd: for all sources, or NULL
 * @wait: readers
 * @depth: of the queue
 * @mask: of @records, a power of two minus one
 * @records: the queue
 */
struct rashpa_channel {
	struct rashpa_device *dev;
	struct list_head entry;
	struct mutex sources_lock;	/* listeners */
	struct rashpa_listener *listeners[RASHPA_SOURCES_MAX];
	struct mutex read_lock;		/* one reader at a time */
	spinlock_t lock;		/* the queue; hard interrupt */
	u64 head;
	u64 tail;
	bool gone;
	struct eventfd_ctx *eventfd;
	wait_queue_head_t wait;
	u32 depth;
	u32 mask;
	struct rashpa_event records[];
};

/* ---------------------------------------------------------- delivery ---- */

void rashpa_origin_init(struct rashpa_origin *origin)
{
	spin_lock_init(&origin->lock);
	INIT_LIST_HEAD(&origin->listeners);
}

static void rashpa_listener_deliver(struct rashpa_listener *l, u64 sequence,
				    u64 time, u64 value)
{
	struct rashpa_channel *ch = l->channel;

	lockdep_assert_held(&ch->lock);
	if (ch->head - ch->tail < ch->depth) {
		ch->records[ch->head & ch->mask] = (struct rashpa_event) {
			.sequence = sequence,
			.time_ns = time,
			.source = l->id,
			.kind = l->kind,
			.value = value,
			.lost = l->lost,
		};
		ch->head++;
	} else {
		l->lost++;
	}
	if (l->eventfd)
		rashpa_eventfd_signal(l->eventfd);
	if (ch->eventfd)
		rashpa_eventfd_signal(ch->eventfd);
}

/**
 * rashpa_origin_fire() - something has happened
 * @origin: where
 * @value: for the record
 *
 * Called in hard interrupt context: the time is taken here, before anything else.
 */
void rashpa_origin_fire(struct rashpa_origin *origin, u64 value)
{
	const u64 time = ktime_get_ns();
	struct rashpa_listener *l;
	unsigned long flags;

	spin_lock_irqsave(&origin->lock, flags);
	origin->sequence++;
	list_for_each_entry(l, &origin->listeners, entry) {
		struct rashpa_channel *ch = l->channel;

		spin_lock(&ch->lock);
		rashpa_listener_deliver(l, origin->sequence, time, value);
		spin_unlock(&ch->lock);
		wake_up_interruptible_all(&ch->wait);
	}
	spin_unlock_irqrestore(&origin->lock, flags);
}

/**
 * rashpa_device_event() - tell who listens to the state of a function
 * @dev: the function
 * @what: enum rashpa_device_event
 */
void rashpa_device_event(struct rashpa_device *dev, u64 what)
{
	rashpa_origin_fire(&dev->events, what);
}

/**
 * rashpa_channels_gone() - the function goes: wake everybody who waits for it
 * @dev: the function, locked
 */
void rashpa_channels_gone(struct rashpa_device *dev)
{
	struct rashpa_channel *ch;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(ch, &dev->channels, entry) {
		spin_lock_irq(&ch->lock);
		ch->gone = true;
		spin_unlock_irq(&ch->lock);
		wake_up_interruptible_all(&ch->wait);
	}
}

/* -------------------------------------------------------------- file ---- */

static bool rashpa_channel_ready(struct rashpa_channel *ch)
{
	bool ready;

	spin_lock_irq(&ch->lock);
	ready = ch->head != ch->tail || ch->gone;
	spin_unlock_irq(&ch->lock);
	return ready;
}

/* Up to @n records, oldest first, without taking them. */
static u32 rashpa_channel_peek(struct rashpa_channel *ch, struct rashpa_event *to,
			       u32 n)
{
	u64 i;

	spin_lock_irq(&ch->lock);
	n = min_t(u64, n, ch->head - ch->tail);
	for (i = 0; i < n; i++)
		to[i] = ch->records[(ch->tail + i) & ch->mask];
	spin_unlock_irq(&ch->lock);
	return n;
}

static void rashpa_channel_take(struct rashpa_channel *ch, u32 n)
{
	spin_lock_irq(&ch->lock);
	ch->tail += n;
	spin_unlock_irq(&ch->lock);
}

static ssize_t rashpa_channel_copy(struct rashpa_channel *ch, char __user *buf,
				   size_t room)
{
	struct rashpa_event batch[RASHPA_READ_BATCH];
	size_t done = 0;
	u32 n;

	while (done < room) {
		n = min_t(size_t, room - done, ARRAY_SIZE(batch));
		n = rashpa_channel_peek(ch, batch, n);
		if (!n)
			break;
		if (copy_to_user(buf + done * sizeof(*batch), batch,
				 n * sizeof(*batch)))
			return done ? done : -EFAULT;
		rashpa_channel_take(ch, n);
		done += n;
	}
	return done;
}

static ssize_t rashpa_channel_read(struct file *file, char __user *buf, size_t size,
				   loff_t *pos)
{
	struct rashpa_channel *ch = file->private_data;
	const size_t room = size / sizeof(struct rashpa_event);
	ssize_t n;

	if (!room)
		return -EINVAL;
	for (;;) {
		/* before the queue is looked at: the last records come first */
		bool gone = READ_ONCE(ch->gone);

		n = mutex_lock_interruptible(&ch->read_lock);
		if (n)
			return n;
		n = rashpa_channel_copy(ch, buf, room);
		mutex_unlock(&ch->read_lock);
		if (n > 0)
			return n * sizeof(struct rashpa_event);
		if (n)
			return n;
		if (gone)
			return -ENODEV;
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		n = wait_event_interruptible(ch->wait, rashpa_channel_ready(ch));
		if (n)
			return n;
	}
}

static __poll_t rashpa_channel_poll(struct file *file, poll_table *wait)
{
	struct rashpa_channel *ch = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &ch->wait, wait);
	spin_lock_irq(&ch->lock);
	if (ch->head != ch->tail)
		mask |= EPOLLIN | EPOLLRDNORM;
	if (ch->gone)
		mask |= EPOLLHUP | EPOLLERR;
	spin_unlock_irq(&ch->lock);
	return mask;
}

static void rashpa_listener_free(struct rashpa_listener *l)
{
	if (l->origin) {
		spin_lock_irq(&l->origin->lock);
		list_del(&l->entry);
		l->origin->n_listeners--;
		spin_unlock_irq(&l->origin->lock);
	}
	if (l->eventfd)
		eventfd_ctx_put(l->eventfd);
	kfree(l);
}

static int rashpa_channel_release(struct inode *inode, struct file *file)
{
	struct rashpa_channel *ch = file->private_data;
	size_t i;

	mutex_lock(&ch->dev->lock);
	list_del(&ch->entry);
	rashpa_device_rest(ch->dev);
	mutex_unlock(&ch->dev->lock);
	for (i = 0; i < ARRAY_SIZE(ch->listeners); i++)
		if (ch->listeners[i])
			rashpa_listener_free(ch->listeners[i]);
	if (ch->eventfd)
		eventfd_ctx_put(ch->eventfd);
	put_device(&ch->dev->dev);
	kvfree(ch);
	return 0;
}

static long rashpa_channel_ioctl(struct file *file, unsigned int cmd,
				 unsigned long arg)
{
	return rashpa_ioctl(RASHPA_NODE_CHANNEL, file, cmd, arg);
}

static const struct file_operations rashpa_channel_fops = {
	.owner = THIS_MODULE,
	.release = rashpa_channel_release,
	.read = rashpa_channel_read,
	.poll = rashpa_channel_poll,
	.unlocked_ioctl = rashpa_channel_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

/* ------------------------------------------------------------ ioctls ---- */

static struct rashpa_channel *rashpa_channel_alloc(u32 depth)
{
	u32 slots = roundup_pow_of_two(depth);
	struct rashpa_channel *ch;

	ch = kvzalloc(struct_size(ch, records, slots), GFP_KERNEL_ACCOUNT);
	if (!ch)
		return NULL;
	mutex_init(&ch->sources_lock);
	mutex_init(&ch->read_lock);
	spin_lock_init(&ch->lock);
	init_waitqueue_head(&ch->wait);
	ch->depth = depth;
	ch->mask = slots - 1;
	return ch;
}

static int rashpa_channel_make(struct rashpa_call *call, struct rashpa_device *dev,
			       u32 depth)
{
	struct rashpa_channel *ch;
	struct file *file;
	int err;

	err = rashpa_device_master(call, dev);
	if (err)
		return err;
	ch = rashpa_channel_alloc(depth);
	if (!ch) {
		err = -ENOMEM;
		goto out_rest;
	}
	file = anon_inode_getfile("[rashpa-events]", &rashpa_channel_fops, ch,
				  O_RDONLY | O_CLOEXEC);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto out_free;
	}
	ch->dev = dev;
	get_device(&dev->dev);
	list_add_tail(&ch->entry, &dev->channels);
	call->new_file = file;
	return 0;

out_free:
	kvfree(ch);
out_rest:
	rashpa_device_rest(dev);
	return err;
}

int rashpa_ioc_events(struct rashpa_call *call, void *arg)
{
	struct rashpa_device *dev = call->obj;
	struct rashpa_events *events = arg;
	u32 depth = events->depth ?: RASHPA_DEPTH_DEFAULT;
	int err;

	if (depth < 2 || depth > RASHPA_DEPTH_MAX)
		return rashpa_fail(call, -EINVAL, "a queue of %u records: must be 2 to %u",
				   depth, RASHPA_DEPTH_MAX);
	err = rashpa_call_reserve_fd(call);
	if (err)
		return err;
	err = rashpa_device_lock(call, dev);
	if (err)
		return err;
	err = rashpa_channel_make(call, dev, depth);
	mutex_unlock(&dev->lock);
	if (!err)
		events->out_fd = call->fd;
	return err;
}

static int rashpa_source_origin(struct rashpa_call *call, struct rashpa_device *dev,
				const struct rashpa_source_add *add,
				struct rashpa_origin **origin)
{
	*origin = NULL;
	switch (add->kind) {
	case RASHPA_SOURCE_VECTOR:
		if (add->index >= dev->n_vectors)
			return rashpa_fail(call, -ERANGE, "vector %u: fpga%d has %u",
					   add->index, dev->id, dev->n_vectors);
		*origin = &dev->vectors[add->index].origin;
		return 0;
	case RASHPA_SOURCE_DEVICE:
		*origin = &dev->events;
		break;
	case RASHPA_SOURCE_SOFTWARE:
		break;
	default:
		return rashpa_fail(call, -EINVAL, "source kind %u is not defined",
				   add->kind);
	}
	if (add->index)
		return rashpa_fail(call, -EINVAL, "index %u: this kind of source has only 0",
				   add->index);
	return 0;
}

static int rashpa_source_insert(struct rashpa_call *call, struct rashpa_channel *ch,
				struct rashpa_source_add *add,
				struct rashpa_origin *origin)
{
	struct rashpa_listener *l;
	size_t i, free = RASHPA_SOURCES_MAX;

	lockdep_assert_held(&ch->sources_lock);
	for (i = RASHPA_SOURCES_MAX; i-- > 0;) {
		l = ch->listeners[i];
		if (!l)
			free = i;
		else if (l->kind == add->kind && l->index == add->index)
			return rashpa_fail(call, -EEXIST,
					   "this source is already in the channel, with id %u",
					   l->id);
	}
	if (free == RASHPA_SOURCES_MAX)
		return rashpa_fail(call, -ENOSPC,
				   "the channel has %d sources already: make another one",
				   RASHPA_SOURCES_MAX);
	/* under the device's lock, so that it stays true until the list is changed */
	if (origin && READ_ONCE(origin->n_listeners) >= RASHPA_LISTENERS_MAX)
		return rashpa_fail(call, -ENOSPC, "%d channels listen to this source already",
				   RASHPA_LISTENERS_MAX);
	l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	if (!l)
		return -ENOMEM;
	l->origin = origin;
	l->channel = ch;
	l->id = free + 1;
	l->kind = add->kind;
	l->index = add->index;
	ch->listeners[free] = l;
	add->out_id = l->id;
	if (origin) {
		spin_lock_irq(&origin->lock);
		list_add_tail(&l->entry, &origin->listeners);
		origin->n_listeners++;
		spin_unlock_irq(&origin->lock);
	}
	return 0;
}

int rashpa_ioc_source_add(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_source_add *add = arg;
	struct rashpa_origin *origin;
	int err;

	if (add->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	err = rashpa_device_lock(call, ch->dev);
	if (err)
		return err;
	err = rashpa_source_origin(call, ch->dev, add, &origin);
	if (!err) {
		mutex_lock(&ch->sources_lock);
		err = rashpa_source_insert(call, ch, add, origin);
		mutex_unlock(&ch->sources_lock);
	}
	mutex_unlock(&ch->dev->lock);
	return err;
}

/* Source @id of @ch, whose sources_lock is held, or NULL. */
static struct rashpa_listener *rashpa_source_find(struct rashpa_channel *ch, u32 id)
{
	lockdep_assert_held(&ch->sources_lock);
	return id && id <= RASHPA_SOURCES_MAX ? ch->listeners[id - 1] : NULL;
}

static int rashpa_channel_check(struct rashpa_call *call, struct rashpa_channel *ch)
{
	if (READ_ONCE(ch->gone))
		return rashpa_fail(call, -ENODEV, "fpga%d was removed: close this file",
				   ch->dev->id);
	return 0;
}

int rashpa_ioc_source_del(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_source_del *del = arg;
	struct rashpa_listener *l;
	int err;

	if (del->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field is not zero");
	err = rashpa_channel_check(call, ch);
	if (err)
		return err;
	mutex_lock(&ch->sources_lock);
	l = rashpa_source_find(ch, del->id);
	if (l) {
		ch->listeners[del->id - 1] = NULL;
		rashpa_listener_free(l);
	}
	mutex_unlock(&ch->sources_lock);
	return l ? 0 : rashpa_fail(call, -ENOENT, "the channel has no source %u", del->id);
}

int rashpa_ioc_eventfd(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_eventfd *bind = arg;
	struct eventfd_ctx **place = &ch->eventfd;
	struct eventfd_ctx *ctx = NULL;
	struct rashpa_listener *l;
	int err = rashpa_channel_check(call, ch);

	if (err)
		return err;
	if (bind->fd < -1)
		return rashpa_fail(call, -EBADF, "fd %d", bind->fd);
	if (bind->fd >= 0) {
		ctx = eventfd_ctx_fdget(bind->fd);
		if (IS_ERR(ctx))
			return rashpa_fail(call, PTR_ERR(ctx), "fd %d is not an eventfd",
					   bind->fd);
	}
	mutex_lock(&ch->sources_lock);
	if (bind->id) {
		l = rashpa_source_find(ch, bind->id);
		if (l)
			place = &l->eventfd;
		else
			err = rashpa_fail(call, -ENOENT, "the channel has no source %u",
					  bind->id);
	}
	if (!err) {
		spin_lock_irq(&ch->lock);
		swap(*place, ctx);
		spin_unlock_irq(&ch->lock);
	}
	mutex_unlock(&ch->sources_lock);
	if (ctx)
		eventfd_ctx_put(ctx);
	return err;
}

int rashpa_ioc_signal(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_signal *signal = arg;
	struct rashpa_listener *l = NULL;
	int err = rashpa_channel_check(call, ch);
	size_t i;

	if (err)
		return err;
	mutex_lock(&ch->sources_lock);
	for (i = 0; i < ARRAY_SIZE(ch->listeners) && !l; i++)
		if (ch->listeners[i] &&
		    ch->listeners[i]->kind == RASHPA_SOURCE_SOFTWARE)
			l = ch->listeners[i];
	if (l) {
		spin_lock_irq(&ch->lock);
		rashpa_listener_deliver(l, ++l->sequence, ktime_get_ns(),
					signal->value);
		spin_unlock_irq(&ch->lock);
		wake_up_interruptible_all(&ch->wait);
	}
	mutex_unlock(&ch->sources_lock);
	return l ? 0 : rashpa_fail(call, -ENOENT,
				   "the channel has no software source: add one first");
}
