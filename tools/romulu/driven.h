/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A GPU that takes the images of a stack by itself: a drive of librashpa-processing. */
#ifndef DRIVEN_H
#define DRIVEN_H

#include "rashpa-processing.h"
#include "romulu.h"

struct driven;

/* "launch", "ahead" or "persistent" */
bool driven_way(const char *text, uint32_t *way);
const char *driven_name(uint32_t way);

/*
 * Drive @pipeline's GPU, from the stream's first stack on, whose images are at @raw in a ring of
 * the host's; NULL: in memory that the GPU has offered. 0 or an exit status, after a message.
 */
int driven_open(const struct run *r, struct rashpa_pipeline *pipeline,
		const struct rashpa_stack *first, const void *raw, struct driven **driven);
/*
 * Let it have a stack, and put what is accepted into @to[*kept]: 0, or as an engine answers. @late
 * counts what came behind @deadline_ns, if there is one.
 */
int driven_stack(struct driven *d, const struct run *r, const struct rashpa_stack *st,
		 uint64_t deadline_ns, struct rashpa_result * const *to, uint32_t *kept,
		 uint64_t *late);
/* What it did, among what the pipeline did; dropped results as well. */
void driven_status(const struct driven *d, struct rashpa_pipeline_stat *stat);
/* Before the pipeline is closed. NULL: nothing is done. */
void driven_close(struct driven *d);

#endif /* DRIVEN_H */
