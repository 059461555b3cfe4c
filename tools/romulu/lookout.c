// SPDX-License-Identifier: LGPL-2.1-or-later
#include "romulu/lookout.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/json-out.h"
#include "daemon/led.h"
#include <rashpa.h>
#include "common/say.h"

#define LOOK_MS		5		/* from one look at the buffer to the next, at least */

struct lookout {
	_Atomic bool over;
	int wake;			/* an eventfd: it is over */
	struct run *run;
	struct rashpa_stream *stream;	/* an observer's */
	pthread_t thread;
	pthread_mutex_t lock;
	struct done done;		/* lock */
	uint64_t lag, slots;		/* used by the thread, and after joining it */
	bool full;			/* reported to the daemon; this and the following: used by the thread only */
	bool never;			/* with credit a full buffer loses nothing */
};

/* --- reports --- */

static void tell_counts(struct lookout *l)
{
	struct json_object *o = json_object_new_object(), *counts = json_object_new_object();
	struct done d;

	pthread_mutex_lock(&l->lock);
	d = l->done;
	pthread_mutex_unlock(&l->lock);
	put_u64(counts, "images", d.frames);
	put_u64(counts, "lost", d.lost);
	put_u64(counts, "bytes", d.bytes);
	put_u64(counts, "stacks", d.stacks);
	put_u64(counts, "missing", d.missing);
	put_u64(counts, "wrong", d.wrong);
	put_u64(counts, "dropped", d.dropped);
	put_u64(counts, "lag", l->lag);
	put_u64(counts, "slots", l->slots);
	if (d.processes) {
		put_u64(counts, "processed", d.processed);
		put_u64(counts, "kept", d.kept);
		put_u64(counts, "unkept", d.unkept);
	}
	json_object_object_add(o, "counts", counts);
	led_say("status", o);
}

/* The buffer fills, or was full and is so no more. */
static void tell_lag(struct lookout *l)
{
	const uint64_t given = l->run->config->full_at;
	const uint64_t full = given ? given : l->slots - l->slots / 4;
	struct json_object *o;

	if (l->full ? l->lag > full / 2 : l->lag < full)
		return;
	l->full = !l->full;
	o = json_object_new_object();
	put_u64(o, "lag", l->lag);
	put_u64(o, "slots", l->slots);
	led_say(l->full ? "full" : "relieved", o);
}

/* Stacks that are complete and that no consumer has done with. */
static void look(struct lookout *l)
{
	const struct rashpa_stream_header *about = rashpa_stream_get_header(l->stream);
	struct rashpa_stream_stat stat;
	struct rashpa_stack st;
	uint64_t complete;

	if (!about && rashpa_stream_begin(l->stream, 0))
		return;
	/* consume the records of all stacks seen so far */
	while (rashpa_stream_next(l->stream, &st, 0) > 0)
		rashpa_stream_release(l->stream, &st);
	about = rashpa_stream_get_header(l->stream);
	if (!about)
		return;
	rashpa_stream_get_stat(l->stream, &stat);
	complete = rashpa_stream_complete(l->stream);
	if (stat.state != RASHPA_STREAM_RUNNING)
		return;
	l->slots = about->slots;
	l->lag = complete > stat.consumed ? complete - stat.consumed : 0;
	/* but by a live source */
	l->never = about->policy == RASHPA_STREAM_WAIT && !about->live;
	if (!l->never)
		tell_lag(l);
}

/*
 * Sleep until there may be news. Complete stacks raise events, but released stacks do not, so a
 * full buffer is polled.
 */
static void sleep_until_event(struct lookout *l)
{
	struct pollfd fds[] = {
		{ .fd = l->wake, .events = POLLIN },
		{ .fd = l->never ? -1 : rashpa_stream_fd(l->stream), .events = POLLIN },
	};

	/* of many stacks a second one look takes several */
	if (!poll(fds, 1, LOOK_MS) && !l->full)
		poll(fds, 2, LED_STATUS_MS - LOOK_MS);
}

static void *watch(void *arg)
{
	struct lookout *l = arg;

	while (!l->over) {
		look(l);
		if (led_due())
			tell_counts(l);
		sleep_until_event(l);
	}
	return NULL;
}

/* --- */

static void free_lookout(struct lookout *l)
{
	rashpa_stream_close(l->stream);
	close(l->wake);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

int lookout_begin(struct run *r)
{
	struct lookout *l;
	int result = 0;

	if (!led())
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return fail("no memory");
	l->run = r;
	l->wake = eventfd(0, EFD_CLOEXEC);
	if (l->wake < 0) {
		free(l);
		return fail("no descriptor: %s", strerror(errno));
	}
	pthread_mutex_init(&l->lock, NULL);
	if (rashpa_stream_open(r->config->opt.buffer, RASHPA_STREAM_OBSERVE | RASHPA_STREAM_LATEST |
			       RASHPA_STREAM_NO_DATA | (r->config->net.listen ? 0 : RASHPA_STREAM_FRESH), &l->stream)) {
		result = fail("%s", rashpa_reason());
	} else if (pthread_create(&l->thread, NULL, watch, l)) {
		result = fail("no thread");
	}
	if (result) {
		free_lookout(l);
		return result;
	}
	r->lookout = l;
	return 0;
}

void lookout_note(struct run *r)
{
	const struct report *report = r->report;
	struct lookout *l = r->lookout;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->done = (struct done) {
		.frames = report->frames, .lost = report->lost,
		.bytes = report->bytes, .stacks = report->stacks,
		.missing = report->missing_lines, .wrong = report->corrupt,
		.dropped = report->skipped,
	};
	if (r->config->use->count)
		r->config->use->count(r, &l->done);
	pthread_mutex_unlock(&l->lock);
}

void lookout_end(struct run *r)
{
	struct lookout *l = r->lookout;

	if (!l)
		return;
	l->over = true;
	while (eventfd_write(l->wake, 1) && errno == EINTR)
		;
	pthread_join(l->thread, NULL);
	l->lag = 0;
	lookout_note(r);
	tell_counts(l);
	free_lookout(l);
	r->lookout = NULL;
}
