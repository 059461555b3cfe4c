// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lookout.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "json-out.h"
#include "led.h"
#include "rashpa.h"
#include "say.h"

#define LOOK_MS		5		/* from one look at the buffer to the next */

struct lookout {
	_Atomic bool over;
	struct run *run;
	struct rashpa_stream *stream;	/* an observer's */
	pthread_t thread;
	pthread_mutex_t lock;
	struct done done;		/* lock */
	uint64_t lag, slots;		/* the thread's, and of whom has joined it */
	bool full;			/* the daemon was told */
};

/* --- what is told --- */

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
	const struct rashpa_stream_header *about = rashpa_stream_about(l->stream);
	struct rashpa_stream_stat stat;
	uint64_t complete;

	if (!about && rashpa_stream_begin(l->stream, 0))
		return;
	about = rashpa_stream_about(l->stream);
	rashpa_stream_status(l->stream, &stat);
	complete = rashpa_stream_complete(l->stream);
	if (!about || stat.state != RASHPA_STREAM_RUNNING)
		return;
	l->slots = about->slots;
	l->lag = complete > stat.consumed ? complete - stat.consumed : 0;
	/* with credit nothing is lost, however full it is; but by a live source */
	if (about->policy != RASHPA_STREAM_WAIT || about->live)
		tell_lag(l);
}

static void *watch(void *arg)
{
	struct lookout *l = arg;

	while (!l->over) {
		look(l);
		if (led_due())
			tell_counts(l);
		poll(NULL, 0, LOOK_MS);
	}
	return NULL;
}

/* --- */

int lookout_begin(struct run *r)
{
	struct lookout *l;

	if (!led())
		return 0;
	l = calloc(1, sizeof(*l));
	if (!l)
		return fail("no memory");
	l->run = r;
	pthread_mutex_init(&l->lock, NULL);
	if (rashpa_stream_open(r->config->opt.buffer, RASHPA_STREAM_OBSERVE | RASHPA_STREAM_LATEST |
			       (r->config->net.listen ? 0 : RASHPA_STREAM_FRESH), &l->stream)) {
		free(l);
		return fail("%s", rashpa_reason());
	}
	if (pthread_create(&l->thread, NULL, watch, l)) {
		rashpa_stream_close(l->stream);
		free(l);
		return fail("no thread");
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
	if (r->config->engine->count)
		r->config->engine->count(r, &l->done);
	pthread_mutex_unlock(&l->lock);
}

void lookout_end(struct run *r)
{
	struct lookout *l = r->lookout;

	if (!l)
		return;
	l->over = true;
	pthread_join(l->thread, NULL);
	l->lag = 0;
	lookout_note(r);
	tell_counts(l);
	rashpa_stream_close(l->stream);
	pthread_mutex_destroy(&l->lock);
	free(l);
	r->lookout = NULL;
}
