// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=off seconds=15 */
/* test: tier=nightly needs=numa iommu=off seconds=30 */
/* test: tier=nightly kernel=arm64 needs=virtio iommu=on seconds=30 */
/* /dev/rashpa/memory and buffer nodes: ALLOC, OPEN, REMOVE, QUERY, INFO, DMABUF. */
#include <linux/dma-buf.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "common.h"

/* ------------------------------------------------------------- names ---- */

#define LAST_BYTE	9999	/* the name, NULs, and an x at the very end */

static const struct {
	const char *key;
	const char *name;	/* as many bytes as .size, or up to its NUL */
	size_t size;
	int err;		/* of ALLOC, OPEN and REMOVE */
	const char *says;
} bad_names[] = {
	{ "with-a-slash", "a/b", 0, EINVAL, "name|0x2f" },
	{ "that-leads-out-of-the-folder", "../memory", 0, EINVAL, "dot" },
	{ "that-begins-with-a-dot", ".hidden", 0, EINVAL, "dot" },
	{ "that-is-a-dot", ".", 0, EINVAL, "dot" },
	{ "with-a-space", "a b", 0, EINVAL, "name|0x20" },
	{ "with-an-exclamation-mark", "a!b", 0, EINVAL, "name|0x21" },
	{ "with-a-percent-sign", "a%sb", 0, EINVAL, "name|0x25" },
	{ "with-a-line-end", "a\nb", 0, EINVAL, "name|0x0a" },
	{ "that-is-not-ascii", "caf\xc3\xa9", 0, EINVAL, "name|0xc3" },
	{ "of-bytes-with-the-top-bit", "\xff\xfe", 0, EINVAL, "name|0xff" },
	{ "without-nul", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	  RASHPA_NAME_SIZE, ENAMETOOLONG, "63" },
	{ "with-garbage-after-nul", "abc\0x", 5, EINVAL, "after the end" },
	{ "with-garbage-in-its-last-byte-only", "abc", LAST_BYTE, EINVAL, "after the end" },
	{ "that-begins-with-nul", "\0abc", 4, EINVAL, "empty" },
};

static void set_name(char *to, size_t i)
{
	size_t size = bad_names[i].size ?: strlen(bad_names[i].name);

	memset(to, 0, RASHPA_NAME_SIZE);
	if (size == LAST_BYTE) {
		to[RASHPA_NAME_SIZE - 1] = 'x';
		size = strlen(bad_names[i].name);
	}
	memcpy(to, bad_names[i].name, size);
}

TEST_EACH(bad_name, bad_names, "a name %s is refused by ALLOC")
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .out_fd = -7 };

	set_name(a.name, row - bad_names);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), row->err, row->says);
	CHECK(a.out_fd == -7, "out_fd was written on failure");
}

static void good_name(const char *name)
{
	struct rashpa_info info;
	struct stat st;
	char path[128];
	int fd;

	fd = buffer_alloc(PAGE, name);
	snprintf(path, sizeof(path), "/dev/rashpa/buffer/%s", name);
	CHECK(!stat(path, &st) && S_ISCHR(st.st_mode), "%s is not a device node", path);
	CHECK((st.st_mode & 0777) == 0660, "mode of %s is %o", path, st.st_mode & 0777);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(!strcmp(info.out_name, name), "INFO says \"%s\"", info.out_name);
	buffer_end(fd, name);
	CHECK(stat(path, &st) && errno == ENOENT, "%s is still there", path);
}

TEST(good_names, "good names get a node, which goes with REMOVE")
{
	good_name("a");
	good_name("A-b_c.0");
	good_name("memory");
	good_name("fpga0");
	good_name("-");
	good_name("0123456789012345678901234567890123456789012345678901234567890AZ");
}

TEST(name_taken, "a name that is taken is refused")
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .name = "st-taken" };
	int fd = buffer_alloc(PAGE, "st-taken");

	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EEXIST, "st-taken|remove");
	close(fd);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EEXIST, "st-taken|remove");
	ANSWERED(buffer_remove("st-taken"), 0, NULL);
}

TEST(remove_twice, "a buffer cannot be removed twice")
{
	struct rashpa_remove r = { HEAD(r) };
	int node, other;

	close(buffer_alloc(PAGE, "st-twice"));
	node = buffer_node("st-twice", O_ACCMODE);
	other = buffer_node("st-twice", O_RDWR);
	ANSWERED(call(other, RASHPA_IOC_REMOVE, &r), 0, NULL);
	CHECK(buffer_node("st-twice", O_RDWR) < 0 && errno == ENOENT, "the node is there");
	ANSWERED(call(node, RASHPA_IOC_REMOVE, &r), ENOENT, "st-twice|removed");
	ANSWERED(call(other, RASHPA_IOC_REMOVE, &r), ENOENT, "st-twice|removed");
	/* nor does it take the next one of that name */
	close(buffer_alloc(PAGE, "st-twice"));
	ANSWERED(call(node, RASHPA_IOC_REMOVE, &r), ENOENT, "st-twice");
	close(node);
	buffer_end(other, "st-twice");
}

