// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A second board of the reference interface, written from Documentation/fpga-interface.rst alone.
 * If it differs from the software FPGA, the document says too little, or one of them is wrong.
 *
 * It works as gateware would. Every word of a register is a word. Products are shifts and
 * additions, once in a run; the rest are additions. Payload goes a line at a time, in requests that
 * end at the next 4 KiB; each request looks up the table and is checked when it is made. Doorbells
 * are registers, so they need no polling. A stop and a reset take time. Tick rate and the
 * place of the list of blocks differ from those of the software FPGA, and limits may.
 *
 * No live sources, sensors, mailbox, groups, verdicts, rings, INTx.
 *
 * Locks: the host's exclusion first, then board.lock. The table and the bounds change under
 * host_exclude() and are read between host_begin() and host_end(); configuration does not change
 * while the DTP runs.
 */
#include <argp.h>
#include <endian.h>
#include <errno.h>
#include <linux/pci_regs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"

/* --------------------------------------------- "Registers of a DTP": range of values --- */

static bool aligned(const struct dtp *dtp, uint64_t bytes)
{
	return !(bytes & ((1u << dtp->board->limits.align) - 1));
}

static bool any(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return true;
}

static bool nothing(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return !value;
}

static bool good_mode(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	if (value & ~(uint64_t)BOARD_MODES)
		return false;
	return !(value & RFPGA_MODE_DROP) || (value & RFPGA_MODE_FREERUN);
}

static bool good_vector(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value < dtp->board->options.vectors;
}

static bool good_pixel(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value == 1 || value == 2 || value == 4 || value == 8;
}

static bool count(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return below(value, dtp->board->limits.count);
}

static bool some(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value && count(dtp, reg, value);
}

static bool pixels(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return count(dtp, reg, value) && aligned(dtp, value << pixel_shift(dtp));
}

static bool offset(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return below(value, dtp->board->limits.offset);
}

static bool base(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return offset(dtp, reg, value) && aligned(dtp, value);
}

static bool stride(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return below(value, dtp->board->limits.stride) && aligned(dtp, value);
}

static bool record(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return offset(dtp, reg, value) && !(value % RFPGA_LOCK_SIZE);
}

static bool entry_first(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value < dtp->board->options.entries;
}

/* FIRST is the previous register, and was checked before */
static bool entry_count(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value && value <= dtp->board->options.entries - word(dtp, reg - 4);
}

static bool good_period(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return offset(dtp, reg, value) && (value || !mode(dtp, RFPGA_MODE_DROP));
}

static bool good_slot(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value < word(dtp, RFPGA_DTP_SLOTS);
}

static bool good_index(const struct dtp *dtp, unsigned int reg, uint64_t value)
{
	return value < word(dtp, RFPGA_DTP_SRC_IMAGES);
}

