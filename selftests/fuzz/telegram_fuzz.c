// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Telegrams to a daemon, in any order and of any content: each has one answer, which is valid, or
 * waits for the child; and an experiment's file. The child is made up. libxml2 finds no more in a text
 * than was counted before, and nothing beyond the limits, whether it is XML or not.
 */
#include <assert.h>
#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct wire_peer peer = { .kind = WIRE_UNIX, .name = "fuzz" };
static unsigned int answers;

/* --- what is around requests.c and clients.c --- */

struct wire {
	int nothing;
};

const struct wire_peer *wire_other_end(const struct wire *wire)
{
	return &peer;
}

/* The other side must accept each sent telegram. */
int wire_send(struct wire *wire, const void *frame, size_t size, char *why)
{
	uint64_t id, re = 0;
	xmlDoc *doc = telegram_parse(frame, size, &id, why);

	if (!doc)
		fprintf(stderr, "%s\n%.*s\n", why, (int)size, (const char *)frame);
	assert(doc);
	attribute_number(xmlDocGetRootElement(doc), "re", &re);
	answers += re || !strcmp(element_name(telegram_content(doc)), "error");
	xmlFreeDoc(doc);
	return 0;
}

void wire_limit(struct wire *wire, uint32_t most)
{
}

void wire_close(struct wire *wire)
{
}

int run_configure(struct daemon *d, const xmlNode *configure, char *why)
{
	const xmlNode *settings = element_find(configure, "detector");

	if (!settings)
		return because(why, -1, "not a detector");
	xmlFreeDoc(d->configuration);
	d->configuration = xmlCopyDoc(configure->doc, 1);
	attribute(configure, "experiment", d->experiment, sizeof(d->experiment));
	attribute_number(configure, "run", &d->run);
	return 0;
}

void run_tell(struct daemon *d, const char *kind)
{
}

void run_tell_rate(struct daemon *d, double rate)
{
	assert(rate >= 0);
}

void run_stop(struct daemon *d)
{
}

void run_forget(struct daemon *d)
{
	xmlFreeDoc(d->configuration);
	d->configuration = NULL;
	*d->experiment = 0;
	d->state = IDLE;
}

void run_tell_ended(struct daemon *d, struct client *c)
{
}

void machine_tell(xmlNode *to, struct json_object *able)
{
}

int machine_write_register(uint64_t fpga, const char *window, uint64_t offset, uint64_t value,
			   char *why)
{
	return because(why, fpga & 1 ? -1 : 0, "window %s", window);
}

void counts_add(xmlNode *to, struct json_object *status)
{
}

void configured_add(xmlNode *to, struct json_object *configured)
{
}

/* --- findings of libxml2, also after errors --- */

static struct telegram_counts found;

static void on_element(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *space,
		       int spaces, const xmlChar **all_spaces, int attributes, int defaults,
		       const xmlChar **all_attributes)
{
	const xmlParserCtxt *context = data;
	const unsigned int here = spaces + attributes, depth = context->nameNr;

	found.nodes += 1 + here;
	found.spaces += spaces;
	found.attributes = here > found.attributes ? here : found.attributes;
	found.depth = depth > found.depth ? depth : found.depth;
	found.name = strlen((const char *)name) > found.name ? strlen((const char *)name) :
							      found.name;
}

static void on_comment(void *data, const xmlChar *value)
{
	found.nodes++;
}

static void look_behind_errors(const char *text, size_t size)
{
	struct telegram_counts counts;
	xmlParserCtxt *context;
	char why[WHY_SIZE];

	if (telegram_scan(text, size, &counts, why)) {
		assert(*why);
		return;
	}
	context = xmlNewParserCtxt();
	assert(context);
	found = (struct telegram_counts) {};
	context->sax->startElementNs = on_element;
	context->sax->endElementNs = NULL;
	context->sax->characters = context->sax->ignorableWhitespace = NULL;
	context->sax->comment = on_comment;
	context->sax->error = context->sax->warning = NULL;
	xmlFreeDoc(xmlCtxtReadMemory(context, text, size, NULL, "UTF-8", XML_PARSE_NONET |
				     XML_PARSE_IGNORE_ENC | XML_PARSE_NOCDATA | XML_PARSE_RECOVER |
				     XML_PARSE_NOERROR | XML_PARSE_NOWARNING));
	xmlFreeParserCtxt(context);
	assert(found.nodes <= counts.nodes && counts.nodes <= TELEGRAM_NODES);
	assert(found.attributes <= counts.attributes && counts.attributes <= TELEGRAM_ATTRIBUTES);
	assert(found.spaces <= counts.spaces && counts.spaces <= TELEGRAM_SPACES);
	assert(found.name <= counts.name && counts.name <= TELEGRAM_NAME_BYTES);
	/* the last one may be empty */
	assert(found.depth <= counts.depth + 1 && counts.depth <= TELEGRAM_DEPTH);
}

