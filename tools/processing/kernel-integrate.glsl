// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The mean of a bin, and its error: each group has a bin. Sums have a second number for what
 * rounding takes away of the first one (Knuth's sum of two).
 */

/* enum rpu_error */
#define ERROR_NONE	0u
#define ERROR_AZIMUTHAL	2u

DEVICE vec2 add(vec2 sum, float x)
{
	precise const float all = sum.x + x;
	precise const float of_x = all - sum.x;
	precise const float lost = (sum.x - (all - of_x)) + (x - of_x);

	return vec2(all, sum.y + lost);
}

/* Of all lanes. */
DEVICE float total(vec2 mine)
{
	vec2 all;

	barrier();
	sums[lane()] = mine;
	barrier();
	for (uint step = RPU_LANES / 2u; step > 0u; step /= 2u) {
		if (lane() < step) {
			all = add(sums[lane()], sums[lane() + step].x);
			sums[lane()] = vec2(all.x, all.y + sums[lane() + step].y);
		}
		barrier();
	}
	return sums[0].x + sums[0].y;
}

DEVICE float part_of(uint i)
{
	return parts ? part[i] : 1.0f;
}

/* What element i adds to the variance. */
DEVICE float spread(uint i, float mean)
{
	const float x = uintBitsToFloat(image[element[i]]), off = x - mean * norm[element[i]];

	return part_of(i) * part_of(i) * (capacity == ERROR_AZIMUTHAL ? off * off : max(x, 0.0f));
}

DEVICE void integrate()
{
	const uint bin = group();
	vec2 sum = vec2(0.0f), weight = vec2(0.0f), variance = vec2(0.0f);
	float all, of_norm;

	if (bin >= width)
		return;
	for (uint i = start[bin] + lane(); i < start[bin + 1u]; i += RPU_LANES) {
		if (!is_number(image[element[i]]))
			continue;
		sum = add(sum, part_of(i) * uintBitsToFloat(image[element[i]]));
		weight = add(weight, part_of(i) * norm[element[i]]);
	}
	all = total(sum);
	of_norm = total(weight);
	if (lane() == 0u)
		profile[bin] = of_norm == 0.0f ? INVALID :
			       floatBitsToUint(rpu_weighted_mean(all, of_norm));
	if (capacity == ERROR_NONE)
		return;
	for (uint i = start[bin] + lane(); i < start[bin + 1u]; i += RPU_LANES) {
		if (is_number(image[element[i]]))
			variance = add(variance, spread(i, all / of_norm));
	}
	all = total(variance);
	if (lane() == 0u)
		profile[width + bin] = of_norm == 0.0f ? INVALID :
				       floatBitsToUint(rpu_weighted_error(all, of_norm));
}
