// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: words of memory as sources of events.
 */
#include <linux/dma-buf.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "memory/memory.h"
#include "events/events.h"

/* ------------------------------------------------------------ looking --- */

static u64 rashpa_watch_read(const struct rashpa_watch *w)
{
	u64 v;

	/* to read it again would be another memory error, in an interrupt this time */
	if (PageHWPoison(virt_to_page(w->word)))
		return w->last & w->mask;
	/* hardware writes little-endian words */
	if (w->bits == 32)
		v = le32_to_cpu(READ_ONCE(*(const __le32 *)w->word));
	else
		v = le64_to_cpu(READ_ONCE(*(const __le64 *)w->word));
	/* what the function wrote before the word is seen by who sees our record */
	dma_rmb();
	return v & w->mask;
}

/*
 * A counter of 32 bits wraps: of all positions that have its bits, it is at the one nearest to
 * where it was at the last look.
 */
static u64 rashpa_watch_position(const struct rashpa_watch *w, u64 v)
{
	s32 way;

	if (!w->counter)
		return v;
	way = (u32)v - (u32)w->last;
	/* before the beginning there is nothing */
	if (way < 0 && w->last < -(s64)way)
		return w->last + (u32)way;
	return w->last + way;
}

/* Move on to the next value behind @v. */
static void rashpa_watch_step(struct rashpa_watch *w, u64 v)
{
	u64 n, way;

	/* nothing is greater than this: @way might not fit, not even as an overflow */
	if (v == w->most) {
		w->ended = true;
		return;
	}
	n = div64_u64(v - w->value, w->step) + 1;
	w->ended = check_mul_overflow(n, w->step, &way) ||
		   check_add_overflow(w->value, way, &w->value) || w->value > w->most;
}

static bool rashpa_watch_reached(struct rashpa_watch *w, u64 v)
{
	const bool held = w->held;

	if (w->ended || v < w->value) {
		w->held = false;
		return false;
	}
	if (w->step) {
		rashpa_watch_step(w, v);
		return true;
	}
	w->held = true;
	return !held;
}

/**
 * rashpa_watch_look() - is the condition true now
 * @l: the source that watches the word; its channel's lock held
 * @value: becomes the position of the word, if it is
 *
 * Return: true if this makes an event.
 */
bool rashpa_watch_look(struct rashpa_listener *l, u64 *value)
{
	struct rashpa_watch *w = l->watch;
	const u64 v = rashpa_watch_position(w, rashpa_watch_read(w));
	bool fires = false;

	lockdep_assert_held(&l->channel->lock);
	switch (w->condition) {
	case RASHPA_CONDITION_CHANGED:
		fires = v != w->last;
		break;
	case RASHPA_CONDITION_EQUAL:
		fires = v == w->value && !w->held;
		w->held = v == w->value;
		break;
	case RASHPA_CONDITION_REACHED:
		fires = rashpa_watch_reached(w, v);
		break;
	}
	w->last = v;
	*value = v;
	return fires;
}

/* ------------------------------------------------------------ polling --- */

#define RASHPA_BUDGET_DEFAULT	10
#define RASHPA_BUDGET_ALL	1000
/* entering and leaving the timer's interrupt, which we cannot measure from inside */
#define RASHPA_LOOK_OVERHEAD_NS	1000

/* What a look costs decides how often there may be one. */
static void rashpa_watch_account(struct rashpa_watch *w, u64 cost)
{
	w->looks++;
	w->look_ns += cost;
	w->cost += ((s64)(cost + RASHPA_LOOK_OVERHEAD_NS) - (s64)w->cost) / 8;
	w->period_now = max(w->period, div_u64(w->cost * RASHPA_BUDGET_ALL, w->budget));
}

static enum hrtimer_restart rashpa_watch_tick(struct hrtimer *timer)
{
	struct rashpa_watch *w = container_of(timer, struct rashpa_watch, timer);
	struct rashpa_listener *l = w->listener;
	struct rashpa_channel *ch = l->channel;
	const u64 time = ktime_get_ns();
	enum hrtimer_restart again = HRTIMER_NORESTART;
	unsigned long flags;
	u64 value;

