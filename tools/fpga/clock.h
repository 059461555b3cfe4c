/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The clock of the board: the host's clock, until a test holds it. A held clock moves only by
 * steps, so that the tick of each action depends on no other clock.
 *
 * A process has one board and one clock. Its lock is innermost. A thread that changes the clock
 * wakes all threads in clock_wait().
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define CLOCK_NEVER	UINT64_MAX
#define CLOCK_END	(1ull << 61)	/* no step goes so far: TAI in ns has 64 bits */

uint64_t fpga_ticks(void);	/* never goes back; no reset touches it */
uint64_t host_ticks(void);	/* same rate; never held */

/*
 * Sleep until @cond is signalled, but neither beyond tick @due of the board nor beyond tick
 * @host of the host; either may be CLOCK_NEVER. The condition's clock is CLOCK_MONOTONIC.
 */
void clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t due, uint64_t host);

void clock_hold(void);
void clock_run(void);		/* continue from the held tick */
bool clock_step(uint64_t ticks);	/* false: not held, or beyond CLOCK_END */
bool clock_held(void);

#endif /* CLOCK_H */
