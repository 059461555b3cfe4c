// SPDX-License-Identifier: GPL-2.0-only
/* What a reset leaves. */
#include "dtp.h"

#include <linux/pci_regs.h>
#include <string.h>

/* Every register that has a reset value. */
static void check_values(void)
{
	static const uint32_t zero[] = {
		RFPGA_STATUS, RFPGA_SCRATCH, RFPGA_FAULTS, RFPGA_FAULTS + 4, RFPGA_FAULT_ADDR,
		RFPGA_FAULT_ADDR + 4, RFPGA_FAULT_CAUSE, RFPGA_FAULT_DTP, RFPGA_BYTES,
		RFPGA_BYTES + 4, RFPGA_STOPS,
	};
	uint32_t n, at;
	size_t i;

	for (i = 0; i < sizeof(zero) / sizeof(zero[0]); i++)
		if (rd(zero[i]))
			wrong(__FILE__, __LINE__, "offset %#x is %#x", zero[i], rd(zero[i]));
	for (n = 0; n < board.dtps; n++) {
		for (at = DTP(n); at < DTP(n) + 0x190; at += 4)
			if (rd(at))
				wrong(__FILE__, __LINE__, "offset %#x is %#x", at, rd(at));
		CHECK_EQ(doorbell_read(DOORBELL(n) + RFPGA_DB_CREDIT), 0);
		CHECK_EQ(doorbell_read64(DOORBELL(n) + RFPGA_DB_TAGGED), 0);
	}
	for (n = 0; n < board.entries; n++)
		if (rd(ENTRY(n) + RFPGA_ENTRY_CONTROL))
			wrong(__FILE__, __LINE__, "entry %u is valid", n);
	CHECK_EQ(rd(RFPGA_ID), RFPGA_ID_VALUE);
	CHECK_EQ(rd(RFPGA_FEATURES), board.features);
	CHECK_EQ(rd64(RFPGA_MEMORY_SIZE), board.memory);
}

/* A board that is at work, and has something in all that a reset clears. */
static void at_work(void)
{
	struct dtp d = plain(0), bad = plain(board.dtps - 1);

	d.images = 0;
	if (board.features & RFPGA_FEATURE_FREERUN)
		d.mode |= RFPGA_MODE_FREERUN;
	wr(RFPGA_SCRATCH, 5);
	if (board.dtps > 1) {
		bad.pixel = 7;
		start(&bad);
		doorbell_write(DOORBELL(bad.n), 5);
	}
	wr(RFPGA_CONTROL, RFPGA_CONTROL_STOP);
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) > 0));
}

enum how { BY_REGISTER, BY_CONFIG, BY_FUNCTION };

/* Reset it, and wait until it says that it is done: from then on nothing is sent. */
static void reset(enum how how)
{
	switch (how) {
	case BY_REGISTER:
		wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
		CHECK(EVENTUALLY(!(rd(RFPGA_STATUS) & RFPGA_STATUS_RESETTING)));
		break;
	case BY_CONFIG:
		config_write(config_capability(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL,
			     PCI_EXP_DEVCTL_BCR_FLR, 2);
		usleep(100000);		/* as long as PCI Express gives a function */
		break;
	case BY_FUNCTION:
		function_reset();
		break;
	}
}

static void check_reset(enum how how)
{
	uint8_t page[4096], left[4096];
	uint64_t ticks;

	memset(page, 0x77 + how, sizeof(page));
	memory_write(board.shown - 4096, page, sizeof(page));
	at_work();
	ticks = rd64(RFPGA_TICKS);
	reset(how);
	memset(host, CANARY, 1 << 20);
	if (how == BY_REGISTER || target->reset_is_bare)
		CHECK_EQ(config_read(PCI_COMMAND) & 6, how == BY_REGISTER ? 6 : 0);
	bus_master(true);
	check_values();
	CHECK(rd64(RFPGA_TICKS) >= ticks);
	pass_us(1000);
	CHECK(untouched(0, 1 << 20));
	memory_read(board.shown - 4096, left, sizeof(left));
	CHECK(!memcmp(left, page, sizeof(page)));
	if (board.dataset == board.shown)
		memory_write(board.shown - 4096, dataset + board.shown - 4096, 4096);
}

static void test_register(void)
{
	check_reset(BY_REGISTER);
}

static void test_config(void)
{
	check_reset(BY_CONFIG);
}

static void test_function(void)
{
	check_reset(BY_FUNCTION);
}

static const struct test tests[] = {
	{ "register", "CONTROL.RESET", test_register },
	{ "function", "function level reset", test_function },
	{ "config", "function level reset, by configuration space", test_config },
};

const struct suite reset_suite = SUITE("reset", tests);
