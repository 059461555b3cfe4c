// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-builder: memory and messages of a rank, as all commands need them. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "builder/build.h"
#include "common/say.h"

int fail_fabric(const struct rashpa_fabric *f, int error, const char *what)
{
	if (f)
		fail("rank %u: %s%s", rashpa_fabric_rank(f), what, rashpa_fabric_reason());
	else
		fail("%s%s", what, rashpa_fabric_reason());
	return error == -ETIMEDOUT ? EXIT_TIMEOUT : EXIT_FAILED;
}

void warn_nodes(const struct rashpa_fabric *f)
{
	struct rashpa_fabric_nodes nodes;
	const char *apart;

	rashpa_fabric_nodes(f, &nodes);
	apart = rashpa_fabric_apart(&nodes);
	if (apart)
		say("rank %u: %s", rashpa_fabric_rank(f), apart);
}

int make_arena(struct rashpa_fabric *f, const struct options *o, uint64_t bytes,
	       struct rashpa_arena **arena)
{
	char name[128];
	int error;

	if (o->buffer) {
		snprintf(name, sizeof(name), "%s%u", o->buffer, rashpa_fabric_rank(f));
		error = rashpa_arena_buffer(f, name, arena);
	} else if (o->gpu) {
		error = rashpa_arena_gpu(f, o->gpu, bytes, arena);
	} else {
		error = rashpa_arena_allocate(f, bytes, arena);
	}
	return error ? fail_fabric(f, error, "") : 0;
}

/* --- of build --- */

const char *role_of(const struct build *b, uint32_t rank, char *so)
{
	if (!rank)
		snprintf(so, ROLE_BYTES, "the event manager (rank 0)");
	else if (b->o->folded)
		snprintf(so, ROLE_BYTES, "readout and builder %u (rank %u)", readout_index(rank),
			 rank);
	else if (is_readout(b, rank))
		snprintf(so, ROLE_BYTES, "readout %u (rank %u)", readout_index(rank), rank);
	else
		snprintf(so, ROLE_BYTES, "builder %u (rank %u)", rank - 1 - b->readouts, rank);
	return so;
}

int end_run(struct build *b, int code, uint32_t culprit, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(b->reason, sizeof(b->reason), format, args);
	va_end(args);
	b->culprit = culprit;
	fail("rank %u: %s", b->rank, b->reason);
	return code;
}

int say_to(struct build *b, uint32_t peer, const struct message *m, const char *text)
{
	const size_t length = text ? strlen(text) : 0;
	struct rashpa_fabric_request r = {
		.pool = b->control_out, .peer = peer, .tag = m->kind,
		.length = sizeof(*m) + length,
	};
	struct message *to = rashpa_pool_take(b->control_out, 0);
	int error;

	if (!to || r.length > CONTROL_BYTES)
		return fail("rank %u: a message of %u bytes does not fit its buffer", b->rank, r.length);
	*to = *m;
	to->from = b->rank;
	to->bytes = length;
	if (length)
		memcpy(to + 1, text, length);
	r.buffer = to;
	error = rashpa_fabric_send(b->f, &r);
	if (error)
		rashpa_pool_give(b->control_out, to);
	else
		b->unsent++;
	return !error || error == -EPIPE ? 0 : fail_fabric(b->f, error, "");
}

int listen_to(struct build *b, uint32_t peer, struct rashpa_pool *pool, void *buffer)
{
	const struct rashpa_fabric_request r = {
		.buffer = buffer ? buffer : rashpa_pool_take(pool, 0), .pool = pool, .peer = peer,
		.length = rashpa_pool_bytes(pool),
	};
	const int error = r.buffer ? rashpa_fabric_receive(b->f, &r) : -ENOBUFS;

	if (error == -EPIPE)
		return rashpa_pool_give(pool, r.buffer) ? EXIT_FAILED : 0;
	return error ? fail_fabric(b->f, error, "no room: ") : 0;
}
