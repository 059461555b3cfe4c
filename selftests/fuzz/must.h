/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MUST_H
#define MUST_H

#include <stdbool.h>
#include <stdlib.h>

/* What is not so is a finding, also where asserts are left out. */
static inline void must(bool good)
{
	if (!good)
		abort();
}

#endif /* MUST_H */
