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

static struct loop *loop;		/* the only loop */
static uint32_t kind;

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

uint32_t loop_rounds(uint32_t us, uint64_t (*spin)(void *own, uint32_t rounds), void *own)
{
	uint64_t least = UINT64_MAX, none = UINT64_MAX;

	if (!us)
		return 0;
	/* the first one may compile */
	spin(own, 0);
	for (unsigned int i = 0; i < TRIALS; i++) {
		const uint64_t with = spin(own, ROUNDS), without = spin(own, 0);

		least = with < least ? with : least;
		none = without < none ? without : none;
	}
	return least > none ? us * 1000.0 * ROUNDS / (least - none) : ROUNDS;
}

static uint64_t spin(void *own, uint32_t rounds)
{
	const uint64_t from = now_ns();

	(void)own;
	drive_spin(rounds);
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
		l->plan.rounds = loop_rounds(l->compute_us, spin, NULL);
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
