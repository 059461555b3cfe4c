/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Declarations of the functions that are called in CUDA's driver API (libcuda.so.1), so the build
 * needs no header of CUDA. tools/lib/tests/gpu-libraries/cuda-header.c compares them with cuda.h,
 * if that is installed.
 */
#ifndef CUDA_API_H
#define CUDA_API_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Results and devices are int, addresses of a GPU uint64_t. These structs are CUDA's. */
struct cuda_context;
struct cuda_stream;
struct cuda_module;
struct cuda_function;

/* Results. */
enum {
	CUDA_OUT_OF_MEMORY = 2, CUDA_NO_DEVICE = 100, CUDA_INVALID_IMAGE = 200,
	CUDA_ALREADY_REGISTERED = 712, CUDA_NO_BINARY = 209, CUDA_UNSUPPORTED_PTX = 222,
	CUDA_NOT_READY = 600, CUDA_NOT_SUPPORTED = 801, CUDA_NOT_PERMITTED = 800,
	CUDA_SYSTEM_MISMATCH = 803,
};

/* Attributes of a device. */
enum {
	CUDA_BUS = 33, CUDA_SLOT = 34, CUDA_DOMAIN = 50, CUDA_MAJOR = 75, CUDA_MINOR = 76,
	CUDA_PROCESSORS = 16, CUDA_FLUSHES = 98, CUDA_EXPORTS_FD = 103, CUDA_DIRECT_VMM = 110,
	CUDA_DIRECT = 116, CUDA_DIRECT_ORDER = 118, CUDA_DMABUF = 124,
};

/* Memory that is made of pages (VMM). */
struct cuda_location {
	int type;		/* 1: a device */
	int id;
};

struct cuda_pages {
	int type;		/* 1: pinned */
	int handles;		/* 1: a file descriptor */
	struct cuda_location location;
	void *of_windows;
	struct {
		unsigned char compression, direct;	/* direct: others may do DMA there */
		unsigned short usage;
		unsigned char reserved[4];
	} flags;
};

struct cuda_access {
	struct cuda_location location;
	int flags;		/* 3: read and write */
};

enum {
	CUDA_A_DEVICE = 1, CUDA_PINNED = 1, CUDA_HANDLE_FD = 1, CUDA_READ_WRITE = 3,
	CUDA_LEAST_GRANULARITY = 0, CUDA_RANGE_DMABUF = 1,
	CUDA_SYNC_MEMOPS = 6,	/* attribute of a pointer */
	CUDA_REGISTER_PORTABLE = 1, CUDA_REGISTER_MAP = 2, CUDA_REGISTER_IOMEM = 4,
	CUDA_REGISTER_READ_ONLY = 8,
};

/* Streams. */
enum {
	CUDA_NON_BLOCKING = 1,
	CUDA_WAIT_GEQ = 0, CUDA_WAIT_FLUSH = 1 << 30,
};

/* Calls of programs that compute: a member, the function without "cu", its parameters. */
#define CUDA_CALLS(X) \
	X(push, CtxPushCurrent_v2, struct cuda_context *context) \
	X(pop, CtxPopCurrent_v2, struct cuda_context **context) \
	X(error, GetErrorString, int result, const char **text) \
	X(attribute, DeviceGetAttribute, int *value, int attribute, int device) \
	X(alloc, MemAlloc_v2, uint64_t *address, size_t bytes) \
	X(free, MemFree_v2, uint64_t address) \
	X(alloc_host, MemHostAlloc, void **base, size_t bytes, unsigned int flags) \
	X(free_host, MemFreeHost, void *base) \
	X(load, ModuleLoadData, struct cuda_module **module, const void *image) \
	X(unload, ModuleUnload, struct cuda_module *module) \
	X(function, ModuleGetFunction, struct cuda_function **function, struct cuda_module *module, const char *name) \
	X(stream, StreamCreate, struct cuda_stream **stream, unsigned int flags) \
	X(end_stream, StreamDestroy_v2, struct cuda_stream *stream) \
	X(query, StreamQuery, struct cuda_stream *stream) \
	X(to_gpu, MemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, struct cuda_stream *stream) \
	X(to_host, MemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, struct cuda_stream *stream) \
	X(inside, MemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, struct cuda_stream *stream) \
	X(to_gpu_now, MemcpyHtoD_v2, uint64_t to, const void *from, size_t bytes) \
	X(to_host_now, MemcpyDtoH_v2, void *to, uint64_t from, size_t bytes) \
	X(fill, MemsetD32Async, uint64_t to, uint32_t word, size_t words, struct cuda_stream *stream) \
	X(launch, LaunchKernel, struct cuda_function *function, unsigned int groups_x, unsigned int groups_y, \
	  unsigned int groups_z, unsigned int lanes_x, unsigned int lanes_y, unsigned int lanes_z, unsigned int shared, \
	  struct cuda_stream *stream, void **arguments, void **more) \
	X(wait, StreamWaitValue32_v2, struct cuda_stream *stream, uint64_t word, uint32_t value, unsigned int flags) \
	X(write, StreamWriteValue32_v2, struct cuda_stream *stream, uint64_t word, uint32_t value, unsigned int flags)

struct cuda_calls {
#define CALL(member, name, ...) int (*member)(__VA_ARGS__);
	CUDA_CALLS(CALL)
#undef CALL
};

/* NULL, or the name of the first function that the library lacks. */
static inline const char *cuda_load(struct cuda_calls *cu, void *library)
{
	void *f;

#define CALL(member, name, ...) \
	f = dlsym(library, "cu" #name); \
	if (!f) \
		return "cu" #name; \
	memcpy(&cu->member, &f, sizeof(f));
	CUDA_CALLS(CALL)
#undef CALL
	return NULL;
}

#endif /* CUDA_API_H */
