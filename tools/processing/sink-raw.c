// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file with the images, float, one behind the other; a pipe as well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline.h"
#include "say.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct raw {
	char path[RPU_PATH];
	FILE *file;
	off_t bytes;		/* of whole images */
};

static int raw_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_sink_at *s = to;
	struct raw *raw = calloc(1, sizeof(*raw));
	const struct json_key keys[] = {
		{ "file", true, rpu_read_path, raw ? raw->path : NULL },
		{ "on_error", false, rpu_read_on_error, s },
	};

	if (!raw)
		return json_wrong(at, "no memory");
	s->state = raw;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

static int raw_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct raw *raw = state;

	(void)p;
	raw->file = fopen(raw->path, "we");
	if (!raw->file)
		return because(why, -1, "%s: %s", raw->path, strerror(errno));
	setvbuf(raw->file, NULL, _IONBF, 0);
	return 0;
}

static int raw_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		   char *why)
{
	struct raw *raw = state;
	const size_t n = (size_t)r->width * r->height;

	if (fwrite(r->image, sizeof(*r->image), n, raw->file) != n) {
		because(why, 0, "%s: %s", raw->path, strerror(errno));
		/* no half image; a pipe has what it has */
		if (ftruncate(fileno(raw->file), raw->bytes))
			clearerr(raw->file);
		return -1;
	}
	raw->bytes += n * sizeof(*r->image);
	stat->bytes_out += n * sizeof(*r->image);
	return 0;
}

static int raw_finish(void *state, char *why)
{
	struct raw *raw = state;
	const int result = fclose(raw->file);

	raw->file = NULL;
	return result ? because(why, -1, "%s: %s", raw->path, strerror(errno)) : 0;
}

static void raw_end(void *state)
{
	struct raw *raw = state;

	if (raw->file)
		fclose(raw->file);
	free(raw);
}

const struct rpu_sink rpu_sink_raw = {
	.name = "raw", .read = raw_read, .open = raw_open, .put = raw_put, .finish = raw_finish,
	.end = raw_end,
};
