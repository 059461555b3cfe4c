// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/host.h"
#include "common/say.h"
#include "link/tls.h"

#define MS		UINT64_C(1000000)	/* in ns */
#define BACKLOG		4096		/* or what net.core.somaxconn allows */
#define ROOM_FIRST	4096
#define FRAME_ROOM	(sizeof(uint32_t) + WIRE_MOST + 1)
#define ROOM_KEPT	65536		/* a larger buffer is freed when it is empty */

enum state { CONNECTING, SHAKING, READY, OVER };

struct bytes {
	char *data;
	size_t have, room;
};

struct address {
	enum wire_kind kind;
	char host[HOST_SIZE];
	struct sockaddr_un local;
	struct addrinfo local_info, *list;	/* of UNIX, where list points to, too */
};

struct wire {
	enum state state;
	int fd;
	uint32_t most;			/* bytes of a frame that comes */
	struct address to;
	struct addrinfo *next;		/* the rest of its list, not yet tried */
	struct wire_tls *keys;
	char name[256];			/* required name in the other side's certificate */
	struct tls_link *tls;
	uint64_t try_end, begin_end, frame_end;
	struct wire_peer peer;
	struct bytes in;		/* one frame and its length, never more */
	struct bytes out;
	bool taken;			/* the frame in @in was given away */
	bool deaf;			/* it reads no more; its earlier frames may come */
	char said[WHY_SIZE];		/* reason why it is over, or deaf */
};

/* --- addresses --- */

static const char *const prefixes[] = {
	[WIRE_UNIX] = "unix:", [WIRE_PLAIN] = "plain:", [WIRE_TLS] = "tls:", [WIRE_OPEN] = "",
};

static int parse_path(const char *path, struct address *a, char *why)
{
	if (path[0] != '/')
		return because(why, -1, "\"unix:%.200s\" is not unix:/PATH", path);
	if (strlen(path) >= sizeof(a->local.sun_path))
		return because(why, -1, "%.300s: the path of a socket has %zu bytes at most", path,
			       sizeof(a->local.sun_path) - 1);
	a->local.sun_family = AF_UNIX;
	strcpy(a->local.sun_path, path);
	a->local_info.ai_family = AF_UNIX;
	a->local_info.ai_addr = (struct sockaddr *)&a->local;
	a->local_info.ai_addrlen = sizeof(a->local);
	a->list = &a->local_info;
	return 0;
}

