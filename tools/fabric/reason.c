// SPDX-License-Identifier: LGPL-2.1-or-later
/* The sentence of the last call that failed. */
#include <stdarg.h>
#include <stdio.h>

#include "fabric/internal.h"

static _Thread_local char reason[512];

int fabric_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return -error;
}

const char *rashpa_fabric_reason(void)
{
	return reason;
}
