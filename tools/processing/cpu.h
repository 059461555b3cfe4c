/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What the files of the engine for all processors have in common. */
#ifndef RPU_CPU_H
#define RPU_CPU_H

#include "clones.h"
#include "engine.h"

#define PIECE	8192u		/* pixels: 16 KiB of raw ones; their planes stay in the L2 cache */

static inline size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

#endif /* RPU_CPU_H */