/* all of the configuration, from the lowest register on */
static const struct rule {
	unsigned int reg;
	unsigned int words;
	uint32_t mode;		/* only checked in this mode; 0: always */
	bool (*good)(const struct dtp *dtp, unsigned int reg, uint64_t value);
} rules[] = {
	{ RFPGA_DTP_MODE, 1, 0, good_mode },
	{ RFPGA_DTP_VECTOR, 1, RFPGA_MODE_MSIX, good_vector },
	{ RFPGA_DTP_PIXEL_BYTES, 1, 0, good_pixel },
	{ RFPGA_DTP_BUNCH, 1, 0, some },
	{ RFPGA_DTP_SLOTS, 1, 0, some },
	{ RFPGA_DTP_SRC_BASE, 2, 0, base },
	{ RFPGA_DTP_SRC_IMAGES, 1, 0, some },
	{ RFPGA_DTP_SRC_X, 1, 0, pixels },
	{ RFPGA_DTP_SRC_Y, 1, 0, count },
	{ RFPGA_DTP_WIDTH, 1, 0, some },
	{ RFPGA_DTP_HEIGHT, 1, 0, some },
	{ RFPGA_DTP_DST_X, 1, 0, pixels },
	{ RFPGA_DTP_DST_Y, 1, 0, count },
	{ RFPGA_DTP_SRC_LINE, 2, 0, stride },
	{ RFPGA_DTP_SRC_IMAGE, 2, 0, stride },
	{ RFPGA_DTP_DST_BASE, 2, 0, base },
	{ RFPGA_DTP_DST_LINE, 2, 0, stride },
	{ RFPGA_DTP_DST_IMAGE, 2, 0, stride },
	{ RFPGA_DTP_DST_SLOT, 2, 0, base },
	{ RFPGA_DTP_DST_FIRST, 1, 0, entry_first },
	{ RFPGA_DTP_DST_COUNT, 1, 0, entry_count },
	{ RFPGA_DTP_LOCK_OFFSET, 2, RFPGA_MODE_LOCK, record },
	{ RFPGA_DTP_LOCK_FIRST, 1, RFPGA_MODE_LOCK, entry_first },
	{ RFPGA_DTP_LOCK_COUNT, 1, RFPGA_MODE_LOCK, entry_count },
	{ RFPGA_DTP_IMAGES, 2, 0, offset },
	{ RFPGA_DTP_PERIOD, 2, 0, good_period },
	{ RFPGA_DTP_FIRST_STACK, 2, 0, offset },
	{ RFPGA_DTP_FIRST_SLOT, 1, 0, good_slot },
	{ RFPGA_DTP_FIRST_INDEX, 1, 0, good_index },
	{ RFPGA_DTP_INDEX_STEP, 1, 0, good_index },
	{ RFPGA_DTP_SOURCE, 1, 0, nothing },
	{ RFPGA_DTP_SAMPLING, 1, 0, nothing },
	{ RFPGA_DTP_RUN, 1, 0, any },
	{ RFPGA_DTP_META_OFFSET, 2, RFPGA_MODE_META, record },
	{ RFPGA_DTP_META_FIRST, 1, RFPGA_MODE_META, entry_first },
	{ RFPGA_DTP_META_COUNT, 1, RFPGA_MODE_META, entry_count },
	{ RFPGA_DTP_FIRST_FRAME, 2, 0, offset },
};

#define RULES	(sizeof(rules) / sizeof(rules[0]))

/* the lowest invalid register, or 0 */
static unsigned int wrong_register(const struct dtp *dtp)
{
	const struct rule *rule;
	uint64_t value;

	for (rule = rules; rule < rules + RULES; rule++) {
		value = rule->words == 2 ? pair(dtp, rule->reg) : word(dtp, rule->reg);
		if (rule->mode && !mode(dtp, rule->mode))
			continue;
		if (!rule->good(dtp, rule->reg, value))
			return rule->reg;
	}
	return 0;
}

static bool is_config(unsigned int reg)
{
	const struct rule *rule;

	for (rule = rules; rule < rules + RULES; rule++)
		if (reg >= rule->reg && reg < rule->reg + 4 * rule->words)
			return true;
	return false;
}

/* ------------------------------------------------------- "Faults", "Reset values" --- */

void board_fault(struct dtp *dtp, uint32_t cause, uint64_t addr)
{
	struct board *board = dtp->board;

	if (dtp->count.faults)
		return;
	board->faults++;
	board->fault_cause = dtp->count.fault_cause = cause;
	board->fault_addr = dtp->count.fault_addr = addr;
	board->fault_dtp = dtp->number;
	dtp->count.faults = 1;
	if (!(dtp->status & RFPGA_DTP_RUNNING))
		dtp->status = RFPGA_DTP_FAULTED;
}

static void reset_dtp(struct dtp *dtp)
{
	memset(dtp->config, 0, sizeof(dtp->config));
	memset(&dtp->count, 0, sizeof(dtp->count));
	dtp->events = 0;
	dtp->status = 0;
	dtp->credit = dtp->db_credit = dtp->db_tagged[0] = dtp->db_tagged[1] = 0;
	dtp->table_first = 0;
	dtp->table_limit = dtp->board->options.entries;
	dtp->stop = false;
}

