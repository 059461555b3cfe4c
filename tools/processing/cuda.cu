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
	float number, weight;
	uint pixel_bytes, jungfrau, whole, parts;
	/* enum rpu_place of gpu.h */
	const uint *raw;
	uint *pedestal;
	const uint *per_gain;
	uint *image, *told, *row, *column, *value;
	const uint *start, *element;
	const float *part, *norm;
	uint *profile;
};

/* The declarations of vulkan.glsl, followed by the kernels. */
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

/* struct driven_arguments of cuda-drive.c */
struct driven : arguments {
	uint *lock;		/* so many images are there */
	uint *control;		/* RPU_CONTROL_*, which the host has as well */
	uint *decision;		/* RPU_DECISION_* */
	uint *banks;		/* accepted images, each followed by RPU_RECORD words */
	uint *given;		/* stacks whose slots the kernel has released, if it does so */
	/* struct rpu_driven of drive.h */
	uint least, bank_count, polls, lock_first, lock_step, images, ring_step, ring_slots;
	uint lock_images, gives, pairs, unused;
};

struct drives : kernels {
	uint *lock, *control, *decision, *banks, *given;
	uint least, bank_count, polls, lock_first, lock_step, images, ring_step, ring_slots;
	uint lock_images, gives, pairs, unused;
	uint image_number;

	DEVICE drives(const driven &d) : kernels(d), lock(d.lock), control(d.control),
		decision(d.decision), banks(d.banks), given(d.given), least(d.least),
		bank_count(d.bank_count), polls(d.polls), lock_first(d.lock_first),
		lock_step(d.lock_step), images(d.images), ring_step(d.ring_step),
		ring_slots(d.ring_slots), lock_images(d.lock_images), gives(d.gives), pairs(d.pairs),
		image_number(d.lock_first) { }

	DEVICE uint look(const uint *word)
	{
		uint value;

		RPU_LOAD(value, word);
		return value;
	}

	DEVICE uint has(uint word) { return look(&control[word]); }
	DEVICE void tell(uint word, uint value) { RPU_STORE(&control[word], value); }
	DEVICE void give(uint stacks) { RPU_STORE(given, stacks); }
	DEVICE uint lock_is() { return look(lock); }

#include "kernel-drive.glsl"
};

/* The first thing that a kernel does, for who measures when: it says so. Before, it polls, if asked to. */
struct touched {
	uint *word;
	uint value, polls;
};

struct touches : touched {
	DEVICE touches(const touched &t) : touched(t) { }

	DEVICE void touch()
	{
		uint now = value + 1u;

		for (uint i = 0u; i < polls && now != value; i++)
			RPU_LOAD(now, word);
		RPU_STORE(word + 1, value);
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
DRIVEN(take)
DRIVEN(decide)
DRIVEN(bank)
DRIVEN(publish)
DRIVEN(poll)
KERNEL_OF(touch, touches, touched)
