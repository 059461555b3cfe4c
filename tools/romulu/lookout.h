/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reports a running receiver to its daemon: fill level of the buffer, and counts. This is a
 * separate thread, since a use of stacks may block for long or for ever.
 */
#ifndef LOOKOUT_H
#define LOOKOUT_H

#include "romulu/romulu.h"

struct lookout;

/* Does nothing without a daemon. 0, or an exit code after a message. */
int lookout_begin(struct run *r);
/* Note the present counts for the next report to the daemon. */
void lookout_note(struct run *r);
/* End the thread and report the final counts to the daemon. */
void lookout_end(struct run *r);

#endif /* LOOKOUT_H */
