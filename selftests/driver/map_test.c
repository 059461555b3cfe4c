// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=each,debug iommu=both seconds=8 */
/* test: tier=nightly kernel=rt iommu=on smp=2 seconds=15 */
/* test: tier=nightly needs=passthrough,amd,virtio iommu=on seconds=15 */
/* test: tier=nightly kernel=arm64 needs=virtio iommu=on seconds=15 */
/* Maps: segments, table, programming the function, refusals. */
#include <rashpa-fpga.h>
#include "common.h"

static struct fpga f, f2;
static bool have_f2, iommu;
static void *regs;	/* BAR 0 */

static void regs_open(void)
{
	regs = fpga_regs(&f);
}

static void regs_close(void)
{
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

/* Without a window, which would keep the profile. */
#define TEST_IDLE(name, text)			\
	static void idle_##name(void);		\
	TEST(name, text)			\
	{					\
		regs_close();			\
		idle_##name();			\
		regs_open();			\
	}					\
	static void idle_##name(void)

static int make(struct rashpa_map_make *map)
{
	return call(f.fd, RASHPA_IOC_MAP_MAKE, map);
}

/* The test ends where it fails. */
static void made(struct rashpa_map_make *map)
{
	if (make(map))
		tap_bail("MAP: %s", reason);
}

static u64 entry_address(uint32_t i)
{
	return reg64(regs, RFPGA_TABLE + i * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_ADDR);
}

static u64 entry_length(uint32_t i)
{
	return reg64(regs, RFPGA_TABLE + i * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_LEN);
}

static uint32_t entry_control(uint32_t i)
{
	return reg32(regs, RFPGA_TABLE + i * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_CONTROL);
}

static u64 entry_sum(uint32_t i)
{
	return reg64(regs, RFPGA_TABLE + i * RFPGA_ENTRY_STRIDE + RFPGA_ENTRY_SUM);
}

static bool entry_is_clear(uint32_t i)
{
	return !entry_address(i) && !entry_length(i) && !entry_control(i) && !entry_sum(i);
}

/* ---------------------------------------------------------- segments ---- */

struct want {
	const char *key;
	u64 length, alloc_align;		/* buffer */
	u64 offset, part;			/* map */
	u64 max_segment, boundary, alignment;
	uint32_t segments;			/* exactly; 0: any number */
};

static const struct want wants[] = {
	{ "64-mib-are-one-segment", 64 * MIB, 0, 0, 0, 0, 0, 0, 1 },
	{ "64-mib-in-segments-of-2-mib-are-32",
	  64 * MIB, 2 * MIB, 0, 0, 2 * MIB, 0, 2 * MIB, 32 },
	{ "one-page-is-one-segment", PAGE, 0, 0, 0, 0, 0, 0, 1 },
	{ "one-page-in-the-middle", MIB, 0, 100 * PAGE, PAGE, 0, 0, 0, 1 },
	{ "from-an-offset-to-the-end", MIB, 0, 100 * PAGE, 0, 0, 0, 0, 1 },
	{ "the-last-page", MIB, 0, MIB - PAGE, PAGE, 0, 0, 0, 1 },
	{ "segments-of-12-kib", 64 * KIB, 64 * KIB, 0, 0, 3 * PAGE, 0, 0, 6 },
	{ "a-boundary-of-16-kib", 64 * KIB, 64 * KIB, 0, 0, 0, 16 * KIB, 0, 4 },
	{ "a-boundary-of-16-kib-from-an-odd-page-on",
	  64 * KIB, 64 * KIB, PAGE, 8 * PAGE, 0, 16 * KIB, 0, 3 },
	{ "a-boundary-and-a-longest-segment",
	  64 * KIB, 64 * KIB, 0, 0, 3 * PAGE, 16 * KIB, 0, 8 },
	{ "a-boundary-larger-than-the-memory",
	  64 * KIB, 64 * KIB, 0, 0, 0, 1ULL << 62, 0, 1 },
	{ "a-longest-segment-larger-than-the-memory",
	  64 * KIB, 0, 0, 0, 1ULL << 40, 0, 0, 1 },
	{ "an-alignment-of-64-kib", 64 * KIB, 64 * KIB, 0, 0, 0, 0, 64 * KIB, 1 },
	{ "an-alignment-of-1", 64 * KIB, 0, 0, 0, 0, 0, 1, 1 },
};

TEST_EACH(segments, wants, "%s")
{
	const struct want *w = row;
	struct rashpa_alloc a = { HEAD(a), .length = w->length,
				  .alignment = w->alloc_align,
				  .backend = RASHPA_BACKEND_CONTIG };
	u64 part = w->part ? w->part : w->length - w->offset, sum = 0, frame = 0;
	const struct rashpa_table *t;
	struct rashpa_map_make map;
	uint32_t i;
	char *p;

	if (!ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL))
		return;
	map = default_map(a.out_fd);
	map.offset = w->offset;
	map.length = w->part;
	map.max_segment = w->max_segment;
	map.boundary = w->boundary;
	map.alignment = w->alignment;
	p = map_fd(a.out_fd, w->length);
	p[w->offset] = 1;
	frame = pfn_of(p + w->offset);
	made(&map);
	CHECK(fcntl(map.out_fd, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
	CHECK(map.out_class == (iommu ? RASHPA_CLASS_IOVA : RASHPA_CLASS_HOST),
	      "class %u", map.out_class);
	CHECK(!w->segments || map.out_segments == w->segments, "%u segments", map.out_segments);
	CHECK(map.out_table_size >= sizeof(*t) + map.out_segments * sizeof(t->segment[0]),
	      "table of %llu bytes", map.out_table_size);
	t = table_of(&map);
	CHECK(t->state == RASHPA_MAP_STATE_VALID && t->count == map.out_segments &&
	      t->map_class == map.out_class && t->generation == map.out_generation &&
	      !(t->generation & 1), "the table's header differs");
	for (i = 0; i < t->count; i++) {
		u64 address = t->segment[i].address;
		u64 length = t->segment[i].length;

		if (!CHECK(length && !(length % PAGE), "segment %u: %llu bytes", i, length))
			break;
		CHECK(!w->max_segment || length <= w->max_segment,
		      "segment %u is too long", i);
		CHECK(!w->boundary || address / w->boundary ==
		      (address + length - 1) / w->boundary,
		      "segment %u crosses the boundary", i);
		CHECK(!w->alignment || !(address % w->alignment),
		      "segment %u at 0x%llx is not aligned", i, address);
		if (map.out_class == RASHPA_CLASS_HOST)
			CHECK(address == frame * PAGE + sum,
			      "segment %u at 0x%llx, the memory is at 0x%llx", i, address,
			      (frame * PAGE + sum));
		sum += length;
	}
	CHECK(sum == part, "%llu bytes in all", sum);
	unmap_fd((void *)t, map.out_table_size, map.out_fd);
	unmap_fd(p, w->length, a.out_fd);
}

TEST_IDLE(profile_limits, "the profile's limits can be made narrower, not wider")
{
	struct rashpa_profile_set p = { HEAD(p), .max_segment = 4 * MIB,
				    .boundary = 2 * MIB, .alignment = PAGE, .dma_bits = 64 };
	int fd = buffer_alloc(16 * MIB, NULL);
	struct rashpa_map_make map = default_map(fd);

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ANSWERED(make(&map), 0, NULL);
	CHECK(map.out_segments == 8 || map.out_segments == 9, "%u segments", map.out_segments);
	close(map.out_fd);
	map = default_map(fd);
	map.max_segment = MIB;
	ANSWERED(make(&map), 0, NULL);
	CHECK(map.out_segments == 16 || map.out_segments == 17, "%u segments", map.out_segments);
	close(map.out_fd);
	/* a map cannot widen the limits of the profile */
	map = default_map(fd);
	map.max_segment = 16 * MIB;
	map.boundary = 16 * MIB;
	map.alignment = 1;
	ANSWERED(make(&map), 0, NULL);
	CHECK(map.out_segments == 8 || map.out_segments == 9, "%u segments, wider",
	      map.out_segments);
	close(map.out_fd);
	p.alignment = 1ULL << 40;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	map = default_map(fd);
	map.alignment = PAGE;
	ANSWERED(make(&map), EINVAL, "aligned to 0x10000000000");
	close(fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

/* A board that takes each entry for 64 KiB writes 64 KiB, whatever was mapped. */
TEST_IDLE(fixed_segments, "segments are as long as entries without a length")
{
	struct rashpa_layout layout = fpga_layout;
	struct rashpa_profile_table table = fpga_table;
	struct rashpa_profile_set p = { HEAD(p), TABLE(table), .dma_bits = 64 };
	struct rashpa_alloc a = { HEAD(a), .length = MIB, .alignment = MIB };
	const struct rashpa_table *t;
	struct rashpa_map_make map;
	uint32_t i;

	layout.length_bits = 0;
	layout.length_offset = 0;
	layout.segment_size = 64 * KIB;
	table.layout = (uintptr_t)&layout;
	/* a cleared entry must lead nowhere, and address 0 is memory */
	layout.control_bits = 0;
	layout.control_offset = 0;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), EINVAL, "neither|address 0");
	layout.control_bits = fpga_layout.control_bits;
	layout.control_offset = fpga_layout.control_offset;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ANSWERED(call(memory, RASHPA_IOC_ALLOC, &a), 0, NULL);
	map = default_map(a.out_fd);
	made(&map);
	CHECK(map.out_segments == 16, "%u segments", map.out_segments);
	t = table_of(&map);
	for (i = 0; i < t->count; i++)
		CHECK(t->segment[i].length == 64 * KIB, "segment %u: 0x%llx bytes", i,
		      t->segment[i].length);
	munmap((void *)t, map.out_table_size);
	ANSWERED(fpga_program(map.out_fd, 0, NULL), 0, NULL);
	close(map.out_fd);
	map = default_map(a.out_fd);
	map.length = PAGE;
	ANSWERED(make(&map), EINVAL, "0x10000|0x1000");
	map.length = 68 * KIB;
	ANSWERED(make(&map), EINVAL, "0x10000|0x1000");
	map.length = 0;
	map.max_segment = PAGE;
	ANSWERED(make(&map), EINVAL, "0x10000|0x1000");
	close(a.out_fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

/* A function that is idle only as long as its table is there: the second stop finds it out. */
TEST_IDLE(stuck_second, "a function that is stuck at the second stop is reported")
{
	const struct rashpa_profile_step step = {
		.op = RASHPA_STEP_WAIT, .bar = RFPGA_BAR_REGS,
		.offset = RFPGA_TABLE + RFPGA_ENTRY_CONTROL, .value = RFPGA_ENTRY_VALID,
		.mask = RFPGA_ENTRY_VALID, .timeout_us = 1000,
	};
	struct rashpa_profile_set p = { HEAD(p), STEP(step), TABLE(fpga_table) };
	struct rashpa_device_info info;
	struct rashpa_event e[4];
	int fd = buffer_alloc(MIB, NULL), ch;
	struct rashpa_map_make map = default_map(fd);
	void *at = fpga_regs(&f);
	ssize_t n;

	/* idle when the profile comes, which clears the table */
	set32(at, RFPGA_TABLE + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	munmap(at, RFPGA_BAR_REGS_SIZE);
	p.head.flags = RASHPA_PROFILE_NO_RESET;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ch = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);
	made(&map);
	ANSWERED(fpga_program(map.out_fd, 0, NULL), 0, NULL);
	close(map.out_fd);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_STUCK, "state %u", info.out_state);
	n = read(ch, e, sizeof(e)) / (ssize_t)sizeof(e[0]);
	CHECK(n == 1 && e[0].value == RASHPA_DEVICE_EVENT_STUCK, "%zd records, value %llu", n,
	      e[0].value);
	close(ch);
	close(fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_reset(&f), 0, NULL);
}

/* ----------------------------------------------------------- refused ---- */

static const struct {
	const char *key;
	u64 offset, length, max_segment, boundary, alignment;
	uint32_t direction;
	int err;
	const char *says;
} refused[] = {
	{ "from-the-end-on", MIB, 0, 0, 0, 0, 0, ERANGE, "0x100000" },
	{ "one-page-behind-the-end", MIB, PAGE, 0, 0, 0, 0, ERANGE, "0x100000" },
	{ "of-more-than-the-buffer", 0, MIB + PAGE, 0, 0, 0, 0, ERANGE, "0x101000" },
	{ "that-leaves-the-buffer", MIB - PAGE, 2 * PAGE, 0, 0, 0, 0, ERANGE, "0x100000" },
	{ "whose-offset-plus-length-overflows-to-0", -PAGE, PAGE, 0, 0, 0, 0, ERANGE,
	  "0x100000" },
	{ "whose-offset-plus-length-overflows-to-a-page", -PAGE, 2 * PAGE, 0, 0, 0, 0,
	  ERANGE, "0x100000" },
	{ "of-2to64-4096-bytes", PAGE, -PAGE, 0, 0, 0, 0, ERANGE, "0x100000" },
	{ "that-begins-in-a-page", 100, PAGE, 0, 0, 0, 0, EINVAL, "0x64|pages" },
	{ "that-ends-in-a-page", 0, 100, 0, 0, 0, 0, EINVAL, "0x64|pages" },
	{ "of-ullong_max-bytes", 0, ULLONG_MAX, 0, 0, 0, 0, EINVAL, "pages" },
	{ "in-segments-of-100-bytes", 0, 0, 100, 0, 0, 0, EINVAL, "max_segment" },
	{ "in-segments-of-ullong_max-bytes", 0, 0, ULLONG_MAX, 0, 0, 0, EINVAL,
	  "max_segment" },
	{ "with-a-boundary-of-3-pages", 0, 0, 0, 3 * PAGE, 0, 0, EINVAL, "boundary" },
	{ "with-a-boundary-of-half-a-page", 0, 0, 0, PAGE / 2, 0, 0, EINVAL, "boundary" },
	{ "with-a-boundary-of-ullong_max", 0, 0, 0, ULLONG_MAX, 0, 0, EINVAL, "boundary" },
	{ "aligned-to-3", 0, 0, 0, 0, 3, 0, EINVAL, "alignment" },
	{ "aligned-to-ullong_max", 0, 0, 0, 0, ULLONG_MAX, 0, EINVAL, "alignment" },
	{ "aligned-to-more-than-its-memory-is", PAGE, 0, 0, 0, 64 * KIB, 0, EINVAL,
	  "aligned to 0x10000" },
	{ "aligned-to-2to63", 0, 0, 0, 0, 1ULL << 63, 0, EINVAL, "aligned" },
	{ "in-segments-that-break-the-alignment", 0, 0, PAGE, 0, 64 * KIB, 0, EINVAL,
	  "aligned to 0x10000" },
	{ "in-direction-3", 0, 0, 0, 0, 0, 3, EINVAL, "direction 3" },
	{ "in-direction-uint_max", 0, 0, 0, 0, 0, UINT_MAX, EINVAL, "direction" },
};

TEST_EACH(refused, refused, "a map %s is refused")
{
	struct rashpa_alloc a = { HEAD(a), .length = MIB, .alignment = MIB };
	struct rashpa_map_make map;
	struct rashpa_info info;

	REQUIRE(!call(memory, RASHPA_IOC_ALLOC, &a), "ALLOC: %s", reason);
	map = default_map(a.out_fd);
	map.offset = row->offset;
	map.length = row->length;
	map.max_segment = row->max_segment;
	map.boundary = row->boundary;
	map.alignment = row->alignment;
	map.direction = row->direction;
	ANSWERED(make(&map), row->err, row->says);
	CHECK(map.out_fd == -7, "out_fd was written on failure");
	ANSWERED(buffer_info(a.out_fd, &info), 0, NULL);
	CHECK(!info.out_importers, "%u importers have stayed", info.out_importers);
	close(a.out_fd);
}

TEST(own_window, "a function's own window is not mapped for it")
{
	int window = fpga_window(&f, RFPGA_BAR_REGS, 0, PAGE, 0);
	struct rashpa_map_make map = default_map(window);

	ANSWERED(make(&map), ENXIO, f.name);
	close(window);
}

TEST(read_only, "read-only memory is not written by a function")
{
	int fd = buffer_alloc(MIB, "st-ro"), ro = buffer_open("st-ro", O_RDONLY);
	struct rashpa_map_make map;

	ANSWERED(fpga_map(&f, ro, RASHPA_TO_MEMORY, &map), EACCES, "read-only");
	ANSWERED(fpga_map(&f, ro, RASHPA_BIDIRECTIONAL, &map), EACCES, "read-only");
	CHECK(fpga_map(&f, ro, RASHPA_FROM_MEMORY, &map) >= 0, "%s", reason);
	close(map.out_fd);
	close(ro);
	buffer_end(fd, "st-ro");
}

TEST(remove_mapped, "a buffer that a function maps is not removed")
{
	int fd = buffer_alloc(MIB, "st-map");
	struct rashpa_map_make map;
	struct rashpa_info info;
	int m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);

	ANSWERED(m < 0 ? m : 0, 0, NULL);
	ANSWERED(buffer_info(fd, &info), 0, NULL);
	CHECK(info.out_importers == 1, "%u importers", info.out_importers);
	close(fd);
	ANSWERED(buffer_remove("st-map"), EBUSY, "st-map|1 device");
	close(m);
	ANSWERED(buffer_remove("st-map"), 0, NULL);
}

/* Memory out of reach of a narrow function must not be replaced by other memory. */
TEST_IDLE(mask, "a function that cannot reach the memory gets no map")
{
	struct rashpa_profile_set p = { HEAD(p), .dma_bits = 24 };
	int fd = buffer_alloc(64 * KIB, NULL);
	struct rashpa_map_make map = default_map(fd);
	char *m = map_fd(fd, 64 * KIB);
	const struct rashpa_table *t;
	u64 at = pfn_of(m) * PAGE;
	int err;

	err = call(f.fd, RASHPA_IOC_PROFILE_SET, &p);
	SKIP_IF(err == -EIO, "no masks of 24 bits on this machine");
	ANSWERED(err, 0, NULL);
	if (iommu) {
		/* the IOMMU can bring it there */
		made(&map);
		t = table_of(&map);
		CHECK(t->segment[0].address < 1 << 24, "at 0x%llx", t->segment[0].address);
		unmap_fd((void *)t, map.out_table_size, map.out_fd);
	} else if (at >= 1 << 24) {
		ANSWERED(make(&map), EOVERFLOW, "24 bits");
	} else {
		tap_skip("the buffer is at 0x%llx", at);
	}
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	unmap_fd(m, 64 * KIB, fd);
}

/* ------------------------------------------------------------- table ---- */

static void table_as_user(void *arg)
{
	struct rashpa_map_make *map = arg;
	void *p;

	drop_privileges();
	p = mmap(NULL, map->out_table_size, PROT_READ, MAP_SHARED, map->out_fd, 0);
	CHECK(p == MAP_FAILED && errno == EPERM, "a user sees addresses");
}

static void table_disclosed(void *arg)
{
	struct rashpa_map_make *map = arg;
	struct rashpa_table *t;

	drop_privileges();
	t = mmap(NULL, map->out_table_size, PROT_READ, MAP_SHARED, map->out_fd, 0);
	if (CHECK(t != MAP_FAILED, "mmap: %s", strerror(errno)))
		CHECK(t->count == map->out_segments, "%u segments", t->count);
}

TEST(table, "the table is read-only, and needs the right to see addresses")
{
	int fd = buffer_alloc(MIB, NULL);
	struct rashpa_map_make map = default_map(fd);
	struct rashpa_table *t;
	void *p;

	made(&map);
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, map.out_fd, 0);
	CHECK(p == MAP_FAILED && errno == EACCES, "the table is writable");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, map.out_fd, 0);
	CHECK(p == MAP_FAILED, "a private copy of the table is writable");
	p = mmap(NULL, map.out_table_size + PAGE, PROT_READ, MAP_SHARED, map.out_fd, 0);
	CHECK(p == MAP_FAILED, "more than the table was mapped");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, map.out_fd, map.out_table_size);
	CHECK(p == MAP_FAILED, "behind the table was mapped");
	t = (void *)table_of(&map);
	CHECK(mprotect(t, PAGE, PROT_READ | PROT_WRITE) && errno == EACCES,
	      "mprotect makes the table writable");
	munmap(t, map.out_table_size);
	tap_fork(table_as_user, &map);
	close(map.out_fd);

	/* the window that stays open forbids a new profile */
	regs_close();
	ANSWERED(fpga_profile(&f, RASHPA_PROFILE_DISCLOSE, NULL, 0), 0, NULL);
	map = default_map(fd);
	ANSWERED(make(&map), 0, NULL);
	tap_fork(table_disclosed, &map);
	close(map.out_fd);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	regs_open();
	close(fd);
}

