// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/cpus.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "common/say.h"

void cpus_option(struct argp_state *state, const char *arg, hwloc_const_bitmap_t *cpus)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	cpu_set_t mine;
	unsigned int cpu;

	if (!set)
		argp_failure(state, EXIT_FAILED, 0, "no memory");
	/* hwloc ignores the rest of a list after an error, so check the characters first */
	if (!strlen(arg) || strspn(arg, "0123456789,-") < strlen(arg) ||
	    hwloc_bitmap_list_sscanf(set, arg) || hwloc_bitmap_weight(set) < 1 ||
	    hwloc_bitmap_last(set) >= CPU_SETSIZE)
		argp_error(state, "cpus: \"%s\" is not a list of processors, as 2-5,8", arg);
	if (sched_getaffinity(0, sizeof(mine), &mine))
		CPU_ZERO(&mine);
	hwloc_bitmap_foreach_begin(cpu, set) {
		if (!CPU_ISSET(cpu, &mine))
			argp_error(state, "cpus: processor %u does not exist, or this process may not use it",
				   cpu);
	}
	hwloc_bitmap_foreach_end();
	*cpus = set;
}

static int nth(hwloc_const_bitmap_t cpus, unsigned int n)
{
	int cpu = hwloc_bitmap_first(cpus);

	while (n--)
		cpu = hwloc_bitmap_next(cpus, cpu);
	return cpu;
}

int cpus_thread(pthread_t *thread, void *(*work)(void *), void *arg, hwloc_const_bitmap_t cpus,
		unsigned int index)
{
	const int cpu = cpus ? nth(cpus, index % hwloc_bitmap_weight(cpus)) : -1;
	pthread_attr_t attr;
	cpu_set_t set;
	int error;

	pthread_attr_init(&attr);
	CPU_ZERO(&set);
	if (cpus) {
		CPU_SET(cpu, &set);
		pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	}
	error = pthread_create(thread, &attr, work, arg);
	pthread_attr_destroy(&attr);
	return error ? fail("cannot start a thread: %s", strerror(error)) : 0;
}
