// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench network: options that its commands share. */
#include <stdio.h>

#include "common/json-out.h"
#include "link/network-options.h"
#include "bench/network/network.h"
#include "common/options.h"

static const char *const waits[] = {
	[RASHPA_NET_EVENT] = "event", [RASHPA_NET_POLL] = "poll",
	[RASHPA_NET_ADAPTIVE] = "adaptive",
};

const char *wait_name(uint32_t wait)
{
	return waits[wait];
}

error_t network_setting(int key, char *arg, struct argp_state *state, struct network_settings *s)
{
	switch (key) {
	case 'j':
		s->json = true;
		json_to(arg);
		break;
	case OPT_NET_THREADS:
		option_u32(state, "--threads", arg, 1, THREADS_MOST, &s->threads);
		break;
	case OPT_NET_WAIT:
		s->wait = option_word(state, "--wait", arg, "event|poll|adaptive");
		break;
	case OPT_NET_PAGES:
		option_word(state, "--pages", arg, "thp|4K|2M|1G");
		s->pages = arg;
		break;
	case OPT_NET_BUFFER:
		s->buffer = arg;
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		break;
	default:
		return network_option(key, arg, state, &s->port);
	}
	return 0;
}

static double member(struct json_object *o, const char *key)
{
	return json_object_get_double(json_object_object_get(o, key));
}

void lap_print(size_t number, struct json_object *lap)
{
	printf("%3zu  %8.4f GB/s  received %.0f  missing %.0f", number,
	       member(lap, "goodput_bytes_per_second") / 1e9, member(lap, "received_messages"),
	       member(lap, "missing_messages"));
	printf("  events/GB %.0f  CPU of the sink %.3f s/GB\n", member(lap, "events_per_gb"),
	       member(lap, "cpu_s_per_gb"));
}
