// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpactl top: the streams of this machine, live */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rashpactl/follower.h"
#include "common/fpga.h"
#include "common/json-out.h"
#include "rashpactl/metrics.h"
#include "common/options.h"
#include "rashpactl/parts.h"
#include "rashpactl/rashpactl.h"
#include "screen/screen.h"
#include "common/stop.h"

#define WANTED_MAX	64

struct top {
	double interval, timeout;	/* seconds; timeout 0: none */
	uint64_t count;			/* refreshes, 0: for ever */
	bool prometheus, quit;
	const char *file;		/* for Prometheus; NULL: standard output */
	volatile bool *stop;
	const char *wanted[WANTED_MAX];	/* none: all buffers */
	unsigned int n_wanted;
	struct follower *follower;
	struct pollfd *pollfd;		/* more than followers: keys */
	unsigned int followers, room;
	struct rings rings;
};

#define OPT_PROMETHEUS	512

static const struct argp_option options[] = {
	{ "interval", 'i', "SECONDS", 0, "time between refreshes (default: 1)", 0 },
	{ "count", 'c', "N", 0, "end after N refreshes", 0 },
	{ "timeout", 't', "SECONDS", 0,
	  "wait SECONDS for a running stream, then end with status 3", 0 },
	{ "prometheus", OPT_PROMETHEUS, "FILE", OPTION_ARG_OPTIONAL,
	  "write metrics for Prometheus to FILE at each refresh (default: standard output)", 0 },
	OPTION_JSON,
	{}
};

