// SPDX-License-Identifier: LGPL-2.1-or-later
/* A small producer of the Test Anything Protocol. */
#include <signal.h>
#include <time.h>

#include "tap.h"

void (*tap_before)(void);
void (*tap_after)(void);

static char name_now[200];
static char skipped_because[200];
static bool failed_now;
static unsigned int count, failed, skipped;
static time_t begun;

static void timed_out(int sig)
{
	static const char text[] = "Bail out! a test lasted too long\n";

	(void)sig;
	if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(TAP_FAILED);
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

void tap_start(const char *fmt, ...)
{
	va_list args;

	if (!count) {
		setvbuf(stdout, NULL, _IOLBF, 0);
		signal(SIGALRM, timed_out);
		printf("TAP version 13\n");
	}
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
	count++;
	printf("%sok %u - %s", failed_now ? "not " : "", count, name_now);
	if (!failed_now && skipped_because[0])
		printf(" # SKIP %s", skipped_because);
	printf("\n");
	/* for who asks where the time of a check goes */
	if (time(NULL) - begun > 1)
		tap_note("%ld s: %s", (long)(time(NULL) - begun), name_now);
	fflush(stdout);
	failed += failed_now;
	skipped += !failed_now && skipped_because[0];
}

void tap_note(const char *fmt, ...)
{
	va_list args;

	printf("# ");
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
	printf("# %s:%d: ", file, line);
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
	va_list args;

	printf("Bail out! ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	exit(TAP_FAILED);
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

int tap_exit(void)
{
	printf("1..%u\n", count);
	printf("# %u passed, %u failed, %u skipped\n", count - failed - skipped,
	       failed, skipped);
	fflush(stdout);
	if (failed)
		return TAP_FAILED;
	return skipped == count ? TAP_SKIPPED : TAP_OK;
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
		_exit(failed_now ? TAP_FAILED : TAP_OK);
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
