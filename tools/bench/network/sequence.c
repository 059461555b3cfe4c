// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/network/sequence.h"

#include <stdbool.h>

static uint64_t *word(struct sequence *s, uint64_t number)
{
	return &s->seen[number % SEQUENCE_WINDOW / 64];
}

static bool seen(struct sequence *s, uint64_t number)
{
	return *word(s, number) >> (number % 64) & 1;
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
	/* there is only one writer: load and store are cheaper than an atomic addition */
	atomic_store_explicit(to, atomic_load_explicit(to, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

/* Count the messages before this one that have not come. */
static void gap(struct sequence *s, uint64_t number)
{
	const uint64_t from = s->expected, n = number - from;

	if (!n)
		return;
	for (uint64_t i = 0; i < n && i < SEQUENCE_WINDOW; i++)
		*word(s, number - 1 - i) &= ~(UINT64_C(1) << ((number - 1 - i) % 64));
	add(&s->missing, n);
	if (!s->first_missing)
		s->first_missing = from + 1;
	if (n > s->longest_gap)
		s->longest_gap = n;
}

void sequence_take(struct sequence *s, uint32_t number)
{
	const uint64_t expected = atomic_load_explicit(&s->expected, memory_order_relaxed);
	const int64_t ahead = (int32_t)(number - (uint32_t)expected);
	const uint64_t full = expected + ahead;

	if (ahead >= 0) {
		gap(s, full);
		*word(s, full) |= UINT64_C(1) << (full % 64);
		add(&s->received, 1);
		/* store this last, so that a thread that reads it sees the other counters */
		atomic_store_explicit(&s->expected, full + 1, memory_order_release);
	} else if (-ahead > SEQUENCE_WINDOW || (uint64_t)-ahead > expected || seen(s, full)) {
		add(&s->duplicate, 1);
	} else {
		*word(s, full) |= UINT64_C(1) << (full % 64);
		add(&s->reordered, 1);
		add(&s->missing, -1);
		add(&s->received, 1);
	}
}

void sequence_end(struct sequence *s, uint64_t sent)
{
	if (sent <= s->expected)
		return;
	gap(s, sent);
	s->expected = sent;
}
