/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A DTP of the board under test: what it is to do, and what it has done. */
#ifndef CONFORMANCE_DTP_H
#define CONFORMANCE_DTP_H

#include "target.h"
#include "test.h"

#define DST		0u			/* in host memory */
#define LOCKS		(48u << 20)

/* What is in its registers, but for FIRST_SLOT and FIRST_INDEX, which follow from it. */
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

/* Bytes as ALIGN of the board wants them. */
static inline uint64_t down(uint64_t bytes)
{
	return bytes & ~(uint64_t)(board.align - 1);
}

static inline uint64_t up(uint64_t bytes)
{
	return down(bytes + board.align - 1);
}

/* A value of the high word of a pair that is too wide for @bits. */
static inline uint32_t too_wide(unsigned int bits)
{
	return bits < 32 ? 1 : 1u << (bits - 32);
}

/* Registers and host memory as every test finds them: entry 0 is DST, entry 1 LOCKS. */
void fresh(void);
/* The first of a linear space, or a valid one behind @sum bytes of it. */
void set_entry(unsigned int n, uint64_t addr, uint64_t length, uint32_t control);
void set_segment(unsigned int n, uint64_t addr, uint64_t length, uint64_t sum);

/* Where the first block of this type is, and how many there are; 0: there is none. */
uint32_t block(uint32_t type, uint32_t *count);

/* The metadata of an image in the memory of the lock records. */
const volatile uint32_t *meta_record(const struct dtp *d, uint32_t slot, uint32_t image);
uint64_t meta64(const volatile uint32_t *meta, uint32_t word);

/* A whole image of 64 x 32 pixels of two bytes, 16 of them, two slots of 4. */
struct dtp plain(uint32_t n);
void program_dtp(const struct dtp *d);
void start(const struct dtp *d);
void run_to(const struct dtp *d, uint32_t end);	/* start it, and wait for this STATUS */
void give_credit(uint32_t n, uint32_t credit);

bool idle(void);
uint32_t status(uint32_t n);
uint64_t counter(uint32_t n, uint32_t which);

/* Interrupts of a vector: those that came since the last look are added; false: none came. */
bool wait_event(uint32_t vector, uint64_t *total);
uint64_t events_so_far(uint32_t vector);
/* All that were sent, so many, came (fewer where they merge); none comes. */
bool told(uint32_t vector, uint64_t n);
bool silent(uint32_t vector);
const volatile uint64_t *lock_record(uint32_t n);

/* Is this in host memory what is in on-board memory? */
bool same_image(const struct dtp *d, uint64_t stack, uint32_t image);
bool same_stack(const struct dtp *d, uint64_t stack);
bool untouched(size_t from, size_t to);

bool faulted(uint32_t n, uint32_t cause);	/* ended by this, the only one */
/* Of DTP 0 nothing was written, nothing runs, nobody was told. */
void check_refused(uint32_t cause);
/* The same, but for payload before what was refused: boards may have sent some. */
void check_cut(uint32_t cause);

#endif /* CONFORMANCE_DTP_H */
