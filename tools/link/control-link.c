// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/control-link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/host.h"
#include "common/say.h"
#include "common/shown.h"

#define SEND_MS		20000		/* a peer that takes no data for this time has failed */
#define DEPTH		8		/* maximum nesting of JSON */
#define ERROR		"error"
#define TICK_MS		100

/* --- addresses --- */

static int resolve(const char *text, bool passive, struct addrinfo **list, char *why)
{
	const char *wrong = host_resolve(text, passive, list);

	return wrong ? because(why, -1, "\"%s\": %s", text, wrong) : 0;
}

int link_resolve(const char *to, bool own, struct sockaddr_storage *at, socklen_t *size, char *why)
{
	struct addrinfo *list;

	if (resolve(to, own, &list, why))
		return -1;
	memcpy(at, list->ai_addr, list->ai_addrlen);
	*size = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static void name_peer(struct link *l)
{
	struct sockaddr_storage peer;
	socklen_t size = sizeof(peer);
	char host[64], port[12];

	snprintf(l->peer, sizeof(l->peer), "?");
	if (!getpeername(l->fd, (struct sockaddr *)&peer, &size) &&
	    !getnameinfo((struct sockaddr *)&peer, size, host, sizeof(host), port, sizeof(port),
			 NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(l->peer, sizeof(l->peer), "%s:%s", host, port);
}

static bool ready(int fd, short events, int timeout_ms)
{
	struct pollfd pollfd = { .fd = fd, .events = events };

	return poll(&pollfd, 1, timeout_ms) > 0;
}

/* 0 or -errno */
static int connect_to(int fd, const struct addrinfo *to, int timeout_ms)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (!connect(fd, to->ai_addr, to->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (!ready(fd, POLLOUT, timeout_ms))
		return -ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) ? -errno : -error;
}

int link_connect(struct link *l, const char *to, int timeout_ms, char *why)
{
	struct addrinfo *list;
	int error = ENOENT;

	*l = (struct link)LINK_NONE;
	if (resolve(to, false, &list, why))
		return -1;
	for (const struct addrinfo *a = list; a && l->fd < 0; a = a->ai_next) {
		l->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		error = l->fd < 0 ? errno : -connect_to(l->fd, a, timeout_ms);
		if (error)
			link_close(l);
	}
	freeaddrinfo(list);
	if (error)
		return because(why, error == ECONNREFUSED ? -2 : -1, "%s: %s%s", to,
			       strerror(error), error == ECONNREFUSED ?
			       ": start the receiver first (romulu --listen)" : "");
	host_tune(l->fd);
	name_peer(l);
	return 0;
}

int link_listen(const char *at, char *why)
{
	struct addrinfo *list;
	int fd = -1, error = ENOENT;
	const int on = 1;

	if (resolve(at, true, &list, why))
		return -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0) {
			error = errno;
			continue;
		}
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 64)) {
			error = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd < 0 ? because(why, -1, "cannot listen at %s: %s", at, strerror(error)) : fd;
}

int link_accept(int listener, struct link *l, char *why)
{
	*l = (struct link)LINK_NONE;
	l->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (l->fd < 0)
		return because(why, -1, "accept: %s", strerror(errno));
	host_tune(l->fd);
	name_peer(l);
	return 0;
}

void link_close(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	free(l->data);
	*l = (struct link)LINK_NONE;
}

void link_move(struct link *to, struct link *from)
{
	*to = (struct link)LINK_NONE;
	memcpy(to->peer, from->peer, sizeof(to->peer));
	to->fd = from->fd;
	to->data = from->data;
	to->have = from->have;
	to->room = from->room;
	*from = (struct link)LINK_NONE;
}

/* --- messages --- */

static int send_all(struct link *l, const void *data, size_t size, char *why)
{
	while (size) {
		ssize_t n = send(l->fd, data, size, MSG_NOSIGNAL);

		if (n > 0) {
			data = (const char *)data + n;
			size -= n;
		} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
			return because(why, -1, "%s: %s", l->peer, strerror(errno));
		} else if (!ready(l->fd, POLLOUT, SEND_MS)) {
			return because(why, -1, "%s: it has taken no data for %d s", l->peer,
				       SEND_MS / 1000);
		}
	}
	return 0;
}

