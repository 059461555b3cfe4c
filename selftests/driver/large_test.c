// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=large kernel=6.12 iommu=on seconds=55 */
/* test: needs=large iommu=off seconds=60 */
/*
 * A buffer of 1 GiB: in one piece on a machine that has just booted, with a clear answer if
 * memory is in pieces. Needs a separate guest with at least 4 GiB.
 */
#include <infiniband/verbs.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>

#include "common.h"

#define LEN		GIB
#define SECONDS		240	/* a test moves and zeroes gigabytes, maybe emulated */
#define SPARE		(640 * MIB)
#define PIECE		(64 * KIB)
#define PIN_EVERY	(32 * MIB)
#define PINS_MAX	1024

static struct fpga fpga;
static bool have_fpga;

static int alloc_large(uint32_t backend, struct rashpa_alloc *a)
{
	u64 start = now_ns();
	int err;

	*a = (struct rashpa_alloc) { HEAD(*a), .length = LEN, .backend = backend };
	err = call(memory, RASHPA_IOC_ALLOC, a);
	tap_note("ALLOC of 1 GiB: %s after %.1f s", err ? reason : "done",
		 (double)(now_ns() - start) / 1e9);
	return err;
}

/* The first bytes of every page. */
static bool starts_zero(const char *p)
{
	u64 at;

	for (at = 0; at < LEN; at += PAGE)
		if (!all_zero(p + at, 64))
			return false;
	return true;
}

/* One for each huge entry. Makes every page dirty, too. */
static void check_few_faults(volatile char *p)
{
	long before = page_faults();
	u64 at;

	for (at = 0; at < LEN; at += PAGE)
		p[at] = 0x5a;
	before = page_faults() - before;
	/* a few of the C library and the stack */
	CHECK(before < (long)(LEN / (2 * MIB)) + 8, "%ld page faults after mmap", before);
}

static void check_segments(int buffer)
{
	struct rashpa_map_make map;
	int fd = fpga_map(&fpga, buffer, RASHPA_BIDIRECTIONAL, &map);

	REQUIRE(fd >= 0, "MAP: %s", reason);
	CHECK(map.out_segments == 1, "%u segments for the function", map.out_segments);
	CHECK(map.out_class == RASHPA_CLASS_HOST || map.out_class == RASHPA_CLASS_IOVA,
	      "class %u", map.out_class);
	close(fd);
}

/* --- registration by address --- */

static struct ibv_context *rdma_open(void)
{
	struct ibv_device **list;
	struct ibv_context *context = NULL;

	if (system("selftests/lib/rxe.sh >/dev/null"))
		return NULL;
	list = ibv_get_device_list(NULL);
	if (list && list[0])
		context = ibv_open_device(list[0]);
	if (list)
		ibv_free_device_list(list);
	return context;
}

/* Returns 0 or -errno of ibv_reg_mr() over the whole buffer. */
static int registered(struct ibv_pd *pd, void *p)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, p, LEN,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	if (!mr)
		return -errno;
	return -ibv_dereg_mr(mr);
}

static void check_registration(void *p, int want)
{
	struct ibv_context *context = rdma_open();
	struct ibv_pd *pd;
	int err;

	REQUIRE(context, "there is no soft-RoCE device: %s", strerror(errno));
	pd = ibv_alloc_pd(context);
	if (CHECK(pd, "ibv_alloc_pd: %s", strerror(errno))) {
		err = registered(pd, p);
		CHECK(err == -want, "ibv_reg_mr of 1 GiB: %s, expected %s", strerror(-err),
		      strerror(want));
		ibv_dealloc_pd(pd);
	}
	ibv_close_device(context);
}

/* --- 1 GiB, used and given back, and again --- */

static void use(uint32_t backend, int registration)
{
	struct rashpa_alloc a;
	char *p;
	int i;

	tap_limit(SECONDS);
	/* the second may get what the first left */
	for (i = 0; i < 2; i++) {
		ANSWERED(alloc_large(backend, &a), 0, NULL);
		REQUIRE(tap_ok(), "no memory");
		CHECK(a.out_segments == 1 && a.out_length == LEN && a.out_backend == backend,
		      "%u segments, %llu bytes, backend %u", a.out_segments,
		      a.out_length, a.out_backend);
		p = map_fd(a.out_fd, LEN);
		CHECK(starts_zero(p), "it is not zeroed");
		check_few_faults(p);
		if (!i)
			check_registration(p, registration);
		munmap(p, LEN);
		if (have_fpga && !i)
			check_segments(a.out_fd);
		close(a.out_fd);
	}
}

/* --- memory in pieces --- */

struct hog {
	char *p;
	u64 length;
	int ring;		/* holds the pins */
};

