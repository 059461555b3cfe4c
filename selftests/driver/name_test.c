// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=7 */
/* Named buffers: leases, owner, group and mode. */
#include <grp.h>
#include <sys/prctl.h>

#include "common.h"

#define NAME	"st-name"
#define NODE	"/dev/rashpa/buffer/" NAME

/* dma-buf fd of the buffer or a negative errno */
static int open_name(int flags)
{
	return buffer_open(NAME, flags);
}

static int alloc_with(uint32_t flags, uint32_t mode)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = NAME, .mode = mode };
	int err;

	a.head.flags = flags;
	err = call(memory, RASHPA_IOC_ALLOC, &a);
	return err ?: a.out_fd;
}

/* INFO on the node without a lease */
static void node_info(struct rashpa_info *info)
{
	int node = buffer_node(NAME, O_ACCMODE);

	*info = (struct rashpa_info) { HEAD(*info), .fd = -1 };
	CHECK(node >= 0, "open: %s", strerror(errno));
	ANSWERED(call(node, RASHPA_IOC_INFO, info), 0, NULL);
	close(node);
}

static unsigned int leases(int fd)
{
	struct rashpa_info info;

	return buffer_info(fd, &info) ? UINT32_MAX : info.out_leases;
}

TEST(shared, "shared leases are counted")
{
	int a = alloc_with(0, 0), b, node, dmabuf;
	struct rashpa_export d = { HEAD(d) };

	REQUIRE(a >= 0, "ALLOC: %d", a);
	CHECK(leases(a) == 1, "%u leases", leases(a));
	b = open_name(O_RDWR);
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
	buffer_end(a, NAME);
}

TEST(exclusive, "an exclusive lease keeps others out")
{
	struct rashpa_info info;
	int a = alloc_with(0, 0), b;
	void *p;

	CHECK(open_name(O_RDWR | O_EXCL) == -EBUSY, "an exclusive lease next to another");
	close(a);
	a = open_name(O_RDWR | O_EXCL);
	REQUIRE(a >= 0, "no exclusive lease: %s", reason);
	if (!buffer_info(a, &info))
		CHECK(info.out_flags & RASHPA_INFO_EXCLUSIVE, "INFO does not say so");
	CHECK(open_name(O_RDWR) == -EBUSY, "a lease next to an exclusive one");
	CHECK(open_name(O_RDONLY) == -EBUSY, "a lease for reading next to an exclusive one");
	/* a mapping is a lease as well */
	p = map_fd(a, PAGE);
	close(a);
	CHECK(open_name(O_RDWR) == -EBUSY, "the mapping is no lease");
	munmap(p, PAGE);
	b = open_name(O_RDWR);
	CHECK(b >= 0, "the lease did not end: %s", reason);
	buffer_end(b, NAME);
}

/* Without a lease: INFO, also of the holder, and REMOVE. */
TEST(no_lease, "access mode 3 takes no lease, and names the holder of one")
{
	struct rashpa_export e = { HEAD(e) };
	struct rashpa_info info;
	int a = alloc_with(RASHPA_ALLOC_EXCLUSIVE, 0);
	int node = buffer_node(NAME, O_ACCMODE);

	REQUIRE(a >= 0 && node >= 0, "ALLOC: %s", reason);
	node_info(&info);
	CHECK(info.out_leases == 1 && info.out_flags & RASHPA_INFO_EXCLUSIVE, "%u leases",
	      info.out_leases);
	CHECK(info.out_lease_uid == getuid() && info.out_lease_pid == getpid(),
	      "process %d of user %u has it", info.out_lease_pid, info.out_lease_uid);
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &e), EACCES, "reading");
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, node, 0) == MAP_FAILED && errno == EACCES,
	      "it can be mapped");
	ANSWERED(buffer_remove(NAME), 0, NULL);
	CHECK(!buffer_info(a, &info) && info.out_leases == 1, "the lease has gone with the name");
	close(a);
	/* the memory is there as long as the node is open */
	info = (struct rashpa_info) { HEAD(info), .fd = -1 };
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(!info.out_leases && !info.out_lease_pid && !(info.out_flags & RASHPA_INFO_EXCLUSIVE),
	      "%u leases", info.out_leases);
	close(node);
}

