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

/* Its map, in memory that the child shares, and whether the child programs it. */
struct member {
	uint32_t map;
	bool programs;
	pid_t pid;
};

static void member(void *arg)
{
	struct rashpa_map_make make = { HEAD(make), .fd = shared };
	struct member *m = arg;

	drop_privileges();
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &make), 0, NULL);
	m->map = make.out_id;
	if (m->programs)
		ANSWERED(fpga_program(make.out_fd, 0, NULL), 0, NULL);
	if (tap_ok())
		tap_fork_hold();
}

static struct member *member_begin(bool programs)
{
	struct member *m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
				0);

	m->programs = programs;
	m->pid = tap_fork_held(member, m);
	return m;
}

static void member_end(struct member *m)
{
	tap_fork_kill(m->pid);
	munmap(m, PAGE);
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
	struct member *m = member_begin(false);

	maps_freely(true, NULL);
	member_end(m);
}

TEST(programmed, "a programmed map excludes others, and the refusal names it")
{
	char says[64], command[64], text[512];
	struct member *m = member_begin(true);

	snprintf(says, sizeof(says), "process %d (", m->pid);
	maps_freely(false, says);
	/* the sentence names the remedy */
	snprintf(command, sizeof(command), "rashpactl map release %u", m->map);
	maps_freely(false, command);
	CHECK(!run(command, text, sizeof(text)), "%s: %s", command, text);
	maps_freely(true, NULL);
	member_end(m);
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
