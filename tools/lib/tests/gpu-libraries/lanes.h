/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Kernels on processors: the lanes of a group are fibers of one thread. */
#ifndef LANES_H
#define LANES_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel, for each lane. */
typedef void (*lanes_body)(const void *arguments);

/* The kernel of this name, or NULL. */
lanes_body lanes_kernel(const char *name);

/* Bytes of its arguments. */
size_t lanes_size(const char *name);

/* Where this lane is. */
extern _Thread_local unsigned int lanes_lane, lanes_group;

/* All lanes of the group come to it. */
void lanes_barrier(void);

/* Run all groups, one after the other: false if lanes of a group disagree about barriers. */
bool lanes_run(lanes_body body, const void *arguments, unsigned int groups, unsigned int lanes);

#ifdef __cplusplus
}
#endif

#endif /* LANES_H */
