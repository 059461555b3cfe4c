// SPDX-License-Identifier: LGPL-2.1-or-later
/* Properties of the board apart from streams: identity, sensors, mailbox. */
#include "conformance/dtp.h"

#include <string.h>

static uint32_t mailbox;

static uint32_t mail(uint32_t address, uint32_t data, uint32_t what)
{
	wr(mailbox + RFPGA_MAILBOX_ADDRESS, address);
	wr(mailbox + RFPGA_MAILBOX_DATA, data);
	wr(mailbox + RFPGA_MAILBOX_CONTROL, what);
	CHECK(EVENTUALLY(!(rd(mailbox + RFPGA_MAILBOX_STATUS) & RFPGA_MAILBOX_BUSY)));
	return RFPGA_MAILBOX_ERROR(rd(mailbox + RFPGA_MAILBOX_STATUS));
}

static void test_identity(void)
{
	uint32_t id[RFPGA_BUILD_ID_WORDS], any = 0, i;

	for (i = 0; i < RFPGA_BUILD_ID_WORDS; i++) {
		id[i] = rd(RFPGA_BUILD_ID + 4 * i);
		any |= id[i];
	}
	CHECK(any);
	target->reset();
	for (i = 0; i < RFPGA_BUILD_ID_WORDS; i++)
		CHECK_EQ(rd(RFPGA_BUILD_ID + 4 * i), id[i]);
}

static void test_sensors(void)
{
	uint32_t count, kind, name[2], n, base = block(RFPGA_BLOCK_SENSOR, &count);

	for (n = 0; n < count; n++, base += RFPGA_SENSOR_SIZE) {
		kind = rd(base + RFPGA_SENSOR_KIND);
		CHECK(kind >= RFPGA_SENSOR_TEMPERATURE && kind <= RFPGA_SENSOR_CURRENT);
		name[0] = rd(base + RFPGA_SENSOR_NAME);
		name[1] = rd(base + RFPGA_SENSOR_NAME + 4);
		CHECK(strnlen((const char *)name, sizeof(name)) > 0);
		/* a working board is neither frozen nor burning */
		if (kind == RFPGA_SENSOR_TEMPERATURE)
			CHECK((int32_t)rd(base + RFPGA_SENSOR_VALUE) < 150000 &&
			      (int32_t)rd(base + RFPGA_SENSOR_VALUE) > -50000);
	}
}

static void test_mailbox(void)
{
	uint32_t count;

	mailbox = block(RFPGA_BLOCK_MAILBOX, &count);
	if (!count)
		skip("it has no mailbox");
	/* both at once are ignored */
	wr(mailbox + RFPGA_MAILBOX_CONTROL, RFPGA_MAILBOX_READ | RFPGA_MAILBOX_WRITE);
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_STATUS), 0);
	/* undefined bits have no effect */
	CHECK_EQ(mail(UINT32_MAX, 0, ~RFPGA_MAILBOX_WRITE), RFPGA_MAILBOX_NOWHERE);
	wr(mailbox + RFPGA_MAILBOX_ADDRESS, 0);
	wr(mailbox + RFPGA_MAILBOX_CONTROL, ~(RFPGA_MAILBOX_READ | RFPGA_MAILBOX_WRITE));
	CHECK(EVENTUALLY(rd(mailbox + RFPGA_MAILBOX_STATUS) == RFPGA_MAILBOX_NOWHERE << 8));
	CHECK_EQ(rd(mailbox + RFPGA_MAILBOX_CONTROL), 0);
}

static const struct test tests[] = {
	{ "identity", "which gateware it is", test_identity },
	{ "sensors", "sensors", test_sensors },
	{ "mailbox", "the mailbox of the slow control", test_mailbox },
};

const struct suite slow_suite = SUITE("slow", tests);