static bool is_loopback(const struct sockaddr *at)
{
	const struct sockaddr_in *v4 = (const void *)at;
	const struct sockaddr_in6 *v6 = (const void *)at;

	return at->sa_family == AF_INET ? ntohl(v4->sin_addr.s_addr) >> 24 == 127 :
	       at->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int resolve(const char *text, const char *rest, bool own, struct address *a, char *why)
{
	const enum host_use use = !own ? HOST_OTHER : a->kind == WIRE_PLAIN ? HOST_LOOPBACK : HOST_OWN;
	const char *wrong = host_resolve(rest, use, a->host, &a->list);

	if (wrong)
		return because(why, -1, "%.300s: %s", text, wrong);
	for (const struct addrinfo *i = a->list; i && a->kind == WIRE_PLAIN; i = i->ai_next) {
		if (!is_loopback(i->ai_addr))
			return because(why, -1, "%s: plain: is for this machine only (127.0.0.1, [::1]); use tls: between machines",
				       text);
	}
	return 0;
}

static void forget(struct address *a)
{
	if (a->list && a->kind != WIRE_UNIX)
		freeaddrinfo(a->list);
	a->list = NULL;
}

/*
 * Parse into @a, which then points into itself. @open: tls: or no prefix. Call forget() in any case.
 */
static int parse(const char *text, bool own, bool open, struct wire_tls *tls, struct address *a,
		 char *why)
{
	const char *rest;

	*a = (struct address){ .kind = open ? WIRE_TLS : WIRE_UNIX };
	while (a->kind < WIRE_OPEN && strncmp(text, prefixes[a->kind], strlen(prefixes[a->kind])))
		a->kind++;
	if (a->kind == WIRE_OPEN && !open)
		return because(why, -1, "\"%.200s\" is not unix:/PATH, tls:HOST:PORT or plain:HOST:PORT",
			       text);
	if (a->kind == WIRE_TLS && !tls)
		return because(why, -1, "%.200s: tls: requires a certificate and its key",
			       text);
	rest = text + strlen(prefixes[a->kind]);
	return a->kind == WIRE_UNIX ? parse_path(rest, a, why) : resolve(text, rest, own, a, why);
}

/* "tls:10.0.0.7:5000"; an IPv4 address inside an IPv6 address is shown as IPv4. */
static void name_address(enum wire_kind kind, const struct sockaddr_storage *at, char *to,
			 size_t size)
{
	char host[64], port[12];
	const char *text = host;

	if (getnameinfo((const struct sockaddr *)at, sizeof(*at), host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV)) {
		snprintf(to, size, "%s?", prefixes[kind]);
		return;
	}
	if (!strncmp(host, "::ffff:", 7) && strchr(host, '.'))
		text += 7;
	snprintf(to, size, strchr(text, ':') ? "%s[%s]:%s" : "%s%s:%s", prefixes[kind], text, port);
}

/* --- listeners --- */

/* Remove the socket of a process that has died. */
static int clear_path(const struct address *a, char *why)
{
	const char *path = a->local.sun_path;
	struct stat st;
	int fd, error;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : because(why, -1, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return because(why, -1, "%s exists and is no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	error = fd < 0 || connect(fd, a->list->ai_addr, a->list->ai_addrlen) ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (!error || error == EAGAIN)
		return because(why, -1, "%s: another process listens there already", path);
	if (error == ECONNREFUSED && !unlink(path))
		return 0;
	return because(why, -1, "%s exists and cannot be replaced: %s", path,
		       strerror(error == ECONNREFUSED ? errno : error));
}

/* A socket, or -errno. An IPv6 socket for all addresses takes IPv4, too. */
static int listen_at(const struct addrinfo *at)
{
	const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int on = 1, off = 0;
	/* a UNIX socket has 0660 from the first moment on; the mask is the only thread's */
	const mode_t mask = umask(0117);
	int error = 0;

	if (fd >= 0 && at->ai_family != AF_UNIX)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd >= 0 && at->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, BACKLOG))
		error = errno;
	umask(mask);
	if (error && fd >= 0)
		close(fd);
	return error ? -error : fd;
}

/* Try the other family only if this one is missing, not if another process uses the port. */
static int listen_at_one(const struct address *a)
{
	const int first = a->kind == WIRE_TLS ? AF_INET6 : AF_INET;
	int fd = -ENOENT;

	for (int other = 0; other < 2; other++) {
		for (const struct addrinfo *i = a->list; i; i = i->ai_next) {
			const bool is_other = i->ai_family != first;

			if (is_other == other)
				fd = listen_at(i);
			if (fd >= 0 || fd == -EADDRINUSE)
				return fd;
		}
	}
	return fd;
}

static int listening(const struct address *a, struct wire_listener *listener, char *why)
{
	struct sockaddr_storage at = { 0 };
	socklen_t size = sizeof(at);
	struct stat st;

	if (a->kind == WIRE_UNIX && clear_path(a, why))
		return -1;
	listener->fd = listen_at_one(a);
	if (listener->fd < 0)
		return because(why, -1, "cannot listen at %s: %s", listener->at,
			       strerror(-listener->fd));
	if (a->kind == WIRE_UNIX && !lstat(a->local.sun_path, &st)) {
		listener->dev = st.st_dev;
		listener->ino = st.st_ino;
	}
	if (a->kind != WIRE_UNIX && !getsockname(listener->fd, (struct sockaddr *)&at, &size))
		name_address(a->kind, &at, listener->at, sizeof(listener->at));
	return 0;
}

static int begin_listening(const char *at, bool open, struct wire_tls *tls,
			   struct wire_listener *listener, char *why)
{
	struct address a;
	int error;

	*listener = (struct wire_listener){ .fd = -1, .tls = tls };
	error = parse(at, true, open, tls, &a, why);
	listener->kind = a.kind;
	snprintf(listener->at, sizeof(listener->at), "%s", at);
	if (!error)
		error = listening(&a, listener, why);
	forget(&a);
	return error;
}

int wire_listen(const char *at, struct wire_tls *tls, struct wire_listener *listener, char *why)
{
	return begin_listening(at, false, tls, listener, why);
}

int wire_listen_open(const char *at, struct wire_tls *tls, struct wire_listener *listener,
		     char *why)
{
	return begin_listening(at, true, tls, listener, why);
}

void wire_unlisten(struct wire_listener *listener)
{
	const char *path = listener->at + strlen(prefixes[WIRE_UNIX]);
	struct stat st;

	if (listener->fd < 0)
		return;
	/* while the socket is open, no other file gets its inode number */
	if (listener->kind == WIRE_UNIX && !lstat(path, &st) && st.st_dev == listener->dev &&
	    st.st_ino == listener->ino)
		unlink(path);
	close(listener->fd);
	listener->fd = -1;
}

/* --- how links begin and end --- */

static struct wire *new_wire(enum wire_kind kind, const char *name, char *why)
{
	struct wire *w = calloc(1, sizeof(*w));

	if (!w) {
		because(why, -1, "%s: no memory for a link", name);
		return NULL;
	}
	w->fd = -1;
	w->most = WIRE_MOST;
	w->begin_end = now_ns() + WIRE_BEGIN_MS * MS;
	w->peer.kind = kind;
	snprintf(w->peer.name, sizeof(w->peer.name), "%s", name);
	return w;
}

static void release(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}

/* Received data stay: the caller may be reading them. */
__attribute__((format(printf, 2, 3)))
static void over(struct wire *w, const char *format, ...)
{
	char reason[WHY_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	because(w->said, -1, "%s: %s", w->peer.name, reason);
	w->state = OVER;
	release(&w->out);
}

static void add_name(struct wire *w, const char *what, const char *name)
{
	const size_t n = strlen(w->peer.name);

	if (name[0] && n + strlen(what) + strlen(name) < sizeof(w->peer.name))
		sprintf(w->peer.name + n, "%s%s", what, name);
}

static void name_user(struct wire *w)
{
	struct ucred who;
	socklen_t size = sizeof(who);
	const struct passwd *entry;
	char number[16];

	if (getsockopt(w->fd, SOL_SOCKET, SO_PEERCRED, &who, &size)) {
		over(w, "the user of the other side is not known: %s", strerror(errno));
		return;
	}
	w->peer.uid = w->peer.origin = who.uid;
	w->peer.gid = who.gid;
	w->peer.pid = who.pid;
	entry = getpwuid(who.uid);
	snprintf(number, sizeof(number), "%u", who.uid);
	add_name(w, ", user ", entry ? entry->pw_name : number);
}

/* The socket is connected. */
static void connected(struct wire *w, bool client)
{
	w->state = w->peer.kind == WIRE_TLS ? SHAKING : READY;
	if (w->peer.kind == WIRE_UNIX)
		name_user(w);
	if (w->peer.kind != WIRE_TLS)
		return;
	w->tls = tls_begin(w->keys, w->fd, client ? w->name : NULL);
	if (!w->tls)
		over(w, "no memory for TLS");
}

/* For IPv6 only the network, since a machine may use any address in it. */
static uint64_t origin_of(const struct sockaddr_storage *at)
{
	const struct sockaddr_in *v4 = (const void *)at;
	const struct sockaddr_in6 *v6 = (const void *)at;
	uint64_t origin = 0;

	if (at->ss_family == AF_INET)
		memcpy(&origin, &v4->sin_addr, 4);
	else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		memcpy(&origin, v6->sin6_addr.s6_addr + 12, 4);
	else
		memcpy(&origin, &v6->sin6_addr, sizeof(origin));
	return origin;
}

static int accepted(struct wire_listener *listener, int fd, struct wire **wire, char *why)
{
	struct sockaddr_storage at = { 0 };
	socklen_t size = sizeof(at);
	char name[sizeof(listener->at)];

	memcpy(name, listener->at, sizeof(name));
	if (listener->kind != WIRE_UNIX) {
		if (getpeername(fd, (struct sockaddr *)&at, &size))
			return because(why, -1, "%s: %s", listener->at, strerror(errno));
		name_address(listener->kind, &at, name, sizeof(name));
		host_tune(fd);
	}
	if (listener->kind == WIRE_PLAIN && !is_loopback((const struct sockaddr *)&at))
		return because(why, -1, "%s is refused: plain: is for this machine only; use tls: between machines",
			       name);
	*wire = new_wire(listener->kind, name, why);
	if (!*wire)
		return -1;
	(*wire)->fd = fd;
	(*wire)->keys = listener->tls;
	if (listener->kind != WIRE_UNIX)
		(*wire)->peer.origin = origin_of(&at);
	connected(*wire, false);
	return 0;
}

int wire_accept(struct wire_listener *listener, struct wire **wire, char *why)
{
	const int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*wire = NULL;
	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return 0;
	if (fd < 0)
		return because(why, -1, "%s: accept: %s", listener->at, strerror(errno));
	if (!accepted(listener, fd, wire, why))
		return 1;
	close(fd);
	return -1;
}

static void shake(struct wire *w)
{
	char reason[WHY_SIZE];
	const int result = tls_shake(w->tls, &w->peer, reason);

	if (result < 0)
		over(w, "%s", reason);
	if (result <= 0)
		return;
	w->state = READY;
	add_name(w, ", ", w->peer.common_name[0] || !w->peer.dns_names ? w->peer.common_name :
							    w->peer.dns[0]);
}

/* TCP can connect to itself, if the port is in the kernel's dynamic range. */
static bool is_itself(int fd)
{
	struct sockaddr_storage own = { 0 }, other = { 0 };
	socklen_t size = sizeof(own), other_size = sizeof(other);

	return !getsockname(fd, (struct sockaddr *)&own, &size) &&
	       !getpeername(fd, (struct sockaddr *)&other, &other_size) &&
	       !memcmp(&own, &other, sizeof(own));
}

/* 0: connected; -EINPROGRESS; or another negative errno. */
static int outcome(int fd)
{
	struct pollfd pollfd = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&pollfd, 1, 0) <= 0)
		return -EINPROGRESS;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		return -errno;
	return !error && is_itself(fd) ? -ECONNREFUSED : -error;
}

