// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One pass over a telegram before libxml2 parses it, since libxml2 takes quadratic time for some
 * texts. The counts are never smaller than those of libxml2, which also reads on after an error.
 * So it is strict where the two could disagree: all characters are those of XML, and no "<" is in
 * a tag.
 */
#include "link/telegram.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/say.h"

struct scan {
	const char *text, *at, *end;
	struct telegram_counts *n;
	unsigned int depth;
	char *why;
};

/* Name the place as well, in bytes; libxml2 only reports lines. */
__attribute__((format(printf, 2, 3)))
static bool refuse(const struct scan *s, const char *format, ...)
{
	char reason[WHY_SIZE / 2];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	because(s->why, -1, "byte %zu: %s", (size_t)(s->at - s->text), reason);
	return false;
}

/* Bytes of a character in UTF-8; 0: not a character of XML. */
static unsigned int character(const unsigned char *c, size_t left)
{
	const unsigned int more = c[0] < 0x80 ? 0 : c[0] < 0xe0 ? 1 : c[0] < 0xf0 ? 2 : 3;
	uint32_t value = more ? c[0] & (0x3f >> more) : c[0];
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };

	if (more >= left || (c[0] >= 0x80 && c[0] < 0xc0) || c[0] >= 0xf8)
		return 0;
	for (unsigned int i = 1; i <= more; i++) {
		if ((c[i] & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (c[i] & 0x3f);
	}
	if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000) ||
	    value == 0xfffe || value == 0xffff ||
	    (value < ' ' && value != '\t' && value != '\n' && value != '\r'))
		return 0;
	return more + 1;
}

static bool characters(struct scan *s)
{
	for (s->at = s->text; s->at < s->end;) {
		const unsigned int n = character((const unsigned char *)s->at, s->end - s->at);

		if (!n)
			return refuse(s, "a character is not one of XML in UTF-8");
		s->at += n;
	}
	s->at = s->text;
	return true;
}

static bool begins(const struct scan *s, const char *word)
{
	const size_t n = strlen(word);

	return (size_t)(s->end - s->at) >= n && !memcmp(s->at, word, n);
}

/* Goes past this word, or to the end, where libxml2 misses the word. */
static bool skip_to(struct scan *s, const char *word)
{
	const char *found = memmem(s->at, s->end - s->at, word, strlen(word));

	s->at = found ? found + strlen(word) : s->end;
	return true;
}

static bool another_node(struct scan *s)
{
	if (++s->n->nodes <= TELEGRAM_NODES)
		return true;
	return refuse(s, "it has more than %u elements, attributes and comments", TELEGRAM_NODES);
}

static bool another_attribute(struct scan *s, unsigned int *attributes)
{
	if (++*attributes > s->n->attributes)
		s->n->attributes = *attributes;
	if (*attributes > TELEGRAM_ATTRIBUTES)
		return refuse(s, "an element has more than %u attributes", TELEGRAM_ATTRIBUTES);
	return another_node(s);
}

/* A name of an element or an attribute, or the text in its place. */
static bool name(struct scan *s)
{
	const char *begin = s->at;
	size_t size;

	while (s->at < s->end && !strchr(" \t\r\n=/>\"'<", *s->at))
		s->at++;
	size = s->at - begin;
	if (size > s->n->name)
		s->n->name = size;
	if (size > TELEGRAM_NAME_BYTES)
		return refuse(s, "a name has more than %u bytes", TELEGRAM_NAME_BYTES);
	if (size >= 5 && !memcmp(begin, "xmlns", 5) && ++s->n->spaces > TELEGRAM_SPACES)
		return refuse(s, "it declares more than %u name spaces", TELEGRAM_SPACES);
	return true;
}

/* Without a DOCTYPE there are five entities, and characters by number; others take libxml2 long. */
static bool references(struct scan *s, const char *from, const char *to)
{
	static const char * const known[] = { "&#", "&amp;", "&apos;", "&gt;", "&lt;", "&quot;" };
	size_t i;

	while ((s->at = memchr(from, '&', to - from))) {
		for (i = 0; i < sizeof(known) / sizeof(known[0]) && !begins(s, known[i]);)
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
			return refuse(s, "a \"&\" begins no known entity");
		from = s->at + 1;
	}
	s->at = to;
	return true;
}

/* A value in quotes, or the whole rest. */
static bool value(struct scan *s)
{
	const char quote = *s->at++, *const begin = s->at;

	while (s->at < s->end && *s->at != quote && *s->at != '<')
		s->at++;
	if (s->at < s->end && *s->at == '<')
		return refuse(s, "a \"<\" is in a tag");
	if (!references(s, begin, s->at))
		return false;
	s->at += s->at < s->end;
	return true;
}

/* From after its "<" or "</" to its ">". */
static bool tag(struct scan *s, bool ends)
{
	unsigned int attributes = 0;

	while (s->at < s->end && *s->at != '>') {
		switch (*s->at) {
		case '<':
		case '&':
			return refuse(s, "a \"%c\" is in a tag", *s->at);
		case '"':
		case '\'':
			if (!value(s))
				return false;
			break;
		case '=':
			if (!another_attribute(s, &attributes))
				return false;
			s->at++;
			break;
		case ' ': case '\t': case '\r': case '\n': case '/':
			s->at++;
			break;
		default:
			if (!name(s))
				return false;
		}
	}
	if (ends)
		s->depth -= s->depth > 0;
	else if (s->at < s->end && s->at[-1] != '/' && ++s->depth > s->n->depth)
		s->n->depth = s->depth;
	if (s->depth > TELEGRAM_DEPTH)
		return refuse(s, "elements are nested too deeply");
	s->at += s->at < s->end;
	return true;
}

/* The declaration stands at the beginning; other instructions are refused. */
static bool instruction(struct scan *s)
{
	const char *close = memchr(s->at, '>', s->end - s->at);

	if (s->at != s->text || !begins(s, "<?xml ") || !close || close[-1] != '?' ||
	    memchr(s->at + 1, '<', close - s->at - 1))
		return refuse(s, "a processing instruction is not allowed");
	s->at = close + 1;
	return true;
}

/* Text up to the next "<"; false: this was the last one, or the text is refused. */
static bool text_before(struct scan *s, bool *good)
{
	const char *next = memchr(s->at, '<', s->end - s->at);

	*good = references(s, s->at, next ? next : s->end);
	return *good && next;
}

static bool markup(struct scan *s)
{
	if (begins(s, "<?"))
		return instruction(s);
	if (begins(s, "</")) {
		s->at += 2;
		return tag(s, true);
	}
	if (!another_node(s))
		return false;
	if (begins(s, "<!--")) {
		s->at += 4;
		return skip_to(s, "-->");
	}
	if (begins(s, "<![CDATA[")) {
		s->at += 9;
		return skip_to(s, "]]>");
	}
	if (begins(s, "<!"))
		return refuse(s, "a DOCTYPE is not allowed");
	s->at++;
	return tag(s, false);
}

int telegram_scan(const char *text, size_t size, struct telegram_counts *counts, char *why)
{
	struct scan s = { .text = text, .end = text + size, .n = counts, .why = why };
	bool good;

	*counts = (struct telegram_counts){};
	if (size > TELEGRAM_MOST)
		return because(why, -1, "it has more than %u bytes", TELEGRAM_MOST);
	if (!characters(&s))
		return -1;
	while (text_before(&s, &good)) {
		if (!markup(&s))
			return -1;
	}
	return good ? 0 : -1;
}
