// SPDX-License-Identifier: LGPL-2.1-or-later
/* Is an image worth keeping: it has at least so many pixels above a threshold. */
#include "pipeline.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static int veto_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "threshold", true, json_read_real, &p->veto.threshold },
		{ "pixels", true, json_read_u64, &p->veto.pixels },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static bool veto_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->result.above = p->engine->above(w->image, rpu_pixels(p), p->veto.threshold);
	p->stage_stat[RPU_VETO].bytes_in += rpu_pixels(p) * sizeof(*w->image);
	return w->result.above >= p->veto.pixels;
}

const struct rpu_stage rpu_stage_veto = { .name = "veto", .read = veto_read, .run = veto_run };
