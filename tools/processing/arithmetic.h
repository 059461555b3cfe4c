/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Arithmetic of pixels: values in, values out. C, CUDA and GLSL compile this file, so that
 * all engines compute the same. GLSL has no pointers, so this file uses none.
 *
 * rpu_real is float; the reference has it as double.
 */
#ifndef RPU_ARITHMETIC_H
#define RPU_ARITHMETIC_H

#if defined(VULKAN) || defined(GL_core_profile)
#define RPU_FUNCTION
#define rpu_uint uint
#define rpu_real float
#define RPU_REAL(x) float(x)
#elif defined(__CUDACC__)
#define RPU_FUNCTION static __host__ __device__ __forceinline__
#define rpu_uint unsigned int
#else
#include <math.h>
#include <stdbool.h>
#define RPU_FUNCTION static inline
#define rpu_uint unsigned int
#endif

#ifndef rpu_real
#define rpu_real float
#endif
#ifndef RPU_REAL
#define RPU_REAL(x) ((rpu_real)(x))
#endif

/* --- JUNGFRAU: bits 15 and 14 of a raw word are the gain's code, the others the ADC's value --- */

#define RPU_VALUE_MASK		0x3fffu
/* A pixel that is bad or did not come: the lowest gain, and no value. */
#define RPU_MISSING		0xc000u

RPU_FUNCTION rpu_uint rpu_code(rpu_uint raw)
{
	return raw >> 14;
}

RPU_FUNCTION rpu_real rpu_value(rpu_uint raw)
{
	return RPU_REAL(raw & RPU_VALUE_MASK);
}

/* Code 2 does not occur. */
RPU_FUNCTION bool rpu_valid(rpu_uint raw)
{
	return raw != RPU_MISSING && rpu_code(raw) != 2u;
}

/* 0, 1, 2 of the codes 0, 1, 3. */
RPU_FUNCTION rpu_uint rpu_stage(rpu_uint raw)
{
	return rpu_code(raw) - (rpu_code(raw) >> 1);
}

/*
 * Running mean with a dark image; weight 1 / N averages about N. Weight 1 replaces the pedestal:
 * a sum would keep NaN, and lose the value next to a huge one.
 */
RPU_FUNCTION rpu_real rpu_mean_of(rpu_real pedestal, rpu_real dark, rpu_real weight)
{
	return weight < 1 ? pedestal + weight * (dark - pedestal) : dark;
}

/*
 * The pedestal of a JUNGFRAU's highest gain. One of a dark image that was taken with another gain
 * changes nothing (thesis, 4.2: only the highest gain's pedestal moves).
 */
RPU_FUNCTION rpu_real rpu_dark_mean(rpu_real pedestal, rpu_uint dark, rpu_real weight)
{
	return rpu_code(dark) == 0u ? rpu_mean_of(pedestal, rpu_value(dark), weight) : pedestal;
}

/*
 * (value - pedestal) / gain, by 1 / gain. Gains of the stages 1 and 2 are negative. The unit is
 * that of gain: keV for ADU/keV, photons for ADU/photon, or for ADU/keV times the photon's keV.
 */
RPU_FUNCTION rpu_real rpu_convert(rpu_uint raw, rpu_real pedestal, rpu_real per_gain)
{
	return (rpu_value(raw) - pedestal) * per_gain;
}

/* The same of a detector with one gain, whose raw words are numbers. */
RPU_FUNCTION rpu_real rpu_scale(rpu_uint raw, rpu_real pedestal, rpu_real per_gain)
{
	return (RPU_REAL(raw) - pedestal) * per_gain;
}

/*
 * Halves upwards, also of what is negative: all languages can do that alike. The difference is
 * exact wherever it decides; x + 0.5 is not: it is rounded above 2^23, and just below a half.
 */
RPU_FUNCTION rpu_real rpu_round(rpu_real x)
{
	const rpu_real below = RPU_REAL(floor(x));

	return x - below >= RPU_REAL(0.5) ? below + RPU_REAL(1) : below;
}

/* Threshold of veto and compression: above, not equal. NaN is never above. */
RPU_FUNCTION bool rpu_above(rpu_real x, rpu_real threshold)
{
	return x > threshold;
}

/* --- what is not of the sample --- */

/* Does a pixel contribute to its chip's common offset? Only pixels without photons do. */
RPU_FUNCTION bool rpu_quiet(rpu_real x, rpu_real below)
{
	return x < below && x > -below;
}

/* Without what a blank has at this pixel, so many times. */
RPU_FUNCTION rpu_real rpu_without(rpu_real x, rpu_real blank, rpu_real times)
{
	return x - blank * times;
}

