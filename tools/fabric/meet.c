// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An exchange without a launcher. Rank 0 listens at RASHPA_MEET=[tls:]HOST:PORT. The other ranks
 * connect, and send their rank and a piece for each peer in a frame of wire.h. When all pieces have
 * come, rank 0 sends each rank the pieces for it. Callers that have not sent a valid rank share a
 * fixed number of places, and the oldest of them is dropped first. So strangers cannot block the
 * run, and the sizes of frames have a limit.
 */
#include "fabric/meet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/say.h"
#include "common/shown.h"
#include "fabric/exchange.h"
#include "fabric/internal.h"
#include "link/control-link.h"

#define RETRY_NS	50000000	/* between two attempts to reach rank 0 */
#define GRACE_NS	UINT64_C(5000000000)	/* for rank 0 to report which rank is missing */
#define NOBODY		UINT32_MAX

struct caller {
	struct wire *wire;	/* NULL: free place */
	bool came;		/* its pieces are in said */
	uint64_t since;		/* number of the connection, in order */
};

struct meet {
	struct rashpa_launch launch;
	const char *at;		/* the address from the environment */
	char job[sizeof(((struct rashpa_launch *)0)->job)];
	uint64_t begun, patience;
	struct wire_tls *tls;	/* NULL: no TLS */
	struct wire *server;	/* other ranks: the connection to rank 0 */
	struct wire_listener listener;	/* rank 0 */
	uint64_t calls;
	uint32_t refused;
	struct caller *caller;	/* rank 0: ranks, then strangers */
	struct pollfd *poll;	/* rank 0: the same order, then the listener */
	uint8_t *said;		/* pieces from each rank for each */
	uint32_t bytes;		/* size of a piece */
};

static uint32_t places(const struct meet *m)
{
	return m->launch.size + MEET_STRANGERS;
}

static size_t row(const struct meet *m)
{
	return (size_t)m->launch.size * m->bytes;
}

/* Bytes of a frame. */
static uint32_t limit(const struct meet *m)
{
	return sizeof(struct meet_hello) + sizeof(struct meet_answer) + row(m);
}

static unsigned int waited_ms(const struct meet *m)
{
	return (fabric_now() - m->begun) / 1000000;
}

static struct pollfd poll_of(const struct wire *w)
{
	return (struct pollfd) {
		.fd = w ? wire_fd(w) : -1, .events = w ? wire_events(w) : 0,
	};
}

static void wait_for(struct pollfd *fds, uint32_t n, uint64_t end)
{
	const uint64_t now = fabric_now();

	poll(fds, n, now < end ? (int)((end - now + 999999) / 1000000) : 0);
}

/* Send a struct and pieces as one frame. 0 or -EPIPE: the link is over. */
static int say_pieces(struct wire *w, const void *head, size_t size, const void *pieces, size_t bytes)
{
	uint8_t *frame = malloc(size + bytes);
	char ignored[WHY_SIZE];
	int result;

	if (!frame)
		return -ENOMEM;
	memcpy(frame, head, size);
	if (bytes)
		memcpy(frame + size, pieces, bytes);
	result = wire_send(w, frame, size + bytes, ignored);
	free(frame);
	return result ? -EPIPE : 0;
}

/* --- rank 0 --- */

static int listen_there(struct meet *m)
{
	char why[WHY_SIZE];

	if (!wire_listen_open(m->at, m->tls, &m->listener, why))
		return 0;
	return fabric_fail(EADDRNOTAVAIL, "RASHPA_MEET: %s: rank 0 needs an address of this machine and a free port",
			   why);
}

static void leave(struct caller *c)
{
	wire_close(c->wire);
	*c = (struct caller) {};
}

/* Send a caller the reason, without waiting for it to read, and close the connection. */
static void refuse(struct caller *c, int error)
{
	struct meet_answer a = { .magic = MEET_MAGIC, .error = error };

	strncpy(a.sentence, rashpa_fabric_reason(), sizeof(a.sentence) - 1);
	say_pieces(c->wire, &a, sizeof(a), NULL, 0);
	leave(c);
}

