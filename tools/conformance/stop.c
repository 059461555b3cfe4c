// SPDX-License-Identifier: GPL-2.0-only
/* The end of a run, by whom ever, and the next one. */
#include "dtp.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void test_stop(void)
{
	struct dtp d = plain(0), e = plain(1);
	uint64_t us, worst = 0, bytes;
	int i;

	d.mode = e.mode = RFPGA_MODE_FREERUN;
	d.width = 2048;
	d.height = 1024;
	d.src_line = d.dst_line = 4096;
	d.src_image = d.dst_image = 0;
	d.images = e.images = 0;
	for (i = 0; i < 20; i++) {
		start(&d);
		start(&e);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		us = now_us();
		wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
		CHECK(EVENTUALLY(idle()));
		us = now_us() - us;
		worst = us > worst ? us : worst;
		bytes = rd64(RFPGA_BYTES);
		memset(host, CANARY, 4 << 20);
		usleep(500);
		CHECK_EQ(rd64(RFPGA_BYTES), bytes);
		CHECK(untouched(0, 4 << 20));
		CHECK_EQ(rd(RFPGA_STOPS), i + 1);
		CHECK_EQ(status(0) | status(1), 0);
	}
	printf("# stop to idle: at most %llu us, register access included\n",
	       (unsigned long long)worst);
	wr(RFPGA_DTP(0), RFPGA_DTP_STOP);	/* nothing to stop counts too */
	CHECK_EQ(rd(RFPGA_STOPS), 21);
}

static void test_unmap(void)
{
	struct dtp d = plain(0);
	int i;

	d.mode = RFPGA_MODE_FREERUN;
	d.images = 0;
	d.width = 2048;
	d.height = 256;
	d.src_line = d.dst_line = 4096;
	d.src_image = d.dst_image = 0;
	for (i = 0; i < 20; i++) {
		wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 1));
		dma_unmap(HOST_ADDR, HOST_SIZE);
		/* from this moment on nothing may be written */
		memset(host, CANARY, 1 << 20);
		CHECK(faulted(0, RFPGA_FAULT_BUS));
		CHECK(untouched(0, 1 << 20));
		CHECK_EQ(dma_map(HOST_ADDR, HOST_SIZE, 0, 3), 0);
	}
	dma_unmap(0x5000, 0x1000);
	/* an entry that is taken away counts at once, too */
	wr(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR);
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 1));
	wr(RFPGA_TABLE + RFPGA_ENTRY_CONTROL, 0);
	memset(host, CANARY, 1 << 20);
	CHECK(faulted(0, RFPGA_FAULT_ENTRY));
	CHECK(untouched(0, 1 << 20));
}

static void test_restart(void)
{
	struct dtp d = plain(0);

	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	/* while it runs its configuration does not change, and START says that it does nothing */
	wr(RFPGA_DTP(0) + RFPGA_DTP_WIDTH, 0);
	CHECK_EQ(rd(RFPGA_DTP(0) + RFPGA_DTP_WIDTH), d.width);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	wr(RFPGA_DTP(0), RFPGA_DTP_START);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, RFPGA_DTP_IGNORED);
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK_EQ(status(0) & RFPGA_DTP_FAULTED, 0);
	wr(RFPGA_DTP(0), RFPGA_DTP_STOP);
	CHECK_EQ(status(0), RFPGA_DTP_IGNORED);
	d.first_stack = 3;
	start(&d);
	CHECK_EQ(status(0) & RFPGA_DTP_IGNORED, 0);
	CHECK_EQ(doorbell_read(0), 3);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	CHECK_EQ(lock_record(0)[0], 5);
	CHECK(same_stack(&d, 4));
}

static const struct test tests[] = {
	{ "silence", "stop, and then silence", test_stop },
	{ "taken-away", "memory taken away while it is written", test_unmap },
	{ "restart", "start, stop and resume", test_restart },
};

const struct suite stop_suite = SUITE("stop", tests);
