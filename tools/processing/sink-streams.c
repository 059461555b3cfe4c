// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Results as streams in named buffers of their own: for viewers, for programs in Python, and for
 * whoever sends them on. Nobody is waited for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline.h"
#include "rashpa.h"
#include "rashpa-stream.h"
#include "say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* What of a result a stream has: an image of floating point numbers, with a shape of its own. */
enum kind { IMAGE, MEAN, KINDS };

static const char * const names[KINDS] = { "image", "mean" };

struct output {
	char buffer[RASHPA_STREAM_NAME];	/* empty: not asked for */
	bool drop;		/* consumers have credit; else old ones are overwritten */
	struct rashpa_stream *stream;
};

struct streams {
	struct output output[KINDS];
};

/* --- the configuration --- */

static int read_buffer(struct json_place *at, struct json_object *value, void *to)
{
	return json_read_text(at, value, to, RASHPA_STREAM_NAME);
}

static int read_policy(struct json_place *at, struct json_object *value, void *to)
{
	static const char * const words[] = { "overwrite", "drop", NULL };
	unsigned int index;

	if (rpu_read_word(at, value, words, &index))
		return -1;
	*(bool *)to = index;
	return 0;
}

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
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* --- streams --- */

static int streams_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct streams *all = state;

	for (struct output *o = all->output; o < all->output + KINDS; o++) {
		const struct rashpa_stream_process whole = {
			.width = p->width, .height = p->height,
		};
		const struct rashpa_stream_plan plan = {
			.header = {
				.width = p->width, .height = p->height, .pixel = RASHPA_PIXEL_F32,
				.bunch = 1,
				.policy = o->drop ? RASHPA_STREAM_DROP : RASHPA_STREAM_OVERWRITE,
			},
			.process = &whole, .processes = 1, .flags = RASHPA_PLAN_META,
		};

		if (!*o->buffer)
			continue;
		if (o == &all->output[MEAN] && !p->used[RPU_ACCUMULATE])
			return because(why, -1, "sinks.streams.mean: there is no stage accumulate");
		if (rashpa_stream_create(o->buffer, &plan, &o->stream) ||
		    rashpa_stream_start(o->stream, 0, 0))
			return because(why, -1, "%s", rashpa_reason());
	}
	return 0;
}

static const float *data_of(const struct rashpa_result *r, enum kind kind)
{
	return kind == IMAGE ? r->image : r->mean;
}

/* 0, also if nobody has made room: then it is counted. */
static int send(struct output *o, const struct rashpa_result *r, const float *data,
		struct rashpa_stage_stat *stat, char *why)
{
	const size_t line = (size_t)r->width * sizeof(*data);
	const struct rashpa_image image = { .frame = r->frame, .role = r->role };
	struct rashpa_stack stack;
	int result;

	do {
		result = rashpa_stream_slot(o->stream, &stack, 0);
	} while (result == -EINTR);
	if (result < 0 && result != -ETIMEDOUT)
		return because(why, -1, "%s", rashpa_reason());
	if (result <= 0) {
		stat->lost++;
		return 0;
	}
	for (uint32_t y = 0; y < r->height; y++)
		memcpy((char *)stack.data + y * stack.line_stride,
		       data + y * (size_t)r->width, line);
	rashpa_stack_describe(&stack, 0, 0, &image);
	stack.frame = r->frame;
	if (rashpa_stream_publish(o->stream, &stack))
		return because(why, -1, "%s", rashpa_reason());
	stat->bytes_out += r->height * line;
	return 0;
}

static int streams_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		       char *why)
{
	struct streams *all = state;

	for (unsigned int k = 0; k < KINDS; k++) {
		const float *data = data_of(r, k);

		if (all->output[k].stream && data && send(&all->output[k], r, data, stat, why))
			return -1;
	}
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
