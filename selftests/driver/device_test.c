// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check kernel=any,debug iommu=on seconds=10 */
/* /dev/rashpa/fpgaN: identity, BARs, profile, windows, quiesce, reset, privileges. */
#include <linux/capability.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include <rashpa-fpga.h>
#include "common.h"

#define MEMFDS	200

static struct fpga f;

static u64 bar_length(uint32_t bar)
{
	struct rashpa_region_info info = { HEAD(info), .bar = bar };

	return call(f.fd, RASHPA_IOC_REGION_INFO, &info) ? 0 : info.out_length;
}

/* ---------------------------------------------------------- identity ---- */

TEST(info, "DEVICE_INFO identifies the function")
{
	struct rashpa_device_info info;
	unsigned int domain, bus, device, function;

	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_vendor == RFPGA_PCI_VENDOR && info.out_device == RFPGA_PCI_DEVICE,
	      "%04x:%04x", info.out_vendor, info.out_device);
	sscanf(f.bdf, "%x:%x:%x.%x", &domain, &bus, &device, &function);
	CHECK(info.out_domain == domain && info.out_bus == bus &&
	      info.out_devfn == (device << 3 | function), "%x:%x devfn 0x%x, is at %s",
	      info.out_domain, info.out_bus, info.out_devfn, f.bdf);
	CHECK(info.out_vectors > 0, "no vectors");
	CHECK(info.out_dma_bits == 64, "%u bits", info.out_dma_bits);
	CHECK(info.out_state == RASHPA_STATE_READY, "state %u", info.out_state);
	CHECK(!info.out_maps && !info.out_windows, "%u maps, %u windows", info.out_maps,
	      info.out_windows);
}

TEST(regions, "REGION_INFO reports the BARs")
{
	static const struct {
		uint32_t flags;
		u64 length;	/* 0: any */
	} want[RASHPA_BARS] = {
		[0] = { RASHPA_REGION_MEMORY, RFPGA_BAR_REGS_SIZE },
		[1] = { RASHPA_REGION_MEMORY, 0 },
		[2] = { RASHPA_REGION_MEMORY | RASHPA_REGION_64BIT,
			RFPGA_BAR_DOORBELL_SIZE },
		[4] = { RASHPA_REGION_MEMORY | RASHPA_REGION_64BIT |
			RASHPA_REGION_PREFETCH, 0 },
	};
	uint32_t bar;

	for (bar = 0; bar < RASHPA_BARS; bar++) {
		struct rashpa_region_info info = { HEAD(info), .bar = bar,
						   .out_flags = 0xff, .out_length = 9 };

		ANSWERED(call(f.fd, RASHPA_IOC_REGION_INFO, &info), 0, NULL);
		CHECK(info.out_flags == want[bar].flags, "BAR %u: flags 0x%x", bar, info.out_flags);
		CHECK(want[bar].length ? info.out_length == want[bar].length :
		      !info.out_length == !want[bar].flags, "BAR %u: %llu bytes", bar,
		      info.out_length);
	}
}

TEST(bad_regions, "REGION_INFO refuses invalid BARs")
{
	static const uint32_t bars[] = { 6, 7, 255, 0x80000000, UINT_MAX };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bars); i++) {
		struct rashpa_region_info info = { HEAD(info), .bar = bars[i] };
		char says[24];

		snprintf(says, sizeof(says), "BAR %u", bars[i]);
		ANSWERED(call(f.fd, RASHPA_IOC_REGION_INFO, &info), EINVAL, says);
	}
}

TEST(second_bind, "a bound function cannot be bound again")
{
	struct rashpa_device_info info;

	CHECK(fpga_bind(&f) < 0, "a bound function was bound again");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
}

/* ----------------------------------------------------------- profile ---- */

enum part { PROFILE, PWINDOW, STEP, PTABLE, LAYOUT };

#define P(field)	PROFILE, offsetof(struct rashpa_profile_set, field)
#define W(field)	PWINDOW, offsetof(struct rashpa_profile_window, field)
#define S(field)	STEP, offsetof(struct rashpa_profile_step, field)
#define T(field)	PTABLE, offsetof(struct rashpa_profile_table, field)
#define L(field)	LAYOUT, offsetof(struct rashpa_layout, field)

