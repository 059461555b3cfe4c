/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Lines of a service, for the journal: with fields that one can ask for */
#ifndef RASHPACTL_JOURNAL_H
#define RASHPACTL_JOURNAL_H

#include <stdbool.h>
#include <syslog.h>

/*
 * Is standard error the journal's, and did it take this line? "priority" is one of syslog(3), and
 * "field" NAME=VALUE. False: say the line in another way.
 */
bool journal_line(int priority, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
