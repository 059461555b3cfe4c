/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Exchange of data between the processes of a run before they are connected: through PMIx, which
 * the launcher provides, or over TCP at the address in RASHPA_MEET.
 */
#ifndef BUILDER_EXCHANGE_H
#define BUILDER_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "fabric/fabric.h"

/* Functions return 0 or a negative errno, with a sentence of fabric_fail(). */
struct exchange {
	/* Fill in the launch, unless its size is not 0: then the caller has set it. */
	int (*open)(struct rashpa_launch *launch, void **link);
	/*
	 * Wait until all processes have come, up to a time of fabric_now(). "mine" holds a piece of
	 * "bytes" bytes for each rank; "theirs" receives the piece of each rank for this one. With
	 * 0 bytes: only wait.
	 */
	int (*swap)(void *link, const void *mine, uint32_t bytes, void *theirs, uint64_t end);
	void (*close)(void *link);
};

extern const struct exchange meet_exchange, pmix_exchange;

#endif /* BUILDER_EXCHANGE_H */
