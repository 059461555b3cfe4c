// SPDX-License-Identifier: LGPL-2.1-or-later
/* The rank of this process and the size of the run, from the launcher. */
#include "fabric/internal.h"
#include "lib/sized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Variables of launchers for rank, size and job; Slurm's job name is JOB.STEP. */
static const struct {
	const char *rank, *size, *job, *step;
} launchers[] = {
	{ "RASHPA_RANK", "RASHPA_SIZE", "RASHPA_JOB", NULL },
	{ "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", NULL },
	{ "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID", "SLURM_STEP_ID" },
};

static int number(const char *name, uint32_t least, uint32_t most, uint32_t *value)
{
	const char *text = getenv(name);
	char *end;
	unsigned long n;

	if (!text)
		return fabric_fail(EINVAL, "%s is not set", name);
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || n < least || n > most)
		return fabric_fail(EINVAL, "%s: \"%s\" is not %u to %u", name, text, least, most);
	*value = n;
	return 0;
}

static int read_launch(struct rashpa_launch *launch)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		const char *job = getenv(launchers[i].job);
		const char *step = launchers[i].step ? getenv(launchers[i].step) : NULL;
		int length;

		if (!getenv(launchers[i].rank))
			continue;
		/* an address serves one run at a time, so it can name the run */
		if (!i && !job)
			job = getenv("RASHPA_MEET");
		*launch = (struct rashpa_launch) {};
		if (number(launchers[i].size, 1, RASHPA_FABRIC_PEERS, &launch->size) ||
		    number(launchers[i].rank, 0, launch->size - 1, &launch->rank))
			return -EINVAL;
		length = snprintf(launch->job, sizeof(launch->job), "%s%s%s", job ? job : "",
				  step ? "." : "", step ? step : "");
		if (!job || !*job || length >= (int)sizeof(launch->job))
			return fabric_fail(EINVAL, "%s is not set, or too long: set it to the name of the run",
					   launchers[i].job);
		return 0;
	}
	return fabric_fail(ENOENT, "this process has no rank: start it by mpirun or srun, or set RASHPA_RANK, RASHPA_SIZE and RASHPA_JOB or RASHPA_MEET");
}

int rashpa_launch_read_sized(struct rashpa_launch *launch, size_t size)
{
	struct rashpa_launch found = {};
	int error = read_launch(&found);

	sized_copy(launch, size, &found, sizeof(found));
	return error;
}
