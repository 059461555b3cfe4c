/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Serve a text by HTTP at a socket from systemd. No call waits. One thread. */
#ifndef SERVE_H
#define SERVE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERVE_MOST	256			/* connections at a time */
#define SERVE_FDS	(SERVE_MOST + 1)

struct server;

/* Serve at the inherited socket (LISTEN_FDS of sd_listen_fds(3)); NULL after a message. */
struct server *serve_open(void);

/*
 * Fills fds[SERVE_FDS] for poll(). Returns when to call serve_look() at the latest: ns of
 * CLOCK_MONOTONIC, UINT64_MAX is never.
 */
uint64_t serve_poll(const struct server *server, struct pollfd *fds);

/*
 * Serve all connections, after poll() or before it. Each has two seconds. If all places are taken,
 * the oldest connection without a request is closed, after a tenth of a second. Errors of a client
 * are reported to this client only. True: a request waits for serve_answer().
 */
bool serve_look(struct server *server, const struct pollfd *fds);

/* Send @size bytes of @text to all clients that wait; NULL: answer that there is no text. */
void serve_answer(struct server *server, const char *text, size_t size);

/* Answer clients, for two seconds at most, that there is no text. */
void serve_sorry(struct server *server);

#endif /* SERVE_H */
