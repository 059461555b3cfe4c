// SPDX-License-Identifier: LGPL-2.1-or-later
/* Kernels of a drive as Vulkan shaders, with their declarations. */
#define RPU_DRIVEN
#include "vulkan.glsl"

/* enum rpu_driven_place of vulkan.h */
layout(std430, binding = 13) readonly coherent volatile buffer Lock { uint lock[]; };
layout(std430, binding = 14) coherent volatile buffer Control { uint control[]; };
layout(std430, binding = 15) coherent buffer Decision { uint decision[]; };
layout(std430, binding = 16) coherent buffer Banks { uint banks[]; };
layout(std430, binding = 17) writeonly buffer Results { uint results[]; };
layout(std430, binding = 18) coherent volatile buffer Given { uint given[]; };

uint image_number;

/* Load a word; later loads are not older. */
uint has(uint word)
{
	const uint value = control[word];

	memoryBarrierBuffer();
	return value;
}

/* Store a word, after all earlier stores. */
void tell(uint word, uint value)
{
	memoryBarrierBuffer();
	control[word] = value;
}

/* Release stacks to the producer, after all loads of the last image. */
void give(uint stacks)
{
	memoryBarrierBuffer();
	given[given_at] = stacks;
}

uint lock_is()
{
	const uint value = lock[lock_at];

	memoryBarrierBuffer();
	return value;
}

void both()
{
	memoryBarrierBuffer();
	barrier();
}

#define barrier		both
#define RPU_REST()

#include "kernel.glsl"
#include "kernel-dark.glsl"
#include "kernel-pretreat.glsl"
#include "kernel-drive.glsl"

void begin()
{
	first = begins;
	image_number = lock_first;
	this_group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
}