	spin_lock_irqsave(&ch->lock, flags);
	if (!l->rests && rashpa_watch_look(l, &value))
		rashpa_listener_event(l, ++l->sequence, time, value);
	rashpa_channel_tell_soon(ch);
	rashpa_watch_account(w, ktime_get_ns() - time);
	/* one that rests is started again when it is armed, perhaps before we had the lock */
	if (!l->rests && !hrtimer_is_queued(timer)) {
		hrtimer_forward_now(timer, ns_to_ktime(w->period_now));
		again = HRTIMER_RESTART;
	}
	spin_unlock_irqrestore(&ch->lock, flags);
	return again;
}

/* --------------------------------------------------------- life ------- */

/* The address of a word in the kernel's mapping, NULL if it is outside. */
static const void *rashpa_word_find(const struct rashpa_memory *memory, u64 offset)
{
	const struct rashpa_extent *extents = memory->extents;
	u32 i;

	for (i = 0; i < memory->n_extents; i++) {
		u64 length = (u64)extents[i].count << PAGE_SHIFT;

		if (offset < length)
			return page_address(extents[i].first + (offset >> PAGE_SHIFT)) +
			       offset_in_page(offset);
		offset -= length;
	}
	return NULL;
}

static int rashpa_watch_check_poll(struct rashpa_call *call, const struct rashpa_source_add *add)
{
	if (add->index && add->head.flags & (RASHPA_SOURCE_POLL | RASHPA_SOURCE_LOOK))
		return rashpa_fail(call, -EINVAL,
				   "vector %u: a word that no interrupt makes us look at has none",
				   add->index);
	if (!(add->head.flags & RASHPA_SOURCE_POLL))
		return add->period_us || add->budget ?
		       rashpa_fail(call, -EINVAL,
				   "period_us and budget need the flag RASHPA_SOURCE_POLL") : 0;
	if (add->period_us < RASHPA_PERIOD_MIN || add->period_us > RASHPA_PERIOD_MAX)
		return rashpa_fail(call, -EINVAL, "a period of %u us: must be %u to %u",
				   add->period_us, RASHPA_PERIOD_MIN, RASHPA_PERIOD_MAX);
	if (add->budget > RASHPA_BUDGET_ALL)
		return rashpa_fail(call, -EINVAL, "a budget of %u thousandths of a CPU: at most %u",
				   add->budget, RASHPA_BUDGET_ALL);
	return 0;
}

/* A counter that wraps has positions of 64 bits: see &struct rashpa_source_add. */
static bool rashpa_watch_counts(const struct rashpa_source_add *add)
{
	return add->bits == 32 && (!add->mask || add->mask == U32_MAX) &&
	       add->condition != RASHPA_CONDITION_EQUAL;
}

static int rashpa_watch_check(struct rashpa_call *call, const struct rashpa_source_add *add)
{
	const u64 all = add->bits == 32 ? U32_MAX : U64_MAX;

	if (add->bits != 32 && add->bits != 64)
		return rashpa_fail(call, -EINVAL, "a word of %u bits: must be 32 or 64", add->bits);
	if (add->offset % (add->bits / 8))
		return rashpa_fail(call, -EINVAL,
				   "offset 0x%llx is not a multiple of the word's %u bytes",
				   add->offset, add->bits / 8);
	if (add->condition < RASHPA_CONDITION_CHANGED ||
	    add->condition > RASHPA_CONDITION_REACHED)
		return rashpa_fail(call, -EINVAL, "condition %u is not defined", add->condition);
	if (add->mask & ~all)
		return rashpa_fail(call, -EINVAL, "the mask has bits outside the word");
	if (add->value & ~(add->mask ?: all) && !rashpa_watch_counts(add))
		return rashpa_fail(call, -EINVAL, "the value has bits outside the mask");
	if (add->value && add->condition == RASHPA_CONDITION_CHANGED)
		return rashpa_fail(call, -EINVAL, "CHANGED has no value");
	if (add->step && add->condition != RASHPA_CONDITION_REACHED)
		return rashpa_fail(call, -EINVAL, "a step is for REACHED");
	return rashpa_watch_check_poll(call, add);
}

