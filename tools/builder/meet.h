/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What processes say where they meet, over TCP: each one message, and rank 0 an answer; twice. */
#ifndef BUILDER_MEET_H
#define BUILDER_MEET_H

#include <stdint.h>

#include "rashpa-builder.h"

#define MEET_MAGIC	0x3174656du	/* "met1"; machines of another byte order are strangers */
#define MEET_STRANGERS	64		/* at a time; and no rank yet */

struct meet_hello {
	uint32_t magic, rank, size;
	uint32_t bytes;		/* of each of size pieces that follow */
	char job[sizeof(((struct rashpa_launch *)0)->job)];
};

struct meet_answer {
	uint32_t magic;
	uint32_t error;		/* errno; 0: pieces follow */
	char sentence[240];
};

#endif /* BUILDER_MEET_H */