TEST(remove_mapped, "a buffer that a process maps is not removed")
{
	int fd = buffer_alloc(4 * PAGE, "st-mapped");
	void *p = map_fd(fd, 4 * PAGE);

	close(fd);
	ANSWERED(buffer_remove("st-mapped"), EBUSY, "st-mapped|1 process");
	*(volatile char *)p = 1;
	munmap(p, PAGE);	/* a part of it: still one mapping */
	ANSWERED(buffer_remove("st-mapped"), EBUSY, "st-mapped");
	munmap((char *)p + PAGE, 3 * PAGE);
	ANSWERED(buffer_remove("st-mapped"), 0, NULL);
}

TEST(remove_open, "open files of a removed buffer stay valid")
{
	int fd = buffer_alloc(4 * PAGE, "st-open");
	int node = buffer_node("st-open", O_RDWR);
	u64 held = bytes_allocated();
	struct rashpa_info info = { HEAD(info), .fd = -1 };
	void *p;

	REQUIRE(node >= 0, "open: %s", strerror(errno));
	ANSWERED(buffer_remove("st-open"), 0, NULL);
	CHECK(bytes_allocated() == held, "memory was given back under an open fd");
	p = map_fd(node, 4 * PAGE);
	fill(p, 4 * PAGE, 1);
	munmap(p, 4 * PAGE);
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), 0, NULL);
	p = map_fd(fd, 4 * PAGE);
	CHECK(filled(p, 4 * PAGE, 1), "the content is lost");
	munmap(p, 4 * PAGE);
	close(node);
	CHECK(bytes_allocated() == held, "memory was given back under an open fd");
	close(fd);
}

TEST(name_again, "a name used again is other memory")
{
	int old = buffer_alloc(PAGE, "st-again");
	int fd, node;
	void *p, *q;

	ANSWERED(buffer_remove("st-again"), 0, NULL);
	fd = buffer_alloc(PAGE, "st-again");
	node = buffer_node("st-again", O_RDWR);
	REQUIRE(node >= 0, "open: %s", strerror(errno));
	p = map_fd(old, PAGE);
	q = map_fd(node, PAGE);
	fill(p, PAGE, 2);
	CHECK(all_zero(q, PAGE), "the new buffer of that name is the old memory");
	unmap_fd(p, PAGE, old);
	munmap(q, PAGE);
	close(fd);
	buffer_end(node, "st-again");
}

#define THREADS 8

static pthread_barrier_t start_line;

static void *alloc_one(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = 4 * MIB, .name = "st-race" };
	int *result = arg;

	pthread_barrier_wait(&start_line);
	*result = ioctl(memory, RASHPA_IOC_ALLOC, &a) ? -errno : a.out_fd;
	return NULL;
}

TEST(name_race, "one of many threads gets a name that all want at once")
{
	pthread_t thread[THREADS];
	int result[THREADS];
	int i, round, won;

	for (round = 0; round < 5; round++) {
		pthread_barrier_init(&start_line, NULL, THREADS);
		for (i = 0; i < THREADS; i++)
			pthread_create(&thread[i], NULL, alloc_one, &result[i]);
		for (i = 0, won = 0; i < THREADS; i++) {
			pthread_join(thread[i], NULL);
			if (result[i] >= 0) {
				won++;
				close(result[i]);
			} else {
				CHECK(result[i] == -EEXIST, "answer %d", -result[i]);
			}
		}
		CHECK(won == 1, "%d of %d have made the buffer", won, THREADS);
		ANSWERED(buffer_remove("st-race"), 0, NULL);
		pthread_barrier_destroy(&start_line);
	}
}

/* ------------------------------------------------------------- ALLOC ---- */

