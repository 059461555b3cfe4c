// SPDX-License-Identifier: LGPL-2.1-or-later
/* Removes signals that are not of the sample: common mode, background, outliers. */
#include <math.h>
#include <stdlib.h>

#include "processing/pipeline.h"
#include "processing/plane.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

RPU_READS(u32, read_side, 1, RPU_SIDE)

static int read_positive(struct json_place *at, struct json_object *value, void *to)
{
	double number;

	if (json_read_real(at, value, &number))
		return -1;
	*(float *)to = number;
	return number > 0 ? 0 : json_wrong(at, "must be more than 0");
}

static int read_common_mode(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_correction *c = to;
	const struct json_key keys[] = {
		{ "chip_width", true, read_side, &c->chip_width },
		{ "chip_height", true, read_side, &c->chip_height },
		{ "below", true, read_positive, &c->quiet },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_background(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "file", true, rpu_read_input, p->correct.blank },
		{ "scale", false, json_read_bool, &p->correct.by.scale },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int read_outliers(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_correction *c = to;
	const struct json_key keys[] = {
		{ "above", true, read_positive, &c->outlier_above },
		{ "ratio", true, read_positive, &c->outlier_ratio },
	};

	c->outlier = true;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int correct_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "common_mode", false, read_common_mode, &p->correct.by },
		{ "background", false, read_background, p },
		{ "outliers", false, read_outliers, &p->correct.by },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int correct_begin(struct rashpa_pipeline *p, char *why)
{
	struct rpu_correction *c = &p->correct.by;
	const struct rpu_shape shape = { 1, p->height, p->width };
	const char *path = p->correct.blank;

	c->width = p->width;
	c->height = p->height;
	if (!*path)
		return 0;
	c->blank = rpu_memory(rpu_pixels(p), sizeof(*c->blank));
	if (!c->blank)
		return because(why, -1, "no memory to correct images");
	return rpu_planes_read(&path, 1, &shape, c->blank, why);
}

static int correct_scratch(struct rashpa_pipeline *p, char *why)
{
	struct rpu_correction *c = &p->correct.by;

	c->partial = rpu_memory(2 * (size_t)c->height, sizeof(*c->partial));
	c->mark = rpu_memory((size_t)c->width * c->height, sizeof(*c->mark));
	return c->partial && c->mark ? 0 : because(why, -1, "no memory to correct images");
}

static int correct_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_CORRECT];

	p->engine->correct(&p->correct.by, w->image);
	stat->bytes_in += rpu_pixels(p) * sizeof(*w->image);
	stat->bytes_out += rpu_pixels(p) * sizeof(*w->image);
	return 1;
}

static bool correct_whole(const struct rashpa_pipeline *p)
{
	return !p->correct.by.chip_width && !p->correct.by.blank;
}

static bool correct_valid(const struct rashpa_pipeline *p, size_t pixel)
{
	return !p->correct.by.blank || !isnan(p->correct.by.blank[pixel]);
}

static void correct_end(struct rashpa_pipeline *p)
{
	free(p->correct.by.partial);
	free(p->correct.by.mark);
	if (!p->of)
		free(p->correct.by.blank);
}

const struct rpu_stage rpu_stage_correct = {
	.name = "correct", .changes = true, .read = correct_read, .begin = correct_begin,
	.scratch = correct_scratch, .run = correct_run, .whole = correct_whole, .valid = correct_valid, .end = correct_end,
};
