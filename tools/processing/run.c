// SPDX-License-Identifier: LGPL-2.1-or-later
/* Images go through the stages of a pipeline. */
#include "processing/pipeline.h"

#include <errno.h>
#include <omp.h>
#include <string.h>

#include "common/say.h"
/* The image is in memory of the host. */
static int fetch(struct rashpa_pipeline *p, const struct rpu_work *w)
{
	const size_t pixels = w->image == w->assembled ? rpu_pixels(p) :
			      (size_t)p->geometry.width * p->geometry.height;

	if (!p->gpu || p->gpu->here)
		return 0;
	p->gpu->here = true;
	return rpu_gpu_load(p->gpu, pixels, w->image, p->why);
}

/* A stage, with the image where that stage has it. */
static int run_stage(struct rashpa_pipeline *p, const struct rpu_stage *stage, struct rpu_work *w)
{
	int result;

	if (p->gpu && stage->on_gpu && w->image && !p->gpu->there) {
		if (rpu_gpu_store(p->gpu, rpu_pixels(p), w->image, p->why))
			return -1;
		p->gpu->there = true;
	}
	if (!stage->on_gpu && fetch(p, w))
		return -1;
	result = stage->run(p, w);
	if (p->gpu && stage->changes) {
		p->gpu->here = !stage->on_gpu;
		p->gpu->there = stage->on_gpu;
	}
	return result;
}

static int time_stage(struct rashpa_pipeline *p, unsigned int i, struct rpu_work *w)
{
	const unsigned long long begin = now_ns();
	const int result = run_stage(p, rpu_stages[i], w);

	p->stage_stat[i].ns += now_ns() - begin;
	p->stage_stat[i].images++;
	return result;
}

static int run_stages(struct rashpa_pipeline *p, struct rpu_work *w)
{
	const bool dark = w->result.role == RASHPA_IMAGE_DARK;

	if (dark)
		p->stat.dark++;
	else
		p->stat.images++;
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		int more;

		if (!p->used[i])
			continue;
		more = time_stage(p, i, w);
		if (more < 0)
			return rashpa_fail(EIO, "%s", p->why);
		if (dark)
			return 0;
		if (!more) {
			p->stat.vetoed++;
			/* a vetoed image stays in GPU memory */
			if (p->gpu && !p->gpu->here)
				w->result.image = NULL;
			return 0;
		}
	}
	if (fetch(p, w))
		return rashpa_fail(EIO, "%s", p->why);
	w->result.kept = true;
	w->result.signal = p->stat.images;
	w->result.signal_kept = p->stat.images - p->stat.vetoed;
	return 1;
}

int rashpa_pipeline_run(struct rashpa_pipeline *p, const void *image, size_t line_stride,
			struct rashpa_result *result)
{
	struct rpu_work *w = rpu_work_of(result);
	int kept;

	if (p->state != RPU_BEGUN || rpu_is_elsewhere(p))
		return rpu_unready(p);
	if (w->pipeline != (p->of ? p->of : p))
		return rashpa_fail(EINVAL, "the result is another pipeline's");
	*result = (struct rashpa_result) {
		.frame = result->frame, .role = result->role,
		.width = p->width, .height = p->height,
	};
	w->raw = (struct rpu_raw) { .data = image, .line_stride = line_stride };
	w->image = NULL;
	w->stat.stage = NULL;
	w->packed = NULL;
	if (!p->of)
		return run_stages(p, w);
	omp_set_num_threads(1);		/* of this thread */
	p->stat = (struct rashpa_pipeline_stat) {};
	memset(p->stage_stat, 0, sizeof(p->stage_stat));
	kept = run_stages(p, w);
	for (const struct rpu_sink_at *s = p->of->sink; s < p->of->sink + RPU_SINKS && kept > 0; s++) {
		if (s->state && s->sink->pack)
			s->sink->pack(s->state, w);
	}
	w->stat = p->stat;
	w->stat.stage = memcpy(w->spent, p->stage_stat, sizeof(w->spent));
	return kept;
}

void rpu_follow(struct rashpa_pipeline *p, struct rpu_work *w)
{
	p->stat.images += w->stat.images;
	p->stat.dark += w->stat.dark;
	p->stat.vetoed += w->stat.vetoed;
	p->stat.overflow += w->stat.overflow;
	for (unsigned int i = 0; i < RPU_STAGES; i++) {
		p->stage_stat[i].images += w->spent[i].images;
		p->stage_stat[i].ns += w->spent[i].ns;
		p->stage_stat[i].bytes_in += w->spent[i].bytes_in;
		p->stage_stat[i].bytes_out += w->spent[i].bytes_out;
	}
	w->stat.stage = NULL;
	w->result.signal = p->stat.images;
	w->result.signal_kept = p->stat.images - p->stat.vetoed;
	if (w->result.kept && p->used[RPU_ACCUMULATE])
		time_stage(p, RPU_ACCUMULATE, w);
}
