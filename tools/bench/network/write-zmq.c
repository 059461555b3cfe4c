// SPDX-License-Identifier: LGPL-2.1-or-later
/* For comparison: messages by ZeroMQ, with a PUSH socket for each pair, without options. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "bench/network/network.h"

static int sorry(char *why)
{
	return because(why, -1, "ZeroMQ: %s", zmq_strerror(errno));
}

static int open_writer(struct writer *w, char *why)
{
	w->path = zmq_ctx_new();
	return w->path ? 0 : sorry(why);
}

static int open_sender(struct sender *s, char *why)
{
	(void)s;
	(void)why;
	return 0;
}

static int open_lane(struct lane *l, struct sender *s, struct json_object *ends, char *why)
{
	const int tick = TICK_MS;

	(void)ends;
	l->path = zmq_socket(s->writer->path, ZMQ_PUSH);
	if (!l->path || zmq_setsockopt(l->path, ZMQ_SNDTIMEO, &tick, sizeof(tick)))
		return sorry(why);
	return 0;
}

static int connect_lane(struct lane *l, struct json_object *acceptance, char *why)
{
	const uint32_t pairs = l->target->writer->plan.pairs;
	struct json_object *ends;
	const char *end;

	if (!link_array(acceptance, "endpoints", pairs, pairs, &ends, why))
		return -1;
	end = json_object_get_string(json_object_array_get_idx(ends, l->index));
	return zmq_connect(l->path, end) ? sorry(why) : 0;
}

/* 1: sent; 0: no room yet; -1 and why */
static int send_one(struct lane *l, char *why)
{
	const struct writer *w = l->target->writer;
	uint8_t *from = (uint8_t *)w->memory.base + l->number % w->config->sources * w->plan.size;
	const uint32_t number = htonl(l->number);

	memcpy(from, &number, sizeof(number));
	if (zmq_send(l->path, from, w->plan.size, 0) >= 0) {
		lane_sent(l, 1);
		return 1;
	}
	return errno == EAGAIN || errno == EINTR ? 0 : sorry(why);
}

static int send_all(struct sender *s)
{
	const uint64_t start = now_ns();
	uint64_t bytes = 0;

	while (!sender_done(s)) {
		for (uint32_t i = 0; i < s->lanes; i++) {
			const int sent = lane_may(s->lane[i], 1) ? send_one(s->lane[i], s->why) : 0;

			if (sent < 0)
				return -1;
			s->full += !sent;
			bytes += (uint64_t)sent * s->writer->plan.size;
			sender_pace(s, start, bytes);
		}
	}
	return 0;
}

static void close_lane(struct lane *l)
{
	const int linger = 0;

	if (!l->path)
		return;
	zmq_setsockopt(l->path, ZMQ_LINGER, &linger, sizeof(linger));
	zmq_close(l->path);
}

static void close_sender(struct sender *s)
{
	(void)s;
}

static void close_writer(struct writer *w)
{
	if (w->path)
		zmq_ctx_term(w->path);
}

const struct writer_way writer_zmq = {
	.open = open_writer,
	.open_sender = open_sender,
	.open_lane = open_lane,
	.connect = connect_lane,
	.send = send_all,
	.close_lane = close_lane,
	.close_sender = close_sender,
	.close = close_writer,
};
