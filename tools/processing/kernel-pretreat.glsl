// SPDX-License-Identifier: LGPL-2.1-or-later
/* A raw image becomes numbers: each lane has the pixels of one word. */

DEVICE uint number_of(uint i, uint v)
{
	const uint at = jungfrau ? rpu_stage(v) * pixels + i : i;
	const uint p = pedestal[at], g = per_gain[at];
	float x;

	if ((jungfrau ? !rpu_valid(v) : v >= saturated) || !is_number(p) || !is_number(g))
		return INVALID;
	x = jungfrau ? rpu_convert(v, uintBitsToFloat(p), uintBitsToFloat(g)) :
	    rpu_scale(v, uintBitsToFloat(p), uintBitsToFloat(g));
	return floatBitsToUint(whole ? rpu_round(x) : x);
}

DEVICE void pretreat()
{
	const uint at = group() * RPU_LANES + lane(), each = 4u / pixel_bytes;

	for (uint k = 0u; k < each && at * each + k < pixels; k++)
		image[at * each + k] = number_of(at * each + k, pixel_of(raw[first + at], k));
}
