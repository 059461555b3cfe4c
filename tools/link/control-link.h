/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control link of a stream over the network: JSON messages over TCP, each after its length. It
 * never carries images. Received data are checked: sizes, times and numbers have limits.
 */
#ifndef CONTROL_LINK_H
#define CONTROL_LINK_H

#include <json-c/json.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define LINK_VERSION	1
#define LINK_MOST	(4u << 20)	/* maximum message size; 2000 queue pairs take 300 KiB */
#define LINK_AT_ONCE	64		/* messages to take from a link in a row */

struct link {
	int fd;				/* -1: closed */
	char peer[80];			/* address and port */
	pthread_mutex_t sending;	/* serializes messages of different threads */
	char *data;			/* received part of the next message */
	size_t have, room;
};

#define LINK_NONE { .fd = -1, .sending = PTHREAD_MUTEX_INITIALIZER }

/*
 * Connect to "HOST:PORT" or "[ADDRESS]:PORT". All functions leave a sentence in why[WHY_SIZE] on
 * failure. 0, -1, or -2 (connection refused).
 */
int link_connect(struct link *link, const char *to, int timeout_ms, char *why);
/* own: accept "PORT" and "ADDRESS:PORT" of this machine */
int link_resolve(const char *to, bool own, struct sockaddr_storage *at, socklen_t *size, char *why);
/* Listen at "PORT" or "ADDRESS:PORT". A socket, or -1. */
int link_listen(const char *at, char *why);
int link_accept(int listener, struct link *link, char *why);
void link_close(struct link *link);
/* Moves socket and received data, and leaves "from" closed. No thread may send meanwhile. */
void link_move(struct link *to, struct link *from);

/* Sends the whole message, and frees it. 0, or -1, also if the peer takes no data for 20 s. */
int link_send(struct link *link, struct json_object *message, char *why);

/*
 * Take a message. 1; 0: not complete yet, wait until fd can be read; -1: the other side has closed
 * the link, or sent an invalid message.
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
