/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Small files of sysfs and procfs: one line, read or written at once. */
#ifndef TEXT_FILE_H
#define TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* First line of a file, without the newline; false if it cannot be read. */
bool read_line(char *buf, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* 0 or a negative errno; -EIO if only a part was taken. */
int write_text(const char *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif /* TEXT_FILE_H */
