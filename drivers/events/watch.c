// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: words of memory as sources of events.
 */
#include <linux/dma-buf.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "memory/memory.h"
#include "events/events.h"

/* ------------------------------------------------------------ checks ---- */

static u64 rashpa_watch_read(const struct rashpa_watch *w)
{
	u64 v;

	/* another read would be another memory error, this time in an interrupt */
	if (PageHWPoison(w->page))
		return w->last & w->mask;
	/* devices write little-endian words */
	if (w->bits == 32)
		v = le32_to_cpu(READ_ONCE(*(const __le32 *)w->word));
	else
		v = le64_to_cpu(READ_ONCE(*(const __le64 *)w->word));
	/* a reader of our record sees the data that the function wrote before the word */
	dma_rmb();
	return v & w->mask;
}

/*
 * A counter wraps: many positions have the same low bits. Take the one nearest to the last
 * position.
 */
static u64 rashpa_watch_position(const struct rashpa_watch *w, u64 v)
{
	u64 delta;

	if (!w->counter)
		return v;
	delta = sign_extend64(v - w->last, fls64(w->mask) - 1);
	/* no position is negative: this moved forward by more than half of the range */
	if ((s64)delta < 0 && w->last < -delta)
		delta &= w->mask;
	return w->last + delta;
}

/* Advance to the next value after @v. */
static void rashpa_watch_step(struct rashpa_watch *w, u64 v)
{
	u64 n, delta;

	/* no value is greater, and n below could wrap to 0 */
	if (v == w->max) {
		w->ended = true;
		return;
	}
	n = div64_u64(v - w->value, w->step) + 1;
	w->ended = check_mul_overflow(n, w->step, &delta) ||
		   check_add_overflow(w->value, delta, &w->value) || w->value > w->max;
}

/* Check the condition. Return: true if this makes an event; @value is the position of the word. */
bool rashpa_watch_look(struct rashpa_listener *l, u64 *value)
{
	struct rashpa_watch *w = l->watch;
	const u64 v = rashpa_watch_position(w, rashpa_watch_read(w));
	const bool held = w->held;
	bool fires = false;

	lockdep_assert_held(&l->channel->lock);
	switch (w->condition) {
	case RASHPA_CONDITION_CHANGED:
		fires = v != w->last;
		break;
	case RASHPA_CONDITION_EQUAL:
		fires = v == w->value;
		break;
	case RASHPA_CONDITION_REACHED:
		fires = !w->ended && v >= w->value;
		break;
	}
	if (w->step && fires) {
		rashpa_watch_step(w, v);
	} else if (w->condition != RASHPA_CONDITION_CHANGED) {
		w->held = fires;
		fires = fires && !held;
	}
	w->last = v;
	*value = v;
	return fires;
}

/* ------------------------------------------------------------ polling --- */

#define RASHPA_BUDGET_DEFAULT	10
#define RASHPA_BUDGET_ALL	1000
/* estimate for entry and exit of the timer's interrupt */
#define RASHPA_LOOK_OVERHEAD_NS	1000

/* Stretch the period so that checks keep the budget. */
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
	u64 value;

	guard(spinlock_irqsave)(&ch->lock);
	if (!l->disarmed && rashpa_watch_look(l, &value))
		rashpa_listener_event(l, RASHPA_SEQUENCE_OWN, time, value);
	rashpa_channel_wake_later(ch);
	rashpa_watch_account(w, ktime_get_ns() - time);
	/* ARM restarts the timer of a disarmed source, perhaps before we got the lock */
	if (!l->disarmed && !hrtimer_is_queued(timer)) {
		hrtimer_forward_now(timer, ns_to_ktime(w->period_now));
		again = HRTIMER_RESTART;
	}
	return again;
}

/* --------------------------------------------------------- life ------- */

/* Address of a word in the kernel's mapping, NULL outside of the memory. */
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
				   "vector %u: must be 0 with RASHPA_SOURCE_POLL or RASHPA_SOURCE_LOOK",
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

/* Positions of a counter have 64 bits, see &struct rashpa_source_add. */
static bool rashpa_watch_counts(const struct rashpa_source_add *add)
{
	return add->head.flags & RASHPA_SOURCE_COUNTER ||
	       (add->bits == 32 && (!add->mask || add->mask == U32_MAX) &&
		add->condition != RASHPA_CONDITION_EQUAL);
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
	if (add->head.flags & RASHPA_SOURCE_COUNTER &&
	    (add->mask & (add->mask + 1) || add->condition == RASHPA_CONDITION_EQUAL))
		return rashpa_fail(call, -EINVAL,
				   "a counter has the lowest bits of the word, and EQUAL compares no positions");
	if (add->value && add->condition == RASHPA_CONDITION_CHANGED)
		return rashpa_fail(call, -EINVAL, "CHANGED has no value");
	if (add->step && add->condition != RASHPA_CONDITION_REACHED)
		return rashpa_fail(call, -EINVAL, "a step is for REACHED");
	return rashpa_watch_check_poll(call, add);
}

/* The memory of words, with one reference, if @fd is open in this mode. */
static struct dma_buf *rashpa_word_memory(struct rashpa_call *call, int fd, fmode_t mode)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);
	int err;

	if (IS_ERR(dmabuf)) {
		rashpa_fail(call, PTR_ERR(dmabuf), "memory: fd %d is not a dma-buf", fd);
		return dmabuf;
	}
	if (!rashpa_dmabuf_memory(dmabuf))
		err = rashpa_fail(call, -EXDEV,
				  "words are in host memory of this driver: a buffer, pinned or lock memory");
	else if (!(dmabuf->file->f_mode & mode))
		err = rashpa_fail(call, -EACCES, "the memory is not open for %s",
				  mode == FMODE_READ ? "reading" : "writing");
	else
		return dmabuf;
	dma_buf_put(dmabuf);
	return ERR_PTR(err);
}