int link_send(struct link *l, struct json_object *message, char *why)
{
	const char *text = json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN);
	const size_t size = strlen(text);
	const uint32_t length = htonl(size);
	int result = -1;

	if (size > LINK_MOST)
		because(why, -1, "%s: a message of %zu bytes is too long: the limit is %u", l->peer, size,
			LINK_MOST);
	pthread_mutex_lock(&l->sending);
	if (size <= LINK_MOST)
		result = send_all(l, &length, sizeof(length), why);
	if (!result)
		result = send_all(l, text, size, why);
	pthread_mutex_unlock(&l->sending);
	json_object_put(message);
	return result;
}

static int parse_message(struct link *l, size_t size, struct json_object **message, char *why)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	enum json_tokener_error error;

	if (!tokener)
		return because(why, -1, "no memory");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	*message = json_tokener_parse_ex(tokener, l->data + sizeof(uint32_t), size);
	error = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	if (json_object_is_type(*message, json_type_object) && link_kind(*message))
		return 1;
	json_object_put(*message);
	*message = NULL;
	return because(why, -1, "%s: the message is not valid: %s", l->peer,
		       error ? json_tokener_error_desc(error) : "it has no kind");
}

/* Read available data, until there are "size" bytes. 1; 0: not all yet; -1 and why. */
static int fill(struct link *l, size_t size, char *why)
{
	char *more;

	if (l->room < size) {
		more = realloc(l->data, size);
		if (!more)
			return because(why, -1, "%s: no memory for a message of %zu bytes", l->peer,
				       size);
		l->data = more;
		l->room = size;
	}
	while (l->have < size) {
		ssize_t n = recv(l->fd, l->data + l->have, size - l->have, 0);

		if (n > 0)
			l->have += n;
		else if (!n)
			return because(why, -1, "%s: it has closed the link", l->peer);
		else if (errno == EAGAIN)
			return 0;
		else if (errno != EINTR)
			return because(why, -1, "%s: %s", l->peer, strerror(errno));
	}
	return 1;
}

int link_take(struct link *l, struct json_object **message, char *why)
{
	uint32_t length;
	int result = fill(l, sizeof(length), why);

	*message = NULL;
	if (result <= 0)
		return result;
	memcpy(&length, l->data, sizeof(length));
	length = ntohl(length);
	if (!length || length > LINK_MOST)
		return because(why, -1, "%s: a message of %" PRIu32 " bytes: the peer is not a program of rashpa",
			       l->peer, length);
	result = fill(l, sizeof(length) + length, why);
	if (result <= 0)
		return result;
	l->have = 0;
	return parse_message(l, length, message, why);
}

bool link_gone(struct link *l, char *why)
{
	struct pollfd pollfd = { .fd = l->fd, .events = POLLRDHUP };

	if (poll(&pollfd, 1, 0) <= 0)
		return false;
	because(why, -1, "%s: it has closed the link", l->peer);
	return true;
}

/* Fail with the text of an error message, or because of a message of another kind. */
static int unexpected(struct link *l, const char *kind, struct json_object *message, char *why)
{
	char text[512];

	if (link_error_read(message, text, sizeof(text)))
		because(why, -1, "%s: %s", l->peer, text);
	else
		because(why, -1, "%s: it sent \"%.40s\" instead of \"%s\"", l->peer,
			link_kind(message), kind);
	json_object_put(message);
	return -1;
}

