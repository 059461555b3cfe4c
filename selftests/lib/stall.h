/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls that stand still in the middle: the kernel waits in copy_from_user() or
 * copy_to_user() for a page that userfaultfd withholds, until the test lets it go on.
 */
#ifndef STALL_H
#define STALL_H

#include <pthread.h>

#include "calls.h"

#define STALLS_MAX	64

/* Where it stands. */
enum stall_at {
	STALL_SIZE,		/* the size was read, the rest of the head was not */
	STALL_STRUCT,		/* the head was read, the rest of the struct was not */
	STALL_POINTER,		/* at what a field points to */
	STALL_REASON,		/* a call that fails, at its sentence */
	STALL_ANSWER,		/* all is done, the answer is to be stored */
	STALL_READ,		/* read() */
};

struct stall {
	const struct op *op;	/* NULL: read() */
	const struct pointer_field *field;
	enum stall_at at;
	int fd;
	char *pages;		/* two: the first is there; ANSWER: both, not to be written */
	char *arg;		/* the struct, in @pages; ANSWER: the size in the first one */
	bool probed;		/* ANSWER: the driver knows that the struct can be written */
	char rest[PAGE];	/* what the second page will hold */
	char reason[RASHPA_REASON_SIZE];
	pthread_t thread;
	int err;		/* answer: 0 or -errno; of read() the bytes */
};

/* False: this kernel cannot, and the test that runs is skipped. */
bool stalls_open(void);
void stalls_close(void);

/* Begin the call on @fd in a thread of its own. @s is free afterwards for changes of arg. */
void stall_begin(struct stall *s, const struct op *op, enum stall_at at, int fd);
/* Wait until all that were begun stand still. */
bool stalls_wait(void);
/* Let it go on; check that it ends. Returns its answer. */
int stall_end(struct stall *s);
/* The same, and take back what it did. */
int stall_end_undo(struct stall *s);

#endif /* STALL_H */
