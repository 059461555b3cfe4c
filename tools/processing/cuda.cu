// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The kernels for CUDA: the text of the shaders, with what of GLSL it takes. nvcc compiles this file,
 * and so does clang, without any header of CUDA's.
 *
 * A program that has all lanes on processors (a test) has defined RPU_LANE, RPU_GROUP, RPU_BARRIER(),
 * RPU_ADD(), RPU_WORD(), RPU_NUMBER(), RPU_KERNEL() and CUDA's words before.
 */
#ifdef __NVCC__
#define RPU_LANE	threadIdx.x
#define RPU_GROUP	blockIdx.x
#define RPU_BARRIER()	__syncthreads()
#define RPU_ADD(to, n)	::atomicAdd(to, n)
#define RPU_WORD(x)	__float_as_uint(x)
#define RPU_NUMBER(x)	__uint_as_float(x)
#elif !defined(RPU_LANE)
#include "cuda-clang.cuh"
#define RPU_LANE	__nvvm_read_ptx_sreg_tid_x()
#define RPU_GROUP	__nvvm_read_ptx_sreg_ctaid_x()
#define RPU_BARRIER()	__syncthreads()
#define RPU_ADD(to, n)	__nvvm_atom_add_gen_i((int *)(to), n)
#define RPU_WORD(x)	__builtin_bit_cast(unsigned int, x)
#define RPU_NUMBER(x)	__builtin_bit_cast(float, x)
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
	DEVICE kernels(const arguments &all) : arguments(all) { }

	DEVICE uint group() { return RPU_GROUP; }
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

#ifndef RPU_KERNEL
#define RPU_KERNEL(name, type)	extern "C"
#endif

#define KERNEL(name) \
RPU_KERNEL(name, arguments) __global__ void rpu_##name(const arguments all) \
{ \
	kernels(all).name(); \
}

KERNEL(above)
KERNEL(dark)
KERNEL(integrate)
KERNEL(keep)
KERNEL(pretreat)
KERNEL(rows)
KERNEL(scan)
