// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory of this driver, of dma-heap and of hugetlbfs, through one interface. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/dma-heap.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/bench.h"
#include "common/parse.h"
#include <rashpa.h>

#define POOL	"/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define HEAP	"/dev/dma_heap/system"

/* --- the machine --- */

static bool read_number(const char *path, const char *key, uint64_t *value)
{
	FILE *file = fopen(path, "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file)) {
		size_t skip = strlen(key);

		if (strncmp(line, key, skip))
			continue;
		found = sscanf(line + skip, "%" SCNu64, value) == 1;
	}
	if (file)
		fclose(file);
	return found;
}

/* memory to leave free, so that the kernel does not kill processes */
#define MARGIN	(UINT64_C(128) << 20)

int memory_suffices(const struct source *source, uint64_t size, char *why)
{
	char need[SIZE_TEXT], have[SIZE_TEXT];
	uint64_t kib;

	/* CMA has a separate area, and its allocation fails without harm */
	if (source->backend && source->number == RASHPA_BACKEND_CMA)
		return 0;
	if (!read_number("/proc/meminfo", "MemAvailable:", &kib))
		return because(why, -1, "/proc/meminfo does not show the available memory");
	if (size + MARGIN > kib << 10)
		return because(why, -1, "%s are needed, but only %s are available",
			       format_size(need, size + MARGIN), format_size(have, kib << 10));
	return 0;
}

/* --- hugetlbfs --- */

/* Number of pages that were added to the pool, for pool_restore(). */
static uint64_t pool_added;

static int pool_set(uint64_t pages, char *why)
{
	FILE *file = fopen(POOL "nr_hugepages", "we");
	uint64_t got = 0;
	int error = file ? 0 : errno;

	if (file) {
		if (fprintf(file, "%" PRIu64 "\n", pages) < 0 || fflush(file))
			error = errno;
		fclose(file);
	}
	if (error)
		return because(why, -1, "%snr_hugepages: %s", POOL, strerror(error));
	if (!read_number(POOL "nr_hugepages", "", &got) || got < pages)
		return because(why, -1,
			       "the kernel found only %" PRIu64 " of %" PRIu64 " huge pages: boot with hugepages=",
			       got, pages);
	return 0;
}

static int pool_add(uint64_t pages, char *why)
{
	uint64_t now;
	int error;

	if (!read_number(POOL "nr_hugepages", "", &now))
		return because(why, -1, "%snr_hugepages cannot be read", POOL);
	error = pool_set(now + pages, why);
	if (error) {
		char ignored[WHY_SIZE];

		pool_set(now, ignored);
		return error;
	}
	pool_added += pages;
	return 0;
}

static void pool_take(uint64_t pages)
{
	char ignored[WHY_SIZE];
	uint64_t now;

	if (!pages || !read_number(POOL "nr_hugepages", "", &now))
		return;
	pool_set(now > pages ? now - pages : 0, ignored);
	pool_added -= pages;
}

void pool_restore(void)
{
	pool_take(pool_added);
}

static int huge_alloc(const struct source *source, uint64_t size, char *why);

int pool_reserve(const struct source *source, uint64_t size, char *why)
{
	uint64_t free_pages, need = size / HUGE_PAGE;

	if (source->alloc != huge_alloc || source->grow)
		return 0;
	if (!read_number(POOL "free_hugepages", "", &free_pages))
		return because(why, -1, "%sfree_hugepages cannot be read", POOL);
	return free_pages < need ? pool_add(need - free_pages, why) : 0;
}

