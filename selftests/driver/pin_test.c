// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=2 */
/* Memory of a process, pinned, as a dma-buf. */
#include <sys/resource.h>
#include <sys/uio.h>

#include <rashpa-fpga.h>
#include "common.h"

#define LEN	(4 * MIB)
#define HUGE	(2 * MIB)

static struct fpga fpga;
static bool have_fpga;

/* dma-buf fd or a negative errno */
static int pin(const void *p, u64 length)
{
	struct rashpa_pin arg = { HEAD(arg), .address = (uintptr_t)p, .length = length,
				  .out_fd = -7 };
	int err = call(memory, RASHPA_IOC_PIN, &arg);

	if (err) {
		CHECK(arg.out_fd == -7, "out_fd was written on failure");
		return err;
	}
	CHECK(arg.out_segments && arg.out_segments <= length / PAGE, "%u segments",
	      arg.out_segments);
	return arg.out_fd;
}

static void *anonymous(u64 length, int flags)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Pinned pages of this process in KiB. */
static long pinned_kib(void)
{
	return read_kib("/proc/self/status", "VmPin");
}

TEST(info, "INFO describes pinned memory, and it is charged")
{
	void *p = anonymous(LEN, 0);
	struct rashpa_info info;
	int fd = pin(p, LEN);

	REQUIRE(fd >= 0, "PIN: %s", reason);
	CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
	CHECK(lseek(fd, 0, SEEK_END) == (off_t)LEN, "length by lseek");
	if (!buffer_info(fd, &info)) {
		CHECK(info.out_kind == RASHPA_KIND_PINNED, "kind %u", info.out_kind);
		CHECK(info.out_length == LEN, "length %llu", info.out_length);
		CHECK(info.out_segments, "no segments");
		CHECK(!info.out_backend && !info.out_name[0], "it is no buffer");
	}
	CHECK(pinned_kib() == LEN / KIB, "%ld KiB are charged", pinned_kib());
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED, "it can be mapped twice");
	close(fd);
	CHECK(pinned_kib() == 0, "%ld KiB stay charged", pinned_kib());
	munmap(p, LEN);
}

static void bad(const void *p, u64 length, int err, const char *says)
{
	ANSWERED(pin(p, length), err, says);
}

TEST(bad_ranges, "ranges without memory are refused")
{
	char *p = anonymous(4 * PAGE, 0);

	bad(p, 0, EINVAL, "whole pages");
	bad(p, PAGE - 1, EINVAL, "whole pages");
	bad(p + 1, PAGE, EINVAL, "whole pages");
	bad(p, -PAGE, EFAULT, "address space");
	bad((void *)-PAGE, PAGE, EFAULT, "address space");
	bad((void *)-PAGE, 2 * PAGE, EFAULT, "address space");
	if (sizeof(p) == 8)	/* the kernel's half; a pointer of 32 bits cannot name it */
		bad((void *)~(UINTPTR_MAX >> 1), PAGE, EFAULT, "address space");
	bad(NULL, PAGE, EFAULT, "nothing is mapped at 0x0");
	munmap(p + PAGE, PAGE);
	bad(p, 4 * PAGE, EFAULT, "nothing is mapped");
	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	bad(p + 2 * PAGE, PAGE, EFAULT, "read-only");
	mprotect(p + 2 * PAGE, PAGE, PROT_NONE);
	bad(p + 2 * PAGE, PAGE, EFAULT, "read-only");
	munmap(p, 4 * PAGE);
	CHECK(pinned_kib() == 0, "%ld KiB stay charged", pinned_kib());
}

