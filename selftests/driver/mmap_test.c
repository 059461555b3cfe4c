// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=off seconds=15 */
/* test: tier=nightly needs=numa iommu=off seconds=15 */
/* CPU mappings of buffers. */
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "common.h"

#define LEN	(64 * KIB)
#define RACED	(4 * MIB)
#define RACES		(int)tap_times(1200 / 8, 1200)
#define KILLED	(32 * MIB)
#define KILLS	16

static void *try_map(int fd, u64 length, int prot, int flags, u64 offset)
{
	return mmap(NULL, length, prot, flags, fd, offset);
}

/* Are mappings placed so that huge entries are possible, or so that they are not? */
static bool aligned;

static const struct { const char *key; bool aligned; } entries[] = {
	{ "small", false }, { "huge", true },
};

/* with small entries, and with huge ones */
#define TEST_BOTH(name, text)				\
	static void both_##name(void);			\
	TEST_EACH(name, entries, text " (%s entries)")	\
	{						\
		aligned = row->aligned;			\
		both_##name();				\
	}						\
	static void both_##name(void)

/* Mapped shared, readable and writable. */
static char *map_here(int fd, u64 length)
{
	u64 room = length + 4 * MIB;
	char *all = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;

	if (all == MAP_FAILED)
		tap_bail("no room: %s", strerror(errno));
	p = all + (-(uintptr_t)all & (2 * MIB - 1)) + (aligned ? 0 : PAGE);
	munmap(all, p - all);
	munmap(p + length, room - length - (p - all));
	p = mmap(p, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	return p;
}

/* mmap fails with @err and leaves no mapping counted. */
static void refused(int fd, u64 length, int prot, int flags, u64 offset, int err)
{
	struct rashpa_info info;
	void *p = try_map(fd, length, prot, flags, offset);

	CHECK(p == MAP_FAILED && errno == err, "mmap: %s, expected %s",
	      p == MAP_FAILED ? strerror(errno) : "success", strerror(err));
	if (p != MAP_FAILED)
		munmap(p, length);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(!info.out_mappings, "%u mappings are counted", info.out_mappings);
}

TEST_BOTH(shared, "all mappings show the same memory")
{
	int fd = buffer_alloc(LEN, "st-shared");
	int node = buffer_node("st-shared", O_RDWR);
	int other = buffer_open("st-shared", O_RDWR);
	void *p, *q, *r, *s;

	REQUIRE(node >= 0 && other >= 0, "open: %s", strerror(errno));
	p = map_here(fd, LEN);
	q = map_here(fd, LEN);
	r = map_here(node, LEN);
	s = map_here(other, LEN);
	fill(p, LEN, 1);
	CHECK(filled(q, LEN, 1), "the second mapping shows something else");
	CHECK(filled(r, LEN, 1), "the node shows something else");
	CHECK(filled(s, LEN, 1), "the opened dma-buf shows something else");
	fill(r, LEN, 2);
	CHECK(filled(p, LEN, 2), "data written through the node are not seen");
	unmap_fd(p, LEN, fd);
	munmap(q, LEN);
	unmap_fd(r, LEN, node);
	munmap(s, LEN);
	buffer_end(other, "st-shared");
}

TEST_BOTH(private, "a private mapping is refused")
{
	int fd = buffer_alloc(LEN, NULL);

	refused(fd, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, EINVAL);
	refused(fd, LEN, PROT_READ, MAP_PRIVATE, 0, EINVAL);
	close(fd);
}

TEST(private_read_only, "a private mapping of a read-only node is refused")
{
	int fd = buffer_alloc(LEN, "st-private");
	int ro = buffer_node("st-private", O_RDONLY);
	void *p;

	REQUIRE(ro >= 0, "open: %s", strerror(errno));
	p = try_map(ro, LEN, PROT_READ, MAP_PRIVATE, 0);
	CHECK(p == MAP_FAILED && errno == EINVAL, "mmap of a private copy");
	p = try_map(ro, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0);
	CHECK(p == MAP_FAILED && errno == EINVAL, "mmap of a private writable copy");
	close(ro);
	buffer_end(fd, "st-private");
}

TEST_BOTH(range, "a part can be mapped, nothing beyond the end")
{
	int fd = buffer_alloc(LEN, NULL);
	char *p = map_here(fd, LEN), *q;

	fill(p, LEN, 7);
	q = try_map(fd, 2 * PAGE, PROT_READ, MAP_SHARED, 3 * PAGE);
	if (CHECK(q != MAP_FAILED, "mmap of a part: %s", strerror(errno))) {
		CHECK(!memcmp(q, p + 3 * PAGE, 2 * PAGE), "it shows another part");
		munmap(q, 2 * PAGE);
	}
	q = try_map(fd, PAGE, PROT_READ, MAP_SHARED, LEN - PAGE);
	if (CHECK(q != MAP_FAILED, "mmap of the last page: %s", strerror(errno))) {
		CHECK(!memcmp(q, p + LEN - PAGE, PAGE), "it shows another part");
		munmap(q, PAGE);
	}
	munmap(p, LEN);
	refused(fd, LEN + PAGE, PROT_READ, MAP_SHARED, 0, EINVAL);
	refused(fd, PAGE, PROT_READ, MAP_SHARED, LEN, EINVAL);
	refused(fd, 2 * PAGE, PROT_READ, MAP_SHARED, LEN - PAGE, EINVAL);
	refused(fd, PAGE, PROT_READ, MAP_SHARED, 1ULL << 40, EINVAL);
	refused(fd, 1ULL << 40, PROT_READ, MAP_SHARED, 0, EINVAL);
	close(fd);
}

TEST(range_overflow, "offsets that overflow are refused")
{
	int fd = buffer_alloc(LEN, "st-over");
	int node = buffer_node("st-over", O_RDWR);
	void *p;

	REQUIRE(node >= 0, "open: %s", strerror(errno));
	/* the core answers some of these itself, with EOVERFLOW */
	p = try_map(node, PAGE, PROT_READ, MAP_SHARED, 0x7ffffffffffff000);
	CHECK(p == MAP_FAILED && (errno == EINVAL || errno == EOVERFLOW), "offset of 2^63 - 4096");
	p = try_map(node, LEN, PROT_READ, MAP_SHARED, -PAGE);
	CHECK(p == MAP_FAILED && (errno == EINVAL || errno == EOVERFLOW),
	      "offset and length above 2^64");
	close(node);
	buffer_end(fd, "st-over");
}

TEST_BOTH(read_only, "a read-only file maps read-only, also after mprotect")
{
	struct rashpa_export get = { HEAD(get) };
	int fd = buffer_alloc(LEN, "st-ro");
	int node = buffer_node("st-ro", O_RDONLY);
	char *w = map_here(fd, LEN), *p;
	int i, ro[2];

	REQUIRE(node >= 0, "open: %s", strerror(errno));
	fill(w, LEN, 9);
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), 0, NULL);
	CHECK((fcntl(get.out_fd, F_GETFL) & O_ACCMODE) == O_RDONLY,
	      "the dma-buf of a read-only node is writable");
	ro[0] = node;
	ro[1] = get.out_fd;
	for (i = 0; i < 2; i++) {
		p = try_map(ro[i], LEN, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
		CHECK(p == MAP_FAILED && errno == EACCES, "mapped writable");
		p = try_map(ro[i], LEN, PROT_READ, MAP_SHARED, 0);
		if (!CHECK(p != MAP_FAILED, "%s cannot be mapped read-only: %s",
			   i ? "the dma-buf" : "the node", strerror(errno)))
			continue;
		CHECK(filled(p, LEN, 9), "it shows something else");
		CHECK(mprotect(p, LEN, PROT_READ | PROT_WRITE) && errno == EACCES,
		      "mprotect makes it writable");
		w[5] ^= 1;
		CHECK(p[5] == w[5], "data written later are not seen");
		w[5] ^= 1;
		munmap(p, LEN);
	}
	munmap(w, LEN);
	close(node);
	close(get.out_fd);
	buffer_end(fd, "st-ro");
}

