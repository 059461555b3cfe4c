// SPDX-License-Identifier: LGPL-2.1-or-later
#include "serve.h"

#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rashpactl.h"
#include "stop.h"

#define FIRST_FD	3		/* SD_LISTEN_FDS_START */
#define REQUEST_MAX	8192		/* bytes, with all its headers */
#define PATIENCE_NS	2000000000ull

int serve_socket(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	int listens = 0;
	socklen_t size = sizeof(listens);

	if (!pid || !fds || strtol(pid, NULL, 10) != getpid() || strcmp(fds, "1") ||
	    getsockopt(FIRST_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) || !listens) {
		say("--serve: systemd gave no socket that listens: start rashpa-exporter.socket, or systemd-socket-activate");
		return -1;
	}
	/* who is gone before it is taken keeps nobody waiting */
	fcntl(FIRST_FD, F_SETFD, FD_CLOEXEC);
	fcntl(FIRST_FD, F_SETFL, fcntl(FIRST_FD, F_GETFL) | O_NONBLOCK);
	return FIRST_FD;
}

/*
 * All headers, which an empty line ends; what they say is of no interest. False: they did not come.
 */
static bool take_request(int fd, char *request, uint64_t end)
{
	size_t n = 0;

	while (n + 1 < REQUEST_MAX) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t got;

		if (stop_poll(&ready, 1, end) <= 0)
			return false;
		got = recv(fd, request + n, REQUEST_MAX - 1 - n, 0);
		if (got <= 0)
			return false;
		n += got;
		request[n] = '\0';
		if (memmem(request, n, "\r\n\r\n", 4))
			return true;
	}
	return false;
}

static bool put(int fd, const char *text, size_t size, uint64_t end)
{
	while (size) {
		struct pollfd ready = { .fd = fd, .events = POLLOUT };
		ssize_t sent;

		if (stop_poll(&ready, 1, end) <= 0)
			return false;
		sent = send(fd, text, size, MSG_NOSIGNAL);
		if (sent <= 0)
			return false;
		text += sent;
		size -= sent;
	}
	return true;
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

static void answer(int fd, const char *request, const char *text, size_t size, uint64_t end)
{
	bool head;
	const char *status = judge(request, &head), *why = "metrics are at /metrics\n";
	char headers[256];
	int n;

	if (*status == '2' && !text) {
		status = "503 Service Unavailable";
		why = "there are no metrics: journalctl -u rashpa-exporter says why\n";
	}
	if (*status != '2') {
		text = why;
		size = strlen(text);
	}
	n = snprintf(headers, sizeof(headers),
		     "HTTP/1.1 %s\r\n%sContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
		     status,
		     !strncmp(status, "405", 3) ? "Allow: GET, HEAD\r\n" : "", size);
	if (put(fd, headers, n, end) && !head)
		put(fd, text, size, end);
}

void serve(int listener, const char *text, size_t size)
{
	const uint64_t end = now_ns() + PATIENCE_NS;
	char request[REQUEST_MAX];
	const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (take_request(fd, request, end))
		answer(fd, request, text, size, end);
	close(fd);
}
