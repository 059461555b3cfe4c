/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads the kernel's trace: events of the driver, and calls of one function. */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stdio.h>

/*
 * Trace the driver, and @function if it is not NULL, in an empty trace. False: this kernel cannot,
 * and the test that runs is skipped.
 */
bool trace_begin(const char *function);
/* Removes the function's probe; its trace is lost, so read that before. */
void trace_end(void);

/*
 * A line of the trace. The kernel may learn the name of a task while the trace is read: only its
 * number is the same in all lines.
 */
struct trace_line {
	FILE *file;
	char text[512];
	pid_t pid;
	const char *flags;
};

/* The next line, the first one after zeros; false: no more, and the file is closed. */
bool trace_next(struct trace_line *l);

/* Does the trace contain a line of @event with these words? */
bool traced(const char *event, const char *words);
/* Was such a line traced with interrupts off? */
bool traced_off(const char *event, const char *words);
/* Has the task of the first such line called the function afterwards? */
bool called_after(const char *event, const char *words);

#endif /* TRACE_H */
