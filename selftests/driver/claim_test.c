// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A claim of another producer, by flock(), and programmed maps keep a producer from a function.
 * A reader and an idle map do not.
 * test: tier=check iommu=any seconds=2
 */
#include <sys/file.h>

#include <rashpa-fpga.h>
#include "common.h"

static struct fpga f;

static int lock(int flags, int how)
{
	char path[40];
	int fd, err;

	snprintf(path, sizeof(path), "/dev/rashpa/%s", f.name);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = flock(fd, how | LOCK_NB) ? -errno : 0;
	if (err || how == LOCK_UN)
		close(fd);
	return err ? err : fd;
}

TEST(reader, "a process that may only read cannot claim")
{
	int how[] = { LOCK_EX, LOCK_SH }, fd;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(how); i++) {
		fd = lock(O_RDONLY, how[i]);
		CHECK(fd == -EBADF, "a reader has lock %d", how[i]);
		if (fd >= 0)
			close(fd);
	}
	fd = lock(O_RDWR, LOCK_EX);
	CHECK(fd >= 0, "%s", strerror(-fd));
	CHECK(!flock(fd, LOCK_UN), "unlock: %s", strerror(errno));
	close(fd);
}

TEST(writer, "one writer at a time can claim")
{
	int fd = lock(O_RDWR, LOCK_EX), other;

	CHECK(fd >= 0, "%s", strerror(-fd));
	CHECK(lock(O_RDWR, LOCK_EX) == -EWOULDBLOCK, "two have it");
	CHECK(lock(O_WRONLY, LOCK_SH) == -EWOULDBLOCK, "two have it");
	/* closing the file ends the lock */
	close(fd);
	other = lock(O_WRONLY, LOCK_EX);
	CHECK(other >= 0, "%s", strerror(-other));
	close(other);
}

/* ------------------------------------------------------------------ maps --- */

static int shared = -1;		/* the buffer "st-claim" */

struct member {
	int go[2], ready[2];	/* bytes to it, and from it */
	uint32_t map;
	pid_t pid;
};

/* Make a map, and program it after a byte from the parent. */
static void member(void *arg)
{
	const struct member *m = arg;
	struct rashpa_map_make make = { HEAD(make), .fd = shared };
	struct rashpa_program p = { HEAD(p) };
	char byte;

	drop_privileges();
	close(m->go[1]);
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &make), 0, NULL);
	CHECK(write(m->ready[1], &make.out_id, sizeof(make.out_id)) == sizeof(make.out_id), "write");
	if (read(m->go[0], &byte, 1) != 1)
		return;
	ANSWERED(call(make.out_fd, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	CHECK(write(m->ready[1], &byte, 1) == 1, "write");
	CHECK(!read(m->go[0], &byte, 1), "read");
}

static void member_begin(struct member *m)
{
	if (pipe2(m->go, O_CLOEXEC) || pipe2(m->ready, O_CLOEXEC))
		tap_bail("pipe: %s", strerror(errno));
	m->pid = tap_fork_start(member, m);
	close(m->ready[1]);
	CHECK(read(m->ready[0], &m->map, sizeof(m->map)) == sizeof(m->map), "it has no map");
}

static void member_end(struct member *m)
{
	close(m->go[1]);
	tap_fork_end(m->pid);
	close(m->go[0]);
	close(m->ready[0]);
}

/* Exit status of a command, and all that it prints, in @text. */
static int run(const char *command, char *text, size_t size)
{
	char line[512];
	FILE *out;
	size_t n;

	snprintf(line, sizeof(line), "%s 2>&1", command);
	out = popen(line, "re");
	if (!out)
		return -1;
	n = fread(text, 1, size - 1, out);
	text[n] = '\0';
	return pclose(out);
}

static void maps_freely(bool wanted, const char *says)
{
	char command[64], text[2048];
	int status;

	snprintf(command, sizeof(command), "rashpactl map make st-claim %s", f.name);
	status = run(command, text, sizeof(text));
	CHECK(!status == wanted, "%s: status 0x%x: %s", command, status, text);
	CHECK(!says || strstr(text, says), "\"%s\" does not say \"%s\"", text, says);
}

TEST(idle, "a map that was never programmed excludes no process")
{
	struct member m;

	member_begin(&m);
	maps_freely(true, NULL);
	member_end(&m);
}

TEST(programmed, "a programmed map excludes others, and the refusal names it")
{
	char says[64], command[64], text[512], byte = 0;
	struct member m;

	member_begin(&m);
	CHECK(write(m.go[1], &byte, 1) == 1 && read(m.ready[0], &byte, 1) == 1, "not programmed");
	snprintf(says, sizeof(says), "process %d (", m.pid);
	maps_freely(false, says);
	/* the sentence names the remedy */
	snprintf(command, sizeof(command), "rashpactl map release %u", m.map);
	maps_freely(false, command);
	CHECK(!run(command, text, sizeof(text)), "%s: %s", command, text);
	maps_freely(true, NULL);
	member_end(&m);
}

TEST(named, "the refusal names the process that has a claim, and how to end it")
{
	int fd = lock(O_RDWR, LOCK_EX);
	char says[64];

	snprintf(says, sizeof(says), "kill %d", getpid());
	maps_freely(false, says);
	close(fd);
	maps_freely(true, NULL);
}

TEST(reader_excludes, "a reader excludes no process")
{
	int fd = lock(O_RDONLY, LOCK_EX);

	maps_freely(true, NULL);
	if (fd >= 0)
		close(fd);
}

void setup(void)
{
	fpga_need(&f);
	shared = buffer_alloc(MIB, "st-claim");
}

void teardown(void)
{
	close(shared);
	buffer_remove("st-claim");
}