TEST(read, "a map reports its changes")
{
	int fd = buffer_alloc(MIB, NULL);
	struct rashpa_map_make map = default_map(fd);
	struct rashpa_table head;

	made(&map);
	CHECK(!wait_fd(map.out_fd, POLLIN, 0), "readable although nothing changed");
	fcntl(map.out_fd, F_SETFL, O_NONBLOCK);
	CHECK(read(map.out_fd, &head, sizeof(head)) < 0 && errno == EAGAIN, "read");
	CHECK(read(map.out_fd, &head, sizeof(head) - 1) < 0 && errno == EINVAL, "short read");
	CHECK(write(map.out_fd, &head, sizeof(head)) < 0, "write");
	close(map.out_fd);
	close(fd);
}

/* ----------------------------------------------------------- PROGRAM ---- */

static void programs(void)
{
	int fd = buffer_alloc(16 * MIB, NULL);
	struct rashpa_map_make map = default_map(fd);
	const struct rashpa_table *t;
	uint32_t entries = 0, i;
	u64 sum = 0;

	map.max_segment = MIB;
	made(&map);
	ANSWERED(fpga_program(map.out_fd, 5, &entries), 0, NULL);
	CHECK(entries == map.out_segments, "%u entries", entries);
	t = table_of(&map);
	CHECK(entry_is_clear(4), "the entry before was written");
	CHECK(entry_is_clear(5 + t->count), "the entry after was written");
	for (i = 0; i < t->count; sum += t->segment[i].length, i++)
		if (!CHECK(entry_address(5 + i) == t->segment[i].address &&
			   entry_length(5 + i) == t->segment[i].length &&
			   entry_control(5 + i) == RFPGA_ENTRY_VALID &&
			   entry_sum(5 + i) == sum, "entry %u differs", 5 + i))
			break;
	munmap((void *)t, map.out_table_size);
	/* moving it clears the place that it leaves, also where both overlap */
	ANSWERED(fpga_program(map.out_fd, 8, &entries), 0, NULL);
	CHECK(entry_is_clear(5) && entry_is_clear(6) && entry_is_clear(7),
	      "the old place is not clear");
	CHECK(entry_control(8) == RFPGA_ENTRY_VALID &&
	      entry_control(8 + entries - 1) == RFPGA_ENTRY_VALID,
	      "the new place is not valid");
	close(map.out_fd);
	for (i = 5; i < 8 + entries; i++)
		if (!CHECK(entry_is_clear(i), "entry %u was left", i))
			break;
	close(fd);
}

