// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A shader that stores a value first of all. On request, it polls before, until a word has the
 * value, or for a number of times.
 */
#version 450
layout(local_size_x = 1) in;
layout(std430, binding = 0) coherent volatile buffer Words { uint word[]; };
layout(push_constant) uniform Push { uint value, polls; };

void main()
{
	for (uint i = 0u; i < polls && word[0] != value; i++)
		word[2] = i;
	word[1] = value;
}
