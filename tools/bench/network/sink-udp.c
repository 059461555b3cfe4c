// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * For comparison: a UDP sink, with a socket and a thread for each pair, and no socket options. The
 * kernel copies each datagram, which starts with its number.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json-out.h"
#include "bench/network/network.h"

/* Listen at the address that the writer has used. */
static int open_socket(const struct guest *g, uint32_t *port, char *why)
{
	const struct timeval tick = { .tv_usec = TICK_MS * 1000 };
	struct sockaddr_storage at = {};
	socklen_t size = sizeof(at);
	int fd;

	if (getsockname(wire_fd(g->link.wire), (struct sockaddr *)&at, &size))
		return because(why, -1, "UDP: %s", strerror(errno));
	/* the port is at the same place in both address families */
	((struct sockaddr_in *)&at)->sin_port = 0;
	fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick)) ||
	    getsockname(fd, (struct sockaddr *)&at, &size)) {
		because(why, -1, "UDP: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*port = ntohs(((struct sockaddr_in *)&at)->sin_port);
	return fd;
}

static int open_sink(struct sink *s, char *why)
{
	const struct plan *p = &s->guest[0].plan;

	if (p->pairs > THREADS_MOST)
		return because(why, -1, "UDP: %u sockets at most, not %u", THREADS_MOST,
			       p->pairs);
	s->receivers = p->pairs;
	s->path = calloc(p->pairs, sizeof(int));
	if (!s->path)
		return because(why, -1, "no memory");
	for (uint32_t i = 0; i < p->pairs; i++) {
		((int *)s->path)[i] = -1;
		s->receiver[i] = (struct receiver) { .sink = s, .index = i };
	}
	return 0;
}

static int accept_guest(struct sink *s, struct guest *g, struct json_object *hello,
			struct json_object *acceptance, char *why)
{
	struct json_object *ports = json_object_new_array();
	int *fd = s->path;

	(void)hello;
	json_object_object_add(acceptance, "ports", ports);
	for (uint32_t i = 0; i < g->plan.pairs; i++) {
		uint32_t port = 0;

		fd[i] = open_socket(g, &port, why);
		if (fd[i] < 0)
			return -1;
		json_object_array_add(ports, json_object_new_int(port));
	}
	return 0;
}

static int receive(struct receiver *r)
{
	struct guest *g = &r->sink->guest[0];
	struct sequence *sequence = &g->sequence[r->index];
	const int fd = ((int *)r->sink->path)[r->index];

	for (uint64_t n = 0; !r->sink->halt;) {
		/* use the next destination, as the number is not known before the copy */
		uint8_t *to = destination(r->sink, g, r->index, n);
		ssize_t size = recv(fd, to, g->plan.size, 0);
		uint32_t number;

		if (size < 0 && errno != EAGAIN && errno != EINTR)
			return because(r->why, -1, "UDP: %s", strerror(errno));
		if (size != g->plan.size)
			continue;
		memcpy(&number, to, sizeof(number));
		sequence_take(sequence, ntohl(number));
		n++;
	}
	return 0;
}

static void close_sink(struct sink *s)
{
	const int *fd = s->path;

	for (uint32_t i = 0; fd && i < s->receivers; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	free(s->path);
}

const struct sink_way sink_udp = {
	.open = open_sink,
	.accept = accept_guest,
	.receive = receive,
	.close = close_sink,
};
