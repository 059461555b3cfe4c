// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: engines: data transfer processes of a function that can be stopped alone.
 *
 * Stopping one engine is enough only because of its bounds: no other engine can use its entries.
 * So the bounds are written while nothing runs, and no window may contain them. They are read back
 * before each stop that relies on them: a process with access to all registers may have reset the
 * function. All accesses to registers here hold hw_lock.
 */
#include <linux/bitops.h>
#include <linux/io.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "function/function.h"

/* -------------------------------------------------- from user space --- */

/*
 * Copy the engines of a profile from user space, without checks. The caller drops the profile, also
 * after an error.
 */
int rashpa_engines_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile)
{
	struct rashpa_profile_engine *in;
	char what[32];
	int err;
	u32 i;

	err = rashpa_copy(call, &in, p->engines, p->n_engines, p->engine_size, step_size);
	if (err || !in)
		return err;
	profile->engines = kcalloc(p->n_engines, sizeof(*profile->engines), GFP_KERNEL_ACCOUNT);
	if (profile->engines)
		profile->n_engines = p->n_engines;
	else
		err = -ENOMEM;
	for (i = 0; i < profile->n_engines && !err; i++) {
		profile->engines[i].about = in[i];
		snprintf(what, sizeof(what), "steps of engine %u", i);
		err = rashpa_number_check(call, in[i].n_steps, 0, RASHPA_ENGINE_STEPS_MAX, what) ?:
		      rashpa_sequence_fetch(call, &profile->engines[i].quiesce, in[i].steps,
					    in[i].n_steps, in[i].step_size);
	}
	kvfree(in);
	return err;
}

/* A bounds register must exist, must not be shared, and must not be in a window or the table. */
static int rashpa_bound_check(struct rashpa_call *call, struct rashpa_device *dev,
			      const struct rashpa_profile *profile, u32 i, u64 offset)
{
	const struct rashpa_profile_engine *e = &profile->engines[i].about, *other;
	const struct rashpa_profile_table *t = profile->table;
	char what[RASHPA_PROFILE_NAME_SIZE + 16];
	u32 j, same = 0;
	int err;

	snprintf(what, sizeof(what), "engine %s, bounds", e->name);
	if (t->bar == e->bar && rashpa_ranges_overlap(t->offset, t->length, offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL, "%s: 0x%llx is in the table", what, offset);
	err = rashpa_registers_check(call, dev, what, e->bar, offset, sizeof(u32), profile, 0);
	if (err)
		return err;
	for (j = 0; j <= i; j++) {
		other = &profile->engines[j].about;
		if (other->bar == e->bar)
			same += (other->first_offset == offset) + (other->limit_offset == offset);
	}
	if (same > 1)
		return rashpa_fail(call, -EINVAL, "%s: 0x%llx is named twice", what, offset);
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
				   "engine %s: %u entries from entry %u on are not in the table of %llu",
				   e->name, e->count, e->first, entries);
	for (j = 0; j < i; j++) {
		other = &profile->engines[j].about;
		if (rashpa_ranges_overlap(e->first, e->count, other->first, other->count) &&
		    e->count && other->count)
			return rashpa_fail(call, -EINVAL,
					   "engine %s: some of its entries are those of engine %s",
					   e->name, other->name);
	}
	return 0;
}

static int rashpa_engine_check(struct rashpa_call *call, struct rashpa_device *dev,
			       const struct rashpa_profile *profile, u32 i)
{
	const struct rashpa_profile_engine *e = &profile->engines[i].about;
	char prefix[RASHPA_PROFILE_NAME_SIZE + 16];
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
	if (e->count && !e->n_steps)
		return rashpa_fail(call, -EINVAL,
				   "engine %s: has entries, but no quiesce sequence", e->name);
	err = rashpa_engine_range_check(call, profile, i);
	if (!err)
		err = rashpa_bound_check(call, dev, profile, i, e->first_offset);
	if (!err)
		err = rashpa_bound_check(call, dev, profile, i, e->limit_offset);
	snprintf(prefix, sizeof(prefix), "engine %s, ", e->name);
	return err ?: rashpa_sequence_check(call, dev, prefix, &profile->engines[i].quiesce,
					    profile);
}

/* Check engines after the windows, the sequence and the table of their profile. */
int rashpa_engines_check(struct rashpa_call *call, struct rashpa_device *dev,
			 const struct rashpa_profile *profile)
{
	int err = 0;
	u32 i;

	for (i = 0; i < profile->n_engines && !err; i++)
		err = rashpa_engine_check(call, dev, profile, i);
	return err;
}

/* Map the registers of checked engines. Return: 0 or -ENOMEM. */
int rashpa_engines_map(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	u32 i;
	int err;

	for (i = 0; i < profile->n_engines; i++) {
		struct rashpa_engine *e = &profile->engines[i];

		e->first = pci_iomap_range(dev->pdev, e->about.bar, e->about.first_offset,
					   sizeof(u32));
		e->limit = pci_iomap_range(dev->pdev, e->about.bar, e->about.limit_offset,
					   sizeof(u32));
		if (!e->first || !e->limit)
			return -ENOMEM;
		err = rashpa_sequence_map(dev, &e->quiesce);
		if (err)
			return err;
	}
	return 0;
}

