// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa against a running driver: TAP. Argument: N of a bound function, for what needs
 * one. What needs no driver is in common/selftest.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rashpa.h"

#define NAME	"librashpa-selftest"
#define HUGE	(UINT64_C(2) << 20)
#define LENGTH	(4 * HUGE)

static unsigned int tests, failures;

__attribute__((format(printf, 2, 3)))
static bool ok(bool good, const char *format, ...)
{
	va_list args;

	printf("%sok %u - ", good ? "" : "not ", ++tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	if (!good)
		printf("# %s\n", rashpa_reason());
	failures += !good;
	return good;
}

/* Was it refused with this errno, and a sentence that holds this word? */
static void refused(int got, int error, const char *word, const char *what)
{
	ok(got == -error && strstr(rashpa_reason(), word), "%s: %d, \"%s\"", what, got,
	   rashpa_reason());
}

static void test_leases(int memory, int first)
{
	struct rashpa_info info = { .fd = first };
	int a, b, node;

	ok(!rashpa_info(memory, &info) && info.out_flags & RASHPA_INFO_EXCLUSIVE &&
	   info.out_leases == 1, "a buffer is made with an exclusive lease");
	refused(rashpa_open(memory, NAME, 0), EBUSY, NAME, "nobody else gets one");
	refused(rashpa_buffer_open(NAME, O_RDONLY), EBUSY, "exclusive", "nor the node");
	close(first);

	a = rashpa_open(memory, NAME, 0);
	b = rashpa_open(memory, NAME, RASHPA_OPEN_READ);
	info = (struct rashpa_info) { .fd = b };
	ok(a >= 0 && b >= 0 && !rashpa_info(memory, &info) && info.out_leases == 2, "two share it");
	ok(mmap(NULL, LENGTH, PROT_WRITE, MAP_SHARED, b, 0) == MAP_FAILED && errno == EACCES,
	   "what was opened for reading cannot be written");
	refused(rashpa_open(memory, NAME, RASHPA_OPEN_EXCLUSIVE), EBUSY, NAME,
		"no exclusive lease while others have one");
	refused(rashpa_buffer_open(NAME, O_RDWR | O_EXCL), EBUSY, "nobody else",
		"nor by the node");
	close(a);
	close(b);
	node = rashpa_buffer_open(NAME, O_RDWR | O_EXCL);
	ok(node >= 0 && rashpa_open(memory, NAME, 0) == -EBUSY, "the node can be leased exclusively");
	close(node);
	refused(rashpa_open(memory, NAME, 1u << 31), EINVAL, "flags", "an undefined flag");
	refused(rashpa_open(memory, "nosuch", 0), ENOENT, "nosuch", "a buffer that is not there");
}

static void test_permit(int memory)
{
	struct rashpa_permit permit = {
		.head.flags = RASHPA_PERMIT_UID | RASHPA_PERMIT_GID | RASHPA_PERMIT_MODE,
		.name = NAME, .uid = 1, .gid = 2, .mode = 0640,
	};
	struct rashpa_info info = { .fd = -1 };
	int node;

	ok(!rashpa_permit(memory, &permit), "permit");
	node = rashpa_buffer_open(NAME, O_RDONLY);
	ok(!rashpa_info(node, &info) && info.out_uid == 1 && info.out_gid == 2 &&
	   info.out_mode == 0640, "owner, group and mode are told");
	close(node);
	permit.mode = 0777;
	refused(rashpa_permit(memory, &permit), EINVAL, "mode", "a mode with x");
	permit = (struct rashpa_permit) { .head.flags = RASHPA_PERMIT_MODE, .name = "nosuch" };
	refused(rashpa_permit(memory, &permit), ENOENT, "nosuch", "permit without a buffer");
}

static void test_mapping(int memory)
{
	int fd = rashpa_open(memory, NAME, 0);
	volatile char *p, *q;

	if (!ok(!rashpa_mmap(fd, 0, LENGTH, PROT_READ | PROT_WRITE, (void **)&p) &&
		!((uintptr_t)p % HUGE), "a dma-buf is mapped where huge entries can be"))
		return;
	ok(!rashpa_mmap(fd, HUGE, HUGE, PROT_READ, (void **)&q) && !((uintptr_t)q % HUGE),
	   "and a part of it");
	ok(!rashpa_sync_begin(fd, PROT_READ | PROT_WRITE), "sync begin");
	p[HUGE] = 42;
	ok(!rashpa_sync_end(fd, PROT_READ | PROT_WRITE) && q[0] == 42, "sync end");
	munmap((void *)q, HUGE);
	munmap((void *)p, LENGTH);
	close(fd);
}

static void test_pin(int memory)
{
	const long page = sysconf(_SC_PAGESIZE);
	struct rashpa_pin pin = { .length = 4 * page };
	struct rashpa_info info;
	char *p = mmap(NULL, pin.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	int fd;

	pin.address = (uintptr_t)p;
	fd = rashpa_pin(memory, &pin);
	if (ok(fd >= 0, "memory of a process is pinned")) {
		info = (struct rashpa_info) { .fd = fd };
		ok(!rashpa_info(memory, &info) && info.out_length == pin.length &&
		   !strcmp(rashpa_kind_name(info.out_kind), "pinned"), "and is that");
		close(fd);
	}
	pin.address++;
	refused(rashpa_pin(memory, &pin), EINVAL, "address", "an address in a page");
	munmap(p, pin.length);
	pin.address = (uintptr_t)p;
	refused(rashpa_pin(memory, &pin), EFAULT, "", "what is not mapped");
}

static void test_query(int memory)
{
	struct rashpa_query query = {};

	ok(!rashpa_query(memory, &query) && query.out_allocated >= LENGTH &&
	   query.out_user_allocated >= LENGTH && query.out_stage == RASHPA_STAGE_IDLE, "query");
}

static void test_map(int memory, unsigned int number)
{
	int device = rashpa_device_open(number), fd = rashpa_open(memory, NAME, 0), map;
	struct rashpa_map arg = { .fd = fd, .max_segment = HUGE };
	const struct rashpa_table *table;
	struct rashpa_table *copy;
	struct rashpa_restore restore = {};
	uint64_t bytes = 0;

	map = rashpa_map(device, &arg);
	if (!ok(map >= 0, "a map"))
		return;
	copy = calloc(1, sizeof(*copy) + arg.out_segments * sizeof(copy->segment[0]));
	ok(!rashpa_table_map(map, arg.out_table_size, &table), "its table is mapped");
	ok(rashpa_table_read(table, copy, arg.out_segments) == (int)arg.out_segments &&
	   copy->generation == arg.out_generation && copy->state == RASHPA_MAP_VALID &&
	   copy->map_class == arg.out_class, "and read");
	for (unsigned int i = 0; i < copy->count; i++)
		bytes += copy->segment[i].length;
	ok(bytes == LENGTH, "its segments are the buffer");
	ok(!rashpa_restore(map, &restore) && restore.out_generation == arg.out_generation &&
	   restore.out_segments == arg.out_segments && restore.out_class == arg.out_class,
	   "restoring a valid map changes nothing");
	rashpa_table_unmap(table, arg.out_table_size);
	free(copy);
	close(map);
	close(fd);
	close(device);
}

int main(int argc, char **argv)
{
	struct rashpa_alloc alloc = {
		.head.flags = RASHPA_ALLOC_EXCLUSIVE, .length = LENGTH, .name = NAME,
	};
	int memory, fd;

	puts("TAP version 13");
	memory = rashpa_memory_open();
	fd = memory < 0 ? memory : rashpa_alloc(memory, &alloc);
	if (!ok(fd >= 0, "a buffer")) {
		printf("1..%u\n", tests);
		return 1;
	}
	test_leases(memory, fd);
	test_permit(memory);
	test_mapping(memory);
	test_pin(memory);
	test_query(memory);
	if (argc > 1)
		test_map(memory, strtoul(argv[1], NULL, 10));
	else
		printf("ok %u - maps # SKIP no function was given\n", ++tests);
	ok(!rashpa_remove(memory, NAME), "remove");
	close(memory);
	printf("1..%u\n", tests);
	return failures ? 1 : 0;
}