static const struct {
	const char *key;
	u64 length, alignment;
	uint32_t flags, node, backend, cache;
	int err;
	const char *says;
} bad_allocs[] = {
	{ "of-length-0", 0, 0, 0, 0, 0, 0, EINVAL, "length|zero" },
	{ "of-ullong_max-bytes", ULLONG_MAX, 0, 0, 0, 0, 0, EINVAL, "length|0xffffffffffffffff" },
	{ "of-2to64-4096-bytes", -PAGE, 0, 0, 0, 0, 0, EINVAL, "length" },
	{ "of-llong_max-bytes", LLONG_MAX, 0, 0, 0, 0, 0, EINVAL, "length" },
	{ "of-2to63-bytes", 1ULL << 63, 0, 0, 0, 0, 0, EINVAL, "length" },
	{ "of-2to62-bytes", 1ULL << 62, 0, 0, 0, 0, 0, ENOMEM, "MiB|machine" },
	{ "of-16-tib", 16384 * GIB, 0, 0, 0, 0, 0, ENOMEM, "MiB|machine" },
	{ "of-2to44-1-pages", (1ULL << 56) + PAGE, 0, 0, 0, 0, 0, ENOMEM, "MiB|machine" },
	{ "aligned-to-3", PAGE, 3, 0, 0, 0, 0, EINVAL, "alignment|0x3" },
	{ "aligned-to-4097", PAGE, 4097, 0, 0, 0, 0, EINVAL, "alignment|0x1001" },
	{ "aligned-to-3-mib", PAGE, 3 * MIB, 0, 0, 0, 0, EINVAL, "alignment" },
	{ "aligned-to-2-gib", PAGE, 2 * GIB, 0, 0, 0, 0, EINVAL, "alignment|1 GiB" },
	{ "aligned-to-2to63", PAGE, 1ULL << 63, 0, 0, 0, 0, EINVAL, "alignment" },
	{ "aligned-to-ullong_max", PAGE, ULLONG_MAX, 0, 0, 0, 0, EINVAL, "alignment" },
	{ "on-node-4095", PAGE, 0, RASHPA_ALLOC_NODE, 4095, 0, 0, EINVAL, "node 4095" },
	{ "on-node-63", PAGE, 0, RASHPA_ALLOC_NODE, 63, 0, 0, EINVAL, "node 63" },
	{ "on-node-uint_max", PAGE, 0, RASHPA_ALLOC_NODE, UINT_MAX, 0, 0, EINVAL, "node" },
	{ "on-node-int_min", PAGE, 0, RASHPA_ALLOC_NODE, 0x80000000, 0, 0, EINVAL, "node" },
	{ "on-a-node-without-the-flag", PAGE, 0, 0, 1, 0, 0, EINVAL, "node|flag" },
	{ "with-an-undefined-flag", PAGE, 0, 1U << 31, 0, 0, 0, EINVAL, "flag|0x80000000" },
	{ "from-backend-4", PAGE, 0, 0, 0, 4, 0, EINVAL, "backend 4" },
	{ "from-backend-uint_max", PAGE, 0, 0, 0, UINT_MAX, 0, EINVAL, "backend" },
	{ "with-cache-mode-4", PAGE, 0, 0, 0, 0, 4, EINVAL, "cache mode 4" },
	{ "with-cache-mode-uint_max", PAGE, 0, 0, 0, 0, UINT_MAX, EINVAL, "cache" },
};

TEST_EACH(bad_alloc, bad_allocs, "a buffer %s is refused")
{
	struct rashpa_alloc a = {
		HEAD(a), .length = row->length, .alignment = row->alignment, .node = row->node,
		.backend = row->backend, .cache = row->cache, .name = "st-bad", .out_fd = -7,
	};

	a.head.flags = row->flags;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), row->err, row->says);
	CHECK(a.out_fd == -7, "out_fd was written on failure");
	ANSWERED(buffer_remove("st-bad"), ENOENT, NULL);
}

TEST(too_large, "a buffer larger than memory is refused, with the size that would fit")
{
	struct rashpa_alloc a = { HEAD(a), .length = 2 * ram_bytes() };

	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ENOMEM, "MiB|the machine has");
	/* less than there is, but not in one piece: a search of all memory */
	a.length = ram_bytes() / 100 * 98;
	if (tap_times(0, 1))
		ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ENOMEM, "MiB|largest run|allocate");
}

TEST(memfd, "a memfd is for huge pages only")
{
	struct rashpa_alloc a = { HEAD(a), .length = PAGE, .memfd = -1 };

	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "memfd");
}

