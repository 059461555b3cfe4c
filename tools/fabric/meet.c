// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An exchange without a launcher. Rank 0 listens at RASHPA_MEET=HOST:PORT. The
 * other ranks connect, and send their rank and a piece for each peer. When all pieces have come,
 * rank 0 sends each rank the pieces for it. Callers that have not sent a valid rank share a fixed
 * number of places, and the oldest of them is dropped first. So strangers cannot block the run, and
 * no allocation depends on their data.
 */
#include "fabric/meet.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fabric/exchange.h"
#include "common/host.h"
#include "fabric/internal.h"
#include "common/shown.h"

#define RETRY_NS	50000000	/* between two attempts to reach rank 0 */
#define GRACE_NS	UINT64_C(5000000000)	/* for rank 0 to report which rank is missing */
#define NOBODY		UINT32_MAX

struct caller {
	int fd;			/* -1: free place */
	bool came;		/* hello and pieces are complete */
	size_t got;		/* bytes of hello, and of pieces */
	uint64_t since;		/* number of the connection, in order */
	struct meet_hello hello;
};

struct meet {
	struct rashpa_launch launch;
	const char *at;		/* the address from the environment */
	char job[sizeof(((struct rashpa_launch *)0)->job)];
	uint64_t begun, patience;
	int server;		/* other ranks: the connection to rank 0 */
	int listener;		/* rank 0; -1: closed */
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

static unsigned int waited_ms(const struct meet *m)
{
	return (fabric_now() - m->begun) / 1000000;
}

/* Wait until the socket can be read or written; false: the time is over. */
static bool ready(int fd, short what, uint64_t end)
{
	struct pollfd p = { .fd = fd, .events = what };
	int n;

	do {
		const uint64_t now = fabric_now();

		n = poll(&p, 1, now < end ? (int)((end - now + 999999) / 1000000) : 0);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

/* Send all bytes. 0, -ETIMEDOUT or another errno. */
static int send_all(int fd, const void *data, size_t bytes, uint64_t end)
{
	const uint8_t *at = data;

	if (fd < 0)
		return -ENOTCONN;
	while (bytes) {
		const ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN && !ready(fd, POLLOUT, end))
			return -ETIMEDOUT;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? n : 0;
	}
	return 0;
}

/* Receive all bytes. 0, -ETIMEDOUT, -EPIPE (the other side has closed) or another errno. */
static int receive_all(int fd, void *data, size_t bytes, uint64_t end)
{
	uint8_t *at = data;

	while (bytes) {
		const ssize_t n = recv(fd, at, bytes, MSG_DONTWAIT);

		if (!n || (n < 0 && errno == ECONNRESET))
			return -EPIPE;
		if (n < 0 && errno == EAGAIN && !ready(fd, POLLIN, end))
			return -ETIMEDOUT;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? n : 0;
	}
	return 0;
}

/* --- rank 0 --- */

static int listen_there(struct meet *m)
{
	const int on = 1;
	struct addrinfo *list;
	const char *wrong = host_resolve(m->at, true, &list);
	int error = ENOENT;

	if (wrong)
		return fabric_fail(EINVAL, "RASHPA_MEET=%s: %s", m->at, wrong);
	for (const struct addrinfo *a = list; a && error; a = a->ai_next) {
		m->listener = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (m->listener >= 0)
			setsockopt(m->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		error = m->listener < 0 || bind(m->listener, a->ai_addr, a->ai_addrlen) ||
			listen(m->listener, RASHPA_FABRIC_PEERS) ? errno : 0;
		if (error && m->listener >= 0)
			close(m->listener);
		if (error)
			m->listener = -1;
	}
	freeaddrinfo(list);
	return error ? fabric_fail(error, "rank 0 cannot listen at RASHPA_MEET=%s: %s: set it to an address of this machine and a free port",
				   m->at, strerror(error)) : 0;
}

static void leave(struct caller *c)
{
	if (c->fd >= 0)
		close(c->fd);
	*c = (struct caller) { .fd = -1 };
}

/* Send a caller the reason, without waiting for it to read, and close the connection. */
static void refuse(struct caller *c, int error)
{
	struct meet_answer a = { .magic = MEET_MAGIC, .error = error };

	strncpy(a.sentence, rashpa_fabric_reason(), sizeof(a.sentence) - 1);
	send_all(c->fd, &a, sizeof(a), 0);
	leave(c);
}

/* A place for a caller: a free one, or that of the oldest stranger. */
static struct caller *place(struct meet *m)
{
	struct caller *oldest = &m->caller[m->launch.size];

	for (uint32_t i = m->launch.size; i < places(m); i++) {
		if (m->caller[i].fd < 0)
			return &m->caller[i];
		if (m->caller[i].since < oldest->since)
			oldest = &m->caller[i];
	}
	leave(oldest);
	return oldest;
}

static void answer_call(struct meet *m)
{
	const int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;	/* the caller has gone */
	*place(m) = (struct caller) { .fd = fd, .since = m->calls++ };
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
	if (m->caller[h->rank].fd >= 0)
		return fabric_fail(EADDRINUSE, "rank %u is there already: give each process a different rank",
				   h->rank);
	return 0;
}

/* Read more of a hello: 1: complete, 0: not yet, -1: not a hello, or closed. */
static int hear_hello(struct caller *c)
{
	const ssize_t n = recv(c->fd, (uint8_t *)&c->hello + c->got, sizeof(c->hello) - c->got, 0);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
	c->got += n;
	if (c->got >= sizeof(c->hello.magic) && c->hello.magic != MEET_MAGIC)
		return -1;
	return c->got == sizeof(c->hello);
}

static void hear_stranger(struct meet *m, struct caller *c)
{
	const int heard = hear_hello(c);
	int error;

	m->refused += heard < 0;
	if (heard < 0)
		leave(c);
	if (heard <= 0)
		return;
	error = check(m, &c->hello);
	m->refused += !!error;
	if (error) {
		refuse(c, -error);
		return;
	}
	m->caller[c->hello.rank] = *c;
	c->fd = -1;
}

/* false: the rank has left, or sent invalid data. */
static bool hear_rank(struct meet *m, uint32_t rank)
{
	struct caller *c = &m->caller[rank];
	const size_t all = sizeof(c->hello) + row(m);
	ssize_t n;
	int heard;

	if (c->came)
		return false;
	if (c->got < sizeof(c->hello)) {
		heard = hear_hello(c);
		if (heard <= 0)
			return !heard;
		if (c->hello.rank != rank || c->hello.bytes != m->bytes)
			return false;
	}
	if (c->got < all) {
		n = recv(c->fd, m->said + rank * row(m) + c->got - sizeof(c->hello),
			 all - c->got, 0);
		if (n <= 0)
			return n < 0 && (errno == EAGAIN || errno == EINTR);
		c->got += n;
	}
	c->came = c->got == all;
	return true;
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

static void wait_for_some(struct meet *m, uint64_t end)
{
	const uint64_t now = fabric_now();
	const uint32_t n = places(m);

	for (uint32_t i = 0; i < n; i++)
		m->poll[i] = (struct pollfd) { .fd = m->caller[i].fd, .events = POLLIN };
	m->poll[n] = (struct pollfd) { .fd = m->listener, .events = POLLIN };
	poll(m->poll, n + 1, now < end ? (int)((end - now + 999999) / 1000000) : 0);
}

/* Wait for the pieces of all ranks. In the first exchange, a rank may leave and come back. */
static int gather(struct meet *m, uint64_t end)
{
	const uint32_t n = places(m);
	uint32_t rank;

	while ((rank = first_missing(m)) != NOBODY) {
		wait_for_some(m, end);
		if (fabric_now() >= end)
			return missing(m, rank);
		for (uint32_t i = 1; i < m->launch.size; i++) {
			if (!m->poll[i].revents || hear_rank(m, i))
				continue;
			leave(&m->caller[i]);
			if (m->listener < 0)
				return fabric_fail(EPIPE, "rank %u left before all were connected",
						   i);
		}
		for (uint32_t i = m->launch.size; i < n; i++) {
			if (m->poll[i].revents)
				hear_stranger(m, &m->caller[i]);
		}
		if (m->poll[n].revents)
			answer_call(m);
	}
	return 0;
}

/* Send each rank the pieces for it. */
static int scatter(struct meet *m, void *theirs, uint64_t end)
{
	struct meet_answer *a = malloc(sizeof(*a) + row(m));
	int error = 0;

	if (!a)
		return fabric_fail(ENOMEM, "no memory");
	*a = (struct meet_answer) { .magic = MEET_MAGIC };
	for (uint32_t i = 0; i < m->launch.size && !error; i++) {
		uint8_t *pieces = i ? (uint8_t *)(a + 1) : theirs;

		for (uint32_t from = 0; m->bytes && from < m->launch.size; from++)
			memcpy(pieces + from * m->bytes,
			       m->said + from * row(m) + (size_t)i * m->bytes, m->bytes);
		if (i)
			error = send_all(m->caller[i].fd, a, sizeof(*a) + row(m), end);
		if (error)
			error = fabric_fail(-error, "rank %u left before all were connected: %s", i,
					    strerror(-error));
	}
	free(a);
	return error;
}

static int tell_all(struct meet *m, int error)
{
	for (uint32_t i = 1; i < places(m); i++) {
		if (m->caller[i].fd >= 0)
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
	for (uint32_t i = 0; i < places(m); i++)
		m->caller[i].fd = -1;
	return listen_there(m);
}

static void end_strangers(struct meet *m)
{
	for (uint32_t i = m->launch.size; i < places(m); i++)
		leave(&m->caller[i]);
	if (m->listener >= 0)
		close(m->listener);
	m->listener = -1;
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
		m->caller[i].got = 0;
	}
	error = gather(m, end);
	end_strangers(m);
	if (!error)
		error = scatter(m, theirs, fabric_now() + GRACE_NS);
	return error ? tell_all(m, error) : 0;
}

/* --- others --- */

/* 0 or -errno */
static int try(struct meet *m, const struct addrinfo *to, uint64_t end)
{
	socklen_t size = sizeof(int);
	int error = 0;

	m->server = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->server < 0)
		return -errno;
	if (connect(m->server, to->ai_addr, to->ai_addrlen)) {
		error = errno;
		if (error == EINPROGRESS && !ready(m->server, POLLOUT, end))
			error = ETIMEDOUT;
		else if (error == EINPROGRESS &&
			 getsockopt(m->server, SOL_SOCKET, SO_ERROR, &error, &size))
			error = errno;
	}
	if (error) {
		close(m->server);
		m->server = -1;
	}
	return -error;
}

static int reach(struct meet *m, uint64_t end)
{
	const struct timespec pause = { .tv_nsec = RETRY_NS };
	struct addrinfo *list;
	const char *wrong = host_resolve(m->at, false, &list);
	int error = -ENOENT;

	if (wrong)
		return fabric_fail(EINVAL, "RASHPA_MEET=%s: %s", m->at, wrong);
	for (;;) {
		for (const struct addrinfo *a = list; a && error; a = a->ai_next)
			error = try(m, a, end);
		if (!error || fabric_now() >= end)
			break;
		nanosleep(&pause, NULL);	/* nothing signals that rank 0 listens: try again */
		error = -ENOENT;
	}
	freeaddrinfo(list);
	return error ? fabric_fail(ETIMEDOUT, "rank 0 did not answer at RASHPA_MEET=%s within %u ms: %s: check that it runs, with the same address, and that its port can be reached",
				   m->at, waited_ms(m), strerror(-error)) : 0;
}

static int no_answer(const struct meet *m, int error)
{
	if (error == -ETIMEDOUT)
		return fabric_fail(ETIMEDOUT, "rank 0 at %s did not report within %u ms that all ranks had come",
				   m->at, waited_ms(m));
	return fabric_fail(-error, "rank 0 at %s left before all were connected: %s", m->at,
			   strerror(-error));
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
	int error = receive_all(m->server, &a.magic, sizeof(a.magic), end);

	if (!error && a.magic != MEET_MAGIC)
		return fabric_fail(EPROTO, "the program at RASHPA_MEET=%s is not rank 0 of a run: choose another port",
				   m->at);
	if (!error)
		error = receive_all(m->server, &a.error, sizeof(a) - sizeof(a.magic), end);
	if (!error && a.error)
		return refused(m, &a);
	if (!error)
		error = receive_all(m->server, theirs, row(m), end);
	return error ? no_answer(m, error) : 0;
}

static int call(struct meet *m, const void *mine, void *theirs, uint64_t end)
{
	struct meet_hello h = {
		.magic = MEET_MAGIC, .rank = m->launch.rank, .size = m->launch.size,
		.bytes = m->bytes,
	};
	int error = m->server < 0 ? reach(m, end) : 0;

	if (error)
		return error;
	/* rank 0 runs, and has the same time limit */
	end = fabric_now() + m->patience + GRACE_NS;
	memcpy(h.job, m->job, sizeof(h.job));
	error = send_all(m->server, &h, sizeof(h), end);
	if (!error)
		error = send_all(m->server, mine, row(m), end);
	/* after a refusal, sending fails, but there is an answer to read */
	if (error && error != -EPIPE && error != -ECONNRESET)
		return no_answer(m, error);
	return hear_answer(m, theirs, end);
}

/* --- all --- */

static int meet_open(struct rashpa_launch *launch, void **link)
{
	struct meet *m = calloc(1, sizeof(*m));
	int error;

	if (!m)
		return fabric_fail(ENOMEM, "no memory");
	*link = m;
	m->server = -1;
	m->listener = -1;
	m->at = getenv("RASHPA_MEET");
	if (!m->at)
		return fabric_fail(ENOENT, "RASHPA_MEET=HOST:PORT is not set");
	error = launch->size ? 0 : rashpa_launch_read(launch);
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
	for (uint32_t i = 0; m->caller && i < places(m); i++) {
		if (m->caller[i].fd >= 0)
			close(m->caller[i].fd);
	}
	if (m->listener >= 0)
		close(m->listener);
	if (m->server >= 0)
		close(m->server);
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