void board_reset_registers(struct board *board)
{
	unsigned int i;

	board->scratch = board->stops = 0;
	board->faults = board->fault_addr = board->bytes = 0;
	board->fault_cause = board->fault_dtp = 0;
	memset(board->latch, 0, sizeof(board->latch));
	for (i = 0; i < board->options.dtps; i++)
		reset_dtp(&board->dtp[i]);
	for (i = 0; i < BOARD_ENTRIES_MAX; i++)
		board->table[i].valid = false;
	board->resetting = board->halt = false;
	pthread_cond_broadcast(&board->change);
}

/* ---------------------------------------------------------------- registers, read --- */

/* a counter, with its share of the current stall */
static uint64_t stall_count(const struct dtp *dtp, const uint64_t *counter)
{
	return *counter + (dtp->stalled == counter ? board_ticks() - dtp->stalled_since : 0);
}

/* pairs that are read-only, by the offset of the low word */
static bool global_pair(const struct board *board, uint32_t at, uint64_t *value)
{
	switch (at) {
	case RFPGA_MEMORY_SIZE:
		*value = board->options.memory;
		return true;
	case RFPGA_TICKS:
		*value = board_ticks();
		return true;
	case RFPGA_FAULTS:
		*value = board->faults;
		return true;
	case RFPGA_FAULT_ADDR:
		*value = board->fault_addr;
		return true;
	case RFPGA_BYTES:
		*value = board->bytes;
		return true;
	default:
		return false;
	}
}

static bool dtp_pair(const struct dtp *dtp, uint32_t reg, uint64_t *value)
{
	const struct counters *count = &dtp->count;
	const uint64_t zero = 0, events = dtp->events;
	const struct {
		uint32_t reg;
		const uint64_t *value;
	} pairs[] = {
		{ RFPGA_DTP_C_IMAGES, &count->images },
		{ RFPGA_DTP_C_STACKS, &count->stacks },
		{ RFPGA_DTP_C_BYTES, &count->bytes },
		{ RFPGA_DTP_C_DESCRIPTORS, &count->descriptors },
		{ RFPGA_DTP_C_EVENTS, &events },
		{ RFPGA_DTP_C_OVERRUNS, &count->overruns },
		{ RFPGA_DTP_C_FAULTS, &count->faults },
		{ RFPGA_DTP_C_START, &count->start },
		{ RFPGA_DTP_C_STOP, &count->stop },
		{ RFPGA_DTP_FAULT_ADDR, &count->fault_addr },
		{ RFPGA_DTP_C_STALL, &count->stall },
		{ RFPGA_DTP_C_STALL_BUS, &zero },
		{ RFPGA_DTP_C_STALL_SOURCE, &count->stall_source },
		{ RFPGA_DTP_C_DROPPED, &count->dropped },
		{ RFPGA_DTP_FIFO_PEAK, &zero },
		{ RFPGA_DTP_C_LOST, &zero },
	};
	unsigned int i;

	for (i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (pairs[i].reg != reg)
			continue;
		*value = stall_count(dtp, pairs[i].value);
		return true;
	}
	return false;
}

/* the DTP with a register at @at of BAR 0, and sets @reg; or NULL */
static struct dtp *find_dtp(struct board *board, uint32_t at, uint32_t *reg)
{
	uint32_t n = (at - RFPGA_DTP(0)) / DTP_SIZE;

	if (at < RFPGA_DTP(0) || n >= board->options.dtps)
		return NULL;
	*reg = at - RFPGA_DTP(n);
	return &board->dtp[n];
}

/* the bound at @at of BAR 0, or NULL */
static uint32_t *find_bound(struct board *board, uint32_t at)
{
	uint32_t n = (at - RFPGA_BOUNDS) / RFPGA_BOUNDS_STRIDE;

	if (at < RFPGA_BOUNDS || n >= board->options.dtps)
		return NULL;
	switch (at % RFPGA_BOUNDS_STRIDE) {
	case RFPGA_BOUNDS_FIRST:
		return &board->dtp[n].table_first;
	case RFPGA_BOUNDS_LIMIT:
		return &board->dtp[n].table_limit;
	default:
		return NULL;
	}
}

static bool read_only_pair(struct board *board, uint32_t at, uint64_t *value)
{
	uint32_t reg;
	struct dtp *dtp = find_dtp(board, at, &reg);

	return dtp ? dtp_pair(dtp, reg, value) : global_pair(board, at, value);
}

