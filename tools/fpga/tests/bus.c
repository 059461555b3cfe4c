// SPDX-License-Identifier: LGPL-2.1-or-later
/* A bus of messages, regions and files: cases that vfio-user allows and a host does not have. */
#include "fpga/tests/selftest.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* An image is refused as a whole if a part cannot be sent. */
static void test_whole_images(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	d.dst_base = (1 << 20) - 100;
	d.dst_line = 256;
	start(&d);
	check_refused(RFPGA_FAULT_ENTRY);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	d = plain(0);
	d.src_base = board.memory - 4096 + 1;
	start(&d);
	check_refused(RFPGA_FAULT_SOURCE);
}

/* The file of mapped memory is shortened: then no memory is there. */
static void test_cut_off(void)
{
	const uint64_t addr = 0xa00000000ull, size = 1 << 20;
	int fd = memfd_create("short", MFD_CLOEXEC);
	struct dtp d = plain(0);

	if (fd < 0 || ftruncate(fd, (off_t)size))
		die("memfd: %s", strerror(errno));
	CHECK_EQ(client_map(c, addr, size, 0, 3, fd), 0);
	CHECK(!ftruncate(fd, 0));
	set_entry(5, addr, size, RFPGA_ENTRY_VALID);
	d.first = 5;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), addr);
	CHECK_EQ(counter(0, RFPGA_DTP_C_BYTES), 0);
	/* a lock record */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(1, addr, 4096, RFPGA_ENTRY_VALID);
	d.first = 0;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), addr);
	CHECK(same_image(&d, 0, 3));
	/* no lock stays held, and restored memory works */
	CHECK(!ftruncate(fd, (off_t)size));
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	target->unmap(addr, size);
	close(fd);
}

struct dtp remote_dtp(void)
{
	struct dtp d = plain(0);

	CHECK_EQ(client_map(c, REMOTE_ADDR, c->remote_size, 0, 3, -1), 0);
	set_entry(5, REMOTE_ADDR, c->remote_size, RFPGA_ENTRY_VALID);
	d.first = 5;
	d.mode |= RFPGA_MODE_FLUSH;
	return d;
}

static void test_messages(void)
{
	struct dtp d = remote_dtp();
	size_t i;

	memset(c->remote, CANARY, c->remote_size);
	d.width = 500000;		/* needs more than one message a line */
	d.height = 2;
	d.src_line = d.dst_line = 1000000;
	d.src_image = d.dst_image = 0;
	d.images_in_set = d.bunch = d.slots = 1;
	d.images = 1;
	c->remote_messages = 0;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_DONE); i++)
		client_serve(c, 5);
	CHECK(c->remote_messages > 8);
	CHECK(!memcmp(c->remote, dataset, 2000000));
	CHECK_EQ(c->remote[2000000], CANARY);
	CHECK_EQ(lock_record(0)[0], 1);
	/* the host refuses */
	c->remote_size = 4096;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_FAULTED); i++)
		client_serve(c, 5);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	c->remote_size = 4 << 20;
}

/* Two regions cover the whole address space: as one, the size would exceed 64 bits. */
static void test_whole_space(void)
{
	const uint64_t half = 1ull << 63;
	struct dtp d = plain(0);
	size_t i;

	target->unmap(0, UINT64_MAX);
	CHECK_EQ(client_map(c, 0, half, 0, 3, -1), 0);
	CHECK_EQ(client_map(c, half, half, 0, 3, -1), 0);
	set_entry(5, 0, c->remote_size, RFPGA_ENTRY_VALID);
	d.first = 5;
	d.mode = 0;
	d.images = 1;
	memset(c->remote, CANARY, c->remote_size);
	c->remote_addr = 0;
	start(&d);
	for (i = 0; i < 100 && !(status(0) & RFPGA_DTP_DONE); i++)
		client_serve(c, 5);
	CHECK(status(0) & RFPGA_DTP_DONE);
	CHECK(!memcmp(c->remote, dataset, 4096));
	c->remote_addr = REMOTE_ADDR;
}

