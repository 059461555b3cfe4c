// SPDX-License-Identifier: LGPL-2.1-or-later
/* The links to daemons: requests, answers and unrequested telegrams. */
#include "manager/manager.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/stop.h"

#define PARTIES_MOST	512	/* limit of the schema */
#define FRAMES_AT_ONCE	16	/* most frames of a daemon before others have their turn */
#define SILENT_NS	15000000000ull	/* a daemon sends a status each second */

/* --- asking --- */

xmlDoc *telegram_to(struct party *p, const char *what, xmlNode **content)
{
	return telegram_new(what, ++p->id, 0, content);
}

/* Give up the daemon. */
static void lose(struct party *p, const char *why)
{
	if (!p->wire)
		return;
	wire_close(p->wire);
	p->wire = NULL;
	p->asked = 0;
	p->failed |= !p->ended;
	snprintf(p->error, sizeof(p->error), "%s", *why ? why : "it has gone");
	if (!p->ended)
		say("%s: %s", p->name, p->error);
}

/* A link that is over is still read: the last frame of the other side names the reason. */
static void transmit(struct party *p, xmlDoc *telegram)
{
	char why[WHY_SIZE] = "no memory", too_much[WHY_SIZE + 64];
	struct telegram_counts counts;
	size_t size;
	char *text = telegram_write(telegram, &size);

	if (!text) {
		lose(p, why);
	} else if (telegram_scan(text, size, &counts, why)) {
		snprintf(too_much, sizeof(too_much),
			 "our request is more than a telegram may be: %s", why);
		lose(p, too_much);
	} else if (p->wire) {
		wire_send(p->wire, text, size, why);
	}
	xmlFree(text);
}

void ask(struct party *p, xmlDoc *telegram)
{
	const xmlNode *content = telegram_content(telegram);

	snprintf(p->asking, sizeof(p->asking), "%s", element_name(content));
	*p->error = 0;
	p->asked = p->id;
	p->asked_ns = now_ns();
	transmit(p, telegram);
	xmlFreeDoc(telegram);
}

void ask_simply(struct party *p, const char *what)
{
	xmlNode *content;

	ask(p, telegram_to(p, what, &content));
}

/* --- hearing --- */

static void read_counts(const xmlNode *from, struct counts *to)
{
	char text[32];

	for (const xmlNode *node = element_first(from); node; node = element_next(node)) {
		enum count kind;
		uint64_t value;

		if (strcmp(element_name(node), "count"))
			continue;
		kind = count_named(attribute(node, "name", text, sizeof(text)));
		value = strtoull(element_text(node, text, sizeof(text)), NULL, 10);
		if (kind == COUNT_KINDS)
			continue;
		to->value[kind] = value;
		to->known |= 1u << kind;
	}
}

static void read_links(struct party *p, const xmlNode *from)
{
	unsigned int n = 0;

	for (const xmlNode *node = element_first(from); node && n < LINKS;
	     node = element_next(node)) {
		struct link_counts *l = &p->link[n];

		if (strcmp(element_name(node), "link"))
			continue;
		attribute(node, "to", l->to, sizeof(l->to));
		read_counts(node, &l->counts);
		n++;
	}
	p->links = n > p->links ? n : p->links;
}

/* Packet sizes that the paths to its receivers carry. */
static void read_paths(const struct party *p, const xmlNode *from)
{
	for (const xmlNode *node = element_first(from); node; node = element_next(node)) {
		if (strcmp(element_name(node), "path"))
			continue;
		for (unsigned int i = 0; i < p->experiment->flows; i++) {
			struct flow *f = &p->experiment->flow[i];

			if (f->from == p && attribute_is(node, "to", f->address)) {
				attribute_number(node, "needs", &f->needs);
				attribute_number(node, "carries", &f->carries);
			}
		}
	}
}

static void read_image(struct party *p, const xmlNode *from)
{
	const xmlNode *image = element_find(from, "image");
	uint64_t width, height;

	if (!image || !attribute_number(image, "width", &width) ||
	    !attribute_number(image, "height", &height) || width > UINT32_MAX ||
	    height > UINT32_MAX)
		return;
	p->width = width;
	p->height = height;
	attribute(image, "pixel", p->pixel, sizeof(p->pixel));
}

static void read_state(struct party *p, const xmlNode *from)
{
	if (xmlHasProp(from, (const xmlChar *)"state"))
		attribute(from, "state", p->state, sizeof(p->state));
}

static void keep(xmlDoc **place, xmlDoc *doc)
{
	xmlFreeDoc(*place);
	*place = xmlCopyDoc(doc, 1);
}

/* Whether the telegram is about the run that we lead. */
static bool of_this_run(const struct party *p, const xmlNode *from)
{
	uint64_t number = 0;

	return attribute_is(from, "experiment", p->experiment->name) &&
	       (!attribute_number(from, "run", &number) || !p->experiment->run ||
		number == p->experiment->run);
}

/* Its detectors wait while one of their receivers has no room. */
static void on_full(struct party *p, bool full)
{
	struct experiment *e = p->experiment;

	if (p->full == full || e->overrun != OVERRUN_PAUSE)
		return;
	p->full = full;
	for (unsigned int i = 0; i < e->flows; i++) {
		if (e->flow[i].to == p)
			e->flow[i].from->full_receivers += full ? 1 : -1;
	}
}

static void on_counts(struct party *p)
{
	const struct counts *c = &p->counts;

	if (p->experiment->overrun == OVERRUN_STOP && !p->detector && !p->said &&
	    (c->value[COUNT_LOST] || c->value[COUNT_DROPPED])) {
		p->said = true;
		say("%s: images were lost: the run ends", p->name);
	}
}

