/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What kernels, and those who launch them, agree on: C, GLSL and CUDA read this file. */
#ifndef RPU_KERNEL_H
#define RPU_KERNEL_H

#define RPU_LANES	128u		/* of a group: any GPU has that many */
#define RPU_LINE	65535u		/* groups side by side: likewise */
#define RPU_PIECE	1024u		/* pixels that a group of above() counts */

/* Words of what kernels tell. */
#define RPU_TOLD_ABOVE	0u
#define RPU_TOLD_KEPT	1u
#define RPU_TOLDS	2u

/* Words of the control block of a drive, see drive.c: all of them only rise. */
#define RPU_CONTROL_IN		0u	/* images that were copied in */
#define RPU_CONTROL_COMPUTED	1u	/* that were computed */
#define RPU_CONTROL_ACCEPTED	2u	/* that no veto left out, and that are in a bank */
#define RPU_CONTROL_TAKEN	3u	/* of those, copied to the host */
#define RPU_CONTROL_DROPPED	4u	/* accepted, and all banks were full */
#define RPU_CONTROL_STOP	5u	/* nobody waits any more */
#define RPU_CONTROL_PIECES	6u	/* of the window, which may be written again */
#define RPU_CONTROL_LOCK	7u	/* ours: images that are there, or pieces */
#define RPU_CONTROL_FREED	8u	/* results that the host has given back */
#define RPU_CONTROL_DECIDED	9u	/* images, where those that were computed are also out */
#define RPU_CONTROLS		10u

#define RPU_DECISION_IS		0u
#define RPU_DECISION_BANK	1u
#define RPU_DECISION_STOP	2u
#define RPU_DECISION_NUMBER	3u	/* it is the so many-th that is accepted, if it is */
#define RPU_DECISION_GROUPS	4u	/* of the copy of the result, in three directions */
#define RPU_DECISIONS		8u

/* Words behind an accepted image: its number, pixels above the threshold, nothing. */
#define RPU_RECORD		4u

#define RPU_VETOED		0u
#define RPU_ACCEPTED		1u
#define RPU_DROPPED		2u

#endif /* RPU_KERNEL_H */
