/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests as the kernel's kselftest.h tells them (the Test Anything Protocol), with limits of
 * time, children and rows of tables.
 *
 *	static void test_thing(void)
 *	{
 *		CHECK(one() == 1, "one() says %d", one());
 *		REQUIRE(fd >= 0, "no fd");		leaves the function
 *		SKIP_IF(!have_it(), "it is not here");	leaves the function
 *	}
 *
 *	int main(void)
 *	{
 *		tap_run("the thing is one", test_thing);
 *		return tap_exit();
 *	}
 *
 * A function that goes through a table makes one test of each row with tap_start()
 * and tap_done(). A test that lasts longer than TAP_SECONDS ends the program, which
 * says where it and its children are. The limit is there for what hangs: the slowest test takes
 * less than half of it, also on a busy machine.
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

/* Called when a test begins, and when it ended without failure. */
extern void (*tap_before)(void);
extern void (*tap_after)(void);

/* Limits of time are to be multiplied by this (RASHPA_SLOW, 1 by default). */
unsigned int tap_slow(void);
void tap_start(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_done(void);
void tap_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_fail(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void tap_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool tap_ok(void);
_Noreturn void tap_bail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void tap_run(const char *name, void (*fn)(void));
void tap_skip_all(const char *name, const char *reason);
int tap_exit(void);

/* Run @fn in a child; what it checks counts. */
void tap_fork(void (*fn)(void *arg), void *arg);
/*
 * The same for a child that the test wants to talk to or kill: what it checks counts when its
 * end is waited for by one of these. The last one returns the status of waitpid().
 */
pid_t tap_fork_start(void (*fn)(void *arg), void *arg);
void tap_fork_end(pid_t pid);
void tap_fork_kill(pid_t pid);
int tap_fork_wait(pid_t pid) __attribute__((warn_unused_result));

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
