// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernels for CUDA: the text of the shaders, with what of GLSL it takes. nvcc compiles this file,
 * and so does clang, without any header of CUDA's.
 *
 * A program that has all lanes on processors (a test) has defined RPU_LANE, RPU_GROUP, RPU_BARRIER(),
 * RPU_ADD(), RPU_WORD(), RPU_NUMBER(), RPU_REST(), RPU_LOAD(), RPU_STORE(), RPU_KERNEL() and CUDA's words
 * before.
 */
#ifdef __NVCC__
#define RPU_LANE	threadIdx.x
#define RPU_GROUP	blockIdx.x
#define RPU_BARRIER()	__syncthreads()
#define RPU_ADD(to, n)	::atomicAdd(to, n)
#define RPU_WORD(x)	__float_as_uint(x)
#define RPU_NUMBER(x)	__uint_as_float(x)
#define RPU_REST()	__nanosleep(100)
#elif !defined(RPU_LANE)
#include "cuda-clang.cuh"
#define RPU_LANE	__nvvm_read_ptx_sreg_tid_x()
#define RPU_GROUP	__nvvm_read_ptx_sreg_ctaid_x()
#define RPU_BARRIER()	__syncthreads()
#define RPU_ADD(to, n)	__nvvm_atom_add_gen_i((int *)(to), n)
#define RPU_WORD(x)	__builtin_bit_cast(unsigned int, x)
#define RPU_NUMBER(x)	__builtin_bit_cast(float, x)
#define RPU_REST()	asm volatile("nanosleep.u32 100;")
#endif

/* Words that a processor, or a board, has as well. */
#ifndef RPU_LOAD
#define RPU_LOAD(word, from) \
	asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory")
#define RPU_STORE(to, word) \
	asm volatile("st.release.sys.u32 [%0], %1;" : : "l"(to), "r"(word) : "memory")
#endif

#include "arithmetic.h"
#include "kernel.h"

#define DEVICE	__device__ __forceinline__
#define precise

typedef unsigned int uint;

struct vec2 {
	float x, y;

	vec2() = default;
	DEVICE vec2(float all) : x(all), y(all) { }
	DEVICE vec2(float first, float second) : x(first), y(second) { }
};

__shared__ uint lanes[RPU_LANES];
__shared__ vec2 sums[RPU_LANES];

/* struct rpu_arguments of cuda.h */
struct arguments {
	uint width, height, pixels;
	uint first;
	uint saturated;
	uint capacity;
	float number;
	uint pixel_bytes, jungfrau, whole, parts;
	uint unused;
	/* enum rpu_place of gpu.h */
	const uint *raw;
	uint *pedestal;
	const uint *per_gain;
	uint *image, *told, *row, *column, *value;
	const uint *start, *element;
	const float *part, *norm;
	uint *profile;
};

/* What vulkan.glsl declares, and the kernels behind that. */
struct kernels : arguments {
	uint this_group;

	DEVICE kernels(const arguments &all) : arguments(all), this_group(RPU_GROUP) { }

	DEVICE uint group() { return this_group; }
	DEVICE uint lane() { return RPU_LANE; }
	DEVICE void barrier() { RPU_BARRIER(); }
	DEVICE void atomicAdd(uint &to, uint n) { RPU_ADD(&to, n); }
	DEVICE uint floatBitsToUint(float x) { return RPU_WORD(x); }
	DEVICE float uintBitsToFloat(uint x) { return RPU_NUMBER(x); }
	DEVICE uint min(uint a, uint b) { return a < b ? a : b; }
	DEVICE float max(float a, float b) { return a > b ? a : b; }

#include "kernel.glsl"
#include "kernel-above.glsl"
#include "kernel-dark.glsl"
#include "kernel-integrate.glsl"
#include "kernel-keep.glsl"
#include "kernel-pretreat.glsl"
#include "kernel-rows.glsl"
#include "kernel-scan.glsl"
};

/* struct rpu_driven of cuda-drive.c */
struct driven : arguments {
	uint *lock;		/* so many images are there */
	uint *control;		/* RPU_CONTROL_*, which the host has as well */
	uint *decision;		/* RPU_DECISION_* */
	uint *banks;		/* accepted images, each with RPU_RECORD words behind it */
	uint least;		/* pixels above the threshold that an image is accepted for */
	uint bank_count;
	uint image_number;
	uint lock_first, lock_step, images;	/* of the kernel that polls: its first image, and so on */
	uint ring_step, ring_slots;		/* words */
};

