/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests, suites of tests, and reports. */
#ifndef CONFORMANCE_TEST_H
#define CONFORMANCE_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/*
 * The name is SUITE/NAME; the title states the tested property. A test is skipped if the board
 * lacks a requirement; 0: no requirement.
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

/* tests of the interface, for every board; INTERFACE_SUITES has the order of the runs */
extern const struct suite registers_suite, table_suite, stream_suite, pacing_suite, group_suite,
			  event_suite, fault_suite, stop_suite, reset_suite, source_suite,
			  slow_suite, unit_suite, ring_suite;

#define INTERFACE_SUITES \
	&registers_suite, &table_suite, &stream_suite, &pacing_suite, &group_suite, &event_suite, \
	&fault_suite, &stop_suite, &reset_suite, &source_suite, &slow_suite, \
	&unit_suite, &ring_suite

extern bool failed;			/* the running test has failed */

/* Report a failure, and go on; note: add an explanation. */
void wrong(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Skip the test, or the rest of it, for this reason. */
void skip(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* The board went away, or the test program failed: end all tests. Names the target and the test. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* The same with a complete sentence. */
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
 * Time limit for actions of the board: two seconds and its STOP_TIME, multiplied by the slowness of
 * its clock. Shorter after the test has failed a check.
 */
uint64_t patience_us(void);

/* Report the state of the DTPs when a wait times out: once for each test. */
void tell_state(void);

/* Wait until the condition is true. Reports no DTPs: for tests without a board. */
#define COMES_TRUE(cond) ({							\
	uint64_t _end = now_us() + patience_us();				\
	bool _ok;								\
	while (!(_ok = (cond)) && now_us() < _end)				\
		usleep(200);							\
	_ok; })

#define EVENTUALLY(cond)	(COMES_TRUE(cond) || (tell_state(), false))

/* Let @us microseconds of the board pass, to check that nothing happens. */
void pass_us(uint64_t us);

/* Settings and results of a run. */
struct run {
	const struct suite * const *suites;
	unsigned int n_suites;
	char * const *names;		/* SUITE or SUITE/NAME, until NULL; none: all */
	const char *target;		/* name of the board */
	bool json;			/* else TAP */
	unsigned int patience;		/* factor of all time limits */
	void (*prepare)(void);		/* brings the board into its first state */
	void (*describe)(void);	/* notes the state of the board after a failure */
	unsigned int passed, failed, skipped;
};

bool chosen(const struct run *run, const struct suite *suite, const struct test *test);
/* From now on, any end of the program reports this run. */
void run_begin(struct run *run);
void run_tests(void);

#endif /* CONFORMANCE_TEST_H */
