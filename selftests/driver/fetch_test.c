// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: needs=fetch kernel=any,debug iommu=on seconds=15 */
/* test: needs=fetch iommu=off seconds=15 */
/*
 * Boards that fetch addresses: bytes of the rings as the board reads them, ends of rings, and maps
 * that the kernel programs again. The lab gives three such boards, one of each format.
 */
#include <linux/udmabuf.h>

#include "common.h"
#include "layouts.h"
#include "foreign.h"
#include "rig.h"

#define DATA	((u64)IMAGES * IMAGE)
#define PAGES	5u		/* segments of the maps to check */
#define ENTRY	7u		/* entry in the table, for all maps */

static const unsigned int ids[] = {
	RFPGA_PCI_FETCH_ARRAY, RFPGA_PCI_FETCH_CHAIN, RFPGA_PCI_FETCH_PACKED,
};

static struct fpga boards[ARRAY_SIZE(ids)];

static const struct { const char *key; unsigned int board; } formats[] = {
	{ "an-array", 0 }, { "a-chain", 1 }, { "packed-words", 2 },
};

/* ----------------------------------------------------------- layouts --- */

enum { CONSTANT = RASHPA_FETCH_CONSTANT, ADDRESS, LENGTH, SUM, NEXT, INDEX, COUNT };

#define FIELD(_kind, _offset, _bits, _shift, _width, ...) \
	{ .kind = _kind, .offset = _offset, .bits = _bits, .shift = _shift, .width = _width, \
	  __VA_ARGS__ }

struct way {
	const char *key;
	uint32_t size, flags;
	struct rashpa_fetch_field fields[9];
	void (*expect)(const struct want *w, uint8_t *d);
};

static void expect_chain(const struct want *w, uint8_t *d)
{
	le(d, 0, 0xad4b0000, 4);
	le(d, 4, w->length, 4);
	le(d, 8, w->sum, 8);
	le(d, 16, w->address, 8);
	le(d, 24, w->next, 8);
}

/* Without a length: each is as long as the board takes it to be. */
static void expect_short(const struct want *w, uint8_t *d)
{
	le(d, 0, w->address, 8);
}

static const struct way ways[] = {
	{ "an-array", RFPGA_ARRAY_SIZE, 0, { FIELDS_ARRAY }, expect_array },
	{ "a-chain", RFPGA_CHAIN_SIZE, RASHPA_FETCH_CLOSED, {
		FIELD(CONSTANT, 0, 32, 16, 16, .value = RFPGA_CHAIN_MAGIC),
		FIELD(LENGTH, 4, 32, 0, 28), FIELD(SUM, 8, 64, 0, 64),
		FIELD(ADDRESS, 16, 32, 0, 32), FIELD(ADDRESS, 20, 32, 0, 32, .unit = 32),
		FIELD(NEXT, 24, 64, 0, 64),
	}, expect_chain },
	{ "packed-words", RFPGA_PACKED_SIZE, 0, { FIELDS_PACKED }, expect_packed },
	{ "an-open-chain-with-numbers", 32, 0, { FIELDS_ODD }, expect_odd },
	{ "descriptors-of-12-bytes", 12, 0, { FIELDS_THREE }, expect_three },
	{ "addresses-and-nothing-else", 8, 0, { FIELD(ADDRESS, 0, 64, 0, 64) }, expect_short },
};

struct plan {
	struct rashpa_profile_set set;
	struct rashpa_profile_step steps[2];
	struct rashpa_profile_table table;
	struct rashpa_fetch fetch;
	struct rashpa_fetch_field fields[ARRAY_SIZE(ways[0].fields)], registers[4];
};

static struct plan *plan_make(const struct way *way)
{
	static const struct rashpa_fetch_field registers[] = {
		FIELD(ADDRESS, RFPGA_FETCH_BASE, 64, 0, 64),
		FIELD(COUNT, RFPGA_FETCH_COUNT, 32, 0, 32),
		FIELD(COUNT, RFPGA_FETCH_TAIL, 32, 0, 32),
		FIELD(CONSTANT, RFPGA_FETCH_CONTROL, 32, 0, 32, .value = RFPGA_FETCH_VALID),
	};
	static struct plan p;

