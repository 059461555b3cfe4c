/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Shared by the files of librashpa only. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include "lib/sized.h"

/* Keep the sentence of this thread's failure. Return: -@error. */
__attribute__((format(printf, 2, 3)))
int librashpa_fail(int error, const char *format, ...);

/* Put words before that sentence. Return: @error, which is negative. */
__attribute__((format(printf, 2, 3)))
int librashpa_prefix(int error, const char *format, ...);

#define fail	librashpa_fail

#endif /* INTERNAL_H */
