// SPDX-License-Identifier: LGPL-2.1-or-later
#include "romulu/xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xdp/xsk.h>

#include "link/control-link.h"
#include "common/json-out.h"
#include "common/say.h"
#include "xdp.skel.h"

/* Headers before Linux 6.6 do not know packets in pieces; kernels before it refuse XDP_USE_SG. */
#ifndef XDP_USE_SG
#define XDP_USE_SG	(1 << 4)
#define XDP_PKT_CONTD	(1 << 0)
#endif

#define FRAME		4096u		/* bytes; the kernel takes no larger ones of normal pages */
#define HEADROOM	256u		/* XDP_PACKET_HEADROOM of each frame */
#define FRAMES		8192u		/* frames per queue: 32 MiB */
#define BATCH		64u
#define LONGEST		(65535u + ETH_HLEN)

struct queue {
	struct xsk_umem *umem;
	struct xsk_socket *socket;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons done;	/* of what is sent: nothing */
	struct xsk_ring_cons came;
	char *frames;
	uint64_t packets;
	/* a packet that is longer than a frame, so far */
	size_t have;
	char whole[LONGEST];
};

struct xdp {
	struct xdp_bpf *program;
	char name[IF_NAMESIZE];
	uint32_t index, mtu;		/* index and MTU of the interface */
	int link;
	bool generic, zero_copy;
	struct queue *queue;
	uint32_t queues, threads;
};

/* --- a packet --- */

static uint64_t sum(const void *data, size_t bytes)
{
	const char *at = data;
	uint64_t s = 0, word;

	for (; bytes >= sizeof(word); bytes -= sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		s += (uint32_t)word + (word >> 32);
	}
	word = 0;
	memcpy(&word, at, bytes);
	return s + (uint32_t)word + (word >> 32);
}

static uint16_t fold(uint64_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

/*
 * Payload of a packet; empty if the kernel would not deliver it to a socket. A checksum of only
 * the pseudo header marks a packet of this machine that the card should have completed.
 */
static struct datagram find_datagram(const char *frame, size_t bytes)
{
	const struct datagram none = {};
	struct datagram d = {};
	size_t at = sizeof(struct ethhdr), room, length;
	struct ipv6hdr v6 = {};
	struct udphdr udp;
	struct ethhdr eth;
	struct iphdr v4;
	uint64_t pseudo;

	if (bytes < at + sizeof(v4) + sizeof(udp))
		return none;
	memcpy(&eth, frame, sizeof(eth));
	if (eth.h_proto == htons(ETH_P_IP)) {
		memcpy(&v4, frame + at, sizeof(v4));
		at += sizeof(v4);
		room = ntohs(v4.tot_len) - sizeof(v4);
		pseudo = sum(&v4.addrs, sizeof(v4.addrs));
		if (fold(sum(&v4, sizeof(v4))) != 0xffff)
			return none;
		d.from.s6_addr32[2] = htonl(0xffff);
		d.from.s6_addr32[3] = v4.saddr;
	} else {
		if (bytes < at + sizeof(v6) + sizeof(udp))
			return none;
		memcpy(&v6, frame + at, sizeof(v6));
		at += sizeof(v6);
		room = ntohs(v6.payload_len);
		pseudo = sum(&v6.addrs, sizeof(v6.addrs));
		d.from = v6.saddr;
	}
	memcpy(&udp, frame + at, sizeof(udp));
	length = ntohs(udp.len);
	if (room > bytes - at || length > room || length < sizeof(udp))
		return none;
	pseudo += htons(IPPROTO_UDP) + udp.len;
	if (udp.check ? fold(pseudo + sum(frame + at, length)) != 0xffff &&
			udp.check != fold(pseudo) : eth.h_proto != htons(ETH_P_IP))
		return none;
	d.port = udp.dest;
	d.data = frame + at + sizeof(udp);
	d.bytes = length - sizeof(udp);
	return d;
}

static void take(struct queue *q, const char *frame, size_t bytes, xdp_taker *taker, void *to)
{
	const struct datagram d = find_datagram(frame, bytes);

	q->packets++;
	taker(to, &d);
}

/* A frame holds a packet, or a part of one. */
static void take_frame(struct queue *q, const struct xdp_desc *d, xdp_taker *taker, void *to)
{
	const char *frame = xsk_umem__get_data(q->frames, d->addr);
	const bool more = d->options & XDP_PKT_CONTD;

	if (!more && !q->have) {
		take(q, frame, d->len, taker, to);
		return;
	}
	if (d->len <= sizeof(q->whole) - q->have) {
		memcpy(q->whole + q->have, frame, d->len);
		q->have += d->len;
	}
	if (!more) {
		take(q, q->whole, q->have, taker, to);
		q->have = 0;
	}
}

static bool look(struct queue *q, xdp_taker *taker, void *to)
{
	uint32_t from, back = 0;
	const uint32_t n = xsk_ring_cons__peek(&q->came, BATCH, &from);

	/* as many places as there are frames: one is free */
	xsk_ring_prod__reserve(&q->fill, n, &back);
	for (uint32_t i = 0; i < n; i++) {
		const struct xdp_desc *d = xsk_ring_cons__rx_desc(&q->came, from + i);

		take_frame(q, d, taker, to);
		*xsk_ring_prod__fill_addr(&q->fill, back + i) = d->addr & ~(FRAME - 1ull);
	}
	xsk_ring_cons__release(&q->came, n);
	xsk_ring_prod__submit(&q->fill, n);
	/* a card that had run out of frames */
	if (xsk_ring_prod__needs_wakeup(&q->fill))
		recvfrom(xsk_socket__fd(q->socket), NULL, 0, MSG_DONTWAIT, NULL, NULL);
	return n;
}

bool xdp_look(struct xdp *x, uint32_t thread, xdp_taker *taker, void *to)
{
	bool found = false;

	for (uint32_t i = thread; i < x->queues; i += x->threads)
		found |= look(&x->queue[i], taker, to);
	return found;
}

/* --- */

static int wrong(const struct xdp *x, const char *what, int error)
{
	const char *remedy = "";

	switch (error) {
	case EPERM:
	case EACCES:
		remedy = ": run it as root, or with CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF";
		break;
	case EAFNOSUPPORT:
		remedy = ": this kernel is built without CONFIG_XDP_SOCKETS";
		break;
	case EBUSY:
	case EEXIST:
		remedy = ": another XDP program is there: end it, or ip link set dev DEV xdp off";
		break;
	case ENOBUFS:
		remedy = ": memory that may be locked is short: ulimit -l unlimited";
		break;
	}
	return fail("xdp: %s: %s: %s%s", x->name, what, strerror(error), remedy);
}

static bool same_address(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	if (!a || a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr));
}

