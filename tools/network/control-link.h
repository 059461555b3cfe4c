/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The control link of a stream over the network: messages in JSON, each behind its length, over
 * TCP. It never carries images. What comes is not believed: sizes, times and numbers are limited.
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
#define LINK_MOST	(4u << 20)	/* bytes of a message: two thousand pairs have 300 KiB */
#define LINK_AT_ONCE	64		/* messages to take before others have their turn */

struct link {
	int fd;				/* -1: closed */
	char peer[80];			/* address and port */
	pthread_mutex_t sending;	/* a message in one piece, whichever thread sends it */
	char *data;			/* of the message that comes */
	size_t have, room;
};

#define LINK_NONE { .fd = -1, .sending = PTHREAD_MUTEX_INITIALIZER }

/*
 * "HOST:PORT", "[ADDRESS]:PORT". All with a sentence in why[WHY_SIZE]; 0, or -1; -2: nobody listens
 * there.
 */
int link_connect(struct link *link, const char *to, int timeout_ms, char *why);
/* own: "PORT", "ADDRESS:PORT" of this machine */
int link_resolve(const char *to, bool own, struct sockaddr_storage *at, socklen_t *size, char *why);
/* "PORT", "ADDRESS:PORT": a socket, or -1. */
int link_listen(const char *at, char *why);
int link_accept(int listener, struct link *link, char *why);
void link_close(struct link *link);
/* from is closed then, and what came and was not taken goes with it; nobody sends meanwhile */
void link_move(struct link *to, struct link *from);

/* The whole message, within the time; it is freed. */
int link_send(struct link *link, struct json_object *message, char *why);

/*
 * A message, if one is there: 1. 0: not yet, wait until fd can be read. -1: the other side has
 * gone, or sends what is none.
 */
int link_take(struct link *link, struct json_object **message, char *why);

/* The other side has gone, whatever it said before, which is not taken. */
bool link_gone(struct link *link, char *why);

/*
 * The next one, of this kind; others: those of other kinds may come before.
 * {"kind": "error", "text": ...} becomes why. 0 or -1; -2: the time is over.
 */
int link_await(struct link *link, const char *kind, bool others, int timeout_ms,
	       const volatile bool *stop, struct json_object **message, char *why);

struct json_object *link_message(const char *kind);
const char *link_kind(struct json_object *message);

/*
 * Members that have to be there. false: why tells which is missing or out of range. Text has no
 * control characters: it may go to a terminal.
 */
bool link_number(struct json_object *from, const char *key, uint64_t least, uint64_t most,
		 uint64_t *value, char *why);
bool link_u32(struct json_object *from, const char *key, uint32_t least, uint32_t most,
	      uint32_t *value, char *why);
bool link_text(struct json_object *from, const char *key, char *to, size_t size, char *why);
/* an array of so many elements */
bool link_array(struct json_object *from, const char *key, size_t least, size_t most,
		struct json_object **array, char *why);
/* a number of it */
bool link_element(struct json_object *array, const char *key, size_t index, uint64_t least,
		  uint64_t most, uint64_t *value, char *why);

#endif /* CONTROL_LINK_H */
