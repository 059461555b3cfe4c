// SPDX-License-Identifier: LGPL-2.1-or-later
/* A run: its child, the child's messages, and its end. */
#include "daemon/internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json-out.h"
#include "common/options.h"

#define ARGUMENTS	4096	/* of a child */
#define ARGUMENT_MOST	131071	/* bytes of one, the limit of Linux */
#define KEPT_MOST	65536	/* bytes of elements of other name spaces, repeated in each status */

/* --- answers that wait --- */

static struct client *take_pending(struct daemon *d, uint64_t *id)
{
	struct client *c = client_of(d, d->pending.client);

	*id = d->pending.id;
	d->pending = (struct pending) {};
	return c;
}

void pending_done(struct daemon *d)
{
	uint64_t id;
	struct client *c = take_pending(d, &id);

	if (c)
		client_done(d, c, id);
}

void pending_refuse(struct daemon *d, const char *code, const char *format, ...)
{
	char text[WHY_SIZE];
	uint64_t id;
	struct client *c = take_pending(d, &id);
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (c)
		client_refuse(d, c, id, code, "%s", text);
}

/* --- the beginning --- */

/* Arguments of a child: those of the daemon, then others; free_arguments() them. */
struct arguments {
	char *argv[ARGUMENTS + 1];
	unsigned int own;	/* the daemon's arguments, which must not be freed */
	unsigned int n;
};

static int add_argument(struct arguments *a, char *argument, char *why)
{
	if (!argument || a->n == ARGUMENTS) {
		free(argument);
		return because(why, -1, "there are more than %d settings, or there is no memory: leave some out", ARGUMENTS);
	}
	a->argv[a->n++] = argument;
	return 0;
}

static void free_arguments(struct arguments *a)
{
	while (a->n > a->own)
		free(a->argv[--a->n]);
	free(a);
}

static struct arguments *arguments_of(const struct daemon *d, char *why)
{
	struct arguments *a = calloc(1, sizeof(*a));

	while (a && d->argv[a->n] && a->n < ARGUMENTS) {
		a->argv[a->n] = d->argv[a->n];
		a->n++;
	}
	if (!a) {
		because(why, -1, "no memory");
		return NULL;
	}
	a->own = a->n;
	if (add_argument(a, strdup("--led=3"), why)) {
		free_arguments(a);
		return NULL;
	}
	return a;
}

/* Each setting is an option. Refuse duplicates here, since the parser accepts them. */
static int add_setting(const struct daemon *d, struct arguments *a, const xmlNode *setting, char *why)
{
	const char *name = element_name(setting);
	const char *option = option_tunes(d->tunes, name) ? "--tune=" : "--";
	char *text = element_text_whole(setting), *argument = NULL;
	const size_t size = strlen(option) + strlen(name) + 1;

	for (unsigned int i = a->own; i < a->n && strcmp(name, "to") && strcmp(name, "dtp"); i++) {
		const char *other = a->argv[i] + strlen(option);

		if (!strncmp(a->argv[i], option, strlen(option)) && !strncmp(other, name, strlen(name)) &&
		    (!a->argv[i][size - 1] || a->argv[i][size - 1] == '=')) {
			free(text);
			return because(why, -1, "%s is given twice: leave one out", name);
		}
	}
	if (text && asprintf(&argument, "%s%s%s%s", option, name, *text ? "=" : "", text) < 0)
		argument = NULL;
	free(text);
	if (argument && strlen(argument) > ARGUMENT_MOST) {
		free(argument);
		return because(why, -1, "%s: it is longer than %d bytes", name, ARGUMENT_MOST);
	}
	return add_argument(a, argument, why);
}

static int add_settings(const struct daemon *d, struct arguments *a, const xmlNode *settings, char *why)
{
	for (const xmlNode *s = element_first(settings); s; s = element_next(s)) {
		if (element_ours(s) && add_setting(d, a, s, why))
			return -1;
	}
	return 0;
}

static int add_full_at(struct arguments *a, const xmlNode *configure, char *why)
{
	char *argument = NULL;
	uint64_t stacks;

	if (!attribute_number(configure, "full-at", &stacks))
		return 0;
	if (!element_find(configure, "receiver"))
		return because(why, -1, "full-at is a setting of receivers: a detector has no buffer");
	if (asprintf(&argument, "--full-at=%llu", (unsigned long long)stacks) < 0)
		argument = NULL;
	return add_argument(a, argument, why);
}