/* The remaining addresses share the remaining time. */
static int try_next(struct wire *w)
{
	const struct addrinfo *at = w->next;
	const uint64_t now = now_ns();
	unsigned int left = 1;

	for (const struct addrinfo *i = at->ai_next; i; i = i->ai_next)
		left++;
	w->try_end = now + (w->begin_end > now ? (w->begin_end - now) / left : 0);
	w->next = at->ai_next;
	if (w->fd >= 0)
		close(w->fd);
	w->fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (w->fd < 0)
		return -errno;
	if (at->ai_family != AF_UNIX)
		host_tune(w->fd);
	if (!connect(w->fd, at->ai_addr, at->ai_addrlen) || errno == EINPROGRESS)
		return outcome(w->fd);
	return -errno;
}

static void go_connect(struct wire *w)
{
	int error = w->fd < 0 ? -ENOENT : outcome(w->fd);

	if (error == -EINPROGRESS && now_ns() >= w->try_end)
		error = -ETIMEDOUT;
	while (error && error != -EINPROGRESS && w->next && now_ns() < w->begin_end)
		error = try_next(w);
	if (error == -EINPROGRESS)
		return;
	if (!error)
		connected(w, true);
	else if (error == -EAGAIN)
		over(w, "too many connections wait there already");
	else if (error == -ECONNREFUSED || error == -ENOENT)
		over(w, "no process listens there: %s", strerror(-error));
	else
		over(w, "%s", strerror(-error));
}