/* A place for a caller: a free one, or that of the oldest stranger. */
static struct caller *place(struct meet *m)
{
	struct caller *oldest = &m->caller[m->launch.size];

	for (uint32_t i = m->launch.size; i < places(m); i++) {
		if (!m->caller[i].wire)
			return &m->caller[i];
		if (m->caller[i].since < oldest->since)
			oldest = &m->caller[i];
	}
	leave(oldest);
	return oldest;
}

static void answer_call(struct meet *m)
{
	char ignored[WHY_SIZE];
	struct wire *w;

	if (wire_accept(&m->listener, &w, ignored) <= 0)
		return;	/* the caller has gone */
	wire_limit(w, limit(m));
	*place(m) = (struct caller) { .wire = w, .since = m->calls++ };
}

/* Is the caller a rank that has not come yet? */
static int check(const struct meet *m, const struct meet_hello *h)
{
	if (h->size != m->launch.size || h->bytes != m->bytes ||
	    strncmp(h->job, m->job, sizeof(m->job)))
		return fabric_fail(EINVAL, "this is the run \"%s\" of %u processes, not the one of %u processes: set RASHPA_SIZE and RASHPA_JOB alike, or choose another port",
				   m->job, m->launch.size, h->size);
	if (!h->rank || h->rank >= m->launch.size)
		return fabric_fail(EINVAL, "no rank %u is expected: ranks are 1 to %u",
				   h->rank, m->launch.size - 1);
	if (m->caller[h->rank].wire)
		return fabric_fail(EADDRINUSE, "rank %u is there already: give each process a different rank",
				   h->rank);
	return 0;
}

/*
 * Read a frame: 1: a hello, with pieces that the caller of this checks; 0: not yet, -1: not a hello,
 * or closed.
 */
static int hear_hello(struct caller *c, struct meet_hello *h, const char **pieces, size_t *bytes)
{
	char ignored[WHY_SIZE];
	const char *frame;
	size_t size;
	const int heard = wire_take(c->wire, &frame, &size, ignored);

	if (heard <= 0)
		return heard;
	if (size < sizeof(*h))
		return -1;
	memcpy(h, frame, sizeof(*h));
	*pieces = frame + sizeof(*h);
	*bytes = size - sizeof(*h);
	return h->magic == MEET_MAGIC ? 1 : -1;
}

static void take_pieces(struct meet *m, uint32_t rank, const char *pieces)
{
	if (m->bytes)
		memcpy(m->said + rank * row(m), pieces, row(m));
	m->caller[rank].came = true;
}

static void hear_stranger(struct meet *m, struct caller *c)
{
	struct meet_hello h;
	const char *pieces;
	size_t bytes;
	const int heard = hear_hello(c, &h, &pieces, &bytes);
	int error;

	if (!heard)
		return;
	error = heard < 0 ? 0 : check(m, &h);
	if (heard < 0 || (!error && bytes != row(m))) {
		m->refused++;
		leave(c);
	} else if (error) {
		m->refused++;
		refuse(c, -error);
	} else {
		m->caller[h.rank] = *c;
		*c = (struct caller) {};
		take_pieces(m, h.rank, pieces);
	}
}

/* false: the rank has left, or sent invalid data. */
static bool hear_rank(struct meet *m, uint32_t rank)
{
	struct meet_hello h;
	const char *pieces;
	size_t bytes;
	int heard;

	if (m->caller[rank].came)
		return false;
	heard = hear_hello(&m->caller[rank], &h, &pieces, &bytes);
	if (heard > 0 && (h.rank != rank || h.bytes != m->bytes || bytes != row(m)))
		return false;
	if (heard > 0)
		take_pieces(m, rank, pieces);
	return heard >= 0;
}

