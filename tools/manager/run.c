// SPDX-License-Identifier: LGPL-2.1-or-later
/* A run: configure, arm and start in the order that flows need; then watch over it to its end. */
#include "manager/manager.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SETTLE_NS	20000000000ull	/* for receivers to end after their detectors */
#define STOP_NS		40000000000ull	/* for a party to stop */
#define PATIENCE_NS	5000000000ull	/* for a party to answer an earlier request */
#define TURN_NS		200000000ull

enum whom { DETECTORS = 1, RECEIVERS = 2, ALL = 3 };

static bool is(const struct party *p, const char *state)
{
	return !strcmp(p->state, state);
}

static bool among(const struct party *p, enum whom whom)
{
	return whom & (p->detector ? DETECTORS : RECEIVERS);
}

/* --- what daemons say --- */

static volatile sig_atomic_t held;	/* a pause that a person wants */

void run_hold(int number)
{
	held = number == SIGUSR1;
}

/* A request was refused. Do not ask for a pause again: a live source cannot pause. */
static void hear_refusal(struct party *p)
{
	if (p->asked || !*p->error || !p->wire)
		return;
	if (!strcmp(p->asking, "pause")) {
		say("%s: %s; %s", p->name, p->error,
		    held ? "the run goes on" : "images are lost, and counted");
		if (!held)
			p->experiment->overrun = OVERRUN_DROP;
		held = false;
	} else if (!p->ended) {
		say("%s: %s: %s", p->name, p->asking, p->error);
	}
	*p->error = 0;
}

static void pause_or_resume(struct party *p)
{
	const bool full = p->full_receivers && p->experiment->overrun == OVERRUN_PAUSE;
	const bool wanted = held || full;

	if (!p->detector || !p->wire || p->asked || p->ended)
		return;
	if (wanted && is(p, "running"))
		ask_simply(p, "pause");
	else if (!wanted && is(p, "paused"))
		ask_simply(p, "resume");
}

static void copy_rule(struct rule *r)
{
	xmlNode *content;
	xmlDoc *doc = telegram_to(r->at, element_name(r->act), &content);
	char text[64];

	if (!strcmp(element_name(r->act), "set-rate")) {
		element_set(content, element_text(r->act, text, sizeof(text)));
	} else {
		attributes_copy(content, r->act);
		xmlUnsetProp(content, (const xmlChar *)"at");
	}
	ask(r->at, doc);
}

static bool stop_wanted(struct experiment *e)
{
	bool wanted = false;

	for (unsigned int i = 0; i < e->rules; i++) {
		struct rule *r = &e->rule[i];

		if (r->fired || r->of->counts.value[r->count] < r->at_least ||
		    !(r->of->counts.known & 1u << r->count))
			continue;
		if (r->at && (r->at->asked || !r->at->wire || r->at->ended)) {
			r->fired = r->at->ended || !r->at->wire;
			continue;	/* when it has answered */
		}
		r->fired = true;
		say("%s has %" PRIu64 " %s: %s%s%s", r->of->name, r->of->counts.value[r->count],
		    count_name(r->count), element_name(r->act), r->at ? " " : "",
		    r->at ? r->at->name : "");
		if (r->at)
			copy_rule(r);
		else
			wanted = true;
	}
	return wanted;
}

/* --- the phases --- */

/* Ask all of them at once, and wait for the answers. */
static int phase(struct experiment *e, const struct options *o, enum whom whom, const char *what,
		 const volatile bool *stop)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (!among(p, whom) || !p->wire)
			continue;
		if (!strcmp(what, "configure"))
			ask(p, configuration(p));
		else
			ask_simply(p, what);
	}
	return parties_settle(e, o, stop);
}

static int begin(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	static const struct {
		enum whom whom;
		const char *what;
	} phases[] = {
		{ ALL, "configure" },
		{ RECEIVERS, "arm" },		/* they listen */
		{ DETECTORS, "arm" },		/* and detectors agree with them */
		{ RECEIVERS, "start" },
		{ DETECTORS, "start" },
	};
	struct timespec now;
	int result = 0;

	/* remains of an earlier run */
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		xmlFreeDoc(p->ended);
		p->ended = NULL;
		p->failed = false;
		p->counts = (struct counts) {};
		p->links = 0;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	e->run = now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
	for (unsigned int i = 0; i < sizeof(phases) / sizeof(phases[0]) && !result && !*stop; i++)
		result = phase(e, o, phases[i].whom, phases[i].what, stop);
	return result;
}

