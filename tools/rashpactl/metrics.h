/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Metrics of streams, rings and resources in the text format of Prometheus. */
#ifndef METRICS_H
#define METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include "rashpactl/follower.h"
#include "rashpactl/parts.h"

struct metrics {
	const struct follower *follower;
	unsigned int followers;
	const struct rings *rings;
	bool resources;			/* also the resources of the driver */
};

/*
 * Write all metrics to @file, which is replaced atomically; NULL: to standard output. 0, or -1
 * after a message.
 */
int metrics_write(const struct metrics *m, const char *file);

#endif /* METRICS_H */
