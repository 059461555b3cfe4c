// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/tls-options.h"

#include "link/wire.h"

enum { OPT_AUTHORITY = 3328, OPT_CERTIFICATE, OPT_KEY, OPT_REVOKED };

static const struct argp_option options[] = {
	{ "tls-ca", OPT_AUTHORITY, "FILE", 0, "who signs certificates of the other side", 2 },
	{ "tls-cert", OPT_CERTIFICATE, "FILE", 0, "our certificate", 2 },
	{ "tls-key", OPT_KEY, "FILE", 0, "the key of it", 2 },
	{ "tls-crl", OPT_REVOKED, "FILE", 0, "certificates that are revoked", 2 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct wire_files *files = state->input;

	switch (key) {
	case OPT_AUTHORITY:
		files->authority = arg;
		break;
	case OPT_CERTIFICATE:
		files->certificate = arg;
		break;
	case OPT_KEY:
		files->key = arg;
		break;
	case OPT_REVOKED:
		files->revoked = arg;
		break;
	case ARGP_KEY_END:
		if (files->certificate && (!files->key || !files->authority))
			argp_error(state, "--tls-cert requires --tls-key and --tls-ca");
		if (!files->certificate && (files->key || files->authority || files->revoked))
			argp_error(state, "--tls-ca, --tls-key and --tls-crl require --tls-cert");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

const struct argp tls_argp = { .options = options, .parser = parse };
