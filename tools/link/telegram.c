// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/telegram.h"

#include <errno.h>
#include <inttypes.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/say.h"
#include "common/shown.h"

#define LINE_MOST	1000	/* characters of "line" in the schema */

/* The assembler includes the file unchanged. */
__asm__(".section .rodata\n"
	".global telegram_schema\n"
	"telegram_schema:\n"
	".incbin \"" TELEGRAM_SCHEMA "\"\n"
	".byte 0\n"
	".previous\n");

/* --- what is wrong --- */

/* The first error of libxml2; the others follow from it. */
struct complaint {
	char text[WHY_SIZE];
	int line;
};

/* libxml2's sentence, without our name space in each name and without the line's end */
static void complain(struct complaint *c, const char *message, int line)
{
	static const char space[] = "{" TELEGRAM_NAMESPACE "}";
	size_t n = 0;

	if (*c->text)
		return;
	c->line = line;
	for (; *message && n < sizeof(c->text) - 1; message++) {
		if (!strncmp(message, space, strlen(space)))
			message += strlen(space);
		c->text[n++] = (unsigned char)*message < ' ' ? ' ' : *message;
	}
	while (n && c->text[n - 1] == ' ')
		n--;
	c->text[n] = 0;
}

/* libxml2 gave its error another type in 2.12. */
#if LIBXML_VERSION >= 21200
#define CONST const
#else
#define CONST
#endif

static void on_error(void *data, CONST struct _xmlError *error)
{
	if (error->level < XML_ERR_ERROR)
		return;
	complain(data, error->message ? error->message : "it cannot be read", error->line);
}

/* A parser's data are the parser. */
static void on_parse_error(void *data, CONST struct _xmlError *error)
{
	xmlParserCtxt *context = data;

	on_error(context->_private, error);
}

static void *blame(struct complaint *c, char *why)
{
	because(why, -1, "line %d: %.600s", c->line, *c->text ? c->text : "no memory");
	return NULL;
}

/* --- reading --- */

static xmlSchema *schema(struct complaint *c)
{
	static xmlSchema *parsed;
	xmlSchemaParserCtxt *context;

	if (parsed)
		return parsed;
	context = xmlSchemaNewMemParserCtxt(telegram_schema,
					    strlen(telegram_schema));
	if (!context)
		return NULL;
	xmlSchemaSetParserStructuredErrors(context, on_error, c);
	parsed = xmlSchemaParse(context);
	xmlSchemaFreeParserCtxt(context);
	return parsed;
}

/*
 * A DOCTYPE permits entities, which grow, and files, which are fetched. Needed for files of
 * experiments only: the scan refuses it in telegrams.
 */
static void no_doctype(void *data, const xmlChar *name, const xmlChar *external,
		       const xmlChar *system)
{
	xmlParserCtxt *context = data;

	(void)name;
	(void)external;
	(void)system;
	complain(context->_private, "a DOCTYPE is not allowed", context->input->line);
	xmlStopParser(context);
}

static xmlDoc *parse(const char *text, size_t size, struct complaint *c)
{
	xmlParserCtxt *context = xmlNewParserCtxt();
	xmlDoc *doc;

	if (!context)
		return NULL;
	context->sax->internalSubset = no_doctype;
	context->sax->serror = on_parse_error;
	context->_private = c;
	doc = xmlCtxtReadMemory(context, text, size, NULL, "UTF-8",
				XML_PARSE_NONET | XML_PARSE_IGNORE_ENC | XML_PARSE_NOCDATA);
	xmlFreeParserCtxt(context);
	if (doc && *c->text) {
		xmlFreeDoc(doc);
		return NULL;
	}
	return doc;
}

static bool valid(xmlDoc *doc, struct complaint *c)
{
	xmlSchema *by = schema(c);
	xmlSchemaValidCtxt *context = by ? xmlSchemaNewValidCtxt(by) : NULL;
	int result;

	if (!context)
		return false;
	xmlSchemaSetValidStructuredErrors(context, on_error, c);
	result = xmlSchemaValidateDoc(context, doc);
	xmlSchemaFreeValidCtxt(context);
	return !result;
}

static xmlDoc *read_any(const char *text, size_t size, const char *root, uint64_t *id, char *why)
{
	struct complaint c = {};
	const xmlNode *top;
	xmlDoc *doc;

	doc = parse(text, size, &c);
	if (!doc)
		return blame(&c, why);
	top = xmlDocGetRootElement(doc);
	if (id && top && !strcmp(element_name(top), root))
		attribute_number(top, "id", id);
	if (!top || strcmp(element_name(top), root) || !element_ours(top))
		complain(&c, "the root is not of the name space " TELEGRAM_NAMESPACE
			 ", or not what is expected here", top ? top->line : 1);
	else if (valid(doc, &c))
		return doc;
	xmlFreeDoc(doc);
	return blame(&c, why);
}

xmlDoc *telegram_read(const char *text, size_t size, const char *root, char *why)
{
	return read_any(text, size, root, NULL, why);
}

