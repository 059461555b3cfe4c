/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kernels, and those who launch them, agree on: C, GLSL and CUDA read this file. */
#ifndef RPU_KERNEL_H
#define RPU_KERNEL_H

#define RPU_LANES	128u		/* of a group: any GPU has that many */
#define RPU_PIECE	1024u		/* pixels that a group of above() counts */

/* Words of what kernels tell. */
#define RPU_TOLD_ABOVE	0u
#define RPU_TOLD_KEPT	1u
#define RPU_TOLDS	2u

#endif /* RPU_KERNEL_H */
