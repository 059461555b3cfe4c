/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metadata of a pipeline that sinks write, besides images. */
#ifndef RPU_SINK_H
#define RPU_SINK_H

#include "processing/pipeline.h"

#define RPU_TIME	32		/* bytes of a text */
#define RPU_NO_NUMBER	INT32_MIN	/* NaN in images of whole numbers */
#define RPU_MASKED	(1u << 8)	/* NXmx: user defined mask */

/* 2026-01-31T12:34:56.789Z */
void rpu_time_text(char to[RPU_TIME]);

/*
 * Pixels of results that are never valid become RPU_MASKED, others 0. 1: there are some, 0: there
 * are none, -1: no memory.
 */
int rpu_mask(const struct rashpa_pipeline *p, uint32_t *mask);

/* Are pixels of results whole numbers? */
bool rpu_is_whole(const struct rashpa_pipeline *p);
/* Convert results to whole numbers; values out of range become the nearest limit. */
void rpu_whole_numbers(const float *from, size_t n, int32_t *to);

/**
 * struct rpu_known - data of the experiment in the configuration
 * @ev: energy of a photon, eV; 0: unknown
 * @angstrom: wavelength, Angstrom
 * @place: the following fields are known
 * @distance: distance along the beam, metres
 * @beam_x: horizontal position of the beam on the detector, pixels from the corner
 * @beam_y: vertical position of the beam
 * @pixel_x: width of a pixel, metres
 * @pixel_y: height of a pixel, metres
 */
struct rpu_known {
	double ev, angstrom;
	bool place;
	double distance, beam_x, beam_y, pixel_x, pixel_y;
};

void rpu_know(const struct rashpa_pipeline *p, struct rpu_known *known);

#endif /* RPU_SINK_H */
