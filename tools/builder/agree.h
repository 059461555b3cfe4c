/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Do all ranks have the same options? Of those that have to be the same: what only one of them goes
 * by, as --events and --rate of the manager, or --pool and --files of each, may differ.
 */
#ifndef BUILDER_AGREE_H
#define BUILDER_AGREE_H

#include "build.h"

/* To the manager: 0 or an exit code. */
int agree_say(struct build *b);
/* Of a rank: 0 or an exit code: when all have said theirs, after a sentence about what differs. */
int agree_heard(struct build *b, uint32_t rank, const char *text, size_t length);
/* All have said theirs. */
bool agree_complete(const struct build *b);
void agree_close(struct build *b);

#endif /* BUILDER_AGREE_H */
