/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What an engine has to be able to do. Stages have no state but what is in the structures here, and
 * allocate nothing. An image is width x height numbers, line by line without gaps; what is invalid
 * is NaN.
 */
#ifndef RPU_ENGINE_H
#define RPU_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rashpa-stream-format.h"

#define RPU_GAINS	3

/**
 * struct rpu_raw - an image as it came
 * @data: its first pixel
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
 * @pedestal: of the gains from the highest on, in the raw pixels' unit; [0] moves with dark images
 * @per_gain: 1 / gain: results per raw unit; negative for a JUNGFRAU's [1] and [2]; NaN: the pixel
 *	is invalid
 * @saturated: without @jungfrau: raw values from here on are invalid
 * @dark_weight: of a dark image in the running mean, above 0; 1: it replaces
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
 * struct rpu_correction - what is taken away of an image; in place
 * @width: pixels
 * @height: pixels
 * @chip_width: of regions that have a common offset; 0: there are none
 * @chip_height: likewise
 * @quiet: pixels whose size is below tell of the offset
 * @blank: plane: an image without sample; or NULL
 * @scale: the blank is taken as often as its sum goes into that of the image, over pixels that both
 *	have; else once
 * @outlier: outliers become invalid
 * @outlier_above: and are above
 * @outlier_ratio: and so many times their largest neighbour
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
 * struct rpu_assembly - where pixels go
 * @pixels: of the result
 * @source: [@pixels]: index of a pixel, RPU_NOTHING: none, it is invalid
 * @weight: [@pixels]: part of that pixel's value; NULL: all of it
 */
struct rpu_assembly {
	size_t pixels;
	uint32_t *source;
	float *weight;
};

#define RPU_NOTHING	UINT32_MAX

/**
 * struct rpu_binning - blocks of pixels become one: the sum, invalid if one of them is
 * @width: pixels of the result
 * @height: likewise
 * @x: pixels of a block
 * @y: likewise
 */
struct rpu_binning {
	uint32_t width, height;
	uint32_t x, y;
};

/**
 * struct rpu_bench - where threads put what they keep until it is known how much there is
 * @places: how many threads
 * @room: elements of @column and @value for each: what fits, a line, and a group of 16 more
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
 * struct rpu_csr - an image of which only some pixels are kept: row y has those from row[y] to
 *	before row[y + 1]
 * @row: height + 1 numbers
 * @column: of each that is kept, rising in a row
 * @value: likewise
 * @capacity: elements of @column and @value
 * @count: pixels above the threshold; more than @capacity: overflow, and what is in @row, @column
 *	and @value is nothing
 * @bench: of the pipeline
 */
struct rpu_csr {
	uint32_t *row, *column;
	float *value;
	uint32_t capacity;
	uint64_t count;
	struct rpu_bench *bench;
};

/** enum rpu_error - what the error of a bin is */
enum rpu_error {
	RPU_ERROR_NONE,
	RPU_ERROR_POISSON,	/* of counts: their variance is their number */
	RPU_ERROR_AZIMUTHAL,	/* how much pixels of the bin differ */
};

/**
 * struct rpu_matrix - which pixels are in a bin, and how much of them: bin b has the elements from
 *	start[b] to before start[b + 1]
 * @bins: how many
 * @start: [@bins + 1]
 * @pixel: of each element
 * @part: of the pixel that is in the bin, above 0; NULL: 1
 * @norm: plane: what a pixel sees of what it would see beside the beam: solid angle, polarisation
 * @sum_norm: [@bins]: of @part times @norm
 * @error: enum rpu_error
 */
struct rpu_matrix {
	uint32_t bins;
	uint32_t *start, *pixel;
	float *part, *norm;
	double *sum_norm;
	uint32_t error;
};

/** enum rpu_steps - whose steps a peak finder takes */
enum rpu_steps {
	RPU_PYFAI,
	RPU_PEAKFINDER8,
};

/**
 * struct rpu_finder - how peaks are found, and memory for it
 * @width: pixels
 * @height: pixels
 * @steps: enum rpu_steps
 * @rings: of pixels that are as far from the beam, how many
 * @start: [@rings + 1]: of each among all pixels, ring by ring
 * @slot: [pixels]: where a pixel is among them
 * @place: [pixels]: where a pixel is among the rings: 2.5 is the middle of the third one
 * @cycles: how often what is too far from the mean of a ring is left out
 * @clip: too far: times the deviation; of peakfinder8 the least signal to noise as well
 * @pick: a peak is above the mean by so many times what that is uncertain by (pyFAI)
 * @noise: of the detector, a part of what it is uncertain by (pyFAI)
 * @patch: pixels of the side of the square in which it is the farthest above (pyFAI)
 * @connected: pixels of that square that are picked, itself as well (pyFAI)
 * @threshold: a peak's pixels are above this (peakfinder8)
 * @least: pixels of a peak (peakfinder8)
 * @most: likewise
 * @radius: of the neighbourhood that a peak is compared with, pixels (peakfinder8)
 * @mean: [rings]; NaN: no ring has a valid pixel
 * @deviation: [rings]
 * @limit: [rings]: what pixels of peaks are above (peakfinder8), or those that may be (pyFAI)
 * @value: [pixels]: of the engine: of pixels, ring by ring
 * @mark: [pixels]
 * @found: [@height]: marked pixels of a line
 * @list: [pixels]: those of a peak
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
 * @mean: of what was valid
 * @m2: sum of the squared distances from it (Welford 1962)
 * @n: how often a pixel was valid
 */
struct rpu_statistics {
	double *mean, *m2;
	uint32_t *n;
};

/**
 * struct rpu_engine - who computes
 * @name: for options and reports
 * @pretreat: a raw image becomes numbers
 * @dark: a dark image moves the pedestal of the highest gain
 * @correct: take away what is not of the sample
 * @assemble: bring pixels where they are seen
 * @bin: blocks of pixels become one
 * @above: how many of @count pixels are above the threshold
 * @compress: keep what is above the threshold
 * @look: mean, deviation and limit of rings; mark and count what may be a pixel of a peak
 * @integrate: the mean of each bin, and its error, unless that is NULL; what is invalid does not
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

extern const struct rpu_engine rpu_reference;	/* in double, and no tricks: the judge */
extern const struct rpu_engine rpu_cpu;		/* all processors that OpenMP may use */

/* Of the engines, in files of their own: what is done with whole images. */
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
 * Rings without a valid pixel, whose mean is NaN: they have what the next one towards the beam has,
 * or else the next one outwards, so that those beside them are not compared with nothing.
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
