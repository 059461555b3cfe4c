// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table of telegrams: permitted roles and states, and actions. */
#include "daemon/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BIT(state)	(1u << (state))
#define ALWAYS		(BIT(STATES) - 1)
#define INTERVAL_LEAST	0.1	/* seconds */
#define INTERVAL_MOST	86400

/* --- answers --- */

static void tell_of_run(struct daemon *d, xmlNode *to)
{
	const struct client *leader = client_of(d, d->leader);

	attribute_add(to, "state", state_name(d->state));
	if (leader)
		attribute_add_line(to, "leader", leader->name);
	if (*d->experiment) {
		attribute_add(to, "experiment", d->experiment);
		attribute_add_number(to, "run", d->run);
	}
}

void tell_capabilities(struct daemon *d, struct client *c, uint64_t re)
{
	char machine[256] = "";
	xmlNode *node;
	xmlDoc *doc = client_telegram(c, "capabilities", re, &node);

	gethostname(machine, sizeof(machine) - 1);
	attribute_add(node, "role", d->detector ? "detector" : "receiver");
	attribute_add_line(node, "program", d->detector ? "remu " RASHPA_VERSION :
			   "romulu " RASHPA_VERSION);
	attribute_add_line(node, "machine", machine);
	tell_of_run(d, node);
	machine_tell(node, d->able);
	client_send(d, c, doc);
}

void tell_status(struct daemon *d, struct client *c, uint64_t re)
{
	xmlNode *node, *kept;
	xmlDoc *doc = client_telegram(c, "status", re, &node);
	const xmlNode *configure;

	tell_of_run(d, node);
	configured_add(node, d->configured);
	counts_add(node, d->status);
	configure = d->configuration ? telegram_content(d->configuration) : NULL;
	if (configure && re) {
		kept = element_add(node, "kept");
		elements_keep(kept, configure);
		elements_keep(kept, element_first(configure));
	}
	client_send(d, c, doc);
}

/* --- the requests --- */

struct asked {
	struct client *client;
	const xmlNode *what;
	uint64_t id;
};

static void lead(struct daemon *d, const struct asked *a, const char *experiment, bool take_over)
{
	const struct client *other = client_of(d, d->leader);
	const bool under_way = d->state != IDLE && d->state != ENDED;

	if (!client_may_lead(d, a->client)) {
		client_refuse(d, a->client, a->id, "leader",
			      "%s may not lead: see --leader of the daemon",
			      wire_other_end(a->client->wire)->name);
	} else if (other && other != a->client) {
		client_refuse(d, a->client, a->id, "busy", "%s leads", other->name);
	} else if (!other && under_way && (!take_over || strcmp(experiment, d->experiment))) {
		client_refuse(d, a->client, a->id, "busy",
			      "run %llu of experiment %s is under way: take it over, or wait for its end",
			      (unsigned long long)d->run, d->experiment);
	} else {
		d->leader = a->client->number;
		d->orphan_ns = 0;
		tell_capabilities(d, a->client, a->id);
		/* the new leader may have come for the account */
		if (d->state == ENDED)
			run_tell_ended(d, client_of(d, d->leader));
	}
}

static void do_hello(struct daemon *d, const struct asked *a)
{
	char experiment[TELEGRAM_NAME], text[32];
	struct client *c = a->client;
	double interval;

	attribute(a->what, "name", c->name, sizeof(c->name));
	interval = strtod(attribute(a->what, "interval", text, sizeof(text)), NULL);
	if (interval > 0 && interval < INTERVAL_LEAST)
		interval = INTERVAL_LEAST;
	if (interval > INTERVAL_MOST)
		interval = INTERVAL_MOST;
	c->interval_ns = interval * 1e9;
	c->due_ns = c->interval_ns ? now_ns() : 0;
	client_admit(d, c);
	if (attribute_is(a->what, "role", "leader")) {
		attribute(a->what, "experiment", experiment, sizeof(experiment));
		lead(d, a, experiment, attribute_is(a->what, "take-over", "true") ||
		     attribute_is(a->what, "take-over", "1"));
		return;
	}
	if (d->leader == c->number) {
		d->leader = 0;
		d->orphan_ns = now_ns() + ORPHAN_NS;
	}
	tell_capabilities(d, c, a->id);
}

static void do_capabilities(struct daemon *d, const struct asked *a)
{
	tell_capabilities(d, a->client, a->id);
}

static void do_status(struct daemon *d, const struct asked *a)
{
	tell_status(d, a->client, a->id);
}

/* The answer follows when the child reports the result. */
static void wait_for_child(struct daemon *d, const struct asked *a, enum state state)
{
	d->before = d->state;
	d->state = state;
	d->pending = (struct pending) { .client = a->client->number, .id = a->id };
}

static void do_configure(struct daemon *d, const struct asked *a)
{
	char why[WHY_SIZE];

	if (run_configure(d, a->what, why))
		client_refuse(d, a->client, a->id, "setting", "%s", why);
	else
		wait_for_child(d, a, CONFIGURING);
}

static void do_arm(struct daemon *d, const struct asked *a)
{
	run_tell(d, "arm");
	wait_for_child(d, a, ARMING);
}

