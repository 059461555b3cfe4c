// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/route-probe.h"

#include <errno.h>
#include <time.h> /* missing in the next header */
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/control-link.h"
#include "link/packet.h"
#include "common/say.h"
#include "common/stop.h"

#define DISCARD		9		/* port of an obsolete service, normally closed */
#define ANSWER_NS	200000000ull
#define UDP_HEADER	8
#define IPV4_HEADER	20
#define IPV6_HEADER	40

static in_port_t *port_of(struct sockaddr_storage *at)
{
	return at->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)at)->sin6_port :
					   &((struct sockaddr_in *)at)->sin_port;
}

static void end_probe(struct route_probe *p, uint32_t carries)
{
	close(p->fd);
	p->fd = -1;
	p->carries = carries;
}

/* The cached path MTU may be outdated: make the kernel check only the MTU of the interface. */
static bool prepare(int fd, bool ipv6, const char *interface)
{
	const int probe = ipv6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE, on = 1;
	const int level = ipv6 ? IPPROTO_IPV6 : IPPROTO_IP;

	return !setsockopt(fd, level, ipv6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &probe,
			   sizeof(probe)) &&
	       !setsockopt(fd, level, ipv6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof(on)) &&
	       (!*interface || !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
					   strlen(interface)));
}

/* A probe that cannot be sent gives no result; a later connection reports the reason. */
static void begin_probe(struct route_probe *p)
{
	static const char nothing[PACKET_BYTES];
	struct sockaddr_storage to;
	char why[WHY_SIZE];
	socklen_t size;
	bool ipv6;

	p->fd = -1;
	p->needs = p->carries = 0;
	if (p->payload > sizeof(nothing) || link_resolve(p->to, false, &to, &size, why))
		return;
	ipv6 = to.ss_family == AF_INET6;
	/* no mapped IPv4 addresses; and the receiver itself may use a port up to that one */
	if ((ipv6 && IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)&to)->sin6_addr)) ||
	    ntohs(*port_of(&to)) <= DISCARD)
		return;
	*port_of(&to) = htons(DISCARD);
	p->needs = p->payload + UDP_HEADER + (ipv6 ? IPV6_HEADER : IPV4_HEADER);
	p->fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return;
	/* EMSGSIZE is a result, too: the error queue has the MTU of the interface */
	if (!prepare(p->fd, ipv6, p->interface) || connect(p->fd, (struct sockaddr *)&to, size) ||
	    (send(p->fd, nothing, p->payload, MSG_NOSIGNAL) < 0 && errno != EMSGSIZE))
		end_probe(p, 0);
}

/* The error of the datagram; NULL: no error. */
static const struct sock_extended_err *take_error(int fd, void *space, size_t size)
{
	struct msghdr m = { .msg_control = space, .msg_controllen = size };

	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return NULL;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			return (const struct sock_extended_err *)CMSG_DATA(c);
	}
	return NULL;
}

static void hear(struct route_probe *p, short events)
{
	union {
		char space[512];
		struct cmsghdr align;
	} control;
	const struct sock_extended_err *e = take_error(p->fd, &control, sizeof(control));

	if (e && e->ee_errno == EMSGSIZE)
		end_probe(p, e->ee_info < p->needs ? e->ee_info : 0);
	else if ((e && e->ee_errno == ECONNREFUSED) || (!e && events & POLLIN))
		end_probe(p, p->needs);
	else
		end_probe(p, 0);
}

void route_probe(struct route_probe *probe, unsigned int n)
{
	struct pollfd *fds = calloc(n, sizeof(*fds));
	unsigned int waiting = n;
	uint64_t end;

	for (unsigned int i = 0; i < n; i++)
		begin_probe(&probe[i]);
	end = now_ns() + ANSWER_NS;
	while (fds && waiting) {
		waiting = 0;
		for (unsigned int i = 0; i < n; i++) {
			fds[i] = (struct pollfd) { .fd = probe[i].fd, .events = POLLIN };
			waiting += probe[i].fd >= 0;
		}
		if (!waiting || stop_poll(fds, n, end) <= 0)
			break;
		for (unsigned int i = 0; i < n; i++) {
			if (fds[i].revents)
				hear(&probe[i], fds[i].revents);
		}
	}
	for (unsigned int i = 0; i < n; i++) {
		if (probe[i].fd >= 0)
			end_probe(&probe[i], 0);
	}
	free(fds);
}