TEST(program, "PROGRAM writes the table, and it is cleared with the map")
{
	programs();
}

TEST_IDLE(program_spread, "PROGRAM writes the words of an entry for each segment")
{
#define WORD(kind_, at, bits_, value_)					\
	{ .kind = RASHPA_FETCH_##kind_, .offset = RFPGA_ENTRY_##at, .bits = bits_, \
	  .width = bits_, .value = value_ }
	struct rashpa_fetch_field words[] = {
		WORD(ADDRESS, ADDR, 64, 0), WORD(LENGTH, LEN, 64, 0), WORD(SUM, SUM, 64, 0),
		WORD(CONSTANT, CONTROL, 32, RFPGA_ENTRY_VALID),
	};
#undef WORD
	struct rashpa_fetch fetch = {
		.stride = RFPGA_ENTRY_STRIDE, .flags = RASHPA_FETCH_PUSH | RASHPA_FETCH_SPREAD,
		.registers = (uintptr_t)words, .register_size = sizeof(words[0]),
		.n_registers = ARRAY_SIZE(words),
	};
	struct rashpa_profile_table table = {
		.bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE, .length = RFPGA_TABLE_SIZE,
		.fetch = (uintptr_t)&fetch, .fetch_size = sizeof(fetch),
	};
	struct rashpa_profile_set p = { HEAD(p), TABLE(table), .dma_bits = 64 };

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	regs_open();
	programs();
	regs_close();
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

static void program_as_user(void *arg)
{
	struct rashpa_map_make *map = arg;
	uint32_t entries;

	drop_privileges();
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, map->out_fd, 0) == MAP_FAILED,
	      "a user sees addresses");
	ANSWERED(fpga_program(map->out_fd, 0, &entries), 0, NULL);
}

