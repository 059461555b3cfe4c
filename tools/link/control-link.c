// SPDX-License-Identifier: LGPL-2.1-or-later
#include "link/control-link.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "common/host.h"
#include "common/say.h"
#include "common/shown.h"

#define DEPTH		8		/* maximum nesting of JSON */
#define ERROR		"error"
#define TLS		"tls:"
#define TICK_MS		100

int link_resolve(const char *to, bool own, struct sockaddr_storage *at, socklen_t *size, char *why)
{
	const char *rest = to + (strncmp(to, TLS, strlen(TLS)) ? 0 : strlen(TLS)), *wrong;
	char host[HOST_SIZE];
	struct addrinfo *list;

	wrong = host_resolve(rest, own ? HOST_OWN : HOST_OTHER, host, &list);
	if (wrong)
		return because(why, -1, "%s: %s", to, wrong);
	memcpy(at, list->ai_addr, list->ai_addrlen);
	*size = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

/* --- links --- */

/* TLS adds names to that of the other side. */
static void name_peer(struct link *l)
{
	snprintf(l->peer, sizeof(l->peer), "%s", wire_other_end(l->wire)->name);
}

static int wait_for(const struct link *l)
{
	struct pollfd pollfd = link_poll(l);

	return poll(&pollfd, 1, TICK_MS);
}

int link_connect(struct link *l, const char *to, struct wire_tls *tls, char *why)
{
	int ready;

	*l = (struct link)LINK_NONE;
	if (wire_connect_open(to, tls, &l->wire, why))
		return -1;
	while (!(ready = wire_go(l->wire, why)))
		wait_for(l);
	if (ready < 0)
		link_close(l);
	else
		name_peer(l);
	return ready < 0 ? -1 : 0;
}

int link_accept(struct wire_listener *listener, struct link *l, char *why)
{
	int result;

	*l = (struct link)LINK_NONE;
	result = wire_accept(listener, &l->wire, why);
	if (result <= 0)
		return result ? -1 : because(why, -1, "%s: the caller closed the link at once: see what it says", listener->at);
	name_peer(l);
	return 0;
}

void link_close(struct link *l)
{
	wire_close(l->wire);
	*l = (struct link)LINK_NONE;
}

void link_move(struct link *to, struct link *from)
{
	*to = (struct link)LINK_NONE;
	memcpy(to->peer, from->peer, sizeof(to->peer));
	to->wire = from->wire;
	*from = (struct link)LINK_NONE;
}

struct pollfd link_poll(const struct link *l)
{
	return (struct pollfd) {
		.fd = l->wire ? wire_fd(l->wire) : -1,
		.events = l->wire ? wire_events(l->wire) : 0,
	};
}

/* --- messages --- */

int link_send(struct link *l, struct json_object *message, char *why)
{
	size_t size;
	const char *text = json_object_to_json_string_length(message, JSON_C_TO_STRING_PLAIN, &size);
	int result;

	pthread_mutex_lock(&l->lock);
	result = wire_send(l->wire, text, size, why);
	pthread_mutex_unlock(&l->lock);
	json_object_put(message);
	return result;
}

static int parse_message(const struct link *l, const char *text, size_t size,
			 struct json_object **message, char *why)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	enum json_tokener_error error;

	if (!tokener)
		return because(why, -1, "no memory");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	*message = json_tokener_parse_ex(tokener, text, size);
	error = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	if (json_object_is_type(*message, json_type_object) && link_kind(*message))
		return 1;
	json_object_put(*message);
	*message = NULL;
	return because(why, -1, "%s: the message is not valid: %s", l->peer,
		       error ? json_tokener_error_desc(error) : "it has no kind");
}

int link_take(struct link *l, struct json_object **message, char *why)
{
	const char *text;
	size_t size;
	int result;

	*message = NULL;
	pthread_mutex_lock(&l->lock);
	result = wire_take(l->wire, &text, &size, why);
	if (result > 0) {
		name_peer(l);
		result = parse_message(l, text, size, message, why);
	} else if (result < 0 && !*why) {
		because(why, -1, "%s: it has closed the link", l->peer);
	}
	pthread_mutex_unlock(&l->lock);
	return result;
}

bool link_gone(struct link *l, char *why)
{
	struct pollfd pollfd = { .fd = wire_fd(l->wire), .events = POLLRDHUP };

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
			wait_for(l);
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
