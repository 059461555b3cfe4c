// SPDX-License-Identifier: LGPL-2.1-or-later
/* The program: arguments, speed, end. */
#include "fpga/tests/selftest.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Properties of this board, from its options. */
static void test_identity(void)
{
	CHECK_EQ(config_read(0), RFPGA_PCI_DEVICE << 16 | RFPGA_PCI_VENDOR);
	CHECK_EQ(config_read(8) >> 8, RFPGA_PCI_CLASS);
	CHECK_EQ(rd(RFPGA_VERSION), RFPGA_VERSION_VALUE);
	CHECK_EQ(board.dtps, 4);
	CHECK_EQ(board.vectors, CLIENT_VECTORS);
	CHECK_EQ(board.entries, 1024);
	CHECK_EQ(board.memory, CLIENT_MEMORY);
	CHECK_EQ(board.shown, CLIENT_MEMORY);
	CHECK_EQ(board.tick_rate, 1000000000 / RFPGA_TICK_NS);
	CHECK_EQ(board.offset_bits, 48);
	CHECK(board.stop_time >= 1000);
}

/* A smaller board: a START that needs missing features fails visibly. */
static void test_small_board(void)
{
	struct dtp d = plain(0);

	restart_program_with("--entries=2");
	CHECK_EQ(RFPGA_CAPS_ENTRIES(rd(RFPGA_CAPS)), 2);
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	set_entry(2, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	CHECK_EQ(rd(RFPGA_TABLE + 2 * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_CONTROL), 0);
	d = plain(1);
	d.count = 3;
	start(&d);
	CHECK_EQ(status(1), RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), RFPGA_DTP(1) + RFPGA_DTP_DST_COUNT);
	d.first = 2;
	start(&d);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), RFPGA_DTP(1) + RFPGA_DTP_DST_FIRST);

	restart_program_with("--without=flush");
	CHECK_EQ(rd(RFPGA_FEATURES) & RFPGA_FEATURE_FLUSH, 0);
	d = plain(0);
	d.mode |= RFPGA_MODE_FLUSH;
	start(&d);
	CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), RFPGA_DTP(0) + RFPGA_DTP_MODE);
	restart_program_with("--without=group");
	d = plain(0);
	program_dtp(&d);
	wr(RFPGA_GROUP_START, 1);
	CHECK_EQ(status(0), 0);
	restart_program_with(NULL);
}

static void speed(const char *what, uint32_t width, uint32_t height, uint64_t images)
{
	struct dtp d = plain(0);
	uint64_t ticks;

	d.mode = RFPGA_MODE_FREERUN | RFPGA_MODE_LOCK;
	d.width = width;
	d.height = height;
	d.src_line = 4096;
	d.dst_line = width * 2;
	d.src_image = d.dst_image = 4 << 20;
	d.images_in_set = 4;
	d.bunch = 2;
	d.slots = 3;
	d.dst_slot = 8 << 20;
	d.images = images;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	ticks = counter(0, RFPGA_DTP_C_STOP) - counter(0, RFPGA_DTP_C_START);
	note("%s: %.0f MB/s, %.0f ns a descriptor", what,
	     (double)counter(0, RFPGA_DTP_C_BYTES) / ((double)ticks * RFPGA_TICK_NS) * 1e3,
	     (double)ticks * RFPGA_TICK_NS / (double)counter(0, RFPGA_DTP_C_DESCRIPTORS));
}

static void test_speed(void)
{
	speed("whole images, 4 MiB", 2048, 1024, 100);
	speed("lines of 1 KiB", 512, 1024, 100);
	speed("lines of 64 B", 32, 1024, 400);
}

/* Exit status of the program with these arguments; -1: it does not end. */
static int ends_with(const char *socket_path, const char *control_path, const char *memory)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		execl(program, program, "--socket", socket_path, "--control", control_path,
		      "--memory", memory, "--log", "/dev/null", NULL);
		_exit(127);
	}
	return client_wait(pid);
}

static bool has_text(const char *path, const char *text)
{
	char read_back[16] = "";
	FILE *file = fopen(path, "r");
	bool same = file && fgets(read_back, sizeof(read_back), file) &&
		    !strcmp(read_back, text);

	if (file)
		fclose(file);
	return same;
}

/* Another file at the path stays, and the program does not wait; wrong sizes are refused. */
static void test_arguments(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int busy = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), queue[8], n = 0;
	char *path = addr.sun_path, free_path[sizeof(addr.sun_path)];
	FILE *file;

	snprintf(path, sizeof(addr.sun_path), "%.90s.other", c->path);
	snprintf(free_path, sizeof(free_path), "%.90s.free", c->path);
	file = fopen(path, "w");
	if (!file || fputs("mine", file) < 0 || fclose(file))
		die("%s: %s", path, strerror(errno));
	CHECK_EQ(ends_with(path, free_path, "4K"), EXIT_FAILURE);
	CHECK(has_text(path, "mine"));
	CHECK_EQ(ends_with(free_path, path, "4K"), EXIT_FAILURE);
	CHECK(has_text(path, "mine"));
	unlink(path);
	/* sizes whose sum wraps are refused */
	CHECK_EQ(ends_with(free_path, path, "17179869185G"), 2);
	/* nor in octal, in which it would be 4096 */
	CHECK_EQ(ends_with(free_path, path, "010000"), 2);
	/* a socket of a live but busy process */
	if (bind(busy, (struct sockaddr *)&addr, sizeof(addr)) || listen(busy, 0))
		die("%s: %s", path, strerror(errno));
	do {
		queue[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	} while (!connect(queue[n++], (struct sockaddr *)&addr, sizeof(addr)) && n < 8);
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(ends_with(path, free_path, "4K"), EXIT_FAILURE);
	CHECK(!access(path, F_OK));
	while (n)
		close(queue[--n]);
	close(busy);
	unlink(path);
}

