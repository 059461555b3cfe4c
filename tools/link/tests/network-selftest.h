/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Declarations that the files of the self-test share. */
#ifndef NETWORK_SELFTEST_H
#define NETWORK_SELFTEST_H

#include <stdbool.h>

__attribute__((format(printf, 2, 3)))
bool ok(bool good, const char *format, ...);

void test_intake(void);

#endif /* NETWORK_SELFTEST_H */
