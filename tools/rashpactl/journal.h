/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of a service, for the journal: with searchable fields */
#ifndef RASHPACTL_JOURNAL_H
#define RASHPACTL_JOURNAL_H

#include <stdbool.h>
#include <syslog.h>

/*
 * Send a line to the journal, if standard error is the journal. "priority" is of syslog(3), and
 * "field" NAME=VALUE. False: not sent; print the line instead.
 */
bool journal_line(int priority, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