TEST(cma, "CMA serves, or the reason says that it is missing")
{
	struct rashpa_alloc a = { HEAD(a), .length = 4 * MIB,
				  .backend = RASHPA_BACKEND_CMA };
	struct rashpa_query q = { HEAD(q), .backend = RASHPA_BACKEND_CMA };
	void *p;

	if (!cma_here()) {
		ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EOPNOTSUPP, "CMA|cma=");
		ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), EOPNOTSUPP, "CMA|cma=");
		return;
	}
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	CHECK(q.out_backend == RASHPA_BACKEND_CMA, "backend %u", q.out_backend);
	CHECK(q.out_total && q.out_free <= q.out_total && !q.out_largest,
	      "total %llu, free %llu, largest %llu", q.out_total, q.out_free, q.out_largest);
	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	CHECK(a.out_backend == RASHPA_BACKEND_CMA, "backend %u", a.out_backend);
	CHECK(a.out_segments == 1, "%u segments", a.out_segments);
	p = map_fd(a.out_fd, a.length);
	CHECK(all_zero(p, a.length), "the memory is not zero");
	unmap_fd(p, a.length, a.out_fd);
	a.length = 2 * q.out_total;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ENOMEM, "MiB");
}

static const struct { const char *key; u64 length, alignment; } pieces[] = {
	{ "1-byte", 1, 0 }, { "a-page", PAGE, 1 }, { "a-page-and-1-byte", PAGE + 1, 0 },
	{ "100-kib-aligned-to-64-kib", 100 * KIB, 64 * KIB },
	{ "a-page-aligned-to-1-mib", PAGE, MIB },
	{ "2-mib", 2 * MIB, 0 }, { "2-mib-and-1-byte", 2 * MIB + 1, 0 },
	{ "5-mib-aligned-to-4-mib", 5 * MIB, 4 * MIB },
	{ "a-page-aligned-to-16-mib", PAGE, 16 * MIB }, { "64-mib", 64 * MIB, 0 },
	{ "64-mib-aligned-to-64-mib", 64 * MIB, 64 * MIB },
};

TEST_EACH(contiguous, pieces, "%s: one zeroed piece")
{
	const u64 length = row->length, alignment = row->alignment;
	struct rashpa_alloc a = { HEAD(a), .length = length, .alignment = alignment,
				  .backend = RASHPA_BACKEND_CONTIG };
	u64 whole = (length + PAGE - 1) & -PAGE, first, i;
	void *p;

	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	CHECK(a.out_length == whole, "length %llu", a.out_length);
	CHECK(a.out_segments == 1, "%u segments", a.out_segments);
	CHECK(a.out_backend == RASHPA_BACKEND_CONTIG, "backend %u", a.out_backend);
	CHECK(fcntl(a.out_fd, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
	CHECK(lseek(a.out_fd, 0, SEEK_END) == (off_t)whole, "length by lseek");
	p = map_fd(a.out_fd, whole);
	CHECK(all_zero(p, whole), "the memory is not zero");
	memset(p, 0xa5, whole);
	first = pfn_of(p);
	CHECK(first, "no frame number");
	CHECK(!alignment || !(first * PAGE & (alignment - 1)), "at 0x%llx", first * PAGE);
	for (i = 1; i < whole / PAGE; i += i < 512 ? 1 : 509)
		if (!CHECK(pfn_of((char *)p + i * PAGE) == first + i, "page %llu is elsewhere", i))
			break;
	unmap_fd(p, whole, a.out_fd);
}

#if defined(__x86_64__) || defined(__i386__)
#define IS_X86 true
#else
#define IS_X86 false
#endif

static const struct { const char *key; u64 length; uint32_t bits; } reaches[] = {
	{ "a-page-in-29-bits", PAGE, 29 }, { "16-mib-in-29-bits", 16 * MIB, 29 },
};

TEST_EACH(dma_bits, reaches, "%s: all of the buffer is there")
{
	struct rashpa_alloc a = { HEAD(a), .length = row->length, .dma_bits = row->bits };
	char *p;

	SKIP_IF(!IS_X86, "memory may begin above 512 MiB on this architecture");
	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	p = map_fd(a.out_fd, a.out_length);
	memset(p, 0xa5, a.out_length);
	CHECK(pfn_of(p + a.out_length - PAGE) * PAGE < 1ULL << row->bits,
	      "it ends at 0x%llx", pfn_of(p + a.out_length - PAGE) * PAGE);
	unmap_fd(p, a.out_length, a.out_fd);
}

TEST(no_dma_bits, "a number of bits that no memory has is refused")
{
	struct rashpa_alloc a = { HEAD(a), .length = 32 * MIB, .dma_bits = 24, .out_fd = -7 };

	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ENOMEM, "below 16 MiB");
	a.dma_bits = 23;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "dma_bits 23");
	a.dma_bits = 65;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EINVAL, "dma_bits 65");
	CHECK(a.out_fd == -7, "out_fd was written on failure");
}

