// SPDX-License-Identifier: LGPL-2.1-or-later
#include "common/text-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool read_line(char *buf, size_t size, const char *format, ...)
{
	char *path = NULL;
	FILE *file = NULL;
	va_list args;
	bool ok;

	buf[0] = '\0';
	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	if (path)
		file = fopen(path, "re");
	free(path);
	if (!file)
		return false;
	ok = fgets(buf, size, file);
	fclose(file);
	buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

int write_text(const char *text, const char *format, ...)
{
	const ssize_t length = strlen(text);
	char *path = NULL;
	va_list args;
	ssize_t n;
	int fd, error = 0;

	va_start(args, format);
	if (vasprintf(&path, format, args) < 0)
		path = NULL;
	va_end(args);
	if (!path)
		return -ENOMEM;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	n = fd < 0 ? fd : write(fd, text, length);
	if (n < 0)
		error = -errno;
	else if (n != length)
		error = -EIO;	/* a part of it was taken: errno is of something else */
	if (fd >= 0)
		close(fd);
	free(path);
	return error;
}
