// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug seconds=2 */
/*
 * Files that go elsewhere: over a socket to a process without privileges, to duplicates,
 * through exec. Rights follow the file, not the process that opened it.
 */
#include <dirent.h>
#include <sys/socket.h>

#include <rashpa-fpga.h>
#include "calls.h"

/* --- over a socket --- */

static bool send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	return sendmsg(sock, &msg, 0) == 1;
}

static int receive_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	int fd = -1;

	if (recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

/* A file to pass, and the calls that a process without privileges may make with it. */
struct passed {
	const char *key;
	int (*make)(void);
	void (*use)(int fd);
	bool function;
};

static int make_memory(void)
{
	return calls_node(MEMORY);
}

static void use_memory(int fd)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };

	ANSWERED(call(fd, RASHPA_IOC_ALLOC, &a), 0, NULL);
	close(a.out_fd);
}

static int make_memory_read(void)
{
	return open("/dev/rashpa/memory", O_RDONLY | O_CLOEXEC);
}

static void use_memory_read(int fd)
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE };
	struct rashpa_query q = { HEAD(q) };

	ANSWERED(call(fd, RASHPA_IOC_ALLOC, &a), EPERM, "read-only");
	ANSWERED(call(fd, RASHPA_IOC_QUERY, &q), 0, NULL);
}

static int make_node(void)
{
	return calls_node(BUFFER);
}

static void maps(int fd, int prot, int err)
{
	void *p = mmap(NULL, PAGE, prot, MAP_SHARED, fd, 0);

	if (err)
		CHECK(p == MAP_FAILED && errno == err, "mmap: %s", strerror(errno));
	else
		CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno));
	if (p != MAP_FAILED)
		munmap(p, PAGE);
}

/* A node that a process with privileges has opened. */
static void use_node(int fd)
{
	struct rashpa_export d = { HEAD(d) };
	struct rashpa_remove r = { HEAD(r) };

	ANSWERED(call(fd, RASHPA_IOC_REMOVE, &r), EPERM, "st-calls|not yours");
	maps(fd, PROT_READ | PROT_WRITE, 0);
	ANSWERED(call(fd, RASHPA_IOC_EXPORT, &d), 0, NULL);
	maps(d.out_fd, PROT_READ | PROT_WRITE, 0);
	close(d.out_fd);
}

static int make_buffer(void)
{
	return fcntl(calls.fds[FD_BUFFER], F_DUPFD_CLOEXEC, 0);
}

static void use_buffer(int fd)
{
	maps(fd, PROT_READ | PROT_WRITE, 0);
}

static int make_buffer_read(void)
{
	return buffer_open("st-calls", O_RDONLY);
}

static void use_buffer_read(int fd)
{
	maps(fd, PROT_READ, 0);
	maps(fd, PROT_READ | PROT_WRITE, EACCES);
}

static int make_window(void)
{
	return fcntl(calls.fds[FD_WINDOW], F_DUPFD_CLOEXEC, 0);
}

static void use_window(int fd)
{
	void *p = map_fd(fd, PAGE);

	CHECK(reg32(p, RFPGA_ID) == RFPGA_ID_VALUE, "registers");
	munmap(p, PAGE);
}

static int make_fpga(void)
{
	return calls_node(FPGA);
}

static void use_fpga(int fd)
{
	struct fpga f = { .fd = fd };
	struct rashpa_window_make named = { HEAD(named), .name = "doorbell" };
	struct rashpa_reset reset = { HEAD(reset) };
	struct rashpa_device_info info;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	ANSWERED(call(fd, RASHPA_IOC_RESET, &reset), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(fpga_profile_none(&f), EPERM, "CAP_SYS_ADMIN");
	ANSWERED(fpga_window(&f, RFPGA_BAR_REGS, 0, PAGE, 0), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(call(fd, RASHPA_IOC_WINDOW_MAKE, &named), 0, NULL);
	close(named.out_fd);
}

static int make_fpga_read(void)
{
	return fcntl(calls.fds[FD_FPGA_READ], F_DUPFD_CLOEXEC, 0);
}

static void use_fpga_read(int fd)
{
	struct fpga f = { .fd = fd };
	struct rashpa_device_info info;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	ANSWERED(fpga_events(&f, 0), EPERM, "read-only");
}

static int make_map(void)
{
	return calls_node(MAP);
}

static void use_map(int fd)
{
	maps(fd, PROT_READ, EPERM);	/* the profile discloses no addresses */
	ANSWERED(fpga_program(fd, 0, NULL), 0, NULL);
	ANSWERED(map_restore(fd), 0, NULL);
}

static int make_channel(void)
{
	return calls_node(CHANNEL);
}

static void use_channel(int fd)
{
	struct rashpa_event e;

	ANSWERED(signal_one(fd, 5), 0, NULL);
	CHECK(read(fd, &e, sizeof(e)) == sizeof(e) && e.value == 5, "read");
	CHECK(source_add(fd, RASHPA_SOURCE_VECTOR, 1) > 0, "%s", reason);
}

static const struct passed passed[] = {
	{ "the-memory-node", make_memory, use_memory, false },
	{ "the-memory-node-read-only", make_memory_read, use_memory_read, false },
	{ "a-buffers-node", make_node, use_node, false },
	{ "a-buffer", make_buffer, use_buffer, false },
	{ "a-buffer-read-only", make_buffer_read, use_buffer_read, false },
	{ "a-window", make_window, use_window, true },
	{ "a-function", make_fpga, use_fpga, true },
	{ "a-function-read-only", make_fpga_read, use_fpga_read, true },
	{ "a-map", make_map, use_map, true },
	{ "a-channel", make_channel, use_channel, true },
};

struct receiver {
	const struct passed *p;
	int sock;
};

/* A process without privileges, with one file and nothing else of ours. */
static void receive(void *arg)
{
	struct receiver *r = arg;
	int fd;

	if (dup3(r->sock, 3, O_CLOEXEC) != 3 || close_range(4, ~0U, 0))
		tap_bail("files cannot be closed");
	drop_privileges();
	CHECK(open("/dev/rashpa/memory", O_RDONLY) < 0, "the receiver can open the node");
	fd = receive_fd(3);
	if (CHECK(fd >= 0, "nothing was received"))
		r->p->use(fd);
}

static void pass_on(const struct passed *p)
{
	struct receiver r = { .p = p };
	int sock[2], fd;
	pid_t pid;

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), "socketpair");
	r.sock = sock[1];
	pid = tap_fork_start(receive, &r);
	fd = p->make();
	CHECK(fd >= 0, "%s", reason);
	CHECK(send_fd(sock[0], fd), "send: %s", strerror(errno));
	/* from now on only the message, or its receiver, has the file */
	close(fd);
	tap_fork_end(pid);
	close(sock[0]);
	close(sock[1]);
}

