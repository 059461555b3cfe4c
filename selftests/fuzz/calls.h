/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Descriptions of ioctls for calls.c. */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include "fuzz.h"

enum type {
	T_ZERO, T_OUT, T_LENGTH, T_MAYBE_LENGTH, T_OFFSET, T_POWER,
	T_BELOW,	/* below arg */
	T_RARE,		/* mostly 0, else 1 to arg */
	T_SIZE,		/* size of an array's elements: mostly arg */
	T_FD,		/* arg: enum kind */
	T_MAYBE_FD,	/* likewise, or -1 */
	T_ADDRESS, T_WORD, T_LINE, T_WIDTH, T_PERIOD, T_BAR, T_ID,
	T_NAME,		/* arg: only one time in so many; 0: always */
	T_WINDOW_NAME, T_WINDOWS, T_STEPS, T_TABLES, T_ENGINES, T_MEMBERS,
};

struct field {
	uint16_t offset, size;
	enum type type;
	uint32_t arg;
};

#define FIELDS_MAX	20

struct call {
	const char *name;
	unsigned long cmd;
	uint16_t size;
	uint16_t weight;
	enum kind on;
	enum kind makes;	/* kind of out_fd; 0: no fd */
	uint16_t out_fd;	/* its offset */
	uint32_t flags;		/* defined flags */
	struct field fields[FIELDS_MAX];
};

extern const struct call calls[];
extern const unsigned int n_calls;

#endif /* FUZZ_CALLS_H */