static int huge_alloc(const struct source *source, uint64_t size, char *why)
{
	int fd;

	if (source->grow && pool_add(size / HUGE_PAGE, why))
		return -1;
	fd = memfd_create("rashpa-bench", MFD_CLOEXEC | MFD_HUGETLB | MFD_HUGE_2MB);
	/* fallocate() takes the pages from the pool, and zeroes them */
	if (fd < 0 || ftruncate(fd, size) || fallocate(fd, 0, 0, size)) {
		because(why, -1, "hugetlbfs: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		if (source->grow)
			pool_take(size / HUGE_PAGE);
		return -1;
	}
	return fd;
}

static void huge_free(const struct source *source, int fd, uint64_t size)
{
	close(fd);
	if (source->grow)
		pool_take(size / HUGE_PAGE);
}

/* --- dma-heap --- */

static int heap_alloc(const struct source *source, uint64_t size, char *why)
{
	struct dma_heap_allocation_data arg = { .len = size, .fd_flags = O_RDWR | O_CLOEXEC };

	if (ioctl(source->node, DMA_HEAP_IOCTL_ALLOC, &arg))
		return because(why, -1, "%s: %s", HEAP, strerror(errno));
	return arg.fd;
}

static void plain_free(const struct source *source, int fd, uint64_t size)
{
	(void)source;
	(void)size;
	close(fd);
}

/* --- rashpa --- */

static int rashpa_source_alloc(const struct source *source, uint64_t size, char *why)
{
	struct rashpa_alloc arg = {
		.length = size, .backend = source->number,
		.alignment = size < HUGE_PAGE ? 0 : HUGE_PAGE,
	};
	int fd = rashpa_memory_alloc(source->node, &arg);

	return fd < 0 ? because(why, -1, "%s", rashpa_reason()) : fd;
}

static int backend_check(const struct source *source, char *why)
{
	struct rashpa_query query = { .backend = source->number };

	if (source->node < 0)
		return because(why, -1, "%s", rashpa_reason());
	if (rashpa_memory_query(source->node, &query))
		return because(why, -1, "%s", rashpa_reason());
	return 0;
}

/* --- all of them --- */

/* errno is the reason why path cannot be used. */
static int unusable(char *why, const char *path, const char *option)
{
	if (errno == ENOENT)
		return because(why, -1, "%s does not exist: use a kernel with %s", path, option);
	return because(why, -1, "%s: %s: run this as root", path, strerror(errno));
}

static int source_check(struct source *source, char *why)
{
	if (source->backend) {
		source->node = rashpa_memory_open();
		return backend_check(source, why);
	}
	if (source->alloc == heap_alloc) {
		source->node = open(HEAP, O_RDWR | O_CLOEXEC);
		return source->node < 0 ? unusable(why, HEAP, "CONFIG_DMABUF_HEAPS_SYSTEM") : 0;
	}
	return access(POOL "nr_hugepages", W_OK) ?
	       unusable(why, POOL "nr_hugepages", "CONFIG_HUGETLBFS") : 0;
}

size_t sources_open(struct source *sources, struct report *report, const char *backend)
{
	static const struct source all[SOURCES_MAX] = {
		{ .name = "contig", .backend = "contig", .number = RASHPA_BACKEND_CONTIG,
		  .alloc = rashpa_source_alloc, .free = plain_free, .least = 1 },
		{ .name = "cma", .backend = "cma", .number = RASHPA_BACKEND_CMA,
		  .alloc = rashpa_source_alloc, .free = plain_free, .least = 1 },
		{ .name = "dma-heap", .alloc = heap_alloc, .free = plain_free, .least = 1 },
		{ .name = "hugetlbfs", .alloc = huge_alloc, .free = huge_free,
		  .least = HUGE_PAGE },
		{ .name = "hugetlbfs, growing", .alloc = huge_alloc, .free = huge_free,
		  .least = HUGE_PAGE, .grow = true },
	};
	char why[WHY_SIZE];
	size_t n = 0;

	for (size_t i = 0; i < SOURCES_MAX; i++) {
		if (all[i].backend && backend && strcmp(all[i].backend, backend))
			continue;
		sources[n] = all[i];
		sources[n].node = -1;
		if (!source_check(&sources[n], why)) {
			n++;
			continue;
		}
		report_leave_out(report, all[i].name, "%s", why);
		if (sources[n].node >= 0)
			close(sources[n].node);
	}
	return n;
}

void sources_close(struct source *sources, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (sources[i].node >= 0)
			close(sources[i].node);
}

void *map_aligned(int fd, uint64_t size, uint64_t *ns)
{
	uint8_t *all = mmap(NULL, size + HUGE_PAGE, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *start, *p;
	uint64_t before;

	if (all == MAP_FAILED)
		return all;
	start = all + (-(uintptr_t)all & (HUGE_PAGE - 1));
	before = now_ns();
	p = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
	if (ns)
		*ns = now_ns() - before;
	if (p == MAP_FAILED) {
		int error = errno;

		munmap(all, size + HUGE_PAGE);
		errno = error;
		return p;
	}
	if (start > all)
		munmap(all, start - all);
	munmap(start + size, HUGE_PAGE - (start - all));
	return p;
}