static void write_there(void *arg)
{
	*(volatile char *)arg = 1;
}

TEST(read_only_signal, "a write into a read-only mapping is a SIGSEGV")
{
	int fd = buffer_alloc(LEN, "st-segv");
	int node = buffer_node("st-segv", O_RDONLY);
	char *p = try_map(node, LEN, PROT_READ, MAP_SHARED, 0);
	int status;

	if (CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno))) {
		status = tap_fork_wait(tap_fork_start(write_there, p));
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "status 0x%x", status);
		CHECK(!p[0], "the write arrived");
		munmap(p, LEN);
	}
	close(node);
	buffer_end(fd, "st-segv");
}

TEST(write_only, "a write-only file maps nothing")
{
	int fd = buffer_alloc(LEN, "st-wo");
	int node = buffer_node("st-wo", O_WRONLY);
	struct rashpa_export get = { HEAD(get), .out_fd = -7 };
	void *p;

	REQUIRE(node >= 0, "open: %s", strerror(errno));
	p = try_map(node, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	CHECK(p == MAP_FAILED && errno == EACCES, "mapped readable");
	/* nor through its dma-buf, which could be read */
	ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), EACCES, "not open for reading");
	CHECK(get.out_fd == -7, "out_fd was written on failure");
	close(node);
	buffer_end(fd, "st-wo");
}

