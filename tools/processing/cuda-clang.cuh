// SPDX-License-Identifier: LGPL-2.1-or-later
/* What the toolkit's headers have, as far as it is needed here, for clang without them. */
#ifndef RPU_CUDA_CLANG_CUH
#define RPU_CUDA_CLANG_CUH

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __CUDACC__ 1

static __host__ __device__ float floor(float x) { return __builtin_floorf(x); }
static __host__ __device__ float sqrt(float x) { return __builtin_sqrtf(x); }
static __host__ __device__ float log(float x) { return __builtin_logf(x); }

#endif /* RPU_CUDA_CLANG_CUH */
