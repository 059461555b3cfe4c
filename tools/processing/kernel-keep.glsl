// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bring what is kept to its place, unless it is more than fits: each group has a line. */

DEVICE void keep()
{
	const uint y = group();
	uint at;

	if (y >= height || told[RPU_TOLD_KEPT] > capacity)
		return;
	at = row[y];
	for (uint x0 = 0u; x0 < width; x0 += RPU_LANES) {
		const uint x = x0 + lane();
		const bool keep = x < width && is_above(y * width + x);
		const uint sum = sum_up(uint(keep));

		if (keep) {
			column[at + sum - 1u] = x;
			value[at + sum - 1u] = image[y * width + x];
		}
		at += lanes[RPU_LANES - 1u];
	}
}
