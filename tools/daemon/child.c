// SPDX-License-Identifier: LGPL-2.1-or-later
#include "daemon/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/led.h"
#include "common/say.h"
#include "link/telegram.h"

#define REPORT_MOST	(480u << 10)	/* bytes: it has to fit into a telegram */

/* Descriptors of the child, after the usual three. */
enum { FD_SAID = STDERR_FILENO, FD_LED, FD_REPORT, FD_BEHIND };

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_all(struct child *c)
{
	close_one(&c->process);
	close_one(&c->led);
	close_one(&c->said);
	close_one(&c->report);
}

/* Move @fd above the child's fixed descriptors, so that dup2() does not overwrite it. */
static int lift(int fd)
{
	int lifted = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 16);

	close_one(&fd);
	return lifted;
}

__attribute__((noreturn))
static void become(char *const *argv, int said, int link, int report)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(said, STDOUT_FILENO);
	dup2(said, FD_SAID);
	dup2(link, FD_LED);
	dup2(report, FD_REPORT);
	close_range(FD_BEHIND, ~0U, 0);
	execv("/proc/self/exe", argv);
	dprintf(FD_SAID, "the program cannot be started: %s\n", strerror(errno));
	_exit(127);
}

int child_start(struct child *c, char *const *argv, char *why)
{
	int link[2] = { -1, -1 }, said[2] = { -1, -1 };
	pid_t daemon = getpid();

	*c = (struct child)CHILD_NONE;
	c->report = lift(memfd_create("report", MFD_CLOEXEC));
	if (c->report < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) ||
	    pipe2(said, O_CLOEXEC | O_NONBLOCK)) {
		because(why, -1, "cannot start a child: %s", strerror(errno));
		goto fail;
	}
	link[1] = lift(link[1]);
	said[1] = lift(said[1]);
	/* the reader must not wait, the writer may */
	if (link[1] < 0 || said[1] < 0 || fcntl(said[1], F_SETFL, 0)) {
		because(why, -1, "cannot start a child: %s", strerror(errno));
		goto fail;
	}
	c->pid = fork();
	if (!c->pid) {
		if (getppid() == daemon)
			become(argv, said[1], link[1], c->report);
		_exit(127);
	}
	c->process = c->pid < 0 ? -1 : pidfd_open(c->pid, 0);
	if (c->process < 0) {
		because(why, -1, "cannot start a child: %s", strerror(errno));
		goto fail;
	}
	close(link[1]);
	close(said[1]);
	c->led = link[0];
	c->said = said[0];
	return 0;
fail:
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
	for (unsigned int i = 0; i < 2; i++) {
		close_one(&link[i]);
		close_one(&said[i]);
	}
	close_all(c);
	return -1;
}

void child_tell(struct child *c, struct json_object *message)
{
	const char *text = json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN);

	/* the end of the child is noticed elsewhere */
	if (c->led >= 0)
		send(c->led, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	json_object_put(message);
}

struct json_object *child_message(struct child *c)
{
	static char text[LED_MOST + 1];
	struct json_object *o = NULL;
	ssize_t n = 1;

	while (c->led >= 0 && !o && n > 0) {
		/* a child that leaves a message of ours unread resets the link; its own come after that */
		do {
			n = recv(c->led, text, LED_MOST, MSG_DONTWAIT);
		} while (n < 0 && errno == ECONNRESET);
		if (!n)
			close_one(&c->led);
		if (n <= 0)
			break;
		text[n] = 0;
		o = json_tokener_parse(text);
	}
	return o;
}

static const char *keep(struct child *c)
{
	char raw[sizeof(c->line)];
	const char *colon;

	c->line[c->line_bytes] = 0;
	c->line_bytes = 0;
	colon = strstr(c->line, ": ");
	/* "romulu: no memory": the reader knows the program, so drop its name */
	if (colon && !strncmp(c->line, program_invocation_short_name, colon - c->line))
		memmove(c->line, colon + 2, strlen(colon + 2) + 1);
	memcpy(raw, c->line, sizeof(raw));
	text_line(c->line, sizeof(c->line), raw);
	if (!*c->line)
		return NULL;
	/* the line before names the error */
	if (strncmp(c->line, "Try `", strlen("Try `")))
		memcpy(c->last, c->line, sizeof(c->last));
	return c->line;
}

const char *child_line(struct child *c)
{
	const char *line = NULL;
	char one;

	while (!line && c->said >= 0) {
		const ssize_t n = read(c->said, &one, 1);

		if (n == 1 && one != '\n' && c->line_bytes < sizeof(c->line) - 1)
			c->line[c->line_bytes++] = one;
		else if (n == 1 || (!n && c->line_bytes))
			line = keep(c);
		if (!n && !line)
			close_one(&c->said);
		if (n < 0)
			break;
	}
	return line;
}

void child_signal(const struct child *c, int signal)
{
	if (c->pid)
		pidfd_send_signal(c->process, signal, NULL, 0);
}

static char *read_report(int fd)
{
	char *text = malloc(REPORT_MOST + 1);
	ssize_t n = text ? pread(fd, text, REPORT_MOST + 1, 0) : -1;

	if (n <= 0 || n > (ssize_t)REPORT_MOST) {
		free(text);
		return NULL;
	}
	text[n] = 0;
	return text;
}

struct child_end child_reap(struct child *c, char **report)
{
	struct child_end end = { .exit = -1 };
	int status;

	while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status))
		end.exit = WEXITSTATUS(status);
	else
		end.signal = WTERMSIG(status);
	*report = read_report(c->report);
	close_all(c);
	c->pid = 0;
	return end;
}
