// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network sink: a repetition, and its counters. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/network/counters.h"
#include "common/json-out.h"
#include "bench/network/network.h"
#include "common/stop.h"
#include "bench/network/usage.h"

/* --- counters --- */

struct total {
	uint64_t sent, received, missing, duplicate, reordered, bytes;
};

static void total_of(const struct sink *s, struct total *t)
{
	*t = (struct total) {};
	for (uint32_t i = 0; i < s->guests; i++) {
		const struct guest *g = &s->guest[i];
		uint64_t before = t->received;

		for (uint32_t p = 0; p < g->plan.pairs; p++) {
			const struct sequence *q = &g->sequence[p];

			t->sent += g->sent[p];
			t->received += q->received;
			t->missing += q->missing;
			t->duplicate += q->duplicate;
			t->reordered += q->reordered;
		}
		t->bytes += (t->received - before) * g->plan.size;
	}
}

/* State at the start or end of the measured time. */
struct mark {
	struct usage usage;
	struct total total;
	struct arrivals arrivals;
	uint64_t thread_ns[THREADS_MOST];
};

static void mark(const struct sink *s, struct mark *m)
{
	usage_now(&m->usage);
	total_of(s, &m->total);
	m->arrivals = (struct arrivals) {};
	if (s->way->arrivals)
		s->way->arrivals(s, &m->arrivals);
	for (uint32_t i = 0; i < s->receivers; i++)
		m->thread_ns[i] = usage_thread(s->receiver[i].thread);
}

/* A repetition. */
struct lap {
	struct mark from, until;	/* measured time */
	struct total before, after;	/* whole repetition, with the warm-up */
	bool counts, stopped;
	struct samples time_us, goodput, cpu;	/* intervals: end, bytes a second, ns a second */
	struct samples gpu, milliwatt;	/* of them: percent, mW */
	uint64_t sample_ns, sample_bytes, sample_cpu_ns;
	struct json_object *counters;
	uint64_t again;
	uint64_t moved_ns, moved;	/* time and total of the last arrival */
	uint64_t *expected, *quiet_ns;	/* one for each pair of all guests */
};

static void sample_gpu(const struct sink *s, struct lap *l)
{
	double percent, watt;

	gpu_memory_load(&s->gpu, &percent, &watt);
	if (!isnan(percent))
		samples_add(&l->gpu, percent);
	if (!isnan(watt))
		samples_add(&l->milliwatt, watt * 1e3);
}

static void sample(const struct sink *s, struct lap *l)
{
	const uint64_t now = now_ns(), ns = now - l->sample_ns, cpu_ns = usage_process();
	struct total t;

	if (ns < s->config->interval_ms * UINT64_C(1000000))
		return;
	total_of(s, &t);
	if (l->counts && !l->stopped && l->sample_bytes) {
		samples_add(&l->time_us, (now - l->from.usage.ns) / 1000);
		samples_add(&l->goodput, (t.bytes - l->sample_bytes) * 1e9 / ns);
		samples_add(&l->cpu, (cpu_ns - l->sample_cpu_ns) * 1e9 / ns);
		sample_gpu(s, l);
	}
	l->sample_ns = now;
	l->sample_bytes = t.bytes;
	l->sample_cpu_ns = cpu_ns;
	if (t.received != l->moved)
		l->moved_ns = now;
	l->moved = t.received;
}

static void put_quantiles(struct json_object *o, struct lap *l)
{
	struct samples *g = &l->goodput;

	samples_sort(g);
	put_u64(o, "goodput_samples", g->count);
	put_u64(o, "goodput_p10_bytes_per_second", percentile(g->value, g->count, 10));
	put_u64(o, "goodput_p50_bytes_per_second", percentile(g->value, g->count, 50));
	put_u64(o, "goodput_p90_bytes_per_second", percentile(g->value, g->count, 90));
	samples_sort(&l->cpu);
	put_real(o, "cpu_p10_percent", percentile(l->cpu.value, l->cpu.count, 10) / 1e7);
	samples_sort(&l->gpu);
	samples_sort(&l->milliwatt);
	if (l->gpu.count)
		put_u64(o, "gpu_p50_percent", percentile(l->gpu.value, l->gpu.count, 50));
	if (!l->milliwatt.count)
		return;
	put_real(o, "power_p50_watt", percentile(l->milliwatt.value, l->milliwatt.count, 50) / 1e3);
	put_real(o, "power_max_watt", l->milliwatt.max / 1e3);
}

static struct json_object *column(const struct samples *s, double unit)
{
	struct json_object *o = json_object_new_array();

	for (size_t i = 0; i < s->count; i++)
		json_object_array_add(o, json_object_new_double(s->value[i] / unit));
	return o;
}

/* What happened over time, in the order of time: before the samples are sorted. */
static struct json_object *series(const struct lap *l)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "time_ms", column(&l->time_us, 1e3));
	json_object_object_add(o, "goodput_bytes_per_second", column(&l->goodput, 1));
	json_object_object_add(o, "cpu_percent", column(&l->cpu, 1e7));
	if (l->gpu.count)
		json_object_object_add(o, "gpu_percent", column(&l->gpu, 1));
	if (l->milliwatt.count)
		json_object_object_add(o, "power_watt", column(&l->milliwatt, 1e3));
	return o;
}

