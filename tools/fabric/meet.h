/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Exchange over TCP: each process sends a message, and rank 0 answers; this happens twice. */
#ifndef BUILDER_MEET_H
#define BUILDER_MEET_H

#include <stdint.h>

#include "fabric/fabric.h"

#define MEET_MAGIC	0x3174656du	/* "met1"; refuses machines with another byte order */
#define MEET_STRANGERS	64		/* maximum number of callers without a valid rank */

struct meet_hello {
	uint32_t magic, rank, size;
	uint32_t bytes;		/* size of each piece; one for each rank follows */
	char job[sizeof(((struct rashpa_launch *)0)->job)];
};

struct meet_answer {
	uint32_t magic;
	uint32_t error;		/* errno; 0: pieces follow */
	char sentence[240];
};

#endif /* BUILDER_MEET_H */
