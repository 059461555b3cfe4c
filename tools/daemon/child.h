/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program of a run: a child of the daemon, which speaks JSON with it (led.h). */
#ifndef CHILD_H
#define CHILD_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
	pid_t pid;		/* 0: there is none */
	int process;		/* readable when it has ended */
	int led;		/* messages */
	int said;		/* its standard error */
	int report;		/* a file in memory: what it says of the run at its end */
	char line[1024];	/* of what it said, up to the end of the line */
	size_t line_bytes;
	char last[1024];	/* the last line that was whole */
};

#define CHILD_NONE { .process = -1, .led = -1, .said = -1, .report = -1 }

/* How it ended. */
struct child_end {
	int exit;		/* status, or -1: */
	int signal;		/* that killed it */
};

/* The same program with these arguments, which end with NULL. 0, or -1 and why. */
int child_start(struct child *child, char *const *argv, char *why);
/* A message for it; it is freed. */
void child_tell(struct child *child, struct json_object *message);
/* The next message of it, json_object_put() it; NULL: none is there */
struct json_object *child_message(struct child *child);
/* The next line that it said, without what it says of itself before it; NULL: none is there */
const char *child_line(struct child *child);
void child_signal(const struct child *child, int signal);
/* It has ended: how. report: what it wrote, free() it, or NULL. The child is none any more. */
struct child_end child_reap(struct child *child, char **report);

#endif /* CHILD_H */
