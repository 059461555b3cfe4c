// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A stand-in for libcuda.so.1: it logs the calls, reports calls that a driver would refuse, and
 * runs copies, waits and kernels on processors. Its name says that it is not a GPU.
 *
 * STAND_IN_LOG: the file; lines that begin with WRONG are mistakes of the caller.
 * STAND_IN: words, separated by commas: no-dmabuf, no-vmm (memory is not made of pages), no-flush,
 * full (no memory), large (64 GiB), hang (kernels do not end), root (windows are for root), two
 * (GPUs), none.
 * STAND_IN_MEET: number of images of a drive. The copy in of image k, the kernels of image k - 1
 * and the copy out of image k - 2 begin together: round k of the log. Stages that do not overlap
 * wait for ever.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/cuda-api.h"
#include "lib/tests/gpu-libraries/lanes.h"
#include "lib/tests/gpu-libraries/note.h"

#define CALL(name)	__attribute__((visibility("default"))) int cu##name
#define GRANULARITY	(UINT64_C(2) << 20)
#define RANGES		256
#define INVALID		1
#define NOT_FOUND	500
#define ILLEGAL		700

static int contexts;		/* retained */
static _Thread_local int current;	/* pushed */

/* Log a mistake of the caller. */
#define WRONG(...)	(note("WRONG: " __VA_ARGS__), INVALID)

/* Most calls need a context in their thread. */
#define NEEDS_CONTEXT() do { \
	if (!current) \
		return note("WRONG: %s: no context is current", __func__), 201; \
} while (0)

/* --- memory --- */

struct range {
	char name[24];
	uint64_t begin, bytes;
	enum kind { FREE, PLAIN, HOST, REGISTERED, RESERVED, PAGES } kind;
	int fd;			/* file with its pages */
	uint64_t pages;		/* reserved: pages mapped there; 0: none */
	int users;		/* users of the pages */
	bool access, host, window;
};

static struct range range[RANGES];
static unsigned int made;

static struct range *new_range(enum kind kind, const char *name, uint64_t begin, uint64_t bytes)
{
	for (unsigned int i = 0; i < RANGES; i++) {
		if (range[i].kind != FREE)
			continue;
		range[i] = (struct range) {
			.begin = begin, .bytes = bytes, .kind = kind, .fd = -1,
		};
		snprintf(range[i].name, sizeof(range[i].name), "%.10s%u", name, ++made);
		return &range[i];
	}
	abort();
}

static struct range *at(uint64_t begin, enum kind kind)
{
	for (unsigned int i = 0; i < RANGES; i++) {
		if (range[i].kind == kind && range[i].begin == begin)
			return &range[i];
	}
	return NULL;
}

/* The range that contains all these bytes, if the GPU can reach them. */
static const struct range *reachable(uint64_t begin, uint64_t bytes)
{
	for (unsigned int i = 0; i < RANGES; i++) {
		const struct range *r = &range[i];

		if (r->kind == FREE || r->kind == PAGES || (r->kind == RESERVED && !r->access))
			continue;
		if (begin >= r->begin && bytes <= r->bytes && begin - r->begin <= r->bytes - bytes)
			return r;
	}
	return NULL;
}

static const char *name_of(uint64_t begin, char text[64])
{
	const struct range *r = reachable(begin, 1);

	if (!r)
		snprintf(text, 64, "%#" PRIx64, begin);
	else if (begin == r->begin)
		snprintf(text, 64, "%s", r->name);
	else
		snprintf(text, 64, "%s+%" PRIu64, r->name, begin - r->begin);
	return text;
}

static void *memory_of(int fd, uint64_t bytes, void *where)
{
	return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (where ? MAP_FIXED : 0), fd,
		    0);
}

