/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of the CUDA engine. */
#ifndef RPU_CUDA_H
#define RPU_CUDA_H

#include "lib/cuda-api.h"
#include "processing/gpu.h"

/* Arguments of each launch of a kernel; "struct arguments" of cuda.cu. */
struct rpu_arguments {
	struct rpu_push push;
	struct rpu_constants constants;
	uint64_t at[RPU_PLACES];
};

struct rpu_cuda {
	struct rpu_gpu head;		/* first */
	struct cuda_calls cu;
	struct rashpa_gpu_cuda by_cuda;
	struct cuda_module *module;
	struct cuda_stream *stream;
	struct cuda_function *function[RPU_KERNELS];
	struct rpu_constants constants[RPU_KERNELS];
	struct {
		uint64_t address;
		uint64_t bytes;
		void *host;		/* where we have it; NULL: it is the GPU's */
		bool foreign;		/* it was offered */
	} at[RPU_PLACES];
	void *staging;			/* pinned: others would be copied twice, and block */
	int failed;		/* the first one of a batch */
	bool lost;			/* it does not answer: nothing more is asked of it */
};

#endif /* RPU_CUDA_H */
