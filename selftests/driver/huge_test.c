// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=6 */
/* test: tier=nightly needs=numa iommu=off seconds=6 */
/* Buffers of reserved huge pages: of a memfd, with a name. */
#include <rashpa-fpga.h>
#include "common.h"

#define HUGE	(2 * MIB)
#define PAGES	4
#define LEN	(PAGES * HUGE)
#define POOL	"/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct fpga fpga;
static bool have_fpga;
static char pool_before[32];

static long pool_free(void)
{
	char text[32];

	return read_text(POOL "free_hugepages", text, sizeof(text)) ? atol(text) : -1;
}

/* A memfd of @length bytes, of which @filled are allocated. */
static int memfd_new(unsigned int flags, u64 length, u64 filled, int seals)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	CHECK(fd >= 0 && !ftruncate(fd, length), "memfd: %s", strerror(errno));
	CHECK(!filled || !fallocate(fd, 0, 0, filled), "fallocate: %s", strerror(errno));
	CHECK(!seals || !fcntl(fd, F_ADD_SEALS, seals), "seals: %s", strerror(errno));
	return fd;
}

static int memfd_good(void)
{
	return memfd_new(MFD_HUGETLB, LEN, LEN, SEALS);
}

/* 0 or a negative errno */
static int give(int memfd, const char *name, struct rashpa_alloc *a)
{
	*a = (struct rashpa_alloc) { HEAD(*a), .length = LEN, .backend = RASHPA_BACKEND_HUGE,
				     .memfd = memfd, .out_fd = -7 };
	strcpy(a->name, name);
	return call(memory, RASHPA_IOC_ALLOC, a);
}

/* The dma-buf of a new buffer; its memfd is closed. The test ends where it fails. */
static int huge_buffer(const char *name)
{
	struct rashpa_alloc a;
	int memfd = memfd_good();

	ANSWERED(give(memfd, name, &a), 0, NULL);
	close(memfd);
	return a.out_fd;
}