	memset(&p, 0, sizeof(p));
	memcpy(p.steps, fpga_stop, sizeof(p.steps));
	memcpy(p.fields, way->fields, sizeof(p.fields));
	memcpy(p.registers, registers, sizeof(registers));
	p.fetch = (struct rashpa_fetch) {
		.stride = RFPGA_ENTRY_STRIDE, .flags = way->flags, .descriptor_size = way->size,
		.fields = (uintptr_t)p.fields, .field_size = sizeof(p.fields[0]),
		.registers = (uintptr_t)p.registers, .register_size = sizeof(p.registers[0]),
		.n_registers = ARRAY_SIZE(registers),
		.segment_size = way->expect == expect_short ? PAGE : 0,
	};
	while (p.fetch.n_fields < ARRAY_SIZE(p.fields) && way->fields[p.fetch.n_fields].kind)
		p.fetch.n_fields++;
	p.table = (struct rashpa_profile_table) {
		.bar = RFPGA_BAR_REGS, .offset = RFPGA_TABLE, .length = RFPGA_TABLE_SIZE,
		.fetch = (uintptr_t)&p.fetch,
		.fetch_size = sizeof(p.fetch),
	};
	/* that of the board is 8 MiB in packed words */
	p.set = (struct rashpa_profile_set) { HEAD(p.set), STEPS(p.steps), TABLE(p.table),
					      .dma_bits = 64, .max_segment = 8 << 20 };
	p.set.head.flags = RASHPA_PROFILE_NO_RESET;
	return &p;
}

static int apply(const struct fpga *f, struct plan *p)
{
	return call(f->fd, RASHPA_IOC_PROFILE_SET, &p->set);
}

static void profile(unsigned int board)
{
	if (apply(&boards[board], plan_make(&ways[board])))
		tap_bail("profile: %s", reason);
}

/* -------------------------------------------------------------- rigs --- */

/* A rig whose map is programmed with @flags; the test ends where it fails. */
static void up(struct rig *r, unsigned int board, uint32_t flags)
{
	struct rashpa_program p = { HEAD(p), .first = ENTRY };

	p.head.flags = flags;
	rig_map(r, &boards[board], -1, 0, 7 * PAGE);
	if (call(r->map, RASHPA_IOC_PROGRAM, &p))
		tap_bail("PROGRAM: %s", reason);
	CHECK(p.out_entries == 1 && p.out_descriptors == r->made.out_segments,
	      "%u entries, %llu descriptors of %u segments", p.out_entries, p.out_descriptors,
	      r->made.out_segments);
}

static char *entry(const struct rig *r)
{
	return r->regs + RFPGA_TABLE + ENTRY * RFPGA_ENTRY_STRIDE;
}

static void entry_clear(const struct rig *r)
{
	CHECK(!reg64(entry(r), RFPGA_FETCH_BASE) && !reg32(entry(r), RFPGA_FETCH_COUNT) &&
	      !reg32(entry(r), RFPGA_FETCH_TAIL) && !reg32(entry(r), RFPGA_FETCH_CONTROL),
	      "the entry still says where a ring is");
}

TEST_EACH(streams, formats, "a board that fetches %s streams")
{
	struct rig r;

	up(&r, row->board, 0);
	CHECK(r.made.out_segments > 1, "%u segments", r.made.out_segments);
	rig_streams(&r, ENTRY, 1);
	CHECK(reg32(entry(&r), RFPGA_FETCH_FETCHED) >= r.made.out_segments,
	      "%u descriptors fetched", reg32(entry(&r), RFPGA_FETCH_FETCHED));
	rig_run(&r, ENTRY, 1);
	rig_end_map(&r);
	rig_is_idle(r.regs, 0);
	entry_clear(&r);
	rig_down(&r);
}

/* ------------------------------------------------------------- bytes --- */

static bool peek(unsigned int board, u64 at, unsigned int n, uint8_t *to)
{
	char command[48], answer[256];
	unsigned int i;

	snprintf(command, sizeof(command), "peek %llx %u", at, n);
	if (!rig_ask(board, command, answer, sizeof(answer)))
		return false;
	for (i = 0; i < n; i++)
		if (sscanf(answer + 3 + 2 * i, "%2hhx", &to[i]) != 1)
			return false;
	return true;
}

