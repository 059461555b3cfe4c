// SPDX-License-Identifier: LGPL-2.1-or-later
/* The file of an experiment: its parties, its flows, and the settings that follow from them. */
#include "manager/manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MOST	(16u << 20)

static const char * const counts[COUNT_KINDS] = {
	[COUNT_IMAGES] = "images", [COUNT_LOST] = "lost", [COUNT_BYTES] = "bytes",
	[COUNT_STACKS] = "stacks", [COUNT_MISSING] = "missing", [COUNT_DROPPED] = "dropped",
	[COUNT_WRONG] = "wrong", [COUNT_LAG] = "lag", [COUNT_SLOTS] = "slots",
	[COUNT_PROCESSED] = "processed", [COUNT_KEPT] = "kept", [COUNT_UNKEPT] = "unkept",
	[COUNT_WAITED] = "waited",
};

/* COUNT_KINDS: unknown name */
enum count count_named(const char *name)
{
	enum count i = 0;

	while (i < COUNT_KINDS && strcmp(counts[i], name))
		i++;
	return i;
}

const char *count_name(enum count count)
{
	return counts[count];
}

/* --- settings --- */

bool has_setting(const struct party *p, const char *name)
{
	return element_find(p->node, name);
}

const char *setting(const struct party *p, const char *name, char *to, size_t size)
{
	const xmlNode *node = element_find(p->node, name);

	*to = 0;
	return node ? element_text(node, to, size) : to;
}

static void add_setting(xmlNode *to, const char *name, const char *value)
{
	element_set(element_add(to, name), value);
}

/* Settings of a detector that follow from its flows. */
static void add_outgoing(struct party *p, xmlNode *to)
{
	char buffer[TELEGRAM_NAME];

	for (unsigned int i = 0; i < p->experiment->flows; i++) {
		const struct flow *f = &p->experiment->flow[i];

		if (f->from != p)
			continue;
		if (!element_find(to, "transport"))
			add_setting(to, "transport", f->transport->name);
		if (*f->address)
			add_setting(to, "to", f->address);
		else if (!has_setting(p, "buffer"))
			add_setting(to, "buffer",
				    setting(f->to, "buffer", buffer, sizeof(buffer)));
	}
}

static void add_incoming(struct party *p, xmlNode *to)
{
	const struct flow *first = NULL;
	unsigned int n = 0;
	char text[16];

	for (unsigned int i = 0; i < p->experiment->flows; i++) {
		const struct flow *f = &p->experiment->flow[i];

		if (f->to != p)
			continue;
		first = first ? first : f;
		n++;
	}
	if (!first || !*first->address)
		return;
	add_setting(to, "transport", first->transport->name);
	add_setting(to, "listen", first->address);
	snprintf(text, sizeof(text), "%u", n);
	if (first->transport->has & TRANSPORT_CONTRACT)
		add_setting(to, "senders", text);
}

xmlDoc *configuration(struct party *p)
{
	xmlNode *content, *settings;
	xmlDoc *doc = telegram_new("configure", ++p->id, 0, &content);
	uint64_t full_at;

	attribute_add(content, "experiment", p->experiment->name);
	attribute_add_number(content, "run", p->experiment->run);
	if (*p->experiment->orphan)
		attribute_add(content, "orphan", p->experiment->orphan);
	if (attribute_number(p->node, "full-at", &full_at))
		attribute_add_number(content, "full-at", full_at);
	settings = element_add(content, p->detector ? "detector" : "receiver");
	for (xmlNode *node = element_first(p->node); node; node = element_next(node)) {
		if (element_ours(node))
			xmlAddChild(settings, xmlDocCopyNode(node, doc, 1));
	}
	if (p->detector)
		add_outgoing(p, settings);
	else
		add_incoming(p, settings);
	elements_keep(settings, p->node);
	return doc;
}

/* --- reading --- */

static char *read_file(const char *file, size_t *size, char *why)
{
	FILE *f = fopen(file, "re");
	char *text = malloc(FILE_MOST + 1);

	if (!f || !text) {
		because(why, -1, "%s: %s", file, f ? "no memory" : strerror(errno));
		goto out;
	}
	*size = fread(text, 1, FILE_MOST + 1, f);
	if (ferror(f) || *size > FILE_MOST) {
		because(why, -1, "%s: %s", file,
			ferror(f) ? strerror(errno) : "it is longer than 16 MiB");
		goto out;
	}
	fclose(f);
	return text;
out:
	free(text);
	if (f)
		fclose(f);
	return NULL;
}

/* Valid as long as the document. */
static const char *held(const xmlNode *node, const char *name)
{
	const xmlAttr *a = xmlHasProp(node, (const xmlChar *)name);

	return a && a->children && a->children->content ? (const char *)a->children->content : NULL;
}

static struct party *party_named(struct experiment *e, const char *name)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		if (!strcmp(e->party[i].name, name))
			return &e->party[i];
	}
	return NULL;
}

static struct party *party_of(struct experiment *e, const xmlNode *node, const char *key, char *why)
{
	struct party *p = party_named(e, held(node, key));

	if (!p)
		because(why, -1, "line %d: there is no detector or receiver \"%s\"", node->line,
			held(node, key));
	return p;
}

