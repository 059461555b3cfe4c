// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many pixels are above the threshold: each group counts a piece. */

DEVICE void above()
{
	const uint begin = group() * RPU_PIECE, end = min(begin + RPU_PIECE, pixels);
	uint n = 0u;

	for (uint i = begin + lane(); i < end; i += RPU_LANES)
		n += uint(is_above(i));
	n = sum_up(n);
	if (lane() == RPU_LANES - 1u && n != 0u)
		atomicAdd(told[RPU_TOLD_ABOVE], n);
}
