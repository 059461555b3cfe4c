/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The link of a manager and a daemon, and of the ends of a stream: frames of bytes, each after its length (32 bits, most
 * significant byte first). Over a UNIX socket, or TLS with a certificate on both sides, or, on
 * request, plain TCP on loopback. No call waits. Received data are not trusted: sizes, counts and
 * times are limited. One thread. The addresses are unix:PATH, tls:HOST:PORT and plain:HOST:PORT.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WIRE_MOST	(1u << 20)	/* bytes of a frame */
#define WIRE_QUEUE	(4u << 20)	/* bytes that wait for a peer that does not read */
#define WIRE_BEGIN_MS	10000		/* to connect, and to shake hands */
#define WIRE_FRAME_MS	10000		/* from a frame's first byte to its last one */

enum wire_kind { WIRE_UNIX, WIRE_PLAIN, WIRE_TLS, WIRE_OPEN };

/* Identity of the other side. Texts from a certificate have no control characters. */
struct wire_peer {
	enum wire_kind kind;
	/* for messages: "unix:/run/x, user daq", "tls:10.0.0.7:51812, manager.lab" */
	char name[160];
	uint64_t origin;	/* the same for links of one user (unix), or of one machine */
	uid_t uid;		/* unix */
	gid_t gid;		/* unix */
	pid_t pid;		/* unix */
	char common_name[128];	/* tls; "": no name */
	char dns[8][128];	/* tls: the dns_names alternative names of the certificate */
	unsigned int dns_names;
};

/* Keys of this side, read once. NULL: no TLS. */
struct wire_tls;

struct wire_files {
	const char *authority;		/* PEM: authority that signs certificates of the others */
	const char *certificate;	/* PEM: our certificate, with those up to an authority */
	const char *key;		/* PEM: its key; its group may read it, others may not */
	const char *revoked;		/* PEM: CRL, or NULL */
};

/* 0, or -1 and a sentence in why[WHY_SIZE], like all functions with why */
int wire_tls_open(const struct wire_files *files, struct wire_tls **tls, char *why);
/* after the links and the listeners that use it */
void wire_tls_close(struct wire_tls *tls);

/*
 * Addresses: "unix:/PATH"; "tls:HOST:PORT"; "plain:HOST:PORT": only of loopback. IPv6 in brackets.
 * A listener of tls and plain may leave the host out: "tls:PORT" listens everywhere,
 * "plain:PORT" on loopback.
 */
struct wire_listener {
	int fd;			/* for poll(): POLLIN */
	enum wire_kind kind;
	char at[320];		/* with the port that the kernel chose, if it was 0 */
	struct wire_tls *tls;
	dev_t dev;		/* identity of the UNIX socket: */
	ino_t ino;		/* another one at this path is not removed */
};

/*
 * A UNIX socket gets mode 0660. An existing socket without a listener is replaced. An existing
 * file that is not a socket is not touched.
 */
int wire_listen(const char *at, struct wire_tls *tls, struct wire_listener *listener, char *why);
/*
 * Likewise at "tls:HOST:PORT" or "HOST:PORT", for links that carry no commands: without tls: any
 * machine may connect.
 */
int wire_listen_open(const char *at, struct wire_tls *tls, struct wire_listener *listener,
		     char *why);
/* The UNIX socket goes, too, if it is still ours. */
void wire_unlisten(struct wire_listener *listener);

struct wire;

/*
 * 1: a link, which is not yet ready with TLS. 0: no connection waits. -1: why; the listener goes
 * on. If this process has no more files, poll() returns at once as long as a connection waits.
 */
int wire_accept(struct wire_listener *listener, struct wire **wire, char *why);
/*
 * Begins to connect; wire_take() reports the result, if it is not known at once. Only the lookup of
 * a HOST that is not an address may take time. name: name in the other's certificate, if it differs
 * from the HOST of the address, or NULL.
 */
int wire_connect(const char *to, struct wire_tls *tls, const char *name, struct wire **wire,
		 char *why);
/* Likewise to "tls:HOST:PORT" or "HOST:PORT". */
int wire_connect_open(const char *to, struct wire_tls *tls, struct wire **wire, char *why);
void wire_close(struct wire *wire);
/*
 * Limit frames of the other side to @most bytes, and the data that wait for it to four times as
 * many. The limit is WIRE_MOST at first; a new one holds from the next frame on.
 */
void wire_limit(struct wire *wire, uint32_t most);

/*
 * For poll(): ask before each one, the file changes while connecting. And when to call wire_take()
 * at the latest (ns of CLOCK_MONOTONIC; UINT64_MAX: never).
 */
int wire_fd(const struct wire *wire);
short wire_events(const struct wire *wire);
uint64_t wire_deadline(const struct wire *wire);
/* poll() does not see data that TLS has already read: do not wait, call wire_take(). */
bool wire_pending(const struct wire *wire);

/*
 * Complete after the handshake; before, only kind and address are valid. With TLS 1.3 a client is
 * ready before the server has checked its certificate: a refusal comes with the first wire_take().
 */
bool wire_ready(const struct wire *wire);
const struct wire_peer *wire_other_end(const struct wire *wire);

/* Goes on with connecting, handshake and sending. 1: ready. 0: not yet. -1: as wire_take(). */
int wire_go(struct wire *wire, char *why);

/*
 * Goes on with all work: connecting, handshake, sending, receiving. 1: a frame of @size bytes, with
 * a 0 byte appended, valid until the next wire_take(). 0: no frame yet. -1: the link is over, and
 * why: "" if the other side closed it between two frames. After 1 call it again until it returns 0,
 * or ask wire_pending(), before the next poll().
 */
int wire_take(struct wire *wire, const char **frame, size_t *size, char *why);

/*
 * Queues the frame, and sends as much as possible at once. -1: the frame is empty or too long, or
 * the link is over, for example because too much data wait.
 */
int wire_send(struct wire *wire, const void *frame, size_t size, char *why);
/* all was given to the kernel */
bool wire_sent(const struct wire *wire);

#endif /* WIRE_H */
