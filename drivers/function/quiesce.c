// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: stop the DMA of a function with the steps of its profile, or with bus mastering off.
 */
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/ktime.h>

#include "core/trace.h"
#include "function/function.h"

/* Reads of a removed function return all ones. */
#define RASHPA_ALL_ONES		(~0U)
#define RASHPA_STEP_POLL_US	20
/* Default time limit of a whole sequence. */
#define RASHPA_QUIESCE_US	(1 * USEC_PER_SEC)

/*
 * All steps and retries of a stop share one deadline: other tasks wait, some of them with locks of
 * other drivers.
 */
ktime_t rashpa_profile_deadline(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->hw_lock);
	return ktime_add_us(ktime_get(), dev->profile.quiesce_us ?: RASHPA_QUIESCE_US);
}

static int rashpa_step_wait(const struct rashpa_profile_step *s, void __iomem *reg, ktime_t end,
			    u32 *seen)
{
	/* at least 1: 0 means no timeout */
	const s64 left = clamp_t(s64, ktime_us_delta(end, ktime_get()), 1, s->timeout_us);
	u32 value;
	int err;

	/* all ones ends the poll, unless the step checks every bit: then it may mean busy */
	err = readl_poll_timeout(reg, value, (value & s->mask) == s->value ||
				 (value == RASHPA_ALL_ONES && s->mask != RASHPA_ALL_ONES),
				 RASHPA_STEP_POLL_US, left);
	*seen = value;
	/* all ones is how a removed function reads: a match only for a step that waits for them */
	if (value == RASHPA_ALL_ONES && s->value != RASHPA_ALL_ONES)
		return -EIO;
	return err;
}

/*
 * Run a mapped sequence with hw_lock held. The last WAIT also guarantees that all earlier DMA
 * writes have arrived: a read completion cannot pass posted writes of the function (PCIe
 * transaction ordering).
 *
 * Return: 0, -ETIMEDOUT (not idle before @end), -EIO (does not answer).
 */
int rashpa_sequence_run(struct rashpa_sequence *s, ktime_t end)
{
	int err = 0;
	u32 i;

	for (i = 0; i < s->n && !err; i++) {
		const struct rashpa_profile_step *step = &s->step[i];
		u32 value = step->value;

		s->at = i;
		if (step->op == RASHPA_STEP_WAIT) {
			err = rashpa_step_wait(step, s->reg[i], end, &s->seen);
			continue;
		}
		if (step->mask != RASHPA_ALL_ONES)
			value = (readl(s->reg[i]) & ~step->mask) | (value & step->mask);
		writel(value, s->reg[i]);
	}
	return err;
}

/* A process with a doorbell may have restarted DMA between the steps: retry. */
int rashpa_sequence_stop(struct rashpa_sequence *s, ktime_t end)
{
	int err = rashpa_sequence_run(s, end);

	return err == -ETIMEDOUT ? rashpa_sequence_run(s, end) : err;
}

/* Report the step of the profile that timed out in rashpa_sequence_run(). */
int rashpa_sequence_fail(struct rashpa_call *call, const struct rashpa_device *dev)
{
	const struct rashpa_sequence *s = &dev->profile.quiesce;
	const struct rashpa_profile_step *step = &s->step[s->at];

	return rashpa_fail(call, -ETIMEDOUT,
			   "fpga%d did not become idle: quiesce step %u waits for 0x%x in bits 0x%x of register 0x%llx of BAR %u, which reads 0x%x; bus mastering stays off: correct the step or reset the function",
			   dev->id, s->at, step->value, step->mask, step->offset, step->bar,
			   s->seen);
}

/*
 * Do reads of registers reach the function? Read the register that the quiesce sequence waits for:
 * any other one might hold all ones.
 */
bool rashpa_profile_answers(struct rashpa_device *dev)
{
	const struct rashpa_sequence *s = &dev->profile.quiesce;

	lockdep_assert_held(&dev->hw_lock);
	if (!rashpa_device_reachable(dev))
		return false;
	return !s->n || s->step[s->n - 1].value == RASHPA_ALL_ONES ||
	       readl(s->reg[s->n - 1]) != RASHPA_ALL_ONES;
}

/*
 * Turn bus mastering off until a reset, because a stop failed with @err. Return:
 * RASHPA_DEVICE_EVENT_STUCK, or 0 if the function was stuck before.
 */
u64 rashpa_device_set_stuck(struct rashpa_device *dev, int err)
{
	const struct rashpa_sequence *s = &dev->profile.quiesce;

	lockdep_assert_held(&dev->hw_lock);
	if (dev->state == RASHPA_STATE_STUCK)
		return 0;
	if (dev->master)
		rashpa_master_off(dev);
	dev_warn(&dev->pdev->dev, "%s (%d), bus mastering is off until reset\n",
		 err == -ETIMEDOUT ? "did not become idle" : "does not answer", err);
	dev->state = RASHPA_STATE_STUCK;
	dev->reset_due = err == -ETIMEDOUT && s->step[s->at].flags & RASHPA_STEP_RESET;
	return RASHPA_DEVICE_EVENT_STUCK;
}

/*
 * Run the quiesce sequence of the profile until @end. Without a sequence, or if it fails, turn bus
 * mastering off. rashpa_device_stopped() follows.
 *
 * Return: 0 if nothing was running, RASHPA_DEVICE_EVENT_QUIESCED, or RASHPA_DEVICE_EVENT_STUCK if
 * the sequence failed (the memory is safe all the same).
 */
u64 rashpa_device_stop_locked(struct rashpa_device *dev, ktime_t end)
{
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return 0;
	/* unplugged, or unresponsive but still sending: never take it for idle */
	if (!rashpa_device_reachable(dev))
		err = -ENODEV;
	else
		err = rashpa_sequence_stop(&dev->profile.quiesce, end);
	trace_rashpa_stop(dev->id, -1, err);
	if (err)
		return rashpa_device_set_stuck(dev, err);
	if (!dev->profile.quiesce.n)
		rashpa_master_off(dev);
	return RASHPA_DEVICE_EVENT_QUIESCED;
}

/* Count a stop, and notify listeners of what rashpa_device_stop_locked() returned. */
void rashpa_device_stopped(struct rashpa_device *dev, u64 what)
{
	lockdep_assert_held(&dev->hw_lock);
	if (!what)
		return;
	dev->quiesces++;
	rashpa_origin_fire(&dev->events, what);
}

/*
 * Stop all DMA and notify listeners. Return: 0, or -ETIMEDOUT if bus mastering had to be turned
 * off.
 */
int rashpa_device_stop(struct rashpa_device *dev)
{
	u64 what;

	guard(rashpa_hw)(dev);
	what = rashpa_device_stop_locked(dev, rashpa_profile_deadline(dev));
	rashpa_device_stopped(dev, what);
	return what == RASHPA_DEVICE_EVENT_STUCK ? -ETIMEDOUT : 0;
}