/* Request more than the socket can hold. */
static void ask_much(void)
{
	const struct {
		uint16_t id, command;
		uint32_t size, flags, error;
		uint64_t offset;
		uint32_t region, count;
	} ask = { .command = 9, .size = sizeof(ask), .region = RFPGA_BAR_MEMORY, .count = 1 << 20 };

	client_send(c, &ask, sizeof(ask), NULL, 0);
}

/* Receive a part of the answer; false: the end. */
static bool take_some(size_t *taken)
{
	static uint8_t some[16384];
	ssize_t n;

	usleep(250000);
	n = recv(c->fd, some, sizeof(some), MSG_DONTWAIT);
	*taken += n > 0 ? (size_t)n : 0;
	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* A client that reads an answer slowly, for up to 15 s. */
static void test_slow_client(void)
{
	uint64_t begin = now_us();
	size_t taken = 0;
	int state;

	ask_much();
	while (taken < 1 << 20 && take_some(&taken))
		;
	CHECK(taken && taken < 1 << 20);
	CHECK(now_us() - begin >= 5000000);
	client_disconnect(c);
	client_setup(c);
	/* the end does not wait for the client */
	ask_much();
	CHECK(EVENTUALLY(recv(c->fd, &state, 1, MSG_DONTWAIT) == 1));
	begin = now_us();
	kill(c->pid, SIGTERM);
	while (waitpid(c->pid, &state, WNOHANG) != c->pid && now_us() - begin < 4000000)
		take_some(&taken);
	CHECK(now_us() - begin < 4000000);
	CHECK(WIFEXITED(state) && !WEXITSTATUS(state));
	client_disconnect(c);
	start_program();
}

static pid_t thread_of(pid_t pid, const char *name)
{
	char path[300], line[32];
	struct dirent *entry;
	pid_t found = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		die("%s: %s", path, strerror(errno));
	snprintf(line, sizeof(line), "%s\n", name);
	while (!found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%.9s/comm", pid, entry->d_name);
		if (has_text(path, line))
			found = atoi(entry->d_name);
	}
	closedir(dir);
	return found;
}

/* A thread that never returns, like one that is blocked by a file of the client. */
static void test_stuck_thread(void)
{
	pid_t thread = 0;
	int state, i;

	/* the message names it */
	CHECK(EVENTUALLY((thread = thread_of(c->pid, "engine"))));
	if (ptrace(PTRACE_SEIZE, thread, NULL, NULL))
		skip("ptrace: %s", strerror(errno));
	CHECK(!ptrace(PTRACE_INTERRUPT, thread, NULL, NULL));
	CHECK(waitpid(thread, &state, __WALL) == thread && WIFSTOPPED(state));
	kill(c->pid, SIGTERM);
	for (i = 0; i < 1000 && waitpid(thread, &state, __WALL | WNOHANG) != thread; i++)
		usleep(10000);
	CHECK(i < 1000);
	if (i == 1000)
		kill(c->pid, SIGKILL);
	CHECK_EQ(client_wait(c->pid), EXIT_FAILURE);
	client_disconnect(c);
	start_program();
}

static void test_end(void)
{
	struct dtp d = plain(0);

	/* busy, with a client */
	d.images = 0;
	d.mode = RFPGA_MODE_FREERUN;
	start(&d);
	CHECK_EQ(client_end(c), 0);
	CHECK(access(c->path, F_OK) && errno == ENOENT);
	client_disconnect(c);
	/* a socket of a dead program is taken over */
	client_spawn(c, program);
	kill(c->pid, SIGKILL);
	CHECK(client_wait(c->pid) > 0);
	CHECK(!access(c->path, F_OK));
	client_spawn(c, program);
	client_setup(c);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	client_disconnect(c);
	CHECK_EQ(client_end(c), 0);
}

static const struct test tests[] = {
	{ "identity", "options of the start", test_identity },
	{ "small", "fewer entries, fewer features", test_small_board },
	{ "speed", "speed", test_speed },
	{ "arguments", "occupied paths, and invalid sizes", test_arguments },
	{ "slow-client", "a slow client", test_slow_client },
	{ "stuck-thread", "the end, while a thread is stuck", test_stuck_thread },
	{ "end", "the end, and another start", test_end },
};

const struct suite program_suite = SUITE("program", tests);