/*
 * A single hot pixel, or a cosmic ray: large, and much larger than its eight neighbours. A peak is
 * wider than a pixel. NaN is never an outlier.
 */
RPU_FUNCTION bool rpu_outlier(rpu_real x, rpu_real largest_around, rpu_real above, rpu_real ratio)
{
	return x > above && !(largest_around * ratio >= x);
}

/* --- where a pixel is --- */

/*
 * A detector's pixel at p1, p2 from the point of normal incidence (y, x; metres), the sample at
 * a distance, three rotations: coordinates t1, t2 across the beam and t3 along it, as
 * pyFAI's manual has them ("Geometry", Kieffer and Karkoulis, Journal of Physics 425, 2013).
 */
RPU_FUNCTION rpu_real rpu_t1(rpu_real p1, rpu_real p2, rpu_real distance, rpu_real sin1,
			     rpu_real cos1, rpu_real sin2, rpu_real cos2, rpu_real sin3,
			     rpu_real cos3)
{
	return p1 * cos2 * cos3 + p2 * (cos3 * sin1 * sin2 - cos1 * sin3) -
	       distance * (cos1 * cos3 * sin2 + sin1 * sin3);
}

RPU_FUNCTION rpu_real rpu_t2(rpu_real p1, rpu_real p2, rpu_real distance, rpu_real sin1,
			     rpu_real cos1, rpu_real sin2, rpu_real cos2, rpu_real sin3,
			     rpu_real cos3)
{
	return p1 * cos2 * sin3 + p2 * (cos1 * cos3 + sin1 * sin2 * sin3) -
	       distance * (cos1 * sin2 * sin3 - cos3 * sin1);
}

RPU_FUNCTION rpu_real rpu_t3(rpu_real p1, rpu_real p2, rpu_real distance, rpu_real sin1,
			     rpu_real cos1, rpu_real sin2, rpu_real cos2)
{
	return p1 * sin2 - p2 * cos2 * sin1 + distance * cos1 * cos2;
}

/* --- peaks --- */

/*
 * How many deviations from the mean of n values one of them may be: of many some are far by chance
 * (Chauvenet's criterion, as pyFAI has it).
 */
RPU_FUNCTION rpu_real rpu_clip(rpu_real clip, rpu_uint n)
{
	const rpu_real by_chance = RPU_REAL(n) * RPU_REAL(0.3989422804);	/* n / sqrt(2 pi) */
	const rpu_real square = by_chance > 1 ? 2 * RPU_REAL(log(by_chance)) : 0;

	return square > clip * clip ? RPU_REAL(sqrt(square)) : clip;
}

/* Values that are all the same, but for what rounding does: there is nothing to leave out. */
RPU_FUNCTION bool rpu_even(rpu_real mean, rpu_real deviation)
{
	return deviation <= RPU_REAL(0.000001) * (mean < 0 ? -mean : mean);
}

/* The square of what a pixel's background is uncertain by, of a detector with noise. pyFAI. */
RPU_FUNCTION rpu_real rpu_uncertain(rpu_real deviation, rpu_real noise)
{
	return deviation * deviation + noise * noise;
}

/* Is a pixel so far above its background that it may be a peak's? pyFAI. */
RPU_FUNCTION bool rpu_picked(rpu_real above, rpu_real uncertain, rpu_real pick)
{
	return above > 0 && above * above >= pick * pick * uncertain;
}

/* What pixels of peaks are above. peakfinder8. */
RPU_FUNCTION rpu_real rpu_limit(rpu_real mean, rpu_real deviation, rpu_real snr, rpu_real threshold)
{
	return mean + snr * deviation > threshold ? mean + snr * deviation : threshold;
}

/* --- of a bin --- */

/* Sum of part times pixel, by that of part times norm. */
RPU_FUNCTION rpu_real rpu_weighted_mean(rpu_real sum, rpu_real norm)
{
	return sum / norm;
}

/* Error of that mean, of the sum of variances times the squares of their weights. */
RPU_FUNCTION rpu_real rpu_weighted_error(rpu_real variance, rpu_real norm)
{
	return RPU_REAL(sqrt(variance)) / norm;
}

/* --- mean and squared distances, number after number (Welford, Technometrics 4, 1962) --- */

/* n: number of values, this one included */
RPU_FUNCTION rpu_real rpu_mean(rpu_real mean, rpu_real x, rpu_uint n)
{
	return mean + (x - mean) / RPU_REAL(n);
}

/* What this one adds to the sum of the squared distances from the mean. */
RPU_FUNCTION rpu_real rpu_m2(rpu_real before, rpu_real after, rpu_real x)
{
	return (x - before) * (x - after);
}

#endif /* RPU_ARITHMETIC_H */
