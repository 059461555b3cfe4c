// SPDX-License-Identifier: LGPL-2.1-or-later
/* One run of a trial: a writer and a sink, or several of one of them. */
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/network/sweep.h"

#define MARGIN_S	120		/* time to connect thousands of queue pairs */

static uint32_t one(uint32_t n)
{
	return n ? n : 1;
}

static void options_of_both(struct command *c, const struct trial *t, const struct side *side)
{
	if (side->device)
		command_add(c, "--device=%s", side->device);
	command_add(c, "--wait=%s", wait_name(t->wait));
	if (t->threads)
		command_add(c, "--threads=%" PRIu32, t->threads);
}

static int start_sink(const struct sweep *s, const struct trial *t, uint32_t port, char *why)
{
	const uint64_t memory = (uint64_t)t->plan.size * one(t->plan.destinations) *
				one(t->writers) + 4096 * WRITERS_MOST;
	struct command c;

	command_begin(&c, &s->sink, s->program);
	command_add(&c, "network");
	command_add(&c, "sink");
	command_add(&c, "--listen=%s:%" PRIu32, s->address, port);
	command_add(&c, "--memory=%" PRIu64, memory);
	command_add(&c, "--writers=%" PRIu32, one(t->writers));
	if (t->receives)
		command_add(&c, "--receives=%" PRIu32, t->receives);
	if (t->pages)
		command_add(&c, "--pages=%s", t->pages);
	options_of_both(&c, t, &s->sink);
	return command_start(&c, -1, why);
}

static int start_writer(const struct sweep *s, const struct trial *t, int out, char *why)
{
	const struct plan *p = &t->plan;
	struct command c;

	command_begin(&c, &s->writer, s->program);
	command_add(&c, "network");
	command_add(&c, "write");
	for (uint32_t i = 0; i < one(t->sinks); i++)
		command_add(&c, "--to=%s:%" PRIu32, s->address, s->port + i);
	command_add(&c, "--transport=%s", way_name(p->way));
	command_add(&c, "--service=%s", p->service == RASHPA_NET_RC ? "rc" : "uc");
	command_add(&c, "--size=%" PRIu32, p->size);
	command_add(&c, "--pairs=%" PRIu32, one(p->pairs));
	command_add(&c, "--linked=%" PRIu32, one(p->linked));
	command_add(&c, "--destinations=%" PRIu32, one(p->destinations));
	if (p->solicited)
		command_add(&c, "--solicited");
	if (t->depth)
		command_add(&c, "--depth=%" PRIu32, t->depth);
	if (t->rate)
		command_add(&c, "--rate=%" PRIu64, t->rate);
	command_add(&c, "--time=%g", s->time);
	command_add(&c, "--warm-up=%g", s->warm_up);
	command_add(&c, "--repeat=1");
	command_add(&c, "--json");
	options_of_both(&c, t, &s->writer);
	return command_start(&c, out, why);
}

/* --- result of a writer --- */

static double number(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_double(value) : NAN;
}

/* Results of several sinks: the sum of goodput, and means of the others. */
static void take_sinks(struct json_object *sinks, struct outcome *outcome)
{
	static const char *const keys[METRICS] = {
		[METRIC_SINK_CPU] = "cpu_s_per_gb", [METRIC_CPU] = "machine_cpu_s_per_gb",
		[METRIC_EVENTS] = "events_per_gb", [METRIC_POLLS] = "polls_per_gb",
	};
	const size_t n = json_object_array_length(sinks);
	double sent = 0, missing = 0, all = 0;

	for (unsigned int m = 0; m < METRICS; m++)
		outcome->value[m] = 0;
	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_array_get_idx(sinks, i);

		all += number(o, "goodput_bytes_per_second");
		sent += number(o, "sent_messages");
		missing += number(o, "missing_messages");
		for (unsigned int m = 0; m < METRICS; m++)
			outcome->value[m] += keys[m] ? number(o, keys[m]) / n : 0;
	}
	/* each sink relates the load of the whole machine to its part of the bytes */
	outcome->value[METRIC_CPU] /= n;
	outcome->value[METRIC_GOODPUT] = all;
	outcome->value[METRIC_MISSING] = sent > 0 ? 100 * missing / sent : NAN;
}

static int take_result(int fd, struct outcome *outcome, char *why)
{
	struct json_object *o = NULL, *laps, *sinks = NULL;

	if (lseek(fd, 0, SEEK_SET) == 0)
		o = json_object_from_fd(fd);
	if (!o || !json_object_object_get_ex(o, "repeats", &laps) ||
	    !json_object_object_get_ex(json_object_array_get_idx(laps, 0), "sinks", &sinks) ||
	    !json_object_array_length(sinks)) {
		json_object_put(o);
		return because(why, -1, "the writer printed no result");
	}
	take_sinks(sinks, outcome);
	json_object_put(o);
	return 0;
}

/* --- */

struct processes {
	int pid[2 * WRITERS_MOST];
	unsigned int n;
};

static int add(struct processes *p, int pid)
{
	if (pid < 0)
		return -1;
	p->pid[p->n++] = pid;
	return 0;
}

static int start_all(struct sweep *s, const struct trial *t, int out, struct processes *p,
		     char *why)
{
	for (uint32_t i = 0; i < one(t->sinks); i++) {
		if (add(p, start_sink(s, t, s->port + i, why)))
			return -1;
	}
	for (uint32_t i = 0; i < one(t->writers); i++) {
		if (add(p, start_writer(s, t, i ? -1 : out, why)))
			return -1;
	}
	return 0;
}

static int run_ours(struct sweep *s, const struct trial *t, struct outcome *outcome, char *why)
{
	struct processes p = {};
	FILE *out = tmpfile();
	int result, status = 0;

	if (!out)
		return because(why, -1, "cannot create a temporary file");
	result = start_all(s, t, fileno(out), &p, why);
	/* end writers first: they notice the end of a sink, but a sink may wait for ever */
	while (p.n--) {
		if (result || status)
			command_kill(p.pid[p.n]);
		status |= command_end(p.pid[p.n], s->time + s->warm_up + MARGIN_S, s->stop);
	}
	if (!result && status)
		result = because(why, -1, "a program failed: see above");
	if (!result)
		result = take_result(fileno(out), outcome, why);
	fclose(out);
	s->port += one(t->sinks);
	return result;
}

int trial_run(struct sweep *s, const struct trial *t, struct outcome *outcome, char *why)
{
	for (unsigned int m = 0; m < METRICS; m++)
		outcome->value[m] = NAN;
	return t->peer ? peer_run(s, t, outcome, why) : run_ours(s, t, outcome, why);
}
