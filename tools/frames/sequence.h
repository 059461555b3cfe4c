/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers that count up and begin again at 0: PSNs, and immediate values. */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#define SEQUENCE_WINDOW	1024	/* numbers that are remembered; a multiple of 64 */

struct sequence {
	uint32_t mask;		/* 2^n - 1 */
	bool begun;
	uint32_t expected;
	bool again;		/* numbers are sent again, up to the expected one */
	uint32_t next_again;
	uint64_t seen[SEQUENCE_WINDOW / 64];
};

enum order {
	ORDER_GOOD,
	ORDER_GAP,		/* those from the expected one on are missing */
	ORDER_AHEAD,		/* the expected one follows directly */
	ORDER_LATE,		/* was missing before */
	ORDER_DUPLICATE,
	ORDER_WRONG,		/* a single wrong number: the next one continues as if it were right */
	ORDER_BACK,		/* begin of a retransmission */
	ORDER_AGAIN,		/* part of a retransmission */
};

/* Is the next number needed to classify this one? */
bool sequence_doubtful(const struct sequence *s, uint32_t value);

/* next: the following number, or NULL at the end. */
enum order sequence_place(struct sequence *s, uint32_t value, const uint32_t *next);

#endif /* SEQUENCE_H */