TEST_BOTH(few_faults, "there is one page fault for 2 MiB")
{
	int fd = buffer_alloc(64 * MIB, NULL);
	volatile char *p = (void *)map_here(fd, 64 * MIB);
	u64 i;
	long before;

	before = page_faults();
	for (i = 0; i < 64 * MIB; i += PAGE)
		p[i] = 1;
	CHECK(page_faults() - before < 33 + 8, "%ld page faults for 64 MiB", page_faults() - before);
	unmap_fd((void *)p, 64 * MIB, fd);
}

/* KiB of page tables of this process */
static long tables_kib(void)
{
	return read_kib("/proc/self/status", "VmPTE");
}

/* 64 MiB in small entries are 128 KiB of tables, in huge ones at most two pages. */
static void page_tables(int fd)
{
	long before = tables_kib(), after;
	void *p = map_here(fd, 64 * MIB);

	memset(p, 1, 64 * MIB);
	after = tables_kib();
	if (aligned)
		CHECK(after - before <= 16, "%ld KiB of page tables", after - before);
	else
		CHECK(after - before >= 128, "%ld KiB of page tables", after - before);
	munmap(p, 64 * MIB);
}

TEST_BOTH(page_tables, "as few page tables as possible")
{
	struct rashpa_alloc a = { HEAD(a), .length = 64 * MIB,
				  .backend = RASHPA_BACKEND_CMA };
	int fd = buffer_alloc(64 * MIB, NULL);
	struct rashpa_info info;

	if (!buffer_info(fd, &info))
		CHECK(info.out_page_size == 2 * MIB, "pages of %llu bytes", info.out_page_size);
	page_tables(fd);
	close(fd);
	if (!cma_here())
		return;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	page_tables(a.out_fd);
	close(a.out_fd);
}

TEST(node_aligns, "a node finds an aligned address")
{
	int fd, node;
	char *small, *p;

	SKIP_IF(sizeof(void *) == 4, "the kernel aligns for 64-bit programs only");
	fd = buffer_alloc(64 * MIB, "st-align");
	node = buffer_node("st-align", O_RDWR);
	small = map_fd(node, PAGE);
	p = map_fd(node, 64 * MIB);
	CHECK(!((uintptr_t)p & (2 * MIB - 1)), "mapped at %p", p);
	unmap_fd(p, 64 * MIB, node);
	munmap(small, PAGE);
	buffer_end(fd, "st-align");
}

TEST_BOTH(mprotect, "a part can be protected")
{
	int fd = buffer_alloc(4 * MIB, NULL);
	char *p = map_here(fd, 4 * MIB);

	fill(p, 4 * MIB, 9);
	CHECK(!mprotect(p + MIB, PAGE, PROT_READ), "mprotect: %s", strerror(errno));
	CHECK(filled(p, 4 * MIB, 9), "the content is lost");
	CHECK(!mprotect(p + MIB, PAGE, PROT_READ | PROT_WRITE), "mprotect: %s", strerror(errno));
	fill(p, 4 * MIB, 10);
	CHECK(!mprotect(p, 4 * MIB, PROT_READ), "mprotect: %s", strerror(errno));
	CHECK(filled(p, 4 * MIB, 10), "the written data are lost");
	unmap_fd(p, 4 * MIB, fd);
}

