// SPDX-License-Identifier: LGPL-2.1-or-later
/* Programs that run at one of the ends. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/stop.h"
#include "bench/network/sweep.h"

void command_begin(struct command *c, const struct side *side, const char *program)
{
	*c = (struct command) {};
	for (unsigned int i = 0; i < side->words; i++)
		command_add(c, "%s", side->before[i]);
	c->argv[c->n++] = (char *)program;
}

void command_add(struct command *c, const char *format, ...)
{
	va_list args;

	if (c->n == ARGUMENTS_MOST)
		return;
	va_start(args, format);
	vsnprintf(c->text[c->n], sizeof(c->text[0]), format, args);
	va_end(args);
	c->argv[c->n] = c->text[c->n];
	c->n++;
}

int command_start(const struct command *c, int out, char *why)
{
	posix_spawn_file_actions_t actions;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), error;
	pid_t pid;

	if (null < 0 || posix_spawn_file_actions_init(&actions))
		return because(why, -1, "cannot start %s: %s", c->argv[0], strerror(errno));
	error = posix_spawn_file_actions_adddup2(&actions, null, STDIN_FILENO);
	if (!error)
		error = posix_spawn_file_actions_adddup2(&actions, out < 0 ? null : out,
							 STDOUT_FILENO);
	if (!error && c->quiet)
		error = posix_spawn_file_actions_adddup2(&actions, null, STDERR_FILENO);
	if (!error)
		error = posix_spawnp(&pid, c->argv[0], &actions, NULL, c->argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(null);
	return error ? because(why, -1, "cannot start %s: %s", c->argv[0],
			       strerror(error)) : pid;
}

void command_kill(int pid)
{
	kill(pid, SIGTERM);
}

int command_end(int pid, double seconds, const volatile bool *stop)
{
	struct pollfd fd = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int status = 0;

	if (fd.fd >= 0) {
		if (stop_poll(&fd, 1, now_ns() + (uint64_t)(seconds * 1e9)) <= 0 || *stop) {
			kill(pid, SIGTERM);
			if (poll(&fd, 1, 5000) <= 0)
				kill(pid, SIGKILL);
		}
		close(fd.fd);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}