/* At an address that is a multiple of a huge page. */
static char *map_at(int fd, u64 offset, u64 length)
{
	char *room = mmap(NULL, length + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *at = room + (-(uintptr_t)room & (HUGE - 1));
	char *p = mmap(at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

static int map_errno(int fd, u64 length, int prot, int flags)
{
	void *p = mmap(NULL, length, prot, flags, fd, 0);

	if (p == MAP_FAILED)
		return errno;
	munmap(p, length);
	return 0;
}

/* ------------------------------------------------------------- a life ---- */

TEST(named, "a buffer has the memory of its memfd, and INFO describes it")
{
	const u64 before = bytes_allocated();
	const long free = pool_free();
	int memfd = memfd_good(), node;
	char *p = map_fd(memfd, LEN), *q;
	struct rashpa_alloc a;
	struct rashpa_info info;

	fill(p, LEN, 5);
	munmap(p, LEN);
	ANSWERED(give(memfd, "st-huge", &a), 0, NULL);
	close(memfd);
	CHECK(a.out_backend == RASHPA_BACKEND_HUGE, "backend %u", a.out_backend);
	CHECK(a.out_segments && a.out_segments <= PAGES, "%u segments", a.out_segments);
	CHECK(bytes_allocated() - before == LEN, "%llu bytes are charged", bytes_allocated() - before);
	close(a.out_fd);
	CHECK(pool_free() == free - PAGES, "%ld pages are free", pool_free());
	node = buffer_node("st-huge", O_RDWR);
	REQUIRE(node >= 0, "open: %s", strerror(errno));
	q = map_fd(node, LEN);
	CHECK(!((uintptr_t)q % HUGE), "it is at %p", q);
	CHECK(filled(q, LEN, 5), "the contents are others");
	info = (struct rashpa_info) { HEAD(info), .fd = -1 };
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_BUFFER && info.out_backend == RASHPA_BACKEND_HUGE &&
	      info.out_cache == RASHPA_CACHE_CACHED, "kind %u, backend %u, cache %u",
	      info.out_kind, info.out_backend, info.out_cache);
	CHECK(info.out_length == LEN && info.out_page_size == HUGE, "%llu bytes in pages of %llu",
	      info.out_length, info.out_page_size);
	CHECK(info.out_mappings == 1 && info.out_flags & RASHPA_INFO_REGISTRABLE,
	      "%u mappings, flags 0x%x", info.out_mappings, info.out_flags);
	ANSWERED(buffer_remove("st-huge"), EBUSY, "1 process");
	close(node);
	ANSWERED(buffer_remove("st-huge"), EBUSY, "1 process");
	munmap(q, HUGE);
	ANSWERED(buffer_remove("st-huge"), EBUSY, "1 process");
	munmap(q + HUGE, LEN - HUGE);
	ANSWERED(buffer_remove("st-huge"), 0, NULL);
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
	CHECK(bytes_allocated() == before, "it is charged still");
}

static void reader(void *arg)
{
	int node = buffer_node("st-huge", O_RDWR);
	char *p = map_fd(node, LEN);

	(void)arg;
	CHECK(filled(p, LEN, 9), "another process sees other memory");
	p[LEN - 1] = 77;
	tap_fork_hold();
}

TEST(shared, "processes share it, and the end of one leaves it")
{
	const long free = pool_free();
	int fd = huge_buffer("st-huge");
	char *p = map_at(fd, 0, LEN);
	struct rashpa_info info;
	pid_t pid;

	REQUIRE(p, "mmap of the dma-buf: %s", strerror(errno));
	fill(p, LEN, 9);
	pid = tap_fork_held(reader, NULL);
	CHECK(p[LEN - 1] == 77, "the write is not here");
	if (!buffer_info(fd, &info))
		CHECK(info.out_mappings == 2, "%u mappings", info.out_mappings);
	tap_fork_kill(pid);
	if (!buffer_info(fd, &info))
		CHECK(info.out_mappings == 1, "%u mappings after the kill", info.out_mappings);
	CHECK(p[LEN - 1] == 77, "the write is lost");
	munmap(p, LEN);
	buffer_end(fd, "st-huge");
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
}

static void maker(void *arg)
{
	char *p = map_at(huge_buffer("st-huge"), 0, LEN);

	(void)arg;
	fill(p, LEN, 3);
	tap_fork_hold();
}

TEST(killed, "it stays when its maker is killed")
{
	int fd;
	char *p;

	tap_fork_kill(tap_fork_held(maker, NULL));
	fd = buffer_open("st-huge", O_RDWR);
	REQUIRE(fd >= 0, "it is gone: %s", reason);
	p = map_at(fd, 0, LEN);
	CHECK(p && filled(p, LEN, 3), "the contents are lost");
	munmap(p, LEN);
	buffer_end(fd, "st-huge");
}

TEST(lease, "a mapping keeps an exclusive lease")
{
	int fd, node;
	char *p;

	close(huge_buffer("st-huge"));
	node = buffer_node("st-huge", O_RDWR | O_EXCL);
	REQUIRE(node >= 0, "open: %s", strerror(errno));
	p = map_fd(node, HUGE);
	close(node);
	fd = buffer_node("st-huge", O_RDWR);
	CHECK(fd < 0 && errno == EBUSY, "opened under a lease");
	munmap(p, HUGE);
	fd = buffer_node("st-huge", O_RDWR);
	CHECK(fd >= 0, "the lease is held still");
	buffer_end(fd, "st-huge");
}

TEST(mappings, "mappings are of whole huge pages, shared, and as the file is open")
{
	int fd = huge_buffer("st-huge"), node = buffer_node("st-huge", O_RDONLY);
	const int rw = PROT_READ | PROT_WRITE;
	char *p;

	CHECK(map_errno(node, LEN, PROT_READ, MAP_SHARED) == 0, "%s", strerror(errno));
	CHECK(map_errno(node, LEN, rw, MAP_SHARED) == EACCES, "writable, of a file that is not");
	CHECK(map_errno(node, LEN, PROT_READ, MAP_PRIVATE) == EINVAL, "private");
	CHECK(map_errno(node, PAGE, PROT_READ, MAP_SHARED) == EINVAL, "a part of a huge page");
	CHECK(map_errno(node, LEN + HUGE, PROT_READ, MAP_SHARED) == EINVAL, "beyond the end");
	CHECK(map_errno(fd, HUGE + PAGE, rw, MAP_SHARED) == EINVAL, "the dma-buf, a part of a page");
	p = map_at(fd, HUGE, HUGE);
	REQUIRE(p, "a part of the dma-buf: %s", strerror(errno));
	munmap(p, HUGE);
	CHECK(mmap(p + PAGE, HUGE, rw, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED &&
	      errno == EINVAL, "at an address inside a huge page");
	CHECK(mmap(p, HUGE, rw, MAP_SHARED | MAP_FIXED, fd, PAGE) == MAP_FAILED && errno == EINVAL,
	      "at an offset inside a huge page");
	p = map_at(fd, HUGE, 2 * HUGE);
	REQUIRE(p, "a larger part: %s", strerror(errno));
	CHECK(mremap(p, 2 * HUGE, 3 * HUGE, MREMAP_MAYMOVE) == MAP_FAILED, "it has grown");
	munmap(p, 2 * HUGE);
	close(node);
	buffer_end(fd, "st-huge");
}

/* ----------------------------------------------------- what could change ---- */

TEST(holes, "its memfd cannot lose pages while the buffer exists")
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	const long free = pool_free();
	int memfd = memfd_good();
	struct rashpa_alloc a;
	char *p;

	ANSWERED(give(memfd, "", &a), 0, NULL);
	p = map_at(a.out_fd, 0, LEN);
	REQUIRE(p, "mmap: %s", strerror(errno));
	fill(p, LEN, 1);
	CHECK(fallocate(memfd, punch, 0, HUGE) && errno == EPERM, "a hole by fallocate()");
	CHECK(madvise(p, HUGE, MADV_REMOVE), "a hole by madvise()");
	CHECK(ftruncate(memfd, 0) && errno == EPERM, "ftruncate()");
	CHECK(!madvise(p, LEN, MADV_DONTNEED) && filled(p, LEN, 1), "the memory has changed");
	unmap_fd(p, LEN, a.out_fd);
	CHECK(pool_free() == free - PAGES, "%ld pages are free under the memfd", pool_free());
	CHECK(!fallocate(memfd, punch, 0, HUGE), "afterwards: %s", strerror(errno));
	close(memfd);
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
}

TEST(once, "a memfd is of one buffer at a time")
{
	int memfd = memfd_good();
	struct rashpa_alloc a, b;

	ANSWERED(give(memfd, "", &a), 0, NULL);
	ANSWERED(give(memfd, "", &b), EBUSY, "another buffer");
	close(a.out_fd);
	ANSWERED(give(memfd, "", &b), 0, NULL);
	close(b.out_fd);
	close(memfd);
}

static const struct {
	const char *key;
	unsigned int flags;
	u64 length, filled;
	int seals, err;
	const char *says;
} bad_memfds[] = {
	{ "of-small-pages", 0, LEN, LEN, SEALS, EINVAL, "MFD_HUGETLB" },
	{ "without-seals", MFD_HUGETLB, LEN, LEN, 0, EINVAL, "seals" },
	{ "that-may-shrink", MFD_HUGETLB, LEN, LEN, F_SEAL_GROW | F_SEAL_SEAL, EINVAL, "SHRINK" },
	{ "that-may-grow", MFD_HUGETLB, LEN, LEN, F_SEAL_SHRINK | F_SEAL_SEAL, EINVAL, "GROW" },
	{ "that-takes-seals", MFD_HUGETLB, LEN, LEN, F_SEAL_SHRINK | F_SEAL_GROW, EINVAL, "SEAL" },
	{ "that-is-read-only", MFD_HUGETLB, LEN, LEN, SEALS | F_SEAL_WRITE, EINVAL, "WRITE" },
	{ "that-is-read-only-soon", MFD_HUGETLB, LEN, LEN, SEALS | F_SEAL_FUTURE_WRITE, EINVAL,
	  "WRITE" },
	{ "without-pages", MFD_HUGETLB, LEN, 0, SEALS, EINVAL, "hole|0x0|fallocate" },
	{ "with-a-hole", MFD_HUGETLB, LEN, LEN - HUGE, SEALS, EINVAL, "hole|0x600000|fallocate" },
	{ "that-is-shorter", MFD_HUGETLB, LEN - HUGE, 0, SEALS, EINVAL, "0x600000|same" },
	{ "that-is-longer", MFD_HUGETLB, LEN + HUGE, 0, SEALS, EINVAL, "0xa00000|same" },
	{ "that-is-empty", MFD_HUGETLB, 0, 0, SEALS, EINVAL, "0x0|same" },
};

TEST_EACH(bad_memfd, bad_memfds, "a memfd %s is refused")
{
	const long free = pool_free();
	int memfd = memfd_new(row->flags, row->length, row->filled, row->seals);
	struct rashpa_alloc a;

	ANSWERED(give(memfd, "st-bad", &a), row->err, row->says);
	CHECK(a.out_fd == -7, "out_fd was written on failure");
	close(memfd);
	ANSWERED(buffer_remove("st-bad"), ENOENT, NULL);
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
}

/* fallocate() can leave a file that ends inside its last huge page. */
TEST(part, "a memfd that ends inside a huge page is refused")
{
	const u64 lengths[] = { PAGE, HUGE - PAGE, HUGE + PAGE };
	const long free = pool_free();
	struct rashpa_alloc a;
	size_t i;
	int memfd;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		memfd = memfd_new(MFD_HUGETLB, 0, lengths[i], SEALS);
		a = (struct rashpa_alloc) { HEAD(a), .length = lengths[i], .memfd = memfd,
					    .backend = RASHPA_BACKEND_HUGE };
		ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "whole huge pages");
		close(memfd);
	}
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
}

