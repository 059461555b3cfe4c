// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: engines: data transfer processes of a function that are stopped without the others.
 *
 * What a stop of one engine proves rests on its bounds: no other one can have used its entries.
 * So the bounds are written while nothing runs, no window holds them, and they are read
 * back before each stop that relies on them: somebody with all registers may have reset the board.
 * Everything here that touches registers has hw_lock.
 */
#include <linux/bitops.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "function/function.h"

/* -------------------------------------------------- from user space --- */

/**
 * rashpa_engines_fetch() - the engines of a profile, not checked
 * @call: the ioctl
 * @p: its argument, with a number of engines that is possible
 * @profile: they are added here; rashpa_engines_free() is to be called whatever this answers
 *
 * Return: 0, -EINVAL, -E2BIG, -EFAULT, -ENOMEM.
 */
int rashpa_engines_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile)
{
	struct rashpa_profile_engine *in;
	struct rashpa_profile_step *steps;
	int err = 0;
	u32 i;

	in = rashpa_copy_array(call, p->engines, p->n_engines, p->engine_size,
			       offsetofend(typeof(*in), step_size), sizeof(*in));
	if (IS_ERR_OR_NULL(in))
		return PTR_ERR_OR_ZERO(in);
	profile->engines = kcalloc(p->n_engines, sizeof(*profile->engines), GFP_KERNEL_ACCOUNT);
	if (!profile->engines)
		err = -ENOMEM;
	else
		profile->n_engines = p->n_engines;
	for (i = 0; i < profile->n_engines && !err; i++) {
		profile->engines[i].about = in[i];
		if (in[i].n_steps > RASHPA_ENGINE_STEPS_MAX) {
			err = rashpa_fail(call, -EINVAL,
					  "engine %u: %u steps, at most %u are possible", i,
					  in[i].n_steps, RASHPA_ENGINE_STEPS_MAX);
			break;
		}
		steps = rashpa_copy_array(call, in[i].steps, in[i].n_steps, in[i].step_size,
					  offsetofend(typeof(*steps), __reserved), sizeof(*steps));
		if (IS_ERR(steps))
			err = PTR_ERR(steps);
		else
			profile->engines[i].wanted = steps;
	}
	kvfree(in);
	return err;
}

static bool rashpa_ranges_meet(u64 a, u64 a_length, u64 b, u64 b_length)
{
	return a < b + b_length && b < a + a_length;
}

/* A window of the profile that holds a register, with these flags. */
static const struct rashpa_profile_window *
rashpa_engine_window(const struct rashpa_profile_set *p, const struct rashpa_profile *profile,
		     u32 flags, u32 bar, u64 offset)
{
	u32 i;

	for (i = 0; i < p->n_windows; i++) {
		const struct rashpa_profile_window *w = &profile->windows[i];

		if ((w->flags & flags) == flags && w->bar == bar &&
		    rashpa_ranges_meet(w->offset, w->length, offset, sizeof(u32)))
			return w;
	}
	return NULL;
}

