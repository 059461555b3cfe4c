// SPDX-License-Identifier: LGPL-2.1-or-later
/* Mean and deviation, pixel by pixel, of so many images each. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "processing/pipeline.h"
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

RPU_READS(u32, read_images, 2, 1 << 30)

static int accumulate_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	const struct json_key keys[] = { { "images", true, read_images, &p->accumulate.images } };

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int accumulate_begin(struct rashpa_pipeline *p, char *why)
{
	struct rpu_statistics *s = &p->accumulate.sum;

	s->mean = rpu_memory(rpu_pixels(p), sizeof(*s->mean));
	s->m2 = rpu_memory(rpu_pixels(p), sizeof(*s->m2));
	s->n = rpu_memory(rpu_pixels(p), sizeof(*s->n));
	return s->mean && s->m2 && s->n ? 0 : because(why, -1, "no memory to accumulate images");
}

static int accumulate_room(const struct rashpa_pipeline *p, struct rpu_work *w)
{
	w->mean = rpu_memory(rpu_pixels(p), sizeof(*w->mean));
	w->deviation = rpu_memory(rpu_pixels(p), sizeof(*w->deviation));
	return w->mean && w->deviation ? 0 : -1;
}

static int accumulate_run(struct rashpa_pipeline *p, struct rpu_work *w)
{
	struct rashpa_stage_stat *stat = &p->stage_stat[RPU_ACCUMULATE];
	struct rpu_statistics *s = &p->accumulate.sum;
	const size_t n = rpu_pixels(p);

	p->engine->accumulate(s, w->image, n);
	stat->bytes_in += n * sizeof(*w->image);
	if (++p->accumulate.so_far < p->accumulate.images)
		return 1;
	for (size_t i = 0; i < n; i++) {
		w->mean[i] = s->n[i] ? s->mean[i] : NAN;
		w->deviation[i] = s->n[i] > 1 ? sqrt(s->m2[i] / (s->n[i] - 1)) : NAN;
	}
	memset(s->mean, 0, n * sizeof(*s->mean));
	memset(s->m2, 0, n * sizeof(*s->m2));
	memset(s->n, 0, n * sizeof(*s->n));
	stat->bytes_out += 2 * n * sizeof(*w->mean);
	w->result.images = p->accumulate.so_far;
	w->result.mean = w->mean;
	w->result.deviation = w->deviation;
	p->accumulate.so_far = 0;
	return 1;
}

static void accumulate_end(struct rashpa_pipeline *p)
{
	free(p->accumulate.sum.mean);
	free(p->accumulate.sum.m2);
	free(p->accumulate.sum.n);
}

const struct rpu_stage rpu_stage_accumulate = {
	.name = "accumulate", .read = accumulate_read, .begin = accumulate_begin,
	.room = accumulate_room, .run = accumulate_run, .end = accumulate_end,
};