/* The rest of wire_connect(), after the address was parsed in place. */
static int begin(struct wire *w, const char *to, bool open, const char *name, char *why)
{
	if (parse(to, false, open, w->keys, &w->to, why))
		return -1;
	if (!name)
		name = w->to.host;
	if (w->to.kind == WIRE_TLS && (!name[0] || strlen(name) >= sizeof(w->name)))
		return because(why, -1, "%s: \"%.300s\" cannot be the name in a certificate", to, name);
	snprintf(w->name, sizeof(w->name), "%s", name);
	w->peer.kind = w->to.kind;
	w->next = w->to.list;
	w->begin_end = now_ns() + WIRE_BEGIN_MS * MS;
	go_connect(w);
	/* it is the client who begins, not poll() */
	if (w->state == SHAKING)
		shake(w);
	return w->state == OVER ? because(why, -1, "%s", w->said) : 0;
}

static int begin_connecting(const char *to, bool open, struct wire_tls *tls, const char *name,
			    struct wire **wire, char *why)
{
	*wire = new_wire(WIRE_UNIX, to, why);
	if (!*wire)
		return -1;
	(*wire)->keys = tls;
	if (!begin(*wire, to, open, name, why))
		return 0;
	wire_close(*wire);
	*wire = NULL;
	return -1;
}

