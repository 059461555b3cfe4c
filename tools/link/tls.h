/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* TLS below wire.c: the only user of GnuTLS. In sentences, "it" is the other side. */
#ifndef WIRE_TLS_H
#define WIRE_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "link/wire.h"

#define TLS_END	(-2)		/* the other side sends nothing more */

struct tls_link;

/*
 * fd stays the caller's. name: required name in the server's certificate; NULL: we are the server.
 * Returns NULL if memory is short.
 */
struct tls_link *tls_begin(struct wire_tls *tls, int fd, const char *name);
/* Says goodbye, as far as that goes without waiting; NULL is allowed. */
void tls_end(struct tls_link *l);

/* 1: the handshake is done, and peer contains the names. 0: not yet. -1: why. */
int tls_shake(struct tls_link *l, struct wire_peer *peer, char *why);
/* During the handshake: whether we have to send next. */
bool tls_writes(const struct tls_link *l);
bool tls_pending(const struct tls_link *l);

/* Bytes; 0: nothing yet; -1: why; TLS_END. After a failure to send, receiving may still work. */
ssize_t tls_receive(struct tls_link *l, void *to, size_t size, char *why);
/* After 0 the next call begins with the same bytes. */
ssize_t tls_transmit(struct tls_link *l, const void *from, size_t size, char *why);

#endif /* WIRE_TLS_H */
