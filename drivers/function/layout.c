// SPDX-License-Identifier: GPL-2.0-only
/*
 * rashpa: parts of a profile: layout of table entries, limits of segments, ranges of windows.
 */
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "function/function.h"

struct rashpa_field {
	u32 offset;
	u32 bits;
};

int rashpa_layout_check(struct rashpa_call *call, const struct rashpa_layout *l)
{
	const struct rashpa_field f[] = {
		{ l->address_offset, l->address_bits },
		{ l->length_offset, l->length_bits },
		{ l->control_offset, l->control_bits },
		{ l->sum_offset, l->sum_bits },
	};
	size_t i, j;

	if (l->flags & ~(RASHPA_LAYOUT_UPPER_FIRST | RASHPA_LAYOUT_WRITE_ONLY))
		return rashpa_fail(call, -EINVAL, "layout: flag 0x%x is not defined", l->flags);
	if (!l->stride || l->stride > SZ_4K || !IS_ALIGNED(l->stride, sizeof(u32)))
		return rashpa_fail(call, -EINVAL,
				   "a stride of %u: must be a multiple of 4 up to 4096",
				   l->stride);
	if (l->address_bits != 32 && l->address_bits != 64)
		return rashpa_fail(call, -EINVAL, "address field of %u bits: must be 32 or 64",
				   l->address_bits);
	if (l->length_bits && l->length_bits != 32 && l->length_bits != 64)
		return rashpa_fail(call, -EINVAL, "length field of %u bits: must be 0, 32 or 64",
				   l->length_bits);
	if (l->control_bits && l->control_bits != 32)
		return rashpa_fail(call, -EINVAL, "control field of %u bits: must be 0 or 32",
				   l->control_bits);
	if (l->sum_bits && l->sum_bits != 32 && l->sum_bits != 64)
		return rashpa_fail(call, -EINVAL, "sum field of %u bits: must be 0, 32 or 64",
				   l->sum_bits);
	/* address 0 is a valid address: another field must mark an entry as invalid */
	if (!l->length_bits && !l->control_bits)
		return rashpa_fail(call, -EINVAL,
				   "entries have neither a control field nor a length: a cleared entry would be address 0");
	if (!l->length_bits && (!is_power_of_2(l->segment_size) || l->segment_size < SZ_4K))
		return rashpa_fail(call, -EINVAL,
				   "entries have no length, and a segment_size of 0x%llx: must be a power of two, at least 4096",
				   l->segment_size);
	if (l->length_bits && l->segment_size)
		return rashpa_fail(call, -EINVAL,
				   "entries have a length, and a segment_size of 0x%llx: one of the two",
				   l->segment_size);
	if (l->control_bits && l->control_set == l->control_clear)
		return rashpa_fail(call, -EINVAL,
				   "control_set and control_clear are both 0x%x: an entry could not be made invalid",
				   l->control_set);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (!f[i].bits && f[i].offset)
			return rashpa_fail(call, -EINVAL, "a field without bits has an offset");
		if (!IS_ALIGNED(f[i].offset, sizeof(u32)) ||
		    f[i].offset > l->stride || f[i].bits / 8 > l->stride - f[i].offset)
			return rashpa_fail(call, -EINVAL,
					   "a field at %u of %u bits is not inside the stride of %u",
					   f[i].offset, f[i].bits, l->stride);
		for (j = 0; j < i; j++)
			if (f[i].bits && f[j].bits &&
			    f[i].offset < f[j].offset + f[j].bits / 8 &&
			    f[j].offset < f[i].offset + f[i].bits / 8)
				return rashpa_fail(call, -EINVAL,
						   "two fields of the layout overlap");
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
