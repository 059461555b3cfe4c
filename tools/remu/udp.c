// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages as packets of UDP, with our header or with that of a JUNGFRAU. Where the kernel can cut
 * a message into packets (UDP_SEGMENT), it gets the whole message.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/udp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/json-out.h"
#include "remu/sender.h"
#include "link/packet.h"

#define SEGMENTS	64		/* most packets that the kernel cuts from one call */
#define ETHERNET	1500
#define HEADERS		(40 + 8)	/* IPv6 (larger than IPv4) and UDP */

/* Packets that are handed over together. */
struct path {
	int fd;
	bool whole;			/* the kernel, or the card, does not cut */
	char header[SEGMENTS][sizeof(struct jungfrau)];	/* the longest one */
	struct iovec iov[2 * SEGMENTS];
	uint32_t packets, bytes, segment;	/* size of each packet but the last */
};

/* --- packets --- */

static bool is_jungfrau(const struct sender *s)
{
	return s->sending == &sending_jungfrau;
}

static uint32_t header_bytes(const struct sender *s)
{
	return is_jungfrau(s) ? sizeof(struct jungfrau) : sizeof(struct packet);
}

static ssize_t hand_over(struct path *p, bool cut)
{
	union {
		char space[CMSG_SPACE(sizeof(uint16_t))];
		struct cmsghdr align;
	} control = {};
	struct msghdr m = { .msg_iov = p->iov, .msg_iovlen = 2 * p->packets };
	const uint16_t segment = p->segment;

	if (cut) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control.space);
		*CMSG_FIRSTHDR(&m) = (struct cmsghdr) {
			.cmsg_level = IPPROTO_UDP, .cmsg_type = UDP_SEGMENT,
			.cmsg_len = CMSG_LEN(sizeof(uint16_t)),
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &segment, sizeof(segment));
	}
	return sendmsg(p->fd, &m, 0);
}

/* Send packets one by one if neither kernel nor card cuts them. */
static ssize_t hand_over_each(struct path *p)
{
	struct mmsghdr m[SEGMENTS] = {};
	uint32_t sent = 0;
	int n;

	for (uint32_t i = 0; i < p->packets; i++)
		m[i].msg_hdr = (struct msghdr) { .msg_iov = &p->iov[2 * i], .msg_iovlen = 2 };
	while (sent < p->packets) {
		n = sendmmsg(p->fd, m + sent, p->packets - sent, 0);
		if (n <= 0)
			return -1;
		sent += n;
	}
	return sent;
}

static bool cannot_cut(void)
{
	return errno == EINVAL || errno == EIO || errno == ENOPROTOOPT || errno == EMSGSIZE;
}

/* With no listener, the next call fails: treat that as lost packets. */
static int flush(struct worker *w)
{
	struct path *p = w->path;
	ssize_t n = 0;

	if (!p->packets)
		return 0;
	for (unsigned int tries = 0; tries < 3; tries++) {
		n = p->whole ? hand_over_each(p) : hand_over(p, p->packets > 1);
		if (n >= 0 || (errno != ECONNREFUSED && errno != EINTR))
			break;
	}
	if (n < 0 && !p->whole && p->packets > 1 && cannot_cut()) {
		p->whole = true;
		n = hand_over_each(p);
	}
	if (n < 0 && errno != ECONNREFUSED)
		return because(w->why, -1, "%s: %s%s", w->receiver->to, strerror(errno),
			       errno == EMSGSIZE ? ": give a smaller message" : "");
	w->messages += p->packets;
	p->packets = p->bytes = 0;
	return 0;
}

static void fill_header(const struct worker *w, const struct message *m, void *header)
{
	const struct accept *a = &w->receiver->accept;

	if (is_jungfrau(w->receiver->sender))
		jungfrau_write((struct jungfrau) {
			.frame = m->number / JUNGFRAU_PACKETS + 1,
			.packet = m->number % JUNGFRAU_PACKETS,
			.bunch = m->number / JUNGFRAU_PACKETS,
			.timestamp = (now_ns() - w->receiver->sender->start_ns) / 100,
			.module = w->index, .row = w->region->to_y / JUNGFRAU_HEIGHT,
			.column = w->region->to_x / JUNGFRAU_WIDTH,
		}, header);
	else
		packet_write((struct packet) {
			.token = a->token, .process = a->end[w->index].process,
			.number = w->first + (uint32_t)m->number,
		}, header);
}

static int send_message(struct worker *w, const struct message *m)
{
	const struct sender *s = w->receiver->sender;
	struct path *p = w->path;
	char *header = p->header[p->packets];
	const uint32_t size = header_bytes(s), bytes = size + m->bytes;
	const uint32_t most = s->config->net.linked;

	fill_header(w, m, header);
	/* of different sizes, the last one may be shorter */
	if (p->packets && (bytes > p->segment || p->bytes + bytes > PACKET_BYTES)) {
		if (flush(w))
			return -1;
		header = memcpy(p->header[0], header, size);
	}
	if (!p->packets)
		p->segment = bytes;
	p->iov[2 * p->packets] = (struct iovec) { header, size };
	p->iov[2 * p->packets + 1] = (struct iovec) { s->dataset->pixels + m->from, m->bytes };
	p->packets++;
	p->bytes += bytes;
	if (m->last || bytes < p->segment || p->packets == (most < SEGMENTS ? most : SEGMENTS))
		return flush(w);
	return 0;
}

