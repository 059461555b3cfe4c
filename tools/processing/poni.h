/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Position of a detector: files of pyFAI, as its calibration writes them. */
#ifndef RPU_PONI_H
#define RPU_PONI_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct rpu_poni - lengths are metres, angles radians; 1 is y, 2 is x
 * @pixel1: height of a pixel
 * @pixel2: width of a pixel
 * @distance: from the sample to the point of normal incidence
 * @poni1: y of that point, from the corner of the first pixel
 * @poni2: x of that point
 * @rotation: rotations of the detector about the axes 1, 2, 3
 * @wavelength: wavelength; 0: unknown
 * @width: width of images, pixels; 0: unknown
 * @height: height of images, pixels; 0: unknown
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

/* Does the file fit images of this size? 0, or -1 with the reason. */
int rpu_poni_fits(const char *path, const struct rpu_poni *poni, uint32_t width, uint32_t height,
		  char *why);

/* Units of a pixel's distance from the beam. */
enum rpu_unit { RPU_TTH_DEG, RPU_Q_NM, RPU_Q_A, RPU_R_MM };

/**
 * struct rpu_view - positions of pixels
 * @poni: the geometry
 * @unit: unit of rpu_radius()
 * @sin: sines of the rotations, set by rpu_view_begin()
 * @cos: cosines of the rotations
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
