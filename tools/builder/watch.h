/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Detection of ranks that are silent or make no progress. Each rank and the manager regularly send
 * each other a sign of life, with the rank that they wait for. A rank without work has no time
 * limit. A rank that is silent for the time limit is stopped or cannot be reached. If a builder
 * completes no block for the time limit, the manager follows the chain of waiting ranks to the
 * cause.
 */
#ifndef BUILDER_WATCH_H
#define BUILDER_WATCH_H

#include "builder/build.h"

#define WATCH_NOBODY	0	/* waits for no rank, or for work from the manager */

int watch_open(struct build *b);
void watch_close(struct build *b);
/* All ranks are connected: start the clocks. */
void watch_begin(struct build *b);
/* A message of a peer came; KIND_ALIVE contains the rank that it waits for. */
void watch_heard(struct build *b, const struct message *m);
/* The peer has received the last sign of life. */
void watch_said(struct build *b, uint32_t peer);
/* Call once a turn. Was this process stopped for so long that others may have given it up? */
bool watch_slept(struct build *b);
/* Send signs of life. 0, or EXIT_TIMEOUT after a sentence that names the silent or late rank. */
int watch_turn(struct build *b);

#endif /* BUILDER_WATCH_H */
