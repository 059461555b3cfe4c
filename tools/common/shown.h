/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Texts of another user, a file, a board or a peer. One convention for all of them: each byte of a
 * character that a terminal would not print, and each byte that is no UTF-8, becomes \xNN. A backslash
 * stays as it is.
 *
 * say(), fail(), progress_show() and screen_line() do so with all that they print, json-out.h with JSON.
 * SHOWN() is for printf() and its like; selftests/static/shown.py finds the places without it.
 */
#ifndef SHOWN_H
#define SHOWN_H

#include <stdbool.h>
#include <stddef.h>

#define SHOWN_SIZE	1024

/**
 * show_text() - a text as it can be printed
 * @to: becomes that, as much as fits
 * @size: bytes of @to, 1 or more
 * @text: the text of another; not @to
 *
 * Return: @to.
 */
char *show_text(char *to, size_t size, const char *text);

/* For an argument of printf(): SHOWN(holding->comm). It lasts as long as the block around it. */
#define SHOWN(text)	show_text((char [SHOWN_SIZE]) { "" }, SHOWN_SIZE, (text))

/* Is it shown as it is? */
bool is_shown_as_is(const char *text);

/**
 * shown_next() - one character of a text
 * @text: begins with it
 * @code: becomes its number in Unicode, or the byte, if that is no UTF-8
 * @plain: becomes whether it can be printed
 *
 * Return: its bytes; 0: the first byte is no UTF-8.
 */
size_t shown_next(const char *text, unsigned int *code, bool *plain);

#endif /* SHOWN_H */