static const struct option_value values[] = {
	{ 'i', VALUE_REAL, "--interval", offsetof(struct top, interval), 0.01, 3600 },
	{ 'c', VALUE_U64, "--count", offsetof(struct top, count), 0, UINT64_MAX },
	{ 't', VALUE_REAL, "--timeout", offsetof(struct top, timeout), 0, 1e6 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct top *t = state->input;

	switch (key) {
	case OPT_PROMETHEUS:
		t->prometheus = true;
		t->file = arg && strcmp(arg, "-") ? arg : NULL;
		break;
	case ARGP_KEY_END:
		if (command_json && t->prometheus)
			argp_error(state, "--json and --prometheus exclude each other: give one of them");
		break;
	case ARGP_KEY_ARG:
		if (t->n_wanted == WANTED_MAX)
			argp_error(state, "more than %d buffers", WANTED_MAX);
		t->wanted[t->n_wanted++] = arg;
		break;
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

/* --- which --- */

static struct follower *find(struct top *t, const char *name)
{
	for (unsigned int i = 0; i < t->followers; i++) {
		if (!strcmp(t->follower[i].name, name))
			return &t->follower[i];
	}
	return NULL;
}

static bool make_room(struct top *t)
{
	unsigned int room = t->room ? 2 * t->room : 64;
	struct follower *follower = reallocarray(t->follower, room, sizeof(*follower));
	struct pollfd *pollfd = NULL;

	if (follower) {
		t->follower = follower;
		pollfd = reallocarray(t->pollfd, room + 1, sizeof(*pollfd));
	}
	if (!pollfd)
		return false;
	t->pollfd = pollfd;
	t->room = room;
	return true;
}

static int add(struct top *t, const char *name)
{
	if (find(t, name))
		return 0;
	if (t->followers == t->room && !make_room(t))
		return fail("no memory to follow more than %u buffers", t->followers);
	follower_init(&t->follower[t->followers++], name);
	return 0;
}

static bool listed(const char *name, char **names, int n)
{
	for (int i = 0; i < n; i++) {
		if (!strcmp(names[i], name))
			return true;
	}
	return false;
}

/* Follow new buffers, forget removed ones; named buffers stay. */
static int update_list(struct top *t)
{
	int n, error = 0;
	char **names;

	/* one more for keys, even without a buffer */
	if (!t->room && !make_room(t))
		return fail("no memory to follow buffers");
	for (unsigned int i = 0; !error && i < t->n_wanted; i++)
		error = add(t, t->wanted[i]);
	if (t->n_wanted)
		return error;
	n = rashpa_buffer_list(&names);
	if (n < 0)
		return fail("%s", rashpa_reason());
	for (int i = 0; !error && i < n; i++)
		error = add(t, names[i]);
	for (unsigned int i = 0; i < t->followers; i++) {
		if (listed(t->follower[i].name, names, n))
			continue;
		follower_close(&t->follower[i]);
		t->follower[i--] = t->follower[--t->followers];
	}
	rashpa_buffer_list_free(names, n);
	return error;
}

static int look(struct top *t)
{
	int error = update_list(t);

	for (unsigned int i = 0; !error && i < t->followers; i++)
		follower_look(&t->follower[i]);
	return error;
}

/* With names of buffers, boards are of no interest. */
static void look_at_rings(struct top *t)
{
	if (!t->n_wanted)
		rings_look(&t->rings);
}

/* --- one interval --- */

static void take_ready(struct top *t, int n)
{
	for (unsigned int i = 0; i < t->followers; i++) {
		for (int j = 0; j < n; j++) {
			if (t->pollfd[j].revents && t->pollfd[j].fd == t->follower[i].channel)
				follower_take(&t->follower[i], true);
		}
	}
}

static void print_text(const struct top *t);

/* Handle pressed keys; a closed terminal also ends the program. */
static void take_keys(struct top *t, const struct pollfd *keys)
{
	enum screen_key key;

	t->quit |= keys->revents & ~POLLIN;
	while ((key = screen_key()) != SCREEN_NO_KEY) {
		t->quit |= key == SCREEN_QUIT;
		print_text(t);
	}
}

/*
 * Time some records; sleep for the rest of the interval, even if more records come. An HTTP
 * request ends it.
 */
static void listen_until(struct top *t, uint64_t end)
{
	int n;

	for (unsigned int i = 0; i < t->followers; i++)
		follower_begin(&t->follower[i]);
	while (!*t->stop && !t->quit && now_ns() < end) {
		n = 0;
		for (unsigned int i = 0; i < t->followers; i++) {
			if (follower_wants(&t->follower[i]))
				t->pollfd[n++] = (struct pollfd) {
					.fd = t->follower[i].channel, .events = POLLIN,
				};
		}
		t->pollfd[n].fd = screen_fd();
		t->pollfd[n].events = POLLIN;
		if (stop_poll(t->pollfd, n + 1, end) < 0)
			continue;
		take_ready(t, n);
		if (t->pollfd[n].revents)
			take_keys(t, &t->pollfd[n]);
	}
}

/* --- print --- */

/* A path may be long. */
static int name_width(const struct top *t)
{
	size_t width = 16;

	for (unsigned int i = 0; i < t->followers; i++)
		width = strlen(t->follower[i].name) > width ? strlen(t->follower[i].name) : width;
	return width;
}

static void print_row(struct follower *f, int width)
{
	const struct rashpa_stream_header *s = &f->about;
	struct samples *l = &f->latency;
	char lag[24], p50[24] = "-", p99[24] = "-", fpga[16];

	snprintf(fpga, sizeof(fpga), f->process.function ? "fpga%" PRIu32 : "-", f->process.fpga);
	if (!f->stream) {
		screen_line(SCREEN_BAD, "%-*s %-7s %-8s", width, f->name, fpga, f->state);
		return;
	}
	samples_sort(l);
	if (l->count) {
		snprintf(p50, sizeof(p50), "%.1f", percentile(l->value, l->count, 50) / 1e3);
		snprintf(p99, sizeof(p99), "%.1f", percentile(l->value, l->count, 99) / 1e3);
	}
	snprintf(lag, sizeof(lag), "%" PRIu64 "/%" PRIu32,
		 f->stacks > f->consumed ? f->stacks - f->consumed : 0, s->slots);
	screen_line(f->lost ? SCREEN_BAD : SCREEN_PLAIN,
		    "%-*s %-7s %-8s %10.1f %8.3f %10" PRIu64 " %9s %5" PRIu64 " %8" PRIu64
		    " %8s %8s", width, f->name, fpga, f->state, f->images_per_second,
		    f->bytes_per_second / 1e9, f->stacks, lag, f->most - f->stacks, f->lost, p50,
		    p99);
}

static const char *place_state(const struct rashpa_place_info *p)
{
	if (p->state == RASHPA_PLACE_GIVEN_UP)
		return "given up";
	if (p->state == RASHPA_PLACE_LEFT)
		return "left";
	if (!p->workers)
		return p->left_ns ? "kept" : "dead";
	return p->loses ? "may lose" : "paces";
}

static void print_place(const struct follower *f, const struct rashpa_place_info *p)
{
	char workers[24], lag[24];

	snprintf(workers, sizeof(workers), "%" PRIu32 "/%" PRIu32, p->workers, p->workers_max);
	snprintf(lag, sizeof(lag), "%" PRIu64 "/%" PRIu32, p->behind, f->about.slots);
	screen_line(p->workers && !p->lost ? SCREEN_PLAIN : SCREEN_BAD,
		    "  %-22s %-8s lag %-9s held %-5" PRIu64 " lost %-8" PRIu64
		    " workers %-5s process %" PRId32, p->name, place_state(p), lag, p->held, p->lost,
		    workers, p->process);
}

/* Earlier numbers of a stage. Stages are added with their first work, and never removed. */
static const struct rashpa_stream_stage *stage_before(const struct follower *f,
						      const struct rashpa_stream_stage *s)
{
	static const struct rashpa_stream_stage none;

	for (uint32_t i = 0; i < f->before.stages; i++) {
		const struct rashpa_stream_stage *b = &f->before.stage[i];

		if (b->kind == s->kind && !strcmp(b->name, s->name) && b->images <= s->images &&
		    b->ns <= s->ns && b->bytes_in <= s->bytes_in)
			return b;
	}
	return &none;
}

/* Numbers of the images since the last check, or of all before the first check. */
static void print_stage(const struct follower *f, const struct rashpa_stream_stage *s)
{
	const struct rashpa_stream_stage *b = stage_before(f, s);
	const double ns = s->ns - b->ns, images = s->images - b->images;
	char each[24] = "-", rate[24] = "-", share[24] = "-";

	if (images > 0)
		snprintf(each, sizeof(each), "%.3f", ns / images / 1e6);
	if (ns > 0)
		snprintf(rate, sizeof(rate), "%.3f", (s->bytes_in - b->bytes_in) / ns);
	if (f->before.time_ns && f->work.time_ns > f->before.time_ns)
		snprintf(share, sizeof(share), "%.0f",
			 100 * ns / (f->work.time_ns - f->before.time_ns));
	screen_line(s->lost ? SCREEN_BAD : SCREEN_PLAIN,
		    "    %-16s %10" PRIu64 " images %9s ms each %7s GB/s in %5s %% of the time, %"
		    PRIu64 " lost", s->name, s->images, each, rate, share, s->lost);
}

static void print_work(const struct follower *f)
{
	const struct rashpa_stream_work *w = &f->work;
	char kept[24] = "-";

	if (!w->stages)
		return;
	if (w->images)
		snprintf(kept, sizeof(kept), "%.1f", 100.0 * (w->images - w->vetoed) / w->images);
	screen_line(w->lost || w->late ? SCREEN_BAD : SCREEN_PLAIN,
		    "  %s: %" PRIu64 " images, %s %% kept, %" PRIu64 " dark, %" PRIu64
		    " lost, %" PRIu64 " late; queue %" PRIu32 " of %" PRIu32 ", full %" PRIu64
		    " times", w->engine, w->images, kept, w->dark, w->lost, w->late, w->queue_fill,
		    w->queue, w->queue_full);
	for (uint32_t i = 0; i < w->stages; i++)
		print_stage(f, &w->stage[i]);
}

static const char *ring_state(const struct ring_seen *s)
{
	if (s->gone)
		return "gone";
	if (s->faulted)
		return "faulted";
	if (s->waiting)
		return "full";
	return s->running ? "running" : "stopped";
}

static void print_ring(const struct ring_seen *s)
{
	const bool bad = s->gone || s->faulted || s->late || s->lost || s->errors;

	screen_line(bad ? SCREEN_BAD : SCREEN_PLAIN,
		    "fpga%u ring %-3u    %-8s %10.1f events/s %10" PRIu64 " events; held %" PRIu64
		    ", late %" PRIu64 ", lost %" PRIu64 ", errors %" PRIu64, s->fpga, s->ring,
		    ring_state(s), s->events_per_second, s->events, s->held, s->late, s->lost,
		    s->errors);
}

static void print_text(const struct top *t)
{
	char clock[32];
	time_t now = time(NULL);
	const int width = name_width(t);
	bool any = false;

	screen_picture(2);
	strftime(clock, sizeof(clock), "%T", localtime(&now));
	screen_line(SCREEN_PLAIN, "%s, %g s%s", clock, t->interval,
		    screen_fd() < 0 ? "" : "; q ends, arrows scroll");
	screen_line(SCREEN_TITLE, "%-*s %-7s %-8s %10s %8s %10s %9s %5s %8s %8s %8s", width,
		    "BUFFER", "FPGA", "STATE", "IMAGES/S", "GB/S", "STACKS", "LAG", "SKEW", "LOST",
		    "P50 us", "P99 us");
	for (unsigned int i = 0; i < t->followers; i++) {
		if (!*t->follower[i].state)
			continue;
		print_row(&t->follower[i], width);
		if (t->follower[i].stream) {
			for (uint32_t k = 0; k < t->follower[i].places; k++)
				print_place(&t->follower[i], &t->follower[i].place[k]);
			print_work(&t->follower[i]);
		}
		any = true;
	}
	if (!any)
		screen_line(SCREEN_PLAIN, "there is no stream: start a producer (remu)");
	for (unsigned int i = 0; i < t->followers; i++) {
		if (*t->follower[i].why)
			screen_line(SCREEN_PLAIN, "%s: %s", t->follower[i].name,
				    t->follower[i].why);
	}
	for (unsigned int i = 0; i < t->rings.n; i++)
		print_ring(&t->rings.seen[i]);
	screen_show();
}

static struct json_object *latency_json(struct samples *l)
{
	static const struct {
		const char *name;
		double p;
	} wanted[] = { { "p50", 50 }, { "p99", 99 }, { "max", 100 } };
	struct json_object *o = json_object_new_object();

	samples_sort(l);
	put_u64(o, "samples", l->count);
	for (unsigned int i = 0; i < 3; i++) {
		if (l->count)
			put_u64(o, wanted[i].name, percentile(l->value, l->count, wanted[i].p));
		else
			put_text(o, wanted[i].name, NULL);
	}
	return o;
}

static struct json_object *stages_json(const struct rashpa_stream_work *w, uint32_t kind)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < w->stages; i++) {
		const struct rashpa_stream_stage *s = &w->stage[i];
		struct json_object *o;

		if (s->kind != kind)
			continue;
		o = json_object_new_object();
		put_text(o, "name", s->name);
		put_u64(o, "images", s->images);
		put_u64(o, "lost", s->lost);
		put_real(o, "seconds", s->ns / 1e9);
		put_u64(o, "bytes_in", s->bytes_in);
		put_u64(o, "bytes_out", s->bytes_out);
		json_object_array_add(array, o);
	}
	return array;
}

/* Keys as in romulu --json; counts since the consumer began, so a reader must subtract. */
static struct json_object *work_json(const struct rashpa_stream_work *w)
{
	struct json_object *o, *queue;

	if (!w->stages)
		return NULL;
	o = json_object_new_object();
	queue = json_object_new_object();
	put_u64(o, "time_ns", w->time_ns);
	put_text(o, "engine", w->engine);
	put_u64(o, "images", w->images);
	put_u64(o, "dark", w->dark);
	put_u64(o, "vetoed", w->vetoed);
	put_u64(o, "overflow", w->overflow);
	put_u64(o, "lost", w->lost);
	put_u64(o, "late", w->late);
	put_u64(queue, "stacks", w->queue);
	put_u64(queue, "fill", w->queue_fill);
	put_u64(queue, "most", w->queue_most);
	put_u64(queue, "full", w->queue_full);
	json_object_object_add(o, "queue", queue);
	json_object_object_add(o, "stages", stages_json(w, RASHPA_STAGE_PROCESS));
	json_object_object_add(o, "sinks", stages_json(w, RASHPA_STAGE_SINK));
	return o;
}

static struct json_object *places_json(const struct follower *f)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t i = 0; i < f->places; i++) {
		const struct rashpa_place_info *p = &f->place[i];
		struct json_object *o = json_object_new_object();

