/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the self-test share. */
#ifndef BUILDER_SELFTEST_H
#define BUILDER_SELFTEST_H

#include <stdbool.h>

__attribute__((format(printf, 2, 3)))
bool ok(bool good, const char *format, ...);
/* The call was refused so, and the sentence has this word. */
void refused(int got, int error, const char *word, const char *what);

void test_meet(void);
void test_ranges(void);

#endif /* BUILDER_SELFTEST_H */
