/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef MUST_H
#define MUST_H

#include <stdbool.h>
#include <stdlib.h>

/* A false condition is a finding, also in builds without asserts. */
static inline void must(bool good)
{
	if (!good)
		abort();
}

#endif /* MUST_H */
