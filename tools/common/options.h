/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tools that send and receive streams have in common: options, and how to end. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

struct stream_options {
	const char *buffer;	/* never NULL after parsing */
	const char *dataset;	/* NULL: the default */
	const char *json;	/* file for the report, or NULL */
	uint64_t images;	/* 0: no limit */
	double timeout;		/* seconds without progress, 0: none */
	bool progress;
};

/*
 * A child of the tool's own parser, whose ARGP_KEY_INIT stores a pointer to the options in
 * state->child_inputs[0].
 */
extern const struct argp_child stream_options_child[];

/* A parser's number from min to max, or the end of the program with a message. */
void option_u32(struct argp_state *state, const char *what, const char *arg, uint32_t min,
		uint32_t max, uint32_t *value);

/* SIGINT, SIGTERM and SIGHUP set what this points to. */
volatile bool *stop_on_signals(void);

#endif /* OPTIONS_H */