TEST(files, "read-only files are refused, shared memory is not")
{
	int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	int memfd = memfd_create("pin", MFD_CLOEXEC);
	int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p;
	int got;

	REQUIRE(fd >= 0 && memfd >= 0 && self >= 0, "files");
	REQUIRE(!ftruncate(fd, LEN) && !ftruncate(memfd, LEN), "ftruncate");
	/* a program's text is a read-only file */
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self, 0);
	bad(p, PAGE, EFAULT, "read-only");
	munmap(p, PAGE);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	got = pin(p, LEN);
	CHECK(got >= 0, "shared memory: %s", reason);
	close(got);
	munmap(p, LEN);
	close(self);
	close(memfd);
	close(fd);
}

TEST(disk_file, "a file that is written back is refused")
{
	int fd = open("/rashpa/build", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char path[] = "/rashpa/build/pin-XXXXXX";
	void *p;

	if (fd < 0) {
		fd = mkostemp(path, O_CLOEXEC);
		unlink(path);
	}
	SKIP_IF(fd < 0 || ftruncate(fd, PAGE), "no file that is written back");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	SKIP_IF(p == MAP_FAILED, "this file system has no shared mappings");
	bad(p, PAGE, EFAULT, "written back");
	munmap(p, PAGE);
}

TEST(not_pinnable, "contig buffers can be pinned, CMA buffers not")
{
	struct rashpa_alloc a = { HEAD(a), .length = LEN, .backend = RASHPA_BACKEND_CMA };
	int fd = buffer_alloc(LEN, NULL), got;
	void *p = map_fd(fd, LEN);

	/* a contig buffer is memory like any other */
	got = pin(p, LEN);
	CHECK(got >= 0, "a contig buffer: %s", reason);
	close(got);
	unmap_fd(p, LEN, fd);
	if (!cma_here())
		return;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	p = map_fd(a.out_fd, LEN);
	bad(p, LEN, EFAULT, "CMA|dma-buf");
	unmap_fd(p, LEN, a.out_fd);
}

TEST(across, "several mappings in a row")
{
	char *p = anonymous(3 * LEN, 0);
	int memfd = memfd_create("pin", MFD_CLOEXEC), fd;

	REQUIRE(memfd >= 0 && !ftruncate(memfd, LEN), "memfd");
	REQUIRE(mmap(p + LEN, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memfd, 0) !=
		MAP_FAILED, "mmap");
	fd = pin(p, 3 * LEN);
	CHECK(fd >= 0, "three mappings in a row: %s", reason);
	close(fd);
	/* all in it, or nothing */
	mprotect(p + 2 * LEN, PAGE, PROT_READ);
	bad(p, 3 * LEN, EFAULT, "read-only");
	CHECK(pinned_kib() == 0, "%ld KiB stay charged", pinned_kib());
	unmap_fd(p, 3 * LEN, memfd);
}

TEST(huge, "huge pages are few segments")
{
	char before[32] = "0", after[32];
	struct rashpa_info info;
	void *p;
	int fd;

	read_text("/proc/sys/vm/nr_hugepages", before, sizeof(before));
	SKIP_IF(write_text("/proc/sys/vm/nr_hugepages", "8"), "no huge pages in this kernel");
	p = anonymous(4 * HUGE, MAP_HUGETLB);
	if (p) {
		fd = pin(p, 4 * HUGE);
		CHECK(fd >= 0, "huge pages: %s", reason);
		if (fd >= 0 && !buffer_info(fd, &info))
			CHECK(info.out_segments <= 4, "%u segments of 4 pages", info.out_segments);
		close(fd);
		munmap(p, 4 * HUGE);
	} else {
		tap_note("no 8 MiB of huge pages free");
	}
	CHECK(!write_text("/proc/sys/vm/nr_hugepages", before), "cannot be given back");
	CHECK(read_text("/proc/sys/vm/nr_hugepages", after, sizeof(after)) &&
	      !strcmp(before, after), "huge pages are held: %s", after);
}

static void limited(void *arg)
{
	struct rlimit limit = { 2 * MIB, 2 * MIB };
	void *p = anonymous(LEN, 0);
	int fd;

	/* a part of a huge page is charged with all of it, see test_huge_part() */
	madvise(p, LEN, MADV_NOHUGEPAGE);
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
	drop_privileges();
	bad(p, LEN, ENOMEM, "RLIMIT_MEMLOCK|4096 KiB|2048 KiB");
	fd = pin(p, 2 * MIB);
	CHECK(fd >= 0, "within the limit: %s", reason);
	bad((char *)p + 2 * MIB, PAGE, ENOMEM, "2048 pinned");
	close(fd);
	fd = pin((char *)p + 2 * MIB, 2 * MIB);
	CHECK(fd >= 0, "it was not given back: %s", reason);
}

TEST(memlock, "RLIMIT_MEMLOCK holds")
{
	tap_fork(limited, NULL);
}

/* The pages stay the same ones until the dma-buf ends, whatever the process does. */
TEST(stays, "pinned pages stay where they are")
{
	char *p = anonymous(LEN, 0);
	u64 first;
	int fd;

	memset(p, 1, LEN);
	fd = pin(p, LEN);
	REQUIRE(fd >= 0, "PIN: %s", reason);
	/* until then the kernel may move them, for a huge page or out of an area of CMA */
	first = pfn_of(p);
	madvise(p, LEN, MADV_PAGEOUT);
	CHECK(pfn_of(p) == first, "the page has moved");
	unmap_fd(p, LEN, fd);
}

static void holder(void *arg)
{
	void *p = anonymous(LEN, 0);
	struct rashpa_map_make map;

	CHECK(fpga_map(&fpga, pin(p, LEN), RASHPA_TO_MEMORY, &map) >= 0, "map: %s", reason);
	tap_fork_hold();
}

TEST(killed, "a killed process leaves nothing pinned or mapped")
{
	struct rashpa_device_info info;
	uint32_t before;
	pid_t pid;

	SKIP_IF(!have_fpga, "no software FPGA");
	REQUIRE(!fpga_info(&fpga, &info), "INFO");
	before = info.out_maps;
	pid = tap_fork_held(holder, NULL);
	REQUIRE(!fpga_info(&fpga, &info), "INFO");
	CHECK(info.out_maps == before + 1, "%u maps", info.out_maps);
	tap_fork_kill(pid);
	REQUIRE(!fpga_info(&fpga, &info), "INFO");
	CHECK(info.out_maps == before, "%u maps", info.out_maps);
}

TEST(map, "a function maps it")
{
	struct rashpa_info info;
	struct rashpa_map_make map;
	void *p = anonymous(LEN, 0);
	int fd, m;

	SKIP_IF(!have_fpga, "no software FPGA");
	fd = pin(p, LEN);
	REQUIRE(fd >= 0, "PIN: %s", reason);
	m = fpga_map(&fpga, fd, RASHPA_BIDIRECTIONAL, &map);
	CHECK(m >= 0, "MAP: %s", reason);
	CHECK(map.out_class == RASHPA_CLASS_HOST || map.out_class == RASHPA_CLASS_IOVA,
	      "class %u", map.out_class);
	CHECK(map.out_segments && map.out_segments <= LEN / PAGE, "%u segments", map.out_segments);
	if (!buffer_info(fd, &info))
		CHECK(info.out_importers == 1, "%u importers", info.out_importers);
	close(m);
	if (!buffer_info(fd, &info))
		CHECK(info.out_importers == 0, "%u importers", info.out_importers);
	close(fd);
	munmap(p, LEN);
}

/* A huge page of this process, or NULL. */
static char *huge_page(char **map)
{
	char *p = anonymous(2 * HUGE, MAP_NORESERVE), *at;
	u64 pfns[HUGE / PAGE];
	size_t i;

	*map = p;
	at = (char *)(uintptr_t)(((uintptr_t)p + HUGE - 1) & -HUGE);
	madvise(at, HUGE, MADV_HUGEPAGE);
	memset(at, 1, HUGE);
	pfns_of(at, pfns, ARRAY_SIZE(pfns));
	for (i = 1; i < ARRAY_SIZE(pfns); i++)
		if (pfns[i] != pfns[0] + i)
			return NULL;
	return pfns[0] & (ARRAY_SIZE(pfns) - 1) ? NULL : at;
}

/* Pages that the kernel has pinned and not given back, as /proc/vmstat counts them; -1: unknown. */
static long long pins(void)
{
	long long acquired = -1, released = 0, n;
	char name[64];
	FILE *file;

	/* reading it adds what the processors have counted each */
	read_text("/proc/sys/vm/stat_refresh", name, sizeof(name));
	file = fopen("/proc/vmstat", "re");
	while (file && fscanf(file, "%63s %lld", name, &n) == 2) {
		if (!strcmp(name, "nr_foll_pin_acquired"))
			acquired = n;
		else if (!strcmp(name, "nr_foll_pin_released"))
			released = n;
	}
	if (file)
		fclose(file);
	return acquired < 0 ? -1 : acquired - released;
}

static void part_of_huge(void *arg)
{
	const struct rlimit limit = { .rlim_cur = MIB, .rlim_max = MIB };
	/* one that it does not share with its parent */
	char *map, *p = huge_page(&map);

	CHECK(p, "no huge page");
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &limit), "setrlimit");
	drop_privileges();
	ANSWERED(pin(p + PAGE, PAGE), ENOMEM, "huge page|2048 KiB|RLIMIT_MEMLOCK");
	CHECK(!pinned_kib(), "%ld KiB are charged", pinned_kib());
}

