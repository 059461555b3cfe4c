/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Telegrams and experiments as XML. Received text is checked with the schema (rashpa.xsd), which is
 * part of the program. DOCTYPE is refused, so nothing is expanded or fetched. One thread.
 */
#ifndef TELEGRAM_H
#define TELEGRAM_H

#include <libxml/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TELEGRAM_NAMESPACE	"urn:rashpa:1"
#define TELEGRAM_VERSION	"1.0"
#define TELEGRAM_DEPTH		16	/* nested elements */
#define TELEGRAM_NAME		64	/* a name, with its end */

/*
 * Limits of a telegram, checked before it is parsed. The longest ones of the schema (256 buffers,
 * or 64 links of 16 counts) have less than a third of these nodes. A telegram at its limits takes
 * milliseconds.
 */
#define TELEGRAM_MOST		(1u << 20)	/* bytes, as for a frame */
#define TELEGRAM_ASKED		8192		/* bytes, from a manager that does not lead */
#define TELEGRAM_NODES		8192		/* elements, attributes, comments, CDATA sections */
#define TELEGRAM_ATTRIBUTES	64		/* in an element, with its name spaces */
#define TELEGRAM_SPACES		256		/* declarations of name spaces */
#define TELEGRAM_NAME_BYTES	256		/* in a name, with its prefix */

/* The text of the schema. */
extern const char telegram_schema[];

/**
 * struct telegram_counts - contents of a text, counted before it is parsed
 * @nodes: elements, attributes, comments and CDATA sections
 * @attributes: most attributes of one element
 * @spaces: declarations of name spaces
 * @depth: deepest nesting of elements, without empty ones (``<a/>``)
 * @name: bytes of the longest name
 */
struct telegram_counts {
	unsigned int nodes, attributes, spaces, depth;
	size_t name;
};

/**
 * telegram_scan() - check that a text keeps the limits above
 * @text: untrusted bytes
 * @size: number of bytes
 * @counts: filled in, up to the place where the text was refused
 * @why: WHY_SIZE bytes, for the place and the limit
 *
 * Takes time that grows with @size only, and no memory. libxml2 finds no more than is counted here,
 * whether the text is XML or not.
 *
 * Return: 0, or -1 and @why
 */
int telegram_scan(const char *text, size_t size, struct telegram_counts *counts, char *why);

/*
 * A document of the schema with the root @root. NULL: why[WHY_SIZE] names the line and the error.
 */
xmlDoc *telegram_read(const char *text, size_t size, const char *root, char *why);

/*
 * A telegram, valid, and within the limits. Its content is the first element of the root. NULL:
 * why; *id is then the telegram's id if it could be read, else 0 (for example beyond a limit).
 */
xmlDoc *telegram_parse(const char *text, size_t size, uint64_t *id, char *why);
xmlNode *telegram_content(xmlDoc *doc);

/* For valid documents only. */
const char *element_name(const xmlNode *node);
xmlNode *element_first(const xmlNode *parent);	/* NULL: none */
xmlNode *element_next(const xmlNode *node);
xmlNode *element_find(const xmlNode *parent, const char *name);
bool element_ours(const xmlNode *node);		/* in our name space */
/* text between its tags, or "": copied, and cut if it does not fit */
const char *element_text(const xmlNode *node, char *to, size_t size);
/* the same, as long as it is; free() it */
char *element_text_whole(const xmlNode *node);
/* "": no such attribute */
const char *attribute(const xmlNode *node, const char *name, char *to, size_t size);
/* false: no such attribute, or beyond 64 bits */
bool attribute_number(const xmlNode *node, const char *name, uint64_t *value);
bool attribute_is(const xmlNode *node, const char *name, const char *value);

/* Escape text of programs, files and other machines as a line (shown.h); cut if it does not fit. */
char *text_line(char *to, size_t size, const char *text);

/* A telegram to be sent; re: id that it answers, or 0. xmlFreeDoc() it. */
xmlDoc *telegram_new(const char *name, uint64_t id, uint64_t re, xmlNode **content);
xmlNode *element_add(xmlNode *parent, const char *name);
void element_set(xmlNode *node, const char *text);
void attribute_add(xmlNode *node, const char *name, const char *value);
void attribute_add_number(xmlNode *node, const char *name, uint64_t value);
void attributes_copy(xmlNode *to, const xmlNode *from);
/* A line of text for people, without control characters, cut to a limit. */
void element_set_line(xmlNode *node, const char *text);
void attribute_add_line(xmlNode *node, const char *name, const char *text);
/* Copies elements of other name spaces. */
void elements_keep(xmlNode *to, const xmlNode *from);

/* free() it; NULL: no memory */
char *telegram_write(xmlDoc *doc, size_t *size);

#endif /* TELEGRAM_H */
