// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Before each operation both programs come to rest; before a start, and before credit, only its
 * DTP does. So DTPs run concurrently, and nothing depends on the faster side.
 */
#include "differ.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CANARY		0xa5
#define PATIENCE	5		/* seconds to come to rest */
#define FREE_IMAGES	10000u		/* more free-running images take too long, */
#define FREE_PERIOD	25000u		/* and so does a longer period */

bool groups = true;

struct side side[2] = { { .name = "the first" }, { .name = "the second" } };

/* State that is uncertain after the streams so far; the same for both sides. */
static bool master;
static bool written[DTPS * BOUND_ENTRIES];	/* entries written since the last comparison */
static uint32_t configured;			/* DTPs configured since then */
static uint32_t grouped;		/* DTPs that were started by GROUP_START */
static bool group_lost;			/* a member had a fault: the group's events are uncertain */
static bool bytes_lost;			/* BYTES: a DTP had a fault since CLEAR */

static uint32_t dtp_read(struct side *s, unsigned int n, uint32_t offset)
{
	return (uint32_t)client_read(&s->client, RFPGA_BAR_REGS, RFPGA_DTP(n) + offset, 4);
}

static uint64_t dtp_read64(struct side *s, unsigned int n, uint32_t offset)
{
	return client_read(&s->client, RFPGA_BAR_REGS, RFPGA_DTP(n) + offset, 8);
}

static uint64_t global(struct side *s, uint32_t offset, uint32_t size)
{
	return client_read(&s->client, RFPGA_BAR_REGS, offset, size);
}

static void both(uint32_t offset, uint64_t value, uint32_t size)
{
	client_write(&side[0].client, RFPGA_BAR_REGS, offset, value, size);
	client_write(&side[1].client, RFPGA_BAR_REGS, offset, value, size);
}

__attribute__((format(printf, 2, 3)))
static bool differs(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, WHY_SIZE, fmt, args);
	va_end(args);
	return false;
}

/* ---------------------------------------------------------------- rest --- */

/* Does a running DTP wait, after it has read the latest credit? */
static bool waits(struct side *s, unsigned int n)
{
	uint32_t credit = dtp_read(s, n, RFPGA_DTP_C_CREDIT);
	uint32_t next = dtp_read(s, n, RFPGA_DTP_FIRST_STACK) +
			dtp_read(s, n, RFPGA_DTP_C_STACKS);

	return credit == s->credit[n] && next - credit >= dtp_read(s, n, RFPGA_DTP_SLOTS) &&
	       (dtp_read(s, n, RFPGA_DTP_STATUS) & (RFPGA_DTP_WAITING | RFPGA_DTP_STOPPING)) ==
	       RFPGA_DTP_WAITING;
}