/* A register of the bounds: it is there, nobody else's, and no window has it. */
static int rashpa_bound_check(struct rashpa_call *call, struct rashpa_device *dev,
			      const struct rashpa_profile_set *p,
			      const struct rashpa_profile *profile, u32 i, u64 offset)
{
	const struct rashpa_profile_engine *e = &profile->engines[i].about, *other;
	const struct rashpa_profile_table *t = profile->table;
	const struct rashpa_profile_window *w;
	u32 j, same = 0;

	if (!IS_ALIGNED(offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "engine %s: bounds at 0x%llx: not a multiple of 4", e->name,
				   offset);
	if (!rashpa_bar_is_memory(dev, e->bar) ||
	    !rashpa_bar_range_ok(dev, e->bar, offset, sizeof(u32)))
		return rashpa_fail(call, -ERANGE, "engine %s: bounds at 0x%llx are outside BAR %u",
				   e->name, offset, e->bar);
	if (t->bar == e->bar && rashpa_ranges_meet(t->offset, t->length, offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL, "engine %s: bounds at 0x%llx are in the table",
				   e->name, offset);
	w = rashpa_engine_window(p, profile, 0, e->bar, offset);
	if (w)
		return rashpa_fail(call, -EINVAL,
				   "engine %s: the window %s holds its bounds, which are the kernel's",
				   e->name, w->name);
	for (j = 0; j <= i; j++) {
		other = &profile->engines[j].about;
		if (other->bar == e->bar)
			same += (other->first_offset == offset) + (other->limit_offset == offset);
	}
	if (same > 1)
		return rashpa_fail(call, -EINVAL,
				   "engine %s: the register at 0x%llx is named twice for bounds",
				   e->name, offset);
	return 0;
}

static int rashpa_engine_range_check(struct rashpa_call *call, const struct rashpa_profile *profile,
				     u32 i)
{
	const struct rashpa_profile_engine *e = &profile->engines[i].about, *other;
	const u64 entries = div64_u64(profile->table->length, profile->layout.stride);
	u32 j;

	if (!e->count && e->first)
		return rashpa_fail(call, -EINVAL, "engine %s: no entries, but a first one",
				   e->name);
	if ((u64)e->first + e->count > entries)
		return rashpa_fail(call, -ERANGE,
				   "engine %s: entries %u and %u behind it are not in the table of %llu",
				   e->name, e->first, e->count, entries);
	for (j = 0; j < i; j++) {
		other = &profile->engines[j].about;
		if (rashpa_ranges_meet(e->first, e->count, other->first, other->count) &&
		    e->count && other->count)
			return rashpa_fail(call, -EINVAL,
					   "engine %s: some of its entries are those of engine %s",
					   e->name, other->name);
	}
	return 0;
}

static int rashpa_engine_steps_check(struct rashpa_call *call, struct rashpa_device *dev,
				     const struct rashpa_profile_set *p,
				     const struct rashpa_profile *profile,
				     const struct rashpa_engine *engine)
{
	const struct rashpa_profile_engine *e = &engine->about;
	char whose[RASHPA_PROFILE_NAME_SIZE + 16];
	const struct rashpa_profile_window *w;
	u32 i;
	int err;

	if (e->count && !e->n_steps)
		return rashpa_fail(call, -EINVAL,
				   "engine %s: has entries, and no quiesce sequence", e->name);
	snprintf(whose, sizeof(whose), "engine %s, ", e->name);
	err = rashpa_steps_check(call, dev, whose, engine->wanted, e->n_steps);
	for (i = 0; i < e->n_steps && !err; i++) {
		w = rashpa_engine_window(p, profile, RASHPA_PWINDOW_USER, engine->wanted[i].bar,
					 engine->wanted[i].offset);
		if (w)
			err = rashpa_fail(call, -EINVAL,
					  "engine %s, step %u: the window %s is for users, and has the register",
					  e->name, i, w->name);
	}
	return err;
}

static int rashpa_engine_check(struct rashpa_call *call, struct rashpa_device *dev,
			       const struct rashpa_profile_set *p,
			       const struct rashpa_profile *profile, u32 i)
{
	const struct rashpa_profile_engine *e = &profile->engines[i].about;
	u32 j;
	int err;

	err = rashpa_check_name(call, e->name, sizeof(e->name));
	if (err)
		return err;
	for (j = 0; j < i; j++)
		if (!strcmp(profile->engines[j].about.name, e->name))
			return rashpa_fail(call, -EINVAL, "engine %s: named twice", e->name);
	if (e->flags & ~RASHPA_PENGINE_OPTIONAL)
		return rashpa_fail(call, -EINVAL, "engine %s: undefined flag", e->name);
	err = rashpa_engine_range_check(call, profile, i);
	if (!err)
		err = rashpa_bound_check(call, dev, p, profile, i, e->first_offset);
	if (!err)
		err = rashpa_bound_check(call, dev, p, profile, i, e->limit_offset);
	return err ?: rashpa_engine_steps_check(call, dev, p, profile, &profile->engines[i]);
}

/**
 * rashpa_engines_check() - do the engines of a profile make sense
 * @call: the ioctl
 * @dev: the function, locked
 * @p: its argument
 * @profile: as it was fetched; windows, steps and table are checked
 *
 * Return: 0, -EINVAL, -ENAMETOOLONG, -ERANGE.
 */
int rashpa_engines_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile_set *p, const struct rashpa_profile *profile)
{
	int err = 0;
	u32 i;

	for (i = 0; i < profile->n_engines && !err; i++)
		err = rashpa_engine_check(call, dev, p, profile, i);
	return err;
}

/**
 * rashpa_engines_map() - the registers of engines
 * @dev: the function
 * @profile: its engines, checked
 *
 * Return: 0 or -ENOMEM.
 */
int rashpa_engines_map(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	struct rashpa_step *steps;
	u32 i;

	for (i = 0; i < profile->n_engines; i++) {
		struct rashpa_engine *e = &profile->engines[i];

		e->first = pci_iomap_range(dev->pdev, e->about.bar, e->about.first_offset,
					   sizeof(u32));
		e->limit = pci_iomap_range(dev->pdev, e->about.bar, e->about.limit_offset,
					   sizeof(u32));
		if (!e->first || !e->limit)
			return -ENOMEM;
		steps = rashpa_steps_map(dev, e->wanted, e->about.n_steps);
		if (IS_ERR(steps))
			return PTR_ERR(steps);
		e->steps = steps;
	}
	return 0;
}

/**
 * rashpa_engines_free() - the end of rashpa_engines_fetch()
 * @dev: the function; hw_lock held where they are its own
 * @engines: may be NULL
 * @n: their number, 0 with NULL
 */
void rashpa_engines_free(struct rashpa_device *dev, struct rashpa_engine *engines, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct rashpa_engine *e = &engines[i];

		kvfree(e->wanted);
		rashpa_steps_free(dev, e->steps, e->steps ? e->about.n_steps : 0);
		if (e->first)
			pci_iounmap(dev->pdev, e->first);
		if (e->limit)
			pci_iounmap(dev->pdev, e->limit);
	}
	kfree(engines);
}

