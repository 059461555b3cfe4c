/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The second board: shared by its registers and its engine; see second.c. */
#ifndef BOARD_H
#define BOARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "fpga/device.h"
#include <rashpa-fpga.h>

#define BOARD_TICK_NS		8
#define BOARD_LATENCY_US	200	/* until the last request has left for certain */
#define BOARD_BLOCKS		0x0200
#define BOARD_ENTRIES_MAX	1024
#define BOARD_STOP_TIME		(HOST_PATIENCE * 1000000)
#define BOARD_FEATURES		(RFPGA_FEATURE_MSIX | RFPGA_FEATURE_LOCK | \
				 RFPGA_FEATURE_FREERUN | RFPGA_FEATURE_FLUSH | \
				 RFPGA_FEATURE_DROP | RFPGA_FEATURE_META)
#define BOARD_MODES		(RFPGA_MODE_FREERUN | RFPGA_MODE_MSIX | RFPGA_MODE_LOCK | \
				 RFPGA_MODE_FLUSH | RFPGA_MODE_DROP | RFPGA_MODE_META)

#define ENTRY_PAGE_MASK		(RFPGA_ENTRY_PAGE - 1)
#define DTP_SIZE		0x200
#define DTP_WORDS		(0x100 / 4)

/* an adder of 64 bits, and whether it ever had a carry */
struct sum {
	uint64_t value;
	bool over;
};

struct entry {
	uint64_t addr, len, sum;
	bool valid;
};

/* a pass through the configuration: only the engine uses it during a run */
struct run {
	uint64_t stack, frame, left;
	bool endless;
	uint32_t slot, index, image;
	struct sum source, dest;	/* first line of index 0, and of slot 0, image 0 */
	struct sum slot_at, image_at;	/* added to dest */
	uint64_t index_at;		/* added to source */
	uint64_t step, round;		/* its changes for INDEX_STEP and SRC_IMAGES */
	uint64_t records;		/* metadata before this slot */
	uint64_t due;			/* ticks: earliest begin of the next image */
	bool sent, lock_sent;
	bool ending;			/* refused transactions do not count any more */
	struct sum last;		/* last byte of payload that was sent */
};

struct counters {
	uint64_t images, stacks, bytes, descriptors, overruns, faults, start, stop;
	uint64_t stall, stall_source, dropped, fault_addr;
	uint32_t credit, fault_cause;
};

/* how wide values can be, LIMITS; align: bits that are 0 */
struct limits {
	unsigned int offset, stride, count, align;
};

struct board;

struct dtp {
	struct board *board;
	unsigned int number;

	/* registers and doorbell */
	uint32_t config[DTP_WORDS];
	uint32_t status;
	struct counters count;
	uint64_t *stalled;		/* the current stall, and when it began */
	uint64_t stalled_since;
	uint32_t credit;		/* the valid credit */
	uint32_t db_credit, db_tagged[2];

	_Atomic uint64_t events;	/* raised by the server */

	/* the engine */
	atomic_bool stop;		/* no more transactions, except for an event */
	struct run run;

	/* protected by the host's exclusion */
	uint32_t table_first, table_limit;
};

struct board {
	struct host *host;
	struct device device;
	struct device_options options;
	struct limits limits;
	pthread_mutex_t lock;
	pthread_cond_t change;

	/* global registers */
	uint32_t scratch, stops, fault_cause, fault_dtp;
	uint64_t faults, fault_addr, bytes;
	bool resetting;
	uint32_t latch[RFPGA_BAR_REGS_SIZE / 4];

	struct dtp dtp[RFPGA_DTPS_MAX];
	atomic_bool halt;		/* a reset: no more transactions */
	struct dtp *turn;		/* sends the next image; wanted: DTPs with images */
	uint32_t wanted;

	/* protected by the host's exclusion */
	struct entry table[BOARD_ENTRIES_MAX];
};

static inline uint64_t board_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / BOARD_TICK_NS;
}

static inline uint32_t word(const struct dtp *dtp, unsigned int reg)
{
	return dtp->config[reg / 4];
}

static inline uint64_t pair(const struct dtp *dtp, unsigned int reg)
{
	return word(dtp, reg) | (uint64_t)word(dtp, reg + 4) << 32;
}

static inline bool mode(const struct dtp *dtp, uint32_t bit)
{
	return word(dtp, RFPGA_DTP_MODE) & bit;
}

/* PIXEL_BYTES as a shift */
static inline unsigned int pixel_shift(const struct dtp *dtp)
{
	switch (word(dtp, RFPGA_DTP_PIXEL_BYTES)) {
	case 2:
		return 1;
	case 4:
		return 2;
	case 8:
		return 3;
	default:
		return 0;
	}
}

static inline uint64_t line_length(const struct dtp *dtp)
{
	return (uint64_t)word(dtp, RFPGA_DTP_WIDTH) << pixel_shift(dtp);
}

/* a DTP runs; board->lock is held */
static inline bool is_busy(const struct board *board)
{
	unsigned int n;

	for (n = 0; n < board->options.dtps; n++)
		if (board->dtp[n].status & RFPGA_DTP_RUNNING)
			return true;
	return false;
}

static inline bool below(uint64_t value, unsigned int bits)
{
	return !(value >> bits);
}

/* "Faults": the first of a run counts; board->lock is held */
void board_fault(struct dtp *dtp, uint32_t cause, uint64_t addr);

/* "Reset values"; board->lock is held, and no transaction is under way */
void board_reset_registers(struct board *board);

/* the thread that makes the transactions of a DTP; @argument: the DTP */
void *board_engine(void *argument);

#endif /* BOARD_H */