void run_forget(struct daemon *d)
{
	char *report;

	if (d->child.pid) {
		/* it has begun nothing that would have to be stopped in order */
		child_signal(&d->child, SIGKILL);
		child_reap(&d->child, &report);
		free(report);
	}
	d->state = IDLE;
	d->kill_ns = 0;
	d->stopped = false;
	*d->experiment = 0;
	d->run = 0;
	json_object_put(d->status);
	json_object_put(d->configured);
	xmlFreeDoc(d->configuration);
	xmlFreeDoc(d->ended);
	d->status = NULL;
	d->configured = NULL;
	d->configuration = NULL;
	d->ended = NULL;
}

static void remember(struct daemon *d, const xmlNode *configure)
{
	attribute(configure, "experiment", d->experiment, sizeof(d->experiment));
	attribute_number(configure, "run", &d->run);
	d->orphan_stop = attribute_is(configure, "orphan", "stop");
	d->configuration = xmlCopyDoc(configure->doc, 1);
}

/* Every status repeats these elements, so check their size as written, with name spaces. */
static int check_kept(const xmlNode *configure, char *why)
{
	xmlNode *kept;
	xmlDoc *doc = telegram_new("status", 1, 0, &kept);
	size_t size;
	char *text;

	elements_keep(kept, configure);
	elements_keep(kept, element_first(configure));
	text = telegram_write(doc, &size);
	xmlFree(text);
	xmlFreeDoc(doc);
	return text && size <= KEPT_MOST ? 0 :
	       because(why, -1, "elements of other name spaces exceed %d bytes", KEPT_MOST);
}

int run_configure(struct daemon *d, const xmlNode *configure, char *why)
{
	const xmlNode *settings = element_find(configure, d->detector ? "detector" : "receiver");
	struct arguments *a;
	int result;

	if (!settings)
		return because(why, -1, "this is a %s, and these are settings of a %s",
			       d->detector ? "detector" : "receiver",
			       d->detector ? "receiver" : "detector");
	if (check_kept(configure, why))
		return -1;
	a = arguments_of(d, why);
	if (!a)
		return -1;
	result = add_settings(d, a, settings, why);
	if (!result)
		result = add_full_at(a, configure, why);
	if (!result)
		result = add_argument(a, strdup("--json=/dev/fd/4"), why);
	if (!result) {
		run_forget(d);
		result = child_start(&d->child, a->argv, why);
	}
	if (!result)
		remember(d, configure);
	free_arguments(a);
	return result;
}

int run_probe(struct daemon *d, char *why)
{
	struct arguments *a = arguments_of(d, why);
	int result;

	if (!a)
		return -1;
	result = add_argument(a, strdup("--probe"), why);
	if (!result)
		result = child_start(&d->child, a->argv, why);
	free_arguments(a);
	return result;
}

/* --- on its way --- */

static void tell(struct daemon *d, const char *kind, struct json_object *o)
{
	put_text(o, "kind", kind);
	child_tell(&d->child, o);
}

void run_tell(struct daemon *d, const char *kind)
{
	tell(d, kind, json_object_new_object());
}

void run_tell_rate(struct daemon *d, double rate)
{
	struct json_object *o = json_object_new_object();

	put_real(o, "rate", rate);
	tell(d, "rate", o);
}

void run_stop(struct daemon *d)
{
	d->stopped = true;
	d->state = STOPPING;
	/* a program that hangs in a request must be stopped, too */
	pending_refuse(d, "failed", "the run was stopped before this request was done");
	child_signal(&d->child, SIGTERM);
	d->kill_ns = now_ns() + STOP_NS;
}

/* Send to all clients that have said hello. */
static void tell_all(struct daemon *d, const char *name, void (*fill)(xmlNode *node, void *data),
		     void *data)
{
	for (unsigned int i = 0; i < CLIENTS; i++) {
		struct client *c = &d->client[i];
		xmlNode *node;
		xmlDoc *doc;

		if (!c->number || !c->hello || c->going)
			continue;
		doc = client_telegram(c, name, 0, &node);
		fill(node, data);
		client_send(d, c, doc);
	}
}

static void fill_line(xmlNode *node, void *data)
{
	element_set_line(node, data);
}

static void fill_lag(xmlNode *node, void *data)
{
	static const char * const names[] = { "lag", "slots" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct json_object *value = json_object_object_get(data, names[i]);

		attribute_add_number(node, names[i], json_object_get_uint64(value));
	}
}

static void keep(struct json_object **place, struct json_object *value)
{
	json_object_put(*place);
	*place = json_object_get(value);
}

