// SPDX-License-Identifier: LGPL-2.1-or-later
/* Declarations for kernels that are compiled as Vulkan shaders. */
#include "arithmetic.h"
#include "kernel.h"

#define DEVICE

layout(local_size_x = 128) in;

layout(constant_id = 0) const uint pixel_bytes = 2;
layout(constant_id = 1) const bool jungfrau = true;
layout(constant_id = 2) const bool whole = false;
layout(constant_id = 3) const bool parts = true;

/* struct rpu_push of gpu.h */
layout(push_constant) uniform Push {
	uint width, height, pixels;
#ifdef RPU_DRIVEN
	uint begins;		/* first */
#else
	uint first;
#endif
	uint saturated;
	uint capacity;
	float number;
	float weight;
#ifdef RPU_DRIVEN
	/* struct rpu_driven of drive.h */
	uint least, bank_count, polls, lock_first, lock_step, images, ring_step, ring_slots;
	uint lock_images, gives, pairs;
	uint lock_at;		/* word of what has the lock */
	uint given_at;		/* and of what has that of slots that are given back */
#endif
};

/* lanes of one group see what others of it write, where it has more than one thing to do */
#ifdef RPU_DRIVEN
#define TOUCHED	coherent
#else
#define TOUCHED
#endif

/* enum rpu_place of gpu.h */
layout(std430, binding = 0) readonly buffer Raw { uint raw[]; };
layout(std430, binding = 1) buffer Pedestal { uint pedestal[]; };
layout(std430, binding = 2) readonly buffer Gain { uint per_gain[]; };
layout(std430, binding = 3) TOUCHED buffer Image { uint image[]; };
layout(std430, binding = 4) TOUCHED buffer Told { uint told[]; };
layout(std430, binding = 5) buffer Row { uint row[]; };
layout(std430, binding = 6) writeonly buffer Column { uint column[]; };
layout(std430, binding = 7) writeonly buffer Value { uint value[]; };
layout(std430, binding = 8) readonly buffer Start { uint start[]; };
layout(std430, binding = 9) readonly buffer Element { uint element[]; };
layout(std430, binding = 10) readonly buffer Part { float part[]; };
layout(std430, binding = 11) readonly buffer Norm { float norm[]; };
layout(std430, binding = 12) writeonly buffer Profile { uint profile[]; };

shared uint lanes[RPU_LANES];
shared vec2 sums[RPU_LANES];

#ifdef RPU_DRIVEN
uint this_group, first;
#endif

/* Number of this group: there are more than fit into one line. */
uint group()
{
#ifdef RPU_DRIVEN
	return this_group;
#else
	return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
#endif
}

uint lane()
{
	return gl_LocalInvocationID.x;
}
