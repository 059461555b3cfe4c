// SPDX-License-Identifier: LGPL-2.1-or-later
/* The first stage: raw pixels become photons or energy. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "processing/pipeline.h"
#include "processing/plane.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* --- the configuration --- */

RPU_READS_WORD(bool, read_detector, "counting", "jungfrau")
RPU_READS_WORD(bool, read_unit, "photon", "keV")

/* A file, or one for each gain. */
static int read_files(struct json_place *at, struct json_object *value, char (*path)[RPU_PATH],
		      unsigned int *files)
{
	if (!json_object_is_type(value, json_type_array)) {
		*files = 1;
		return rpu_read_input(at, value, path[0]);
	}
	if (json_read_array(at, value, rpu_read_input, path, RPU_PATH, RPU_GAINS, files))
		return -1;
	return *files ? 0 : json_wrong(at, "names no file");
}

static int read_pedestal(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;

	return read_files(at, value, p->pretreat.pedestal, &p->pretreat.pedestals);
}

static int read_gain(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;

	if (json_object_is_type(value, json_type_string) ||
	    json_object_is_type(value, json_type_array))
		return read_files(at, value, p->pretreat.gain, &p->pretreat.gains);
	if (json_read_real(at, value, &p->pretreat.constant_gain))
		return -1;
	return p->pretreat.constant_gain ? 0 : json_wrong(at, "a gain of 0");
}

RPU_READS(real, read_energy, 0.001, 1000000)

static int read_dark(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = { "move", "ignore", NULL };
	unsigned int index;

	if (json_read_word(at, value, words, &index))
		return -1;
	*(bool *)to = !index;
	return 0;
}

RPU_READS(u32, read_images, 1, 1 << 20)
RPU_READS(u32, read_saturated, 1, UINT32_MAX)

static int pretreat_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "detector", false, read_detector, &p->pretreat.jungfrau },
		{ "pedestal", false, read_pedestal, p },
		{ "gain", false, read_gain, p },
		{ "gain_unit", false, read_unit, &p->pretreat.gain_kev },
		{ "unit", false, read_unit, &p->pretreat.result_kev },
		{ "photon_energy_kev", false, read_energy, &p->pretreat.photon_energy_kev },
		{ "mask", false, rpu_read_input, p->pretreat.mask },
		{ "dark", false, read_dark, &p->pretreat.move },
		{ "dark_images", false, read_images, &p->pretreat.dark_images },
		{ "saturated", false, read_saturated, &p->pretreat.saturated },
		{ "round", false, json_read_bool, &p->pretreat.whole },
	};

	p->pretreat.move = true;
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (!json_object_object_get_ex(value, "unit", NULL))
		p->pretreat.result_kev = p->pretreat.gain_kev;
	if (p->pretreat.result_kev != p->pretreat.gain_kev && !p->pretreat.photon_energy_kev)
		return json_wrong(at, "photon_energy_kev is missing: gain_unit and unit differ");
	if (p->pretreat.jungfrau && (!p->pretreat.pedestals || !p->pretreat.gains))
		return json_wrong(at, "a jungfrau needs pedestal and gain, each of three gains");
	if (p->pretreat.jungfrau && p->pretreat.saturated)
		return json_wrong(at, "saturated is not for a jungfrau");
	return 0;
}

/* --- images --- */

/* 1 / gain in the unit of results; an impossible gain makes its pixel invalid. */
static void make_reciprocals(const struct rashpa_pipeline *p, float *gain, size_t n)
{
	const double energy = p->pretreat.photon_energy_kev;
	const double factor = p->pretreat.gain_kev == p->pretreat.result_kev ? 1 :
			      p->pretreat.gain_kev ? 1 / energy : energy;

	for (size_t i = 0; i < n; i++) {
		gain[i] = gain[i] && isfinite(gain[i]) ? factor / gain[i] : NAN;
		if (!isnormal(gain[i]))
			gain[i] = NAN;
	}
}

static int apply_mask(struct rashpa_pipeline *p, unsigned int gains, size_t n, char *why)
{
	const struct rpu_shape shape = { 1, p->height, p->width };
	const char *path = p->pretreat.mask;
	float *mask = rpu_memory(n, sizeof(*mask));

	if (!mask)
		return because(why, -1, "%s: no memory", path);
	if (rpu_planes_read(&path, 1, &shape, mask, why)) {
		free(mask);
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		for (unsigned int k = 0; k < gains && mask[i]; k++)
			p->pretreat.calibration.per_gain[k][i] = NAN;
	}
	free(mask);
	return 0;
}

static int read_planes(const struct rashpa_pipeline *p, const char (*path)[RPU_PATH],
		       unsigned int files, unsigned int gains, float *to, char *why)
{
	const struct rpu_shape shape = { gains, p->height, p->width };
	const char *names[RPU_GAINS];

	for (unsigned int i = 0; i < RPU_GAINS; i++)
		names[i] = path[i];
	return rpu_planes_read(names, files, &shape, to, why);
}

