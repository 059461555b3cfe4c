// SPDX-License-Identifier: LGPL-2.1-or-later
/* A persistent GPU thread drives the board: it alone uses ring, queue and doorbell. */
#version 450
#extension GL_GOOGLE_include_directive : require

layout(local_size_x = 1) in;

/* struct loop_plan of loop.h */
layout(push_constant) uniform Plan {
	uint told, descriptors, events, receive, source, answers, came, hits, fits;
	uint descriptors_log2, events_log2, slot_log2, words;
	uint run, total, window, stale_at, tail_at, rounds, data, to;
} P;

layout(std430, binding = 0) coherent volatile buffer Memory { uint word[]; };
layout(std430, binding = 1) coherent volatile buffer Doorbell { uint bell[]; };

layout(constant_id = 0) const uint kind = 0u;

uint load_word(uint i)
{
	const uint value = word[i];

	memoryBarrierBuffer();
	return value;
}

#define OWN
#define OWN_WORDS
#define KIND		kind
#define GROUP		gl_WorkGroupID.x
#define WORD(i)		load_word(i)
#define PUT(i, value)	word[i] = value
#define PUBLISH()	memoryBarrierBuffer()
#define BELL(at, value)	bell[at] = value
#define IDLE()
#define PROCESS(data, to)	drive_process(data, to)
#define INT(x)		int(x)
#define FLOAT(x)	float(x)
#define BITS(x)		floatBitsToUint(x)
#define SQRT(x)		sqrt(x)

#include "drive.h"

void main()
{
	drive();
}
