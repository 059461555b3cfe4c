// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rashpactl/rashpactl.h"
#include "common/stop.h"

#define FIRST_FD	3		/* SD_LISTEN_FDS_START */
#define REQUEST_MAX	8192		/* bytes, with all its headers */
#define PATIENCE_NS	2000000000ull
#define GRACE_NS	100000000ull	/* least time of a connection */
#define ACCEPTED	16		/* at once */

struct asker {
	int fd;				/* -1: the place is free */
	uint64_t end;			/* deadline, after two seconds; the oldest is due first */
	bool asks;			/* request received, not yet answered */
	char *answer;			/* NULL: none yet */
	size_t size, sent;		/* bytes of the answer, and bytes sent */
	char request[REQUEST_MAX];
	size_t have;			/* bytes of the request so far */
};

struct server {
	int listener;
	uint64_t full_until;		/* accept no connection before; 0: there are free places */
	struct asker asker[SERVE_MOST];
};

static int inherited(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (!pid || !fds || strtol(pid, NULL, 10) != getpid() || strcmp(fds, "1") ||
	    getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens) {
		say("--serve: systemd gave no socket that listens: start rashpa-exporter.socket, or systemd-socket-activate");
		return -1;
	}
	/* accept() must not wait if the client has gone */
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FIRST_FD, F_SETFL, fcntl(FIRST_FD, F_GETFL) | O_NONBLOCK);
	return FIRST_FD;
}

struct server *serve_open(void)
{
	const int listener = inherited();
	struct server *s = listener < 0 ? NULL : calloc(1, sizeof(*s));

	if (listener >= 0 && !s)
		say("no memory to answer");
	if (!s)
		return NULL;
	s->listener = listener;
	for (unsigned int i = 0; i < SERVE_MOST; i++)
		s->asker[i].fd = -1;
	return s;
}

static void drop(struct asker *a)
{
	close(a->fd);
	free(a->answer);
	a->fd = -1;
}

/* The status; the text is at /metrics. */
static const char *judge(const char *request, bool *head)
{
	char method[16], path[256], version[16];

	*head = false;
	if (sscanf(request, "%15s %255s %15s", method, path, version) != 3 ||
	    strncmp(version, "HTTP/1.", 7))
		return "400 Bad Request";
	*head = !strcmp(method, "HEAD");
	if (!*head && strcmp(method, "GET"))
		return "405 Method Not Allowed";
	path[strcspn(path, "?")] = '\0';
	return strcmp(path, "/metrics") ? "404 Not Found" : "200 OK";
}

/* Headers and text; NULL: no memory. */
static char *compose(const char *request, const char *text, size_t size, size_t *all)
{
	bool head;
	const char *status = judge(request, &head), *why = "metrics are at /metrics\n";
	char headers[256], *answer;
	int n;

	if (*status == '2' && !text) {
		status = "503 Service Unavailable";
		why = "there are no metrics: see journalctl -u rashpa-exporter\n";
	}
	if (*status != '2') {
		text = why;
		size = strlen(text);
	}
	n = snprintf(headers, sizeof(headers),
		     "HTTP/1.1 %s\r\n%sContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		     status,
		     !strncmp(status, "405", 3) ? "Allow: GET, HEAD\r\n" : "", size);
	*all = n + (head ? 0 : size);
	answer = malloc(*all);
	if (!answer)
		return NULL;
	memcpy(answer, headers, n);
	memcpy(answer + n, text, *all - n);
	return answer;
}

/* Send as much of the answer as possible. */
static void transmit(struct asker *a)
{
	const ssize_t n = send(a->fd, a->answer + a->sent, a->size - a->sent, MSG_NOSIGNAL);

	if (n < 0 && errno == EAGAIN)
		return;
	a->sent += n > 0 ? n : 0;
	if (n <= 0 || a->sent == a->size)
		drop(a);
}

