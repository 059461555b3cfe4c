/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Where a detector is: files of pyFAI, as its calibration writes them. */
#ifndef RPU_PONI_H
#define RPU_PONI_H

/**
 * struct rpu_poni - lengths are metres, angles radians; 1 is y, 2 is x
 * @pixel1: height of a pixel
 * @pixel2: width
 * @distance: from the sample to the point of normal incidence
 * @poni1: that point, from the corner of the first pixel
 * @poni2: likewise
 * @rotation: of the detector, about the axes 1, 2, 3
 * @wavelength: 0: not told
 */
struct rpu_poni {
	double pixel1, pixel2;
	double distance, poni1, poni2;
	double rotation[3];
	double wavelength;
};

/* Versions 1, 2 and 2.1. 0, or -1 with the reason in why[WHY_SIZE]. */
int rpu_poni_read(const char *path, struct rpu_poni *poni, char *why);

#endif /* RPU_PONI_H */
