// SPDX-License-Identifier: LGPL-2.1-or-later
/* How many pixels are above the threshold: each group counts a piece. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan.glsl"

#define PIECE	1024u		/* of vulkan.c */

void main()
{
	const uint begin = group() * PIECE, end = min(begin + PIECE, pixels);
	uint n = 0u;

	for (uint i = begin + lane(); i < end; i += LANES)
		n += uint(is_above(i));
	n = sum_up(n);
	if (lane() == LANES - 1u && n != 0u)
		atomicAdd(told[TOLD_ABOVE], n);
}
