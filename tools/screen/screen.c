// SPDX-License-Identifier: LGPL-2.1-or-later
#include "screen/screen.h"

#include <curses.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "common/say.h"
#include "common/shown.h"

static struct screen *terminal;
static int row, titles, above;	/* above: lines that have been scrolled away */
static bool keys;

void screen_begin(void)
{
	static const short colours[] = { [SCREEN_BAD] = COLOR_RED };

	if (!isatty(STDOUT_FILENO))
		return;
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return;
	keys = isatty(STDIN_FILENO);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	if (has_colors() && start_color() == OK && use_default_colors() == OK)
		init_pair(SCREEN_BAD, colours[SCREEN_BAD], -1);
}

void screen_picture(unsigned int lines)
{
	row = 0;
	titles = lines;
	if (terminal)
		erase();
}

void screen_line(enum screen_look look, const char *format, ...)
{
	static const attr_t attributes[] = {
		[SCREEN_PLAIN] = A_NORMAL, [SCREEN_TITLE] = A_BOLD, [SCREEN_BAD] = A_BOLD,
	};
	int at = row < titles ? row : row - above;
	char text[SHOWN_SIZE / 2];
	va_list args;

	row++;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!terminal) {
		puts(SHOWN(text));
	} else if (at >= (row <= titles ? 0 : titles) && at < LINES) {
		attr_set(attributes[look], look == SCREEN_BAD && has_colors() ? look : 0, NULL);
		move(at, 0);
		addstr(SHOWN(text));
	}
}

void screen_show(void)
{
	int most = row - titles - 1;

	above = above > most ? most : above;
	above = above < 0 ? 0 : above;
	if (terminal)
		refresh();
	else
		flush_output(); /* a reader of a pipe sees it now, too */
}

int screen_fd(void)
{
	return terminal && keys ? STDIN_FILENO : -1;
}

enum screen_key screen_key(void)
{
	const int key = terminal ? getch() : ERR;

	switch (key) {
	case ERR:
		return SCREEN_NO_KEY;
	case 'q':
	case 'Q':
		return SCREEN_QUIT;
	case KEY_UP:
	case 'k':
		above -= above > 0;
		break;
	case KEY_DOWN:
	case 'j':
		above++;
		break;
	case KEY_PPAGE:
		above -= LINES;
		break;
	case KEY_NPAGE:
		above += LINES;
		break;
	case KEY_HOME:
		above = 0;
		break;
	default:
		break;
	}
	if (above < 0)
		above = 0;
	return SCREEN_AGAIN;
}

void screen_end(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}
