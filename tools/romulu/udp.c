// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Messages that come as packets of UDP, with a header of ours or that of a JUNGFRAU: a socket each
 * process, or the interface's queues, and pixels are copied to where the header says that they
 * belong.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/json-out.h"
#include "romulu/receiver-internal.h"
#include "link/packet.h"
#include "romulu/xdp.h"

#define BATCH		32		/* datagrams of a call */
#define DATAGRAM	65536		/* several packets, where the kernel puts them together */
#define QUEUE_BYTES	(64 << 20)	/* receive buffer of a socket */
#define BUSY_US		50
#define SPIN_NS		50000
#define FRAMES		(UINT64_C(1) << 48)	/* most frames of a run */

/* A process: its socket, and the destination of its pixels. */
struct path {
	struct flow *flow;
	struct udp *udp;
	uint32_t thread;
	int fd;
	in_port_t port;			/* big-endian */
	struct in6_addr from;		/* address of the sender, if it has a link */
	pthread_mutex_t taking;		/* serialises threads that take messages */
	struct cut cut;
	uint64_t offset;		/* offset of the region in an image */
	uint32_t dropped;		/* packets that the full socket dropped */
	uint64_t described;		/* 1 + image of the last packet */
};

struct worker {
	struct network *network;
	pthread_t thread;
	bool running;
	int epoll;
	uint64_t polls, empty, waits, packets, strange;
	struct mmsghdr message[BATCH];	/* of a look */
	struct iovec iov[BATCH];
	struct sockaddr_storage from[BATCH];
	union {
		char space[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
		struct cmsghdr align;
	} control[BATCH];
	char *space;
};

struct udp {
	struct path *path;		/* one per flow */
	uint32_t paths;
	struct worker *worker;
	uint32_t workers;
	uint32_t token;
	bool jungfrau;
	uint32_t columns;		/* of modules */
	struct xdp *xdp;		/* NULL: sockets only */
	/* 0: none has come */
	_Atomic uint64_t first_frame;
};

/* --- a packet --- */

/* As a JUNGFRAU tells: it has one trigger a frame, and does not name it otherwise. */
static void describe(struct path *p, const struct place *at, const struct jungfrau *h)
{
	const struct flow *f = p->flow;
	const uint32_t image = at->message / f->per_image;
	const uint64_t number = at->stack * f->intake->about->bunch + image;

	if (p->described != number + 1)
		rashpa_stack_describe(flow_slot(f, at), f->process, image, &(struct rashpa_image) {
			.frame = number,
			.trigger = h->frame, .time = h->timestamp,
		});
	p->described = number + 1;
}

static void put_pixels(struct path *p, const struct place *at, const struct piece *piece,
		       const char *from)
{
	const struct flow *f = p->flow;
	const struct rashpa_stream_header *h = f->intake->about;
	char *to = (char *)flow_slot(f, at)->data + at->message / f->per_image * h->image_stride +
		   p->offset + piece->y * h->line_stride + piece->offset;

	memcpy(to, from, piece->bytes);
}

static bool take_alone(struct path *p, uint32_t number, const struct jungfrau *header,
		       const char *pixels, size_t bytes)
{
	struct flow *f = p->flow;
	char why[WHY_SIZE];
	struct place at;
	struct piece piece;

	if (flow_place(f, number, &at, why))
		return false;
	piece = cut_piece(&p->cut, at.message % f->per_image);
	if (piece.bytes != bytes)
		return false;
	if (flow_hold(f, &at)) {
		put_pixels(p, &at, &piece, pixels);
		if (header)
			describe(p, &at, header);
		flow_let_go(f);
	}
	flow_take(f, &at);
	return true;
}

/* A message with its number. false: it cannot be one. */
static bool take(struct path *p, uint32_t number, const struct jungfrau *header,
		 const char *pixels, size_t bytes)
{
	bool taken;

	pthread_mutex_lock(&p->taking);
	taken = take_alone(p, number, header, pixels, bytes);
	pthread_mutex_unlock(&p->taking);
	return taken;
}

/* A token can be guessed, in many tries; packets from elsewhere are none of these. */
static bool take_ours(struct udp *u, const struct datagram *d)
{
	struct packet h;
	struct path *p;

	if (!packet_read(&h, d->data, d->bytes) || h.token != u->token || h.process >= u->paths)
		return false;
	p = &u->path[h.process];
	return d->port == p->port && !memcmp(&d->from, &p->from, sizeof(p->from)) &&
	       take(p, h.number, NULL, d->data + sizeof(h), d->bytes - sizeof(h));
}

/*
 * The module is that of the header, whichever port it came to. The frame's number has 64 bits, and
 * one that is far from all that came is not another one's modulo those of a message.
 */
static bool take_jungfrau(struct udp *u, const struct datagram *d)
{
	uint64_t none = 0, number;
	uint32_t module;
	struct jungfrau h;

	if (!jungfrau_read(&h, d->data, d->bytes))
		return false;
	module = h.row * u->columns + h.column;
	if (h.column >= u->columns || module >= u->paths)
		return false;
	atomic_compare_exchange_strong(&u->first_frame, &none, h.frame);
	if (h.frame < u->first_frame || h.frame - u->first_frame > FRAMES)
		return false;
	number = (h.frame - u->first_frame) * JUNGFRAU_PACKETS + h.packet;
	return number < u->path[module].flow->expected + INT32_MAX &&
	       number + INT32_MAX > u->path[module].flow->expected &&
	       take(&u->path[module], number, &h, d->data + sizeof(h), JUNGFRAU_BYTES);
}

/* --- datagrams --- */

/* An address of IPv4 as one of IPv6, which sockets of both have. */
static struct in6_addr address_of(const struct sockaddr_storage *at)
{
	struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (at->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)at)->sin6_addr;
	memcpy(&a.s6_addr[12], &((const struct sockaddr_in *)at)->sin_addr, 4);
	return a;
}

