// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/shown.h"

int because(char *why, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, WHY_SIZE, format, args);
	va_end(args);
	return error;
}

/* Escape the sentence, since it may contain names that other users chose. */
static char *sentence(char *to, size_t size, const char *format, va_list args)
{
	char text[WHY_SIZE + 256];

	vsnprintf(text, sizeof(text), format, args);
	return show_text(to, size, text);
}

/* One write, so that lines of tools that share a terminal stay whole. */
static void vsay(const char *format, va_list args)
{
	char text[2 * (WHY_SIZE + 256)];

	fprintf(stderr, "%s: %s\n", program_invocation_short_name,
		sentence(text, sizeof(text), format, args));
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(format, args);
	va_end(args);
}

int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsay(format, args);
	va_end(args);
	return EXIT_FAILED;
}

int flush_output(void)
{
	static bool said;

	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	/* what failed earlier left its mark, but not its reason */
	if (!said)
		say("cannot write standard output: %s", strerror(errno ? errno : EIO));
	said = true;
	return EXIT_FAILED;
}

static void at_exit(void)
{
	if (flush_output())
		_exit(EXIT_FAILED);
}

void check_output_at_exit(void)
{
	atexit(at_exit);
}

unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

void progress_init(struct progress *progress, bool forced)
{
	progress->terminal = isatty(STDERR_FILENO);
	progress->enabled = forced || progress->terminal;
	progress->shown = false;
	progress->every = progress->terminal ? 0.5 : 2;
	progress->last = now_ns() / 1e9;
}

void progress_init_quiet(struct progress *progress)
{
	progress_init(progress, true);
	if (!progress->terminal)
		progress->every = 15;
}

void progress_show(struct progress *progress, const char *format, ...)
{
	char text[2 * (WHY_SIZE + 256)];
	double now = now_ns() / 1e9;
	va_list args;

	if (!progress->enabled || now - progress->last < progress->every)
		return;
	progress->last = now;
	progress->shown = true;
	if (progress->terminal)
		fputs("\r\033[K", stderr);
	va_start(args, format);
	fprintf(stderr, "%s: %s", program_invocation_short_name,
		sentence(text, sizeof(text), format, args));
	va_end(args);
	if (!progress->terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->shown && progress->terminal)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
