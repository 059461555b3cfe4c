// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/network-options.h"

#include <string.h>

#include "common/options.h"

error_t network_option(int key, char *arg, struct argp_state *state,
		       struct rashpa_net_options *o)
{
	uint32_t gid;

	switch (key) {
	case OPT_NET_DEVICE:
		o->device = arg;
		break;
	case OPT_NET_PORT:
		option_u32(state, "port", arg, 1, 255, &o->port);
		break;
	case OPT_NET_GID:
		option_u32(state, "gid", arg, 0, 65535, &gid);
		o->gid = gid;
		break;
	case OPT_NET_MTU:
		option_u32(state, "mtu", arg, 256, 4096, &o->mtu);
		if (o->mtu & (o->mtu - 1))
			argp_error(state, "mtu: \"%s\" is not 256, 512, 1024, 2048 or 4096", arg);
		break;
	case OPT_NET_SERVICE:
		o->service = option_word(state, "service", arg, "uc|rc") ? RASHPA_NET_RC : RASHPA_NET_UC;
		break;
	case OPT_NET_RETRIES:
		option_u32(state, "retries", arg, 0, 7, &o->retries);
		break;
	case OPT_NET_TIMEOUT:
		option_u32(state, "ack-timeout", arg, 1, 31, &o->timeout);
		break;
	case OPT_NET_CLASS:
		option_u32(state, "traffic-class", arg, 0, 255, &o->traffic_class);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}