static void write_and_compare(void *arg)
{
	CHECK(filled(arg, LEN, 3), "the child sees something else");
	fill(arg, LEN, 4);
}

TEST_BOTH(fork, "a child shares the mapping")
{
	struct rashpa_info info;
	int fd = buffer_alloc(LEN, NULL);
	void *p = map_here(fd, LEN);

	fill(p, LEN, 3);
	tap_fork(write_and_compare, p);
	CHECK(filled(p, LEN, 4), "data of the child are not seen");
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_mappings == 1, "%u mappings", info.out_mappings);
	unmap_fd(p, LEN, fd);
}

TEST_BOTH(dontneed, "MADV_DONTNEED loses no data")
{
	int fd = buffer_alloc(4 * MIB, NULL);
	char *p = map_here(fd, 4 * MIB);

	fill(p, 4 * MIB, 5);
	CHECK(!madvise(p, 4 * MIB, MADV_DONTNEED), "madvise: %s", strerror(errno));
	CHECK(filled(p, 4 * MIB, 5), "the content is lost");
	p[MIB] ^= 1;
	CHECK(!madvise(p + MIB, PAGE, MADV_DONTNEED), "madvise: %s", strerror(errno));
	p[MIB] ^= 1;
	CHECK(filled(p, 4 * MIB, 5), "the content is lost");
	unmap_fd(p, 4 * MIB, fd);
}

struct toucher {
	pthread_t thread;
	char *p;
	atomic_bool stop;
	u64 refused;
};

/* Through a call, which fails if a fault cannot be served. */
static void *touch(void *arg)
{
	struct toucher *t = arg;
	char byte;
	struct iovec to = { &byte, 1 }, from = { NULL, 1 };
	u64 i;

	for (i = 0; !atomic_load(&t->stop); i++) {
		from.iov_base = t->p + i * 1234 * PAGE % RACED;
		t->refused += process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1;
	}
	return NULL;
}

/* Threads that fault one huge entry at a time make one, and nothing in its place. */
TEST_BOTH(fault_race, "threads fault the same pages")
{
	int fd = buffer_alloc(RACED, NULL), i;
	char *p = map_here(fd, RACED);
	struct toucher t[3] = {};

	for (i = 0; i < 3; i++) {
		t[i].p = p;
		pthread_create(&t[i].thread, NULL, touch, &t[i]);
	}
	for (i = 0; i < RACES / (int)tap_slow() && tap_ok(); i++) {
		CHECK(!madvise(p, RACED, MADV_DONTNEED), "madvise: %s", strerror(errno));
		*(volatile char *)(p + i % (RACED / PAGE) * PAGE);
	}
	for (i = 0; i < 3; i++) {
		atomic_store(&t[i].stop, true);
		pthread_join(t[i].thread, NULL);
		CHECK(!t[i].refused, "%llu faults were not served", t[i].refused);
	}
	/* a page table in our memory would have left addresses there */
	CHECK(all_zero(p, RACED), "something was written");
	unmap_fd(p, RACED, fd);
}

#define PM_PRESENT	(1ULL << 63)
#define PM_FRAME	((1ULL << 55) - 1)
#define KPF_COMPOUND	(3ULL << 15)	/* a head or a tail */

/* Pages of [@p, @p + @length) that are no part of one of our blocks any more. */
static unsigned int pages_lost(const char *p, size_t length)
{
	int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	int flags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	unsigned int lost = 0;
	u64 entry, flag;
	size_t i;

	for (i = 0; i < length; i += PAGE) {
		(void)*(volatile const char *)(p + i);	/* then it has an entry */
		if (pread(map, &entry, 8, (off_t)(((uintptr_t)p + i) / PAGE * 8)) != 8 ||
		    !(entry & PM_PRESENT) ||
		    pread(flags, &flag, 8, (off_t)((entry & PM_FRAME) * 8)) != 8) {
			lost = UINT32_MAX;	/* it cannot be checked */
			break;
		}
		lost += !(flag & KPF_COMPOUND);
	}
	close(map);
	close(flags);
	return lost;
}