static uint32_t read_dtp(const struct dtp *dtp, uint32_t reg)
{
	switch (reg) {
	case RFPGA_DTP_CONTROL:
		return 0;
	case RFPGA_DTP_STATUS:
		return dtp->status;
	case RFPGA_DTP_C_CREDIT:
		return dtp->count.credit;
	case RFPGA_DTP_FAULT_CAUSE:
		return dtp->count.fault_cause;
	default:
		return is_config(reg) ? word(dtp, reg) : 0;
	}
}

static uint32_t read_entry(const struct board *board, uint32_t at)
{
	const struct entry *entry = &board->table[at / RFPGA_ENTRY_STRIDE];
	uint32_t reg = at % RFPGA_ENTRY_STRIDE;

	if (at / RFPGA_ENTRY_STRIDE >= board->options.entries)
		return 0;
	switch (reg & ~4u) {
	case RFPGA_ENTRY_ADDR:
		return (uint32_t)(reg & 4 ? entry->addr >> 32 : entry->addr);
	case RFPGA_ENTRY_LEN:
		return (uint32_t)(reg & 4 ? entry->len >> 32 : entry->len);
	case RFPGA_ENTRY_SUM:
		return (uint32_t)(reg & 4 ? entry->sum >> 32 : entry->sum);
	default:
		return reg == RFPGA_ENTRY_CONTROL && entry->valid ? RFPGA_ENTRY_VALID : 0;
	}
}

/* "List of blocks"; the last one is the end */
static uint32_t read_block(const struct board *board, uint32_t at)
{
	const uint32_t blocks[][4] = {
		{ RFPGA_BLOCK_DTP | board->options.dtps << 16, RFPGA_DTP(0), DTP_SIZE, 0 },
		{ RFPGA_BLOCK_BOUNDS | board->options.dtps << 16, RFPGA_BOUNDS,
		  RFPGA_BOUNDS_STRIDE, ~0u },
		{ RFPGA_BLOCK_TABLE | board->options.entries << 16, RFPGA_TABLE,
		  RFPGA_ENTRY_STRIDE, ~0u },
	};

	if (at >= sizeof(blocks))
		return 0;
	return blocks[at / RFPGA_BLOCK_STRIDE][at % RFPGA_BLOCK_STRIDE / 4];
}

static uint32_t read_global(const struct board *board, uint32_t at)
{
	static const char build_id[4 * RFPGA_BUILD_ID_WORDS] = "the second board 1.1";
	uint32_t build;

	switch (at) {
	case RFPGA_ID:
		return RFPGA_ID_VALUE;
	case RFPGA_VERSION:
		return RFPGA_VERSION_VALUE;
	case RFPGA_CAPS:
		return board->options.dtps | board->options.vectors << 8 |
		       board->options.entries << 16;
	case RFPGA_FEATURES:
		return BOARD_FEATURES;
	case RFPGA_STATUS:
		return (is_busy(board) ? RFPGA_STATUS_BUSY : 0) |
		       (board->faults ? RFPGA_STATUS_FAULT : 0);
	case RFPGA_SCRATCH:
		return board->scratch;
	case RFPGA_FAULT_CAUSE:
		return board->fault_cause;
	case RFPGA_FAULT_DTP:
		return board->fault_dtp;
	case RFPGA_STOPS:
		return board->stops;
	case RFPGA_LIMITS:
		return board->limits.offset | board->limits.stride << 8 |
		       board->limits.count << 16 | board->limits.align << 24;
	case RFPGA_TICK_RATE:
		return 1000000000 / BOARD_TICK_NS;
	case RFPGA_BLOCKS:
		return BOARD_BLOCKS;
	case RFPGA_STOP_TIME:
		return BOARD_STOP_TIME;
	case RFPGA_BUILD_ID ... RFPGA_BUILD_ID + 4 * RFPGA_BUILD_ID_WORDS - 4:
		memcpy(&build, build_id + (at - RFPGA_BUILD_ID), 4);
		return build;
	default:
		return 0;
	}
}

