// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The control socket, for tests. Lines of text, each answered by one line: "ok", or "error: ..."
 * with a reason.
 *
 *   disconnect	     drop the connection to the host
 *   exit	     end at once, as if the board had lost its power
 *   status	     state of the connection, and status of the device
 *
 * The device adds its own commands.
 */
#include "fpga/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fpga/log.h"

static int listener = -1;
static int client = -1;
static char line[DEVICE_COMMAND_SIZE];
static size_t have;
static bool pending;		/* the device has not answered yet */

/*
 * May the existing file be removed? Only a socket that refuses connections: its process died. Other
 * files stay, as do sockets with a full queue, which would make us wait.
 */
static bool is_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	bool stale = false;
	int fd;

	if (lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)))
		stale = errno == ECONNREFUSED;
	close(fd);
	return stale;
}

int listen_at(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	if (err == -EADDRINUSE && is_stale(&addr)) {
		unlink(path);
		err = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ? -errno : 0;
	}
	if (!err && listen(fd, 4))
		err = -errno;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int control_open(const char *path)
{
	listener = listen_at(path);
	return listener < 0 ? listener : 0;
}

static void hang_up(void)
{
	close(client);
	client = -1;
	have = 0;
	pending = false;
}

void control_close(const char *path)
{
	unlink(path);
	if (client >= 0)
		hang_up();
	close(listener);
	listener = -1;
}

int control_fd(void)
{
	return client >= 0 ? client : listener;
}

static void answer(const char *text)
{
	send(client, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	send(client, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool control_pending(void)
{
	return pending;
}

/* @command: NULL: check whether the device has answered. */
static void ask(struct device *device, struct vfu *vfu, const char *command)
{
	char text[DEVICE_COMMAND_SIZE] = "", more[DEVICE_COMMAND_SIZE + 32];
	bool known = device->ops->command && device->ops->command(device->self, command, text);

	pending = known && !*text;
	if (pending)
		return;
	if (command && !strcmp(command, "status")) {
		snprintf(more, sizeof(more), "ok connected=%d%s", vfu_connected(vfu),
			 known ? text + strlen("ok") : "");
		answer(more);
	} else {
		answer(known ? text : "error: disconnect, exit, status");
	}
}

static void obey(struct device *device, struct vfu *vfu, const char *command)
{
	log_msg("control: %s", command);
	if (!strcmp(command, "exit"))
		_exit(0);
	if (!strcmp(command, "disconnect")) {
		vfu_disconnect(vfu);
		answer("ok");
	} else {
		ask(device, vfu, command);
	}
}

static void take_lines(struct device *device, struct vfu *vfu)
{
	char *end;

	while (client >= 0 && !pending && (end = memchr(line, '\n', have))) {
		size_t length = (size_t)(end - line) + 1;

		*end = '\0';
		if (length > 1 && line[length - 2] == '\r')
			line[length - 2] = '\0';
		if (*line)
			obey(device, vfu, line);
		memmove(line, line + length, have - length);
		have -= length;
	}
}

void control_serve(struct device *device, struct vfu *vfu)
{
	ssize_t n;

	if (client < 0) {
		client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		return;
	}
	if (pending) {
		ask(device, vfu, NULL);
		take_lines(device, vfu);
		return;
	}
	n = read(client, line + have, sizeof(line) - have);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		hang_up();
		return;
	}
	have += (size_t)n;
	take_lines(device, vfu);
	if (have == sizeof(line) && !memchr(line, '\n', have))
		hang_up();		/* no command is that long */
}
