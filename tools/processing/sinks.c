// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where results go: each one to all sinks that are asked for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processing/pipeline.h"
#include "common/say.h"
#include "processing/sink-file.h"

#ifdef RPU_NO_PUBLISH
static int no_publish(struct json_place *at, struct json_object *value, void *to)
{
	(void)value;
	(void)to;
	return json_wrong(at, "this program was built without %s", RPU_NO_PUBLISH);
}

const struct rpu_sink rpu_sink_publish = { .name = "publish", .read = no_publish };
#endif

static const struct rpu_sink * const sinks[RPU_SINKS] = {
	[RPU_SINK_RAW] = &rpu_sink_raw,
	[RPU_SINK_STREAMS] = &rpu_sink_streams,
	[RPU_SINK_NEXUS] = &rpu_sink_nexus,
	[RPU_SINK_PUBLISH] = &rpu_sink_publish,
};

int rpu_read_on_error(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = { "stop", "go_on", NULL };
	unsigned int index;

	if (json_read_word(at, value, words, &index))
		return -1;
	((struct rpu_sink_at *)to)->go_on = index;
	return 0;
}

int rpu_sinks_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rashpa_pipeline *p = to;
	struct json_key keys[RPU_SINKS];

	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		p->sink[i].sink = sinks[i];
		p->sink_stat[i].name = sinks[i]->name;
		keys[i] = (struct json_key) { sinks[i]->name, false, sinks[i]->read, &p->sink[i] };
	}
	return json_read_object(at, value, keys, RPU_SINKS);
}

/* Existing data are replaced only after all sinks were accepted. */
int rpu_sinks_open(struct rashpa_pipeline *p, char *why)
{
	int result = 0;

	for (struct rpu_sink_at *s = p->sink; s < p->sink + RPU_SINKS && !result; s++) {
		if (s->state)
			result = s->sink->open(p, s->state, why);
	}
	for (struct rpu_sink_at *s = p->sink; s < p->sink + RPU_SINKS && !result; s++) {
		if (s->state && s->sink->start)
			result = s->sink->start(p, s->state, why);
	}
	if (result)
		rpu_sinks_end(p);
	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		if (p->file[i])
			p->file[i]->made = false;
	}
	return result;
}

static size_t bytes_of(const struct rashpa_result *r)
{
	const size_t pixels = (size_t)r->width * r->height;
	size_t bytes = 0;

	if (r->image)
		bytes += pixels * sizeof(*r->image);
	if (r->row)
		bytes += (r->height + 1) * sizeof(*r->row) +
			 r->elements * (sizeof(*r->column) + sizeof(*r->value));
	if (r->intensity)
		bytes += r->bins * sizeof(*r->intensity);
	if (r->sigma)
		bytes += r->bins * sizeof(*r->sigma);
	if (r->mean)
		bytes += 2 * pixels * sizeof(*r->mean);
	return bytes + r->peaks * sizeof(*r->peak);
}

/* Hand the sentence of a sink to the caller. */
static int told(int result, const char *why)
{
	if (result)
		rashpa_fail(EIO, "%s", why);
	return result;
}

int rashpa_pipeline_put(struct rashpa_pipeline *p, const struct rashpa_result *r)
{
	struct rpu_work *w = rpu_work_of(r);
	char why[WHY_SIZE];
	int result = 0;
	size_t bytes;

	if (p->state != RPU_BEGUN || rpu_is_elsewhere(p))
		return rpu_unready(p);
	if (w->pipeline != p || (!r->kept && !w->stat.stage))
		return rashpa_fail(EINVAL, "the result is not of an image that this pipeline has kept");
	if (w->stat.stage)
		rpu_follow(p, w);
	if (!r->kept)
		return 0;
	bytes = bytes_of(r);
	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		struct rashpa_stage_stat *stat = &p->sink_stat[i];
		struct rpu_sink_at *s = &p->sink[i];
		const unsigned long long begin = now_ns();

		if (!s->state)
			continue;
		stat->images++;
		if (!s->dead && !s->sink->put(s->state, r, stat, why)) {
			stat->bytes_in += bytes;
			stat->ns += now_ns() - begin;
			continue;
		}
		stat->lost++;
		if (s->dead && !s->go_on)
			return rashpa_fail(EIO, "%s: a result was lost before", s->sink->name);
		if (!s->dead)
			result = 1;
		s->dead = true;		/* and what it has is not complete */
		if (!s->go_on)
			return told(-EIO, why);
	}
	return told(result, why);
}

int rashpa_pipeline_flush(struct rashpa_pipeline *p)
{
	char why[WHY_SIZE];
	int result = 0;

	if (p->state == RPU_FINISHED)
		return 0;
	if (p->state != RPU_BEGUN || rpu_is_elsewhere(p))
		return rpu_unready(p);
	for (unsigned int i = 0; i < RPU_SINKS; i++) {
		struct rashpa_stage_stat *stat = &p->sink_stat[i];
		struct rpu_sink_at *s = &p->sink[i];
		const unsigned long long begin = now_ns();

		if (!s->state || s->dead || !s->sink->flush)
			continue;
		if (!s->sink->flush(s->state, stat, why)) {
			stat->ns += now_ns() - begin;
			continue;
		}
		s->dead = true;
		if (!s->go_on)
			return told(-EIO, why);
		result = 1;
	}
	return told(result, why);
}

int rashpa_pipeline_finish(struct rashpa_pipeline *p)
{
	char why[WHY_SIZE] = "", other[WHY_SIZE] = "";
	int result = 0;

	if (p->state == RPU_BROKEN || rpu_is_elsewhere(p))
		return rpu_unready(p);
	if (p->state != RPU_BEGUN)
		return 0;
	p->state = RPU_FINISHED;
	for (struct rpu_sink_at *s = p->sink; s < p->sink + RPU_SINKS; s++) {
		if (!s->state)
			continue;
		if (s->dead && !s->go_on)
			result = because(result ? other : why, -EIO,
					 "%s: it has lost a result: it is not complete",
					 s->sink->name);
		else if (!s->dead && s->sink->finish(s->state, result ? other : why))
			result = -EIO;
	}
	return told(result, why);
}

void rpu_sinks_end(struct rashpa_pipeline *p)
{
	for (struct rpu_sink_at *s = p->sink; s < p->sink + RPU_SINKS; s++) {
		if (s->state)
			s->sink->end(s->state);
		s->state = NULL;
	}
	memset(p->file, 0, sizeof(p->file));
}
