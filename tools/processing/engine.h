/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interface of an engine. Stages keep all state in the structures below and allocate nothing.
 * An image is width x height numbers, line by line without gaps; invalid pixels are NaN.
 */
#ifndef RPU_ENGINE_H
#define RPU_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rashpa-stream-format.h>

#define RPU_GAINS	3

/**
 * struct rpu_raw - a raw image
 * @data: first pixel
 * @line_stride: bytes from line to line
 */
struct rpu_raw {
	const void *data;
	size_t line_stride;
};

/**
 * struct rpu_calibration - how raw pixels become numbers; planes are of width x height numbers
 * @width: pixels
 * @height: pixels
 * @pixel: enum rashpa_pixel: u8, u16, u32; a JUNGFRAU's are u16
 * @jungfrau: two bits of a pixel are the gain's code; else there is one gain
 * @pedestal: planes from the highest gain on, in raw units; dark images update [0]
 * @per_gain: 1 / gain: results per raw unit; negative for a JUNGFRAU's [1] and [2]; NaN: the pixel
 *	is invalid
 * @saturated: without @jungfrau: raw values from here on are invalid
 * @dark_weight: weight of a dark image in the running mean, above 0; 1: replace the mean
 * @whole: results are rounded, halves upwards
 */
struct rpu_calibration {
	uint32_t width, height;
	uint32_t pixel;
	bool jungfrau;
	float *pedestal[RPU_GAINS], *per_gain[RPU_GAINS];
	uint32_t saturated;
	float dark_weight;
	bool whole;
};

/**
 * struct rpu_correction - offsets, background and outliers to remove, in place
 * @width: pixels
 * @height: pixels
 * @chip_width: width of regions with a common offset, pixels; 0: no such regions
 * @chip_height: height of these regions
 * @quiet: pixels with absolute values below this give the offset
 * @blank: plane: an image without sample, or NULL
 * @scale: multiply the blank by the ratio of the image's sum to its own, over valid pixels
 * @outlier: outliers become invalid
 * @outlier_above: an outlier is above this value
 * @outlier_ratio: and above this multiple of its largest neighbour
 * @mark: [pixels] for engines
 * @partial: [2 * height] for engines
 */
struct rpu_correction {
	uint32_t width, height;
	uint32_t chip_width, chip_height;
	float quiet;
	float *blank;
	bool scale;
	bool outlier;
	float outlier_above, outlier_ratio;
	uint8_t *mark;
	double *partial;
};

/**
 * struct rpu_assembly - source of each pixel of an assembled image
 * @pixels: pixels of the result
 * @source: [@pixels]: index of the source pixel; RPU_NOTHING: no source, invalid
 * @weight: [@pixels]: factor of the source pixel's value; NULL: 1
 */
struct rpu_assembly {
	size_t pixels;
	uint32_t *source;
	float *weight;
};

#define RPU_NOTHING	UINT32_MAX

/**
 * struct rpu_binning - sum blocks of pixels; one invalid pixel makes the sum invalid
 * @width: width of the result, pixels
 * @height: height of the result, pixels
 * @x: width of a block, pixels
 * @y: height of a block, pixels
 */
struct rpu_binning {
	uint32_t width, height;
	uint32_t x, y;
};

/**
 * struct rpu_bench - room for the pixels that threads keep, until all are counted
 * @places: number of threads
 * @room: elements of @column and @value per thread: capacity, a line, and a group of 16 more
 * @column: [@places * @room]
 * @value: likewise
 * @sum: [@places]
 */
struct rpu_bench {
	uint32_t places;
	size_t room;
	uint32_t *column;
	float *value;
	uint64_t *sum;
};

/**
 * struct rpu_csr - sparse image: row y consists of the elements from row[y] to
 *	before row[y + 1]
 * @row: height + 1 numbers
 * @column: column of each kept pixel, rising in a row
 * @value: likewise
 * @capacity: elements of @column and @value
 * @count: pixels above the threshold; above @capacity: overflow, and @row, @column and @value are
 *	undefined
 * @bench: bench of the pipeline
 */