static void put_arrivals(struct json_object *o, const struct lap *l, uint64_t bytes)
{
	const struct arrivals *a = &l->from.arrivals, *b = &l->until.arrivals;
	const uint64_t events = b->events - a->events, polls = b->polls - a->polls;

	put_u64(o, "events", events);
	put_u64(o, "polls", polls);
	put_u64(o, "empty_polls", b->empty - a->empty);
	put_u64(o, "least_receives", b->least);
	if (events)
		put_real(o, "polls_per_event", (double)polls / events);
	if (bytes) {
		put_real(o, "events_per_gb", events * 1e9 / bytes);
		put_real(o, "polls_per_gb", polls * 1e9 / bytes);
	}
}

static void put_missing(struct json_object *o, const struct sink *s, const struct lap *l)
{
	const struct total *a = &l->before, *b = &l->after;
	uint64_t longest = 0;

	put_u64(o, "sent_messages", b->sent - a->sent);
	put_u64(o, "received_messages", b->received - a->received);
	put_u64(o, "missing_messages", b->missing - a->missing);
	put_u64(o, "duplicate_messages", b->duplicate - a->duplicate);
	put_u64(o, "reordered_messages", b->reordered - a->reordered);
	put_u64(o, "received_again", l->again);
	for (uint32_t i = 0; i < s->guests; i++) {
		for (uint32_t p = 0; p < s->guest[i].plan.pairs; p++) {
			const uint64_t gap = s->guest[i].sequence[p].longest_gap;

			longest = gap > longest ? gap : longest;
		}
	}
	put_u64(o, "longest_gap_messages", longest);
}

static struct json_object *lap_json(const struct sink *s, struct lap *l)
{
	const struct plan *plan = &s->guest[0].plan;
	const uint64_t bytes = l->until.total.bytes - l->from.total.bytes;
	const uint64_t messages = l->until.total.received - l->from.total.received;
	const double seconds = (l->until.usage.ns - l->from.usage.ns) / 1e9;
	struct json_object *o = link_message("result"), *threads = json_object_new_array();

	put_real(o, "time_s", seconds);
	put_u64(o, "bytes", bytes);
	put_u64(o, "messages", messages);
	put_real(o, "goodput_bytes_per_second", seconds > 0 ? bytes / seconds : 0);
	if (plan->way == WAY_WRITE) {
		put_real(o, "line_bytes_per_second",
			 seconds > 0 ? messages * wire_bytes(plan) / seconds : 0);
		put_real(o, "line_efficiency_percent", 100.0 * plan->size / wire_bytes(plan));
	}
	put_quantiles(o, l);
	put_missing(o, s, l);
	put_arrivals(o, l, bytes);
	usage_put(o, &l->from.usage, &l->until.usage, bytes);
	for (uint32_t i = 0; i < s->receivers; i++) {
		const uint64_t ns = l->until.thread_ns[i] - l->from.thread_ns[i];

		json_object_array_add(threads, json_object_new_double(ns / 1e9));
	}
	json_object_object_add(o, "thread_cpu_s", threads);
	json_object_object_add(o, "counters", json_object_get(l->counters));
	return o;
}

/* --- a repetition --- */

static int take_numbers(struct guest *g, struct json_object *message, char *why)
{
	struct json_object *list;

	if (!link_array(message, "sent", g->plan.pairs, g->plan.pairs, &list, why))
		return -1;
	for (uint32_t i = 0; i < g->plan.pairs; i++)
		g->sent[i] = json_object_get_uint64(json_object_array_get_idx(list, i));
	g->ended = true;
	return 0;
}

static int hear(struct guest *g, struct json_object *message, char *why)
{
	const char *kind = link_kind(message);

	if (!strcmp(kind, "count"))
		g->counts = true;
	else if (!strcmp(kind, "stop"))
		g->stopped = true;
	else if (!strcmp(kind, "end"))
		return take_numbers(g, message, why);
	else if (!strcmp(kind, "progress"))
		return link_number(message, "least", 0, UINT64_MAX, &g->least, why) ? 0 : -1;
	else
		return because(why, -1, "%s: it sent an unexpected message, \"%.40s\"", g->link.peer, kind);
	return 0;
}

static int tell_all(struct sink *s, const char *kind, char *why)
{
	for (uint32_t i = 0; i < s->guests; i++) {
		if (link_send(&s->guest[i].link, link_message(kind), why))
			return -1;
	}
	return 0;
}

