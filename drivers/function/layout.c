// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: parts of a profile: layout of table entries, limits of segments, ranges of windows.
 */
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "function/function.h"

/* Check a number of a profile. */
int rashpa_number_check(struct rashpa_call *call, u64 n, u32 min, u32 max, const char *what)
{
	if (n >= min && n <= max)
		return 0;
	return rashpa_fail(call, -EINVAL, "%llu %s: must be %u to %u", n, what, min, max);
}

/*
 * Check registers, named @what: in a memory BAR, and unless @profile is NULL, in no window that has
 * these flags.
 */
int rashpa_registers_check(struct rashpa_call *call, struct rashpa_device *dev, const char *what,
			   u32 bar, u64 offset, u64 length, const struct rashpa_profile *profile,
			   u32 flags)
{
	const struct rashpa_profile_window *w;

	if (!length || !IS_ALIGNED(offset, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "%s: 0x%llx bytes at 0x%llx: must be at a multiple of 4, and not empty",
				   what, length, offset);
	if (!rashpa_bar_range_ok(dev, bar, offset, length))
		return rashpa_fail(call, -ERANGE,
				   "%s: 0x%llx + 0x%llx is outside BAR %u, or that has no memory",
				   what, offset, length, bar);
	w = profile ? rashpa_profile_overlap(profile, flags, bar, offset, length) : NULL;
	if (!w)
		return 0;
	return rashpa_fail(call, -EINVAL,
			   "%s: 0x%llx is in window %s, which is for %s: only the kernel may access it",
			   what, offset, w->name,
			   w->flags & RASHPA_PWINDOW_USER ? "users" : "privileged users");
}

/* A segment needs a length: either in each entry or descriptor (@what), or one for all. */
int rashpa_length_check(struct rashpa_call *call, const char *what, bool length, u64 segment_size)
{
	if (length ? !segment_size : is_power_of_2(segment_size) && segment_size >= SZ_4K)
		return 0;
	return rashpa_fail(call, -EINVAL, "%s have %s length, and a segment_size of 0x%llx: must be %s",
			   what, length ? "a" : "no", segment_size,
			   length ? "0" : "a power of two, at least 4096");
}

int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l)
{
	const struct {
		const char *name;
		u32 offset, bits, least, most;
	} f[] = {
		{ "address", l->address_offset, l->address_bits, 32, 64 },
		{ "length", l->length_offset, l->length_bits, 0, 64 },
		{ "control", l->control_offset, l->control_bits, 0, 32 },
		{ "sum", l->sum_offset, l->sum_bits, 0, 64 },
	};
	size_t i, j;
	int err;

	if (l->flags & ~(RASHPA_LAYOUT_UPPER_FIRST | RASHPA_LAYOUT_WRITE_ONLY))
		return rashpa_fail(call, -EINVAL, "layout: flag 0x%x is not defined", l->flags);
	/* address 0 is a valid address: another field must mark an entry as invalid */
	if (!l->length_bits && !l->control_bits)
		return rashpa_fail(call, -EINVAL,
				   "entries have neither a control field nor a length: a cleared entry would be address 0");
	err = rashpa_length_check(call, "entries", l->length_bits, l->segment_size);
	if (err)
		return err;
	if (l->control_bits && l->control_set == l->control_clear)
		return rashpa_fail(call, -EINVAL,
				   "control_set and control_clear are both 0x%x: an entry could not be made invalid",
				   l->control_set);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].bits % 32 || f[i].bits < f[i].least || f[i].bits > f[i].most)
			return rashpa_fail(call, -EINVAL,
					   "%s field of %u bits: must be %u to %u, a multiple of 32",
					   f[i].name, f[i].bits, f[i].least, f[i].most);
		if (!f[i].bits && f[i].offset)
			return rashpa_fail(call, -EINVAL, "%s field without bits has an offset",
					   f[i].name);
		if (!IS_ALIGNED(f[i].offset, sizeof(u32)) ||
		    f[i].offset > l->stride || f[i].bits / 8 > l->stride - f[i].offset)
			return rashpa_fail(call, -EINVAL,
					   "%s field at %u of %u bits is not inside the stride of %u",
					   f[i].name, f[i].offset, f[i].bits, l->stride);
		for (j = 0; j < i; j++)
			if (f[i].bits && f[j].bits &&
			    rashpa_ranges_overlap(f[i].offset, f[i].bits / 8,
						  f[j].offset, f[j].bits / 8))
				return rashpa_fail(call, -EINVAL,
						   "the %s and %s fields of the layout overlap",
						   f[j].name, f[i].name);
	}
	return 0;
}

/* Check the limits of segments of a profile or map. Return: 0 or -EINVAL. */
int rashpa_limits_check(struct rashpa_call *call, u64 max_segment, u64 boundary, u64 alignment)
{
	if (!PAGE_ALIGNED(max_segment))
		return rashpa_fail(call, -EINVAL, "max_segment must be whole pages");
	if (boundary && (!is_power_of_2(boundary) || boundary < PAGE_SIZE))
		return rashpa_fail(call, -EINVAL,
				   "boundary must be a power of two, at least a page");
	if (alignment && !is_power_of_2(alignment))
		return rashpa_fail(call, -EINVAL, "alignment must be a power of two");
	return 0;
}

/* Find a window of the profile that has these flags and overlaps the range. */
const struct rashpa_profile_window *
rashpa_profile_overlap(const struct rashpa_profile *profile, u32 flags, u32 bar, u64 offset,
		       u64 length)
{
	u32 i;

	for (i = 0; i < profile->n_windows; i++) {
		const struct rashpa_profile_window *w = &profile->windows[i];

		if ((w->flags & flags) == flags && w->bar == bar &&
		    rashpa_ranges_overlap(w->offset, w->length, offset, length))
			return w;
	}
	return NULL;
}
