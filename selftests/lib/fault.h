/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The n-th allocation, or copy from or to user space, of this thread fails. Needs a kernel with
 * fault injection (CONFIG_FAULT_INJECTION, FAILSLAB, FAIL_PAGE_ALLOC,
 * FAULT_INJECTION_USERCOPY).
 */
#ifndef FAULT_H
#define FAULT_H

#include <stdbool.h>

#define FAULTS_NEVER	1000000		/* more than any call has places to fail */

/* False: this kernel injects nothing. */
bool faults_open(void);
void faults_close(void);
/* Make the @n-th place that can fail from here on fail; and stop that. */
void faults_arm(unsigned int n);
/* Returns how many places were left; 0: one has failed. */
unsigned int faults_disarm(void);
/* Is @err an answer that an injected failure explains? */
bool fault_answer(int err);

#endif /* FAULT_H */
