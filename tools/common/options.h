/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Options that mean the same in every tool, and those of the tools that stream. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/geometry.h"
#include "common/parse.h"

/* Rows of a table of options; their keys are 'j' (argument or NULL, for json_to()) and 'f'. */
#define OPTION_JSON \
	{ "json", 'j', "FILE", OPTION_ARG_OPTIONAL, "JSON to FILE, or to standard output", 0 }
#define OPTION_FPGA(doc) \
	{ "fpga", 'f', "fpgaN", 0, doc, 0 }

/* First of all: exit status of wrong usage, -h, and output that cannot be written is an error. */
void tool_begin(int argc, char **argv);

/* Rarely used settings: rows of a table of options that --help leaves out, and the parser that takes them. */
struct tune {
	const struct argp_option *rows;	/* NULL: the end */
	argp_parser_t parse;
	void *input;			/* of this parser */
};

#define OPTION_TUNE(key) \
	{ "tune", key, "KEY=VALUE", 0, "a setting that is rarely needed; --tune help lists all", 0 }
error_t option_tune(struct argp_state *state, char *arg, const struct tune *tune);
/* Is it one of them? */
bool option_tunes(const struct tune *tune, const char *name);

struct stream_options {
	const char *buffer;	/* never NULL after parsing, but: */
	bool without_buffer;	/* the tool's parser says so at its end */
	const char *dataset;	/* NULL: the default */
	const char *darks;	/* NULL: none */
	uint32_t dark_every;	/* where there are some; 2 or more */
	struct geometry geometry;	/* of raw images; 0 x 0: the default */
	bool json;		/* where to is json-out.c's */
	struct depth images;	/* 0: no limit; for depth_images() */
	double timeout;		/* seconds without progress, 0: none */
	bool progress;
};

/* A child of the tool's own parser, whose ARGP_KEY_INIT hands it a struct stream_options. */
extern const struct argp stream_argp;
extern const struct argp_option stream_tunes[];	/* for its parser */

/* A parser's number from min to max, or the end of the program with a message. */
void option_u32(struct argp_state *state, const char *what, const char *arg, uint32_t min,
		uint32_t max, uint32_t *value);

/* The member that an option sets in the input of its parser, and its range. */
struct option_value {
	int key;		/* 0: the end of a table */
	enum { VALUE_NONE, VALUE_FLAG, VALUE_TEXT, VALUE_U32, VALUE_U64, VALUE_SIZE32, VALUE_SIZE, VALUE_REAL,
	       VALUE_U8, VALUE_U16, VALUE_POWER /* of two, 32 bits */ } kind;
	const char *name;	/* for messages */
	size_t at;
	double least, most;
};

/* False: it is out of range. */
bool value_set(const struct option_value *value, void *input, const char *arg);
/* For a parser: the row with this key, or the end of the program with a message. ARGP_ERR_UNKNOWN without a row. */
error_t option_set(const struct option_value *values, int key, const char *arg, struct argp_state *state);

/* The place of the word in "this|that|other", from 0 on, or the end of the program with a message. */
uint32_t option_word(struct argp_state *state, const char *what, const char *arg, const char *words);

/* The number of "fpga3" or "3", or the end of the program with a message. */
void option_fpga(struct argp_state *state, const char *what, const char *arg, unsigned int *number);

#endif /* OPTIONS_H */
