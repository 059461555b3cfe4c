/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A DTP of the board under test: its configuration, and checks of its results. */
#ifndef CONFORMANCE_DTP_H
#define CONFORMANCE_DTP_H

#include "conformance/target.h"
#include "conformance/test.h"

#define DST		0u			/* in host memory */
#define LOCKS		(48u << 20)

/* Registers of the DTP, except FIRST_SLOT and FIRST_INDEX, which are derived. */
struct dtp {
	uint32_t n, mode, vector, pixel, sampling, bunch, slots, images_in_set;
	uint32_t src_x, src_y, width, height, dst_x, dst_y;
	uint64_t src_base, src_line, src_image, dst_base, dst_line, dst_image, dst_slot;
	uint32_t first, count;
	uint64_t lock, images, period, first_stack;
	uint32_t run;
	uint64_t meta, first_frame;
	uint32_t source, live_sampling;		/* as in SOURCE and SAMPLING */
};

/* Round up to ALIGN of the board, in bytes. */
static inline uint64_t down(uint64_t bytes)
{
	return bytes & ~(uint64_t)(board.align - 1);
}

static inline uint64_t up(uint64_t bytes)
{
	return down(bytes + board.align - 1);
}

/* The largest number of @bits bits. */
static inline uint64_t most(unsigned int bits)
{
	return bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
}

/* High word of the smallest 64-bit value that exceeds @bits bits; 0: no value does. */
static inline uint32_t too_wide(unsigned int bits)
{
	return bits < 32 ? 1 : (uint32_t)(most(bits) >> 32) + 1;
}

/*
 * Set registers and host memory to the state in which each test starts: entry 0 is DST, entry 1
 * LOCKS. A single entry serves both.
 */
void fresh(void);
/* Entry of a linear space: the first, or a valid one after @sum bytes. */
void set_entry(unsigned int n, uint64_t addr, uint64_t length, uint32_t control);
void set_segment(unsigned int n, uint64_t addr, uint64_t length, uint64_t sum);

/* The metadata of an image in the memory of the lock records. */
const volatile uint32_t *meta_record(const struct dtp *d, uint32_t slot, uint32_t image);
uint64_t meta64(const volatile uint32_t *meta, uint32_t word);

/*
 * 16 whole images of 64 x 32 pixels of two bytes, in two slots of 4. Images are smaller if the
 * board lacks memory, wider if ALIGN requires it; with both there are fewer.
 */
struct dtp plain(uint32_t n);
/* Images of @lines lines of 4096 bytes, or fewer, one above the other. */
struct dtp large(uint32_t lines);
/* As many images as fit into memory, at most @images; if none fits, skip the test. */
void fit_images(struct dtp *d);
/* Skip the test if LIMITS do not allow its settings. */
void program_dtp(const struct dtp *d);
void start(const struct dtp *d);
/* Start, and wait for this STATUS. */
#define run_to(d, end)	run_to_at(__FILE__, __LINE__, d, end)
void run_to_at(const char *file, int line, const struct dtp *d, uint32_t end);
void give_credit(uint32_t n, uint32_t credit);
/* Stop, and wait until nothing runs. */
#define stop_by(reg, value)	do { wr(reg, value); CHECK(EVENTUALLY(idle())); } while (0)
#define stop_dtp(n)		stop_by(DTP(n), RFPGA_DTP_STOP)
#define stop_board()		stop_by(RFPGA_CONTROL, RFPGA_CONTROL_STOP)

bool idle(void);
uint32_t status(uint32_t n);
uint64_t counter(uint32_t n, uint32_t which);

/* Add interrupts of a vector since the last check; false: none. */
bool wait_event(uint32_t vector, uint64_t *total);
uint64_t events_so_far(uint32_t vector);
/* All interrupts that were sent arrived (fewer if they merge); and no others are pending. */
bool told(uint32_t vector, uint64_t n);
bool silent(uint32_t vector);
const volatile uint64_t *lock_record(uint32_t n);

/* Do host memory and on-board memory agree? */
bool same_image(const struct dtp *d, uint64_t stack, uint32_t image);
bool same_stack(const struct dtp *d, uint64_t stack);
bool untouched(size_t from, size_t to);
/* Is the payload of this image of a slot image @index of the dataset, as set by plain()? */
bool shows(const struct dtp *d, uint32_t slot, uint32_t image, uint64_t index);

bool faulted(uint32_t n, uint32_t cause);	/* ended by this single fault */
/*
 * Revoke memory under a stream, many times: after @take returns nothing is written there, and the
 * stream ends by @cause. @give restores the memory.
 */
void take_away(struct dtp *d, void (*take)(void), void (*give)(void), uint32_t cause);
/* Note the state of DTPs that are not idle. */
void note_dtps(void);
/* DTP 0 refused to start: no data, no run, no interrupt. */
void check_refused(uint32_t cause);
/* The same, but boards may have sent payload before the refused part. */
void check_cut(uint32_t cause);

#endif /* CONFORMANCE_DTP_H */
