// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network write: a repetition, and its counters. */
#include <stdio.h>
#include <string.h>

#include "bench/network/counters.h"
#include "common/json-out.h"
#include "bench/network/network.h"
#include "common/stop.h"
#include "bench/network/usage.h"

#define PROGRESS_NS	UINT64_C(100000000)
#define RESULT_MS	700000			/* more than the longest --settle of a sink */

static int tell_all(struct writer *w, const char *kind, char *why)
{
	for (uint32_t i = 0; i < w->targets; i++) {
		if (link_send(&w->target[i].link, link_message(kind), why))
			return -1;
	}
	return 0;
}

static int await_all(struct writer *w, const char *kind, int timeout_ms, struct json_object *list,
		     char *why)
{
	struct json_object *message;

	for (uint32_t i = 0; i < w->targets; i++) {
		if (link_await(&w->target[i].link, kind, false, timeout_ms, w->stop, &message, why))
			return -1;
		json_object_object_del(message, "kind");
		if (list)
			json_object_array_add(list, message);
		else
			json_object_put(message);
	}
	return 0;
}

/* Send each sink the lowest number of completed messages of a pair, so it can detect stalls. */
static int say_progress(struct writer *w, char *why)
{
	for (uint32_t i = 0; i < w->targets; i++) {
		struct json_object *o = link_message("progress");
		uint64_t least = UINT64_MAX;

		for (uint32_t p = 0; p < w->plan.pairs; p++) {
			const uint64_t completed = w->target[i].lane[p].completed;

			least = completed < least ? completed : least;
		}
		put_u64(o, "least", least);
		if (link_send(&w->target[i].link, o, why))
			return -1;
	}
	return 0;
}

static int say_end(struct writer *w, char *why)
{
	for (uint32_t i = 0; i < w->targets; i++) {
		struct json_object *o = link_message("end"), *list = json_object_new_array();

		for (uint32_t p = 0; p < w->plan.pairs; p++)
			json_object_array_add(list,
				json_object_new_uint64(w->target[i].lane[p].number));
		json_object_object_add(o, "sent", list);
		if (link_send(&w->target[i].link, o, why))
			return -1;
	}
	return 0;
}

static void *send_messages(void *arg)
{
	struct sender *s = arg;

	s->writer->way->send(s);
	s->cpu_ns += usage_thread(pthread_self());
	s->writer->done++;
	return NULL;
}

/* Wait until this time, or until all threads have ended. 0, or -1 and why. */
static int wait_until(struct writer *w, uint64_t end, char *why)
{
	struct pollfd fds[WRITERS_MOST];

	for (uint32_t i = 0; i < w->targets; i++)
		fds[i] = link_poll(&w->target[i].link);
	while (now_ns() < end && w->done < w->senders) {
		const uint64_t next = now_ns() + PROGRESS_NS;

		if (stop_poll(fds, w->targets, next < end ? next : end) > 0)
			return await_all(w, "result", 0, NULL, why) ? -1 :
			       because(why, -1, "a sink has ended too early");
		if (*w->stop)
			return because(why, -1, "stopped by a signal");
		if (say_progress(w, why))
			return -1;
	}
	return 0;
}

struct span {
	struct usage from, until;
	uint64_t bytes;
	struct arrivals a, b;
};

static uint64_t posted(const struct writer *w)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < w->targets; i++) {
		for (uint32_t p = 0; p < w->plan.pairs; p++)
			n += w->target[i].lane[p].sent;
	}
	return n * w->plan.size;
}

static void look(const struct writer *w, struct usage *usage, struct arrivals *arrivals)
{
	usage_now(usage);
	*arrivals = (struct arrivals) {};
	if (w->way->arrivals)
		w->way->arrivals(w, arrivals);
}

static int measure(struct writer *w, struct span *span, char *why)
{
	const struct write_config *c = w->config;
	const bool timed = !w->plan.messages;
	uint64_t end = now_ns() + c->warm_up * 1e9;
	int result = timed ? wait_until(w, end, why) : 0;

	if (result || tell_all(w, "count", why) ||
	    await_all(w, "counting", HANDSHAKE_MS, NULL, why))
		return -1;
	look(w, &span->from, &span->a);
	span->bytes = -posted(w);
	end = timed ? now_ns() + (uint64_t)(c->time * 1e9) : UINT64_MAX;
	if (wait_until(w, end, why))
		return -1;
	span->bytes += posted(w);
	look(w, &span->until, &span->b);
	return tell_all(w, "stop", why);
}

static int run_senders(struct writer *w, struct span *span, char *why)
{
	int result = 0;

	w->halt = false;
	w->done = 0;
	for (uint32_t i = 0; i < w->senders && !result; i++) {
		struct sender *s = &w->sender[i];
		int error;

		for (uint32_t l = 0; l < s->lanes; l++)
			s->lane[l]->left = w->plan.messages ? w->plan.messages : UINT64_MAX;
		s->cpu_ns = 0;
		error = pthread_create(&s->thread, NULL, send_messages, s);
		s->running = !error;
		if (error)
			result = because(why, -1, "cannot start a thread: %s", strerror(error));
	}
	if (!result)
		result = measure(w, span, why);
	w->halt = true;
	for (uint32_t i = 0; i < w->senders; i++) {
		if (w->sender[i].running)
			pthread_join(w->sender[i].thread, NULL);
		w->sender[i].running = false;
		if (!result && *w->sender[i].why)
			result = because(why, -1, "%s", w->sender[i].why);
	}
	return result;
}

static struct json_object *span_json(const struct writer *w, const struct span *s)
{
	struct json_object *o = json_object_new_object();
	const double seconds = (s->until.ns - s->from.ns) / 1e9;
	uint64_t full = 0;

	for (uint32_t i = 0; i < w->senders; i++)
		full += w->sender[i].full;
	put_real(o, "time_s", seconds);
	put_u64(o, "bytes", s->bytes);
	put_real(o, "posted_bytes_per_second", seconds > 0 ? s->bytes / seconds : 0);
	put_u64(o, "events", s->b.events - s->a.events);
	put_u64(o, "polls", s->b.polls - s->a.polls);
	put_u64(o, "queue_full", full);
	usage_put(o, &s->from, &s->until, s->bytes);
	return o;
}

int writer_lap(struct writer *w, struct json_object *laps, char *why)
{
	struct json_object *before = counters_now(w->port), *o = json_object_new_object();
	struct json_object *sinks = json_object_new_array(), *mine;
	struct span span = {};
	int result = tell_all(w, "begin", why);

	if (!result)
		result = await_all(w, "ready", HANDSHAKE_MS, NULL, why);
	if (!result)
		result = run_senders(w, &span, why);
	if (!result)
		result = say_end(w, why);
	if (!result)
		result = await_all(w, "result", RESULT_MS, sinks, why);
	mine = span_json(w, &span);
	json_object_object_add(mine, "counters", counters_since(before, counters_now(w->port)));
	json_object_object_add(o, "write", mine);
	json_object_object_add(o, "sinks", sinks);
	json_object_array_add(laps, o);
	return result;
}