static void hear(struct party *p, xmlDoc *doc)
{
	const xmlNode *content = telegram_content(doc);
	const char *name = element_name(content);
	uint64_t re = 0;
	const bool answer = attribute_number(xmlDocGetRootElement(doc), "re", &re) &&
			    re == p->asked;

	p->heard_ns = now_ns();
	read_state(p, content);
	if (!strcmp(name, "capabilities")) {
		keep(&p->capabilities, doc);
		read_image(p, content);
		if (!attribute_is(content, "role", p->detector ? "detector" : "receiver")) {
			lose(p, p->detector ? "it is no detector" : "it is no receiver");
			return;
		}
	} else if (!strcmp(name, "status")) {
		read_image(p, content);
		read_paths(p, content);
		if (of_this_run(p, content)) {
			read_counts(content, &p->counts);
			read_links(p, content);
			on_counts(p);
		}
	} else if (!strcmp(name, "log")) {
		char line[1024];

		say("%s: %s", p->name, element_text(content, line, sizeof(line)));
	} else if (!strcmp(name, "full") || !strcmp(name, "relieved")) {
		on_full(p, *name == 'f');
	} else if (!strcmp(name, "ended") && of_this_run(p, content)) {
		keep(&p->ended, doc);
		read_counts(content, &p->counts);
		read_links(p, content);
		snprintf(p->state, sizeof(p->state), "ended");
		/*
		 * After a stop a party that waits for more fails for that reason: ignore it. Ignore
		 * also the failure of an earlier run.
		 */
		p->failed |= attribute_is(content, "outcome", "failed") &&
			     !p->experiment->stopping && p->experiment->run;
		on_counts(p);
	} else if (!strcmp(name, "error")) {
		char text[sizeof(p->error)];

		element_text(content, text, sizeof(text));
		if (answer)
			memcpy(p->error, text, sizeof(text));
		else
			say("%s: %s", p->name, text);
	}
	if (answer)
		p->asked = 0;
}

static void serve(struct party *p)
{
	const char *frame;
	char why[WHY_SIZE] = "";
	size_t size;
	uint64_t id;
	int result = 1;

	for (unsigned int i = 0; i < FRAMES_AT_ONCE && result > 0; i++) {
		result = p->wire ? wire_take(p->wire, &frame, &size, why) : 0;
		if (result > 0) {
			xmlDoc *doc = telegram_parse(frame, size, &id, why);

			if (doc)
				hear(p, doc);
			else
				result = -1;
			xmlFreeDoc(doc);
		}
	}
	if (result < 0)
		lose(p, why);
}

void parties_turn(struct experiment *e, uint64_t until, int keys, const volatile bool *stop)
{
	struct pollfd fds[PARTIES_MOST + 1];
	const uint64_t now = now_ns();

	for (unsigned int i = 0; i < e->parties; i++) {
		const struct wire *w = e->party[i].wire;
		uint64_t due;

		fds[i].fd = -1;
		if (!w)
			continue;
		fds[i] = (struct pollfd) { .fd = wire_fd(w), .events = wire_events(w) };
		due = wire_pending(w) ? now : wire_deadline(w);
		until = due < until ? due : until;
	}
	fds[e->parties] = (struct pollfd) { .fd = keys, .events = POLLIN };
	if (!*stop)
		stop_poll(fds, e->parties + 1, until);
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (p->wire)
			serve(p);
		if (p->wire && p->heard_ns && now_ns() - p->heard_ns > SILENT_NS)
			lose(p, "it says nothing any more");
	}
}

/* --- waiting --- */

static unsigned int owing(const struct experiment *e)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < e->parties; i++)
		n += e->party[i].asked != 0;
	return n;
}

int parties_settle(struct experiment *e, const struct options *o, const volatile bool *stop)
{
	const uint64_t end = now_ns() + (uint64_t)(o->timeout * 1e9);
	int result = 0;

	while (owing(e) && !*stop && now_ns() < end)
		parties_turn(e, end, -1, stop);
	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		/* a party without an answer still owes it; only stop may be sent to it */
		if (p->asked && !*stop) {
			say("%s: no answer to %s for %g s", p->name, p->asking, o->timeout);
			p->failed = true;
			result = EXIT_TIMEOUT;
		} else if (!p->asked && *p->error) {
			if (p->wire)
				say("%s: %s: %s", p->name, p->asking, p->error);
			*p->error = 0;
			p->failed = true;
			result = result ? result : EXIT_FAILED;
		}
	}
	return result;
}

static void say_hello(struct party *p, const struct options *o, const char *role, double interval)
{
	xmlNode *hello;
	xmlDoc *doc = telegram_to(p, "hello", &hello);
	char text[24];

	attribute_add_line(hello, "name", o->name);
	attribute_add(hello, "role", role);
	if (o->take_over) {
		attribute_add(hello, "experiment", p->experiment->name);
		attribute_add(hello, "take-over", "true");
	}
	if (interval > 0) {
		snprintf(text, sizeof(text), "%.3f", interval);
		attribute_add(hello, "interval", text);
	}
	ask(p, doc);
}

int parties_connect(struct experiment *e, const struct options *o, struct wire_tls *tls,
		    const char *role, double interval, const volatile bool *stop)
{
	char why[WHY_SIZE];
	int result = 0;

	for (unsigned int i = 0; i < e->parties; i++) {
		struct party *p = &e->party[i];

		if (wire_connect(p->at, tls, p->certificate, &p->wire, why)) {
			p->wire = NULL;
			p->failed = true;
			result = fail("%s: %s", p->name, why);
			continue;
		}
		say_hello(p, o, role, interval);
	}
	return parties_settle(e, o, stop) || result ? EXIT_FAILED : 0;
}

void parties_close(struct experiment *e)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		wire_close(e->party[i].wire);
		e->party[i].wire = NULL;
	}
}
