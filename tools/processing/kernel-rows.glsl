// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many pixels of each line are kept: each group counts a line. */

DEVICE void rows()
{
	const uint y = group();
	uint n = 0u;

	if (y >= height)
		return;
	for (uint x = lane(); x < width; x += RPU_LANES)
		n += uint(is_above(y * width + x));
	n = sum_up(n);
	if (lane() == RPU_LANES - 1u)
		row[y + 1u] = n;
}