xmlDoc *telegram_parse(const char *text, size_t size, uint64_t *id, char *why)
{
	struct telegram_counts counts;

	*id = 0;
	if (telegram_scan(text, size, &counts, why))
		return NULL;
	return read_any(text, size, "telegram", id, why);
}

xmlNode *telegram_content(xmlDoc *doc)
{
	return element_first(xmlDocGetRootElement(doc));
}

/* --- elements --- */

const char *element_name(const xmlNode *node)
{
	return (const char *)node->name;
}

static xmlNode *element_from(xmlNode *node)
{
	while (node && node->type != XML_ELEMENT_NODE)
		node = node->next;
	return node;
}

xmlNode *element_first(const xmlNode *parent)
{
	return element_from(parent->children);
}

xmlNode *element_next(const xmlNode *node)
{
	return element_from(node->next);
}

bool element_ours(const xmlNode *node)
{
	return node->ns && !strcmp((const char *)node->ns->href, TELEGRAM_NAMESPACE);
}

xmlNode *element_find(const xmlNode *parent, const char *name)
{
	xmlNode *node = element_first(parent);

	while (node && (strcmp(element_name(node), name) || !element_ours(node)))
		node = element_next(node);
	return node;
}

char *element_text_whole(const xmlNode *node)
{
	xmlChar *content = xmlNodeGetContent(node);
	char *copy = content ? strdup((const char *)content) : NULL;

	xmlFree(content);
	return copy;
}

char *text_line(char *to, size_t size, const char *text)
{
	char line[SHOWN_SIZE];
	size_t n = 0;

	for (; *text && n < sizeof(line) - 1; text++)
		line[n++] = strchr("\t\n\r", *text) ? ' ' : *text;
	line[n] = '\0';
	return show_text(to, size, line);
}

static const char *take(xmlChar *from, char *to, size_t size)
{
	text_line(to, size, from ? (const char *)from : "");
	xmlFree(from);
	return to;
}

const char *element_text(const xmlNode *node, char *to, size_t size)
{
	return take(xmlNodeGetContent(node), to, size);
}

const char *attribute(const xmlNode *node, const char *name, char *to, size_t size)
{
	return take(xmlGetNoNsProp(node, (const xmlChar *)name), to, size);
}

bool attribute_number(const xmlNode *node, const char *name, uint64_t *value)
{
	char text[32], *end;
	unsigned long long number;

	attribute(node, name, text, sizeof(text));
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || *end)
		return false;
	*value = number;
	return true;
}

bool attribute_is(const xmlNode *node, const char *name, const char *value)
{
	char text[TELEGRAM_NAME];

	return !strcmp(attribute(node, name, text, sizeof(text)), value);
}

/* --- writing --- */

xmlDoc *telegram_new(const char *name, uint64_t id, uint64_t re, xmlNode **content)
{
	xmlDoc *doc = xmlNewDoc((const xmlChar *)"1.0");
	xmlNode *root = xmlNewDocNode(doc, NULL, (const xmlChar *)"telegram", NULL);

	xmlSetNs(root, xmlNewNs(root, (const xmlChar *)TELEGRAM_NAMESPACE, NULL));
	xmlDocSetRootElement(doc, root);
	attribute_add(root, "version", TELEGRAM_VERSION);
	attribute_add_number(root, "id", id);
	if (re)
		attribute_add_number(root, "re", re);
	*content = element_add(root, name);
	return doc;
}

xmlNode *element_add(xmlNode *parent, const char *name)
{
	return xmlNewChild(parent, parent->ns, (const xmlChar *)name, NULL);
}

void element_set(xmlNode *node, const char *text)
{
	xmlNodeAddContent(node, (const xmlChar *)text);
}

void attribute_add(xmlNode *node, const char *name, const char *value)
{
	xmlNewProp(node, (const xmlChar *)name, (const xmlChar *)value);
}

void attribute_add_number(xmlNode *node, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	attribute_add(node, name, text);
}

void attributes_copy(xmlNode *to, const xmlNode *from)
{
	to->properties = xmlCopyPropList(to, from->properties);
}

/* The schema requires text there. */
static void line_of(const char *text, char to[static LINE_MOST])
{
	text_line(to, LINE_MOST, *text ? text : "-");
}

void element_set_line(xmlNode *node, const char *text)
{
	char line[LINE_MOST];

	line_of(text, line);
	element_set(node, line);
}

void attribute_add_line(xmlNode *node, const char *name, const char *text)
{
	char line[LINE_MOST];

	line_of(text, line);
	attribute_add(node, name, line);
}

void elements_keep(xmlNode *to, const xmlNode *from)
{
	for (xmlNode *node = element_first(from); node; node = element_next(node)) {
		if (!element_ours(node))
			xmlAddChild(to, xmlDocCopyNode(node, to->doc, 1));
	}
}

char *telegram_write(xmlDoc *doc, size_t *size)
{
	xmlChar *text = NULL;
	int n = 0;

	xmlDocDumpMemoryEnc(doc, &text, &n, "UTF-8");
	*size = n;
	return (char *)text;
}
