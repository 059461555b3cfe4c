/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A software FPGA that streams a small dataset into a memory. */
#ifndef RIG_H
#define RIG_H

#include <rashpa-fpga.h>
#include "common.h"

#define WIDTH	256		/* pixels of 4 bytes */
#define HEIGHT	64
#define LINE	(WIDTH * 4)
#define IMAGE	(LINE * HEIGHT)
#define IMAGES	8
#define SEED	1000		/* seed of the dataset, for filled() */

struct rig {
	const struct fpga *fpga;
	int window, channel, buffer, map;
	char *regs;
	char *memory;		/* mapping of the buffer, NULL if it was not made here */
	struct rashpa_map_make made;
};

/* The dataset in on-board memory. */
void rig_load(const struct fpga *fpga);

/* As fpga_try() and fpga_need(), with the dataset. */
bool rig_try(struct fpga *fpga, unsigned int nth);
void rig_need(struct fpga *fpga);
/* And with its control socket. */
void rig_need_control(struct fpga *fpga);
/* For the profile of a function that fetches a chain (RFPGA_PCI_FETCH_CHAIN): its table. */
const struct rashpa_profile_table *rig_chain(void);

/*
 * Registers, a channel on vector 1, a mapped and programmed memory: @memory_fd, or a new
 * buffer if it is -1. A failure ends the test.
 */
void rig_up(struct rig *r, const struct fpga *fpga, int memory_fd, uint32_t flags,
	    u64 max_segment);
/* The same, with a map that is not programmed. */
void rig_map(struct rig *r, const struct fpga *fpga, int memory_fd, uint32_t flags,
	     u64 max_segment);
void rig_down(struct rig *r);
/* The map alone, before the rest. */
void rig_end_map(struct rig *r);

/* Registers of DTP @n. */
char *rig_dtp(const struct rig *r, unsigned int n);
/* Stream the dataset into entries [first, first + count) in order. */
void rig_configure(const struct rig *r, unsigned int n, uint32_t mode, uint32_t first,
		   uint32_t count, u64 images);
void rig_start(const struct rig *r, unsigned int n);
/* Wait until it has stopped without STOP; the only limit is that of the test. */
void rig_wait_stopped(const struct rig *r, unsigned int n);
/* Let DTP 0 stream without an end, as rig_configure() does, and check that it runs. */
bool rig_run(const struct rig *r, uint32_t first, uint32_t count);
/* Let it stream @images, each flushed, and wait for its end. */
void rig_stream(const struct rig *r, uint32_t first, uint32_t count, u64 images);
/* The same, several times round, and check that the data arrive in the rig's own buffer. */
void rig_streams(const struct rig *r, uint32_t first, uint32_t count);
/*
 * Let DTP 0 send image @i of the dataset to its place in the memory, and read its event into
 * @e. False after a failed check. The event comes first: DTP 0 may still be running.
 */
bool rig_send_image(const struct rig *r, unsigned int i, struct rashpa_event *e);
/*
 * Barrier for events: wait until the driver has counted each interrupt that the board has sent, and
 * queued its records. It sends RIG_SETTLE interrupts of the last vector, by the last DTP.
 */
void rig_settle(const struct rig *r);
#define RIG_SETTLE	2
/* Wait until the DTP has moved @bytes; polls a register, at most five seconds. */
bool rig_wait_bytes(const struct rig *r, unsigned int n, u64 bytes);
/* Check: stopped, nothing moves any more, and nothing was refused. */
void rig_is_idle(const char *regs, unsigned int n);
/*
 * Send a line to the control socket of the lab's FPGA number @n, see rashpa-fpga(1). False: it
 * cannot be reached, or refuses the command.
 */
bool rig_tell(unsigned int n, const char *command);
/* The first one obeys: checked. */
void rig_do(const char *command);
/* Check that no function writes into a memory of IMAGES * IMAGE bytes. */
void rig_nobody_writes(void *p);
/* As rig_tell(); its @answer as text, at most @size bytes with the NUL. */
bool rig_ask(unsigned int n, const char *command, char *answer, size_t size);
/* Check: the first @n entries of the table are clear. */
void rig_entries_clear(const char *regs, uint32_t n);

#endif /* RIG_H */
