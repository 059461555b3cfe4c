// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A persistent thread of a CUDA GPU drives the board, or a launch processes a datagram. nvcc compiles
 * this file, and so does clang, without any header of CUDA's; a test does for processors, and has
 * defined what is CUDA's.
 */
#ifndef RPU_KERNEL
#ifdef __NVCC__
#define RPU_WORD(x)	__float_as_uint(x)
#define RPU_ROOT(x)	sqrtf(x)
#define RPU_GROUP	blockIdx.x
#else
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __forceinline__ inline __attribute__((always_inline))
#define RPU_WORD(x)	__builtin_bit_cast(uint, x)
#define RPU_ROOT(x)	__builtin_sqrtf(x)
#define RPU_GROUP	__nvvm_read_ptx_sreg_ctaid_x()
#endif
#define RPU_KERNEL(name, type)	extern "C"
#define RPU_LOAD(word, from) \
	asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(word) : "l"(from) : "memory")
#define RPU_FENCE()	asm volatile("fence.acq_rel.sys;" : : : "memory")
#define DEVICE		__device__ __forceinline__
typedef unsigned int uint;
#endif

/* struct loop_plan of loop.h */
struct loop_words {
	uint told, descriptors, events, receive, source, answers, came, hits, fits;
	uint descriptors_log2, events_log2, slot_log2, words;
	uint run, total, window, stale_at, tail_at, rounds, data, to;
};

/* struct arguments of cuda.c */
struct loop_arguments {
	volatile uint *word, *bell;
	loop_words P;
	uint kind;
};

struct loops : loop_arguments {
	DEVICE loops(const loop_arguments &all) : loop_arguments(all) { }

	DEVICE uint load(uint i)
	{
		uint value;

		RPU_LOAD(value, (const uint *)&word[i]);
		return value;
	}

#define OWN		DEVICE
#define OWN_WORDS
#define KIND		kind
#define GROUP		RPU_GROUP
#define WORD(i)		load(i)
#define PUT(i, value)	word[i] = value
#define PUBLISH()	RPU_FENCE()
#define BELL(at, value)	bell[at] = value
#define IDLE()
#define PROCESS(data, to)	drive_process(data, to)
#define INT(x)		int(x)
#define FLOAT(x)	float(x)
#define BITS(x)		RPU_WORD(x)
#define SQRT(x)		RPU_ROOT(x)

#include "bench/loop/drive.h"

	DEVICE void loop() { drive(); }
};

RPU_KERNEL(loop, loop_arguments) __global__ void rpu_loop(const loop_arguments all)
{
	loops(all).loop();
}
