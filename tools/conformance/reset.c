// SPDX-License-Identifier: GPL-2.0-only
/* What a reset leaves. */
#include "dtp.h"

#include <linux/pci_regs.h>
#include <string.h>

static void test_reset(void)
{
	struct dtp d = plain(0);
	uint8_t page[4096], left[4096];
	const uint32_t exp = config_capability(PCI_CAP_ID_EXP);
	int how;

	memset(page, 0x77, sizeof(page));
	memory_write(board.shown - 4096, page, sizeof(page));
	for (how = 0; how < 3; how++) {
		fresh();
		d.images = 0;
		d.mode = RFPGA_MODE_FREERUN;
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		doorbell_write(DOORBELL(1), 5);
		if (how == 0)
			wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
		else if (how == 1)
			config_write(exp + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR, 2);
		else
			function_reset();
		memset(host, CANARY, 1 << 20);
		CHECK(idle());
		CHECK(untouched(0, 1 << 20));
		CHECK_EQ(status(0), 0);
		CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
		CHECK_EQ(rd(DTP(0) + RFPGA_DTP_WIDTH), 0);
		CHECK_EQ(rd(ENTRY(0) + RFPGA_ENTRY_CONTROL), 0);
		CHECK_EQ(rd64(RFPGA_BYTES), 0);
		CHECK_EQ(doorbell_read(DOORBELL(1)), 0);
		if (how == 0 || target->reset_is_bare)
			CHECK_EQ(config_read(PCI_COMMAND) & 6, how == 0 ? 6 : 0);
		memory_read(board.shown - 4096, left, sizeof(left));
		CHECK(!memcmp(left, page, sizeof(page)));
	}
}

static const struct test tests[] = {
	{ "all", "reset by register, FLR and message", test_reset,
	  .features = RFPGA_FEATURE_FREERUN, .dtps = 2, .memory = 1 << 20 },
};

const struct suite reset_suite = SUITE("reset", tests);