TEST(exclusive_node, "ALLOC and O_EXCL make exclusive leases")
{
	int a = alloc_with(RASHPA_ALLOC_EXCLUSIVE, 0), b;

	REQUIRE(a >= 0, "ALLOC: %s", reason);
	CHECK(open_name(O_RDWR) == -EBUSY, "a lease next to that of ALLOC");
	close(a);
	a = open(NODE, O_RDWR | O_EXCL | O_CLOEXEC);
	CHECK(a >= 0, "open with O_EXCL: %s", strerror(errno));
	b = open(NODE, O_RDONLY | O_CLOEXEC);
	CHECK(b < 0 && errno == EBUSY, "it can be opened twice");
	close(a);
	b = open(NODE, O_RDONLY | O_CLOEXEC);
	CHECK(b >= 0, "open: %s", strerror(errno));
	a = open(NODE, O_RDWR | O_EXCL | O_CLOEXEC);
	CHECK(a < 0 && errno == EBUSY, "an exclusive open next to another");
	close(b);
	/* a reader excludes no process */
	b = open(NODE, O_RDONLY | O_EXCL | O_CLOEXEC);
	CHECK(b < 0 && errno == EACCES, "an exclusive open for reading");
	close(b);
	b = open(NODE, O_WRONLY | O_EXCL | O_CLOEXEC);
	CHECK(b >= 0, "an exclusive open for writing: %s", strerror(errno));
	buffer_end(b, NAME);
}

/* Holds the only lease until it is killed. */
static void hold(void *arg)
{
	CHECK(open_name(O_RDWR | O_EXCL) >= 0, "no lease: %s", reason);
	tap_fork_hold();
}

TEST(lease_dies, "the lease of a killed process ends")
{
	struct rashpa_info info;
	int fd = alloc_with(0, 0);
	pid_t pid;

	close(fd);
	pid = tap_fork_held(hold, NULL);
	CHECK(open_name(O_RDWR) == -EBUSY, "it has no exclusive lease");
	node_info(&info);
	CHECK(info.out_lease_pid == pid, "process %d has it, not %d", info.out_lease_pid, pid);
	tap_fork_kill(pid);
	fd = open_name(O_RDWR | O_EXCL);
	CHECK(fd >= 0, "the lease of a dead process holds: %s", reason);
	buffer_end(fd, NAME);
}

TEST(bad_flags, "flags without their values, values without their flags")
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };

	a.head.flags = RASHPA_ALLOC_EXCLUSIVE;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "named");
	a.head.flags = RASHPA_ALLOC_MODE;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "named");
	ANSWERED(alloc_with(0, 0600), EINVAL, "RASHPA_ALLOC_MODE");
	ANSWERED(alloc_with(RASHPA_ALLOC_MODE, 0777), EINVAL, "0777|0666");
	ANSWERED(alloc_with(RASHPA_ALLOC_MODE, 04600), EINVAL, "0666");
}

TEST(node_mode, "a node has its owner and mode when it appears")
{
	struct stat node, mem;
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0640);

	REQUIRE(fd >= 0, "ALLOC: %s", reason);
	CHECK(!stat(NODE, &node) && (node.st_mode & 07777) == 0640, "mode 0%o", node.st_mode);
	buffer_end(fd, NAME);

	fd = alloc_with(0, 0);
	CHECK(!stat(NODE, &node) && !stat("/dev/rashpa/memory", &mem), "stat");
	CHECK((node.st_mode & 07777) == (mem.st_mode & 0666) && node.st_gid == mem.st_gid &&
	      node.st_uid == geteuid(), "mode 0%o, group %u, owner %u", node.st_mode,
	      node.st_gid, node.st_uid);
	buffer_end(fd, NAME);
}

TEST(no_mode, "a node can have mode 0")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0);
	struct stat node;

	REQUIRE(fd >= 0, "ALLOC: %s", reason);
	CHECK(!stat(NODE, &node), "stat: %s", strerror(errno));
	CHECK((node.st_mode & 07777) == 0, "mode 0%o", node.st_mode & 07777);
	buffer_end(fd, NAME);
}