int link_await(struct link *l, const char *kind, bool others, int timeout_ms,
	       const volatile bool *stop, struct json_object **message, char *why)
{
	const uint64_t end = now_ns() + timeout_ms * UINT64_C(1000000);
	struct json_object *one;
	int result;

	*message = NULL;
	for (;;) {
		result = link_take(l, &one, why);
		if (result < 0)
			return -1;
		if (result && !strcmp(link_kind(one), kind)) {
			*message = one;
			return 0;
		}
		if (result && others && strcmp(link_kind(one), ERROR))
			json_object_put(one);
		else if (result)
			return unexpected(l, kind, one, why);
		if (stop && *stop)
			return because(why, -1, "%s: stopped by a signal", l->peer);
		if (now_ns() >= end)
			return because(why, -2, "%s: it sent nothing for %g s", l->peer,
				       timeout_ms / 1e3);
		if (!result)
			ready(l->fd, POLLIN, TICK_MS);
	}
}

struct json_object *link_message(const char *kind)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "kind", json_object_new_string(kind));
	return o;
}

struct json_object *link_error(const char *text)
{
	struct json_object *o = link_message(ERROR);

	json_object_object_add(o, "text", json_object_new_string(text));
	return o;
}

bool link_error_read(struct json_object *message, char *text, size_t size)
{
	char why[WHY_SIZE];

	if (strcmp(link_kind(message), ERROR))
		return false;
	if (!link_text(message, "text", text, size, why))
		snprintf(text, size, "an error");
	return true;
}

/* NULL: it is not a text, or contains characters that a terminal would interpret. */
static const char *plain_text(struct json_object *o)
{
	const char *text = json_object_is_type(o, json_type_string) ? json_object_get_string(o) :
								      NULL;

	/* the length differs if there is a NUL inside */
	if (!text || strlen(text) != (size_t)json_object_get_string_len(o) || !is_shown_as_is(text))
		return NULL;
	return text;
}

const char *link_kind(struct json_object *message)
{
	struct json_object *kind;

	return json_object_object_get_ex(message, "kind", &kind) ? plain_text(kind) : NULL;
}

/* --- members --- */

static bool read_number(struct json_object *o, const char *key, uint64_t least, uint64_t most,
			uint64_t *value, char *why)
{
	if (!json_object_is_type(o, json_type_int) ||
	    (json_object_get_int64(o) < 0 && json_object_get_uint64(o) == 0)) {
		because(why, -1, "\"%s\" is missing, or not a number", key);
		return false;
	}
	*value = json_object_get_uint64(o);
	if (*value >= least && *value <= most)
		return true;
	because(why, -1, "\"%s\": %" PRIu64 " is not %" PRIu64 " to %" PRIu64, key, *value, least,
		most);
	return false;
}

bool link_number(struct json_object *from, const char *key, uint64_t least, uint64_t most,
		 uint64_t *value, char *why)
{
	return read_number(json_object_object_get(from, key), key, least, most, value, why);
}

bool link_element(struct json_object *array, const char *key, size_t index, uint64_t least,
		  uint64_t most, uint64_t *value, char *why)
{
	char name[32];

	snprintf(name, sizeof(name), "%s[%zu]", key, index);
	return read_number(json_object_array_get_idx(array, index), name, least, most, value, why);
}

bool link_u32(struct json_object *from, const char *key, uint32_t least, uint32_t most,
	      uint32_t *value, char *why)
{
	uint64_t wide;

	if (!link_number(from, key, least, most, &wide, why))
		return false;
	*value = wide;
	return true;
}

bool link_text(struct json_object *from, const char *key, char *to, size_t size, char *why)
{
	struct json_object *o = json_object_object_get(from, key);
	const char *text = plain_text(o);

	if (!text || (size_t)json_object_get_string_len(o) >= size) {
		because(why, -1, "\"%s\" is missing, or not a text of less than %zu bytes", key, size);
		return false;
	}
	memcpy(to, text, json_object_get_string_len(o) + 1);
	return true;
}

bool link_array(struct json_object *from, const char *key, size_t least, size_t most,
		struct json_object **array, char *why)
{
	if (!json_object_object_get_ex(from, key, array) ||
	    !json_object_is_type(*array, json_type_array) ||
	    json_object_array_length(*array) < least || json_object_array_length(*array) > most) {
		because(why, -1, "\"%s\" is missing, or not a list of %zu to %zu elements", key, least,
			most);
		return false;
	}
	return true;
}
