// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thread of this machine drives the board, alone or by launches. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/loop/loop.h"
#include <rashpa.h>
#include "common/say.h"

#define IDLE_MS		100		/* then look at TOLD_STOP */
#define ROUNDS		1000000u	/* to calibrate */
#define TRIALS		5u
#define GROUPS		65535u	/* any GPU has so many */

static struct loop *loop;		/* the only loop */
static uint32_t kind, group;

/* The classical way: the driver wakes this thread at the interrupt of the event. */
static void idle(void)
{
	struct pollfd channel = { .fd = loop->channel, .events = POLLIN };
	struct rashpa_event records[16];

	if (loop->drive->launch && poll(&channel, 1, IDLE_MS) == 1 &&
	    read(loop->channel, records, sizeof(records)) < 0)
		usleep(1000);
}

#define OWN			static
#define OWN_WORDS		static
#define KIND			kind
#define GROUP			group
#define P			(loop->plan)
#define WORD(i)			__atomic_load_n(&loop->word[i], __ATOMIC_ACQUIRE)
#define PUT(i, value)		__atomic_store_n(&loop->word[i], value, __ATOMIC_RELAXED)
#define PUBLISH()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define BELL(at, value)		rashpa_doorbell(loop->page, 4 * (at), value)
#define IDLE()			idle()
#define PROCESS(data, to)	(loop->drive->launch ? loop->drive->launch(loop->drive, data, to) : \
				 drive_process(data, to))
#define INT(x)			((int32_t)(x))
#define FLOAT(x)		((float)(x))
#define BITS(x)			((union { float f; uint32_t u; }){ .f = (x) }.u)
#define SQRT(x)			__builtin_sqrtf(x)

#include "bench/loop/drive.h"

static pthread_t thread;
static bool runs;

struct trials {
	uint64_t (*trial)(void *own, const struct loop_plan *plan, uint32_t groups);
	void *own;
	struct loop_plan plan;
};

static uint64_t least(const struct trials *t, uint32_t groups)
{
	uint64_t least = UINT64_MAX;

	/* the first one may compile */
	for (unsigned int i = 0; i <= TRIALS; i++) {
		const uint64_t ns = t->trial(t->own, &t->plan, groups);

		least = i && ns < least ? ns : least;
	}
	return least;
}

void loop_calibrate(struct loop *l, uint64_t (*trial)(void *own, const struct loop_plan *plan,
						      uint32_t groups), void *own)
{
	const uint32_t groups = l->plan.total < GROUPS ? l->plan.total : GROUPS;
	struct trials t = { .trial = trial, .own = own, .plan = l->plan };
	uint64_t none, all;

	if (l->rings && groups > 1) {
		none = least(&t, 1);
		all = least(&t, groups);
		l->fit_ns = all > none ? (double)(all - none) / (groups - 1) : 0;
		memset((void *)(uintptr_t)(l->word + l->plan.fits), 0, groups * 16);
		loop_put(l, l->plan.fits, groups * 4);
	}
	if (!l->compute_us)
		return;
	t.plan.data = t.plan.receive;
	t.plan.to = t.plan.source;
	t.plan.words = 5;
	none = least(&t, 1);
	t.plan.rounds = ROUNDS;
	all = least(&t, 1);
	l->plan.rounds = all > none ? l->compute_us * 1000.0 * ROUNDS / (all - none) : ROUNDS;
}

static uint64_t trial(void *own, const struct loop_plan *plan, uint32_t groups)
{
	const struct loop_plan kept = P;
	const uint64_t from = now_ns();

	(void)own;
	P = *plan;
	for (group = 0; group < groups; group++)
		drive_one();
	P = kept;
	return now_ns() - from;
}

static void *thread_main(void *arg)
{
	(void)arg;
	drive();
	return NULL;
}

int loop_host_begin(struct loop_drive *self, struct loop *l, char *why)
{
	int error;

	loop = l;
	kind = l->kind == &loop_ring ? KIND_RING : KIND_STACKS;
	if (!self->launch)
		loop_calibrate(l, trial, NULL);
	error = pthread_create(&thread, NULL, thread_main, NULL);
	runs = !error;
	return error ? because(why, -1, "cannot start a thread: %s", strerror(error)) : 0;
}

int loop_host_end(struct loop_drive *self, char *why)
{
	(void)self;
	(void)why;
	if (runs)
		pthread_join(thread, NULL);
	runs = false;
	return 0;
}

static void close_drive(struct loop_drive *self)
{
	(void)self;
}

void loop_by_host(struct loop_drive *self)
{
	*self = (struct loop_drive) {
		.name = "host", .begin = loop_host_begin, .end = loop_host_end,
		.close = close_drive,
	};
}
