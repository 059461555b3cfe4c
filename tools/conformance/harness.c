// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs tests, and tells of them: TAP, or JSON at the end. */
#include "dtp.h"

#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool failed;

static char skipped[256];		/* why; empty: it is not */
static struct run *running;
static struct json_object *said, *results;

uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uint64_t patience_us(void)
{
	uint64_t us = (2000000ull + board.stop_time) * board.slowness * running->patience;

	return failed ? us / 20 : us;
}

void pass_us(uint64_t us)
{
	uint64_t ticks = us * board.tick_rate / 1000000, begin = rd64(RFPGA_TICKS);
	uint64_t end = now_us() + patience_us() + us * board.slowness;

	while (rd64(RFPGA_TICKS) - begin < ticks) {
		if (now_us() > end) {
			wrong(__FILE__, __LINE__, "TICKS stands still");
			return;
		}
		usleep(100);
	}
}

static void tell(const char *text)
{
	if (running->json)
		json_object_array_add(said, json_object_new_string(text));
	else
		printf("# %s\n", text);
}

void wrong(const char *file, int line, const char *fmt, ...)
{
	const char *name = strrchr(file, '/');
	char text[512];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "%s:%d: ", name ? name + 1 : file, line);
	va_start(args, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
	va_end(args);
	tell(text);
	failed = true;
}

void note(const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	tell(text);
}

void die(const char *fmt, ...)
{
	FILE *to = running && running->json ? stderr : stdout;
	va_list args;

	va_start(args, fmt);
	fprintf(to, "Bail out! ");
	vfprintf(to, fmt, args);
	fprintf(to, "\n");
	va_end(args);
	exit(2);
}

void skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(skipped, sizeof(skipped), fmt, args);
	va_end(args);
}

static void find_lack(const struct test *test)
{
	static const char * const features[32] = {
		"MSIX", "LOCK", NULL, "FREERUN", "FLUSH", "GROUP", "DROP", "META",
	};
	uint32_t lacking = test->features & ~board.features;
	unsigned int bit;

	for (bit = 0; lacking; bit++, lacking >>= 1)
		if (lacking & 1) {
			skip("the board has no %s", features[bit] ? features[bit] : "such feature");
			return;
		}
	if (board.dtps < test->dtps)
		skip("needs %u DTPs, the board has %u", test->dtps, board.dtps);
	else if (board.vectors < test->vectors)
		skip("needs %u interrupt vectors, the board has %u", test->vectors, board.vectors);
	else if (board.entries < test->entries)
		skip("needs %u entries, the board has %u", test->entries, board.entries);
	else if (board.shown < test->memory)
		skip("needs %llu bytes of on-board memory, BAR 4 shows %llu",
		     (unsigned long long)test->memory, (unsigned long long)board.shown);
}

bool chosen(const struct run *run, const struct suite *suite, const struct test *test)
{
	const size_t length = strlen(suite->name);
	char * const *name;

	if (!run->names || !*run->names)
		return true;
	for (name = run->names; *name; name++) {
		if (!strcmp(*name, suite->name))
			return true;
		if (!strncmp(*name, suite->name, length) && (*name)[length] == '/' &&
		    !strcmp(*name + length + 1, test->name))
			return true;
	}
	return false;
}

static void tell_result(const struct suite *suite, const struct test *test, double seconds)
{
	unsigned int number = running->passed + running->failed + running->skipped;
	const char *result = failed ? "failed" : *skipped ? "skipped" : "passed";
	struct json_object *o;
	char name[128];

	snprintf(name, sizeof(name), "%s/%s", suite->name, test->name);
	if (!running->json) {
		printf("%s %u - %s: %s%s%s\n", failed ? "not ok" : "ok", number, name,
		       test->title, *skipped ? " # SKIP " : "", skipped);
		return;
	}
	o = json_object_new_object();
	json_object_object_add(o, "name", json_object_new_string(name));
	json_object_object_add(o, "title", json_object_new_string(test->title));
	json_object_object_add(o, "result", json_object_new_string(result));
	if (*skipped)
		json_object_object_add(o, "reason", json_object_new_string(skipped));
	json_object_object_add(o, "said", said);
	json_object_object_add(o, "seconds", json_object_new_double(seconds));
	json_object_array_add(results, o);
}

static void run_test(const struct suite *suite, const struct test *test)
{
	uint64_t begin = now_us();

	failed = false;
	*skipped = '\0';
	if (running->json)
		said = json_object_new_array();
	find_lack(test);
	if (!*skipped) {
		fresh();
		test->run();
	}
	if (failed)
		*skipped = '\0';
	running->failed += failed;
	running->skipped += !!*skipped;
	running->passed += !failed && !*skipped;
	tell_result(suite, test, (double)(now_us() - begin) / 1e6);
}

static void tell_all(void)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "target", json_object_new_string(running->target));
	json_object_object_add(o, "tests", results);
	json_object_object_add(o, "passed", json_object_new_int((int)running->passed));
	json_object_object_add(o, "failed", json_object_new_int((int)running->failed));
	json_object_object_add(o, "skipped", json_object_new_int((int)running->skipped));
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_SPACED));
	json_object_put(o);
}

void run_tests(struct run *run)
{
	unsigned int i, j, count = 0;

	running = run;
	for (i = 0; i < run->n_suites; i++)
		for (j = 0; j < run->suites[i]->count; j++)
			count += chosen(run, run->suites[i], run->suites[i]->tests + j);
	if (run->json)
		results = json_object_new_array();
	else
		printf("1..%u\n", count);
	for (i = 0; i < run->n_suites; i++)
		for (j = 0; j < run->suites[i]->count; j++)
			if (chosen(run, run->suites[i], run->suites[i]->tests + j))
				run_test(run->suites[i], run->suites[i]->tests + j);
	if (run->json)
		tell_all();
}
