// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sensors, mailbox, power, sources and alignment, set by options and the control socket. */
#include "fpga/tests/selftest.h"

#include <linux/pci_regs.h>
#include <string.h>

static void test_sensors(void)
{
	uint32_t count, base = block(RFPGA_BLOCK_SENSOR, &count);

	CHECK_EQ(count, 3);
	CHECK_EQ(rd(base + RFPGA_SENSOR_KIND), RFPGA_SENSOR_TEMPERATURE);
	CHECK_EQ(rd(base + RFPGA_SENSOR_NAME), 0x656964);	/* "die" */
	tell("sensor 0 -12345");
	CHECK_EQ((int32_t)rd(base + RFPGA_SENSOR_VALUE), -12345);
	base += RFPGA_SENSOR_SIZE;
	CHECK_EQ(rd(base + RFPGA_SENSOR_KIND), RFPGA_SENSOR_VOLTAGE);
	CHECK_EQ(rd(base + RFPGA_SENSOR_VALUE), 850);
	CHECK_EQ(rd64(base + RFPGA_SENSOR_NAME), 0x746e69636376);	/* "vccint" */
	CHECK(obeys("sensor 3 1", "error") && obeys("sensor 0", "error") &&
	      obeys("sensor 0 1 2", "error"));
	target->reset();
	CHECK_EQ((int32_t)rd(base - RFPGA_SENSOR_SIZE + RFPGA_SENSOR_VALUE), -12345);
	tell("sensor 0 41250");
}

static uint32_t mailbox;

static void mail(uint32_t address, uint32_t data, uint32_t what)
{
	wr(mailbox + RFPGA_MAILBOX_ADDRESS, address);
	wr(mailbox + RFPGA_MAILBOX_DATA, data);
	wr(mailbox + RFPGA_MAILBOX_CONTROL, what);
}

/* A mailbox access takes time, ignores requests meanwhile, and ends in one of four ways. */
static void test_mailbox(void)
{
	uint32_t count;

	tell("clock hold");
	mailbox = block(RFPGA_BLOCK_MAILBOX, &count);
	mail(8, 0xabcd, RFPGA_MAILBOX_WRITE);
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_BUSY);
	mail(12, 1, RFPGA_MAILBOX_WRITE);		/* lost */
	tell("clock step 24999");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_BUSY);
	tell("clock step 1");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), 0);
	mail(12, 5, RFPGA_MAILBOX_READ);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_DATA), 0);
	mail(8, 0, RFPGA_MAILBOX_READ);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_DATA), 0xabcd);
	mail(0, 0, RFPGA_MAILBOX_READ);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_DATA), RFPGA_ID_VALUE);
	mail(0, 1, RFPGA_MAILBOX_WRITE);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_READ_ONLY << 8);
	mail(9, 1, RFPGA_MAILBOX_WRITE);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_NOWHERE << 8);
	mail(0x44, 1, RFPGA_MAILBOX_READ);
	tell("clock step 25000");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_NOWHERE << 8);
	mail(0x40, 1, RFPGA_MAILBOX_READ);
	tell("clock step 249999");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_BUSY);
	tell("clock step 1");
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), RFPGA_MAILBOX_TIMEOUT << 8);
	mail(8, 0, RFPGA_MAILBOX_READ);
	target->reset();
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), 0);
	tell("clock run");
}

#define D3HOT	3