TEST(zeroed, "a new buffer has no data of an earlier one")
{
	int i, fd;
	void *p;

	for (i = 0; i < 3; i++) {
		fd = buffer_alloc(64 * MIB, NULL);
		p = map_fd(fd, 64 * MIB);
		close(fd);
		CHECK(all_zero(p, 64 * MIB), "old data are in it (round %d)", i);
		memset(p, 0x5a, 64 * MIB);
		munmap(p, 64 * MIB);
	}
}

TEST(auto_backend, "AUTO takes CMA only where it is")
{
	struct rashpa_alloc a = { HEAD(a), .length = MIB };

	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	CHECK(a.out_backend == (cma_here() ? RASHPA_BACKEND_CMA : RASHPA_BACKEND_CONTIG),
	      "backend %u", a.out_backend);
	close(a.out_fd);
}

static void on_node(unsigned int node, uint32_t backend, u64 length)
{
	struct rashpa_alloc a = { HEAD(a), .length = length, .node = node,
				  .backend = backend };
	struct rashpa_query q = { HEAD(q), .node = node, .backend = backend };
	struct rashpa_info info;

	a.head.flags = RASHPA_ALLOC_NODE;
	q.head.flags = RASHPA_QUERY_NODE;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	if (backend == RASHPA_BACKEND_CMA && q.out_free < 2 * length) {
		tap_note("node %u has %llu MiB of CMA", node, q.out_free / MIB);
		a.length = q.out_total + 4 * MIB;
		ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ENOMEM, "on node|cma=");
		return;
	}
	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	CHECK(a.out_node == (int)node, "node %d instead of %u", a.out_node, node);
	CHECK(a.out_backend == backend, "backend %u", a.out_backend);
	if (!buffer_info(a.out_fd, &info))
		CHECK(info.out_node == (int)node, "INFO: node %d", info.out_node);
	close(a.out_fd);
}

TEST(node, "memory comes from the node that was asked for")
{
	char path[64], text[16];
	unsigned int node;

	/* a machine without NUMA has node 0; the guest "numa" has two */
	for (node = 0; node < 4; node++) {
		snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/distance", node);
		if (node && !read_text(path, text, sizeof(text)))
			continue;
		on_node(node, RASHPA_BACKEND_CONTIG, PAGE);
		on_node(node, RASHPA_BACKEND_CONTIG, 8 * MIB);
		if (cma_here())
			on_node(node, RASHPA_BACKEND_CMA, 8 * MIB);
	}
}

TEST(limit, "the limit of the administrator holds")
{
	struct rashpa_alloc a = { HEAD(a), .length = 16 * MIB, .name = "st-limit" };
	struct rashpa_limit q = { HEAD(q), .resource = RASHPA_RESOURCE_MEMORY };
	u64 used = bytes_allocated() / MIB;
	int fd;

	param_set("limit_mib", used + 12);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EDQUOT, "16 MiB|limit_mib");
	ANSWERED(buffer_remove("st-limit"), ENOENT, NULL);
	ANSWERED(call(memory, RASHPA_IOC_LIMIT, &q), 0, NULL);
	CHECK(q.out_limit == (used + 12) * MIB, "limit %llu", q.out_limit);
	fd = buffer_alloc(8 * MIB, NULL);
	CHECK(bytes_allocated() >= used * MIB + 8 * MIB, "the buffer is not counted");
	a.length = 8 * MIB;
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EDQUOT, "limit_mib");
	close(fd);
	fd = buffer_alloc(8 * MIB, NULL);
	close(fd);
	param_set("limit_mib", 0);
	ANSWERED(call(memory, RASHPA_IOC_LIMIT, &q), 0, NULL);
	CHECK(q.out_limit == 0, "limit %llu", q.out_limit);
}

static void second_user(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = 8 * MIB };
	struct rashpa_limit q = { HEAD(q), .resource = RASHPA_RESOURCE_MEMORY };
	int fd;

	drop_privileges();
	fd = buffer_alloc(8 * MIB, NULL);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EDQUOT, "one user|user_limit_mib");
	ANSWERED(call(memory, RASHPA_IOC_LIMIT, &q), 0, NULL);
	CHECK(q.out_user_used == 8 * MIB && q.out_user_limit == 12 * MIB, "%llu of %llu",
	      q.out_user_used, q.out_user_limit);
	close(fd);
	/* memory that was given back can be allocated again */
	fd = buffer_alloc(8 * MIB, NULL);
	close(fd);
}

TEST(user_limit, "the limit of one user holds, and root's does not count")
{
	int fd;

	param_set("user_limit_mib", 12);
	/* not for root, and what root has does not count for others */
	fd = buffer_alloc(16 * MIB, NULL);
	tap_fork(second_user, NULL);
	close(fd);
}

