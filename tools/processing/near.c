// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads that work where the memory is. */
#include "processing/pipeline.h"

#include <errno.h>
#include <hwloc.h>
#include <omp.h>
#include <stdlib.h>

#include "common/say.h"

/* Somebody has decided where threads are, and how many. */
static bool is_decided(void)
{
	static const char * const words[] = {
		"OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (getenv(words[i]))
			return true;
	}
	return false;
}

/* Those of the node on which this thread may be; 0: all that it may, or none of them. */
static int processors_of(hwloc_topology_t machine, int node, hwloc_bitmap_t set)
{
	hwloc_obj_t o = hwloc_get_numanode_obj_by_os_index(machine, node);
	hwloc_bitmap_t mine = hwloc_bitmap_alloc();
	int n = 0;

	if (o && mine && !hwloc_get_cpubind(machine, mine, HWLOC_CPUBIND_THREAD) &&
	    !hwloc_bitmap_and(set, mine, o->cpuset) && !hwloc_bitmap_isequal(set, mine))
		n = hwloc_bitmap_weight(set);
	hwloc_bitmap_free(mine);
	return n > 0 ? n : 0;
}

/* OpenMP keeps its threads: those that come later are made by this one, and are where it is. */
static int bind_threads(hwloc_topology_t machine, hwloc_const_bitmap_t set, int n)
{
	int failed = 0;

	omp_set_num_threads(n);
#pragma omp parallel num_threads(n) reduction(max : failed)
	failed = hwloc_set_cpubind(machine, set, HWLOC_CPUBIND_THREAD) != 0;
	return failed;
}

int rashpa_pipeline_near(int node)
{
	hwloc_topology_t machine;
	hwloc_bitmap_t set;
	int n;

	if (node < 0 || is_decided())
		return 0;
	n = rpu_threads();
	if (n)
		return n;
	if (hwloc_topology_init(&machine))
		return rashpa_fail(ENOMEM, "no memory to look where processors are");
	set = hwloc_bitmap_alloc();
	if (!set || hwloc_topology_load(machine)) {
		n = rashpa_fail(EIO, "hwloc does not know where processors are: processing on all of them");
	} else {
		n = processors_of(machine, node, set);
		if (n && bind_threads(machine, set, n))
			n = rashpa_fail(EPERM, "threads cannot be bound to NUMA node %d: set OMP_PLACES",
					node);
	}
	hwloc_bitmap_free(set);
	hwloc_topology_destroy(machine);
	return n;
}
