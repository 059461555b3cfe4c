// SPDX-License-Identifier: LGPL-2.1-or-later
/* A thread of this machine drives the board. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/loop/loop.h"
#include <rashpa.h>
#include "common/say.h"

static struct loop *loop;		/* the only loop */

#define OWN			static
#define JUDGES			(P.judges != 0)
#define P			(loop->plan)
#define WORD(i)			__atomic_load_n(&loop->word[i], __ATOMIC_ACQUIRE)
#define PUT(i, value)		__atomic_store_n(&loop->word[i], value, __ATOMIC_RELAXED)
#define PUBLISH()		__atomic_thread_fence(__ATOMIC_RELEASE)
#define BELL(at, value)		rashpa_doorbell(loop->page, 4 * (at), value)

#include "bench/loop/drive.h"

static pthread_t thread;
static bool runs;

static void *thread_main(void *arg)
{
	(void)arg;
	drive();
	return NULL;
}

static int begin(struct loop_drive *self, struct loop *l, char *why)
{
	int error;

	(void)self;
	loop = l;
	error = pthread_create(&thread, NULL, thread_main, NULL);
	runs = !error;
	return error ? because(why, -1, "cannot start a thread: %s", strerror(error)) : 0;
}

static int end(struct loop_drive *self, char *why)
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

int loop_by_host(struct loop_drive *self, char *why)
{
	(void)why;
	*self = (struct loop_drive) {
		.name = "host", .begin = begin, .end = end, .close = close_drive,
	};
	return 0;
}