struct rpu_csr {
	uint32_t *row, *column;
	float *value;
	uint32_t capacity;
	uint64_t count;
	struct rpu_bench *bench;
};

/** enum rpu_error - model of a bin's error */
enum rpu_error {
	RPU_ERROR_NONE,
	RPU_ERROR_POISSON,	/* the variance of counts is their number */
	RPU_ERROR_AZIMUTHAL,	/* from the deviation of pixels in the bin */
};

/**
 * struct rpu_matrix - the pixels in each bin and their parts: bin b has the elements from
 *	start[b] to before start[b + 1]
 * @bins: number of bins
 * @start: [@bins + 1]
 * @pixel: pixel of each element
 * @part: part of the pixel inside the bin, above 0; NULL: 1
 * @norm: plane: relative sensitivity of a pixel by solid angle and polarisation
 * @sum_norm: [@bins]: sum of @part times @norm
 * @error: enum rpu_error
 */
struct rpu_matrix {
	uint32_t bins;
	uint32_t *start, *pixel;
	float *part, *norm;
	double *sum_norm;
	uint32_t error;
};

/** enum rpu_steps - algorithm of the peak finder */
enum rpu_steps {
	RPU_PYFAI,
	RPU_PEAKFINDER8,
};

/**
 * struct rpu_finder - parameters and memory of the peak finder
 * @width: pixels
 * @height: pixels
 * @steps: enum rpu_steps
 * @rings: number of rings; pixels of a ring have the same distance from the beam
 * @start: [@rings + 1]: first pixel of each ring when pixels are ordered ring by ring
 * @slot: [pixels]: position of each pixel in that order
 * @place: [pixels]: ring coordinate of each pixel: 2.5 is the middle of the third ring
 * @cycles: rounds of leaving out pixels too far from a ring's mean
 * @clip: limit of that distance in deviations; for peakfinder8 also the least signal to noise
 * @pick: a peak exceeds the mean by this multiple of the uncertainty (pyFAI)
 * @noise: noise of the detector, part of the uncertainty (pyFAI)
 * @patch: side of the square in which a peak is the maximum, pixels (pyFAI)
 * @connected: picked pixels in that square, the peak itself included (pyFAI)
 * @threshold: a peak's pixels are above this (peakfinder8)
 * @least: fewest pixels of a peak (peakfinder8)
 * @most: most pixels of a peak (peakfinder8)
 * @radius: radius of the neighbourhood that a peak is compared with, pixels (peakfinder8)
 * @mean: [rings]; NaN: no ring has a valid pixel
 * @deviation: [rings]
 * @limit: [rings]: lower limit of a peak's pixels (peakfinder8) or of candidates (pyFAI)
 * @value: [pixels]: pixels ring by ring, for the engine
 * @mark: [pixels]
 * @found: [@height]: marked pixels of a line
 * @list: [pixels]: pixels of a peak
 */
struct rpu_finder {
	uint32_t width, height;
	uint32_t steps;
	uint32_t rings;
	uint32_t *start, *slot;
	float *place;
	uint32_t cycles;
	float clip, pick, noise;
	uint32_t patch, connected;
	float threshold;
	uint32_t least, most, radius;
	float *mean, *deviation, *limit, *value;
	uint8_t *mark;
	uint32_t *found, *list;
};

/**
 * struct rpu_statistics - mean and deviation of images, pixel by pixel
 * @mean: mean of valid values
 * @m2: sum of the squared distances from the mean (Welford 1962)
 * @n: number of valid values
 */
struct rpu_statistics {
	double *mean, *m2;
	uint32_t *n;
};

/**
 * struct rpu_engine - functions that compute the stages
 * @name: name in options and reports
 * @pretreat: convert a raw image to numbers
 * @dark: update the pedestal of the highest gain by a dark image
 * @correct: remove common offset, background and outliers
 * @assemble: move pixels to their place in the assembled image
 * @bin: sum blocks of pixels
 * @above: count the pixels above the threshold among @count
 * @compress: keep pixels above the threshold
 * @look: set mean, deviation and limit of rings; mark and count candidate pixels of peaks
 * @integrate: set the mean of each bin, and its error unless that is NULL; invalid pixels do not
 *	count, a bin without pixels is NaN
 * @accumulate: add an image to statistics
 */
