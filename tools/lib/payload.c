// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * librashpa: memory of one program, in which another one streams. The owner listens at a UNIX
 * socket, and sends the memory's dma-buf to each process that connects. See stream.rst.
 */
#include "lib/stream.h"
#include "lib/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FOLDER		"/run/rashpa"
#define ANSWER_S	2		/* an owner that listens answers at once, or has died */

struct message {
	uint64_t magic;			/* RASHPA_PAYLOAD_MAGIC */
	uint64_t length;
};

/* One message, with room for surplus descriptors, so that they can be closed. */
union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(8 * sizeof(int))];
};

static int address(struct sockaddr_un *to, const char *name)
{
	const char *given = secure_getenv("RASHPA_RUN"), *folder = given && *given ? given : FOLDER;
	int n;

	*to = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if (strnlen(name, RASHPA_STREAM_NAME) == RASHPA_STREAM_NAME || !*name)
		return fail(EINVAL, "the name of the memory is missing, or too long");
	n = stream_check_name("the name of the memory", name, true);
	if (n)
		return n;
	n = snprintf(to->sun_path, sizeof(to->sun_path), "%s/%s", folder, name);
	if (n >= (int)sizeof(to->sun_path))
		return fail(ENAMETOOLONG, "%s/%s is too long for a socket", folder, name);
	return 0;
}

/* Accept only a dma-buf: no other process can remove its pages during a read. */
static int length_of(int fd, uint64_t *length)
{
	char path[32], target[32] = "";
	off_t end = lseek(fd, 0, SEEK_END);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (end <= 0 || readlink(path, target, sizeof(target) - 1) < 0 ||
	    strncmp(target, "/dmabuf:", strlen("/dmabuf:")))
		return fail(EPROTO, "the descriptor is not a dma-buf");
	*length = end;
	return 0;
}

/* --- the owner --- */

int rashpa_payload_listen(const char *name)
{
	struct sockaddr_un to;
	int error = address(&to, name), fd;

	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail(errno, "socket: %s", strerror(errno));
	/* that of an owner that died; of one that lives it answers */
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) && errno == ECONNREFUSED)
		unlink(to.sun_path);
	close(fd);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&to, sizeof(to)) ||
	    fchmodat(AT_FDCWD, to.sun_path, 0660, AT_SYMLINK_NOFOLLOW) || listen(fd, 16)) {
		error = fail(errno, "%s: %s%s", to.sun_path, strerror(errno),
			     errno == ENOENT ? ": make the folder (install -d -g rashpa -m 3770)" :
			     errno == EADDRINUSE ? ": another program has memory of this name" :
			     "");
		if (fd >= 0)
			close(fd);
		return error;
	}
	return fd;
}

int rashpa_payload_hand(int listener, int dmabuf)
{
	struct message text = { .magic = RASHPA_PAYLOAD_MAGIC };
	union control control = {};
	struct iovec part = { .iov_base = &text, .iov_len = sizeof(text) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int)),
	};
	int error = length_of(dmabuf, &text.length), fd;

	if (error)
		return error;
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return fail(errno, "no process asks for the memory: %s", strerror(errno));
	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &dmabuf, sizeof(dmabuf));
	if (sendmsg(fd, &message, MSG_NOSIGNAL) != sizeof(text))
		error = fail(errno, "the process that asked for the memory has gone: %s", strerror(errno));
	close(fd);
	return error;
}

/* --- who uses it --- */

/* The descriptor of a message, or -1; more than one are closed. */
static int descriptor_of(struct msghdr *message)
{
	int fd = -1, n = 0, one;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= c->cmsg_len; at += sizeof(int)) {
			memcpy(&one, (char *)c + at, sizeof(one));
			if (!n++)
				fd = one;
			else
				close(one);
		}
	}
	if (n > 1) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int ask(int socket, const char *name)
{
	struct message text = {};
	union control control;
	struct iovec part = { .iov_base = &text, .iov_len = sizeof(text) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	const ssize_t n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	const int error = errno;
	uint64_t length;
	int fd;

	if (n < 0)
		return error == EAGAIN ?
			fail(ETIMEDOUT, "memory %s: its owner does not answer", name) :
			fail(error, "memory %s: %s", name, strerror(error));
	fd = descriptor_of(&message);
	if (n == sizeof(text) && text.magic == RASHPA_PAYLOAD_MAGIC && fd >= 0 &&
	    !length_of(fd, &length) && text.length && text.length <= length)
		return fd;
	if (fd >= 0)
		close(fd);
	return fail(EPROTO, "memory %s: its owner did not answer with a dma-buf", name);
}

static int no_memory(const char *name, const struct sockaddr_un *at)
{
	return fail(errno, "there is no buffer %s, and no program that has memory of this name (%s: %s)",
		    name, at->sun_path, strerror(errno));
}

/* Connect to the socket that is checked, whatever has its name by then. 0 or a negative errno */
static int connect_to(const struct rashpa_stream *s, const char *name, const struct sockaddr_un *at,
		      int socket)
{
	struct sockaddr_un held = { .sun_family = AF_UNIX };
	int path = open(at->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;

	if (path < 0)
		return no_memory(name, at);
	snprintf(held.sun_path, sizeof(held.sun_path), "/proc/self/fd/%d", path);
	error = stream_check_socket(s, name, path, held.sun_path);
	if (!error && connect(socket, (const struct sockaddr *)&held, sizeof(held)))
		error = no_memory(name, at);
	close(path);
	return error;
}

int payload_open(const struct rashpa_stream *s, struct memory *m, const char *name, bool write)
{
	const struct timeval patience = { .tv_sec = ANSWER_S };
	struct sockaddr_un to;
	int error = address(&to, name), fd;
	void *base;

	*m = (struct memory)MEMORY_NONE;
	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(errno, "socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	error = connect_to(s, name, &to, fd);
	if (!error)
		error = ask(fd, name);
	close(fd);
	if (error < 0)
		return error;
	m->dmabuf = error;
	error = length_of(m->dmabuf, &m->length);
	/* memory of a device that no processor can reach has no address: that is no error */
	if (!error && !rashpa_mmap(m->dmabuf, 0, m->length,
				   write ? PROT_READ | PROT_WRITE : PROT_READ, &base))
		m->base = base;
	if (error)
		memory_close(m);
	return error;
}