/* a word of BAR 0, with board->lock */
static uint32_t read_register(struct board *board, uint32_t at)
{
	const uint32_t *bound = find_bound(board, at);
	const struct dtp *dtp;
	uint64_t value;
	uint32_t reg;

	if (board->resetting)
		return at == RFPGA_STATUS ? RFPGA_STATUS_RESETTING : 0;
	if (read_only_pair(board, at, &value)) {
		board->latch[at / 4 + 1] = (uint32_t)(value >> 32);
		return (uint32_t)value;
	}
	if (at >= 4 && read_only_pair(board, at - 4, &value))
		return board->latch[at / 4];
	dtp = find_dtp(board, at, &reg);
	if (dtp)
		return read_dtp(dtp, reg);
	if (at >= RFPGA_TABLE)
		return read_entry(board, at - RFPGA_TABLE);
	if (bound)
		return *bound;
	if (at >= BOARD_BLOCKS && at < RFPGA_DTP(0))
		return read_block(board, at - BOARD_BLOCKS);
	return read_global(board, at);
}

/* --------------------------------------------------------------- registers, write --- */

static void stop(struct dtp *dtp)
{
	if (!(dtp->status & RFPGA_DTP_RUNNING))
		return;
	dtp->status |= RFPGA_DTP_STOPPING;
	dtp->stop = true;
}

/* "Operation of a DTP" */
static void start(struct dtp *dtp)
{
	unsigned int wrong;

	if (dtp->status & RFPGA_DTP_RUNNING) {
		dtp->status |= RFPGA_DTP_IGNORED;
		return;
	}
	dtp->status = 0;
	memset(&dtp->count, 0, sizeof(dtp->count));
	dtp->events = 0;
	wrong = wrong_register(dtp);
	if (wrong) {
		board_fault(dtp, RFPGA_FAULT_CONFIG, RFPGA_DTP(dtp->number) + wrong);
		return;
	}
	dtp->credit = word(dtp, RFPGA_DTP_FIRST_STACK);
	dtp->count.credit = dtp->db_credit = dtp->db_tagged[0] = dtp->credit;
	dtp->db_tagged[1] = word(dtp, RFPGA_DTP_RUN);
	dtp->count.start = board_ticks();
	dtp->status = RFPGA_DTP_RUNNING;
}

static void clear(struct board *board)
{
	board->faults = board->fault_addr = board->bytes = 0;
	board->fault_cause = board->fault_dtp = board->stops = 0;
}

/* an engine does the reset, after all engines have ended: see board_engine() */
static void begin_reset(struct board *board)
{
	unsigned int n;

	board->resetting = board->halt = true;
	for (n = 0; n < board->options.dtps; n++)
		board->dtp[n].stop = true;
}

static void control(struct board *board, uint32_t value)
{
	unsigned int n;

	if (value & RFPGA_CONTROL_STOP) {
		board->stops++;
		for (n = 0; n < board->options.dtps; n++)
			stop(&board->dtp[n]);
	}
	if (value & RFPGA_CONTROL_RESET)
		begin_reset(board);
	if (value & RFPGA_CONTROL_CLEAR)
		clear(board);
}

static void write_dtp(struct dtp *dtp, uint32_t reg, uint32_t value)
{
	if (reg == RFPGA_DTP_CONTROL && value & RFPGA_DTP_STOP) {
		dtp->board->stops++;
		stop(dtp);
	} else if (reg == RFPGA_DTP_CONTROL && value & RFPGA_DTP_START) {
		start(dtp);
	} else if (is_config(reg) && !(dtp->status & RFPGA_DTP_RUNNING)) {
		dtp->config[reg / 4] = value;
	}
}

static void write_half(uint64_t *value, uint32_t reg, uint32_t half)
{
	if (reg & 4)
		*value = (uint32_t)*value | (uint64_t)half << 32;
	else
		*value = (*value & ~(uint64_t)UINT32_MAX) | (half & ~(uint32_t)ENTRY_PAGE_MASK);
}

