/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of librashpa share, and nobody else sees. */
#ifndef INTERNAL_H
#define INTERNAL_H

#include "sized.h"

/* Keep the sentence of this thread's failure; -error. */
__attribute__((format(printf, 2, 3)))
int librashpa_fail(int error, const char *format, ...);

/* Put words before that sentence; @error, which is negative. */
__attribute__((format(printf, 2, 3)))
int librashpa_prefix(int error, const char *format, ...);

#define fail	librashpa_fail

#endif /* INTERNAL_H */
