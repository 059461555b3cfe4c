// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: device profiles: registers, windows and limits of a board.
 */
#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "core/compat.h"
#include "function/function.h"

static int rashpa_pwindow_check(struct rashpa_call *call,
				struct rashpa_device *dev,
				const struct rashpa_profile_window *windows, u32 i)
{
	const struct rashpa_profile_window *w = &windows[i];
	char what[RASHPA_PROFILE_NAME_SIZE + 16];
	u32 j;
	int err;

	err = rashpa_check_name(call, w->name, sizeof(w->name));
	if (err)
		return err;
	for (j = 0; j < i; j++)
		if (!strcmp(windows[j].name, w->name))
			return rashpa_fail(call, -EINVAL, "window %s: named twice", w->name);
	if (w->__reserved || w->flags & ~RASHPA_PWINDOW_USER)
		return rashpa_fail(call, -EINVAL, "window %s: undefined flag or reserved field",
				   w->name);
	if (w->cache > RASHPA_CACHE_UC)
		return rashpa_fail(call, -EINVAL, "window %s: cache mode %u is not defined",
				   w->name, w->cache);
	if (w->cache == RASHPA_CACHE_CACHED)
		return rashpa_fail(call, -EOPNOTSUPP, "window %s: cannot be cached", w->name);
	if (!w->length || !PAGE_ALIGNED(w->offset) || !PAGE_ALIGNED(w->length))
		return rashpa_fail(call, -EINVAL,
				   "window %s: offset and length must be whole pages",
				   w->name);
	snprintf(what, sizeof(what), "window %s", w->name);
	return rashpa_registers_check(call, dev, what, w->bar, w->offset, w->length, NULL, 0);
}

static int rashpa_table_check(struct rashpa_call *call, struct rashpa_device *dev,
			      struct rashpa_profile *profile)
{
	const struct rashpa_profile_table *t = profile->table;
	const u32 stride = profile->layout.stride;
	int err;

