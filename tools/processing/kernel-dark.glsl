// SPDX-License-Identifier: LGPL-2.1-or-later
/* A dark image moves the pedestal of the highest gain. */

DEVICE void move(uint i, uint v)
{
	const float p = uintBitsToFloat(pedestal[i]);

	/* no mean of what is no number */
	if (!is_number(pedestal[i]) && weight < 1.0f)
		return;
	if (jungfrau)
		pedestal[i] = floatBitsToUint(rpu_dark_mean(p, v, weight));
	else if (v < saturated)
		pedestal[i] = floatBitsToUint(rpu_mean_of(p, float(v), weight));
}

DEVICE void dark()
{
	const uint at = group() * RPU_LANES + lane(), each = 4u / pixel_bytes;

	for (uint k = 0u; k < each && at * each + k < pixels; k++)
		move(at * each + k, pixel_of(raw[first + at], k));
}
