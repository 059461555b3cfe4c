// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: the consumer's progress report for observers. See rashpa-stream.h. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOKS	16	/* while it is being written */

static struct rashpa_stream_work *place(const struct rashpa_stream *s)
{
	return (struct rashpa_stream_work *)(s->buffer.base + s->head.work_offset);
}

/* Is there a stream, with a place for it? */
static int find(const struct rashpa_stream *s)
{
	if (!s->known || !s->head.work_offset || !stream_same(s))
		return fail(ENODATA, "buffer %s: no stream with room for a consumer's report",
			    s->name);
	return 0;
}

void stream_forget_work(struct rashpa_stream *s)
{
	if (s->head.work_offset && !(s->flags & RASHPA_STREAM_OBSERVE) && stream_same(s))
		__atomic_store_n(&place(s)->run, 0, __ATOMIC_RELAXED);
}

int rashpa_stream_tell_sized(struct rashpa_stream *s, const struct rashpa_stream_work *work,
			     size_t size)
{
	struct rashpa_stream_work copy, *to;
	int error = 0;

	sized_copy(&copy, sizeof(copy), work, size);
	if (s->producer || s->flags & RASHPA_STREAM_OBSERVE)
		return fail(EPERM, "only the consumer may report its work");
	pthread_mutex_lock(&s->lock);
	error = find(s);
	if (!error) {
		to = place(s);
		/* one that was killed while it wrote leaves an odd number behind */
		copy.sequence = __atomic_load_n(&to->sequence, __ATOMIC_RELAXED) | 1;
		copy.run = s->head.run;
		copy.time_ns = clock_ns();
		__atomic_store_n(&to->sequence, copy.sequence, __ATOMIC_RELAXED);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		stream_copy_words(to, &copy, sizeof(copy));
		__atomic_store_n(&to->sequence, copy.sequence + 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&s->lock);
	return error;
}

void stream_make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++) {
		if (*text < ' ' || *text > '~')
			*text = '?';
	}
}

/* Copy it, once. */
static bool copy_work(const struct rashpa_stream *s, struct rashpa_stream_work *work)
{
	const struct rashpa_stream_work *from = place(s);
	uint32_t sequence = __atomic_load_n(&from->sequence, __ATOMIC_ACQUIRE);

	stream_copy_words(work, from, sizeof(*work));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return !(sequence & 1) && __atomic_load_n(&from->sequence, __ATOMIC_RELAXED) == sequence;
}

int rashpa_stream_told_sized(struct rashpa_stream *s, struct rashpa_stream_work *to, size_t size)
{
	int error = find(s), looks = 0;
	struct rashpa_stream_work work;

	if (error)
		return error;
	/* 0: its consumer has not reported yet */
	if (__atomic_load_n(&place(s)->run, __ATOMIC_RELAXED) != s->head.run)
		return fail(ENODATA, "buffer %s: no consumer has reported its work", s->name);
	while (!copy_work(s, &work)) {
		if (++looks == LOOKS)
			return fail(EAGAIN, "buffer %s: its consumer writes all the time, or was killed while it did",
				    s->name);
	}
	if (work.run != s->head.run)
		return fail(ENODATA, "buffer %s: no consumer has reported its work", s->name);
	stream_make_printable(work.engine, RASHPA_STREAM_WORD);
	if (work.stages > RASHPA_STREAM_STAGES)
		work.stages = RASHPA_STREAM_STAGES;
	for (uint32_t i = 0; i < work.stages; i++)
		stream_make_printable(work.stage[i].name, RASHPA_STREAM_WORD);
	sized_copy(to, size, &work, sizeof(work));
	return 0;
}
