// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=9 */
/*
 * Files that outlive things: the function is taken away under open files, mappings and
 * maps, and holders are killed. The module must stay while it is in use.
 */
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <rashpa-fpga.h>
#include "holder.h"

static struct fpga f;

static void bind_again(void)
{
	int err = fpga_bind(&f);

	if (err && err != -EBUSY)
		tap_bail("bind: %s", strerror(-err));
	if (!fpga_open(&f, 0))
		tap_bail("the function is gone");
	if (fpga_profile(&f, 0, NULL, 0))
		tap_bail("profile: %s", reason);
}

static void close_nodes(void)
{
	close(memory);
	close(f.fd);
}

static void open_nodes(void)
{
	memory = open("/dev/rashpa/memory", O_RDWR | O_CLOEXEC);
	if (memory < 0 || !fpga_open(&f, 0))
		tap_bail("the nodes cannot be opened again");
}

static void unbind(void)
{
	int err = fpga_unbind(&f);

	CHECK(!err, "unbind: %s", strerror(-err));
}

/* --- the unbind itself --- */

TEST(unbind, "after unbind every open file answers ENODEV")
{
	struct open_things t = {};
	char path[48];

	open_all(&t, &f);
	ANSWERED(fpga_program(t.map, 0, NULL), 0, NULL);
	unbind();
	snprintf(path, sizeof(path), "/dev/rashpa/%s", f.name);
	CHECK(access(path, F_OK), "%s is still there", path);
	all_gone(&t, RASHPA_DEVICE_EVENT_QUIESCED);
	close_all(&t);
	bind_again();
}

TEST(unbind_idle, "a function can be bound again and again")
{
	int i;

	for (i = 0; i < 5; i++) {
		unbind();
		close(f.fd);
		bind_again();
	}
}

/*
 * The test has no handler for SIGBUS. Some pages were touched before, others are touched for the
 * first time: all of them show the same page of ones.
 */
TEST(unbind_blank, "a blank window reads as ones when the function is gone")
{
	struct rashpa_window_make w = { HEAD(w), .bar = RFPGA_BAR_REGS, .length = 4 * PAGE };
	struct rashpa_window_make again;
	const int node = f.fd;
	volatile uint32_t *regs;

	w.head.flags = RASHPA_WINDOW_BLANK;
	again = w;
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), 0, NULL);
	regs = map_fd(w.out_fd, 4 * PAGE);
	CHECK(regs[RFPGA_ID / 4] == RFPGA_ID_VALUE, "no registers: %#x", regs[RFPGA_ID / 4]);
	unbind();
	for (unsigned int page = 0; page < 4; page++)
		CHECK(regs[page * PAGE / 4] == UINT32_MAX, "page %u reads %#x", page,
		      regs[page * PAGE / 4]);
	regs[RFPGA_SCRATCH / 4] = 0x1234;
	regs[PAGE / 4] = 0x5678;
	CHECK(regs[2 * PAGE / 4] == 0x5678, "there is more than one page");
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &again), ENODEV, NULL);
	bind_again();
	/* the old window does not show the registers of the new function */
	CHECK(regs[RFPGA_ID / 4] == 0x5678, "the registers came back");
	munmap((void *)(uintptr_t)regs, 4 * PAGE);
	close(w.out_fd);
	close(node);
}

TEST(unbind_bound_again, "old files stay dead when the function is bound again")
{
	struct open_things t = {};
	struct rashpa_device_info info;
	struct fpga old;
	int win;
	void *regs;

	open_all(&t, &f);
	old = f;
	unbind();
	bind_again();
	/* the new one works, the old files stay dead */
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	ANSWERED(fpga_info(&old, &info), ENODEV, old.name);
	win = fpga_window(&f, 0, 0, PAGE, 0);
	regs = map_fd(win, PAGE);
	CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "registers");
	munmap(regs, PAGE);
	sigbus(t.regs, "a mapping of the old window");
	ANSWERED(fpga_program(t.map, 0, NULL), ENODEV, old.name);
	close(win);
	close_all(&t);
}

/* --- waiters, when the function goes --- */

struct waiter {
	pthread_t thread;
	int fd;
	size_t size;
	volatile pid_t tid;
	volatile ssize_t got;
	volatile int err;
};

