/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Show that a call takes long, and how long it has taken. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <pthread.h>
#include <stdbool.h>

struct follow {
	pthread_t thread;
	pthread_mutex_t lock;	/* protects over */
	pthread_cond_t end;
	bool over, running;
	const char *what;
};

/*
 * Begin before the call, end after it. From two seconds on a second thread shows @what and the
 * seconds; without such a thread there is just no progress.
 */
void follow_begin(struct follow *follow, const char *what);
void follow_end(struct follow *follow);

#endif /* FOLLOW_H */