	if (!t)
		return 0;
	if (t->__reserved)
		return rashpa_fail(call, -EINVAL, "a reserved field of the table is not zero");
	err = rashpa_registers_check(call, dev, "the table", t->bar, t->offset, t->length, profile,
				     RASHPA_PWINDOW_USER);
	if (err)
		return err;
	/* entries are numbered by 32 bits, and the whole table is mapped */
	if (t->length > U32_MAX)
		return rashpa_fail(call, -EINVAL, "a table of 0x%llx bytes: must be below 4 GiB",
				   t->length);
	if (!stride || stride > SZ_4K || !IS_ALIGNED(stride, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a stride of %u: must be a multiple of 4 up to 4096", stride);
	if (profile->layout.flags & RASHPA_LAYOUT_WRITE_ONLY && !profile->quiesce.n)
		return rashpa_fail(call, -EINVAL,
				   "a write-only table needs a quiesce sequence, whose last register is read instead");
	return t->fetch ? rashpa_fetch_check(call, &profile->fetch) :
			  rashpa_layout_check(call, &profile->layout);
}

static int rashpa_profile_limits(struct rashpa_call *call, const struct rashpa_profile_set *p)
{
	int err = rashpa_number_check(call, p->n_windows, 0, RASHPA_PROFILE_WINDOWS_MAX,
				      "windows") ?:
		  rashpa_number_check(call, p->n_steps, 0, RASHPA_PROFILE_STEPS_MAX, "steps") ?:
		  rashpa_number_check(call, p->n_engines, 0, RASHPA_PROFILE_ENGINES_MAX,
				      "engines") ?:
		  rashpa_number_check(call, p->quiesce_us, 0, RASHPA_QUIESCE_US_MAX,
				      "microseconds of a quiesce sequence") ?:
		  rashpa_number_check(call, p->dma_bits ?: RASHPA_DMA_BITS, 24, 64,
				      "bits of a DMA mask");

	if (err)
		return err;
	if (p->n_engines && (!p->table || !p->n_steps))
		return rashpa_fail(call, -EINVAL,
				   "engines without %s: they need a table and a quiesce sequence of the whole function",
				   p->table ? "a quiesce sequence of the whole function" :
					      "a table");
	if (p->__reserved || (!p->table && p->table_size))
		return rashpa_fail(call, -EINVAL,
				   "a reserved field is not zero, or a table has a size but no address");
	return rashpa_limits_check(call, p->max_segment, p->boundary, p->alignment);
}

/* Free a profile that no function uses, or with hw_lock held that of a function. */
void rashpa_profile_drop(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	kvfree(profile->windows);
	rashpa_sequence_free(dev, &profile->quiesce);
	kvfree(profile->table);
	if (profile->table_regs)
		pci_iounmap(dev->pdev, profile->table_regs);
	rashpa_fetch_free(&profile->fetch);
	rashpa_engines_free(dev, profile->engines, profile->n_engines);
	*profile = (struct rashpa_profile) { };
}

/* Copy the format of table entries: addresses, or places of rings. */
static int rashpa_table_fetch(struct rashpa_call *call, const struct rashpa_profile_table *t,
			      struct rashpa_profile *profile)
{
	struct rashpa_layout *layout;
	int err;

	if (!t->fetch && !t->fetch_size) {
		err = rashpa_copy(call, &layout, t->layout, 1, t->layout_size, sum_bits);
		if (err)
			return err;
		profile->layout = *layout;
		kvfree(layout);
		return 0;
	}
	if (t->layout || t->layout_size)
		return rashpa_fail(call, -EINVAL,
				   "the layout of an entry and the format of a ring exclude each other");
	err = rashpa_fetch_copy(call, t, &profile->fetch);
	profile->layout.stride = profile->fetch.about.stride;
	profile->layout.segment_size = profile->fetch.about.segment_size;
	return err;
}

/* Copy a profile from user space. The caller calls rashpa_profile_drop(), also after an error. */
int rashpa_profile_fetch(struct rashpa_call *call, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile)
{
	int err = rashpa_profile_limits(call, p);

	if (err)
		return err;
	err = rashpa_copy(call, &profile->windows, p->windows, p->n_windows, p->window_size,
			  __reserved);
	if (err)
		return err;
	profile->n_windows = p->n_windows;
	profile->quiesce_us = p->quiesce_us;
	profile->limits.max_segment = p->max_segment;
	profile->limits.boundary = p->boundary;
	profile->limits.alignment = p->alignment;
	err = rashpa_sequence_fetch(call, &profile->quiesce, p->steps, p->n_steps, p->step_size);
	if (!err)
		err = rashpa_copy(call, &profile->table, p->table, !!p->table, p->table_size,
				  fetch_size);
	if (!err && profile->table)
		err = rashpa_table_fetch(call, profile->table, profile);
	profile->limits.segment_size = profile->layout.segment_size;
	return err ?: rashpa_engines_fetch(call, p, profile);
}

int rashpa_profile_check(struct rashpa_call *call, struct rashpa_device *dev,
			 struct rashpa_profile *profile)
{
	u32 i;
	int err;

	if (dev->n_maps || dev->n_open_windows)
		return rashpa_fail(call, -EBUSY,
				   "fpga%d has %u maps and %u windows: close them first",
				   dev->id, dev->n_maps, dev->n_open_windows);
	/* the channels would need bus mastering, which rashpa_device_master() would refuse */
	if (!profile->quiesce.n && dev->n_users && !capable(CAP_SYS_RAWIO))
		return rashpa_fail(call, -EPERM,
				   "fpga%d has channels, but the profile no quiesce sequence: close the channels, add a sequence, or use CAP_SYS_RAWIO",
				   dev->id);
	/* all of these give control over registers */
	if (profile->n_windows || profile->quiesce.n || profile->table) {
		err = rashpa_lockdown_check(call, dev, "a profile that names registers");
		if (err)
			return err;
	}
	for (i = 0; i < profile->n_windows; i++) {
		err = rashpa_pwindow_check(call, dev, profile->windows, i);
		if (err)
			return err;
	}
	err = rashpa_sequence_check(call, dev, "", &profile->quiesce, NULL);
	if (!err)
		err = rashpa_table_check(call, dev, profile);
	return err ?: rashpa_engines_check(call, dev, profile);
}

/* Map all registers that a checked profile names. Return: 0 or -ENOMEM. */
int rashpa_profile_map(struct rashpa_device *dev, struct rashpa_profile *profile)
{
	const struct rashpa_profile_table *t = profile->table;
	int err;

	if (t) {
		profile->table_regs = pci_iomap_range(dev->pdev, t->bar, t->offset, t->length);
		if (!profile->table_regs)
			return -ENOMEM;
	}
	err = rashpa_sequence_map(dev, &profile->quiesce);
	return err ?: rashpa_engines_map(dev, profile);
}

/* Put a profile into force. @profile receives the old one. */
void rashpa_profile_keep(struct rashpa_device *dev, const struct rashpa_profile_set *p,
			 struct rashpa_profile *profile)
{
	lockdep_assert_held(&dev->hw_lock);
	swap(dev->profile, *profile);
	dev->engine_stops = 0;
	dev->engines_lost = false;
	WRITE_ONCE(dev->disclose, p->head.flags & RASHPA_PROFILE_DISCLOSE);
	WRITE_ONCE(dev->have_profile, true);
}

/* Find a window of a locked function by a checked name. */
const struct rashpa_profile_window *
rashpa_profile_find(struct rashpa_device *dev, const char *name)
{
	u32 i;

	for (i = 0; i < dev->profile.n_windows; i++)
		if (!strcmp(dev->profile.windows[i].name, name))
			return &dev->profile.windows[i];
	return NULL;
}

/* Find a window of a locked function that has these flags and contains the range. */
const struct rashpa_profile_window *
rashpa_profile_cover(struct rashpa_device *dev, u32 bar, u64 offset, u64 length, u32 flags)
{
	u32 i;

	for (i = 0; i < dev->profile.n_windows; i++) {
		const struct rashpa_profile_window *w = &dev->profile.windows[i];

		if ((w->flags & flags) == flags && w->bar == bar &&
		    offset >= w->offset && offset - w->offset <= w->length &&
		    length <= w->length - (offset - w->offset))
			return w;
	}
	return NULL;
}