static bool rests(struct side *s, uint32_t mask)
{
	unsigned int n;

	for (n = 0; n < DTPS; n++)
		if ((mask & 1u << n) && (dtp_read(s, n, RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING) &&
		    !waits(s, n))
			return false;
	return true;
}

static bool come_to_rest(uint32_t mask, char *why)
{
	time_t end = time(NULL) + PATIENCE;
	unsigned int i;

	for (i = 0; i < 2; i++)
		while (!rests(&side[i], mask)) {
			if (time(NULL) > end)
				return differs(why, "%s does not come to rest", side[i].name);
			usleep(100);
		}
	return true;
}

/* ---------------------------------------------------------- operations --- */

static void map(uint64_t offset, uint64_t size, uint32_t flags)
{
	unsigned int i;

	for (i = 0; i < 2; i++) {
		client_unmap(&side[i].client, HOST_ADDR + offset, size);
		if (flags)
			client_map(&side[i].client, HOST_ADDR + offset, size, offset, flags,
				   side[i].host_fd);
	}
}

static void config_both(uint32_t offset, uint32_t value)
{
	client_config_write(&side[0].client, offset, value, 2);
	client_config_write(&side[1].client, offset, value, 2);
}

static void set_master(bool on)
{
	master = on;
	config_both(4, on ? 6 : 2);
}

static void reset(uint64_t how)
{
	unsigned int i;

	if (how == 2) {
		both(RFPGA_CONTROL, RFPGA_CONTROL_RESET, 4);
		for (i = 0; i < 2; i++)
			while (global(&side[i], RFPGA_STATUS, 4) & RFPGA_STATUS_RESETTING)
				usleep(100);
	} else if (how == 1) {
		config_both(0x88, 0x8000);
	}
	for (i = 0; i < 2 && !how; i++)
		client_reset(&side[i].client);
	if (how != 2)
		master = false;
	config_both(0x42, 0x8000);		/* MSI-X */
	memset(written, 0, sizeof(written));
	grouped = 0;
	group_lost = bytes_lost = false;
}

static void write_entry(const uint64_t *arg)
{
	uint32_t e = RFPGA_TABLE + (uint32_t)arg[0] * RFPGA_ENTRY_STRIDE;

	both(e + RFPGA_ENTRY_CONTROL, 0, 4);
	both(e + RFPGA_ENTRY_ADDR, arg[1], 8);
	both(e + RFPGA_ENTRY_LEN, arg[2], 8);
	both(e + RFPGA_ENTRY_SUM, arg[3], 8);
	both(e + RFPGA_ENTRY_CONTROL, arg[4], 4);
	written[arg[0]] = true;
}

static bool free_running(unsigned int n)
{
	return dtp_read(&side[0], n, RFPGA_DTP_MODE) & RFPGA_MODE_FREERUN;
}

/* Would the DTP come to rest? If not, it is not started. */
static bool ends(unsigned int n)
{
	uint64_t images = dtp_read64(&side[0], n, RFPGA_DTP_IMAGES);

	return !free_running(n) || (images && images <= FREE_IMAGES &&
				    dtp_read64(&side[0], n, RFPGA_DTP_PERIOD) <= FREE_PERIOD);
}

/* Any member of a group may be the last one, so all must have the same interrupt. */
static uint64_t interrupt(unsigned int n)
{
	uint32_t msix = dtp_read(&side[0], n, RFPGA_DTP_MODE) & RFPGA_MODE_MSIX;

	return msix ? msix | (uint64_t)dtp_read(&side[0], n, RFPGA_DTP_VECTOR) << 32 : 0;
}

static bool possible(uint32_t mask)
{
	unsigned int n, first = (unsigned int)__builtin_ctz(mask);

	for (n = first; n < DTPS; n++)
		if ((mask & 1u << n) && (!ends(n) || interrupt(n) != interrupt(first)))
			return false;
	return true;
}

static void start(uint32_t mask, bool group)
{
	unsigned int n, i;
	bool was[2];

	if (!mask || !possible(mask))
		return;
	for (n = 0; n < DTPS; n++) {
		if (!(mask & 1u << n))
			continue;
		for (i = 0; i < 2; i++) {
			was[i] = dtp_read(&side[i], n, RFPGA_DTP_STATUS) & RFPGA_DTP_RUNNING;
			if (!was[i])
				side[i].credit[n] = dtp_read(&side[i], n, RFPGA_DTP_FIRST_STACK);
		}
		if (!group && !was[0])
			grouped &= ~(1u << n);
	}
	group_lost &= grouped != 0;
	if (!group)
		both(RFPGA_DTP((uint32_t)__builtin_ctz(mask)), RFPGA_DTP_START, 4);
	else
		both(RFPGA_GROUP_START, mask, 4);
	if (group)
		grouped |= mask;
}

static void ring(unsigned int n, bool tagged, uint32_t credit, uint32_t run)
{
	const uint32_t page = n * RFPGA_DOORBELL_PAGE;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		uint32_t wanted = dtp_read(&side[i], n, RFPGA_DTP_RUN);

		if (tagged ? wanted && wanted == run : !wanted)
			side[i].credit[n] = credit;
		if (tagged)
			client_write(&side[i].client, RFPGA_BAR_DOORBELL, page + RFPGA_DB_TAGGED,
				     credit | (uint64_t)run << 32, 8);
		else
			client_write(&side[i].client, RFPGA_BAR_DOORBELL, page + RFPGA_DB_CREDIT,
				     credit, 4);
	}
}

