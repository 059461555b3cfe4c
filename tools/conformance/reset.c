// SPDX-License-Identifier: LGPL-2.1-or-later
/* State after a reset. */
#include "conformance/dtp.h"

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
		CHECK_EQ(rd(BOUNDS(n) + RFPGA_BOUNDS_FIRST), 0);
		CHECK_EQ(rd(BOUNDS(n) + RFPGA_BOUNDS_LIMIT), board.entries);
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

/* A busy board, with a value in every register that a reset clears. */
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
	wr(BOUNDS(board.dtps - 1) + RFPGA_BOUNDS_LIMIT, 2);
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) > 0));
}

enum how { BY_REGISTER, BY_CONFIG, BY_FUNCTION };

/* Reset the board, and wait until it reports the end: from then on it sends nothing. */
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
		usleep(100000);		/* as long as PCI Express grants a function */
		break;
	case BY_FUNCTION:
		target->reset();
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

static void set_power(uint16_t state)
{
	config_write(config_capability(PCI_CAP_ID_PM) + PCI_PM_CTRL, state, 2);
}

/* Put it into D3hot for as long as a check of all its memory takes. */
static void nap(void)
{
	set_power(PCI_PM_CTRL_STATE_MASK);
	events_so_far(0);
	memset(host, CANARY, 1 << 20);
	CHECK_EQ(rd(RFPGA_ID), UINT32_MAX);
	CHECK(untouched(0, 1 << 20));
	CHECK_EQ(events_so_far(0), 0);
	set_power(0);
}

/* In D3hot it sends nothing and reads as all ones. D0 restores its state; a due send is a fault. */
static void test_power(void)
{
	const uint32_t pm = config_capability(PCI_CAP_ID_PM);
	struct dtp d = plain(0);

	CHECK(pm);
	CHECK_EQ(config_read(pm + PCI_PM_CTRL) &
		 (PCI_PM_CTRL_STATE_MASK | PCI_PM_CTRL_NO_SOFT_RESET), PCI_PM_CTRL_NO_SOFT_RESET);
	if (!target->reset_is_bare)
		skip("the kernel allows no access to a function in D3hot");
	wr(RFPGA_SCRATCH, 0x12345678);
	d.images = 0;
	run_to(&d, RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	set_power(PCI_PM_CTRL_STATE_MASK);
	wr(RFPGA_SCRATCH, 0);
	/* by a message: in a simulation a mapping may still answer */
	target->write(RFPGA_BAR_DOORBELL, DOORBELL(0) + RFPGA_DB_CREDIT, 1, 4);
	set_power(0);
	CHECK_EQ(rd(RFPGA_SCRATCH), 0x12345678);
	CHECK_EQ(doorbell_read(DOORBELL(0) + RFPGA_DB_CREDIT), 0);
	pass_us(3000);
	CHECK_EQ(status(0), RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING);
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 2);
	/* a number, not a step */
	give_credit(0, 1);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_STACKS) == 3));
	CHECK(same_stack(&d, 2));
	CHECK(EVENTUALLY(status(0) == (RFPGA_DTP_RUNNING | RFPGA_DTP_WAITING)));
	CHECK_EQ(counter(0, RFPGA_DTP_C_STACKS), 3);
	stop_dtp(0);
	/* a stream that never waits: it would send during one of these sleeps */
	d.mode |= RFPGA_MODE_FREERUN;
	start(&d);
	CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) >= 1));
	CHECK(EVENTUALLY((nap(), status(0) & RFPGA_DTP_FAULTED)));
	CHECK(faulted(0, RFPGA_FAULT_MASTER));
	events_so_far(0);
	CHECK(silent(0));
	d = plain(0);
	d.images = 8;
	run_to(&d, RFPGA_DTP_DONE);
	CHECK(same_stack(&d, 1));
}

static const struct test tests[] = {
	{ "register", "CONTROL.RESET", test_register },
	{ "function", "function level reset", test_function },
	{ "config", "function level reset, by configuration space", test_config },
	{ "power", "D3hot and back", test_power, .features = RFPGA_FEATURE_FREERUN },
};

const struct suite reset_suite = SUITE("reset", tests);
