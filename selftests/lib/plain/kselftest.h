/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of the kernel's kselftest.h that tap.c calls, for builds without a kernel's
 * source. With KSRC= the kernel's header is found instead of this one.
 */
#ifndef KSELFTEST_PLAIN_H
#define KSELFTEST_PLAIN_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define KSFT_PASS	0
#define KSFT_FAIL	1
#define KSFT_SKIP	4

static unsigned int ksft_plain[KSFT_SKIP + 1];	/* number of tests by result */

static inline void ksft_print_header(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
}

static inline void ksft_set_plan(unsigned int plan)
{
	printf("1..%u\n", plan);
}

static inline void ksft_inc_pass_cnt(void)
{
	ksft_plain[KSFT_PASS]++;
}

static inline void ksft_inc_fail_cnt(void)
{
	ksft_plain[KSFT_FAIL]++;
}

static inline void ksft_inc_xskip_cnt(void)
{
	ksft_plain[KSFT_SKIP]++;
}

static inline int ksft_get_fail_cnt(void)
{
	return ksft_plain[KSFT_FAIL];
}

static inline int ksft_get_xskip_cnt(void)
{
	return ksft_plain[KSFT_SKIP];
}

static inline __attribute__((format(printf, 1, 2))) void ksft_print_msg(const char *fmt, ...)
{
	va_list args;

	printf("# ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
}

/* @fmt: why it was skipped, else NULL */
static inline __attribute__((format(printf, 3, 4)))
void ksft_test_result_code(int code, const char *name, const char *fmt, ...)
{
	va_list args;

	ksft_plain[code]++;
	printf("%sok %u - %s", code == KSFT_FAIL ? "not " : "",
	       ksft_plain[KSFT_PASS] + ksft_plain[KSFT_FAIL] + ksft_plain[KSFT_SKIP], name);
	if (fmt) {
		printf(" # SKIP ");
		va_start(args, fmt);
		vprintf(fmt, args);
		va_end(args);
	}
	printf("\n");
}

static inline void ksft_print_cnts(void)
{
	printf("# %u passed, %u failed, %u skipped\n", ksft_plain[KSFT_PASS],
	       ksft_plain[KSFT_FAIL], ksft_plain[KSFT_SKIP]);
}

static inline _Noreturn __attribute__((format(printf, 1, 2)))
void ksft_exit_fail_msg(const char *fmt, ...)
{
	va_list args;

	printf("Bail out! ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	exit(KSFT_FAIL);
}

#endif /* KSELFTEST_PLAIN_H */
