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

/* argp_parse(), with arguments and help of the command that runs. */
void command_parse(const struct argp *argp, int argc, char **argv, void *input);

/* Parser of commands without own options; value[] receives the arguments. json: NULL without --json. */
void command_simple(int argc, char **argv, const char **value, bool *json);

#endif /* COMMAND_H */