static void write_entry(struct board *board, uint32_t at, uint32_t value)
{
	struct entry *entry = &board->table[at / RFPGA_ENTRY_STRIDE];
	uint32_t reg = at % RFPGA_ENTRY_STRIDE;

	if (at / RFPGA_ENTRY_STRIDE >= board->options.entries)
		return;
	switch (reg & ~4u) {
	case RFPGA_ENTRY_ADDR:
		write_half(&entry->addr, reg, value);
		break;
	case RFPGA_ENTRY_LEN:
		write_half(&entry->len, reg, value);
		break;
	case RFPGA_ENTRY_SUM:
		write_half(&entry->sum, reg, value);
		break;
	default:
		if (reg == RFPGA_ENTRY_CONTROL)
			entry->valid = value & RFPGA_ENTRY_VALID;
	}
}

/* a word of BAR 0, with board->lock */
static void write_register(struct board *board, uint32_t at, uint32_t value)
{
	uint32_t reg, *bound = find_bound(board, at);
	struct dtp *dtp = find_dtp(board, at, &reg);

	if (board->resetting)
		return;
	if (dtp)
		write_dtp(dtp, reg, value);
	else if (at >= RFPGA_TABLE)
		write_entry(board, at - RFPGA_TABLE, value);
	else if (bound)
		*bound = value & RFPGA_BOUNDS_MASK;
	else if (at == RFPGA_SCRATCH)
		board->scratch = value;
	else if (at == RFPGA_CONTROL)
		control(board, value);
}

/* ---------------------------------------------------------------------- doorbells --- */

static struct dtp *find_doorbell(struct board *board, uint32_t at)
{
	uint32_t n = at / RFPGA_DOORBELL_PAGE;

	return n < board->options.dtps && !board->resetting ? &board->dtp[n] : NULL;
}

static uint32_t read_doorbell(struct dtp *dtp, uint32_t at)
{
	if (!dtp)
		return 0;
	switch (at % RFPGA_DOORBELL_PAGE) {
	case RFPGA_DB_CREDIT:
		return dtp->db_credit;
	case RFPGA_DB_TAGGED:
		return dtp->db_tagged[0];
	case RFPGA_DB_TAGGED + 4:
		return dtp->db_tagged[1];
	default:
		return 0;
	}
}

static void take_credit(struct dtp *dtp, uint32_t credit)
{
	if (!(dtp->status & RFPGA_DTP_RUNNING))
		return;
	dtp->credit = dtp->count.credit = credit;
}

/* a write of TAGGED takes effect with its high word */
static void write_doorbell(struct dtp *dtp, uint32_t at, uint32_t value)
{
	uint32_t run;

	if (!dtp)
		return;
	run = word(dtp, RFPGA_DTP_RUN);
	switch (at % RFPGA_DOORBELL_PAGE) {
	case RFPGA_DB_CREDIT:
		dtp->db_credit = value;
		if (!run)
			take_credit(dtp, value);
		break;
	case RFPGA_DB_TAGGED:
		dtp->db_tagged[0] = value;
		break;
	case RFPGA_DB_TAGGED + 4:
		dtp->db_tagged[1] = value;
		if (run && value == run)
			take_credit(dtp, dtp->db_tagged[0]);
		break;
	}
}

/* -------------------------------------------------------------- "Access": any width --- */

static void board_read(void *self, unsigned int bar, uint64_t offset, uint8_t *data,
		       uint32_t count)
{
	struct board *board = self;
	uint32_t at, value, part, skip;

	pthread_mutex_lock(&board->lock);
	for (; count; count -= part, data += part, offset += part) {
		skip = offset & 3;
		at = (uint32_t)offset - skip;
		part = 4 - skip < count ? 4 - skip : count;
		if (bar == RFPGA_BAR_DOORBELL)
			value = read_doorbell(find_doorbell(board, at), at);
		else
			value = read_register(board, at);
		value = htole32(value);
		memcpy(data, (const uint8_t *)&value + skip, part);
	}
	pthread_mutex_unlock(&board->lock);
}

