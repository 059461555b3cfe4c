/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What sinks tell of a pipeline besides images. */
#ifndef RPU_SINK_H
#define RPU_SINK_H

#include "pipeline.h"

#define RPU_TIME	32		/* bytes of a text */
#define RPU_NO_NUMBER	INT32_MIN	/* what no number becomes, where numbers are whole */
#define RPU_MASKED	(1u << 8)	/* in NXmx's words: by the user */

/* 2026-01-31T12:34:56.789Z */
void rpu_time_text(char to[RPU_TIME]);

/*
 * Pixels of results that are never valid become RPU_MASKED, others 0. 1: there are some, 0: there
 * are none, -1: no memory.
 */
int rpu_mask(const struct rashpa_pipeline *p, uint32_t *mask);

/* Are pixels of results whole numbers? */
bool rpu_is_whole(const struct rashpa_pipeline *p);
/* Those; what does not fit is the nearest one that does. */
void rpu_whole_numbers(const float *from, size_t n, int32_t *to);

/* Of the beam, in eV and angstrom; 0: not known. */
double rpu_energy(const struct rashpa_pipeline *p);
double rpu_wavelength(const struct rashpa_pipeline *p);

#endif /* RPU_SINK_H */