		put_text(o, "name", p->name);
		put_text(o, "state", place_state(p));
		put_int(o, "pid", p->process);
		put_int(o, "workers", p->workers);
		put_u64(o, "consumed", p->consumed);
		put_u64(o, "lag_stacks", p->behind);
		put_u64(o, "held_stacks", p->held);
		put_u64(o, "lost_images", p->lost);
		put_int(o, "given_up", p->given_up);
		json_object_array_add(array, o);
	}
	return array;
}

static struct json_object *row_json(struct follower *f)
{
	static const char * const contents[] = { "image", "profile", "peaks" };
	const struct rashpa_stream_header *s = &f->about;
	struct json_object *o = json_object_new_object();

	put_text(o, "buffer", f->name);
	put_text(o, "state", f->state);
	put_text(o, "why", *f->why ? f->why : NULL);
	if (f->process.function) {
		put_int(o, "fpga", f->process.fpga);
		put_int(o, "vector", f->process.vector);
	} else {
		put_text(o, "fpga", NULL);	/* a program fills the slots */
		put_text(o, "vector", NULL);
	}
	put_bool(o, "paced", s->policy != RASHPA_STREAM_OVERWRITE);
	put_int(o, "dtps", s->processes);
	put_int(o, "bunch", s->bunch);
	put_int(o, "slots", s->slots);
	if (!f->stream)
		return o;
	put_text(o, "content", s->content < 3 ? contents[s->content] : NULL);
	put_real(o, "seconds", f->time);
	put_real(o, "images_per_second", f->images_per_second);
	put_real(o, "bytes_per_second", f->bytes_per_second);
	put_u64(o, "stacks", f->stacks);
	put_u64(o, "consumed", f->consumed);
	put_u64(o, "lag_stacks", f->stacks > f->consumed ? f->stacks - f->consumed : 0);
	put_u64(o, "skew_stacks", f->most - f->stacks);
	put_u64(o, "lost", f->lost);
	put_u64(o, "events", f->events);
	json_object_object_add(o, "latency_ns", latency_json(&f->latency));
	json_object_object_add(o, "places", places_json(f));
	json_object_object_add(o, "processing", work_json(&f->work));
	return o;
}

