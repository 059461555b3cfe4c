/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What all measurements are told alike, and how they end. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <argp.h>

#include "bench.h"
#include "options.h"
#include "path.h"

struct settings {
	struct report *report;	/* --repeat is kept there */
	const char *device, *vfio, *svg;	/* NULL: not given */
	bool json;
	char bdf[BDF_SIZE];	/* that vfio is, unless it is "same" */
};

/* Options without a letter; those of one measurement alone follow OPT_OWN. */
enum { OPT_VFIO = 256, OPT_SVG, OPT_OWN };

/* A parser of argp for --fpga, --repeat, --vfio, --json and --svg; there are no arguments. */
error_t settings_parse(struct settings *settings, int key, char *arg, struct argp_state *state);
/* For ARGP_KEY_END of who cannot do without --fpga. */
void settings_need_device(const struct settings *settings, struct argp_state *state);

/* For parsers: the value of an option, or the end of the program with a message. */
uint64_t option_number(struct argp_state *state, const char *what, const char *arg, uint64_t min,
		       uint64_t max);
/* The same for --sizes: how many. check() ends it for what it does not like; 0: no size at all. */
size_t option_sizes(struct argp_state *state, char *arg, uint64_t *size,
		    void (*check)(struct argp_state *state, const char *word, uint64_t size));

/* Standard output is free for text. */
bool settings_text(const struct settings *settings);
/* The exit code. any: something was measured; bad: a result could not be written. */
int measured(bool any, bool bad);

#endif /* SETTINGS_H */
