// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A layer on the kernel's kselftest.h, or on what stands in for it (lib/plain), which says each
 * line: limits of time, children, rows of tables.
 */
#include <signal.h>
#include <time.h>

#include <kselftest.h>

#include "tap.h"

void (*tap_before)(void);
void (*tap_after)(void);

static char name_now[200];
static char skipped_because[200];
static bool failed_now;
static time_t begun;
static bool announced;

/* Where the program and its children are: a shell may do what a handler of a signal may not. */
static const char where_all_are[] =
	"for p in $PPID $(cat /proc/$PPID/task/$PPID/children); do\n"
	"	ps -o pid=,stat=,time=,wchan:24=,args= $p\n"
	"	cat /proc/$p/stack\n"
	"done 2>/dev/null | sed 's/^/#   /'";

static void timed_out(int sig)
{
	static const char text[] = "Bail out! a test lasted too long\n";
	pid_t pid;

	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", where_all_are, NULL);
		_exit(KSFT_FAIL);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	_exit(KSFT_FAIL);
}

/*
 * How much slower this machine is than those that the limits of time are made for: what
 * is waited for may come later, not less. The lab says so of its debug kernel.
 */
unsigned int tap_slow(void)
{
	const char *text = getenv("RASHPA_SLOW");
	int slow = text ? atoi(text) : 1;

	return slow > 1 ? slow : 1;
}

static void announce(void)
{
	if (announced)
		return;
	announced = true;
	ksft_print_header();
	signal(SIGALRM, timed_out);
}

void tap_start(const char *fmt, ...)
{
	va_list args;

	announce();
	va_start(args, fmt);
	vsnprintf(name_now, sizeof(name_now), fmt, args);
	va_end(args);
	failed_now = false;
	skipped_because[0] = '\0';
	alarm(TAP_SECONDS * tap_slow());
	begun = time(NULL);
	if (tap_before)
		tap_before();
}

void tap_done(void)
{
	if (!failed_now && tap_after)
		tap_after();
	alarm(0);
	if (failed_now)
		ksft_test_result_code(KSFT_FAIL, name_now, NULL);
	else if (skipped_because[0])
		ksft_test_result_code(KSFT_SKIP, name_now, "%s", skipped_because);
	else
		ksft_test_result_code(KSFT_PASS, name_now, NULL);
	/* for who asks where the time of a check goes */
	if (time(NULL) - begun > 1)
		tap_note("%ld s: %s", (long)(time(NULL) - begun), name_now);
	fflush(stdout);
}

void tap_note(const char *fmt, ...)
{
	va_list args;

	ksft_print_msg("%s", "");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void tap_fail(const char *file, int line, const char *fmt, ...)
{
	va_list args;

	failed_now = true;
	ksft_print_msg("%s:%d: ", file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void tap_skip(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(skipped_because, sizeof(skipped_because), fmt, args);
	va_end(args);
}

bool tap_ok(void)
{
	return !failed_now;
}

_Noreturn void tap_bail(const char *fmt, ...)
{
	char text[400];
	va_list args;

	announce();
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ksft_exit_fail_msg("%s\n", text);
}

void tap_run(const char *name, void (*fn)(void))
{
	tap_start("%s", name);
	fn();
	tap_done();
}

void tap_skip_all(const char *name, const char *reason)
{
	tap_start("%s", name);
	tap_skip("%s", reason);
	tap_done();
}

/*
 * KTAP has the plan first or not at all. How many tests there are is known only now, because what
 * is here to be tested decides it; so ksft_set_plan() is not called. Unlike ksft_finished() this
 * tells who has skipped everything.
 */
int tap_exit(void)
{
	ksft_plan = ksft_test_num();
	ksft_print_cnts();
	fflush(stdout);
	if (ksft_get_fail_cnt())
		return KSFT_FAIL;
	return (unsigned int)ksft_get_xskip_cnt() == ksft_plan ? KSFT_SKIP : KSFT_PASS;
}

pid_t tap_fork_start(void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork fails");
	if (!pid) {
		alarm(TAP_SECONDS * tap_slow());
		fn(arg);
		fflush(stdout);
		_exit(failed_now ? KSFT_FAIL : KSFT_PASS);
	}
	return pid;
}

int tap_fork_wait(pid_t pid)
{
	int status = -1;

	while (waitpid(pid, &status, 0) < 0)
		;
	return status;
}

void tap_fork_end(pid_t pid)
{
	int status = tap_fork_wait(pid);

	CHECK(!status, "the child failed (status 0x%x)", status);
}

void tap_fork_kill(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	status = tap_fork_wait(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
	      "the child had ended before (status 0x%x)", status);
}

void tap_fork(void (*fn)(void *arg), void *arg)
{
	tap_fork_end(tap_fork_start(fn, arg));
}
