/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Progress of a call of /dev/rashpa/memory that takes long. */
#ifndef FOLLOW_H
#define FOLLOW_H

#include <pthread.h>
#include <stdbool.h>

struct follow {
	pthread_t thread;
	pthread_mutex_t lock;	/* protects over */
	pthread_cond_t end;
	bool over, running;
	int memory;
	const char *what;
};

/*
 * Begin before the call, end after it. A second thread asks how far an ALLOC on the same
 * open file is, from two seconds on; without such a thread there is just no progress.
 */
void follow_begin(struct follow *follow, int memory, const char *what);
void follow_end(struct follow *follow);

#endif /* FOLLOW_H */