/* --- sockets --- */

static uint32_t message_bytes(const struct sender *s)
{
	const uint32_t given = s->config->net.message;

	if (is_jungfrau(s))
		return JUNGFRAU_BYTES;
	return given ? given : ETHERNET - HEADERS - sizeof(struct packet);
}

static bool packets(const struct sender *s, struct packets *p)
{
	*p = (struct packets) {
		.header = header_bytes(s), .part = message_bytes(s),
		.message = message_bytes(s),
	};
	return true;
}

static int open_udp(struct sender *s, char *why)
{
	s->message = message_bytes(s);
	if (s->message > PACKET_BYTES - sizeof(struct packet))
		return because(why, -1, "message: a packet of UDP has at most %zu bytes",
			       PACKET_BYTES - sizeof(struct packet));
	return 0;
}

static int open_jungfrau(struct sender *s, char *why)
{
	const struct config *c = s->config;

	s->message = message_bytes(s);
	if (s->dataset->geometry.width != JUNGFRAU_WIDTH)
		return because(why, -1, "modules of a JUNGFRAU stand above each other in a dataset that is %u pixels wide",
			       JUNGFRAU_WIDTH);
	for (unsigned int i = 0; i < c->regions; i++) {
		const struct region *r = &c->region[i];

		if (s->dataset->geometry.pixel != RASHPA_PIXEL_U16 || r->width != JUNGFRAU_WIDTH ||
		    r->height != JUNGFRAU_HEIGHT || r->to_x % JUNGFRAU_WIDTH ||
		    r->to_y % JUNGFRAU_HEIGHT)
			return because(why, -1, "a module of a JUNGFRAU has %u x %u pixels of 16 bits: give each one's region by --dtp (or --split)",
				       JUNGFRAU_WIDTH, JUNGFRAU_HEIGHT);
	}
	return 0;
}

static int open_worker(struct worker *w, char *why)
{
	struct path *p = calloc(1, sizeof(*p));

	if (!p)
		return because(why, -1, "no memory");
	p->fd = -1;
	w->path = p;
	return 0;
}

static uint32_t mtu(const struct sender *s)
{
	return s->message;
}

/* Connect to the machine of the control link, at the port that it announced. */
static int connect_port(struct worker *w, const struct sockaddr_storage *to, socklen_t size,
			char *why)
{
	struct path *p = w->path;

	p->fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || connect(p->fd, (const struct sockaddr *)to, size))
		return because(why, -1, "%s: no route for UDP: %s", w->receiver->to, strerror(errno));
	return 0;
}

static void set_port(struct sockaddr_storage *at, uint32_t port)
{
	if (at->ss_family == AF_INET6)
		((struct sockaddr_in6 *)at)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)at)->sin_port = htons(port);
}

static int connect_worker(struct worker *w, char *why)
{
	struct sockaddr_storage to;
	socklen_t size = sizeof(to);

	if (getpeername(wire_fd(w->receiver->link.wire), (struct sockaddr *)&to, &size))
		return because(why, -1, "%s: %s", w->receiver->to, strerror(errno));
	set_port(&to, w->receiver->accept.end[w->index].port);
	return connect_port(w, &to, size, why);
}

/* Module i sends to the given port + i. */
static int connect_module(struct worker *w, char *why)
{
	struct sockaddr_storage to;
	socklen_t size = sizeof(to);
	uint32_t port;

	if (link_resolve(w->receiver->to, false, &to, &size, why))
		return -1;
	port = ntohs(to.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&to)->sin6_port :
						((struct sockaddr_in *)&to)->sin_port) + w->index;
	if (port > 65535)
		return because(why, -1, "%s: there is no port %" PRIu32 " for module %" PRIu32,
			       w->receiver->to, port, w->index);
	set_port(&to, port);
	return connect_port(w, &to, size, why);
}

static void close_worker(struct worker *w)
{
	struct path *p = w->path;

	if (p && p->fd >= 0)
		close(p->fd);
	free(p);
}

const struct sending sending_udp = {
	.run = sender_run,
	.paths = sender_paths,
	.packets = packets,
	.open = open_udp,
	.open_worker = open_worker,
	.mtu = mtu,
	.connect = connect_worker,
	.send = send_message,
	.drain = flush,
	.close_worker = close_worker,
};

const struct sending sending_jungfrau = {
	.run = sender_run,
	.paths = sender_paths,
	.packets = packets,
	.open = open_jungfrau,
	.open_worker = open_worker,
	.mtu = mtu,
	.connect = connect_module,
	.send = send_message,
	.drain = flush,
	.close_worker = close_worker,
};
