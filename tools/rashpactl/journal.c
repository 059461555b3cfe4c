// SPDX-License-Identifier: LGPL-2.1-or-later
#include "rashpactl/journal.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/say.h"

typedef int send_lines(const struct iovec *fields, int n);

/* JOURNAL_STREAM (device:inode) is inherited even by processes with redirected standard error. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[48];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

/* Only systems with systemd have libsystemd, and only they need it: load it on demand. */
static send_lines *find_journal(void)
{
	static send_lines *found;
	static bool looked;
	void *library;

	if (looked)
		return found;
	looked = true;
	library = is_journal() ? dlopen("libsystemd.so.0", RTLD_NOW | RTLD_LOCAL) : NULL;
	if (library)
		*(void **)&found = dlsym(library, "sd_journal_sendv");
	return found;
}

bool journal_line(int priority, const char *field, const char *format, ...)
{
	char message[WHY_SIZE + 256] = "MESSAGE=", level[32];
	const size_t head = strlen(message);
	send_lines *send = find_journal();
	struct iovec fields[3];
	va_list args;

	if (!send)
		return false;
	va_start(args, format);
	vsnprintf(message + head, sizeof(message) - head, format, args);
	va_end(args);
	snprintf(level, sizeof(level), "PRIORITY=%d", priority);
	fields[0] = (struct iovec){ message, strlen(message) };
	fields[1] = (struct iovec){ level, strlen(level) };
	fields[2] = (struct iovec){ (char *)field, strlen(field) };
	return !send(fields, 3);
}
