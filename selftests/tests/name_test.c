// SPDX-License-Identifier: GPL-2.0-only
/* Named buffers: leases, owner, group and mode. */
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "common.h"

#define NAME	"st-name"
#define NODE	"/dev/rashpa/buffer/" NAME

/* dma-buf fd of the buffer or a negative errno */
static int open_name(uint32_t flags)
{
	struct rashpa_open o = { HEAD(o), .name = NAME };
	int err;

	o.head.flags = flags;
	err = call(memory, RASHPA_IOC_OPEN, &o);
	return err ?: o.out_fd;
}

static int alloc_with(uint32_t flags, uint32_t mode)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = NAME, .mode = mode };
	int err;

	a.head.flags = flags;
	err = call(memory, RASHPA_IOC_ALLOC, &a);
	return err ?: a.out_fd;
}

static int permit(uint32_t flags, uint32_t uid, uint32_t gid, uint32_t mode)
{
	struct rashpa_permit p = { HEAD(p), .name = NAME, .uid = uid, .gid = gid,
				   .mode = mode };

	p.head.flags = flags;
	return call(memory, RASHPA_IOC_PERMIT, &p);
}

static unsigned int leases(int fd)
{
	struct rashpa_info info;

	return buffer_info(fd, &info) ? UINT32_MAX : info.out_leases;
}