/* one field of a valid profile is made wrong; units/profile_unit.c has all of each part */
static const struct bad_field bad_profiles[] = {
	{ "with-windows-nowhere", P(windows), 8, 8, EFAULT, NULL },
	{ "with-windows-in-the-kernel", P(windows), 8, 1ULL << 63, EFAULT, NULL },
	{ "with-steps-nowhere", P(steps), 8, 8, EFAULT, NULL },
	{ "with-a-dma-mask-of-23-bits", P(dma_bits), 4, 23, EINVAL, "23 bits" },
	{ "with-an-undefined-flag", P(head.flags), 4, 4, EINVAL, "flag" },
	{ "with-a-table-nowhere", P(table), 8, 8, EFAULT, NULL },
	{ "with-a-reserved-field", P(__reserved), 4, 1, EINVAL, "reserved" },
	{ "with-windows-that-are-too-short", P(window_size), 4, 60, EINVAL, "60 bytes" },
	{ "with-steps-that-are-too-short", P(step_size), 4, 28, EINVAL, "28 bytes" },
	{ "with-a-table-that-is-too-short", P(table_size), 4, 40, EINVAL, "40 bytes" },
	{ "with-windows-of-no-size", P(window_size), 4, 0, EINVAL, "0 bytes" },
	{ "with-windows-of-uint_max-bytes", P(window_size), 4, UINT_MAX, E2BIG, "4294967295" },
	{ "with-windows-that-have-grown", P(window_size), 4,
	  2 * sizeof(struct rashpa_profile_window), E2BIG, "driver" },
	{ "with-steps-that-have-grown", P(step_size), 4, 2 * sizeof(struct rashpa_profile_step),
	  E2BIG, "driver" },
	{ "with-a-table-that-has-grown", P(table_size), 4, sizeof(struct rashpa_profile_table) + 8,
	  E2BIG, "driver" },

	{ "with-a-table-beyond-its-bar", T(offset), 8, RFPGA_BAR_REGS_SIZE, ERANGE, "table" },
	{ "with-a-layout-nowhere", T(layout), 8, 8, EFAULT, NULL },
	{ "with-a-layout-of-no-size", T(layout_size), 4, 0, EINVAL, "0 bytes" },
	{ "with-a-layout-that-is-too-short", T(layout_size), 4, 44, EINVAL, "44 bytes" },
	{ "with-a-layout-that-has-grown", T(layout_size), 4, sizeof(struct rashpa_layout) + 8,
	  E2BIG, "driver" },
	{ "with-a-layout-of-uint_max-bytes", T(layout_size), 4, UINT_MAX, E2BIG, "4294967295" },
	{ "with-a-table-of-stride-0", L(stride), 4, 0, EINVAL, "stride of 0" },

	{ "whose-window-has-no-name", W(name), 1, 0, EINVAL, "name" },
	{ "whose-window-has-a-slash-in-its-name", W(name), 1, '/', EINVAL, "name" },
	{ "whose-window-begins-with-a-dot", W(name), 1, '.', EINVAL, "dot" },
	{ "with-a-window-in-bar-3", W(bar), 4, 3, ERANGE, "a1|BAR 3" },
	{ "with-a-window-in-bar-uint_max", W(bar), 4, UINT_MAX, ERANGE, "a1|BAR" },
	{ "whose-window-begins-beyond-its-bar", W(offset), 8, RFPGA_BAR_REGS_SIZE, ERANGE,
	  "a1|BAR 0" },
	{ "whose-window-overflows", W(offset), 8, -PAGE, ERANGE, "a1|BAR 0" },

	{ "with-step-operation-0", S(op), 4, 0, EINVAL, "step 0|operation" },
	{ "with-a-step-in-bar-uint_max", S(bar), 4, UINT_MAX, ERANGE, "step 0|BAR" },
	{ "with-a-step-at-the-end-of-its-bar", S(offset), 8, RFPGA_BAR_REGS_SIZE, ERANGE,
	  "step 0|BAR 0" },
};

static struct rashpa_profile_window good_windows[] = {
	{ .name = "a1", .bar = 0, .offset = 0, .length = PAGE },
	{ .name = "b1", .bar = 0, .offset = PAGE, .length = PAGE },
};

static const struct rashpa_profile_step good_steps[] = {
	{ .op = RASHPA_STEP_WRITE, .bar = 0, .offset = RFPGA_CONTROL,
	  .value = RFPGA_CONTROL_STOP, .mask = ~0U },
	{ .op = RASHPA_STEP_WAIT, .bar = 0, .offset = RFPGA_STATUS,
	  .mask = RFPGA_STATUS_BUSY, .timeout_us = 500000 },
};

TEST_EACH(bad_profile, bad_profiles, "a profile %s is refused")
{
	struct rashpa_profile_window windows[2];
	struct rashpa_profile_step steps[2];
	/* with a field of a newer program */
	struct { struct rashpa_profile_table table; u64 more; } tables = { .more = 1 };
	struct { struct rashpa_layout layout; u64 more; } layouts = { .more = 1 };
	struct rashpa_device_info before, after;
	struct rashpa_profile_set p = { HEAD(p), ARRAY(window, windows, 2),
					ARRAY(step, steps, 2), TABLE(tables.table) };
	char *part[] = { (char *)&p, (char *)windows, (char *)steps, (char *)&tables.table,
			 (char *)&layouts.layout };

	memcpy(windows, good_windows, sizeof(good_windows));
	memcpy(steps, good_steps, sizeof(good_steps));
	tables.table = fpga_table;
	tables.table.layout = (uintptr_t)&layouts.layout;
	layouts.layout = fpga_layout;
	/* little-endian, as the machine is */
	memcpy(part[row->part] + row->at, &row->value, row->size);
	ANSWERED(fpga_info(&f, &before), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), row->err, row->says);
	ANSWERED(fpga_info(&f, &after), 0, NULL);
	CHECK(before.out_flags == after.out_flags && before.out_dma_bits == after.out_dma_bits,
	      "something changed");
}

TEST(profile_kept, "a refused profile leaves the one before in place")
{
	struct rashpa_profile_set bad = { HEAD(bad), .dma_bits = 99 };
	struct rashpa_window_make w = { HEAD(w), .name = "a1" };
	struct rashpa_device_info info;

	ANSWERED(fpga_profile(&f, RASHPA_PROFILE_DISCLOSE, good_windows, 2), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &bad), EINVAL, "99");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_flags & RASHPA_DEVICE_PROFILE, "no profile");
	CHECK(info.out_flags & RASHPA_DEVICE_DISCLOSE, "disclose is lost");
	if (ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), 0, NULL)) {
		CHECK(w.out_length == PAGE, "length %llu", w.out_length);
		close(w.out_fd);
	}
	/* replaced as a whole */
	ANSWERED(fpga_profile_none(&f), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(!(info.out_flags & RASHPA_DEVICE_DISCLOSE), "disclose has stayed");
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), ENOENT, "a1");
}

