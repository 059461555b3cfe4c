/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a detector is: files of pyFAI, as its calibration writes them. */
#ifndef RPU_PONI_H
#define RPU_PONI_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct rpu_poni - lengths are metres, angles radians; 1 is y, 2 is x
 * @pixel1: height of a pixel
 * @pixel2: width
 * @distance: from the sample to the point of normal incidence
 * @poni1: that point, from the corner of the first pixel
 * @poni2: likewise
 * @rotation: of the detector, about the axes 1, 2, 3
 * @wavelength: 0: not told
 * @width: of images, pixels; 0: not told
 * @height: likewise
 * @chips_of_256: pixels at borders of such chips are twice as wide
 */
struct rpu_poni {
	double pixel1, pixel2;
	double distance, poni1, poni2;
	double rotation[3];
	double wavelength;
	uint32_t width, height;
	bool chips_of_256;
};

/* Versions 1, 2 and 2.1. 0, or -1 with the reason in why[WHY_SIZE]. */
int rpu_poni_read(const char *path, struct rpu_poni *poni, char *why);

/* Is it of such images? 0, or -1 with the reason. */
int rpu_poni_fits(const char *path, const struct rpu_poni *poni, uint32_t width, uint32_t height,
		  char *why);

/* What tells how far a pixel is from the beam. */
enum rpu_unit { RPU_TTH_DEG, RPU_Q_NM, RPU_Q_A, RPU_R_MM };

/**
 * struct rpu_view - where pixels are
 * @poni: the geometry
 * @unit: of rpu_radius()
 * @sin: of the rotations: rpu_view_begin()
 * @cos: likewise
 */
struct rpu_view {
	struct rpu_poni poni;
	enum rpu_unit unit;
	double sin[3], cos[3];
};

void rpu_view_begin(struct rpu_view *view);

/* Of a point of the detector, in pixels from its corner. */
double rpu_radius(const struct rpu_view *view, double y, double x);

#endif /* RPU_PONI_H */
