/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory that is written to or from, in pages of a kind, or a buffer of the driver. */
#ifndef BENCH_NETWORK_PAGES_H
#define BENCH_NETWORK_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct pages {
	void *base;
	uint64_t length;
	int fd;			/* of a buffer, -1 */
};

/* Can pages_open() know it? "4K", "thp", "2M", "1G". */
bool pages_known(const char *kind);
/* buffer: of this name, whose length counts; NULL: length bytes of the kind. 0, or -1 and why. */
int pages_open(struct pages *pages, const char *kind, const char *buffer, uint64_t length,
	       char *why);
void pages_close(struct pages *pages);

#endif /* BENCH_NETWORK_PAGES_H */
