// SPDX-License-Identifier: LGPL-2.1-or-later
#include "fpga/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define LIMIT_LINES	10

bool log_verbose;

static FILE *log_file;
static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static time_t limit_second;
static unsigned int limit_count;

int log_open(const char *path)
{
	FILE *file = fopen(path, "ae");

	if (!file)
		return -errno;
	setvbuf(file, NULL, _IOLBF, 0);
	log_file = file;
	return 0;
}

__attribute__((format(printf, 1, 0), nonnull(1)))
static void write_line(const char *fmt, va_list args)
{
	FILE *out = log_file ? log_file : stderr;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	flockfile(out);
	fprintf(out, "rashpa-fpga [%5lld.%06ld] ", (long long)now.tv_sec,
		now.tv_nsec / 1000);
	vfprintf(out, fmt, args);
	fputc('\n', out);
	funlockfile(out);
}

void log_msg(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
}

void log_limited(const char *fmt, ...)
{
	unsigned int left_out = 0;
	struct timespec now;
	bool write;
	va_list args;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	pthread_mutex_lock(&limit_lock);
	if (now.tv_sec != limit_second) {
		left_out = limit_count > LIMIT_LINES ? limit_count - LIMIT_LINES : 0;
		limit_second = now.tv_sec;
		limit_count = 0;
	}
	write = limit_count++ < LIMIT_LINES;
	pthread_mutex_unlock(&limit_lock);

	if (left_out)
		log_msg("%u lines left out", left_out);
	if (!write)
		return;
	va_start(args, fmt);
	write_line(fmt, args);
	va_end(args);
}
