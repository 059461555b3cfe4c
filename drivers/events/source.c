// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: add, arm and remove sources of a channel.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ktime.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "events/events.h"

static bool rashpa_listener_notify(struct rashpa_subscriber *subscriber, u64 sequence, u64 time,
				   u64 value)
{
	struct rashpa_listener *l = container_of(subscriber, struct rashpa_listener, subscriber);

	rashpa_listener_fire(l, sequence, time, value);
	/* ARM locks the origin, too */
	return !READ_ONCE(l->disarmed);
}

void rashpa_channel_leave(struct rashpa_device *dev)
{
	guard(mutex)(&dev->lock);
	rashpa_device_leave(dev);
}

/* No event of its origin or timer comes after this. */
static void rashpa_listener_stop(struct rashpa_listener *l)
{
	rashpa_origin_leave(&l->subscriber);
	if (l->watch)
		hrtimer_cancel(&l->watch->timer);
}

/* @l is no longer in the channel's table. */
void rashpa_listener_free(struct rashpa_listener *l)
{
	rashpa_listener_stop(l);
	rashpa_watch_free(l->watch);
	rashpa_notifier_free(l->notifier);
	if (l->holds_dev)
		rashpa_channel_leave(l->dev);
	if (l->dev)
		put_device(&l->dev->dev);
	rashpa_uncharge(&l->charge);
	kfree(l);
}

#define RASHPA_SOURCE_NO_VECTOR	(RASHPA_SOURCE_POLL | RASHPA_SOURCE_LOOK)

/* Find the origin of the source, or NULL, or an error. The function, if any, is locked. */
static struct rashpa_origin *rashpa_source_origin(struct rashpa_call *call,
						  const struct rashpa_listener *l,
						  const struct rashpa_source_add *add)
{
	struct rashpa_device *dev = l->dev;

	switch (add->kind) {
	case RASHPA_SOURCE_LOCK:
		if (add->head.flags & RASHPA_SOURCE_LOOK)
			return &rashpa_dmabuf_memory(l->watch->dmabuf)->importers.words.origin;
		if (add->head.flags & RASHPA_SOURCE_POLL)
			return NULL;
		fallthrough;
	case RASHPA_SOURCE_VECTOR:
		if (add->index >= dev->n_vectors)
			return ERR_PTR(rashpa_fail(call, -ERANGE, "vector %u: fpga%d has %u",
						   add->index, dev->id, dev->n_vectors));
		return &dev->vectors[array_index_nospec(add->index, dev->n_vectors)].origin;
	case RASHPA_SOURCE_MAP:
		return &dev->map_events;
	case RASHPA_SOURCE_DEVICE:
		return &dev->events;
	}
	return NULL;
}

/* Check that a source of a function names one, directly or through its channel. */
static int rashpa_source_check_of(struct rashpa_call *call, const struct rashpa_channel *ch,
				  const struct rashpa_source_add *add)
{
	const bool of_none = add->kind == RASHPA_SOURCE_SOFTWARE;

	if (add->device != -1 && of_none)
		return rashpa_fail(call, -EINVAL,
				   "device %d: must be -1, as software events come from no function",
				   add->device);
	if (ch->dev || of_none || add->device != -1 || add->head.flags & RASHPA_SOURCE_NO_VECTOR)
		return 0;
	if (add->kind == RASHPA_SOURCE_LOCK)
		return rashpa_fail(call, -EINVAL,
				   "the channel has no function that could interrupt: use RASHPA_SOURCE_LOOK or RASHPA_SOURCE_POLL, or set device to the fd of a function");
	return rashpa_fail(call, -EINVAL,
			   "the channel has no function: set device to the fd of one");
}

