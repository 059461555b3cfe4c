/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A function with the reference interface, through any driver, and the paths of its events. */
#ifndef EVENT_H
#define EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/path.h"
#include <rashpa-board.h>
#include <rashpa-gpu.h>
#include "bench/uio.h"
#include "common/vfio.h"

/* --- board.c --- */

/* The driver of a function; latency has a board for each. */
enum owner { OURS, VFIO, UIO, OWNERS };

/*
 * The payload goes to the start of the memory, or to that of a GPU, the lock record to its last page. All drivers lead
 * to the same registers, so measurements differ in the driver only.
 */
struct board {
	bool open;
	char bdf[BDF_SIZE];
	volatile uint8_t *regs;		/* BAR 0 */
	volatile uint32_t *credit;	/* doorbell of DTP 0 */
	uint8_t *memory;
	size_t length;
	uint32_t first, entries;	/* in the address table */
	unsigned int irq;		/* pinned interrupt: vector 0 or INTx; 0: none */
	char affinity[128];		/* its previous affinity */
	/* this driver */
	struct rashpa_board *ours;
	int device;			/* its node; -1: another driver */
	bool iommu;
	int dmabuf;			/* uio_pci_generic uses it, too */
	struct rashpa_gpu *gpu;		/* NULL: payload is in the memory, too */
	struct rashpa_gpu_memory *payload;
	struct rashpa_target_info payload_at;
	/* vfio-pci */
	struct vfio vfio;
	/* uio_pci_generic */
	struct uio uio;
	/* vfio-pci and uio_pci_generic */
	void *bar[2];
};

#define BOARD_NONE { .device = -1, .dmabuf = -1, .vfio = VFIO_NONE, .uio = UIO_NONE }

/* room: bytes of payload; gpu: its place, or NULL. 0, or -1 with the reason in why[WHY_SIZE]. */
int board_open_ours(struct board *board, const char *device, size_t room, const char *gpu, char *why);
int board_open_vfio(struct board *board, const char *bdf, size_t room, char *why);
/* Requires that the function uses physical addresses: no IOMMU, or an identity domain. */
int board_open_uio(struct board *board, const char *bdf, size_t room, char *why);
void board_close(struct board *board);

/* A run of DTP 0; period in nanoseconds, with RFPGA_MODE_FREERUN. */
struct run {
	uint32_t mode;		/* RFPGA_MODE_* */
	uint32_t bytes;		/* stack size, a multiple of 8 */
	uint64_t stacks;	/* 0: until board_stop() */
	uint64_t period;
};

/*
 * Pin the interrupt of vector 0 to the CPU of this thread, with any driver. Otherwise the CPU of
 * the interrupt is random, which can cost more than the driver. 0, or -1 with the reason.
 */
int board_pin_interrupt(struct board *board, char *why);

/* 0: none, 1 to 4: INTA to INTD, -1: not known */
int board_interrupt_pin(const struct board *board);

/* Only the software FPGA has this register, if it was configured with an interrupt pin. */
void board_clear_intx(struct board *board);

void board_start(struct board *board, const struct run *run);
/* Stop DTP 0, and wait until it has stopped. */
void board_stop(struct board *board);
uint64_t board_counter(const struct board *board, size_t counter);
bool board_faulted(const struct board *board, char *why);

static inline volatile uint64_t *board_lock(const struct board *board)
{
	return (volatile uint64_t *)(board->memory + board->length - 4096);
}

/* Number of complete stacks, from the lock record. */
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
	enum owner owner;	/* driver of the board */
	uint32_t mode;		/* notification by the board: RFPGA_MODE_MSIX or 0 */
	/* 0, or -1 with the reason in why[WHY_SIZE] */
	int (*open)(struct path *path, char *why);
	/* Wait for events. Their number, or 0 after a signal. */
	uint64_t (*wait)(struct path *path);
	void (*close)(struct path *path);
	/* Enable the next event after each wait. NULL: not needed. */
	void (*again)(struct path *path);
};

struct path {
	const struct path_kind *kind;
	struct board *board;
	unsigned int depth;	/* depth of the channel's queue; 0: default */
	unsigned int period_us;	/* timer period */
	int channel, eventfd;
	unsigned int source;	/* one-shot: source id */
	uint64_t seen;		/* ring: tail; lock, one-shot: last value; uio: last count */
	const struct rashpa_ring *ring;
	struct rashpa_consumer *consumer;
	size_t ring_size;
	struct rashpa_event last;	/* the last record */
};

/* paths of this driver, then those of others */
enum {
	PATH_READ, PATH_EVENTFD, PATH_RING, PATH_ONE_SHOT, PATH_LOCK, PATH_POLL, PATH_VFIO,
	PATH_UIO, PATHS
};

extern const struct path_kind path_kinds[PATHS];

int path_open(struct path *path, char *why);
/* Enable the next event. Counts for CPU time and the largest rate, but not for latencies. */
void path_again(struct path *path);
void path_close(struct path *path);

/* Bind this thread to one CPU. */
void stay_on_cpu(void);

/* Send SIGALRM periodically, so that no wait lasts for ever; 0: stop. */
void ticks_start(unsigned int ms);
extern volatile unsigned int ticks;

#endif /* EVENT_H */
