/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How tools that run for a while are ended, and wait meanwhile. */
#ifndef STOP_H
#define STOP_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* SIGINT, SIGTERM and SIGHUP set what this points to. */
volatile bool *stop_on_signals(void);

/*
 * As poll(), until @end of CLOCK_MONOTONIC (UINT64_MAX: for ever), or a signal of those. A
 * time-out does not come before @end.
 */
int stop_poll(struct pollfd *fds, unsigned int n, uint64_t end);

/* From now to end, at most so long: for ppoll(). */
struct timespec time_left(uint64_t now, uint64_t end, uint64_t most);

#endif /* STOP_H */