/* DTPs that must be at rest before the operation. */
static uint32_t affected(const struct op *op)
{
	const uint32_t all = (1u << DTPS) - 1;

	switch (op->kind) {
	case START:
	case CREDIT:
	case TAGGED:
		return 1u << op->arg[0];
	default:
		return all;
	}
}

static void execute(const struct op *op)
{
	const uint64_t *a = op->arg;
	uint32_t at, n;

	switch (op->kind) {
	case ENTRY:
		write_entry(a);
		break;
	case BOUNDS:
		at = RFPGA_BOUNDS + (uint32_t)a[0] * RFPGA_BOUNDS_STRIDE;
		both(at + RFPGA_BOUNDS_FIRST, a[1], 4);
		both(at + RFPGA_BOUNDS_LIMIT, a[2], 4);
		break;
	case SET:
		configured |= 1u << a[0];
		both(RFPGA_DTP((uint32_t)a[0]) + regs[a[1]].offset, a[2], regs[a[1]].pair ? 8 : 4);
		break;
	case START:
		start(1u << a[0], false);
		break;
	case GROUP:
		if (groups)
			start((uint32_t)a[0], true);
		for (n = 0; n < DTPS && !groups; n++)
			if (a[0] & 1u << n)
				start(1u << n, false);
		break;
	case STOP:
		if (a[0] == DTPS)
			both(RFPGA_CONTROL, RFPGA_CONTROL_STOP, 4);
		else
			both(RFPGA_DTP((uint32_t)a[0]), RFPGA_DTP_STOP, 4);
		break;
	case CREDIT:
		ring((unsigned int)a[0], false, (uint32_t)a[1], 0);
		break;
	case TAGGED:
		ring((unsigned int)a[0], true, (uint32_t)a[1], (uint32_t)a[2]);
		break;
	case MASTER:
		set_master(a[0]);
		break;
	case MAP:
		map(a[0], a[1], (uint32_t)a[2]);
		break;
	case UNMAP:
		map(a[0], a[1], 0);
		break;
	case RESET:
		reset(a[0]);
		break;
	case CLEAR:
		both(RFPGA_CONTROL, RFPGA_CONTROL_CLEAR, 4);
		bytes_lost = false;
		break;
	case SCRATCH:
		both(RFPGA_SCRATCH, a[0], 4);
		break;
	default:
		break;
	}
}

/* ---------------------------------------------------------- comparison --- */

static bool compare_config(unsigned int n, char *why)
{
	unsigned int i;

	for (i = 0; i < REGS; i++) {
		uint64_t a = dtp_read64(&side[0], n, regs[i].offset & ~7u);
		uint64_t b = dtp_read64(&side[1], n, regs[i].offset & ~7u);

		if (a != b)
			return differs(why, "DTP %u %s: %#llx, %#llx", n, regs[i].name,
				       (unsigned long long)a, (unsigned long long)b);
	}
	return true;
}

