/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Messages of the software FPGA: to stderr or a file, with a time stamp. */
#ifndef LOG_H
#define LOG_H

#include <stdbool.h>

extern bool log_verbose;

int log_open(const char *path);
void log_msg(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define log_debug(...) do { if (log_verbose) log_msg(__VA_ARGS__); } while (0)

/*
 * For what a guest can make happen at will: at most ten lines a second, and then a
 * line that says how many were left out.
 */
void log_limited(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LOG_H */
