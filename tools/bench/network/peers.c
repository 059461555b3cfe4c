// SPDX-License-Identifier: LGPL-2.1-or-later
/* The same measurement with ib_write_bw and ib_send_bw of perftest; both ends poll all the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/network/sweep.h"

#define TRIES		20		/* attempts, as a client does not wait for its server */
#define MARGIN_S	30

/* Full seconds that perftest runs before and after the measured time. */
static int margin(const struct sweep *s)
{
	return s->warm_up > 1 ? ceil(s->warm_up) : 1;
}

static int duration(const struct sweep *s)
{
	return ceil(s->time) + 2 * margin(s);
}

static void arguments(struct command *c, const struct sweep *s, const struct side *side,
		      const struct trial *t, const char *json)
{
	const struct plan *p = &t->plan;
	const char *program = t->peer == PEER_WRITE_BW ? "ib_write_bw" : "ib_send_bw";

	command_begin(c, side, program);
	if (side->device)
		command_add(c, "--ib-dev=%s", side->device);
	if (t->peer == PEER_WRITE_BW) {
		command_add(c, "--write_with_imm");
		command_add(c, "--connection=%s", p->service == RASHPA_NET_RC ? "RC" : "UC");
	} else {
		command_add(c, "--connection=UD");
	}
	command_add(c, "--size=%u", p->size);
	command_add(c, "--qp=%u", p->pairs ? p->pairs : 1);
	if (p->linked > 1)
		command_add(c, "--post_list=%u", p->linked);
	command_add(c, "--tx-depth=%u", t->depth ? t->depth : 128);
	command_add(c, "--duration=%d", duration(s));
	command_add(c, "--margin=%d", margin(s));
	command_add(c, "--CPU-freq");
	command_add(c, "--report_gbits");
	command_add(c, "--port=%u", s->port);
	command_add(c, "--out_json");
	command_add(c, "--out_json_file=%s", json);
}

static double number(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_double(value) : 0;
}

/* Take the result of the server. Its message rate has more digits than its bandwidth. */
static int take_result(const struct sweep *s, const struct trial *t, const char *file,
		       struct outcome *outcome, char *why)
{
	struct json_object *o = json_object_from_file(file), *results = NULL;
	double rate;

	json_object_object_get_ex(o, "results", &results);
	rate = number(results, "MsgRate") * 1e6;
	/* UD servers report the number of messages only, without a rate */
	if (!(rate > 0))
		rate = number(results, "n_iterations") / (duration(s) - 2 * margin(s));
	json_object_put(o);
	if (!(rate > 0))
		return because(why, -1, "no message arrived: perftest ends if it loses a packet of a longer message");
	outcome->value[METRIC_GOODPUT] = rate * t->plan.size;
	return 0;
}

static int run_client(const struct sweep *s, const struct trial *t, char *why)
{
	const struct timespec pause = { .tv_nsec = 200000000 };
	int pid, status = EXIT_FAILED;
	struct command c;

	arguments(&c, s, &s->writer, t, "/dev/null");
	command_add(&c, "%s", s->address);
	for (unsigned int i = 0; i < TRIES && status && !*s->stop; i++) {
		nanosleep(&pause, NULL);
		/* hide errors while the server may not listen yet, until the last attempt */
		c.quiet = i + 1 < TRIES;
		pid = command_start(&c, -1, why);
		if (pid < 0)
			return -1;
		status = command_end(pid, duration(s) + MARGIN_S, s->stop);
	}
	return status ? because(why, -1, "its client failed: see above") : 0;
}

int peer_run(struct sweep *s, const struct trial *t, struct outcome *outcome, char *why)
{
	char file[] = "/tmp/rashpa-bench.XXXXXX";
	int fd = mkstemp(file), pid, result;
	struct command c;

	if (fd < 0)
		return because(why, -1, "cannot create a temporary file");
	close(fd);
	arguments(&c, s, &s->sink, t, file);
	pid = command_start(&c, -1, why);
	result = pid < 0 ? -1 : run_client(s, t, why);
	if (result && pid >= 0)
		command_kill(pid);
	if (pid >= 0 && command_end(pid, MARGIN_S, s->stop) && !result)
		result = because(why, -1, "its server failed: see above");
	if (!result)
		result = take_result(s, t, file, outcome, why);
	unlink(file);
	s->port++;
	return result;
}