static bool compare_counters(unsigned int n, bool torn, uint32_t status, char *why)
{
	const struct { const char *name; uint32_t offset; bool certain; } counters[] = {
		{ "C_IMAGES", RFPGA_DTP_C_IMAGES, true },
		{ "C_STACKS", RFPGA_DTP_C_STACKS, true },
		{ "C_BYTES", RFPGA_DTP_C_BYTES, !torn },
		{ "C_DESCRIPTORS", RFPGA_DTP_C_DESCRIPTORS, !torn },
		{ "C_EVENTS", RFPGA_DTP_C_EVENTS, !(grouped & 1u << n) },
		{ "C_OVERRUNS", RFPGA_DTP_C_OVERRUNS, true },
		{ "C_FAULTS", RFPGA_DTP_C_FAULTS, true },
		{ "C_CREDIT", RFPGA_DTP_C_CREDIT, status & RFPGA_DTP_WAITING },
		{ "C_DROPPED", RFPGA_DTP_C_DROPPED, true },
		{ "FIFO_PEAK", RFPGA_DTP_FIFO_PEAK, true },
		{ "C_LOST", RFPGA_DTP_C_LOST, true },
		{ "FAULT_CAUSE", RFPGA_DTP_FAULT_CAUSE, !torn || master },
		{ "FAULT_ADDR", RFPGA_DTP_FAULT_ADDR, !torn },
	};
	unsigned int i;

	for (i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		uint64_t a = dtp_read64(&side[0], n, counters[i].offset);
		uint64_t b = dtp_read64(&side[1], n, counters[i].offset);

		if (counters[i].certain && a != b)
			return differs(why, "DTP %u %s: %#llx, %#llx", n, counters[i].name,
				       (unsigned long long)a, (unsigned long long)b);
	}
	return true;
}

/* Words of a record, except for ticks. */
static bool compare_records(unsigned int n, char *why)
{
	const uint64_t *a = (const uint64_t *)(side[0].host + n * (size_t)AREA + RECORDS);
	const uint64_t *b = (const uint64_t *)(side[1].host + n * (size_t)AREA + RECORDS);
	unsigned int i;

	for (i = 0; i < (AREA - RECORDS) / 8; i++)
		if (a[i] != b[i] && i % (RFPGA_LOCK_SIZE / 8) != RFPGA_LOCK_TICKS / 8)
			return differs(why, "records of DTP %u at %#x: %#llx, %#llx", n, i * 8,
				       (unsigned long long)a[i], (unsigned long long)b[i]);
	return true;
}

static bool compare_payload(unsigned int n, bool torn, char *why)
{
	uint8_t *a = side[0].host + n * (size_t)AREA, *b = side[1].host + n * (size_t)AREA;
	unsigned int i;

	if (torn) {
		/* the board may have sent any part of the last image */
		memset(a, CANARY, RECORDS);
		memset(b, CANARY, RECORDS);
	} else if (memcmp(a, b, RECORDS)) {
		for (i = 0; a[i] == b[i]; i++)
			;
		return differs(why, "payload of DTP %u at %#x: %#x, %#x", n, i, a[i], b[i]);
	}
	return true;
}

static bool compare_dtp(unsigned int n, char *why)
{
	uint32_t a = dtp_read(&side[0], n, RFPGA_DTP_STATUS);
	uint32_t b = dtp_read(&side[1], n, RFPGA_DTP_STATUS), cause;
	bool torn;

	if (a != b)
		return differs(why, "DTP %u STATUS: %#x, %#x", n, a, b);
	cause = dtp_read(&side[0], n, RFPGA_DTP_FAULT_CAUSE);
	torn = (a & RFPGA_DTP_FAULTED) && cause != RFPGA_FAULT_CONFIG;
	bytes_lost |= torn;
	group_lost |= torn && (grouped & 1u << n);
	return (!(configured & 1u << n) || compare_config(n, why)) &&
	       compare_counters(n, torn, a, why) && compare_records(n, why) &&
	       compare_payload(n, torn, why);
}

static bool compare_table(char *why)
{
	unsigned int n, word;

	for (n = 0; n < DTPS * BOUND_ENTRIES; n++)
		for (word = 0; written[n] && word < RFPGA_ENTRY_STRIDE; word += 8) {
			uint32_t at = RFPGA_TABLE + n * RFPGA_ENTRY_STRIDE + word;
			uint64_t a = global(&side[0], at, 8), b = global(&side[1], at, 8);

			if (a != b)
				return differs(why, "entry %u at %#x: %#llx, %#llx", n, word,
					       (unsigned long long)a, (unsigned long long)b);
		}
	return true;
}