static void test_shared(void)
{
	int a = alloc_with(0, 0), b, node, dmabuf;
	struct rashpa_export d = { HEAD(d) };

	REQUIRE(a >= 0, "ALLOC: %d", a);
	CHECK(leases(a) == 1, "%u leases", leases(a));
	b = open_name(0);
	node = buffer_node(NAME, O_RDWR);
	CHECK(leases(a) == 3, "%u leases", leases(a));
	/* a dma-buf of the node is the node's lease */
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &d), 0, NULL);
	dmabuf = d.out_fd;
	CHECK(leases(a) == 3, "%u leases", leases(a));
	close(node);
	CHECK(leases(a) == 3, "%u leases with its dma-buf", leases(a));
	close(dmabuf);
	CHECK(leases(a) == 2, "%u leases", leases(a));
	close(dup(b));
	CHECK(leases(a) == 2, "%u leases after a duplicate", leases(a));
	close(b);
	close(a);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void test_exclusive(void)
{
	struct rashpa_info info;
	int a = alloc_with(0, 0), b;
	void *p;

	ANSWERED(open_name(RASHPA_OPEN_EXCLUSIVE), EBUSY, NAME "|1 lease");
	close(a);
	a = open_name(RASHPA_OPEN_EXCLUSIVE);
	REQUIRE(a >= 0, "no exclusive lease: %s", reason);
	if (!buffer_info(a, &info))
		CHECK(info.out_flags & RASHPA_INFO_EXCLUSIVE, "INFO does not say so");
	ANSWERED(open_name(0), EBUSY, NAME "|exclusively");
	ANSWERED(open_name(RASHPA_OPEN_READ), EBUSY, NAME "|exclusively");
	b = open(NODE, O_RDWR | O_CLOEXEC);
	CHECK(b < 0 && errno == EBUSY, "the node can be opened: %d", b);
	/* a mapping is a lease as well */
	p = map_fd(a, PAGE);
	close(a);
	ANSWERED(open_name(0), EBUSY, NAME);
	munmap(p, PAGE);
	b = open_name(0);
	CHECK(b >= 0, "the lease did not end: %s", reason);
	close(b);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void test_exclusive_node(void)
{
	int a = alloc_with(RASHPA_ALLOC_EXCLUSIVE, 0), b;

	REQUIRE(a >= 0, "ALLOC: %s", reason);
	ANSWERED(open_name(0), EBUSY, NAME "|exclusively");
	close(a);
	a = open(NODE, O_RDWR | O_EXCL | O_CLOEXEC);
	CHECK(a >= 0, "open with O_EXCL: %s", strerror(errno));
	b = open(NODE, O_RDONLY | O_CLOEXEC);
	CHECK(b < 0 && errno == EBUSY, "it can be opened twice");
	close(a);
	b = open(NODE, O_RDONLY | O_CLOEXEC);
	CHECK(b >= 0, "open: %s", strerror(errno));
	a = open(NODE, O_RDWR | O_EXCL | O_CLOEXEC);
	CHECK(a < 0 && errno == EBUSY, "an exclusive open beside another");
	close(b);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* Holds the only lease until it is killed. */
static void hold(void *arg)
{
	int *ready = arg;

	CHECK(open_name(RASHPA_OPEN_EXCLUSIVE) >= 0, "no lease: %s", reason);
	CHECK(write(ready[1], "", 1) == 1, "write");
	pause();
}

static void test_lease_dies(void)
{
	int ready[2], fd = alloc_with(0, 0);
	char c;
	pid_t pid;

	close(fd);
	REQUIRE(!pipe2(ready, O_CLOEXEC), "pipe");
	pid = tap_fork_start(hold, ready);
	CHECK(read(ready[0], &c, 1) == 1, "the child does not answer");
	ANSWERED(open_name(0), EBUSY, NAME);
	tap_fork_kill(pid);
	fd = open_name(RASHPA_OPEN_EXCLUSIVE);
	CHECK(fd >= 0, "the lease of a dead process holds: %s", reason);
	close(fd);
	close(ready[0]);
	close(ready[1]);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void test_bad_flags(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };

	a.head.flags = RASHPA_ALLOC_EXCLUSIVE;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "named");
	a.head.flags = RASHPA_ALLOC_MODE;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "named");
	ANSWERED(alloc_with(0, 0600), EINVAL, "RASHPA_ALLOC_MODE");
	ANSWERED(alloc_with(RASHPA_ALLOC_MODE, 0777), EINVAL, "0777|0666");
	ANSWERED(alloc_with(RASHPA_ALLOC_MODE, 04600), EINVAL, "0666");
	ANSWERED(permit(0, 0, 0, 0), ENOENT, NAME);
	ANSWERED(permit(0, 1, 0, 0), EINVAL, "flag");
	ANSWERED(permit(0, 0, 1, 0), EINVAL, "flag");
	ANSWERED(permit(0, 0, 0, 1), EINVAL, "flag");
	ANSWERED(permit(RASHPA_PERMIT_MODE, 0, 0, 0777), EINVAL, "0777");
	ANSWERED(permit(RASHPA_PERMIT_UID, UINT32_MAX, 0, 0), ENOENT, NULL);
}

static void test_node_mode(void)
{
	struct stat node, mem;
	struct rashpa_info info;
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0640);

	REQUIRE(fd >= 0, "ALLOC: %s", reason);
	CHECK(!stat(NODE, &node) && (node.st_mode & 07777) == 0640, "mode 0%o", node.st_mode);
	close(fd);
	ANSWERED(buffer_remove(NAME), 0, NULL);

	fd = alloc_with(0, 0);
	CHECK(!stat(NODE, &node) && !stat("/dev/rashpa/memory", &mem), "stat");
	CHECK((node.st_mode & 07777) == (mem.st_mode & 0666) && node.st_gid == mem.st_gid &&
	      node.st_uid == geteuid(), "mode 0%o, group %u, owner %u", node.st_mode,
	      node.st_gid, node.st_uid);
	if (!buffer_info(fd, &info))
		CHECK(info.out_mode == (mem.st_mode & 0666) && info.out_uid == geteuid() &&
		      info.out_gid == mem.st_gid, "INFO: mode 0%o", info.out_mode);
	close(fd);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* another user, with the fd of the memory node inherited */