static int pretreat_begin(struct rashpa_pipeline *p, char *why)
{
	static const uint32_t largest[] = {
		[RASHPA_PIXEL_U8] = UINT8_MAX, [RASHPA_PIXEL_U16] = UINT16_MAX,
		[RASHPA_PIXEL_U32] = UINT32_MAX,
	};
	const unsigned int gains = p->pretreat.jungfrau ? RPU_GAINS : 1;
	const size_t n = rpu_pixels(p);
	struct rpu_calibration *c = &p->pretreat.calibration;
	float *pedestal, *per_gain;

	if (p->pretreat.jungfrau && p->geometry.pixel != RASHPA_PIXEL_U16)
		return because(why, -1, "pipeline: pretreat: a jungfrau's pixels are u16, and the stream's are not");
	p->pretreat.planes = rpu_memory(2 * gains * n, sizeof(float));
	if (!p->pretreat.planes)
		return because(why, -1, "no memory for a calibration of %zu pixels", n);
	pedestal = p->pretreat.planes;
	per_gain = pedestal + gains * n;
	if (p->pretreat.pedestals &&
	    read_planes(p, (const char (*)[RPU_PATH])p->pretreat.pedestal, p->pretreat.pedestals,
			gains, pedestal, why))
		return -1;
	/* no result may come of it but NaN, until a dark image replaces it */
	for (size_t i = 0; i < gains * n; i++)
		pedestal[i] = isfinite(pedestal[i]) ? pedestal[i] : NAN;
	for (size_t i = 0; i < gains * n; i++)
		per_gain[i] = p->pretreat.constant_gain ? p->pretreat.constant_gain : 1;
	if (p->pretreat.gains &&
	    read_planes(p, (const char (*)[RPU_PATH])p->pretreat.gain, p->pretreat.gains, gains,
			per_gain, why))
		return -1;
	make_reciprocals(p, per_gain, gains * n);
	if (p->pretreat.constant_gain && isnan(per_gain[0]))
		return because(why, -1, "pipeline: pretreat.gain: with %g all results would be 0 or infinite",
			       p->pretreat.constant_gain);
	if (p->pretreat.saturated > largest[p->geometry.pixel] + 1ull)
		return because(why, -1, "pipeline: pretreat.saturated: %" PRIu32
			       " is no number of the stream's pixels, which are up to %" PRIu32,
			       p->pretreat.saturated, largest[p->geometry.pixel]);
	*c = (struct rpu_calibration) {
		.width = p->width, .height = p->height, .pixel = p->geometry.pixel,
		.jungfrau = p->pretreat.jungfrau, .whole = p->pretreat.whole,
		.saturated = p->pretreat.saturated ? p->pretreat.saturated :
			     largest[p->geometry.pixel],
		.dark_weight = 1. / (p->pretreat.dark_images ? p->pretreat.dark_images : 1),
	};
	for (unsigned int k = 0; k < gains; k++) {
		c->pedestal[k] = pedestal + k * n;
		c->per_gain[k] = per_gain + k * n;
	}
	if (*p->pretreat.mask && apply_mask(p, gains, n, why))
		return -1;
	if (p->gpu_driver) {
		if (!p->gpu && p->gpu_driver->open(p->gpu_name, &p->gpu, why))
			return -1;
		return rpu_gpu_begin(p->gpu, c, &p->geometry.ring, why);
	}
	if (!*p->board_name)
		return 0;
	if (!p->board && rpu_board_open(p->board_name, &p->board, why))
		return -1;
	return rpu_board_begin(p->board, c, &p->geometry.ring, why);
}

static int pretreat_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->pretreated = rpu_memory((size_t)p->geometry.width * p->geometry.height,
				   sizeof(*w->pretreated));
	return w->pretreated ? 0 : -1;
}

static int run_dark(struct rashpa_pipeline *p, const struct rpu_work *w)
{
	if (!p->pretreat.move)
		return 0;
	if (p->board)
		return rpu_board_dark(p->board, &w->raw, p->why);
	if (p->gpu)
		return rpu_gpu_dark(p->gpu, &p->pretreat.calibration, &w->raw, p->why);
	p->engine->dark(&p->pretreat.calibration, &w->raw);
	return 0;
}

/* Pretreat an image by board, GPU or CPU. */
static int convert(struct rashpa_pipeline *p, const struct rpu_work *w)
{
	if (p->board)
		return rpu_board_pretreat(p->board, &w->raw, w->image, p->why);
	if (p->gpu)
		return rpu_gpu_pretreat(p->gpu, &p->pretreat.calibration, &w->raw, p->why);
	p->engine->pretreat(&p->pretreat.calibration, &w->raw, w->image);
	return 0;
}

static int pretreat_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	const size_t n = (size_t)p->geometry.width * p->geometry.height;
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_PRETREAT];

	stat->bytes_in += n << (p->geometry.pixel - RASHPA_PIXEL_U8);
	if (w->result.role == RASHPA_IMAGE_DARK)
		return run_dark(p, w);
	w->image = w->pretreated;
	if (convert(p, w))
		return -1;
	stat->bytes_out += n * sizeof(*w->image);
	w->result.image = w->image;
	return 1;
}

static bool pretreat_whole(const struct rashpa_pipeline *p)
{
	return p->pretreat.whole;
}

/* In one gain is enough. */
static bool pretreat_valid(const struct rashpa_pipeline *p, size_t pixel)
{
	float * const *per_gain = p->pretreat.calibration.per_gain;

	for (int k = 0; k < RPU_GAINS && per_gain[k]; k++) {
		if (!isnan(per_gain[k][pixel]))
			return true;
	}
	return false;
}

static void pretreat_end(struct rashpa_pipeline *p)
{
	free(p->pretreat.planes);
}

const struct rpu_stage rpu_stage_pretreat = {
	.name = "pretreat", .on_gpu = true, .changes = true, .driven = true, .read = pretreat_read,
	.begin = pretreat_begin, .room = pretreat_room, .run = pretreat_run,
	.whole = pretreat_whole, .valid = pretreat_valid, .end = pretreat_end,
};
