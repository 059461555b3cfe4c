// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=8 run=build/tools/places-selftest */
/*
 * Places of a stream in a file, whose consumers join, leave and die while the producer waits for credit:
 * TAP. Each thread opens its handles. All map the file at one address, so that the thread sanitizer sees
 * what one process does to memory that another one reads: sanitize.sh.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#define TAP_WHY rashpa_reason()
#include "tests/tap.h"

#define WIDTH	32
#define HEIGHT	4
#define SLOTS	6
#define STACKS	6000
#define DEATHS	4		/* each is noticed after half a second */
#define WORKERS	3
#define HANG_S	120		/* only for hangs */
#define FOREVER	(-1)

static char path[64];
static _Atomic uint32_t released[STACKS];	/* in the place of workers */
static _Atomic uint64_t all_released, joins, deaths, wrong, disorder;
static struct rashpa_stream *dead[DEATHS];	/* handles without a file */

/* --- one map for all handles, and locks that the sanitizer knows --- */

static struct {
	void *base;
	size_t length;
	unsigned int users;
	dev_t device;
	ino_t inode;
} map;
static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;
static char order;

void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));
void *__real_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t length);
int __real_fcntl(int fd, int command, ...);
int __real_close(int fd);
void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t length);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_close(int fd);

void *__wrap_mmap(void *at, size_t length, int prot, int flags, int fd, off_t offset)
{
	struct stat st;
	void *base;

	if (fd < 0 || offset || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return __real_mmap(at, length, prot, flags, fd, offset);
	pthread_mutex_lock(&map_lock);
	if (!map.users) {
		map.base = __real_mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		map.length = length;
		map.device = st.st_dev;
		map.inode = st.st_ino;
	}
	if (map.device != st.st_dev || map.inode != st.st_ino || map.length != length)
		abort();
	map.users++;
	base = map.base;
	pthread_mutex_unlock(&map_lock);
	return base;
}

int __wrap_munmap(void *at, size_t length)
{
	if (at != map.base)
		return __real_munmap(at, length);
	pthread_mutex_lock(&map_lock);
	if (!--map.users)
		__real_munmap(at, length);
	pthread_mutex_unlock(&map_lock);
	return 0;
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list more;
	void *argument;
	int result;

	va_start(more, command);
	argument = va_arg(more, void *);
	va_end(more);
	if (command == F_OFD_SETLK && __tsan_release)
		__tsan_release(&order);
	result = __real_fcntl(fd, command, argument);
	if (!result && (command == F_OFD_SETLK || command == F_OFD_GETLK) && __tsan_acquire)
		__tsan_acquire(&order);
	return result;
}

/* As a process that ends, it loses its locks. */
int __wrap_close(int fd)
{
	if (__tsan_release)
		__tsan_release(&order);
	return __real_close(fd);
}

/* --- both sides --- */

static void *produce(void *argument)
{
	struct rashpa_stream *s = argument;
	struct rashpa_stack st;

	for (uint32_t n = 0; n < STACKS && rashpa_stream_slot(s, &st, FOREVER) > 0; n++) {
		uint16_t *pixel = st.data;

		for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
			pixel[i] = st.number;
		rashpa_stream_publish(s, &st);
	}
	rashpa_stream_close(s);
	return NULL;
}

static bool right(const struct rashpa_stack *st)
{
	const uint16_t *pixel = st->data;

	for (uint32_t i = 0; i < WIDTH * HEIGHT; i++) {
		if (pixel[i] != (uint16_t)st->number)
			return false;
	}
	return true;
}

static struct rashpa_stream *join(const char *name, uint32_t workers)
{
	const struct rashpa_place_options place = {
		.name = name, .workers = workers, .keep_ns = FOREVER,
	};
	struct rashpa_stream *s;

	return rashpa_stream_open_as(path, &place, &s) ? NULL : s;
}

/* It has each stack, in order. */
static void *take_all(void *argument)
{
	struct rashpa_stack st;
	uintptr_t n = 0;

	while (rashpa_stream_next(argument, &st, FOREVER) > 0) {
		disorder += st.number != n++;
		wrong += !right(&st);
		rashpa_stream_release(argument, &st);
	}
	return (void *)n;
}

static void give_back(struct rashpa_stream *s, const struct rashpa_stack *st)
{
	wrong += !right(st);
	released[st->number]++;
	all_released++;
	rashpa_stream_release(s, st);
}

/* One worker stays. */
static void *stay(void *argument)
{
	struct rashpa_stack st;

	while (rashpa_stream_next(argument, &st, FOREVER) > 0)
		give_back(argument, &st);
	return NULL;
}

/* Others take some, and leave or die with one that they hold. */
static void *come_and_go(void *argument)
{
	unsigned int random = (uintptr_t)argument;

	while (all_released < STACKS) {
		struct rashpa_stream *s = join("workers", WORKERS);
		struct rashpa_stack st;
		uint32_t n = rand_r(&random) % 8;
		int result;

		if (!s)
			continue;	/* the place of one that died is not free yet */
		joins++;
		while ((result = rashpa_stream_next(s, &st, 1000000)) > 0 && n--)
			give_back(s, &st);
		/* one after the other, in the course of the stream */
		if (result <= 0 || deaths >= all_released * (DEATHS + 1) / STACKS) {
			rashpa_stream_close(s);
			continue;
		}
		n = deaths++;
		if (n < DEATHS) {
			dead[n] = s;
			close(rashpa_stream_buffer(s));
		} else {
			rashpa_stream_close(s);
		}
	}
	return NULL;
}

/* A place that joins has a stack that was not given back, and those after it. */
static void *join_and_leave(void *argument)
{
	(void)argument;
	while (all_released < STACKS) {
		struct rashpa_stream *s = join("guest", 1);
		struct rashpa_stack st, last = { .number = UINT64_MAX };

		for (int n = 0; s && n < 5 && rashpa_stream_next(s, &st, 1000000) > 0; n++) {
			wrong += !right(&st);
			disorder += n && st.number != last.number + 1;
			rashpa_stream_release(s, &st);
			last = st;
		}
		joins += !!s;
		rashpa_stream_close(s);
	}
	return NULL;
}

int main(void)
{
	static const struct rashpa_stream_process whole = { .width = WIDTH, .height = HEIGHT };
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = WIDTH, .height = HEIGHT, .pixel = RASHPA_PIXEL_U16, .bunch = 1, .slots = SLOTS,
		},
		.process = &whole, .processes = 1,
	};
	char folder[] = "/dev/shm/rashpa-places-XXXXXX";
	struct rashpa_stream *producer, *first, *worker;
	uint64_t twice = 0, never = 0;
	pthread_t thread[6];
	void *n;

	alarm(HANG_S);
	if (!mkdtemp(folder) || setenv("RASHPA_DEV", folder, 1))
		return 1;
	snprintf(path, sizeof(path), "%s/stream", folder);
	if (rashpa_stream_create(path, &plan, &producer) || rashpa_stream_start(producer, 0, 0))
		return 1;
	first = join("first", 1);
	worker = join("workers", WORKERS);
	ok(first && worker, "join: two places of a stream");
	pthread_create(&thread[0], NULL, take_all, first);
	pthread_create(&thread[1], NULL, stay, worker);
	pthread_create(&thread[2], NULL, come_and_go, (void *)1);
	pthread_create(&thread[3], NULL, come_and_go, (void *)2);
	pthread_create(&thread[4], NULL, join_and_leave, NULL);
	pthread_create(&thread[5], NULL, produce, producer);
	pthread_join(thread[0], &n);
	for (int i = 1; i < 6; i++)
		pthread_join(thread[i], NULL);
	rashpa_stream_close(first);
	rashpa_stream_close(worker);
	for (uint32_t i = 0; i < STACKS; i++) {
		twice += released[i] > 1;
		never += !released[i];
	}
	ok((uintptr_t)n == STACKS, "first: a place that stays has all stacks in order, %" PRIuPTR, (uintptr_t)n);
	ok(!twice && !never, "workers: each stack once, %" PRIu64 " twice, %" PRIu64 " never", twice, never);
	ok(!wrong, "pixels: no slot is written while it is held, %" PRIu64, (uint64_t)wrong);
	ok(!disorder, "order: places have stacks in their order, %" PRIu64, (uint64_t)disorder);
	ok(joins > 20 && deaths, "joins: %" PRIu64 " joined, %" PRIu64 " died", (uint64_t)joins, (uint64_t)deaths);
	unlink(path);
	rmdir(folder);
	return tap_end();
}
