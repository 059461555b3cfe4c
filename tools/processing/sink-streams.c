// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Publishes results as streams in separate named buffers: for viewers, Python programs, and
 * network senders. The sink never waits for consumers.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processing/pipeline.h"
#include <rashpa.h>
#include <rashpa-stream.h>
#include "common/say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define COLUMNS		6	/* of peaks */

enum { IMAGE, MEAN, PROFILE, PEAKS, KINDS };

static const char * const names[KINDS] = { "image", "mean", "profile", "peaks" };

struct output {
	char buffer[RASHPA_STREAM_NAME];	/* empty: not asked for */
	bool drop;		/* consumers have credit; else old ones are overwritten */
	struct rashpa_stream *stream;
};

struct streams {
	struct output output[KINDS];
	const double *axis;	/* of profiles; the pipeline's */
};

/* --- the configuration --- */

static int read_buffer(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, RASHPA_STREAM_NAME);
}

RPU_READS_WORD(bool, read_policy, "overwrite", "drop")

static int read_output(struct json_place *at, struct json_object *value, void *to)
{
	struct output *o = to;
	const struct json_key keys[] = {
		{ "buffer", true, read_buffer, o->buffer },
		{ "policy", false, read_policy, &o->drop },
	};

	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int streams_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_sink_at *s = to;
	struct streams *all = calloc(1, sizeof(*all));
	struct json_key keys[KINDS + 1] = { { "on_error", false, rpu_read_on_error, s } };

	if (!all)
		return json_wrong(at, "no memory");
	s->state = all;
	for (unsigned int k = 0; k < KINDS; k++)
		keys[k + 1] = (struct json_key) { names[k], false, read_output, &all->output[k] };
	if (json_read_object(at, value, keys, ARRAY_SIZE(keys)))
		return -1;
	for (unsigned int k = 0; k < KINDS; k++) {
		if (*all->output[k].buffer)
			return 0;
	}
	return json_wrong(at, "names no stream: image, mean, profile or peaks");
}

/* --- streams --- */

/* What its images are, in words of a header; -1 with the reason: no stage makes them. */
static int shape(const struct rashpa_pipeline *p, unsigned int kind,
		 struct rashpa_stream_header *h, char *why)
{
	const char *unit;

	switch (kind) {
	case PROFILE:
		if (!p->used[RPU_INTEGRATE])
			return because(why, -1, "sinks.streams.profile: there is no stage integrate");
		rashpa_pipeline_axis(p, &h->width, &unit);
		h->height = p->integrate.matrix.error ? 3 : 2;
		h->pixel = RASHPA_PIXEL_F64;
		h->content = RASHPA_CONTENT_PROFILE;
		snprintf(h->dataset, sizeof(h->dataset), "%s", unit);
		return 0;
	case PEAKS:
		if (!p->used[RPU_PEAKS])
			return because(why, -1, "sinks.streams.peaks: there is no stage peaks");
		h->width = COLUMNS;
		h->height = p->peaks.capacity;
		h->content = RASHPA_CONTENT_PEAKS;
		return 0;
	case MEAN:
		if (!p->used[RPU_ACCUMULATE])
			return because(why, -1, "sinks.streams.mean: there is no stage accumulate");
		return 0;
	}
	return 0;
}

static int open_one(struct rashpa_pipeline *p, unsigned int kind, struct output *o, char *why)
{
	struct rashpa_stream_process whole = {};
	struct rashpa_stream_plan plan = {
		.header = {
			.width = p->width, .height = p->height, .pixel = RASHPA_PIXEL_F32,
			.bunch = 1,
			.policy = o->drop ? RASHPA_STREAM_DROP : RASHPA_STREAM_OVERWRITE,
		},
		.process = &whole, .processes = 1, .flags = RASHPA_PLAN_META,
	};

	if (shape(p, kind, &plan.header, why))
		return -1;
	whole.width = plan.header.width;
	whole.height = plan.header.height;
	if (rashpa_stream_create(o->buffer, &plan, &o->stream) ||
	    rashpa_stream_start(o->stream, 0, 0))
		return because(why, -1, "%s", rashpa_reason());
	return 0;
}

static int streams_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct streams *all = state;
	const char *unit;
	uint32_t bins;

	all->axis = rashpa_pipeline_axis(p, &bins, &unit);
	for (unsigned int k = 0; k < KINDS; k++) {
		if (*all->output[k].buffer && open_one(p, k, &all->output[k], why))
			return -1;
	}
	return 0;
}

