/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of the tools, and the sentence that explains a failure. */
#ifndef SAY_H
#define SAY_H

#include <stdbool.h>

/* Exit codes of all tools; 3 and 4 mean something only where the man page says so. */
enum exit_code {
	EXIT_OK = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_TIMEOUT = 3,
	EXIT_DATA = 4,		/* frames were lost or corrupt */
};

#define WHY_SIZE	768

/* Store a sentence in why[WHY_SIZE] and return error. */
__attribute__((format(printf, 3, 4)))
int because(char *why, int error, const char *format, ...);

/* Print a line on stderr, prefixed by the tool's name; as shown.h, so it may carry others' texts. */
__attribute__((format(printf, 1, 2)))
void say(const char *format, ...);

/* The same, and return EXIT_FAILED. */
__attribute__((format(printf, 1, 2)))
int fail(const char *format, ...);

/*
 * Progress on stderr: one line that is overwritten on a terminal; elsewhere lines, where
 * they were asked for.
 */
struct progress {
	bool enabled, terminal, shown;
	double last, every;	/* seconds */
};

/* forced (--progress): also where stderr is not a terminal, every two seconds. */
void progress_init(struct progress *progress, bool forced);
/* Also where stderr is not a terminal, but seldom: for progress that the user did not ask for. */
void progress_init_quiet(struct progress *progress);
__attribute__((format(printf, 2, 3)))
void progress_show(struct progress *progress, const char *format, ...);
void progress_end(struct progress *progress);

/* All that was printed so far is written: 0, or EXIT_FAILED after a message, which comes once. */
int flush_output(void);
/* The same at the end, whichever way the program ends: lost output is a failure. */
void check_output_at_exit(void);

/* CLOCK_MONOTONIC */
unsigned long long now_ns(void);

#endif /* SAY_H */
