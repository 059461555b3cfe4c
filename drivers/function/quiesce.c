// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: how a function stops: the steps of a profile, with a deadline, or bus mastering off.
 */
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "function/function.h"

/* A register that a removed function answers with. */
#define RASHPA_ALL_ONES		(~0U)
#define RASHPA_STEP_POLL_US	20
/* of the whole sequence, where the profile says nothing else */
#define RASHPA_QUIESCE_US	(1 * USEC_PER_SEC)

/**
 * rashpa_profile_deadline() - until when the function may take to stop
 * @dev: the function, hw_lock held
 *
 * One for all that is done to stop it: others wait meanwhile, some of them with locks of other
 * drivers.
 *
 * Return: the time at which nothing is waited for any more.
 */
ktime_t rashpa_profile_deadline(struct rashpa_device *dev)
{
	lockdep_assert_held(&dev->hw_lock);
	return ktime_add_us(ktime_get(), dev->quiesce_us ?: RASHPA_QUIESCE_US);
}

static int rashpa_step_wait(struct rashpa_step *s, ktime_t end)
{
	/* 0 would be for ever; one look at least */
	const s64 left = clamp_t(s64, ktime_us_delta(end, ktime_get()), 1, s->step.timeout_us);
	u32 value;
	int err;

	/* a whole register of bits that say busy is no reason yet to give up */
	err = readl_poll_timeout(s->reg, value,
				 (value & s->step.mask) == s->step.value ||
				 (value == RASHPA_ALL_ONES && s->step.mask != RASHPA_ALL_ONES),
				 RASHPA_STEP_POLL_US, left);
	/*
	 * A dead function has every bit set, also the one that says idle. Only a step that
	 * waits for all ones may take them for an answer.
	 */
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
 * rashpa_steps_run() - a quiesce sequence
 * @steps: its steps; hw_lock of the function held
 * @n: their number
 * @end: rashpa_profile_deadline(), when it began
 *
 * The last WAIT also guarantees that all writes have arrived of what it has stopped: the answer to
 * a read cannot pass posted writes that the function sent before it (PCIe base
 * specification, transaction ordering).
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
 * rashpa_profile_answers() - are there registers behind the BARs
 * @dev: the function, hw_lock held
 *
 * Reads what the quiesce sequence waits for: of no other register is it known that it
 * cannot hold all ones.
 *
 * Return: false if all that can be read is what a bus without a function answers.
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
 * rashpa_steps_free() - the end of rashpa_steps_map()
 * @dev: the function
 * @steps: its answer, or NULL
 * @n: their number, 0 with NULL
 */
void rashpa_steps_free(struct rashpa_device *dev, struct rashpa_step *steps, u32 n)
{
	while (n--)
		pci_iounmap(dev->pdev, steps[n].reg);
	kfree(steps);
}

/**
 * rashpa_steps_map() - the registers of a quiesce sequence
 * @dev: the function
 * @in: its steps, checked
 * @n: their number
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
			     const char *whose, const struct rashpa_profile_step *s, u32 i)
{
	if (s->op != RASHPA_STEP_WRITE && s->op != RASHPA_STEP_WAIT)
		return rashpa_fail(call, -EINVAL, "%sstep %u: operation %u is not defined",
				   whose, i, s->op);
	if (s->__reserved)
		return rashpa_fail(call, -EINVAL, "%sstep %u: a reserved field is not zero",
				   whose, i);
	if (s->op == RASHPA_STEP_WAIT &&
	    (!s->timeout_us || s->timeout_us > RASHPA_QUIESCE_US_MAX))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: time limit must be 1 to %u microseconds",
				   whose, i, RASHPA_QUIESCE_US_MAX);
	if (s->op == RASHPA_STEP_WAIT && s->value & ~s->mask)
		return rashpa_fail(call, -EINVAL, "%sstep %u: waits for bits outside its mask",
				   whose, i);
	if (s->op == RASHPA_STEP_WRITE && s->timeout_us)
		return rashpa_fail(call, -EINVAL, "%sstep %u: a write has no time limit", whose, i);
	if (!IS_ALIGNED(s->offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: offset 0x%llx is not a multiple of 4",
				   whose, i, s->offset);
	if (!rashpa_bar_is_memory(dev, s->bar) ||
	    !rashpa_bar_range_ok(dev, s->bar, s->offset, sizeof(u32)))
		return rashpa_fail(call, -ERANGE, "%sstep %u: 0x%llx is outside BAR %u",
				   whose, i, s->offset, s->bar);
	return 0;
}

/**
 * rashpa_steps_check() - does a quiesce sequence make sense
 * @call: the ioctl
 * @dev: the function
 * @whose: what a sentence begins with
 * @s: its steps, from user space
 * @n: their number
 *
 * It must end with a look at the function: a write alone may still be on its way, and a mask of
 * nothing is always satisfied.
 *
 * Return: 0, -EINVAL, -ERANGE.
 */
int rashpa_steps_check(struct rashpa_call *call, struct rashpa_device *dev, const char *whose,
		       const struct rashpa_profile_step *s, u32 n)
{
	u32 i;
	int err;

	for (i = 0; i < n; i++) {
		err = rashpa_step_check(call, dev, whose, &s[i], i);
		if (err)
			return err;
	}
	if (n && (s[n - 1].op != RASHPA_STEP_WAIT || !s[n - 1].mask))
		return rashpa_fail(call, -EINVAL,
				   "%sstep %u: the last step must wait for a bit that says that nothing is in flight",
				   whose, n - 1);
	return 0;
}

/**
 * rashpa_device_set_stuck() - it was to stop, or to forget addresses, and has not
 * @dev: the function, hw_lock held
 * @err: why, for the log
 *
 * Return: RASHPA_DEVICE_EVENT_STUCK, 0 if it was cut off before.
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
 * rashpa_device_stop_locked() - quiesce: no DMA of this function after this returns
 * @dev: the function, hw_lock held
 * @end: rashpa_profile_deadline(), when the caller began to stop it
 *
 * Runs the profile's sequence; where it fails, or there is none, turns bus
 * mastering off. The caller counts it, once if it stops twice, and sends the event.
 *
 * Return: 0 if there was nothing to stop, else enum rashpa_device_event:
 * RASHPA_DEVICE_EVENT_QUIESCED, or RASHPA_DEVICE_EVENT_STUCK if it took the hard way (the memory is
 * safe all the same).
 */
u64 rashpa_device_stop_locked(struct rashpa_device *dev, ktime_t end)
{
	int err = 0;

	lockdep_assert_held(&dev->hw_lock);
	if (!dev->master || dev->gone)
		return 0;
	/*
	 * Pulled out, or only deaf: nobody knows whether it still sends, so it is not taken
	 * for idle. It may hear what it cannot answer.
	 */
	if (!rashpa_device_reachable(dev))
		err = -ENODEV;
	else if (dev->n_steps)
		err = rashpa_steps_run(dev->steps, dev->n_steps, end);
	/* whoever has a doorbell may have started it between the steps: once more */
	if (err == -ETIMEDOUT)
		err = rashpa_steps_run(dev->steps, dev->n_steps, end);
	if (err)
		return rashpa_device_set_stuck(dev, err);
	if (!dev->n_steps)
		rashpa_master_off(dev);
	return RASHPA_DEVICE_EVENT_QUIESCED;
}

/**
 * rashpa_device_stop() - quiesce, and tell who listens
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
