/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds out whether the path to another machine carries packets of a size without fragmentation.
 * Sends a datagram that routers must not fragment to the port "discard" of that machine, which is
 * normally closed. If the datagram arrives, the machine answers that the port is closed. If it is
 * too long, a router on the path returns its MTU.
 */
#ifndef ROUTE_PROBE_H
#define ROUTE_PROBE_H

#include <stdint.h>

struct route_probe {
	const char *to;			/* HOST:PORT; nothing is sent to this port */
	const char *interface;		/* outgoing interface; "": from the routing table */
	uint32_t payload;		/* UDP payload in bytes */
	uint32_t needs;			/* filled in: bytes of the packet, with its headers */
	uint32_t carries;		/* filled in: needs, or the lower MTU; 0: not known */
	int fd;				/* private */
};

/* Run n probes in parallel. Takes 200 ms if a machine does not answer. */
void route_probe(struct route_probe *probe, unsigned int n);

#endif /* ROUTE_PROBE_H */
