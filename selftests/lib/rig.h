/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A software FPGA that streams a small dataset into a memory. */
#ifndef RIG_H
#define RIG_H

#include "../../tools/lib/rashpa-fpga.h"
#include "common.h"

#define WIDTH	256		/* pixels of 4 bytes */
#define HEIGHT	64
#define LINE	(WIDTH * 4)
#define IMAGE	(LINE * HEIGHT)
#define IMAGES	8
#define SEED	1000		/* of the dataset, for filled() */

struct rig {
	const struct fpga *fpga;
	int window, channel, buffer, map;
	char *regs;
	char *memory;		/* of the buffer, NULL if it was not made here */
	struct rashpa_map_make made;
};

/* The dataset in on-board memory. */
void rig_load(const struct fpga *fpga);

/* As fpga_try() and fpga_need(), with the dataset. */
bool rig_try(struct fpga *fpga, unsigned int nth);
void rig_need(struct fpga *fpga);
/* And with its control socket. */
void rig_need_control(struct fpga *fpga);
/* For its profile: the table of one that fetches a chain (RFPGA_PCI_FETCH_CHAIN). */
const struct rashpa_profile_table *rig_chain(void);

/*
 * Registers, a channel on vector 1, a mapped and programmed memory: @memory_fd, or a new
 * buffer if it is -1. The test ends where that fails.
 */
void rig_up(struct rig *r, const struct fpga *fpga, int memory_fd, uint32_t flags,
	    u64 max_segment);
void rig_down(struct rig *r);

/* Registers of DTP @n. */
char *rig_dtp(const struct rig *r, unsigned int n);
/* Stream the dataset into entries [first, first + count) in order. */
void rig_configure(const struct rig *r, unsigned int n, uint32_t mode, uint32_t first,
		   uint32_t count, u64 images);
void rig_start(const struct rig *r, unsigned int n);
/* Until it has stopped by itself; the limit is the test's. */
void rig_wait_stopped(const struct rig *r, unsigned int n);
/*
 * Let DTP 0 send image @i of the dataset to its place in the memory, and read its event into
 * @e. False after a failed check. The event comes first: DTP 0 may still be running.
 */
bool rig_send_image(const struct rig *r, unsigned int i, struct rashpa_event *e);
/*
 * The barrier for events: until each interrupt that the board has sent has been counted by the
 * driver, and its records are in the queues. That are RIG_SETTLE interrupts of the last vector, by
 * the last DTP.
 */
void rig_settle(const struct rig *r);
#define RIG_SETTLE	2
/* Until the DTP has moved @bytes; polls a register, at most five seconds. */
bool rig_wait_bytes(const struct rig *r, unsigned int n, u64 bytes);
/* Check: stopped, nothing moves any more, and nothing went wrong on the way. */
void rig_is_idle(const char *regs, unsigned int n);
/*
 * A line for the control socket of the lab's FPGA number @n, see rashpa-fpga(1). False: it
 * cannot be reached, or does not obey.
 */
bool rig_tell(unsigned int n, const char *command);
/* The same; its @answer as text, at most @size bytes with the NUL. */
bool rig_ask(unsigned int n, const char *command, char *answer, size_t size);
/* Check: the first @n entries of the table are clear. */
void rig_entries_clear(const char *regs, uint32_t n);

#endif /* RIG_H */
