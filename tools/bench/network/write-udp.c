// SPDX-License-Identifier: LGPL-2.1-or-later
/* For comparison: messages by UDP, one sendto() for each, without socket options. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/network/network.h"

struct end {
	int fd;
	struct sockaddr_storage to;
	socklen_t size;
};

static int open_writer(struct writer *w, char *why)
{
	(void)w;
	(void)why;
	return 0;
}

static int open_sender(struct sender *s, char *why)
{
	(void)s;
	(void)why;
	return 0;
}

static int open_lane(struct lane *l, struct sender *s, struct json_object *ends, char *why)
{
	struct end *e = calloc(1, sizeof(*e));

	(void)s;
	(void)ends;
	if (!e)
		return because(why, -1, "no memory");
	e->fd = -1;
	l->path = e;
	return 0;
}

static int connect_lane(struct lane *l, struct json_object *acceptance, char *why)
{
	const struct target *t = l->target;
	const uint32_t pairs = t->writer->plan.pairs;
	struct end *e = l->path;
	struct json_object *ports;

	e->size = sizeof(e->to);
	if (!link_array(acceptance, "ports", pairs, pairs, &ports, why))
		return -1;
	if (getpeername(wire_fd(t->link.wire), (struct sockaddr *)&e->to, &e->size))
		return because(why, -1, "%s: %s", t->to, strerror(errno));
	/* the port is at the same place in both address families */
	((struct sockaddr_in *)&e->to)->sin_port =
		htons(json_object_get_int(json_object_array_get_idx(ports, l->index)));
	e->fd = socket(e->to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return e->fd < 0 ? because(why, -1, "UDP: %s", strerror(errno)) : 0;
}

static int send_one(struct lane *l, char *why)
{
	const struct writer *w = l->target->writer;
	const struct end *e = l->path;
	uint8_t *from = (uint8_t *)w->memory.base + l->number % w->config->sources * w->plan.size;
	const uint32_t number = htonl(l->number);

	memcpy(from, &number, sizeof(number));
	while (sendto(e->fd, from, w->plan.size, 0, (const struct sockaddr *)&e->to, e->size) < 0) {
		if (errno != EINTR && errno != ENOBUFS)
			return because(why, -1, "UDP: %s", strerror(errno));
	}
	lane_sent(l, 1);
	return 0;
}

static int send_all(struct sender *s)
{
	const uint64_t start = now_ns();
	uint64_t bytes = 0;

	while (!sender_done(s)) {
		for (uint32_t i = 0; i < s->lanes; i++) {
			if (!lane_may(s->lane[i], 1))
				continue;
			if (send_one(s->lane[i], s->why))
				return -1;
			bytes += s->writer->plan.size;
			sender_pace(s, start, bytes);
		}
	}
	return 0;
}

static void close_lane(struct lane *l)
{
	struct end *e = l->path;

	if (e && e->fd >= 0)
		close(e->fd);
	free(e);
}

static void close_sender(struct sender *s)
{
	(void)s;
}

static void close_writer(struct writer *w)
{
	(void)w;
}

const struct writer_way writer_udp = {
	.open = open_writer,
	.open_sender = open_sender,
	.open_lane = open_lane,
	.connect = connect_lane,
	.send = send_all,
	.close_lane = close_lane,
	.close_sender = close_sender,
	.close = close_writer,
};
