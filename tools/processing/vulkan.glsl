// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the shaders of the engine have in common. Numbers are words: what is no number is told by
 * its bits, since a driver may compare as if all were numbers.
 */
#include "arithmetic.h"

#define LANES	128u		/* any GPU has that many */
#define INVALID	0x7fc00000u

layout(local_size_x = 128) in;

layout(constant_id = 0) const uint pixel_bytes = 2;
layout(constant_id = 1) const bool jungfrau = true;
layout(constant_id = 2) const bool whole = false;

/* struct push of vulkan.h */
layout(push_constant) uniform Push {
	uint width, height, pixels;
	uint first;		/* word of the raw image */
	uint saturated;
	uint capacity;		/* elements; or what error there is to be */
	float number;		/* the threshold; or the weight of a dark image */
};

/* enum place of vulkan.h */
layout(std430, binding = 0) readonly buffer Raw { uint raw[]; };
layout(std430, binding = 1) buffer Pedestal { uint pedestal[]; };
layout(std430, binding = 2) readonly buffer Gain { uint per_gain[]; };
layout(std430, binding = 3) buffer Image { uint image[]; };
layout(std430, binding = 4) buffer Told { uint told[]; };
layout(std430, binding = 5) buffer Row { uint row[]; };
layout(std430, binding = 6) writeonly buffer Column { uint column[]; };
layout(std430, binding = 7) writeonly buffer Value { uint value[]; };
layout(std430, binding = 8) readonly buffer Start { uint start[]; };
layout(std430, binding = 9) readonly buffer Element { uint element[]; };
layout(std430, binding = 10) readonly buffer Part { float part[]; };
layout(std430, binding = 11) readonly buffer Norm { float norm[]; };
layout(std430, binding = 12) writeonly buffer Profile { uint profile[]; };

#define TOLD_ABOVE	0
#define TOLD_KEPT	1

shared uint lanes[LANES];

/* Number of this group: there are more than fit into one line. */
uint group()
{
	return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}

uint lane()
{
	return gl_LocalInvocationID.x;
}

bool is_number(uint word)
{
	return (word & 0x7fffffffu) <= 0x7f800000u;
}

/* Is pixel i of the image above the threshold? */
bool is_above(uint i)
{
	return is_number(image[i]) && rpu_above(uintBitsToFloat(image[i]), number);
}

/* The sum of this lane's and those before it; all lanes ask. That of all is in the last one's. */
uint sum_up(uint mine)
{
	barrier();
	lanes[lane()] = mine;
	barrier();
	for (uint step = 1u; step < LANES; step *= 2u) {
		const uint more = lane() >= step ? lanes[lane() - step] : 0u;

		barrier();
		lanes[lane()] += more;
		barrier();
	}
	return lanes[lane()];
}

/* Pixel k of a word of the raw image. */
uint pixel_of(uint word, uint k)
{
	return pixel_bytes == 4u ? word :
	       (word >> (8u * pixel_bytes * k)) & ((1u << (8u * (pixel_bytes & 3u))) - 1u);
}
