/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests, and tables of them by theme. */
#ifndef CONFORMANCE_TEST_H
#define CONFORMANCE_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* The name is SUITE/NAME; the title says what holds if the test is good. */
struct test {
	const char *name, *title;
	void (*run)(void);
};

struct suite {
	const char *name;
	const struct test *tests;
	unsigned int count;
};

#define SUITE(suite_name, list) \
	{ .name = suite_name, .tests = list, .count = sizeof(list) / sizeof((list)[0]) }

/* of the interface, for every board */
extern const struct suite registers_suite, stream_suite, pacing_suite, group_suite, event_suite,
			  fault_suite, stop_suite, reset_suite;

extern bool failed;			/* the test that runs */

#define CHECK(cond) do {							\
	if (!(cond)) {								\
		printf("# %s:%d: %s\n", __FILE__, __LINE__, #cond);	\
		failed = true;							\
	}									\
} while (0)

#define CHECK_EQ(a, b) do {							\
	unsigned long long _a = (a), _b = (b);					\
	if (_a != _b) {								\
		printf("# %s:%d: %s is %#llx, not %#llx\n", __FILE__, __LINE__, #a, _a, _b); \
		failed = true;							\
	}									\
} while (0)

uint64_t now_us(void);

/* Wait until what was asked about is so, at most 2 s. */
#define EVENTUALLY(cond) ({							\
	uint64_t _end = now_us() + 2000000;					\
	bool _ok;								\
	while (!(_ok = (cond)) && now_us() < _end)				\
		usleep(200);							\
	_ok; })

#endif /* CONFORMANCE_TEST_H */
