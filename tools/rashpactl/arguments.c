// SPDX-License-Identifier: LGPL-2.1-or-later
/* Options that several commands understand: they end the program with a message. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rashpactl/owner.h"
#include "common/parse.h"
#include <rashpa.h>
#include "rashpactl/rashpactl.h"

void option_node(struct argp_state *state, const char *arg, uint32_t *node)
{
	if (!parse_u32(arg, node))
		argp_error(state, "--node: \"%s\" is not a number", arg);
}

void option_backend(struct argp_state *state, const char *arg, uint32_t *backend)
{
	*backend = option_word(state, "--backend", arg, "auto|cma|contig");
}

void option_size(struct argp_state *state, const char *option, const char *arg, __u64 *size)
{
	uint64_t value;

	if (!parse_size(arg, &value))
		argp_error(state, "%s: \"%s\" is not a size: write bytes, or a number with K, M, G or T",
			   option, arg);
	*size = value;
}

void option_buffer(struct argp_state *state, const char *arg, char *name)
{
	if (!*arg)
		argp_error(state, "the name of the buffer is empty");
	/* Checked here, because the name must fit into the driver's struct. */
	if (strlen(arg) >= RASHPA_NAME_SIZE)
		exit(fail("the name \"%s\" is longer than %d characters", arg,
			  RASHPA_NAME_SIZE - 1));
	memset(name, 0, RASHPA_NAME_SIZE);
	strcpy(name, arg);
}

void option_owner(struct argp_state *state, const char *arg, struct owner *owner)
{
	char why[WHY_SIZE];

	if (parse_owner(arg, owner, why))
		argp_error(state, "--owner: %s", why);
}

void option_mode(struct argp_state *state, const char *arg, uint32_t *mode)
{
	if (!parse_mode(arg, mode))
		argp_error(state, "--mode: \"%s\" is not a mode from 0 to 0666, in octal", arg);
}
