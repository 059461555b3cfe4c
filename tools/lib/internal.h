/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of librashpa only. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include <stdint.h>
#include <time.h>

#include <rashpa.h>
#include "lib/sized.h"

/* Put words before that sentence. Return: @error, which is negative. */
__attribute__((format(printf, 2, 3)))
int librashpa_prefix(int error, const char *format, ...);

#define fail	rashpa_fail

/* CLOCK_MONOTONIC */
static inline int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The time when @timeout_ns has passed; INT64_MAX: never */
static inline int64_t deadline_of(int64_t timeout_ns)
{
	int64_t deadline;

	if (timeout_ns < 0 || __builtin_add_overflow(clock_ns(), timeout_ns, &deadline))
		return INT64_MAX;
	return deadline;
}

#endif /* INTERNAL_H */
