/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* One stream, followed from outside: it is read, and nothing of it is written. */
#ifndef FOLLOWER_H
#define FOLLOWER_H

#include <stdbool.h>
#include <stdint.h>

#include "rashpa.h"
#include "rashpa-stream.h"
#include "say.h"
#include "stats.h"

/* Records of one stream that are timed in an interval; more add no precision. */
#define FOLLOWER_SAMPLES	256

struct follower {
	char name[RASHPA_NAME_SIZE];	/* name of the buffer */
	char why[WHY_SIZE];		/* why it is not followed, or empty */
	struct rashpa_stream *stream;	/* as an observer; NULL: none runs */
	struct rashpa_stream_header about;	/* header of the stream, also after its end */
	struct rashpa_stream_process process;	/* the first one */
	int device, channel;
	const char *state;		/* empty: there is no stream */
	bool gone;			/* the board has left, and the producer not yet */
	bool missing;			/* the buffer cannot be opened */
	/* at the last look; lost: images whose slot was written again before it was given back */
	uint64_t when, stacks, most, consumed, lost;
	uint64_t told;			/* events of the channel's source until then */
	unsigned int source;
	/* rates of the interval between the last two checks */
	double time, images_per_second, bytes_per_second;
	uint64_t events;
	struct samples latency;
	/* work that the consumer reports, now and before; stages 0: none */
	struct rashpa_stream_work work, before;
	bool fresh;			/* there was no look before */
};

void follower_init(struct follower *f, const char *name);

/*
 * Look at the buffer: begin to follow a stream that runs, stop when it does not any more, work
 * out the interval. Without a running stream it holds nothing open.
 */
void follower_look(struct follower *f);

/* Take the records that are there; time: measure how old they are. */
void follower_take(struct follower *f, bool time);

/* Is there something to poll() for? */
static inline bool follower_wants(const struct follower *f)
{
	return f->channel >= 0 && f->latency.count < FOLLOWER_SAMPLES;
}

/* Of an image, without gaps between lines; while there is a stream. */
uint64_t follower_image_bytes(const struct follower *f);

/* A new interval begins. */
void follower_begin(struct follower *f);

void follower_close(struct follower *f);

#endif /* FOLLOWER_H */
