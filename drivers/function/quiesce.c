// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: stop the DMA of a function with the steps of its profile, or with bus mastering off.
 */
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "function/function.h"

/* Reads of a removed function return all ones. */
#define RASHPA_ALL_ONES		(~0U)
#define RASHPA_STEP_POLL_US	20
/* Default time limit of a whole sequence. */
#define RASHPA_QUIESCE_US	(1 * USEC_PER_SEC)

/**
 * rashpa_profile_deadline() - deadline of a stop that begins now
 * @dev: the function, hw_lock held
 *
 * All steps and retries of a stop share one deadline: other tasks wait, some of them with locks of
 * other drivers.
 *
 * Return: time after which no step waits any more.
 */
ktime_t rashpa_profile_deadline(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->hw_lock);
	return ktime_add_us(ktime_get(), dev->quiesce_us ?: RASHPA_QUIESCE_US);
}

static int rashpa_step_wait(struct rashpa_step *s, ktime_t end)
{
	/* at least 1: 0 means no timeout */
	const s64 left = clamp_t(s64, ktime_us_delta(end, ktime_get()), 1, s->step.timeout_us);
	u32 value;
	int err;

	/* all ones ends the poll, unless the step checks every bit: then it may mean busy */
	err = readl_poll_timeout(s->reg, value,
				 (value & s->step.mask) == s->step.value ||
				 (value == RASHPA_ALL_ONES && s->step.mask != RASHPA_ALL_ONES),
				 RASHPA_STEP_POLL_US, left);
	/* all ones is how a removed function reads: a match only for a step that waits for them */
	if (value == RASHPA_ALL_ONES && s->step.value != RASHPA_ALL_ONES)
		return -EIO;
	return err;
}

static void rashpa_step_write(struct rashpa_step *s)
{
	u32 value = s->step.value;

	if (s->step.mask != RASHPA_ALL_ONES)
		value = (readl(s->reg) & ~s->step.mask) | (value & s->step.mask);
	writel(value, s->reg);
}

/**
 * rashpa_steps_run() - run a quiesce sequence
 * @steps: steps of the sequence; hw_lock of the function held
 * @n: number of steps
 * @end: rashpa_profile_deadline() at the start of the stop
 *
 * The last WAIT also guarantees that all earlier DMA writes have arrived: a read completion cannot
 * pass posted writes of the function (PCIe transaction ordering).
 *
 * Return: 0, -ETIMEDOUT (not idle in time), -EIO (does not answer).
 */
int rashpa_steps_run(struct rashpa_step *steps, u32 n, ktime_t end)
{
	int err = 0;
	u32 i;

	for (i = 0; i < n && !err; i++) {
		struct rashpa_step *s = &steps[i];

		if (s->step.op == RASHPA_STEP_WRITE)
			rashpa_step_write(s);
		else
			err = rashpa_step_wait(s, end);
	}
	return err;
}

/**
 * rashpa_profile_answers() - check whether reads of registers are answered by the function
 * @dev: the function, hw_lock held
 *
 * Reads the register that the quiesce sequence waits for: any other register might hold all ones.
 *
 * Return: false if the reads return what an empty bus returns.
 */
bool rashpa_profile_answers(struct rashpa_device *dev)
{
	const struct rashpa_step *last;

	lockdep_assert_held(&dev->hw_lock);
	if (!rashpa_device_reachable(dev))
		return false;
	if (!dev->n_steps)
		return true;
	last = &dev->steps[dev->n_steps - 1];
	return last->step.value == RASHPA_ALL_ONES || readl(last->reg) != RASHPA_ALL_ONES;
}

/**
 * rashpa_steps_free() - free the steps of rashpa_steps_map()
 * @dev: the function
 * @steps: steps, or NULL
 * @n: number of steps, 0 with NULL
 */
void rashpa_steps_free(struct rashpa_device *dev, struct rashpa_step *steps, u32 n)
{
	while (n--)
		pci_iounmap(dev->pdev, steps[n].reg);
	kfree(steps);
}

/**
 * rashpa_steps_map() - map the registers of a quiesce sequence
 * @dev: the function
 * @in: checked steps
 * @n: number of steps
 *
 * Return: the steps, for rashpa_steps_free(), or -ENOMEM as an error pointer.
 */
struct rashpa_step *rashpa_steps_map(struct rashpa_device *dev,
				     const struct rashpa_profile_step *in, u32 n)
{
	struct rashpa_step *steps;
	u32 i;

	steps = kcalloc(n, sizeof(*steps), GFP_KERNEL);
	if (!steps)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < n; i++) {
		steps[i].step = in[i];
		steps[i].reg = pci_iomap_range(dev->pdev, in[i].bar, in[i].offset, sizeof(u32));
		if (!steps[i].reg) {
			rashpa_steps_free(dev, steps, i);
			return ERR_PTR(-ENOMEM);
		}
	}
	return steps;
}