/* --- telegrams --- */

static const char * const known[] = {
	"<hello name=\"%s\" role=\"leader\"/>", "<hello name=\"a\" role=\"observer\" interval=\"1\"/>",
	"<hello name=\"a\" role=\"leader\" experiment=\"%s\" take-over=\"true\"/>",
	"<get-capabilities/>", "<get-status/>", "<arm/>", "<start/>", "<pause/>", "<resume/>",
	"<set-rate>%s</set-rate>", "<stop/>", "<reset/>", "<bye/>", "<log>%s</log>",
	"<configure experiment=\"e\" run=\"1\"><detector><bunch>%s</bunch></detector></configure>",
	"<configure experiment=\"%s\" run=\"1\" orphan=\"stop\"><detector/></configure>",
	"<configure experiment=\"e\" run=\"1\"><detector>%s</detector></configure>",
	"<write-register fpga=\"%s\" window=\"w\" offset=\"0\" value=\"1\"/>", "%s",
};

#define MUCH	49152	/* bytes: more elements than may be */

/* Much of the same: 64 times what the first byte says, or what MUCH has room for. */
static char *many(uint8_t which, const char *what)
{
	static const char * const forms[][3] = {
		{ "<hello ", "/>" }, { "<configure experiment='e' run='1'><detector>", "</detector></configure>" },
		{ "<a:", "/>" }, { "", "" }, { "<log>", "</log>" }, { "<a b='", "'/>" }, { "<!--", "-->" },
	};
	const char *const *form = forms[which % (sizeof(forms) / sizeof(forms[0]))];
	const size_t size = *what ? strlen(what + 1) : 0, times = (uint8_t)*what * 64;
	char *text = malloc(MUCH + 512), *at = text;

	if (!text)
		abort();
	at = stpcpy(text, form[0]);
	for (size_t i = 0; size && i < times && (i + 1) * size < MUCH; i++)
		at = stpcpy(at, what + 1);
	strcpy(at, form[1]);
	return text;
}

static char *telegram(uint8_t which, const char *what, unsigned int id)
{
	const char *form = known[which % (sizeof(known) / sizeof(known[0]))];
	const char *at = strstr(form, "%s");
	char *content, *whole;

	if (asprintf(&content, "%.*s%s%s", at ? (int)(at - form) : (int)strlen(form), form,
		     at ? what : "", at ? at + 2 : "") < 0 ||
	    asprintf(&whole, "<telegram xmlns=\"urn:rashpa:1\" version=\"1.0\" id=\"%u\">%s</telegram>",
		     id, content) < 0)
		abort();
	free(content);
	return whole;
}

/* The child has answered what waits for it, or has ended. */
static void go_on(struct daemon *d, bool well)
{
	static const enum state next[STATES] = {
		[CONFIGURING] = CONFIGURED, [ARMING] = ARMED, [PAUSING] = PAUSED,
		[STOPPING] = ENDED,
	};

	if (!next[d->state])
		return;
	d->state = well ? next[d->state] : d->state == CONFIGURING ? IDLE : ENDED;
	d->pending = (struct pending) {};
}

static void ask(struct daemon *d, struct client *c, const char *text, size_t size)
{
	const enum state before = d->state;

	look_behind_errors(text, size);
	answers = 0;
	d->pending = (struct pending) {};
	request(d, c, text, size);
	assert(answers + (d->pending.client != 0) == 1);
	assert(d->state < STATES && (before == d->state || d->leader));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct daemon_options options = {};
	struct wire wire;
	struct daemon d = { .options = &options, .detector = true };
	char why[WHY_SIZE];
	unsigned int id = 1, much = 0;
	xmlDoc *doc;

	peer.uid = geteuid();
	for (unsigned int i = 0; i < 2; i++)
		d.client[i] = (struct client) { .wire = &wire, .number = i + 1 };
	/* WHICH, LENGTH, the text of it; the highest bits say who, and what the child does then */
	while (size >= 2) {
		const uint8_t which = data[0];
		const size_t n = data[1] < size - 2 ? data[1] : size - 2;
		char *what = strndup((const char *)data + 2, n), *text;

		/* once, or it takes seconds */
		if ((which & 0x1f) > 24 && !much++) {
			text = many(which & 0x1f, what);
			free(what);
			what = text;
		}
		text = telegram(which & 0x1f, what, id++);
		ask(&d, &d.client[which >> 7], text, strlen(text));
		if (which & 0x40)
			go_on(&d, which & 0x20);
		free(text);
		/* as it came: nothing around it */
		ask(&d, &d.client[which >> 7], what, strlen(what));
		free(what);
		data += 2 + n;
		size -= 2 + n;
	}
	doc = telegram_read((const char *)data, size, "experiment", why);
	xmlFreeDoc(doc);
	run_forget(&d);
	return 0;
}
