/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the files of the self-test share. */
#ifndef BUILDER_SELFTEST_H
#define BUILDER_SELFTEST_H

#include <stdbool.h>

__attribute__((format(printf, 2, 3)))
bool ok(bool good, const char *format, ...);
/* Check that a call returned this error, and that the sentence contains this word. */
void refused(int got, int error, const char *word, const char *what);

void test_meet(void);
void test_ranges(void);

#endif /* BUILDER_SELFTEST_H */