static int rashpa_source_check(struct rashpa_call *call, const struct rashpa_channel *ch,
			       const struct rashpa_source_add *add)
{
	if (add->kind < RASHPA_SOURCE_VECTOR || add->kind > RASHPA_SOURCE_MAP)
		return rashpa_fail(call, -EINVAL, "source kind %u is not defined", add->kind);
	if (add->head.flags & RASHPA_SOURCE_ONE_SHOT && add->kind != RASHPA_SOURCE_VECTOR &&
	    add->kind != RASHPA_SOURCE_LOCK)
		return rashpa_fail(call, -EINVAL, "only vectors and lock slots are one-shot");
	if (add->kind == RASHPA_SOURCE_LOCK)
		return rashpa_source_check_of(call, ch, add);
	if (add->index && add->kind != RASHPA_SOURCE_VECTOR && add->kind != RASHPA_SOURCE_MAP)
		return rashpa_fail(call, -EINVAL, "index %u: this kind of source has only 0",
				   add->index);
	if (add->head.flags & (RASHPA_SOURCE_NO_VECTOR | RASHPA_SOURCE_COUNTER))
		return rashpa_fail(call, -EINVAL,
				   "RASHPA_SOURCE_POLL, _LOOK (by a timer or RASHPA_IOC_LOOK) and _COUNTER are for lock slots only");
	if (add->memory != -1)
		return rashpa_fail(call, -EINVAL,
				   "memory %d: must be -1, as only lock slots have a memory",
				   add->memory);
	if (add->offset || add->mask || add->value || add->step || add->condition || add->bits ||
	    add->period_us || add->budget)
		return rashpa_fail(call, -EINVAL, "only lock slots have a condition");
	return rashpa_source_check_of(call, ch, add);
}

/* A channel has each source once, except for words, which can have several conditions. */
static int rashpa_source_unique(struct rashpa_call *call, struct rashpa_channel *ch,
				const struct rashpa_listener *l)
{
	u32 i;

	if (l->watch)
		return 0;
	for (i = 0; i < ch->n_sources; i++) {
		const struct rashpa_listener *other = ch->listeners[i];

		if (other && other->kind == l->kind && other->index == l->index &&
		    other->dev == l->dev)
			return rashpa_fail(call, -EEXIST,
					   "this source is already in the channel, with id %u",
					   other->id);
	}
	return 0;
}

/*
 * Start the timer of the word, if any. The word may have changed, and its interrupt come, before
 * the source subscribed. Without an event now, producer and consumer could wait for each other.
 */
static void rashpa_listener_start(struct rashpa_listener *l)
{
	struct rashpa_channel *ch = l->channel;
	u64 value;

	guard(spinlock_irq)(&ch->lock);
	l->watch->since = ktime_get_ns();
	rashpa_watch_start(l->watch);
	if (l->subscriber.origin && rashpa_watch_look(l, &value))
		rashpa_listener_event(l, RASHPA_SEQUENCE_OWN, ktime_get_ns(), value);
	rashpa_channel_wake_later(ch);
}

/* The function, if any, and the channel's sources are locked. */
static int rashpa_source_insert(struct rashpa_call *call, struct rashpa_channel *ch,
				struct rashpa_listener *l, struct rashpa_origin *origin)
{
	int err;

	err = rashpa_source_unique(call, ch, l) ?: rashpa_listener_id_get(call, ch, l);
	if (err)
		return err;
	/* before the first event */
	if (l->watch)
		l->watch->listener = l;
	if (origin) {
		l->subscriber.notify = rashpa_listener_notify;
		l->subscriber.user = l->charge.shared ? l->charge.user : NULL;
		err = rashpa_origin_join(call, origin, &l->subscriber);
	}
	if (err) {
		rashpa_listener_id_put(ch, l);
		return err;
	}
	if (l->kind == RASHPA_SOURCE_SOFTWARE)
		ch->software = l;
	if (l->watch)
		rashpa_listener_start(l);
	return 0;
}