static void *wait_in_read(void *arg)
{
	struct waiter *w = arg;
	char bytes[256];

	w->tid = gettid();
	w->got = read(w->fd, bytes, w->size);
	w->err = errno;
	return NULL;
}

static void waiter_start(struct waiter *w, int fd, size_t size)
{
	char path[64], state[256], *p;

	w->fd = fd;
	w->size = size;
	w->tid = 0;
	fcntl(fd, F_SETFL, 0);
	pthread_create(&w->thread, NULL, wait_in_read, w);
	while (!w->tid)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", w->tid);
	do {
		sched_yield();
		if (!read_text(path, state, sizeof(state)))
			return;
		p = strrchr(state, ')');
	} while (!p || p[2] != 'S');
}

/* It must come back; if it does not, it is killed, and the test fails. */
static void waiter_join(struct waiter *w, const char *what)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 5;
	if (!CHECK(!pthread_timedjoin_np(w->thread, NULL, &until),
		   "the waiter for %s is not woken", what)) {
		pthread_kill(w->thread, SIGUSR1);
		pthread_join(w->thread, NULL);
	}
}

static void on_signal(int sig)
{
}

TEST(unbind_waiting, "unbind wakes waiters")
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct waiter channel, quiet, map;
	struct open_things t = {};

	sigaction(SIGUSR1, &sa, NULL);
	open_all(&t, &f);
	waiter_start(&channel, t.channel, sizeof(struct rashpa_event));
	waiter_start(&quiet, t.quiet, sizeof(struct rashpa_event));
	waiter_start(&map, t.map, sizeof(struct rashpa_table));
	unbind();
	waiter_join(&channel, "device events");
	waiter_join(&quiet, "interrupts");
	waiter_join(&map, "a map");
	CHECK(channel.got > 0, "device events: %s", strerror(channel.err));
	CHECK(quiet.got < 0 && quiet.err == ENODEV, "interrupts: %s", strerror(quiet.err));
	CHECK(map.got == sizeof(struct rashpa_table), "map: %s", strerror(map.err));
	close_all(&t);
	bind_again();
}

/* --- threads at work, when the function goes --- */

static volatile bool working;
static atomic_uint worked;	/* how often */

static void *work(void *unused)
{
	struct rashpa_map_make map;
	struct rashpa_device_info info;
	int buf, win, ch, m;

	buf = buffer_alloc(MIB, NULL);
	while (working) {
		win = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
		m = fpga_map(&f, buf, RASHPA_BIDIRECTIONAL, &map);
		ch = fpga_events(&f, 0);
		if (ch >= 0)
			source_add(ch, RASHPA_SOURCE_DEVICE, 0);
		if (m >= 0 && win >= 0)
			fpga_program(m, 0, NULL);
		fpga_info(&f, &info);
		if (win >= 0)
			close(win);
		if (m >= 0)
			close(m);
		if (ch >= 0)
			close(ch);
		atomic_fetch_add(&worked, 1);
	}
	close(buf);
	return NULL;
}

