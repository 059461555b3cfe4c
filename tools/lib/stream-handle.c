// SPDX-License-Identifier: LGPL-2.1-or-later
/* librashpa: a handle of a stream is opened and closed. */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A consumer that only reads writes nothing into slots by mistake, wherever they are. */
static int map_slots(struct rashpa_stream *s)
{
	void *base;
	int error = rashpa_mmap(s->buffer.node, 0, s->buffer.length, PROT_READ, &base);

	s->slots = base;
	return error ? librashpa_prefix(error, "buffer %s: ", s->name) : 0;
}

int stream_open(const char *name, unsigned int flags, bool producer, struct rashpa_stream **stream)
{
	const bool observes = flags & RASHPA_STREAM_OBSERVE;
	struct rashpa_role role = { .take = RASHPA_ROLE_PRODUCER };
	struct rashpa_stream *s;
	int error;

	*stream = NULL;
	if (!name || strlen(name) >= (strchr(name, '/') ? PATH_MAX : RASHPA_STREAM_NAME))
		return fail(EINVAL, "the name of the buffer is missing, or too long");
	s = calloc(1, sizeof(*s));
	if (s)
		s->name = strdup(name);
	if (!s || !s->name) {
		free(s);
		return fail(ENOMEM, "no memory for a stream");
	}
	s->flags = flags;
	s->producer = producer;
	s->memory = s->channel = s->set = s->timer = s->place = -1;
	s->buffer = s->locks = s->payload = (struct memory)MEMORY_NONE;
	pthread_mutex_init(&s->lock, NULL);
	error = memory_open(NULL, &s->buffer, name, !observes);
	s->shared = (volatile struct rashpa_stream_header *)s->buffer.base;
	if (!error && s->buffer.length < RASHPA_STREAM_TABLES)
		error = fail(EPROTO, "buffer %s is shorter than a stream header and its places", name);
	if (!error && producer)
		error = stream_role(s, &role);
	if (!error && !producer && !observes &&
	    !(flags & (RASHPA_STREAM_WRITE | RASHPA_STREAM_NO_DATA)))
		error = map_slots(s);
	if (!error)
		error = s->buffer.kind->attend(s);
	if (!error) {
		*stream = s;
		return 0;
	}
	stream_close(s);
	return error;
}

void stream_close(struct rashpa_stream *s)
{
	place_close(s);
	if (s->buffer.kind)
		s->buffer.kind->leave(s);
	if (s->set >= 0) {
		close(s->set);
		close(s->timer);
	}
	if (s->channel >= 0)
		close(s->channel);
	if (s->slots)
		munmap(s->slots, s->buffer.length);
	memory_close(&s->payload);
	memory_close(&s->locks);
	memory_close(&s->buffer);
	pthread_mutex_destroy(&s->lock);
	free(s->process);
	free(s->held);
	free(s->slot);
	free(s->name);
	free(s);
}
