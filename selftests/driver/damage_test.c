// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug seconds=15 */
/* Pages with a memory error: no new map or mapping has them, and no later buffer. */
#include "common.h"

#define SIZE	(8 * MIB)
#define BAD	(3 * MIB + 5 * PAGE)

/* False: the kernel cannot do it. For memory of the driver it answers that it did not help. */
static bool spoil(char *p)
{
	if (!madvise(p, PAGE, MADV_HWPOISON) || errno == EBUSY || errno == EIO)
		return true;
	tap_skip("MADV_HWPOISON: %s", strerror(errno));
	return false;
}

/* 0, or the errno of mmap() */
static int map_part(int fd, u64 offset, u64 length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, length);
	return 0;
}

/* 0, or a negative errno */
static int map_device(int fpga, int fd, u64 offset, u64 length)
{
	struct rashpa_map_make map = { HEAD(map), .fd = fd, .offset = offset, .length = length };
	int err = call(fpga, RASHPA_IOC_MAP_MAKE, &map);

	if (!err)
		close(map.out_fd);
	return err;
}

static void maps_are_refused(int fd, u64 bad, u64 size)
{
	struct fpga f;

	if (!fpga_open(&f, 0))
		return;
	fpga_profile(&f, 0, NULL, 0);
	ANSWERED(map_device(f.fd, fd, 0, size), EHWPOISON, "memory error");
	ANSWERED(map_device(f.fd, fd, bad, PAGE), EHWPOISON, "memory error");
	ANSWERED(map_device(f.fd, fd, 0, bad), 0, NULL);
	ANSWERED(map_device(f.fd, fd, bad + PAGE, size - bad - PAGE), 0, NULL);
	fpga_close(&f);
}

TEST(refused, "a page with a memory error is in no new map, the pages around it are")
{
	int fd = buffer_alloc(SIZE, NULL);
	char *p = map_fd(fd, SIZE);

	fill(p, SIZE, 7);
	if (spoil(p + BAD)) {
		CHECK(filled(p, BAD, 7), "the memory before it has changed");
		CHECK(map_part(fd, 0, SIZE) == EHWPOISON, "the whole is mapped: %d",
		      map_part(fd, 0, SIZE));
		CHECK(map_part(fd, BAD, PAGE) == EHWPOISON, "the page is mapped");
		CHECK(!map_part(fd, 0, BAD) && !map_part(fd, BAD + PAGE, SIZE - BAD - PAGE),
		      "its neighbours are not mapped");
		maps_are_refused(fd, BAD, SIZE);
	}
	unmap_fd(p, SIZE, fd);
}

static void on_bus(int number)
{
}

/* The kernel takes the page from the process, but not from the dma-buf. */
static void pinned(void *arg)
{
	struct rashpa_pin pin = { HEAD(pin), .length = 8 * PAGE };
	char *p = mmap(NULL, pin.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* the kernel reports the error to the process, too */
	signal(SIGBUS, on_bus);
	fill(p, pin.length, 7);
	pin.address = (uintptr_t)p;
	if (ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL) && spoil(p + 5 * PAGE))
		maps_are_refused(pin.out_fd, 5 * PAGE, pin.length);
	ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), EFAULT, "");
}

TEST(pinned, "a page with a memory error is in no new map of pinned memory, and is not pinned")
{
	tap_fork(pinned, NULL);
}

TEST(kept_back, "a damaged page is not allocated again")
{
	int fd[8] = { buffer_alloc(SIZE, NULL) };
	char *p = map_fd(fd[0], SIZE);
	u64 pfn = pfn_of(p + BAD), i, j;
	bool bad = spoil(p + BAD);

	munmap(p, SIZE);
	close(fd[0]);
	if (!bad)
		return;
	for (i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = buffer_alloc(SIZE, NULL);
		p = map_fd(fd[i], SIZE);
		for (j = 0; j < SIZE; j += PAGE)
			if (!CHECK(pfn_of(p + j) != pfn, "it came back"))
				break;
		munmap(p, SIZE);
	}
	for (i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
}