TEST(profile_busy, "the profile stays while windows or maps exist")
{
	int win = fpga_window(&f, 0, 0, PAGE, 0);
	int fd = buffer_alloc(PAGE, NULL);
	struct rashpa_map_make map;
	int m;

	ANSWERED(fpga_profile_none(&f), EBUSY, "1 windows|close");
	close(win);
	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	ANSWERED(fpga_profile_none(&f), EBUSY, "1 maps|close");
	close(m);
	close(fd);
	ANSWERED(fpga_profile_none(&f), 0, NULL);
}

TEST(dma_bits, "the profile sets the DMA mask")
{
	struct rashpa_profile_set p = { HEAD(p), .dma_bits = 32 };
	struct rashpa_device_info info;

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_dma_bits == 32, "%u bits", info.out_dma_bits);
	p.dma_bits = 64;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_dma_bits == 64, "%u bits", info.out_dma_bits);
	/* a function without a profile gets a mask that each function supports */
	ANSWERED(fpga_profile_none(&f), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_dma_bits == 32, "%u bits", info.out_dma_bits);
	fpga_close(&f);
	CHECK(!fpga_unbind(&f) && !fpga_bind(&f) && fpga_open(&f, 0), "bind: %s", reason);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(!(info.out_flags & RASHPA_DEVICE_PROFILE) && info.out_dma_bits == 32,
	      "%u bits without a profile", info.out_dma_bits);
	fpga_watch(&f);
}

/* Entries from before the profile lead anywhere; a reset need not clear them. */
TEST(profile_clears, "a profile clears its table, and resets if it may")
{
	struct rashpa_profile_set p = { HEAD(p), STEPS(good_steps), TABLE(fpga_table) };
	const uint32_t last = RFPGA_TABLE + RFPGA_TABLE_SIZE - RFPGA_ENTRY_STRIDE;
	char *regs = fpga_regs(&f);

	set32(regs, RFPGA_SCRATCH, 5);
	set64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR, 0x1234567800000000);
	set32(regs, last + RFPGA_ENTRY_CONTROL, RFPGA_ENTRY_VALID);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	p.head.flags = RASHPA_PROFILE_NO_RESET;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	regs = fpga_regs(&f);
	CHECK(!reg64(regs, RFPGA_TABLE + RFPGA_ENTRY_ADDR), "the first entry is left");
	CHECK(!reg32(regs, last + RFPGA_ENTRY_CONTROL), "the last entry is left");
	CHECK(reg32(regs, RFPGA_SCRATCH) == 5, "it was reset");
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	p.head.flags = 0;
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	regs = fpga_regs(&f);
	CHECK(!reg32(regs, RFPGA_SCRATCH), "it was not reset");
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

/* If the function does not stop, the profile is set, but the function cannot be used. */
TEST(profile_stuck, "a profile of a function that does not stop")
{
	struct rashpa_profile_step step = { .op = RASHPA_STEP_WAIT, .bar = 0,
					    .offset = RFPGA_ID, .mask = ~0U,
					    .timeout_us = 1000 };
	struct rashpa_profile_set p = { HEAD(p), STEP(step) };
	struct rashpa_device_info info;

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), ETIMEDOUT, "idle|reset");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_STUCK, "state %u", info.out_state);
	CHECK(fpga_events(&f, 0) == -EIO, "a stuck function got a channel");
	ANSWERED(fpga_reset(&f), EIO, "still");
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY, "state %u", info.out_state);
}

TEST(profile_listened, "a profile serves a channel that is older")
{
	int channel = fpga_events(&f, 0);
	struct rashpa_device_info info;

	CHECK(channel >= 0, "%s", reason);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_flags & RASHPA_DEVICE_MASTER, "bus mastering is off");
	close(channel);
}

/* ----------------------------------------------------------- windows ---- */