/* ----------------------------------------------------------- bounds --- */

static void rashpa_bounds_read(const struct rashpa_engine *e, u32 *first, u32 *limit)
{
	*first = readl(e->first);
	*limit = readl(e->limit);
}

/* Do they say what they have to? Of an engine that is not there they say nothing. */
static bool rashpa_bounds_hold(const struct rashpa_engine *e)
{
	u32 first, limit;

	rashpa_bounds_read(e, &first, &limit);
	if (e->absent)
		return !first && !limit;
	return first == e->about.first && limit == e->about.first + e->about.count;
}

/**
 * rashpa_engines_bound() - write the bounds of all engines
 * @dev: the function, hw_lock held; nothing of it runs, or its bus mastering is off
 *
 * Return: 0, -ENXIO if the function does not keep them.
 */
int rashpa_engines_bound(struct rashpa_device *dev)
{
	u32 i, first, limit;
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->n_engines; i++) {
		struct rashpa_engine *e = &dev->engines[i];

		e->absent = false;
		writel(e->about.first, e->first);
		writel(e->about.first + e->about.count, e->limit);
		if (rashpa_bounds_hold(e))
			continue;
		rashpa_bounds_read(e, &first, &limit);
		e->absent = !first && !limit && e->about.flags & RASHPA_PENGINE_OPTIONAL;
		if (e->absent)
			continue;
		dev_warn(&dev->pdev->dev,
			 "engine %s does not keep its bounds: %u to %u, not %u to %u\n",
			 e->about.name, first, limit, e->about.first,
			 e->about.first + e->about.count);
		err = -ENXIO;
	}
	return err;
}

/* If not, another engine may have used the entries of the one that is to stop. */
static bool rashpa_engines_hold(struct rashpa_device *dev)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->n_engines; i++) {
		const struct rashpa_engine *e = &dev->engines[i];

		if (rashpa_bounds_hold(e))
			continue;
		dev_warn_ratelimited(&dev->pdev->dev,
				     "engine %s has lost its bounds: the whole function is stopped\n",
				     e->about.name);
		return false;
	}
	return true;
}

