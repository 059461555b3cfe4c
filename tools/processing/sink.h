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

/**
 * struct rpu_known - what a configuration tells of the experiment
 * @ev: of a photon; 0: not known
 * @angstrom: its wavelength
 * @place: what follows is known
 * @distance: along the beam, metres
 * @beam_x: where it would hit the detector, pixels from the corner
 * @beam_y: likewise
 * @pixel_x: size of a pixel, metres
 * @pixel_y: likewise
 */
struct rpu_known {
	double ev, angstrom;
	bool place;
	double distance, beam_x, beam_y, pixel_x, pixel_y;
};

void rpu_know(const struct rashpa_pipeline *p, struct rpu_known *known);

#endif /* RPU_SINK_H */
