// SPDX-License-Identifier: LGPL-2.1-or-later
#include "follow.h"

#include <errno.h>
#include <time.h>

#include "parse.h"
#include "rashpa.h"
#include "say.h"

#define FIRST_NS	2000000000ull
#define NEXT_NS		500000000ull

static void show(struct follow *f, struct progress *progress, double seconds)
{
	static const char *const doing[] = {
		[RASHPA_STAGE_SEARCH] = "making room",
		[RASHPA_STAGE_ZERO] = "zeroing",
	};
	struct rashpa_progress now = {};
	char done[SIZE_TEXT], todo[SIZE_TEXT];

	if (rashpa_memory_progress(f->memory, &now) || now.out_stage == RASHPA_STAGE_IDLE ||
	    now.out_stage > RASHPA_STAGE_ZERO)
		progress_show(progress, "%s: %.0f s", f->what, seconds);
	else
		progress_show(progress, "%s: %s, %s of %s, %.0f s", f->what, doing[now.out_stage],
			      format_size(done, now.out_done), format_size(todo, now.out_todo),
			      seconds);
}

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
		/* Who ends it must not wait for our call. */
		pthread_mutex_unlock(&f->lock);
		show(f, &progress, (now_ns() - begin) / 1e9);
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	progress_end(&progress);
	return NULL;
}

void follow_begin(struct follow *f, int memory, const char *what)
{
	*f = (struct follow) {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.end = PTHREAD_COND_INITIALIZER,
		.memory = memory,
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