static int listen_to(struct sink *s, struct lap *l, char *why)
{
	bool counts = true, stopped = false;

	for (uint32_t i = 0; i < s->guests; i++) {
		struct guest *g = &s->guest[i];
		struct json_object *message;
		int result;

		while ((result = link_take(&g->link, &message, why)) > 0) {
			result = hear(g, message, why);
			json_object_put(message);
			if (result)
				break;
		}
		if (result < 0)
			return -1;
		counts &= g->counts;
		stopped |= g->stopped;
	}
	if (counts && !l->counts) {
		l->counts = true;
		mark(s, &l->from);
		if (tell_all(s, "counting", why))
			return -1;
	}
	if (stopped && !l->stopped)
		mark(s, &l->until);
	l->stopped |= stopped;
	return 0;
}

/* Reconnects stalled pairs: after a packet loss, some cards wait for ever for the rest. */
static int wake_stalled(struct sink *s, struct lap *l, char *why)
{
	const uint64_t now = now_ns();
	uint32_t n = 0;

	for (uint32_t i = 0; s->way->again && i < s->guests; i++) {
		struct guest *g = &s->guest[i];

		for (uint32_t p = 0; p < g->plan.pairs; p++, n++) {
			const uint64_t at = g->sequence[p].expected;

			if (at != l->expected[n] || g->ended || at >= g->least) {
				l->expected[n] = at;
				l->quiet_ns[n] = now;
			} else if (now - l->quiet_ns[n] > s->config->stall_ms * UINT64_C(1000000)) {
				if (s->way->again(s, g, p, why))
					return -1;
				l->quiet_ns[n] = now;
				l->again++;
			}
		}
	}
	return 0;
}

static bool settled(const struct sink *s, const struct lap *l)
{
	bool all = true;

	for (uint32_t i = 0; i < s->guests; i++) {
		const struct guest *g = &s->guest[i];

		if (!g->ended)
			return false;
		for (uint32_t p = 0; p < g->plan.pairs; p++)
			all &= g->sequence[p].expected >= g->sent[p];
	}
	return all || now_ns() - l->moved_ns > s->config->settle_ms * UINT64_C(1000000);
}

static int failed_receiver(const struct sink *s, char *why)
{
	for (uint32_t i = 0; i < s->receivers; i++) {
		if (*s->receiver[i].why)
			return because(why, -1, "%s", s->receiver[i].why);
	}
	return 0;
}

static int follow(struct sink *s, struct lap *l, char *why)
{
	struct pollfd fds[WRITERS_MOST];

	for (uint32_t i = 0; i < s->guests; i++)
		fds[i] = link_poll(&s->guest[i].link);
	l->moved_ns = now_ns();
	while (!settled(s, l)) {
		stop_poll(fds, s->guests, now_ns() + s->config->interval_ms * UINT64_C(1000000));
		if (*s->stop)
			return because(why, -1, "stopped by a signal");
		if (listen_to(s, l, why) || wake_stalled(s, l, why) || failed_receiver(s, why))
			return -1;
		sample(s, l);
	}
	if (!l->stopped || !l->counts || l->until.usage.ns < l->from.usage.ns)
		return because(why, -1, "a writer did not report the end of its warm-up");
	return 0;
}

static int begin(struct sink *s, char *why)
{
	struct json_object *message;

	for (uint32_t i = 0; i < s->guests; i++) {
		struct guest *g = &s->guest[i];

		if (link_await(&g->link, "begin", false, HANDSHAKE_MS, s->stop, &message, why))
			return -1;
		json_object_put(message);
		g->counts = g->stopped = g->ended = false;
		g->least = 0;
	}
	return tell_all(s, "ready", why);
}

int sink_lap(struct sink *s, struct json_object *laps, char *why)
{
	struct lap l = {};
	struct json_object *before = counters_now(s->port), *o, *over_time = NULL;
	uint32_t pairs = 0;
	int result;

	for (uint32_t i = 0; i < s->guests; i++)
		pairs += s->guest[i].plan.pairs;
	l.expected = calloc(pairs, sizeof(*l.expected));
	l.quiet_ns = calloc(pairs, sizeof(*l.quiet_ns));
	total_of(s, &l.before);
	result = l.expected && l.quiet_ns ? begin(s, why) : because(why, -1, "no memory");
	if (!result)
		result = follow(s, &l, why);
	for (uint32_t i = 0; i < s->guests && !result; i++) {
		for (uint32_t p = 0; p < s->guest[i].plan.pairs; p++)
			sequence_end(&s->guest[i].sequence[p], s->guest[i].sent[p]);
	}
	total_of(s, &l.after);
	l.counters = counters_since(before, counters_now(s->port));
	if (!result) {
		if (s->config->series)
			over_time = series(&l);
		o = lap_json(s, &l);
		for (uint32_t i = 0; i < s->guests && !result; i++)
			result = link_send(&s->guest[i].link, json_object_get(o), why);
		if (over_time)
			json_object_object_add(o, "series", over_time);
		json_object_array_add(laps, o);
	}
	json_object_put(l.counters);
	samples_free(&l.time_us);
	samples_free(&l.goodput);
	samples_free(&l.cpu);
	samples_free(&l.gpu);
	samples_free(&l.milliwatt);
	free(l.expected);
	free(l.quiet_ns);
	return result;
}
