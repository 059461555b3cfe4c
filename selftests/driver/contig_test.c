// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=contig iommu=off kernel=6.12,any seconds=20 */
/* Memory that contig takes, memory that it leaves alone, and areas of CMA. */
#include <linux/fuse.h>
#include <linux/loop.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "common.h"

/* ------------------------------------------- a server that never answers --- */

#define FOLDER		"/tmp/st-contig"
#define ROOM		(64 * KIB)	/* for a request of FUSE */
#define FILE_SIZE	(64 * KIB)
#define HOLES		(128 * MIB)

struct server {
	int fuse;
	int asked[2];		/* pipe: a byte for each read and write */
	int done[2];		/* pipe: all is taken */
};

static void answer(int fuse, const struct fuse_in_header *in, int err, void *data, size_t size)
{
	struct fuse_out_header out = {
		.len = sizeof(out) + size, .error = err, .unique = in->unique
	};
	struct iovec parts[] = { { &out, sizeof(out) }, { data, size } };

	/* the process that asked may have gone */
	if (writev(fuse, parts, 2) < 0)
		return;
}

static struct fuse_attr attributes(u64 node)
{
	return (struct fuse_attr) {
		.ino = node, .nlink = 1, .size = FILE_SIZE,
		.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644,
	};
}

static void serve_one(const struct server *s, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION, .minor = 31,
				      .max_write = PAGE, .max_readahead = FILE_SIZE,
				      .flags = FUSE_WRITEBACK_CACHE };
	struct fuse_entry_out entry = { .nodeid = 2, .attr = attributes(2) };
	struct fuse_attr_out attr = { .attr = attributes(in->nodeid) };
	struct fuse_open_out open_out = {};

	switch (in->opcode) {
	case FUSE_INIT:
		answer(s->fuse, in, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		answer(s->fuse, in, 0, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		answer(s->fuse, in, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(s->fuse, in, 0, &open_out, sizeof(open_out));
		break;
	case FUSE_READ:
	case FUSE_WRITE:
		CHECK(write(s->asked[1], "", 1) == 1, "write");
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(s->fuse, in, -EOPNOTSUPP, NULL, 0);
	}
}

static void serve(void *arg)
{
	static char request[ROOM];
	const struct server *s = arg;

	while (read(s->fuse, request, sizeof(request)) > 0)
		serve_one(s, (void *)request);
}

static char data[FILE_SIZE];

static void read_for_ever(void *arg)
{
	const struct server *s = arg;
	int fd;

	close(s->fuse);
	fd = open(FOLDER "/file", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, data, sizeof(data)) < 0)
		tap_note("read: %s", strerror(errno));
}

/* Opening a file again first writes its dirty pages, which the server never answers. */
static void write_for_ever(void *arg)
{
	const struct server *s = arg;
	int fd;

	close(s->fuse);
	fd = open(FOLDER "/file", O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, data, PAGE) == (ssize_t)PAGE, "write: %s", strerror(errno));
	if (open(FOLDER "/file", O_RDONLY | O_CLOEXEC) < 0)
		tap_note("open: %s", strerror(errno));
}

/* Buffers of each length until there is no room for one more. */
static void take(const u64 *lengths, size_t n)
{
	int err;

	for (size_t i = 0; i < n; i++) {
		struct rashpa_alloc a = { HEAD(a), .length = lengths[i],
					  .backend = RASHPA_BACKEND_CONTIG };

		do
			err = call(memory, RASHPA_IOC_ALLOC, &a);
		while (!err);
		ANSWERED(err, ENOMEM, "largest run");
	}
}

/* Take all free blocks, and so try each block that looks free. */
static void take_all(void *arg)
{
	static const u64 lengths[] = { 64 * MIB, 16 * MIB, 4 * MIB };
	const struct server *s = arg;

	close(s->fuse);
	take(lengths, ARRAY_SIZE(lengths));
	CHECK(write(s->done[1], "", 1) == 1, "write");
}