/* The memory of @add, one reference, and its word. */
static struct dma_buf *rashpa_watch_memory(struct rashpa_call *call,
					   const struct rashpa_source_add *add,
					   const void **word)
{
	struct dma_buf *dmabuf = dma_buf_get(add->memory);
	struct rashpa_memory *memory;
	int err;

	if (IS_ERR(dmabuf)) {
		rashpa_fail(call, PTR_ERR(dmabuf), "memory: fd %d is not a dma-buf", add->memory);
		return dmabuf;
	}
	memory = rashpa_dmabuf_memory(dmabuf);
	if (!memory) {
		err = rashpa_fail(call, -EXDEV,
				  "a lock slot must be in host memory of this driver: a buffer, pinned or lock memory");
		goto out_put;
	}
	/* who may not read the memory learns nothing of its words */
	if (!(dmabuf->file->f_mode & FMODE_READ)) {
		err = rashpa_fail(call, -EACCES, "the memory is not open for reading");
		goto out_put;
	}
	*word = rashpa_word_find(memory, add->offset);
	if (!*word) {
		err = rashpa_fail(call, -ERANGE, "offset 0x%llx is outside the memory of %zu bytes",
				  add->offset, dmabuf->size);
		goto out_put;
	}
	return dmabuf;

out_put:
	dma_buf_put(dmabuf);
	return ERR_PTR(err);
}

/**
 * rashpa_watch_new() - a word as a source
 * @call: the ioctl
 * @add: its argument, of kind LOCK
 * @device: N of the function that it is of, for who asks who holds what
 *
 * Return: the watch, which rests until rashpa_watch_start(), or an error pointer.
 */
struct rashpa_watch *rashpa_watch_new(struct rashpa_call *call,
				      const struct rashpa_source_add *add, s32 device)
{
	struct rashpa_watch *w;
	int err;

	err = rashpa_watch_check(call, add);
	if (err)
		return ERR_PTR(err);
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		return ERR_PTR(-ENOMEM);
	w->dmabuf = rashpa_watch_memory(call, add, &w->word);
	if (IS_ERR(w->dmabuf)) {
		err = PTR_ERR(w->dmabuf);
		goto out_free;
	}
	w->polled = add->head.flags & RASHPA_SOURCE_POLL;
	w->budget = w->polled ? add->budget ?: RASHPA_BUDGET_DEFAULT : 0;
	err = w->polled ? rashpa_charge(call, &w->charge, RASHPA_RESOURCE_TIMERS, device,
					w->budget, 0) : 0;
	if (err)
		goto out_put;
	w->bits = add->bits;
	w->condition = add->condition;
	w->mask = add->mask ?: (add->bits == 32 ? U32_MAX : U64_MAX);
	w->counter = rashpa_watch_counts(add);
	w->most = w->counter ? U64_MAX : w->mask;
	w->value = add->value;
	w->step = add->step;
	w->last = rashpa_watch_read(w);
	w->period = (u64)add->period_us * NSEC_PER_USEC;
	w->period_now = w->period;
	rashpa_hrtimer_setup(&w->timer, rashpa_watch_tick);
	return w;

out_put:
	dma_buf_put(w->dmabuf);
out_free:
	kfree(w);
	return ERR_PTR(err);
}

/**
 * rashpa_watch_start() - from now on it is looked at by its timer, if it has one
 * @w: the word; its source is in the channel
 */
void rashpa_watch_start(struct rashpa_watch *w)
{
	w->since = ktime_get_ns();
	if (w->polled)
		hrtimer_start(&w->timer, ns_to_ktime(w->period), HRTIMER_MODE_REL);
}

/**
 * rashpa_watch_again() - it does not rest any more: its timer, if it has one, looks again
 * @w: the word; the channel's lock held, as by the timer
 */
void rashpa_watch_again(struct rashpa_watch *w)
{
	lockdep_assert_held(&w->listener->channel->lock);
	if (w->polled)
		hrtimer_start(&w->timer, ns_to_ktime(w->period_now), HRTIMER_MODE_REL);
}

