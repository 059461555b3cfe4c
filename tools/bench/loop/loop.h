/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A program that drives the board by a ring (fpga-options.rst, "Rings"). */
#ifndef LOOP_H
#define LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <rashpa-board.h>
#include <rashpa-gpu.h>

/*
 * Parameters of a drive; loop.comp and loop.cu have the same. Places are word numbers; hits is 0
 * without rings. data and to are those of a launch.
 */
struct loop_plan {
	uint32_t told, descriptors, events, receive, source, answers, came, hits, fits;
	uint32_t descriptors_log2, events_log2, slot_log2, words;
	uint32_t run, total, window, stale_at, tail_at, rounds, data, to;
};

#define LOOP_NEVER	UINT32_MAX	/* stale_at, tail_at */
#define LOOP_GOOD	13u		/* TOLD_GOOD of drive.h */
#define LOOP_STOP_MS	6000u		/* longer than any STOP_TIME */

struct loop;
struct loop_drive;

/* Kind of a loop. Functions return 0, or -1 with the reason in why[WHY_SIZE]. */
struct loop_kind {
	uint32_t user;		/* bit of the DTP or ring */
	/* set the places of the plan, and the length of the memory */
	void (*lay_out)(struct loop *loop);
	/* prepare the board, after the memory; set the doorbell page */
	int (*open)(struct loop *loop, char *why);
	/* start, with zeroed memory */
	int (*start)(struct loop *loop, char *why);
	void (*stop)(struct loop *loop);
	/* has a fault stopped the engine? @why: the fault */
	bool (*faulted)(const struct loop *loop, char *why);
};

/* A ring in loopback (ring.c), and DTP 0 with verdicts (stacks.c). */
extern const struct loop_kind loop_ring, loop_stacks;

/* The board, and the memory that it shares with a drive. */
struct loop {
	const struct loop_kind *kind;
	struct rashpa_board *board;
	struct rashpa_board_info info;
	struct rashpa_block ring;
	uint32_t deadline_us, compute_us;
	double fit_ns;			/* time of a fit, of many at once */
	bool rings;			/* datagrams are hits of rings, which the drive fits */
	struct loop_drive *drive;
	int channel;			/* event channel with the vector of the ring; -1: none */
	uint32_t source;
	bool flush;			/* the board flushes payload by a read before its event */
	struct rashpa_board_view doorbells;
	int dmabuf;
	struct rashpa_target *target;
	struct rashpa_target_info entries;	/* entries of the table for this target */
	const char *gpu_name;		/* GPU that provides the memory; NULL: host memory */
	struct rashpa_gpu *gpu;		/* that of the drive, or opened */
	bool opened;
	struct rashpa_gpu_memory *memory;
	volatile uint32_t *word;
	bool copied;			/* word is a copy: the host does not access the memory */
	uint64_t length;
	volatile uint8_t *page;		/* doorbell page */
	struct loop_plan plan;
};

#define LOOP_NONE { .dmabuf = -1, .channel = -1 }

/* --- memory.c: all return 0, or -1 with the reason in why[WHY_SIZE] --- */

/*
 * Open board and memory. @buffer: name of a buffer; NULL: a new one, or GPU memory. The caller has
 * set kind, gpu_name and gpu, logs, words, total and window.
 */
int loop_open(struct loop *loop, const char *device, const char *buffer, char *why);
void loop_close(struct loop *loop);
int loop_start(struct loop *loop, char *why);
/* Copy words to the memory, or from it, if the host does not access it. */
void loop_put(const struct loop *loop, uint32_t at, uint32_t words);
void loop_get(const struct loop *loop, uint32_t at, uint32_t words);
/* Reserve bytes at the next page. Returns the word number. */
uint32_t loop_place(struct loop *loop, uint64_t bytes);

/* --- ring.c --- */

uint64_t loop_ring_counter(const struct loop *loop, uint32_t which);
/* Interrupts that the driver has counted since the loop was opened. */
uint64_t loop_ring_interrupts(const struct loop *loop);

/* --- rings.c: events of a detector of rings --- */

#define LOOP_RINGS	256u	/* RINGS of drive.h */
#define LOOP_RINGS_BYTES 64u	/* the least size of such a datagram */

/* Write the datagrams of all events, a slot each. */
void loop_rings_fill(const struct loop *loop);
/* Number of answers that differ from the reference. */
uint32_t loop_rings_wrong(const struct loop *loop);

/* --- drives --- */

struct loop_drive {
	char name[RASHPA_GPU_NAME + 16];
	struct rashpa_gpu *gpu;		/* NULL: the host drives */
	/* process a datagram by a launch, when an interrupt has reported it; NULL: poll, and no launch */
	bool (*launch)(struct loop_drive *drive, uint32_t data, uint32_t to);
	/* copy words, while the kernel runs; NULL: the host accesses the memory */
	void (*copy)(const struct loop *loop, bool to_gpu, uint32_t at, uint32_t words);
	void *own;
	bool lost;			/* the GPU may use the memory until the process exits */
	/* 0, or -1 with the reason */
	int (*begin)(struct loop_drive *drive, struct loop *loop, char *why);
	/* after begin(), and after TOLD_END or TOLD_STOP: wait for the drive, which leaves the memory */
	int (*end)(struct loop_drive *drive, char *why);
	void (*close)(struct loop_drive *drive);
};

void loop_by_host(struct loop_drive *drive);
/* @gpu: name for rashpa_gpu_open(). @launches: the host drives, and launches for each datagram */
int loop_by_vulkan(struct loop_drive *drive, const char *gpu, bool launches, char *why);
int loop_by_cuda(struct loop_drive *drive, const char *gpu, bool launches, char *why);

/* The thread of the host: for launches, too. */
int loop_host_begin(struct loop_drive *drive, struct loop *loop, char *why);
int loop_host_end(struct loop_drive *drive, char *why);
/* Find rounds and fit_ns. @trial returns the time of a launch (KIND_ONE), ns. */
void loop_calibrate(struct loop *loop, uint64_t (*trial)(void *own, const struct loop_plan *plan,
							  uint32_t groups), void *own);

#endif /* LOOP_H */
