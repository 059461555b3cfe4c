// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A layer on the kernel's kselftest.h, or on its substitute (lib/plain), which prints each
 * line: a process for each test, time limits, children, rows of tables.
 */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <time.h>

#include <kselftest.h>

#include "tap.h"

void (*tap_begin)(void);
void (*tap_restore)(void);
void (*tap_init)(void);
void (*tap_before)(void);
void (*tap_after)(void);
bool tap_fresh = true;

static struct tap_test *tests, **tests_end = &tests;
static char **wanted;		/* patterns, up to a NULL */
static const struct tap_test *test_now;	/* in the process of a test */
static char skipped_because[200];
static bool failed_now, broken;

/* The process of a test writes this, the program reads it. */
static struct {
	unsigned int passed, failed, skipped;
	size_t row;		/* the next one */
	time_t end;		/* the test has to be over then */
} *shared;

void tap_add(struct tap_test *test)
{
	*tests_end = test;
	tests_end = &test->next;
}

__attribute__((weak)) void setup(void)
{
}

__attribute__((weak)) void teardown(void)
{
}

__attribute__((weak)) void setup_all(void)
{
}

__attribute__((weak)) void teardown_all(void)
{
}

/* How much slower this machine is than those that the time limits are made for. */
unsigned int tap_slow(void)
{
	const char *text = getenv("RASHPA_SLOW");
	int slow = text ? atoi(text) : 1;

	return slow > 1 ? slow : 1;
}

unsigned int tap_times(unsigned int few, unsigned int many)
{
	const char *tier = getenv("RASHPA_TIER") ?: "", *kernel = getenv("RASHPA_KERNEL") ?: "";

	return !strcmp(tier, "check") || (!strcmp(tier, "all") && strcmp(kernel, "newest")) ?
	       few : many;
}

unsigned int tap_seed(void)
{
	const char *text = getenv("RASHPA_SEED");
	unsigned int seed = text ? strtoul(text, NULL, 0) : 1;

	tap_note("RASHPA_SEED=%u", seed);
	return seed;
}

/* -------------------------------------------------------------- names --- */

static const char *key_of(const struct tap_test *test, size_t row)
{
	return test->key ? test->key(row) : row ? NULL : "";
}

/* "ID: sentence"; the id ends at the first colon. */
static const char *name_of(const struct tap_test *test, size_t row)
{
	static char name[400];
	const char *key = key_of(test, row);
	char words[100];
	size_t i, n;

	n = snprintf(name, sizeof(name), "%s%s%s: ", test->id, *key ? "/" : "", key);
	for (i = 0; i < sizeof(words) - 1 && key[i]; i++)
		words[i] = strchr("-_/", key[i]) ? ' ' : key[i];
	words[i] = '\0';
	snprintf(name + n, sizeof(name) - n, test->sentence, words);
	return name;
}

static bool is_wanted(const struct tap_test *test, size_t row)
{
	const char *key = key_of(test, row);
	char id[200];
	char **w;

	if (test->key && !*key)
		return false;
	snprintf(id, sizeof(id), "%s%s%s", test->id, *key ? "/" : "", key);
	for (w = wanted; *w; w++)
		if (!fnmatch(*w, id, 0) || !fnmatch(*w, test->id, 0))
			return true;
	return w == wanted;
}

/* The first wanted row at or after @row, or SIZE_MAX. */
static size_t next_row(const struct tap_test *test, size_t row)
{
	for (; key_of(test, row); row++)
		if (is_wanted(test, row))
			return row;
	return SIZE_MAX;
}

/* -------------------------------------------- in the process of a test --- */

static time_t begun;

static void row_begin(void)
{
	failed_now = broken;
	begun = time(NULL);
	tap_limit(TAP_SECONDS);
	if (!failed_now && !skipped_because[0] && tap_before)
		tap_before();
}

static void row_end(void)
{
	const char *name = name_of(test_now, shared->row);
	time_t took;

	if (!failed_now && !skipped_because[0] && tap_after)
		tap_after();
	took = time(NULL) - begun;
	if (failed_now) {
		shared->failed++;
		ksft_test_result_code(KSFT_FAIL, name, NULL);
	} else if (skipped_because[0]) {
		shared->skipped++;
		ksft_test_result_code(KSFT_SKIP, name, "%s", skipped_because);
	} else {
		shared->passed++;
		ksft_test_result_code(KSFT_PASS, name, NULL);
	}
	/* slow tests are listed with their seconds */
	if (took > 1)
		tap_note("%ld s", (long)took);
	fflush(stdout);
	shared->row = next_row(test_now, shared->row + 1);
}

_Noreturn static void run_rows(const struct tap_test *test)
{
	bool all_skipped;

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	test_now = test;
	if (tap_init)
		tap_init();
	setup();
	broken = failed_now;
	all_skipped = skipped_because[0];
	while (shared->row != SIZE_MAX) {
		row_begin();
		if (broken || all_skipped)
			;
		else if (test->fn)
			test->fn();
		else
			test->row(shared->row);
		row_end();
		if (!all_skipped)
			skipped_because[0] = '\0';
	}
	failed_now = false;
	if (!all_skipped)
		teardown();
	exit(failed_now ? KSFT_FAIL : KSFT_PASS);
}

static void print_note(const char *fmt, va_list args)
{
	ksft_print_msg("%s", "");
	vprintf(fmt, args);
	printf("\n");
	fflush(stdout);
}