static const struct {
	const char *key;
	uint32_t bar, cache;
	u64 offset, length;
	const char *name;
	int err;
	const char *says;
} bad_windows[] = {
	{ "of-length-0", 0, 0, 0, 0, "", EINVAL, "pages" },
	{ "that-begins-in-a-page", 0, 0, 8, PAGE, "", EINVAL, "pages|0x8" },
	{ "of-a-part-of-a-page", 0, 0, 0, 100, "", EINVAL, "pages" },
	{ "behind-the-bar", 0, 0, RFPGA_BAR_REGS_SIZE, PAGE, "", ERANGE, "BAR 0|0x10000" },
	{ "far-behind-the-bar", 0, 0, 1ULL << 40, PAGE, "", ERANGE, "BAR 0" },
	{ "longer-than-the-bar", 0, 0, 0, RFPGA_BAR_REGS_SIZE + PAGE, "", ERANGE, "BAR 0" },
	{ "that-leaves-the-bar", 0, 0, PAGE, RFPGA_BAR_REGS_SIZE, "", ERANGE, "BAR 0" },
	{ "whose-offset-plus-length-overflows-to-0", 0, 0, -PAGE, PAGE, "", ERANGE, "BAR 0" },
	{ "whose-offset-plus-length-overflows-to-a-page", 0, 0, -PAGE, 2 * PAGE, "", ERANGE,
	  "BAR 0" },
	{ "of-2to64-4096-bytes", 0, 0, PAGE, -PAGE, "", ERANGE, "BAR 0" },
	{ "of-ullong_max-bytes", 0, 0, 0, ULLONG_MAX, "", EINVAL, "pages" },
	{ "in-bar-3-which-is-not-there", 3, 0, 0, PAGE, "", ERANGE, "BAR 3|fpga" },
	{ "in-bar-6", 6, 0, 0, PAGE, "", ERANGE, "BAR 6" },
	{ "in-bar-uint_max", UINT_MAX, 0, 0, PAGE, "", ERANGE, "BAR 4294967295" },
	{ "of-the-msi-x-table-only", RFPGA_BAR_MSIX, 0, PAGE, PAGE, "", EBUSY, "MSI-X|BAR 1" },
	{ "with-cache-mode-4", 0, 4, 0, PAGE, "", EINVAL, "cache mode 4" },
	{ "with-cache-mode-uint_max", 0, UINT_MAX, 0, PAGE, "", EINVAL, "cache" },
	{ "that-is-cached", 0, RASHPA_CACHE_CACHED, 0, PAGE, "", EOPNOTSUPP, "cached" },
	{ "write-combined-where-that-is-not-harmless", 0, RASHPA_CACHE_WC, 0, PAGE, "", EOPNOTSUPP,
	  "BAR 0|prefetchable" },
	{ "whose-name-is-not-in-the-profile", 0, 0, 0, 0, "nothing", ENOENT, "nothing|fpga" },
	{ "with-name-and-range", 0, 0, 0, PAGE, "a1", EINVAL, "a1" },
	{ "with-name-and-bar", 1, 0, 0, 0, "a1", EINVAL, "a1" },
	{ "with-name-and-cache-mode", 0, RASHPA_CACHE_UC, 0, 0, "a1", EINVAL, "a1" },
	{ "with-a-slash-in-its-name", 0, 0, 0, 0, "a/1", EINVAL, "name" },
	{ "with-a-dot-before-its-name", 0, 0, 0, 0, ".a1", EINVAL, "dot" },
};

TEST_EACH(bad_window, bad_windows, "a window %s is refused")
{
	struct rashpa_window_make w = {
		HEAD(w), .bar = row->bar, .cache = row->cache, .offset = row->offset,
		.length = row->length, .out_fd = -7,
	};

	strcpy(w.name, row->name);
	if (!strcmp(row->name, "a1"))
		ANSWERED(fpga_profile(&f, RASHPA_PROFILE_NO_RESET, good_windows, 2), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), row->err, row->says);
	CHECK(w.out_fd == -7, "out_fd was written on failure");
}

TEST(window_name_bytes, "a window's name is checked to its last byte")
{
	struct rashpa_window_make w = { HEAD(w), .name = "a1" };

	w.name[RASHPA_PROFILE_NAME_SIZE - 1] = 'x';
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), EINVAL, "after the end");
	memset(w.name, 'a', sizeof(w.name));
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &w), ENAMETOOLONG, "31");
}

TEST(window, "a window shows the registers")
{
	struct rashpa_device_info dev;
	struct rashpa_info info;
	int win = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	void *regs;

	if (!ANSWERED(win < 0 ? win : 0, 0, NULL))
		return;
	CHECK(fcntl(win, F_GETFD) == FD_CLOEXEC, "not close-on-exec");
	ANSWERED(buffer_info(win, &info), 0, NULL);
	CHECK(info.out_kind == RASHPA_KIND_WINDOW, "kind %u", info.out_kind);
	CHECK(info.out_length == RFPGA_BAR_REGS_SIZE, "length %llu", info.out_length);
	CHECK(info.out_cache == RASHPA_CACHE_UC, "cache %u", info.out_cache);
	CHECK(!info.out_backend && !info.out_name[0], "it looks like a buffer");
	ANSWERED(fpga_info(&f, &dev), 0, NULL);
	CHECK(dev.out_windows == 1, "%u windows", dev.out_windows);
	regs = map_fd(win, RFPGA_BAR_REGS_SIZE);
	CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "ID 0x%x", reg32(regs, RFPGA_ID));
	set32(regs, RFPGA_SCRATCH, 0x12345678);
	CHECK(reg32(regs, RFPGA_SCRATCH) == 0x12345678, "scratch 0x%x", reg32(regs, RFPGA_SCRATCH));
	ANSWERED(buffer_info(win, &info), 0, NULL);
	CHECK(info.out_mappings == 1, "%u mappings", info.out_mappings);
	unmap_fd(regs, RFPGA_BAR_REGS_SIZE, win);
}

static void *map_at(int win, u64 offset, u64 length)
{
	return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, win, offset);
}

/* Does the kernel's log have a new line with @what? */
static bool logged(int log, const char *what)
{
	char line[1024];
	ssize_t n;

	while ((n = read(log, line, sizeof(line) - 1)) > 0) {
		line[n] = '\0';
		if (strstr(line, what))
			return true;
	}
	return false;
}

