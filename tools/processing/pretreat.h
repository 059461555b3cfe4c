/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From raw images of a JUNGFRAU to photons or energy: what stands before all other processing.
 * Images are given line by line without gaps, width x height pixels.
 */
#ifndef RPU_PRETREAT_H
#define RPU_PRETREAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RPU_GAINS	3

/**
 * struct rpu_calibration - what is known of each pixel; planes of @pixels numbers
 * @pixels: of an image
 * @pedestal: ADU, of the gains from the highest on; [0] moves with dark images
 * @per_gain: 1 / gain, in the unit of results by ADU; negative for [1] and [2]
 * @mask: not 0: the pixel is invalid; or NULL
 * @dark_weight: of a dark image in the running mean, above 0; 1: it replaces
 * @whole: results are rounded, halves upwards
 */
struct rpu_calibration {
	size_t pixels;
	float *pedestal[RPU_GAINS], *per_gain[RPU_GAINS];
	uint8_t *mask;
	float dark_weight;
	bool whole;
};

/**
 * struct rpu_engine - who computes
 * @name: for options and reports
 * @pretreat: an image; what is invalid becomes NaN
 * @dark: a dark image moves the pedestal of the highest gain
 * @above: how many pixels from @first on, @count of them, are above the threshold
 */
struct rpu_engine {
	const char *name;
	void (*pretreat)(const struct rpu_calibration *c, const uint16_t *raw, float *result);
	void (*dark)(struct rpu_calibration *c, const uint16_t *raw);
	size_t (*above)(const float *pixel, size_t count, float threshold);
};

extern const struct rpu_engine rpu_reference;	/* in double, and no tricks: the judge */
extern const struct rpu_engine rpu_cpu;		/* all processors that OpenMP may use */

#endif /* RPU_PRETREAT_H */
