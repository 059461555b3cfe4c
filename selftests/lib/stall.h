/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that stall half-way: the kernel waits in copy_from_user() or copy_to_user() for a page
 * that userfaultfd withholds, until the test supplies it.
 */
#ifndef STALL_H
#define STALL_H

#include "calls.h"

#define STALLS_MAX	64

/* Where it stalls. */
enum stall_at {
	STALL_SIZE,		/* the size was read, the rest of the head was not */
	STALL_STRUCT,		/* the head was read, the rest of the struct was not */
	STALL_POINTER,		/* at what a field points to */
	STALL_REASON,		/* a call that fails, at its sentence */
	STALL_ANSWER,		/* all is done except storing the answer */
	STALL_READ,		/* read() */
};

struct stall {
	const struct op *op;	/* NULL: read() */
	const struct pointer_field *field;
	enum stall_at at;
	int fd;
	char *pages;		/* two: the first exists; ANSWER: both do, write-protected */
	char *arg;		/* the struct, in @pages; ANSWER: the size in the first one */
	bool probed;		/* ANSWER: the driver knows that the struct can be written */
	char rest[PAGE];	/* future contents of the second page */
	char reason[RASHPA_REASON_SIZE];
	pthread_t thread;
	int err;		/* answer: 0 or -errno; read(): number of bytes */
};

/*
 * Start the call on @fd in a separate thread; if this kernel cannot, skip the test. Afterwards the
 * test may change @s's arg, which it can read until another call begins after the end of all.
 */
void stall_begin(struct stall *s, const struct op *op, enum stall_at at, int fd);
/* Wait until all calls that were started are stalled. */
bool stalls_wait(void);
/* Continue the call; check that it ends. Returns its answer. */
int stall_end(struct stall *s);
/* The same, and undo the call. */
int stall_end_undo(struct stall *s);

#endif /* STALL_H */
