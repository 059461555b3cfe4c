// SPDX-License-Identifier: LGPL-2.1-or-later
/* The stages and the state of a pipeline, and the calls that it refuses. */
#include "processing/pipeline.h"

#include <errno.h>
#include <unistd.h>

#include <rashpa.h>

#define RPU_STAGE_ROW(index, name)	[index] = &rpu_stage_##name,
const struct rpu_stage * const rpu_stages[RPU_STAGES] = { RPU_ALL_STAGES(RPU_STAGE_ROW) };

bool rpu_is_elsewhere(const struct rashpa_pipeline *p)
{
	return p->process != getpid();
}

/* Why the state refuses a call: a negative errno. */
int rpu_unready(const struct rashpa_pipeline *p)
{
	if (rpu_is_elsewhere(p))
		return rashpa_fail(EBUSY, "the pipeline is process %d's, of which this one is a fork: open one here",
				   (int)p->process);
	switch (p->state) {
	case RPU_OPEN:
		return rashpa_fail(EINVAL, "the pipeline has not begun");
	case RPU_BROKEN:
		return rashpa_fail(EINVAL, "the pipeline could not begin: %s", p->refused);
	case RPU_BEGUN:
		return rashpa_fail(EBUSY, "the pipeline has begun");
	default:
		return rashpa_fail(EINVAL, "the pipeline is finished: open another one");
	}
}