struct ids {
	bool own;		/* the namespace is the user's own, not root's */
	int ready[2], go[2];
};

/* Two ids of one namespace: two users, or both the user that made it. */
static void two_ids(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = 8 * MIB };
	const struct ids *ids = arg;
	char c;

	if (ids->own)
		drop_privileges();
	CHECK(!unshare(CLONE_NEWUSER), "unshare: %s", strerror(errno));
	CHECK(write(ids->ready[1], "", 1) == 1 && read(ids->go[0], &c, 1) == 1, "no ids");
	CHECK(!setresuid(0, 0, 0), "the first id: %s", strerror(errno));
	buffer_alloc(8 * MIB, NULL);
	CHECK(!setresuid(1, 1, 1), "the second id: %s", strerror(errno));
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), ids->own ? EDQUOT : 0,
		 ids->own ? "8 of 12 for one user|user_limit_mib" : NULL);
}

static void user_namespace(bool own)
{
	struct ids ids = { .own = own };
	char path[32], c;
	pid_t pid;

	REQUIRE(!pipe(ids.ready) && !pipe(ids.go), "pipe");
	pid = tap_fork_start(two_ids, &ids);
	CHECK(read(ids.ready[0], &c, 1) == 1, "the child did not begin");
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	CHECK(!write_text(path, "0 65534 1\n1 1000 1"), "map of ids");
	CHECK(write(ids.go[1], "", 1) == 1, "write");
	tap_fork_end(pid);
	close(ids.ready[0]);
	close(ids.ready[1]);
	close(ids.go[0]);
	close(ids.go[1]);
}

TEST(user_namespace, "the limit of one user holds for the namespaces of that user")
{
	SKIP_IF(access("/proc/self/ns/user", F_OK), "no user namespaces in this kernel");
	param_set("user_limit_mib", 12);
	user_namespace(true);
	user_namespace(false);
}

static void cache_mode(uint32_t cache, uint32_t backend, u64 length)
{
	struct rashpa_alloc a = { HEAD(a), .length = length, .cache = cache,
				  .backend = backend };
	struct rashpa_info info;
	char *p;

	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	if (!buffer_info(a.out_fd, &info))
		CHECK(info.out_cache == cache, "cache mode %u", info.out_cache);
	p = map_fd(a.out_fd, length);
	CHECK(all_zero(p, length), "the memory is not zero");
	fill(p, length, cache);
	CHECK(filled(p, length, cache), "the written data are lost");
	unmap_fd(p, length, a.out_fd);
	/* given back, the same memory is cached again for others */
	a.cache = RASHPA_CACHE_CACHED;
	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	p = map_fd(a.out_fd, length);
	CHECK(all_zero(p, length), "memory of others is seen");
	unmap_fd(p, length, a.out_fd);
}

TEST(cache_modes, "write-combined and uncached buffers, cached again when given back")
{
	SKIP_IF(!IS_X86, "buffers are cached only on this architecture");
	cache_mode(RASHPA_CACHE_WC, RASHPA_BACKEND_CONTIG, PAGE);
	cache_mode(RASHPA_CACHE_UC, RASHPA_BACKEND_CONTIG, PAGE);
	cache_mode(RASHPA_CACHE_WC, RASHPA_BACKEND_CONTIG, 6 * MIB);
	cache_mode(RASHPA_CACHE_UC, RASHPA_BACKEND_CONTIG, 6 * MIB);
	/* more than the driver changes at once */
	cache_mode(RASHPA_CACHE_WC, RASHPA_BACKEND_CONTIG, 130 * MIB);
	cache_mode(RASHPA_CACHE_UC, RASHPA_BACKEND_CONTIG, 130 * MIB);
	if (!cma_here())
		return;
	cache_mode(RASHPA_CACHE_WC, RASHPA_BACKEND_CMA, 4 * MIB);
	cache_mode(RASHPA_CACHE_UC, RASHPA_BACKEND_CMA, 4 * MIB);
}

static void on_signal(int sig)
{
}

static void interrupted(void *arg)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int round, err, interrupts = 0;

	sigaction(SIGUSR1, &sa, NULL);
	for (round = 0; round < 12; round++) {
		struct rashpa_alloc a = { HEAD(a), .length = 256 * MIB,
					  .backend = RASHPA_BACKEND_CONTIG };
		struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL,
				       .sigev_signo = SIGUSR1 };
		struct itimerspec when = {
			.it_value.tv_nsec = 200000 << (round % 12),
		};
		timer_t timer;

		timer_create(CLOCK_MONOTONIC, &ev, &timer);
		timer_settime(timer, 0, &when, NULL);
		err = call(memory, RASHPA_IOC_ALLOC, &a);
		timer_delete(timer);
		if (!err) {
			close(a.out_fd);
			continue;
		}
		ANSWERED(err, EINTR, "signal");
		interrupts++;
	}
	CHECK(interrupts, "no allocation was interrupted");
}

