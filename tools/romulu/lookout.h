/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a daemon hears of a receiver while it runs: how full the buffer is, and what was counted. A
 * thread of its own, since an engine may take long, or for ever.
 */
#ifndef LOOKOUT_H
#define LOOKOUT_H

#include "romulu.h"

struct lookout;

/* Nothing if no daemon leads. 0, or an exit code after a message. */
int lookout_begin(struct run *r);
/* What is counted now, for the next time that the daemon is told. */
void lookout_note(struct run *r);
/* It ends, and the daemon hears the last counts. */
void lookout_end(struct run *r);

#endif /* LOOKOUT_H */