/* whole words only; further bytes at both ends are ignored */
static void board_write(void *self, unsigned int bar, uint64_t offset, const uint8_t *data,
			uint32_t count)
{
	struct board *board = self;
	bool exclude = bar == RFPGA_BAR_REGS && offset + count > RFPGA_BOUNDS;
	uint32_t value, skip = -offset & 3;

	if (count < skip)
		return;
	offset += skip;
	data += skip;
	count -= skip;
	if (exclude)
		host_exclude(board->host);
	pthread_mutex_lock(&board->lock);
	for (; count >= 4; count -= 4, data += 4, offset += 4) {
		memcpy(&value, data, 4);
		if (bar == RFPGA_BAR_DOORBELL)
			write_doorbell(find_doorbell(board, (uint32_t)offset), (uint32_t)offset,
				       le32toh(value));
		else
			write_register(board, (uint32_t)offset, le32toh(value));
	}
	pthread_cond_broadcast(&board->change);
	pthread_mutex_unlock(&board->lock);
	if (exclude)
		host_end(board->host);
}

/* a reset that is complete when it returns */
static void board_reset(void *self, enum device_reset why)
{
	struct board *board = self;

	host_abort(board->host, true);
	pthread_mutex_lock(&board->lock);
	begin_reset(board);
	pthread_cond_broadcast(&board->change);
	while (is_busy(board))
		pthread_cond_wait(&board->change, &board->lock);
	board_reset_registers(board);
	pthread_mutex_unlock(&board->lock);
	host_abort(board->host, false);
}

static const struct device_ops board_ops = {
	.read = board_read, .write = board_write, .reset = board_reset,
};

static void board_init(struct board *board)
{
	unsigned int n;
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&board->change, &monotonic);
	pthread_mutex_init(&board->lock, NULL);
	for (n = 0; n < RFPGA_DTPS_MAX; n++) {
		board->dtp[n].board = board;
		board->dtp[n].number = n;
	}
	board->device = (struct device){
		.ops = &board_ops,
		.self = board,
		.vendor = RFPGA_PCI_VENDOR,
		.id = RFPGA_PCI_DEVICE,
		.class = RFPGA_PCI_CLASS,
		.revision = 1,
		.bar = {
			[RFPGA_BAR_REGS] = { .size = RFPGA_BAR_REGS_SIZE },
			[RFPGA_BAR_MSIX] = { .size = DEVICE_MSIX_SIZE },
			[RFPGA_BAR_DOORBELL] = {
				.size = RFPGA_BAR_DOORBELL_SIZE,
				.flags = PCI_BASE_ADDRESS_MEM_TYPE_64,
			},
		},
		.msix_bar = RFPGA_BAR_MSIX,
		.vectors = board->options.vectors,
	};
	board_reset_registers(board);
}

/* ------------------------------------------------------------------ the program --- */

static const struct argp_option option_list[] = {
	{ "limits", 'l', "OFFSET,STRIDE,COUNT,ALIGN", 0, "LIMITS in bits (48,32,31,0)", 0 },
	{ 0 },
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct limits *l = state->input;
	char end;

	if (key != 'l')
		return ARGP_ERR_UNKNOWN;
	if (sscanf(arg, "%u,%u,%u,%u%c", &l->offset, &l->stride, &l->count, &l->align, &end) != 4 ||
	    l->offset > 63 || l->stride > 32 || l->count > 31 || l->align > 12)
		argp_error(state, "%s: four numbers, at most 63,32,31,12", arg);
	return 0;
}

static int begin_engines(struct board *board)
{
	unsigned int n;
	pthread_t thread;
	int error = 0;

	for (n = 0; n < board->options.dtps && !error; n++)
		error = pthread_create(&thread, NULL, board_engine, &board->dtp[n]);
	return error;
}

int main(int argc, char **argv)
{
	static const struct argp argp = { .options = option_list, .parser = parse_option };
	static struct board board = {
		.options = { .memory = 64 << 20, .dtps = 1, .vectors = 16, .entries = 1024 },
		.limits = { .offset = 48, .stride = 32, .count = 31, .align = 0 },
	};
	struct server *server = server_open(argc, argv, &board.options, &argp, &board.limits);
	int error;

	board.host = server_host(server);
	board_init(&board);
	error = -bar_create(&board.device.bar[RFPGA_BAR_MEMORY], "memory", board.options.memory,
			    PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH);
	if (!error)
		error = begin_engines(&board);
	if (error) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(error));
		return EXIT_FAILURE;
	}
	return server_run(server, &board.device);
}