/* Take over the run of another manager: all parties must be in the same run. */
static int take_over(struct experiment *e)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];
		const xmlNode *c = p->capabilities ? telegram_content(p->capabilities) : NULL;
		uint64_t number;

		if (!c || !attribute_is(c, "experiment", e->name) ||
		    !attribute_number(c, "run", &number))
			return fail("%s: no run of experiment %s is there to take over", p->name,
				    e->name);
		if (e->run && number != e->run)
			return fail("%s: it is in run %" PRIu64 ", and %s in run %" PRIu64,
				    p->name, number, e->party[0].name, e->run);
		e->run = number;
		if (is(p, "configured") || is(p, "armed") || is(p, "configuring") ||
		    is(p, "arming"))
			return fail("%s: the run has not begun, and cannot be taken over: it is given up; start a new run",
				    p->name);
		p->failed |= p->ended && attribute_is(telegram_content(p->ended), "outcome",
						      "failed");
	}
	say("took over run %" PRIu64 " of %s", e->run, e->name);
	return 0;
}

/* --- watching --- */

static bool over(const struct experiment *e, enum whom whom)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		const struct party *p = &e->party[i];

		if (among(p, whom) && p->wire && !p->ended)
			return false;
	}
	return true;
}

static bool bad(const struct party *p)
{
	const xmlNode *ended = p->ended ? telegram_content(p->ended) : NULL;

	return p->failed || (ended && !attribute_is(ended, "outcome", "done") &&
			     !attribute_is(ended, "outcome", "data") &&
			     !attribute_is(ended, "outcome", "stopped"));
}

/* A party between two states may get there first; one that hangs there is stopped anyway. */
static void tell_to_stop(struct experiment *e, enum whom whom)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (!among(p, whom) || !p->wire || p->ended || p->stopped ||
		    (p->asked && now_ns() - p->asked_ns < PATIENCE_NS))
			continue;
		p->stopped = true;
		ask_simply(p, "stop");
	}
}

static void show(struct experiment *e, struct progress *progress)
{
	uint64_t sent = 0, received = 0, lost = 0;

	for (unsigned int i = 0; i < e->parties; i++) {
		const struct party *p = &e->party[i];

		if (p->detector) {
			sent += p->counts.value[COUNT_IMAGES];
		} else {
			received += p->counts.value[COUNT_IMAGES];
			lost += p->counts.value[COUNT_LOST];
		}
	}
	progress_show(progress, "%" PRIu64 " images sent, %" PRIu64 " received, %" PRIu64 " lost",
		      sent, received, lost);
}

/* The reason to end the run early, as a sentence, or NULL. */
static const char *reason_to_stop(struct experiment *e, const volatile bool *stop)
{
	if (*stop)
		return "interrupted";
	if (stop_wanted(e))
		return "a rule";
	for (unsigned int i = 0; i < e->parties; i++) {
		if (e->party[i].said)
			return "images were lost";
		if (bad(&e->party[i]) && !e->degrade)
			return e->party[i].name;
	}
	return NULL;
}

/* A number that grows as long as receivers make progress. */
static uint64_t work_done(const struct experiment *e)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < e->parties; i++) {
		const struct party *p = &e->party[i];
		const uint64_t *v = p->counts.value;

		if (!p->detector)
			sum += v[COUNT_IMAGES] + v[COUNT_PROCESSED] + v[COUNT_LOST] + !!p->ended;
	}
	return sum;
}

static int lead(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	const volatile bool never = false;
	uint64_t settle = 0, end = UINT64_MAX, work = UINT64_MAX;
	struct progress progress;
	bool stopping = false;

	progress_init(&progress, o->progress);
	while (!over(e, ALL) && now_ns() < end) {
		parties_turn(e, now_ns() + TURN_NS, -1, stopping ? &never : stop);
		for (unsigned int i = 0; i < e->parties; i++) {
			hear_refusal(&e->party[i]);
			pause_or_resume(&e->party[i]);
		}
		show(e, &progress);
		if (!stopping && reason_to_stop(e, stop)) {
			stopping = true;
			e->stopping = true;
			end = now_ns() + STOP_NS;
		}
		if (stopping)
			tell_to_stop(e, DETECTORS);
		if (!over(e, DETECTORS))
			continue;
		/* extend the time as long as receivers still take data */
		if (work_done(e) != work) {
			work = work_done(e);
			settle = now_ns() + (stopping ? SETTLE_NS / 4 : SETTLE_NS);
			end = end < settle + STOP_NS ? settle + STOP_NS : end;
		}
		if (now_ns() >= settle)
			tell_to_stop(e, RECEIVERS);
	}
	progress_end(&progress);
	return over(e, ALL) ? 0 : EXIT_TIMEOUT;
}

/* If a run could not begin, disarm all parties. */
static void give_up(struct experiment *e, const struct options *o)
{
	const volatile bool never = false;

	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (!p->wire || (!p->asked && (is(p, "idle") || is(p, "ended"))))
			continue;
		ask_simply(p, !p->asked && is(p, "configured") ? "reset" : "stop");
	}
	parties_settle(e, o, &never);
}

int run_experiment(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	int result = o->take_over ? take_over(e) : begin(e, o, stop);
	int told;

	if (result || *stop) {
		give_up(e, o);
		return result ? result : EXIT_FAILED;
	}
	result = lead(e, o, stop);
	told = report(e, o, *stop);
	return result ? result : told;
}
