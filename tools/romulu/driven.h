/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU that fetches the images of a stack without the CPU: a drive of librashpa-processing. */
#ifndef DRIVEN_H
#define DRIVEN_H

#include <rashpa-processing.h>
#include "romulu/romulu.h"

struct driven;

/* "launch", "ahead" or "persistent" */
bool driven_way(const char *text, uint32_t *way);
const char *driven_name(uint32_t way);

/*
 * Drive @pipeline's GPU from the stream's first stack on, up to @depth stacks at a time. Images are
 * at @raw, in a ring in host memory; NULL: in memory that the GPU has offered. 0 or an exit
 * status, after a message.
 */
int driven_open(const struct run *r, struct rashpa_pipeline *pipeline,
		const struct rashpa_stack *first, const void *raw, uint32_t depth,
		struct driven **driven);
/* Announce a stack to the GPU. 0 or an exit status, after a message. */
int driven_tell(struct driven *d, const struct run *r, const struct rashpa_stack *st);
/*
 * Wait until the oldest stack that was announced is computed, and put accepted images into
 * @to[*kept]; another thread may announce more. 0 or an exit status, after a message.
 * @late counts results that came after @deadline_ns (0: no deadline).
 */
int driven_stack(struct driven *d, const struct rashpa_stack *st, uint64_t deadline_ns,
		 struct rashpa_result * const *to, uint32_t *kept, uint64_t *late);
/* Get the drive's counts, in the thread of driven_stack(). */
void driven_status(const struct driven *d, struct rashpa_drive_stat *stat);
/* Call before closing the pipeline. NULL is allowed. */
void driven_close(struct driven *d);

#endif /* DRIVEN_H */
