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

/* The most that fits into so many bits. */
static inline uint64_t most(unsigned int bits)
{
	return bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
}

/* The high word of a pair that is too wide for @bits; 0: none is. */
static inline uint32_t too_wide(unsigned int bits)
{
	return bits < 32 ? 1 : (uint32_t)(most(bits) >> 32) + 1;
}

/*
 * Registers and host memory as every test finds them: entry 0 is DST, entry 1 LOCKS. Where there
 * is one entry only, it is both.
 */
void fresh(void);
/* The first of a linear space, or a valid one behind @sum bytes of it. */
void set_entry(unsigned int n, uint64_t addr, uint64_t length, uint32_t control);
void set_segment(unsigned int n, uint64_t addr, uint64_t length, uint64_t sum);

/* The metadata of an image in the memory of the lock records. */
const volatile uint32_t *meta_record(const struct dtp *d, uint32_t slot, uint32_t image);
uint64_t meta64(const volatile uint32_t *meta, uint32_t word);

/*
 * A whole image of 64 x 32 pixels of two bytes, 16 of them, two slots of 4. Smaller ones where
 * there is not so much memory, and wider ones where ALIGN asks for it; fewer where both do.
 */
struct dtp plain(uint32_t n);
/* Images of so many lines of 4096 bytes, or fewer, one upon the other. */
struct dtp large(uint32_t lines);
/* As many images as there is memory for, at most those that it has; none: the test is skipped. */
void fit_images(struct dtp *d);
/* What its LIMITS do not allow no test asks of a board: it is skipped. */
void program_dtp(const struct dtp *d);
void start(const struct dtp *d);
/* Start it, and wait for this STATUS. */
#define run_to(d, end)	run_to_at(__FILE__, __LINE__, d, end)
void run_to_at(const char *file, int line, const struct dtp *d, uint32_t end);
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
/* The payload of this image of a slot is image @index of the dataset, as plain() has them. */
bool shows(const struct dtp *d, uint32_t slot, uint32_t image, uint64_t index);

bool faulted(uint32_t n, uint32_t cause);	/* ended by this, the only one */
/*
 * Take memory away under a stream, many times: when @take returns nothing is written any more, and
 * the stream ends by @cause. @give undoes it.
 */
void take_away(struct dtp *d, void (*take)(void), void (*give)(void), uint32_t cause);
/* Say how DTPs are that are not at rest. */
void note_dtps(void);
/* Of DTP 0 nothing was written, nothing runs, nobody was told. */
void check_refused(uint32_t cause);
/* The same, but for payload before what was refused: boards may have sent some. */
void check_cut(uint32_t cause);

#endif /* CONFORMANCE_DTP_H */
