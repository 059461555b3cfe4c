/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The loop of a program that drives the board by a ring (fpga-interface.rst). */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "fpga.h"
#include "rashpa-gpu.h"

/* What a drive is to do, as loop.comp has it, but for judges: places are words of the memory. */
struct loop_plan {
	uint32_t told, descriptors, events, receive, source, answers, came;
	uint32_t descriptors_log2, events_log2, slot_log2, words;
	uint32_t run, total, window, stale_at, tail_at, judges;
};

#define LOOP_NEVER	UINT32_MAX	/* stale_at, tail_at */

struct loop;

/* What a drive takes part in. All return 0, or -1 with the reason in why[WHY_SIZE]. */
struct loop_kind {
	const char *engine;	/* of the profile, that it drives */
	/* the places of the plan, and how long the memory is */
	void (*lay_out)(struct loop *loop);
	/* what it needs of the board, behind the memory; sets the doorbell's page */
	int (*open)(struct loop *loop, char *why);
	/* the memory is zeros */
	int (*start)(struct loop *loop, char *why);
	void (*stop)(struct loop *loop);
	/* has a fault ended it? @why: which one */
	bool (*faulted)(const struct loop *loop, char *why);
};

/* A ring in loopback (ring.c), and DTP 0 with verdicts (stacks.c). */
extern const struct loop_kind loop_ring, loop_stacks;

/* What the board does, and the memory that it and a drive have. */
struct loop {
	const struct loop_kind *kind;
	struct fpga fpga;
	struct fpga_block ring;
	uint32_t deadline_us;
	bool flush;			/* payload, before its event, by a read */
	struct view doorbells, bounds;
	int dmabuf, map;
	const char *gpu_name;		/* whose memory it is; NULL: the host's */
	struct rashpa_gpu *gpu;
	struct rashpa_gpu_memory *memory;
	volatile uint32_t *word;
	uint64_t length;
	uint32_t first, entries;
	bool bounded;			/* by the driver: it is an engine of the profile */
	volatile uint8_t *page;		/* of its doorbell */
	struct loop_plan plan;
};

#define LOOP_NONE { .fpga = FPGA_NONE, .doorbells = VIEW_NONE, .bounds = VIEW_NONE, \
		    .dmabuf = -1, .map = -1 }

/* --- memory.c: all return 0, or -1 with the reason in why[WHY_SIZE] --- */

/*
 * @buffer: its name; NULL: one of our own, or the GPU's. Kind, logs, words, total and window are
 * set.
 */
int loop_open(struct loop *loop, const char *device, const char *buffer, char *why);
void loop_close(struct loop *loop);
int loop_start(struct loop *loop, char *why);
/* So many bytes at the next multiple of a page: a word's number. */
uint32_t loop_place(struct loop *loop, uint64_t bytes);
/* Until this register has not this bit any more, or for longer than any board takes to stop. */
void loop_await_stop(const struct loop *loop, uint32_t status, uint32_t running);

/* --- ring.c --- */

uint64_t loop_ring_counter(const struct loop *loop, uint32_t which);

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