TEST(unbind_busy, "unbind while others work with the function")
{
	pthread_t thread[2];
	int i, round;

	for (round = 0; round < 5; round++) {
		working = true;
		atomic_store(&worked, 0);
		for (i = 0; i < 2; i++)
			pthread_create(&thread[i], NULL, work, NULL);
		while (atomic_load(&worked) < 5U * (round + 1))
			sched_yield();
		unbind();
		working = false;
		for (i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
		close(f.fd);
		bind_again();
	}
}

/* --- processes that die --- */

static void hold_all(void *arg)
{
	struct open_things t = {};

	open_all(&t, &f);
	if (!fpga_program(t.map, 0, NULL))
		tap_fork_hold();
}

TEST(kill_holder, "a killed holder leaves nothing in the function")
{
	struct rashpa_device_info before, after;
	void *regs = fpga_regs(&f);
	pid_t pid;
	int round;

	fpga_info(&f, &before);
	for (round = 0; round < 5; round++) {
		pid = tap_fork_held(hold_all, NULL);
		CHECK(reg32(regs, RFPGA_TABLE + RFPGA_ENTRY_CONTROL) ==
		      RFPGA_ENTRY_VALID, "the entry is not valid");
		tap_fork_kill(pid);
		CHECK(!reg32(regs, RFPGA_TABLE + RFPGA_ENTRY_CONTROL) &&
		      !reg64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR), "the entry was left");
		fpga_info(&f, &after);
		CHECK(after.out_maps == 0 && after.out_windows == before.out_windows,
		      "%u maps, %u windows were left", after.out_maps, after.out_windows);
	}
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

static void unbind_under_holder(void *arg)
{
	struct open_things t = {};

	/* the parent takes the function away, then kills */
	open_all(&t, &f);
	tap_fork_hold();
}

TEST(kill_after_unbind, "a holder can be killed after unbind")
{
	pid_t pid = tap_fork_held(unbind_under_holder, NULL);

	unbind();
	close(f.fd);
	bind_again();
	tap_fork_kill(pid);
}

/* --- buffers and maps in any order --- */

TEST(map_outlives_buffer, "a map keeps its memory")
{
	u64 before = bytes_allocated();
	struct rashpa_map_make map;
	int fd = buffer_alloc(MIB, NULL), m;

	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	close(fd);
	REQUIRE(m >= 0, "MAP: %s", reason);
	CHECK(bytes_allocated() >= before + MIB + map.out_table_size,
	      "memory was given back under a map");
	close(m);
	CHECK(bytes_allocated() == before, "the memory did not come back");
}

TEST(table_outlives_map, "a mapped table keeps its map")
{
	struct rashpa_map_make map;
	int fd = buffer_alloc(MIB, NULL), m;
	const struct rashpa_table *t;

	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	close(fd);
	REQUIRE(m >= 0, "MAP: %s", reason);
	t = mmap(NULL, map.out_table_size, PROT_READ, MAP_SHARED, m, 0);
	close(m);
	REQUIRE(t != MAP_FAILED, "mmap: %s", strerror(errno));
	CHECK(t->count == map.out_segments, "the table has changed");
	munmap((void *)t, map.out_table_size);
}

TEST(channel_outlives_node, "a channel outlives the file that made it")
{
	struct rashpa_device_info info;
	int ch = fpga_events(&f, 0);

	close(f.fd);
	CHECK(source_add(ch, RASHPA_SOURCE_SOFTWARE, 0) == 1, "%s", reason);
	bind_again();
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	close(ch);
}

/* --- the module --- */

static int unload(void)
{
	return syscall(__NR_delete_module, "rashpa", O_NONBLOCK) ? errno : 0;
}

static void module_stays(const char *why)
{
	int err = unload();

	if (!err)
		tap_bail("the module was unloaded although %s", why);
	CHECK(err == EWOULDBLOCK || err == EBUSY, "unload: %s", strerror(err));
}

/* Without the files of this program nothing but @fd holds the module. */
static void stays_for(void *arg)
{
	module_stays(arg);
}

TEST(module_named, "the module stays while a named buffer exists")
{
	/* children have no file of the module but those that the test is about */
	int fd = buffer_alloc(PAGE, "st-module");

	close(fd);
	close_nodes();
	tap_fork(stays_for, "a named buffer exists");
	open_nodes();
	ANSWERED(buffer_remove("st-module"), 0, NULL);
}

TEST(module_held, "the module stays while anything of it is open")
{
	int fd, win;
	void *p;

	fd = buffer_alloc(PAGE, NULL);
	win = fpga_window(&f, 0, 0, PAGE, 0);
	close_nodes();
	close(win);
	tap_fork(stays_for, "a buffer is open");
	p = map_fd(fd, PAGE);
	close(fd);
	tap_fork(stays_for, "a buffer is mapped");
	open_nodes();
	munmap(p, PAGE);

	win = fpga_window(&f, 0, 0, PAGE, 0);
	close_nodes();
	tap_fork(stays_for, "a window is open");
	open_nodes();
	close(win);

	fd = fpga_events(&f, 0);
	close_nodes();
	tap_fork(stays_for, "a channel is open");
	open_nodes();
	close(fd);
}

void setup(void)
{
	fpga_need(&f);
}