/* Take nearly all memory, page by page. */
static bool hog_take(struct hog *h)
{
	h->length = (read_kib("/proc/meminfo", "MemAvailable") * KIB - SPARE) / (4 * PIECE) * (4 * PIECE);
	h->p = mmap(NULL, h->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!CHECK(h->p != MAP_FAILED, "mmap: %s", strerror(errno)))
		return false;
	madvise(h->p, h->length, MADV_NOHUGEPAGE);
	return CHECK(!madvise(h->p, h->length, MADV_POPULATE_WRITE), "populate: %s",
		     strerror(errno));
}

/* One page of every 32 MiB of physical memory. Returns how many. */
static unsigned int hog_choose(struct hog *h, struct iovec *pages)
{
	static bool seen[PINS_MAX];
	unsigned int n = 0;
	u64 at, slot;

	for (at = 3 * PIECE; at < h->length && n < PINS_MAX; at += 4 * PIECE) {
		slot = pfn_of(h->p + at) * PAGE / PIN_EVERY;
		if (!slot || slot >= PINS_MAX || seen[slot])
			continue;
		seen[slot] = true;
		pages[n++] = (struct iovec) { .iov_base = h->p + at, .iov_len = PAGE };
	}
	return n;
}

/* Pages that cannot be moved, everywhere, and some that can; most is free. */
static bool hog_pin(struct hog *h)
{
	static struct iovec pages[PINS_MAX];
	struct io_uring_params params = {};
	unsigned int n = hog_choose(h, pages);
	u64 at;

	h->ring = syscall(__NR_io_uring_setup, 2, &params);
	if (!CHECK(h->ring >= 0, "io_uring: %s", strerror(errno)))
		return false;
	if (!CHECK(!syscall(__NR_io_uring_register, h->ring, IORING_REGISTER_BUFFERS,
			    pages, n), "pinning %u pages: %s", n, strerror(errno)))
		return false;
	for (at = 0; at < h->length; at += 4 * PIECE)
		madvise(h->p + at, 3 * PIECE, MADV_DONTNEED);
	tap_note("of %llu MiB every fourth piece of 64 KiB is kept; %u pages are pinned",
		 (h->length / MIB), n);
	return true;
}

/* Unregistered first: closing a ring unpins its pages some time later. */
static void hog_unpin(struct hog *h)
{
	if (h->ring < 0)
		return;
	CHECK(!syscall(__NR_io_uring_register, h->ring, IORING_UNREGISTER_BUFFERS, NULL, 0),
	      "unregister: %s", strerror(errno));
	close(h->ring);
	h->ring = -1;
}

static void hog_free(struct hog *h)
{
	hog_unpin(h);
	if (h->p != MAP_FAILED)
		munmap(h->p, h->length);
}

/* Since 6.7 each processor may keep an eighth of what was freed, which is not counted as free. */
static u64 bytes_of_processors(void)
{
	FILE *file = fopen("/proc/zoneinfo", "re");
	unsigned long long n, pages = 0;
	char line[256];

	if (!CHECK(file, "/proc/zoneinfo: %s", strerror(errno)))
		return 0;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " count: %llu", &n) == 1)
			pages += n;
	fclose(file);
	return pages * PAGE;
}

static u64 bytes_free(void)
{
	struct rashpa_query q = { HEAD(q), .backend = RASHPA_BACKEND_CONTIG };

	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	return q.out_free + bytes_of_processors();
}

/* The largest run in MiB, from the sentence of a refusal. */
static unsigned long largest_run(void)
{
	static const char words[] = "largest run is at most ";
	const char *at = strstr(reason, words);

	return at ? strtoul(at + strlen(words), NULL, 10) : 0;
}

/* Success, or a sentence that names the largest run, which is shorter. */
static int either(uint32_t backend)
{
	struct rashpa_alloc a;
	int err = alloc_large(backend, &a);

	if (err) {
		ANSWERED(err, ENOMEM, "1024 MiB|largest run");
		CHECK(largest_run() < LEN / MIB, "\"%s\" is no reason", reason);
		return err;
	}
	CHECK(a.out_segments == 1, "%u segments", a.out_segments);
	close(a.out_fd);
	return 0;
}