static uint32_t first_missing(const struct meet *m)
{
	for (uint32_t i = 1; i < m->launch.size; i++) {
		if (!m->caller[i].came)
			return i;
	}
	return NOBODY;
}

static int missing(const struct meet *m, uint32_t rank)
{
	uint32_t all = 0;

	for (uint32_t i = rank; i < m->launch.size; i++)
		all += !m->caller[i].came;
	return fabric_fail(ETIMEDOUT, "rank %u did not come to %s within %u ms (%u of %u are missing, %u callers were refused): check that it runs, with the same RASHPA_MEET and RASHPA_SIZE, and can reach this port",
			   rank, m->at, waited_ms(m), all, m->launch.size, m->refused);
}

/* A caller is looked at if it sends, or if its handshake may be over. */
static void wait_for_all(struct meet *m, uint64_t end)
{
	const uint32_t n = places(m);

	for (uint32_t i = 0; i < n; i++)
		m->poll[i] = poll_of(m->caller[i].wire);
	m->poll[n] = (struct pollfd) { .fd = m->listener.fd, .events = POLLIN };
	wait_for(m->poll, n + 1, end);
}

/* Wait for the pieces of all ranks. In the first exchange, a rank may leave and come back. */
static int gather(struct meet *m, uint64_t end)
{
	const uint32_t n = places(m);
	uint32_t rank;

	while ((rank = first_missing(m)) != NOBODY) {
		wait_for_all(m, end);
		if (fabric_now() >= end)
			return missing(m, rank);
		for (uint32_t i = 1; i < m->launch.size; i++) {
			if (!m->poll[i].revents || hear_rank(m, i))
				continue;
			leave(&m->caller[i]);
			if (m->listener.fd < 0)
				return fabric_fail(EPIPE, "rank %u left before all were connected",
						   i);
		}
		for (uint32_t i = m->launch.size; i < n; i++) {
			if (m->poll[i].revents && m->caller[i].wire)
				hear_stranger(m, &m->caller[i]);
		}
		if (m->poll[n].revents)
			answer_call(m);
	}
	return 0;
}

/* Give what waits for a rank to the kernel. */
static int finish(struct wire *w, uint64_t end)
{
	char ignored[WHY_SIZE];

	while (!wire_sent(w)) {
		struct pollfd pollfd = poll_of(w);

		if (fabric_now() >= end)
			return -ETIMEDOUT;
		wait_for(&pollfd, 1, end);
		if (wire_go(w, ignored) < 0)
			return -EPIPE;
	}
	return 0;
}

/* Send each rank the pieces for it. */
static int scatter(struct meet *m, void *theirs, uint64_t end)
{
	const struct meet_answer a = { .magic = MEET_MAGIC };
	uint8_t *pieces = malloc(row(m) + 1);
	int error = 0;

	if (!pieces)
		return fabric_fail(ENOMEM, "no memory");
	for (uint32_t i = 0; i < m->launch.size && !error; i++) {
		for (uint32_t from = 0; m->bytes && from < m->launch.size; from++)
			memcpy((i ? pieces : (uint8_t *)theirs) + from * m->bytes,
			       m->said + from * row(m) + (size_t)i * m->bytes, m->bytes);
		if (i)
			error = say_pieces(m->caller[i].wire, &a, sizeof(a), pieces, row(m));
		if (i && !error)
			error = finish(m->caller[i].wire, end);
		if (error)
			error = fabric_fail(-error, "rank %u left before all were connected: %s", i,
					    strerror(-error));
	}
	free(pieces);
	return error;
}

static int tell_all(struct meet *m, int error)
{
	for (uint32_t i = 1; i < places(m); i++) {
		if (m->caller[i].wire)
			refuse(&m->caller[i], -error);
	}
	return error;
}

static int prepare(struct meet *m)
{
	m->caller = calloc(places(m), sizeof(*m->caller));
	m->poll = calloc(places(m) + 1, sizeof(*m->poll));
	if (!m->caller || !m->poll)
		return fabric_fail(ENOMEM, "no memory");
	return listen_there(m);
}

