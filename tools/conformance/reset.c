// SPDX-License-Identifier: GPL-2.0-only
/* What a reset leaves. */
#include "dtp.h"

#include <string.h>

static void test_reset(void)
{
	struct dtp d = plain(0);
	uint8_t byte;
	int how;

	memset(dataset + CLIENT_MEMORY - 4096, 0x77, 4096);
	memory_write(CLIENT_MEMORY - 4096, dataset + CLIENT_MEMORY - 4096, 4096);
	for (how = 0; how < 3; how++) {
		fresh();
		d.images = 0;
		d.mode = RFPGA_MODE_FREERUN;
		start(&d);
		CHECK(EVENTUALLY(counter(0, RFPGA_DTP_C_IMAGES) > 0));
		doorbell_write(4096, 5);
		if (how == 0)
			wr(RFPGA_CONTROL, RFPGA_CONTROL_RESET);
		else if (how == 1)
			config_write(0x88, 0x8000, 2);
		else
			function_reset();
		memset(host, CANARY, 1 << 20);
		CHECK(idle());
		CHECK(untouched(0, 1 << 20));
		CHECK_EQ(status(0), 0);
		CHECK_EQ(counter(0, RFPGA_DTP_C_IMAGES), 0);
		CHECK_EQ(rd(RFPGA_DTP(0) + RFPGA_DTP_WIDTH), 0);
		CHECK_EQ(rd(RFPGA_TABLE + RFPGA_ENTRY_CONTROL), 0);
		CHECK_EQ(rd64(RFPGA_BYTES), 0);
		CHECK_EQ(doorbell_read(4096), 0);
		CHECK_EQ(config_read(4) & 6, how == 0 ? 6 : 0);
		memory_read(CLIENT_MEMORY - 1, &byte, 1);
		CHECK_EQ(byte, 0x77);
	}
}

static const struct test tests[] = {
	{ "all", "reset by register, FLR and message", test_reset },
};

const struct suite reset_suite = SUITE("reset", tests);
