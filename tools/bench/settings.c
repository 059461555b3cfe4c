// SPDX-License-Identifier: LGPL-2.1-or-later
#include "bench/settings.h"

#include <inttypes.h>
#include <string.h>

#include "common/json-out.h"
#include "common/options.h"
#include "common/parse.h"
#include "common/stop.h"

static volatile bool *stop;	/* NULL: signals end the program */

bool going_on(void)
{
	return !stop || !*stop;
}

void catch_signals(void)
{
	stop = stop_on_signals();
}

uint64_t option_number(struct argp_state *state, const char *what, const char *arg, uint64_t min,
		       uint64_t max)
{
	uint64_t n = 0;

	if (!parse_u64(arg, max, &n) || n < min)
		argp_error(state, "%s: \"%s\" is not a number from %" PRIu64 " to %" PRIu64, what,
			   arg, min, max);
	return n;
}

size_t option_sizes(struct argp_state *state, char *arg, uint64_t *size,
		    void (*check)(struct argp_state *state, const char *word, uint64_t size))
{
	char *next, *word;
	size_t n = 0;

	for (word = strtok_r(arg, ",", &next); word; word = strtok_r(NULL, ",", &next)) {
		if (n == SIZES_MAX)
			argp_error(state, "--sizes: more than %d sizes", SIZES_MAX);
		if (!parse_size(word, &size[n]))
			size[n] = 0;
		check(state, word, size[n]);
		n++;
	}
	if (!n)
		argp_error(state, "--sizes: no size given");
	return n;
}

error_t settings_parse(struct settings *settings, int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'f':
		settings->device = arg;
		break;
	case 'r':
		settings->report->repeat = option_number(state, "--repeat", arg, 1, 1000);
		break;
	case OPT_VFIO:
		settings->vfio = parse_bdf(arg, settings->bdf) ? settings->bdf : arg;
		if (settings->vfio == arg && strcmp(arg, "same"))
			argp_error(state, "--vfio: \"%s\" is not BDF (0000:01:00.0)", arg);
		break;
	case 'j':
		settings->json = true;
		json_to(arg);
		break;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"", arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

void settings_need_device(const struct settings *settings, struct argp_state *state)
{
	if (!settings->device)
		argp_error(state, "--fpga is missing: see rashpactl list");
}

bool settings_text(const struct settings *settings)
{
	return !settings->json || json_elsewhere();
}

int measured(bool any, bool bad)
{
	if (!going_on())
		return fail("interrupted: the results are incomplete");
	if (!any)
		return fail("no measurement succeeded: see the reasons above");
	return bad ? EXIT_FAILED : 0;
}