static void test_mute(void)
{
	const uint64_t before = c->remote_messages;
	struct dtp d = remote_dtp();
	uint64_t us;

	/* no answer to a message: everything else must go on */
	c->remote_mute = true;
	d.images = 0;
	start(&d);
	for (int i = 0; i < 1000 && c->remote_messages == before; i++)
		client_serve(c, 20);
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	target->unmap(REMOTE_ADDR, c->remote_size);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(!idle());			/* it is in flight, and the status shows that */
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING);
	/* a stop request counts once, when it is taken, even if DTPs still run */
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	wr(RFPGA_DTP(1), RFPGA_DTP_STOP);
	CHECK_EQ(rd(RFPGA_STOPS), 2);
	/* the status shows that START during a stop is ignored */
	wr(RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING | RFPGA_DTP_IGNORED);
	us = now_us();
	target->reset();
	CHECK(now_us() - us < 500000);
	CHECK(idle());
	c->remote_mute = false;
}

/* Addresses do not wrap: an access past the last address does not reach address 0. */
static void test_address_end(void)
{
	const uint64_t last = UINT64_MAX - 4095;
	struct dtp d = plain(0);

	CHECK_EQ(target->map(last, 4096, 0, 3), 0);
	CHECK_EQ(target->map(0, 4096, 4096, 3), 0);
	set_entry(0, last, 8192, RFPGA_ENTRY_VALID);
	d.width = 4096;
	d.height = 1;
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), last);
	CHECK(untouched(4096, 8192));
	target->unmap(last, 4096);
}

/* At a region that ends inside a word, words cannot become visible one by one. */
static void test_odd_regions(void)
{
	const uint64_t addr = 0xb00000000ull;
	struct dtp d = plain(0);

	CHECK_EQ(target->map(addr, 12, LOCKS, 3), 0);
	CHECK_EQ(target->map(addr + 12, 4084, LOCKS + 4096, 3), 0);
	set_entry(1, addr, 4096, RFPGA_ENTRY_VALID);
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK(untouched(LOCKS, LOCKS + 64));
}

static void test_pieces(void)
{
	struct dtp d = plain(0);
	unsigned int i;

	/* pages of the buffer arrive in any order, and some as one */
	target->unmap(HOST_ADDR, HOST_SIZE);
	for (i = 1; i < 16; i += 2)
		CHECK_EQ(target->map(HOST_ADDR + i * 4096, 4096, i * 4096, 3), 0);
	for (i = 0; i < 16; i += 2)
		CHECK_EQ(target->map(HOST_ADDR + i * 4096, 4096, i * 4096, 3), 0);
	CHECK_EQ(target->map(HOST_ADDR + LOCKS, 4096, LOCKS, 3), 0);
	CHECK_EQ(target->map(HOST_ADDR + 0x3000, 4096, 0, 3), EEXIST);
	CHECK_EQ(target->map(HOST_ADDR - 0x1000, 0x2000, 0, 3), EEXIST);
	d.slots = 4;
	d.dst_base = 100;
	d.images = 12;
	start(&d);
	give_credit(0, 0);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	CHECK(same_stack(&d, 0) && same_stack(&d, 2));
	/* without the 9th page, every burst that needs it is refused as a whole */
	target->unmap(HOST_ADDR + 8 * 4096, 4096);
	memset(host, CANARY, 1 << 20);
	d.images = 4;
	start(&d);
	CHECK(EVENTUALLY(status(0) == RFPGA_DTP_DONE));
	d.first_stack = 1;
	start(&d);
	CHECK(faulted(0, RFPGA_FAULT_BUS));
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR + 8 * 4096);
	CHECK(same_image(&d, 1, 2));
	CHECK(untouched(7 * 4096 + 100, 1 << 20));
}

