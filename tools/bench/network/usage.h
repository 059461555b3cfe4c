/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Processor time of this process without the measuring thread, and of the machine, by kind. */
#ifndef BENCH_NETWORK_USAGE_H
#define BENCH_NETWORK_USAGE_H

#include <json-c/json.h>
#include <pthread.h>
#include <stdint.h>

struct usage {
	uint64_t ns;		/* CLOCK_MONOTONIC */
	uint64_t process_ns;	/* without the calling thread */
	/* sums over all processors of the machine */
	uint64_t user_ns, system_ns, irq_ns, softirq_ns;
};

void usage_now(struct usage *usage);
/* Processor time of a thread that has not been joined, ns. */
uint64_t usage_process(void);	/* without the calling thread */
uint64_t usage_thread(pthread_t thread);
/* Put the seconds between the two, and the seconds of processor time for 10^9 bytes. */
void usage_put(struct json_object *to, const struct usage *from, const struct usage *until,
	       uint64_t bytes);

#endif /* BENCH_NETWORK_USAGE_H */