static void take_packet(void *worker, const struct datagram *d)
{
	struct worker *w = worker;
	struct udp *u = w->network->path;

	w->packets++;
	if (!(u->jungfrau ? take_jungfrau : take_ours)(u, d))
		w->strange++;
}

/* The size of each packet in it, if there are several. */
static uint32_t read_control(struct path *p, struct msghdr *m, uint32_t bytes)
{
	uint32_t size = bytes;
	int segment;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&segment, CMSG_DATA(c), sizeof(segment));
			size = segment > 0 ? (uint32_t)segment : bytes;
		} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&p->dropped, CMSG_DATA(c), sizeof(p->dropped));
		}
	}
	return size;
}

static void take_datagram(struct worker *w, struct path *p, struct mmsghdr *m, const char *data)
{
	const uint32_t bytes = m->msg_len, size = read_control(p, &m->msg_hdr, bytes);
	struct datagram d = { .from = address_of(m->msg_hdr.msg_name), .port = p->port };
	uint32_t at = 0;

	/* one without a byte is one, too */
	do {
		d.data = data + at;
		d.bytes = bytes - at < size ? bytes - at : size;
		take_packet(w, &d);
		at += size;
	} while (at < bytes);
}

/* How many datagrams there were. */
static int look(struct worker *w, struct path *p)
{
	int n;

	for (uint32_t i = 0; i < BATCH; i++) {
		w->message[i].msg_hdr.msg_control = &w->control[i];
		w->message[i].msg_hdr.msg_controllen = sizeof(w->control[i].space);
		w->message[i].msg_hdr.msg_namelen = sizeof(w->from[i]);
	}
	n = recvmmsg(p->fd, w->message, BATCH, MSG_DONTWAIT, NULL);
	w->polls++;
	w->empty += n <= 0;
	for (int i = 0; i < n; i++)
		take_datagram(w, p, &w->message[i], w->space + (size_t)i * DATAGRAM);
	return n;
}

/* Take packets from AF_XDP; all others arrive at the sockets. */
static bool look_at_xdp(struct worker *w)
{
	const struct udp *u = w->network->path;
	bool found;

	if (!u->xdp)
		return false;
	found = xdp_look(u->xdp, w - u->worker, take_packet, w);
	w->polls++;
	w->empty += !found;
	return found;
}

static bool look_at_all(struct worker *w, uint32_t thread)
{
	const struct udp *u = w->network->path;
	bool found = look_at_xdp(w);

	for (uint32_t i = 0; i < u->paths; i++)
		found |= u->path[i].thread == thread && look(w, &u->path[i]) > 0;
	return found;
}

static void sleep_and_look(struct worker *w)
{
	struct epoll_event event[16];
	const int n = epoll_wait(w->epoll, event, 16, TICK_MS);

	w->waits++;
	/* in turn: a process that waits long looks as if it had stopped */
	for (int i = 0; i < n; i++) {
		if (event[i].data.ptr)
			look(w, event[i].data.ptr);
		else
			look_at_xdp(w);
	}
}

static void *receive(void *arg)
{
	struct worker *w = arg;
	struct network *n = w->network;
	const struct udp *u = n->path;
	uint64_t found = now_ns();

	while (!n->halt) {
		if (n->config->wait == RASHPA_NET_EVENT ||
		    (n->config->wait == RASHPA_NET_ADAPTIVE && now_ns() - found > SPIN_NS))
			sleep_and_look(w);
		if (n->config->wait != RASHPA_NET_EVENT && look_at_all(w, w - u->worker))
			found = now_ns();
	}
	return NULL;
}

