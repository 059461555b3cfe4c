// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the times of a stream as times of day. See rashpa-stream.h. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS		16	/* while it is being written */
#define TRIES		4
#define FRESH_NS	100000000	/* then it is written again */

static int64_t read_clock(clockid_t clock)
{
	struct timespec t = {};

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void stream_keep_clock(struct rashpa_stream *s, int64_t now)
{
	struct rashpa_stream_header *h = (struct rashpa_stream_header *)(uintptr_t)s->shared;
	uint64_t monotonic = 0, tai = 0, least = UINT64_MAX;
	const uint32_t sequence = h->clock_sequence | 1;
	int64_t utc = 0;

	if (s->clocked && now - s->clocked < FRESH_NS)
		return;
	s->clocked = now;
	/* the two reads that were closest to each other */
	for (int i = 0; i < TRIES; i++) {
		const uint64_t before = clock_ns(), between = read_clock(CLOCK_TAI);
		const uint64_t took = clock_ns() - before;

		if (took < least) {
			least = took;
			monotonic = before + took / 2;
			tai = between;
			/* sandboxes refuse adjtimex() */
			utc = tai - read_clock(CLOCK_REALTIME);
		}
	}
	__atomic_store_n(&h->clock_sequence, sequence, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&h->clock_utc, (utc + 500000000) / 1000000000, __ATOMIC_RELAXED);
	__atomic_store_n(&h->clock_monotonic, monotonic, __ATOMIC_RELAXED);
	__atomic_store_n(&h->clock_tai, tai, __ATOMIC_RELAXED);
	__atomic_store_n(&h->clock_sequence, sequence + 1, __ATOMIC_RELEASE);
}

static bool copy_clock(const struct rashpa_stream *s, struct rashpa_stream_clock *clock)
{
	const volatile struct rashpa_stream_header *h = s->shared;
	const uint32_t sequence = __atomic_load_n(&h->clock_sequence, __ATOMIC_ACQUIRE);

	*clock = (struct rashpa_stream_clock) {
		.monotonic_ns = __atomic_load_n(&h->clock_monotonic, __ATOMIC_RELAXED),
		.tai_ns = __atomic_load_n(&h->clock_tai, __ATOMIC_RELAXED),
		.utc_s = __atomic_load_n(&h->clock_utc, __ATOMIC_RELAXED),
		.tick_tai_ns = s->head.tick_tai,
		.tick_ns = s->head.tick_ns,
		.tick_of = s->head.tick_of,
	};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(sequence & 1) && __atomic_load_n(&h->clock_sequence, __ATOMIC_RELAXED) == sequence;
}

int rashpa_stream_get_clock_sized(struct rashpa_stream *s, struct rashpa_stream_clock *to, size_t size)
{
	struct rashpa_stream_clock clock;
	int looks = 0, error = 0;

	pthread_mutex_lock(&s->lock);
	if (!s->known || !stream_same(s))
		error = fail(ENODATA, "buffer %s: no stream", s->name);
	while (!error && !copy_clock(s, &clock)) {
		if (++looks == LOOKS)
			error = fail(EAGAIN, "buffer %s: its producer was killed while it wrote its clock",
				     s->name);
	}
	pthread_mutex_unlock(&s->lock);
	if (!error && !clock.tai_ns)
		error = fail(ENODATA, "buffer %s: its producer writes no clock", s->name);
	if (!error)
		sized_copy(to, size, &clock, sizeof(clock));
	return error;
}
