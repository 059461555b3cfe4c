/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* How functions, sockets and memories of this machine are connected. */
#ifndef TOPOLOGY_H
#define TOPOLOGY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/path.h"

/* "", or a folder with another /sys, for tests; set it before the first call. */
extern const char *topology_root;

/* Find the bridges above a function, by libpci; false after a message. */
bool topology_chain(uint64_t bdf, struct chain *chain);

/* Do the switch ports above a function send requests to peers up to the root (ACS)? */
enum acs { ACS_UNKNOWN, ACS_OFF, ACS_REDIRECTS };
enum acs topology_acs(const struct chain *chain, uint64_t below, uint64_t *port);

/* Distance of two NUMA nodes, by hwloc. */
enum distance { NODE_UNKNOWN, NODE_SAME, NODE_SOCKET, NODE_OTHER_SOCKET };
enum distance topology_nodes(int a, int b);

/* Properties of a function's link from sysfs; speed is empty if it is not known. */
struct link {
	char speed[32], max_speed[32];
	uint32_t width, max_width;	/* lanes, 0: not known */
};

void topology_link(uint64_t bdf, struct link *link);

/* Release libpci and hwloc, after the last call. */
void topology_done(void);

#endif /* TOPOLOGY_H */