/* Set @to to the function of the source, with one reference, or leave it NULL. */
static int rashpa_source_device(struct rashpa_call *call, const struct rashpa_channel *ch,
				const struct rashpa_source_add *add, struct rashpa_device **to)
{
	struct rashpa_device *dev = ch->dev;
	struct file *file = NULL;
	int err = 0;

	if (add->device != -1) {
		file = fget(add->device);
		if (!file)
			return rashpa_fail(call, -EBADF, "device: fd %d is not open", add->device);
		dev = rashpa_device_of(file);
		if (!dev)
			err = rashpa_fail(call, -EINVAL, "device: fd %d is not a /dev/rashpa/fpgaN",
					  add->device);
		else if (!(file->f_mode & FMODE_WRITE))
			err = rashpa_fail(call, -EPERM,
					  "device: fd %d is open read-only: open it for writing",
					  add->device);
	}
	if (dev && !err) {
		get_device(&dev->dev);
		*to = dev;
	}
	if (file)
		fput(file);
	return err;
}

/* The function, if any, is locked. It is held, so that it may interrupt. */
static int rashpa_source_connect(struct rashpa_call *call, struct rashpa_channel *ch,
				 struct rashpa_listener *l, struct rashpa_source_add *add)
{
	struct rashpa_origin *origin = rashpa_source_origin(call, l, add);
	int err;

	if (IS_ERR(origin))
		return PTR_ERR(origin);
	if (l->dev != ch->dev) {
		err = rashpa_device_hold(call, l->dev);
		if (err)
			return err;
		l->holds_dev = true;
	}
	guard(mutex)(&ch->sources_lock);
	err = rashpa_source_insert(call, ch, l, origin);
	/* after the unlock another thread may free @l */
	add->out_id = l->id;
	return err;
}

/* Condition of a source for one map. */
static bool rashpa_source_of_map(struct rashpa_listener *l, u64 *value)
{
	return l->index == *value >> 32;
}

static struct rashpa_listener *rashpa_listener_new(struct rashpa_call *call,
						   struct rashpa_channel *ch,
						   const struct rashpa_source_add *add)
{
	struct rashpa_listener *l = kzalloc(sizeof(*l), GFP_KERNEL_ACCOUNT);
	s32 device;
	int err;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->channel = ch;
	l->kind = add->kind;
	l->index = add->index;
	l->quiet = add->head.flags & RASHPA_SOURCE_QUIET;
	l->one_shot = add->head.flags & RASHPA_SOURCE_ONE_SHOT;
	err = rashpa_source_device(call, ch, add, &l->dev);
	device = l->dev ? l->dev->id : RASHPA_NO_DEVICE;
	if (!err)
		err = rashpa_charge(call, &l->charge, RASHPA_RESOURCE_SOURCES, device, 1, 0);
	if (!err && add->kind == RASHPA_SOURCE_LOCK) {
		err = rashpa_watch_new(call, add, device, &l->watch);
		l->condition = rashpa_watch_look;
	}
	if (err) {
		rashpa_listener_free(l);
		return ERR_PTR(err);
	}
	if (add->kind == RASHPA_SOURCE_MAP && add->index)
		l->condition = rashpa_source_of_map;
	/* LIST shows the vector or the memory of the source */
	rashpa_charge_label(&l->charge, l->index,
			    l->watch ? rashpa_dmabuf_memory(l->watch->dmabuf)->name : NULL);
	return l;
}

int rashpa_ioc_source_add(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_source_add *add = arg;
	struct rashpa_device *dev;
	struct rashpa_listener *l;
	int err = rashpa_source_check(call, ch, add);

	if (err)
		return err;
	l = rashpa_listener_new(call, ch, add);
	if (IS_ERR(l))
		return PTR_ERR(l);
	/* another thread may free @l as soon as it is in the channel */
	dev = l->dev;
	if (dev)
		get_device(&dev->dev);
	err = rashpa_channel_check(call, ch);
	if (!err && dev)
		err = rashpa_device_lock(call, dev);
	if (!err) {
		err = rashpa_source_connect(call, ch, l, add);
		if (dev)
			mutex_unlock(&dev->lock);
	}
	if (dev)
		put_device(&dev->dev);
	if (err)
		rashpa_listener_free(l);
	return err;
}

