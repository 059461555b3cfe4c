/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * remu --daemon and romulu --daemon: a process that takes telegrams, and starts the same program
 * anew for each run, in a child that it watches.
 */
#ifndef DAEMON_H
#define DAEMON_H

#include <argp.h>
#include <stdbool.h>

#include "wire.h"

#define DAEMON_ADDRESSES	8
#define DAEMON_LEADERS		32

struct daemon_options {
	const char *at[DAEMON_ADDRESSES];	/* where it listens */
	unsigned int addresses;			/* 0: this is no daemon */
	const char *leader[DAEMON_LEADERS];	/* who may lead: user:, group:, cert:NAME, anyone */
	unsigned int leaders;
	struct wire_files files;
	int led;				/* descriptor: a child of a daemon; 0: it is none */
	bool probe;				/* that only tells what it can */
};

/* A child of the tool's parser; its input is a struct daemon_options. */
extern const struct argp daemon_argp;

/* The process is a daemon: what the tool's options say is what each child begins with. */
static inline bool is_daemon(const struct daemon_options *o)
{
	return o->addresses && !o->led;
}

/* Until *stop. argv: of the tool, for its children. An exit code, after messages. */
int daemon_run(const struct daemon_options *options, bool detector, char **argv,
	       const volatile bool *stop);

#endif /* DAEMON_H */