static int find_interface(struct xdp *x, const char *listen)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	struct ifreq request = {};
	struct sockaddr_storage at;
	struct ifaddrs *list;
	char why[WHY_SIZE];
	socklen_t size;
	int fd;

	if (link_resolve(listen, true, &at, &size, why))
		return fail("%s", why);
	if (getifaddrs(&list))
		return fail("xdp: no list of interfaces: %s", strerror(errno));
	for (const struct ifaddrs *i = list; i && !x->index; i = i->ifa_next) {
		if (!same_address(i->ifa_addr, &at))
			continue;
		x->index = if_nametoindex(i->ifa_name);
		snprintf(x->name, sizeof(x->name), "%s", i->ifa_name);
	}
	freeifaddrs(list);
	if (!x->index)
		return fail("xdp: --listen %s is not the address of an interface: give one, as 10.1.0.2:5001",
			    listen);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(request.ifr_name, x->name, sizeof(x->name));
	if (!ioctl(fd, SIOCGIFMTU, &request))
		x->mtu = request.ifr_mtu;
	request.ifr_data = (void *)&channels;
	if (!ioctl(fd, SIOCETHTOOL, &request))
		x->queues = channels.rx_count + channels.combined_count;
	x->queues += !x->queues;	/* a driver that has one need not tell */
	close(fd);
	return 0;
}

/* A link of the kernel: the program goes with the process, whichever way that ends. */
static int attach(struct xdp *x)
{
	struct bpf_link_create_opts options = {
		.sz = sizeof(options), .flags = XDP_FLAGS_DRV_MODE,
	};
	int program;

	libbpf_set_print(NULL);
	x->program = xdp_bpf__open();
	if (!x->program || bpf_map__set_max_entries(x->program->maps.queues, x->queues) ||
	    xdp_bpf__load(x->program))
		return wrong(x, "the program cannot be loaded", errno);
	program = bpf_program__fd(x->program->progs.divert);
	x->link = bpf_link_create(program, x->index, BPF_XDP, &options);
	if (x->link < 0 && errno != EBUSY && errno != EEXIST && errno != EPERM) {
		x->generic = true;
		options.flags = XDP_FLAGS_SKB_MODE;
		x->link = bpf_link_create(program, x->index, BPF_XDP, &options);
	}
	return x->link < 0 ? wrong(x, "the program cannot be attached", errno) : 0;
}

