/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How processes of a run tell each other, before they are connected, what each has for each: over
 * PMIx, of which the launcher knows, or where RASHPA_MEET says that they meet.
 */
#ifndef BUILDER_EXCHANGE_H
#define BUILDER_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "rashpa-builder.h"

/* Functions return 0 or a negative errno, with a sentence of fabric_fail(). */
struct exchange {
	/* Who this is. A launch whose size is not 0 was given by the caller. */
	int (*open)(struct rashpa_launch *launch, void **link);
	/*
	 * Wait until all are here, up to a time of fabric_now(). "mine" has a piece of so many
	 * bytes for each rank, "theirs" becomes what each rank has for this one. With 0 bytes:
	 * only wait.
	 */
	int (*swap)(void *link, const void *mine, uint32_t bytes, void *theirs, uint64_t end);
	void (*close)(void *link);
};

extern const struct exchange meet_exchange, pmix_exchange;

#endif /* BUILDER_EXCHANGE_H */
