// SPDX-License-Identifier: LGPL-2.1-or-later
/* test: tier=check seconds=1 run=build/tools/telegram-selftest */
/* Limits of telegrams: each at its edge and one beyond it, and ways to hide from the counts; files of experiments. TAP. */
#include "link/telegram.h"

#include <libxml/parser.h>
#include <stdlib.h>

#include "common/say.h"
#include "tests/tap.h"

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

/* A telegram that contains @what repeatedly. */
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

/* Texts that libxml2 would count, but that a naive scan of quotes and comments would miss. */
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

/* A DOCTYPE anywhere, and too deep nesting, are refused before libxml2 sees the telegram. */
static void test_before_parsing(void)
{
	static const struct {
		const char *title, *before, *after;
	} doctypes[] = {
		{ "alone", "<!DOCTYPE telegram>", HEAD "<arm/>" TAIL },
		{ "with entities", "<!DOCTYPE telegram [<!ENTITY a 'b'>]>", HEAD "<arm/>" TAIL },
		{ "that names a file", "<!DOCTYPE telegram SYSTEM 'file:///etc/passwd'>", HEAD "<arm/>" TAIL },
		{ "with a public identifier", "<!DOCTYPE telegram PUBLIC '-' 'http://[::1]/'>", HEAD "<arm/>" TAIL },
		{ "after a declaration", "<?xml version='1.0'?>\n<!DOCTYPE telegram>", HEAD "<arm/>" TAIL },
		{ "after a comment", "<!-- <a '> --> <!DOCTYPE telegram>", HEAD "<arm/>" TAIL },
		{ "that has no end", "<!DOCTYPE telegram [", HEAD "<arm/>" TAIL },
		{ "inside", HEAD, "<!DOCTYPE telegram><arm/>" TAIL },
		{ "at the end", HEAD "<arm/>" TAIL, "<!DOCTYPE telegram>" },
		{ "in small letters", "<!doctype telegram>", HEAD "<arm/>" TAIL },
		{ "as an entity only", HEAD, "<!ENTITY a 'b'><arm/>" TAIL },
	};

	for (size_t i = 0; i < sizeof(doctypes) / sizeof(doctypes[0]); i++) {
		begin(doctypes[i].before);
		add(doctypes[i].after, 1);
		ok(refused("DOCTYPE"), "doctype: %s", doctypes[i].title);
	}
	begin(CONFIGURE);
	add("<x:y xmlns:x='u'>", TELEGRAM_DEPTH - 3);
	add("<x:y xmlns:x='u'/>", 1);
	add("</x:y>", TELEGRAM_DEPTH - 3);
	add(CONFIGURED, 1);
	ok(passes(), "deep-edge: elements of others that are as deep as may be");
	make(CONFIGURE, "<x:y xmlns:x='u'>", TELEGRAM_DEPTH - 2, CONFIGURED);
	ok(refused("deep"), "deep-beyond: one deeper is refused, and not parsed");
}

#define EXPERIMENT	"<experiment xmlns=\"" TELEGRAM_NAMESPACE "\" version=\"1.0\" name=\"e\">"	\
			"<detector name=\"d\" at=\"unix:/d\"/><receiver name=\"r\" at=\"unix:/r\"/>"	\
			"<flow from=\"d\" to=\"r\" transport=\"udp\" address=\"127.0.0.1:5001\"/>"

/* Files of experiments, which may be larger than telegrams, are not scanned. */
static void test_experiment(void)
{
	static const struct {
		const char *title, *before, *word;
		unsigned int depth;
	} files[] = {
		{ "a right one", "", NULL, 0 },
		{ "with a DOCTYPE", "<!DOCTYPE experiment>", "DOCTYPE", 0 },
		{ "with an entity", "<!DOCTYPE experiment [<!ENTITY a 'b'>]>", "DOCTYPE", 0 },
		{ "that names a file", "<!DOCTYPE experiment SYSTEM 'file:///dev/zero'>", "DOCTYPE", 0 },
		{ "deeper than a telegram", "", NULL, 10 * TELEGRAM_DEPTH },
		{ "deeper than libxml2 goes", "", "depth", 10000 },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		char why[WHY_SIZE] = "";
		xmlDoc *doc;

		begin(files[i].before);
		add(EXPERIMENT, 1);
		add("<y xmlns='u'>", files[i].depth);
		add("</y>", files[i].depth);
		add("</experiment>", 1);
		doc = telegram_read(text, size, "experiment", why);
		if (!ok(files[i].word ? !doc && strstr(why, files[i].word) : !!doc, "experiment: %s",
			files[i].title))
			printf("# it says \"%s\"\n", why);
		xmlFreeDoc(doc);
	}
}

int main(void)
{
	test_limits();
	test_hidden();
	test_before_parsing();
	test_experiment();
	return tap_end();
}
