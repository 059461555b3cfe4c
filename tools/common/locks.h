/* SPDX-License-Identifier: GPL-2.0-only */
/* The lock records of a stream: in its buffer, or in lock memory that has a name. */
#ifndef LOCKS_H
#define LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa-fpga.h"
#include "rashpa-stream.h"

struct locks {
	int fd;				/* of the memory that holds them */
	const volatile uint8_t *base;
	void *own;			/* our mapping, NULL if it is the buffer's */
	uint64_t length;
};

#define LOCKS_NONE	{ .fd = -1 }

/*
 * Find the records that a checked header tells of. @buffer: fd of the stream's buffer, and
 * @head where its beginning is mapped, up to data_offset at least; both stay the caller's.
 * @write: as who prepares a run. 0, or -1 with the reason in why[WHY_SIZE].
 */
int locks_open(struct locks *locks, const struct rashpa_stream *s, int buffer,
	       const volatile void *head, int write, char *why);
void locks_close(struct locks *locks);

/* A word (RFPGA_LOCK_*) of the record of process i. */
uint64_t locks_word(const struct locks *locks, const struct rashpa_stream *s, unsigned int i,
		    unsigned int word);

/*
 * The whole record of process i. False: it was being written at each of some looks; of what is in
 * it then, only the number of stacks is one that there was.
 */
bool locks_read(const struct locks *locks, const struct rashpa_stream *s, unsigned int i,
		struct rfpga_lock *lock);

/* Stacks complete in all processes; *most: in the most advanced one. */
uint64_t locks_stacks(const struct locks *locks, const struct rashpa_stream *s, uint64_t *most);

#endif /* LOCKS_H */