static int rashpa_step_check(struct rashpa_call *call, struct rashpa_device *dev,
			     const char *prefix, const struct rashpa_profile_step *s, u32 i)
{
	if (s->op != RASHPA_STEP_WRITE && s->op != RASHPA_STEP_WAIT)
		return rashpa_fail(call, -EINVAL, "%sstep %u: operation %u is not defined",
				   prefix, i, s->op);
	if (s->__reserved)
		return rashpa_fail(call, -EINVAL, "%sstep %u: a reserved field is not zero",
				   prefix, i);
	if (s->op == RASHPA_STEP_WAIT &&
	    (!s->timeout_us || s->timeout_us > RASHPA_QUIESCE_US_MAX))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: time limit must be 1 to %u microseconds",
				   prefix, i, RASHPA_QUIESCE_US_MAX);
	if (s->op == RASHPA_STEP_WAIT && s->value & ~s->mask)
		return rashpa_fail(call, -EINVAL, "%sstep %u: waits for bits outside its mask",
				   prefix, i);
	if (s->op == RASHPA_STEP_WRITE && s->timeout_us)
		return rashpa_fail(call, -EINVAL, "%sstep %u: a write has no time limit",
				   prefix, i);
	if (!IS_ALIGNED(s->offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: offset 0x%llx is not a multiple of 4",
				   prefix, i, s->offset);
	if (!rashpa_bar_is_memory(dev, s->bar) ||
	    !rashpa_bar_range_ok(dev, s->bar, s->offset, sizeof(u32)))
		return rashpa_fail(call, -ERANGE, "%sstep %u: 0x%llx is outside BAR %u",
				   prefix, i, s->offset, s->bar);
	return 0;
}

/**
 * rashpa_steps_check() - check a quiesce sequence
 * @call: the ioctl
 * @dev: the function
 * @prefix: beginning of error sentences, may be empty
 * @s: steps from user space
 * @n: number of steps
 *
 * The last step must be a WAIT for at least one bit: a write is posted, and an empty mask always
 * matches.
 *
 * Return: 0, -EINVAL, -ERANGE.
 */
int rashpa_steps_check(struct rashpa_call *call, struct rashpa_device *dev, const char *prefix,
		       const struct rashpa_profile_step *s, u32 n)
{
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		err = rashpa_step_check(call, dev, prefix, &s[i], i);
		if (err)
			return err;
	}
	if (n && (s[n - 1].op != RASHPA_STEP_WAIT || !s[n - 1].mask))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: the last step must wait for a bit that says that nothing is in flight",
				   prefix, n - 1);
	return 0;
}

/**
 * rashpa_device_set_stuck() - turn bus mastering off until a reset, after a failed stop
 * @dev: the function, hw_lock held
 * @err: error of the stop, for the log
 *
 * Return: RASHPA_DEVICE_EVENT_STUCK, or 0 if the function was stuck before.
 */
u64 rashpa_device_set_stuck(struct rashpa_device *dev, int err)
{
	lockdep_assert_held(&dev->hw_lock);
	if (dev->state == RASHPA_STATE_STUCK)
		return 0;
	if (dev->master)
		rashpa_master_off(dev);
	dev_warn(&dev->pdev->dev, "%s (%d), bus mastering is off until reset\n",
		 err == -ETIMEDOUT ? "did not become idle" : "does not answer", err);
	dev->state = RASHPA_STATE_STUCK;
	return RASHPA_DEVICE_EVENT_STUCK;
}

/**
 * rashpa_device_stop_locked() - stop all DMA of a function
 * @dev: the function, hw_lock held
 * @end: rashpa_profile_deadline() at the start of the stop
 *
 * Runs the quiesce sequence of the profile. Without a sequence, or if it fails, turns bus mastering
 * off. The caller updates rashpa_device.quiesces and sends the event.
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
	else if (dev->n_steps)
		err = rashpa_steps_run(dev->steps, dev->n_steps, end);
	/* a process with a doorbell may have restarted it between the steps: retry */
	if (err == -ETIMEDOUT)
		err = rashpa_steps_run(dev->steps, dev->n_steps, end);
	if (err)
		return rashpa_device_set_stuck(dev, err);
	if (!dev->n_steps)
		rashpa_master_off(dev);
	return RASHPA_DEVICE_EVENT_QUIESCED;
}

/**
 * rashpa_device_stop() - stop all DMA of a function and notify listeners
 * @dev: the function
 *
 * Return: 0, or -ETIMEDOUT if bus mastering had to be turned off.
 */
int rashpa_device_stop(struct rashpa_device *dev)
{
	u64 what;

	rashpa_hw_lock(dev);
	what = rashpa_device_stop_locked(dev, rashpa_profile_deadline(dev));
	dev->quiesces += !!what;
	if (what)
		rashpa_device_event(dev, what);
	mutex_unlock(&dev->hw_lock);
	return what == RASHPA_DEVICE_EVENT_STUCK ? -ETIMEDOUT : 0;
}
