/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tracks received and missing message numbers, which immediates carry modulo 2^32. */
#ifndef BENCH_NETWORK_SEQUENCE_H
#define BENCH_NETWORK_SEQUENCE_H

#include <stdatomic.h>
#include <stdint.h>

#define SEQUENCE_WINDOW	4096		/* messages that are later than this count as duplicates */

struct sequence {
	/* written by one thread, read by another */
	_Atomic uint64_t expected;	/* highest received number, plus one */
	_Atomic uint64_t received, missing, duplicate, reordered;
	_Atomic uint64_t first_missing;	/* number + 1; 0: none */
	_Atomic uint64_t longest_gap;
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

/* A message has come. */
void sequence_take(struct sequence *sequence, uint32_t number);
/* No more messages come: those up to "sent" that have not come are missing. */
void sequence_end(struct sequence *sequence, uint64_t sent);

#endif /* BENCH_NETWORK_SEQUENCE_H */