static int read_flow(struct experiment *e, const xmlNode *node, char *why)
{
	struct flow *f = &e->flow[e->flows++];
	const char *name = held(node, "transport");

	f->from = party_of(e, node, "from", why);
	f->to = f->from ? party_of(e, node, "to", why) : NULL;
	if (!f->to)
		return -1;
	if (!f->from->detector || f->to->detector)
		return because(why, -1, "line %d: a flow goes from a detector to a receiver",
			       node->line);
	f->transport = transport_named(name);
	if (!f->transport)
		return because(why, -1, "line %d: there is no transport %s", node->line, name);
	attribute(node, "address", f->address, sizeof(f->address));
	if (!(f->transport->has & TRANSPORT_NETWORK) && *f->address)
		return because(why, -1, "line %d: a flow over PCIe has no address", node->line);
	if (f->transport->has & TRANSPORT_NETWORK && !*f->address)
		return because(why, -1, "line %d: the address of %s is missing: give address=\"%s\"",
			       node->line, f->to->name, f->transport->to);
	return 0;
}

/* All flows of a program are of one kind. */
static int check_flows(const struct experiment *e, char *why)
{
	for (unsigned int i = 0; i < e->flows; i++) {
		const struct flow *a = &e->flow[i];

		for (unsigned int k = 0; k < i; k++) {
			const struct flow *b = &e->flow[k];

			if (a->from != b->from && a->to != b->to)
				continue;
			if (!*a->address || !*b->address)
				return because(why, -1, "%s, %s: over PCIe a detector fills one buffer, and a buffer has one detector",
					       a->from->name, a->to->name);
			if (a->transport != b->transport)
				return because(why, -1, "%s, %s: flows by %s and by %s: give them one transport",
					       a->from->name, a->to->name, a->transport->name,
					       b->transport->name);
			if (a->to == b->to && (a->from == b->from ||
					       strcmp(a->address, b->address)))
				return because(why, -1, "%s: %s", a->to->name, a->from == b->from ?
					       "two flows come from one detector" :
					       "its flows have different addresses");
		}
	}
	for (unsigned int i = 0; i < e->parties; i++) {
		unsigned int n = 0;

		for (unsigned int k = 0; k < e->flows; k++)
			n += e->flow[k].from == &e->party[i] || e->flow[k].to == &e->party[i];
		if (!n)
			return because(why, -1, "%s: it has no flow", e->party[i].name);
	}
	return 0;
}

static int read_rule(struct experiment *e, const xmlNode *node, char *why)
{
	struct rule *r = &e->rule[e->rules++];

	r->of = party_of(e, node, "of", why);
	r->act = element_first(node);
	r->count = count_named(held(node, "count"));
	if (!r->of)
		return -1;
	if (!attribute_number(node, "at-least", &r->at_least))
		return because(why, -1, "line %d: at-least is beyond 64 bits", node->line);
	if (!strcmp(element_name(r->act), "stop"))
		return 0;
	r->at = party_of(e, r->act, strcmp(element_name(r->act), "set-rate") ? "at" : "detector",
			 why);
	if (r->at && !strcmp(element_name(r->act), "set-rate") && !r->at->detector)
		return because(why, -1, "line %d: %s is not a detector", node->line, r->at->name);
	return r->at ? 0 : -1;
}

static void read_party(struct experiment *e, const xmlNode *node)
{
	e->party[e->parties++] = (struct party) {
		.experiment = e, .node = node, .detector = !strcmp(element_name(node), "detector"),
		.name = held(node, "name"), .at = held(node, "at"),
		.certificate = held(node, "certificate"),
	};
}

static void read_head(struct experiment *e, const xmlNode *root)
{
	attribute(root, "name", e->name, sizeof(e->name));
	e->overrun = OVERRUN_PAUSE;
	if (attribute_is(root, "overrun", "drop"))
		e->overrun = OVERRUN_DROP;
	else if (attribute_is(root, "overrun", "stop"))
		e->overrun = OVERRUN_STOP;
	e->degrade = attribute_is(root, "failure", "degrade");
	attribute(root, "orphan", e->orphan, sizeof(e->orphan));
}

/* In the schema, parties come before flows and rules. */
static int read_element(struct experiment *e, const xmlNode *node, char *why)
{
	if (!strcmp(element_name(node), "flow"))
		return read_flow(e, node, why);
	if (!strcmp(element_name(node), "rule"))
		return read_rule(e, node, why);
	read_party(e, node);
	return 0;
}

static int read_all(struct experiment *e, char *why)
{
	const xmlNode *root = xmlDocGetRootElement(e->doc);
	unsigned int n = 0;
	int result = 0;

	read_head(e, root);
	for (const xmlNode *node = element_first(root); node; node = element_next(node))
		n++;
	e->party = calloc(n, sizeof(*e->party));
	e->flow = calloc(n, sizeof(*e->flow));
	e->rule = calloc(n, sizeof(*e->rule));
	if (!e->party || !e->flow || !e->rule)
		return because(why, -1, "no memory");
	for (const xmlNode *node = element_first(root); node && !result; node = element_next(node))
		result = element_ours(node) ? read_element(e, node, why) : 0;
	return result ? result : check_flows(e, why);
}

int experiment_read(struct experiment *e, const char *file, char *why)
{
	char text[WHY_SIZE];
	size_t size;
	char *content;
	int result;

	*e = (struct experiment) {};
	content = read_file(file, &size, why);
	if (!content)
		return -1;
	e->doc = telegram_read(content, size, "experiment", text);
	free(content);
	result = e->doc ? read_all(e, text) : -1;
	return result ? because(why, -1, "%s: %.600s", file, text) : 0;
}

void experiment_free(struct experiment *e)
{
	for (unsigned int i = 0; i < e->parties; i++) {
		xmlFreeDoc(e->party[i].capabilities);
		xmlFreeDoc(e->party[i].ended);
	}
	free(e->party);
	free(e->flow);
	free(e->rule);
	xmlFreeDoc(e->doc);
}
