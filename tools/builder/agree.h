/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that all ranks have the same options. Options that only one rank uses may differ: --events
 * and --rate of the manager, or --pool and --files of each.
 */
#ifndef BUILDER_AGREE_H
#define BUILDER_AGREE_H

#include "builder/build.h"

/* Send the options to the manager. 0 or an exit code. */
int agree_say(struct build *b);
/* The options of a rank came. 0, or an exit code after a sentence that lists the differences. */
int agree_heard(struct build *b, uint32_t rank, const char *text, size_t length);
/* The options of all ranks have come. */
bool agree_complete(const struct build *b);
void agree_close(struct build *b);

#endif /* BUILDER_AGREE_H */