static bool compare_global(char *why)
{
	const bool one = global(&side[0], RFPGA_FAULTS, 8) == 1;
	const struct { const char *name; uint32_t offset, size; bool certain; } words[] = {
		{ "STATUS", RFPGA_STATUS, 4, true }, { "SCRATCH", RFPGA_SCRATCH, 4, true },
		{ "FAULTS", RFPGA_FAULTS, 8, true }, { "STOPS", RFPGA_STOPS, 4, true },
		{ "FAULT_DTP", RFPGA_FAULT_DTP, 4, one },
		{ "FAULT_CAUSE", RFPGA_FAULT_CAUSE, 4, one && master },
		{ "BYTES", RFPGA_BYTES, 8, !bytes_lost },
	};
	unsigned int i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		uint64_t a = global(&side[0], words[i].offset, words[i].size);
		uint64_t b = global(&side[1], words[i].offset, words[i].size);

		if (words[i].certain && a != b)
			return differs(why, "%s: %#llx, %#llx", words[i].name,
				       (unsigned long long)a, (unsigned long long)b);
	}
	return true;
}

/* Any member of a group may send its interrupt; only the number of interrupts is compared. */
static bool compare_events(char *why)
{
	uint64_t sum[2] = { 0 }, total[2] = { 0 }, count;
	unsigned int n, i;

	for (i = 0; i < 2; i++) {
		for (n = 0; n < DTPS; n++)
			if (grouped & 1u << n)
				sum[i] += dtp_read64(&side[i], n, RFPGA_DTP_C_EVENTS);
		for (n = 0; n < CLIENT_VECTORS; n++)
			if (read(side[i].client.event[n], &count, sizeof(count)) == sizeof(count))
				total[i] += count;
	}
	if (!group_lost && sum[0] != sum[1])
		return differs(why, "C_EVENTS of the group: %llu, %llu",
			       (unsigned long long)sum[0], (unsigned long long)sum[1]);
	if (!group_lost && total[0] != total[1])
		return differs(why, "interrupts: %llu, %llu", (unsigned long long)total[0],
			       (unsigned long long)total[1]);
	return true;
}

static bool compare(char *why)
{
	unsigned int n;

	for (n = 0; n < DTPS; n++)
		if (!compare_dtp(n, why))
			return false;
	if (!compare_table(why) || !compare_global(why) || !compare_events(why))
		return false;
	memset(written, 0, sizeof(written));
	configured = 0;
	return true;
}

/* ------------------------------------------------------------ a stream --- */

/* Clear all state of the previous stream on both sides. */
static void prepare(void)
{
	char why[WHY_SIZE];
	unsigned int i;

	reset(0);
	/* a reset need not clear the table */
	for (i = 0; i < DTPS * BOUND_ENTRIES; i++)
		write_entry((const uint64_t[]){ i, 0, 0, 0, 0 });
	memset(written, 0, sizeof(written));
	for (i = 0; i < 2; i++)
		memset(side[i].host, CANARY, HOST_SIZE);
	map(0, HOST_SIZE, 3);
	set_master(true);
	compare_events(why);
}

bool play(const struct stream *s, char why[WHY_SIZE])
{
	unsigned int i;

	prepare();
	for (i = 0; i < s->count; i++) {
		if (!come_to_rest(affected(&s->op[i]), why))
			return false;
		execute(&s->op[i]);
		if (s->op[i].kind == COMPARE && !compare(why))
			return false;
	}
	if (memcmp(side[0].client.memory, side[1].client.memory, CLIENT_MEMORY))
		return differs(why, "on-board memory");
	return true;
}