void tap_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_note(fmt, args);
	va_end(args);
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

void tap_limit(unsigned int seconds)
{
	shared->end = time(NULL) + seconds * tap_slow();
}

bool tap_ok(void)
{
	return !failed_now;
}

_Noreturn void tap_bail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	print_note(fmt, args);
	va_end(args);
	exit(KSFT_FAIL);
}

_Noreturn void tap_skip_all(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(skipped_because, sizeof(skipped_because), fmt, args);
	va_end(args);
	while (test_now && shared->row != SIZE_MAX) {
		row_begin();
		row_end();
	}
	if (!test_now)
		printf("1..0 # SKIP %s\n", skipped_because);
	exit(test_now ? KSFT_PASS : KSFT_SKIP);
}

/* ------------------------------------------------------ in the program --- */

static void nothing(int sig)
{
}

/* Print where all processes of the group are. */
static void print_stacks(pid_t group)
{
	char command[300];

	snprintf(command, sizeof(command),
		 "for p in $(pgrep -g %d); do ps -o pid=,stat=,time=,wchan:24=,args= $p\n"
		 "cat /proc/$p/task/*/stack; done 2>/dev/null | sed 's/^/#   /'", group);
	fflush(stdout);
	if (system(command))
		tap_note("no sh");
}

/* Wait for the end of a test's process, and of all processes that it left. */
static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) != pid) {
		if (time(NULL) < shared->end)
			continue;
		tap_note("it lasts too long");
		print_stacks(pid);
		tap_limit(TAP_SECONDS);
		kill(-pid, SIGKILL);
	}
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0 || errno == EINTR)
		;
	return status;
}

static void add_counts(void)
{
	for (; shared->passed; shared->passed--)
		ksft_inc_pass_cnt();
	for (; shared->failed; shared->failed--)
		ksft_inc_fail_cnt();
	for (; shared->skipped; shared->skipped--)
		ksft_inc_xskip_cnt();
}

static void run(const struct tap_test *test)
{
	int status;
	pid_t pid;

	shared->row = next_row(test, 0);
	while (shared->row != SIZE_MAX) {
		tap_limit(TAP_SECONDS);
		fflush(stdout);
		pid = fork();
		if (!pid)
			run_rows(test);
		if (pid < 0)
			ksft_exit_fail_msg("fork: %s\n", strerror(errno));
		setpgid(pid, pid);
		status = wait_for(pid);
		if (tap_restore)
			tap_restore();
		tap_fresh = shared->row != SIZE_MAX || shared->failed;
		add_counts();
		if (shared->row != SIZE_MAX) {	/* it did not come to its end */
			if (WIFSIGNALED(status))
				tap_note("its process died of signal %d", WTERMSIG(status));
			ksft_test_result_code(KSFT_FAIL, name_of(test, shared->row), NULL);
			shared->row = next_row(test, shared->row + 1);
		} else if (status) {
			tap_note("%s: after the test, status 0x%x", test->id, status);
			broken = true;
		}
	}
}

int tap_main(int argc, char **argv)
{
	static const struct itimerval second = { { 1, 0 }, { 1, 0 } };
	const bool list = argc > 1 && !strcmp(argv[1], "-l");
	const struct tap_test *test;
	unsigned int n = 0;
	size_t row;

	/* programs with other arguments do not pass them on */
	argv[argc] = NULL;
	wanted = argv + 1 + list;
	for (test = tests; test; test = test->next) {
		for (row = next_row(test, 0); row != SIZE_MAX; row = next_row(test, row + 1)) {
			if (list)
				puts(name_of(test, row));
			n++;
		}
	}
	if (list)
		return 0;
	if (!n) {
		fprintf(stderr, "%s: no such test, see -l\n", argv[0]);
		return KSFT_FAIL;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	ksft_print_header();
	ksft_set_plan(n);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	/* wait_for() checks the clock once a second */
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = nothing }, NULL);
	setitimer(ITIMER_REAL, &second, NULL);
	if (tap_begin)
		tap_begin();
	setup_all();
	for (test = tests; test; test = test->next)
		run(test);
	teardown_all();
	ksft_print_cnts();
	fflush(stdout);
	if (ksft_get_fail_cnt() || broken)
		return KSFT_FAIL;
	return (unsigned int)ksft_get_xskip_cnt() == n ? KSFT_SKIP : KSFT_PASS;
}

__attribute__((weak)) int main(int argc, char **argv)
{
	return tap_main(argc, argv);
}

/* ----------------------------------------------------------- children --- */

pid_t tap_fork_start(void (*fn)(void *arg), void *arg)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork fails");
	if (!pid) {
		fn(arg);
		fflush(stdout);
		_exit(failed_now ? KSFT_FAIL : KSFT_PASS);
	}
	return pid;
}

static int held[2];

pid_t tap_fork_held(void (*fn)(void *arg), void *arg)
{
	pid_t pid;
	char c;

	if (pipe(held))
		tap_bail("pipe: %s", strerror(errno));
	pid = tap_fork_start(fn, arg);
	close(held[1]);
	CHECK(read(held[0], &c, 1) == 1, "the child did not begin");
	close(held[0]);
	return pid;
}

_Noreturn void tap_fork_hold(void)
{
	if (write(held[1], "", 1) != 1)
		tap_bail("the parent does not wait");
	for (;;)
		pause();
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
