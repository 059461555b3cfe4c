// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 run=build/tools/telegram-selftest */
/* Limits of telegrams: each at its edge and one beyond it, and ways to hide from the counts. TAP. */
#include "telegram.h"

#include <libxml/parser.h>
#include <stdlib.h>

#include "say.h"
#include "../tests/tap.h"

#define HEAD	"<telegram xmlns=\"" TELEGRAM_NAMESPACE "\" version=\"1.0\" id=\"5\">"
#define TAIL	"</telegram>"

static char text[TELEGRAM_MOST + 4096];
static size_t size;

static void add(const char *what, unsigned int times)
{
	const size_t n = strlen(what);

	while (times--) {
		memcpy(text + size, what, n);
		size += n;
	}
}

static void begin(const char *what)
{
	size = 0;
	add(what, 1);
}

/* So many of @what, between what begins and what ends a telegram. */
static void make(const char *before, const char *what, unsigned int times, const char *after)
{
	begin(before);
	add(what, times);
	add(after, 1);
}

/* The scan's complaints have "byte", libxml2's have "line": a telegram that is refused is not parsed. */
static bool refused(const char *word)
{
	char why[WHY_SIZE] = "";
	uint64_t id = 7;
	xmlDoc *doc = telegram_parse(text, size, &id, why);

	xmlFreeDoc(doc);
	return !doc && !id && !strncmp(why, "byte ", 5) && strstr(why, word);
}

static bool passes(void)
{
	struct telegram_counts counts;
	char why[WHY_SIZE] = "";

	if (!telegram_scan(text, size, &counts, why))
		return true;
	printf("# %s\n", why);
	return false;
}

#define CONFIGURE	HEAD "<configure experiment=\"e\" run=\"1\"><detector>"
#define CONFIGURED	"</detector></configure>" TAIL
#define CONFIGURE_NODES	8	/* three elements, five attributes */

static void test_limits(void)
{
	static const struct {
		const char *title, *before, *what, *after, *word;
		unsigned int most;
	} limits[] = {
		{ "elements", CONFIGURE, "<to>a</to>", CONFIGURED, "elements, attributes",
		  TELEGRAM_NODES - CONFIGURE_NODES },
		{ "comments", CONFIGURE, "<!---->", CONFIGURED, "elements, attributes",
		  TELEGRAM_NODES - CONFIGURE_NODES },
		{ "name spaces", CONFIGURE, "<x:y xmlns:x='u' z='1'/>", CONFIGURED, "name spaces",
		  TELEGRAM_SPACES - 1 },
		{ "attributes", HEAD "<hello name=\"a\" role=\"observer\"", " a='1'", "/>" TAIL, "attributes",
		  TELEGRAM_ATTRIBUTES - 2 },
		{ "depth", HEAD "<configure experiment=\"e\" run=\"1\">", "<detector>", "<to/>", "deep",
		  TELEGRAM_DEPTH - 2 },
		{ "a name", HEAD "<", "a", "/>" TAIL, "name", TELEGRAM_NAME_BYTES },
		{ "a name of an attribute", HEAD "<arm ", "a", "=''/>" TAIL, "name", TELEGRAM_NAME_BYTES },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		make(limits[i].before, limits[i].what, limits[i].most, limits[i].after);
		ok(passes(), "limit-edge: %s: so many pass", limits[i].title);
		make(limits[i].before, limits[i].what, limits[i].most + 1, limits[i].after);
		ok(refused(limits[i].word), "limit-beyond: %s: one more is refused, and not parsed",
		   limits[i].title);
	}
	make(HEAD "<log>a", " ", TELEGRAM_MOST - strlen(HEAD "<log>a</log>" TAIL), "</log>" TAIL);
	ok(size == TELEGRAM_MOST && passes(), "longest-edge: the longest one passes");
	add(" ", 1);
	{
		struct telegram_counts counts;
		char why[WHY_SIZE];

		ok(telegram_scan(text, size, &counts, why) && strstr(why, "bytes"),
		   "longest-beyond: a byte more is refused");
	}
}

/* What libxml2 would read, and one who looks for quotes, comments and the like might not. */
static void test_hidden(void)
{
	static const struct {
		const char *title, *before, *after, *word;
	} hidden[] = {
		{ "plainly", "", "", "attributes" },
		{ "in a declaration", "<?xml >", "?>", "instruction" },
		{ "in an instruction", "<?x ", "?>", "instruction" },
		{ "in a DOCTYPE", "<!DOCTYPE a [", "]>", "DOCTYPE" },
		{ "behind a quote", "<a \"", "\">", "tag" },
		{ "in a value", "<a b='", "'/>", "tag" },
		{ "in an end", "</a ", ">", "tag" },
		{ "in a comment that libxml2 leaves", "<!-- \x01", "-->", "character" },
		{ "in CDATA that libxml2 leaves", "<a><![CDATA[\xed\xa0\x80", "]]></a>", "character" },
		{ "behind no character", "<a>\xef\xbf\xbf", "</a>", "character" },
		{ "behind an entity", "<a>&b;", "</a>", "entity" },
		{ "behind an entity in a tag", "<a &b;>", "</a>", "tag" },
		{ "behind an entity in a value", "<a b='&b;'>", "</a>", "entity" },
	};

	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		begin(hidden[i].before);
		add("<hello", 1);
		add(" a=''", 9000);
		add("/>", 1);
		add(hidden[i].after, 1);
		ok(refused(hidden[i].word), "hidden: attributes %s", hidden[i].title);
	}
	make(HEAD "<!-- <a b='&c;' ", "=", 9000, "--><arm/>" TAIL);
	ok(passes(), "comment: the content of a comment does not count");
	make("<?xml version='1.0'?>" HEAD "<log><![CDATA[<", "=&", 9000, "]]></log>" TAIL);
	ok(passes(), "cdata: nor does that of CDATA");
	begin("<?xml version='1.0' encoding='UTF-8'?>" HEAD "<log>&lt;&#60;&quot;\xf4\x8f\xbf\xbf</log>" TAIL);
	ok(passes(), "entities: entities that there are");
}

int main(void)
{
	test_limits();
	test_hidden();
	return tap_end();
}