static void test_fault_bus(void)
{
	struct dtp d = plain(0);

	set_entry(0, HOST_ADDR + HOST_SIZE, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), HOST_ADDR + HOST_SIZE);
	/* beginning inside, ending outside */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, HOST_ADDR + HOST_SIZE - 4096, 1 << 20, RFPGA_ENTRY_VALID);
	d.dst_base = 4096 - 100;
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	CHECK(untouched(HOST_SIZE - 100, HOST_SIZE));
	/* around the end of the address space */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	set_entry(0, -4096ull, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
	d.dst_base = 0;
	/* mapped, but only for reading */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	target->unmap(HOST_ADDR, HOST_SIZE);
	CHECK_EQ(target->map(HOST_ADDR, HOST_SIZE, 0, 1), 0);
	set_entry(0, HOST_ADDR, 1 << 20, RFPGA_ENTRY_VALID);
	start(&d);
	check_refused(RFPGA_FAULT_BUS);
}

static void unmap_host(void)
{
	target->unmap(HOST_ADDR, HOST_SIZE);
}

static void map_host(void)
{
	CHECK_EQ(target->map(HOST_ADDR, HOST_SIZE, 0, 3), 0);
}

/* Clearing an entry has effect at once: stop/entry tests that on every board. */
static void test_unmap(void)
{
	struct dtp d = large(256);

	take_away(&d, unmap_host, map_host, RFPGA_FAULT_BUS);
	target->unmap(0x5000, 0x1000);
}

/* The maximum number of regions, and no more; each unmap is fast. */
static void test_many_regions(void)
{
	const uint64_t addr = 1ull << 40;
	struct {
		uint16_t id, command;
		uint32_t size, flags, error;
		uint32_t argsz, prot;
		uint64_t offset, addr, length;
	} map = {
		.command = 2, .size = sizeof(map), .flags = 0x10,	/* no answer */
		.argsz = 32, .prot = 3, .length = 4096,
	};
	uint32_t i;

	for (i = 0; i < 65535; i++) {
		map.addr = addr + i * 8192ull;
		client_send(c, &map, sizeof(map), NULL, 0);
	}
	CHECK_EQ(client_map(c, addr + i * 8192ull, 4096, 0, 3, -1), ENOSPC);
	/* a region is cut in two: there is no place for the second half */
	client_unmap(c, HOST_ADDR + HOST_SIZE / 2, 4096);
	CHECK_EQ(client_map(c, HOST_ADDR + HOST_SIZE - 4096, 4096, 0, 3, -1), ENOSPC);
	client_unmap(c, addr + 8192, 8192);
	CHECK_EQ(client_map(c, addr + 4096, 8192, 0, 3, -1), 0);
	client_unmap(c, addr + 2048, UINT64_MAX);
	CHECK_EQ(client_map(c, addr, 4096, 0, 3, -1), EEXIST);
	CHECK_EQ(client_map(c, addr + 2048, 4096, 0, 3, -1), 0);
	client_unmap(c, addr, UINT64_MAX);
}

static const struct test tests[] = {
	{ "address-end", "addresses end at 2^64", test_address_end },
	{ "odd-regions", "regions that end inside a word", test_odd_regions },
	{ "many-regions", "more regions than allowed", test_many_regions },
	{ "pieces", "memory that was mapped in pieces", test_pieces },
	{ "bus", "refused: bus addresses", test_fault_bus },
	{ "taken-away", "memory taken away while it is written", test_unmap },
	{ "whole", "images that cannot be sent as a whole", test_whole_images },
	{ "cut-off", "memory whose file was cut off", test_cut_off },
	{ "messages", "DMA by messages", test_messages },
	{ "whole-space", "all addresses in two regions", test_whole_space },
	{ "mute", "a host that does not answer", test_mute },
};

const struct suite bus_suite = SUITE("bus", tests);
