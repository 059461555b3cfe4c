// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The timeline of a drive, in Chrome's trace format. The host sees the words of the GPU rise: that
 * is the end of a copy or of an image's kernels. It began when all that it waits for had ended.
 */
#include "processing/drive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rashpa.h>
#include "common/say.h"

const char * const rpu_streams[RPU_STREAMS] = { "in", "compute", "out" };

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint64_t latest(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

int rpu_trace_open(struct rashpa_drive *d)
{
	const size_t size = d->plan.ahead + (size_t)d->plan.credits + 2;

	for (uint32_t i = 0; i < d->count; i++) {
		struct rpu_timeline *t = &d->wheel[i].timeline;

		t->size = size;
		t->arrived = calloc(3 * size, sizeof(*t->arrived));
		if (!t->arrived)
			return rashpa_fail(ENOMEM, "no memory for a timeline");
		t->copied = t->arrived + size;
		t->computed = t->copied + size;
	}
	d->trace = fopen(d->plan.trace, "we");
	if (!d->trace)
		return rashpa_fail(errno, "%s: %s", d->plan.trace, strerror(errno));
	d->traced_ns = now_ns();
	for (uint32_t i = 0; i < d->count * RPU_STREAMS; i++)
		fprintf(d->trace, "%c\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%" PRIu32
			",\"tid\":%" PRIu32 ",\"args\":{\"name\":\"%s\"}}", i ? ',' : '[',
			i / RPU_STREAMS, i % RPU_STREAMS, rpu_streams[i % RPU_STREAMS]);
	return 0;
}

/* Work of a stream for an image, in the order of computing, has ended. It began after this moment, and the work before it. */
static uint64_t add(const struct rashpa_drive *d, struct rpu_wheel *w, enum rpu_stream stream,
		    uint32_t number, uint64_t after, uint64_t end)
{
	uint64_t *last = &w->timeline.last[w->queue[stream]];
	const uint64_t begin = latest(after, *last);

	number ^= d->plan.pairs;
	fprintf(d->trace, ",\n{\"ph\":\"X\",\"name\":\"%s %" PRIu32 "\",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"image\":%"
		PRIu32 "}}", rpu_streams[stream], number, (unsigned int)(w - d->wheel), stream,
		begin / 1e3, (end - begin) / 1e3, number);
	w->timeline.seen[stream]++;
	return *last = end;
}

void rpu_trace_look(struct rashpa_drive *d, struct rpu_wheel *w)
{
	const bool copies = !d->direct && d->plan.way != RASHPA_DRIVE_POLL;
	const uint32_t index = w - d->wheel, *word = w->control;
	struct rpu_timeline *t = &w->timeline;
	const uint32_t size = t->size, *seen = t->seen;
	uint32_t until;
	uint64_t now;

	if (!d->trace)
		return;
	now = now_ns() - d->traced_ns;
	/* words rise meanwhile: no later stage is seen before an earlier one */
	until = atomic_load(d->lock_here) / d->pieces *
		(d->plan.lock_images ? d->plan.lock_images : 1);
	until -= until & d->plan.pairs;
	until = until > index ? (until - index - 1) / d->count + 1 : 0;
	until = least(least(until, w->images), seen[RPU_COMPUTE] + size);
	for (; t->arrivals < until; t->arrivals++)
		t->arrived[t->arrivals % size] = now;
	if (copies)
		until = least(until, __atomic_load_n(&word[RPU_CONTROL_IN], __ATOMIC_ACQUIRE));
	for (uint32_t k = seen[RPU_IN]; copies && k < until; k++)
		t->copied[k % size] = add(d, w, RPU_IN, rpu_number_of(d, w, k),
					  latest(t->arrived[k % size],
						 k >= 2 ? t->computed[(k - 2) % size] : 0), now);
	until = least(until, __atomic_load_n(&word[rpu_decided(d)], __ATOMIC_ACQUIRE));
	for (uint32_t k = seen[RPU_COMPUTE]; k < until; k++)
		t->computed[k % size] = add(d, w, RPU_COMPUTE, rpu_number_of(d, w, k),
					    (copies ? t->copied : t->arrived)[k % size], now);
	until = __atomic_load_n(&word[RPU_CONTROL_TAKEN], __ATOMIC_ACQUIRE);
	for (uint32_t j = seen[RPU_OUT]; j < until; j++) {
		uint32_t number;

		memcpy(&number, w->results + j % d->plan.credits * (d->pixels + RPU_RECORD) +
		       d->pixels, sizeof(number));
		number ^= d->plan.pairs;
		if (number / d->count >= seen[RPU_COMPUTE])
			break;
		add(d, w, RPU_OUT, number, t->computed[number / d->count % size], now);
	}
}

int rpu_trace_close(struct rashpa_drive *d)
{
	bool bad;

	for (uint32_t i = 0; i < d->count; i++)
		free(d->wheel[i].timeline.arrived);
	if (!d->trace)
		return 0;
	fprintf(d->trace, "\n]\n");
	bad = ferror(d->trace);
	return fclose(d->trace) || bad ?
		rashpa_fail(EIO, "the timeline could not be written") : 0;
}
