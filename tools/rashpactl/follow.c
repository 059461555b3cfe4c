// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/follow.h"

#include <errno.h>
#include <time.h>

#include "common/say.h"

#define FIRST_NS	2000000000ull
#define NEXT_NS		500000000ull

static void *run(void *arg)
{
	struct follow *f = arg;
	const unsigned long long begin = now_ns();
	unsigned long long next = begin + FIRST_NS;
	struct progress progress;
	struct timespec until;

	progress_init_quiet(&progress);
	pthread_mutex_lock(&f->lock);
	while (!f->over) {
		until.tv_sec = next / 1000000000;
		until.tv_nsec = next % 1000000000;
		if (pthread_cond_clockwait(&f->end, &f->lock, CLOCK_MONOTONIC, &until) != ETIMEDOUT)
			continue;
		next += NEXT_NS;
		/* the thread that ends it must not wait for our call */
		pthread_mutex_unlock(&f->lock);
		progress_show(&progress, "%s: %.0f s", f->what, (now_ns() - begin) / 1e9);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	progress_end(&progress);
	return NULL;
}

void follow_begin(struct follow *f, const char *what)
{
	*f = (struct follow) {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.end = PTHREAD_COND_INITIALIZER,
		.what = what,
	};
	f->running = !pthread_create(&f->thread, NULL, run, f);
}

void follow_end(struct follow *f)
{
	if (!f->running)
		return;
	pthread_mutex_lock(&f->lock);
	f->over = true;
	pthread_cond_signal(&f->end);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->thread, NULL);
	f->running = false;
}
