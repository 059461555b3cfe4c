/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Text for whoever asks by HTTP, at a socket that systemd has made. */
#ifndef SERVE_H
#define SERVE_H

#include <stddef.h>

/* The socket that listens (LISTEN_FDS of sd_listen_fds(3)), or -1 after a message. */
int serve_socket(void);

/*
 * One connection of @listener is taken, if there is one, asked, and answered with @size bytes of
 * @text; NULL: there is none, which is told. Whoever asks has two seconds, and keeps others waiting
 * as long. What he does wrong is told to him alone.
 */
void serve(int listener, const char *text, size_t size);

#endif /* SERVE_H */