/* As on a board with the MSI-X table in its only BAR: here it is in the second page of four. */
TEST(window_around_table, "a window of the whole BAR shows all pages but that of the MSI-X table")
{
	const u64 length = bar_length(RFPGA_BAR_MSIX);
	int win = fpga_window(&f, RFPGA_BAR_MSIX, 0, length, 0);
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	const u64 closed[][2] = { { 0, length }, { PAGE, PAGE }, { 0, 2 * PAGE },
				  { PAGE, length - PAGE } };
	void *before, *after, *p;
	size_t i;

	REQUIRE(win >= 0 && length == 4 * PAGE, "%llu bytes: %s", length, reason);
	CHECK(log >= 0 && lseek(log, 0, SEEK_END) >= 0, "/dev/kmsg: %s", strerror(errno));
	for (i = 0; i < ARRAY_SIZE(closed); i++) {
		p = map_at(win, closed[i][0], closed[i][1]);
		CHECK(p == MAP_FAILED && errno == EBUSY, "0x%llx + 0x%llx: %s", closed[i][0],
		      closed[i][1], strerror(errno));
	}
	CHECK(logged(log, "the page at 0x1000 of BAR 1 holds the MSI-X table"),
	      "the log does not name the page");
	before = map_at(win, 0, PAGE);
	after = map_at(win, 2 * PAGE, 2 * PAGE);
	REQUIRE(before != MAP_FAILED && after != MAP_FAILED, "%s", strerror(errno));
	fill(before, PAGE, 1);
	fill(after, 2 * PAGE, 2);
	CHECK(filled(before, PAGE, 1) && filled(after, 2 * PAGE, 2), "these pages keep nothing");
	p = mremap(before, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
	CHECK(p == MAP_FAILED, "it grew over the table");
	unmap_fd(before, PAGE, win);
	munmap(after, 2 * PAGE);
	close(log);
}

/*
 * O_PATH keeps the name of the window's file, and with it the window, after the file itself is
 * freed. The driver must not touch it then: another file may have taken its place in memory,
 * and would lose a page.
 */
TEST(window_name_stays, "RESET with a window of which only the name is open")
{
	int win = fpga_window(&f, RFPGA_BAR_REGS, 0, RFPGA_BAR_REGS_SIZE, 0);
	int fds[MEMFDS], name, i, lost = 0;
	char path[40], *p[MEMFDS];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", win);
	name = open(path, O_PATH | O_CLOEXEC);
	REQUIRE(win >= 0 && name >= 0, "open: %s", strerror(errno));
	close(win);
	/* its memory is free for others after this */
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	for (i = 0; i < MEMFDS; i++) {
		fds[i] = memfd_create("st", MFD_CLOEXEC);
		CHECK(!ftruncate(fds[i], PAGE), "ftruncate: %s", strerror(errno));
		p[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fds[i], 0);
		*p[i] = 1;
	}
	ANSWERED(fpga_reset(&f), 0, NULL);
	for (i = 0; i < MEMFDS; i++) {
		lost += *p[i] != 1;
		unmap_fd(p[i], PAGE, fds[i]);
	}
	CHECK(!lost, "%d pages of other files are lost", lost);
	close(name);
}

TEST(window_part, "a window shows its part and no more")
{
	int win = fpga_window(&f, RFPGA_BAR_REGS, 0, 2 * PAGE, RASHPA_CACHE_UC);
	void *whole = fpga_regs(&f), *part, *p;

	REQUIRE(win >= 0, "no window");
	/* DTP 0 is in the second page */
	part = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, win, PAGE);
	if (CHECK(part != MAP_FAILED, "mmap: %s", strerror(errno))) {
		set32(part, RFPGA_DTP_SRC_X, 77);
		CHECK(reg32(whole, RFPGA_DTP(0) + RFPGA_DTP_SRC_X) == 77, "it is elsewhere");
		set32(part, RFPGA_DTP_SRC_X, 0);
		munmap(part, PAGE);
	}
	p = mmap(NULL, 3 * PAGE, PROT_READ, MAP_SHARED, win, 0);
	CHECK(p == MAP_FAILED && errno == EINVAL, "more than the window was mapped");
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, win, 2 * PAGE);
	CHECK(p == MAP_FAILED && errno == EINVAL, "behind the window was mapped");
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, win, 0);
	CHECK(p == MAP_FAILED && errno == EINVAL, "mapped privately");
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, win, 0);
	CHECK(p == MAP_FAILED && errno == EINVAL, "mapped privately");
	unmap_fd(whole, RFPGA_BAR_REGS_SIZE, win);
}

TEST(window_memory, "on-board memory can be reached to its end")
{
	u64 length = bar_length(RFPGA_BAR_MEMORY);
	int wc, uc;
	void *p, *q;

	REQUIRE(length >= MIB, "on-board memory of %llu bytes", length);
	wc = fpga_window(&f, RFPGA_BAR_MEMORY, 0, MIB, RASHPA_CACHE_WC);
	uc = fpga_window(&f, RFPGA_BAR_MEMORY, length - PAGE, PAGE, RASHPA_CACHE_UC);
	REQUIRE(wc >= 0 && uc >= 0, "%s", reason);
	p = map_fd(wc, MIB);
	q = map_fd(uc, PAGE);
	fill(p, MIB, 1);
	fill(q, PAGE, 2);
	CHECK(filled(p, MIB, 1), "on-board memory does not keep what is written");
	CHECK(filled(q, PAGE, 2), "its last page does not keep what is written");
	unmap_fd(p, MIB, wc);
	unmap_fd(q, PAGE, uc);
}

/* The lines of the kernel's list of cache modes that have the range; -1: there is no list. */
static int memtypes(u64 start, u64 length)
{
	FILE *file = fopen("/sys/kernel/debug/x86/pat_memtype_list", "re");
	unsigned long long first, last;
	char line[128];
	int n = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		n += sscanf(line, "PAT: [mem %llx-%llx", &first, &last) == 2 &&
		     first < start + length && start < last;
	fclose(file);
	return n;
}