/* An unread message ends with its socket. */
static void drop_message(const struct passed *p)
{
	int sock[2], fd = p->make();

	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock), "socketpair");
	CHECK(fd >= 0 && send_fd(sock[0], fd), "send: %s", strerror(errno));
	close(fd);
	close(sock[0]);
	close(sock[1]);
}

TEST_EACH(pass, passed, "%s is passed to a process without privileges: rights follow the file")
{
	SKIP_IF(row->function && !calls.have_fpga, "no software FPGA");
	pass_on(row);
	drop_message(row);
}

/* --- duplicates --- */

static void duplicate(const struct op *op)
{
	static union call_arg arg;
	int fd = calls_node(op->node), copy;

	REQUIRE(fd >= 0, "%s: %s", op_name(op), reason);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 800);
	op_prepare(op, &arg);
	close(fd);
	if (op->node == CHANNEL) {	/* its undo works on this channel */
		fd = calls.nodes[CHANNEL];
		calls.nodes[CHANNEL] = copy;
		ANSWERED(op_run(op, copy, &arg), 0, NULL);
		calls.nodes[CHANNEL] = fd;
	} else {
		ANSWERED(op_run(op, copy, &arg), 0, NULL);
	}
	/* another file in its place: the number names the new file, and the first one is gone */
	dup3(calls.fds[FD_PIPE], copy, O_CLOEXEC);
	op_prepare(op, &arg);
	CHECK(call(copy, op->cmd, &arg) == -ENOTTY, "%s on a pipe", op_name(op));
	close(copy);
}

TEST(duplicates, "a duplicate is as good as the file itself")
{
	struct calls_state before;
	size_t i;

	calls_state_get(&before);
	for (i = 0; i < n_ops; i++)
		if (!ops[i].idle && (ops[i].node <= BUFFER || calls.have_fpga))
			duplicate(&ops[i]);
	calls_state_same(&before, "duplicates");
}

/* --- exec --- */

/* All files that the program has: none of ours may be there. */
__attribute__((constructor)) static void list_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char path[300], to[256];
	int ours = 0;
	ssize_t n;

	if (!getenv("PASS_LIST"))
		return;
	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		n = readlink(path, to, sizeof(to) - 1);
		if (n < 0)
			continue;
		to[n] = '\0';
		if (strstr(to, "rashpa") || strstr(to, "dmabuf")) {
			printf("# fd %s is %s\n", entry->d_name, to);
			ours++;
		}
	}
	_exit(!dir || ours);
}

static void exec_list(void *unused)
{
	setenv("PASS_LIST", "", 1);
	execl("/proc/self/exe", "pass_test", NULL);
	tap_fail(__FILE__, __LINE__, "exec: %s", strerror(errno));
}

TEST(exec, "no file of ours survives exec")
{
	static union call_arg arg[64];
	struct calls_state before;
	size_t i;
	int flags;

	calls_state_get(&before);
	REQUIRE(n_ops <= ARRAY_SIZE(arg), "no room for %zu calls", n_ops);
	for (i = 0; i < n_ops; i++) {
		if (!ops[i].out_fd || (ops[i].node > BUFFER && !calls.have_fpga))
			continue;
		op_prepare(&ops[i], &arg[i]);
		ANSWERED(call(calls.nodes[ops[i].node], ops[i].cmd, &arg[i]), 0, NULL);
		flags = fcntl(op_fd(&ops[i], &arg[i]), F_GETFD);
		CHECK(flags == FD_CLOEXEC, "%s: flags %d", op_name(&ops[i]), flags);
	}
	tap_fork(exec_list, NULL);
	for (i = 0; i < n_ops; i++)
		if (ops[i].out_fd && (ops[i].node <= BUFFER || calls.have_fpga))
			op_undo(&ops[i], &arg[i]);
	calls_state_same(&before, "exec");
}

CALLS_SETUP