int wire_connect(const char *to, struct wire_tls *tls, const char *name, struct wire **wire,
		 char *why)
{
	return begin_connecting(to, false, tls, name, wire, why);
}

int wire_connect_open(const char *to, struct wire_tls *tls, struct wire **wire, char *why)
{
	return begin_connecting(to, true, tls, NULL, wire, why);
}

void wire_close(struct wire *wire)
{
	if (!wire)
		return;
	tls_end(wire->tls);
	if (wire->fd >= 0)
		close(wire->fd);
	forget(&wire->to);
	release(&wire->in);
	release(&wire->out);
	free(wire);
}

void wire_limit(struct wire *wire, uint32_t most)
{
	wire->most = most;
}

/* --- frames --- */

/* Make room for the bytes, in steps that double it. */
static bool make_room(struct bytes *b, size_t size, size_t most)
{
	size_t room = b->room ? b->room : ROOM_FIRST;
	char *more;

	while (room < size)
		room *= 2;
	if (size <= b->room)
		return true;
	if (room > most)
		room = most;
	more = realloc(b->data, room);
	if (!more)
		return false;
	b->data = more;
	b->room = room;
	return true;
}

static void empty(struct bytes *b)
{
	b->have = 0;
	if (b->room > ROOM_KEPT)
		release(b);
}

