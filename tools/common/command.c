// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/command.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/json-out.h"
#include "common/options.h"
#include "common/say.h"

const struct command *command_running;

/* Print the commands of a group; NULL: all. */
static void print_commands(FILE *to, const char *program, const struct command *commands,
			   const char *group)
{
	fprintf(to, "Usage: %s%s%s COMMAND [OPTION...] [ARGUMENT...]\n\n", program,
		group ? " " : "", group ? group : "");
	for (const struct command *c = commands; c->name; c++) {
		if (!group || (c->group && !strcmp(c->group, group)))
			fprintf(to, "  %s%s%-*s %s\n", c->group ? c->group : "", c->group ? " " : "",
				c->group ? 17 - (int)strlen(c->group) : 18, c->name, c->help);
	}
	fputs("\nAfter a command, --help prints its options.\n"
	      "Exit status: 0 success, 1 failure, 2 wrong usage, 3 time limit exceeded, 4 lost or wrong data.\n",
	      to);
}

/* Does at most this number of letters differ? */
static bool is_near(const char *a, const char *b, unsigned int letters)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	if (!*a && !*b)
		return true;
	return letters-- && (is_near(a + !!*a, b, letters) || is_near(a, b + !!*b, letters) ||
			     is_near(a + !!*a, b + !!*b, letters));
}

/* Wrong usage: print the command that is most like it. */
static int unknown(const char *program, const struct command *commands, const char *group,
		   const char *word)
{
	for (unsigned int letters = 0; letters < (strlen(word) < 5 ? 2 : 3); letters++) {
		for (const struct command *c = commands; c->name; c++) {
			const bool first = !group && c->group && is_near(word, c->group, letters);

			if ((!group || (c->group && !strcmp(c->group, group))) &&
			    (first || is_near(word, c->name, letters))) {
				say("unknown command \"%s\": did you mean \"%s%s%s\"?", word,
				    c->group ? c->group : "", c->group && !first ? " " : "",
				    first ? "" : c->name);
				return EXIT_USAGE;
			}
		}
	}
	say("unknown command \"%s\": see %s --help", word, program);
	return EXIT_USAGE;
}

static bool is_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-?") || !strcmp(word, "help");
}

/* The number of words that name the command; 0: they name another one. */
static int words_of(const struct command *c, char **words)
{
	if (!c->group)
		return !strcmp(words[0], c->name);
	return !strcmp(words[0], c->group) && words[1] && !strcmp(words[1], c->name) ? 2 : 0;
}

int command_run(const char *program, const struct command *commands, int argc, char **argv)
{
	static char help[] = "--help", name[64];
	char **words = argv + 1, **rest, *option = NULL;
	const char *group = NULL;
	int n;

	tool_begin(argc, argv);
	/* These may stand before the command, too. */
	if (*words && (!strncmp(*words, "--json", 6) || !strncmp(*words, "-j", 2)))
		option = *words++;
	if (*words && is_help(*words) && words++)
		option = help;
	if (!*words) {
		print_commands(option == help ? stdout : stderr, program, commands, NULL);
		return option == help ? EXIT_OK : EXIT_USAGE;
	}
	if (!strcmp(*words, "--version") || !strcmp(*words, "-V")) {
		printf("%s %s\n", program, RASHPA_VERSION);
		return EXIT_OK;
	}
	for (const struct command *c = commands; c->name; c++) {
		n = words_of(c, words);
		if (n) {
			command_running = c;
			snprintf(name, sizeof(name), "%s %s%s%s", program, c->group ? c->group : "",
				 c->group ? " " : "", c->name);
			rest = words + n - 1 - !!option;
			if (option)
				rest[1] = option;
			rest[0] = name;
			return c->run(argc - (rest - argv), rest);
		}
		if (c->group && !strcmp(*words, c->group))
			group = c->group;
	}
	if (group && words[1] && !is_help(words[1]))
		return unknown(program, commands, group, words[1]);
	if (!group)
		return unknown(program, commands, NULL, *words);
	print_commands(words[1] || option == help ? stdout : stderr, program, commands, group);
	return words[1] || option == help ? EXIT_OK : EXIT_USAGE;
}

bool command_json;

/* State of a parser around the parser of a command. */
struct rest {
	const struct argp *own;
	void *input;
	const char **value;
	unsigned int n;			/* arguments that are required, or ours */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rest *r = state->input;
	error_t error = ARGP_ERR_UNKNOWN;

	if (key == ARGP_KEY_ARG && r->value) {
		if (state->arg_num >= r->n)
			return ARGP_ERR_UNKNOWN;
		r->value[state->arg_num] = arg;
		return 0;
	}
	if (key == ARGP_KEY_END && r->value && state->arg_num < r->n)
		argp_error(state, "give %s", command_running->args);
	if (key == 'j') {
		command_json = true;
		json_to(arg);
	}
	if (r->own->parser) {
		state->input = r->input;
		error = r->own->parser(key, arg, state);
		state->input = r;
	}
	return key == 'j' && error == ARGP_ERR_UNKNOWN ? 0 : error;
}

void command_read(const struct argp *argp, int argc, char **argv, void *input, const char **value)
{
	struct rest rest = { .own = argp, .input = input, .value = value, .n = !!*command_running->args };
	struct argp all = *argp;
	char doc[256];

	for (const char *c = command_running->args; *c; c++)
		rest.n += *c == ' ';
	snprintf(doc, sizeof(doc), "%c%s.", toupper(*command_running->help), command_running->help + 1);
	all.parser = parse;
	all.args_doc = command_running->args;
	all.doc = doc;
	argp_parse(&all, argc, argv, 0, NULL, &rest);
}

void command_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	command_read(argp, argc, argv, input, NULL);
}

const struct argp command_bare;

void command_simple(int argc, char **argv, const char **value)
{
	static const struct argp_option options[] = { OPTION_JSON, {} };
	static const struct argp argp = { .options = options };

	command_read(&argp, argc, argv, NULL, value ? value : (const char *[1]) {});
}
