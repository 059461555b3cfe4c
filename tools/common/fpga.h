/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A bound function with the reference interface: its registers as memory. */
#ifndef FPGA_H
#define FPGA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/rashpa.h>

#include <rashpa-fpga.h>

struct view {
	int fd;			/* dma-buf of the window */
	size_t length;
	volatile uint8_t *base;
};

struct fpga {
	unsigned int number;
	int device;		/* /dev/rashpa/fpgaN */
	struct rashpa_device_info info;
	struct view regs;
};

#define VIEW_NONE	{ .fd = -1 }
#define FPGA_NONE	{ .device = -1, .regs = VIEW_NONE }

/* "3" or "fpga3" */
bool parse_fpga(const char *text, unsigned int *number);

/* 0, or -1 with the reason in why[WHY_SIZE]. */
int fpga_open(struct fpga *fpga, unsigned int number, char *why);
/* Map the registers and check that this is the reference interface. */
int fpga_registers(struct fpga *fpga, char *why);
void fpga_close(struct fpga *fpga);

/*
 * Check that the function has no addresses. The end of one more map could stop a stream that uses
 * them. A map that was never programmed, nor seen, is harmless. 0, or -1 with the reason in
 * why[WHY_SIZE].
 */
int fpga_idle(struct fpga *fpga, char *why);
/*
 * Claim the function exclusively, before mapping memory for it. Refused while another program has
 * claimed it, or it is not idle; checks anew each time. The claim ends with the program, with
 * fpga_close(), or with fpga_unclaim(). 0, or -1 with the reason in why[WHY_SIZE].
 */
int fpga_claim(struct fpga *fpga, char *why);
void fpga_unclaim(struct fpga *fpga);

/* Registers of a function that was removed cannot be reached: end with a message, not silently. */
void fpga_catch_removal(void);
/*
 * For programs that go on without the function, after fpga_catch_removal(): call @look(@arg), which
 * reads registers. False: the function was removed, and @look was interrupted. So @look must not
 * hold resources that its caller does not know. In one thread, and one call at a time.
 */
bool fpga_outlive(void (*look)(void *arg), void *arg);

/*
 * Open the window with this name in the profile, or without a profile the range of the BAR;
 * length 0: to its end.
 */
int view_open(struct view *view, struct fpga *fpga, const char *name, unsigned int bar,
	      uint64_t offset, uint64_t length, bool map, char *why);
/* Map the window @fd of @length bytes; @what it is, for the reason. 0, or -1 with the reason. */
int view_map(struct view *view, const struct fpga *fpga, const char *what, char *why);
void view_close(struct view *view);

static inline uint32_t view_read(const struct view *view, size_t offset)
{
	return *(volatile uint32_t *)(view->base + offset);
}

static inline void view_write(const struct view *view, size_t offset, uint32_t value)
{
	*(volatile uint32_t *)(view->base + offset) = value;
}

static inline uint32_t fpga_read(const struct fpga *fpga, size_t offset)
{
	return view_read(&fpga->regs, offset);
}

static inline void fpga_write(const struct fpga *fpga, size_t offset, uint32_t value)
{
	view_write(&fpga->regs, offset, value);
}

static inline uint64_t fpga_read64(const struct fpga *fpga, size_t offset)
{
	return *(volatile uint64_t *)(fpga->regs.base + offset);
}

static inline void fpga_write64(const struct fpga *fpga, size_t offset, uint64_t value)
{
	*(volatile uint64_t *)(fpga->regs.base + offset) = value;
}

/* Configure process @n for its next start. */
void fpga_configure(const struct fpga *fpga, unsigned int n, const struct rfpga_dtp *dtp);

/* Entries of the address table that a part of the board may use. */
struct fpga_range {
	uint32_t first, count;
	int engine;		/* engine of the profile; -1: no engines, all entries are shared */
};

/* Entries of the engine with this name: 0, or -1 with the reason in why[WHY_SIZE]. */
int fpga_range(const struct fpga *fpga, const char *engine, struct fpga_range *range, char *why);

/* False: not the reference interface, or removed (a removed function reads as all ones). */
static inline bool fpga_answers(const struct fpga *fpga)
{
	return fpga_read(fpga, RFPGA_ID) == RFPGA_ID_VALUE;
}

static inline unsigned int fpga_processes(const struct fpga *fpga)
{
	unsigned int n = RFPGA_CAPS_DTPS(fpga_read(fpga, RFPGA_CAPS));

	return n < RFPGA_DTPS_MAX ? n : RFPGA_DTPS_MAX;
}

/* An entry of the list of blocks. */
struct fpga_block {
	uint32_t type, count, base, step, doorbell;
};

/* Entry @i of the board's list; false: the list has ended. */
bool fpga_block_at(const struct fpga *fpga, unsigned int i, struct fpga_block *block);
/*
 * The first group of blocks of a type that lies completely in the registers, each block of at least
 * @size bytes. False: no such block.
 */
bool fpga_block_find(const struct fpga *fpga, uint32_t type, uint32_t size,
		     struct fpga_block *block);

/* Its processing unit that pretreats images. False: no such unit. */
bool fpga_unit(const struct fpga *fpga, struct fpga_block *unit);

/* Bytes of on-board memory within this view. */
uint64_t fpga_memory(const struct fpga *fpga, const struct view *memory);

const char *fpga_cause_name(uint32_t cause);

#endif /* FPGA_H */