static u64 bar_address(unsigned int bar)
{
	unsigned long long start = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource", f.bdf);
	file = fopen(path, "re");
	do
		CHECK(file && fscanf(file, "%llx %*x %*x", &start) == 1, "%s", path);
	while (tap_ok() && bar--);
	if (file)
		fclose(file);
	return start;
}

/* Registers have one cache mode at a time: CPUs could not keep two apart. */
TEST(window_modes, "registers have one cache mode at a time")
{
	int wc = fpga_window(&f, RFPGA_BAR_MEMORY, 0, MIB, RASHPA_CACHE_WC), uc, same;

	REQUIRE(wc >= 0, "%s", reason);
	ANSWERED(fpga_window(&f, RFPGA_BAR_MEMORY, 0, PAGE, RASHPA_CACHE_UC), EBUSY,
		 "BAR 4|0x0 + 0x100000|write-combined");
	ANSWERED(fpga_window(&f, RFPGA_BAR_MEMORY, MIB - PAGE, 2 * PAGE, 0), EBUSY,
		 "BAR 4|write-combined");
	uc = fpga_window(&f, RFPGA_BAR_MEMORY, MIB, PAGE, RASHPA_CACHE_UC);
	same = fpga_window(&f, RFPGA_BAR_MEMORY, PAGE, MIB, RASHPA_CACHE_WC);
	CHECK(uc >= 0, "next to it: %s", reason);
	ANSWERED(same, EBUSY, "uncached");
	close(uc);
	same = fpga_window(&f, RFPGA_BAR_MEMORY, PAGE, MIB, RASHPA_CACHE_WC);
	CHECK(same >= 0, "the same mode: %s", reason);
	close(same);
	close(wc);
	uc = fpga_window(&f, RFPGA_BAR_MEMORY, 0, PAGE, RASHPA_CACHE_UC);
	CHECK(uc >= 0, "after it: %s", reason);
	close(uc);
}

/* The kernel maps the register of a quiesce step uncached. */
TEST(window_mode_kernel, "registers that the kernel has mapped are not combined")
{
	const struct rashpa_profile_step step = { .op = RASHPA_STEP_WAIT,
						  .bar = RFPGA_BAR_MEMORY, .offset = 4 * PAGE,
						  .mask = 1, .value = 1, .timeout_us = 1000 };
	struct rashpa_profile_set p = { HEAD(p), STEP(step) };
	int wc = fpga_window(&f, RFPGA_BAR_MEMORY, 4 * PAGE, PAGE, RASHPA_CACHE_WC);
	void *at = map_fd(wc, PAGE);

	set32(at, 0, 1);	/* idle */
	unmap_fd(at, PAGE, wc);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	ANSWERED(fpga_window(&f, RFPGA_BAR_MEMORY, 4 * PAGE, PAGE, RASHPA_CACHE_WC), EBUSY,
		 "BAR 4|quiesce step|uncached");
	ANSWERED(fpga_window(&f, RFPGA_BAR_MEMORY, 0, MIB, RASHPA_CACHE_WC), EBUSY, "BAR 4");
	wc = fpga_window(&f, RFPGA_BAR_MEMORY, 8 * PAGE, PAGE, RASHPA_CACHE_WC);
	CHECK(wc >= 0, "next to it: %s", reason);
	close(wc);
	ANSWERED(fpga_profile_none(&f), 0, NULL);
	wc = fpga_window(&f, RFPGA_BAR_MEMORY, 4 * PAGE, PAGE, RASHPA_CACHE_WC);
	CHECK(wc >= 0, "after it: %s", reason);
	close(wc);
}

/* A window that outlives its function keeps no cache mode. */
TEST(window_mode_ends, "the cache modes of a function end when it goes")
{
	const u64 start = bar_address(RFPGA_BAR_MEMORY);
	int wc, before, during, after;

	before = memtypes(start, MIB);
	SKIP_IF(before < 0, "no list of cache modes");
	wc = fpga_window(&f, RFPGA_BAR_MEMORY, 0, MIB, RASHPA_CACHE_WC);
	during = memtypes(start, MIB);
	CHECK(wc >= 0 && during == before + 1, "%d of them, then %d", before, during);
	CHECK(!fpga_unbind(&f), "unbind");
	after = memtypes(start, MIB);
	CHECK(after == before, "%d of them before, %d after the function has gone", before, after);
	close(wc);
	CHECK(memtypes(start, MIB) == before, "it is not the same after the window's end");
	fpga_again(&f);
}

static void child_window(void *regs)
{
	CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "the child does not see it");
}

TEST(window_fork, "a child shares the window")
{
	int win = fpga_window(&f, 0, 0, PAGE, 0);
	void *regs = map_fd(win, PAGE);

	close(win);
	tap_fork(child_window, regs);
	CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "it is gone after the child");
	munmap(regs, PAGE);
}

/* --------------------------------------------------- quiesce, reset ----- */

TEST(quiesce, "QUIESCE stops the function and is counted")
{
	struct rashpa_device_info before, after;
	struct rashpa_map_make map;
	int channel, fd;

	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	channel = fpga_events(&f, 0);
	ANSWERED(fpga_info(&f, &before), 0, NULL);
	CHECK(before.out_flags & RASHPA_DEVICE_MASTER, "bus mastering is off");
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	ANSWERED(fpga_info(&f, &after), 0, NULL);
	CHECK(after.out_quiesces == before.out_quiesces + 1, "%llu quiesces",
	      (after.out_quiesces - before.out_quiesces));
	/* the end of a map whose addresses were seen checks twice, and stops once */
	fd = buffer_alloc(PAGE, NULL);
	fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	table_seen(&map);
	close(map.out_fd);
	close(fd);
	ANSWERED(fpga_info(&f, &after), 0, NULL);
	CHECK(after.out_quiesces == before.out_quiesces + 2, "%llu quiesces",
	      (after.out_quiesces - before.out_quiesces));
	close(channel);
}