TEST(interrupted, "an allocation can be interrupted")
{
	tap_fork(interrupted, NULL);
}

static void no_fds(void *arg)
{
	struct rashpa_alloc a = { HEAD(a), .length = 4 * MIB, .name = "st-nofd" };
	struct rlimit limit = { .rlim_cur = 3, .rlim_max = 3 }, all;
	u64 before = bytes_allocated();

	getrlimit(RLIMIT_NOFILE, &all);
	limit.rlim_max = all.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), EMFILE, "RLIMIT_NOFILE");
	CHECK(bytes_allocated() == before, "memory has leaked");
	setrlimit(RLIMIT_NOFILE, &all);
	ANSWERED(buffer_remove("st-nofd"), ENOENT, NULL);
}

TEST(no_fds, "without a free file descriptor nothing is allocated")
{
	tap_fork(no_fds, NULL);
}

/* ------------------------------------------------------ survival -------- */

static void make_named(void *arg)
{
	int fd = buffer_alloc(8 * MIB, "st-survivor");
	void *p = map_fd(fd, 8 * MIB);

	fill(p, 8 * MIB, 42);
	if (arg)
		tap_fork_hold();
}

static void survivor_is_there(void)
{
	int node = buffer_node("st-survivor", O_RDWR);
	void *p;

	if (CHECK(node >= 0, "open: %s", strerror(errno))) {
		p = map_fd(node, 8 * MIB);
		CHECK(filled(p, 8 * MIB, 42), "the content is lost");
		unmap_fd(p, 8 * MIB, node);
	}
	ANSWERED(buffer_remove("st-survivor"), 0, NULL);
}

TEST(survives_exit, "a named buffer survives the exit of its maker")
{
	tap_fork(make_named, NULL);
	survivor_is_there();
}

TEST(survives_kill, "a named buffer survives the death of its maker")
{
	tap_fork_kill(tap_fork_held(make_named, "held"));
	survivor_is_there();
}

static void anonymous_child(void *arg)
{
	int fd = buffer_alloc(8 * MIB, NULL);

	map_fd(fd, 8 * MIB);
	tap_fork_hold();
}

TEST(anonymous_dies, "an anonymous buffer goes with its killed maker")
{
	u64 before = bytes_allocated();
	pid_t pid = tap_fork_held(anonymous_child, NULL);

	CHECK(bytes_allocated() == before + 8 * MIB, "it is not counted");
	tap_fork_kill(pid);
	CHECK(bytes_allocated() == before, "the memory did not come back");
}

static void as_nobody(void *arg)
{
	drop_privileges();
	CHECK(open("/dev/rashpa/memory", O_RDWR) < 0 && errno == EACCES,
	      "a user can open /dev/rashpa/memory");
	CHECK(buffer_node("st-mine", O_RDONLY) < 0 && errno == EACCES, "a user can open a buffer");
	/* a process that was given the fd may use it */
	buffer_alloc(PAGE, NULL);
}

TEST(unprivileged, "a user outside the group opens nothing")
{
	int fd = buffer_alloc(PAGE, "st-mine");

	tap_fork(as_nobody, NULL);
	buffer_end(fd, "st-mine");
}

/* ------------------------------------------------- QUERY, INFO, nodes --- */

TEST(query, "QUERY answers the size that would fit")
{
	struct rashpa_query q = { HEAD(q), .backend = RASHPA_BACKEND_CONTIG };

	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	CHECK(q.out_backend == RASHPA_BACKEND_CONTIG, "backend %u", q.out_backend);
	CHECK(q.out_total && q.out_total <= 2 * ram_bytes(), "total %llu", q.out_total);
	CHECK(q.out_free && q.out_free <= q.out_total, "free %llu", q.out_free);
	CHECK(q.out_largest >= 64 * MIB && q.out_largest <= q.out_total, "largest %llu",
	      q.out_largest);
	q.head.flags = RASHPA_QUERY_NODE;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), 0, NULL);
	q.node = 63;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), EINVAL, "node 63");
	q.node = UINT_MAX;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), EINVAL, "node");
	q.head.flags = 0;
	q.node = 1;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), EINVAL, "node|flag");
	q.node = 0;
	q.backend = 3;
	ANSWERED(call(memory, RASHPA_IOC_QUERY, &q), EINVAL, "backend 3");
}

