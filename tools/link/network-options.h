/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options of tools that use an RDMA device. */
#ifndef NETWORK_OPTIONS_H
#define NETWORK_OPTIONS_H

#include <argp.h>

#include "verbs/verbs.h"

enum {
	OPT_NET_DEVICE = 2048, OPT_NET_PORT, OPT_NET_GID, OPT_NET_MTU, OPT_NET_SERVICE,
	OPT_NET_CLASS, OPT_NET_RETRIES, OPT_NET_TIMEOUT,
};

#define NETWORK_DEFAULTS	{ .gid = -1, .retries = 7 }

/* Rows of a table of options, for network_option(). */
#define NETWORK_DEVICE \
	{ "device", OPT_NET_DEVICE, "NAME", 0, "RDMA device (default: the first one)", 1 },
#define NETWORK_OPTIONS \
	{ "port", OPT_NET_PORT, "N", 0, "port of the device (default: the first active one)", 1 }, \
	{ "gid", OPT_NET_GID, "INDEX", 0, "address of the port (default: RoCE v2, IPv4)", 1 }, \
	{ "mtu", OPT_NET_MTU, "BYTES", 0, \
	  "packet payload: 256 to 4096 bytes (default: that of the port)", 1 }, \
	{ "service", OPT_NET_SERVICE, "uc|rc", 0, \
	  "unreliable (default) or reliable connection", 1 }, \
	{ "retries", OPT_NET_RETRIES, "N", 0, \
	  "rc: number of retries, 0 to 7 (default 7)", 1 }, \
	{ "ack-timeout", OPT_NET_TIMEOUT, "N", 0, \
	  "rc: time limit of an acknowledgement, 4.096 us * 2^N, 1 to 31 (default 14: 67 ms)", 1 }, \
	{ "traffic-class", OPT_NET_CLASS, "N", 0, "IP traffic class: DSCP times 4 (default 0)", 1 },

error_t network_option(int key, char *arg, struct argp_state *state,
		       struct rashpa_net_options *options);

#endif /* NETWORK_OPTIONS_H */
