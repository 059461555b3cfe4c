// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network sweep: rounds of many settings, compared with other programs. */
#include <argp.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "common/options.h"
#include "bench/settings.h"
#include "common/stop.h"
#include "bench/network/sweep.h"

#define PORT		18600
#define ROUNDS_MOST	1000

struct config {
	struct settings settings;
	struct sweep *sweep;
};

enum {
	OPT_ADDRESS = OPT_OWN, OPT_PORT, OPT_SINK_AT, OPT_WRITER_AT, OPT_SINK_DEVICE,
	OPT_WRITER_DEVICE, OPT_TIME, OPT_WARM_UP, OPT_ONLY,
};

static const struct argp_option options[] = {
	{ "address", OPT_ADDRESS, "ADDRESS", 0, "address of the sink (required)", 0 },
	{ "port", OPT_PORT, "N", 0, "first of many ports that are used (default: 18600)", 0 },
	{ "sink-at", OPT_SINK_AT, "COMMAND", 0,
	  "command that starts programs at the sink: \"ip netns exec b\", \"ssh host\"", 0 },
	{ "writer-at", OPT_WRITER_AT, "COMMAND", 0,
	  "command that starts programs at the writer", 0 },
	{ "sink-device", OPT_SINK_DEVICE, "NAME", 0,
	  "RDMA device of the sink (default: the first one)", 0 },
	{ "writer-device", OPT_WRITER_DEVICE, "NAME", 0,
	  "RDMA device of the writer (default: the first one)", 0 },
	{ "time", OPT_TIME, "SECONDS", 0, "measured time of each trial (default: 2)", 0 },
	{ "warm-up", OPT_WARM_UP, "SECONDS", 0, "time before the measurement (default: 1)", 0 },
	{ "only", OPT_ONLY, "NAME,...", 0,
	  "run only these experiments, as peers,C (default: all)", 0 },
	{ "repeat", 'r', "N", 0, "rounds, 1 to 1000 (default: 3)", 0 },
	OPTION_JSON,
	{}
};