TEST(bad_files, "other files are refused")
{
	int fd = buffer_alloc(LEN, NULL), memfd = memfd_good(), ro;
	int folder = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct rashpa_alloc a;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	REQUIRE(ro >= 0, "%s: %s", path, strerror(errno));
	ANSWERED(give(ro, "", &a), EACCES, "writing");
	ANSWERED(give(fd, "", &a), EINVAL, "memfd");
	ANSWERED(give(folder, "", &a), EINVAL, "memfd");
	ANSWERED(give(memory, "", &a), EINVAL, "memfd");
	close(ro);
	ANSWERED(give(ro, "", &a), EBADF, "memfd");
	ANSWERED(give(-1, "", &a), EBADF, "memfd");
	close(folder);
	close(memfd);
	close(fd);
}

static const struct {
	const char *key;
	u64 alignment;
	uint32_t flags, backend, cache, bits;
	int err;
	const char *says;
} bad_wishes[] = {
	{ "write-combined", 0, 0, RASHPA_BACKEND_HUGE, RASHPA_CACHE_WC, 0, EOPNOTSUPP, "cached" },
	{ "lock-memory", 0, RASHPA_ALLOC_LOCK, RASHPA_BACKEND_HUGE, 0, 0, EINVAL, "lock memory" },
	{ "another-backend", 0, 0, RASHPA_BACKEND_CONTIG, 0, 0, EINVAL, "memfd" },
	{ "24-bits", 0, 0, RASHPA_BACKEND_HUGE, 0, 24, EINVAL, "dma_bits" },
	{ "1-gib-aligned", GIB, 0, RASHPA_BACKEND_HUGE, 0, 0, EINVAL, "alignment" },
};

