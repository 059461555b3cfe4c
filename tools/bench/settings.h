/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options and exit codes that are common to all measurements. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include <argp.h>

#include "bench/bench.h"
#include "common/options.h"
#include "common/path.h"

struct settings {
	struct report *report;	/* --repeat is kept there */
	const char *device, *vfio;	/* NULL: not given */
	bool json;
	char bdf[BDF_SIZE];	/* storage for vfio, unless it is "same" */
};

/* Options without a letter; options of a single measurement start at OPT_OWN. */
enum { OPT_VFIO = 256, OPT_OWN };

/* A parser of argp for --fpga, --repeat, --vfio and --json; it refuses arguments. */
error_t settings_parse(struct settings *settings, int key, char *arg, struct argp_state *state);
/* Fail without --fpga; for ARGP_KEY_END of commands that need it. */
void settings_need_device(const struct settings *settings, struct argp_state *state);

/* For parsers: the value of an option; exits with a message if it is out of range. */
uint64_t option_number(struct argp_state *state, const char *what, const char *arg, uint64_t min,
		       uint64_t max);
/* Parse --sizes; returns their number. check() exits for invalid sizes; its size 0: not a size. */
size_t option_sizes(struct argp_state *state, char *arg, uint64_t *size,
		    void (*check)(struct argp_state *state, const char *word, uint64_t size));

/* Should text go to standard output? */
bool settings_text(const struct settings *settings);
/* The exit code. any: there are results; bad: a result could not be written. */
int measured(bool any, bool bad);

#endif /* SETTINGS_H */
