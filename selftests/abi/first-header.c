// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that is compiled with the first promised header (0.2/), without later additions,
 * still works. first-header NODE: node of a software FPGA that is bound with its profile. The
 * kernel must not write beyond a struct.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/rashpa.h>
#include <poll.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "tap.h"

#define LENGTH	0x100000
#define CANARY	0xa5

static const char *node = "";
static int memory, fpga, buffer = -1;
static char reason[RASHPA_REASON_SIZE];

/* An argument, followed by bytes that the kernel must not write. */
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

void setup(void)
{
	ARG(alloc) a;

	memory = open("/dev/rashpa/memory", O_RDWR | O_CLOEXEC);
	fpga = open(node, O_RDWR | O_CLOEXEC);
	if (memory < 0 || fpga < 0)
		tap_bail("first-header NODE: %s", strerror(errno));
	CLEAR(a);
	a.arg.length = LENGTH;
	REQUIRE(!CALL(memory, RASHPA_IOC_ALLOC, a), "ALLOC: %s", reason);
	buffer = a.arg.out_fd;
	CHECK(a.arg.out_length == LENGTH && a.arg.out_segments == 1, "length or segments");
}

TEST(buffer, "a buffer is allocated and mapped")
{
	ARG(alloc) a;
	char *p;

	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, buffer, 0);
	REQUIRE(p != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(!p[0] && !p[LENGTH - 1], "not zeroed");
	memset(p, 0x5a, LENGTH);
	munmap(p, LENGTH);

	CLEAR(a);
	CHECK(CALL(memory, RASHPA_IOC_ALLOC, a) == EINVAL && reason[0], "a length of 0");
}

TEST(function, "a map is made, programmed, and its function stopped")
{
	ARG(map_make) m;
	ARG(program) program;
	ARG(quiesce) quiesce;
	struct rashpa_table *table;

	CLEAR(m);
	m.arg.fd = buffer;
	REQUIRE(!CALL(fpga, RASHPA_IOC_MAP_MAKE, m), "MAP_MAKE: %s", reason);
	CHECK(m.arg.out_segments >= 1 && (m.arg.out_class == RASHPA_CLASS_HOST ||
					  m.arg.out_class == RASHPA_CLASS_IOVA),
	      "%u segments of class %u", m.arg.out_segments, m.arg.out_class);
	table = mmap(NULL, m.arg.out_table_size, PROT_READ, MAP_SHARED, m.arg.out_fd, 0);
	REQUIRE(table != MAP_FAILED, "mmap of the table: %s", strerror(errno));
	CHECK(table->state == RASHPA_MAP_STATE_VALID && table->count == m.arg.out_segments &&
	      table->generation == m.arg.out_generation, "state %u", table->state);
	munmap(table, m.arg.out_table_size);
	CLEAR(program);
	CHECK(!CALL(m.arg.out_fd, RASHPA_IOC_PROGRAM, program), "PROGRAM: %s", reason);
	CHECK(program.arg.out_entries == m.arg.out_segments, "%u entries",
	      program.arg.out_entries);
	CLEAR(quiesce);
	CHECK(!CALL(fpga, RASHPA_IOC_QUIESCE, quiesce), "QUIESCE: %s", reason);
	close(m.arg.out_fd);
}

/* 0 after a failed check */
static uint32_t source(int channel, uint32_t kind)
{
	ARG(source_add) add;

	CLEAR(add);
	add.arg.kind = kind;
	add.arg.device = -1;
	add.arg.memory = -1;
	return CHECK(!CALL(channel, RASHPA_IOC_SOURCE_ADD, add), "SOURCE_ADD: %s", reason) ?
		add.arg.out_id : 0;
}

/* The next record is of @id. */
static void comes(int channel, uint32_t id, uint32_t kind, uint64_t value)
{
	struct pollfd p = { .fd = channel, .events = POLLIN };
	struct rashpa_event record = {};

	CHECK(poll(&p, 1, 5000) == 1 && p.revents == POLLIN, "not ready");
	CHECK(read(channel, &record, sizeof(record)) == sizeof(record), "read: %s",
	      strerror(errno));
	CHECK(record.source == id && record.kind == kind && record.sequence == 1 &&
	      !record.lost && record.value == value, "the record is not the event");
}

TEST(events, "a channel delivers events of a source and its group")
{
	ARG(channel_make) channel;
	ARG(group_make) group;
	ARG(signal) sig;
	struct rashpa_member member = {};

	CLEAR(channel);
	REQUIRE(!CALL(fpga, RASHPA_IOC_CHANNEL_MAKE, channel), "CHANNEL_MAKE: %s", reason);
	CHECK(source(channel.arg.out_fd, RASHPA_SOURCE_VECTOR), "vector 0");
	member.source = source(channel.arg.out_fd, RASHPA_SOURCE_SOFTWARE);
	CLEAR(group);
	group.arg.members = (uintptr_t)&member;
	group.arg.n_members = 1;
	group.arg.member_size = sizeof(member);
	CHECK(!CALL(channel.arg.out_fd, RASHPA_IOC_GROUP_MAKE, group), "GROUP_MAKE: %s", reason);
	CLEAR(sig);
	sig.arg.value = 0x1122334455667788;
	REQUIRE(!CALL(channel.arg.out_fd, RASHPA_IOC_SIGNAL, sig), "SIGNAL: %s", reason);
	comes(channel.arg.out_fd, member.source, RASHPA_SOURCE_SOFTWARE, sig.arg.value);
	comes(channel.arg.out_fd, group.arg.out_id, RASHPA_SOURCE_GROUP, 1);
	close(channel.arg.out_fd);
}

int main(int argc, char **argv)
{
	if (argc == 2)
		node = argv[1];
	return tap_main(1, argv);
}
