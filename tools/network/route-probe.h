/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a way to another machine carries in one piece, found out before anything is sent: by a
 * datagram that nobody may cut, to the port "discard" of that machine, where nobody listens. Who
 * answers tells that it came, or which size a router on the way passes on.
 */
#ifndef ROUTE_PROBE_H
#define ROUTE_PROBE_H

#include <stdint.h>

struct route_probe {
	const char *to;			/* HOST:PORT: its port is left alone */
	const char *interface;		/* by which it leaves; "": whichever leads there */
	uint32_t payload;		/* bytes behind the header of UDP */
	uint32_t needs;			/* bytes of the packet, with its headers: filled in, */
	uint32_t carries;		/* as is this: needs, or the lower MTU; 0: not known */
	int fd;				/* the probe's own */
};

/* All at once; it takes 200 ms where somebody does not answer. */
void route_probe(struct route_probe *probe, unsigned int n);

#endif /* ROUTE_PROBE_H */