/*
 * Small pages, until the holes in blocks that cannot be emptied are full: later pages of other
 * processes lie in blocks that can.
 */
static char *fill_holes(size_t holes)
{
	char *p = mmap(NULL, holes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(p, holes, MADV_NOHUGEPAGE);
	CHECK(!madvise(p, holes, MADV_POPULATE_WRITE), "populate: %s", strerror(errno));
	return p;
}

/* More memory takes longer to take: where it is emulated, tens of seconds for a GiB. */
static int patience_ms(void)
{
	const unsigned int seconds = 40 + 20 * (unsigned int)(ram_bytes() / GIB);

	tap_limit(TAP_SECONDS + 2 * seconds);
	return (int)seconds * 1000;
}

/* Mount a file system that answers no reads and writes; false: the kernel has no FUSE. */
static bool server_begin(struct server *s, pid_t *pid)
{
	char options[80];

	if (system("modprobe -q fuse"))
		tap_note("modprobe of fuse fails");
	s->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (s->fuse < 0) {
		tap_skip("no FUSE in this kernel");
		return false;
	}
	if (pipe(s->asked) || pipe(s->done))
		tap_bail("pipe: %s", strerror(errno));
	mkdir(FOLDER, 0700);
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", s->fuse);
	CHECK(!mount("fuse", FOLDER, "fuse", 0, options), "mount: %s", strerror(errno));
	*pid = tap_fork_start(serve, s);
	return true;
}

/* End the server: all requests end, and so do the processes that wait for one, @pids. */
static void server_end(struct server *s, pid_t server, const pid_t *pids, size_t n)
{
	size_t i;

	tap_fork_kill(server);
	close(s->fuse);
	for (i = 0; i < n; i++)
		tap_fork_end(pids[i]);
	umount2(FOLDER, MNT_DETACH);
	rmdir(FOLDER);
	close(s->asked[0]);
	close(s->asked[1]);
	close(s->done[0]);
	close(s->done[1]);
}

/* The page stays locked: a process that waits for it waits for ever. */
static void unanswered(void (*ask)(void *arg))
{
	pid_t server, pids[2];
	struct server s;
	char *holes;

	if (!server_begin(&s, &server))
		return;
	holes = fill_holes(HOLES);
	pids[0] = tap_fork_start(ask, &s);
	CHECK(wait_fd(s.asked[0], POLLIN, 20000), "nobody asks");
	munmap(holes, HOLES);
	pids[1] = tap_fork_start(take_all, &s);
	CHECK(wait_fd(s.done[0], POLLIN, patience_ms()),
	      "ALLOC waits for the page of another process");
	server_end(&s, server, pids, ARRAY_SIZE(pids));
}

TEST(unanswered_read, "contig does not wait for a page that is being read")
{
	unanswered(read_for_ever);
}

TEST(unanswered_write, "contig does not wait for a page that is being written")
{
	unanswered(write_for_ever);
}

/* @name in /proc/meminfo, in bytes. */
static u64 meminfo(const char *name)
{
	static char text[8192];
	const char *at;

	if (!read_file("/proc/meminfo", text, sizeof(text)))
		return 0;
	at = strstr(text, name);
	return at ? strtoull(at + strlen(name), NULL, 10) * KIB : 0;
}

/* @name in /proc/meminfo, without the areas of CMA: contig gets nothing from there. */
static u64 beside_cma(const char *name)
{
	return meminfo(name) - meminfo("CmaFree:");
}

/* --------------------------------------------------- full page cache --- */

#define CACHED		FOLDER ".cached"
#define PIECE		(16 * MIB)

/*
 * A disk that reads zeroes: its cache fills memory with clean pages. It has them as long as
 * @disk is open. Return that, or -1.
 */
static int open_disk(u64 length)
{
	int control, disk = -1, file = open(CACHED, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char path[32];
	long number;

	if (system("modprobe -q loop"))
		tap_note("modprobe of loop fails");
	control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	snprintf(path, sizeof(path), "/dev/loop%ld", number);
	if (number >= 0 && !ftruncate(file, (off_t)length))
		disk = open(path, O_RDWR | O_CLOEXEC);
	if (disk >= 0 && ioctl(disk, LOOP_SET_FD, file)) {
		close(disk);
		disk = -1;
	}
	close(control);
	close(file);
	unlink(CACHED);
	return disk;
}

/* In a child, whose end gives all of it back. */
static void take_cached(void *arg)
{
	const u64 want = *(u64 *)arg;
	struct rashpa_alloc a = { HEAD(a), .length = PIECE, .backend = RASHPA_BACKEND_CONTIG };
	u64 held = 0;
	int err = 0;

	while (held < want && !err) {
		err = call(memory, RASHPA_IOC_ALLOC, &a);
		held += err ? 0 : PIECE;
	}
	CHECK(held >= want, "%llu MiB of %llu: \"%s\"", (held / MIB), (want / MIB), reason);
}

TEST(full_cache, "contig gets memory of the page cache")
{
	const u64 length = (ram_bytes() + ram_bytes() / 4) & -PIECE;
	static char piece[PIECE];
	u64 done, want;
	int disk;

	disk = open_disk(length);
	SKIP_IF(disk < 0, "no loop device in this kernel");
	for (done = 0; done < length && tap_ok() &&
	     beside_cma("MemFree:") > beside_cma("MemAvailable:") / 8; done += PIECE)
		CHECK(read(disk, piece, PIECE) == (ssize_t)PIECE, "read: %s", strerror(errno));
	/* more than is free: half of the cached memory, too */
	want = beside_cma("MemFree:");
	want += (beside_cma("MemAvailable:") - want) / 2;
	tap_fork(take_cached, &want);
	CHECK(!ioctl(disk, LOOP_CLR_FD), "LOOP_CLR_FD: %s", strerror(errno));
	close(disk);
}

/* -------------------------------------------------------- the others --- */

static unsigned long oom_kills(void)
{
	static char text[32768];
	const char *at;

	if (!read_file("/proc/vmstat", text, sizeof(text)))
		return 0;
	at = strstr(text, "\noom_kill ");
	return at ? strtoul(at + strlen("\noom_kill "), NULL, 10) : 0;
}

/* All sizes, those of the page allocator, too: until there is nothing more; then hold it. */
static void take_and_hold(void *arg)
{
	static const u64 lengths[] = { 256 * MIB, 64 * MIB, 16 * MIB, 2 * MIB, 256 * KIB };
	const struct rlimit many = { 65536, 65536 };
	const int *done = arg;

	CHECK(!setrlimit(RLIMIT_NOFILE, &many), "setrlimit: %s", strerror(errno));
	take(lengths, ARRAY_SIZE(lengths));
	CHECK(write(done[1], "", 1) == 1, "write");
	pause();
}

/* Another process takes memory and gives it back, again and again. */
static void work_beside(void *arg)
{
	const u64 length = *(u64 *)arg;
	char *p;

	for (;;) {
		p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED && !madvise(p, length, MADV_POPULATE_WRITE), "populate: %s",
		      strerror(errno));
		munmap(p, length);
	}
}

/* Root may take all memory except the reserve of other processes: the kernel kills none. */
TEST(reserve, "root takes all memory, and other processes go on")
{
	u64 length = ram_bytes() / 256 & -PAGE;
	const unsigned long before = oom_kills();
	pid_t holder, beside;
	int done[2];
	char c;

	REQUIRE(!pipe(done), "pipe");
	beside = tap_fork_start(work_beside, &length);
	holder = tap_fork_start(take_and_hold, done);
	CHECK(wait_fd(done[0], POLLIN, patience_ms()) && read(done[0], &c, 1) == 1,
	      "not all was taken in time");
	/* a process more, which all of it is too much for */
	CHECK(!system("true"), "no process can be started");
	CHECK(oom_kills() == before, "%lu processes were killed for want of memory",
	      oom_kills() - before);
	tap_note("%llu MiB are left", (meminfo("MemAvailable:") / MIB));
	tap_fork_kill(beside);
	tap_fork_kill(holder);
	close(done[0]);
	close(done[1]);
}

#define CROWD		16
#define SEARCHED	(16 * MIB)

static int alloc_and_close(void)
{
	struct rashpa_alloc a = { HEAD(a), .length = SEARCHED, .backend = RASHPA_BACKEND_CONTIG };
	int err = call(memory, RASHPA_IOC_ALLOC, &a);

	if (!err)
		close(a.out_fd);
	return err;
}

static void search_for_ever(void *arg)
{
	unsigned int *ended = arg;

	drop_privileges();
	while (ANSWERED(alloc_and_close(), 0, NULL))
		__atomic_add_fetch(ended, 1, __ATOMIC_RELAXED);
}

TEST(crowd, "many processes of a user wait for each other, and others for one of them")
{
	const unsigned int *ended;
	unsigned int i, before;
	pid_t pids[CROWD];
	void *shared;
	u64 end;

	param_set("user_limit_mib", 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED, "mmap: %s", strerror(errno));
	ended = shared;
	for (i = 0; i < CROWD; i++)
		pids[i] = tap_fork_start(search_for_ever, shared);
	/* then all are at work */
	end = end_of_wait(patience_ms());
	while (__atomic_load_n(ended, __ATOMIC_RELAXED) < 2 * CROWD && now_ns() < end)
		usleep(1000);
	before = __atomic_load_n(ended, __ATOMIC_RELAXED);
	CHECK(before >= 2 * CROWD, "%u searches have ended", before);
	ANSWERED(alloc_and_close(), 0, NULL);
	i = __atomic_load_n(ended, __ATOMIC_RELAXED) - before;
	tap_note("%u searches of the other user ended meanwhile", i);
	CHECK(i < CROWD / 2, "root waits for %u searches of one user", i);
	for (i = 0; i < CROWD; i++)
		tap_fork_kill(pids[i]);
	munmap(shared, PAGE);
}

/* --------------------------------------------------------------- CMA --- */

static int alloc_cma(u64 length, u64 alignment)
{
	struct rashpa_alloc a = { HEAD(a), .length = length, .alignment = alignment,
				  .backend = RASHPA_BACKEND_CMA };
	int err = call(memory, RASHPA_IOC_ALLOC, &a);

	return err ? err : a.out_fd;
}

static void query(uint32_t backend, struct rashpa_query *q)
{
	*q = (struct rashpa_query) { HEAD(*q), .backend = backend };
	ANSWERED(call(memory, RASHPA_IOC_QUERY, q), 0, NULL);
}

/* In a child, whose end gives it back. */
static void take_cma(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = MIB };
	struct rashpa_query q;
	u64 held = 0, length;
	int fd;

	query(RASHPA_BACKEND_CMA, &q);
	for (length = 2 * MIB; length >= 512 * KIB; length /= 2) {
		do {
			fd = alloc_cma(length, 0);
			held += fd < 0 ? 0 : length;
		} while (fd >= 0 && held <= q.out_total);
		ANSWERED(fd < 0 ? fd : 0, ENOMEM, "CMA");
	}
	CHECK(held && held <= q.out_total, "%llu MiB of %llu", (held / MIB), (q.out_total / MIB));
	/* CMA is used up, so this comes from elsewhere */
	if (ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		CHECK(a.out_backend == RASHPA_BACKEND_CONTIG, "backend %u", a.out_backend);
}

TEST(cma_full, "an area of CMA hands out what it has, and no more")
{
	SKIP_IF(!cma_here(), "no area of CMA (lab run --append cma=256M)");
	tap_fork(take_cma, NULL);
}

TEST(cma_page, "a single page comes from an area of CMA")
{
	struct rashpa_query q;
	int fd;

	SKIP_IF(!cma_here(), "no area of CMA (lab run --append cma=256M)");
	query(RASHPA_BACKEND_CMA, &q);
	CHECK(q.out_area[0], "the area has no name");
	fd = alloc_cma(PAGE, 0);
	CHECK(fd >= 0, "a page: %s", reason);
	close(fd);
}

static void aligned(u64 length, u64 alignment)
{
	int fd = alloc_cma(length, alignment);
	void *p;

	REQUIRE(fd >= 0, "%llu KiB aligned to %llu MiB: %s", (length / KIB), (alignment / MIB),
		reason);
	p = map_fd(fd, length);
	CHECK(!(pfn_of(p) * PAGE & (alignment - 1)), "it is not aligned");
	unmap_fd(p, length, fd);
}

/* Whatever else the area holds: there is room. */
TEST(cma_aligned, "alignment that an area has room for is found")
{
	int odd = alloc_cma(3 * PAGE, 0), fd;

	SKIP_IF(!cma_here(), "no area of CMA (lab run --append cma=256M)");
	fd = alloc_cma(MIB, 0);
	aligned(2 * PAGE, 2 * MIB);
	aligned(MIB, 2 * MIB);
	aligned(4 * MIB, 4 * MIB);
	aligned(MIB, 16 * MIB);
	close(fd);
	aligned(MIB, 2 * MIB);
	close(odd);
}

/* Hold all memory outside the area until killed: pages that others read lie in the area then. */
static void hold_all(void *arg)
{
	take_all(arg);
	pause();
}

/* The lists of processors have free pages from elsewhere, which must be used up first. */
static void read_into_area(void *arg)
{
	fill_holes(24 * MIB);
	read_for_ever(arg);
}

static void take_area(void *arg)
{
	const struct server *s = arg;

	close(s->fuse);
	drop_privileges();
	while (alloc_cma(2 * MIB, 0) >= 0)
		;
}

static void take_some(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = 8 * MIB, .backend = RASHPA_BACKEND_CONTIG };
	const struct server *s = arg;

	close(s->fuse);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	drop_privileges();
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	CHECK(write(s->done[1], "", 1) == 1, "write");
}

