/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control link of a stream over the network: JSON messages in frames of wire.h. It never carries
 * images. Received data are checked: sizes, times and numbers have limits.
 */
#ifndef CONTROL_LINK_H
#define CONTROL_LINK_H

#include <json-c/json.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "link/wire.h"

#define LINK_VERSION	1
#define LINK_AT_ONCE	64		/* messages to take from a link in a row */

struct link {
	struct wire *wire;	/* NULL: closed */
	char peer[160];		/* address, port, and with TLS the name in the certificate */
	pthread_mutex_t lock;	/* wire: different threads send and take messages */
};

#define LINK_NONE { .lock = PTHREAD_MUTEX_INITIALIZER }

/*
 * Connect to "HOST:PORT" or "[ADDRESS]:PORT", or with "tls:" before it if @tls has our keys. All
 * functions leave a sentence in why[WHY_SIZE] on failure. 0 or -1.
 */
int link_connect(struct link *link, const char *to, struct wire_tls *tls, char *why);
/* own: accept "PORT" and "ADDRESS:PORT" of this machine. "tls:" is skipped. */
int link_resolve(const char *to, bool own, struct sockaddr_storage *at, socklen_t *size, char *why);
/* A link of a listener of wire_listen_open(). Its handshake ends before its first message. */
int link_accept(struct wire_listener *listener, struct link *link, char *why);
void link_close(struct link *link);
/* Moves the wire, and leaves "from" closed. No thread may use it meanwhile. */
void link_move(struct link *to, struct link *from);
/* What to wait for before link_take(). */
struct pollfd link_poll(const struct link *link);

/* Queues the message, which it frees, and sends as much as possible at once. 0, or -1. */
int link_send(struct link *link, struct json_object *message, char *why);

/*
 * Take a message, and send what waits. 1; 0: not complete yet, wait for link_poll(); -1: the other
 * side has closed the link, or sent an invalid message.
 */
int link_take(struct link *link, struct json_object **message, char *why);

/* Has the other side closed the link? Does not take messages that it sent before. */
bool link_gone(struct link *link, char *why);

/*
 * Wait for a message of this kind; others: skip messages of other kinds before. The text of
 * an error goes into why. 0 or -1; -2: the time is over.
 */
int link_await(struct link *link, const char *kind, bool others, int timeout_ms,
	       const volatile bool *stop, struct json_object **message, char *why);

struct json_object *link_message(const char *kind);
/* An error, and its text; false: it is no error. */
struct json_object *link_error(const char *text);
bool link_error_read(struct json_object *message, char *text, size_t size);
const char *link_kind(struct json_object *message);

/*
 * Read required members. false: why names the member that is missing or out of range. Text contains
 * no control characters, so it may go to a terminal.
 */
bool link_number(struct json_object *from, const char *key, uint64_t least, uint64_t most,
		 uint64_t *value, char *why);
bool link_u32(struct json_object *from, const char *key, uint32_t least, uint32_t most,
	      uint32_t *value, char *why);
bool link_text(struct json_object *from, const char *key, char *to, size_t size, char *why);
/* an array of least to most elements */
bool link_array(struct json_object *from, const char *key, size_t least, size_t most,
		struct json_object **array, char *why);
/* a number in an array */
bool link_element(struct json_object *array, const char *key, size_t index, uint64_t least,
		  uint64_t most, uint64_t *value, char *why);

#endif /* CONTROL_LINK_H */