/* One small page of a huge one keeps all of it, and is charged so. */
TEST(part, "a part of a huge page is charged as all of it")
{
	const long before = pinned_kib();
	char *map, *p = huge_page(&map);
	long long all;
	int fd;

	SKIP_IF(!p, "no huge page");
	fd = pin(p + 3 * PAGE, PAGE);
	CHECK(pinned_kib() - before == 2048, "%ld KiB are charged", pinned_kib() - before);
	close(fd);
	CHECK(pinned_kib() == before, "%ld KiB are charged still", pinned_kib() - before);
	fd = pin(p, HUGE);
	CHECK(pinned_kib() - before == 2048, "%ld KiB are charged for all", pinned_kib() - before);
	close(fd);
	all = pins();
	tap_fork(part_of_huge, NULL);
	CHECK(all >= 0 && pins() == all, "%lld pages stay pinned", pins() - all);
	munmap(map, 2 * HUGE);
}

/* A pipe has a page of each block of a buffer that is closed: the blocks stay. */
TEST(lingers, "blocks of a buffer that others hold stay charged")
{
	const u64 before = bytes_allocated();
	int fd = buffer_alloc(4 * HUGE, NULL), pipes[2];
	struct iovec part;
	char *p = map_fd(fd, 4 * HUGE);
	int i;

	REQUIRE(!pipe2(pipes, O_CLOEXEC), "pipe");
	for (i = 0; i < 3; i++) {
		part = (struct iovec) { p + i * HUGE + 5 * PAGE, PAGE };
		CHECK(vmsplice(pipes[1], &part, 1, 0) == (ssize_t)PAGE, "vmsplice: %s",
		      strerror(errno));
	}
	unmap_fd(p, 4 * HUGE, fd);
	CHECK(bytes_allocated() - before == 3 * HUGE, "%llu bytes are charged",
	      (bytes_allocated() - before));
	CHECK(read(pipes[0], (char[PAGE]) {}, PAGE) == (ssize_t)PAGE, "read");
	CHECK(bytes_allocated() - before == 2 * HUGE, "%llu bytes are charged after one read",
	      (bytes_allocated() - before));
	close(pipes[0]);
	close(pipes[1]);
	CHECK(bytes_allocated() == before, "%llu bytes are charged still",
	      (bytes_allocated() - before));
}

void setup(void)
{
	have_fpga = fpga_try(&fpga, 0);
}
