// SPDX-License-Identifier: LGPL-2.1-or-later
/* Frames are appended to a file. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "romulu/romulu.h"
#include "common/say.h"

#define LOOK_MS		100		/* so late may --timeout be */

struct writer {
	int file;
	uint8_t *bounce;	/* one stack: a file may take longer than it is ours */
	uint64_t written;	/* bytes of the stack that is being written */
};

static int write_open(struct run *r)
{
	const char *path = *r->config->write;
	struct writer *w = calloc(1, sizeof(*w));

	if (!w)
		return fail("no memory to write a file");
	r->data = w;
	w->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	/* open() waits for the reader of a pipe; write() does not */
	return w->file < 0 || fcntl(w->file, F_SETFL, O_APPEND | O_NONBLOCK) ?
	       fail("cannot write %s: %s", path, strerror(errno)) : 0;
}

static size_t extent(const struct rashpa_stack *st)
{
	return (st->images - 1) * st->image_stride + (st->height - 1) * st->line_stride +
	       (size_t)st->width * st->pixel_bytes;
}

static int write_begin(struct run *r)
{
	const struct rashpa_stream_header *h = r->about;
	struct writer *w = r->data;

	w->bounce = malloc(h->bunch * h->image_stride + h->line_stride);
	return w->bounce ? 0 : fail("no memory for a copy of one stack");
}

static int write_look(struct run *r, const struct rashpa_stack *st)
{
	struct writer *w = r->data;

	memcpy(w->bounce, st->data, extent(st));
	return 0;
}

static int write_all(struct run *r, const void *data, size_t size)
{
	const double timeout = r->config->opt.timeout;
	struct writer *w = r->data;
	struct pollfd room = { .fd = w->file, .events = POLLOUT };
	uint64_t taken = now_ns();	/* something */

	while (size) {
		ssize_t n = write(w->file, data, size);

		if (n > 0) {
			data = (const char *)data + n;
			size -= n;
			w->written += n;
			taken = now_ns();
			continue;
		}
		if (!n || (errno != EINTR && errno != EAGAIN))
			return fail("cannot write %s: %s", *r->config->write, strerror(errno));
		if (*r->stop)
			return -EINTR;
		if (timeout > 0 && now_ns() - taken >= timeout * 1e9) {
			say("cannot write %s: no reader took data for %g s", *r->config->write,
			    timeout);
			return EXIT_TIMEOUT;
		}
		poll(&room, 1, LOOK_MS);
	}
	return 0;
}

/* Cut off the partial stack: the next receiver appends it as a whole. A pipe keeps it. */
static void unwrite(struct run *r)
{
	struct writer *w = r->data;
	off_t end = w->written ? lseek(w->file, 0, SEEK_CUR) : -1;

	if (end >= 0 && ftruncate(w->file, end - w->written))
		say("%s ends with a part of a stack: %s", *r->config->write, strerror(errno));
}

static int write_images(struct run *r, const struct rashpa_stack *st)
{
	const size_t line = (size_t)st->width * st->pixel_bytes;
	const struct writer *w = r->data;
	int result = 0;

	for (uint32_t i = 0; i < st->images && !result; i++) {
		const uint8_t *image = w->bounce + i * st->image_stride;

		if (line == st->line_stride) {
			result = write_all(r, image, line * st->height);
			continue;
		}
		for (uint32_t y = 0; y < st->height && !result; y++)
			result = write_all(r, image + y * st->line_stride, line);
	}
	return result;
}

static int write_stack(struct run *r, const struct rashpa_stack *st)
{
	struct writer *w = r->data;
	int result;

	w->written = 0;
	result = write_images(r, st);
	if (result)
		unwrite(r);
	return result;
}

static int write_close(struct run *r)
{
	struct writer *w = r->data;
	int result = 0;

	if (!w)
		return 0;
	if (w->file >= 0 && close(w->file))
		result = fail("cannot write %s: %s", *r->config->write, strerror(errno));
	free(w->bounce);
	free(w);
	return result;
}

const struct use use_write = {
	.name = "write",
	.open = write_open,
	.begin = write_begin,
	.look = write_look,
	.stack = write_stack,
	.close = write_close,
};