static void compare(const struct rig *r, const struct way *way, const struct rashpa_table *t)
{
	const u64 base = reg64(entry(r), RFPGA_FETCH_BASE);
	uint8_t is[64], wanted[64];
	struct want w = { .n = t->count };

	for (w.i = 0; w.i < w.n && tap_ok(); w.i++) {
		w.address = t->segment[w.i].address;
		w.length = t->segment[w.i].length;
		w.next = w.i < w.n - 1 ? base + (w.i + 1) * way->size :
			 way->flags & RASHPA_FETCH_CLOSED ? base : 0;
		way->expect(&w, wanted);
		REQUIRE(peek(0, base + w.i * way->size, way->size, is),
			"descriptor %u cannot be read", (unsigned int)w.i);
		CHECK(!memcmp(is, wanted, way->size), "descriptor %u differs", (unsigned int)w.i);
		w.sum += w.length;
	}
}

TEST_EACH(bytes, ways, "%s: in memory as it was described")
{
	const struct way *way = row;
	const struct rashpa_table *t;
	struct rig r = { .window = -1, .channel = -1, .buffer = -1, .map = -1 };
	struct rashpa_program p = { HEAD(p), .first = ENTRY };
	u64 base;
	uint8_t is[64];

	ANSWERED(apply(&boards[0], plan_make(way)), 0, NULL);
	r.window = fpga_window(&boards[0], RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	r.regs = map_fd(r.window, RFPGA_BAR_REGS_SIZE);
	r.buffer = buffer_alloc(PAGES * PAGE, NULL);
	r.made = (struct rashpa_map_make) { HEAD(r.made), .fd = r.buffer, .max_segment = PAGE };
	if (ANSWERED(call(boards[0].fd, RASHPA_IOC_MAP_MAKE, &r.made), 0, NULL)) {
		r.map = r.made.out_fd;
		t = mmap(NULL, r.made.out_table_size, PROT_READ, MAP_SHARED, r.map, 0);
		ANSWERED(call(r.map, RASHPA_IOC_PROGRAM, &p), 0, NULL);
		CHECK(t != MAP_FAILED && t->count == PAGES && p.out_descriptors == PAGES, "%s",
		      reason);
		base = reg64(entry(&r), RFPGA_FETCH_BASE);
		CHECK(reg32(entry(&r), RFPGA_FETCH_COUNT) == PAGES &&
		      reg32(entry(&r), RFPGA_FETCH_TAIL) == PAGES &&
		      reg32(entry(&r), RFPGA_FETCH_CONTROL) == RFPGA_FETCH_VALID, "the entry");
		if (tap_ok())
			compare(&r, way, t);
		munmap((void *)t, r.made.out_table_size);
		rig_end_map(&r);
		entry_clear(&r);
		/* an IOMMU has unmapped it; without one, the memory may have a new owner */
		if (!strcmp(getenv("RASHPA_IOMMU") ?: "", "on"))
			CHECK(!peek(0, base, 8, is), "the ring is still mapped");
	}
	rig_down(&r);
	profile(0);
}

/* ------------------------------------------------------------ refused --- */

enum part { TABLE_OF, FETCH, FIELD_OF, REGISTER };

#define T(field)	TABLE_OF, offsetof(struct rashpa_profile_table, field)
#define F(field)	FETCH, offsetof(struct rashpa_fetch, field)
#define D(field)	FIELD_OF, offsetof(struct rashpa_fetch_field, field)
#define R(field)	REGISTER, offsetof(struct rashpa_fetch_field, field)

/* one wrong value in the array's profile; units/descriptors_unit.c has all of them */
static const struct bad_field bad[] = {
	{ "with-a-reserved-field-of-the-table", T(__reserved), 4, 1, EINVAL, "reserved" },
	{ "and-gives-no-address-of-it", T(fetch), 8, 0, EFAULT, NULL },
	{ "and-a-layout", T(layout_size), 4, 56, EINVAL, "layout|exclude" },
	{ "from-nowhere", T(fetch), 8, 8, EFAULT, NULL },
	{ "by-a-ring-that-is-too-short", T(fetch_size), 4, 52, EINVAL, "52 bytes" },
	{ "at-a-stride-of-0", F(stride), 4, 0, EINVAL, "stride of 0" },
	{ "fields-from-nowhere", F(fields), 8, 8, EFAULT, NULL },
	{ "fields-that-are-too-short", F(field_size), 4, 44, EINVAL, "44 bytes" },
	{ "by-registers-from-nowhere", F(registers), 8, 8, EFAULT, NULL },
	{ "a-field-of-no-kind", D(kind), 4, 0, EINVAL, "field 1|kind 0" },
	{ "a-register-of-kind-next", R(kind), 4, NEXT, EINVAL, "register 1|kind 5" },
};

TEST_EACH(bad, bad, "a profile that fetches %s is refused")
{
	struct plan *p = plan_make(&ways[0]);
	char *part[] = { (char *)&p->table, (char *)&p->fetch, (char *)&p->fields[1],
			 (char *)&p->registers[1] };

	memcpy(part[row->part] + row->at, &row->value, row->size);
	ANSWERED(apply(&boards[0], p), row->err, row->says);
}

/* The driver checks each map before it writes a descriptor; units/descriptors_unit.c has all. */
TEST(unfit, "a map that does not fit into descriptors is refused")
{
	struct plan *p = plan_make(&ways[0]);
	struct rashpa_map_make map;
	int fd = buffer_alloc(PAGES * PAGE, NULL);

	p->fields[1].width = 12;
	ANSWERED(apply(&boards[0], p), 0, NULL);
	REQUIRE(fpga_map(&boards[0], fd, RASHPA_BIDIRECTIONAL, &map) >= 0, "%s", reason);
	ANSWERED(fpga_program(map.out_fd, 0, NULL), EOVERFLOW, "descriptor 0|a length");
	close(map.out_fd);
	profile(0);
	REQUIRE(fpga_map(&boards[0], fd, RASHPA_BIDIRECTIONAL, &map) >= 0, "%s", reason);
	ANSWERED(fpga_program(map.out_fd, RFPGA_TABLE_SIZE / RFPGA_ENTRY_STRIDE, NULL), ERANGE,
		 "1 map|1024 entries");
	close(map.out_fd);
	close(fd);
}

TEST(charged, "a ring is charged to its user, and given back")
{
	struct rashpa_program program = { HEAD(program) };
	struct rashpa_map_make map;
	const u64 n = 16384;		/* descriptors of 16 bytes: 256 KiB */
	u64 before, more;
	int fd = buffer_alloc(n * PAGE, NULL);

	map = (struct rashpa_map_make) { HEAD(map), .fd = fd, .max_segment = PAGE };
	ANSWERED(call(boards[0].fd, RASHPA_IOC_MAP_MAKE, &map), 0, NULL);
	before = bytes_allocated();
	ANSWERED(call(map.out_fd, RASHPA_IOC_PROGRAM, &program), 0, NULL);
	CHECK(program.out_descriptors == n, "%llu descriptors", program.out_descriptors);
	more = bytes_allocated() - before;
	CHECK(more == n * RFPGA_ARRAY_SIZE, "%llu bytes more", more);
	close(map.out_fd);
	close(fd);
}

/* ---------------------------------------------------- how a stream ends --- */

static void child_streams(void *arg)
{
	struct rig r;

	up(&r, *(unsigned int *)arg, 0);
	rig_run(&r, ENTRY, 1);
	kill(getpid(), SIGKILL);
}

TEST_EACH(killed, formats, "a process that streams by %s is killed")
{
	unsigned int board = row->board;
	struct rig r = { .regs = fpga_regs(&boards[board]) };
	int status;

	status = tap_fork_wait(tap_fork_start(child_streams, &board));
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status 0x%x", status);
	rig_is_idle(r.regs, 0);
	entry_clear(&r);
	munmap(r.regs, RFPGA_BAR_REGS_SIZE);
}

TEST_EACH(unbound, formats, "a board that streams by %s is unbound")
{
	unsigned int board = row->board;
	struct rig r;

	up(&r, board, RASHPA_PROGRAM_AGAIN);
	rig_run(&r, ENTRY, 1);
	CHECK(!fpga_unbind(&boards[board]), "unbind");
	ANSWERED(fpga_program(r.map, ENTRY, NULL), ENODEV, "removed");
	rig_down(&r);
	fpga_again(&boards[board]);
	profile(board);
	up(&r, board, 0);
	/* nothing went to memory that was given back */
	rig_is_idle(r.regs, 0);
	rig_streams(&r, ENTRY, 1);
	rig_down(&r);
}

TEST(poison, "fetches that fail, descriptors that make no sense")
{
	struct plan *p = plan_make(&ways[0]);
	struct rig r;

	up(&r, 0, 0);
	CHECK(rig_tell(0, "poison on"), "no control");
	rig_stream(&r, ENTRY, 1, 1);
	CHECK(reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE) == RFPGA_FAULT_BUS, "cause %u",
	      reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE));
	CHECK(reg32(entry(&r), RFPGA_FETCH_STATUS) == RFPGA_FETCH_POISON, "status %u",
	      reg32(entry(&r), RFPGA_FETCH_STATUS));
	CHECK(rig_tell(0, "poison off"), "no control");
	rig_streams(&r, ENTRY, 1);
	/* an address without memory */
	set64(entry(&r), RFPGA_FETCH_BASE, 1ULL << 46);
	rig_stream(&r, ENTRY, 1, 1);
	CHECK(reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE) == RFPGA_FAULT_BUS &&
	      reg32(entry(&r), RFPGA_FETCH_STATUS) == RFPGA_FETCH_REFUSED,
	      "cause %u, status %u", reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE),
	      reg32(entry(&r), RFPGA_FETCH_STATUS));
	rig_down(&r);
	p->fields[2].value = 0;			/* not valid */
	ANSWERED(apply(&boards[0], p), 0, NULL);
	up(&r, 0, 0);
	rig_stream(&r, ENTRY, 1, 1);
	CHECK(reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE) == RFPGA_FAULT_DESC &&
	      reg32(entry(&r), RFPGA_FETCH_STATUS) == RFPGA_FETCH_INVALID,
	      "cause %u, status %u", reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE),
	      reg32(entry(&r), RFPGA_FETCH_STATUS));
	rig_down(&r);
	profile(0);
}