static void end_strangers(struct meet *m)
{
	for (uint32_t i = m->launch.size; i < places(m); i++)
		leave(&m->caller[i]);
	wire_unlisten(&m->listener);
}

static int receive_others(struct meet *m, const void *mine, void *theirs, uint64_t end)
{
	int error;

	free(m->said);
	m->said = fabric_memory((uint64_t)m->launch.size + 1, row(m));
	if (!m->said)
		return fabric_fail(ENOMEM, "no memory for %u processes", m->launch.size);
	if (m->bytes)
		memcpy(m->said, mine, row(m));
	for (uint32_t i = 0; i < m->launch.size; i++) {
		m->caller[i].came = false;
		if (m->caller[i].wire)
			wire_limit(m->caller[i].wire, limit(m));
	}
	error = gather(m, end);
	end_strangers(m);
	if (!error)
		error = scatter(m, theirs, fabric_now() + GRACE_NS);
	return error ? tell_all(m, error) : 0;
}

/* --- others --- */

/* Connect, and shake hands. 0, or -1 and why. */
static int try(struct meet *m, uint64_t end, char *why)
{
	int ready;

	if (wire_connect_open(m->at, m->tls, &m->server, why))
		return -1;
	while (!(ready = wire_go(m->server, why)) && fabric_now() < end) {
		struct pollfd pollfd = poll_of(m->server);

		wait_for(&pollfd, 1, end);
	}
	if (ready > 0)
		return 0;
	wire_close(m->server);
	m->server = NULL;
	return ready ? -1 : because(why, -1, "%s", strerror(ETIMEDOUT));
}

static int reach(struct meet *m, uint64_t end)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	char now[WHY_SIZE], why[WHY_SIZE] = "";

	while (try(m, end, now)) {
		/* rank 0 may have given up since it gave a reason */
		if (!*why || !strstr(now, strerror(ECONNREFUSED)))
			memcpy(why, now, sizeof(why));
		if (fabric_now() >= end)
			return fabric_fail(ETIMEDOUT, "rank 0 did not answer at RASHPA_MEET=%s within %u ms: %s: check that it runs, with the same address, and that its port can be reached",
					   m->at, waited_ms(m), why);
		nanosleep(&pause, NULL);	/* nothing signals that rank 0 listens: try again */
	}
	return 0;
}

/* The sentence may come from any program, so it is escaped. */
static int refused(const struct meet *m, struct meet_answer *a)
{
	const char *sentence;

	a->sentence[sizeof(a->sentence) - 1] = 0;
	sentence = SHOWN(a->sentence);
	if (a->error == ETIMEDOUT)
		return fabric_fail(ETIMEDOUT, "%s", sentence);
	return fabric_fail(EPROTO, "rank 0 at %s says: %s", m->at, sentence);
}

static int hear_answer(const struct meet *m, void *theirs, uint64_t end)
{
	struct meet_answer a;
	char why[WHY_SIZE];
	const char *frame;
	size_t size;
	int heard;

	wire_limit(m->server, limit(m));
	while (!(heard = wire_take(m->server, &frame, &size, why))) {
		struct pollfd pollfd = poll_of(m->server);

		if (fabric_now() >= end)
			return fabric_fail(ETIMEDOUT, "rank 0 at %s did not report within %u ms that all ranks had come",
					   m->at, waited_ms(m));
		wait_for(&pollfd, 1, end);
	}
	if (heard < 0)
		return fabric_fail(EPIPE, "rank 0 at %s left before all were connected: %s", m->at,
				   *why ? why : "it has closed the link");
	if (size >= sizeof(a))
		memcpy(&a, frame, sizeof(a));
	if (size < sizeof(a) || a.magic != MEET_MAGIC || (!a.error && size != sizeof(a) + row(m)))
		return fabric_fail(EPROTO, "the program at RASHPA_MEET=%s is not rank 0 of this run: choose another port",
				   m->at);
	if (a.error)
		return refused(m, &a);
	if (m->bytes)
		memcpy(theirs, frame + sizeof(a), row(m));
	return 0;
}

