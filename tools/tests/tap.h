/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Results of self-tests, as TAP. Each name begins with its id, "id: sentence"; a repeated id gets a
 * number. TAP_LINKAGE: empty if several files of a program report results. TAP_WHY: the reason of a
 * failure.
 */
#ifndef TOOLS_TESTS_TAP_H
#define TOOLS_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifndef TAP_LINKAGE
#define TAP_LINKAGE static
#endif

static unsigned int tests, failures;

/* how often this id occurred */
static unsigned int tap_times(const char *id, size_t length)
{
	static struct {
		char id[64];
		unsigned int times;
	} seen[1024];
	size_t i = 0;

	if (length >= sizeof(seen[0].id))
		return 1;
	while (i < 1023 && seen[i].times && (strncmp(seen[i].id, id, length) || seen[i].id[length]))
		i++;
	memcpy(seen[i].id, id, length);
	return ++seen[i].times;
}

__attribute__((format(printf, 2, 0)))
static void tap_name(bool good, const char *format, va_list args)
{
	char name[1024];
	unsigned int times;
	size_t length;

	vsnprintf(name, sizeof(name), format, args);
	length = strcspn(name, ":");
	times = tap_times(name, length);
	printf("%sok %u - %.*s", good ? "" : "not ", ++tests, (int)length, name);
	if (times > 1)
		printf(".%u", times);
	puts(name + length);
}

__attribute__((format(printf, 2, 3)))
TAP_LINKAGE bool ok(bool good, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	tap_name(good, format, args);
	va_end(args);
	failures += !good;
#ifdef TAP_WHY
	if (!good)
		printf("# %s\n", TAP_WHY);
#endif
	return good;
}

/* The exit status of the program. */
static int tap_end(void)
{
	printf("1..%u\n", tests);
	return failures ? 1 : 0;
}

#endif /* TOOLS_TESTS_TAP_H */