static struct json_object *all_json(const struct top *t)
{
	struct json_object *o = json_object_new_object(), *streams = json_object_new_array();
	struct json_object *skipped = json_object_new_array(), *one;

	for (unsigned int i = 0; i < t->followers; i++) {
		struct follower *f = &t->follower[i];

		if (*f->state) {
			json_object_array_add(streams, row_json(f));
		} else if (*f->why) {
			one = json_object_new_object();
			put_text(one, "buffer", f->name);
			put_text(one, "why", f->why);
			json_object_array_add(skipped, one);
		}
	}
	put_u64(o, "time_ns", now_ns());
	json_object_object_add(o, "streams", streams);
	json_object_object_add(o, "skipped", skipped);
	json_object_object_add(o, "rings", rings_json(&t->rings));
	return o;
}

/* --- all of it --- */

static int print(const struct top *t)
{
	const struct metrics metrics = {
		.follower = t->follower, .followers = t->followers, .rings = &t->rings,
		.resources = !t->n_wanted,
	};

	if (t->prometheus)
		return metrics_write(&metrics, t->file) ? EXIT_FAILED : 0;
	if (command_json)
		return json_line(all_json(t));
	print_text(t);
	return flush_output();
}

static bool one_runs(const struct top *t)
{
	for (unsigned int i = 0; i < t->followers; i++) {
		if (t->follower[i].stream)
			return true;
	}
	return false;
}

