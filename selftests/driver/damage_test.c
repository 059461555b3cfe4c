// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug seconds=10 */
/* Memory errors in buffers: events, SIGBUS, and damaged pages that are kept back. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mount.h>

#include "common.h"

#ifndef BUS_MCEERR_AR
#define BUS_MCEERR_AR	4
#endif
#define SIZE	(8 * MIB)
#define BAD	(3 * MIB + 5 * PAGE)
#define DEBUGFS	"/sys/kernel/debug"

/* id, or a negative errno */
static int add(int ch, int fd)
{
	struct rashpa_source_add a = { HEAD(a), .kind = RASHPA_SOURCE_DAMAGE, .memory = fd };
	int err = call(ch, RASHPA_IOC_SOURCE_ADD, &a);

	return err ? err : (int)a.out_id;
}

static sigjmp_buf way_out;
static volatile sig_atomic_t code;

static void on_bus(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	code = info->si_code;
	siglongjmp(way_out, 1);
}

/* The si_code of the SIGBUS that touching it raised, or 0. */
static int touch(volatile char *p)
{
	const struct sigaction action = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	struct sigaction old;

	code = 0;
	sigaction(SIGBUS, &action, &old);
	if (!sigsetjmp(way_out, 1))
		(void)*p;
	sigaction(SIGBUS, &old, NULL);
	return code;
}

struct bad {
	int fd, ch;
	uint32_t id;
	char *p;
};

static bool bad_begin(struct bad *b)
{
	b->fd = buffer_alloc(SIZE, NULL);
	b->ch = memory_channel();
	b->p = map_fd(b->fd, SIZE);
	if (!b->p)
		return false;
	b->id = add(b->ch, b->fd);
	fill(b->p, SIZE, 7);
	return CHECK((int)b->id > 0, "SOURCE_ADD: %s", reason);
}

static void bad_end(struct bad *b)
{
	if (b->p)
		munmap(b->p, SIZE);
	close(b->fd);
	close(b->ch);
}

static bool told(struct bad *b, u64 offset)
{
	struct rashpa_event e = {};

	return CHECK(wait_fd(b->ch, POLLIN, 10000) & POLLIN, "no event") &&
	       CHECK(read(b->ch, &e, sizeof(e)) == sizeof(e) && e.kind == RASHPA_SOURCE_DAMAGE &&
		     e.source == b->id && e.value == offset, "kind %u, source %u, value %#llx",
		     e.kind, e.source, e.value);
}

/* The kernel unmaps the page a moment after it reports the error. */
static bool gone_within(char *p, int ms)
{
	const u64 end = end_of_wait(ms);

	while (touch(p) != BUS_MCEERR_AR)
		if (!CHECK(now_ns() < end, "it can be touched: %d", touch(p)))
			return false;
	return true;
}

static void in_child(void *arg)
{
	struct bad *b = arg;

	/* a process that does not touch the page lives; the memory around it is intact */
	CHECK(filled(b->p, BAD, 7), "the memory before it has changed");
	CHECK(!touch(b->p + BAD - 1) && !touch(b->p + BAD + PAGE), "its neighbours are gone");
	CHECK(touch(b->p + BAD) == BUS_MCEERR_AR, "it can be touched: %d", touch(b->p + BAD));
}