/* ------------------------------------------------------------ many --- */

#define MANY		(20u << 10)	/* more than 4 MiB; RASHPA_SEGMENTS=16777216 is the most */
#define ITEM		(64 * MIB)	/* bytes after which the memory repeats its pages */

static uint32_t segments_wanted(void)
{
	const char *text = getenv("RASHPA_SEGMENTS");

	return text ? strtoul(text, NULL, 10) : MANY;
}

/* @n pages, of few: a dma-buf of another driver, or -1. */
static int many_pages(uint32_t n)
{
	const u64 length = (u64)n * PAGE;
	struct {
		struct udmabuf_create_list list;
		struct udmabuf_create_item item[1024];
	} c = { .list.flags = UDMABUF_FLAGS_CLOEXEC };
	u64 left = length;
	int dev, memfd, fd;

	/* a first udmabuf, of one item, shows whether the kernel has them */
	fd = foreign_dmabuf(PAGE);
	if (fd < 0)
		return -1;
	close(fd);
	CHECK(!write_text("/sys/module/udmabuf/parameters/size_limit_mb", "65536"), "udmabuf");
	memfd = memfd_create("many", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	CHECK(!ftruncate(memfd, ITEM) && !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK), "memfd");
	for (; left; c.list.count++) {
		struct udmabuf_create_item *item = &c.item[c.list.count];

		item->memfd = memfd;
		item->size = left < ITEM ? left : ITEM;
		left -= item->size;
	}
	dev = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	fd = ioctl(dev, UDMABUF_CREATE_LIST, &c);
	CHECK(fd >= 0, "udmabuf of %u pages: %s", n, strerror(errno));
	close(dev);
	close(memfd);
	return fd;
}