/* Does @pid wait for a page that is locked, before it ends? */
static bool waits_for_page(pid_t pid)
{
	const u64 end = end_of_wait(10000);
	char path[32], where[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/wchan", pid);
	while (!strstr(where, "folio_wait_bit") && now_ns() < end && tap_ok())
		if (!read_text(path, where, sizeof(where)))
			break;
	return strstr(where, "folio_wait_bit");
}

/* The kernel waits for ever, in an area, where it alone looks for memory. */
TEST(hangs, "an allocation from CMA that hangs stops no search for contig")
{
	pid_t server, holder, pids[3];
	struct server s;
	size_t n = 0;
	char c;

	SKIP_IF(!cma_here(), "no area of CMA (lab run --append cma=256M)");
	if (!server_begin(&s, &server))
		return;
	holder = tap_fork_start(hold_all, &s);
	CHECK(wait_fd(s.done[0], POLLIN, patience_ms()) && read(s.done[0], &c, 1) == 1, "no memory");
	pids[n++] = tap_fork_start(read_into_area, &s);
	CHECK(wait_fd(s.asked[0], POLLIN, 20000), "the file is not read");
	tap_fork_kill(holder);
	pids[n++] = tap_fork_start(take_area, &s);
	if (waits_for_page(pids[1])) {
		pids[n++] = tap_fork_start(take_some, &s);
		CHECK(wait_fd(s.done[0], POLLIN, 30000), "a search waits for CMA");
	} else {
		tap_skip("the page that is being read is not in the area");
	}
	server_end(&s, server, pids, n);
}
