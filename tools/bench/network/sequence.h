/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers of messages, modulo 2^32 as the immediate has them: which came, which did not. */
#ifndef BENCH_NETWORK_SEQUENCE_H
#define BENCH_NETWORK_SEQUENCE_H

#include <stdatomic.h>
#include <stdint.h>

#define SEQUENCE_WINDOW	4096		/* a message that is late by more counts as a duplicate */

struct sequence {
	/* written by one thread, looked at by another */
	_Atomic uint64_t expected;	/* number of the message behind the last one */
	_Atomic uint64_t received, missing, duplicate, reordered;
	_Atomic uint64_t first_missing;	/* number + 1, 0: none */
	_Atomic uint64_t longest_gap;
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

/* It came. */
void sequence_take(struct sequence *sequence, uint32_t number);
/* So many were sent, and nothing comes any more: what is behind the last one is missing, too. */
void sequence_end(struct sequence *sequence, uint64_t sent);

#endif /* BENCH_NETWORK_SEQUENCE_H */