TEST(allocated, "QUERY counts the memory of buffers")
{
	u64 before = bytes_allocated();
	int fd = buffer_alloc(6 * MIB, NULL);

	CHECK(bytes_allocated() == before + 6 * MIB, "%llu more", (bytes_allocated() - before));
	close(fd);
	CHECK(bytes_allocated() == before, "it did not come back");
}

TEST(info, "INFO describes a buffer")
{
	struct rashpa_info info;
	int fd = buffer_alloc(3 * PAGE, "st-info");
	void *p;

	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_BUFFER, "kind %u", info.out_kind);
	CHECK(info.out_length == 3 * PAGE, "length %llu", info.out_length);
	CHECK(info.out_backend == RASHPA_BACKEND_CONTIG, "backend %u", info.out_backend);
	CHECK(info.out_cache == RASHPA_CACHE_CACHED, "cache %u", info.out_cache);
	CHECK(info.out_segments == 1, "%u segments", info.out_segments);
	CHECK(info.out_node == 0, "node %d", info.out_node);
	CHECK(!info.out_mappings && !info.out_importers, "%u mappings, %u importers",
	      info.out_mappings, info.out_importers);
	CHECK(!strcmp(info.out_name, "st-info"), "name \"%s\"", info.out_name);
	p = map_fd(fd, PAGE);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_mappings == 1, "%u mappings", info.out_mappings);
	munmap(p, PAGE);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(!info.out_mappings, "%u mappings", info.out_mappings);
	buffer_end(fd, "st-info");
}

TEST(info_foreign, "INFO knows memory of another driver")
{
	struct rashpa_info info;
	int fd = foreign_dmabuf(64 * KIB);

	SKIP_IF(fd < 0, "no udmabuf here");
	memset(&info, 0xff, sizeof(info));
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_FOREIGN, "kind %u", info.out_kind);
	CHECK(info.out_length == 64 * KIB, "length %llu", info.out_length);
	CHECK(!info.out_backend && !info.out_cache && !info.out_segments &&
	      info.out_node == -1 && !info.out_name[0], "it knows too much");
	close(fd);
}

TEST(node_calls, "a buffer's node answers INFO and DMABUF")
{
	struct rashpa_info info = { HEAD(info), .fd = -1 };
	struct rashpa_export get = { HEAD(get) };
	int fd = buffer_alloc(3 * PAGE, "st-node");
	int node = buffer_node("st-node", O_RDWR);
	void *p, *q;

	REQUIRE(node >= 0, "open: %s", strerror(errno));
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), 0, NULL);
	CHECK(!strcmp(info.out_name, "st-node") && info.out_length == 3 * PAGE,
	      "name \"%s\"", info.out_name);
	info.fd = 0;
	ANSWERED(call(node, RASHPA_IOC_INFO, &info), EINVAL, "-1");
	CHECK(lseek(node, 0, SEEK_END) == 3 * (off_t)PAGE, "length by lseek");
	CHECK(lseek(node, 3 * PAGE + 1, SEEK_SET) < 0, "lseek beyond the end");
	if (ANSWERED(call(node, RASHPA_IOC_EXPORT, &get), 0, NULL)) {
		CHECK(fcntl(get.out_fd, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
		CHECK((fcntl(get.out_fd, F_GETFL) & O_ACCMODE) == O_RDWR, "access");
		p = map_fd(fd, PAGE);
		q = map_fd(get.out_fd, PAGE);
		fill(p, PAGE, 3);
		CHECK(filled(q, PAGE, 3), "it is not the same memory");
		munmap(p, PAGE);
		unmap_fd(q, PAGE, get.out_fd);
	}
	close(node);
	buffer_end(fd, "st-node");
}

TEST(sync, "the CPU access of the dma-buf can be bracketed")
{
	struct dma_buf_sync sync = { DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW };
	int fd = buffer_alloc(PAGE, NULL);

	CHECK(!ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync), "start: %s", strerror(errno));
	sync.flags = DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW;
	CHECK(!ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync), "end: %s", strerror(errno));
	close(fd);
}

TEST(many, "many names exist side by side")
{
	char name[RASHPA_NAME_SIZE];
	int i;

	for (i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "st-many-%d", i);
		close(buffer_alloc(PAGE, name));
	}
	while (i--) {
		snprintf(name, sizeof(name), "st-many-%d", i);
		ANSWERED(buffer_remove(name), 0, NULL);
	}
}