/* At each event, udev would set owner and mode of the event, whatever chmod() has done. */
TEST(event_tells_no_mode, "an event for udev has no owner and no mode")
{
	char event[1024];
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0640);

	ANSWERED(buffer_permit(NAME, 1000, 1000, 0600), 0, NULL);
	if (CHECK(read_file("/sys/class/rashpa/buffer!" NAME "/uevent", event, sizeof(event)),
		  "no uevent"))
		CHECK(strstr(event, "DEVNAME=rashpa/buffer/" NAME) && !strstr(event, "DEVMODE") &&
		      !strstr(event, "DEVUID") && !strstr(event, "DEVGID"), "\"%s\"", event);
	buffer_end(fd, NAME);
}

/* another user, with a node that root has opened without a lease */
static void stranger(void *arg)
{
	const int *node = arg;
	struct rashpa_remove r = { HEAD(r) };

	drop_privileges();
	CHECK(open_name(O_RDWR) == -EACCES, "opened for writing");
	CHECK(open_name(O_RDONLY) == -EACCES, "opened for reading");
	CHECK(buffer_node(NAME, O_ACCMODE) < 0 && errno == EACCES, "opened for ioctls");
	CHECK(buffer_permit(NAME, -1, -1, 0666) == -EPERM, "its mode was changed");
	ANSWERED(call(*node, RASHPA_IOC_REMOVE, &r), EPERM, NAME "|not yours");
}

TEST(stranger, "others cannot open, remove or chmod")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0660), node = buffer_node(NAME, O_ACCMODE);

	close(fd);
	tap_fork(stranger, &node);
	buffer_end(node, NAME);
}

static void reader(void *arg)
{
	int fd;

	drop_privileges();
	CHECK(open_name(O_RDWR) == -EACCES, "opened for writing");
	fd = open_name(O_RDONLY);
	CHECK(fd >= 0, "for reading: %s", reason);
	CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY, "the dma-buf is writable");
	CHECK(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED,
	      "it can be mapped for writing");
	close(fd);
}

TEST(reader, "a user who may only read can read")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0664);

	close(fd);
	tap_fork(reader, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* the user that root handed the buffer to */
static void new_owner(void *arg)
{
	struct rashpa_remove r = { HEAD(r) };
	int fd;

	drop_privileges();
	fd = open_name(O_RDWR);
	CHECK(fd >= 0, "the owner cannot open it: %s", reason);
	close(fd);
	ANSWERED(buffer_permit(NAME, -1, -1, 0400), 0, NULL);
	CHECK(open_name(O_RDWR) == -EACCES, "the mode is ignored");
	CHECK(buffer_permit(NAME, 0, -1, -1) == -EPERM, "it was given away");
	CHECK(buffer_permit(NAME, -1, 0, -1) == -EPERM, "given to a group of others");
	ANSWERED(buffer_permit(NAME, -1, 65534, -1), 0, NULL);
	/* it is the owner that removes it, whatever the mode lets him do */
	fd = buffer_node(NAME, O_RDONLY);
	ANSWERED(call(fd, RASHPA_IOC_REMOVE, &r), 0, NULL);
	close(fd);
}

TEST(hand_over, "root hands a buffer to a user")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0600);

	ANSWERED(buffer_permit(NAME, 65534, 7, -1), 0, NULL);
	close(fd);
	tap_fork(new_owner, NULL);
	ANSWERED(buffer_remove(NAME), ENOENT, NULL);
}

/* The maker of a buffer that root has given away loses its rights, even with an open file. */
static void old_owner(void *arg)
{
	struct rashpa_remove r = { HEAD(r) };
	int *turn = arg, node;
	char c;

	drop_privileges();
	node = buffer_node(NAME, O_ACCMODE);
	CHECK(node >= 0, "open: %s", strerror(errno));
	CHECK(write(turn[3], "", 1) == 1 && read(turn[0], &c, 1) == 1, "no turn");
	ANSWERED(call(node, RASHPA_IOC_REMOVE, &r), EPERM, NAME "|not yours");
	CHECK(buffer_permit(NAME, -1, -1, 0666) == -EPERM, "its mode was changed");
}

