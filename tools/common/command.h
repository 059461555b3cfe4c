/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Programs of several commands. */
#ifndef COMMAND_H
#define COMMAND_H

#include <argp.h>
#include <stdbool.h>

struct command {
	const char *group, *name;	/* words of the command line; no group: NULL */
	const char *args;		/* for the usage, a word for each */
	int (*run)(int argc, char **argv);	/* argv[0] is all words of the command; an exit code */
	const char *help;		/* one line */
};

/* The one that runs. */
extern const struct command *command_running;

/* Run the command of this table that argv names; the last row is {}. An exit code. */
int command_run(const char *program, const struct command *commands, int argc, char **argv);

/* Was --json given? */
extern bool command_json;

/*
 * argp_parse(), with arguments and help of the command that runs. --json of the options need not be in the parser.
 * value[] receives the arguments, a word of the usage each; NULL: the parser takes them.
 */
void command_read(const struct argp *argp, int argc, char **argv, void *input, const char **value);
void command_parse(const struct argp *argp, int argc, char **argv, void *input);
/* For commands with no option but --json. value: NULL without arguments. */
void command_simple(int argc, char **argv, const char **value);
/* Without any option: for command_read(). */
extern const struct argp command_bare;

#endif /* COMMAND_H */