static void stranger(void *arg)
{
	(void)arg;
	drop_privileges();
	ANSWERED(open_name(0), EACCES, NAME "|owner");
	ANSWERED(open_name(RASHPA_OPEN_READ), EACCES, NAME);
	ANSWERED(buffer_remove(NAME), EPERM, NAME "|not yours");
	ANSWERED(permit(RASHPA_PERMIT_MODE, 0, 0, 0666), EPERM, "not yours");
	ANSWERED(permit(RASHPA_PERMIT_UID, 65534, 0, 0), EPERM, "not yours");
}

static void test_stranger(void)
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0660);

	close(fd);
	tap_fork(stranger, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void reader(void *arg)
{
	int fd;

	(void)arg;
	drop_privileges();
	ANSWERED(open_name(0), EACCES, "reading and writing");
	fd = open_name(RASHPA_OPEN_READ);
	CHECK(fd >= 0, "for reading: %s", reason);
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY, "the dma-buf is writable");
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
	      "it can be mapped for writing");
	close(fd);
}

static void test_reader(void)
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0664);

	close(fd);
	tap_fork(reader, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* the user that root handed the buffer to */
static void new_owner(void *arg)
{
	int fd;

	(void)arg;
	drop_privileges();
	fd = open_name(0);
	CHECK(fd >= 0, "the owner cannot open it: %s", reason);
	close(fd);
	/* the directory of the nodes may be closed to others: the node itself counts */
	ANSWERED(permit(RASHPA_PERMIT_MODE, 0, 0, 0400), 0, NULL);
	ANSWERED(open_name(0), EACCES, NAME);
	ANSWERED(permit(RASHPA_PERMIT_UID, 0, 0, 0), EPERM, "give");
	ANSWERED(permit(RASHPA_PERMIT_GID, 0, 0, 0), EPERM, "group 0");
	ANSWERED(permit(RASHPA_PERMIT_GID, 0, 65534, 0), 0, NULL);
	ANSWERED(permit(RASHPA_PERMIT_MODE, 0, 0, 0600), 0, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void test_hand_over(void)
{
	struct rashpa_info info;
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0600);

	ANSWERED(permit(RASHPA_PERMIT_UID | RASHPA_PERMIT_GID, 65534, 7, 0), 0, NULL);
	if (!buffer_info(fd, &info))
		CHECK(info.out_uid == 65534 && info.out_gid == 7 && info.out_mode == 0600,
		      "%u:%u 0%o", info.out_uid, info.out_gid, info.out_mode);
	close(fd);
	ANSWERED(permit(RASHPA_PERMIT_UID, UINT32_MAX, 0, 0), EINVAL, "user");
	tap_fork(new_owner, NULL);
	ANSWERED(buffer_remove(NAME), ENOENT, NULL);
}

/* The node is open to all, the buffer is not; access mode 3 asks for no permission itself. */
static void without_mode(void *arg)
{
	const int *node = arg;
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", *node);
	drop_privileges();
	fd = open(path, O_ACCMODE | O_CLOEXEC);
	CHECK(fd < 0 && errno == EACCES, "opened: %s", fd < 0 ? strerror(errno) : "yes");
	close(fd);
}

static void test_without_mode(void)
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0600), node;

	CHECK(!chmod(NODE, 0666), "chmod: %s", strerror(errno));
	node = open(NODE, O_PATH);
	tap_fork(without_mode, &node);
	close(node);
	close(fd);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* Where user and group 0 have no meaning, a mode needs none. */
static void mode_in_namespace(void *arg)
{
	(void)arg;
	CHECK(!unshare(CLONE_NEWUSER), "unshare: %s", strerror(errno));
	CHECK(!write_text("/proc/self/uid_map", "1000 0 1") &&
	      !write_text("/proc/self/setgroups", "deny") &&
	      !write_text("/proc/self/gid_map", "1000 0 1"), "maps of ids");
	ANSWERED(permit(RASHPA_PERMIT_MODE, 0, 0, 0640), 0, NULL);
	ANSWERED(permit(RASHPA_PERMIT_UID, 0, 0, 0), EINVAL, "user");
}

static void test_namespace(void)
{
	struct rashpa_info info;
	int fd;

	SKIP_IF(access("/proc/self/ns/user", F_OK), "no user namespaces in this kernel");
	fd = alloc_with(RASHPA_ALLOC_MODE, 0600);
	tap_fork(mode_in_namespace, NULL);
	if (!buffer_info(fd, &info))
		CHECK(info.out_mode == 0640, "mode 0%o", info.out_mode);
	close(fd);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

#define RACES		2000
#define RACE_OWNER	65534U	/* whom drop_privileges() makes */
#define RACE_OTHER	1000U

/* The owner, who opens it to all as long as it is his. Counts how often he has tried. */
static void permit_for_ever(void *arg)
{
	atomic_uint *tries = arg;

	drop_privileges();
	for (;;) {
		permit(RASHPA_PERMIT_UID | RASHPA_PERMIT_MODE, RACE_OWNER, 0, 0666);
		atomic_fetch_add(tries, 1);
	}
}

/* Root gives it to another one meanwhile: when that is done, it is done. */
static bool permit_stays(int fd, atomic_uint *tries)
{
	uint32_t flags = RASHPA_PERMIT_UID | RASHPA_PERMIT_MODE;
	struct rashpa_info info = {};
	unsigned int before;

	ANSWERED(permit(flags, RACE_OWNER, 0, 0600), 0, NULL);
	before = atomic_load(tries);
	while (atomic_load(tries) == before)
		sched_yield();
	ANSWERED(permit(flags, RACE_OTHER, 0, 0600), 0, NULL);
	before = atomic_load(tries);
	/* the one that was under way, and one more */
	while (atomic_load(tries) - before < 2)
		sched_yield();
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	return CHECK(info.out_uid == RACE_OTHER && info.out_mode == 0600,
		     "it belongs to %u, mode 0%o", info.out_uid, info.out_mode);
}

static void test_permit_race(void)
{
	atomic_uint *tries = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* on one processor each look at the other process takes a time slice, and finds little */
	const int races = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? RACES : RACES / 20;
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0600), i;
	pid_t pid = tap_fork_start(permit_for_ever, tries);

	for (i = 0; i < races && permit_stays(fd, tries); i++)
		;
	tap_fork_kill(pid);
	munmap(tries, PAGE);
	close(fd);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

static void in_group(void *arg)
{
	(void)arg;
	CHECK(!setgroups(0, NULL) && !setresgid(77, 77, 77) && !setresuid(1000, 1000, 1000),
	      "become another");
	CHECK(open_name(0) >= 0, "the group cannot open it: %s", reason);
	ANSWERED(buffer_remove(NAME), EPERM, "not yours");
}

static void test_group(void)
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0660);

	ANSWERED(permit(RASHPA_PERMIT_GID, 0, 77, 0), 0, NULL);
	close(fd);
	tap_fork(in_group, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

int main(void)
{
	common_init();
	tap_run("shared leases are counted", test_shared);
	tap_run("an exclusive lease keeps others out", test_exclusive);
	tap_run("ALLOC and O_EXCL make exclusive leases", test_exclusive_node);
	tap_run("the lease of a killed process ends", test_lease_dies);
	tap_run("flags without their values, values without their flags", test_bad_flags);
	tap_run("a node has its owner and mode when it appears", test_node_mode);
	tap_run("an access mode without permissions gives none", test_without_mode);
	tap_run("a mode is permitted in a namespace without user 0", test_namespace);
	tap_run("others cannot open, remove or permit", test_stranger);
	tap_run("who may only read, reads", test_reader);
	tap_run("root hands a buffer to a user", test_hand_over);
	tap_run("a group may use it", test_group);
	tap_run("an owner cannot undo what root has permitted meanwhile", test_permit_race);
	return tap_exit();
}
