// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Code shared by the kernels, which are both GLSL and C++: shaders include it after vulkan.glsl,
 * CUDA as functions of a struct, see cuda.cu. Numbers are words, and NaN is detected by its bits,
 * since a driver may compile comparisons as if there were no NaN.
 */

#define INVALID	0x7fc00000u

DEVICE bool is_number(uint word)
{
	return (word & 0x7fffffffu) <= 0x7f800000u;
}

/* Is pixel i of the image above the threshold? */
DEVICE bool is_above(uint i)
{
	return is_number(image[i]) && rpu_above(uintBitsToFloat(image[i]), number);
}

/* The sum of this lane's and those before it; all lanes ask. That of all is in the last one's. */
DEVICE uint sum_up(uint mine)
{
	barrier();
	lanes[lane()] = mine;
	barrier();
	for (uint step = 1u; step < RPU_LANES; step *= 2u) {
		const uint more = lane() >= step ? lanes[lane() - step] : 0u;

		barrier();
		lanes[lane()] += more;
		barrier();
	}
	return lanes[lane()];
}

/* Pixel k of a word of the raw image. */
DEVICE uint pixel_of(uint word, uint k)
{
	return pixel_bytes == 4u ? word :
	       (word >> (8u * pixel_bytes * k)) & ((1u << (8u * (pixel_bytes & 3u))) - 1u);
}