TEST_EACH(bad_wish, bad_wishes, "%s: refused, a memfd does not have it")
{
	int memfd = memfd_new(MFD_HUGETLB, 2 * HUGE, 2 * HUGE, SEALS);
	struct rashpa_alloc a = {
		HEAD(a), .length = 2 * HUGE, .alignment = row->alignment, .backend = row->backend,
		.cache = row->cache, .dma_bits = row->bits, .memfd = memfd,
	};

	a.head.flags = row->flags;
	if (row->flags)
		a.length = RASHPA_LOCK_SLOT;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), row->err, row->says);
	close(memfd);
}

TEST(node, "the node that is asked for is checked")
{
	struct rashpa_alloc a;
	int memfd = memfd_good();

	ANSWERED(give(memfd, "", &a), 0, NULL);
	close(a.out_fd);
	a.head.flags = RASHPA_ALLOC_NODE;
	a.node = a.out_node;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	close(a.out_fd);
	a.node = !a.node;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "node");
	close(memfd);
}

TEST(limit, "it counts for the user that made it")
{
	int memfd = memfd_good();
	struct rashpa_alloc a;

	param_set("limit_mib", bytes_allocated() / MIB + PAGES);
	ANSWERED(give(memfd, "", &a), EDQUOT, "limit_mib");
	param_set("limit_mib", bytes_allocated() / MIB + 4 * PAGES);
	ANSWERED(give(memfd, "", &a), 0, NULL);
	close(a.out_fd);
	close(memfd);
}