int rashpa_ioc_source_del(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_source_del *del = arg;
	struct rashpa_listener *l;

	scoped_guard(mutex, &ch->sources_lock) {
		l = rashpa_source_find(call, ch, del->id);
		if (!l)
			return -ENOENT;
		if (l->membership)
			return rashpa_fail(call, -EBUSY,
					   "source %u is a member of group %u: end that first",
					   del->id, l->membership->group->listener->id);
		/* events end before the id is free */
		rashpa_listener_stop(l);
		if (l->group)
			rashpa_group_end(l);
		rashpa_listener_id_put(ch, l);
	}
	/* takes dev->lock, which is outside of sources_lock */
	rashpa_listener_free(l);
	return 0;
}

/*
 * An event that came since the source was disarmed is delivered now, and disarms it again. The
 * origin, if any, is locked, so that no event gets lost between this check and the next event.
 * Return: true if this made an event.
 */
static bool rashpa_listener_arm(struct rashpa_listener *l)
{
	u64 value = l->index;

	guard(spinlock_irqsave)(&l->channel->lock);
	if (!l->disarmed)
		return false;
	l->disarmed = false;
	if (l->watch) {
		if (rashpa_watch_look(l, &value))
			rashpa_listener_event(l, RASHPA_SEQUENCE_OWN, ktime_get_ns(), value);
		else
			rashpa_watch_start(l->watch);
	} else if (l->pending) {
		l->pending = false;
		rashpa_listener_event(l, l->subscriber.origin->sequence, ktime_get_ns(), value);
	}
	rashpa_channel_wake_later(l->channel);
	return l->disarmed;
}

static bool rashpa_source_arm(struct rashpa_listener *l)
{
	struct rashpa_origin *origin = l->subscriber.origin;
	bool event;

	if (!origin)
		return rashpa_listener_arm(l);
	guard(spinlock_irq)(&origin->lock);
	event = rashpa_listener_arm(l);
	if (!event)
		rashpa_origin_mask(origin, false);
	return event;
}

int rashpa_ioc_arm(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_arm *arm = arg;
	struct rashpa_listener *l;

	guard(mutex)(&ch->sources_lock);
	l = rashpa_source_find(call, ch, arm->id);
	if (!l)
		return -ENOENT;
	if (!l->one_shot)
		return rashpa_fail(call, -EINVAL, "source %u is not one-shot: it is always armed",
				   arm->id);
	arm->out_events = rashpa_source_arm(l);
	return 0;
}

int rashpa_ioc_source_info(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_source_info *info = arg;
	const struct rashpa_source_info asked = { .head = info->head, .id = info->id };
	const struct rashpa_listener *l;
	const struct rashpa_watch *w;

	*info = asked;
	guard(mutex)(&ch->sources_lock);
	l = rashpa_source_find(call, ch, info->id);
	if (!l)
		return -ENOENT;
	guard(spinlock_irq)(&ch->lock);
	w = l->watch;
	info->out_kind = l->kind;
	info->out_index = l->index;
	info->out_device = l->dev ? l->dev->id : rashpa_channel_fpga(ch);
	info->out_events = READ_ONCE(l->events);
	info->out_lost = l->lost;
	/* a vector has only one value, which is not stored for each event */
	info->out_value = l->kind == RASHPA_SOURCE_VECTOR && l->events ? l->index : l->value;
	if (!w || !w->budget)
		return 0;
	info->out_looks = w->looks;
	info->out_look_ns = w->look_ns;
	info->out_since_ns = ktime_get_ns() - w->since;
	info->out_period_ns = w->period_now;
	return 0;
}

int rashpa_ioc_signal(struct rashpa_call *call, void *arg)
{
	struct rashpa_channel *ch = call->obj;
	struct rashpa_signal *signal = arg;
	struct rashpa_listener *l;
	int err = rashpa_channel_check(call, ch);

	if (err)
		return err;
	scoped_guard(mutex, &ch->sources_lock) {
		l = ch->software;
		if (!l)
			return rashpa_fail(call, -ENOENT,
					   "the channel has no software source: add one first");
		guard(spinlock_irq)(&ch->lock);
		rashpa_listener_event(l, RASHPA_SEQUENCE_OWN, ktime_get_ns(), signal->value);
	}
	rashpa_channel_wake(ch);
	return 0;
}