TEST(program_profile, "PROGRAM writes the table that the profile describes")
{
	int fd = buffer_alloc(MIB, NULL);
	struct rashpa_map_make map = default_map(fd);
	uint32_t entries = 0;

	made(&map);
	ANSWERED(fpga_program(map.out_fd, 3, &entries), 0, NULL);
	CHECK(entries == map.out_segments && entry_control(3) == RFPGA_ENTRY_VALID,
	      "it was not written");
	ANSWERED(fpga_program(map.out_fd, 1024, NULL), ERANGE, "entry 1024|1024 entries");
	ANSWERED(fpga_program(map.out_fd, UINT_MAX, NULL), ERANGE, "1024 entries");
	CHECK(entry_control(3) == RFPGA_ENTRY_VALID, "a refused call moved it");
	close(map.out_fd);
	CHECK(entry_is_clear(3), "the entry was left");
	close(fd);
}

TEST(program_hidden, "PROGRAM serves a user who may not see addresses")
{
	int fd = buffer_alloc(MIB, NULL);
	struct rashpa_map_make map = default_map(fd);

	made(&map);
	tap_fork(program_as_user, &map);
	CHECK(entry_control(0) == RFPGA_ENTRY_VALID && entry_length(0) == MIB,
	      "the entry was not written");
	close(map.out_fd);
	CHECK(entry_is_clear(0), "the entry was left");
	close(fd);
}

