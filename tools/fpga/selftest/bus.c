// SPDX-License-Identifier: GPL-2.0-only
/* A bus that is messages, regions and files: what vfio-user can do and a host cannot. */
#include "selftest.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file behind memory that is mapped gets shorter: as if nothing were there any more. */
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
	/* nothing that was held stays so, and what is back is good */
	CHECK(!ftruncate(fd, (off_t)size));
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	dma_unmap(addr, size);
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

/* Two regions that are the whole address space: as one, its size would not fit into 64 bits. */
static void test_whole_space(void)
{
	const uint64_t half = 1ull << 63;
	struct dtp d = plain(0);
	size_t i;

	dma_unmap(0, UINT64_MAX);
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
	struct dtp d = remote_dtp();
	uint64_t us;

	/* no answer to a message: everything else must go on */
	c->remote_mute = true;
	d.images = 0;
	start(&d);
	client_serve(c, 20);
	CHECK_EQ(status(0) & RFPGA_DTP_RUNNING, RFPGA_DTP_RUNNING);
	dma_unmap(REMOTE_ADDR, c->remote_size);
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	CHECK(!idle());			/* it is still in flight, and says so */
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING);
	/* a request is counted when it is taken, once, whoever has not stopped yet */
	CHECK_EQ(rd(RFPGA_STOPS), 1);
	wr(RFPGA_DTP(1), RFPGA_DTP_STOP);
	CHECK_EQ(rd(RFPGA_STOPS), 2);
	/* START while it stops is not lost in silence */
	wr(RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_STOPPING | RFPGA_DTP_IGNORED);
	us = now_us();
	function_reset();
	CHECK(now_us() - us < 500000);
	CHECK(idle());
	c->remote_mute = false;
}

static const struct test tests[] = {
	{ "cut-off", "memory whose file was cut off", test_cut_off },
	{ "messages", "DMA by messages", test_messages },
	{ "whole-space", "all addresses in two regions", test_whole_space },
	{ "mute", "a host that does not answer", test_mute },
};

const struct suite bus_suite = SUITE("bus", tests);
