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
	pid_t pid;		/* 0: no child */
	int process;		/* readable when it has ended */
	int led;		/* messages */
	int said;		/* its standard error */
	int report;		/* a file in memory: its final report of the run */
	char line[1024];	/* incomplete line of its standard error */
	size_t line_bytes;
	char last[1024];	/* the last complete line */
};

#define CHILD_NONE { .process = -1, .led = -1, .said = -1, .report = -1 }

/* How it ended. */
struct child_end {
	int exit;		/* exit status, or -1: */
	int signal;		/* signal that killed it */
};

/* The same program with these arguments, which end with NULL. 0, or -1 and why. */
int child_start(struct child *child, char *const *argv, char *why);
/* A message for it; it is freed. */
void child_tell(struct child *child, struct json_object *message);
/* The next message from it, json_object_put() it; NULL: no message */
struct json_object *child_message(struct child *child);
/* The next line of its standard error, without the name of the program; NULL: no line */
const char *child_line(struct child *child);
void child_signal(const struct child *child, int signal);
/* Call after its end: how it ended. report: its report, free() it, or NULL. Resets @child. */
struct child_end child_reap(struct child *child, char **report);

#endif /* CHILD_H */