/* One page of 1 GiB of a process is one segment. */
TEST(giant_page, "a page of 1 GiB can be pinned, as one segment")
{
	static const char pool[] = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
	struct rashpa_pin pin = { HEAD(pin), .length = GIB };
	char text[32] = "0";
	void *p;

	SKIP_IF(write_text(pool, "1"), "no pages of 1 GiB in this kernel");
	read_text(pool, text, sizeof(text));
	SKIP_IF(strcmp(text, "1"), "the kernel finds no page of 1 GiB");
	p = mmap(NULL, GIB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 30 << MAP_HUGE_SHIFT, -1, 0);
	if (CHECK(p != MAP_FAILED, "mmap: %s", strerror(errno))) {
		pin.address = (uintptr_t)p;
		if (ANSWERED(call(memory, RASHPA_IOC_PIN, &pin), 0, NULL)) {
			CHECK(pin.out_segments == 1, "%u segments", pin.out_segments);
			close(pin.out_fd);
		}
		munmap(p, GIB);
	}
	CHECK(!write_text(pool, "0"), "the page cannot be given back");
}

/* --- as many GiB as there are --- */

/* Print the time as a note: in pieces of a 32nd, or of 1 GiB by that alignment. */
static void alloc_gibs(u64 gib, u64 alignment)
{
	struct rashpa_alloc a = { HEAD(a), .length = gib * GIB, .alignment = alignment,
				  .backend = RASHPA_BACKEND_CONTIG };
	u64 start = now_ns(), took;
	char *p;
	int err;

	tap_limit(SECONDS + (unsigned int)gib * 60);
	err = call(memory, RASHPA_IOC_ALLOC, &a);
	/* the kernel may have a page in each place that is so aligned, or so large */
	if (err && (alignment || gib > 1)) {
		ANSWERED(err, ENOMEM, "largest run");
		tap_note("%llu GiB%s: %s", gib, alignment ? " in pieces of 1 GiB" : "", reason);
		return;
	}
	if (!ANSWERED(err, 0, NULL))
		return;
	took = now_ns() - start;
	start = now_ns();
	p = map_fd(a.out_fd, gib * GIB);
	CHECK(all_zero(p, PAGE) && all_zero(p + gib * GIB - PAGE, PAGE), "it is not zeroed");
	CHECK(!(pfn_of(p) * PAGE % (alignment ?: 2 * MIB)), "it is not aligned");
	munmap(p, gib * GIB);
	CHECK(a.out_segments == 1, "%u segments", a.out_segments);
	close(a.out_fd);
	tap_note("%llu GiB%s: %.2f s, %.2f s a GiB, given back after %.2f s", gib, alignment ?
		 " in pieces of 1 GiB" : "", (double)took / 1e9, (double)took / 1e9 / (double)gib,
		 (double)(now_ns() - start) / 1e9);
}

/* RASHPA_GIB=N: up to N GiB, in a guest that has them. */
TEST(gibs, "several GiB, also in pieces of 1 GiB")
{
	const char *text = getenv("RASHPA_GIB");
	const u64 most = text ? strtoull(text, NULL, 10) : 1;
	u64 gib;

	for (gib = 1; gib <= most && tap_ok(); gib *= 2) {
		alloc_gibs(gib, 0);
		alloc_gibs(gib, GIB);
	}
	if (gib / 2 < most)
		alloc_gibs(most, GIB);
}

TEST(contig, "contig: 1 GiB is one piece, zeroed, can be registered")
{
	use(RASHPA_BACKEND_CONTIG, 0);
}

/* CMA memory cannot be pinned for long, and says so at once. */
TEST(cma, "CMA: 1 GiB is one piece, zeroed, cannot be registered")
{
	SKIP_IF(!cma_here(), "no CMA area (lab run --append cma=1536M)");
	use(RASHPA_BACKEND_CMA, EFAULT);
}

TEST(pieces, "1 GiB where memory is in pieces: success, or the reason")
{
	struct hog h = { .p = MAP_FAILED, .ring = -1 };
	u64 before = bytes_free();
	int err = -ENOMEM;

	tap_limit(SECONDS);
	if (hog_take(&h) && hog_pin(&h)) {
		CHECK(either(RASHPA_BACKEND_CONTIG), "1 GiB across pinned pages");
		if (cma_here())
			CHECK(!either(RASHPA_BACKEND_CMA), "the reserved memory is not there");
		hog_unpin(&h);
		/* the kernel can move the remaining pages */
		err = either(RASHPA_BACKEND_CONTIG);
	}
	hog_free(&h);
	/* others may still keep freed pages */
	if (err)
		either(RASHPA_BACKEND_CONTIG);
	CHECK(bytes_free() + 256 * MIB > before, "%llu MiB were free before, %llu after",
	      (before / MIB), (bytes_free() / MIB));
}

void setup(void)
{
	if (ram_bytes() < 3 * GIB)
		tap_skip_all("this guest is too small (lab run --memory 4G)");
	/* without a profile it has a DMA mask of 32 bits */
	have_fpga = fpga_try(&fpga, 0);
}