/* ------------------------------------------------------- other users of it ---- */

TEST(map, "a function maps it")
{
	struct rashpa_map_make map;
	struct rashpa_info info;
	int fd = huge_buffer(""), m;

	SKIP_IF(!have_fpga, "no software FPGA");
	m = fpga_map(&fpga, fd, RASHPA_BIDIRECTIONAL, &map);
	CHECK(m >= 0 && map.out_segments, "MAP: %s", reason);
	if (!buffer_info(fd, &info))
		CHECK(info.out_importers == 1, "%u importers", info.out_importers);
	close(fd);
	CHECK(pool_free() >= 0, "no pool");
	close(m);
}

TEST(pinned, "its mapping is registered by address, and the pages come back after that")
{
	const long free = pool_free();
	int memfd = memfd_good();
	struct rashpa_pin pin = { HEAD(pin), .length = LEN };
	struct rashpa_alloc a;
	char *p = map_at(memfd, 0, LEN);

	REQUIRE(p, "mmap: %s", strerror(errno));
	/* moves pages out of areas of CMA, while no buffer holds them there */
	pin.address = (uintptr_t)p;
	ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL);
	ANSWERED(give(memfd, "", &a), 0, NULL);
	close(pin.out_fd);
	unmap_fd(p, LEN, memfd);
	p = map_at(a.out_fd, 0, LEN);
	REQUIRE(p, "mmap of the buffer: %s", strerror(errno));
	pin.address = (uintptr_t)p + HUGE;
	pin.length = 2 * HUGE;
	ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL);
	unmap_fd(p, LEN, a.out_fd);
	CHECK(pool_free() == free - 2, "%ld of %ld pages are free under a pin", pool_free(), free);
	close(pin.out_fd);
	CHECK(pool_free() == free, "%ld of %ld pages came back", pool_free(), free);
}

static int map_device(int fd, u64 offset, u64 length)
{
	struct rashpa_map_make map = { HEAD(map), .fd = fd, .offset = offset, .length = length };
	int err = call(fpga.fd, RASHPA_IOC_MAP_MAKE, &map);

	if (!err)
		close(map.out_fd);
	return err;
}

static void on_bus(int number)
{
	(void)number;
}

