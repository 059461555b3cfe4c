/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the files of the self-test share. */
#ifndef BUILDER_SELFTEST_H
#define BUILDER_SELFTEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric.h"

__attribute__((format(printf, 2, 3)))
bool ok(bool good, const char *format, ...);
/* Check that a call returned this error, and that the sentence contains this word. */
static inline void refused(int got, int error, const char *word, const char *what)
{
	const bool good = got == -error && strstr(rashpa_fabric_reason(), word);

	ok(good, "refused: %s", what);
	if (!good)
		printf("# got %d: %s\n", got, rashpa_fabric_reason());
}

/* Choose a free port of this machine for RASHPA_MEET. */
void choose_port(void);
void test_meet(void);
void test_ranges(void);

#endif /* BUILDER_SELFTEST_H */
