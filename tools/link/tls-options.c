// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/tls-options.h"

#include <string.h>

#include "link/wire.h"

#define OPT_TLS	3328

static const struct argp_option options[] = {
	{ "tls", OPT_TLS, "CERTIFICATE,KEY,CA[,CRL]", 0,
	  "files: our certificate, its key, the authority of the other side, revoked certificates", 2 },
	{}
};

static bool parse_files(char *text, struct wire_files *files)
{
	const char **to[] = { &files->certificate, &files->key, &files->authority, &files->revoked };
	unsigned int n = 0;

	for (char *file; (file = strsep(&text, ",")) != NULL; *to[n++] = file) {
		if (!*file || n == sizeof(to) / sizeof(to[0]))
			return false;
	}
	return n >= 3;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	if (key != OPT_TLS)
		return ARGP_ERR_UNKNOWN;
	/* a copy: children of a daemon get its arguments */
	if (!parse_files(strdup(arg), state->input))
		argp_error(state, "--tls: \"%s\" is not CERTIFICATE,KEY,CA or CERTIFICATE,KEY,CA,CRL", arg);
	return 0;
}

const struct argp tls_argp = { .options = options, .parser = parse };
