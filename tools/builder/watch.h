/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Who is there, and who owes something. All ranks and the manager tell each other now and then that
 * they are there, and whom they wait for; where nobody has work, all may wait as long as they like.
 * Who says nothing for the time limit is stopped, or cannot be reached. A builder whose blocks do
 * not get on for so long waits for somebody, who is found by asking from one to the next.
 */
#ifndef BUILDER_WATCH_H
#define BUILDER_WATCH_H

#include "build.h"

#define WATCH_NOBODY	0	/* but the manager, which may have no work */

int watch_open(struct build *b);
void watch_close(struct build *b);
/* All are there from now on. */
void watch_begin(struct build *b);
/* A message of a peer came; KIND_ALIVE has whom it waits for. */
void watch_heard(struct build *b, const struct message *m);
/* A word that this one is there was taken. */
void watch_said(struct build *b, uint32_t peer);
/* A builder owes blocks from now on, or has got on with them. Of the manager. */
void watch_moved(struct build *b, uint32_t builder);
/* Once a turn. Was this one stopped for so long that others may have given it up? */
bool watch_slept(struct build *b);
/* Say that this one is there; 0, or EXIT_TIMEOUT after a sentence about who is not, or owes. */
int watch_turn(struct build *b);

#endif /* BUILDER_WATCH_H */