/* --- sockets --- */

/*
 * Enlarge the socket for bursts: root may exceed the administrator's limit. Coalescing is off for
 * generic XDP, whose program would see merged packets.
 */
static void tune(int fd, uint32_t wait, bool together)
{
	const int room = QUEUE_BYTES, on = 1, busy = BUSY_US;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof(on));
	if (together)
		setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
	if (wait != RASHPA_NET_EVENT)
		setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &busy, sizeof(busy));
}

/* At the address of the control link, or of the detector's packets. */
static int open_socket(const struct network *n, struct path *p, uint32_t index)
{
	struct sockaddr_storage at;
	struct in6_addr own;
	socklen_t size;
	in_port_t *port;
	char why[WHY_SIZE];

	if (link_resolve(n->config->listen, true, &at, &size, why))
		return fail("%s", why);
	port = at.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&at)->sin6_port :
					  &((struct sockaddr_in *)&at)->sin_port;
	if (ntohs(*port) + index > 65535)
		return fail("%s: there is no port for module %" PRIu32, n->config->listen, index);
	*port = p->udp->jungfrau ? htons(ntohs(*port) + index) : 0;
	p->fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (p->fd < 0 || bind(p->fd, (struct sockaddr *)&at, size))
		return fail("%s: no socket for process %" PRIu32 ": %s", n->config->listen, index,
			    strerror(errno));
	tune(p->fd, n->config->wait, !p->udp->xdp);
	getsockname(p->fd, (struct sockaddr *)&at, &size);
	p->port = *port;
	own = address_of(&at);
	return p->udp->xdp ? xdp_divert(p->udp->xdp, &own, p->port) : 0;
}

static int open_path(struct network *n, const struct sender *s, uint32_t process)
{
	const struct contract_process *r = &s->hello.process[process];
	const uint32_t index = s->first_flow + process;
	struct udp *u = n->path;
	struct path *p = &u->path[index];
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = p };
	struct sockaddr_storage peer = {};
	socklen_t size = sizeof(peer);

	*p = (struct path) {
		.flow = &n->in.flow[index], .udp = u, .thread = index % u->workers, .fd = -1,
		.taking = PTHREAD_MUTEX_INITIALIZER,
		.offset = r->y * n->about->line_stride +
			  (uint64_t)r->x * (1u << ((n->about->pixel - 1) & 3)),
		.cut = cut_of(&s->hello, r, n->about->width),
	};
	u->paths++;
	if (s->link.wire && getpeername(wire_fd(s->link.wire), (struct sockaddr *)&peer, &size))
		return fail("%s: %s", s->link.peer, strerror(errno));
	p->from = address_of(&peer);
	if (open_socket(n, p, index))
		return EXIT_FAILED;
	if (epoll_ctl(u->worker[p->thread].epoll, EPOLL_CTL_ADD, p->fd, &event))
		return fail("cannot wait for a socket: %s", strerror(errno));
	return 0;
}

static int open_worker(struct network *n, struct worker *w)
{
	const struct udp *u = n->path;

	w->network = n;
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->space = malloc((size_t)BATCH * DATAGRAM);
	if (w->epoll < 0 || !w->space)
		return fail("no memory for packets");
	for (uint32_t i = 0; i < BATCH; i++) {
		w->iov[i] = (struct iovec) { w->space + (size_t)i * DATAGRAM, DATAGRAM };
		w->message[i].msg_hdr.msg_iov = &w->iov[i];
		w->message[i].msg_hdr.msg_iovlen = 1;
		w->message[i].msg_hdr.msg_name = &w->from[i];
	}
	return u->xdp ? xdp_watch(u->xdp, w - u->worker, w->epoll) : 0;
}

static int open_udp(struct network *n)
{
	struct udp *u = calloc(1, sizeof(*u));

	if (!u)
		return fail("no memory");
	n->path = u;
	u->jungfrau = n->receiving == &receiving_jungfrau;
	u->columns = n->config->columns;
	if (getrandom(&u->token, sizeof(u->token), 0) != sizeof(u->token))
		return fail("no random number: %s", strerror(errno));
	if (n->config->xdp && !xdp_open)
		return fail("xdp: romulu was built without %s", ROMULU_NO_XDP);
	return n->config->xdp ? xdp_open(&u->xdp, n->config->listen, n->config->threads) : 0;
}