static double since(u64 start)
{
	return (double)(now_ns() - start) / 1e9;
}

/* Measure how long others wait for the function, at most. */
static void ask_always(void *arg)
{
	const int *end = arg;
	struct rashpa_device_info info;
	u64 longest = 0, start;

	while (!wait_fd(end[0], POLLIN, 0)) {
		start = now_ns();
		if (!ANSWERED(fpga_info(&boards[0], &info), 0, NULL))
			break;
		longest = now_ns() - start > longest ? now_ns() - start : longest;
	}
	tap_note("others waited for the function %.3f s at most", (double)longest / 1e9);
}

static void program_many(int dmabuf, uint32_t n, uint32_t size)
{
	struct rashpa_map_make make = { HEAD(make), .fd = dmabuf, .max_segment = PAGE };
	struct rashpa_program p = { HEAD(p), .first = ENTRY };
	struct rig r = { .window = -1, .channel = -1, .buffer = -1, .map = -1 };
	const uint32_t at[] = { 0, 1, n / 2, n - 2, n - 1 };
	const bool iommu = fpga_iommu(&boards[0]);
	u64 start = now_ns(), base;
	uint8_t is[16], wanted[16];
	const struct rashpa_table *t;
	size_t i;
	int err;

	if (!ANSWERED(call(boards[0].fd, RASHPA_IOC_MAP_MAKE, &make), 0, NULL))
		return;
	tap_note("MAP of %u segments: %.3f s", make.out_segments, since(start));
	start = now_ns();
	err = call(make.out_fd, RASHPA_IOC_PROGRAM, &p);
	/* it needs one piece, which the page allocator does not have */
	if (err == -ENOMEM && !iommu) {
		CHECK(strstr(reason, "in one piece"), "%s", reason);
		close(make.out_fd);
		return;
	}
	ANSWERED(err, 0, NULL);
	tap_note("PROGRAM of %llu descriptors, %llu MiB: %.3f s", p.out_descriptors,
		 (p.out_descriptors * size / MIB), since(start));
	start = now_ns();
	ANSWERED(call(make.out_fd, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	tap_note("the same once more, in memory that is there: %.3f s", since(start));
	r.window = fpga_window(&boards[0], RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	r.regs = map_fd(r.window, RFPGA_BAR_REGS_SIZE);
	t = mmap(NULL, make.out_table_size, PROT_READ, MAP_SHARED, make.out_fd, 0);
	REQUIRE(t != MAP_FAILED && p.out_descriptors == n && make.out_segments == n,
		"%llu descriptors of %u", p.out_descriptors, n);
	base = reg64(entry(&r), RFPGA_FETCH_BASE);
	for (i = 0; i < ARRAY_SIZE(at) && tap_ok(); i++) {
		const struct rashpa_segment *s = &t->segment[at[i]];
		struct want w = { .i = at[i], .n = n, .address = s->address, .length = s->length };

		expect_array(&w, wanted);
		CHECK(peek(0, base + (u64)at[i] * size, sizeof(is), is) &&
		      !memcmp(is, wanted, sizeof(is)), "descriptor %u differs", at[i]);
	}
	munmap((void *)t, make.out_table_size);
	start = now_ns();
	close(make.out_fd);
	tap_note("the end of it: %.3f s", since(start));
	entry_clear(&r);
	rig_down(&r);
}

/*
 * A ring that is too large for the page allocator. With an IOMMU it may be in many pieces. Without
 * one only a CMA area of the kernel has it, or the map is refused.
 */
TEST(many, "a ring that is larger than one piece of the page allocator")
{
	const uint32_t n = segments_wanted(), size = n > MANY ? RFPGA_ARRAY_SIZE : 256;
	struct plan *p = plan_make(&ways[0]);
	int dmabuf = many_pages(n), end[2];
	pid_t beside;

	SKIP_IF(dmabuf < 0, "no udmabuf here");
	REQUIRE(!pipe(end), "pipe");
	tap_limit(TAP_SECONDS + n / 16384);
	p->fetch.descriptor_size = size;
	ANSWERED(apply(&boards[0], p), 0, NULL);
	beside = tap_fork_start(ask_always, end);
	program_many(dmabuf, n, size);
	CHECK(write(end[1], "", 1) == 1, "write");
	tap_fork_end(beside);
	close(dmabuf);
	close(end[0]);
	close(end[1]);
	profile(0);
}

/* --------------------------------------------------------- once more --- */

/* The map's state in the next record; 0: no record. */
static uint32_t told(const struct rig *r)
{
	struct rashpa_event e;

	return wait_fd(r->channel, POLLIN, 5000) && next_event(r->channel, &e) &&
	       e.kind == RASHPA_SOURCE_MAP ? (uint32_t)e.value : 0;
}

static void is_told(const struct rig *r, uint32_t wanted)
{
	const uint32_t is = told(r);

	CHECK(is == wanted, "record %u, not %u", is, wanted);
}

TEST_EACH(reset, formats, "after a reset the kernel makes %s again")
{
	unsigned int board = row->board;
	struct rashpa_program p = { HEAD(p), .first = ENTRY + 1 };
	struct rashpa_map_make map;
	struct rig r;
	int asked;

	p.head.flags = RASHPA_PROGRAM_AGAIN;
	up(&r, board, RASHPA_PROGRAM_AGAIN);
	CHECK(source_add(r.channel, RASHPA_SOURCE_MAP, 0) > 0, "%s", reason);
	rig_run(&r, ENTRY, 1);
	ANSWERED(fpga_reset(&boards[board]), 0, NULL);
	is_told(&r, RASHPA_MAP_STATE_PROGRAMMED);
	rig_streams(&r, ENTRY, 1);
	ANSWERED(fpga_reset(&boards[board]), 0, NULL);
	is_told(&r, RASHPA_MAP_STATE_PROGRAMMED);
	rig_streams(&r, ENTRY, 1);
	rig_down(&r);
	/* a map without RASHPA_PROGRAM_AGAIN is not programmed again */
	up(&r, board, 0);
	CHECK(source_add(r.channel, RASHPA_SOURCE_MAP, 0) > 0, "%s", reason);
	asked = fpga_map(&boards[board], r.buffer, RASHPA_BIDIRECTIONAL, &map);
	ANSWERED(call(asked, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	ANSWERED(fpga_reset(&boards[board]), 0, NULL);
	/* the record of the other map is the only one */
	is_told(&r, RASHPA_MAP_STATE_PROGRAMMED);
	CHECK(!wait_fd(r.channel, POLLIN, 0), "a record");
	entry_clear(&r);
	close(asked);
	rig_stream(&r, ENTRY, 1, 1);
	CHECK(reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE) == RFPGA_FAULT_ENTRY, "cause %u",
	      reg32(rig_dtp(&r, 0), RFPGA_DTP_FAULT_CAUSE));
	rig_down(&r);
}

/* Memory that moves under a stream: the same place, other addresses. */
TEST(moves, "the kernel programs a map again after a revocation, not during it")
{
	struct rashpa_liar_export export = liar_memory(RASHPA_LIAR_MOVABLE, RASHPA_LIAR_HONEST,
						       NULL);
	struct rashpa_program p = { HEAD(p), .first = ENTRY };
	struct rashpa_map_make map;
	const char *why = module_load("liar", &liar);
	struct rig r;
	int fd;

	SKIP_IF(why, "%s", why);
	fd = liar_export(&export);
	p.head.flags = RASHPA_PROGRAM_AGAIN;
	up(&r, 0, 0);
	close(r.map);
	munmap(r.memory, DATA);
	r.memory = map_fd(fd, DATA);
	CHECK(fpga_map(&boards[0], fd, RASHPA_BIDIRECTIONAL, &map) >= 0, "%s", reason);
	r.map = map.out_fd;
	CHECK(source_add(r.channel, RASHPA_SOURCE_MAP, map.out_id) > 0, "%s", reason);
	ANSWERED(call(r.map, RASHPA_IOC_PROGRAM, &p), 0, NULL);
	rig_run(&r, ENTRY, 1);
	liar_tell(RASHPA_LIAR_REVOKE, fd, 0);
	rig_is_idle(r.regs, 0);
	entry_clear(&r);
	is_told(&r, RASHPA_MAP_STATE_REVOKED);
	/* the map keeps its place, which is empty */
	REQUIRE(fpga_map(&boards[0], r.buffer, RASHPA_BIDIRECTIONAL, &map) >= 0, "%s", reason);
	ANSWERED(fpga_program(map.out_fd, ENTRY, NULL), EBUSY, "another map");
	close(map.out_fd);
	ANSWERED(call(r.map, RASHPA_IOC_PROGRAM, &p), ESTALE, "revoked");
	entry_clear(&r);
	liar_tell(RASHPA_LIAR_ALLOW, fd, RASHPA_LIAR_HONEST);
	is_told(&r, RASHPA_MAP_STATE_VALID);
	is_told(&r, RASHPA_MAP_STATE_PROGRAMMED);
	rig_streams(&r, ENTRY, 1);
	rig_down(&r);
	close(fd);
	close(liar);
	CHECK(!module_unload("liar"), "unload");
}

void setup(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ids); i++) {
		if (!function_open(&boards[i], RFPGA_PCI_VENDOR, ids[i], 0))
			tap_skip_all("no boards that fetch (--fpga-option N:--fetch=array)");
		profile(i);
		rig_load(&boards[i]);
	}
	fpga_watch(&boards[0]);
	fpga_watch(&boards[1]);
}