static void split(struct argp_state *state, char *text, struct side *side)
{
	char *next, *word;

	side->words = 0;
	for (word = strtok_r(text, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
		if (side->words == SIDE_WORDS)
			argp_error(state, "\"%s\" has more than %d words", text, SIDE_WORDS);
		side->before[side->words++] = word;
	}
}

static void parse_seconds(struct argp_state *state, const char *what, const char *arg, double *s)
{
	if (!parse_real(arg, s) || *s > 3600 || !(*s > 0))
		argp_error(state, "%s: \"%s\" is not a number of seconds", what, arg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct config *c = state->input;
	struct sweep *s = c->sweep;

	switch (key) {
	case OPT_ADDRESS:
		s->address = arg;
		break;
	case OPT_PORT:
		s->port = option_number(state, "--port", arg, 1024, 60000);
		break;
	case OPT_SINK_AT:
		split(state, arg, &s->sink);
		break;
	case OPT_WRITER_AT:
		split(state, arg, &s->writer);
		break;
	case OPT_SINK_DEVICE:
		s->sink.device = arg;
		break;
	case OPT_WRITER_DEVICE:
		s->writer.device = arg;
		break;
	case OPT_TIME:
		parse_seconds(state, "--time", arg, &s->time);
		break;
	case OPT_WARM_UP:
		parse_seconds(state, "--warm-up", arg, &s->warm_up);
		break;
	case OPT_ONLY:
		s->only = arg;
		break;
	case ARGP_KEY_END:
		if (!s->address)
			argp_error(state, "--address is required: set the address of the sink");
		break;
	default:
		return settings_parse(&c->settings, key, arg, state);
	}
	return 0;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.doc = "Send messages from a writer to a sink with many settings, compared with "
	       "ib_write_bw, UD SEND, UDP sockets and ZeroMQ. Results are medians of rounds that "
	       "alternate all measurements.",
};

/* --- results --- */

struct series {
	struct samples value[METRICS];
	struct outcome round[ROUNDS_MOST];
	unsigned int rounds;		/* rounds that were started */
};

/* Metrics, and the unit of their samples; a sample of goodput is the time of 10^9 bytes. */
static const struct kind {
	const char *name, *json;
	enum unit unit;
	double scale;			/* factor from value to sample */
	bool row;			/* make a row that compares with the peer */
} kinds[METRICS] = {
	[METRIC_GOODPUT] = { "goodput", "goodput_bytes_per_second", UNIT_GBPS, 0, true },
	[METRIC_SINK_CPU] = { "sink's processor time", "sink_cpu_s_per_gb", UNIT_CPU, 1e9, true },
	[METRIC_CPU] = { "machine's processor time", "machine_cpu_s_per_gb", UNIT_CPU, 1e9,
			 true },
	[METRIC_EVENTS] = { "events", "events_per_gb", UNIT_EVENTS, 1, true },
	[METRIC_POLLS] = { "polls", "polls_per_gb", UNIT_EVENTS, 1, false },
	[METRIC_MISSING] = { "missing", "missing_percent", UNIT_EVENTS, 1e6, false },
};

static void keep(struct series *series, unsigned int round, const struct outcome *outcome)
{
	series->round[round] = *outcome;
	series->rounds = round + 1;
	for (unsigned int m = 0; m < METRICS; m++) {
		const double v = outcome->value[m];

		if (v > 0 || (v >= 0 && kinds[m].scale))
			samples_add(&series->value[m],
				    kinds[m].scale ? v * kinds[m].scale : 1e18 / v);
	}
}

static double median_of(struct series *series, enum metric m)
{
	struct samples *s = &series->value[m];
	double v;

	samples_sort(s);
	if (!s->count)
		return NAN;
	v = percentile(s->value, s->count, 50);
	return kinds[m].scale ? v / kinds[m].scale : 1e18 / v;
}

/* Median of the ratios of rounds, as other load changes between rounds. 0: no ratio */
static double median_ratio(const struct series *ours, const struct series *theirs, enum metric m)
{
	struct samples s = {};
	double ratio;

	for (unsigned int i = 0; i < ours->rounds && i < theirs->rounds; i++) {
		ratio = ours->round[i].value[m] / theirs->round[i].value[m];
		if (isfinite(ratio))
			samples_add(&s, ratio * 1e9);
	}
	samples_sort(&s);
	ratio = percentile(s.value, s.count, 50) / 1e9;
	samples_free(&s);
	return ratio;
}

static void add_rows(struct report *report, const struct group *g, struct series *series)
{
	for (unsigned int i = 1; g->trial[i].name; i++) {
		for (unsigned int m = 0; m < METRICS; m++) {
			const struct row row = {
				.name = kinds[m].name, .backend = g->trial[0].name,
				.peer = g->trial[i].name, .size = g->trial[0].plan.size,
				.unit = kinds[m].unit, .accesses = 1000000000,
				.ratio = median_ratio(&series[0], &series[i], m),
			};
			struct samples *ours = &series[0].value[m], *theirs = &series[i].value[m];

			if (kinds[m].row && ours->count && theirs->count &&
			    percentile(theirs->value, theirs->count, 100))
				report_row(report, &row, ours, theirs);
		}
	}
}

static struct json_object *trial_json(const struct group *g, const struct trial *t,
				      struct series *series)
{
	struct json_object *o = json_object_new_object();

	put_text(o, "experiment", g->experiment);
	put_text(o, "name", t->name);
	put_text(o, "transport", t->peer ? "perftest" : way_name(t->plan.way));
	put_text(o, "service", t->plan.service == RASHPA_NET_RC ? "rc" : "uc");
	put_int(o, "size_bytes", t->plan.size);
	put_int(o, "pairs", t->plan.pairs ? t->plan.pairs : 1);
	put_int(o, "linked", t->plan.linked ? t->plan.linked : 1);
	put_bool(o, "solicited", t->plan.solicited);
	put_int(o, "destinations", t->plan.destinations ? t->plan.destinations : 1);
	put_int(o, "threads", t->threads ? t->threads : 1);
	put_int(o, "writers", t->writers ? t->writers : 1);
	put_int(o, "sinks", t->sinks ? t->sinks : 1);
	put_text(o, "pages", t->pages ? t->pages : "thp");
	put_text(o, "wait", t->peer ? "poll" : wait_name(t->wait));
	for (unsigned int m = 0; m < METRICS; m++) {
		const double median = median_of(series, m);
		struct json_object *list = json_object_new_array();
		char key[64];

		if (isnan(median))
			json_object_object_add(o, kinds[m].json, NULL);
		else
			put_real(o, kinds[m].json, median);
		/* sorted; each round */
		for (size_t i = 0; i < series->value[m].count; i++) {
			const double one = series->value[m].value[i];
			const double v = kinds[m].scale ? one / kinds[m].scale : 1e18 / one;

			json_object_array_add(list, json_object_new_double(v));
		}
		snprintf(key, sizeof(key), "%s_rounds", kinds[m].json);
		json_object_object_add(o, key, list);
	}
	return o;
}

/* --- */

static void run_trial(struct sweep *s, const struct group *g, const struct trial *t,
		      unsigned int round, struct series *series)
{
	struct outcome outcome;
	char why[WHY_SIZE], what[128];

	progress_show(&s->report->progress, "%s: %s, %" PRIu32 " bytes, round %u", g->experiment,
		      t->name, t->plan.size, round + 1);
	if (trial_run(s, t, &outcome, why) && going_on()) {
		snprintf(what, sizeof(what), "%s, %" PRIu32 " bytes, a round", t->name,
			 t->plan.size);
		report_leave_out(s->report, what, "%s", why);
	}
	keep(series, round, &outcome);
}

static void run_group(struct sweep *s, const struct group *g, struct json_object *trials)
{
	struct series *series;
	size_t n = 0;

	while (g->trial[n].name)
		n++;
	series = calloc(n, sizeof(*series));
	if (!series) {
		report_leave_out(s->report, g->experiment, "no memory");
		return;
	}
	for (unsigned int round = 0; round < s->report->repeat && going_on(); round++) {
		for (size_t i = 0; i < n && going_on(); i++) {
			const size_t k = turn(round, i, n);

			run_trial(s, g, &g->trial[k], round, &series[k]);
		}
	}
	add_rows(s->report, g, series);
	for (size_t i = 0; i < n; i++) {
		json_object_array_add(trials, trial_json(g, &g->trial[i], &series[i]));
		for (unsigned int m = 0; m < METRICS; m++)
			samples_free(&series[i].value[m]);
	}
	free(series);
}

/* Does --only select this group? */
static bool wanted(const struct sweep *s, const struct group *g)
{
	char list[256], *next, *word;

	if (!s->only)
		return true;
	snprintf(list, sizeof(list), "%s", s->only);
	for (word = strtok_r(list, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		if (strstr(g->experiment, word))
			return true;
	}
	return false;
}

static int result(const struct config *c, struct json_object *trials)
{
	const struct report *report = c->settings.report;
	bool bad = false;

	if (settings_text(&c->settings))
		report_print(report);
	if (c->settings.json) {
		struct json_object *o = report_json_head(report, "network");

		report_json_rows(report, o);
		json_object_object_add(o, "trials", json_object_get(trials));
		report_json_left_out(report, o);
		bad |= json_finish(o);
	}
	return measured(json_object_array_length(trials), bad);
}

int cmd_network_sweep(int argc, char **argv)
{
	struct report report = { .repeat = 3, .iommu = -1 };
	struct sweep s = { .report = &report, .port = PORT, .time = 2, .warm_up = 1 };
	struct config c = { .settings.report = &report, .sweep = &s };
	struct json_object *trials;
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &c);
	/* on another machine, start the program by its name */
	if (readlink("/proc/self/exe", s.program, sizeof(s.program) - 1) < 0 ||
	    (s.sink.words && !strcmp(s.sink.before[0], "ssh")) ||
	    (s.writer.words && !strcmp(s.writer.before[0], "ssh")))
		snprintf(s.program, sizeof(s.program), "rashpa-bench");
	catch_signals();
	s.stop = stop_on_signals();
	progress_init(&report.progress, true);
	trials = json_object_new_array();
	for (unsigned int i = 0; i < n_experiments && going_on(); i++) {
		if (wanted(&s, &experiments[i]))
			run_group(&s, &experiments[i], trials);
	}
	progress_end(&report.progress);
	status = result(&c, trials);
	json_object_put(trials);
	report_free(&report);
	return status;
}