/**
 * rashpa_watch_free() - the end of rashpa_watch_new()
 * @w: unreachable for interrupts, or NULL; stopped
 */
void rashpa_watch_free(struct rashpa_watch *w)
{
	if (!w)
		return;
	rashpa_uncharge(&w->charge);
	dma_buf_put(w->dmabuf);
	kfree(w);
}

/* -------------------------------------------------------------- ioctl --- */

/* so many words are looked at with interrupts off, then others may run */
#define RASHPA_LOOK_BATCH	16

/**
 * struct rashpa_looking - a LOOK on its way
 * @words: at what; locked
 * @park: among those who watch, behind the last one that has looked
 * @left: how many are still to look; who comes meanwhile has looked by himself
 * @events: so far
 */
struct rashpa_looking {
	struct rashpa_words *words;
	struct rashpa_ear park;
	u32 left;
	u32 events;
};

/* Readers decide how many wait, and for how many eventfds: the producer does not wait for them. */
static void rashpa_looking_next(struct rashpa_looking *k, u64 time)
{
	struct rashpa_ear *ear = list_next_entry(&k->park, entry);
	struct rashpa_listener *l = container_of(ear, struct rashpa_listener, ear);
	struct rashpa_channel *ch = l->channel;

	list_move(&k->park.entry, &ear->entry);
	spin_lock(&ch->lock);
	k->events += rashpa_listener_fire(l, k->words->origin.sequence, time, 0);
	rashpa_channel_tell_soon(ch);
	spin_unlock(&ch->lock);
}

/* Return: are there more? */
static bool rashpa_looking_some(struct rashpa_looking *k)
{
	struct rashpa_origin *origin = &k->words->origin;
	u64 time;
	u32 i;

	spin_lock_irq(&origin->lock);
	time = ktime_get_ns();
	for (i = 0; i < RASHPA_LOOK_BATCH && k->left; i++, k->left--) {
		if (list_is_last(&k->park.entry, &origin->ears)) {
			k->left = 0;
			break;
		}
		rashpa_looking_next(k, time);
	}
	spin_unlock_irq(&origin->lock);
	return k->left;
}

/* The words are locked. Return: the events that this made. */
static u32 rashpa_words_look(struct rashpa_words *words)
{
	struct rashpa_origin *origin = &words->origin;
	struct rashpa_looking k = { .words = words };
	bool more;

	lockdep_assert_held(&words->lock);
	spin_lock_irq(&origin->lock);
	origin->sequence++;
	k.left = origin->n_ears;
	list_add(&k.park.entry, &origin->ears);
	spin_unlock_irq(&origin->lock);
	do {
		more = rashpa_looking_some(&k);
		cond_resched();
	} while (more);
	spin_lock_irq(&origin->lock);
	list_del(&k.park.entry);
	spin_unlock_irq(&origin->lock);
	return k.events;
}

int rashpa_ioc_look(struct rashpa_call *call, void *arg)
{
	struct rashpa_look *look = arg;
	struct dma_buf *dmabuf = dma_buf_get(look->fd);
	struct rashpa_memory *memory;
	int err = 0;

	if (IS_ERR(dmabuf))
		return rashpa_fail(call, PTR_ERR(dmabuf), "fd %d is not a dma-buf", look->fd);
	memory = rashpa_dmabuf_memory(dmabuf);
	if (!memory)
		err = rashpa_fail(call, -EXDEV,
				  "words are in host memory of this driver: a buffer, pinned or lock memory");
	/* who may not write the words has nothing to tell of them */
	else if (!(dmabuf->file->f_mode & FMODE_WRITE))
		err = rashpa_fail(call, -EACCES, "the memory is not open for writing");
	else
		err = mutex_lock_interruptible(&memory->importers.words.lock);
	if (!err) {
		look->out_events = rashpa_words_look(&memory->importers.words);
		mutex_unlock(&memory->importers.words.lock);
	}
	dma_buf_put(dmabuf);
	return err;
}