TEST(taken_away, "a buffer that root gives away is not its maker's any more")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0600), turn[4];
	pid_t pid;
	char c;

	REQUIRE(!pipe2(turn, O_CLOEXEC) && !pipe2(turn + 2, O_CLOEXEC), "pipe");
	ANSWERED(buffer_permit(NAME, 65534, -1, -1), 0, NULL);
	pid = tap_fork_start(old_owner, turn);
	CHECK(read(turn[2], &c, 1) == 1, "the child does not answer");
	ANSWERED(buffer_permit(NAME, 1000, -1, -1), 0, NULL);
	CHECK(write(turn[1], "", 1) == 1, "write");
	tap_fork_end(pid);
	close(fd);
	for (int i = 0; i < 4; i++)
		close(turn[i]);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}

/* Root of another namespace. */
static void root_in_namespace(void *arg)
{
	const int *node = arg;
	struct rashpa_remove r = { HEAD(r) };

	drop_privileges();
	/* a process that has changed its ids needs this to write its files in /proc */
	CHECK(!prctl(PR_SET_DUMPABLE, 1) && !unshare(CLONE_NEWUSER), "unshare: %s",
	      strerror(errno));
	CHECK(!write_text("/proc/self/uid_map", "0 65534 1") &&
	      !write_text("/proc/self/setgroups", "deny") &&
	      !write_text("/proc/self/gid_map", "0 65534 1"), "maps of ids");
	ANSWERED(call(*node, RASHPA_IOC_REMOVE, &r), EPERM, "not yours");
}

TEST(namespace, "root of another namespace is not the owner")
{
	int fd, node;

	SKIP_IF(access("/proc/self/ns/user", F_OK), "no user namespaces in this kernel");
	fd = alloc_with(RASHPA_ALLOC_MODE, 0600);
	node = buffer_node(NAME, O_ACCMODE);
	tap_fork(root_in_namespace, &node);
	close(node);
	buffer_end(fd, NAME);
}

#define RACES	50

/* Makes and removes a name all the time, and counts the successes. */
static void name_for_ever(void *arg)
{
	atomic_uint *times = arg;
	int fd;

	for (;;) {
		fd = alloc_with(0, 0);
		if (fd < 0)
			continue;
		close(fd);
		while (buffer_remove(NAME) == -EBUSY)
			;
		atomic_fetch_add(times, 1);
	}
}

TEST(name_race, "a name that two processes make and remove has one buffer and one node")
{
	atomic_uint *times = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = tap_fork_start(name_for_ever, times);
	int i = 0, fd, err;

	while (i < RACES || atomic_load(times) < RACES) {
		fd = alloc_with(0, 0);
		if (fd >= 0) {
			close(fd);
			i++;
		} else if (!CHECK(fd == -EEXIST, "ALLOC: %d", fd)) {
			break;
		}
		err = buffer_remove(NAME);
		if (!CHECK(!err || err == -ENOENT || err == -ENXIO, "REMOVE: %d", err))
			break;
	}
	tap_fork_kill(pid);
	munmap(times, PAGE);
	buffer_remove(NAME);
	CHECK(buffer_node(NAME, O_ACCMODE) < 0 && errno == ENOENT, "a node is left");
}

static void in_group(void *arg)
{
	struct rashpa_remove r = { HEAD(r) };
	int fd, node;

	CHECK(!setgroups(0, NULL) && !setresgid(77, 77, 77) && !setresuid(1000, 1000, 1000),
	      "become another");
	fd = open_name(O_RDWR);
	CHECK(fd >= 0, "the group cannot open it: %s", reason);
	close(fd);
	node = buffer_node(NAME, O_ACCMODE);
	ANSWERED(call(node, RASHPA_IOC_REMOVE, &r), EPERM, "not yours");
	close(node);
}

TEST(group, "a group may use it")
{
	int fd = alloc_with(RASHPA_ALLOC_MODE, 0660);

	ANSWERED(buffer_permit(NAME, -1, 77, -1), 0, NULL);
	close(fd);
	tap_fork(in_group, NULL);
	ANSWERED(buffer_remove(NAME), 0, NULL);
}
