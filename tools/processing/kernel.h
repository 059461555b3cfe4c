/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Constants shared by kernels and the host; C, GLSL and CUDA include this file. */
#ifndef RPU_KERNEL_H
#define RPU_KERNEL_H

#define RPU_LANES	128u		/* lanes of a group; each GPU supports as many */
#define RPU_LINE	65535u		/* groups in one dimension; each GPU supports as many */
#define RPU_PIECE	1024u		/* pixels that a group of above() counts */

/* Words of the buffer in which kernels return counts. */
#define RPU_TOLD_ABOVE	0u
#define RPU_TOLD_KEPT	1u
#define RPU_TOLDS	2u

/* Words of the control block of a drive, see drive.c: all of them only rise. */
#define RPU_CONTROL_IN		0u	/* images that were copied in */
#define RPU_CONTROL_COMPUTED	1u	/* images that were computed */
#define RPU_CONTROL_ACCEPTED	2u	/* images that passed the veto and are in a bank */
#define RPU_CONTROL_TAKEN	3u	/* accepted images that were copied to the host */
#define RPU_CONTROL_DROPPED	4u	/* images that passed, but all banks were full */
#define RPU_CONTROL_STOP	5u	/* 1: end all waits */
#define RPU_CONTROL_PIECES	6u	/* pieces of the window that may be overwritten */
#define RPU_CONTROL_LOCK	7u	/* internal lock: images or pieces that have arrived */
#define RPU_CONTROL_FREED	8u	/* results that the host has released */
#define RPU_CONTROL_DECIDED	9u	/* images with a decision, if COMPUTED includes the copy */
#define RPU_CONTROL_DARK	10u	/* dark images */
#define RPU_CONTROLS		11u
/* Behind them the host sets for image s word s % (slots + RPU_ROLES_MORE): 1 for a dark one. */
#define RPU_ROLES_MORE		8u	/* a slot may be written before its image was computed */

#define RPU_DECISION_IS		0u
#define RPU_DECISION_BANK	1u
#define RPU_DECISION_STOP	2u
#define RPU_DECISION_NUMBER	3u	/* number among accepted images, if accepted */
#define RPU_DECISION_GROUPS	4u	/* groups of the result's copy, in three dimensions */
#define RPU_DECISIONS		8u

/* Words that follow an accepted image: its number, pixels above the threshold, dark images before it, unused. */
#define RPU_RECORD		4u

#define RPU_VETOED		0u
#define RPU_ACCEPTED		1u
#define RPU_DROPPED		2u
#define RPU_DARK		3u

#endif /* RPU_KERNEL_H */