void rashpa_engines_free(struct rashpa_device *dev, struct rashpa_engine *engines, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct rashpa_engine *e = &engines[i];

		rashpa_sequence_free(dev, &e->quiesce);
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

/* Are the bounds as written? Those of an absent engine read 0. */
static bool rashpa_bounds_intact(const struct rashpa_engine *e)
{
	u32 first, limit;

	rashpa_bounds_read(e, &first, &limit);
	if (e->absent)
		return !first && !limit;
	return first == e->about.first && limit == e->about.first + e->about.count;
}

/*
 * Write the bounds of all engines, which are stopped, or bus mastering is off. Return: 0, or -ENXIO
 * if the function does not keep them.
 */
int rashpa_engines_bound(struct rashpa_device *dev)
{
	u32 i, first, limit;
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->profile.n_engines; i++) {
		struct rashpa_engine *e = &dev->profile.engines[i];

		e->absent = false;
		writel(e->about.first, e->first);
		writel(e->about.first + e->about.count, e->limit);
		if (rashpa_bounds_intact(e))
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

/* Otherwise another engine may have used the entries of the one to stop. */
static bool rashpa_engines_intact(struct rashpa_device *dev)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->profile.n_engines; i++) {
		const struct rashpa_engine *e = &dev->profile.engines[i];

		if (rashpa_bounds_intact(e))
			continue;
		dev_warn_ratelimited(&dev->pdev->dev,
				     "engine %s has lost its bounds: the whole function is stopped\n",
				     e->about.name);
		return false;
	}
	return true;
}

/* --------------------------------------------------------- stopping --- */

/* Return: bit of the engine that has all of these table entries, or 0. */
u64 rashpa_engine_of(struct rashpa_device *dev, u32 first, u32 n)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	for (i = 0; i < dev->profile.n_engines; i++) {
		const struct rashpa_engine *e = &dev->profile.engines[i];
		const u32 begin = e->about.first, count = e->about.count;

		if (!e->absent && first >= begin && first - begin <= count &&
		    n <= count - (first - begin))
			return BIT_ULL(i);
	}
	return 0;
}

static int rashpa_engine_stop(struct rashpa_device *dev, struct rashpa_engine *e, ktime_t end)
{
	int err = rashpa_sequence_stop(&e->quiesce, end);

	if (!err)
		return 0;
	WRITE_ONCE(e->failures, e->failures + 1);
	dev_warn_ratelimited(&dev->pdev->dev,
			     "engine %s %s (%d): the whole function is stopped\n", e->about.name,
			     err == -ETIMEDOUT ? "did not become idle" : "does not answer", err);
	return err;
}

/*
 * Stop all DMA of the engines of this bitmap, outside of a reset. After an error the caller must
 * stop the whole function, and after -ENXIO write the bounds again.
 *
 * Return: 0, -ENODEV (not reachable), -EIO (does not answer), -ETIMEDOUT (an engine does not become
 * idle), -ENXIO (bounds have changed).
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
	if (!rashpa_engines_intact(dev)) {
		dev->engines_lost = true;
		return -ENXIO;
	}
	for (i = 0; i < dev->profile.n_engines && !err; i++)
		if (which & BIT_ULL(i))
			err = rashpa_engine_stop(dev, &dev->profile.engines[i], end);
	return err;
}

/* Count the stop of some engines and notify listeners. */
void rashpa_engines_stopped(struct rashpa_device *dev, u64 which)
{
	u32 i;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return;
	for (i = 0; i < dev->profile.n_engines; i++) {
		struct rashpa_engine *e = &dev->profile.engines[i];

		if (!(which & BIT_ULL(i)))
			continue;
		WRITE_ONCE(e->stops, e->stops + 1);
		WRITE_ONCE(dev->engine_stops, dev->engine_stops + 1);
		rashpa_device_event(dev, RASHPA_DEVICE_EVENT_ENGINE | (u64)i << 32);
	}
}

/* ------------------------------------------------------------- calls --- */

/* Does the range contain bounds of an engine? Then no window may cover it. */
bool rashpa_engines_bounds_in(struct rashpa_device *dev, u32 bar, u64 offset, u64 length)
{
	u32 i;

	lockdep_assert_held(&dev->lock);
	for (i = 0; i < dev->profile.n_engines; i++) {
		const struct rashpa_profile_engine *e = &dev->profile.engines[i].about;

		if (e->bar == bar &&
		    (rashpa_ranges_overlap(offset, length, e->first_offset, sizeof(u32)) ||
		     rashpa_ranges_overlap(offset, length, e->limit_offset, sizeof(u32))))
			return true;
	}
	return false;
}