static int new_fd(uint64_t bytes)
{
	const int fd = memfd_create("stand-in GPU memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)))
		abort();
	return fd;
}

CALL(MemAlloc_v2)(uint64_t *address, size_t bytes)
{
	struct range *r;
	void *base;
	int fd;

	NEEDS_CONTEXT();
	if (told("full"))
		return CUDA_OUT_OF_MEMORY;
	fd = new_fd(bytes);
	base = memory_of(fd, bytes, NULL);
	if (base == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r = new_range(PLAIN, "memory", (uintptr_t)base, bytes);
	r->fd = fd;
	*address = r->begin;
	note("cuMemAlloc %s %zu", r->name, bytes);
	return 0;
}

static int let_go(const char *call, uint64_t begin, enum kind kind)
{
	struct range *r = at(begin, kind);

	if (!r)
		return WRONG("%s: %#" PRIx64 " is none", call, begin);
	note("%s %s", call, r->name);
	if (kind != REGISTERED)
		munmap((void *)(uintptr_t)r->begin, r->bytes);
	if (r->fd >= 0)
		close(r->fd);
	r->kind = FREE;
	return 0;
}

CALL(MemFree_v2)(uint64_t address)
{
	NEEDS_CONTEXT();
	return let_go("cuMemFree", address, PLAIN);
}

CALL(MemHostAlloc)(void **base, size_t bytes, unsigned int flags)
{
	struct range *r;

	NEEDS_CONTEXT();
	*base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*base == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r = new_range(HOST, "host", (uintptr_t)*base, bytes);
	r->host = true;
	note("cuMemHostAlloc %s %zu %u", r->name, bytes, flags);
	return 0;
}

CALL(MemFreeHost)(void *base)
{
	NEEDS_CONTEXT();
	return let_go("cuMemFreeHost", (uintptr_t)base, HOST);
}

CALL(MemHostRegister_v2)(void *base, size_t bytes, unsigned int flags)
{
	const unsigned int page = sysconf(_SC_PAGESIZE);
	struct range *r;

	NEEDS_CONTEXT();
	if ((uintptr_t)base % page || bytes % page || !bytes)
		return WRONG("cuMemHostRegister: not whole pages");
	if (at((uintptr_t)base, REGISTERED))
		return CUDA_ALREADY_REGISTERED;
	if (flags & CUDA_REGISTER_IOMEM && told("root"))
		return CUDA_NOT_PERMITTED;
	r = new_range(REGISTERED, flags & CUDA_REGISTER_IOMEM ? "window" : "registered",
		      (uintptr_t)base, bytes);
	r->host = true;
	r->window = flags & CUDA_REGISTER_IOMEM;
	note("cuMemHostRegister %s %zu %u", r->name, bytes, flags);
	return 0;
}

CALL(MemHostUnregister)(void *base)
{
	NEEDS_CONTEXT();
	return let_go("cuMemHostUnregister", (uintptr_t)base, REGISTERED);
}

CALL(MemHostGetDevicePointer_v2)(uint64_t *address, void *base, unsigned int flags)
{
	NEEDS_CONTEXT();
	if (flags || !(at((uintptr_t)base, REGISTERED) || at((uintptr_t)base, HOST)))
		return WRONG("cuMemHostGetDevicePointer: memory not registered");
	*address = (uintptr_t)base;
	return 0;
}

CALL(PointerSetAttribute)(const void *value, int attribute, uint64_t address)
{
	const struct range *r = at(address, PLAIN);

	NEEDS_CONTEXT();
	if (attribute != CUDA_SYNC_MEMOPS || !r)
		return WRONG("cuPointerSetAttribute: %d", attribute);
	note("cuPointerSetAttribute %s sync-memops %u", r->name, *(const unsigned int *)value);
	return 0;
}

/* --- memory that is made of pages --- */

static bool good_pages(const struct cuda_pages *p)
{
	return p->type == CUDA_PINNED && p->location.type == CUDA_A_DEVICE &&
	       p->location.id >= 0 && !p->of_windows;
}

CALL(MemGetAllocationGranularity)(size_t *bytes, const struct cuda_pages *wanted, int option)
{
	if (!good_pages(wanted) || option != CUDA_LEAST_GRANULARITY)
		return WRONG("cuMemGetAllocationGranularity: wrong arguments");
	*bytes = GRANULARITY;
	return 0;
}

CALL(MemCreate)(uint64_t *pages, size_t bytes, const struct cuda_pages *wanted,
		unsigned long long flags)
{
	struct range *r;

	if (!good_pages(wanted) || flags || bytes % GRANULARITY || !bytes)
		return WRONG("cuMemCreate: %zu bytes", bytes);
	if (told("full"))
		return CUDA_OUT_OF_MEMORY;
	r = new_range(PAGES, "pages", 0, bytes);
	r->fd = new_fd(bytes);
	r->begin = *pages = 0xabc000 + (r - range);
	r->users = 1;
	note("cuMemCreate %s %zu handles %d direct %d", r->name, bytes, wanted->handles,
	     wanted->flags.direct);
	return 0;
}

/* They go with their last user: a handle, or a mapping. */
static void drop_pages(struct range *r)
{
	if (--r->users)
		return;
	close(r->fd);
	r->kind = FREE;
}

CALL(MemRelease)(uint64_t pages)
{
	struct range *r = at(pages, PAGES);

	if (!r)
		return WRONG("cuMemRelease: no such pages");
	note("cuMemRelease %s", r->name);
	drop_pages(r);
	return 0;
}

CALL(MemAddressReserve)(uint64_t *address, size_t bytes, size_t alignment,
			uint64_t wanted, unsigned long long flags)
{
	struct range *r;
	void *base;

	if (bytes % GRANULARITY || !bytes || flags || wanted || alignment & (alignment - 1))
		return WRONG("cuMemAddressReserve: %zu bytes", bytes);
	base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r = new_range(RESERVED, "address", (uintptr_t)base, bytes);
	*address = r->begin;
	note("cuMemAddressReserve %s %zu", r->name, bytes);
	return 0;
}

CALL(MemAddressFree)(uint64_t address, size_t bytes)
{
	const struct range *r = at(address, RESERVED);

	if (!r || r->bytes != bytes)
		return WRONG("cuMemAddressFree: %zu bytes are none", bytes);
	if (r->pages)
		return WRONG("cuMemAddressFree: %s is mapped", r->name);
	return let_go("cuMemAddressFree", address, RESERVED);
}

CALL(MemMap)(uint64_t address, size_t bytes, size_t offset, uint64_t pages,
	     unsigned long long flags)
{
	struct range *r = at(address, RESERVED), *p = at(pages, PAGES);

	if (!r || !p || r->pages || r->bytes != bytes || p->bytes != bytes || offset || flags)
		return WRONG("cuMemMap: %zu bytes", bytes);
	if (memory_of(p->fd, bytes, (void *)(uintptr_t)address) == MAP_FAILED)
		return CUDA_OUT_OF_MEMORY;
	r->pages = pages;
	p->users++;
	note("cuMemMap %s %s", r->name, p->name);
	return 0;
}

CALL(MemUnmap)(uint64_t address, size_t bytes)
{
	struct range *r = at(address, RESERVED);

	if (!r || !r->pages || r->bytes != bytes)
		return WRONG("cuMemUnmap: %zu bytes", bytes);
	note("cuMemUnmap %s", r->name);
	drop_pages(at(r->pages, PAGES));
	r->pages = 0;
	r->access = false;
	return 0;
}

CALL(MemSetAccess)(uint64_t address, size_t bytes, const struct cuda_access *access,
		   size_t count)
{
	struct range *r = at(address, RESERVED);

	if (!r || !r->pages || r->bytes != bytes || count != 1 ||
	    access->flags != CUDA_READ_WRITE || access->location.type != CUDA_A_DEVICE)
		return WRONG("cuMemSetAccess: %zu bytes", bytes);
	r->access = true;
	note("cuMemSetAccess %s %d", r->name, access->flags);
	return 0;
}

CALL(MemGetHandleForAddressRange)(void *handle, uint64_t address, size_t bytes, int type,
				  unsigned long long flags)
{
	const struct range *r = reachable(address, bytes), *p;

	NEEDS_CONTEXT();
	if (!r || r->host || type != CUDA_RANGE_DMABUF || flags ||
	    address % sysconf(_SC_PAGESIZE) || bytes % sysconf(_SC_PAGESIZE))
		return WRONG("cuMemGetHandleForAddressRange: %zu bytes", bytes);
	if (told("no-dmabuf"))
		return CUDA_NOT_SUPPORTED;
	p = r->kind == RESERVED ? at(r->pages, PAGES) : r;
	*(int *)handle = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);
	note("cuMemGetHandleForAddressRange %s %zu dma-buf", r->name, bytes);
	return 0;
}

/* --- the device and its context --- */

CALL(Init)(unsigned int flags)
{
	note("cuInit %u", flags);
	return told("none") ? CUDA_NO_DEVICE : 0;
}

CALL(DriverGetVersion)(int *version)
{
	*version = 13000;
	return 0;
}

CALL(DeviceGetCount)(int *count)
{
	*count = told("two") ? 2 : 1;
	return 0;
}

CALL(DeviceGet)(int *device, int number)
{
	*device = number;
	return 0;
}

CALL(DeviceGetName)(char *name, int size, int device)
{
	snprintf(name, size, "stand-in %d for a GPU: processors", device);
	return 0;
}

CALL(DeviceTotalMem_v2)(size_t *bytes, int device)
{
	(void)device;
	*bytes = UINT64_C(1) << (told("large") ? 36 : 32);
	return 0;
}

CALL(DeviceGetAttribute)(int *value, int attribute, int device)
{
	switch (attribute) {
	case CUDA_BUS:
		*value = 0x41 + device;
		break;
	case CUDA_MAJOR:
		*value = 8;
		break;
	case CUDA_PROCESSORS:
		*value = 4;
		break;
	case CUDA_FLUSHES:
		*value = !told("no-flush");
		break;
	case CUDA_DMABUF:
	case CUDA_DIRECT:
		*value = !told("no-dmabuf");
		break;
	case CUDA_EXPORTS_FD:
	case CUDA_DIRECT_VMM:
		*value = !told("no-vmm");
		break;
	default:
		*value = 0;
	}
	return 0;
}

CALL(DevicePrimaryCtxRetain)(struct cuda_context **context, int device)
{
	*context = (struct cuda_context *)(uintptr_t)(0xc00 + device);
	contexts++;
	note("cuDevicePrimaryCtxRetain %d", device);
	return 0;
}

CALL(DevicePrimaryCtxRelease_v2)(int device)
{
	note("cuDevicePrimaryCtxRelease %d", device);
	if (!contexts)
		return WRONG("cuDevicePrimaryCtxRelease: no context");
	if (--contexts)
		return 0;
	/* remaining memory is lost with it */
	for (unsigned int i = 0; i < RANGES; i++) {
		if (range[i].kind != FREE)
			note("WRONG: %s is left", range[i].name);
	}
	return 0;
}

CALL(CtxPushCurrent_v2)(struct cuda_context *context)
{
	if (!context || !contexts)
		return WRONG("cuCtxPushCurrent: no context");
	current++;
	return 0;
}

CALL(CtxPopCurrent_v2)(struct cuda_context **context)
{
	if (!current)
		return WRONG("cuCtxPopCurrent: no current context");
	current--;
	*context = NULL;
	return 0;
}

CALL(GetErrorString)(int result, const char **text)
{
	(void)result;
	*text = "said by a stand-in";
	return 0;
}

/* --- modules --- */

static const char *image;	/* text of the module, if it is text */

/* Code that nvcc made, or PTX. */
CALL(ModuleLoadData)(struct cuda_module **module, const void *data)
{
	static const unsigned char fat[] = { 0x50, 0xed, 0x55, 0xba };
	const bool is_fat = !memcmp(data, fat, sizeof(fat));

	NEEDS_CONTEXT();
	if (!is_fat && !strstr(data, ".version"))
		return WRONG("cuModuleLoadData: neither code nor PTX");
	image = is_fat ? NULL : data;
	*module = (struct cuda_module *)0x30d;
	note("cuModuleLoadData %s", is_fat ? "fatbin" : "PTX");
	return 0;
}

CALL(ModuleUnload)(struct cuda_module *module)
{
	(void)module;
	note("cuModuleUnload");
	return 0;
}

struct cuda_function {
	lanes_body body;
	char name[48];
};

CALL(ModuleGetFunction)(struct cuda_function **function, struct cuda_module *module,
			const char *name)
{
	static struct cuda_function all[32];
	char entry[80];
	unsigned int i;

	(void)module;
	NEEDS_CONTEXT();
	snprintf(entry, sizeof(entry), ".entry %s(", name);
	if (!lanes_kernel(name) || (image && !strstr(image, entry)))
		return NOT_FOUND;
	for (i = 0; i < 31 && all[i].body && strcmp(all[i].name, name); i++)
		;
	all[i].body = lanes_kernel(name);
	snprintf(all[i].name, sizeof(all[i].name), "%s", name);
	*function = &all[i];
	return 0;
}

/* --- streams: a thread each --- */

struct work {
	struct work *next;
	enum { COPY, FILL, KERNEL, WAIT, WRITE } kind;
	uint64_t to, from, bytes;
	uint32_t word;
	lanes_body body;
	unsigned int groups, lanes;
	char arguments[512];
};

struct cuda_stream {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct work *first, **last;
	unsigned int number, left;
	atomic_bool end;
	atomic_int failed;
};

/* The engine has stream 1, the stages of the drive have those after it. */
static void meet(const struct cuda_stream *s)
{
	static atomic_uint begun[3];
	const unsigned int images = atoi(getenv("STAND_IN_MEET") ?: "0"), stage = s->number - 2;
	unsigned int round;

	if (!images || stage >= 3)
		return;
	round = atomic_fetch_add(&begun[stage], 1) + stage;
	note("round %u stage %u", round, stage);
	for (unsigned int other = 0; other < 3; other++) {
		while (round - other < images && begun[other] + other <= round && !s->end)
			sched_yield();
	}
}

/* Each wait, so that the tests need no clock. */
static void do_work(struct cuda_stream *s, const struct work *w)
{
	atomic_uint *word = (atomic_uint *)(uintptr_t)w->to;

	if (w->kind == COPY || w->kind == FILL)
		meet(s);
	switch (w->kind) {
	case COPY:
		memcpy((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
		break;
	case FILL:
		for (uint64_t i = 0; i < w->bytes / 4; i++)
			((uint32_t *)(uintptr_t)w->to)[i] = w->word;
		break;
	case KERNEL:
		while (told("hang") && !s->end)
			sched_yield();
		if (!lanes_run(w->body, w->arguments, w->groups, w->lanes)) {
			note("WRONG: lanes of a group come to different barriers");
			s->failed = ILLEGAL;
		}
		break;
	case WAIT:
		while ((int32_t)(atomic_load(word) - w->word) < 0 && !s->end)
			sched_yield();
		break;
	case WRITE:
		atomic_store(word, w->word);
		break;
	}
}

static void *stream_main(void *of)
{
	struct cuda_stream *s = of;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct work *w = s->first;

		if (!w && s->end)
			break;
		if (!w) {
			pthread_cond_wait(&s->more, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		if (!s->failed && !s->end)
			do_work(s, w);
		pthread_mutex_lock(&s->lock);
		s->first = w->next;
		if (!s->first)
			s->last = &s->first;
		s->left--;
		free(w);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

CALL(StreamCreate)(struct cuda_stream **stream, unsigned int flags)
{
	static unsigned int streams;
	struct cuda_stream *s = calloc(1, sizeof(*s));

	NEEDS_CONTEXT();
	if (!s)
		abort();
	s->number = ++streams;
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->more, NULL);
	if (pthread_create(&s->thread, NULL, stream_main, s))
		abort();
	*stream = s;
	note("cuStreamCreate stream%u %u", s->number, flags);
	return 0;
}

/* CUDA lets what was enqueued end; here a wait without end is a mistake, and ends. */
CALL(StreamDestroy_v2)(struct cuda_stream *s)
{
	NEEDS_CONTEXT();
	note("cuStreamDestroy stream%u", s->number);
	pthread_mutex_lock(&s->lock);
	if (s->left)
		note("WRONG: stream%u: %u are left", s->number, s->left);
	s->end = true;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	free(s);
	return 0;
}

CALL(StreamQuery)(struct cuda_stream *s)
{
	int result;

	NEEDS_CONTEXT();
	pthread_mutex_lock(&s->lock);
	result = s->left ? CUDA_NOT_READY : s->failed;
	pthread_mutex_unlock(&s->lock);
	return result;
}

static int enqueue(struct cuda_stream *s, const struct work *like)
{
	struct work *w = malloc(sizeof(*w));

	if (!w)
		abort();
	*w = *like;
	w->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->last = w;
	s->last = &w->next;
	s->left++;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int copy(const char *call, struct cuda_stream *s, uint64_t to, uint64_t from, size_t bytes,
		bool to_host, bool from_host)
{
	const struct range *a = reachable(to, bytes), *b = reachable(from, bytes);
	char text[2][64];

	if (!current)
		return WRONG("%s: no context is current", call);
	if (!a || !b)
		return WRONG("%s: %zu bytes of %s: pageable, or not there", call, bytes,
			     a ? "the source" : "the destination");
	if (a->host != to_host || b->host != from_host)
		return WRONG("%s: %s to %s", call, b->name, a->name);
	note("%s stream%u %s %s %zu", call, s->number, name_of(to, text[0]),
	     name_of(from, text[1]), bytes);
	return enqueue(s, &(struct work) { .kind = COPY, .to = to, .from = from, .bytes = bytes });
}

CALL(MemcpyHtoDAsync_v2)(uint64_t to, const void *from, size_t bytes, struct cuda_stream *s)
{
	return copy("cuMemcpyHtoDAsync", s, to, (uintptr_t)from, bytes, false, true);
}

CALL(MemcpyDtoHAsync_v2)(void *to, uint64_t from, size_t bytes, struct cuda_stream *s)
{
	return copy("cuMemcpyDtoHAsync", s, (uintptr_t)to, from, bytes, true, false);
}

CALL(MemcpyDtoDAsync_v2)(uint64_t to, uint64_t from, size_t bytes, struct cuda_stream *s)
{
	return copy("cuMemcpyDtoDAsync", s, to, from, bytes, false, false);
}

/* These take what is pageable, and have ended when they return. */
static int copy_now(const char *call, uint64_t gpu, void *to, const void *from, size_t bytes)
{
	const struct range *r = reachable(gpu, bytes);

	if (!current)
		return WRONG("%s: no context is current", call);
	if (!r || r->host)
		return WRONG("%s: %zu bytes of what is no memory of the GPU", call, bytes);
	note("%s %s %zu", call, r->name, bytes);
	memcpy(to, from, bytes);
	return 0;
}

CALL(MemcpyHtoD_v2)(uint64_t to, const void *from, size_t bytes)
{
	return copy_now("cuMemcpyHtoD", to, (void *)(uintptr_t)to, from, bytes);
}

CALL(MemcpyDtoH_v2)(void *to, uint64_t from, size_t bytes)
{
	return copy_now("cuMemcpyDtoH", from, to, (const void *)(uintptr_t)from, bytes);
}

CALL(MemsetD32Async)(uint64_t to, uint32_t word, size_t words, struct cuda_stream *s)
{
	char text[64];

	NEEDS_CONTEXT();
	if (!reachable(to, 4 * words))
		return WRONG("cuMemsetD32Async: %zu words", words);
	note("cuMemsetD32Async stream%u %s %u %zu", s->number, name_of(to, text), word, words);
	return enqueue(s, &(struct work) {
		.kind = FILL, .to = to, .word = word, .bytes = 4 * words,
	});
}

/* All kernels have one argument, a struct; its size is not told. */
CALL(LaunchKernel)(struct cuda_function *f, unsigned int groups, unsigned int y, unsigned int z,
		   unsigned int lanes, unsigned int lanes_y, unsigned int lanes_z,
		   unsigned int shared, struct cuda_stream *s, void **arguments, void **more)
{
	struct work w = { .kind = KERNEL, .groups = groups, .lanes = lanes };

	NEEDS_CONTEXT();
	if (!f || !groups || groups > INT32_MAX || y != 1 || z != 1 || !lanes || lanes > 1024 ||
	    lanes_y != 1 || lanes_z != 1 || shared || more)
		return WRONG("cuLaunchKernel: %u groups of %u", groups, lanes);
	w.body = f->body;
	memcpy(w.arguments, arguments[0], lanes_size(f->name));
	note("cuLaunchKernel stream%u %s %u %u", s->number, f->name, groups, lanes);
	return enqueue(s, &w);
}

CALL(StreamWaitValue32_v2)(struct cuda_stream *s, uint64_t word, uint32_t value, unsigned int flags)
{
	char text[64];

	NEEDS_CONTEXT();
	if (!reachable(word, 4) || word % 4 || flags & ~(unsigned int)CUDA_WAIT_FLUSH)
		return WRONG("cuStreamWaitValue32: flags %#x", flags);
	if (flags && told("no-flush"))
		return WRONG("cuStreamWaitValue32: there is no flush");
	note("cuStreamWaitValue32 stream%u %s >= %u%s", s->number, name_of(word, text), value,
	     flags ? " flush" : "");
	return enqueue(s, &(struct work) { .kind = WAIT, .to = word, .word = value });
}

CALL(StreamWriteValue32_v2)(struct cuda_stream *s, uint64_t word, uint32_t value,
			    unsigned int flags)
{
	char text[64];

	NEEDS_CONTEXT();
	if (!reachable(word, 4) || word % 4 || flags)
		return WRONG("cuStreamWriteValue32: flags %#x", flags);
	note("cuStreamWriteValue32 stream%u %s %u", s->number, name_of(word, text), value);
	return enqueue(s, &(struct work) { .kind = WRITE, .to = word, .word = value });
}
