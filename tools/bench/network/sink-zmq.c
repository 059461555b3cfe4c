// SPDX-License-Identifier: LGPL-2.1-or-later
/* For comparison: a ZeroMQ sink, with a PULL socket and a thread for each pair, without options. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

#include "common/json-out.h"
#include "bench/network/network.h"

struct queue {
	void *context;
	void *socket[THREADS_MOST];
};

static int sorry(char *why)
{
	return because(why, -1, "ZeroMQ: %s", zmq_strerror(errno));
}

static int open_sink(struct sink *s, char *why)
{
	const struct plan *p = &s->guest[0].plan;
	struct queue *q;

	if (p->pairs > THREADS_MOST)
		return because(why, -1, "ZeroMQ: %u sockets at most, not %u", THREADS_MOST,
			       p->pairs);
	q = calloc(1, sizeof(*q));
	if (!q)
		return because(why, -1, "no memory");
	s->path = q;
	q->context = zmq_ctx_new();
	if (!q->context)
		return sorry(why);
	s->receivers = p->pairs;
	for (uint32_t i = 0; i < p->pairs; i++)
		s->receiver[i] = (struct receiver) { .sink = s, .index = i };
	return 0;
}

/* Listen at the address that the writer has used; ZeroMQ needs it as a URL. */
static int open_socket(const struct guest *g, struct queue *q, uint32_t i, char *endpoint,
		       size_t size, char *why)
{
	const int tick = TICK_MS;
	struct sockaddr_storage at = {};
	socklen_t length = sizeof(at);
	char host[64], url[80];

	if (getsockname(wire_fd(g->link.wire), (struct sockaddr *)&at, &length) ||
	    getnameinfo((struct sockaddr *)&at, length, host, sizeof(host), NULL, 0,
			NI_NUMERICHOST))
		return because(why, -1, "ZeroMQ: the link has no address");
	snprintf(url, sizeof(url), at.ss_family == AF_INET6 ? "tcp://[%s]:*" : "tcp://%s:*", host);
	q->socket[i] = zmq_socket(q->context, ZMQ_PULL);
	if (!q->socket[i] || zmq_setsockopt(q->socket[i], ZMQ_RCVTIMEO, &tick, sizeof(tick)) ||
	    zmq_bind(q->socket[i], url) ||
	    zmq_getsockopt(q->socket[i], ZMQ_LAST_ENDPOINT, endpoint, &size))
		return sorry(why);
	return 0;
}

static int accept_guest(struct sink *s, struct guest *g, struct json_object *hello,
			struct json_object *acceptance, char *why)
{
	struct json_object *ends = json_object_new_array();
	char endpoint[128];

	(void)hello;
	json_object_object_add(acceptance, "endpoints", ends);
	for (uint32_t i = 0; i < g->plan.pairs; i++) {
		if (open_socket(g, s->path, i, endpoint, sizeof(endpoint), why))
			return -1;
		json_object_array_add(ends, json_object_new_string(endpoint));
	}
	return 0;
}

static int receive(struct receiver *r)
{
	struct guest *g = &r->sink->guest[0];
	struct sequence *sequence = &g->sequence[r->index];
	void *socket = ((struct queue *)r->sink->path)->socket[r->index];

	for (uint64_t n = 0; !r->sink->halt;) {
		uint8_t *to = destination(r->sink, g, r->index, n);
		const int size = zmq_recv(socket, to, g->plan.size, 0);
		uint32_t number;

		if (size < 0 && errno != EAGAIN && errno != EINTR)
			return sorry(r->why);
		if (size != (int)g->plan.size)
			continue;
		memcpy(&number, to, sizeof(number));
		sequence_take(sequence, ntohl(number));
		n++;
	}
	return 0;
}

static void close_sink(struct sink *s)
{
	struct queue *q = s->path;
	const int linger = 0;

	if (!q)
		return;
	for (uint32_t i = 0; i < THREADS_MOST; i++) {
		if (!q->socket[i])
			continue;
		zmq_setsockopt(q->socket[i], ZMQ_LINGER, &linger, sizeof(linger));
		zmq_close(q->socket[i]);
	}
	if (q->context)
		zmq_ctx_term(q->context);
	free(q);
}

const struct sink_way sink_zmq = {
	.open = open_sink,
	.accept = accept_guest,
	.receive = receive,
	.close = close_sink,
};