static void *line(const struct rashpa_stack *stack, uint32_t y)
{
	return (char *)stack->data + y * stack->line_stride;
}

static void fill_image(const struct rashpa_stack *to, const float *from)
{
	for (uint32_t y = 0; y < to->height; y++)
		memcpy(line(to, y), from + y * (size_t)to->width, to->width * sizeof(*from));
}

static void fill_profile(const struct rashpa_stack *to, const double *axis,
			 const struct rashpa_result *r)
{
	double *x = line(to, 0), *y = line(to, 1), *sigma = to->height > 2 ? line(to, 2) : NULL;

	for (uint32_t i = 0; i < r->bins; i++) {
		x[i] = axis[i];
		y[i] = r->intensity[i];
		if (sigma)
			sigma[i] = r->sigma[i];
	}
}

static void fill_peaks(const struct rashpa_stack *to, const struct rashpa_result *r)
{
	for (uint32_t i = 0; i < r->peaks; i++) {
		const struct rashpa_peak *p = &r->peak[i];
		const float columns[COLUMNS] = {
			p->x, p->y, p->sum, p->background, p->snr, p->pixels,
		};

		memcpy(line(to, i), columns, sizeof(columns));
	}
	if (r->peaks < to->height)
		*(float *)line(to, r->peaks) = NAN;
}

/* Does the result have it? */
static bool is_there(const struct rashpa_result *r, unsigned int kind)
{
	return kind == PEAKS ? !!r->peak :
	       kind == PROFILE ? !!r->intensity : kind == MEAN ? !!r->mean : !!r->image;
}

static void fill(const struct streams *all, unsigned int kind, const struct rashpa_result *r,
		 struct rashpa_stack *to)
{
	if (kind == PROFILE)
		fill_profile(to, all->axis, r);
	else if (kind == PEAKS)
		fill_peaks(to, r);
	else
		fill_image(to, kind == MEAN ? r->mean : r->image);
	to->frame = r->frame;
	to->user[RASHPA_RESULT_IMAGES] = r->signal;
	to->user[RASHPA_RESULT_KEPT] = r->signal_kept;
	to->user[RASHPA_RESULT_ABOVE] = r->above;
	to->user[RASHPA_RESULT_PEAKS] = r->peaks_found;
}

/* 0; 1: no slot was free, the result is lost; or -1 with the reason */
static int send(const struct streams *all, unsigned int kind, const struct rashpa_result *r,
		struct rashpa_stage_stat *stat, char *why)
{
	const struct rashpa_image image = { .frame = r->frame, .role = r->role };
	struct rashpa_stream *stream = all->output[kind].stream;
	struct rashpa_stack stack;
	int result;

	do {
		result = rashpa_stream_slot(stream, &stack, 0);
	} while (result == -EINTR);
	if (result < 0 && result != -ETIMEDOUT && result != -ENOBUFS)
		return because(why, -1, "%s", rashpa_reason());
	if (result <= 0)
		return 1;
	fill(all, kind, r, &stack);
	rashpa_stack_describe(&stack, 0, 0, &image);
	if (rashpa_stream_publish(stream, &stack))
		return because(why, -1, "%s", rashpa_reason());
	stat->bytes_out += kind == PEAKS ? r->peaks * COLUMNS * sizeof(float) :
			   stack.height * (uint64_t)stack.width * stack.pixel_bytes;
	return 0;
}

static int streams_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		       char *why)
{
	const struct streams *all = state;
	bool lost = false;
	int result;

	for (unsigned int k = 0; k < KINDS; k++) {
		if (!all->output[k].stream || !is_there(r, k))
			continue;
		result = send(all, k, r, stat, why);
		if (result < 0)
			return -1;
		lost |= result;
	}
	stat->lost += lost;
	return 0;
}

static int streams_finish(void *state, char *why)
{
	struct streams *all = state;

	for (struct output *o = all->output; o < all->output + KINDS; o++) {
		if (o->stream && rashpa_stream_end(o->stream, NULL))
			return because(why, -1, "%s", rashpa_reason());
	}
	return 0;
}

static void streams_end(void *state)
{
	struct streams *all = state;

	for (struct output *o = all->output; o < all->output + KINDS; o++)
		rashpa_stream_close(o->stream);
	free(all);
}

const struct rpu_sink rpu_sink_streams = {
	.name = "streams", .read = streams_read, .open = streams_open, .put = streams_put,
	.finish = streams_finish, .end = streams_end,
};