/* What decides, on the GPU, whether an image goes to the host. */
struct drives : kernels {
	uint *lock, *control, *decision, *banks;
	uint least, bank_count, image_number, lock_first, lock_step, images, ring_step, ring_slots;

	DEVICE drives(const driven &d) : kernels(d), lock(d.lock), control(d.control),
		decision(d.decision), banks(d.banks), least(d.least),
		bank_count(d.bank_count), image_number(d.image_number), lock_first(d.lock_first),
		lock_step(d.lock_step), images(d.images), ring_step(d.ring_step),
		ring_slots(d.ring_slots) { }

	DEVICE uint look(const uint *word)
	{
		uint value;

		RPU_LOAD(value, word);
		return value;
	}

	DEVICE uint *this_bank()
	{
		return banks + decision[RPU_DECISION_BANK] * (pixels + RPU_RECORD);
	}

	/* Once, since the host takes results meanwhile. */
	DEVICE void decide()
	{
		const uint accepted = look(&control[RPU_CONTROL_ACCEPTED]);

		if (lane() != 0u)
			return;
		decision[RPU_DECISION_BANK] = accepted % bank_count;
		decision[RPU_DECISION_IS] = told[RPU_TOLD_ABOVE] < least ? RPU_VETOED :
			accepted - look(&control[RPU_CONTROL_TAKEN]) < bank_count ? RPU_ACCEPTED : RPU_DROPPED;
	}

	DEVICE void bank()
	{
		const uint i = group() * RPU_LANES + lane();

		if (decision[RPU_DECISION_IS] == RPU_ACCEPTED && i < pixels)
			this_bank()[i] = image[i];
	}

	/* The bank is complete before its number is seen. */
	DEVICE void publish()
	{
		if (lane() != 0u)
			return;
		if (decision[RPU_DECISION_IS] == RPU_ACCEPTED) {
			this_bank()[pixels] = image_number;
			this_bank()[pixels + 1u] = told[RPU_TOLD_ABOVE];
			RPU_STORE(&control[RPU_CONTROL_ACCEPTED], look(&control[RPU_CONTROL_ACCEPTED]) + 1u);
		} else if (decision[RPU_DECISION_IS] == RPU_DROPPED) {
			RPU_STORE(&control[RPU_CONTROL_DROPPED], look(&control[RPU_CONTROL_DROPPED]) + 1u);
		}
	}

	/* Image by image, each with all lanes of the one group, until somebody stops it. */
	DEVICE bool await(uint value)
	{
		if (lane() == 0u) {
			while (int(look(lock) - value) < 0 && !look(&control[RPU_CONTROL_STOP]))
				RPU_REST();
			decision[RPU_DECISION_STOP] = look(&control[RPU_CONTROL_STOP]);
		}
		barrier();
		return !decision[RPU_DECISION_STOP];
	}

	DEVICE void poll()
	{
		const uint words = (pixels * pixel_bytes + 3u) / 4u, begin = first;
		uint n;

		for (uint k = 0u; k < images; k++) {
			image_number = lock_first + k * lock_step;
			if (!await(image_number + 1u))
				return;
			first = begin + image_number % ring_slots * ring_step;
			for (this_group = 0u; this_group * RPU_LANES < words; this_group++)
				pretreat();
			barrier();
			n = 0u;
			for (uint i = lane(); i < pixels; i += RPU_LANES)
				n += uint(is_above(i));
			n = sum_up(n);
			if (lane() == RPU_LANES - 1u)
				told[RPU_TOLD_ABOVE] = n;
			barrier();
			decide();
			barrier();
			for (this_group = 0u; this_group * RPU_LANES < pixels; this_group++)
				bank();
			barrier();
			publish();
			if (lane() == 0u)
				RPU_STORE(&control[RPU_CONTROL_COMPUTED], k + 1u);
			barrier();
		}
	}
};

#ifndef RPU_KERNEL
#define RPU_KERNEL(name, type)	extern "C"
#endif

#define KERNEL_OF(name, object, type) \
RPU_KERNEL(name, type) __global__ void rpu_##name(const type all) \
{ \
	object(all).name(); \
}
#define KERNEL(name)	KERNEL_OF(name, kernels, arguments)
#define DRIVEN(name)	KERNEL_OF(name, drives, driven)

KERNEL(above)
KERNEL(dark)
KERNEL(integrate)
KERNEL(keep)
KERNEL(pretreat)
KERNEL(rows)
KERNEL(scan)
DRIVEN(decide)
DRIVEN(bank)
DRIVEN(publish)
DRIVEN(poll)
