/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines on a terminal that are written again and again, or one after the other on anything else. */
#ifndef SCREEN_H
#define SCREEN_H

#include <stdbool.h>

enum screen_look { SCREEN_PLAIN, SCREEN_TITLE, SCREEN_BAD };

/* Does nothing if standard output is not a terminal that can do this. */
void screen_begin(void);
/* Lines between these two calls are one picture; the first @titles lines do not scroll. */
void screen_picture(unsigned int titles);
void screen_line(enum screen_look look, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void screen_show(void);

/* For poll() on keys; -1: no keyboard. */
int screen_fd(void);
enum screen_key { SCREEN_NO_KEY, SCREEN_QUIT, SCREEN_AGAIN };
/* Read a key: end, or draw the picture again. Call it until it returns SCREEN_NO_KEY. */
enum screen_key screen_key(void);

/* The terminal as it was. May be called twice. */
void screen_end(void);

#endif /* SCREEN_H */
