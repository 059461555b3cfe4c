/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * remu --daemon and romulu --daemon: a process that takes telegrams, and starts the same program
 * anew for each run, in a child that it watches.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <argp.h>
#include <stdbool.h>

#include "link/wire.h"

#define DAEMON_ADDRESSES	8
#define DAEMON_LEADERS		32

struct daemon_options {
	const char *at[DAEMON_ADDRESSES];	/* addresses to listen on */
	unsigned int addresses;			/* 0: not a daemon */
	const char *leader[DAEMON_LEADERS];	/* user:, group:, cert:NAME, anyone */
	unsigned int leaders;
	struct wire_files files;
	int led;				/* descriptor of a daemon's child; 0: not a child */
	bool probe;				/* a child that only reports its capabilities */
};

/* A child of the tool's parser; its input is a struct daemon_options. */
extern const struct argp daemon_argp;

/* Whether the process is a daemon: then the tool's options are the defaults of each child. */
static inline bool is_daemon(const struct daemon_options *o)
{
	return o->addresses && !o->led;
}

/* Until *stop. argv, tunes: of the tool, for its children. An exit code, after messages. */
struct tune;
int daemon_run(const struct daemon_options *options, bool detector, char **argv,
	       const struct tune *tunes, const volatile bool *stop);

#endif /* DAEMON_H */
