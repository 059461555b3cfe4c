// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Slow control: sensors with values set by the control socket (sensor N VALUE), and a mailbox with
 * a few registers. Only the protocol thread uses it.
 */
#include "fpga/fpga.h"

#include <stdio.h>
#include <string.h>

#define ACCESS		(100000u / RFPGA_TICK_NS)	/* duration of an access on a slow bus */
#define NO_ANSWER	(1000000u / RFPGA_TICK_NS)
#define SILENT		(SLOW_WORDS * 4u)	/* the address that does not answer */

static const struct { uint32_t kind; int32_t value; const char *name; } built[SLOW_SENSORS] = {
	{ RFPGA_SENSOR_TEMPERATURE, 41250, "die" },
	{ RFPGA_SENSOR_VOLTAGE, 850, "vccint" },
	{ RFPGA_SENSOR_CURRENT, 2400, "12v" },
};

void slow_init(struct fpga *fpga)
{
	unsigned int i;

	for (i = 0; i < SLOW_SENSORS; i++)
		fpga->slow.sensor[i] = built[i].value;
}

void slow_reset(struct fpga *fpga)
{
	memset(&fpga->slow.mailbox, 0, sizeof(fpga->slow.mailbox));
}

uint32_t sensor_read(const struct fpga *fpga, unsigned int n, uint32_t offset)
{
	uint32_t name[2] = { 0 };

	switch (offset) {
	case RFPGA_SENSOR_KIND:
		return built[n].kind;
	case RFPGA_SENSOR_VALUE:
		return (uint32_t)fpga->slow.sensor[n];
	default:
		memcpy(name, built[n].name, strlen(built[n].name));
		return name[(offset - RFPGA_SENSOR_NAME) / 4];
	}
}

bool sensor_command(struct fpga *fpga, const char *command)
{
	unsigned int n;
	int value;
	char end;

	if (sscanf(command, "sensor %u %d%c", &n, &value, &end) != 2 || n >= SLOW_SENSORS)
		return false;
	fpga->slow.sensor[n] = value;
	return true;
}

static bool busy(const struct mailbox *m)
{
	return m->until && fpga_ticks() < m->until;
}

/* The result is known at once, and reported after its time. */
static void access_word(struct mailbox *m, bool write)
{
	uint32_t *word = &m->word[m->address / 4 % SLOW_WORDS];

	m->until = fpga_ticks() + (m->address == SILENT ? NO_ANSWER : ACCESS);
	if (m->address == SILENT)
		m->error = RFPGA_MAILBOX_TIMEOUT;
	else if (m->address % 4 || m->address > SILENT)
		m->error = RFPGA_MAILBOX_NOWHERE;
	else if (write && !m->address)
		m->error = RFPGA_MAILBOX_READ_ONLY;
	else
		m->error = 0;
	if (m->error)
		return;
	if (write)
		*word = m->data;
	else
		m->data = m->address ? *word : RFPGA_ID_VALUE;
}

uint32_t mailbox_read(const struct fpga *fpga, uint32_t offset)
{
	const struct mailbox *m = &fpga->slow.mailbox;

	switch (offset) {
	case RFPGA_MAILBOX_ADDRESS:
		return m->address;
	case RFPGA_MAILBOX_DATA:
		return m->data;
	case RFPGA_MAILBOX_STATUS:
		return busy(m) ? RFPGA_MAILBOX_BUSY : m->error << 8;
	}
	return 0;
}

void mailbox_write(struct fpga *fpga, uint32_t offset, uint32_t value)
{
	struct mailbox *m = &fpga->slow.mailbox;

	if (busy(m))
		return;
	if (offset == RFPGA_MAILBOX_ADDRESS)
		m->address = value;
	else if (offset == RFPGA_MAILBOX_DATA)
		m->data = value;
	else if (offset == RFPGA_MAILBOX_CONTROL &&
		 !(value & RFPGA_MAILBOX_READ) != !(value & RFPGA_MAILBOX_WRITE))
		access_word(m, value & RFPGA_MAILBOX_WRITE);
}
