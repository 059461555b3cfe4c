/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests, tables of them by theme, and what a test says. */
#ifndef CONFORMANCE_TEST_H
#define CONFORMANCE_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/*
 * The name is SUITE/NAME; the title says what holds if the test is good. A board that lacks what
 * a test needs is not asked; 0: nothing special.
 */
struct test {
	const char *name, *title;
	void (*run)(void);
	uint32_t features;		/* RFPGA_FEATURE_* */
	uint32_t dtps, vectors, entries;
};

struct suite {
	const char *name;
	const struct test *tests;
	unsigned int count;
};

#define SUITE(suite_name, list) \
	{ .name = suite_name, .tests = list, .count = sizeof(list) / sizeof((list)[0]) }

/* of the interface, for every board; INTERFACE_SUITES is in the order in which they run */
extern const struct suite registers_suite, table_suite, stream_suite, pacing_suite, group_suite,
			  event_suite, fault_suite, stop_suite, reset_suite, source_suite,
			  slow_suite, unit_suite, ring_suite;

#define INTERFACE_SUITES \
	&registers_suite, &table_suite, &stream_suite, &pacing_suite, &group_suite, &event_suite, \
	&fault_suite, &stop_suite, &reset_suite, &source_suite, &slow_suite, \
	&unit_suite, &ring_suite

extern bool failed;			/* the test that runs */

/* What is wrong, and the test goes on; what else there is to say of it. */
void wrong(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The test, or the rest of it, cannot be made, for this reason: it ends here. */
void skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The board went away, or what is here cannot be: no more tests. Tells of which target and test. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* The same for a sentence that has all there is to say. */
void give_up(const char *text) __attribute__((noreturn));

#define CHECK(cond) do {							\
	if (!(cond))								\
		wrong(__FILE__, __LINE__, "not true: %s", #cond);		\
} while (0)

#define CHECK_EQ(a, b) do {							\
	unsigned long long _a = (a), _b = (b);					\
	if (_a != _b)								\
		wrong(__FILE__, __LINE__, "%s is %#llx, not %#llx", #a, _a, _b); \
} while (0)

uint64_t now_us(void);
/*
 * How long to wait for what a board does on its own: two seconds and its STOP_TIME, as many times
 * as its clock is slower than ours. Not so long where a check of this test has failed already.
 */
uint64_t patience_us(void);

/* What the board says of its DTPs, where a test waits in vain: once for each test. */
void tell_state(void);

/* Wait until what was asked about is so. Of DTPs nothing is said: for where no board is reached. */
#define COMES_TRUE(cond) ({							\
	uint64_t _end = now_us() + patience_us();				\
	bool _ok;								\
	while (!(_ok = (cond)) && now_us() < _end)				\
		usleep(200);							\
	_ok; })

#define EVENTUALLY(cond)	(COMES_TRUE(cond) || (tell_state(), false))

/* Let so much time of the board pass: for what must not happen. */
void pass_us(uint64_t us);

/* How tests are run, and what is told of them. */
struct run {
	const struct suite * const *suites;
	unsigned int n_suites;
	char * const *names;		/* SUITE or SUITE/NAME, until NULL; none: all */
	const char *target;		/* what is tested */
	bool json;			/* else TAP */
	unsigned int patience;		/* times as long as usual */
	unsigned int passed, failed, skipped;
};

bool chosen(const struct run *run, const struct suite *suite, const struct test *test);
/* From now on it is told of this run, whatever ends it. */
void run_begin(struct run *run);
void run_tests(void);

#endif /* CONFORMANCE_TEST_H */