/* --------------------------------------------- other memory and peers --- */

static u64 sum_of(const struct rashpa_map_make *map)
{
	const struct rashpa_table *t = table_of(map);
	u64 sum = 0;
	uint32_t i;

	for (i = 0; i < t->count; i++)
		sum += t->segment[i].length;
	munmap((void *)t, map->out_table_size);
	return sum;
}

TEST(foreign, "memory of another driver is mapped")
{
	int fd = foreign_dmabuf(MIB);
	struct rashpa_map_make map = default_map(fd);

	SKIP_IF(fd < 0, "no udmabuf here");
	made(&map);
	CHECK(sum_of(&map) == MIB, "%llu bytes in %u segments", sum_of(&map), map.out_segments);
	close(map.out_fd);
	map = default_map(fd);
	map.offset = 3 * PAGE;
	map.length = 5 * PAGE;
	made(&map);
	CHECK(sum_of(&map) == 5 * PAGE, "%llu bytes", sum_of(&map));
	close(map.out_fd);
	close(fd);
}

/* /proc hides their frame numbers, so the test uses addresses. */
TEST(cma, "a CMA buffer is one segment")
{
	struct rashpa_alloc a = { HEAD(a), .length = 16 * MIB,
				  .backend = RASHPA_BACKEND_CMA };
	struct rashpa_map_make map;

	SKIP_IF(!cma_here(), "no CMA area");
	REQUIRE(!call(memory, RASHPA_IOC_ALLOC, &a), "ALLOC: %s", reason);
	map = default_map(a.out_fd);
	made(&map);
	CHECK(map.out_segments == 1, "%u segments", map.out_segments);
	close(map.out_fd);
	close(a.out_fd);
}

TEST(many, "many maps of one buffer exist side by side")
{
	/* a kernel that checks the DMA API counts to seven, and warns when it cannot go on */
	const int n = access("/sys/kernel/debug/dma-api", F_OK) ? 64 : 7;
	int fd = buffer_alloc(MIB, NULL), fds[64], i;
	struct rashpa_device_info info;
	struct rashpa_map_make map;

	for (i = 0; i < n; i++) {
		fds[i] = fpga_map(&f, fd, i % 3, &map);
		if (!CHECK(fds[i] >= 0, "map %d: %s", i, reason))
			break;
	}
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK((int)info.out_maps == n, "%u maps", info.out_maps);
	while (i--)
		close(fds[i]);
	close(fd);
}

void setup(void)
{
	fpga_need(&f);
	have_f2 = fpga_try(&f2, 1);
	iommu = fpga_iommu(&f);
	regs_open();
}
