// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program as it was written and compiled when the header was first published (0.1/): it
 * knows nothing of what came since, and works. first-header NODE: of a software FPGA that
 * is bound with its profile. What lies behind a struct is not the kernel's to write.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rashpa.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tap.h"

_Static_assert(sizeof(struct rashpa_alloc) == 144 && sizeof(struct rashpa_map) == 104 &&
	       sizeof(struct rashpa_source_add) == 40, "not the first header");

#define LENGTH	0x100000
#define CANARY	0xa5

static int memory, fpga, buffer = -1;
static char reason[RASHPA_REASON_SIZE];

/* An argument, and behind it what the kernel must leave alone. */
#define ARG(type)	struct { struct rashpa_##type arg; unsigned char behind[512]; }
#define CLEAR(a) do {						\
	memset(&(a).arg, 0, sizeof((a).arg));			\
	memset((a).behind, CANARY, sizeof((a).behind));		\
} while (0)
#define CALL(fd, cmd, a) \
	call(fd, cmd, &(a).arg, sizeof((a).arg), (a).behind, sizeof((a).behind))

/* 0 or an errno */
static int call(int fd, unsigned long cmd, void *arg, uint32_t size,
		const unsigned char *behind, size_t n)
{
	struct rashpa_head *head = arg;
	int err;
	size_t i;

	memset(reason, 0, sizeof(reason));
	head->size = size;
	head->reason = (uintptr_t)reason;
	head->reason_size = sizeof(reason);
	err = ioctl(fd, cmd, arg) ? errno : 0;
	CHECK(head->size == size, "the size has become %u", head->size);
	for (i = 0; i < n; i++)
		if (!CHECK(behind[i] == CANARY, "byte %zu behind the struct was written", i))
			break;
	return err;
}

static void test_buffer(void)
{
	ARG(alloc) a;
	ARG(info) info;
	ARG(query) query;
	char *p;

	CLEAR(a);
	a.arg.length = LENGTH;
	REQUIRE(!CALL(memory, RASHPA_IOC_ALLOC, a), "ALLOC: %s", reason);
	buffer = a.arg.out_fd;
	CHECK(a.arg.out_length == LENGTH && a.arg.out_segments == 1, "length or segments");
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, buffer, 0);
	REQUIRE(p != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(!p[0] && !p[LENGTH - 1], "not zeroed");
	memset(p, 0x5a, LENGTH);
	munmap(p, LENGTH);

	CLEAR(info);
	info.arg.fd = buffer;
	CHECK(!CALL(memory, RASHPA_IOC_INFO, info), "INFO: %s", reason);
	CHECK(info.arg.out_kind == RASHPA_KIND_BUFFER && info.arg.out_length == LENGTH,
	      "kind %u", info.arg.out_kind);
	CLEAR(query);
	CHECK(!CALL(memory, RASHPA_IOC_QUERY, query), "QUERY: %s", reason);
	CHECK(query.arg.out_allocated >= LENGTH, "allocated");

	CLEAR(a);
	CHECK(CALL(memory, RASHPA_IOC_ALLOC, a) == EINVAL && reason[0], "a length of 0");
}

static void test_function(void)
{
	ARG(device_info) info;
	ARG(map) m;
	ARG(program) program;
	struct rashpa_table *table;

	CLEAR(info);
	CHECK(!CALL(fpga, RASHPA_IOC_DEVICE_INFO, info), "DEVICE_INFO: %s", reason);
	CHECK(info.arg.out_vendor == 0x1234 && info.arg.out_flags & RASHPA_DEVICE_PROFILE,
	      "vendor 0x%x, flags 0x%x", info.arg.out_vendor, info.arg.out_flags);
	CLEAR(m);
	m.arg.fd = buffer;
	REQUIRE(!CALL(fpga, RASHPA_IOC_MAP, m), "MAP: %s", reason);
	CHECK(m.arg.out_segments >= 1 && (m.arg.out_class == RASHPA_CLASS_HOST ||
					  m.arg.out_class == RASHPA_CLASS_IOVA),
	      "%u segments of class %u", m.arg.out_segments, m.arg.out_class);
	table = mmap(NULL, m.arg.out_table_size, PROT_READ, MAP_SHARED, m.arg.out_fd, 0);
	REQUIRE(table != MAP_FAILED, "mmap of the table: %s", strerror(errno));
	CHECK(table->state == RASHPA_MAP_VALID && table->count == m.arg.out_segments &&
	      table->generation == m.arg.out_generation, "state %u", table->state);
	munmap(table, m.arg.out_table_size);
	CLEAR(program);
	program.arg.window = -1;
	CHECK(!CALL(m.arg.out_fd, RASHPA_IOC_PROGRAM, program), "PROGRAM: %s", reason);
	CHECK(program.arg.out_entries == m.arg.out_segments, "%u entries",
	      program.arg.out_entries);
	close(m.arg.out_fd);
}

static void test_events(void)
{
	ARG(events) e;
	ARG(source_add) source;
	ARG(eventfd) bind;
	ARG(signal) sig;
	struct rashpa_event record;
	struct pollfd p = { .events = POLLIN };
	uint64_t count = 0;

	CLEAR(e);
	REQUIRE(!CALL(fpga, RASHPA_IOC_EVENTS, e), "EVENTS: %s", reason);
	CLEAR(source);
	source.arg.kind = RASHPA_SOURCE_SOFTWARE;
	CHECK(!CALL(e.arg.out_fd, RASHPA_IOC_SOURCE_ADD, source), "SOURCE_ADD: %s", reason);
	CLEAR(bind);
	bind.arg.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(!CALL(e.arg.out_fd, RASHPA_IOC_EVENTFD, bind), "EVENTFD: %s", reason);
	CLEAR(sig);
	sig.arg.value = 0x1122334455667788;
	CHECK(!CALL(e.arg.out_fd, RASHPA_IOC_SIGNAL, sig), "SIGNAL: %s", reason);
	p.fd = e.arg.out_fd;
	CHECK(poll(&p, 1, 5000) == 1 && p.revents == POLLIN, "not ready");
	CHECK(read(e.arg.out_fd, &record, sizeof(record)) == sizeof(record), "read: %s",
	      strerror(errno));
	CHECK(record.source == source.arg.out_id && record.sequence == 1 &&
	      record.kind == RASHPA_SOURCE_SOFTWARE && !record.lost &&
	      record.value == sig.arg.value, "the record is not the event");
	CHECK(read(bind.arg.fd, &count, sizeof(count)) == sizeof(count) && count == 1,
	      "the eventfd counts %llu", (unsigned long long)count);
	close(bind.arg.fd);
	close(e.arg.out_fd);
}

int main(int argc, char **argv)
{
	memory = open("/dev/rashpa/memory", O_RDWR | O_CLOEXEC);
	fpga = open(argc == 2 ? argv[1] : "", O_RDWR | O_CLOEXEC);
	if (memory < 0 || fpga < 0)
		tap_bail("first-header NODE: %s", strerror(errno));
	tap_run("ALLOC, mmap, INFO, QUERY", test_buffer);
	tap_run("DEVICE_INFO, MAP, its header, PROGRAM", test_function);
	tap_run("EVENTS, SOURCE_ADD, EVENTFD, SIGNAL, read", test_events);
	close(buffer);
	return tap_exit();
}
