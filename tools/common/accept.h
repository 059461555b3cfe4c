/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* --accept: names in headers of streams that the user of a tool accepts. */
#ifndef ACCEPT_H
#define ACCEPT_H

#include <argp.h>

#include <rashpa-stream.h>

#define ACCEPT_MAX	4

/* Row of a table of options. */
#define OPTION_ACCEPT(key, group) \
	{ "accept", key, "NAME", 0, \
	  "use this memory, or fpgaN, although some writers of the stream's header may not; repeatable", \
	  group }

struct accept {
	const char *name[ACCEPT_MAX];
	int n;
};

/* One more, or the end of the program with a message. */
static inline void option_accept(struct argp_state *state, const char *arg, struct accept *a)
{
	if (a->n == ACCEPT_MAX)
		argp_error(state, "--accept: at most %d names", ACCEPT_MAX);
	a->name[a->n++] = arg;
}

/* All of them, before the stream begins. 0, or a negative errno and rashpa_reason() */
static inline int accept_names(const struct accept *a, struct rashpa_stream *s)
{
	int error = 0;

	for (int i = 0; i < a->n && !error; i++)
		error = rashpa_stream_accept(s, a->name[i]);
	return error;
}

#endif /* ACCEPT_H */
