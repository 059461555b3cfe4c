// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fpga/clock.h"

#include <time.h>

#include <rashpa-fpga.h>

#define TICKS_A_SECOND	(1000000000 / RFPGA_TICK_NS)

static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
/* under clock_lock */
static bool held;
static uint64_t stands;		/* the tick of a held clock */
static uint64_t ahead;		/* difference to the host's clock in ticks, modulo 2^64 */

uint64_t host_ticks(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * TICKS_A_SECOND + (uint64_t)now.tv_nsec / RFPGA_TICK_NS;
}

static uint64_t ticks_locked(void)
{
	return held ? stands : host_ticks() + ahead;
}

uint64_t fpga_ticks(void)
{
	uint64_t ticks;

	pthread_mutex_lock(&clock_lock);
	ticks = ticks_locked();
	pthread_mutex_unlock(&clock_lock);
	return ticks;
}

/* Time of the host at tick @due. */
static uint64_t to_host(uint64_t due)
{
	uint64_t host = CLOCK_NEVER;

	pthread_mutex_lock(&clock_lock);
	if (!held && due != CLOCK_NEVER)
		host = due > ticks_locked() ? due - ahead : 0;
	pthread_mutex_unlock(&clock_lock);
	return host;
}

void clock_wait(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t due, uint64_t host)
{
	uint64_t until = to_host(due);
	struct timespec ts;

	if (host < until)
		until = host;
	if (until == CLOCK_NEVER) {
		pthread_cond_wait(cond, lock);
		return;
	}
	ts.tv_sec = (time_t)(until / TICKS_A_SECOND);
	ts.tv_nsec = (long)(until % TICKS_A_SECOND * RFPGA_TICK_NS);
	pthread_cond_timedwait(cond, lock, &ts);
}

void clock_hold(void)
{
	pthread_mutex_lock(&clock_lock);
	stands = ticks_locked();
	held = true;
	pthread_mutex_unlock(&clock_lock);
}

void clock_run(void)
{
	pthread_mutex_lock(&clock_lock);
	if (held)
		ahead = stands - host_ticks();
	held = false;
	pthread_mutex_unlock(&clock_lock);
}

bool clock_step(uint64_t ticks)
{
	bool ok;

	pthread_mutex_lock(&clock_lock);
	ok = held && stands < CLOCK_END && ticks < CLOCK_END - stands;
	if (ok)
		stands += ticks;
	pthread_mutex_unlock(&clock_lock);
	return ok;
}

bool clock_held(void)
{
	bool is;

	pthread_mutex_lock(&clock_lock);
	is = held;
	pthread_mutex_unlock(&clock_lock);
	return is;
}