static int call(struct meet *m, const void *mine, void *theirs, uint64_t end)
{
	struct meet_hello h = {
		.magic = MEET_MAGIC, .rank = m->launch.rank, .size = m->launch.size,
		.bytes = m->bytes,
	};
	int error = m->server ? 0 : reach(m, end);

	if (error)
		return error;
	memcpy(h.job, m->job, sizeof(h.job));
	/* after a refusal, sending fails, but there is an answer to read */
	if (say_pieces(m->server, &h, sizeof(h), mine, row(m)) == -ENOMEM)
		return fabric_fail(ENOMEM, "no memory");
	/* rank 0 runs, and has the same time limit */
	return hear_answer(m, theirs, fabric_now() + m->patience + GRACE_NS);
}

/* --- all --- */

/* The names of variables follow those of options. */
static int read_keys(struct meet *m)
{
	const struct wire_files files = {
		.authority = getenv("RASHPA_TLS_CA"), .certificate = getenv("RASHPA_TLS_CERT"),
		.key = getenv("RASHPA_TLS_KEY"), .revoked = getenv("RASHPA_TLS_CRL"),
	};
	char why[WHY_SIZE];

	if (!files.certificate || !wire_tls_open(&files, &m->tls, why))
		return 0;
	return fabric_fail(EINVAL, "RASHPA_TLS_*: %s", why);
}

static int meet_open(struct rashpa_launch *launch, void **link)
{
	struct meet *m = calloc(1, sizeof(*m));
	struct sockaddr_storage there;
	char why[WHY_SIZE];
	socklen_t size;
	int error;

	if (!m)
		return fabric_fail(ENOMEM, "no memory");
	*link = m;
	m->listener.fd = -1;
	m->at = getenv("RASHPA_MEET");
	if (!m->at)
		return fabric_fail(ENOENT, "RASHPA_MEET=[tls:]HOST:PORT is not set");
	error = launch->size ? 0 : rashpa_launch_read(launch);
	if (!error && link_resolve(m->at, !launch->rank, &there, &size, why))
		error = fabric_fail(EINVAL, "RASHPA_MEET=%s", why);
	if (!error)
		error = read_keys(m);
	if (error)
		return error;
	m->launch = *launch;
	/* a host may have several names, so the address cannot name the run */
	if (strncmp(m->launch.job, m->at, sizeof(m->launch.job)))
		memcpy(m->job, m->launch.job, sizeof(m->job));
	return 0;
}

static int meet_swap(void *link, const void *mine, uint32_t bytes, void *theirs, uint64_t end)
{
	struct meet *m = link;
	const uint64_t now = fabric_now();
	int error;

	m->bytes = bytes;
	if (!m->begun) {
		m->begun = now;
		m->patience = end > now ? end - now : 0;
	} else if (end < now + GRACE_NS) {
		end = now + GRACE_NS;	/* all ranks have come, so this is fast */
	}
	if (m->launch.rank)
		return call(m, mine, theirs, end);
	error = m->caller || m->launch.size == 1 ? 0 : prepare(m);
	if (error || m->launch.size == 1)
		return error;
	return receive_others(m, mine, theirs, end);
}

static void meet_close(void *link)
{
	struct meet *m = link;

	if (!m)
		return;
	for (uint32_t i = 0; m->caller && i < places(m); i++)
		wire_close(m->caller[i].wire);
	wire_unlisten(&m->listener);
	wire_close(m->server);
	wire_tls_close(m->tls);
	free(m->caller);
	free(m->poll);
	free(m->said);
	free(m);
}

const struct exchange meet_exchange = {
	.open = meet_open,
	.swap = meet_swap,
	.close = meet_close,
};