static int await_stream(struct top *t)
{
	uint64_t end = now_ns() + t->timeout * 1e9;
	int error = look(t);

	while (!error && !*t->stop && t->timeout > 0 && !one_runs(t)) {
		if (now_ns() > end) {
			say("no stream began within %g s: start a producer (remu)", t->timeout);
			return EXIT_TIMEOUT;
		}
		poll(NULL, 0, 20);
		error = look(t);
	}
	return error;
}

static int run(struct top *t)
{
	uint64_t next, n = 0;
	int result = await_stream(t);

	for (unsigned int i = 0; !result && i < t->n_wanted; i++) {
		if (t->follower[i].missing)
			return fail("%s", t->follower[i].why);
	}
	if (!result && !command_json && !t->prometheus && t->count != 1)
		screen_begin();
	look_at_rings(t);
	next = now_ns();
	while (!result && !*t->stop && (!t->count || n++ < t->count)) {
		next += t->interval * 1e9;
		listen_until(t, next);
		if (*t->stop || t->quit)
			break;
		result = look(t);
		if (result) {
			/* the screen hid the message: once more */
			screen_end();
			result = look(t);
		}
		if (result)
			break;
		look_at_rings(t);
		result = print(t);
	}
	/* no metrics after the last measurement */
	if (t->prometheus && t->file && !t->count)
		unlink(t->file);
	return result;
}

static void top_end(struct top *t)
{
	while (t->followers)
		follower_close(&t->follower[--t->followers]);
	free(t->follower);
	free(t->pollfd);
	rings_free(&t->rings);
}

struct json_object *top_json(double interval)
{
	struct top t = { .interval = interval, .stop = stop_on_signals() };
	struct json_object *o = NULL;

	fpga_catch_removal();
	if (!look(&t)) {
		look_at_rings(&t);
		listen_until(&t, now_ns() + interval * 1e9);
		if (!look(&t)) {
			look_at_rings(&t);
			o = all_json(&t);
		}
	}
	top_end(&t);
	return o;
}

int cmd_top(int argc, char **argv)
{
	static const struct argp argp = { .options = options, .parser = parse };
	struct top t = { .interval = 1 };
	int result;

	command_parse(&argp, argc, argv, &t);
	t.stop = stop_on_signals();
	fpga_catch_removal();
	result = run(&t);
	screen_end();
	top_end(&t);
	return result;
}
