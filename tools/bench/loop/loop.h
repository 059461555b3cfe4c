/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop of a program that drives the board by a ring (fpga-interface.rst). */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "fpga.h"

/* What a drive is to do, as loop.comp has it: places are words of the memory. */
struct loop_plan {
	uint32_t told, descriptors, events, receive, source, answers, came;
	uint32_t descriptors_log2, events_log2, slot_log2, words;
	uint32_t run, total, window, stale_at, tail_at;
};

#define LOOP_NEVER	UINT32_MAX	/* stale_at, tail_at */

/* A board's ring, and the memory that it and a drive have. */
struct loop {
	struct fpga fpga;
	struct fpga_block ring;
	struct view doorbells, bounds;
	int dmabuf, map;
	volatile uint32_t *word;
	uint64_t length;
	uint32_t entries;
	volatile uint8_t *page;		/* of the ring's doorbell */
	struct loop_plan plan;
};

#define LOOP_NONE { .fpga = FPGA_NONE, .doorbells = VIEW_NONE, .bounds = VIEW_NONE, \
		    .dmabuf = -1, .map = -1 }

/* --- ring.c: all return 0, or -1 with the reason in why[WHY_SIZE] --- */

/* @buffer: its name; NULL: one of our own. The plan's logs, words, total and window are set. */
int loop_open(struct loop *loop, const char *device, const char *buffer, char *why);
void loop_close(struct loop *loop);
/* Clear what was told, and start the ring in loopback: its number of the run is another one. */
int loop_start(struct loop *loop, uint32_t deadline_us, char *why);
void loop_stop(struct loop *loop);
uint32_t loop_status(const struct loop *loop);
uint64_t loop_counter(const struct loop *loop, uint32_t which);

/* --- drives --- */

struct loop_drive {
	const char *name;
	void *own;
	/* both: 0, or -1 with the reason; end() waits for it, behind TOLD_END or TOLD_STOP */
	int (*begin)(struct loop_drive *drive, struct loop *loop, char *why);
	int (*end)(struct loop_drive *drive, char *why);
	void (*close)(struct loop_drive *drive);
};

int loop_by_host(struct loop_drive *drive, char *why);
/* @gpu: as rashpa_gpu_open() has it */
int loop_by_vulkan(struct loop_drive *drive, const char *gpu, char *why);

#endif /* LOOP_H */
