// SPDX-License-Identifier: LGPL-2.1-or-later
/* A file with the images, float, one behind the other; a pipe as well. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "processing/pipeline.h"
#include "common/say.h"
#include "processing/sink-file.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

struct raw {
	struct rpu_file file;
	off_t bytes;		/* of whole images */
};

static int raw_read(struct json_place *at, struct json_object *value, void *to)
{
	struct rpu_sink_at *s = to;
	struct raw *raw = calloc(1, sizeof(*raw));
	const struct json_key keys[] = {
		{ "file", true, rpu_read_path, raw ? raw->file.path : NULL },
		{ "overwrite", false, json_read_bool, raw ? &raw->file.overwrite : NULL },
		{ "on_error", false, rpu_read_on_error, s },
	};

	if (!raw)
		return json_wrong(at, "no memory");
	raw->file.is_stream = true;
	raw->file.fd = -1;
	s->state = raw;
	return json_read_object(at, value, keys, ARRAY_SIZE(keys));
}

/* Accepts existing pipes and devices. The first result overwrites an existing file. */
static int raw_open(struct rashpa_pipeline *p, void *state, char *why)
{
	struct raw *raw = state;

	return rpu_file_open(p, RPU_SINK_RAW, &raw->file, why);
}

static void raw_empty(const struct raw *raw)
{
	/* a pipe has no length */
	if (!raw->bytes && ftruncate(raw->file.fd, 0))
		errno = 0;
}

/* Writes to a removed file succeed, but their data are lost: check. */
static int raw_there(const struct raw *raw, char *why)
{
	return rpu_file_is_gone(&raw->file) ?
	       because(why, -1, "%s: it, or its folder, was removed", raw->file.path) : 0;
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t n = write(fd, (const char *)data + done, size - done);

		if (n < 0)
			return false;
		done += n;
	}
	return true;
}

static int raw_put(void *state, const struct rashpa_result *r, struct rashpa_stage_stat *stat,
		   char *why)
{
	struct raw *raw = state;
	const size_t bytes = (size_t)r->width * r->height * sizeof(*r->image);

	raw_empty(raw);
	if (!write_all(raw->file.fd, r->image, bytes)) {
		rpu_file_error(&raw->file, why);
		/* no half image; a pipe has what it has */
		if (ftruncate(raw->file.fd, raw->bytes) ||
		    lseek(raw->file.fd, raw->bytes, SEEK_SET) < 0)
			errno = 0;
		return -1;
	}
	if (raw_there(raw, why))
		return -1;
	raw->bytes += bytes;
	stat->bytes_out += bytes;
	return 0;
}

static int raw_finish(void *state, char *why)
{
	struct raw *raw = state;

	raw_empty(raw);
	if (raw_there(raw, why))
		return -1;
	return rpu_file_close(&raw->file) ? rpu_file_error(&raw->file, why) : 0;
}

static void raw_end(void *state)
{
	struct raw *raw = state;

	rpu_file_close(&raw->file);
	free(raw);
}

const struct rpu_sink rpu_sink_raw = {
	.name = "raw", .read = raw_read, .open = raw_open, .put = raw_put, .finish = raw_finish,
	.end = raw_end,
};
