/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Sources from the command line, and a channel that listens to them. */
#ifndef LISTEN_H
#define LISTEN_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/fpga.h"
#include <rashpa.h>

#define LABEL_SIZE	96
#define LISTEN_FPGAS	8

struct source {
	struct rashpa_source_add add;		/* add.kind GROUP: a group */
	const char *memory;			/* LOCK: name of the buffer */
	unsigned int fpga;			/* N of the source's function */
	uint32_t *member;			/* GROUP: places in struct listen, from 1 on */
	uint32_t members;
	uint64_t word;				/* LOCK: first value; GROUP: first position */
	uint32_t id;
	char label[LABEL_SIZE];
};

struct listen {
	bool memory;				/* the channel belongs to no function */
	unsigned int number;			/* N of the channel's function fpgaN */
	char name[16];				/* fpgaN, or memory */
	int of;					/* --of for the sources that follow, or -1 */
	bool quiet, one_shot;
	uint64_t slots, full;
	bool has_first;				/* else groups begin at their words */
	uint64_t first;
	struct source *source;
	unsigned int sources;
	struct fpga fpga, other[LISTEN_FPGAS];
	unsigned int others;
	int channel;
};

#define LISTEN_NONE	{ .of = -1, .channel = -1, .full = RASHPA_FULL_NEVER, .fpga = FPGA_NONE }

/* Options for sources, and the argument fpgaN or memory; input: struct listen. */
extern const struct argp listen_argp;

/*
 * Open a non-blocking channel, and add all sources (none given: all vectors and the device).
 * Returns an exit code, after a message.
 */
int listen_open(struct listen *listen);
void listen_close(struct listen *listen);

/* Source of a record; NULL if it is not known. */
const struct source *listen_source(const struct listen *listen, uint32_t id);

#endif /* LISTEN_H */