static void take_message(struct daemon *d, struct json_object *o)
{
	const char *kind = json_object_get_string(json_object_object_get(o, "kind"));
	const enum state state = d->state;

	if (!kind)
		return;
	if (!strcmp(kind, "able")) {
		keep(&d->able, o);
	} else if (!strcmp(kind, "status")) {
		keep(&d->status, o);
	} else if (!strcmp(kind, "full") || !strcmp(kind, "relieved")) {
		tell_all(d, kind, fill_lag, o);
	} else if (!strcmp(kind, "configured") && state == CONFIGURING) {
		keep(&d->configured, o);
		d->state = CONFIGURED;
		pending_done(d);
	} else if (!strcmp(kind, "armed") && state == ARMING) {
		d->state = ARMED;
		pending_done(d);
	} else if (state == PAUSING && (!strcmp(kind, "paused") || !strcmp(kind, "resumed") ||
					!strcmp(kind, "rated"))) {
		d->state = !strcmp(kind, "paused") ? PAUSED :
			   !strcmp(kind, "resumed") ? RUNNING : d->before;
		pending_done(d);
	} else if (state == PAUSING && !strcmp(kind, "refused")) {
		d->state = d->before;
		pending_refuse(d, "unable", "%s",
			       json_object_get_string(json_object_object_get(o, "text")));
	}
}

/* --- the end --- */

static const char *outcome(const struct daemon *d, const struct child_end *end)
{
	static const char * const outcomes[] = {
		[EXIT_OK] = "done", [EXIT_FAILED] = "failed", [EXIT_USAGE] = "failed",
		[EXIT_TIMEOUT] = "timeout", [EXIT_DATA] = "data",
	};

	/* one that has just been started knows nothing of signals */
	if (end->signal)
		return d->stopped && end->signal == SIGTERM ? "stopped" : "killed";
	if (d->stopped && (end->exit == EXIT_OK || end->exit == EXIT_FAILED))
		return "stopped";
	return (size_t)end->exit < sizeof(outcomes) / sizeof(outcomes[0]) ? outcomes[end->exit] :
	       "failed";
}

static xmlDoc *account(const struct daemon *d, const struct child_end *end, const char *report)
{
	const char *how = outcome(d, end);
	xmlNode *node;
	xmlDoc *doc = telegram_new("ended", 1, 0, &node);

	attribute_add(node, "experiment", d->experiment);
	attribute_add_number(node, "run", d->run);
	attribute_add(node, "outcome", how);
	if (end->signal)
		attribute_add_number(node, "signal", end->signal);
	else
		attribute_add_number(node, "exit", end->exit);
	counts_add(node, d->status);
	if (strcmp(how, "done") && *d->child.last)
		element_set_line(element_add(node, "reason"), d->child.last);
	if (report)
		element_set(element_add(node, "report"), report);
	return doc;
}

/* The same content for each client; only the numbers of their telegrams differ. */
static void fill_ended(xmlNode *node, void *data)
{
	const xmlNode *from = telegram_content(data);

	attributes_copy(node, from);
	xmlAddChildList(node, xmlDocCopyNodeList(node->doc, from->children));
}

void run_tell_ended(struct daemon *d, struct client *c)
{
	xmlNode *node;
	xmlDoc *doc;

	if (!c)
		return;
	doc = client_telegram(c, "ended", 0, &node);
	fill_ended(node, d->ended);
	client_send(d, c, doc);
}

static void end(struct daemon *d)
{
	const enum state state = d->state;
	const char *last = d->child.last;
	char *report;
	const struct child_end how = child_reap(&d->child, &report);

	d->kill_ns = 0;
	if (state == IDLE) {		/* it only reported its capabilities */
		free(report);
		return;
	}
	if (state == CONFIGURING) {
		free(report);
		run_forget(d);
		pending_refuse(d, "setting", "%s", *last ? last : "the program has failed");
		return;
	}
	d->ended = account(d, &how, report);
	free(report);
	d->state = ENDED;
	tell_all(d, "ended", fill_ended, d->ended);
	if (state == STOPPING)
		pending_done(d);
	else
		pending_refuse(d, "failed", "%s", *last ? last : "the run is over");
}

void run_look(struct daemon *d, bool ended)
{
	struct json_object *o;
	const char *line;

	while ((o = child_message(&d->child))) {
		take_message(d, o);
		json_object_put(o);
	}
	while ((line = child_line(&d->child))) {
		say("%s%s", d->state == IDLE ? "checking the capabilities: " : "", line);
		tell_all(d, "log", fill_line, (void *)(uintptr_t)line);
	}
	if (ended)
		end(d);
}