static int open_umem(struct xdp *x, struct queue *q)
{
	const struct xsk_umem_config config = {
		.fill_size = FRAMES, .comp_size = XSK_RING_CONS__DEFAULT_NUM_DESCS,
		.frame_size = FRAME,
	};
	uint32_t at = 0;
	int result;

	q->frames = mmap(NULL, FRAMES * FRAME, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (q->frames == MAP_FAILED)
		return fail("xdp: no memory for packets");
	result = xsk_umem__create(&q->umem, q->frames, FRAMES * FRAME, &q->fill, &q->done, &config);
	if (result)
		return wrong(x, "no memory for packets", -result);
	xsk_ring_prod__reserve(&q->fill, FRAMES, &at);
	for (uint32_t i = 0; i < FRAMES; i++)
		*xsk_ring_prod__fill_addr(&q->fill, at + i) = (uint64_t)i * FRAME;
	xsk_ring_prod__submit(&q->fill, FRAMES);
	return 0;
}

static int open_queue(struct xdp *x, uint32_t i)
{
	/* the longest packet: MTU, Ethernet header and VLAN tag */
	const bool longer = x->mtu + ETH_HLEN + 4 > FRAME - HEADROOM;
	const struct xsk_socket_config config = {
		.rx_size = FRAMES, .libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = XDP_USE_NEED_WAKEUP | (longer ? XDP_USE_SG : 0) |
			      (x->generic ? XDP_COPY : 0),
	};
	struct queue *q = &x->queue[i];
	struct xdp_options options = {};
	socklen_t size = sizeof(options);
	int result, fd;

	result = xsk_socket__create(&q->socket, x->name, i, q->umem, &q->came, NULL, &config);
	if (result == -EINVAL && longer)
		return fail("xdp: %s: packets of %" PRIu32 " bytes need a kernel whose AF_XDP has multi-buffer (6.6): ip link set dev %s mtu %u, or less, and as much at the sender",
			    x->name, x->mtu, x->name, FRAME - HEADROOM - ETH_HLEN - 4);
	if (result)
		return wrong(x, "no socket for a queue", -result);
	fd = xsk_socket__fd(q->socket);
	if (getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &size) ||
	    !(options.flags & XDP_OPTIONS_ZEROCOPY))
		x->zero_copy = false;
	if (bpf_map_update_elem(bpf_map__fd(x->program->maps.queues), &i, &fd, BPF_ANY))
		return wrong(x, "no place for a socket", errno);
	return 0;
}

int xdp_open(struct xdp **xdp, const char *listen, uint32_t threads)
{
	struct xdp *x = calloc(1, sizeof(*x));
	int result;

	*xdp = x;
	if (!x)
		return fail("no memory");
	x->link = -1;
	x->threads = threads;
	x->zero_copy = true;
	result = find_interface(x, listen);
	if (result)
		return result;
	x->queue = calloc(x->queues, sizeof(*x->queue));
	if (!x->queue)
		return fail("no memory");
	for (uint32_t i = 0; i < x->queues && !result; i++)
		result = open_umem(x, &x->queue[i]);
	if (!result)
		result = attach(x);
	for (uint32_t i = 0; i < x->queues && !result; i++)
		result = open_queue(x, i);
	return result;
}

int xdp_divert(struct xdp *x, const struct in6_addr *to, in_port_t port)
{
	struct xdp_end end = { .port = port };
	const uint8_t value = 1;

	memcpy(end.address, to, sizeof(end.address));
	if (bpf_map_update_elem(bpf_map__fd(x->program->maps.ends), &end, &value, BPF_ANY))
		return wrong(x, "no place for a port", errno);
	return 0;
}

int xdp_watch(const struct xdp *x, uint32_t thread, int epoll)
{
	struct epoll_event event = { .events = EPOLLIN };

	for (uint32_t i = thread; i < x->queues; i += x->threads) {
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, xsk_socket__fd(x->queue[i].socket), &event))
			return wrong(x, "cannot wait for a queue", errno);
	}
	return 0;
}

void xdp_report(const struct xdp *x, struct json_object *o, uint64_t *dropped)
{
	uint64_t packets = 0, empty = 0;

	put_text(o, "xdp", x->generic ? "generic" : x->zero_copy ? "zero-copy" : "copy");
	for (uint32_t i = 0; i < x->queues; i++) {
		struct xdp_statistics s = {};
		socklen_t size = sizeof(s);

		getsockopt(xsk_socket__fd(x->queue[i].socket), SOL_XDP, XDP_STATISTICS, &s, &size);
		*dropped += s.rx_dropped + s.rx_ring_full;
		empty += s.rx_fill_ring_empty_descs;
		packets += x->queue[i].packets;
	}
	put_u64(o, "xdp_packets", packets);
	put_u64(o, "xdp_out_of_frames", empty);
}

void xdp_close(struct xdp *x)
{
	for (uint32_t i = 0; x->queue && i < x->queues; i++) {
		struct queue *q = &x->queue[i];

		xsk_socket__delete(q->socket);
		if (q->umem)
			xsk_umem__delete(q->umem);
		if (q->frames && q->frames != MAP_FAILED)
			munmap(q->frames, FRAMES * FRAME);
	}
	if (x->link >= 0)
		close(x->link);
	xdp_bpf__destroy(x->program);
	free(x->queue);
	free(x);
}
