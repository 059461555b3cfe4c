// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a builder does with events: nothing, or files for whoever filters them. */
#include "build.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "say.h"

struct sink {
	const struct options *o;
	uint32_t rank;
	int folder;
	struct iovec *piece;
};

int sink_open(const struct options *o, uint32_t rank, struct sink **sink)
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
	return 0;
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

/* A name that is there is a whole file; one that is there already is not written over. */
static int write_file(struct sink *s, const struct message *block, uint32_t n)
{
	char name[80], hidden[96];
	int file, error;

	snprintf(name, sizeof(name), "events-%012" PRIu64 "-%u", block->first, block->events);
	snprintf(hidden, sizeof(hidden), ".%s.%u", name, s->rank);
	file = openat(s->folder, hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
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
	if (s->folder >= 0)
		close(s->folder);
	free(s->piece);
	free(s);
}