/* --------------------------------------------------------- stopping --- */

/**
 * rashpa_engine_of() - the engine that has some entries of the table
 * @dev: the function, hw_lock held
 * @first: first entry
 * @n: number of entries
 *
 * Return: a bit for it, or 0: no engine has all of them.
 */
u64 rashpa_engine_of(struct rashpa_device *dev, u32 first, u32 n)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->n_engines; i++) {
		const struct rashpa_engine *e = &dev->engines[i];
		const u32 begin = e->about.first, count = e->about.count;

		if (!e->absent && first >= begin && first - begin <= count &&
		    n <= count - (first - begin))
			return BIT_ULL(i);
	}
	return 0;
}

static int rashpa_engine_stop(struct rashpa_device *dev, struct rashpa_engine *e, ktime_t end)
{
	int err = rashpa_steps_run(e->steps, e->about.n_steps, end);

	/* whoever has a doorbell may have started it between the steps: once more */
	if (err == -ETIMEDOUT)
		err = rashpa_steps_run(e->steps, e->about.n_steps, end);
	if (!err)
		return 0;
	WRITE_ONCE(e->failures, e->failures + 1);
	dev_warn_ratelimited(&dev->pdev->dev,
			     "engine %s %s (%d): the whole function is stopped\n", e->about.name,
			     err == -ETIMEDOUT ? "did not become idle" : "does not answer", err);
	return err;
}

/**
 * rashpa_engines_stop() - no DMA of these engines after this returns 0
 * @dev: the function, hw_lock held, not being reset
 * @which: a bit for each of them
 * @end: rashpa_profile_deadline(), when the caller began to stop them
 *
 * Return: 0; else the function is to be stopped as a whole: -ENODEV (it cannot be reached), -EIO
 * (it does not answer), -ETIMEDOUT (an engine does not become idle), -ENXIO (bounds are not what
 * they were: rashpa_engines_bound() when it has stopped).
 */
int rashpa_engines_stop(struct rashpa_device *dev, u64 which, ktime_t end)
{
	int err = 0;
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return 0;
	/* see rashpa_device_stop_locked() */
	if (!rashpa_device_reachable(dev))
		return -ENODEV;
	if (!rashpa_engines_hold(dev)) {
		dev->engines_lost = true;
		return -ENXIO;
	}
	for (i = 0; i < dev->n_engines && !err; i++)
		if (which & BIT_ULL(i))
			err = rashpa_engine_stop(dev, &dev->engines[i], end);
	return err;
}

/**
 * rashpa_engines_stopped() - count that engines were stopped, and tell who listens
 * @dev: the function, hw_lock held
 * @which: a bit for each of them
 */
void rashpa_engines_stopped(struct rashpa_device *dev, u64 which)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return;
	for (i = 0; i < dev->n_engines; i++) {
		struct rashpa_engine *e = &dev->engines[i];

		if (!(which & BIT_ULL(i)))
			continue;
		WRITE_ONCE(e->stops, e->stops + 1);
		WRITE_ONCE(dev->engine_stops, dev->engine_stops + 1);
		rashpa_device_event(dev, RASHPA_DEVICE_EVENT_ENGINE | (u64)i << 32);
	}
}

/* ------------------------------------------------------------- calls --- */

/**
 * rashpa_engines_have() - are bounds of an engine in this range
 * @dev: the function, locked
 * @bar: BAR
 * @offset: in the BAR
 * @length: bytes, checked against the BAR
 *
 * Return: whether they are: then it is no window's.
 */
bool rashpa_engines_have(struct rashpa_device *dev, u32 bar, u64 offset, u64 length)
{
	u32 i;

	lockdep_assert_held(&dev->lock);
	for (i = 0; i < dev->n_engines; i++) {
		const struct rashpa_profile_engine *e = &dev->engines[i].about;

		if (e->bar == bar &&
		    (rashpa_ranges_meet(offset, length, e->first_offset, sizeof(u32)) ||
		     rashpa_ranges_meet(offset, length, e->limit_offset, sizeof(u32))))
			return true;
	}
	return false;
}
