/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of messages: pages of a given size, or a buffer of the driver. */
#ifndef BENCH_NETWORK_PAGES_H
#define BENCH_NETWORK_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct pages {
	void *base;
	uint64_t length;
	int fd;			/* file of a buffer, or -1 */
};

/* Map all of a named buffer; NULL: length bytes in pages of this kind, "4K", "thp", "2M" or "1G". 0, or -1 and why. */
int pages_open(struct pages *pages, const char *kind, const char *buffer, uint64_t length,
	       char *why);
void pages_close(struct pages *pages);

#endif /* BENCH_NETWORK_PAGES_H */
