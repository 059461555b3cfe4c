/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Threads that are bound to processors. */
#ifndef CPUS_H
#define CPUS_H

#include <argp.h>
#include <hwloc.h>
#include <pthread.h>

/* Parse a list in the format of taskset, "2-5,8", with at least one processor, into *cpus. */
void cpus_option(struct argp_state *state, const char *arg, hwloc_const_bitmap_t *cpus);
/*
 * Start thread number index on a processor of the list, in turn; NULL: on any processor. 0, or an
 * exit code after a message.
 */
int cpus_thread(pthread_t *thread, void *(*work)(void *), void *arg, hwloc_const_bitmap_t cpus,
		unsigned int index);

#endif /* CPUS_H */