/* Modules of a JUNGFRAU, in the order of their ports. */
static int plan_modules(const struct network_config *c, struct hello *h)
{
	*h = (struct hello) {
		.message = JUNGFRAU_BYTES, .adjacent = 1, .pixel = RASHPA_PIXEL_U16,
		.bunch = c->bunch, .images = c->images, .sampling = 1,
		.processes = c->columns * c->rows,
		.process = calloc(c->columns * c->rows, sizeof(*h->process)),
	};
	if (!h->process)
		return fail("no memory");
	for (uint32_t i = 0; i < h->processes; i++)
		h->process[i] = (struct contract_process) {
			.x = i % c->columns * JUNGFRAU_WIDTH, .y = i / c->columns * JUNGFRAU_HEIGHT,
			.origin_x = i % c->columns * JUNGFRAU_WIDTH,
			.origin_y = i / c->columns * JUNGFRAU_HEIGHT,
			.width = JUNGFRAU_WIDTH, .height = JUNGFRAU_HEIGHT,
		};
	return 0;
}

static int prepare(struct network *n)
{
	struct udp *u = n->path;
	int result = 0;

	u->path = calloc(n->in.flows, sizeof(*u->path));
	u->worker = calloc(n->config->threads, sizeof(*u->worker));
	if (!u->path || !u->worker)
		return fail("no memory");
	for (u->workers = 0; u->workers < n->config->threads && !result; u->workers++)
		result = open_worker(n, &u->worker[u->workers]);
	for (uint32_t i = 0; i < n->senders; i++) {
		for (uint32_t k = 0; k < n->sender[i].hello.processes && !result; k++)
			result = open_path(n, &n->sender[i], k);
	}
	return result;
}

static int accept_sender(struct network *n, struct sender *s, struct accept *a, char *why)
{
	const struct udp *u = n->path;

	(void)why;
	a->token = u->token;
	a->mtu = s->hello.mtu;
	for (uint32_t i = 0; i < s->hello.processes; i++)
		a->end[i] = (struct contract_end) {
			.port = ntohs(u->path[s->first_flow + i].port),
			.process = s->first_flow + i,
		};
	return 0;
}

static int start(struct network *n)
{
	struct udp *u = n->path;
	const struct place first = { .stack = n->about->first_stack };

	if (!flow_slot(n->in.flow, &first)->data)
		return fail("%s: no program can write there: packets of UDP need memory that can be mapped",
			    n->config->payload ? n->config->payload : n->buffer);
	for (uint32_t i = 0; i < u->workers; i++) {
		if (cpus_thread(&u->worker[i].thread, receive, &u->worker[i], n->config->cpus, i))
			return EXIT_FAILED;
		u->worker[i].running = true;
	}
	return 0;
}

static void join(struct network *n)
{
	struct udp *u = n->path;

	for (uint32_t i = 0; i < u->workers; i++) {
		if (u->worker[i].running)
			pthread_join(u->worker[i].thread, NULL);
		u->worker[i].running = false;
	}
}

static void report(const struct network *n, struct json_object *o)
{
	const struct udp *u = n->path;
	uint64_t polls = 0, empty = 0, waits = 0, packets = 0, strange = 0, dropped = 0;

	for (uint32_t i = 0; i < u->workers; i++) {
		polls += u->worker[i].polls;
		empty += u->worker[i].empty;
		waits += u->worker[i].waits;
		packets += u->worker[i].packets;
		strange += u->worker[i].strange;
	}
	for (uint32_t i = 0; i < u->paths; i++)
		dropped += u->path[i].dropped;
	put_u64(o, "polls", polls);
	put_u64(o, "empty_polls", empty);
	put_u64(o, "waits", waits);
	put_u64(o, "packets", packets);
	put_u64(o, "strange_packets", strange);
	put_text(o, "xdp", NULL);
	if (u->xdp)
		xdp_report(u->xdp, o, &dropped);
	put_u64(o, "socket_drops", dropped);
	if (u->jungfrau)
		put_u64(o, "first_frame", u->first_frame);
}

static void close_all(struct network *n)
{
	struct udp *u = n->path;

	for (uint32_t i = 0; i < u->paths; i++) {
		if (u->path[i].fd >= 0)
			close(u->path[i].fd);
	}
	for (uint32_t i = 0; u->worker && i < n->config->threads; i++) {
		if (u->worker[i].epoll > 0)
			close(u->worker[i].epoll);
		free(u->worker[i].space);
	}
	if (u->xdp)
		xdp_close(u->xdp);
	free(u->path);
	free(u->worker);
	free(u);
}

/* No message is in its slot before it was taken; wrong packets are ignored, so no thread fails. */
const struct receiving receiving_udp = {
	.open = open_udp,
	.prepare = prepare,
	.accept = accept_sender,
	.start = start,
	.join = join,
	.report = report,
	.close = close_all,
};

const struct receiving receiving_jungfrau = {
	.open = open_udp,
	.prepare = prepare,
	.plan = plan_modules,
	.start = start,
	.join = join,
	.report = report,
	.close = close_all,
};