/* In D3hot it neither answers nor sends; D0 restores its state. */
static void test_power(void)
{
	uint32_t pm = config_capability(PCI_CAP_ID_PM);
	struct dtp d = plain(0);

	CHECK_EQ(config_read(pm + 4) & 0xb, 1 << 3);	/* D0, No_Soft_Reset */
	wr(RFPGA_SCRATCH, 0x12345678);
	program_dtp(&d);
	config_write(pm + 4, 1, 2);			/* D1 is not supported */
	CHECK_EQ(config_read(pm + 4) & 3, 0);
	config_write(pm + 4, D3HOT, 2);
	CHECK_EQ(config_read(pm + 4) & 3, D3HOT);
	CHECK_EQ(rd(RFPGA_ID), UINT32_MAX);
	wr(RFPGA_SCRATCH, 0);
	wr(DTP(0), RFPGA_DTP_START);
	config_write(pm + 4, 0, 2);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	CHECK_EQ(status(0), 0);
	CHECK_EQ(rd(DTP(0) + RFPGA_DTP_BUNCH), d.bunch);
	CHECK(rd(RFPGA_TABLE + RFPGA_ENTRY_CONTROL) & RFPGA_ENTRY_VALID);
	/* bus mastering alone does not let it send */
	config_write(pm + 4, D3HOT, 2);
	config_write(4, 0, 2);
	config_write(4, 6, 2);
	CHECK_EQ(rd(RFPGA_ID), UINT32_MAX);
	config_write(pm + 4, 0, 2);
	d.images = 8;
	run_to(&d, RFPGA_DTP_DONE);
	/* with new credit, but in D3hot */
	d.images = 0;
	start(&d);
	CHECK(EVENTUALLY(status(0) & RFPGA_DTP_WAITING));
	memset(host + DST, CANARY, 2 * d.dst_slot);
	config_write(pm + 4, D3HOT, 2);
	give_credit(0, 2);
	tell("clock hold");			/* it has tried to send when this is answered */
	tell("clock run");
	config_write(pm + 4, 0, 2);
	CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
	CHECK_EQ(counter(0, RFPGA_DTP_FAULT_CAUSE), RFPGA_FAULT_MASTER);
	CHECK(untouched(DST, DST + 2 * d.dst_slot));
	config_write(pm + 4, D3HOT, 2);
	target->reset();
	CHECK_EQ(config_read(pm + 4) & 3, 0);
}

static void test_live_option(void)
{
	uint32_t count, base;
	struct dtp d;

	restart_program_with("--live=0");
	CHECK_EQ(block(RFPGA_BLOCK_SOURCE, &count), 0);
	CHECK_EQ(rd(0x4000 + RFPGA_SOURCE_FIFO), 0);
	d = plain(0);
	d.source = RFPGA_FROM_LIVE;
	start(&d);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_SOURCE);
	restart_program_with("--live=2");
	base = block(RFPGA_BLOCK_SOURCE, &count);
	CHECK_EQ(count, 2);
	d.source = RFPGA_FROM_LIVE | 2 << 16;
	start(&d);
	CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + RFPGA_DTP_SOURCE);
	/* they are independent */
	d.source = RFPGA_FROM_LIVE | 1 << 16;
	start(&d);
	base += RFPGA_SOURCE_SIZE;
	wr64(base + RFPGA_SOURCE_PERIOD, 1000);
	wr(base + RFPGA_SOURCE_CONTROL, RFPGA_SOURCE_START);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 2));
	CHECK_EQ(rd64(base - RFPGA_SOURCE_SIZE + RFPGA_SOURCE_FRAMES), 0);
	restart_program_with(NULL);
}

/* Offsets that are no multiple of 64 bytes are refused, for each register; others work. */
static void test_align(void)
{
	static const uint32_t regs[] = {
		RFPGA_DTP_SRC_BASE, RFPGA_DTP_SRC_X, RFPGA_DTP_DST_X, RFPGA_DTP_SRC_LINE,
		RFPGA_DTP_SRC_IMAGE, RFPGA_DTP_DST_BASE, RFPGA_DTP_DST_LINE, RFPGA_DTP_DST_IMAGE,
		RFPGA_DTP_DST_SLOT,
	};
	struct dtp d = plain(0);
	unsigned int i;

	CHECK_EQ(RFPGA_LIMITS_ALIGN(rd(RFPGA_LIMITS)), 0);
	restart_program_with("--align=64");
	CHECK_EQ(RFPGA_LIMITS_ALIGN(rd(RFPGA_LIMITS)), 6);
	for (i = 0; i < sizeof(regs) / sizeof(regs[0]); i++) {
		program_dtp(&d);
		/* of pixels 16 are 32 bytes */
		wr(DTP(0) + regs[i], rd(DTP(0) + regs[i]) +
		   (regs[i] == RFPGA_DTP_SRC_X || regs[i] == RFPGA_DTP_DST_X ? 16 : 32));
		wr(DTP(0), RFPGA_DTP_START);
		CHECK_EQ(status(0), RFPGA_DTP_FAULTED);
		CHECK_EQ(rd64(RFPGA_FAULT_ADDR), DTP(0) + regs[i]);
	}
	d.src_x = d.dst_x = 32;
	d.width = 17;
	d.images = 8;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(same_stack(&d, 1));
	restart_program_with(NULL);
}

static const struct test tests[] = {
	{ "sensors", "values of sensors, set by commands", test_sensors },
	{ "mailbox", "the mailbox: busy, and results", test_mailbox },
	{ "power", "D3hot and back", test_power },
	{ "live", "no live source, and two", test_live_option },
	{ "align", "only whole words of memory", test_align },
};

const struct suite options_suite = SUITE("options", tests);
