// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs tests, and reports results: TAP, or JSON at the end. */
#include "conformance/dtp.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json-out.h"
#include "common/shown.h"

bool failed;

static char skipped[256];		/* reason; empty: not skipped */
static jmp_buf end_of_test;
static bool state_told;
static struct run *running;
static bool planned;			/* TAP has begun */
static char now[128];			/* running SUITE/TEST; empty: none */
static const char *now_title;
static uint64_t begun;
static struct json_object *said, *results;

uint64_t patience_us(void)
{
	uint64_t us = (2000000ull + board.stop_time) * board.slowness * running->patience;

	return failed ? us / 20 : us;
}

void tell_state(void)
{
	if (!state_told && *now)
		running->describe();
	state_told = true;
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
		printf("# %s\n", SHOWN(text));
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

static void tell_result(const char *result, const char *reason, double seconds)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", json_object_new_string(now));
	json_object_object_add(o, "title", json_object_new_string(now_title));
	json_object_object_add(o, "result", json_object_new_string(result));
	if (*reason)
		json_object_object_add(o, "reason", json_object_new_string(reason));
	json_object_object_add(o, "said", said);
	json_object_object_add(o, "seconds", json_object_new_double(seconds));
	json_object_array_add(results, o);
}

/* @why: reason why the run ended early, or NULL. */
static void tell_all(const char *why)
{
	struct json_object *o = json_object_new_object();
	char *shown;

	json_object_object_add(o, "target", json_object_new_string(running->target));
	json_object_object_add(o, "tests", results);
	json_object_object_add(o, "passed", json_object_new_int((int)running->passed));
	json_object_object_add(o, "failed", json_object_new_int((int)running->failed));
	json_object_object_add(o, "skipped", json_object_new_int((int)running->skipped));
	if (why)
		json_object_object_add(o, "ended", json_object_new_string(why));
	shown = json_shown(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
	if (shown)
		puts(shown);
	free(shown);
	json_object_put(o);
}

void give_up(const char *text)
{
	if (planned)
		printf("Bail out! %s\n", SHOWN(text));
	else
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, SHOWN(text));
	if (running && running->json) {
		if (*now)
			tell_result("ended", text, (double)(now_us() - begun) / 1e6);
		tell_all(text);
	}
	exit(2);
}

void die(const char *fmt, ...)
{
	char text[1024] = "";
	va_list args;
	int n = 0;

	if (running)
		n = snprintf(text, sizeof(text), "%s: %s%s", running->target, now,
			     *now ? ": " : "");
	va_start(args, fmt);
	if (n < (int)sizeof(text))
		vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
	va_end(args);
	give_up(text);
}

void skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(skipped, sizeof(skipped), fmt, args);
	va_end(args);
	longjmp(end_of_test, 1);
}

static void find_lack(const struct test *test)
{
	static const char * const features[32] = {
		"MSIX", "LOCK", NULL, "FREERUN", "FLUSH", "GROUP", "DROP", "META",
	};
	uint32_t lacking = test->features & ~board.features;
	unsigned int bit;

	for (bit = 0; lacking; bit++, lacking >>= 1)
		if (lacking & 1)
			skip("the board has no %s", features[bit] ? features[bit] : "such feature");
	if (board.dtps < test->dtps)
		skip("needs %u DTPs, the board has %u", test->dtps, board.dtps);
	if (board.vectors < test->vectors)
		skip("needs %u interrupt vectors, the board has %u", test->vectors, board.vectors);
	if (board.entries < test->entries)
		skip("needs %u entries, the board has %u", test->entries, board.entries);
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

static void finish_test(double seconds)
{
	const char *result = failed ? "failed" : *skipped ? "skipped" : "passed";
	unsigned int number;

	if (failed)
		*skipped = '\0';
	running->failed += failed;
	running->skipped += !!*skipped;
	running->passed += !failed && !*skipped;
	number = running->passed + running->failed + running->skipped;
	if (running->json)
		tell_result(result, skipped, seconds);
	else
		printf("%s %u - %s: %s%s%s\n", failed ? "not ok" : "ok", number, now,
		       now_title, *skipped ? " # SKIP " : "", skipped);
}

static void run_test(const struct suite *suite, const struct test *test)
{
	begun = now_us();
	snprintf(now, sizeof(now), "%s/%s", suite->name, test->name);
	now_title = test->title;
	failed = state_told = false;
	*skipped = '\0';
	if (running->json)
		said = json_object_new_array();
	if (!setjmp(end_of_test)) {
		find_lack(test);
		running->prepare();
		test->run();
	}
	finish_test((double)(now_us() - begun) / 1e6);
	*now = '\0';
}

void run_begin(struct run *run)
{
	running = run;
	if (run->json)
		results = json_object_new_array();
}

void run_tests(void)
{
	const struct run *run = running;
	unsigned int i, j, count = 0;

	for (i = 0; i < run->n_suites; i++)
		for (j = 0; j < run->suites[i]->count; j++)
			count += chosen(run, run->suites[i], run->suites[i]->tests + j);
	planned = !run->json;
	if (planned)
		printf("1..%u\n", count);
	for (i = 0; i < run->n_suites; i++)
		for (j = 0; j < run->suites[i]->count; j++)
			if (chosen(run, run->suites[i], run->suites[i]->tests + j))
				run_test(run->suites[i], run->suites[i]->tests + j);
	if (run->json)
		tell_all(NULL);
}