static void do_start(struct daemon *d, const struct asked *a)
{
	run_tell(d, "start");
	d->state = RUNNING;
	client_done(d, a->client, a->id);
}

static void do_pause(struct daemon *d, const struct asked *a)
{
	run_tell(d, "pause");
	wait_for_child(d, a, PAUSING);
}

static void do_resume(struct daemon *d, const struct asked *a)
{
	run_tell(d, "resume");
	wait_for_child(d, a, PAUSING);
}

static void do_set_rate(struct daemon *d, const struct asked *a)
{
	char text[32];

	run_tell_rate(d, strtod(element_text(a->what, text, sizeof(text)), NULL));
	wait_for_child(d, a, PAUSING);
}

static void do_write_register(struct daemon *d, const struct asked *a)
{
	char why[WHY_SIZE], window[TELEGRAM_NAME];
	uint64_t fpga = 0, offset = 0, value = 0;

	if (!attribute_number(a->what, "fpga", &fpga) ||
	    !attribute_number(a->what, "offset", &offset) ||
	    !attribute_number(a->what, "value", &value))
		client_refuse(d, a->client, a->id, "syntax", "a number is beyond 64 bits");
	else if (machine_write_register(fpga, attribute(a->what, "window", window, sizeof(window)),
					offset, value, why))
		client_refuse(d, a->client, a->id, "unable", "%s", why);
	else
		client_done(d, a->client, a->id);
}

static void do_stop(struct daemon *d, const struct asked *a)
{
	run_stop(d);
	d->pending = (struct pending) { .client = a->client->number, .id = a->id };
}

static void do_reset(struct daemon *d, const struct asked *a)
{
	run_forget(d);
	client_done(d, a->client, a->id);
}

static void do_bye(struct daemon *d, const struct asked *a)
{
	a->client->going = true;
	client_done(d, a->client, a->id);
}

static const struct request {
	const char *name;
	void (*run)(struct daemon *d, const struct asked *a);
	unsigned int states;		/* in which it may be said */
	bool leads;			/* by the leader only */
	bool detector;			/* to a detector only */
} requests[] = {
	{ "hello", do_hello, ALWAYS, false, false },
	{ "get-capabilities", do_capabilities, ALWAYS, false, false },
	{ "get-status", do_status, ALWAYS, false, false },
	{ "configure", do_configure, BIT(IDLE) | BIT(CONFIGURED) | BIT(ENDED), true, false },
	{ "arm", do_arm, BIT(CONFIGURED), true, false },
	{ "start", do_start, BIT(ARMED), true, false },
	{ "pause", do_pause, BIT(RUNNING), true, true },
	{ "resume", do_resume, BIT(PAUSED), true, true },
	{ "set-rate", do_set_rate, BIT(RUNNING) | BIT(PAUSED), true, true },
	{ "write-register", do_write_register,
	  BIT(CONFIGURED) | BIT(ARMED) | BIT(RUNNING) | BIT(PAUSED), true, false },
	{ "stop", do_stop, ALWAYS & ~(BIT(IDLE) | BIT(STOPPING) | BIT(ENDED)), true, false },
	{ "reset", do_reset, BIT(IDLE) | BIT(CONFIGURED) | BIT(ENDED), true, false },
	{ "bye", do_bye, ALWAYS, false, false },
};

static void handle(struct daemon *d, const struct asked *a)
{
	const char *name = element_name(a->what);
	const struct request *r = requests;
	const struct request *const end = r + sizeof(requests) / sizeof(requests[0]);

	while (r < end && strcmp(r->name, name))
		r++;
	if (r == end)
		client_refuse(d, a->client, a->id, "unable", "%s is what a daemon says", name);
	else if (!a->client->hello && r->run != do_hello && r->run != do_bye)
		client_refuse(d, a->client, a->id, "leader", "say hello first");
	else if (r->leads && d->leader != a->client->number)
		client_refuse(d, a->client, a->id, "leader",
			      "%s: you do not lead: say hello as leader", name);
	else if (r->detector && !d->detector)
		client_refuse(d, a->client, a->id, "unable", "%s: a receiver cannot", name);
	else if (!(r->states & BIT(d->state)))
		client_refuse(d, a->client, a->id, "state", "%s: not while it is %s", name,
			      state_name(d->state));
	else
		r->run(d, a);
}

void request(struct daemon *d, struct client *c, const char *text, size_t size)
{
	char why[WHY_SIZE];
	struct asked asked = { .client = c };
	xmlDoc *doc;

	if (size > TELEGRAM_ASKED && d->leader != c->number) {
		client_refuse(d, c, 0, "leader", "a telegram of %zu bytes: without the lead the limit is %u: say hello as leader",
			      size, TELEGRAM_ASKED);
		return;
	}
	doc = telegram_parse(text, size, &asked.id, why);
	if (!doc) {
		client_refuse(d, c, asked.id, "syntax", "%s", why);
		return;
	}
	asked.what = telegram_content(doc);
	handle(d, &asked);
	xmlFreeDoc(doc);
}
