// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where each line's begin, of how many there are in each: one group. */

DEVICE void scan()
{
	uint before = 0u;

	if (lane() == 0u)
		row[0] = 0u;
	for (uint y0 = 0u; y0 < height; y0 += RPU_LANES) {
		const uint y = y0 + lane();
		const uint sum = sum_up(y < height ? row[y + 1u] : 0u);

		if (y < height)
			row[y + 1u] = before + sum;
		before += lanes[RPU_LANES - 1u];
	}
	if (lane() == 0u)
		told[RPU_TOLD_KEPT] = before;
}
