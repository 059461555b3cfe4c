/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the engine of CUDA have in common. */
#ifndef RPU_CUDA_H
#define RPU_CUDA_H

#include "cuda-api.h"
#include "gpu.h"

/* What a kernel is given, each time; "struct arguments" of cuda.cu. */
struct rpu_arguments {
	struct rpu_push push;
	struct rpu_constants constants;
	uint32_t unused;
	cuda_address at[RPU_PLACES];
};

/* Functions of CUDA: a table in cuda.c has their names. */
struct rpu_cuda_calls {
	cuda_result (*push)(cuda_context context);
	cuda_result (*pop)(cuda_context *context);
	cuda_result (*error)(cuda_result result, const char **text);
	cuda_result (*attribute)(int *value, int attribute, cuda_device device);
	cuda_result (*alloc)(cuda_address *address, size_t bytes);
	cuda_result (*free)(cuda_address address);
	cuda_result (*alloc_host)(void **base, size_t bytes, unsigned int flags);
	cuda_result (*free_host)(void *base);
	cuda_result (*load)(cuda_module *module, const void *image);
	cuda_result (*unload)(cuda_module module);
	cuda_result (*function)(cuda_function *function, cuda_module module, const char *name);
	cuda_result (*stream)(cuda_stream *stream, unsigned int flags);
	cuda_result (*end_stream)(cuda_stream stream);
	cuda_result (*query)(cuda_stream stream);
	cuda_result (*to_gpu)(cuda_address to, const void *from, size_t bytes, cuda_stream stream);
	cuda_result (*to_host)(void *to, cuda_address from, size_t bytes, cuda_stream stream);
	cuda_result (*inside)(cuda_address to, cuda_address from, size_t bytes,
			      cuda_stream stream);
	cuda_result (*fill)(cuda_address to, uint32_t word, size_t words, cuda_stream stream);
	cuda_result (*launch)(cuda_function function, unsigned int groups_x,
			      unsigned int groups_y, unsigned int groups_z, unsigned int lanes_x,
			      unsigned int lanes_y, unsigned int lanes_z, unsigned int shared,
			      cuda_stream stream, void **arguments, void **more);
	cuda_result (*wait)(cuda_stream stream, cuda_address word, uint32_t value,
			    unsigned int flags);
	cuda_result (*write)(cuda_stream stream, cuda_address word, uint32_t value,
			     unsigned int flags);
};

struct rpu_cuda {
	struct rpu_gpu head;		/* first */
	struct rpu_cuda_calls cu;
	struct rashpa_gpu_cuda by_cuda;
	cuda_module module;
	cuda_stream stream;
	cuda_function function[RPU_KERNELS];
	struct rpu_constants constants[RPU_KERNELS];
	struct {
		cuda_address address;
		uint64_t bytes;
		void *host;		/* where we have it; NULL: it is the GPU's */
		bool foreign;		/* it was offered */
	} at[RPU_PLACES];
	void *staging;			/* pinned: others would be copied twice, and block */
	cuda_result failed;		/* the first one of a batch */
	bool lost;			/* it does not answer: nothing more is asked of it */
};

#endif /* RPU_CUDA_H */