static void after(struct bad *b)
{
	struct rashpa_info info = { HEAD(info), .fd = b->fd };
	struct rashpa_map_make map;
	struct fpga f;
	char *again;
	int fd;

	if (!told(b, BAD) || !gone_within(b->p + BAD, 5000))
		return;
	ANSWERED(call(memory, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(info.out_flags & RASHPA_INFO_DAMAGED, "INFO does not say so: %#x", info.out_flags);
	tap_fork(in_child, b);
	again = map_fd(b->fd, SIZE);
	CHECK(touch(again + BAD) == BUS_MCEERR_AR, "a new mapping has it");
	CHECK(!touch(again + BAD + PAGE) && !touch(again), "and not the others");
	munmap(again, SIZE);
	if (!fpga_open(&f, 0))
		return;
	fpga_profile(&f, 0, NULL, 0);
	fd = fpga_map(&f, b->fd, RASHPA_BIDIRECTIONAL, &map);
	CHECK(fd == -EHWPOISON, "MAP: %d, %s", fd, reason);
	map = (struct rashpa_map_make) { HEAD(map), .fd = b->fd, .length = 2 * MIB };
	ANSWERED(call(f.fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL);
	close(map.out_fd);
	fpga_close(&f);
}

TEST(refused, "a source of damage needs a buffer of the driver")
{
	int ch = memory_channel(), foreign = foreign_dmabuf(PAGE), fd = buffer_alloc(PAGE, NULL);
	struct rashpa_source_add a = { HEAD(a), .kind = RASHPA_SOURCE_DAMAGE, .memory = fd };

	ANSWERED(add(ch, -1), EBADF, "memory: fd -1");
	ANSWERED(add(ch, memory), EINVAL, "not a dma-buf");
	if (foreign >= 0)
		ANSWERED(add(ch, foreign), EXDEV, "not a buffer");
	CHECK(add(ch, fd) == 1, "SOURCE_ADD: %s", reason);
	ANSWERED(add(ch, fd), EEXIST, "id 1");
	a.index = 1;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), EINVAL, "index 1");
	a.index = 0;
	a.offset = 8;
	ANSWERED(call(ch, RASHPA_IOC_SOURCE_ADD, &a), EINVAL, "only lock slots");
	close(fd);
	close(foreign);
	close(ch);
}

/* The process that has the page mapped reports the error. */
TEST(advised, "an error becomes an event, and SIGBUS for a process that touches the page")
{
	struct bad b;

	if (bad_begin(&b)) {
		if (madvise(b.p + BAD, PAGE, MADV_HWPOISON) && errno != EBUSY && errno != EIO)
			tap_skip("MADV_HWPOISON: %s", strerror(errno));
		else
			after(&b);
	}
	bad_end(&b);
}

TEST(told, "an error that is reported by the page's number, as firmware does, is an event, too")
{
	char number[32];
	struct bad b;

	if (access(DEBUGFS "/hwpoison", F_OK))
		mount("debugfs", DEBUGFS, "debugfs", 0, NULL);
	if (system("modprobe -q hwpoison-inject"))
		tap_note("modprobe failed");
	SKIP_IF(access(DEBUGFS "/hwpoison/corrupt-pfn", W_OK),
		"the kernel has no " DEBUGFS "/hwpoison (CONFIG_HWPOISON_INJECT)");
	if (bad_begin(&b)) {
		snprintf(number, sizeof(number), "%#llx", pfn_of(b.p + BAD));
		/* it answers that nothing can be done about the error */
		write_text(DEBUGFS "/hwpoison/corrupt-pfn", number);
		after(&b);
	}
	bad_end(&b);
}

TEST(kept_back, "a damaged page is not allocated again")
{
	u64 pfn, i, j;
	int fd[8];
	struct bad b;
	char *p;

	if (!bad_begin(&b))
		goto out;
	pfn = pfn_of(b.p + BAD);
	if (madvise(b.p + BAD, PAGE, MADV_HWPOISON) && errno != EBUSY && errno != EIO) {
		tap_skip("MADV_HWPOISON: %s", strerror(errno));
		goto out;
	}
	told(&b, BAD);
	bad_end(&b);
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = buffer_alloc(SIZE, NULL);
		p = map_fd(fd[i], SIZE);
		for (j = 0; p && j < SIZE; j += PAGE)
			if (!CHECK(!touch(p + j) && pfn_of(p + j) != pfn, "it came back"))
				break;
		if (p)
			munmap(p, SIZE);
	}
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	return;
out:
	bad_end(&b);
}
