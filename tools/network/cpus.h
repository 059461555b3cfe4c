/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that stay on the processors that they were given. */
#ifndef CPUS_H
#define CPUS_H

#include <argp.h>
#include <hwloc.h>
#include <pthread.h>

/* NULL: wherever the kernel puts them. A list as taskset takes it: "2-5,8"; not less than one. */
void cpus_option(struct argp_state *state, const char *arg, hwloc_const_bitmap_t *cpus);
/* Thread number index, on one of them in turn. 0, or an exit code, after a message. */
int cpus_thread(pthread_t *thread, void *(*work)(void *), void *arg, hwloc_const_bitmap_t cpus,
		unsigned int index);

#endif /* CPUS_H */
