/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests as in the kernel's kselftest_harness.h, printed by its kselftest.h. A test's definition
 * registers it. Each test runs in a separate process, with a time limit. A test may have children,
 * or a row for each element of a table.
 *
 *	void setup(void)
 *	{
 *		SKIP_IF(!have_it(), "it is not here");	skips the test
 *	}
 *
 *	TEST(thing, "the thing is one")
 *	{
 *		CHECK(one() == 1, "one() returns %d", one());
 *		REQUIRE(fd >= 0, "no fd");		leaves the function
 *	}
 *
 *	static const struct { const char *key; int value; } bad[] = { { "too-large", 9 }, ... };
 *
 *	TEST_EACH(refused, bad, "a value that is %s is refused")
 *	{
 *		ANSWERED(set(row->value), EINVAL, NULL);
 *	}
 *
 * The program's ids are thing, refused/too-large and so on. -l lists them; as arguments they select
 * tests ("refused" or "refu*": all rows). The rows of a table share one process; after a crash
 * the next row gets a new one. A test that lasts longer than TAP_SECONDS is killed, after the
 * program has printed where its processes are. The slowest test takes less than half of that.
 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_SECONDS	180

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

struct tap_test {
	const char *id, *sentence;	/* its %s: the row's key in words */
	void (*fn)(void);
	void (*row)(size_t i);
	/* NULL after the last row; "": no such row */
	const char *(*key)(size_t i);
	struct tap_test *next;
};

void tap_add(struct tap_test *test);

#define TAP_TEST(_name, ...)							\
	static struct tap_test tap_test_##_name = { .id = #_name, __VA_ARGS__ };	\
	__attribute__((constructor)) static void tap_add_##_name(void)		\
	{									\
		tap_add(&tap_test_##_name);						\
	}

#define TEST(name, text)							\
	static void test_##name(void);						\
	TAP_TEST(name, .sentence = text, .fn = test_##name)			\
	static void test_##name(void)

/* For each row of @table for which @cond is true; .key is a part of the id. */
#define TEST_EACH_IF(name, table, cond, text)					\
	static void test_##name(const typeof(*(table)) *row);		\
	static void tap_row_##name(size_t i)					\
	{									\
		test_##name(&(table)[i]);					\
	}									\
	static const char *tap_key_##name(size_t i)				\
	{									\
		const typeof(*(table)) *row = &(table)[i];			\
										\
		return i >= ARRAY_SIZE(table) ? NULL : (cond) ? row->key : "";	\
	}									\
	TAP_TEST(name, .sentence = text, .row = tap_row_##name, .key = tap_key_##name) \
	static void test_##name(const typeof(*(table)) *row)

#define TEST_EACH(name, table, text)	TEST_EACH_IF(name, table, true, text)

/* A program may define these. They run in the process of each test, before and after it. */
void setup(void);
void teardown(void);
/* These run in the program itself: before the first test, after the last. */
void setup_all(void);
void teardown_all(void);

/* Called in the program, before the first test and after the process of each. */
extern void (*tap_begin)(void);
extern void (*tap_restore)(void);
/* Called before setup(), when a test begins, and when it ended without failure. */
extern void (*tap_init)(void);
extern void (*tap_before)(void);
extern void (*tap_after)(void);
/* Is this the first test of the program, or has the previous one failed? */
extern bool tap_fresh;

/* main() of a program that does not define one */
int tap_main(int argc, char **argv);

/* Factor for time limits (RASHPA_SLOW, 1 by default). */
unsigned int tap_slow(void);
/*
 * Number of repetitions: @few where RASHPA_TIER is check, or is all and the kernel is not the newest;
 * else @many.
 */
unsigned int tap_times(unsigned int few, unsigned int many);
/* Seed of random numbers: RASHPA_SEED, or a fixed default. It is printed. */
unsigned int tap_seed(void);
void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tap_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* From now on the test may last @seconds instead of TAP_SECONDS. */
void tap_limit(unsigned int seconds);
bool tap_ok(void);
/* Fail the test and end it. */
_Noreturn void tap_bail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* In setup(): skip the test. Does not return. */
_Noreturn void tap_skip_all(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Run @fn in a child; its checks count. */
void tap_fork(void (*fn)(void *arg), void *arg);
/*
 * The same for a child that the test wants to talk to or kill: its checks count after one of
 * these has waited for its end. The last one returns the status of waitpid().
 */
pid_t tap_fork_start(void (*fn)(void *arg), void *arg);
void tap_fork_end(pid_t pid);
void tap_fork_kill(pid_t pid);
int tap_fork_wait(pid_t pid) __attribute__((warn_unused_result));
/* A child that is to be killed: returns when @fn has called tap_fork_hold(), which never returns. */
pid_t tap_fork_held(void (*fn)(void *arg), void *arg);
_Noreturn void tap_fork_hold(void);

#define CHECK(cond, ...) \
	((cond) ? true : (tap_fail(__FILE__, __LINE__, "" __VA_ARGS__), false))

#define REQUIRE(cond, ...) do {					\
	if (!CHECK(cond, __VA_ARGS__))				\
		return;						\
} while (0)

#define SKIP_IF(cond, ...) do {					\
	if (cond) {						\
		tap_skip(__VA_ARGS__);				\
		return;						\
	}							\
} while (0)

#endif /* TAP_H */
