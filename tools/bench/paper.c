// SPDX-License-Identifier: LGPL-2.1-or-later
/* rashpa-bench paper, validate, network sweep: the programs in paper/, which run the other commands. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"

#define PATH_SIZE	4096

/* Run a file of the folder, or the folder itself. */
static int run_there(const char *file, int argc, char **argv)
{
	char program[PATH_SIZE] = "", folder[PATH_SIZE + 64];
	char **words = calloc(argc + 3, sizeof(*words));
	char *end;

	if (!words || readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return fail("cannot find this program: %s", strerror(errno));
	setenv("RASHPA_BENCH", program, true);
	/* next to a program that is not installed */
	end = strrchr(program, '/');
	snprintf(folder, sizeof(folder), "%.*s/bench/paper", (int)(end - program), program);
	if (access(folder, F_OK))
		snprintf(folder, sizeof(folder), "%s", PAPER_DIR);
	strcat(folder, file);
	words[0] = "python3";
	words[1] = "-B";
	words[2] = folder;
	memcpy(words + 3, argv + 1, argc * sizeof(*words));
	execvp(words[0], words);
	return fail("%s: %s", words[0], strerror(errno));
}

int cmd_paper(int argc, char **argv)
{
	return run_there("", argc, argv);
}

int cmd_validate(int argc, char **argv)
{
	return run_there("/validate.py", argc, argv);
}

int cmd_network_sweep(int argc, char **argv)
{
	return run_there("/sweep.py", argc, argv);
}