static void damaged(void *arg)
{
	int fd = huge_buffer("");
	char *p = map_at(fd, 0, LEN);
	struct rashpa_look look = { HEAD(look), .fd = fd };
	struct rashpa_channel_make ch = { HEAD(ch) };
	struct rashpa_source_add add = {
		HEAD(add), .head.flags = RASHPA_SOURCE_LOOK, .kind = RASHPA_SOURCE_LOCK,
		.device = -1, .memory = fd, .offset = HUGE + 9 * PAGE, .bits = 64,
		.condition = RASHPA_CONDITION_CHANGED,
	};

	(void)arg;
	signal(SIGBUS, on_bus);
	fill(p, LEN, 1);
	ANSWERED(call(memory, RASHPA_IOC_CHANNEL_MAKE, &ch), 0, NULL);
	ANSWERED(call(ch.out_fd, RASHPA_IOC_SOURCE_ADD, &add), 0, NULL);
	p[add.offset]++;
	if (madvise(p + HUGE + 5 * PAGE, PAGE, MADV_HWPOISON) && errno != EBUSY && errno != EIO) {
		tap_skip("MADV_HWPOISON: %s", strerror(errno));
		return;
	}
	ANSWERED(call(memory, RASHPA_IOC_LOOK, &look), 0, NULL);
	CHECK(!look.out_events, "a word of the page was read");
	ANSWERED(map_device(fd, HUGE + 9 * PAGE, PAGE), EHWPOISON, "memory error");
	ANSWERED(map_device(fd, 0, LEN), EHWPOISON, "memory error");
	ANSWERED(map_device(fd, 0, HUGE), 0, NULL);
	ANSWERED(map_device(fd, 2 * HUGE, 2 * HUGE), 0, NULL);
	CHECK(!map_at(fd, HUGE, HUGE) && errno == EHWPOISON, "the page is mapped");
	p = map_at(fd, 2 * HUGE, HUGE);
	CHECK(p, "its neighbour is not mapped");
}

TEST(memory_error, "a huge page with a memory error is in no new map, and its words are not read")
{
	SKIP_IF(!have_fpga, "no software FPGA");
	tap_fork(damaged, NULL);
}

static u64 query_free(uint32_t backend)
{
	struct rashpa_query q = { HEAD(q), .backend = backend };

	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	return q.out_free;
}

static void in_area(void *arg)
{
	const u64 area = query_free(RASHPA_BACKEND_CMA);
	struct rashpa_pin pin = { HEAD(pin), .length = LEN };
	struct rashpa_alloc a;
	int memfd;

	(void)arg;
	signal(SIGBUS, on_bus);
	/* the kernel takes huge pages from an area that has more than half of the free memory */
	while (query_free(RASHPA_BACKEND_CONTIG) > area / 2 && tap_ok())
		buffer_alloc(16 * MIB, NULL);
	write_text("/proc/sys/vm/nr_hugepages", "16");
	memfd = memfd_good();
	CHECK(area - query_free(RASHPA_BACKEND_CMA) >= LEN, "the pages are not in the area");
	ANSWERED(give(memfd, "", &a), 0, NULL);
	pin.address = (uintptr_t)map_at(a.out_fd, 0, LEN);
	ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL);
	/* a page with an error never moves: ALLOC must not wait for that */
	memfd = memfd_good();
	if (madvise(map_at(memfd, 0, LEN), PAGE, MADV_HWPOISON))
		tap_note("MADV_HWPOISON: %s", strerror(errno));
	ANSWERED(give(memfd, "", &a), 0, NULL);
}

TEST(cma, "huge pages that come from an area of CMA are registered by address")
{
	SKIP_IF(!cma_here(), "no area of CMA (lab run --append cma=256M)");
	write_text("/proc/sys/vm/nr_hugepages", "0");
	tap_fork(in_area, NULL);
	write_text("/proc/sys/vm/nr_hugepages", "16");
}

void setup_all(void)
{
	read_text("/proc/sys/vm/nr_hugepages", pool_before, sizeof(pool_before));
	write_text("/proc/sys/vm/nr_hugepages", "16");
}

void teardown_all(void)
{
	write_text("/proc/sys/vm/nr_hugepages", pool_before);
}

void setup(void)
{
	SKIP_IF(pool_free() < 2 * PAGES, "too few huge pages");
	have_fpga = fpga_try(&fpga, 0);
}
