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

#include "core/trace.h"
#include "function/function.h"

/* ----------------------------------------------------------- bounds --- */

static bool rashpa_bounds_are(const struct rashpa_engine *e, u32 first, u32 limit)
{
	return readl(e->first) == first && readl(e->limit) == limit;
}

/* Are the bounds as written? Those of an absent engine read 0. */
static bool rashpa_bounds_intact(const struct rashpa_engine *e)
{
	return e->absent ? rashpa_bounds_are(e, 0, 0) :
	       rashpa_bounds_are(e, e->about.first, e->about.first + e->about.count);
}

/*
 * Write the bounds of all engines, which are stopped, or bus mastering is off. Return: 0, or -ENXIO
 * if the function does not keep them.
 */
int rashpa_engines_bound(struct rashpa_device *dev)
{
	struct rashpa_engine *e;
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	for (e = dev->profile.engines; e < dev->profile.engines + dev->profile.n_engines; e++) {
		e->absent = false;
		writel(e->about.first, e->first);
		writel(e->about.first + e->about.count, e->limit);
		if (rashpa_bounds_intact(e))
			continue;
		e->absent = e->about.flags & RASHPA_PENGINE_OPTIONAL && rashpa_bounds_are(e, 0, 0);
		if (e->absent)
			continue;
		dev_warn(&dev->pdev->dev,
			 "engine %s does not keep its bounds: %u to %u, not %u to %u\n",
			 e->about.name, readl(e->first), readl(e->limit), e->about.first,
			 e->about.first + e->about.count);
		err = -ENXIO;
	}
	return err;
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

/*
 * Stop all DMA of the engines of this bitmap, outside of a reset. After an error the caller must
 * stop the whole function, and after -ENXIO write the bounds again.
 *
 * Return: 0, -ENODEV (not reachable), -EIO (does not answer), -ETIMEDOUT (an engine does not become
 * idle), -ENXIO (bounds have changed).
 */
int rashpa_engines_stop(struct rashpa_device *dev, u64 which, ktime_t end)
{
	struct rashpa_engine *e;
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return 0;
	/* see rashpa_device_stop_locked() */
	if (!rashpa_device_reachable(dev))
		return -ENODEV;
	for (e = dev->profile.engines; e < dev->profile.engines + dev->profile.n_engines; e++) {
		if (rashpa_bounds_intact(e))
			continue;
		/* this or another engine may have used entries of the ones to stop */
		dev_warn_ratelimited(&dev->pdev->dev,
				     "engine %s has lost its bounds: the whole function is stopped\n",
				     e->about.name);
		dev->engines_lost = true;
		return -ENXIO;
	}
	for (e = dev->profile.engines; which && !err; e++, which >>= 1) {
		if (!(which & 1))
			continue;
		err = rashpa_sequence_stop(&e->quiesce, end);
		trace_rashpa_stop(dev->id, e - dev->profile.engines, err);
		if (!err)
			continue;
		WRITE_ONCE(e->failures, e->failures + 1);
		dev_warn_ratelimited(&dev->pdev->dev,
				     "engine %s %s (%d): the whole function is stopped\n",
				     e->about.name, err == -ETIMEDOUT ? "did not become idle" :
				     "does not answer", err);
	}
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
		rashpa_origin_fire(&dev->events, RASHPA_DEVICE_EVENT_ENGINE | (u64)i << 32);
	}
}
