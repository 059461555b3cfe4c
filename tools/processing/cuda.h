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
	uint32_t unused;
	uint64_t at[RPU_PLACES];
};

/* Functions of CUDA: a table in cuda.c has their names. */
struct rpu_cuda_calls {
	int (*push)(struct cuda_context *context);
	int (*pop)(struct cuda_context **context);
	int (*error)(int result, const char **text);
	int (*attribute)(int *value, int attribute, int device);
	int (*alloc)(uint64_t *address, size_t bytes);
	int (*free)(uint64_t address);
	int (*alloc_host)(void **base, size_t bytes, unsigned int flags);
	int (*free_host)(void *base);
	int (*load)(struct cuda_module **module, const void *image);
	int (*unload)(struct cuda_module *module);
	int (*function)(struct cuda_function **function, struct cuda_module *module,
			const char *name);
	int (*stream)(struct cuda_stream **stream, unsigned int flags);
	int (*end_stream)(struct cuda_stream *stream);
	int (*query)(struct cuda_stream *stream);
	int (*to_gpu)(uint64_t to, const void *from, size_t bytes, struct cuda_stream *stream);
	int (*to_host)(void *to, uint64_t from, size_t bytes, struct cuda_stream *stream);
	int (*inside)(uint64_t to, uint64_t from, size_t bytes,
		      struct cuda_stream *stream);
	int (*fill)(uint64_t to, uint32_t word, size_t words, struct cuda_stream *stream);
	int (*launch)(struct cuda_function *function, unsigned int groups_x,
		      unsigned int groups_y, unsigned int groups_z, unsigned int lanes_x,
		      unsigned int lanes_y, unsigned int lanes_z, unsigned int shared,
		      struct cuda_stream *stream, void **arguments, void **more);
	int (*wait)(struct cuda_stream *stream, uint64_t word, uint32_t value,
		    unsigned int flags);
	int (*write)(struct cuda_stream *stream, uint64_t word, uint32_t value,
		     unsigned int flags);
};

struct rpu_cuda {
	struct rpu_gpu head;		/* first */
	struct rpu_cuda_calls cu;
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