/* Read the headers up to the empty line, and ignore them. */
static void take(struct asker *a)
{
	const ssize_t n = recv(a->fd, a->request + a->have, REQUEST_MAX - 1 - a->have, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	a->have += n > 0 ? n : 0;
	a->request[a->have] = '\0';
	a->asks = memmem(a->request, a->have, "\r\n\r\n", 4);
	if (!a->asks && (n <= 0 || a->have == REQUEST_MAX - 1))
		drop(a);
}

static void go_on(struct asker *a)
{
	if (a->answer)
		transmit(a);
	else if (!a->asks)
		take(a);
}

/*
 * Find a place for a connection. If all are taken, close the oldest connection without a request,
 * else the oldest one that reads its answer slowly. NULL: all are new or about to be answered.
 */
static struct asker *place(struct server *s, uint64_t now)
{
	struct asker *goes = NULL;
	uint64_t came;

	s->full_until = 0;
	for (unsigned int i = 0; i < SERVE_MOST; i++) {
		struct asker *a = &s->asker[i];

		if (a->fd < 0)
			return a;
		if (a->asks)
			continue;
		if (!goes || !a->answer > !goes->answer ||
		    (!a->answer == !goes->answer && a->end < goes->end))
			goes = a;
	}
	if (!goes)
		return NULL;
	came = goes->end - PATIENCE_NS;
	if (now < came + GRACE_NS) {
		s->full_until = came + GRACE_NS;
		return NULL;
	}
	drop(goes);
	return goes;
}

static void take_in(struct server *s, uint64_t now)
{
	for (unsigned int i = 0; i < ACCEPTED; i++) {
		struct asker *a = place(s, now);
		const int fd = a ? accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

		if (fd < 0)
			return;
		a->fd = fd;
		a->end = now + PATIENCE_NS;
		a->asks = false;
		a->answer = NULL;
		a->have = a->sent = 0;
		take(a);
	}
}

uint64_t serve_poll(const struct server *s, struct pollfd *fds)
{
	uint64_t due = UINT64_MAX;

	for (unsigned int i = 0; i < SERVE_MOST; i++) {
		const struct asker *a = &s->asker[i];

		fds[i] = (struct pollfd) { .fd = a->fd, .events = a->answer ? POLLOUT : POLLIN };
		if (a->fd >= 0 && a->end < due)
			due = a->end;
	}
	fds[SERVE_MOST] = (struct pollfd) { .fd = s->listener, .events = POLLIN };
	if (s->full_until > now_ns()) {
		fds[SERVE_MOST].fd = -1;
		due = s->full_until < due ? s->full_until : due;
	}
	return due;
}

bool serve_look(struct server *s, const struct pollfd *fds)
{
	const uint64_t now = now_ns();
	bool asked = false;

	for (unsigned int i = 0; i < SERVE_MOST; i++) {
		struct asker *a = &s->asker[i];

		if (a->fd >= 0 && fds[i].revents)
			go_on(a);
		if (a->fd >= 0 && now >= a->end)
			drop(a);
	}
	if (fds[SERVE_MOST].revents)
		take_in(s, now);
	for (unsigned int i = 0; i < SERVE_MOST; i++)
		asked |= s->asker[i].fd >= 0 && s->asker[i].asks;
	return asked;
}

void serve_answer(struct server *s, const char *text, size_t size)
{
	for (unsigned int i = 0; i < SERVE_MOST; i++) {
		struct asker *a = &s->asker[i];

		if (a->fd < 0 || !a->asks)
			continue;
		a->asks = false;
		a->answer = compose(a->request, text, size, &a->size);
		if (a->answer)
			transmit(a);
		else
			drop(a);
	}
}

void serve_sorry(struct server *s)
{
	const uint64_t end = now_ns() + PATIENCE_NS;
	struct pollfd fds[SERVE_FDS];
	uint64_t due;
	bool there;

	do {
		due = serve_poll(s, fds);
		stop_poll(fds, SERVE_FDS, due < end ? due : end);
		if (serve_look(s, fds))
			serve_answer(s, NULL, 0);
		there = false;
		for (unsigned int i = 0; i < SERVE_MOST; i++)
			there |= s->asker[i].fd >= 0;
	} while (there && now_ns() < end);
}
