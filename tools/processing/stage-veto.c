// SPDX-License-Identifier: LGPL-2.1-or-later
/* Is an image worth keeping: it has so many pixels above a threshold, and so many peaks. */
#include "processing/pipeline.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

RPU_READS(u32, read_peaks, 1, UINT32_MAX)

static int veto_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = {
		{ "threshold", false, json_read_real, &p->veto.threshold },
		{ "pixels", false, json_read_u64, &p->veto.pixels },
		{ "peaks", false, read_peaks, &p->veto.peaks },
	};

	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	if (json_object_object_get_ex(value, "threshold", NULL) !=
	    json_object_object_get_ex(value, "pixels", NULL))
		return json_wrong(at, "threshold and pixels belong together");
	if (!p->veto.pixels && !p->veto.peaks)
		return json_wrong(at, "use threshold and pixels (1 or more), or peaks");
	if (p->veto.peaks && !p->used[RPU_PEAKS])
		return json_wrong(at, "peaks: there is no stage peaks");
	return 0;
}

static int veto_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	if (p->veto.pixels) {
		if (!p->gpu)
			w->result.above = p->engine->above(w->image, rpu_pixels(p),
							   p->veto.threshold);
		else if (rpu_gpu_above(p->gpu, rpu_pixels(p), p->veto.threshold,
					   &w->result.above, p->why))
			return -1;
		p->stage_stat[RPU_VETO].bytes_in += rpu_pixels(p) * sizeof(*w->image);
	}
	return w->result.above >= p->veto.pixels && w->result.peaks_found >= p->veto.peaks;
}

const struct rpu_stage rpu_stage_veto = {
	.name = "veto", .on_gpu = true, .driven = true, .read = veto_read, .run = veto_run,
};