struct mapper {
	int fd;
	atomic_ullong *times;
};

static void map_for_ever(void *arg)
{
	const struct mapper *m = arg;

	for (;;) {
		volatile char *p = map_here(m->fd, KILLED);
		u64 i;

		for (i = 0; i < KILLED; i += 2 * MIB)
			(void)p[i];
		munmap((void *)p, KILLED);
		atomic_fetch_add(m->times, 1);
	}
}

/* A process is killed in the middle of mmap: the memory stays that of the others. */
TEST_BOTH(killed_in_mmap, "a process is killed while it maps")
{
	struct mapper m = { .fd = buffer_alloc(KILLED, NULL) };
	char *p = map_here(m.fd, KILLED);
	/* fewer where each mapping takes long, and is as long in the middle of it */
	const unsigned int kills = KILLS / (tap_slow() > 1 ? 2 : 1);
	unsigned int lost, i;
	u64 begin, all;
	pid_t pid;

	m.times = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (i = 0; i < kills && tap_ok(); i++) {
		atomic_store(m.times, 0);
		pid = tap_fork_start(map_for_ever, &m);
		while (!atomic_load(m.times))
			;
		begin = now_ns();
		while (atomic_load(m.times) < 3)
			;
		all = (now_ns() - begin) / 2;
		/* each time at another moment of it */
		begin = now_ns();
		while (now_ns() - begin < all * i / kills)
			;
		tap_fork_kill(pid);
	}
	lost = pages_lost(p, KILLED);
	CHECK(!lost, "%u pages were given back under a mapping", lost);
	munmap(m.times, PAGE);
	unmap_fd(p, KILLED, m.fd);
}

TEST_BOTH(partial_munmap, "a part can be unmapped")
{
	struct rashpa_info info;
	int fd = buffer_alloc(4 * MIB, NULL);
	char *p = map_here(fd, 4 * MIB);

	fill(p, 4 * MIB, 6);
	munmap(p + MIB, MIB);
	CHECK(filled(p, MIB, 6), "the lower part is lost");
	CHECK(filled(p + 2 * MIB, 2 * MIB, 6 + 2 * MIB / 8), "the upper part is lost");
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_mappings == 2, "%u mappings", info.out_mappings);
	munmap(p, 4 * MIB);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_mappings == 0, "%u mappings", info.out_mappings);
	close(fd);
}

TEST_BOTH(mremap, "a mapping moves, but does not grow")
{
	int fd = buffer_alloc(LEN, NULL);
	char *p = map_here(fd, LEN), *q;

	fill(p, LEN, 8);
	q = mremap(p, LEN, 2 * LEN, MREMAP_MAYMOVE);
	CHECK(q == MAP_FAILED, "a mapping was made longer than the buffer");
	q = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q = mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q);
	if (CHECK(q != MAP_FAILED, "mremap: %s", strerror(errno)))
		p = q;
	CHECK(filled(p, LEN, 8), "the content is lost");
	unmap_fd(p, LEN, fd);
}

TEST_BOTH(outlives_fd, "a mapping outlives its file descriptor")
{
	int fd = buffer_alloc(LEN, NULL);
	u64 held = bytes_allocated();
	void *p = map_here(fd, LEN);

	close(fd);
	CHECK(bytes_allocated() == held, "memory was given back under a mapping");
	fill(p, LEN, 1);
	CHECK(filled(p, LEN, 1), "the content is lost");
	munmap(p, LEN);
	CHECK(bytes_allocated() == held - LEN, "the memory did not come back");
}

/* --- pinning by address, as RDMA registration and direct I/O do --- */

static int ring_open(void)
{
	struct io_uring_params params = {};

	return syscall(__NR_io_uring_setup, 2, &params);
}

static int ring_register(int ring, void *p, size_t length)
{
	struct iovec iov = { .iov_base = p, .iov_len = length };

	return syscall(__NR_io_uring_register, ring, IORING_REGISTER_BUFFERS, &iov, 1) ?
	       -errno : 0;
}

