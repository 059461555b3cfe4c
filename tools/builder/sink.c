// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Sinks of a builder: none, files for later filters, or a stream of images. An image of the stream
 * consists of the images of all readouts, one below the other.
 */
#include "builder/build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rashpa.h>
#include <rashpa-stream.h>
#include "common/say.h"

struct sink {
	const struct options *o;
	uint32_t rank;
	int folder;
	struct iovec *piece;
	struct rashpa_stream *stream;
	uint32_t taken;		/* events of the block that are in the stream already */
};

/* --- streams --- */

static uint32_t image_bytes(const struct geometry *g)
{
	return g->width * g->height * pixel_bytes(g->pixel);
}

static int open_stream(struct sink *s, uint32_t builder, uint32_t readouts)
{
	const struct geometry *g = &s->o->geometry;
	const uint64_t height = (uint64_t)g->height * readouts * s->o->sources;
	struct rashpa_stream_process whole = { .width = g->width, .height = height };
	const struct rashpa_stream_plan plan = {
		.header = {
			.width = g->width, .height = height, .pixel = g->pixel, .bunch = 1,
		},
		.process = &whole, .processes = 1, .flags = RASHPA_PLAN_META,
	};
	char name[RASHPA_STREAM_NAME];

	snprintf(name, sizeof(name), "%s%u", s->o->to, builder);
	if (height > GEOMETRY_SIDE)
		return fail("builder %u: images of %u readouts would have %" PRIu64 " lines",
			    builder, readouts, height);
	if (rashpa_stream_create(name, &plan, &s->stream) || rashpa_stream_start(s->stream, 0, 0))
		return fail("builder %u: %s", builder, rashpa_reason());
	return 0;
}

/* An event of a message that the builder has checked; NULL: not there. */
static const uint8_t *event_in(const struct message *m, uint32_t index)
{
	const uint8_t *at = (const uint8_t *)(m + 1), *end = at + m->bytes;
	struct event_head head;

	for (;;) {
		if ((size_t)(end - at) < sizeof(head))
			return NULL;
		memcpy(&head, at, sizeof(head));
		if (head.bytes > (size_t)(end - at) - sizeof(head))
			return NULL;
		if (!index--)
			return at + sizeof(head);
		at += sizeof(head) + head.bytes;
	}
}

/* Copy the images of a readout into a stack line by line. Returns the number of missing lines. */
static uint32_t copy_images(struct sink *s, const struct message *m, uint32_t index,
			    const struct rashpa_stack *stack, uint8_t *to)
{
	const struct geometry *g = &s->o->geometry;
	const size_t line = (size_t)g->width * pixel_bytes(g->pixel);
	const uint8_t *at = event_in(m, index);
	const uint8_t *end = (const uint8_t *)(m + 1) + m->bytes;
	struct fragment_head f;
	uint32_t missing = 0;

	for (uint32_t i = 0; i < s->o->sources; i++, to += g->height * stack->line_stride) {
		bool there = at && (size_t)(end - at) >= sizeof(f);

		if (there) {
			memcpy(&f, at, sizeof(f));
			at += sizeof(f);
			there = f.length <= (size_t)(end - at) && !(f.flags & FRAGMENT_MISSING) &&
				f.length == image_bytes(g);
		}
		for (uint32_t y = 0; y < g->height; y++) {
			if (there)
				memcpy(to + y * stack->line_stride, at + y * line, line);
			else
				memset(to + y * stack->line_stride, 0, line);
		}
		missing += there && !(f.flags & FRAGMENT_DAMAGED) ? 0 : g->height;
		at = there ? at + padded(f.length) : at;
	}
	return missing;
}

/* If the stream is full, the next call continues with the first event that had no room. */
static int stream_block(struct sink *s, const struct message *block, void * const *message,
			uint32_t readouts)
{
	const uint64_t lines = (uint64_t)s->o->sources * s->o->geometry.height;
	struct rashpa_stack stack;
	uint64_t part;
	int n;

	for (; s->taken < block->events; s->taken++) {
		struct rashpa_image image = { .frame = block->first + s->taken };

		n = rashpa_stream_slot(s->stream, &stack, 0);
		if (n == -ETIMEDOUT || n == -EINTR)
			return -EAGAIN;
		if (n != 1)
			return n < 0 ? n : -EPIPE;
		part = lines * stack.line_stride;
		for (uint32_t i = 0; i < readouts; i++)
			image.missing_lines += copy_images(s, message[i], s->taken, &stack,
							   (uint8_t *)stack.data + i * part);
		stack.frame = image.frame;
		stack.flags = image.missing_lines ? RASHPA_STACK_INCOMPLETE : 0;
		rashpa_stack_describe(&stack, 0, 0, &image);
		n = rashpa_stream_publish(s->stream, &stack);
		if (n)
			return n;
	}
	s->taken = 0;
	return 0;
}

/* --- files --- */

int sink_open(const struct options *o, uint32_t rank, uint32_t builder, uint32_t readouts,
	      struct sink **sink)
{
	struct sink *s = calloc(1, sizeof(*s));

	*sink = s;
	if (!s)
		return fail("no memory");
	s->o = o;
	s->rank = rank;
	s->folder = -1;
	s->piece = calloc(RASHPA_FABRIC_PEERS, sizeof(*s->piece));
	if (!s->piece)
		return fail("no memory");
	if (o->files)
		s->folder = open(o->files, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->files && s->folder < 0)
		return fail("rank %u: %s: %s", rank, o->files, strerror(errno));
	return o->to ? open_stream(s, builder, readouts) : 0;
}

static int write_all(int file, struct iovec *piece, uint32_t n)
{
	while (n) {
		ssize_t done = writev(file, piece, n < 1024 ? n : 1024);

		if (done < 0 && errno != EINTR)
			return -errno;
		for (; n && done >= (ssize_t)piece->iov_len && done > 0; n--, piece++)
			done -= piece->iov_len;
		if (n && done > 0) {
			piece->iov_base = (char *)piece->iov_base + done;
			piece->iov_len -= done;
		}
	}
	return 0;
}

/* Files appear under their name only when complete, and never replace another file. */
static int write_file(struct sink *s, const struct message *block, uint32_t n)
{
	char name[80], hidden[96];
	int file, error;

	snprintf(name, sizeof(name), "events-%012" PRIu64 "-%u", block->first, block->events);
	snprintf(hidden, sizeof(hidden), ".%s.%u", name, s->rank);
	/* never write through a file or link left there by another user or a killed run */
	if (unlinkat(s->folder, hidden, 0) && errno != ENOENT)
		return -errno;
	file = openat(s->folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		      0666);
	if (file < 0)
		return -errno;
	error = write_all(file, s->piece, n);
	if (close(file) && !error)
		error = -errno;
	if (!error && linkat(s->folder, hidden, s->folder, name, 0))
		error = -errno;
	unlinkat(s->folder, hidden, 0);
	return error;
}

int sink_take(struct sink *s, const struct message *block, void * const *message,
	      uint32_t readouts)
{
	if (s->stream)
		return stream_block(s, block, message, readouts);
	if (s->folder < 0)
		return 0;
	for (uint32_t i = 0; i < readouts; i++) {
		const struct message *m = message[i];

		s->piece[i] = (struct iovec) { message[i], sizeof(*m) + m->bytes };
	}
	return write_file(s, block, readouts);
}

void sink_close(struct sink *s)
{
	if (!s)
		return;
	rashpa_stream_close(s->stream);
	if (s->folder >= 0)
		close(s->folder);
	free(s->piece);
	free(s);
}
