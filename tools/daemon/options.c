// SPDX-License-Identifier: LGPL-2.1-or-later
#include <string.h>

#include "daemon/daemon.h"
#include "common/options.h"
#include "link/tls-options.h"

enum { OPT_DAEMON = 3072, OPT_LEADER, OPT_LED, OPT_PROBE };

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Led by rashpa-manager:", 2 },
	{ "daemon", OPT_DAEMON, "ADDRESS", 0,
	  "take telegrams at unix:/PATH, tls:[HOST:]PORT, or plain:[HOST:]PORT of loopback; several times for several",
	  2 },
	{ "leader", OPT_LEADER, "NAME", 0,
	  "manager that may configure: user:NAME, group:NAME, cert:NAME, or anyone (default: root and the user of this process); may be repeated",
	  2 },
	{ "led", OPT_LED, "FD", OPTION_HIDDEN, NULL, 2 },
	{ "probe", OPT_PROBE, NULL, OPTION_HIDDEN, NULL, 2 },
	{}
};

static void add_leader(struct argp_state *state, struct daemon_options *o, const char *arg)
{
	static const char * const kinds[] = { "user:", "group:", "cert:" };
	bool known = !strcmp(arg, "anyone");

	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		known |= !strncmp(arg, kinds[i], strlen(kinds[i])) && arg[strlen(kinds[i])];
	if (!known)
		argp_error(state, "--leader: \"%s\" is not user:NAME, group:NAME, cert:NAME or anyone",
			   arg);
	if (o->leaders == DAEMON_LEADERS)
		argp_error(state, "--leader: at most %d", DAEMON_LEADERS);
	o->leader[o->leaders++] = arg;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct daemon_options *o = state->input;
	uint32_t number;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->files;
		break;
	case OPT_DAEMON:
		if (o->addresses == DAEMON_ADDRESSES)
			argp_error(state, "--daemon: at most %d addresses", DAEMON_ADDRESSES);
		o->at[o->addresses++] = arg;
		break;
	case OPT_LEADER:
		add_leader(state, o, arg);
		break;
	case OPT_LED:
		option_u32(state, "--led", arg, 3, 1 << 20, &number);
		o->led = number;
		break;
	case OPT_PROBE:
		o->probe = true;
		break;
	case ARGP_KEY_END:
		if (o->leaders && !o->addresses)
			argp_error(state, "--leader requires --daemon");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static const struct argp_child children[] = { { .argp = &tls_argp }, {} };

const struct argp daemon_argp = { .options = options, .parser = parse, .children = children };
