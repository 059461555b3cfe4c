/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Show the progress of a long call. */
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
 * Begin before the call, end after it. After two seconds a second thread shows @what and the
 * seconds; if the thread cannot start, no progress is shown.
 */
void follow_begin(struct follow *follow, const char *what);
void follow_end(struct follow *follow);

#endif /* FOLLOW_H */