/* Make a word a source, without a running timer. @device: N of the function to charge. */
int rashpa_watch_new(struct rashpa_call *call, const struct rashpa_source_add *add, s32 device,
		     struct rashpa_watch **to)
{
	struct rashpa_watch *w;
	int err = rashpa_watch_check(call, add);

	if (err)
		return err;
	w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	if (!w)
		return -ENOMEM;
	/* for reading, because events disclose the word */
	w->dmabuf = rashpa_word_memory(call, add->memory, FMODE_READ);
	if (IS_ERR(w->dmabuf)) {
		err = PTR_ERR(w->dmabuf);
		kfree(w);
		return err;
	}
	w->word = rashpa_word_find(rashpa_dmabuf_memory(w->dmabuf), add->offset);
	if (!w->word) {
		err = rashpa_fail(call, -ERANGE, "offset 0x%llx is outside the memory of %zu bytes",
				  add->offset, w->dmabuf->size);
	} else if (add->head.flags & RASHPA_SOURCE_POLL) {
		w->budget = add->budget ?: RASHPA_BUDGET_DEFAULT;
		err = rashpa_charge(call, &w->charge, RASHPA_RESOURCE_TIMERS, device, w->budget, 0);
	}
	if (err) {
		rashpa_watch_free(w);
		return err;
	}
	w->page = virt_to_page(w->word);
	if (PageHuge(w->page))
		w->page = compound_head(w->page);
	w->bits = add->bits;
	w->condition = add->condition;
	w->mask = add->mask ?: (add->bits == 32 ? U32_MAX : U64_MAX);
	w->counter = rashpa_watch_counts(add);
	w->max = w->counter ? U64_MAX : w->mask;
	w->value = add->value;
	w->step = add->step;
	w->last = rashpa_watch_read(w);
	w->period = (u64)add->period_us * NSEC_PER_USEC;
	w->period_now = w->period;
	hrtimer_setup(&w->timer, rashpa_watch_tick, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	*to = w;
	return 0;
}

/* Start the timer, if any, again or for the first time. */
void rashpa_watch_start(struct rashpa_watch *w)
{
	lockdep_assert_held(&w->listener->channel->lock);
	if (w->budget)
		hrtimer_start(&w->timer, ns_to_ktime(w->period_now), HRTIMER_MODE_REL);
}

/* @w is stopped and no longer subscribed, or NULL. */
void rashpa_watch_free(struct rashpa_watch *w)
{
	if (!w)
		return;
	rashpa_uncharge(&w->charge);
	dma_buf_put(w->dmabuf);
	kfree(w);
}

/* -------------------------------------------------------------- ioctl --- */

/* words that are checked at a time with interrupts off */
#define RASHPA_LOOK_BATCH	16

/* Progress of a LOOK: later sources check their word when they are added. */
struct rashpa_look_walk {
	struct rashpa_words *words;
	struct rashpa_subscriber cursor;	/* in the list after the last checked source */
	u32 left;
	u32 events;
};

/*
 * Return: true if sources are left. The tasklet wakes the readers, because each of them would take
 * time of the producer.
 */
static bool rashpa_look_batch(struct rashpa_look_walk *k)
{
	struct rashpa_origin *origin = &k->words->origin;
	struct rashpa_listener *l;
	u64 time;
	u32 i;

	guard(spinlock_irq)(&origin->lock);
	time = ktime_get_ns();
	for (i = 0; i < RASHPA_LOOK_BATCH && k->left; i++, k->left--) {
		if (list_is_last(&k->cursor.entry, &origin->subscribers))
			return false;
		l = container_of(list_next_entry(&k->cursor, entry), struct rashpa_listener,
				 subscriber);
		list_move(&k->cursor.entry, &l->subscriber.entry);
		k->events += rashpa_listener_fire(l, origin->sequence, time, 0);
	}
	return k->left;
}

/* The words are locked. Return: number of events. */
static u32 rashpa_words_look(struct rashpa_words *words)
{
	struct rashpa_origin *origin = &words->origin;
	struct rashpa_look_walk k = { .words = words };

	lockdep_assert_held(&words->lock);
	scoped_guard(spinlock_irq, &origin->lock) {
		origin->sequence++;
		k.left = origin->n_subscribers;
		list_add(&k.cursor.entry, &origin->subscribers);
	}
	while (rashpa_look_batch(&k))
		cond_resched();
	guard(spinlock_irq)(&origin->lock);
	list_del(&k.cursor.entry);
	return k.events;
}

int rashpa_ioc_look(struct rashpa_call *call, void *arg)
{
	struct rashpa_look *look = arg;
	struct dma_buf *dmabuf;
	struct rashpa_words *words;
	int err;

	/* a program that cannot write words has no reason to have them checked */
	dmabuf = rashpa_word_memory(call, look->fd, FMODE_WRITE);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);
	words = &rashpa_dmabuf_memory(dmabuf)->importers.words;
	err = mutex_lock_interruptible(&words->lock);
	if (!err) {
		look->out_events = rashpa_words_look(words);
		mutex_unlock(&words->lock);
	}
	dma_buf_put(dmabuf);
	return err;
}
