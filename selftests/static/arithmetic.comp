// SPDX-License-Identifier: LGPL-2.1-or-later
/* The arithmetic of pixels as a shader: each function, so that each is compiled. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.h"

layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer Raw { uint raw[]; };
layout(binding = 1) buffer Plane { float plane[]; };
layout(binding = 2) buffer Geometry { float g[9]; };

void main()
{
	const uint i = gl_GlobalInvocationID.x, word = raw[i];
	float x = plane[i];

	if (!rpu_valid(word) || rpu_code(word) == 2u || rpu_stage(word) > 2u)
		return;
	x = rpu_dark_mean(x, word, 0.5) + rpu_mean_of(x, rpu_value(word), 0.5);
	x += rpu_convert(word, x, 2.0) + rpu_scale(word, x, 2.0);
	x = rpu_without(rpu_round(x), 1.0, 2.0);
	if (rpu_above(x, 1.0) && !rpu_quiet(x, 2.0) && !rpu_outlier(x, 3.0, 4.0, 5.0))
		x += rpu_t1(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]) +
		     rpu_t2(g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8]) +
		     rpu_t3(g[0], g[1], g[2], g[3], g[4], g[5], g[6]);
	if (!rpu_even(x, 1.0) && rpu_picked(x, rpu_uncertain(1.0, 2.0), rpu_clip(3.0, word)))
		x = rpu_limit(x, 1.0, 2.0, 3.0);
	x += rpu_weighted_mean(x, 2.0) + rpu_weighted_error(x, 2.0);
	plane[i] = rpu_m2(x, rpu_mean(x, 1.0, word), 1.0);
}
