// SPDX-License-Identifier: LGPL-2.1-or-later
#include "lib/tests/gpu-libraries/note.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;

bool told(const char *word)
{
	const char *words = getenv("STAND_IN"), *at = words ? strstr(words, word) : NULL;

	return at && (at == words || at[-1] == ',') &&
	       (!at[strlen(word)] || at[strlen(word)] == ',');
}

void note(const char *format, ...)
{
	const char *name = getenv("STAND_IN_LOG");
	va_list args;

	pthread_mutex_lock(&lock);
	if (!file && name) {
		file = fopen(name, "ae");
		if (file)
			fprintf(file, "# of a stand-in: no GPU\n");
	}
	if (file) {
		va_start(args, format);
		vfprintf(file, format, args);
		va_end(args);
		fputc('\n', file);
		fflush(file);
	}
	pthread_mutex_unlock(&lock);
}
