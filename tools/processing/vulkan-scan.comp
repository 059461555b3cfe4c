// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where each line's begin, of how many there are in each: one group. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan.glsl"

void main()
{
	uint before = 0u;

	if (lane() == 0u)
		row[0] = 0u;
	for (uint y0 = 0u; y0 < height; y0 += LANES) {
		const uint y = y0 + lane();
		const uint sum = sum_up(y < height ? row[y + 1u] : 0u);

		if (y < height)
			row[y + 1u] = before + sum;
		before += lanes[LANES - 1u];
	}
	if (lane() == 0u)
		told[TOLD_KEPT] = before;
}