struct rpu_engine {
	const char *name;
	void (*pretreat)(const struct rpu_calibration *c, const struct rpu_raw *raw, float *result);
	void (*dark)(struct rpu_calibration *c, const struct rpu_raw *raw);
	void (*correct)(const struct rpu_correction *c, float *pixel);
	void (*assemble)(const struct rpu_assembly *a, const float *pixel, float *result);
	void (*bin)(const struct rpu_binning *b, const float *pixel, float *result);
	size_t (*above)(const float *pixel, size_t count, float threshold);
	void (*compress)(const float *pixel, uint32_t width, uint32_t height, float threshold,
			 struct rpu_csr *csr);
	void (*look)(const struct rpu_finder *f, const float *pixel);
	void (*integrate)(const struct rpu_matrix *m, const float *pixel, float *intensity,
			  float *sigma);
	void (*accumulate)(struct rpu_statistics *s, const float *pixel, size_t count);
};

extern const struct rpu_engine rpu_reference;	/* plain code in double, for comparison */
extern const struct rpu_engine rpu_cpu;		/* all processors that OpenMP may use */

/* Functions of the engines for whole images, in separate files. */
void rpu_reference_correct(const struct rpu_correction *c, float *pixel);
void rpu_reference_assemble(const struct rpu_assembly *a, const float *pixel, float *result);
void rpu_reference_bin(const struct rpu_binning *b, const float *pixel, float *result);
void rpu_reference_integrate(const struct rpu_matrix *m, const float *pixel, float *intensity,
			     float *sigma);
void rpu_cpu_integrate(const struct rpu_matrix *m, const float *pixel, float *intensity,
		       float *sigma);
void rpu_reference_look(const struct rpu_finder *f, const float *pixel);
void rpu_cpu_look(const struct rpu_finder *f, const float *pixel);
void rpu_cpu_correct(const struct rpu_correction *c, float *pixel);
void rpu_cpu_assemble(const struct rpu_assembly *a, const float *pixel, float *result);
void rpu_cpu_bin(const struct rpu_binning *b, const float *pixel, float *result);

/*
 * Fill in rings without a valid pixel, whose mean is NaN, so that neighbouring rings can be
 * interpolated. They copy the next ring towards the beam, or else the next one outwards.
 */
static inline void rpu_bridge(const struct rpu_finder *f)
{
	uint32_t first = 0;

	while (first < f->rings && f->mean[first] != f->mean[first])
		first++;
	for (uint32_t b = 0; b < f->rings && first < f->rings; b++) {
		if (f->mean[b] == f->mean[b])
			continue;
		f->mean[b] = f->mean[b < first ? first : b - 1];
		f->deviation[b] = f->deviation[b < first ? first : b - 1];
	}
}

/* Mean and deviation of the rings around a place, by those of the next two. */
static inline void rpu_surroundings(const struct rpu_finder *f, float place, float *mean,
				    float *deviation)
{
	const float from = place - 0.5f > 0 ? place - 0.5f : 0;
	const uint32_t low = from, high = low + 1 < f->rings ? low + 1 : low;
	const float part = from - low;

	*mean = f->mean[low] + (f->mean[high] - f->mean[low]) * part;
	*deviation = f->deviation[low] + (f->deviation[high] - f->deviation[low]) * part;
}

/* Pixel i of a line. */
static inline uint32_t rpu_pixel(const void *line, uint32_t pixel, size_t i)
{
	switch (pixel) {
	case RASHPA_PIXEL_U8:
		return ((const uint8_t *)line)[i];
	case RASHPA_PIXEL_U16:
		return ((const uint16_t *)line)[i];
	default:
		return ((const uint32_t *)line)[i];
	}
}

#endif /* RPU_ENGINE_H */