/* A function that is busy as long as its scratch register says so, and all its registers. */
static void *busy_profile(uint32_t step_us, uint32_t quiesce_us, uint32_t flags)
{
	const struct rashpa_profile_step steps[] = {
		{ .op = RASHPA_STEP_WRITE, .bar = 0, .offset = RFPGA_DTP(0) + RFPGA_DTP_SRC_X,
		  .value = 77, .mask = ~0U },
		{ .op = RASHPA_STEP_WAIT, .bar = 0, .offset = RFPGA_SCRATCH, .mask = 1,
		  .timeout_us = step_us, .flags = flags },
	};
	struct rashpa_profile_set p = { HEAD(p), STEPS(steps), .quiesce_us = quiesce_us };

	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), 0, NULL);
	return fpga_regs(&f);
}

TEST(stuck, "a function that does not stop is stuck until reset")
{
	void *regs = busy_profile(1000, 0, 0);
	struct rashpa_device_info info;
	int channel;

	set32(regs, RFPGA_SCRATCH, 1);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	channel = fpga_events(&f, 0);
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "fpga|reset");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_STUCK, "state %u", info.out_state);
	CHECK(!(info.out_flags & RASHPA_DEVICE_MASTER), "bus mastering is on");
	CHECK(fpga_events(&f, 0) == -EIO, "a stuck function got a channel");
	close(channel);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_reset(&f), 0, NULL);
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY, "state %u", info.out_state);
	channel = fpga_events(&f, 0);
	CHECK(channel >= 0, "no channel after the reset: %s", reason);
	close(channel);
}

/* The stop has failed, a reset has ended it, and the users go on. */
static void check_reset(int channel, void *regs)
{
	static const u64 values[] = { RASHPA_DEVICE_EVENT_STUCK, RASHPA_DEVICE_EVENT_RESET };
	struct rashpa_device_info info;
	struct rashpa_event e = {};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		CHECK(next_event(channel, &e) && e.value == values[i], "event %zu: %llu", i,
		      e.value);
	CHECK(!next_event(channel, &e), "one more event, %llu", e.value);
	CHECK(!reg32(regs, RFPGA_SCRATCH), "it was not reset");
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	CHECK(info.out_state == RASHPA_STATE_READY && info.out_flags & RASHPA_DEVICE_MASTER,
	      "state %u, flags 0x%x", info.out_state, info.out_flags);
}

TEST(else_reset, "a function that does not stop is reset, if its profile says so")
{
	void *regs = busy_profile(1000, 0, RASHPA_STEP_RESET);
	int fd = buffer_alloc(PAGE, NULL);
	int channel = fpga_listen(&f, 0, RASHPA_SOURCE_DEVICE, 0);
	struct rashpa_map_make map;

	set32(regs, RFPGA_SCRATCH, 1);
	ANSWERED(fpga_quiesce(&f), 0, NULL);
	check_reset(channel, regs);
	/* the end of a map whose addresses the function may know */
	fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	table_seen(&map);
	set32(regs, RFPGA_SCRATCH, 1);
	close(map.out_fd);
	check_reset(channel, regs);
	close(fd);
	close(channel);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
}

/* The steps may take longer, each, and are tried twice: all of it has one limit. */
TEST(quiesce_limit, "a quiesce sequence has one time limit")
{
	const uint32_t step_us = RASHPA_QUIESCE_US_MAX;
	void *regs = busy_profile(step_us, 10000, 0);
	u64 begin, ns;
	int channel;

	channel = fpga_events(&f, 0);
	set32(regs, RFPGA_SCRATCH, 1);
	begin = now_ns();
	ANSWERED(fpga_quiesce(&f), ETIMEDOUT, "idle");
	/* a thousand times as long */
	ns = now_ns() - begin;
	CHECK(ns < 1000ULL * step_us, "it took %llu ns", ns);
	close(channel);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
	ANSWERED(fpga_reset(&f), 0, NULL);
}

static void *quiesce_slowly(void *arg)
{
	return (void *)(intptr_t)fpga_quiesce(&f);
}

TEST(quiesce_meanwhile, "queries do not wait for a function that still stops")
{
	void *regs = busy_profile(RASHPA_QUIESCE_US_MAX, RASHPA_QUIESCE_US_MAX, 0), *result;
	int fd = buffer_alloc(PAGE, NULL), channel = fpga_events(&f, 0), m;
	struct rashpa_region_info region = { HEAD(region) };
	struct rashpa_device_info info;
	struct rashpa_map_make map;
	struct rashpa_table table;
	struct rashpa_event e;
	pthread_t thread;

	REQUIRE(regs && channel >= 0, "%s", reason);
	m = fpga_map(&f, fd, RASHPA_BIDIRECTIONAL, &map);
	fcntl(m, F_SETFL, O_NONBLOCK);
	fcntl(channel, F_SETFL, O_NONBLOCK);
	set32(regs, RFPGA_DTP(0) + RFPGA_DTP_SRC_X, 0);
	set32(regs, RFPGA_SCRATCH, 1);
	pthread_create(&thread, NULL, quiesce_slowly, NULL);
	while (reg32(regs, RFPGA_DTP(0) + RFPGA_DTP_SRC_X) != 77)
		;	/* the first step */
	ANSWERED(fpga_info(&f, &info), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_REGION_INFO, &region), 0, NULL);
	CHECK(read(m, &table, sizeof(table)) < 0 && errno == EAGAIN, "map: %s", strerror(errno));
	CHECK(read(channel, &e, sizeof(e)) < 0 && errno == EAGAIN, "channel: %s", strerror(errno));
	/* QUIESCE has not given up yet: the queries have not waited for that */
	set32(regs, RFPGA_SCRATCH, 0);
	pthread_join(thread, &result);
	CHECK(!result, "QUIESCE: %s", strerror(-(int)(intptr_t)result));
	close(m);
	close(fd);
	close(channel);
	munmap(regs, RFPGA_BAR_REGS_SIZE);
	ANSWERED(fpga_profile(&f, 0, NULL, 0), 0, NULL);
}