TEST_BOTH(pin, "a contig buffer can be pinned for long, and freed meanwhile")
{
	int ring = ring_open(), fd, i, err;
	void *p;

	SKIP_IF(ring < 0, "io_uring: %s", strerror(errno));
	for (i = 0; i < 3; i++) {
		fd = buffer_alloc(16 * MIB, NULL);
		p = map_here(fd, 16 * MIB);
		close(fd);
		if (!p)
			break;
		err = ring_register(ring, p, 16 * MIB);
		if (err == -EOPNOTSUPP) {
			tap_skip("io_uring of this kernel pins no mapped files");
			munmap(p, 16 * MIB);
			break;
		}
		CHECK(!err, "a contig buffer cannot be pinned: %s", strerror(-err));
		fill(p, 16 * MIB, i);
		CHECK(filled(p, 16 * MIB, i), "the content is lost");
		/* the memory goes while it is pinned */
		munmap(p, 16 * MIB);
		if (!err)
			CHECK(!syscall(__NR_io_uring_register, ring, IORING_UNREGISTER_BUFFERS,
				       NULL, 0), "unregister: %s", strerror(errno));
	}
	close(ring);
}

TEST_BOTH(pin_short, "a contig buffer can be pinned for a moment")
{
	char data[PAGE];
	int fd = buffer_alloc(LEN, NULL);
	void *p = map_here(fd, LEN);
	struct iovec local = { data, sizeof(data) }, remote = { p, sizeof(data) };

	fill(p, LEN, 11);
	CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof(data) &&
	      filled(data, sizeof(data), 11), "read: %s", strerror(errno));
	fill(data, sizeof(data), 12);
	CHECK(process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == sizeof(data) &&
	      filled(p, sizeof(data), 12), "write: %s", strerror(errno));
	unmap_fd(p, LEN, fd);
}

/* A pipe holds pages of a buffer that is gone. */
TEST_BOTH(splice, "pages that a pipe holds stay when their buffer goes")
{
	int fd = buffer_alloc(4 * MIB, NULL), again, pipes[2];
	u64 held = bytes_allocated();
	struct iovec iov = { .iov_len = 8 * PAGE };
	char data[8 * PAGE];
	void *p = map_here(fd, 4 * MIB);

	REQUIRE(!pipe(pipes), "no pipe");
	fill(p, 4 * MIB, 31);
	iov.iov_base = p;
	CHECK(vmsplice(pipes[1], &iov, 1, 0) == (ssize_t)iov.iov_len, "vmsplice: %s",
	      strerror(errno));
	unmap_fd(p, 4 * MIB, fd);
	/* the block that they are in */
	CHECK(bytes_allocated() == held - 2 * MIB, "%llu bytes are charged", bytes_allocated());
	again = buffer_alloc(4 * MIB, NULL);
	p = map_here(again, 4 * MIB);
	memset(p, 0xee, 4 * MIB);
	munmap(p, 4 * MIB);
	CHECK(read(pipes[0], data, sizeof(data)) == sizeof(data) &&
	      filled(data, sizeof(data), 31), "the pages were used again too early");
	close(again);
	close(pipes[0]);
	close(pipes[1]);
}

TEST_BOTH(cma, "a CMA buffer is mapped, but not pinned")
{
	struct rashpa_alloc a = { HEAD(a), .length = 16 * MIB,
				  .backend = RASHPA_BACKEND_CMA };
	int ring, err;
	char *p;
	char data[PAGE];
	struct iovec local = { data, sizeof(data) }, remote = { NULL, sizeof(data) };

	SKIP_IF(!cma_here(), "no CMA area");
	REQUIRE(!call(memory, RASHPA_IOC_ALLOC, &a), "ALLOC: %s", reason);
	p = map_here(a.out_fd, a.length);
	fill(p, a.length, 21);
	CHECK(filled(p, a.length, 21), "the content is lost");
	remote.iov_base = p;
	CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 &&
	      errno == EFAULT, "pages of CMA memory can be taken by address");
	ring = ring_open();
	if (ring >= 0) {
		err = ring_register(ring, p, a.length);
		CHECK(err == -EFAULT, "a long-term pin: %s", strerror(-err));
		close(ring);
	}
	tap_fork(write_there, p);
	munmap(p + MIB, PAGE);
	unmap_fd(p, a.length, a.out_fd);
}