/* As tls_receive() and tls_transmit(). */
static ssize_t receive_some(struct wire *w, void *to, size_t size, char *reason)
{
	ssize_t n;

	if (w->tls)
		return tls_receive(w->tls, to, size, reason);
	n = recv(w->fd, to, size, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n > 0 ? n : !n ? TLS_END : because(reason, -1, "%s", strerror(errno));
}

static ssize_t transmit_some(struct wire *w, const void *from, size_t size, char *reason)
{
	ssize_t n;

	if (w->tls)
		return tls_transmit(w->tls, from, size, reason);
	n = send(w->fd, from, size, MSG_NOSIGNAL);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	return n >= 0 ? n : because(reason, -1, "%s", strerror(errno));
}

static void flush(struct wire *w)
{
	struct bytes *out = &w->out;
	char reason[WHY_SIZE];
	size_t sent = 0;
	ssize_t n = 1;

	while (sent < out->have && n > 0) {
		n = transmit_some(w, out->data + sent, out->have - sent, reason);
		sent += n > 0 ? n : 0;
	}
	out->have -= sent;
	if (n < 0) {
		/* its own words about that can be among what it sent before */
		w->deaf = true;
		because(w->said, -1, "%s: %s", w->peer.name, reason);
		release(out);
	} else if (!out->have) {
		empty(out);
	} else if (sent) {
		memmove(out->data, out->data + sent, out->have);
	}
}

/* Bytes of the next frame with its length; 0: the length is invalid. */
static size_t wanted(const struct wire *w)
{
	const struct bytes *in = &w->in;
	uint32_t length;

	if (in->have < sizeof(length))
		return sizeof(length);
	memcpy(&length, in->data, sizeof(length));
	length = ntohl(length);
	return length && length <= w->most ? sizeof(length) + length : 0;
}

/* Receive more of the frame, at most doubling the buffer; false: no data yet. */
static bool fill(struct wire *w, size_t want)
{
	struct bytes *in = &w->in;
	char reason[WHY_SIZE];
	size_t room;
	ssize_t n;

	if (!make_room(in, in->have + 2, FRAME_ROOM)) {
		over(w, "no memory for a frame");
		return false;
	}
	room = in->room - 1 - in->have;
	n = receive_some(w, in->data + in->have, room < want - in->have ? room : want - in->have,
			 reason);
	if (n == TLS_END && in->have) {
		over(w, "it has closed the link in the middle of a frame");
	} else if (n == TLS_END) {
		over(w, "it has closed the link");
		w->said[0] = '\0';
	} else if (n < 0) {
		over(w, "%s", reason);
	}
	if (n <= 0)
		return false;
	if (!in->have)
		w->frame_end = now_ns() + WIRE_FRAME_MS * MS;
	in->have += n;
	return true;
}

static bool receive(struct wire *w)
{
	size_t want;

	do {
		want = wanted(w);
		if (!want) {
			over(w, "a frame of 0 bytes or of more than %u: the peer is not a program of rashpa, or only one of the two has tls: in its address",
			     w->most);
			return false;
		}
		if (w->in.have == want)
			return true;
	} while (fill(w, want));
	/* nothing is there any more, and what we say is lost */
	if (w->state == READY && w->deaf)
		w->state = OVER;
	return false;
}

static void too_late(struct wire *w)
{
	if (w->state == SHAKING)
		over(w, "the TLS handshake did not end within %u s", WIRE_BEGIN_MS / 1000);
	else if (w->state == READY)
		over(w, "a frame was not complete within %u s", WIRE_FRAME_MS / 1000);
}

int wire_go(struct wire *wire, char *why)
{
	if (wire->state == CONNECTING)
		go_connect(wire);
	if (wire->state == SHAKING)
		shake(wire);
	if (wire->state == SHAKING && now_ns() >= wire->begin_end)
		too_late(wire);
	if (wire->state == READY)
		flush(wire);
	return wire->state == OVER ? because(why, -1, "%s", wire->said) : wire->state == READY;
}

/* One frame at most, so that other links get their turn: call it again until it returns 0. */
int wire_take(struct wire *wire, const char **frame, size_t *size, char *why)
{
	*frame = NULL;
	*size = 0;
	if (wire->taken)
		empty(&wire->in);
	wire->taken = false;
	if (wire_go(wire, why) > 0 && receive(wire)) {
		wire->in.data[wire->in.have] = '\0';
		wire->taken = true;
		*frame = wire->in.data + sizeof(uint32_t);
		*size = wire->in.have - sizeof(uint32_t);
		return 1;
	}
	if (now_ns() >= wire_deadline(wire))
		too_late(wire);
	return wire->state == OVER ? because(why, -1, "%s", wire->said) : 0;
}

static void append(struct bytes *out, const void *data, size_t size)
{
	memcpy(out->data + out->have, data, size);
	out->have += size;
}

int wire_send(struct wire *wire, const void *frame, size_t size, char *why)
{
	const uint32_t length = htonl(size);
	size_t all;

	if (!size || size > WIRE_MOST)
		return because(why, -1, "%s: a frame has 1 to %u bytes, not %zu", wire->peer.name,
			       WIRE_MOST, size);
	if (wire->state == OVER && !wire->said[0])
		return because(why, -1, "%s: it has closed the link", wire->peer.name);
	if (wire->state == READY)
		flush(wire);
	if (wire->state == OVER || wire->deaf)
		return because(why, -1, "%s", wire->said);
	all = wire->out.have + sizeof(length) + size;
	if (all > (size_t)wire->most * (WIRE_QUEUE / WIRE_MOST)) {
		over(wire, "it does not read: %zu bytes wait for it", wire->out.have);
	} else if (!make_room(&wire->out, all, WIRE_QUEUE)) {
		over(wire, "no memory for frames to send");
	} else {
		append(&wire->out, &length, sizeof(length));
		append(&wire->out, frame, size);
	}
	if (wire->state == READY)
		flush(wire);
	return wire->state == OVER || wire->deaf ? because(why, -1, "%s", wire->said) : 0;
}

/* --- questions of the caller's loop --- */

int wire_fd(const struct wire *wire)
{
	return wire->fd;
}

short wire_events(const struct wire *wire)
{
	switch (wire->state) {
	case CONNECTING:
		return POLLOUT;
	case SHAKING:
		return tls_writes(wire->tls) ? POLLOUT : POLLIN;
	case READY:
		return POLLIN | (wire->out.have ? POLLOUT : 0);
	default:
		return 0;
	}
}

/* The end of a link, or a failure to send, is reported at once. */
uint64_t wire_deadline(const struct wire *wire)
{
	switch (wire->state) {
	case CONNECTING:
		return wire->try_end;
	case SHAKING:
		return wire->begin_end;
	case READY:
		if (wire->deaf)
			return 0;
		return wire->in.have && !wire->taken ? wire->frame_end : UINT64_MAX;
	default:
		return 0;
	}
}

bool wire_pending(const struct wire *wire)
{
	return wire->state == READY && wire->tls && tls_pending(wire->tls);
}

bool wire_ready(const struct wire *wire)
{
	return wire->state == READY;
}

const struct wire_peer *wire_other_end(const struct wire *wire)
{
	return &wire->peer;
}

bool wire_sent(const struct wire *wire)
{
	return !wire->out.have && !wire->deaf && wire->state == READY;
}