TEST(reset, "RESET resets, and windows stay")
{
	int win = fpga_window(&f, 0, 0, PAGE, 0);
	void *regs = map_fd(win, PAGE);

	close(win);
	set32(regs, RFPGA_SCRATCH, 5);
	ANSWERED(fpga_reset(&f), 0, NULL);
	CHECK(reg32(regs, RFPGA_ID) == RFPGA_ID_VALUE, "the window is dead, ID 0x%x",
	      reg32(regs, RFPGA_ID));
	CHECK(reg32(regs, RFPGA_SCRATCH) == 0, "it was not reset");
	munmap(regs, PAGE);
}

/* -------------------------------------------------------- privileges ---- */

/* privilege_test has each call of a user; these are ranges. */
static void as_user(void *arg)
{
	struct rashpa_window_make named = { HEAD(named), .name = "user" };
	struct rashpa_info window;
	int win;

	drop_privileges();
	/* in part outside the user's window */
	ANSWERED(fpga_window(&f, 2, PAGE, 3 * PAGE, 0), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(fpga_window(&f, 2, 0, 2 * PAGE, 0), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(fpga_window(&f, 0, PAGE, PAGE, 0), EPERM, "CAP_SYS_RAWIO");
	ANSWERED(call(f.fd, RASHPA_IOC_WINDOW_MAKE, &named), 0, NULL);
	CHECK(fpga_window(&f, 2, PAGE, 2 * PAGE, 0) >= 0, "all of it: %s", reason);
	CHECK(fpga_window(&f, 2, 2 * PAGE, PAGE, 0) >= 0, "a part of it: %s", reason);
	/* the profile says how it is cached */
	ANSWERED(fpga_window(&f, RFPGA_BAR_MEMORY, 0, PAGE, RASHPA_CACHE_UC), EPERM,
		 "combined|CAP_SYS_RAWIO");
	win = fpga_window(&f, RFPGA_BAR_MEMORY, 0, PAGE, 0);
	if (ANSWERED(buffer_info(win, &window), 0, NULL))
		CHECK(window.out_cache == RASHPA_CACHE_WC, "cache mode %u", window.out_cache);
	CHECK(fpga_events(&f, 0) >= 0, "channel: %s", reason);
}

/* CAP_SYS_ADMIN, and no other capability. */
static void as_admin(void *arg)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = 1U << CAP_SYS_ADMIN, .permitted = 1U << CAP_SYS_ADMIN },
	};
	struct rashpa_profile_set p = { HEAD(p) };
	struct rashpa_device_info before, after;

	if (syscall(SYS_capset, &head, data))
		tap_bail("capset: %s", strerror(errno));
	p.head.flags = RASHPA_PROFILE_DISCLOSE;
	ANSWERED(fpga_info(&f, &before), 0, NULL);
	ANSWERED(call(f.fd, RASHPA_IOC_PROFILE_SET, &p), EPERM, "channels|CAP_SYS_RAWIO");
	ANSWERED(fpga_info(&f, &after), 0, NULL);
	CHECK(before.out_flags == after.out_flags, "flags 0x%x, before 0x%x", after.out_flags,
	      before.out_flags);
}

TEST(profile_in_use, "a profile that could not serve open channels is refused before a change")
{
	int channel = fpga_events(&f, 0);

	CHECK(channel >= 0, "channel: %s", reason);
	tap_fork(as_admin, NULL);
	close(channel);
}

TEST(user, "a user gets the windows of users and nothing more")
{
	static const struct rashpa_profile_window windows[] = {
		{ .name = "user", .bar = 2, .flags = RASHPA_PWINDOW_USER,
		  .offset = PAGE, .length = 2 * PAGE },
		{ .name = "combined", .bar = RFPGA_BAR_MEMORY, .cache = RASHPA_CACHE_WC,
		  .flags = RASHPA_PWINDOW_USER, .length = PAGE },
	};
	struct rashpa_device_info before, after;

	ANSWERED(fpga_profile(&f, 0, windows, ARRAY_SIZE(windows)), 0, NULL);
	ANSWERED(fpga_info(&f, &before), 0, NULL);
	tap_fork(as_user, NULL);
	ANSWERED(fpga_info(&f, &after), 0, NULL);
	CHECK(before.out_flags == (after.out_flags & ~RASHPA_DEVICE_MASTER) ||
	      before.out_flags == after.out_flags, "flags 0x%x became 0x%x",
	      before.out_flags, after.out_flags);
	ANSWERED(fpga_profile_none(&f), 0, NULL);
}

void setup(void)
{
	fpga_need(&f);
}
