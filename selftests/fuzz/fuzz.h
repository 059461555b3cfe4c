/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The fuzzer of the driver: steps that are derived from a seed. Step n of a thread is made
 * from nothing but the seed, the thread's number and n, so one thread replays exactly.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdatomic.h>

#include "../lib/common.h"

/* ------------------------------------------------------------- chance ---- */

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)	/* splitmix64 */
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline uint32_t below(struct rng *r, uint32_t n)
{
	return (uint32_t)(rng_next(r) >> 32) % n;
}

static inline bool one_in(struct rng *r, uint32_t n)
{
	return !below(r, n);
}

#define PICK(r, ...) ({						\
	const uint64_t values_[] = { __VA_ARGS__ };		\
	values_[below(r, ARRAY_SIZE(values_))]; })

/* Numbers at which something may wrap or end. */
static inline uint64_t odd_number(struct rng *r)
{
	uint64_t bit = 1ULL << below(r, 64);

	switch (below(r, 6)) {
	case 0:
		return bit;
	case 1:
		return bit - 1;
	case 2:
		return -bit;
	case 3:
		return PICK(r, 0, 1, UINT64_MAX, INT64_MAX, UINT32_MAX, INT32_MAX, 4095, 4097);
	case 4:
		return below(r, 256);
	default:
		return rng_next(r);
	}
}

/* ------------------------------------------------------- the run, fuzz.c --- */

#define THREADS_MAX	8
#define CALLS_MAX	64
#define RING		64	/* last steps of a thread that are kept */

struct note {
	uint64_t step;
	char text[56];
};

/* Shared by the process that makes the steps and the one that watches it. */
struct ring {
	_Atomic uint64_t step;
	_Atomic uint64_t calls, good;	/* ioctls, and those that succeeded */
	_Atomic uint64_t faults;	/* SIGSEGV and SIGBUS that were expected */
	_Atomic uint32_t tried[CALLS_MAX], served[CALLS_MAX];	/* by row of the table */
	struct note note[RING];
};

struct thread {
	struct rng rng;
	struct ring *ring;
	unsigned int number;
	uint64_t step;
	char *arg;		/* a page for arguments; before one without access */
	char *arg_ro;		/* a page that can only be read; likewise */
	char *side;		/* two pages for what arguments point to */
	char *sentence;		/* a page for reasons */
};

struct run {
	uint64_t seed, first, calls;
	unsigned int seconds, threads, boards;
	bool iommu;		/* without it the registers of a board are not written */
	struct fpga board[2];
	struct ring *rings;
	char *shared_arg;	/* arguments that several threads write */
	int first_fd;		/* of those that steps make */
};

extern struct run run;

/* Record the current action of the thread in the ring. */
void note(struct thread *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Report a failure, in the kernel's log, too, and end the run. */
_Noreturn void finding(struct thread *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ------------------------------------------------------ objects, pool.c --- */

enum kind {
	K_NONE, K_MEMORY, K_NODE, K_FPGA, K_MAP, K_CHANNEL, K_BUFFER, K_WINDOW, K_EVENTFD,
	K_OTHER, KINDS,
};

#define SLOTS	64
#define OWN_FD	900		/* from here on they are of one thread, and not of the pool */

void pool_init(void);
void fpga_path(struct rng *r, char *path, size_t size);
/* fd of that kind, mostly; else of another, closed, or never one. */
int pool_fd(struct thread *t, enum kind kind);
enum kind pool_kind(int fd);
void pool_put(struct thread *t, int fd, enum kind kind);
void pool_drop(struct thread *t);
void pool_drop_all(void);
void step_open(struct thread *t);
void step_close(struct thread *t);
void step_dup(struct thread *t);

/* ---------------------------------------------------------- ioctls, calls.c --- */

void step_ioctl(struct thread *t);
int next_fd(void);
void fill_name(struct rng *r, char *name);
uint64_t length_value(struct rng *r);

/* -------------------------------------------------------- mappings, maps.c --- */

void maps_init(void);
void maps_reset(void);		/* nothing of an object is mapped */
void step_mmap(struct thread *t);
void step_munmap(struct thread *t);
void step_change(struct thread *t);	/* mprotect, mremap, madvise ... */
void step_touch(struct thread *t);
/* An address in the range of the fuzzer's mappings, which holds nothing else. */
uint64_t map_address(struct rng *r);
/* Runs @fn; false if it faulted. */
bool guarded(struct thread *t, void (*fn)(void *arg), void *arg);
void guard_thread(struct thread *t);

/* ---------------------------------------------------------- all else, misc.c --- */

void step_file(struct thread *t);	/* read, write, poll, lseek, fdinfo */
void step_dmabuf(struct thread *t);
void step_fork(struct thread *t);
void step_sysfs(struct thread *t);
/* End the program if buffers of udmabuf, which must not be synced, cannot be distinguished. */
void check_udmabuf(void);
void step(struct thread *t);		/* fuzz.c: any of them */

#endif /* FUZZ_H */
