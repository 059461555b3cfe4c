/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A function with the reference interface, whoever drives it, and the ways its events take. */
#ifndef EVENT_H
#define EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "fpga.h"
#include "path.h"
#include "rashpa-fpga.h"
#include "uio.h"
#include "vfio.h"

/* --- board.c --- */

/* Whose the function is; latency has a board for each. */
enum owner { OURS, VFIO, UIO, OWNERS };

/*
 * The payload goes to the beginning of the memory, the lock record to its last page. All
 * drivers lead to the same registers: what is measured differs in nothing else.
 */
struct board {
	bool open;
	char bdf[BDF_SIZE];
	volatile uint8_t *regs;		/* BAR 0 */
	volatile uint32_t *credit;	/* doorbell of process 0 */
	uint8_t *memory;
	size_t length;
	uint32_t first, entries;	/* of the address table */
	unsigned int irq;		/* of vector 0, or the pin, that was pinned, 0: none */
	char affinity[128];		/* and where it was */
	/* ours */
	struct fpga fpga;
	struct view doorbells;
	int dmabuf, map;		/* the buffer is uio_pci_generic's, too */
	/* VFIO's */
	struct vfio vfio;
	/* uio_pci_generic's */
	struct uio uio;
	/* of these two */
	void *bar[2];
};

#define BOARD_NONE { .fpga = FPGA_NONE, .doorbells = VIEW_NONE, .dmabuf = -1, .map = -1, \
		     .vfio = VFIO_NONE, .uio = UIO_NONE }

/* room: bytes of payload. 0, or -1 with the reason in why[WHY_SIZE]. */
int board_open_ours(struct board *board, const char *device, size_t room, char *why);
int board_open_vfio(struct board *board, const char *bdf, size_t room, char *why);
/* Only where the function reaches physical addresses: no IOMMU, or an identity domain. */
int board_open_uio(struct board *board, const char *bdf, size_t room, char *why);
void board_close(struct board *board);

/* A run of process 0; period in nanoseconds, with RFPGA_MODE_FREERUN. */
struct run {
	uint32_t mode;		/* RFPGA_MODE_* */
	uint32_t bytes;		/* of a stack, a multiple of 8 */
	uint64_t stacks;	/* 0: until it is stopped */
	uint64_t period;
};

/*
 * Let the CPU of this thread take the interrupts of vector 0, whoever asked for them: where they
 * arrive is chance else, and can cost more than all drivers. -1 with the reason.
 */
int board_pin_interrupt(struct board *board, char *why);

/* 0: none, 1 to 4: INTA to INTD, -1: not known */
int board_interrupt_pin(const struct board *board);

/* Only the software FPGA has it, where it was asked for a pin. */
void board_clear_intx(struct board *board);

void board_start(struct board *board, const struct run *run);
/* Until it stands still. */
void board_stop(struct board *board);
uint64_t board_counter(const struct board *board, size_t counter);
bool board_faulted(const struct board *board, char *why);

static inline volatile uint64_t *board_lock(const struct board *board)
{
	return (volatile uint64_t *)(board->memory + board->length - 4096);
}

/* Stacks complete, as the lock record has them. */
static inline uint64_t board_stacks(const struct board *board)
{
	return __atomic_load_n(board_lock(board) + RFPGA_LOCK_STACKS / 8, __ATOMIC_ACQUIRE);
}

static inline void board_credit(const struct board *board, uint32_t stacks)
{
	__atomic_store_n(board->credit, stacks, __ATOMIC_RELEASE);
}

/* --- paths.c --- */

struct path;

struct path_kind {
	const char *name;
	enum owner owner;	/* by whose board */
	uint32_t mode;		/* how the board tells: RFPGA_MODE_MSIX or _LOCK */
	/* 0, or -1 with the reason in why[WHY_SIZE] */
	int (*open)(struct path *path, char *why);
	/* How many events have come, or 0 after a signal. */
	uint64_t (*wait)(struct path *path);
	void (*close)(struct path *path);
	/* After each wait: let the next one come. NULL: nothing is to be done. */
	void (*again)(struct path *path);
};

struct path {
	const struct path_kind *kind;
	struct board *board;
	unsigned int depth;	/* of the channel's queue, 0: the default */
	unsigned int period_us;	/* of the timer */
	int channel, eventfd;
	unsigned int source;	/* one-shot: its id */
	uint64_t seen;		/* ring: tail; lock, one-shot: last value; uio: last count */
	const struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
	size_t ring_size;
	struct rashpa_event last;	/* the last record */
};

/* ours, then the others' */
enum {
	PATH_READ, PATH_EVENTFD, PATH_RING, PATH_ONE_SHOT, PATH_LOCK, PATH_POLL, PATH_VFIO,
	PATH_UIO, PATHS
};

extern const struct path_kind path_kinds[PATHS];

int path_open(struct path *path, char *why);
/* What an event had, the next one can come: not its time, but CPU time and the largest rate. */
void path_again(struct path *path);
void path_close(struct path *path);

/* This thread stays on one CPU, where its interrupts are taken, too. */
void stay_on_cpu(void);

/* SIGALRM again and again, so that no wait lasts for ever; 0: no more. */
void ticks_start(unsigned int ms);
extern volatile unsigned int ticks;

#endif /* EVENT_H */
