// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-manager: lead the detectors and receivers of an experiment. See rashpa-manager(1). */
#include <argp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/json-out.h"
#include "manager/manager.h"
#include "common/options.h"
#include "common/parse.h"
#include "common/stop.h"
#include "link/tls-options.h"

const char *argp_program_version = "rashpa-manager " RASHPA_VERSION;

enum { OPT_NAME = 256, OPT_TAKE_OVER, OPT_PROGRESS };

static const struct argp_option options[] = {
	OPTION_JSON,
	{ "timeout", 't', "SECONDS", 0, "for an answer (default 30)", 0 },
	{ "name", OPT_NAME, "NAME", 0, "how daemons call us (default: this machine's name)", 0 },
	{ "take-over", OPT_TAKE_OVER, NULL, 0,
	  "run: lead the run that is under way, whose manager has gone", 0 },
	{ "progress", OPT_PROGRESS, NULL, 0, "show progress although stderr is not a terminal", 0 },
	{}
};

static bool known_command(const char *text)
{
	static const char * const commands[] = { "run", "check", "plan", "watch" };

	for (unsigned int i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(text, commands[i]))
			return true;
	}
	return false;
}

static const struct option_value values[] = {
	{ 't', VALUE_REAL, "--timeout", offsetof(struct options, timeout), 0.1, 86400 },
	{ OPT_NAME, VALUE_TEXT, "--name", offsetof(struct options, name), 0, 0 },
	{ OPT_TAKE_OVER, VALUE_FLAG, "--take-over", offsetof(struct options, take_over), 0, 0 },
	{ OPT_PROGRESS, VALUE_FLAG, "--progress", offsetof(struct options, progress), 0, 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->files;
		break;
	case 'j':
		o->json = true;
		json_to(arg);
		break;
	case ARGP_KEY_ARG:
		if (!o->command && !known_command(arg))
			argp_error(state, "\"%s\" is not run, check, plan or watch", arg);
		if (o->file)
			argp_error(state, "unexpected argument \"%s\"", arg);
		if (o->command)
			o->file = arg;
		else
			o->command = arg;
		break;
	case ARGP_KEY_END:
		if (!o->file)
			argp_error(state, "the experiment is missing: rashpa-manager run|check|plan|watch FILE");
		if (o->take_over && strcmp(o->command, "run"))
			argp_error(state, "--take-over requires the command run");
		break;
	default:
		return option_set(values, key, arg, state);
	}
	return 0;
}

static const struct argp_child children[] = { { .argp = &tls_argp }, {} };

static const struct argp argp = {
	.options = options,
	.children = children,
	.parser = parse,
	.args_doc = "run|check|plan|watch FILE",
	.doc = "Lead the detectors and receivers of an experiment."
	       "\vExit status: 0 all went well, 1 failed, 2 usage, 3 no answer or no progress in time, "
	       "4 images were lost or are wrong.",
};

static int with_daemons(struct experiment *e, const struct options *o, struct wire_tls *tls,
			const volatile bool *stop)
{
	const bool watching = !strcmp(o->command, "watch");
	int result = parties_connect(e, o, tls, watching ? "observer" : "leader", 0.5, stop);

	/* check and watch go on with the parties that answer */
	if (result && strcmp(o->command, "check") && strcmp(o->command, "watch"))
		return result;
	if (watching)
		return watch(e, o, stop);
	if (!strcmp(o->command, "check"))
		return check(e, o, stop) || result ? EXIT_FAILED : 0;
	if (!strcmp(o->command, "plan"))
		return plan(e, o, stop);
	return run_experiment(e, o, stop);
}

int main(int argc, char **argv)
{
	volatile bool *stop = stop_on_signals();
	struct options o = { .timeout = 30 };
	char why[WHY_SIZE], machine[256] = "manager";
	struct experiment e;
	struct wire_tls *tls = NULL;
	int result;

	tool_begin(argc, argv);
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, run_hold);
	signal(SIGUSR2, run_hold);
	gethostname(machine, sizeof(machine) - 1);
	o.name = o.name ? o.name : machine;
	if (experiment_read(&e, o.file, why))
		result = fail("%s", why);
	else if (o.files.certificate && wire_tls_open(&o.files, &tls, why))
		result = fail("%s", why);
	else
		result = with_daemons(&e, &o, tls, stop);
	parties_close(&e);
	wire_tls_close(tls);
	experiment_free(&e);
	return result;
}
